"""The leaderboard for a spreadsheet and for a paper: as files, and for the page, which copies what it shows."""

import csv
import io

import numpy as np

from fairevals.evaluation.leaderboard import leaderboard
from fairevals.io.out import Table, render, render_with_notes
from fairevals.report.board import interval_notes
from fairevals.report.gather import Report


def copied_tables(report: Report) -> dict[str, list[list[str]] | list[str]]:
    """The cells of leaderboard.csv and the lines of leaderboard.tex, from which the page takes those that it shows."""
    return {
        "csv": list(csv.reader(io.StringIO(leaderboard_csv(report)))),
        "tex": leaderboard_latex(report).rstrip("\n").split("\n"),
    }


def leaderboard_csv(report: Report) -> str:
    """All of `leaderboard_table`, safe to open as a spreadsheet."""
    return render(leaderboard_table(report), "csv", spreadsheet=True)


def leaderboard_table(report: Report) -> Table:
    """One row per run, best first; for each measure its value, its interval and the letters."""
    scores, board = report.scores, report.board
    fields = ("value", "low", "high", "letters")
    heads = [
        str(m) if name == "value" else f"{m} {name}" for m in map(str, scores.measures) for name in fields
    ]
    rows = [
        (
            *(place, scores.runs[r], scores.teams[r] if scores.teams else "", scores.status(r)),
            *(getattr(entry, name) for entry in board.entries[r] for name in fields),
        )
        for place, r in enumerate(board.order, 1)
    ]
    return Table(("rank", "run", "team", "status", *heads), tuple(rows))


def leaderboard_latex(report: Report) -> str:
    """The measures that were asked for, with intervals and letters, for a paper."""
    scores, board = report.asked_scores(), report.board
    bounds = np.array([[(e.low, e.high) for e in row[: report.asked]] for row in board.entries])
    groups = board.groups[: report.asked]
    table = leaderboard(scores, intervals=bounds, letters=[one.letters for one in groups])
    return render_with_notes(table, "latex", notes=interval_notes(scores, groups))

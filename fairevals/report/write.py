"""A report as files: the page, the scores, the figures, and report.json with everything for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from fairevals.evaluation.leaderboard import json_table, long_group_table, long_table
from fairevals.io.folders import PAGE, Marked
from fairevals.io.out import Table, render
from fairevals.report.board import role
from fairevals.report.gather import Report, Stages, drivers, tipping
from fairevals.report.page import page, plain
from fairevals.report.pictures import Picture, pictures
from fairevals.report.takeaway import leaderboard_csv, leaderboard_latex
from fairevals.statistics.compare import full_table
from fairevals.statistics.pairing import pair

REPORT = Marked("report", "report.json", "fairevals report 1")
"""The folder of a report."""


def write_report(
    report: Report, folder: Path, *, force: bool = False, progress: Stages | None = None
) -> list[Path]:
    """Write the files of `report_files` into a folder; returns their paths, the page first.

    An earlier report is replaced as a whole, and stays as it was if anything fails.
    """
    REPORT.check(folder, force=force)
    return REPORT.write(folder, report_files(report, progress))


def report_files(report: Report, progress: Stages | None = None) -> dict[str, bytes]:
    """The files of a report by their names, the page first; `progress` is as in `gather`."""
    show: Stages = progress or (lambda *_: None)
    drawn = []
    for picture in pictures(report):
        drawn.append(picture)
        # How many there are is known when the last is drawn.
        show("figures", len(drawn), len(drawn) + 1)
    show("figures", len(drawn), len(drawn))
    show("page", 0, 1)
    texts = {
        "scores.csv": render(long_table(report.scores, per_topic=True), "csv"),
        "leaderboard.csv": leaderboard_csv(report),
        "leaderboard.tex": leaderboard_latex(report),
    }
    files = {
        PAGE: page(report, drawn),
        REPORT.marker: record(report, drawn),
        **{name: text.encode(errors="backslashreplace") for name, text in texts.items()},
        **{f"figures/{picture.name}.svg": picture.svg for picture in drawn},
    }
    show("page", 1, 1)
    return files


def record(report: Report, drawn: Sequence[Picture]) -> bytes:
    """The bytes of report.json."""
    scores, board, task = report.scores, report.board, report.collection.task
    comparisons = full_table(report.comparisons) if report.comparisons is not None else Table((), ())
    by_group = Table((), ())
    if report.parts:
        by_group = long_group_table(scores, report.parts, lambda part: json_table(part, per_topic=False))
    others = [r for r in range(len(scores.runs)) if r != report.baseline]
    settings = ("order", "cutoff", "utility_weight", "candidates", "conventions", "missing")
    content = {
        "format": REPORT.format,
        "title": report.title,
        "versions": report.versions,
        "files": [asdict(file) for file in report.files],
        "figures": [f"figures/{picture.name}.svg" for picture in drawn],
        "topics": len(scores.topics),
        "judgements": len(report.collection.qrels),
        "conventions": {
            "max_grade": report.collection.max_grade,
            **{name: getattr(task, name) for name in settings},
        },
        "policy": asdict(report.plan.policy),
        "baseline": scores.runs[report.baseline],
        "references": [scores.runs[r] for r in sorted(report.references)],
        "statuses": {run: scores.status(r) for r, run in enumerate(scores.runs)},
        "teams": {run: team for run, team in zip(scores.runs, scores.teams, strict=False) if team},
        "metadata": {run: text for run, text in zip(scores.runs, report.metadata, strict=True) if text},
        "measures": [
            {
                **{"name": str(measure), "label": scores.label(measure)},
                **{"direction": str(measure.direction), "role": role(measure)},
                **{"formula": measure.formula, "source": measure.source, "asked": m < report.asked},
            }
            for m, measure in enumerate(scores.measures)
        ],
        "significance": {
            "test": "randomised Tukey HSD",
            "alpha": board.alpha,
            "families": [
                {
                    "measure": str(measure),
                    "runs": groups.family.runs,
                    "outside": dict(groups.family.outside),
                    "resamples": groups.tukey.resamples,
                }
                for measure, groups in zip(scores.measures, board.groups, strict=True)
            ],
        },
        "level": 1 - board.alpha,
        "means": [
            {"run": run, "measure": str(measure), **asdict(board.entries[r][m])}
            for r, run in enumerate(scores.runs)
            for m, measure in enumerate(scores.measures)
        ],
        "leaderboard": [scores.runs[r] for r in board.order],
        "by_group": [dict(zip(by_group.columns, row, strict=True)) for row in by_group.rows],
        "fronts": [
            {
                "utility": str(scores.measures[report.across]),
                "fairness": str(scores.measures[m]),
                "runs": [scores.runs[r] for r in board.front(report.across, m)],
            }
            for m in report.up
            if report.across is not None
        ],
        "comparisons": [dict(zip(comparisons.columns, row, strict=True)) for row in comparisons.rows],
        "drivers": [
            {"run": one.run, "measure": one.measure, "tipping": tipping(one.gains), "topics": drivers(one, 5)}
            for one in (pair(scores, report.by_topic, r, report.baseline) for r in others)
        ],
        "correlations": report.correlations and asdict(report.correlations),
        "distributions": [
            {**asdict(one), "run": scores.runs[r]}
            for column in report.distributions
            for r, one in zip(report.panels, column, strict=True)
        ],
        "exposure": [
            {**asdict(one), "run": scores.runs[r]}
            for r, one in zip(report.panels, report.merits, strict=True)
        ],
        "trained": [asdict(point) for point in report.trained.points] if report.trained else [],
        "missing_topics": {run: list(topics) for run, topics in scores.missing_topics.items()},
        "remarks": list(report.remarks),
    }
    text = json.dumps(plain(content), ensure_ascii=False, indent=1, allow_nan=False)
    return f"{text}\n".encode(errors="backslashreplace")

"""The page: one file that loads nothing, made by templates that escape whatever they are given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.errors import escape, pluralize
from fairevals.report.board import Board
from fairevals.report.gather import Report
from fairevals.report.glossary import WORDS, terms
from fairevals.report.html import content_policy, environment, own_text
from fairevals.report.pictures import Picture
from fairevals.report.record import plain
from fairevals.report.roles import role
from fairevals.report.style import data_uri, labels
from fairevals.report.topics import drivers, tipping
from fairevals.report.words import breakable, number, p_value, signed, size_of
from fairevals.statistics import description
from fairevals.statistics.pairing import orientation

if TYPE_CHECKING:
    from jinja2 import Environment

MOST_VALUES = 200_000
"""So many per-topic values are put into the page; the rest is in scores.csv."""
NAME, LONG = 60, 200
"""How much of a name is written out; the leaderboard has all of it as a tooltip."""
DRIVERS = 8


@cache
def _environment() -> Environment:
    made = environment("fairevals.report")
    made.filters.update(
        number=number,
        signed=signed,
        p=p_value,
        size=size_of,
        breakable=breakable,
        short=lambda text: str(escape(text, NAME)),
    )
    made.globals.update(pluralize=pluralize)
    return made


def page(report: Report, pictures: Sequence[Picture]) -> bytes:
    """The bytes of index.html; the same report gives the same bytes."""
    from markupsafe import Markup

    style, script = own_text("style.css"), own_text("script.js")
    shown_pictures: dict[str, list[dict[str, str]]] = {}
    for picture in pictures:
        shown_pictures.setdefault(picture.section, []).append(
            {
                "name": picture.name,
                "uri": data_uri(picture.svg),
                "alt": picture.alt,
                "caption": picture.caption,
            }
        )
    text = (
        _environment()
        .get_template("index.html")
        .render(
            style=Markup(style),  # noqa: S704  # this and the next are the package's own; all else is escaped
            script=Markup(script),  # noqa: S704
            policy=content_policy(style, script),
            report=report,
            pictures=shown_pictures,
            **_leaderboard(report),
            **_differences(report),
            **_rest(report),
            data=plain(page_data(report)),
        )
    )
    return text.encode(errors="backslashreplace")  # the name of a file need not be text


def _leaderboard(report: Report) -> dict[str, Any]:
    board, scores = report.board, report.scores
    names = labels(scores.runs, LONG)
    columns, spans = [], []
    for m, measure in enumerate(scores.measures):
        direction = measure.direction
        best = {"higher": "descending", "lower": "ascending"}.get(direction.word, "other")
        spans.append(_span(board, m))
        columns.append(
            {
                "name": str(measure),
                "arrow": direction.arrow,
                "words": direction.words,
                "best": best,
                "role": role(measure),
                "topics": _range([row[m].topics for row in board.entries]),
                "undefined": _range([row[m].undefined for row in board.entries]),
                "tested": len(board.groups[m].topics) if board.groups else 0,
            }
        )
    rows = []
    for r in board.order:
        cells = [
            {"entry": entry, "bar": _bar(entry.value, entry.low, entry.high, spans[m])}
            for m, entry in enumerate(board.entries[r])
        ]
        rows.append(
            {
                "name": names[r],
                "full": scores.runs[r],
                "baseline": r == report.baseline and len(scores.runs) > 1,
                "reference": r in report.references,
                "cells": cells,
            }
        )
    return {"columns": columns, "rows": rows, "glance": _glance(report)}


def _span(board: Board, measure: int) -> tuple[float, float]:
    """The smallest and largest number of a column, intervals included."""
    column = [row[measure] for row in board.entries]
    ends = [x for e in column for x in (e.value, e.low, e.high) if not math.isnan(x)]
    return (min(ends), max(ends)) if ends else (0.0, 1.0)


def _bar(value: float, low: float, high: float, span: tuple[float, float]) -> dict[str, str] | None:
    """Where value and interval stand in a box of width 100."""
    if math.isnan(value):
        return None
    width = (span[1] - span[0]) or 1.0

    def place(x: float) -> str:
        return f"{2 + 96 * ((value if math.isnan(x) else x) - span[0]) / width:.1f}"

    return {"value": place(value), "low": place(low), "high": place(high)}


def _range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 else f"{min(numbers)}–{max(numbers)}"


def _glance(report: Report) -> list[tuple[str, str, str]]:
    """A few facts to begin with: (what, who, value)."""
    board, scores = report.board, report.scores
    names = labels(scores.runs, NAME)
    wanted = [0]
    if report.across is not None:
        wanted += [report.across, *report.up[:2]]
    wanted += [m for m, measure in enumerate(scores.measures) if role(measure) == "both"][:1]
    facts = []
    for m in list(dict.fromkeys(wanted))[:4]:
        winner = board.ranked(m)[0]
        entry = board.entries[winner][m]
        if math.isnan(entry.cost):
            continue
        same = sum(1 for r in range(len(names)) if r != winner and _share(board, m, r, winner))
        tail = (
            f"; {pluralize(same, 'other run')} not significantly different"
            if same
            else "; all others differ significantly"
        )
        tail = tail if len(names) > 1 else ""
        direction = scores.measures[m].direction
        facts.append(
            (f"Best by {scores.measures[m]} {direction.arrow}", names[winner], number(entry.value) + tail)
        )
    return facts


def _share(board: Board, measure: int, a: int, b: int) -> bool:
    letters = [set(board.entries[r][measure].letters) for r in (a, b)]
    return bool(letters[0] & letters[1])


def _differences(report: Report) -> dict[str, Any]:
    names = labels(report.scores.runs, NAME)
    focus = report.focus()
    comparisons = report.comparisons
    if focus is None or comparisons is None:
        return {"focus": None, "comparison": None}
    short = dict(zip(report.scores.runs, names, strict=True))
    places = {run: r for r, run in enumerate(report.scores.runs)}
    return {
        "focus": {
            "run": short[focus.run],
            "baseline": short[focus.baseline],
            "measure": focus.measure,
            "drivers": drivers(focus, DRIVERS),
            "tipping": tipping(focus.gains),
            "topics": len(focus.topics),
            "wins": focus.wins,
            "ties": focus.ties,
            "losses": focus.losses,
            "mean": focus.gains.mean() if focus.gains.size else math.nan,
        },
        "comparison": {
            "description": description(comparisons, "verdict where"),
            "effect": comparisons.procedure.effect,
            "corrected": comparisons.correction != "none",
            "rows": [
                {"run": short[row.run], "place": places[row.run], "row": row} for row in comparisons.rows
            ],
        },
    }


def _rest(report: Report) -> dict[str, Any]:
    collection, plan = report.collection, report.plan
    attributes = []
    for name, attribute in collection.attributes.items():
        spec = attribute.spec
        target = spec.target
        attributes.append(
            {
                "name": name,
                "kind": spec.kind,
                "groups": [str(escape(group, NAME)) for group in spec.groups],
                "target": target
                if isinstance(target, str)
                else ", ".join(f"{x:g}" for x in target)
                if isinstance(target, tuple)
                else "one for each topic"
                if isinstance(target, dict)
                else "from a file",
                "unmapped": spec.unmapped,
                "divergence": spec.divergence,
                "topics": int(attribute.applies.sum()),
                "weight": spec.weight,
            }
        )
    sampled = report.board.sampled
    return {
        "attributes": attributes,
        "policy_text": _policy(report),
        "sampled": sampled,
        "notable": any(entry.notable for row in report.board.entries for entry in row),
        "terms": terms(report.scores.measures),
        "words": WORDS,
        "taus": _taus(report),
        "trained_rows": _trained_rows(report),
        "conventions": [
            (
                "Order",
                "by score, ties by document id, both descending (trec_eval)"
                if collection.task.order == "score"
                else "as the lines of the file stand",
            ),
            (
                "Default cutoff",
                f"{collection.task.cutoff} ranks" if collection.task.cutoff else "none: the whole ranking",
            ),
            ("Largest grade", f"{collection.max_grade:g}"),
            ("Unjudged or negative", "grade 0"),
            ("Topics left out by a run", "0 for utility, GF and GFR; undefined for measures of exposure"),
            ("Undefined values", "not in the mean, and counted"),
            ("Intervals", f"{100 * report.board.level:g} %, Student's t over topics"),
            (
                "Groups of runs",
                f"randomised Tukey HSD, {report.board.resamples:,} permutations, α = {report.board.alpha:g}, "
                "on the topics where all runs are defined",
            ),
            ("Seed", str(plan.policy.seed)),
        ],
    }


def _policy(report: Report) -> str:
    spec = report.plan.policy
    if spec.kind == "pl":
        return (
            f"Plackett-Luce, scores are log-weights (temperature {spec.temperature:g}); {spec.samples:,} rankings "
            "drawn where a value is not exact"
        )
    return "several rankings a topic, each as likely" if spec.kind == "samples" else "one ranking a topic"


def _taus(report: Report) -> list[dict[str, Any]]:
    found = report.correlations
    if found is None:
        return []
    pairs = []
    for a, b in zip(*(axis.tolist() for axis in np.triu_indices(len(found.measures), 1)), strict=True):
        pairs.append(
            {
                "a": found.measures[a],
                "b": found.measures[b],
                "tau": float(found.tau[a, b]),
                "low": float(found.low[a, b]),
                "high": float(found.high[a, b]),
            }
        )
    return pairs


def _trained_rows(report: Report) -> dict[str, Any] | None:
    """A row a method and λ: means and standard deviations over seeds, on the splits that figures show."""
    summary = report.trained
    if summary is None:
        return None
    measures = [m for m in (summary.utility, summary.disparity) if m]
    heads = [(measure, split) for measure in measures for split in summary.shown_splits]
    rows = []
    for name in summary.families:
        lams = sorted({p.lam for p in summary.points if p.family == name and not math.isnan(p.lam)}) or [
            math.nan
        ]
        for lam in lams:
            cells, seeds = [], 0
            for measure, split in heads:
                point = next(
                    (p for p in summary.of(name, split, measure) if p.lam == lam or math.isnan(lam)), None
                )
                cells.append(point)
                seeds = max(seeds, point.seeds if point else 0)
            rows.append({"name": str(escape(name, NAME)), "lam": lam, "seeds": seeds, "cells": cells})
    return {"heads": heads, "rows": rows}


def page_data(report: Report) -> dict[str, Any]:
    """What the script draws from: means of all runs, and values by topic of as many runs as fit."""
    scores, board = report.scores, report.board
    each = max(1, len(scores.measures) * len(scores.topics))
    fitting = max(0, MOST_VALUES // each)
    first = [report.baseline, *(r for r in board.order if r != report.baseline)]
    kept = set(first[:fitting]) if fitting > 1 else set()
    return {
        "runs": labels(scores.runs, NAME),
        "topics": [str(escape(topic, 80)) for topic in scores.topics] if kept else [],
        "measures": [
            {
                "name": str(m),
                "arrow": m.direction.arrow,
                "sign": orientation(m.direction),
                "target": m.direction.target,
            }
            for m in scores.measures
        ],
        "baseline": report.baseline,
        "references": sorted(report.references),
        "order": list(board.order),
        "means": [[_rounded(entry.value) for entry in row] for row in board.entries],
        "low": [[_rounded(entry.low) for entry in row] for row in board.entries],
        "high": [[_rounded(entry.high) for entry in row] for row in board.entries],
        "values": [np.round(scores.values[r], 6) if r in kept else None for r in range(len(scores.runs))],
        "across": report.across,
        "up": report.up[0] if report.up else None,
        "focus": next((r for r in board.ranked(0) if r != report.baseline), None),
    }


def _rounded(value: float) -> float:
    return round(value, 6)

"""The page: one file that loads nothing, made by templates that escape everything they print."""

import inspect
import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from markupsafe import Markup

from fairevals.errors import escape, pluralize
from fairevals.evaluation.leaderboard import group_table, head
from fairevals.io.out import format_number, format_p
from fairevals.measures import Measure
from fairevals.report import html
from fairevals.report.board import BOTH, Board, role
from fairevals.report.gather import Report, drivers, tipping
from fairevals.report.pictures import Picture
from fairevals.report.style import data_uri, labels
from fairevals.statistics.compare import description
from fairevals.statistics.pairing import orientation
from fairevals.typing import Floats

MAX_VALUES = 200_000
"""The page holds at most so many values of single topics; all are in scores.csv."""
NAME, LONG_NAME = 60, 200
"""How many characters of a name are shown; the leaderboard has the whole name as a tooltip."""


def plain(value: Any) -> Any:
    """The value as JSON can hold it: arrays as lists, NaN and infinities as null.

    >>> plain({"a": np.array([1.0, np.nan]), "b": (1, "x")})
    {'a': [1.0, None], 'b': [1, 'x']}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def page(report: Report, pictures: Sequence[Picture]) -> bytes:
    """The bytes of index.html; the same report gives the same bytes."""
    style, script = html.own_text("style.css"), html.own_text("script.js")
    sections = {key: list(group) for key, group in groupby(pictures, lambda picture: picture.section)}
    runs = report.scores.runs
    templates = html.environment("fairevals.report")
    templates.filters.update(
        number=format_number,
        p=format_p,
        breakable=html.breakable,
        short=lambda text: str(escape(text, NAME)),
        uri=data_uri,
        repr=repr,
        label=report.scores.label,
    )
    text = templates.get_template("index.html").render(
        **{"pluralize": pluralize, "role": role, "drivers": drivers, "tipping": tipping},
        **{"describe": description, "isnan": math.isnan},
        style=Markup(style),  # noqa: S704  # style and script are the package's own; all else is escaped
        script=Markup(script),  # noqa: S704
        policy=html.content_policy(style, script),
        report=report,
        board=report.board,
        scores=report.scores,
        task=report.collection.task,
        spec=report.plan.policy,
        pictures=sections,
        names=labels(runs, NAME),
        long_names=labels(runs, LONG_NAME),
        bars=[interval_bars(report.board, m) for m in range(len(report.scores.measures))],
        cards=_cards(report),
        by_group=group_table(report.scores, report.parts) if report.parts else None,
        glossary=_glossary(report.scores.measures),
        data=plain(page_data(report)),
    )
    return text.encode(errors="backslashreplace")  # the name of a file need not be valid text


def interval_bars(board: Board, measure: int) -> Floats:
    """(runs, 3): where value, low and high of each run are drawn in a box of width 100; NaN where undefined."""
    numbers = np.stack([board.column(measure, field) for field in ("value", "low", "high")], axis=1)
    numbers = np.where(np.isnan(numbers), numbers[:, :1], numbers)
    known = numbers[~np.isnan(numbers)]
    start, width = (known.min(), np.ptp(known) or 1.0) if known.size else (0.0, 1.0)
    places: Floats = 2 + 96 * (numbers - start) / width
    return places


def _cards(report: Report) -> list[tuple[str, str, str]]:
    """The first facts of the page: (what, who, value) of the best complete run by up to four measures."""
    board, measures = report.board, report.scores.measures
    names = labels(report.scores.runs, NAME)
    wanted = [0] if report.across is None else [0, report.across, *report.up[:2]]
    wanted += [m for m, measure in enumerate(measures) if role(measure) == BOTH][:1]
    cards = []
    for m in list(dict.fromkeys(wanted))[:4]:
        winner = board.winner(m)
        if winner is None:
            continue
        entry = board.entries[winner][m]
        others = [text for r, text in enumerate(board.groups[m].letters) if text and r != winner]
        alike = sum(bool(set(text) & set(entry.letters)) for text in others)
        verdict = f"; {pluralize(alike, 'other run')} not significantly different"
        verdict = verdict if alike else "; all other runs with letters differ significantly"
        value = format_number(entry.value) + (verdict if entry.letters and others else "")
        cards.append((f"Best by {head(report.scores, m)}", names[winner], value))
    return cards


def _glossary(measures: Sequence[Measure]) -> list[tuple[list[Measure], str]]:
    """For each kind of measure its variants in the report, and its docstring without the examples."""
    variants: dict[str, list[Measure]] = {}
    for measure in measures:
        variants.setdefault(measure.name, []).append(measure)
    glossary = []
    for kind in variants.values():
        prose = inspect.cleandoc(type(kind[0]).__doc__ or "").partition(">>>")[0]
        glossary.append((kind, " ".join(prose.replace("`", "").split())))
    return glossary


def page_data(report: Report) -> dict[str, Any]:
    """What the script draws: the means of all runs, and values by topic of as many runs as fit."""
    scores, board = report.scores, report.board
    fitting = MAX_VALUES // max(1, len(scores.measures) * len(scores.topics))
    others = [r for r in board.order if r != report.baseline]
    kept = {report.baseline, *others[: fitting - 1]} if fitting > 1 else set()
    measures = range(len(scores.measures))

    def table(field: str) -> Any:
        return np.round(np.stack([board.column(m, field) for m in measures], axis=1), 6)

    return {
        "runs": labels(scores.runs, NAME),
        "topics": [str(escape(topic, 80)) for topic in scores.topics] if kept else [],
        "measures": [
            {"name": scores.label(m), "arrow": d.arrow, "sign": orientation(d), "target": d.target}
            for m in scores.measures
            for d in (m.direction,)
        ],
        "baseline": report.baseline,
        "references": sorted(report.references),
        "order": board.order,
        "means": table("value"),
        "costs": table("cost"),
        "low": table("low"),
        "high": table("high"),
        "incomplete": scores.incomplete,
        "values": [np.round(scores.values[r], 6) if r in kept else None for r in range(len(scores.runs))],
        "across": report.across,
        "up": report.up[0] if report.up else None,
        "focus": others[0] if others else None,
        "byTopic": report.by_topic,
    }

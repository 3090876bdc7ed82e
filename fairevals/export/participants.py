"""For each run its values on every topic, beside the median and the range of all official runs."""

import warnings
from collections.abc import Iterator

import numpy as np
from markupsafe import Markup

from fairevals import __version__
from fairevals.errors import escape
from fairevals.evaluation.scores import ALL, Scores
from fairevals.export.names import unique
from fairevals.io.folders import safe_name
from fairevals.io.out import Cell, Table, format_number, render
from fairevals.report import html
from fairevals.statistics.pairing import costs_of, orientation, subtract
from fairevals.typing import Floats

PARTICIPANT_COLUMNS = ("measure", "topic", "value", "median", "min", "max")
RUN_LIST = "runs.csv"
"""The table that says which files belong to which run."""


def participants(scores: Scores, title: str) -> Iterator[tuple[str, bytes]]:
    """The files by name: `runs.csv` with the names of all others, and for each run a table and a page.

    Median, minimum and maximum are over the official runs with a value there. A topic is left out where no run has a
    value. The rows of topic `all` are of the means over topics.
    """
    names = unique(scores.runs, safe_name, [RUN_LIST.removesuffix(".csv")])
    rows = [(run, f"{name}.csv", f"{name}.html") for run, name in zip(scores.runs, names, strict=True)]
    index = Table(("run", "table", "page"), tuple(rows))
    yield RUN_LIST, render(index, "csv").encode(errors="backslashreplace")
    values = with_means(scores)
    ranges = official_ranges(scores, values)
    for run, name in enumerate(names):
        table = run_table(scores, run, values, ranges)
        yield f"{name}.csv", render(table, "csv").encode(errors="backslashreplace")
        yield f"{name}.html", run_page(scores, run, table, title)


def with_means(scores: Scores) -> Floats:
    """(runs, measures, topics + 1): the values, and behind them their means over topics."""
    runs, measures = len(scores.runs), len(scores.measures)
    means = [[[scores.mean(r, m).value] for m in range(measures)] for r in range(runs)]
    return np.concatenate([scores.values, np.array(means, dtype=np.float64)], axis=2)


def official_ranges(scores: Scores, values: Floats) -> Floats:
    """(3, measures, topics + 1): median, minimum and maximum of the official runs; NaN where none has a value."""
    official = [r for r in range(len(scores.runs)) if scores.status(r) == "official"]
    if not official:
        return np.full((3, *values.shape[1:]), np.nan)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="All-NaN")
        return np.stack([reduce(values[official], axis=0) for reduce in (np.nanmedian, np.nanmin, np.nanmax)])


def run_table(scores: Scores, run: int, values: Floats, ranges: Floats) -> Table:
    """One row for each measure and topic."""
    rows: list[tuple[Cell, ...]] = [
        (str(measure), topic, float(values[run, m, t]), *map(float, ranges[:, m, t]))
        for m, measure in enumerate(scores.measures)
        for t, topic in enumerate([*scores.topics, ALL])
        if not np.isnan(values[:, m, t]).all()
    ]
    return Table(PARTICIPANT_COLUMNS, tuple(rows))


def run_page(scores: Scores, run: int, table: Table, title: str) -> bytes:
    """The same as a page that loads nothing; the same scores give the same bytes."""
    style = html.own_text("style.css")
    sections = []
    for measure in scores.measures:
        rows = [row[1:] for row in table.rows if row[0] == str(measure)]
        numbers = np.array([row[1:3] for row in rows], dtype=np.float64).reshape(-1, 2)
        costs = costs_of(measure.direction, numbers)
        # Better than the median: 1, worse: −1, equal or unknown: 0.
        signs = np.sign(np.nan_to_num(subtract(costs[:, 1], costs[:, 0]))) * abs(
            orientation(measure.direction)
        )
        sections.append((measure, [row for row in rows if row[0] != ALL], rows[-1:], signs[:-1].tolist()))
    templates = html.environment("fairevals.export", "fairevals.report")
    templates.filters.update(number=format_number, breakable=html.breakable)
    text = templates.get_template("participant.html").render(
        style=Markup(style),  # noqa: S704  # the package's own; all else is escaped
        policy=html.content_policy(style),
        title=escape(title, 200),
        run=escape(scores.runs[run], 200),
        official=sum(scores.status(r) == "official" for r in range(len(scores.runs))),
        sections=sections,
        label=scores.label,
        version=__version__,
        shown=lambda text: str(escape(text, 80)),
    )
    return text.encode(errors="backslashreplace")

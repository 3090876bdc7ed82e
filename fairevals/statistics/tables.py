"""Comparisons as tables: a short one for people, a whole one for programs."""

from __future__ import annotations

import math

from fairevals.io.out import Cell, Table, number
from fairevals.statistics.compare import Comparison, Comparisons, description, remarks

COLUMNS = (
    *("measure", "direction", "run", "baseline", "mean", "baseline_mean", "difference", "low", "high"),
    *("p", "corrected_p", "effect", "verdict", "wins", "ties", "losses", "topics", "undefined"),
    *("undefined_topics", "se", "sampling_se", "test", "correction", "level"),
)


def data_table(found: Comparisons) -> Table:
    """A row a measure and run, every number in full; names of undefined topics separated by spaces.

    `se` is the standard error of the difference over topics, `sampling_se` the part of it from sampling rankings.
    """
    rows: list[tuple[Cell, ...]] = [
        (
            *(row.measure, str(row.direction), row.run, row.baseline, row.mean, row.baseline_mean),
            *(row.difference, row.low, row.high, row.p, row.corrected, row.effect, row.verdict),
            *(row.wins, row.ties, row.losses, row.topics, len(row.undefined), " ".join(row.undefined)),
            *(row.spread.total, row.spread.sampling, found.test, found.correction, found.level),
        )
        for row in found.rows
    ]
    return Table(COLUMNS, tuple(rows))


def people_table(found: Comparisons, places: int = 4) -> Table:
    """For each measure the baseline and its mean, then every run; significant differences are marked."""
    procedure = found.procedure
    correction = {"holm": ["p Holm"], "bh": ["p BH"]}.get(found.correction, [])
    columns = ("measure", "run", "mean", "difference", f"{100 * found.level:g} % interval", "p", *correction)
    columns += (procedure.effect, "won/tied/lost", "topics", "")
    rows: list[tuple[Cell, ...]] = []
    marked = set()
    shown_p = 5 + len(correction)
    for measure, mean, topics in found.baseline_means:
        own = found.of(measure)
        head = f"{measure} {own[0].direction.arrow}".rstrip() if own else measure
        blanks: tuple[Cell, ...] = (None,) * (5 + len(correction))
        rows.append((head, found.baseline, mean, *blanks, topics, "baseline"))
        for row in own:
            if row.significant:
                marked.add((len(rows), shown_p))
            rows.append(_cells(row, bool(correction), places))
    return Table(columns, tuple(rows), frozenset(marked))


def _cells(row: Comparison, corrected: bool, places: int) -> tuple[Cell, ...]:
    ps = (row.p, row.corrected) if corrected else (row.p,)
    return (
        *("", row.run, row.mean, _signed(row.difference, places), _interval(row, places)),
        *(_small(p, places) for p in ps),
        *(
            _signed(row.effect, min(places, 2)),
            f"{row.wins}/{row.ties}/{row.losses}",
            row.topics,
            row.verdict,
        ),
    )


def _signed(value: float, places: int) -> Cell:
    """With its sign, no sign where it is nothing as printed.

    >>> _signed(0.25, 2), _signed(-0.25, 2), _signed(-0.0001, 2), _signed(float("nan"), 2)
    ('+0.25', '-0.25', '0.00', None)
    """
    if math.isnan(value):
        return None
    text = f"{value:+.{places}f}"
    return text if float(text) else text[1:]


def _interval(row: Comparison, places: int) -> Cell:
    if math.isnan(row.low) or math.isnan(row.high):
        return None
    return f"[{_signed(row.low, places)}, {_signed(row.high, places)}]"


def _small(p: float, places: int) -> Cell:
    """A p-value, which is never printed as 0.

    >>> _small(0.00001, 4), _small(0.25, 4)
    ('<0.0001', 0.25)
    """
    least = 10.0**-places
    return f"<{number(least, places)}" if p < least else p


def notes(found: Comparisons, mark: str = "*") -> list[str]:
    """The lines under the table for people: how it was made, and what to mind; `mark` stands for significance."""
    return [description(found, mark), *remarks(found)]

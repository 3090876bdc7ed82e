"""Scores as tables: the leaderboard for people, long rows for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairevals.io.out import Cell, Table, number
from fairevals.scores import ALL, Mean, Scores


def long_table(scores: Scores, per_topic: bool) -> Table:
    """Rows run, topic, measure, value, se."""
    return Table(("run", "topic", "measure", "value", "se"), tuple(scores.rows(per_topic)))


def json_table(scores: Scores, per_topic: bool) -> Table:
    """The same, with how many topics a mean is over and how many are undefined."""
    means = {
        (run, str(measure)): scores.mean(r, m)
        for r, run in enumerate(scores.runs)
        for m, measure in enumerate(scores.measures)
    }
    rows: list[tuple[Cell, ...]] = []
    for run, topic, measure, value, se in scores.rows(per_topic):
        counts = (means[run, measure].topics, means[run, measure].undefined) if topic == ALL else (None, None)
        rows.append((run, topic, measure, value, se, *counts))
    return Table(("run", "topic", "measure", "value", "se", "topics", "undefined"), tuple(rows))


def _span(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 else f"{min(numbers)}–{max(numbers)}"


def _with_se(value: float, se: float, places: int) -> Cell:
    """A value, and ± its standard error where it was sampled."""
    return value if math.isnan(se) else f"{number(value, places)} ±{number(se, places)}"


def leaderboard(scores: Scores, places: int = 4) -> Table:
    """A row a run, best first by the first measure; the best of each measure is marked, by its direction."""
    means: list[list[Mean]] = [
        [scores.mean(r, m) for m in range(len(scores.measures))] for r in range(len(scores.runs))
    ]

    def cost(r: int, m: int) -> float:
        found = float(scores.measures[m].direction.cost(means[r][m].value))
        return math.inf if math.isnan(found) else found

    order = sorted(range(len(scores.runs)), key=lambda r: (cost(r, 0), scores.runs[r]))
    rows, marked = [], set()
    for place, r in enumerate(order):
        row: list[Cell] = [scores.runs[r]]
        for m in range(len(scores.measures)):
            # Equal as printed is equal to the reader: all of them are marked.
            best = min(round(cost(other, m), places) for other in order)
            if len(order) > 1 and round(cost(r, m), places) == best < math.inf:
                marked.add((place, m + 1))
            row.append(_with_se(means[r][m].value, means[r][m].se, places))
        rows.append(tuple(row))
    columns = [[mean[m] for mean in means] for m in range(len(scores.measures))]
    footer = (
        ("topics", *(_span([mean.topics for mean in column]) for column in columns)),
        ("undefined", *(_span([mean.undefined for mean in column]) for column in columns)),
    )
    heads = tuple(f"{measure} {measure.direction.arrow}" for measure in scores.measures)
    return Table(("run", *heads), tuple(rows), frozenset(marked), footer)


def topic_table(scores: Scores, places: int = 4) -> Table:
    """A row a run and topic, a column a measure; the means come last for each run."""
    rows: list[tuple[Cell, ...]] = []
    for r, run in enumerate(scores.runs):
        for t, topic in enumerate(scores.topics):
            values = (
                _with_se(float(scores.values[r, m, t]), float(scores.se[r, m, t]), places)
                for m in range(len(scores.measures))
            )
            rows.append((run, topic, *values))
        means = [scores.mean(r, m) for m in range(len(scores.measures))]
        rows.append((run, "all", *(_with_se(mean.value, mean.se, places) for mean in means)))
    return Table(("run", "topic", *(f"{m} {m.direction.arrow}" for m in scores.measures)), tuple(rows))

"""Scores as tables: the leaderboard for people, long rows for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairevals.evaluation.scores import ALL, Mean, Scores
from fairevals.io.out import Cell, Table, number
from fairevals.measures.base import Direction


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


def with_se(value: float, se: float | None, places: int) -> Cell:
    """A value, and ± its standard error where it was sampled.

    >>> with_se(0.25, 0.01, 2), with_se(0.25, None, 2)
    ('0.25 ±0.01', 0.25)
    """
    return value if se is None or math.isnan(se) else f"{number(value, places)} ±{number(se, places)}"


def best_of(
    values: Sequence[float], direction: Direction, places: int, eligible: Sequence[bool] | None = None
) -> list[bool]:
    """Which of several values are the best: all that are printed as the best is, for equal as printed is equal to the
    reader. None if there is only one value, or none that is defined.

    >>> from fairevals.measures.base import HIGHER
    >>> best_of([0.5, 0.50001, float("nan"), 0.3], HIGHER, 4)
    [True, True, False, False]
    """
    costs = [round(float(direction.cost(value)), places) for value in values]
    if eligible is not None:
        costs = [cost if able else math.nan for cost, able in zip(costs, eligible, strict=True)]
    best = min((cost for cost in costs if not math.isnan(cost)), default=math.inf)
    return [len(costs) > 1 and cost == best < math.inf for cost in costs]


def leaderboard(scores: Scores, places: int = 4) -> Table:
    """A row a run, best first by the first measure; the best of each measure is marked, by its direction."""
    means: list[list[Mean]] = [
        [scores.mean(r, m) for m in range(len(scores.measures))] for r in range(len(scores.runs))
    ]

    def cost(r: int) -> float:
        found = float(scores.measures[0].direction.cost(means[r][0].value))
        return math.inf if math.isnan(found) else found

    order = sorted(range(len(scores.runs)), key=lambda r: (cost(r), scores.runs[r]))
    rows = [(scores.runs[r], *(with_se(mean.value, mean.se, places) for mean in means[r])) for r in order]
    marked: set[tuple[int, int]] = set()
    for m, measure in enumerate(scores.measures):
        best = best_of([means[r][m].value for r in order], measure.direction, places)
        marked |= {(place, m + 1) for place, marks in enumerate(best) if marks}
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
                with_se(float(scores.values[r, m, t]), float(scores.se[r, m, t]), places)
                for m in range(len(scores.measures))
            )
            rows.append((run, topic, *values))
        means = [scores.mean(r, m) for m in range(len(scores.measures))]
        rows.append((run, "all", *(with_se(mean.value, mean.se, places) for mean in means)))
    return Table(("run", "topic", *(f"{m} {m.direction.arrow}" for m in scores.measures)), tuple(rows))

"""Scores as tables: the leaderboard for people, long rows for programs."""

import math
from collections.abc import Sequence

import numpy as np

from fairevals.evaluation.scores import ALL, Scores
from fairevals.io.out import Cell, Table, number


def long_table(scores: Scores, per_topic: bool) -> Table:
    """Rows run, topic, measure, value, se."""
    return Table(("run", "topic", "measure", "value", "se"), tuple(scores.rows(per_topic)))


def json_table(scores: Scores, per_topic: bool) -> Table:
    """The same, with how many topics a mean is over, how many are undefined, and whether the run is incomplete."""
    long, rows = long_table(scores, per_topic), []
    cells = ((scores.mean(*at), bool(scores.incomplete[at])) for at in np.ndindex(scores.incomplete.shape))
    for row in long.rows:  # by run and measure, the mean last
        counts: tuple[Cell, ...] = (None, None, None)
        if row[1] == ALL:
            mean, incomplete = next(cells)
            counts = (mean.topics, mean.undefined, incomplete)
        rows.append((*row, *counts))
    return Table((*long.columns, "topics", "undefined", "incomplete"), tuple(rows))


def _span(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 else f"{min(numbers)}–{max(numbers)}"


def with_se(value: float, se: float | None, places: int) -> Cell:
    """A value, and ± its standard error where it was sampled.

    >>> with_se(0.25, 0.01, 2), with_se(0.25, None, 2)
    ('0.25 ±0.01', 0.25)
    """
    return value if se is None or math.isnan(se) else f"{number(value, places)} ±{number(se, places)}"


def best_of(costs: Sequence[float], places: int, eligible: Sequence[bool] | None = None) -> list[bool]:
    """Which of several runs are the best: all whose cost (see `Scores.cost`) is printed as the lowest is.

    Only `eligible` runs can be the best. None is if there is only one run, or no cost that is defined.

    >>> best_of([0.5, 0.49999, float("nan"), 0.7], 4)
    [True, True, False, False]
    >>> best_of([0.1, 0.5, 0.7], 4, eligible=[False, True, True])
    [False, True, False]
    """
    rounded = [round(cost, places) for cost in costs]
    rounded = [c if ok else math.nan for c, ok in zip(rounded, eligible or [True] * len(costs), strict=True)]
    best = min((cost for cost in rounded if not math.isnan(cost)), default=math.inf)
    return [len(rounded) > 1 and cost == best < math.inf for cost in rounded]


def ranking_of_runs(scores: Scores, measure: int = 0) -> list[int]:
    """The runs, best first by a measure; incomplete ones last, those that lack more topics behind the others."""

    def key(r: int) -> tuple[int, float, str]:
        cost = scores.cost(r, measure)
        return int(scores.lacking[r, measure]), math.inf if math.isnan(cost) else cost, scores.runs[r]

    return sorted(range(len(scores.runs)), key=key)


def _heads(scores: Scores) -> list[str]:
    return [f"{measure} {measure.direction.arrow}".rstrip() for measure in scores.measures]


def leaderboard(scores: Scores, places: int = 4) -> Table:
    """One row per run, best first by the first measure; the best of each measure is marked, by its direction.

    A run that is incomplete for a measure has † behind its value, is never marked as the best, and comes after the
    complete runs if it is the first measure.
    """
    order = ranking_of_runs(scores)
    columns = [[scores.mean(r, m) for r in order] for m in range(len(scores.measures))]
    cells: list[list[Cell]] = []
    marked: set[tuple[int, int]] = set()
    for m, means in enumerate(columns):
        complete = (~scores.incomplete[order, m]).tolist()
        best = best_of([scores.cost(r, m) for r in order], places, complete)
        marked |= {(place, m + 1) for place, marks in enumerate(best) if marks}
        column = [with_se(mean.value, mean.se, places) for mean in means]
        for place in (place for place, whole in enumerate(complete) if not whole):
            value = column[place]
            text = value if isinstance(value, str) else number(means[place].value, places)
            column[place] = f"{text or '–'} †"
        cells.append(column)
    footer = [
        ("topics", *(_span([mean.topics for mean in means]) for means in columns)),
        ("undefined", *(_span([mean.undefined for mean in means]) for means in columns)),
    ]
    if scores.incomplete.any():
        footer.append(("† incomplete", *(str(int(count)) for count in scores.incomplete.sum(axis=0))))
    rows = tuple((scores.runs[r], *(column[place] for column in cells)) for place, r in enumerate(order))
    return Table(("run", *_heads(scores)), rows, frozenset(marked), tuple(footer))


def topic_table(scores: Scores, places: int = 4) -> Table:
    """One row per run and topic, one column per measure; the row of means comes last for each run."""
    rows: list[tuple[Cell, ...]] = []
    measures = range(len(scores.measures))
    for r, run in enumerate(scores.runs):
        for t, topic in enumerate(scores.topics):
            cells = [
                with_se(float(scores.values[r, m, t]), float(scores.se[r, m, t]), places) for m in measures
            ]
            rows.append(
                (run, topic, *(None if scores.measures[m].across_topics else cells[m] for m in measures))
            )
        means = [scores.mean(r, m) for m in measures]
        rows.append((run, ALL, *(with_se(mean.value, mean.se, places) for mean in means)))
    return Table(("run", "topic", *_heads(scores)), tuple(rows))

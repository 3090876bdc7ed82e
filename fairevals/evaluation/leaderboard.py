"""Scores as tables: the leaderboard for people, long rows for programs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from fairevals.evaluation.scores import ALL, SCORE_COLUMNS, Scores
from fairevals.io.cells import Cell, Table, ValueCell, number
from fairevals.typing import Floats


def long_table(scores: Scores, per_topic: bool, intervals: Floats | None = None) -> Table:
    """Rows run, topic, measure, value, se; with intervals of the means, (runs, measures, 2), also low and high."""
    rows: list[tuple[Cell, ...]] = [*scores.rows(per_topic)]
    if intervals is None:
        return Table(SCORE_COLUMNS, tuple(rows))
    bounds = iter(intervals.reshape(-1, 2).tolist())  # rows are by run and measure, the mean last
    rows = [(*row, *(next(bounds) if row[1] == ALL else (None, None))) for row in rows]
    return Table((*SCORE_COLUMNS, "low", "high"), tuple(rows))


def json_table(scores: Scores, per_topic: bool, intervals: Floats | None = None) -> Table:
    """The same, with how many topics a mean is over, how many are undefined, and whether the run is incomplete."""
    long, rows = long_table(scores, per_topic, intervals), []
    cells = ((scores.mean(*at), bool(scores.incomplete[at])) for at in np.ndindex(scores.incomplete.shape))
    for row in long.rows:  # by run and measure, the mean last
        counts: tuple[Cell, ...] = (None, None, None)
        if row[1] == ALL:
            mean, incomplete = next(cells)
            counts = (mean.topics, mean.undefined, incomplete)
        rows.append((*row, *counts))
    return Table((*long.columns, "topics", "undefined", "incomplete"), tuple(rows))


def gap_and_worst(parts: Mapping[str, Scores], run: int, measure: int) -> tuple[float, str | None]:
    """The largest difference between the means over groups of topics, and the group with the worst by the direction.

    `parts` are the scores on the topics of each group. NaN with fewer than two groups that have a value; no group is
    the worst where all are equally good, or the measure has no direction. Where a value such as 0 is best, the worst
    group is farthest from it, whether or not the means differ.
    """
    gap = _range(part.mean(run, measure).value for part in parts.values())
    costs = {group: part.cost(run, measure) for group, part in parts.items()}
    defined = [group for group, cost in costs.items() if cost == cost]
    return gap, max(defined, key=costs.__getitem__) if _range(costs.values()) > 0 else None


def _range(values: Iterable[float]) -> float:
    """The largest value less the smallest, 0 if they differ by rounding only; NaN with fewer than two defined."""
    known = [value for value in values if value == value]
    if len(known) < 2:
        return math.nan
    low, high = min(known), max(known)
    return 0.0 if math.isclose(low, high, rel_tol=1e-12, abs_tol=1e-12) else high - low


def long_group_table(scores: Scores, parts: Mapping[str, Scores], make: Callable[[Scores], Table]) -> Table:
    """The long tables that `make` gives of each group of topics, and of all topics, with the column group.

    It is empty for all topics, where gap and worst are filled in.
    """
    rows = [(*row, group, None, None) for group, part in parts.items() for row in make(part).rows]
    whole = make(scores)
    cells = np.ndindex(len(scores.runs), len(scores.measures))
    rows += [(*row, "", *gap_and_worst(parts, *at)) for row, at in zip(whole.rows, cells, strict=True)]
    return Table((*whole.columns, "group", "gap", "worst"), tuple(rows))


def _span(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 else f"{min(numbers)}–{max(numbers)}"


def with_se(value: float, se: float | None, places: int) -> str | float:
    """A value, and ± its standard error where it was sampled.

    >>> with_se(0.25, 0.01, 2), with_se(0.25, None, 2)
    ('0.25 ±0.01', 0.25)
    """
    return value if se is None or math.isnan(se) else f"{number(value, places)} ±{number(se, places)}"


def best_of(
    costs: Sequence[float],
    places: int,
    eligible: Sequence[bool] | None = None,
    errors: Sequence[float] | None = None,
) -> list[bool]:
    """Which of several runs are the best: all whose cost (see `Scores.cost`) is printed as the lowest is.

    Only `eligible` runs can be the best. None is if there is only one run, or no defined cost. With standard errors
    from sampling rankings (NaN for an exact value), so are all runs within 1.96·√(e² + e_lowest²) of the lowest cost.

    >>> best_of([0.5, 0.49999, float("nan"), 0.7], 4)
    [True, True, False, False]
    >>> best_of([0.1, 0.5, 0.7], 4, eligible=[False, True, True])
    [False, True, False]
    >>> best_of([0.50, 0.51, 0.58], 4, errors=[0.01, 0.01, 0.01])
    [True, True, False]
    """
    rounded = [round(cost, places) for cost in costs]
    rounded = [c if ok else math.nan for c, ok in zip(rounded, eligible or [True] * len(costs), strict=True)]
    best = min((cost for cost in rounded if not math.isnan(cost)), default=math.inf)
    if len(rounded) < 2 or best == math.inf:
        return [False] * len(rounded)
    noise = [0.0 if math.isnan(error) else error for error in errors or [0.0] * len(costs)]
    least = noise[rounded.index(best)]
    return [cost - best <= 1.96 * math.hypot(e, least) for cost, e in zip(rounded, noise, strict=True)]


def ranking_of_runs(scores: Scores, measure: int = 0) -> list[int]:
    """The runs, best first by a measure; incomplete ones last, those that lack more topics behind the others."""

    def key(r: int) -> tuple[int, float, str]:
        cost = scores.cost(r, measure)
        return int(scores.lacking[r, measure]), math.inf if math.isnan(cost) else cost, scores.runs[r]

    return sorted(range(len(scores.runs)), key=key)


def head(scores: Scores, measure: int) -> str:
    """What is displayed for a measure, with the arrow of its direction."""
    one = scores.measures[measure]
    return f"{scores.label(one)} {one.direction.arrow}".rstrip()


def _heads(scores: Scores) -> list[str]:
    return [head(scores, m) for m in range(len(scores.measures))]


def _facts(scores: Scores) -> dict[str, Sequence[str]]:
    """The columns team and status of the runs: teams if a run has one, statuses if a run is not official."""
    statuses = [scores.status(r) for r in range(len(scores.runs))]
    shown = {"team": any(scores.teams), "status": set(statuses) != {"official"}}
    return {name: texts for name, texts in (("team", scores.teams), ("status", statuses)) if shown[name]}


def _value(
    scores: Scores, r: int, m: int, places: int, intervals: Floats | None = None, letters: str = ""
) -> Cell:
    """A mean with its standard error where it was sampled, † if the run is incomplete, and what goes beside it."""
    mean = scores.mean(r, m)
    value = with_se(mean.value, mean.se, places)
    if scores.incomplete[r, m]:
        value = f"{value if isinstance(value, str) else number(value, places) or '–'} †"
    if intervals is None:
        return value
    low, high = (number(bound, max(places - 1, 0)) for bound in intervals[r, m].tolist())
    return ValueCell(value, letters, f"[{low}, {high}]" if low else "")


def best_runs(scores: Scores, m: int, order: Sequence[int], places: int) -> list[bool]:
    """Which of the runs, in this order, are the best by a measure: see `best_of`. An incomplete run never is."""
    complete = (~scores.incomplete[list(order), m]).tolist()
    errors = [scores.mean(r, m).se for r in order]
    return best_of([scores.cost(r, m) for r in order], places, complete, errors)


def leaderboard(
    scores: Scores,
    places: int = 4,
    intervals: Floats | None = None,
    letters: Sequence[Sequence[str]] = (),
) -> Table:
    """One row per run, best first by the first measure; the best of each measure is marked, by its direction.

    A run that is incomplete for a measure has † behind its value, is never marked as the best, and comes after the
    complete runs if it is the first measure. `intervals` (runs, measures, 2) and `letters` [measure][run] are put
    beside the values.
    """
    order, facts = ranking_of_runs(scores), _facts(scores)
    measures, first = range(len(scores.measures)), 1 + len(facts)
    marked = {
        (place, first + m)
        for m in measures
        for place, best in enumerate(best_runs(scores, m, order, places))
        if best
    }
    means = [[scores.mean(r, m) for r in order] for m in measures]
    blank = ("",) * len(facts)
    footer: list[tuple[Cell, ...]] = [
        ("topics", *blank, *(_span([mean.topics for mean in column]) for column in means)),
        ("undefined", *blank, *(_span([mean.undefined for mean in column]) for column in means)),
    ]
    if scores.incomplete.any():
        footer.append(("† incomplete", *blank, *(str(int(count)) for count in scores.incomplete.sum(axis=0))))
    rows = []
    for r in order:
        beside = [letters[m][r] if letters else "" for m in measures]
        values = [_value(scores, r, m, places, intervals, beside[m]) for m in measures]
        rows.append((scores.runs[r], *(texts[r] for texts in facts.values()), *values))
    heads = ("run", *facts, *_heads(scores))
    return Table(heads, tuple(rows), frozenset(marked), tuple(footer), turns=True)


def group_table(
    scores: Scores,
    parts: Mapping[str, Scores],
    places: int = 4,
    intervals: Mapping[str, Floats] | None = None,
) -> Table:
    """For each measure one row per run, best first, with one column for each group of topics, then gap and worst.

    The best run of each group is marked. `parts` are the scores on the topics of each group.
    """
    rows: list[tuple[Cell, ...]] = []
    marked: set[tuple[int, int]] = set()
    for m in range(len(scores.measures)):
        order = ranking_of_runs(scores, m)
        for column, part in enumerate(parts.values(), 2):
            best = best_runs(part, m, order, places)
            marked |= {(len(rows) + place, column) for place, marks in enumerate(best) if marks}
        for place, r in enumerate(order):
            values = [
                _value(part, r, m, places, intervals[group] if intervals else None)
                for group, part in parts.items()
            ]
            gap, worst = gap_and_worst(parts, r, m)
            rows.append(("" if place else head(scores, m), scores.runs[r], *values, gap, worst))
    footer = ("topics", "", *(len(part.topics) for part in parts.values()), None, None)
    heads = ("measure", "run", *parts, "gap", "worst")
    return Table(heads, tuple(rows), frozenset(marked), (footer,), keys=2)


def topic_table(scores: Scores, places: int = 4, intervals: Floats | None = None) -> Table:
    """One row per run and topic, one column per measure; the row of means comes last for each run."""
    rows: list[tuple[Cell, ...]] = []
    measures = range(len(scores.measures))
    for r, run in enumerate(scores.runs):
        for t, topic in enumerate(scores.topics):
            cells = [
                None
                if scores.measures[m].across_topics
                else with_se(float(scores.values[r, m, t]), float(scores.se[r, m, t]), places)
                for m in measures
            ]
            rows.append((run, topic, *cells))
        means = [_value(scores, r, m, places, intervals) for m in measures]
        rows.append((run, ALL, *means))
    return Table(("run", "topic", *_heads(scores)), tuple(rows), keys=2)

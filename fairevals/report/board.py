"""The leaderboard of a report: means with intervals and letters, which runs are best, and the Pareto front."""

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fairevals.evaluation import Collection, Plan, with_components
from fairevals.evaluation.leaderboard import best_runs, ranking_of_runs
from fairevals.evaluation.scores import Scores
from fairevals.io.out import DECIMALS
from fairevals.measures import CompositeMeasure, ExposureMeasure, Measure, parse_measure
from fairevals.measures.base import NEUTRAL
from fairevals.statistics.inference import mean_interval
from fairevals.statistics.tukey import RunGroups, significance_groups, tukey_family
from fairevals.typing import Bools, Floats

ALPHA = 0.05
"""The significance level of letters; intervals have the level 1 − ALPHA."""
USEFULNESS, FAIRNESS, BOTH, OTHER = "utility", "fairness", "both", "other"
_ROLES = {"GFR": BOTH, "EE_R": USEFULNESS}
"""Measures whose class does not show their role: GFR combines both, EE_R is the relevance part of expected exposure."""


def role(measure: Measure) -> str:
    """What a measure is about: utility, fairness, both in one number, or "other" for a count without direction.

    >>> [role(parse_measure(name)) for name in ("nDCG@10", "D_ind", "M1(attr='A')", "GF(attr='A')")]
    ['utility', 'fairness', 'both', 'fairness']
    """
    if measure.direction == NEUTRAL:
        return OTHER
    if measure.name in _ROLES:
        return _ROLES[measure.name]
    if isinstance(measure, CompositeMeasure):
        return BOTH
    fair = isinstance(measure, ExposureMeasure) or measure.attributes != "none"
    return FAIRNESS if fair else USEFULNESS


def with_both_sides(plan: Plan, collection: Collection, *, given: bool) -> Plan:
    """The plan with the measures that a figure of utility against fairness still needs.

    Without a measure of fairness alone, the parts of composite measures are added. If there is still none and the
    measures are the task's own (not `given` by the user), AWRF of every attribute is added.
    """

    def has(wanted: str) -> bool:
        return any(role(measure) == wanted for measure in plan.measures)

    if has(FAIRNESS) and has(USEFULNESS):
        return plan
    parts = with_components(plan, collection).measures
    plan = Plan.of(collection, [*plan.measures, *parts], plan.policy)
    if has(FAIRNESS) or given:
        return plan
    shares = [parse_measure(f"AWRF(attr={name!r})") for name in collection.attribute_names]
    return Plan.of(collection, [*plan.measures, *shares], plan.policy)


def pareto(costs: Floats) -> Bools:
    """Which rows of (points, criteria) no other row beats: as small everywhere, and smaller somewhere.

    A row with a NaN is never on the front and beats no other row.

    >>> pareto(np.array([[0.1, 0.9], [0.5, 0.5], [0.6, 0.6], [0.9, np.nan]]))
    array([ True,  True, False, False])
    """
    # Every comparison with NaN is false: its row neither beats nor is beaten.
    as_small = (costs[:, None, :] <= costs[None, :, :]).all(axis=2)
    smaller = (costs[:, None, :] < costs[None, :, :]).any(axis=2)
    front: Bools = ~np.asarray(np.isnan(costs).any(axis=1) | (as_small & smaller).any(axis=0))
    return front


@dataclass(frozen=True)
class BoardEntry:
    """The mean of one run on one measure; a number is NaN where it is undefined."""

    value: float
    cost: float
    """Smaller is better, whatever the measure's direction."""
    low: float
    high: float
    letters: str
    """Empty for a run outside the family that letters are computed for."""
    topics: int
    undefined: int
    topic_se: float
    """The part of the standard error that comes from the choice of topics."""
    sampling_se: float
    """The part that comes from drawing rankings; NaN where the value is exact."""
    notable: bool
    """Whether the sampling part is too large to be neglected."""
    incomplete: bool
    """Whether the run lacks a value on a topic where another run has one."""
    best: bool


@dataclass(frozen=True)
class Board:
    """One row of entries per run in the order of the scores, one column per measure."""

    scores: Scores
    entries: tuple[tuple[BoardEntry, ...], ...]
    groups: tuple[RunGroups, ...]
    """The letters of each measure, with the family of runs that they are for."""
    alpha: ClassVar[float] = ALPHA

    @cached_property
    def order(self) -> list[int]:
        """The runs, best first by the first measure, incomplete ones last."""
        return ranking_of_runs(self.scores)

    def winner(self, measure: int) -> int | None:
        """The best run by a measure; None where no complete run has a value, or the measure has no direction."""
        first = ranking_of_runs(self.scores, measure)[0]
        entry = self.entries[first][measure]
        return None if entry.incomplete or math.isnan(entry.cost) else first

    def column(self, measure: int, field: str) -> Floats:
        """One number of every run on a measure, as an array."""
        return np.array([getattr(row[measure], field) for row in self.entries], dtype=np.float64)

    def front(self, across: int, up: int) -> list[int]:
        """The runs on the Pareto front of two measures. A run that is incomplete on either is never on it."""
        costs = np.stack([self.column(m, "cost") for m in (across, up)], axis=1)
        lacks = self.column(across, "incomplete") + self.column(up, "incomplete") > 0
        return [int(r) for r in np.flatnonzero(pareto(np.where(lacks[:, None], np.nan, costs)))]

    @property
    def resamples(self) -> list[int]:
        """The numbers of permutations, or resamples of the topics, that letters come from, without repetition."""
        return sorted({group.tukey.resamples for group in self.groups if any(group.letters)})

    def any(self, field: str) -> bool:
        """Whether a flag or a text of any entry is set, or a number is not NaN."""
        values = [getattr(entry, field) for row in self.entries for entry in row]
        return any(not math.isnan(value) if isinstance(value, float) else value for value in values)


def letters(
    scores: Scores,
    *,
    baseline: int | None = None,
    references: Set[int] = frozenset(),
    seed: int = 0,
) -> list[RunGroups]:
    """The letters of every measure, for the runs that are neither baseline nor reference, by status or as named."""
    families = (
        tukey_family(scores, m, baseline=baseline, references=references) for m in range(len(scores.measures))
    )
    return [
        significance_groups(scores, m, family, alpha=ALPHA, seed=seed) for m, family in enumerate(families)
    ]


def interval_notes(scores: Scores, groups: Sequence[RunGroups]) -> list[str]:
    """What the intervals and the letters of a leaderboard mean; no word of letters with one run."""
    across = [scores.label(measure) for measure in scores.measures if measure.across_topics]
    by_t = "t " if len(across) < len(scores.measures) else ""
    lines = [f"[low, high]: 95 % {by_t}intervals over topics"]
    if across:
        lines[0] += f"; by bootstrap: {', '.join(across)}"
    if any(any(one.letters) for one in groups):
        lines.append("runs that share a letter do not differ significantly")
    if len(scores.runs) > 1:
        lines += dict.fromkeys(one.note for one in groups)
    return lines


def board(
    scores: Scores,
    *,
    baseline: int | None = None,
    references: Set[int] = frozenset(),
    seed: int = 0,
) -> Board:
    """Means, t intervals over topics, and letters by randomised Tukey HSD.

    Letters are for the runs that are neither baseline nor reference, by status or as named here.
    """
    groups = letters(scores, baseline=baseline, references=references, seed=seed)
    columns: list[list[BoardEntry]] = []
    for m in range(len(scores.measures)):
        runs, complete = range(len(scores.runs)), (~scores.incomplete[:, m]).tolist()
        means = [(scores.mean(r, m), *mean_interval(scores, r, m, 1 - ALPHA)) for r in runs]
        best = best_runs(scores, m, runs, DECIMALS)
        columns.append(
            [
                BoardEntry(
                    value=mean.value,
                    cost=scores.cost(r, m),
                    **interval._asdict(),
                    letters=groups[m].letters[r],
                    topics=mean.topics,
                    undefined=mean.undefined,
                    topic_se=spread.topics,
                    sampling_se=spread.sampling,
                    notable=spread.notable,
                    incomplete=not complete[r],
                    best=best[r],
                )
                for r, (mean, interval, spread) in enumerate(means)
            ]
        )
    return Board(scores, tuple(zip(*columns, strict=True)), tuple(groups))

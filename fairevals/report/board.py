"""The leaderboard of a report: means with intervals, significance groups, sampling error, undefined topics."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

from fairevals.evaluation.leaderboard import best_of
from fairevals.evaluation.scores import Scores
from fairevals.measures import Measure
from fairevals.statistics import RunGroups, mean_interval, significance_groups, tukey_family

WORK = 60_000_000
"""How many values are permuted for all measures together, at most."""
RESAMPLES = (1_000, 10_000)
"""The fewest and the most permutations."""
PLACES = 4


@dataclass(frozen=True)
class Entry:
    """A run's mean on a measure; numbers are NaN where there are none."""

    value: float
    cost: float
    """Smaller is better, whatever the measure."""
    low: float
    high: float
    letters: str
    topics: int
    undefined: int
    topic_se: float
    """The standard error from which topics there are."""
    sampling_se: float
    """The standard error from drawing rankings; NaN where the value is exact."""
    notable: bool
    """Whether that is not negligible beside the whole."""
    best: bool


@dataclass(frozen=True)
class Board:
    """A row a run in the order of the scores, a column a measure."""

    runs: tuple[str, ...]
    measures: tuple[Measure, ...]
    entries: tuple[tuple[Entry, ...], ...]
    order: tuple[int, ...]
    """The runs, best first by the first measure."""
    resamples: int
    alpha: float
    level: float
    groups: tuple[RunGroups, ...]
    """Significance groups of each measure; empty where there is only one run."""

    def cost(self, run: int, measure: int) -> float:
        """Smaller is better; infinite where there is no value."""
        found = self.entries[run][measure].cost
        return math.inf if math.isnan(found) else found

    def ranked(self, measure: int) -> list[int]:
        """The runs, best first by a measure."""
        return sorted(range(len(self.runs)), key=lambda r: (self.cost(r, measure), self.runs[r]))

    @property
    def sampled(self) -> bool:
        """Whether any value rests on drawn rankings."""
        return any(not math.isnan(e.sampling_se) for row in self.entries for e in row)


def resamples_for(scores: Scores) -> int:
    """How many permutations Tukey's test gets: as many as are quick, within `RESAMPLES`."""
    least, most = RESAMPLES
    return max(least, min(most, WORK // max(1, scores.values.size)))


def board(
    scores: Scores,
    *,
    baseline: int | None = None,
    references: Collection[int] = (),
    seed: int = 0,
    alpha: float = 0.05,
) -> Board:
    """Means, 95 % t intervals over topics, and letters by randomised Tukey HSD.

    The letters are for the runs that are neither baseline nor reference, by status or as named here.
    """
    level = 1 - alpha
    resamples = resamples_for(scores)
    measures = range(len(scores.measures))
    groups: tuple[RunGroups, ...] = ()
    if len(scores.runs) > 1:
        groups = tuple(
            significance_groups(
                scores,
                m,
                tukey_family(scores, m, baseline=baseline, references=references),
                alpha=alpha,
                resamples=resamples,
                seed=seed,
            )
            for m in measures
        )
    found = [[_entry(scores, r, m, level, groups) for m in measures] for r in range(len(scores.runs))]
    marked = [
        best_of([row[m].value for row in found], scores.measures[m].direction, PLACES) for m in measures
    ]
    entries = tuple(
        tuple(_with_best(entry, marked[m][r]) for m, entry in enumerate(row)) for r, row in enumerate(found)
    )
    empty = Board(scores.runs, scores.measures, entries, (), resamples, alpha, level, groups)
    return Board(
        scores.runs, scores.measures, entries, tuple(empty.ranked(0)), resamples, alpha, level, groups
    )


def _entry(scores: Scores, r: int, m: int, level: float, groups: tuple[RunGroups, ...]) -> Entry:
    mean = mean_interval(scores, r, m, level)
    return Entry(
        value=mean.value,
        cost=float(scores.measures[m].direction.cost(mean.value)),
        low=mean.low,
        high=mean.high,
        letters=groups[m].letters[r] if groups else "",
        topics=mean.topics,
        undefined=len(mean.undefined),
        topic_se=mean.spread.topics,
        sampling_se=mean.spread.sampling,
        notable=mean.spread.notable,
        best=False,
    )


def _with_best(entry: Entry, best: bool) -> Entry:
    from dataclasses import replace

    return replace(entry, best=best)

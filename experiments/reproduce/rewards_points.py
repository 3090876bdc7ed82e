"""What BanditRank's experiment measures: rewards along epochs, methods topic by topic, and the two compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairevals.statistics import t_interval, t_test, wilcoxon_test
from fairevals.typing import Floats

REWARDS = {
    "R1": "AP",
    "R2": "RR",
    "R3": "nDCG@10",
    "R4": "0.5*AP+0.5*nDCG@10",
    "R5": "0.5*AP+0.5*RR",
    "R6": "0.3333*AP+0.3333*RR+0.3333*nDCG@10",
}
"""Three measures alone, three together; R4 is read as the paper's equation 11, R5 as its equation 10."""
ALONG = ("MAP", "nDCG@10")
"""What the figure shows along epochs."""
OURS, BASELINES = "bandit-rank", ("ridge", "listnet")
LEVEL = 0.05


@dataclass(frozen=True)
class Along:
    """A measure on the test topics after an epoch, trained on a reward."""

    reward: str
    seed: int
    epoch: int
    measure: str
    value: float


@dataclass(frozen=True)
class Scored:
    """A policy: the reward it has at best on the validation topics, and its measures, a value a test topic."""

    method: str
    seed: int
    hybrid: float
    """BanditRank's γ."""
    valid: float
    values: Mapping[str, Floats]


@dataclass(frozen=True)
class Compared:
    """BanditRank and a baseline on a measure: means and deviations over seeds, the difference and its tests."""

    baseline: str
    measure: str
    ours: float
    ours_sd: float
    theirs: float
    theirs_sd: float
    low: float
    high: float
    p_t: float
    p_wilcoxon: float

    @property
    def difference(self) -> float:
        """How much BanditRank is above the baseline."""
        return self.ours - self.theirs

    @property
    def significant(self) -> bool:
        """Whether both tests find a difference."""
        return self.p_t < LEVEL and self.p_wilcoxon < LEVEL


def chosen(scored: Sequence[Scored]) -> list[Scored]:
    """Of the policies of a method and seed the one with the most reward on the validation topics."""
    groups: dict[tuple[str, int], list[Scored]] = {}
    for one in scored:
        groups.setdefault((one.method, one.seed), []).append(one)
    return [max(group, key=lambda one: one.valid) for group in groups.values()]


def over_seeds(scored: Sequence[Scored], method: str, measure: str) -> Floats:
    """The values (seeds, topics) of a method."""
    return np.stack([one.values[measure] for one in scored if one.method == method])


def mean_and_deviation(each: Sequence[float] | Floats) -> tuple[float, float]:
    """Mean and standard deviation over seeds; of one seed there is no deviation.

    >>> mean_and_deviation([0.5, 0.5]), mean_and_deviation([0.5])
    ((0.5, 0.0), (0.5, nan))
    """
    return float(np.mean(each)), float(np.std(each, ddof=1)) if len(each) > 1 else float("nan")


def compare(scored: Sequence[Scored], baseline: str, measure: str) -> Compared:
    """BanditRank against a baseline on a measure, paired over topics: by topic the mean over seeds counts."""
    ours, theirs = over_seeds(scored, OURS, measure), over_seeds(scored, baseline, measure)
    difference = ours.mean(axis=0) - theirs.mean(axis=0)
    interval = t_interval(difference, 1 - LEVEL)
    return Compared(
        baseline,
        measure,
        *mean_and_deviation(ours.mean(axis=1)),
        *mean_and_deviation(theirs.mean(axis=1)),
        interval.low,
        interval.high,
        t_test(difference).p,
        wilcoxon_test(difference).p,
    )

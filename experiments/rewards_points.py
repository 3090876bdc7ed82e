"""What BanditRank's experiment measures: rewards over epochs, methods topic by topic, and their comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.measuring import measure_rankings
from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.statistics.inference import t_interval, t_test, wilcoxon_test
from fairevals.training import Dataset, load_dataset
from fairevals.typing import Floats

REWARDS = {
    "R1": "AP",
    "R2": "RR",
    "R3": "nDCG(dcg='exp-log2')@10",
    "R4": "0.5*AP+0.5*nDCG(dcg='exp-log2')@10",
    "R5": "0.5*AP+0.5*RR",
    "R6": "0.3333*AP+0.3333*RR+0.3333*nDCG(dcg='exp-log2')@10",
}
"""Three measures alone, three together; R4 is read as the paper's equation 11, R5 as its equation 10."""
ALONG = ("MAP", "nDCG@10")
"""What the figure shows over epochs."""
OURS, BASELINES = "bandit-rank", ("ridge", "listnet")
LEVEL = 0.05


@dataclass(frozen=True)
class EpochValue:
    """A measure on the test topics after an epoch, trained on a reward."""

    reward: str
    seed: int
    epoch: int
    measure: str
    value: float


@dataclass(frozen=True)
class ScoredPolicy:
    """A policy: its best reward on the validation topics, and its measures with one value per test topic."""

    method: str
    seed: int
    reward_weight: float
    """BanditRank's γ."""
    valid: float
    values: Mapping[str, Floats]


@dataclass(frozen=True)
class MethodComparison:
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
        """BanditRank minus the baseline."""
        return self.ours - self.theirs

    @property
    def significant(self) -> bool:
        """Whether both tests find a difference."""
        return self.p_t < LEVEL and self.p_wilcoxon < LEVEL


def chosen(scored: Sequence[ScoredPolicy]) -> list[ScoredPolicy]:
    """For each method and seed, the policy with the highest reward on the validation topics."""
    groups: dict[tuple[str, int], list[ScoredPolicy]] = {}
    for one in scored:
        groups.setdefault((one.method, one.seed), []).append(one)
    return [max(group, key=lambda one: one.valid) for group in groups.values()]


def over_seeds(scored: Sequence[ScoredPolicy], method: str, measure: str) -> Floats:
    """The values (seeds, topics) of a method."""
    return np.stack([one.values[measure] for one in scored if one.method == method])


def mean_and_deviation(each: Sequence[float] | Floats) -> tuple[float, float]:
    """Mean and standard deviation over seeds; NaN for the deviation of one seed.

    >>> mean_and_deviation([0.5, 0.5]), mean_and_deviation([0.5])
    ((0.5, 0.0), (0.5, nan))
    """
    return float(np.mean(each)), float(np.std(each, ddof=1)) if len(each) > 1 else float("nan")


def compare(scored: Sequence[ScoredPolicy], baseline: str, measure: str) -> MethodComparison:
    """BanditRank against a baseline on a measure, paired over topics, on each topic's mean over seeds."""
    ours, theirs = over_seeds(scored, OURS, measure), over_seeds(scored, baseline, measure)
    difference = ours.mean(axis=0) - theirs.mean(axis=0)
    interval = t_interval(difference, 1 - LEVEL)
    return MethodComparison(
        baseline,
        measure,
        *mean_and_deviation(ours.mean(axis=1)),
        *mean_and_deviation(theirs.mean(axis=1)),
        interval.low,
        interval.high,
        t_test(difference).p,
        wilcoxon_test(difference).p,
    )


MEASURES = {
    "MAP": "AP",
    "MRR": "RR",
    **{f"P@{k}": f"P@{k}" for k in (1, 3, 10)},
    **{f"nDCG@{k}": f"nDCG(dcg='exp-log2')@{k}" for k in (1, 3, 10)},
}
"""The columns of the paper's table 6, and the measures whose means they are."""


def read_splits(files: Sequence[str]) -> dict[str, Dataset]:
    """train, valid and test of two or three files, topics with a relevant document only."""
    if len(files) not in (2, 3):
        raise UsageError(
            f"bandit-rank-rewards takes two or three files, train [valid] test; {len(files)} were given"
        )
    splits = [load_dataset(file) for file in files]
    width = max(data.features.shape[1] for data in splits)
    splits = [relevant_only(data.with_features(width)) for data in splits]
    if len(splits) == 3:
        return dict(zip(("train", "valid", "test"), splits, strict=True))
    data, test = splits
    held = len(data) // 5
    if not held:
        raise UsageError(f"{escape(data.name)} has {len(data)} topics with a relevant document; 5 are needed")
    order = np.random.default_rng(0).permutation(len(data))
    return {
        "train": data.split(np.sort(order[held:])),
        "valid": data.split(np.sort(order[:held])),
        "test": test,
    }


def relevant_only(data: Dataset) -> Dataset:
    """The topics that have a relevant document."""
    relevant = [t for t in range(len(data)) if np.any(data.grades[data.starts[t] : data.starts[t + 1]] > 0)]
    if not relevant:
        raise InputError(Place(data.name), "no topic with a relevant document", "at least one")
    return data.split(relevant)


def measure_by_topic(
    scores: Floats, data: Dataset, measures: Iterable[str] = tuple(MEASURES)
) -> Mapping[str, Floats]:
    """The measures of the rankings by descending score, one value per topic."""
    names = list(measures)
    values = measure_rankings(scores, data, [MEASURES[name] for name in names])
    return {name: values[MEASURES[name]] for name in names}

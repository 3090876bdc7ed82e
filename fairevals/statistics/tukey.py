"""Randomised Tukey HSD: all runs against all others, with the chance of any false discovery held."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairevals.evaluation.scores import Scores
from fairevals.measures import Direction
from fairevals.statistics.letters import compact_letters
from fairevals.statistics.pairing import comparable, defined_everywhere, measure_number, orientation, subtract
from fairevals.statistics.resampling import RESAMPLES, pieces
from fairevals.typing import Floats


@dataclass(frozen=True)
class TukeyHSD:
    """Every pair of runs: `[i, j]` is of run i minus run j."""

    differences: Floats
    p: Floats
    """Corrected for all pairs by construction; 1 on the diagonal."""
    effects: Floats
    """Difference over the square root of the residual variance; NaN where that is 0 and the difference is not."""
    critical: float
    """A difference is significant at 1 − level if it is larger: difference ± critical are simultaneous intervals."""
    topics: int


def largest_ranges(values: Floats, resamples: int, seed: int) -> Floats:
    """Max − min of the runs' means, for each of `resamples` permutations of the runs within every topic.

    >>> largest_ranges(np.array([[1.0, 1.0], [0.5, 0.0]]), 3, seed=0)
    array([0.25, 0.25, 0.25])
    """
    rng = np.random.default_rng(seed)
    found = []
    for count in pieces(resamples, values.size):
        permuted = rng.permuted(np.broadcast_to(values, (count, *values.shape)), axis=2)
        found.append(np.ptp(permuted.mean(axis=1), axis=1))
    return np.concatenate(found)


def tukey_hsd(values: Floats, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> TukeyHSD:
    """Randomised Tukey HSD over complete values, (topics, runs).

    If all runs are alike, a topic's values could stand under any of them: they are permuted within every topic. p of
    a pair is (1 + #) / (1 + resamples), # being how many permutations have two means that differ as much as the
    pair's. So it is already corrected for there being many pairs. With two runs it is the paired randomisation test.
    It holds the chance of any false discovery if all runs are alike, and is cautious otherwise: a run far below the
    rest (a random order, say) is permuted too, and widens the differences that chance explains.

    The effect size is (mean_i − mean_j)/√V_E, V_E = Σ(x_tr − x̄_t − x̄_r + x̄)² / ((n − 1)(m − 1)), the residual variance
    of the two-way analysis of variance without replication.

    Carterette, "Multiple testing in statistical analysis of systems-based information retrieval experiments", TOIS 30,
    2012; Sakai, "Laboratory Experiments in Information Retrieval", Springer 2018.

    Without topics everything is undefined. One topic gives p = 1: any order of its values is as likely as another.

    >>> found = tukey_hsd(np.array([[0.9, 0.1, 0.2], [0.8, 0.1, 0.0], [0.9, 0.2, 0.1], [0.7, 0.0, 0.1]]))
    >>> found.p.round(2).tolist()
    [[1.0, 0.03, 0.03], [0.03, 1.0, 1.0], [0.03, 1.0, 1.0]]
    """
    n, m = values.shape
    if not n:
        nothing = np.full((m, m), np.nan)
        return TukeyHSD(nothing, nothing, nothing, math.nan, 0)
    means = values.mean(axis=0)
    scale = float(np.abs(values).max())
    differences = subtract(means[:, None], means[None, :], scale)
    ranges = np.sort(largest_ranges(values, resamples, seed))
    # A permutation that only renames runs must count, whatever the rounding of its sums.
    least = np.abs(differences) - 1e-12 * scale
    extreme = resamples - np.searchsorted(ranges, least, side="left")
    p = (1 + extreme) / (1 + resamples)
    residual = values - means - values.mean(axis=1, keepdims=True) + means.mean()
    deviation = math.sqrt(float((residual**2).sum()) / max(1, (n - 1) * (m - 1)))
    known = deviation > 1e-10 * scale
    effects = differences / deviation if known else np.where(differences == 0, 0.0, np.nan)
    return TukeyHSD(differences, p, effects, _critical(ranges, level), n)


def _critical(ranges: Floats, level: float) -> float:
    """The largest difference with p ≥ 1 − level; NaN where there are too few resamples for any p below that."""
    allowed = (
        math.ceil((1 - level) * (1 + ranges.size) - 1e-9) - 2
    )  # so many ranges may be as large, and p < 1 − level
    return float(ranges[ranges.size - 1 - allowed]) if 0 <= allowed < ranges.size else math.nan


@dataclass(frozen=True)
class RunGroups:
    """All runs on one measure, by randomised Tukey HSD: the groups that a leaderboard shows."""

    measure: str
    direction: Direction
    runs: tuple[str, ...]
    """As in the scores; arrays below are in this order, and NaN for a run without a single value."""
    means: Floats
    """Over the topics used; of the distances to the target where the direction has one."""
    differences: Floats
    p: Floats
    effects: Floats
    critical: float
    letters: tuple[str, ...]
    """Two runs share a letter if and only if they are not significantly different; `a` is with the best."""
    order: tuple[int, ...]
    """The runs that have a mean, best first."""
    topics: tuple[str, ...]
    undefined: tuple[str, ...]
    """The topics left out, since a run has no value there."""
    alpha: float


def significance_groups(
    scores: Scores,
    measure: int | str,
    *,
    alpha: float = 0.05,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RunGroups:
    """Every pair of runs on a measure, on the topics where all are defined, and the letters of the runs.

    A run without a single value is set aside. The result does not depend on the order of the runs.
    """
    m = measure_number(scores, measure)
    direction = scores.measures[m].direction
    runs, used = defined_everywhere(scores, m)
    runs.sort(key=lambda r: scores.runs[r])
    values = comparable(direction, scores.values[runs, m][:, used].T)
    tested = tukey_hsd(values, level=1 - alpha, resamples=resamples, seed=seed)
    count = len(scores.runs)
    means = np.full(count, np.nan)
    if tested.topics:
        means[runs] = values.mean(axis=0)

    def spread(inner: Floats) -> Floats:
        whole = np.full((count, count), np.nan)
        whole[np.ix_(runs, runs)] = inner
        return whole

    p = spread(tested.p)
    with_mean = [r for r in runs if not np.isnan(means[r])]
    order = sorted(with_mean, key=lambda r: (-orientation(direction) * means[r], scores.runs[r]))
    return RunGroups(
        measure=str(scores.measures[m]),
        direction=direction,
        runs=scores.runs,
        means=means,
        differences=spread(tested.differences),
        p=p,
        effects=spread(tested.effects),
        critical=tested.critical,
        letters=compact_letters(np.nan_to_num(p, nan=1.0) < alpha, order),
        order=tuple(order),
        topics=tuple(topic for topic, use in zip(scores.topics, used, strict=True) if use),
        undefined=tuple(topic for topic, use in zip(scores.topics, used, strict=True) if not use),
        alpha=alpha,
    )

"""Paired tests over topics: t, Wilcoxon, bootstrap; and how large an effect is.

All take the differences by topic and test, on both sides, that there is no difference. Where nothing can be
said the p-value is NaN: without topics, and for tests that divide by the spread with one topic, or where all
differences are the same but not 0 (a spread of 0 shows that the model does not hold, not certainty). Where all
differences are 0, p is 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairevals.statistics.resampling import RESAMPLES, resampled_moments
from fairevals.typing import Floats, Ints

EXACT_UP_TO = 50
"""Wilcoxon's p-value is exact for so many differences that are not 0."""


@dataclass(frozen=True)
class PairedTest:
    """What a test says of differences by topic."""

    statistic: float
    p: float
    effect: float
    """An effect size with the sign of the difference: `cohens_dz`, or `rank_biserial` for Wilcoxon's test."""
    topics: int


def constant(values: Floats) -> bool:
    """Whether all values are the same, but for rounding; so also with none or one.

    >>> constant(np.array([0.3 - 0.2, 0.4 - 0.3])), constant(np.array([0.1, 0.2]))
    (True, False)
    """
    return values.size < 2 or bool(np.ptp(values) <= 1e-10 * np.abs(values).max())


def _degenerate(differences: Floats) -> PairedTest | None:
    n = differences.size
    if n and not differences.any():
        return PairedTest(0.0, 1.0, 0.0, n)
    return PairedTest(math.nan, math.nan, math.nan, n) if constant(differences) else None


def _defined(differences: Floats) -> Floats:
    found = np.asarray(differences, dtype=np.float64)
    return found[np.isfinite(found)]


def t_statistic(differences: Floats) -> float:
    """t = mean(d) / (sd(d)/√n)."""
    return float(differences.mean() / (differences.std(ddof=1) / math.sqrt(differences.size)))


def t_test(differences: Floats) -> PairedTest:
    """Student's paired t-test: t = mean(d) / (sd(d)/√n) with n − 1 degrees of freedom.

    >>> found = t_test(np.array([0.1, 0.2, 0.3, 0.0]))
    >>> round(found.statistic, 4), round(found.p, 4)
    (2.3238, 0.1027)
    """
    d = _defined(differences)
    if (found := _degenerate(d)) is not None:
        return found
    from scipy.special import stdtr

    t = t_statistic(d)
    return PairedTest(t, float(2 * stdtr(d.size - 1, -abs(t))), cohens_dz(d), d.size)


def wilcoxon_test(differences: Floats) -> PairedTest:
    """Wilcoxon's signed-rank test, W = min(W⁺, W⁻); topics without a difference are left out of the ranks.

    With up to 50 differences p is exact, also where some tie: 2 P(W⁺ ≤ W) over all 2ⁿ signs, each as likely. Above,
    it is the normal approximation with the variance corrected for ties. Differences that are equal but for rounding
    tie. One topic gives p = 1, which is all that one sign can say.

    Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945; Pratt & Gibbons, "Concepts of
    Nonparametric Theory", 1981.

    >>> wilcoxon_test(np.array([0.1, 0.2, 0.3, 0.4, -0.05])).p
    0.125
    """
    d = _defined(differences)
    if not d.any():
        return PairedTest(0.0, 1.0, 0.0, d.size) if d.size else PairedTest(math.nan, math.nan, math.nan, 0)
    ranks, sizes = _doubled_ranks(d)
    n = int(np.count_nonzero(d))
    up, down = int(ranks[d > 0].sum()), int(ranks[d < 0].sum())
    least = min(up, down)
    if n <= EXACT_UP_TO:
        below = float(_sums_of_signed(ranks[ranks > 0])[: least + 1].sum())
    else:
        below = _normal_below(least / 2, n, sizes)
    return PairedTest(least / 2, min(1.0, 2 * below), (up - down) / (up + down), d.size)


def _doubled_ranks(differences: Floats) -> tuple[Ints, Ints]:
    """Twice the average ranks of |d|, whole numbers (0 where d is 0), and how many share each rank."""
    there = differences != 0
    # Relative to the largest and without the last bits, in which equal ones may differ. All of these are differences,
    # so what rounds to 0 ties with the smallest.
    sizes = np.round(np.abs(differences[there]) / np.abs(differences).max(), 10)
    _, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    ranks = np.zeros(differences.size, dtype=np.int64)
    ranks[there] = (2 * np.cumsum(counts) - counts + 1)[place]
    return ranks, counts


def _sums_of_signed(ranks: Ints) -> Floats:
    """The probability of every sum of the ranks that have a plus, signs being as likely one as the other."""
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for rank in ranks.tolist():
        with_it = np.zeros_like(chances)
        with_it[rank:] = chances[: chances.size - rank]
        chances = (chances + with_it) / 2
    return chances


def _normal_below(statistic: float, n: int, ties: Ints) -> float:
    from scipy.special import ndtr

    variance = (n * (n + 1) * (2 * n + 1) - float((ties**3 - ties).sum()) / 2) / 24
    return float(ndtr((statistic - n * (n + 1) / 4) / math.sqrt(variance)))


def bootstrap_test(differences: Floats, *, resamples: int = RESAMPLES, seed: int = 0) -> PairedTest:
    """The paired bootstrap test: how often resampled topics without a difference give so large a t.

    Topics are drawn with replacement from d − mean(d); p = (1 + #{|t*| ≥ |t|}) / (1 + resamples), which is never 0.
    Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, §16.4; Sakai, "Evaluating evaluation metrics
    based on the bootstrap", SIGIR 2006.

    >>> bootstrap_test(np.array([0.1, 0.2, 0.3, -0.1, 0.2]), resamples=999).p < 0.25
    True
    """
    d = _defined(differences)
    if (found := _degenerate(d)) is not None:
        return found
    n, t = d.size, t_statistic(d)
    means, spreads = resampled_moments(d - d.mean(), resamples, seed)
    # |t*| ≥ |t| without dividing: a resample of one topic n times over has no spread, and counts unless its mean is 0.
    extreme = np.abs(means) * math.sqrt(n) >= abs(t) * spreads * (1 - 1e-9)
    extreme &= (spreads > 0) | (np.abs(means) > 1e-12 * np.abs(d).max())
    return PairedTest(t, (1 + int(extreme.sum())) / (1 + resamples), cohens_dz(d), n)


def cohens_dz(differences: Floats) -> float:
    """Cohen's d for paired values, mean(d)/sd(d): 0 where all are 0, NaN where there is no other spread.

    Cohen, "Statistical Power Analysis for the Behavioral Sciences", 1988.

    >>> round(cohens_dz(np.array([0.1, 0.2, 0.3, 0.0])), 4)
    1.1619
    """
    d = _defined(differences)
    if (found := _degenerate(d)) is not None:
        return found.effect
    return float(d.mean() / d.std(ddof=1))


def rank_biserial(differences: Floats) -> float:
    """The matched-pairs rank-biserial correlation, (W⁺ − W⁻)/(W⁺ + W⁻), in [−1, 1]; 0 where all are 0.

    Kerby, "The simple difference formula", Comprehensive Psychology 3, 2014.

    >>> rank_biserial(np.array([0.1, 0.2, -0.05])), rank_biserial(np.array([0.0]))
    (0.6666666666666666, 0.0)
    """
    return wilcoxon_test(differences).effect

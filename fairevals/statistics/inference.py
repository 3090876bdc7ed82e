"""Paired tests of differences by topic (t, Wilcoxon, bootstrap), corrections for testing many runs, and intervals.

Each test is two-sided and takes the differences by topic. NaN and infinite differences are ignored. A p-value is NaN
if it cannot be computed:

- with fewer than two topics, for every test, whatever the difference;
- if all differences are equal but not 0, for the t-test and the bootstrap, which divide by the spread. Wilcoxon's
  test only needs signs and ranks, and is computed.

If all differences are 0 on two or more topics, p is 1 for every test: each reassignment of the values to the two
runs gives a difference as large as the observed one. For t = 0/0 this is a convention.

An interval is undefined (NaN at both ends) with fewer than two values, or if all values are equal: no spread in a few
topics does not show that the mean is known, as an interval of width 0 would claim.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from fairevals.errors import check_known
from fairevals.evaluation.scores import Scores
from fairevals.statistics.across import deviations_of, resampled, symmetric_interval
from fairevals.statistics.pairing import DEFAULT_RESAMPLES, ROUNDING, Spread, batches, spread_of
from fairevals.typing import Floats

EXACT_UP_TO = 50
"""Wilcoxon's p-value is exact up to this number of non-zero differences."""
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "none"}
"""Every correction and its usual name."""


class PairedTest(NamedTuple):
    """The result of a test; NaN where it cannot be computed."""

    statistic: float = math.nan
    p: float = math.nan
    effect: float = math.nan
    """An effect size with the sign of the difference.

    Wilcoxon's test: the matched-pairs rank-biserial correlation (W⁺ − W⁻)/(W⁺ + W⁻) in [−1, 1] (Kerby, "The simple
    difference formula", Comprehensive Psychology 3, 2014). Otherwise Cohen's d_z = mean(d)/sd(d) ("Statistical Power
    Analysis for the Behavioral Sciences", 1988).
    """


class Interval(NamedTuple):
    """A confidence interval; NaN at both ends if it is undefined."""

    low: float = math.nan
    high: float = math.nan


def _constant(values: Floats) -> bool:
    """Whether all values are equal, up to rounding; True also for one value or none."""
    return values.size < 2 or bool(np.ptp(values) <= 1e-10 * np.abs(values).max())


def _prepared(differences: Floats, needs_spread: bool = True) -> tuple[Floats, PairedTest | None]:
    """The finite differences, and the result if nothing needs to be, or can be, computed."""
    d = differences[np.isfinite(differences)]
    if d.size >= 2 and not d.any():
        return d, PairedTest(0.0, 1.0, 0.0)
    return d, PairedTest() if d.size < 2 or (needs_spread and _constant(d)) else None


def t_test(differences: Floats) -> PairedTest:
    """Student's paired t-test: t = mean(d) / (sd(d)/√n) with n − 1 degrees of freedom.

    >>> result = t_test(np.array([0.1, 0.2, 0.3, 0.0]))
    >>> round(result.statistic, 4), round(result.p, 4), round(result.effect, 4)
    (2.3238, 0.1027, 1.1619)
    """
    d, degenerate = _prepared(differences)
    if degenerate is not None:
        return degenerate
    from scipy.special import stdtr  # scipy.stats computes the same, but slowly

    t = float(d.mean() / math.sqrt(d.var(ddof=1) / d.size))
    return PairedTest(t, float(2 * stdtr(d.size - 1, -abs(t))), float(d.mean() / d.std(ddof=1)))


def wilcoxon_test(differences: Floats) -> PairedTest:
    """Wilcoxon's signed-rank test, W = min(W⁺, W⁻); differences of 0 are not ranked.

    With up to 50 non-zero differences p is exact, also with ties: 2 P(W⁺ ≤ W) over all 2ⁿ equally likely signs. (scipy
    has no exact distribution with ties.) Above 50 it is the normal approximation with the variance corrected for ties.
    Differences that are equal up to rounding tie.

    Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bulletin 1, 1945; Pratt & Gibbons, "Concepts of
    Nonparametric Theory", 1981.

    >>> wilcoxon_test(np.array([0.1, 0.2, 0.3, 0.4, -0.05])).p
    0.125
    """
    d, degenerate = _prepared(differences, needs_spread=False)
    if degenerate is not None:
        return degenerate
    from scipy.stats import rankdata, wilcoxon

    d = d[d != 0]
    # Relative to the largest, and without the last bits, in which equal differences may vary.
    ranks = rankdata(np.round(np.abs(d) / np.abs(d).max(), 10))
    up, down = float(ranks[d > 0].sum()), float(ranks[d < 0].sum())
    least = min(up, down)
    if d.size <= EXACT_UP_TO:
        doubled = [round(2 * rank) for rank in ranks]  # whole numbers: a rank of ties may end in ½
        chances = np.zeros(sum(doubled) + 1)  # of every sum of the ranks with a positive sign
        chances[0] = 1.0
        for rank in doubled:
            chances[rank:] += chances[:-rank]
            chances /= 2
        p = 2 * float(chances[: round(2 * least) + 1].sum())
    else:
        p = float(wilcoxon(np.sign(d) * ranks).pvalue)  # the normal approximation, for so many
    return PairedTest(least, min(1.0, p), (up - down) / (up + down))


def bootstrap_test(differences: Floats, *, resamples: int = DEFAULT_RESAMPLES, seed: int = 0) -> PairedTest:
    """The paired bootstrap test: how often topics resampled under no difference give a t as large as the observed.

    Topics are drawn with replacement from d − mean(d); p = (1 + #{|t*| ≥ |t|}) / (1 + resamples), which is never 0.
    Efron & Tibshirani, "An Introduction to the Bootstrap", 1993, §16.4; Sakai, "Evaluating evaluation metrics
    based on the bootstrap", SIGIR 2006.

    >>> bootstrap_test(np.array([0.1, 0.2, 0.3, -0.1, 0.2]), resamples=999).p < 0.25
    True
    """
    d, degenerate = _prepared(differences)
    if degenerate is not None:
        return degenerate
    n, effect = d.size, float(d.mean() / d.std(ddof=1))
    t = effect * math.sqrt(n)
    rng = np.random.default_rng(seed)
    extreme = 0
    for count in batches(resamples, n):
        drawn = (d - d.mean())[rng.integers(0, n, size=(count, n))]
        means, spreads = np.abs(drawn.mean(axis=1)), drawn.std(axis=1, ddof=1)
        # |t*| ≥ |t| without a division: a resample of one topic n times has no spread, and is extreme unless its
        # mean is 0.
        larger = means * math.sqrt(n) >= abs(t) * spreads * (1 - 1e-9)
        extreme += int((larger & ((spreads > 0) | (means > 1e-12 * np.abs(d).max()))).sum())
    return PairedTest(t, (1 + extreme) / (1 + resamples), effect)


def correct(p: Floats, correction: str) -> Floats:
    """Correct the p-values of one family of tests. NaN stays NaN and is not part of the family.

    `holm`: max_{j ≤ i} min(1, (m − j + 1) p₍ⱼ₎) bounds the chance of any false discovery (Holm, "A simple sequentially
    rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979). `bh`: min_{j ≥ i} min(1, m p₍ⱼ₎/j)
    bounds the rate of false discoveries (Benjamini & Hochberg, "Controlling the false discovery rate", JRSS B 57,
    1995). `none`: as they are.

    >>> p = np.array([0.01, 0.04, np.nan, 0.03])
    >>> correct(p, "holm"), correct(p, "bh")
    (array([0.03, 0.06,  nan, 0.06]), array([0.03, 0.04,  nan, 0.04]))
    """
    check_known("correction", correction, CORRECTIONS)
    corrected = np.array(p, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(corrected))
    if correction == "bh" and tested.size:
        from scipy.stats import false_discovery_control

        corrected[tested] = false_discovery_control(corrected[tested])
    elif correction == "holm":
        order = tested[np.argsort(corrected[tested], kind="stable")]
        factors = np.arange(order.size, 0, -1)
        corrected[order] = np.minimum(np.maximum.accumulate(factors * corrected[order]), 1.0)
    return corrected


def t_interval(values: Floats, level: float = 0.95) -> Interval:
    """mean ± t_{n−1,(1+level)/2} · sd/√n.

    >>> [round(end, 4) for end in t_interval(np.array([0.1, 0.2, 0.3]))]
    [-0.0484, 0.4484]
    """
    values = values[np.isfinite(values)]
    if _constant(values):
        return Interval()
    from scipy.special import stdtrit  # scipy.stats computes the same, but slowly

    margin = stdtrit(values.size - 1, (1 + level) / 2) * values.std(ddof=1) / math.sqrt(values.size)
    return Interval(float(values.mean() - margin), float(values.mean() + margin))


def bootstrap_interval(
    values: Floats, level: float = 0.95, *, resamples: int = DEFAULT_RESAMPLES, seed: int = 0
) -> Interval:
    """The BCa bootstrap interval of the mean, by `scipy.stats.bootstrap`.

    Efron, "Better bootstrap confidence intervals", JASA 82, 1987. Also undefined in the rare case that no resample
    has a mean below the observed one, or none above.

    >>> interval = bootstrap_interval(np.array([0.1, 0.2, 0.3, 0.6]), resamples=2000)
    >>> 0.1 < interval.low < 0.3 < interval.high < 0.6
    True
    """
    values = values[np.isfinite(values)]
    if _constant(values):
        return Interval()
    from scipy.stats import bootstrap

    centre, tolerance = values.mean(), ROUNDING * np.abs(values).max()

    def resampled_mean(drawn: Floats, axis: int = -1) -> Any:
        # BCa counts the resamples whose mean equals the observed one. The same topics in another order are such a
        # resample, although their sum may differ in the last bits.
        means = drawn.mean(axis=axis)
        return np.where(np.abs(means - centre) <= tolerance, centre, means)

    interval = bootstrap(
        (values,),
        resampled_mean,
        vectorized=True,
        n_resamples=resamples,
        batch=next(batches(resamples, values.size)),
        confidence_level=level,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(float(interval.low), float(interval.high))


def mean_interval(scores: Scores, run: int, measure: int, level: float = 0.95) -> tuple[Interval, Spread]:
    """The interval of `Scores.mean`, by t over the topics on which the run has a value, and the standard error.

    The interval is for the values of the measure itself, also if the best value is a target. It may extend beyond the
    range of the measure, and it includes the sampling error of the values (see `spread_of`). For a measure that
    is summed over topics, all numbers are those of the sum. A measure across topics has a bootstrap interval (see
    `fairevals.statistics.across`).
    """
    if scores.measures[measure].across_topics:
        mean, drawn = scores.mean(run, measure), np.zeros(0)
        if mean.topics >= 2:
            (drawn,) = resampled(scores, measure, (run,), scores.defined[run, measure])
        deviations = deviations_of(drawn, mean.topics)
        low, high, total = symmetric_interval(mean.value, deviations, mean.topics, level)
        return Interval(low, high), Spread(total, mean.se)
    defined = np.isfinite(scores.values[run, measure])
    values = scores.values[run, measure][defined]
    spread = spread_of(values, scores.se[run, measure][defined])
    scale = values.size if scores.measures[measure].aggregation == "sum" else 1
    low, high = t_interval(values, level)
    return Interval(scale * low, scale * high), Spread(scale * spread.total, scale * spread.sampling)


def mean_intervals(scores: Scores) -> Floats:
    """(runs, measures, 2): low and high of every `mean_interval`, at 95 %."""
    shape = (len(scores.runs), len(scores.measures))
    bounds = [mean_interval(scores, r, m)[0] for r, m in np.ndindex(shape)]
    return np.array(bounds, dtype=np.float64).reshape(*shape, 2)

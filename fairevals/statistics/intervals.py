"""Intervals for means over topics, and for mean differences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairevals.errors import UsageError, escape
from fairevals.evaluation.scores import Scores
from fairevals.statistics.paired import constant
from fairevals.statistics.pairing import mean, measure_number, run_number
from fairevals.statistics.resampling import RESAMPLES, resampled_means
from fairevals.statistics.sampling import Spread, spread_of
from fairevals.typing import Floats


@dataclass(frozen=True)
class Interval:
    """A confidence interval; NaN at both ends where there is none."""

    low: float
    high: float


UNDEFINED = Interval(math.nan, math.nan)


def t_interval(values: Floats, level: float = 0.95) -> Interval:
    """mean ± t_{n−1,(1+level)/2} · sd/√n; undefined with fewer than two values, or where none differs.

    (No spread in a few topics does not show that the mean is known: an interval of no width would say so.)

    >>> found = t_interval(np.array([0.1, 0.2, 0.3]))
    >>> round(found.low, 4), round(found.high, 4)
    (-0.0484, 0.4484)
    """
    values = values[np.isfinite(values)]
    if constant(values):
        return UNDEFINED
    from scipy.special import stdtrit

    n = values.size
    half = float(stdtrit(n - 1, (1 + level) / 2)) * float(values.std(ddof=1)) / math.sqrt(n)
    return Interval(mean(values) - half, mean(values) + half)


def bootstrap_interval(
    values: Floats, level: float = 0.95, *, method: str = "bca", resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The bootstrap interval of the mean, `percentile` or `bca`; undefined where the t interval is.

    BCa takes the quantiles Φ(z₀ + (z₀ + z)/(1 − a(z₀ + z))) of the resampled means, with z₀ the normal quantile of the
    share of them below the mean (ties count half) and a = Σu³ / (6 (Σu²)^{3/2}), u the deviations from the mean, which
    is the jackknife's acceleration. Efron, "Better bootstrap confidence intervals", JASA 82, 1987.

    >>> found = bootstrap_interval(np.array([0.1, 0.2, 0.3, 0.6]), resamples=2000)
    >>> 0.1 < found.low < 0.3 < found.high < 0.6
    True
    """
    if method not in ("bca", "percentile"):
        raise UsageError(f"the method is {escape(method)!r}; expected bca or percentile")
    values = values[np.isfinite(values)]
    if constant(values):
        return UNDEFINED
    means = resampled_means(values, resamples, seed)
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    if method == "bca":
        ends = _bca_ends(values, means, ends)
    low, high = np.quantile(means, ends)
    return Interval(float(low), float(high))


def _bca_ends(values: Floats, means: Floats, ends: Floats) -> Floats:
    from scipy.special import ndtr, ndtri

    centre = values.mean()
    # Sums of the same topics in another order may differ in the last bits.
    close = np.abs(means - centre) <= 1e-12 * np.abs(values).max()
    below = float(((means < centre) & ~close).sum() + close.sum() / 2) / means.size
    least = 1 / (means.size + 1)
    z0 = float(ndtri(min(max(below, least), 1 - least)))
    u = values - centre
    acceleration = float((u**3).sum() / (6 * (u**2).sum() ** 1.5))
    z = z0 + ndtri(ends)
    found: Floats = ndtr(z0 + z / (1 - acceleration * z))
    return found


@dataclass(frozen=True)
class MeanInterval:
    """A run's mean on a measure, with its interval over topics."""

    run: str
    measure: str
    value: float
    low: float
    high: float
    topics: int
    undefined: tuple[str, ...]
    spread: Spread


def mean_interval(scores: Scores, run: int | str, measure: int | str, level: float = 0.95) -> MeanInterval:
    """A mean over the topics on which the run is defined, as in `Scores.mean`, with its t interval.

    The interval is of the measure's own values, also where the best is a target. It may reach beyond the measure's
    range, and it holds the sampling error of the values (see `spread_of`). For a measure that is summed over topics,
    all numbers are those of the sum, n times those of the mean.
    """
    r, m = run_number(scores, run), measure_number(scores, measure)
    defined = np.isfinite(scores.values[r, m])
    values = scores.values[r, m][defined]
    interval = t_interval(values, level)
    spread = spread_of(values, scores.se[r, m][defined])
    scale = values.size if scores.measures[m].aggregation == "sum" else 1
    return MeanInterval(
        run=scores.runs[r],
        measure=str(scores.measures[m]),
        value=scores.mean(r, m).value,
        low=scale * interval.low,
        high=scale * interval.high,
        topics=values.size,
        undefined=tuple(topic for topic, here in zip(scores.topics, defined, strict=True) if not here),
        spread=Spread(scale * spread.total, scale * spread.topics, scale * spread.sampling),
    )

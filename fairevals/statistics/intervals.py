"""Confidence intervals for means over topics, and for mean differences.

An interval is undefined (NaN at both ends) with fewer than two values, or if all values are equal: no spread in a few
topics does not show that the mean is known, as an interval of width 0 would claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairevals.evaluation.scores import Scores
from fairevals.statistics.pairing import (
    BATCH_CELLS,
    DEFAULT_RESAMPLES,
    ROUNDING,
    Spread,
    measure_number,
    run_number,
    spread_of,
    topic_names,
)
from fairevals.statistics.tests import constant
from fairevals.typing import Floats


@dataclass(frozen=True)
class Interval:
    """A confidence interval; NaN at both ends if it is undefined."""

    low: float = math.nan
    high: float = math.nan


def t_interval(values: Floats, level: float = 0.95) -> Interval:
    """mean ± t_{n−1,(1+level)/2} · sd/√n.

    >>> interval = t_interval(np.array([0.1, 0.2, 0.3]))
    >>> round(interval.low, 4), round(interval.high, 4)
    (-0.0484, 0.4484)
    """
    values = values[np.isfinite(values)]
    if constant(values):
        return Interval()
    from scipy.stats import ttest_1samp

    interval = ttest_1samp(values, 0.0).confidence_interval(level)
    return Interval(float(interval.low), float(interval.high))


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
    if constant(values):
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
        batch=max(1, BATCH_CELLS // values.size),
        confidence_level=level,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(float(interval.low), float(interval.high))


@dataclass(frozen=True)
class MeanInterval:
    """The mean of a run on a measure, with its interval over topics."""

    value: float
    low: float
    high: float
    topics: int
    undefined: tuple[str, ...]
    """The topics on which the run has no value."""
    spread: Spread


def mean_interval(scores: Scores, run: int | str, measure: int | str, level: float = 0.95) -> MeanInterval:
    """The mean over the topics on which the run has a value, as in `Scores.mean`, with its t interval.

    The interval is for the values of the measure itself, also if the best value is a target. It may extend beyond the
    range of the measure, and it includes the sampling error of the values (see `spread_of`). For a measure that
    is summed over topics, all numbers are those of the sum.
    """
    r, m = run_number(scores, run), measure_number(scores, measure)
    defined = np.isfinite(scores.values[r, m])
    values = scores.values[r, m][defined]
    interval = t_interval(values, level)
    spread = spread_of(values, scores.se[r, m][defined])
    scale = values.size if scores.measures[m].aggregation == "sum" else 1
    return MeanInterval(
        value=scores.mean(r, m).value,
        low=scale * interval.low,
        high=scale * interval.high,
        topics=values.size,
        undefined=topic_names(scores, ~defined),
        spread=Spread(scale * spread.total, scale * spread.topics, scale * spread.sampling),
    )

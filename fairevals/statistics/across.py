"""Intervals and comparisons of measures across topics, which have no values by topic, by bootstrap over the topics.

Topics are drawn with replacement and the measure is computed from those drawn, repeated ones counting repeatedly. That
by itself makes exposure less equal, so resampled values lie around their own mean and not around the value: only their
deviations from that mean are used. The interval is symmetric, value ± the quantile of the absolute deviations (Hall,
"On symmetric bootstrap confidence intervals", JRSS B 50, 1988), and a difference is significant where its interval
leaves out 0. Two runs are resampled on the same topics. The interval is for the expected value on as many topics.
"""

import math
from itertools import compress

import numpy as np

from fairevals.evaluation.scores import Scores
from fairevals.statistics.pairing import Paired, Spread, batches, subtract
from fairevals.typing import Bools, Floats

ACROSS_RESAMPLES = 1_000
"""The number of resamples of all topics."""


def resampled(scores: Scores, measure: int, runs: tuple[int, ...], topics: Bools, seed: int = 0) -> Floats:
    """(runs, resamples): the values of runs on topics drawn with replacement from these; NaN where undefined."""
    several = [scores.exposed(run, measure, topics) for run in runs]
    n, rng = int(np.count_nonzero(topics)), np.random.default_rng(seed)
    width = max([n, *(exposed.documents for _, exposed in several)])
    values: list[list[Floats]] = [[] for _ in runs]
    for count in batches(ACROSS_RESAMPLES, width):
        drawn = rng.integers(0, n, size=(count, n)) + n * np.arange(count)[:, None]
        weights = np.bincount(drawn.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)
        for found, (definition, exposed) in zip(values, several, strict=True):
            found.append(definition.of_topics(exposed, weights))
    return np.array([np.concatenate(found) for found in values])


def deviations_of(values: Floats) -> Floats:
    """The deviations from their mean of those values that are defined; none if these do not differ."""
    values = values[~np.isnan(values)]
    if values.size < 2 or np.ptp(values) <= 1e-10 * np.abs(values).max():
        return np.zeros(0)
    deviations: Floats = values - values.mean()
    return deviations


def symmetric_interval(value: float, deviations: Floats, level: float) -> tuple[float, float, float]:
    """Low, high and standard error; NaN without deviations."""
    if not deviations.size:
        return math.nan, math.nan, math.nan
    margin = float(np.quantile(np.abs(deviations), level))
    return value - margin, value + margin, float(deviations.std(ddof=1))


def bootstrap_p(difference: float, deviations: Floats) -> float:
    """(1 + #{|deviation| ≥ |difference|}) / (1 + resamples): 1 for two runs that are equal, NaN without deviations."""
    if not deviations.size:
        return 1.0 if difference == 0 else math.nan
    extreme = int(np.count_nonzero(np.abs(deviations) >= abs(difference) * (1 - 1e-9)))
    return (1 + extreme) / (1 + deviations.size)


def pair_across(
    scores: Scores, measure: int, run: int, baseline: int, level: float = 0.95, seed: int = 0
) -> tuple[Paired, float, tuple[float, float]]:
    """A run and a baseline by a measure across topics, on their common topics; the p-value and the interval."""
    definition = scores.measures[measure]
    topics: Bools = scores.defined[run, measure] & scores.defined[baseline, measure]
    first, second = (scores.across_mean(r, measure, topics) for r in (run, baseline))
    difference = float(subtract(np.array(first.value), np.array(second.value)))
    p, low, high, total = (math.nan,) * 4
    if topics.sum() >= 2 and not math.isnan(difference):
        deviations = deviations_of(subtract(*resampled(scores, measure, (run, baseline), topics, seed)))
        p = bootstrap_p(difference, deviations)
        low, high, total = symmetric_interval(difference, deviations, level)
        if p == 1 and not deviations.size:
            low = high = 0.0
    nothing = np.zeros(0)
    sampling = math.nan if math.isnan(first.se + second.se) else math.hypot(first.se, second.se)
    paired = Paired(
        measure=str(definition),
        direction=definition.direction,
        run=scores.runs[run],
        baseline=scores.runs[baseline],
        topics=tuple(compress(scores.topics, topics)),
        undefined=tuple(compress(scores.topics, ~topics)),
        values=nothing,
        baseline_values=nothing,
        mean=first.value,
        baseline_mean=second.value,
        differences=nothing,
        difference=difference,
        spread=Spread(total, sampling),
        gains=nothing,
        wins=0,
        ties=0,
        losses=0,
    )
    return paired, p, (low, high)

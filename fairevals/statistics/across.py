"""Intervals and comparisons of measures across topics, which have no values by topic, by bootstrap over the topics.

Topics are drawn with replacement and the measure is computed from those drawn, repeated ones counting repeatedly. That
by itself makes exposure less equal, so resampled values lie around their own mean and not around the value: only their
deviations from that mean are used. The interval is symmetric, value ± the quantile of the absolute deviations (Hall,
"On symmetric bootstrap confidence intervals", JRSS B 50, 1988), and a difference is significant where its interval
leaves out 0. Two runs are resampled on the same topics. The interval is for the expected value on as many topics.

Few topics show less than all their variance when they are resampled, and leave it uncertain. So deviations are
multiplied by √(n/(n−1)), and for intervals and tests by √((n−1)/χ²) with a χ² of n−1 degrees of freedom for each
resample: of a mean of normal values, this gives the t-test. Without it, nearly any two runs would differ significantly
on two topics.
"""

import math
from collections.abc import Sequence
from itertools import compress

import numpy as np

from fairevals.evaluation.scores import Scores
from fairevals.statistics.pairing import Paired, Spread, batches, subtract
from fairevals.typing import Bools, Floats

ACROSS_RESAMPLES = 1_000
"""The number of resamples of all topics."""


def topics_across(scores: Scores, measure: int, runs: Sequence[int]) -> Bools:
    """The topics that a measure across topics takes into account for all of `runs`; none without runs."""
    topics: Bools = np.logical_and.reduce(scores.defined[list(runs), measure], axis=0, initial=bool(runs))
    return topics


def resampled(scores: Scores, measure: int, runs: Sequence[int], topics: Bools, seed: int = 0) -> Floats:
    """(runs, resamples): the values of runs on topics drawn with replacement from these; NaN where undefined."""
    drawn, key = scores.resampled, (measure, topics.tobytes(), seed)
    several = {r: scores.exposed(r, measure, topics) for r in runs if (r, *key) not in drawn}
    n, rng = int(np.count_nonzero(topics)), np.random.default_rng(seed)
    width = max([n, *(exposed.documents for _, exposed in several.values())])
    values: dict[int, list[Floats]] = {r: [] for r in several}
    for count in batches(ACROSS_RESAMPLES, width) if several else ():
        positions = rng.integers(0, n, size=(count, n)) + n * np.arange(count)[:, None]
        weights = np.bincount(positions.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)
        for r, (definition, exposed) in several.items():
            values[r].append(definition.of_topics(exposed, weights))
    drawn |= {(r, *key): np.concatenate(found) for r, found in values.items()}
    return np.array([drawn[r, *key] for r in runs])


def centred(values: Floats, topics: int) -> Floats:
    """The deviations of values (…, resamples of so many topics) from their mean, with the variance of those topics."""
    deviations: Floats = (values - values.mean(axis=-1, keepdims=True)) * math.sqrt(topics / (topics - 1))
    return deviations


def deviations_of(values: Floats, topics: int) -> Floats:
    """`centred` of those values (resamples,) that are defined; none if these do not differ."""
    values = values[~np.isnan(values)]
    if values.size < 2 or np.ptp(values) <= 1e-10 * np.abs(values).max():
        return np.zeros(0)
    return centred(values, topics)


def studentized(deviations: Floats, topics: int) -> Floats:
    """Deviations (…, resamples) of an uncertain variance: as from the t distribution, if they are normal.

    >>> normal = np.random.default_rng(0).normal(size=100_000)
    >>> np.quantile(np.abs(studentized(normal, 5)), 0.95).round(1)  # that of t with 4 degrees of freedom is 2.776
    np.float64(2.8)
    """
    # The same for all runs. The key has two parts, so that no usual seed of `resampled` gives the same numbers.
    squares = np.random.default_rng((topics, 1)).chisquare(topics - 1, deviations.shape[-1])
    scaled: Floats = deviations * np.sqrt((topics - 1) / squares)
    return scaled


def symmetric_interval(
    value: float, deviations: Floats, topics: int, level: float
) -> tuple[float, float, float]:
    """Low, high and standard error; NaN without deviations."""
    if not deviations.size:
        return math.nan, math.nan, math.nan
    margin = float(np.quantile(np.abs(studentized(deviations, topics)), level))
    return value - margin, value + margin, float(deviations.std(ddof=1))


def bootstrap_p(difference: float, deviations: Floats, topics: int) -> float:
    """(1 + #{|studentized deviation| ≥ |difference|}) / (1 + resamples).

    1 for two runs that are equal, NaN without deviations.
    """
    if not deviations.size:
        return 1.0 if difference == 0 else math.nan
    by_chance = np.abs(studentized(deviations, topics))
    extreme = int(np.count_nonzero(by_chance >= abs(difference) * (1 - 1e-9)))
    return (1 + extreme) / (1 + deviations.size)


def compare_across(
    scores: Scores, measure: int, run: int, baseline: int, level: float = 0.95, seed: int = 0
) -> tuple[Paired, float, tuple[float, float]]:
    """A run and a baseline by a measure across topics, on their common topics; the p-value and the interval."""
    topics = topics_across(scores, measure, (run, baseline))
    n, deviations = int(topics.sum()), np.zeros(0)
    if n >= 2:
        deviations = deviations_of(subtract(*resampled(scores, measure, (run, baseline), topics, seed)), n)
    paired = pair_across(scores, measure, run, baseline, topics, deviations)
    if n < 2 or math.isnan(paired.difference):
        return paired, math.nan, (math.nan, math.nan)
    p = bootstrap_p(paired.difference, deviations, n)
    if p == 1 and not deviations.size:
        return paired, p, (0.0, 0.0)
    return paired, p, symmetric_interval(paired.difference, deviations, n, level)[:2]


def pair_across(
    scores: Scores, measure: int, run: int, baseline: int, topics: Bools, deviations: Floats
) -> Paired:
    """A run and a baseline by a measure across topics; `deviations` are those of their resampled difference."""
    definition = scores.measures[measure]
    first, second = (scores.across_mean(r, measure, topics) for r in (run, baseline))
    nothing = np.zeros(0)
    total = float(deviations.std(ddof=1)) if deviations.size else math.nan
    sampling = math.nan if math.isnan(first.se + second.se) else math.hypot(first.se, second.se)
    return Paired(
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
        difference=float(subtract(np.array(first.value), np.array(second.value))),
        spread=Spread(total, sampling),
        gains=nothing,
        wins=0,
        ties=0,
        losses=0,
    )

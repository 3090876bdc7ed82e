"""Intervals and comparisons of measures across topics, which have no values by topic, by bootstrap over the topics.

Topics are drawn with replacement and the measure is computed from those drawn, repeated ones counting repeatedly. That
by itself makes exposure less equal, so resampled values lie around their own mean and not around the value: only their
deviations from that mean are used. The interval is symmetric, value ± the quantile of the absolute deviations (Hall,
"On symmetric bootstrap confidence intervals", JRSS B 50, 1988), and a difference is significant where its interval
leaves out 0. Two runs are resampled on the same topics. The interval is for the expected value on as many topics.
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


def compare_across(
    scores: Scores, measure: int, run: int, baseline: int, level: float = 0.95, seed: int = 0
) -> tuple[Paired, float, tuple[float, float]]:
    """A run and a baseline by a measure across topics, on their common topics; the p-value and the interval."""
    topics = topics_across(scores, measure, (run, baseline))
    deviations = np.zeros(0)
    if topics.sum() >= 2:
        deviations = deviations_of(subtract(*resampled(scores, measure, (run, baseline), topics, seed)))
    paired = pair_across(scores, measure, run, baseline, topics, deviations)
    if topics.sum() < 2 or math.isnan(paired.difference):
        return paired, math.nan, (math.nan, math.nan)
    p = bootstrap_p(paired.difference, deviations)
    if p == 1 and not deviations.size:
        return paired, p, (0.0, 0.0)
    return paired, p, symmetric_interval(paired.difference, deviations, level)[:2]


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

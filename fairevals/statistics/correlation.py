"""How alike measures rank the runs: Kendall's τ, with what other topics would make of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.evaluation.scores import Scores
from fairevals.statistics.pairing import ROUNDING, comparable, defined_everywhere, orientation
from fairevals.statistics.resampling import pieces
from fairevals.typing import Bools, Floats

TAU_RESAMPLES = 1_000


@dataclass(frozen=True)
class RankCorrelations:
    """τ between every two measures, `[a, b]`; NaN where fewer than two runs have a value, or one measure ties all."""

    measures: tuple[str, ...]
    tau: Floats
    low: Floats
    high: Floats
    runs: int
    topics: tuple[int, ...]
    """How many topics each measure's ranking is over: those on which all runs that have any value have one."""


def tau_b(a: Floats, b: Floats) -> float:
    """Kendall's τ-b of two lists of numbers: Σ sgn·sgn over pairs / √(pairs not tied in a · pairs not tied in b).

    Pairs with a NaN do not count. Undefined (NaN) without a pair that is not tied in each.
    Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945.

    >>> tau_b(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    0.3333333333333333
    """
    return float(tau_matrix(np.stack([a, b]))[0, 1])


def tau_matrix(costs: Floats) -> Floats:
    """τ-b between all rows: (…, measures, runs) → (…, measures, measures).

    >>> tau_matrix(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    first, second = np.triu_indices(costs.shape[-1], 1)
    a, b = costs[..., first], costs[..., second]
    step = a - b
    defined: Bools = ~np.isnan(step)
    signs = np.where(
        defined & (np.abs(step) > ROUNDING * np.maximum(np.abs(a), np.abs(b))), np.sign(step), 0.0
    )
    agree = signs @ np.swapaxes(signs, -1, -2)
    untied = np.abs(signs) @ np.swapaxes(defined.astype(np.float64), -1, -2)
    both = untied * np.swapaxes(untied, -1, -2)
    found: Floats = np.where(both > 0, agree / np.sqrt(np.where(both > 0, both, 1.0)), np.nan)
    return found


def rank_correlations(
    scores: Scores, *, level: float = 0.95, resamples: int = TAU_RESAMPLES, seed: int = 0
) -> RankCorrelations:
    """Kendall's τ-b between the rankings of the runs by every two measures, direction respected.

    τ is 1 where two measures agree which runs are better. Each measure ranks by means over the topics on which all
    runs are defined (of distances, where the best is a target); a run without a single value there has no rank.
    The interval is the percentile bootstrap over topics: drawn with replacement, the same for all measures, all
    runs ranked anew. Resampling adds noise to both rankings, so it leans to the lower side for τ near 1.
    """
    shape = (len(scores.measures), len(scores.topics), len(scores.runs))
    costs, used = np.full(shape, np.nan), np.zeros(shape[:2])
    for m, measure in enumerate(scores.measures):
        runs, topics = defined_everywhere(scores, m)
        used[m] = topics
        values = comparable(measure.direction, scores.values[:, m].T) * -orientation(measure.direction)
        costs[m, :, runs] = np.where(topics, values[:, runs].T, 0.0)
    tau = tau_matrix(_mean_costs(costs, used, np.ones((1, shape[1])))[0])
    rng = np.random.default_rng(seed)
    drawn = []
    for count in pieces(resamples, shape[0] * shape[2] * max(shape[2], shape[1] // max(1, shape[2]))):
        weights = rng.multinomial(shape[1], np.full(shape[1], 1 / shape[1]), size=count).astype(np.float64)
        drawn.append(tau_matrix(_mean_costs(costs, used, weights)))
    low, high = _quantiles(np.concatenate(drawn), level)
    undefined = np.isnan(tau)
    low[undefined] = high[undefined] = np.nan
    return RankCorrelations(
        measures=tuple(map(str, scores.measures)),
        tau=tau,
        low=low,
        high=high,
        runs=len(scores.runs),
        topics=tuple(int(count) for count in used.sum(axis=1)),
    )


def _mean_costs(costs: Floats, used: Floats, weights: Floats) -> Floats:
    """Weighted means over topics: costs (measures, topics, runs), weights (resamples, topics) → (…, measures, runs)."""
    total = weights @ used.T
    sums = np.einsum("bt,mtr->bmr", weights, costs, optimize=True)
    found: Floats = np.where(total[..., None] > 0, sums / np.maximum(total, 1.0)[..., None], np.nan)
    return found


def _quantiles(drawn: Floats, level: float) -> tuple[Floats, Floats]:
    """The middle `level` of resamples where τ is defined."""
    low, high = np.full(drawn.shape[1:], np.nan), np.full(drawn.shape[1:], np.nan)
    for a in range(drawn.shape[1]):
        for b in range(a, drawn.shape[2]):
            defined = drawn[:, a, b][~np.isnan(drawn[:, a, b])]
            if defined.size:
                ends = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
                low[[a, b], [b, a]], high[[a, b], [b, a]] = ends
    return low, high

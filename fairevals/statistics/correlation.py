"""How similarly measures rank the runs: Kendall's τ with bootstrap intervals over topics."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fairevals.evaluation.scores import Scores
from fairevals.statistics.pairing import ROUNDING, batches, common_topics
from fairevals.typing import Bools, Floats

if TYPE_CHECKING:
    import pandas as pd

TAU_RESAMPLES = 1_000


@dataclass(frozen=True)
class RankCorrelations:
    """τ between every two measures, `[a, b]`; NaN with fewer than two ranked runs, or if one measure ties all."""

    measures: tuple[str, ...]
    tau: Floats
    low: Floats
    high: Floats
    topics: tuple[int, ...]
    """For each measure, the number of topics common to all runs that have any value."""

    def frame(self) -> pd.DataFrame:
        """One row for every two measures: measure, other, tau, low, high, and the topics by which both rank."""
        import pandas as pd

        pairs = list(combinations(range(len(self.measures)), 2))
        names = [(self.measures[a], self.measures[b]) for a, b in pairs]
        rows = [
            (*name, self.tau[at], self.low[at], self.high[at], min(self.topics[n] for n in at))
            for name, at in zip(names, pairs, strict=True)
        ]
        return pd.DataFrame(rows, columns=["measure", "other", "tau", "low", "high", "topics"])


def tau_matrix(costs: Floats) -> Floats:
    """Kendall's τ-b between all rows: (…, measures, runs) → (…, measures, measures).

    τ-b = Σ sgn·sgn over pairs of runs / √(pairs not tied in a · pairs not tied in b). Pairs with a NaN are ignored;
    NaN if a row has no untied pair. Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945.
    (`scipy.stats.kendalltau` takes two rows at a time, which is slow for resamples, and does not tie what differs by
    rounding only.)

    >>> tau_matrix(np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    first, second = np.triu_indices(costs.shape[-1], 1)
    a, b = costs[..., first], costs[..., second]
    step = a - b
    defined: Bools = ~np.isnan(step)
    untied = defined & (np.abs(step) > ROUNDING * np.maximum(np.abs(a), np.abs(b)))
    signs = np.where(untied, np.sign(step), 0.0)
    agreement = signs @ np.swapaxes(signs, -1, -2)
    counts = np.abs(signs) @ np.swapaxes(defined.astype(np.float64), -1, -2)
    products = counts * np.swapaxes(counts, -1, -2)
    undefined = np.full_like(products, np.nan)
    tau: Floats = np.divide(agreement, np.sqrt(products), out=undefined, where=products > 0)
    return tau


def correlated(scores: Scores) -> list[int]:
    """The positions of the measures that can be correlated: those with values by topic."""
    return [m for m, measure in enumerate(scores.measures) if not measure.across_topics]


def rank_correlations(
    scores: Scores, *, level: float = 0.95, resamples: int = TAU_RESAMPLES, seed: int = 0
) -> RankCorrelations:
    """Kendall's τ-b between the rankings of the runs by every two measures, with directions respected.

    τ is 1 if two measures agree which runs are better. Each measure ranks the runs by means over their common topics
    (of distances, if the best value is a target), so that leaving out a topic does not change the rank of a run. A run
    without any value has no rank by a measure. Neither has an incomplete run, unless fewer than two runs are complete.

    The interval is the percentile bootstrap over topics: topics are drawn with replacement, the same for all measures,
    and the runs are ranked again. Resampling adds noise to both rankings, so the interval is biased downwards for τ
    near 1. Measures across topics, which have no values by topic, are left out.
    """
    places = correlated(scores)
    measures = [scores.measures[m] for m in places]
    shape = (len(measures), len(scores.topics), len(scores.runs))
    costs, used = np.full(shape, np.nan), np.zeros(shape[:2])
    for row, (m, measure) in enumerate(zip(places, measures, strict=True)):
        # A run with values on few topics would leave few common topics for the others.
        runs = np.flatnonzero(np.isfinite(scores.values[:, m]).any(axis=1))
        complete = runs[~scores.incomplete[runs, m]]
        runs = complete if complete.size >= 2 else runs
        used[row] = topics = common_topics(scores, m, runs.tolist())
        costs[row, :, runs] = np.where(topics, measure.direction.cost(scores.values[runs, m]), 0.0)

    def tau_of(weights: Floats) -> Floats:
        """τ between means over topics with the weights (resamples, topics)."""
        sums = np.einsum("bt,mtr->bmr", weights, costs, optimize=True)
        total = (weights @ used.T)[..., None]
        return tau_matrix(np.where(total > 0, sums / np.maximum(total, 1.0), np.nan))

    tau = tau_of(np.ones((1, shape[1])))[0]
    rng = np.random.default_rng(seed)
    drawn = []
    for count in batches(resamples, shape[0] * shape[2] * max(shape[2], shape[1] // max(1, shape[2]))):
        weights = rng.multinomial(shape[1], np.full(shape[1], 1 / shape[1]), size=count).astype(np.float64)
        drawn.append(tau_of(weights))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # two measures without a τ in any resample
        low, high = np.nanquantile(np.concatenate(drawn), [(1 - level) / 2, (1 + level) / 2], axis=0)
    low[np.isnan(tau)] = high[np.isnan(tau)] = np.nan
    counts = tuple(int(count) for count in used.sum(axis=1))
    return RankCorrelations(tuple(map(str, measures)), tau, low, high, counts)

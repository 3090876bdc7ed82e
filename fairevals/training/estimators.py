"""Gradients of an objective with respect to the scores of a Plackett-Luce policy: sampled, or exact.

Each estimator returns the objective of every topic without its entropy, and the gradient (topics, documents). A
function f of expected exposure has the gradient of Σ_d c_d·ε(d) with c = ∂f/∂ε. The sampling estimators take c at the
*sampled* exposure. For a measure that is linear in exposure c is constant, so nothing is lost. For a disparity with a
kink, max(0, ·), the sampled value is too large on average (Jensen's inequality) and the gradient is biased near the
kink. `exact` has neither fault.

Measures that are no functions of exposure are always estimated by `reinforce`.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.policy.policies import exposure_of_rankings
from fairevals.training.data import Batch
from fairevals.training.objectives import Objective, WeightedMeasure, depth_of, total_reward
from fairevals.typing import Floats, Ints

Estimator = Callable[[Objective, Floats, Batch, np.random.Generator, int], tuple[Floats, Floats]]
"""(objective, scores, batch, rng, samples) → values (topics,), gradient (topics, documents)."""

TOLERANCE = 1e-3
"""Of exact exposures in training: the error reached is about 1e-5."""
_LOWEST = -600.0
"""Scores further below the best are raised to this distance, so that e^600 stays finite."""


def reinforce(
    objective: Objective, scores: Floats, batch: Batch, rng: np.random.Generator, samples: int = 10
) -> tuple[Floats, Floats]:
    """The log-derivative trick: the mean over samples of (R_s − b_s)·∇ log π(r_s), b_s the mean of the others' R.

    R is the contribution of a ranking to the objective (Williams 1992; Singh & Joachims 2019, equation 6). The
    leave-one-out baseline, unbiased for the utility, is that of Kool et al. 2019.
    """
    drawn = Drawn(scores, PlackettLuce(scores).sample(samples, depth_of(objective.parts), rng))
    reward = total_reward(objective.rewards, drawn.rankings, batch)
    value = reward.mean(axis=1)
    terms, more = _at_sampled_exposure(objective, drawn, batch)
    for worth, weights in terms:
        reward += _at_ranks(worth, drawn.rankings) @ weights
    return value + more, drawn.pull_back(_minus_mean_of_others(reward) / samples)


def pl_rank(
    objective: Objective, scores: Floats, batch: Batch, rng: np.random.Generator, samples: int = 10
) -> tuple[Floats, Floats]:
    """PL-Rank-3 (Oosterhuis, SIGIR 2022) with a leave-one-out baseline for each rank.

    For a reward Σ_k θ_k ρ_{y_k}, with Q_k = Σ_{x>k} θ_x ρ_{y_x} the reward behind rank k, Z_k the weight left
    before it, ρ̄_k the expected worth of the document at rank k, and d at rank j of sample y,

        ∂/∂s_d = E[(Q_j − b_j) − e^{s_d} Σ_{k≤j} (Q_k − b_k + θ_k (ρ̄_k − ρ_d)) / Z_k].

    b_k, the mean of Q_k over the other samples, changes no expectation. Neither does ρ̄_k in place of PL-Rank's
    ρ_{y_k}: it is a running sum too, and has less variance.
    """
    drawn = Drawn(scores, PlackettLuce(scores).sample(samples, depth_of(objective.parts), rng))
    terms, value = _at_sampled_exposure(objective, drawn, batch)
    here = sum((_at_ranks(worth, drawn.rankings) * weights for worth, weights in terms), np.zeros(1))
    later = np.cumsum(here[..., ::-1], axis=-1)[..., ::-1] - here
    advantage = _minus_mean_of_others(later)
    gradient = drawn.scatter(advantage, -np.cumsum(drawn.inverse * advantage, axis=-1))
    for worth, weights in terms:
        share = drawn.inverse * weights
        expected = _left(drawn.odds * worth, drawn.rankings) * drawn.inverse
        gradient += drawn.scatter(np.zeros_like(share), -np.cumsum(share * expected, axis=-1))
        rise = np.cumsum(share, axis=-1)
        gradient += drawn.scatter(np.zeros_like(rise), rise) * worth[:, None, :]
    more, slope = _reinforced(objective.rewards, drawn, batch)
    return value + more, gradient.mean(axis=1) + slope


def exact(
    objective: Objective,
    scores: Floats,
    batch: Batch,
    rng: np.random.Generator | None = None,
    samples: int = 10,
    *,
    tolerance: float = TOLERANCE,
    smoothing: float = 0.0,
) -> tuple[Floats, Floats]:
    """The gradient itself, from the exact exposures of `PlackettLuce.exposure_with_vjp`; draws nothing for these.

    `tolerance` bounds the error relative to its terms; with the default the error reached is about 1e-5. `smoothing`
    rounds off the kinks of disparities.
    """
    policy = PlackettLuce(scores)
    value, gradient = np.zeros(len(scores)), np.zeros_like(scores)
    for term in objective.exposure_terms:
        exposure, vjp = policy.exposure_with_vjp(term.attention, term.cutoff, tolerance=tolerance)
        contribution, by_exposure = term.at(exposure, batch, smoothing)
        value += contribution
        gradient += vjp(by_exposure)
    gradient = without_mean(gradient, scores)
    if objective.rewards:
        drawn = Drawn(scores, policy.sample(samples, depth_of(objective.rewards), rng))
        more, slope = _reinforced(objective.rewards, drawn, batch)
        return value + more, gradient + slope
    return value, gradient


def without_mean(gradient: Floats, scores: Floats) -> Floats:
    """A gradient by the scores without what moves all scores of a topic together; 0 for padding.

    Adding one number to all scores changes no probability, so the mean of the gradient is quadrature error. It is
    small, but an optimiser that scales gradients to a common size, such as Adam, would turn it into steps.
    """
    present = scores > -np.inf
    mean = gradient.sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    return np.where(present, gradient - mean[:, None], 0.0)


ESTIMATORS: Mapping[str, Estimator] = {"reinforce": reinforce, "pl-rank": pl_rank, "exact": exact}


class Drawn:
    """Rankings (topics, samples, rank) drawn from a policy, −1 where one has ended, and what their gradients need.

    `odds` (topics, documents) is e^s up to a factor. `inverse` (topics, samples, rank) is 1/Z_k, Z_k the sum of the
    odds left before rank k; 0 behind the end.
    """

    def __init__(self, scores: Floats, rankings: Ints) -> None:
        shifted = scores - scores.max(axis=1, keepdims=True)
        self.odds = np.where(scores > -np.inf, np.exp(np.maximum(shifted, _LOWEST)), 0.0)
        left = _left(self.odds, rankings)
        self.inverse = np.divide(1.0, left, out=np.zeros_like(left), where=rankings >= 0)
        self.rankings = rankings

    def scatter(self, own: Floats, factor: Floats) -> Floats:
        """own + e^s·factor at each document's rank, e^s·(factor at the last rank) for documents not ranked.

        Both (topics, samples, rank); the result is (topics, samples, documents).
        """
        result = np.empty((*self.rankings.shape[:2], self.odds.shape[1] + 1))
        result[..., :-1] = self.odds[:, None, :] * factor[..., -1:]
        values = own + _at_ranks(self.odds, self.rankings) * factor
        np.put_along_axis(result, self.rankings, values, axis=2)
        return result[..., :-1]

    def pull_back(self, weights: Floats) -> Floats:
        """Σ_s weight_s·∇ log π(r_s): ∂ log π/∂s_d = [d ranked] − e^{s_d} Σ_{k ≤ rank(d)} 1/Z_k."""
        factor = -np.cumsum(self.inverse, axis=-1)
        gradient: Floats = np.einsum("ts,tsd->td", weights, self.scatter(np.ones_like(factor), factor))
        return gradient


def _reinforced(parts: Sequence[WeightedMeasure], drawn: Drawn, batch: Batch) -> tuple[Floats, Floats]:
    """The mean reward (topics,) of measures that are no functions of exposure, and its gradient by `reinforce`."""
    if not parts:
        return np.zeros(len(drawn.odds)), np.zeros_like(drawn.odds)
    reward = total_reward(parts, drawn.rankings, batch)
    return reward.mean(axis=1), drawn.pull_back(_minus_mean_of_others(reward) / reward.shape[1])


def _at_sampled_exposure(
    objective: Objective, drawn: Drawn, batch: Batch
) -> tuple[list[tuple[Floats, Floats]], Floats]:
    """The functions of exposure, made linear at the sampled exposure, and their value (topics,) there.

    Each is a pair: the worth of each document (topics, documents), and the attention of the ranks.
    """
    terms, value = [], np.zeros(len(drawn.odds))
    for term in objective.exposure_terms:
        weights = term.attention.weights(drawn.rankings.shape[2])
        if term.cutoff is not None:
            weights[term.cutoff :] = 0.0
        exposure = exposure_of_rankings(drawn.rankings, weights, drawn.odds.shape[1])
        contribution, worth = term.at(exposure, batch)
        terms.append((worth, weights))
        value += contribution
    return terms, value


def _at_ranks(values: Floats, rankings: Ints) -> Floats:
    """Values (topics, documents) down the rankings; 0 where a ranking has ended."""
    taken = np.take_along_axis(values[:, None, :], np.maximum(rankings, 0), axis=2)
    return np.where(rankings >= 0, taken, 0.0)


def _left(values: Floats, rankings: Ints) -> Floats:
    """The sum of values (topics, documents) over the documents at a rank, behind it, or not ranked."""
    left = np.cumsum(_at_ranks(values, rankings)[..., ::-1], axis=-1)[..., ::-1]
    if rankings.shape[2] < values.shape[1]:
        chosen = np.zeros((*rankings.shape[:2], values.shape[1] + 1), dtype=bool)
        np.put_along_axis(chosen, rankings, True, axis=2)
        left = left + np.where(chosen[..., :-1], 0.0, values[:, None, :]).sum(axis=-1)[..., None]
    return left


def _minus_mean_of_others(values: Floats) -> Floats:
    """Each value minus the mean of the other samples' (second axis); the value itself if it is the only one."""
    samples = values.shape[1]
    if samples == 1:
        return values
    difference: Floats = (values - values.mean(axis=1, keepdims=True)) * (samples / (samples - 1))
    return difference

"""Gradients of an objective by the scores of a Plackett-Luce policy: sampled (`reinforce`, `pl-rank`) or `exact`.

Each returns the objective of every topic and its gradient by the scores (topics, documents). The disparity is a
function of expected exposure, so its gradient is that of Σ_d c_d v(d) with c = ∂D/∂v; the samplers take c from
the *sampled* exposure, which makes D, a max(0, ·) of it, too large on average (Jensen), and its gradient biased
near the kink; `exact` has neither fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fairevals.attention import AttentionLike, parse_attention
from fairevals.errors import UsageError
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training.data import Batch
from fairevals.training.objectives import Objective, entropy_with_gradient
from fairevals.training.utilities import Term
from fairevals.typing import Floats, Ints

Estimator = Callable[[Objective, Floats, Batch, np.random.Generator, int], tuple[Floats, Floats]]
"""(objective, scores, block, rng, samples) → values (topics,), gradient (topics, documents)."""

TOLERANCE = 1e-3
"""Bound of the error of `exact`, relative to its terms; what is reached is about 1e-5."""
_LOWEST = -600.0
"""Scores further below the best count as this far: e^600 is still a number."""


def reinforce(
    objective: Objective, scores: Floats, block: Batch, rng: np.random.Generator, samples: int = 10
) -> tuple[Floats, Floats]:
    """The log-derivative trick: mean over samples of (R_s − b_s)·∇ log π(r_s), b_s the mean of the others' R.

    R is the utility less λ times the part of the disparity (Williams 1992; Singh & Joachims 2019, equation 6;
    the leave-one-out baseline, unbiased for the utility, is Kool et al.'s, 2019).
    """
    drawn = Drawn.from_policy(scores, rng, samples, objective.depth())
    reward = objective.utility.of_rankings(drawn.rankings, block)
    value = reward.mean(axis=1)
    if objective.lam:
        worth, disparity = _sampled_disparity(objective, drawn, block)
        value -= objective.lam * disparity
        reward -= objective.lam * _at_ranks(worth.worth, drawn.rankings) @ worth.weights(drawn.ranks)
    gradient = drawn.pull_back(_less_others(reward) / samples)
    return _with_entropy(objective, scores, value, gradient)


def pl_rank(
    objective: Objective, scores: Floats, block: Batch, rng: np.random.Generator, samples: int = 10
) -> tuple[Floats, Floats]:
    """PL-Rank-3 (Oosterhuis, SIGIR 2022) with a leave-one-out baseline for each rank.

    For a reward Σ_k θ_k ρ_{y_k}, with Q_k = Σ_{x>k} θ_x ρ_{y_x} the reward behind rank k, Z_k the weight left
    before it, ρ̄_k the expected worth of what comes at rank k, and d at rank j of sample y,

        ∂/∂s_d = E[(Q_j − b_j) − e^{s_d} Σ_{k≤j} (Q_k − b_k + θ_k (ρ̄_k − ρ_d)) / Z_k].

    b_k, the mean of Q_k over the other samples, changes no expectation. Neither does ρ̄_k in place of PL-Rank's
    ρ_{y_k}: it is a running sum too, and varies less. Only for utilities that are linear in exposure.
    """
    drawn = Drawn.from_policy(scores, rng, samples, objective.depth())
    terms = _terms(objective, block, "pl-rank")
    rewards = [_at_ranks(t.worth, drawn.rankings) * t.weights(drawn.ranks) for t in terms]
    value = sum((r.sum(axis=2).mean(axis=1) for r in rewards), np.zeros(len(scores)))
    if objective.lam:
        worth, disparity = _sampled_disparity(objective, drawn, block)
        value -= objective.lam * disparity
        terms.append(Term(worth.attention, worth.cutoff, -objective.lam * worth.worth))
        rewards.append(_at_ranks(terms[-1].worth, drawn.rankings) * worth.weights(drawn.ranks))
    here = np.sum(rewards, axis=0)
    later = np.cumsum(here[..., ::-1], axis=-1)[..., ::-1] - here
    advantage = _less_others(later)
    gradient = drawn.scatter(advantage, -np.cumsum(drawn.inverse * advantage, axis=-1))
    for term in terms:
        share = drawn.inverse * term.weights(drawn.ranks)
        expected = drawn.left(drawn.odds * term.worth) * drawn.inverse
        gradient += drawn.scatter(np.zeros_like(share), -np.cumsum(share * expected, axis=-1))
        rise = np.cumsum(share, axis=-1)
        gradient += drawn.scatter(np.zeros_like(rise), rise) * term.worth[:, None, :]
    return _with_entropy(objective, scores, value, gradient.mean(axis=1))


def exact(
    objective: Objective,
    scores: Floats,
    block: Batch,
    rng: np.random.Generator | None = None,
    samples: int = 0,
    *,
    tolerance: float = TOLERANCE,
) -> tuple[Floats, Floats]:
    """The gradient itself, through the exact exposures of `PlackettLuce.exposure_with_vjp`; draws nothing.

    Only for utilities that are linear in exposure.
    """
    terms = _terms(objective, block, "exact")
    if objective.lam:
        nothing = np.zeros_like(block.grades)
        terms.append(Term(objective.attention, None, nothing))
    policy = PlackettLuce(scores)
    value, gradient = np.zeros(len(scores)), np.zeros_like(scores)
    for (attention, cutoff), together in _by_attention(terms).items():
        worth = np.sum([term.worth for term in together], axis=0)
        exposure, vjp = policy.exposure_with_vjp(attention, cutoff, tolerance=tolerance)
        value += (exposure * worth).sum(axis=1)
        if objective.lam and (attention, cutoff) == (objective.attention, None):
            disparity, by_exposure = objective.disparity_of(exposure, block)
            value -= objective.lam * disparity
            worth = worth - objective.lam * by_exposure
        gradient += vjp(worth)
    return _with_entropy(objective, scores, value, _shift_invariant(gradient, scores))


def _shift_invariant(gradient: Floats, scores: Floats) -> Floats:
    """The gradient less its mean: one number more for all scores changes no probability.

    What is left of the mean is the error of the quadrature. It is small, but an optimiser that scales gradients
    to a common size, such as Adam, would make steps of it.
    """
    present = scores > -np.inf
    mean = gradient.sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    return np.where(present, gradient - mean[:, None], 0.0)


ESTIMATORS: Mapping[str, Estimator] = {"reinforce": reinforce, "pl-rank": pl_rank, "exact": exact}


def get_estimator(name: str, objective: Objective) -> Estimator:
    """The estimator of that name, if it can serve the objective."""
    if name not in ESTIMATORS:
        raise UsageError(f"unknown estimator {name!r}; known are {', '.join(ESTIMATORS)}")
    if name != "reinforce" and not objective.utility.linear:
        raise UsageError(f"{objective.utility} is not linear in exposure, which {name} needs; use reinforce")
    return ESTIMATORS[name]


@dataclass(frozen=True)
class Drawn:
    """Rankings drawn from a policy, and what every gradient of their probability needs."""

    rankings: Ints
    """(topics, samples, rank); −1 where a ranking has ended."""
    odds: Floats
    """e^s up to a factor (topics, documents)."""
    inverse: Floats
    """1/Z_k: Z_k is the sum of the odds left before rank k (topics, samples, rank); 0 behind the end."""

    @classmethod
    def from_policy(
        cls, scores: Floats, rng: np.random.Generator, samples: int, depth: int | None = None
    ) -> Drawn:
        """Draw rankings (topics, samples, min(depth, documents))."""
        n = scores.shape[1]
        k = n if depth is None else min(depth, n)
        return cls.given(scores, PlackettLuce(scores).sample(samples, k, rng=rng))

    @classmethod
    def given(cls, scores: Floats, rankings: Ints) -> Drawn:
        """The same for rankings at hand."""
        shifted = scores - scores.max(axis=1, keepdims=True)
        odds = np.where(scores > -np.inf, np.exp(np.maximum(shifted, _LOWEST)), 0.0)
        left = _left(odds, rankings)
        inverse = np.divide(1.0, left, out=np.zeros_like(left), where=rankings >= 0)
        return cls(rankings, odds, inverse)

    def left(self, values: Floats) -> Floats:
        """The sum of values (topics, documents) over what is left before each rank."""
        return _left(values, self.rankings)

    @property
    def ranks(self) -> int:
        """How many ranks the rankings have."""
        return int(self.rankings.shape[2])

    def scatter(self, own: Floats, factor: Floats) -> Floats:
        """own + e^s·factor at each document's rank, e^s·(factor at the last rank) for what is not ranked.

        Both (topics, samples, rank); the result is (topics, samples, documents).
        """
        topics, samples, _ = self.rankings.shape
        result = np.empty((topics, samples, self.odds.shape[1] + 1))
        result[..., :-1] = self.odds[:, None, :] * factor[..., -1:]
        values = own + _at_ranks(self.odds, self.rankings) * factor
        np.put_along_axis(result, self.rankings, values, axis=2)
        return result[..., :-1]

    def pull_back(self, weights: Floats) -> Floats:
        """Σ_s weight_s·∇ log π(r_s): ∂ log π/∂s_d = [d ranked] − e^{s_d} Σ_{k ≤ rank(d)} 1/Z_k."""
        factor = -np.cumsum(self.inverse, axis=-1)
        score_function = self.scatter(np.ones_like(factor), factor)
        gradient: Floats = np.einsum("ts,tsd->td", weights, score_function)
        return gradient


def _terms(objective: Objective, block: Batch, name: str) -> list[Term]:
    terms = objective.utility.terms(block)
    if terms is None:
        raise UsageError(f"{objective.utility} is not linear in exposure, which {name} needs; use reinforce")
    return terms


def _by_attention(terms: list[Term]) -> dict[tuple[AttentionLike, int | None], list[Term]]:
    found: dict[tuple[AttentionLike, int | None], list[Term]] = {}
    for term in terms:
        found.setdefault((term.attention, term.cutoff), []).append(term)
    return found


def _at_ranks(values: Floats, rankings: Ints) -> Floats:
    """Values (topics, documents) down the rankings; 0 where a ranking has ended."""
    taken = np.take_along_axis(values[:, None, :], np.maximum(rankings, 0), axis=2)
    return (
        taken if rankings.size == 0 or rankings[..., -1].min() >= 0 else np.where(rankings >= 0, taken, 0.0)
    )


def _left(values: Floats, rankings: Ints) -> Floats:
    """The sum of values (topics, documents) over the documents that stand at a rank or behind it, or nowhere."""
    left = np.cumsum(_at_ranks(values, rankings)[..., ::-1], axis=-1)[..., ::-1]
    if rankings.shape[2] < values.shape[1]:
        chosen = np.zeros((*rankings.shape[:2], values.shape[1] + 1), dtype=bool)
        np.put_along_axis(chosen, rankings, True, axis=2)
        left = left + np.where(chosen[..., :-1], 0.0, values[:, None, :]).sum(axis=-1)[..., None]
    return left


def _less_others(values: Floats) -> Floats:
    """Each value less the mean of the other samples' (the second axis); the value itself if it is the only one."""
    samples = int(values.shape[1])
    if samples == 1:
        return values.copy()
    less: Floats = (values - values.mean(axis=1, keepdims=True)) * (samples / (samples - 1))
    return less


def _sampled_disparity(objective: Objective, drawn: Drawn, block: Batch) -> tuple[Term, Floats]:
    """∂D/∂v at the sampled exposure as a term, and D there."""
    weights = parse_attention(objective.attention).weights(drawn.ranks)
    topics, samples, _ = drawn.rankings.shape
    seen = np.zeros((topics, samples, drawn.odds.shape[1] + 1))
    np.put_along_axis(seen, drawn.rankings, np.broadcast_to(weights, drawn.rankings.shape), axis=2)
    value, by_exposure = objective.disparity_of(seen[..., :-1].mean(axis=1), block)
    return Term(objective.attention, None, by_exposure), value


def _with_entropy(
    objective: Objective, scores: Floats, value: Floats, gradient: Floats
) -> tuple[Floats, Floats]:
    if not objective.entropy:
        return value, gradient
    entropy, slope = entropy_with_gradient(scores)
    return value + objective.entropy * entropy, gradient + objective.entropy * slope

"""The losses of methods that are trained step by step: PG-Rank and Fair-PG-Rank, ListNet, DELTR, BanditRank.

A loss maps the scores of a batch to one value per topic and its gradient with respect to the scores.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from fairevals.errors import unknown
from fairevals.training.data import Batch, groups_needed
from fairevals.training.estimators import ESTIMATORS, Estimator, exact
from fairevals.training.objectives import Objective, WeightedMeasure, entropy_with_gradient, total_reward
from fairevals.typing import Floats, Ints


@dataclass(frozen=True)
class PolicyGradient:
    """Minus the objective U − λ·D + γ·H of a Plackett-Luce policy whose log-weights are the scores.

    With λ = 0 this is PG-Rank, else Fair-PG-Rank (Singh & Joachims: Policy learning for fairness in ranking. NeurIPS
    2019). `estimator` is `reinforce`, `pl-rank` or `exact`; `samples` is the number of rankings drawn per step.
    Measures that are no functions of exposure are estimated by `reinforce` beside any of them.

    >>> loss = PolicyGradient(Objective.of(lam=1.0, disparity="D_ind"))
    >>> batch = Batch(np.zeros((1, 2, 1)), np.array([[1.0, 0.0]]), np.ones((1, 2), bool))
    >>> value, gradient = loss.gradient(np.zeros((1, 2)), batch, np.random.default_rng(0))
    >>> value.round(4), gradient.round(4)
    (array([-0.8155]), array([[-0.0923,  0.0923]]))
    """

    objective: Objective
    estimator: str = "exact"
    samples: int = 10
    smoothing: float = 0.0
    """How widely `exact` rounds off the kinks of disparities."""

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise unknown("estimator", self.estimator, ESTIMATORS)

    @property
    def is_exact(self) -> bool:
        """Whether nothing is drawn."""
        return self.estimator == "exact" and not self.objective.rewards

    def gradient(self, scores: Floats, batch: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        estimate: Estimator = ESTIMATORS[self.estimator]
        if self.smoothing:
            estimate = partial(exact, smoothing=self.smoothing)
        value, gradient = estimate(self.objective, scores, batch, rng, self.samples)
        entropy, slope = entropy_with_gradient(scores)
        return -value - self.objective.entropy * entropy, -gradient - self.objective.entropy * slope

    def quality(self, scores: Floats, batch: Batch) -> Floats:
        return self.objective.value(scores, batch)


@dataclass(frozen=True)
class ListNetLoss:
    """−Σ_d P_grades(d)·log P_scores(d) with P = softmax: ListNet with top-one probabilities (Cao et al., ICML 2007).

    >>> batch = Batch(np.zeros((1, 2, 1)), np.array([[1.0, 1.0]]), np.ones((1, 2), bool))
    >>> value, gradient = ListNetLoss().gradient(np.zeros((1, 2)), batch, np.random.default_rng(0))
    >>> value.round(4), gradient
    (array([0.6931]), array([[0., 0.]]))
    """

    def gradient(self, scores: Floats, batch: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        present = scores > -np.inf
        target = softmax(np.where(present, batch.grades, -np.inf), axis=-1)
        log_p = log_softmax(scores, axis=-1)
        value = -(target * np.where(present, log_p, 0.0)).sum(axis=-1)
        return value, np.exp(log_p) - target

    def quality(self, scores: Floats, batch: Batch) -> Floats:
        return -self.gradient(scores, batch, np.random.default_rng(0))[0]


@dataclass(frozen=True)
class DeltrLoss(ListNetLoss):
    """L + λ·U: ListNet's cross entropy L, and U = max(0, E(rest) − E(protected))².

    E(G) is the mean over the documents of G of their exposure at the first rank, P_d·v_1 with P = softmax(scores)
    and v_1 = 1. U is one-sided, and 0 on a topic where either side has no document. `protected` is the number of
    the protected group; all others are the rest. λ is the paper's γ; that of the authors' fairsearchdeltr, which
    divides L by ln N (N documents in all) and has v_1 = 1/ln 2, is λ·(ln 2)²/ln N. See Zehlike & Castillo: Reducing
    disparate exposure in ranking: a learning to rank approach. WWW 2020.
    """

    lam: float
    protected: int

    def gradient(self, scores: Floats, batch: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        value, gradient = super().gradient(scores, batch, rng)
        if batch.membership is None:
            raise groups_needed("deltr")
        protected = batch.membership[..., self.protected]
        sides = np.stack([batch.membership.sum(axis=-1) - protected, protected])
        sizes = sides.sum(axis=2, keepdims=True)
        shares = sides / np.maximum(sizes, 1e-300)
        share = np.where((sizes > 0).all(axis=0), shares[0] - shares[1], 0.0)
        p = softmax(scores, axis=-1)
        gap = (share * p).sum(axis=1, keepdims=True)
        excess = np.maximum(gap, 0.0)
        # ∂(Σ c_d P_d)/∂s_i = P_i (c_i − Σ c_d P_d)
        slope = 2.0 * excess * p * (share - gap)
        return value + self.lam * excess[:, 0] ** 2, gradient + self.lam * slope


def draw(log_affinity: Floats, count: int, samples: int, epsilon: float, rng: np.random.Generator) -> Ints:
    """Draw ordered subsets (samples, count) of n documents without replacement, as BanditRank does.

    At each step the next document is drawn uniformly from those left with probability ε, else in proportion to
    its affinity: the highest of log a + Gumbel noise (Yellott 1977), which works for affinities that are 0 in
    floating point. The same noise serves all steps: that one document was the highest, or was taken by a uniform
    draw, says nothing about which of the others is highest.

    >>> draw(np.array([-2000.0, -1000.0]), 1, 3, 0.0, np.random.default_rng(0)).ravel()
    array([1, 1, 1])
    """
    shape = samples, log_affinity.size
    proportional = log_affinity - log_affinity.max() + rng.gumbel(size=shape)
    uniform = rng.random(shape)
    exploring = rng.random((samples, count)) < epsilon
    rows = np.arange(samples)
    chosen = np.empty((samples, count), dtype=np.int64)
    for step in range(count):
        at = np.argmax(np.where(exploring[:, step, None], uniform, proportional), axis=1)
        chosen[:, step] = at
        proportional[rows, at] = uniform[rows, at] = -np.inf
    return chosen


def log_probability_with_gradient(scores: Floats, chosen: Ints, epsilon: float) -> tuple[Floats, Floats]:
    """log p of ordered subsets (samples, count), and its gradient (samples, documents).

    p = Π_i [ε/(n − i + 1) + (1 − ε)·a_{k_i}/R_i], with affinities a = σ(score), and R_i = z − Σ_{l<i} a_{k_l} the
    affinity left before step i. Everything is computed in logarithms, because only ratios of affinities matter: they
    may be smaller than any floating-point number.

    >>> log_p, _ = log_probability_with_gradient(np.zeros(3), np.array([[0, 1]]), 0.1)
    >>> np.exp(log_p).round(6)
    array([0.166667])
    """
    (samples, count), n = chosen.shape, scores.size
    rows = np.arange(samples)[:, None]
    log_a = np.broadcast_to(log_expit(scores), (samples, n))
    picked, rest = log_a[rows, chosen], log_a.copy()
    rest[rows, chosen] = -np.inf
    backwards = np.concatenate([np.logaddexp.reduce(rest, axis=1, keepdims=True), picked[:, ::-1]], axis=1)
    log_left = np.logaddexp.accumulate(backwards, axis=1)[:, :0:-1]
    with np.errstate(divide="ignore"):  # log 0 = −∞ is correct where ε is 0 or 1
        log_uniform, log_other = np.log(epsilon / (n - np.arange(count))), np.log(1.0 - epsilon)
    log_proportional = log_other + picked - log_left
    log_p = np.logaddexp(log_uniform, log_proportional)
    # ∂ log p_i/∂ log a_j = own_i·([j = k_i] − a_j/R_i) for the documents j left at step i, where own_i is the share
    # of the proportional draw in p_i. a_j/R_i is at most 1 there, so that it can leave the logarithms.
    log_own = log_proportional - log_p
    shared = np.logaddexp.accumulate(log_own - log_left, axis=1)
    until = np.broadcast_to(shared[:, -1:], (samples, n)).copy()
    until[rows, chosen] = shared
    gradient = -np.exp(log_a + until)
    gradient[rows, chosen] += np.exp(log_own)
    return log_p.sum(axis=1), gradient * expit(-scores)  # ∂ log σ(s)/∂s = σ(−s)


@dataclass(frozen=True)
class BanditRankLoss:
    """γ·L_rl + (1 − γ)·BCE (Gampa & Fujita: BanditRank. PAKDD 2021, arXiv 1910.10410); γ = 1 is the bandit alone.

    Affinities are a = σ(score). L_rl = −mean over B draws of (R − R_greedy)·log p(draw): M = min(n, M′) documents
    are drawn (see `draw`), R is the reward of their order, and R_greedy, the self-critical baseline, that of the M
    documents of highest affinity. BCE is the mean binary cross entropy of affinities and [grade > 0].

    L_rl depends only on ratios of affinities. With γ = 1 nothing keeps the scores from moving down, where σ(s) ≈ e^s,
    until σ(s) is 0 in floating point. So everything here is a function of scores, and no affinity is a divisor.
    """

    reward: tuple[WeightedMeasure, ...]
    reward_weight: float = 0.5
    """γ"""
    epsilon: float = 0.1
    max_drawn: int = 40
    """M′"""
    draws: int = 30
    """B"""

    def gradient(self, scores: Floats, batch: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        value, gradient = np.zeros(len(scores)), np.zeros_like(scores)
        gamma, lengths = self.reward_weight, batch.present.sum(axis=1)
        if gamma:
            # Without a relevant document all rewards are 0.
            topics = [(t, int(lengths[t])) for t in np.flatnonzero(batch.grades.any(axis=1)).tolist()]
            chosen = np.full((len(scores), self.draws, min(scores.shape[1], self.max_drawn)), -1)
            for t, n in topics:
                count = min(n, self.max_drawn)
                chosen[t, :, :n] = draw(log_expit(scores[t, :n]), count, self.draws, self.epsilon, rng)
            advantage = total_reward(self.reward, chosen, batch) - self.quality(scores, batch)[:, None]
            for t, n in topics:
                log_p, slope = log_probability_with_gradient(scores[t, :n], chosen[t, :, :n], self.epsilon)
                value[t] -= gamma * (advantage[t] * log_p).mean()
                gradient[t, :n] -= gamma * (advantage[t] @ slope) / self.draws
        if gamma < 1:
            side = np.where(batch.grades > 0, 1.0, -1.0)  # the score −inf of padding is right with certainty
            value -= (1 - gamma) * log_expit(side * scores).sum(axis=1) / lengths
            gradient -= (1 - gamma) * side * expit(-side * scores) / lengths[:, None]
        return value, gradient

    def quality(self, scores: Floats, batch: Batch) -> Floats:
        """The reward of the M documents of highest affinity, in order."""
        order = np.argsort(-scores, axis=1, kind="stable")
        ranking = np.where(np.take_along_axis(batch.present, order, axis=1), order, -1)
        return total_reward(self.reward, ranking[:, None, : self.max_drawn], batch)[:, 0]

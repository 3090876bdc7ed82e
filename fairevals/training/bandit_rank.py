"""BanditRank: ranking as a contextual bandit, trained on a reward beside a pointwise loss.

Gampa & Fujita: BanditRank: Learning to rank using contextual bandits. PAKDD 2021 (arXiv 1910.10410).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.training.data import Batch
from fairevals.training.models import log_sigmoid, sigmoid
from fairevals.training.utilities import WeightedSum
from fairevals.typing import Floats, Ints


def draw(log_affinity: Floats, count: int, samples: int, epsilon: float, rng: np.random.Generator) -> Ints:
    """Draw ordered subsets (samples, count) of n documents without replacement.

    At each step the next document is drawn uniformly from those left with probability ε, else in proportion to
    its affinity: the highest of log a + Gumbel noise (Yellott 1977), which needs no affinity that is above 0 in
    floating point. One noise serves all steps: that a document was the highest, or was taken by the uniform
    draw, says nothing of which is the highest among the others.

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
    """log p of ordered subsets (samples, count), and its gradient by the scores (samples, documents).

    p = Π_i [ε/(n − i + 1) + (1 − ε)·a_{k_i}/R_i], with affinities a = σ(score), and R_i = z − Σ_{l<i} a_{k_l} the
    affinity left before step i. All of it is computed in logarithms: affinities may be as small as they like, below
    the least floating-point number too, for only their ratios count.

    >>> log_p, _ = log_probability_with_gradient(np.zeros(3), np.array([[0, 1]]), 0.1)
    >>> np.exp(log_p).round(6)
    array([0.166667])
    """
    samples, count = chosen.shape
    n = scores.size
    log_a = np.broadcast_to(log_sigmoid(scores), (samples, n))
    picked = np.take_along_axis(log_a, chosen, axis=1)
    rest = log_a.copy()
    np.put_along_axis(rest, chosen, -np.inf, axis=1)
    backwards = np.concatenate([np.logaddexp.reduce(rest, axis=1, keepdims=True), picked[:, ::-1]], axis=1)
    log_left = np.logaddexp.accumulate(backwards, axis=1)[:, :0:-1]
    with np.errstate(divide="ignore"):  # log 0 = −∞, where ε is 0 or 1, is what is meant
        log_uniform, log_other = np.log(epsilon / (n - np.arange(count))), np.log(1.0 - epsilon)
    log_proportional = log_other + picked - log_left
    log_p = np.logaddexp(log_uniform, log_proportional)
    # ∂ log p_i/∂ log a_j = own_i·([j = k_i] − a_j/R_i) for the documents j left at step i, own_i the share of the
    # draw in proportion in p_i; a_j/R_i is at most 1 where it counts, and only there it is taken out of logarithms.
    log_own = log_proportional - log_p
    shared = np.logaddexp.accumulate(log_own - log_left, axis=1)
    until = np.broadcast_to(shared[:, -1:], (samples, n)).copy()
    np.put_along_axis(until, chosen, shared, axis=1)
    gradient = -np.exp(log_a + until)
    np.put_along_axis(
        gradient, chosen, np.exp(log_own) + np.take_along_axis(gradient, chosen, axis=1), axis=1
    )
    return log_p.sum(axis=1), gradient * sigmoid(-scores)  # ∂ log σ(s)/∂s = σ(−s)


@dataclass(frozen=True)
class BanditRankLoss:
    """γ·L_rl + (1 − γ)·BCE: the hybrid loss as the paper's experiments read it (γ = 1 is the bandit alone).

    Affinities are a = σ(score). L_rl = −mean over B draws of (R − R_greedy)·log p(draw): M = min(n, M′) documents
    are drawn (see `draw`), R is the reward of their order, and R_greedy, the self-critical baseline, that of the M
    documents of highest affinity. BCE is the mean binary cross entropy of affinities and [grade > 0].

    L_rl sees only the ratios of affinities, so that with γ = 1 nothing holds the scores: training moves them down,
    where σ(s) ≈ e^s, the sooner the higher the learning rate, to where σ(s) is 0 in floating point. Hence everything
    here is a function of scores, and no affinity is ever divided by.
    """

    reward: WeightedSum
    gamma: float = 0.5
    epsilon: float = 0.1
    most: int = 40
    """M′"""
    draws: int = 30
    """B"""

    def gradient(self, scores: Floats, block: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The loss and its gradient by the scores, the affinities' logits."""
        value, gradient = np.zeros(len(scores)), np.zeros_like(scores)
        for t in range(len(scores)):
            at = np.flatnonzero(block.present[t])
            s, one = scores[t, at], topic_of(block, t)
            if self.gamma and one.grades.any():  # without a relevant document all rewards are 0
                count = min(at.size, self.most)
                chosen = draw(log_sigmoid(s), count, self.draws, self.epsilon, rng)
                advantage = self.reward.of_rankings(chosen[None], one)[0] - self.greedy(s, one)
                log_p, by_score = log_probability_with_gradient(s, chosen, self.epsilon)
                value[t] -= self.gamma * (advantage * log_p).mean()
                gradient[t, at] -= self.gamma * (advantage @ by_score) / self.draws
            if self.gamma < 1:
                side = np.where(one.grades[0] > 0, 1.0, -1.0)
                value[t] -= (1 - self.gamma) * log_sigmoid(side * s).mean()
                gradient[t, at] -= (1 - self.gamma) * side * sigmoid(-side * s) / at.size
        return value, gradient

    def greedy(self, scores: Floats, one: Batch) -> float:
        """The reward of the M best documents in order."""
        order = np.argsort(-scores, kind="stable")[: min(scores.size, self.most)]
        return float(self.reward.of_rankings(order[None, None], one)[0, 0])

    def quality(self, scores: Floats, block: Batch) -> Floats:
        """The reward of the greedy order."""
        return np.array(
            [self.greedy(scores[t, block.present[t]], topic_of(block, t)) for t in range(len(scores))]
        )


def topic_of(block: Batch, topic: int) -> Batch:
    """One topic of a block without its padding."""
    there = block.present[topic]
    return Batch(
        block.features[topic : topic + 1, there],
        block.grades[topic : topic + 1, there],
        np.ones((1, int(there.sum())), dtype=bool),
        None if block.membership is None else block.membership[topic : topic + 1, there],
        block.max_grade,
    )

"""BanditRank: ranking as a contextual bandit, trained on a reward beside a pointwise loss.

Gampa & Fujita: BanditRank: Learning to rank using contextual bandits. PAKDD 2021 (arXiv 1910.10410).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.training.data import Block
from fairevals.training.models import sigmoid
from fairevals.training.utilities import WeightedSum
from fairevals.typing import Floats, Ints

REWARDS = ("0.5*AP+0.5*RR", "0.5*AP+0.5*nDCG@10")
"""The paper's: equation 10, for answers to questions, and equation 11, for web search."""


def draw(affinity: Floats, count: int, samples: int, epsilon: float, rng: np.random.Generator) -> Ints:
    """Draw ordered subsets (samples, count) of n documents without replacement.

    At each step the next document is drawn uniformly from those left with probability ε, else in proportion to
    its affinity.

    >>> draw(np.array([1e-12, 1.0]), 1, 3, 0.0, np.random.default_rng(0)).ravel()
    array([1, 1, 1])
    """
    left = np.broadcast_to(affinity, (samples, affinity.size)).copy()
    there = np.ones(left.shape, dtype=bool)
    rows = np.arange(samples)
    chosen = np.empty((samples, count), dtype=np.int64)
    for step in range(count):
        weight = np.where((rng.random(samples) < epsilon)[:, None], there, left)
        running = np.cumsum(weight, axis=1)
        wanted = rng.random(samples) * running[:, -1]
        # Rounding may carry `wanted` up to the very end: then the last document left is meant.
        at = np.argmax((running > wanted[:, None]) & there, axis=1)
        bad = ~there[rows, at]
        if bad.any():
            at[bad] = affinity.size - 1 - np.argmax(there[bad, ::-1], axis=1)
        chosen[:, step] = at
        left[rows, at] = 0.0
        there[rows, at] = False
    return chosen


def log_probability_with_gradient(affinity: Floats, chosen: Ints, epsilon: float) -> tuple[Floats, Floats]:
    """log p of ordered subsets (samples, count), and its gradient by the affinities (samples, documents).

    p = Π_i [ε/(n − i + 1) + (1 − ε)·a_{k_i}/R_i], R_i = z − Σ_{l<i} a_{k_l} the affinity left before step i.

    >>> log_p, _ = log_probability_with_gradient(np.array([0.5, 0.5, 0.5]), np.array([[0, 1]]), 0.1)
    >>> np.exp(log_p).round(6)
    array([0.166667])
    """
    samples, count = chosen.shape
    n = affinity.size
    rest = np.broadcast_to(affinity, (samples, n)).copy()
    np.put_along_axis(rest, chosen, 0.0, axis=1)
    picked = affinity[chosen]
    left = np.cumsum(picked[:, ::-1], axis=1)[:, ::-1] + rest.sum(axis=1, keepdims=True)
    p = epsilon / (n - np.arange(count)) + (1.0 - epsilon) * picked / left
    own = (1.0 - epsilon) / (p * left)  # ∂ log p_i/∂a of the document that is picked
    shared = np.cumsum(own * picked / left, axis=1)  # less what step i takes from every document then left
    gradient = np.broadcast_to(-shared[:, -1:], (samples, n)).copy()
    np.put_along_axis(gradient, chosen, own - shared, axis=1)
    return np.log(p).sum(axis=1), gradient


@dataclass(frozen=True)
class BanditRankLoss:
    """γ·L_rl + (1 − γ)·BCE: the hybrid loss as the paper's experiments read it (γ = 1 is the bandit alone).

    Affinities are a = σ(score). L_rl = −mean over B draws of (R − R_greedy)·log p(draw): M = min(n, M′) documents
    are drawn (see `draw`), R is the reward of their order, and R_greedy, the self-critical baseline, that of the M
    documents of highest affinity. BCE is the mean binary cross entropy of affinities and [grade > 0].
    """

    reward: WeightedSum
    gamma: float = 0.5
    epsilon: float = 0.1
    most: int = 40
    """M′"""
    draws: int = 30
    """B"""

    def gradient(self, scores: Floats, block: Block, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The loss and its gradient by the scores, the affinities' logits."""
        value, gradient = np.zeros(len(scores)), np.zeros_like(scores)
        for t in range(len(scores)):
            at = np.flatnonzero(block.present[t])
            s, one = scores[t, at], topic_of(block, t)
            affinity = sigmoid(s)
            if self.gamma and one.grades.any():  # without a relevant document all rewards are 0
                chosen = draw(affinity, min(at.size, self.most), self.draws, self.epsilon, rng)
                advantage = self.reward.of_rankings(chosen[None], one)[0] - self.greedy(s, one)
                log_p, by_affinity = log_probability_with_gradient(affinity, chosen, self.epsilon)
                value[t] -= self.gamma * (advantage * log_p).mean()
                slope = affinity * (1.0 - affinity)
                gradient[t, at] -= self.gamma * (advantage @ by_affinity) / self.draws * slope
            if self.gamma < 1:
                relevant = one.grades[0] > 0
                entropy = np.logaddexp(0.0, s) - np.where(relevant, s, 0.0)
                value[t] += (1 - self.gamma) * entropy.mean()
                gradient[t, at] += (1 - self.gamma) * (affinity - relevant) / at.size
        return value, gradient

    def greedy(self, scores: Floats, one: Block) -> float:
        """The reward of the M best documents in order."""
        order = np.argsort(-scores, kind="stable")[: min(scores.size, self.most)]
        return float(self.reward.of_rankings(order[None, None], one)[0, 0])

    def quality(self, scores: Floats, block: Block) -> Floats:
        """The reward of the greedy order."""
        return np.array(
            [self.greedy(scores[t, block.present[t]], topic_of(block, t)) for t in range(len(scores))]
        )


def topic_of(block: Block, topic: int) -> Block:
    """One topic of a block without its padding."""
    there = block.present[topic]
    return Block(
        block.features[topic : topic + 1, there],
        block.grades[topic : topic + 1, there],
        np.ones((1, int(there.sum())), dtype=bool),
        None if block.membership is None else block.membership[topic : topic + 1, there],
        block.max_grade,
    )

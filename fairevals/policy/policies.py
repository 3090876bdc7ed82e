"""The three policies that a run can be: one ranking, sampled rankings, Plackett-Luce; over blocks of topics."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fairevals.attention import Attention
from fairevals.collection.blocks import Block
from fairevals.policy.plackett_luce import Estimate, PlackettLuce, agreeing_se
from fairevals.typing import Bools, Floats, Ints

EXPOSURE_TOLERANCE = 1e-12
"""Of exact exposure: far below the printed digits, so that a perfect nDCG is not printed as 1.0000000001."""
JACKKNIFE_BATCHES = 20
"""The number of batches into which samples are divided for the jackknife."""


@dataclass(frozen=True)
class Exposure:
    """Expected exposure of each document, (topics, documents).

    If it was sampled, `left_out` is (batches, topics, documents): the exposure without each batch of samples. The
    standard error of any function of the exposure follows from it (see `jackknife`).
    """

    value: Floats
    left_out: Floats | None = None


def generator(seed: int, run: str, topic: str) -> np.random.Generator:
    """Random numbers keyed by (seed, run, topic), so that they do not depend on how the work is divided."""
    digest = hashlib.blake2b(f"{run}\0{topic}".encode(), digest_size=8).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "little")])


def exposure_of_rankings(order: Ints, weights: Floats, documents: int) -> Floats:
    """Mean attention of each document over sampled rankings.

    `order` is (topics, samples, ranks) of document numbers, −1 for an empty rank; `weights` broadcasts to it.
    Samples without any document are ignored. The result is (topics, documents).

    >>> exposure_of_rankings(np.array([[[0, 1], [1, 0]]]), np.array([1.0, 0.5]), 3)
    array([[0.75, 0.75, 0.  ]])
    """
    topics = order.shape[0]
    filled = order >= 0
    flat = np.arange(topics)[:, None, None] * documents + order
    total = np.bincount(
        flat[filled], weights=np.broadcast_to(weights, order.shape)[filled], minlength=topics * documents
    ).reshape(topics, documents)
    count = filled.any(axis=2).sum(axis=1)
    mean: Floats = total / np.maximum(count, 1)[:, None]
    return mean


class Policy(ABC):
    """A distribution over rankings for every topic of a block."""

    sampled: ClassVar[bool] = False
    """Whether `rankings` are drawn, so that a mean over them has a standard error."""

    @abstractmethod
    def rankings(self, block: Block, depth: int | None) -> Ints:
        """(topics, samples, ranks) of document numbers within the block, −1 for an empty rank."""

    def agreeing_se(self, block: Block, depth: int | None) -> Floats:
        """(topics,): the standard error of a value in [0, 1] that all samples have; 0 where nothing is sampled."""
        return np.zeros(len(block.topics))

    def unseen(self, block: Block, rankings: Ints, where: Bools) -> Floats:
        """(topics,): the probability of all other rankings than these, on the topics of `where`."""
        return np.zeros(len(block.topics))

    def exposure(self, block: Block, attention: Attention, cutoff: int | None) -> Exposure:
        """Expected attention of every document of the block."""
        order = self.rankings(block, cutoff)
        if attention.looks_at_grades:
            weights = attention.weights_given(block.reordered(order).grades)
        else:
            weights = np.broadcast_to(attention.weights(order.shape[2]), order.shape)
        documents = block.row.shape[1]
        value = exposure_of_rankings(order, weights, documents)
        if not self.sampled:
            return Exposure(value)
        batch = np.arange(order.shape[1]) % min(JACKKNIFE_BATCHES, order.shape[1])
        left_out = [
            exposure_of_rankings(order[:, batch != b], weights[:, batch != b], documents)
            for b in range(batch.max() + 1)
        ]
        return Exposure(value, np.stack(left_out))


class OneRanking(Policy):
    """The run's one ranking of each topic."""

    def rankings(self, block: Block, depth: int | None) -> Ints:
        return block.order(depth)[:, None, :]


class SampledRankings(Policy):
    """The rankings in the file, all equally likely: they are the policy, so their mean is exact."""

    def rankings(self, block: Block, depth: int | None) -> Ints:
        assert block.rankings is not None  # noqa: S101 -- blocks of this policy are made with rankings
        return block.rankings[..., :depth]


@dataclass(frozen=True)
class PlackettLuceRun(Policy):
    """The run's scores are log-weights: each next document is drawn with odds e^{score/temperature}."""

    sampled = True

    run: str
    temperature: float = 1.0
    samples: int = 1000
    seed: int = 0

    def policy(self, block: Block) -> PlackettLuce:
        """The distribution over the retrieved documents of each topic."""
        return PlackettLuce(block.scores, temperature=self.temperature)

    def rankings(self, block: Block, depth: int | None) -> Ints:
        longest = int(block.retrieved.max(initial=0))
        k = longest if depth is None else min(depth, longest)
        if k == 0:
            return np.full((len(block.topics), self.samples, 0), -1, dtype=np.int64)
        generators = [generator(self.seed, self.run, topic) for topic in block.topics]
        return self.policy(block).sample(self.samples, k=k, rng=generators)

    def unseen(self, block: Block, rankings: Ints, where: Bools) -> Floats:
        unseen = np.zeros(len(block.topics))
        for t in np.flatnonzero(where).tolist():
            policy = PlackettLuce(block.scores[t], temperature=self.temperature)
            seen = np.exp(policy.log_prob(np.unique(rankings[t], axis=0)))
            unseen[t] = max(0.0, 1.0 - float(seen.sum()))
        return unseen

    def agreeing_se(self, block: Block, depth: int | None) -> Floats:
        return agreeing_se(self.samples, self.policy(block).other_rankings(depth))

    def exposure(self, block: Block, attention: Attention, cutoff: int | None) -> Exposure:
        """Exact, except where attention looks at grades: then from samples."""
        if attention.looks_at_grades:
            return super().exposure(block, attention, cutoff)
        return Exposure(self.policy(block).exposure(attention, k=cutoff, tolerance=EXPOSURE_TOLERANCE).value)


def jackknife(value: Floats, left_out: Floats) -> Estimate:
    """A value with its standard error from the values without each batch.

    se² = (B−1)/B · Σ_b (θ_(b) − mean θ_(·))², over the first axis of `left_out`.
    """
    batches = len(left_out)
    # Batches are added one after another: numpy's own sum over them depends on the number of topics.
    mean = np.cumsum(left_out, axis=0)[-1] / batches
    spread = np.cumsum((left_out - mean) ** 2, axis=0)[-1]
    return Estimate(value, np.sqrt(spread * (batches - 1) / batches))

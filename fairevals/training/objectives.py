"""The objective of Fair-PG-Rank: U(π|q) − λ·D(π|q) + γ·H(softmax(scores)), and its exact value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.attention import AttentionLike
from fairevals.measures.merit import merit
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training.data import Batch
from fairevals.training.disparities import disparity_with_gradient
from fairevals.training.utilities import Term, WeightedSum, parse_utility
from fairevals.typing import Floats


@dataclass(frozen=True)
class Objective:
    """What is maximised, a topic at a time: U(π|q) − λ·D(π|q) + γ·H (Singh & Joachims 2019, equation 1).

    U is the expectation of `utility`; D is `D_group` or `D_ind` with merits M = f(grade); H the entropy of
    softmax(scores) (section 3.2.1).
    """

    utility: WeightedSum
    lam: float = 0.0
    disparity: str = "D_group"
    merit: str = "identity"
    attention: str = "log2"
    entropy: float = 0.0
    ties: str = "both"

    @classmethod
    def of(cls, utility: str = "nDCG", lam: float = 0.0, **rest: str | float) -> Objective:
        """An objective whose utility is given as text."""
        return cls(parse_utility(utility), lam, **rest)  # type: ignore[arg-type]

    def disparity_of(self, exposure: Floats, block: Batch) -> tuple[Floats, Floats]:
        """D and its gradient by the exposures."""
        merits = merit(block.grades, self.merit)
        return disparity_with_gradient(self.disparity, exposure, merits, block.membership, self.ties)

    def depth(self) -> int | None:
        """How many ranks a sample must have; None for all."""
        return None if self.lam else self.utility.depth

    def value(self, scores: Floats, block: Batch, samples: int = 100, tolerance: float = 1e-6) -> Floats:
        """The objective of each topic without the entropy, which is there for the sake of training only.

        D is exact, and so is U if it is linear in exposure; else U is the mean over `samples` rankings drawn
        with a fixed seed, so that the values of two models can be compared.
        """
        policy = PlackettLuce(scores)
        exposures = Exposures(policy, tolerance)
        terms = self.utility.terms(block)
        total = np.zeros(len(scores))
        if terms is None:
            rankings = policy.sample(samples, self.utility.depth, rng=0)
            total += self.utility.of_rankings(rankings, block).mean(axis=1)
        for term in terms or ():
            total += (exposures.of(term.attention, term.cutoff) * term.worth).sum(axis=1)
        if self.lam:
            total -= self.lam * self.disparity_of(exposures.of(self.attention, None), block)[0]
        return total


class Exposures:
    """Exact exposures under several attentions, each computed once."""

    def __init__(self, policy: PlackettLuce, tolerance: float) -> None:
        self.policy, self.tolerance = policy, tolerance
        self._found: dict[tuple[AttentionLike, int | None], Floats] = {}

    def of(self, attention: AttentionLike, cutoff: int | None) -> Floats:
        """Exposure of every document."""
        key = (attention, cutoff)
        if key not in self._found:
            self._found[key] = self.policy.exposure(attention, cutoff, tolerance=self.tolerance).value
        return self._found[key]


def entropy_with_gradient(scores: Floats) -> tuple[Floats, Floats]:
    """H = −Σ p log p of p = softmax(scores) (topics, documents), −inf for none, and ∂H/∂s = −p (log p + H).

    >>> value, gradient = entropy_with_gradient(np.zeros((1, 2)))
    >>> value.round(4), np.abs(gradient).round(4)
    (array([0.6931]), array([[0., 0.]]))
    """
    shifted = scores - scores.max(axis=1, keepdims=True)
    odds = np.exp(shifted)
    total = odds.sum(axis=1, keepdims=True)
    p = odds / total
    log_p = np.where(p > 0, shifted - np.log(total), 0.0)
    entropy = -(p * log_p).sum(axis=1)
    return entropy, -p * (log_p + entropy[:, None])


__all__ = ["Exposures", "Objective", "Term", "entropy_with_gradient"]

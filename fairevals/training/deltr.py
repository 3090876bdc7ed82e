"""DELTR: ListNet with a penalty on the top-one exposure that the protected group lacks.

Zehlike & Castillo: Reducing disparate exposure in ranking: a learning to rank approach. WWW 2020.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.training.data import Batch, no_groups
from fairevals.training.listnet import cross_entropy_with_gradient, softmax
from fairevals.typing import Floats


@dataclass(frozen=True)
class DeltrLoss:
    """L + λ·U: ListNet's cross entropy L, and U = max(0, E(rest) − E(protected))².

    E(G) is the mean over the documents of G of their exposure at the first rank, P_d·v_1 with P = softmax(scores)
    and v_1 = 1. U is one-sided, and 0 on a topic where either side has no document. `protected` is the number of
    the protected group; all others are the rest. λ is the paper's γ; that of the authors' fairsearchdeltr, which
    divides L by ln N (N documents in all) and has v_1 = 1/ln 2, is λ·(ln 2)²/ln N.
    """

    lam: float
    protected: int

    def gradient(self, scores: Floats, block: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """L + λU and its gradient."""
        value, gradient = cross_entropy_with_gradient(scores, block.grades)
        lack, slope = self.unfairness_with_gradient(scores, block)
        return value + self.lam * lack, gradient + self.lam * slope

    def unfairness_with_gradient(self, scores: Floats, block: Batch) -> tuple[Floats, Floats]:
        """U and its gradient by the scores."""
        if block.membership is None:
            raise no_groups("deltr")
        protected = block.membership[..., self.protected]
        rest = block.membership.sum(axis=-1) - protected
        sizes = rest.sum(axis=1, keepdims=True), protected.sum(axis=1, keepdims=True)
        both = (sizes[0] > 0) & (sizes[1] > 0)
        share = np.where(
            both, rest / np.maximum(sizes[0], 1e-300) - protected / np.maximum(sizes[1], 1e-300), 0.0
        )
        p = softmax(scores)
        lack = np.maximum((share * p).sum(axis=1, keepdims=True), 0.0)
        # ∂(Σ c_d P_d)/∂s_i = P_i (c_i − Σ c_d P_d)
        slope: Floats = 2.0 * lack * p * (share - (share * p).sum(axis=1, keepdims=True))
        return lack[:, 0] ** 2, slope

    def quality(self, scores: Floats, block: Batch) -> Floats:
        """Minus the loss."""
        return -self.gradient(scores, block, np.random.default_rng(0))[0]

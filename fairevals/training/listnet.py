"""ListNet: cross entropy between top-one probabilities of grades and of scores (Cao et al., ICML 2007)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.training.data import Batch
from fairevals.typing import Floats


def softmax(scores: Floats) -> Floats:
    """Softmax over the last axis; 0 where the score is −inf.

    >>> softmax(np.array([0.0, 0.0, -np.inf]))
    array([0.5, 0.5, 0. ])
    """
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    share: Floats = odds / odds.sum(axis=-1, keepdims=True)
    return share


def cross_entropy_with_gradient(scores: Floats, grades: Floats) -> tuple[Floats, Floats]:
    """−Σ_d P_grades(d)·log P_scores(d) with P = softmax, and its gradient P_scores − P_grades; −inf is padding.

    >>> value, gradient = cross_entropy_with_gradient(np.zeros((1, 2)), np.array([[1.0, 1.0]]))
    >>> value.round(4), gradient
    (array([0.6931]), array([[0., 0.]]))
    """
    present = scores > -np.inf
    wanted = softmax(np.where(present, grades, -np.inf))
    shifted = scores - scores.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    value = -(wanted * np.where(present, log_p, 0.0)).sum(axis=-1)
    return value, np.exp(log_p) - wanted


@dataclass(frozen=True)
class ListNetLoss:
    """The loss of ListNet with top-one probabilities."""

    def gradient(self, scores: Floats, block: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Cross entropy and its gradient."""
        return cross_entropy_with_gradient(scores, block.grades)

    def quality(self, scores: Floats, block: Batch) -> Floats:
        """Minus the cross entropy."""
        return -cross_entropy_with_gradient(scores, block.grades)[0]

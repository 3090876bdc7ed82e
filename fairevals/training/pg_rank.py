"""PG-Rank and Fair-PG-Rank: policy gradients for utility, and for utility less disparity.

Singh & Joachims: Policy Learning for Fairness in Ranking. NeurIPS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.training.data import Batch
from fairevals.training.estimators import get_estimator
from fairevals.training.objectives import Objective
from fairevals.typing import Floats


@dataclass(frozen=True)
class PolicyGradient:
    """Minus the objective U − λ·D + γ·H of a Plackett-Luce policy, whose log-weights are the scores.

    With λ = 0 it is PG-Rank. `estimator` is `reinforce`, `pl-rank` or `exact`; `samples` counts rankings a step.

    >>> loss = PolicyGradient(Objective.of("nDCG", lam=1.0, disparity="D_ind"))
    >>> block = Batch(np.zeros((1, 2, 1)), np.array([[1.0, 0.0]]), np.ones((1, 2), bool))
    >>> value, gradient = loss.gradient(np.zeros((1, 2)), block, np.random.default_rng(0))
    >>> value.round(4), gradient.round(4)
    (array([-0.8155]), array([[-0.0923,  0.0923]]))
    """

    objective: Objective
    estimator: str = "exact"
    samples: int = 10

    def __post_init__(self) -> None:
        get_estimator(self.estimator, self.objective)

    def gradient(self, scores: Floats, block: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Minus the objective and its gradient, estimated."""
        estimate = get_estimator(self.estimator, self.objective)
        value, gradient = estimate(self.objective, scores, block, rng, self.samples)
        return -value, -gradient

    def quality(self, scores: Floats, block: Batch) -> Floats:
        """The objective, exact where possible, without entropy."""
        return self.objective.value(scores, block)

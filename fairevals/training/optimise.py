"""Adam, and the learner that joins it with a model."""

from __future__ import annotations

import numpy as np

from fairevals.training.models import Model
from fairevals.typing import Array, Floats


class Adam:
    """Kingma & Ba, ICLR 2015: θ ← θ − lr·m̂/(√v̂ + 1e-8), m and v running means of the gradient and its square.

    Weight decay adds `weight_decay`·θ to the gradient first, as an L2 penalty would (so do BanditRank's settings).
    From step to step the rate goes linearly from `lr` to `final_lr`·`lr`, which it has from step `of` on: a rate that
    stays the same never comes to rest where the objective has a kink, as disparities do.

    >>> parameters = {"theta": np.array([1.0])}
    >>> Adam(lr=0.1).step(parameters, {"theta": np.array([5.0])})
    >>> parameters["theta"].round(6)
    array([0.9])
    """

    def __init__(
        self,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        final_lr: float = 1.0,
        of: int = 1,
    ) -> None:
        self.lr, self.betas, self.weight_decay = lr, betas, weight_decay
        self.final_lr, self.of = final_lr, of
        self.steps = 0
        self._mean: dict[str, Floats] = {}
        self._square: dict[str, Floats] = {}

    def step(self, parameters: dict[str, Floats], gradients: dict[str, Floats]) -> None:
        """Move the parameters, in place, against the gradients."""
        self.steps += 1
        first, second = self.betas
        gone = min(1.0, (self.steps - 1) / max(1, self.of - 1))
        rate = self.lr * (1.0 + (self.final_lr - 1.0) * gone) / (1.0 - first**self.steps)
        correction = np.sqrt(1.0 - second**self.steps)
        for name, value in parameters.items():
            gradient = gradients[name]
            if self.weight_decay:
                gradient = gradient + self.weight_decay * value
            if name not in self._mean:
                self._mean[name], self._square[name] = np.zeros_like(value), np.zeros_like(value)
            mean, square = self._mean[name], self._square[name]
            mean += (1.0 - first) * (gradient - mean)
            square += (1.0 - second) * (gradient * gradient - square)
            value -= rate * mean / (np.sqrt(square) / correction + 1e-8)


class Learner:
    """A scorer made of a model and an optimiser."""

    def __init__(self, model: Model, optimiser: Adam) -> None:
        self.model, self.optimiser = model, optimiser

    def scores(self, X: Array) -> Floats:
        """The model's scores."""
        return self.model.scores(X)

    def backward(self, grad: Floats) -> None:
        """One step of the optimiser."""
        self.model.backward(grad)
        self.optimiser.step(self.model.parameters, self.model.gradients)

    def train(self, on: bool) -> None:
        """Whether the model drops units."""
        self.model.train(on)

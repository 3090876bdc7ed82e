"""Models that score documents by their features, their optimiser, and ridge regression.

A *scorer* is anything with the two methods of `Scorer`, so that a model from any library can be used; the documentation
of training shows an adapter for PyTorch. A `Model` is one of this package's.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.special import expit

from fairevals.errors import unknown
from fairevals.training.data import Dataset
from fairevals.typing import Array, Floats

ROWS = 1 << 14
"""How many documents are scored, or read by ridge regression, at a time."""


class Scorer(Protocol):
    """Anything that can be trained.

    If it has `train(on)`, that is called with True before training and with False before its scores are used for
    anything else (PyTorch's modules have it).
    """

    def scores(self, X: Array) -> Floats:
        """Scores (…) of documents with features (…, feature)."""
        ...

    def backward(self, grad: Floats) -> object:
        """Take a step, given the gradient of the loss with respect to the scores returned last."""
        ...


@dataclass
class Adam:
    """Kingma & Ba, ICLR 2015: θ ← θ − lr·m̂/(√v̂ + 1e-8), m and v running means of the gradient and its square.

    Weight decay adds `weight_decay`·θ to the gradient first, like an L2 penalty, as BanditRank does. The rate falls
    linearly from `lr` to `final_lr`·`lr` at step `total_steps`, and stays there: with a constant rate, training never
    settles where the objective has a kink, as disparities do.

    >>> parameters = {"theta": np.array([1.0])}
    >>> Adam(lr=0.1).step(parameters, {"theta": np.array([5.0])})
    >>> parameters["theta"].round(6)
    array([0.9])
    """

    lr: float = 0.001
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.0
    final_lr: float = 1.0
    total_steps: int = 1
    steps: int = field(default=0, init=False)
    _moments: dict[str, tuple[Floats, Floats]] = field(default_factory=dict, init=False)

    def step(self, parameters: dict[str, Floats], gradients: dict[str, Floats]) -> None:
        """Move the parameters in place, against the gradients."""
        self.steps += 1
        first, second = self.betas
        done = min(1.0, (self.steps - 1) / max(1, self.total_steps - 1))
        rate = self.lr * (1.0 + (self.final_lr - 1.0) * done) / (1.0 - first**self.steps)
        correction = np.sqrt(1.0 - second**self.steps)
        for name, value in parameters.items():
            gradient = gradients[name]
            if self.weight_decay:
                gradient = gradient + self.weight_decay * value
            mean, square = self._moments.setdefault(name, (np.zeros_like(value), np.zeros_like(value)))
            mean += (1.0 - first) * (gradient - mean)
            square += (1.0 - second) * (gradient * gradient - square)
            value -= rate * mean / (np.sqrt(square) / correction + 1e-8)


class Model(ABC):
    """A differentiable function of features with named parameters; `rng` draws them, and what dropout drops."""

    def __init__(self, features: int, dropout: float = 0.0, seed: int = 0) -> None:
        self.features, self.dropout = features, dropout
        self.rng = np.random.default_rng([seed, 0])
        self.parameters = self.initial()
        self.optimiser = Adam()
        self.training = False

    def train(self, on: bool) -> None:
        """Switch training mode on or off: dropout is only applied in training."""
        self.training = on

    @abstractmethod
    def initial(self) -> dict[str, Floats]:
        """Newly drawn parameters."""

    @abstractmethod
    def scores(self, X: Array) -> Floats:
        """Scores (…) of documents with features (…, feature)."""

    @abstractmethod
    def differentiate(self, grad: Floats) -> dict[str, Floats]:
        """The gradient of each parameter, from the gradient with respect to the scores returned last."""

    def backward(self, grad: Floats) -> None:
        """Take a step of the optimiser."""
        self.optimiser.step(self.parameters, self.differentiate(grad))

    def forget(self) -> None:
        """Drop what `scores` kept for `backward`, which may be large, and the state of the optimiser."""
        self.__dict__ = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        self.optimiser = Adam()

    def _drop(self, units: Floats) -> tuple[Floats, Floats | float]:
        """The units after dropout, and the factors they were multiplied with (expectation 1)."""
        if not self.training or not self.dropout:
            return units, 1.0
        kept: Floats = (self.rng.random(units.shape) >= self.dropout) / (1.0 - self.dropout)
        return units * kept, kept


class Linear(Model):
    """s = θ·x + b, θ drawn from ±0.001 (Singh & Joachims 2019, appendix B.4). Dropout applies to features.

    >>> model = Linear(2)
    >>> model.parameters = {"theta": np.array([1.0, 2.0]), "b": np.zeros(())}
    >>> model.scores(np.array([[1.0, 1.0], [0.0, 3.0]]))
    array([3., 6.])
    """

    def initial(self) -> dict[str, Floats]:
        return {"theta": self.rng.uniform(-0.001, 0.001, self.features), "b": np.zeros(())}

    def scores(self, X: Array) -> Floats:
        self._input, _ = self._drop(X)
        scores: Floats = self._input @ self.parameters["theta"] + self.parameters["b"]
        return scores

    def differentiate(self, grad: Floats) -> dict[str, Floats]:
        rows = self._input.reshape(-1, self.features)
        return {"theta": grad.ravel() @ rows, "b": np.asarray(grad.sum())}


class Highway(Model):
    """BanditRank's network: projection to 92 units (ReLU), three highway layers, one output.

    A highway layer is y = relu(Hx + h)·t + x·(1 − t) with the gate t = σ(Tx + u) (Srivastava et al. 2015); the
    gates begin closed, u = −1. The sigmoid that turns the output into an affinity in (0, 1) is part of
    `BanditRankLoss`, which needs its logarithm.
    """

    units = 92
    layers = 3

    def initial(self) -> dict[str, Floats]:
        """Weights from ±1/√(inputs), without layers from ±1/√units; biases are 0, those of the gates −1."""
        rng, bound = self.rng, 1 / np.sqrt(self.units)
        n = 1 / np.sqrt(max(self.features, 1)) if self.layers else bound
        shape = (self.units, self.units)
        p = {"W": rng.uniform(-n, n, (self.features, self.units)), "c": np.zeros(self.units)}
        for layer in range(self.layers):
            p[f"H{layer}"], p[f"h{layer}"] = rng.uniform(-bound, bound, shape), np.zeros(self.units)
            p[f"T{layer}"], p[f"u{layer}"] = rng.uniform(-bound, bound, shape), np.full(self.units, -1.0)
        return p | {"w": rng.uniform(-bound, bound, self.units), "b": np.zeros(())}

    def scores(self, X: Array) -> Floats:
        p = self.parameters
        self._input = X.reshape(-1, self.features)
        before = self._input @ p["W"] + p["c"]
        self._active = before > 0
        x, self._kept = self._drop(np.maximum(before, 0.0))
        self._layers: list[tuple[Floats, Floats, Floats, Floats | float]] = []
        for layer in range(self.layers):
            new = x @ p[f"H{layer}"] + p[f"h{layer}"]
            gate = expit(x @ p[f"T{layer}"] + p[f"u{layer}"])
            y, kept = self._drop(np.maximum(new, 0.0) * gate + x * (1.0 - gate))
            self._layers.append((x, new, gate, kept))
            x = y
        self._last = x
        scores: Floats = (x @ p["w"] + p["b"]).reshape(X.shape[:-1])
        return scores

    def differentiate(self, grad: Floats) -> dict[str, Floats]:
        p, g = self.parameters, grad.ravel()
        gradients: dict[str, Floats] = {"w": g @ self._last, "b": np.asarray(g.sum())}
        back = g[:, None] * p["w"]
        for layer in reversed(range(self.layers)):
            x, new, gate, kept = self._layers[layer]
            back = back * kept
            by_new = back * gate * (new > 0)
            by_gate = back * (np.maximum(new, 0.0) - x) * gate * (1.0 - gate)
            gradients[f"H{layer}"], gradients[f"h{layer}"] = x.T @ by_new, by_new.sum(axis=0)
            gradients[f"T{layer}"], gradients[f"u{layer}"] = x.T @ by_gate, by_gate.sum(axis=0)
            back = back * (1.0 - gate) + by_new @ p[f"H{layer}"].T + by_gate @ p[f"T{layer}"].T
        back = back * self._kept * self._active
        gradients["W"], gradients["c"] = self._input.T @ back, back.sum(axis=0)
        return gradients


class Hidden(Highway):
    """One hidden layer of 32 units: s = w·relu(Wx + c) + b, drawn from ±1/√32 (Singh & Joachims 2019, B.4)."""

    units = 32
    layers = 0


MODELS: Mapping[str, type[Model]] = {"linear": Linear, "hidden": Hidden, "highway": Highway}
"""The models that are trained step by step."""
TREES = "trees"
MODEL_NAMES = (*MODELS, TREES)


def make_model(name: str, features: int, dropout: float = 0.0, seed: int = 0) -> Model:
    """A model of the given name with newly drawn parameters.

    >>> make_model("hidden", 4).scores(np.zeros((2, 3, 4))).shape
    (2, 3)
    """
    if name == TREES:
        from fairevals.training.trees import Trees  # which is a Model, too

        return Trees(features)
    if name not in MODELS:
        raise unknown("model", name, MODEL_NAMES)
    return MODELS[name](features, dropout, seed)


def fit_ridge(data: Dataset, alpha: float = 1.0) -> Linear:
    """The linear model that minimises Σ (grade − θ·x − b)² + α‖θ‖² (Hoerl & Kennard 1970).

    >>> model = fit_ridge(Dataset.of([[[0.0], [1.0], [2.0]]], [[1, 3, 5]]), alpha=0.0)
    >>> model.parameters["theta"].round(6), model.parameters["b"].round(6)
    (array([2.]), np.float64(1.0))
    """
    rows, features = data.features.shape
    parts = [slice(start, start + ROWS) for start in range(0, rows, ROWS)]
    mean_x = (
        np.sum([data.model_features(part).sum(axis=0, dtype=np.float64) for part in parts], axis=0) / rows
    )
    mean_y = data.grades.mean()
    square, cross = np.zeros((features, features)), np.zeros(features)
    for part in parts:
        x = data.model_features(part) - mean_x
        square += x.T @ x
        cross += x.T @ (data.grades[part] - mean_y)
    square[np.diag_indices(features)] += alpha
    # With α = 0 and collinear features there are many solutions: take the smallest.
    theta = np.asarray(np.linalg.lstsq(square, cross, rcond=None)[0], dtype=np.float64)
    model = Linear(features)
    model.parameters = {"theta": theta, "b": np.asarray(mean_y - mean_x @ theta)}
    return model

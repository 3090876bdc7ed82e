"""Models: features in, a score a document out, and the way back.

A *scorer* is anything with two methods, so that one from any library plugs in: `scores(X)` gives the scores
(…) of features (…, feature), and `backward(grad)` takes the gradient of the loss by the scores that were
last given, and moves the scorer's parameters one step. If it has `train(on)`, that is called with True before
training and with False before its scores are used for anything else (PyTorch's modules have it).

A `Model` is one of this package's: its `backward` only computes `gradients`; `Learner` joins it with Adam.

With PyTorch, which this package does not need, a scorer is twenty lines, and `fairevals.training.fit(TorchScorer(8),
PolicyGradient(Objective.of("nDCG", lam=1.0)), train, valid)` trains it::

    import torch

    class TorchScorer:
        def __init__(self, features, lr=0.01):
            self.network = torch.nn.Sequential(
                torch.nn.Linear(features, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
            ).double()
            self.optimiser = torch.optim.Adam(self.network.parameters(), lr=lr)

        def scores(self, X):
            found = self.network(torch.as_tensor(X, dtype=torch.float64)).squeeze(-1)
            self.last = found if self.network.training else None
            return found.detach().numpy()

        def backward(self, grad):
            self.optimiser.zero_grad()
            self.last.backward(torch.as_tensor(grad))
            self.optimiser.step()
            self.last = None

        def train(self, on):
            self.network.train(on)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from fairevals.errors import UsageError
from fairevals.typing import Array, Floats


@runtime_checkable
class Scorer(Protocol):
    """What can be trained."""

    def scores(self, X: Array) -> Floats:
        """Scores (…) of documents with features (…, feature)."""
        ...

    def backward(self, grad: Floats) -> object:
        """Take a step, given the gradient of the loss by the scores that `scores` last returned."""
        ...


class Model(ABC):
    """A differentiable function of features with named parameters."""

    name: ClassVar[str]

    def __init__(self, features: int, dropout: float = 0.0) -> None:
        self.features, self.dropout = features, dropout
        self.parameters: dict[str, Floats] = {}
        self.gradients: dict[str, Floats] = {}
        self.training = False
        self.rng = np.random.default_rng(0)

    def train(self, on: bool) -> None:
        """Say whether the scores asked for are to be learned from: only then units are dropped."""
        self.training = on

    @abstractmethod
    def initialise(self, rng: np.random.Generator) -> None:
        """Draw the parameters; `rng` also decides what dropout drops."""

    @abstractmethod
    def scores(self, X: Array) -> Floats:
        """Scores (…) of documents with features (…, feature)."""

    @abstractmethod
    def backward(self, grad: Floats) -> None:
        """Set `gradients` from the gradient by the scores that were last given."""

    def forget(self) -> None:
        """Let go of what `scores` kept for `backward`: it may be a view of all the training data."""
        for name in [name for name in vars(self) if name.startswith("_")]:
            delattr(self, name)
        self.gradients = {}

    def _dropped(self, units: Floats) -> Floats | None:
        """What the units are multiplied with, so that their expectation stays; None where none is dropped."""
        if not self.training or not self.dropout:
            return None
        kept: Floats = (self.rng.random(units.shape) >= self.dropout) / (1.0 - self.dropout)
        return kept


class Linear(Model):
    """s = θ·x + b, drawn from ±0.001 (Singh & Joachims 2019, appendix B.4). Dropout drops features.

    >>> model = Linear(2)
    >>> model.parameters = {"theta": np.array([1.0, 2.0]), "b": np.zeros(())}
    >>> model.scores(np.array([[1.0, 1.0], [0.0, 3.0]]))
    array([3., 6.])
    """

    name = "linear"

    def initialise(self, rng: np.random.Generator) -> None:
        """Draw θ; b is 0."""
        self.rng = rng
        self.parameters = {"theta": rng.uniform(-0.001, 0.001, self.features), "b": np.zeros(())}

    def scores(self, X: Array) -> Floats:
        """θ·x + b."""
        kept = self._dropped(X)
        self._input = X if kept is None else X * kept
        scores: Floats = self._input @ self.parameters["theta"] + self.parameters["b"]
        return scores

    def backward(self, grad: Floats) -> None:
        """∂/∂θ = Σ grad·x, ∂/∂b = Σ grad."""
        rows = self._input.reshape(-1, self.features)
        self.gradients = {"theta": grad.ravel() @ rows, "b": np.asarray(grad.sum())}


class Hidden(Model):
    """One hidden layer of 32 units: s = w·relu(Wx + c) + b, drawn from ±1/√32 (Singh & Joachims 2019, B.4)."""

    name = "hidden"
    units = 32

    def initialise(self, rng: np.random.Generator) -> None:
        """Draw the weights; the biases are 0."""
        self.rng = rng
        bound = 1 / np.sqrt(self.units)
        self.parameters = {
            "W": rng.uniform(-bound, bound, (self.features, self.units)),
            "c": np.zeros(self.units),
            "w": rng.uniform(-bound, bound, self.units),
            "b": np.zeros(()),
        }

    def scores(self, X: Array) -> Floats:
        """w·relu(Wx + c) + b."""
        p = self.parameters
        self._input = X.reshape(-1, self.features)
        before = self._input @ p["W"] + p["c"]
        self._kept = self._dropped(before)
        self._active = before > 0
        self._units = np.maximum(before, 0.0) if self._kept is None else np.maximum(before, 0.0) * self._kept
        scores: Floats = (self._units @ p["w"] + p["b"]).reshape(X.shape[:-1])
        return scores

    def backward(self, grad: Floats) -> None:
        """Back through both layers."""
        g = grad.ravel()
        units = g[:, None] * self.parameters["w"] * self._active
        if self._kept is not None:
            units *= self._kept
        self.gradients = {
            "W": self._input.T @ units,
            "c": units.sum(axis=0),
            "w": g @ self._units,
            "b": np.asarray(g.sum()),
        }


class Highway(Model):
    """BanditRank's network: projection to 92 units (ReLU), three highway layers, one output.

    A highway layer is y = relu(Hx + h)·t + x·(1 − t) with the gate t = σ(Tx + u) (Srivastava et al. 2015); the
    gates begin closed, u = −1. The sigmoid behind the output, which makes an affinity in (0, 1) of the score, is
    part of `fairevals.training.bandit_rank`, where its logarithm is needed.
    """

    name = "highway"
    units = 92
    layers = 3

    def initialise(self, rng: np.random.Generator) -> None:
        """Draw weights from ±1/√(inputs); biases are 0, those of the gates −1."""
        self.rng = rng
        n, many = 1 / np.sqrt(max(self.features, 1)), 1 / np.sqrt(self.units)
        shape = (self.units, self.units)
        p: dict[str, Floats] = {
            "W": rng.uniform(-n, n, (self.features, self.units)),
            "c": np.zeros(self.units),
        }
        for layer in range(self.layers):
            p[f"H{layer}"], p[f"h{layer}"] = rng.uniform(-many, many, shape), np.zeros(self.units)
            p[f"T{layer}"], p[f"u{layer}"] = rng.uniform(-many, many, shape), np.full(self.units, -1.0)
        p["w"], p["b"] = rng.uniform(-many, many, self.units), np.zeros(())
        self.parameters = p

    def scores(self, X: Array) -> Floats:
        """The output before the sigmoid."""
        p = self.parameters
        self._input = X.reshape(-1, self.features)
        before = self._input @ p["W"] + p["c"]
        self._active = before > 0
        x, self._kept = self._drop(np.maximum(before, 0.0))
        self._layers: list[tuple[Floats, Floats, Floats, Floats | None]] = []
        for layer in range(self.layers):
            new = x @ p[f"H{layer}"] + p[f"h{layer}"]
            gate = sigmoid(x @ p[f"T{layer}"] + p[f"u{layer}"])
            y, kept = self._drop(np.maximum(new, 0.0) * gate + x * (1.0 - gate))
            self._layers.append((x, new, gate, kept))
            x = y
        self._last = x
        scores: Floats = (x @ p["w"] + p["b"]).reshape(X.shape[:-1])
        return scores

    def backward(self, grad: Floats) -> None:
        """Back through all layers."""
        p, g = self.parameters, grad.ravel()
        found: dict[str, Floats] = {"w": g @ self._last, "b": np.asarray(g.sum())}
        back = g[:, None] * p["w"]
        for layer in reversed(range(self.layers)):
            x, new, gate, kept = self._layers[layer]
            if kept is not None:
                back = back * kept
            by_new = back * gate * (new > 0)
            by_gate = back * (np.maximum(new, 0.0) - x) * gate * (1.0 - gate)
            found[f"H{layer}"], found[f"h{layer}"] = x.T @ by_new, by_new.sum(axis=0)
            found[f"T{layer}"], found[f"u{layer}"] = x.T @ by_gate, by_gate.sum(axis=0)
            back = back * (1.0 - gate) + by_new @ p[f"H{layer}"].T + by_gate @ p[f"T{layer}"].T
        if self._kept is not None:
            back = back * self._kept
        back = back * self._active
        found["W"], found["c"] = self._input.T @ back, back.sum(axis=0)
        self.gradients = {name: found[name] for name in p}

    def _drop(self, units: Floats) -> tuple[Floats, Floats | None]:
        kept = self._dropped(units)
        return (units, None) if kept is None else (units * kept, kept)


MODELS: Mapping[str, type[Model]] = {model.name: model for model in (Linear, Hidden, Highway)}


def make_model(name: str, features: int, dropout: float = 0.0, seed: int = 0) -> Model:
    """A model of that name with drawn parameters.

    >>> make_model("hidden", 4).scores(np.zeros((2, 3, 4))).shape
    (2, 3)
    """
    if name not in MODELS:
        raise UsageError(f"unknown model {name!r}; known are {', '.join(MODELS)}")
    model = MODELS[name](features, dropout)
    model.initialise(np.random.default_rng([seed, 0]))
    return model


def sigmoid(x: Floats) -> Floats:
    """1/(1 + e^{−x}), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """
    small = np.exp(-np.abs(x))
    result: Floats = np.where(x >= 0, 1.0, small) / (1.0 + small)
    return result


def log_sigmoid(x: Floats) -> Floats:
    """log σ(x), without overflow.

    >>> log_sigmoid(np.array([-1000.0, 0.0])).round(4)
    array([-1.000e+03, -6.931e-01])
    """
    result: Floats = -np.logaddexp(0.0, -x)
    return result

"""The training loop: a scorer, a loss and data; with validation data it stops early and returns the best scorer."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from fairevals.errors import UsageError
from fairevals.training.data import Batch, Dataset
from fairevals.training.models import Scorer
from fairevals.typing import Floats

S = TypeVar("S", bound=Scorer)


class Loss(Protocol):
    """What a method minimises, as a function of the scores."""

    def gradient(self, scores: Floats, batch: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The loss of each topic, and its gradient (topics, documents) with respect to the scores."""
        ...

    def quality(self, scores: Floats, batch: Batch) -> Floats:
        """What models are selected by on validation data, for each topic: higher is better; deterministic."""
        ...


@dataclass(frozen=True)
class Epoch:
    """The state of training after an epoch; `scorer` is the one being trained, and will change."""

    number: int
    total: int
    loss: float
    """The mean over topics, each before the step taken for it; NaN before the first epoch."""
    valid: float | None
    """The mean quality on the validation data."""
    best: bool
    scorer: Scorer


@dataclass(frozen=True)
class Fitted(Generic[S]):
    """A trained scorer and its learning curve: epoch, loss, valid, best."""

    scorer: S
    curve: tuple[tuple[int, float, float | None, bool], ...]


def fit(
    scorer: S,
    loss: Loss,
    train: Dataset,
    valid: Dataset | None = None,
    *,
    epochs: int = 20,
    batch: int = 1,
    patience: int | None = None,
    seed: int = 0,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> Fitted[S]:
    """Train a scorer, with one step per batch of topics in a new random order every epoch.

    With validation data the quality is computed before training and after each epoch; training ends when it has not
    risen for `patience` epochs, and the best scorer is returned. Without, the last one is returned. `batch=0` takes all
    topics in one step. Two calls with the same arguments give the same result.
    """
    if len(train) == 0:
        raise UsageError("there is no topic to train on")
    order_rng, rng = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    curve: list[tuple[int, float, float | None, bool]] = []
    best, best_at, highest = scorer, 0, -np.inf
    size = batch or len(train)
    for number in range(epochs + 1):
        mean = _one_epoch(scorer, loss, train, size, order_rng, rng) if number else float("nan")
        quality = None if valid is None else _mean_quality(scorer, loss, valid)
        improved = quality is None or quality > highest
        if improved:
            highest, best_at = (quality if quality is not None else highest), number
            best = scorer if quality is None else copy.deepcopy(scorer)
        curve.append((number, mean, quality, improved))
        if on_epoch is not None:
            on_epoch(Epoch(number, epochs, mean, quality, improved, scorer))
        if patience is not None and valid is not None and number - best_at >= patience:
            break
    _set_training(best, False)
    return Fitted(best, tuple(curve))


def _mean_quality(scorer: Scorer, loss: Loss, data: Dataset) -> float:
    _set_training(scorer, False)
    total = 0.0
    for _, batch in data.batches():
        total += float(loss.quality(batch.masked(scorer.scores(batch.features)), batch).sum())
    return total / len(data)


def _one_epoch(
    scorer: Scorer,
    loss: Loss,
    data: Dataset,
    size: int,
    order_rng: np.random.Generator,
    rng: np.random.Generator,
) -> float:
    _set_training(scorer, True)
    # The order does not matter if all topics make one step; in their own order, topics of equal length need no copy.
    order = order_rng.permutation(len(data)) if size < len(data) else np.arange(len(data))
    grade = data.max_grade
    total = 0.0
    for start in range(0, len(data), size):
        batch = data.batch(order[start : start + size], grade)
        scores = batch.masked(scorer.scores(batch.features))
        value, gradient = loss.gradient(scores, batch, rng)
        if not np.isfinite(gradient).all():
            raise UsageError("training diverged: the gradient is not finite; try a smaller learning rate")
        scorer.backward(gradient / len(value))
        total += float(value.sum())
    return total / len(data)


def _set_training(scorer: Scorer, on: bool) -> None:
    switch = getattr(scorer, "train", None)
    if callable(switch):
        switch(on)

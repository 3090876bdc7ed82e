"""The training loop: a scorer, a loss, data; early stopping that returns the best."""

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
    """What a method minimises, seen from the scores."""

    def gradient(self, scores: Floats, block: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Loss of each topic, and its gradient by the scores (topics, documents)."""
        ...

    def quality(self, scores: Floats, block: Batch) -> Floats:
        """What models are chosen by on validation data, a number a topic: higher is better, nothing is drawn anew."""
        ...


@dataclass(frozen=True)
class Epoch:
    """Where training stands; `scorer` is the one being trained, to look at and not to keep."""

    number: int
    of: int
    loss: float
    """Mean over the topics, each before the step that it caused; NaN before the first epoch."""
    valid: float | None
    """Mean quality on the validation data."""
    best: bool
    scorer: Scorer


@dataclass(frozen=True)
class Fitted(Generic[S]):
    """A trained scorer, and the learning curve: epoch, loss, valid, best."""

    scorer: S
    curve: tuple[tuple[int, float, float | None, bool], ...]

    @property
    def best_epoch(self) -> int:
        """The epoch that the scorer is from; 0 is before training."""
        return max(epoch for epoch, _, _, best in self.curve if best)


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
    """Train a scorer, a step a batch of topics in an order drawn anew every epoch.

    With validation data the quality is looked at before training and after each epoch, training ends when it has not
    risen for `patience` epochs, and the scorer as it was at its best is returned; without, the last one is.
    `batch=0` makes one step of all topics. Two calls with the same arguments do the same.
    """
    if len(train) == 0:
        raise UsageError("there is no topic to train on")
    order_rng, rng = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    curve: list[tuple[int, float, float | None, bool]] = []
    best, best_at, highest = scorer, 0, -np.inf
    for number in range(epochs + 1):
        mean = (
            _one_epoch(scorer, loss, train, batch or len(train), order_rng, rng) if number else float("nan")
        )
        quality = None if valid is None else mean_quality(scorer, loss, valid)
        improved = quality is None or quality > highest
        if improved:
            highest, best_at = (quality if quality is not None else highest), number
            best = scorer if quality is None else copy.deepcopy(scorer)
        curve.append((number, mean, quality, improved))
        if on_epoch is not None:
            on_epoch(Epoch(number, epochs, mean, quality, improved, scorer))
        if patience is not None and valid is not None and number - best_at >= patience:
            break
    _mode(best, False)
    return Fitted(best, tuple(curve))


def mean_quality(scorer: Scorer, loss: Loss, data: Dataset) -> float:
    """Mean over the topics of the loss's quality."""
    _mode(scorer, False)
    total = 0.0
    for _, block in data.blocks():
        total += float(loss.quality(block.masked(scorer.scores(block.features)), block).sum())
    return total / len(data)


def _one_epoch(
    scorer: Scorer,
    loss: Loss,
    data: Dataset,
    batch: int,
    order_rng: np.random.Generator,
    rng: np.random.Generator,
) -> float:
    _mode(scorer, True)
    # All topics in one step stand in their own order: it does not matter, and equally long ones need no copy.
    order = order_rng.permutation(len(data)) if batch < len(data) else np.arange(len(data))
    grade = data.max_grade
    total = 0.0
    for start in range(0, len(data), batch):
        block = data.block(order[start : start + batch], grade)
        scores = block.masked(scorer.scores(block.features))
        value, gradient = loss.gradient(scores, block, rng)
        if not np.isfinite(gradient).all():
            raise UsageError(
                "training diverged: the gradient is no longer finite; try a smaller learning rate"
            )
        scorer.backward(gradient / len(value))
        total += float(value.sum())
    return total / len(data)


def _mode(scorer: Scorer, training: bool) -> None:
    switch = getattr(scorer, "train", None)
    if callable(switch):
        switch(training)

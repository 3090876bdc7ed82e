"""Training: the loop for any scorer and loss, policies from settings and data, and sweeps over λ and seeds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from fairevals.errors import UsageError, escape
from fairevals.training.data import ATTRIBUTE, Batch, Dataset, Standardiser, groups_needed
from fairevals.training.losses import BanditRankLoss, DeltrLoss, ListNetLoss, PolicyGradient
from fairevals.training.models import Adam, Scorer, fit_ridge, make_model
from fairevals.training.objectives import WeightedMeasure, parse_utility
from fairevals.training.policies import TrainedPolicy
from fairevals.training.settings import FAIR, Settings
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


def train_policy(
    settings: Settings,
    train: Dataset,
    valid: Dataset | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> TrainedPolicy:
    """Train one policy.

    >>> data = Dataset.of([[[0.0], [1.0]]] * 4, [[0, 1]] * 4)
    >>> policy = train_policy(Settings.for_method("pg-rank", lr=0.1), data)
    >>> bool(np.all(np.diff(policy.predict(data)[:2]) > 1))
    True
    """
    if settings.method in ("lp", "deltr") and train.membership is None:
        raise groups_needed(settings.method)
    train = settings.prepared(train)
    features = train.features.shape[1]
    standardiser = Standardiser.fit(train) if settings.standardise else Standardiser.identity(features)
    train = standardiser.apply(train)
    valid = None if valid is None else standardiser.apply(settings.prepared(valid))
    if settings.method in ("ridge", "lp"):
        return TrainedPolicy(settings, fit_ridge(train, settings.alpha), standardiser, train.groups)
    steps = settings.epochs * -(-len(train) // (settings.batch or len(train))) if len(train) else 0
    model = make_model(settings.model, features, settings.dropout, settings.seed)
    betas = (settings.beta1, settings.beta2)
    model.optimiser = Adam(settings.lr, betas, settings.weight_decay, settings.final_lr, steps)
    fitted = fit(
        model,
        _make_loss(settings, train),
        train,
        valid,
        epochs=settings.epochs,
        batch=settings.batch,
        patience=settings.patience or None,
        seed=settings.seed,
        on_epoch=on_epoch,
    )
    fitted.scorer.forget()
    return TrainedPolicy(settings, fitted.scorer, standardiser, train.groups, fitted.curve)


def _make_loss(settings: Settings, data: Dataset) -> Loss:
    """The loss of a method that is trained step by step, if the data has what it needs."""
    if settings.method == "listnet":
        return ListNetLoss()
    if settings.method == "deltr":
        return DeltrLoss(settings.lam, _protected_group(settings.protected, data))
    if settings.method == "bandit-rank":
        reward = parse_utility(settings.reward)
        _check_attributes(reward, data)
        return BanditRankLoss(
            reward, settings.reward_weight, settings.epsilon, settings.max_drawn, settings.samples
        )
    _check_attributes(settings.objective.parts, data)
    return PolicyGradient(settings.objective, settings.estimator, settings.samples)


def _check_attributes(parts: Sequence[WeightedMeasure], data: Dataset) -> None:
    """Raise if a measure needs an attribute that the data does not have."""
    for measure in (part.measure for part in parts):
        if data.membership is None and (measure.attributes_used() or measure.attributes == "all"):
            raise groups_needed(str(measure))
        for name in measure.attributes_used():
            if name != ATTRIBUTE:
                raise UsageError(
                    f"{measure}: the attribute of training data is {ATTRIBUTE!r}, not {escape(name)!r}"
                )


def _protected_group(name: str, data: Dataset) -> int:
    """The number of the group of that name; by default, of the one with the fewest documents."""
    if data.membership is not None and not name:
        return int(np.argmin(data.membership.sum(axis=0)))
    if name not in data.groups:
        groups = ", ".join(map(escape, data.groups))
        raise UsageError(f"there is no group {escape(name)!r}; the groups are {groups}")
    return data.groups.index(name)


def sweep(
    method: str,
    train: Dataset,
    valid: Dataset | None = None,
    *,
    lambdas: Sequence[float] = (),
    seeds: Sequence[int] = (0,),
    executor: Executor | None = None,
    progress: Callable[[int, int], object] | None = None,
    **settings: Any,
) -> list[TrainedPolicy]:
    """Train a policy for every λ and every seed, in that order; in an executor's processes if one is given.

    `progress(done, total)` is called after every epoch, or with an executor after every policy.
    """
    default = Settings.for_method(method, **settings)
    if lambdas and method not in FAIR and any(lambdas):
        raise UsageError(f"{method} has no λ; methods that have one are {', '.join(FAIR)}")
    if len(set(lambdas)) < len(lambdas) or len(set(seeds)) < len(seeds):
        raise UsageError("a λ or a seed is given twice")
    runs = [
        replace(default, lam=float(lam), seed=int(seed))
        for lam in lambdas or (default.lam,)
        for seed in seeds
    ]
    report = progress or (lambda done, total: None)
    policies = []
    if executor is not None:
        for policy in executor.map(partial(train_policy, train=train, valid=valid), runs):
            policies.append(policy)
            report(len(policies), len(runs))
        return policies
    for number, run in enumerate(runs):

        def show(epoch: Epoch, number: int = number) -> None:
            per_run = epoch.total + 1
            report(number * per_run + epoch.number + 1, len(runs) * per_run)

        policies.append(train_policy(run, train, valid, show))
    report(len(runs), len(runs))
    return policies

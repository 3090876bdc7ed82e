"""Training: the loop for any scorer and loss, and policies from settings and data."""

import copy
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

import numpy as np

from fairevals.errors import FairevalsError, UsageError, pluralize, unknown
from fairevals.measures import Measure
from fairevals.training.boosting import fit_trees
from fairevals.training.data import Batch, Dataset, Standardiser, groups_needed
from fairevals.training.losses import BanditRankLoss, DeltrLoss, ListNetLoss, PolicyGradient
from fairevals.training.models import TREES, Adam, Model, Scorer, fit_ridge, make_model
from fairevals.training.objectives import Differentiable, parse_utility
from fairevals.training.policies import Epoch, FitRecord, TrainedPolicy
from fairevals.training.selection import TEMPERATURES, Training, topics_defined
from fairevals.training.settings import ADAM, Settings
from fairevals.training.solvers import FULL_BATCH, Loss
from fairevals.typing import Array

S = TypeVar("S", bound=Scorer)


def fit(
    scorer: S,
    loss: Loss,
    train: Dataset,
    valid: Dataset | None = None,
    *,
    epochs: int = 20,
    batch: int = 1,
    patience: int = 0,
    keep: str = "best",
    seed: int = 0,
    on_epoch: Callable[[Epoch, S], object] | None = None,
) -> tuple[S, tuple[Epoch, ...]]:
    """Train a scorer, with one step per batch of topics in a new random order every epoch; also its learning curve.

    The quality on validation data, or else on the training data, is computed before training and after each epoch, and
    the best scorer is returned; with `keep="last"` and no validation data, the last. With validation data training ends
    when the quality has not risen for `patience` epochs (0: never). `batch=0` takes all topics in one step.
    `on_epoch(epoch, scorer)` is called before training and after each epoch, with the scorer being trained. Two calls
    with the same arguments give the same result.
    """
    if len(train) == 0:
        raise UsageError("there is no topic to train on")
    order_rng, rng = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    curve: list[Epoch] = []
    best, best_at, highest = scorer, 0, -np.inf
    order, size = np.arange(len(train)), batch or len(train)
    for number in range(epochs + 1):
        mean = float("nan")
        if number:
            _set_training(scorer, True)
            if size < len(train):  # the order does not matter if all topics make one step
                order = order_rng.permutation(len(train))
            parts = (train.batch(order[at : at + size]) for at in range(0, len(train), size))
            mean = math.fsum(_step(scorer, loss, part, rng) for part in parts) / len(train)
        quality = math.nan
        if valid is not None or keep == "best":
            quality = _mean_quality(scorer, loss, train if valid is None else valid)
        improved = not quality <= highest
        if improved:
            best_at = number
            if not math.isnan(quality):
                best, highest = copy.deepcopy(scorer), quality
        curve.append(Epoch(number, mean, None if valid is None else quality, improved))
        if on_epoch is not None:
            on_epoch(curve[-1], scorer)
        if patience and valid is not None and number - best_at >= patience:
            break
    if best_at == curve[-1].number:
        best = scorer  # not its copy
    _set_training(best, False)
    return best, tuple(curve)


def _mean_quality(scorer: Scorer, loss: Loss, data: Dataset) -> float:
    _set_training(scorer, False)
    parts = ((batch, batch.masked(scorer.scores(batch.features))) for batch in data.batches())
    return math.fsum(float(loss.quality(scores, batch).sum()) for batch, scores in parts) / len(data)


def _step(scorer: Scorer, loss: Loss, batch: Batch, rng: np.random.Generator) -> float:
    """Take one step, and return the sum of the loss over the topics before it."""
    value, gradient = loss.gradient(batch.masked(scorer.scores(batch.features)), batch, rng)
    with np.errstate(over="ignore", invalid="ignore"):  # the result is checked
        scorer.backward(gradient / len(value))
    if not all(np.isfinite(array).all() for array in (gradient, *_parameters(scorer))):
        raise UsageError("training diverged: a number became infinite; try a smaller learning rate")
    return float(value.sum())


def _parameters(scorer: Scorer) -> Iterable[Array]:
    """The arrays of a model of this package; a scorer from elsewhere need not have any."""
    return scorer.parameters.values() if isinstance(scorer, Model) else ()


def _set_training(scorer: Scorer, on: bool) -> None:
    getattr(scorer, "train", lambda on: None)(on)


def train_policy(
    settings: Settings,
    train: Dataset,
    valid: Dataset | None = None,
    on_epoch: Callable[[Epoch, Model], object] | None = None,
) -> TrainedPolicy:
    """Train one policy.

    >>> data = Dataset.of([[[0.0], [1.0]]] * 4, [[0, 1]] * 4)
    >>> policy = train_policy(Settings.for_method("pg-rank", lr=0.1), data)
    >>> bool(np.all(np.diff(policy.predict(data)[:2]) > 1))
    True
    """
    loss = checked_loss(settings, train, valid)
    train, features = settings.prepared(train), train.features.shape[1]
    if settings.model == TREES and loss is not None:
        _require_no_folds(settings)
        held = None if valid is None else settings.prepared(valid)
        boosted, curve, record = fit_trees(settings, loss, train, held, on_epoch)
        scale = Standardiser.identity(features)  # splits do not depend on it
        return TrainedPolicy(settings, boosted, scale, train.groups, curve, topics=len(train), fit=record)
    standardiser = Standardiser.fit(train) if settings.standardise else Standardiser.identity(features)
    train = replace(train, standardiser=standardiser)
    if loss is None:
        return TrainedPolicy(
            settings, fit_ridge(train, settings.alpha), standardiser, train.groups, topics=len(train)
        )
    if valid is not None:
        valid = replace(settings.prepared(valid), standardiser=standardiser)
    model = make_model(settings.model, features, settings.dropout, settings.seed)
    if _is_full_batch(settings, loss, train):
        solution, record = Training(settings, loss).train(model, train, valid, on_epoch)
        curve = solution.curve
    else:
        _require_no_folds(settings)
        model, curve, record = _train_in_batches(settings, model, loss, train, valid, on_epoch)
    model.forget()
    return TrainedPolicy(settings, model, standardiser, train.groups, curve, topics=len(train), fit=record)


def checked_loss(settings: Settings, train: Dataset, valid: Dataset | None = None) -> Loss | None:
    """What a method minimises step by step, None for ridge and lp; an error if the data lacks what it needs."""
    for data in (train, valid):
        if data is not None:
            data.require_relevant()
    if settings.method in ("lp", "deltr") and train.membership is None:
        raise groups_needed(settings.method)
    if settings.method == "lp":
        _check_groups(settings.group_disparity, train)
    return None if settings.method in ("ridge", "lp") else _make_loss(settings, train, valid)


def is_trained_in_batches(settings: Settings, data: Dataset) -> bool:
    """Whether a policy is trained in a number of passes over the data that is known before; False if it cannot be."""
    if settings.model == TREES or settings.method in ("ridge", "lp"):
        return settings.model == TREES
    with suppress(FairevalsError):  # training will report it
        return not _is_full_batch(settings, _make_loss(settings, data), data)
    return False


def _is_full_batch(settings: Settings, loss: Loss, data: Dataset) -> bool:
    """Whether a policy is trained by L-BFGS on all topics at once; see the setting `solver`."""
    is_exact = loss.is_exact if isinstance(loss, PolicyGradient) else isinstance(loss, ListNetLoss)
    is_exact = is_exact and not settings.dropout
    if settings.max_disparity is not None or settings.solver == "lbfgs":
        if is_exact:
            return True
        why = "exact gradients of functions of exposure, without dropout"
        raise UsageError(f"{settings.method}: L-BFGS needs {why}; adam is the other solver")
    chooses_adam = any(getattr(settings, name) != getattr(Settings, name) for name in ADAM)
    return settings.solver == "auto" and is_exact and not chooses_adam and data.features.size <= FULL_BATCH


def _require_no_folds(settings: Settings) -> None:
    """Raise an error if folds were asked for where nothing is chosen by them."""
    if settings.folds:
        other = "give validation data instead"
        raise UsageError(
            f"only what L-BFGS trains is chosen by folds, and this is not trained by it; {other}"
        )


def _train_in_batches(
    settings: Settings,
    model: Model,
    loss: Loss,
    train: Dataset,
    valid: Dataset | None,
    on_epoch: Callable[[Epoch, Model], object] | None,
) -> tuple[Model, tuple[Epoch, ...], FitRecord]:
    """Train a model by Adam; a temperature that is not given is chosen on validation data for Plackett-Luce losses."""
    epochs = settings.passes(len(train))
    steps = epochs * math.ceil(len(train) / (settings.batch or len(train) or 1))
    decay = settings.weight_decay or 0.0
    model.optimiser = Adam(settings.lr, (settings.beta1, settings.beta2), decay, settings.final_lr, steps)
    options = {name: getattr(settings, name) for name in ("batch", "patience", "seed", "keep")}
    is_last = settings.keep == "last" and valid is None  # then no epoch was compared with the start
    before = _mean_quality(model, loss, train) if is_last else math.nan
    model, curve = fit(model, loss, train, valid, epochs=epochs, on_epoch=on_epoch, **options)
    improved = any(epoch.best for epoch in curve[1:])
    if is_last:
        improved = _mean_quality(model, loss, train) > before
    record = FitRecord("adam", improved, decay, settings.temperature or 1.0)
    if valid is not None and settings.temperature is None and isinstance(loss, PolicyGradient):
        reached = Training(settings, loss).measure(model, valid, TEMPERATURES).value.mean(axis=1)
        chosen = TEMPERATURES[int(np.argmax(reached))]
        record = replace(record, temperature=chosen, chosen_on="validation data")
    return model, curve, record


def _make_loss(settings: Settings, data: Dataset, valid: Dataset | None = None) -> Loss:
    """The loss of a method that is trained step by step, if the data has what it needs."""
    if settings.method == "listnet":
        return ListNetLoss()
    if settings.method == "deltr":
        return DeltrLoss(settings.lam, _protected_group(settings.protected, data))
    is_bandit = settings.method == "bandit-rank"
    parts = parse_utility(settings.reward) if is_bandit else settings.objective.parts
    for part in parts:
        _check_groups(part.measure, data)
        if valid is not None:
            _check_groups(part.measure, valid, " on the validation data")
    if is_bandit:
        share, most = settings.reward_weight, settings.max_drawn
        return BanditRankLoss(parts, share, settings.epsilon, most, settings.samples)
    if settings.objective.lam:
        _require_defined(settings, data)
    return PolicyGradient(settings.objective, settings.estimator, settings.samples)


def _check_groups(measure: Measure, data: Dataset, where: str = "") -> None:
    """Raise an error unless the data has the groups that the measure needs."""
    if data.membership is None and (measure.attributes_used() or measure.attributes == "all"):
        raise groups_needed(f"{measure}{where}")
    known = data.attributes or (data.attribute,)
    for name in measure.attributes_used():
        if name not in known:
            raise UsageError(f"{measure}: {unknown('attribute', name, known)}")


def _require_defined(settings: Settings, data: Dataset) -> None:
    """Raise an error if the disparity is undefined on all topics: nothing but utility would be trained for."""
    disparity = settings.objective.disparity
    if not isinstance(disparity, Differentiable) or not len(data) or topics_defined(settings, data):
        return
    size = f"{pluralize(len(data), 'training topic')} ({pluralize(len(data.features), 'sample')})"
    why = f"{disparity} is undefined on all of {size}, so it cannot be trained for"
    if data.membership is not None and disparity.attributes_used():
        held = [np.count_nonzero(data.membership[rows].any(axis=0)) for rows in data.slices]
        if max(held) < 2:
            advice = "in GridSearchCV, groups may be those of GroupKFold: set_split_request(groups='qid') gives it qid"
            raise UsageError(
                f"{why}: no topic has documents of two groups. Are the groups the topics? ({advice})"
            )
    raise UsageError(f"{why}: are there relevant documents, of two groups in a topic?")


def _protected_group(name: str, data: Dataset) -> int:
    """The number of the group of that name; by default, of the one with the fewest documents."""
    if data.membership is not None and not name:
        return int(np.argmin(data.membership.sum(axis=0)))
    if name not in data.groups:
        raise unknown("group", name, data.groups)
    return data.groups.index(name)

"""Training: the loop for any scorer and loss, policies from settings and data, and sweeps over λ and seeds."""

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Protocol, TypeVar

import numpy as np

from fairevals.errors import UsageError, pluralize, unknown
from fairevals.evaluation.workers import Workers
from fairevals.measures import Measure
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training.data import Batch, Dataset, Standardiser, groups_needed
from fairevals.training.losses import BanditRankLoss, DeltrLoss, ListNetLoss, PolicyGradient
from fairevals.training.models import Adam, Model, Scorer, fit_ridge, make_model
from fairevals.training.objectives import Differentiable, parse_utility
from fairevals.training.policies import Epoch, TrainedPolicy
from fairevals.training.settings import WITH_LAMBDA, Settings
from fairevals.typing import Array, Floats

S = TypeVar("S", bound=Scorer)


class Loss(Protocol):
    """What a method minimises, as a function of the scores."""

    def gradient(self, scores: Floats, batch: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The loss of each topic, and its gradient (topics, documents) with respect to the scores."""
        ...

    def quality(self, scores: Floats, batch: Batch) -> Floats:
        """What models are selected by on validation data, for each topic: higher is better; deterministic."""
        ...


def fit(
    scorer: S,
    loss: Loss,
    train: Dataset,
    valid: Dataset | None = None,
    *,
    epochs: int = 20,
    batch: int = 1,
    patience: int = 0,
    seed: int = 0,
    on_epoch: Callable[[Epoch, S], object] | None = None,
) -> tuple[S, tuple[Epoch, ...]]:
    """Train a scorer, with one step per batch of topics in a new random order every epoch; also its learning curve.

    With validation data the quality is computed before training and after each epoch; training ends when it has not
    risen for `patience` epochs (0: never), and the best scorer is returned. Without, the last one is returned.
    `batch=0` takes all topics in one step. `on_epoch(epoch, scorer)` is called before training and after each epoch,
    with the scorer being trained. Two calls with the same arguments give the same result.
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
        quality = None if valid is None else _mean_quality(scorer, loss, valid)
        improved = quality is None or quality > highest
        if improved:
            best_at = number
            if quality is not None:
                best, highest = copy.deepcopy(scorer), quality
        curve.append(Epoch(number, mean, quality, improved))
        if on_epoch is not None:
            on_epoch(curve[-1], scorer)
        if patience and number - best_at >= patience:
            break
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
        raise UsageError(
            "training diverged: a number became infinite; try a smaller learning rate or weight decay"
        )
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
    if settings.method in ("lp", "deltr") and train.membership is None:
        raise groups_needed(settings.method)
    if settings.method == "lp":
        _check_groups(settings.group_disparity, train)
    train, features = settings.prepared(train), train.features.shape[1]
    standardiser = Standardiser.fit(train) if settings.standardise else Standardiser.identity(features)
    train = replace(train, features=standardiser(train.features))
    if settings.method in ("ridge", "lp"):
        return TrainedPolicy(
            settings, fit_ridge(train, settings.alpha), standardiser, train.groups, topics=len(train)
        )
    if valid is not None:
        valid = replace(valid, features=standardiser(settings.prepared(valid).features))
    steps = settings.epochs * math.ceil(len(train) / (settings.batch or len(train) or 1))
    model = make_model(settings.model, features, settings.dropout, settings.seed)
    betas = (settings.beta1, settings.beta2)
    model.optimiser = Adam(settings.lr, betas, settings.weight_decay, settings.final_lr, steps)
    options = {name: getattr(settings, name) for name in ("epochs", "batch", "patience", "seed")}
    trained, curve = fit(model, _make_loss(settings, train), train, valid, on_epoch=on_epoch, **options)
    trained.forget()
    return TrainedPolicy(settings, trained, standardiser, train.groups, curve, topics=len(train))


def _make_loss(settings: Settings, data: Dataset) -> Loss:
    """The loss of a method that is trained step by step, if the data has what it needs."""
    if settings.method == "listnet":
        return ListNetLoss()
    if settings.method == "deltr":
        return DeltrLoss(settings.lam, _protected_group(settings.protected, data))
    is_bandit = settings.method == "bandit-rank"
    parts = parse_utility(settings.reward) if is_bandit else settings.objective.parts
    for part in parts:
        _check_groups(part.measure, data)
    if is_bandit:
        share, most = settings.reward_weight, settings.max_drawn
        return BanditRankLoss(parts, share, settings.epsilon, most, settings.samples)
    if settings.objective.lam:
        _require_defined(settings.objective.disparity, data)
    return PolicyGradient(settings.objective, settings.estimator, settings.samples)


def _check_groups(measure: Measure, data: Dataset) -> None:
    """Raise an error unless the data has the groups that the measure needs."""
    if data.membership is None and (measure.attributes_used() or measure.attributes == "all"):
        raise groups_needed(str(measure))
    for name in measure.attributes_used():
        if name != data.attribute:
            raise UsageError(f"{measure}: {unknown('attribute', name, [data.attribute])}")


def _require_defined(disparity: Measure, data: Dataset) -> None:
    """Raise an error if the disparity is undefined on all topics: silently, nothing but utility would be trained for.

    It is computed for the uniform policy, which gives exposure to every document.
    """
    if not isinstance(disparity, Differentiable) or not len(data):
        return
    for batch in data.batches():
        uniform = PlackettLuce(np.where(batch.present, 0.0, -np.inf))
        exposure = uniform.exposure(disparity.attention_model, disparity.cutoff).value
        if not np.isnan(disparity.value_and_gradient(batch.block.exposed(exposure))[0]).all():
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


def sweep(
    method: str,
    train: Dataset,
    valid: Dataset | None = None,
    *,
    lambdas: Sequence[float] = (),
    seeds: Sequence[int] = (0,),
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Callable[[int, int], object] | None = None,
    **settings: Any,
) -> list[TrainedPolicy]:
    """Train a policy for every λ and every seed, in that order; in `jobs` processes or those of an executor.

    `progress(done, total)` is called after every policy, and in this process after every epoch too.
    """
    default = Settings.for_method(method, **settings)
    if lambdas and method not in WITH_LAMBDA and any(lambdas):
        raise UsageError(f"{method} has no λ; methods that have one are {', '.join(WITH_LAMBDA)}")
    if len(set(lambdas)) < len(lambdas) or len(set(seeds)) < len(seeds):
        raise UsageError("a λ or a seed is given twice")
    pairs = product(lambdas or (default.lam,), seeds)
    runs = [replace(default, lam=float(lam), seed=int(seed)) for lam, seed in pairs]
    report = progress or (lambda done, total: None)
    policies: list[TrainedPolicy] = []
    is_here = executor is None and jobs == 1
    per_run = default.epochs + 1 if is_here else 1

    def show(epoch: Epoch, model: Model) -> None:
        report(len(policies) * per_run + epoch.number + 1, len(runs) * per_run)

    with Workers(jobs) as workers:
        trained: Iterable[TrainedPolicy]
        there = partial(train_policy, train=train, valid=valid)
        if is_here:
            trained = (train_policy(run, train, valid, show) for run in runs)
        elif executor is not None:
            trained = executor.map(there, runs)
        else:
            trained = workers.results(there, ((run.policy_name, (run,)) for run in runs))
        for policy in trained:
            policies.append(policy)
            report(len(policies) * per_run, len(runs) * per_run)
    return policies

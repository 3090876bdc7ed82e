"""Train policies from settings and data: one at a time, or a sweep over λ and seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fairevals.errors import UsageError, escape
from fairevals.training.data import ATTRIBUTE, Dataset, Standardiser, groups_needed
from fairevals.training.fit import Epoch, Loss, fit
from fairevals.training.losses import BanditRankLoss, DeltrLoss, ListNetLoss, PolicyGradient
from fairevals.training.models import Adam, fit_ridge, make_model
from fairevals.training.objectives import WeightedMeasure, parse_utility
from fairevals.training.policies import TrainedPolicy
from fairevals.training.settings import FAIR, Settings


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
        replace(default, lam=float(lam), seed=seed) for lam in lambdas or (default.lam,) for seed in seeds
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

"""The methods: from settings and data to a trained policy, one at a time or a sweep of λ and seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

import numpy as np

from fairevals.errors import UsageError, escape
from fairevals.training.bandit_rank import BanditRankLoss
from fairevals.training.data import Dataset, Standardiser, no_groups
from fairevals.training.deltr import DeltrLoss
from fairevals.training.fit import Epoch, Loss, fit
from fairevals.training.listnet import ListNetLoss
from fairevals.training.models import make_model
from fairevals.training.objectives import Objective
from fairevals.training.optimise import Adam, Learner
from fairevals.training.pg_rank import PolicyGradient
from fairevals.training.policies import TrainedPolicy
from fairevals.training.ridge import fit_ridge
from fairevals.training.settings import FAIR, Settings
from fairevals.training.utilities import parse_utility

METHODS: Mapping[str, str] = {
    "pg-rank": "policy gradient for utility (Singh & Joachims 2019)",
    "fair-pg-rank": "policy gradient for utility less λ times disparity of exposure (Singh & Joachims 2019)",
    "bandit-rank": "contextual bandit on a reward, beside cross entropy (BanditRank)",
    "ridge": "ridge regression of the grades",
    "listnet": "cross entropy of top-one probabilities (Cao et al. 2007)",
    "lp": "linear programme of fair exposure on ridge's predictions (Singh & Joachims 2018)",
    "deltr": "ListNet with a penalty on disparate top-one exposure (Zehlike & Castillo 2020)",
}


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
    needs_groups = settings.method in ("lp", "deltr") or (
        settings.method == "fair-pg-rank" and settings.disparity == "D_group" and settings.lam > 0
    )
    if needs_groups and train.membership is None:
        raise no_groups(settings.method)
    train = settings.prepared(train)
    valid = None if valid is None else settings.prepared(valid)
    features = train.features.shape[1]
    standardiser = Standardiser.fit(train) if settings.standardise else Standardiser.none(features)
    train = standardiser.apply(train)
    if settings.method in ("ridge", "lp"):
        return TrainedPolicy(settings, fit_ridge(train, settings.alpha), standardiser, train.groups)
    model = make_model(settings.model, features, settings.dropout, settings.seed)
    steps = settings.epochs * -(-len(train) // (settings.batch or len(train))) if len(train) else 0
    betas = (settings.beta1, settings.beta2)
    optimiser = Adam(settings.lr, betas, settings.weight_decay, settings.final_lr, steps)
    fitted = fit(
        Learner(model, optimiser),
        make_loss(settings, train),
        train,
        None if valid is None else standardiser.apply(valid),
        epochs=settings.epochs,
        batch=settings.batch,
        patience=settings.patience or None,
        seed=settings.seed,
        on_epoch=on_epoch,
    )
    fitted.scorer.model.forget()
    return TrainedPolicy(settings, fitted.scorer.model, standardiser, train.groups, fitted.curve)


def make_loss(settings: Settings, data: Dataset) -> Loss:
    """The loss of a method that is trained step by step; `data` tells DELTR its groups."""
    if settings.method in ("pg-rank", "fair-pg-rank"):
        lam = settings.lam if settings.method == "fair-pg-rank" else 0.0
        objective = Objective(
            parse_utility(settings.utility),
            lam,
            settings.disparity,
            settings.merit,
            entropy=settings.entropy,
            ties=settings.ties,
        )
        return PolicyGradient(objective, settings.estimator, settings.samples)
    if settings.method == "bandit-rank":
        reward = parse_utility(settings.reward)
        return BanditRankLoss(reward, settings.hybrid, settings.epsilon, settings.most, settings.samples)
    if settings.method == "listnet":
        return ListNetLoss()
    if settings.method == "deltr":
        return DeltrLoss(settings.lam, protected_group(settings.protected, data))
    raise UsageError(f"{settings.method} is not trained step by step")


def protected_group(name: str, data: Dataset) -> int:
    """The number of the group of that name; without a name, of the one with the fewest documents."""
    if data.membership is None:
        raise no_groups("deltr")
    if not name:
        return int(np.argmin(data.membership.sum(axis=0)))
    if name not in data.groups:
        raise UsageError(
            f"there is no group {escape(name)!r}; there are {', '.join(map(escape, data.groups))}"
        )
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

    `progress(done, of)` is told of epochs, or in an executor of policies. The results do not depend on it.
    """
    runs = list(_runs(method, lambdas, seeds, settings))
    if executor is not None:
        found = []
        for number, policy in enumerate(
            executor.map(partial(train_policy, train=train, valid=valid), runs), 1
        ):
            found.append(policy)
            if progress:
                progress(number, len(runs))
        return found
    found = []
    for number, run in enumerate(runs):

        def show(epoch: Epoch, number: int = number) -> None:
            if progress:
                progress(number * (epoch.of + 1) + epoch.number + 1, len(runs) * (epoch.of + 1))

        found.append(train_policy(run, train, valid, show))
    if progress:
        progress(len(runs), len(runs))
    return found


def _runs(
    method: str, lambdas: Sequence[float], seeds: Sequence[int], given: Mapping[str, Any]
) -> Iterator[Settings]:
    default = Settings.for_method(method, **given)
    if lambdas and method not in FAIR and any(lambdas):
        raise UsageError(f"{method} has no λ; methods that have one are {', '.join(FAIR)}")
    if len(set(lambdas)) < len(lambdas) or len(set(seeds)) < len(seeds):
        raise UsageError("a λ or a seed is given twice")
    for lam in lambdas or (default.lam,):
        for seed in seeds:
            yield default.with_(lam=float(lam), seed=int(seed))

"""Sweeps: a policy for every λ, every largest disparity and every seed, in this process or in several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from fairevals.errors import UsageError
from fairevals.evaluation.workers import Workers, send_report
from fairevals.training import methods
from fairevals.training.data import Dataset
from fairevals.training.policies import Epoch, TrainedPolicy
from fairevals.training.settings import WITH_LAMBDA, Settings

OnEpoch = Callable[[Settings, Epoch], object]
"""Called with the settings of a policy and each point of its learning curve."""


def sweep_settings(
    method: str,
    lambdas: Sequence[float] = (),
    seeds: Sequence[int] = (0,),
    *,
    max_disparities: Sequence[float] = (),
    **settings: Any,
) -> list[Settings]:
    """The settings of each policy of a sweep, for every λ, then every largest disparity, each with every seed.

    Each policy is trained by itself: it does not depend on the others of the sweep.

    >>> [run.policy_name for run in sweep_settings("deltr", [0, 10], seeds=[0, 1])][1:3]
    ['deltr-lambda0-seed1', 'deltr-lambda10-seed0']
    >>> [run.policy_name for run in sweep_settings("fair-pg-rank", [0], max_disparities=[0.01])]
    ['fair-pg-rank-lambda0-seed0', 'fair-pg-rank-max0.01-seed0']
    """
    default = Settings.for_method(method, **settings)
    if lambdas and method not in WITH_LAMBDA and any(lambdas):
        raise UsageError(f"{method} has no λ; methods that have one are {', '.join(WITH_LAMBDA)}")
    weighted = [replace(default, lam=float(lam), max_disparity=None) for lam in lambdas]
    bounded = [replace(default, max_disparity=float(bound)) for bound in max_disparities]
    swept = product([*weighted, *bounded] or [default], seeds)
    runs = [replace(each, seed=int(seed)) for each, seed in swept]
    taken: set[str] = set()
    for name in (run.policy_name for run in runs):
        if name in taken:
            raise UsageError(f"{name} is given twice; values are told apart by their first six digits")
        taken.add(name)
    return runs


def with_baselines(runs: Sequence[Settings]) -> list[Settings]:
    """The same, and for each seed the policy of λ = 0 first: what the others are compared with."""
    zeros = [
        replace(run, lam=0.0, max_disparity=None)
        for run in runs
        if run.method in WITH_LAMBDA and run.method != "lp"
    ]
    return list(dict.fromkeys([*zeros, *runs]))


def sweep(
    method: str,
    train: Dataset,
    valid: Dataset | None = None,
    *,
    lambdas: Sequence[float] = (),
    max_disparities: Sequence[float] = (),
    seeds: Sequence[int] = (0,),
    jobs: int = 1,
    executor: Executor | None = None,
    **settings: Any,
) -> list[TrainedPolicy]:
    """Train the policies of `sweep_settings`, in their order; in `jobs` processes or those of an executor."""
    runs = sweep_settings(method, lambdas, seeds, max_disparities=max_disparities, **settings)
    return train_all(runs, train, valid, jobs=jobs, executor=executor)


def train_all(
    runs: Sequence[Settings],
    train: Dataset,
    valid: Dataset | None = None,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    known: Mapping[str, TrainedPolicy] | None = None,
    on_epoch: OnEpoch | None = None,
    on_policy: Callable[[TrainedPolicy], object] | None = None,
) -> list[TrainedPolicy]:
    """Train a policy with each of the settings, in their order, except those that are `known` by their names.

    `on_policy(policy)` is called in this process as soon as a policy is trained, whatever the order, and
    `on_epoch(settings, epoch)` at every point of a learning curve; an executor's processes cannot tell of theirs.
    """
    policies = dict(known or {})
    missing = [run for run in runs if run.policy_name not in policies]
    if (
        missing
    ):  # a bound, or else the largest λ, needs the most of the data: it is checked before any is trained
        hardest = max(missing, key=lambda run: (run.max_disparity is not None, run.lam))
        methods.checked_loss(hardest, train, valid)
    for policy in _trained(missing, train, valid, jobs, executor, on_epoch):
        policy.warn()
        policies[policy.name] = policy
        if on_policy is not None:
            on_policy(policy)
    return [policies[run.policy_name] for run in runs]


def _trained(
    runs: Sequence[Settings],
    train: Dataset,
    valid: Dataset | None,
    jobs: int,
    executor: Executor | None,
    on_epoch: OnEpoch | None,
) -> Iterator[TrainedPolicy]:
    """The policies as they are finished."""
    if executor is not None:
        yield from executor.map(partial(methods.train_policy, train=train, valid=valid), runs)
    elif jobs == 1 or len(runs) == 1:
        for run in runs:
            hear = None if on_epoch is None else partial(_tell, on_epoch, run)
            yield methods.train_policy(run, train, valid, hear)
    else:
        with Workers(jobs, _remember, train, valid) as workers:
            calls: Iterable[tuple[str, tuple[Any, ...]]] = (
                (run.policy_name, (run, on_epoch is not None)) for run in runs
            )
            yield from workers.as_finished(_train_here, calls, lambda report: on_epoch and on_epoch(*report))


def _tell(on_epoch: OnEpoch, settings: Settings, epoch: Epoch, model: object) -> None:
    on_epoch(settings, epoch)


_data: list[tuple[Dataset, Dataset | None]] = []
"""In a worker: the training and validation data, which are sent once, not with every call."""


def _remember(*data: Any) -> None:
    _data.append(data)


def _train_here(settings: Settings, tells: bool) -> TrainedPolicy:
    """In a worker: train a policy, and report its epochs."""
    hear = partial(_tell, lambda *report: send_report(report), settings) if tells else None
    return methods.train_policy(settings, *_data[-1], hear)

"""The summary of a sweep: every policy, and what a sceptic compares it with, by every measure on every split."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from fairevals.collection.run import Run
from fairevals.evaluation import Plan, score
from fairevals.io.specs import PolicySpec
from fairevals.measures import parse_measure
from fairevals.training.baselines import (
    PARITY,
    RANDOM,
    TEMPERATURE,
    choosing_topics,
    cost_at,
    matched_temperature,
    with_parity,
)
from fairevals.training.data import Dataset
from fairevals.training.policies import TrainedPolicy
from fairevals.training.scoring import default_measures, make_collection, make_run, run_of_scores
from fairevals.training.settings import WITH_LAMBDA

SUMMARY_COLUMNS = ("policy", "method", "lambda", "seed", "split", "measure", "value", "se", "undefined")
_BOUND = re.compile(r"-max([\d.]+(?:e[+-]\d+)?)(?:-seed|$)")
GREEDY_SUFFIX = ".greedy"
"""Ends the name of a policy's greedy ranking in the summary."""


class SummaryRow(NamedTuple):
    """A row of summary.csv; `se` is NaN where the value is exact."""

    policy: str
    method: str
    lam: float
    """NaN for what has no λ. For a temperature, it is the λ whose disparity is reached.

    A bound of the disparity is in the name of a policy, and in that of a temperature that reaches it; see `bound_of`.
    """
    seed: int
    split: str
    measure: str
    value: float
    se: float
    undefined: int
    """The number of topics on which the measure is undefined; they are not in the mean."""


class _Reading(NamedTuple):
    """Something to evaluate: what it is called, its run on a split, and how that is read."""

    name: str
    method: str
    lam: float
    seed: int
    run: Callable[[str], Run]
    kind: str = "pl"
    temperature: float = 1.0


def is_without_lambda(policy: TrainedPolicy) -> bool:
    """Whether a policy is a Plackett-Luce policy that was trained for utility alone."""
    settings = policy.settings
    is_free = settings.method not in WITH_LAMBDA or settings.lam == 0
    return is_free and settings.max_disparity is None and not policy.is_mixture


def bound_of(name: str) -> float | None:
    """The largest disparity that the name of a policy in the summary says.

    >>> bound_of("fair-pg-rank-max0.01-seed0"), bound_of("fair-pg-rank-lambda0-seed0.T6.2-max1e-05")
    (0.01, 1e-05)
    """
    match = _BOUND.search(name)
    return float(match[1]) if match else None


def summarise(
    policies: Sequence[TrainedPolicy],
    splits: Mapping[str, Dataset],
    *,
    samples: int = 1000,
    baselines: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> list[SummaryRow]:
    """Evaluate the policies on all splits, as `fairevals score` would evaluate their runs.

    With `baselines` there is also a random order, and for each seed the policy of λ = 0 with a parity offset and at the
    temperatures at which it is as fair as the policies of other λ. Temperatures are chosen on the validation data, or
    else on the training data. `samples` is the number of rankings drawn for values that are not exact.
    """
    summary = _Summary(policies, splits, samples)
    readings = list(summary.readings(baselines))
    rows: list[SummaryRow] = []
    for number, reading in enumerate(readings, 1):
        rows += summary.rows(reading)
        if progress:
            progress(number, len(readings))
    return rows


class _Summary:
    def __init__(
        self, policies: Sequence[TrainedPolicy], splits: Mapping[str, Dataset], samples: int
    ) -> None:
        self.policies, self.splits, self.samples = policies, splits, samples
        settings = policies[0].settings
        self.collections = {
            name: make_collection(data, default_measures(data, settings)) for name, data in splits.items()
        }
        chosen = splits["valid" if "valid" in splits else next(iter(splits))]
        self._choosing_data = choosing_topics(chosen)
        # A policy and its greedy reading, and a policy and its temperatures, have the same run.
        self.run_of = lru_cache(maxsize=2 * len(splits))(self._run_of)

    def _run_of(self, number: int, split: str) -> Run:
        policy = self.policies[number]
        return make_run(policy, self.splits[split], samples=self.samples if policy.is_mixture else None)

    def readings(self, baselines: bool) -> Iterator[_Reading]:
        """All that is evaluated, in the order of the summary."""
        has_groups = all(data.membership is not None for data in self.splits.values())
        base_of = {p.settings.seed: n for n, p in enumerate(self.policies) if is_without_lambda(p)}
        if baselines:
            yield _Reading(RANDOM, RANDOM, math.nan, 0, self._random)
        for number, policy in enumerate(self.policies):
            settings = policy.settings
            bound = settings.max_disparity
            facts = settings.method, settings.lam if bound is None else math.nan, settings.seed
            own = _Reading(policy.name, *facts, partial(self.run_of, number))
            if policy.is_mixture:
                yield own._replace(kind="samples")
                continue
            yield own
            yield own._replace(name=policy.name + GREEDY_SUFFIX, kind="ranking")
            base = base_of.get(settings.seed)
            if not baselines or base is None:
                continue
            if base == number and has_groups:
                parity = own._replace(name=f"{policy.name}.parity", method=settings.method + PARITY)
                yield parity._replace(lam=math.nan, run=partial(self._parity, number))
            temperature = None if base == number else self._temperature(base, number)
            if temperature is not None:
                yield own._replace(
                    name=f"{self.policies[base].name}.T{temperature:g}"
                    + ("" if bound is None else f"-max{bound:g}"),
                    method=settings.method + TEMPERATURE,
                    run=partial(self.run_of, base),
                    temperature=temperature,
                )

    def _random(self, split: str) -> Run:
        data = self.splits[split]
        return run_of_scores(np.zeros(len(data.grades)), data, RANDOM)

    def _parity(self, number: int, split: str) -> Run:
        settings = self.policies[number].settings
        disparity = parse_measure(settings.disparity)
        return with_parity(
            self.run_of(number, split), self.collections[split], self.splits[split].attribute, disparity
        )

    def _temperature(self, base: int, number: int) -> float | None:
        """The temperature at which one policy is as fair as another; never chosen on test data."""
        disparity = parse_measure(self.policies[number].settings.disparity)
        data = self._choosing_data
        if disparity.attributes_used() and data.membership is None:
            return None
        collection = make_collection(data, [str(disparity)])
        runs = [make_run(self.policies[n], data) for n in (base, number)]
        goal = cost_at(runs[1], collection, disparity, 1.0, self.samples)
        return matched_temperature(runs[0], collection, disparity, goal, self.samples)

    def rows(self, reading: _Reading) -> Iterator[SummaryRow]:
        """The rows of one reading."""
        for split, collection in self.collections.items():
            spec = PolicySpec(reading.kind, reading.temperature, self.samples)
            scores = score([reading.run(split)], collection, Plan.of(collection, policy=spec))
            for m, measure in enumerate(scores.measures):
                mean = scores.mean(0, m)
                facts = reading.name, reading.method, reading.lam, reading.seed, split
                yield SummaryRow(*facts, str(measure), mean.value, mean.se, mean.undefined)

"""Policies as points of usefulness and disparity, and what can be said of curves of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from fairevals.attention import parse_attention
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training import (
    Batch,
    Dataset,
    Settings,
    Standardiser,
    TrainedPolicy,
    evaluate_policy,
    make_model,
    parse_utility,
)
from fairevals.training.evaluation import NDCG
from fairevals.typing import Floats


@dataclass(frozen=True)
class Point:
    """A policy: its method, λ, the seed of its data, what it reaches, and θ if it has two features."""

    method: str
    lam: float
    seed: int
    ndcg: float
    disparity: float
    theta1: float = float("nan")
    theta2: float = float("nan")

    @property
    def ratio(self) -> float:
        """θ2/θ1."""
        return self.theta2 / self.theta1 if self.theta1 else float("inf")


def point(policy: TrainedPolicy, data: Dataset, seed: int, method: str = "") -> Point:
    """What a policy reaches on data, exactly."""
    found = {m.measure: m.value for m in evaluate_policy(policy, data, samples=2)}
    theta = policy.model.parameters.get("theta", np.zeros(0))
    two = theta if theta.size == 2 and not policy.is_mixture else np.full(2, np.nan)
    return Point(
        method or policy.settings.method,
        policy.settings.lam,
        seed,
        found[NDCG],
        found["D_group"],
        float(two[0]),
        float(two[1]),
    )


def random_order(data: Dataset) -> TrainedPolicy:
    """The policy under which all orders are equally likely."""
    width = data.features.shape[1]
    model = make_model("linear", width)
    model.parameters["theta"][:] = 0.0
    return TrainedPolicy(Settings.for_method("pg-rank"), model, Standardiser.none(width))


def falls(values: Sequence[float]) -> bool:
    """Whether every value is below the one before it.

    >>> falls([0.3, 0.2, 0.1]), falls([0.3, 0.2, 0.25])
    (True, False)
    """
    return all(later < earlier for earlier, later in pairwise(values))


def reach(curve: Iterable[tuple[float, float]], disparity: float) -> float:
    """The usefulness that a curve of (disparity, usefulness) has at a disparity, between its points linearly.

    A policy with less disparity and more usefulness counts there too. NaN below the curve's least disparity.

    >>> reach([(0.0, 0.7), (0.02, 0.9)], 0.01), reach([(0.0, 0.7), (0.02, 0.9)], 0.5)
    (0.8, 0.9)
    """
    d, u = np.array(sorted(curve)).T
    if disparity < d[0]:
        return float("nan")
    return float(np.interp(disparity, d, np.maximum.accumulate(u)))


def not_below(
    curve: Sequence[tuple[float, float]],
    others: Sequence[tuple[float, float]],
    slack: Sequence[float] | None = None,
) -> list[bool]:
    """For each (disparity, usefulness) of the others that the curve reaches: whether it is at least as useful there.

    >>> not_below([(0.0, 0.7), (0.02, 0.9)], [(0.01, 0.79), (0.02, 0.95)])
    [True, False]
    """
    allowed = slack or [0.0] * len(others)
    found = []
    for (disparity, usefulness), by in zip(others, allowed, strict=True):
        there = reach(curve, disparity)
        if not np.isnan(there):
            found.append(there >= usefulness - by)
    return found


def exposures(policy: TrainedPolicy, data: Dataset) -> Floats:
    """Expected exposure (topics, documents) under a policy, exactly; all topics must be equally long."""
    block = data.block(range(len(data)))
    if policy.is_mixture:
        attention = parse_attention("log2").weights(block.grades.shape[1])
        return np.stack([P @ attention for P in policy.programmes(data)])
    return PlackettLuce(policy.predict(data).reshape(block.grades.shape)).exposure("log2").value


def mean_ndcg(exposure: Floats, block: Batch) -> float:
    """nDCG with gain 2^g − 1 over the whole list, from expected exposure: mean over topics with a relevant document."""
    terms = parse_utility("nDCG").terms(block) or []
    values = np.sum([(exposure * term.worth).sum(axis=1) for term in terms], axis=0)
    relevant = block.grades.any(axis=1)
    return float(values[relevant].mean()) if relevant.any() else float("nan")

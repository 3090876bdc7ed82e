"""Policies as points of utility and disparity, and properties of curves of such points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from experiments.measuring import measure_policy
from fairevals.training import Dataset, TrainedPolicy


@dataclass(frozen=True)
class CurvePoint:
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


def point(policy: TrainedPolicy, data: Dataset, seed: int, method: str = "") -> CurvePoint:
    """What a policy reaches on data, exactly."""
    outcome = measure_policy(policy, data)
    theta = policy.model.parameters.get("theta", np.zeros(0))
    two = theta if theta.size == 2 and not policy.is_mixture else np.full(2, np.nan)
    return CurvePoint(
        method or policy.settings.method,
        policy.settings.lam,
        seed,
        outcome.ndcg,
        outcome.package,
        float(two[0]),
        float(two[1]),
    )


def falls(values: Sequence[float]) -> bool:
    """Whether every value is below the previous one.

    >>> falls([0.3, 0.2, 0.1]), falls([0.3, 0.2, 0.25])
    (True, False)
    """
    return all(later < earlier for earlier, later in pairwise(values))


def reach(curve: Iterable[tuple[float, float]], disparity: float) -> float:
    """The utility of a curve of (disparity, utility) at a disparity, interpolated linearly between its points.

    A policy with less disparity and more utility counts at larger disparities too. NaN below the curve's smallest
    disparity.

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
    """For each (disparity, utility) of the others that the curve reaches: whether its utility is at least as high.

    >>> not_below([(0.0, 0.7), (0.02, 0.9)], [(0.01, 0.79), (0.02, 0.95)])
    [True, False]
    """
    allowed = slack or [0.0] * len(others)
    verdicts = []
    for (disparity, utility), by in zip(others, allowed, strict=True):
        there = reach(curve, disparity)
        if not np.isnan(there):
            verdicts.append(there >= utility - by)
    return verdicts

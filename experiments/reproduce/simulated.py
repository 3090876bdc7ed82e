"""Fair-PG-Rank's figure 1: a feature that is missing for a minority, and policies that unlearn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.examples import simulated
from experiments.reproduce.curves import Point, mean_ndcg, point, random_order
from experiments.reproduce.parts import Budget, Reproduction
from experiments.reproduce.simulated_claims import DELTR, FAIR, LABELS, LP, claims
from experiments.reproduce.simulated_figures import drawings, numbers, tables
from fairevals.errors import UsageError
from fairevals.io.out import Table
from fairevals.measures.disparity import group_disparity
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training import Dataset, sweep
from fairevals.typing import Floats

RANDOM = "random"
DRAWS = (1, 0, 2, 3, 4)
"""The default draw of the data set first: the figures show it."""


@dataclass(frozen=True)
class Recipe:
    """The λ of each method, and how the models are trained."""

    lambdas: dict[str, tuple[float, ...]]
    training: dict[str, Any]
    grid: int


WHOLE = Recipe(
    {
        FAIR: (0.0, 1.0, 5.0, 10.0, 25.0),
        LP: (0.0, 0.1, 0.2, 1.0, 10.0, 100.0),
        DELTR: (0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6),
    },
    {"batch": 0, "epochs": 300, "lr": 0.1, "final_lr": 0.01, "standardise": False},
    25,
)
QUICK = Recipe(
    {FAIR: (0.0, 25.0), LP: (0.0, 100.0), DELTR: (0.0, 1e6)},
    {"batch": 0, "epochs": 25, "lr": 0.2, "standardise": False},
    6,
)


@dataclass(frozen=True)
class Job:
    """One policy to train: everything that another process has to know."""

    draw: int
    method: str
    lam: float
    quick: bool


def run(files: Sequence[str], effort: Budget) -> Reproduction:
    """The whole experiment."""
    if files:
        raise UsageError("fair-pg-rank-simulated makes its own data: give no file")
    recipe = QUICK if effort.quick else WHOLE
    count = effort.choose(len(DRAWS), 2)
    draws = (*DRAWS, *range(len(DRAWS), count))[:count]
    works = [
        Job(draw, method, lam, effort.quick)
        for draw in draws
        for method, lambdas in ((RANDOM, (0.0,)), *recipe.lambdas.items())
        for lam in lambdas
    ]
    points = list(effort.work(trained, works))
    axis, ndcg, disparity = plane(simulated(seed=draws[0]), points, recipe.grid)
    return Reproduction(
        name="fair-pg-rank-simulated",
        title="A biased feature, unlearned",
        paper="Singh & Joachims: Policy Learning for Fairness in Ranking. NeurIPS 2019, section 4.2 and figure 1.",
        about=(
            "100 queries of 10 documents; a document is of the minority G1 with probability 0.2. x1 and x2 are drawn "
            "from U(0, 3), the grade is x1 + x2 clipped to 0…5, and for G1 the second feature is then put to 0. A "
            "linear model θ1·x1 + θ2·x2 is trained with exact gradients on all queries at once, for nDCG less λ times "
            "D_group.",
            "A hundred queries are few, and what is found depends on the draw. So the experiment is done on "
            f"{len(draws)} draws of the data set (seeds {', '.join(map(str, draws))}), and every claim is judged on "
            f"each of them. The figures show draw {draws[0]}, the others thin in the trade-off.",
        ),
        claims=claims(points),
        drawings=drawings(points, draws[0], axis, ndcg, disparity),
        tables=tables(points),
        numbers={
            "numbers.csv": numbers(points),
            "plane.csv": Table(
                ("theta1", "theta2", "nDCG", "D_group"),
                tuple(
                    (float(x), float(y), float(ndcg[j, i]), float(disparity[j, i]))
                    for j, y in enumerate(axis)
                    for i, x in enumerate(axis)
                ),
            ),
        },
        settings=(
            *((f"λ of {name}", ", ".join(f"{lam:g}" for lam in recipe.lambdas[name])) for name in LABELS),
            ("training", "linear model, estimator exact (DELTR: its own loss), all queries a step"),
            *((name, str(value)) for name, value in recipe.training.items()),
            ("draws", ", ".join(map(str, draws))),
            ("seed of the models", "0"),
            ("nDCG", "whole list, gain 2^g − 1; exact expectation over rankings, as is D_group"),
        ),
        notes=(
            "The paper lets the λ of the linear programme go from 0 to 0.2, where on its scale all predicted disparity "
            "is gone; with utilities 2^g − 1 of grades up to 5 that takes larger ones, which are there too.",
        ),
        quick=effort.quick,
    )


def trained(work: Job) -> Point:
    """Train one policy, or take the random order, and measure it."""
    data = simulated(seed=work.draw)
    if work.method == RANDOM:
        return point(random_order(data), data, work.draw, RANDOM)
    training = {} if work.method == LP else (QUICK if work.quick else WHOLE).training
    (policy,) = sweep(work.method, data, lambdas=[work.lam], **training)
    return point(policy, data, work.draw)


def plane(data: Dataset, points: Sequence[Point], size: int) -> tuple[Floats, Floats, Floats]:
    """θ along an axis, and nDCG and D_group (θ2, θ1) on the grid that it spans, wide enough for all learned models."""
    block = data.block(range(len(data)))
    membership = np.zeros((*block.grades.shape, 1)) if block.membership is None else block.membership
    widest = max(
        (abs(value) for p in points if p.method == FAIR for value in (p.theta1, p.theta2)), default=1.0
    )
    axis = np.linspace(0.0, max(1.0, np.ceil(widest * 1.1)), size)
    ndcg, disparity = np.empty((size, size)), np.empty((size, size))
    for j, y in enumerate(axis):
        for i, x in enumerate(axis):
            exposure = PlackettLuce(block.features @ np.array([x, y])).exposure("log2").value
            ndcg[j, i] = mean_ndcg(exposure, block)
            disparity[j, i] = np.nanmean(group_disparity(exposure, block.grades, membership))
    return axis, ndcg, disparity

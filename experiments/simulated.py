"""Fair-PG-Rank's figure 1: a feature is missing for a minority, and fair policies stop using it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.curves import CurvePoint, point
from experiments.datasets import simulated
from experiments.measuring import alternatives, measure_exposure, random_order
from experiments.results import Budget, Reproduction
from experiments.simulated_claims import DELTR, FAIR, LABELS, LP, claims
from experiments.simulated_figures import drawings, numbers, tables
from fairevals.errors import UsageError
from fairevals.io.out import Table
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training import Dataset, sweep
from fairevals.typing import Floats

RANDOM = "random"
DRAWS = (1, 0, 2, 3, 4)
"""Seeds of the data; the figures show the first."""


@dataclass(frozen=True)
class Recipe:
    """The λ of each method, and how the models are trained."""

    lambdas: dict[str, tuple[float, ...]]
    training: dict[str, Any]
    grid: int


ADAM = {"solver": "adam", "batch": 0, "keep": "last", "standardise": False}
WHOLE = Recipe(
    {
        FAIR: (0.0, 1.0, 5.0, 10.0, 25.0),
        LP: (0.0, 0.1, 0.2, 1.0, 10.0, 100.0),
        DELTR: (0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6),
    },
    {**ADAM, "epochs": 300, "lr": 0.1, "final_lr": 0.01},
    25,
)
QUICK = Recipe(
    {FAIR: (0.0, 25.0), LP: (0.0, 100.0), DELTR: (0.0, 1e6)},
    {**ADAM, "epochs": 25, "lr": 0.2},
    6,
)


@dataclass(frozen=True)
class SimulatedJob:
    """One policy to train: everything that another process needs."""

    draw: int
    method: str
    lam: float
    quick: bool


def run(files: Sequence[str], budget: Budget) -> Reproduction:
    """Run the experiment."""
    if files:
        raise UsageError("fair-pg-rank-simulated generates its own data; it takes no file")
    recipe = QUICK if budget.quick else WHOLE
    count = budget.choose(len(DRAWS), 2)
    draws = (*DRAWS, *range(len(DRAWS), count))[:count]
    jobs = [
        SimulatedJob(draw, method, lam, budget.quick)
        for draw in draws
        for method, lambdas in ((RANDOM, (0.0,)), *recipe.lambdas.items())
        for lam in lambdas
    ]
    points = [point for several in budget.run(trained, jobs) for point in several]
    axis, ndcg, disparity = plane(simulated(seed=draws[0]), points, recipe.grid)
    return Reproduction(
        name="fair-pg-rank-simulated",
        title="A biased feature, unlearned",
        paper="Singh & Joachims: Policy Learning for Fairness in Ranking. NeurIPS 2019, section 4.2 and figure 1.",
        about=(
            "100 queries of 10 documents; a document is of the minority G1 with probability 0.2. x1 and x2 are drawn "
            "from U(0, 3), the grade is x1 + x2 clipped to 0…5, and for G1 the second feature is then set to 0. A "
            "linear model θ1·x1 + θ2·x2 is trained with exact gradients on all queries at once, for nDCG less λ times "
            "D_group.",
            "A hundred queries are few, so the results depend on the draw. The experiment is therefore run on "
            f"{len(draws)} draws of the data set (seeds {', '.join(map(str, draws))}), and every claim is judged on "
            f"each of them. The figures show draw {draws[0]}, with the others as thin lines in the trade-off.",
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
            ("training", "linear model, estimator exact (DELTR: its own loss), all queries in each step"),
            *((name, str(value)) for name, value in recipe.training.items()),
            ("draws", ", ".join(map(str, draws))),
            ("seed of the models", "0"),
            ("nDCG", "whole list, gain 2^g − 1; exact expectation over rankings, as is D_group"),
        ),
        notes=(
            "Two alternatives to training for fairness are not in the paper: the policy of λ = 0 at higher "
            "temperatures, and with an offset of each group that gives both the same mean exposure (parity). With "
            "parity D_group is 0 whatever the grades, since it counts over-exposure of the group of higher merit only.",
            "The paper varies the λ of the linear programme from 0 to 0.2, which on its scale removes all predicted "
            "disparity. With utilities 2^g − 1 of grades up to 5 this takes larger values, which are included.",
        ),
        quick=budget.quick,
    )


def trained(job: SimulatedJob) -> list[CurvePoint]:
    """Train one policy, or take the random order, and measure it; with λ = 0 also what may be done to it instead."""
    data = simulated(seed=job.draw)
    if job.method == RANDOM:
        return [point(random_order(data), data, job.draw, RANDOM)]
    training = {} if job.method == LP else (QUICK if job.quick else WHOLE).training
    (policy,) = sweep(job.method, data, lambdas=[job.lam], **training)
    points = [point(policy, data, job.draw)]
    if job.method == FAIR and not job.lam:
        points += [
            CurvePoint(how, temperature, job.draw, outcome.ndcg, outcome.package)
            for how, temperature, outcome in alternatives(policy, data)
        ]
    return points


def plane(data: Dataset, points: Sequence[CurvePoint], size: int) -> tuple[Floats, Floats, Floats]:
    """An axis of θ, and nDCG and D_group on the grid (θ2, θ1) that it spans; the grid includes all learned models."""
    features = data.batch(range(len(data))).features
    widest = max(
        (abs(value) for p in points if p.method == FAIR for value in (p.theta1, p.theta2)), default=1.0
    )
    axis = np.linspace(0.0, max(1.0, np.ceil(widest * 1.1)), size)
    ndcg, disparity = np.empty((size, size)), np.empty((size, size))
    for j, y in enumerate(axis):
        for i, x in enumerate(axis):
            exposure = PlackettLuce(features @ np.array([x, y])).exposure("log2").value
            outcome = measure_exposure(exposure, data)
            ndcg[j, i], disparity[j, i] = outcome.ndcg, outcome.package
    return axis, ndcg, disparity

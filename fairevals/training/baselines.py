"""What a sceptic compares trained policies with: a random order, a higher temperature, and offsets of groups.

None of these is trained for fairness. A random order has no disparity. The policy of λ = 0 loses disparity too if its
temperature is raised until its order is nearly random, or if an offset of each group gives all groups the same mean
exposure. What λ gains is what it does better than these.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from fairevals.collection.collection import Collection
from fairevals.collection.run import Run
from fairevals.evaluation import Plan, score
from fairevals.io.specs import PolicySpec
from fairevals.measures import Measure
from fairevals.reranking.runs import rerank_run
from fairevals.reranking.topics import Reranking
from fairevals.training.data import Dataset
from fairevals.training.objectives import Differentiable

RANDOM, PARITY, TEMPERATURE = "random", "+parity", "+temperature"
"""The method of a random order in the summary, and what is added to the method of a policy without λ."""
HOTTEST = 1e6
"""At this temperature an order is random for all purposes."""
STEPS = 25
"""How many temperatures up to it are tried."""
CHOOSING_TOPICS = 1000
"""On so many topics a temperature is chosen at most."""


def with_parity(run: Run, collection: Collection, attr: str, disparity: Measure) -> Run:
    """The run with offsets of groups, so that all groups of a topic have the same mean exposure.

    Exposure is that of the disparity, if it is a function of exposure. This needs no grades. D_group is then 0 whatever
    the grades, because it counts over-exposure of the group of higher merit only.
    """
    how = Reranking("parity", attr)
    if isinstance(disparity, Differentiable):
        how = replace(how, attention=disparity.attention_model, cutoff=disparity.cutoff)
    return rerank_run(run, collection, how)[0].run


def cost_at(run: Run, collection: Collection, disparity: Measure, temperature: float, samples: int) -> float:
    """The mean cost of the disparity of a Plackett-Luce run at a temperature; NaN where it is undefined."""
    spec = PolicySpec("pl", temperature, samples)
    scores = score([run], collection, Plan.of(collection, [disparity], spec))
    return float(disparity.direction.cost(scores.mean(0, 0).value))


def matched_temperature(
    run: Run, collection: Collection, disparity: Measure, goal: float, samples: int = 1000
) -> float | None:
    """The lowest temperature from 1, to four digits, at which the run's disparity is as low as `goal`.

    If it is at none, the one where it is lowest: D_group falls to 0 as an order becomes random, but other disparities,
    such as EE_L, rise again. None if the disparity is undefined.
    """

    def excess(log_temperature: float) -> float:
        return cost_at(run, collection, disparity, math.exp(log_temperature), samples) - goal

    lowest, at, before = math.inf, 0.0, 0.0
    for step in np.linspace(0.0, math.log(HOTTEST), STEPS).tolist():
        over = excess(step)
        if math.isnan(over):
            return None
        if over <= 0:
            from scipy.optimize import brentq  # it takes time to import, and reports do not need it

            at = brentq(excess, before, step, xtol=1e-3) if step else 0.0
            break
        if over < lowest:
            lowest, at = over, step
        before = step
    return float(f"{math.exp(at):.4g}")


def choosing_topics(data: Dataset) -> Dataset:
    """The data on which temperatures are chosen: all topics, or some drawn with a fixed seed if there are many."""
    if len(data) <= CHOOSING_TOPICS:
        return data
    drawn = np.random.default_rng(0).choice(len(data), CHOOSING_TOPICS, replace=False)
    return data.split(np.sort(drawn))

"""Training on all topics at once, by L-BFGS on exact objectives: with a weight λ of the disparity, or a bound of it.

Disparities have kinks, max(0, ·), at which L-BFGS would stop too early. So the problem is solved in stages: the kinks
are first rounded off widely (see `fairevals.measures.base.hinge`), then less and less, each stage from the solution of
the one before. The model of the first stage begins near a random order, which has little disparity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training.data import Batch, Dataset
from fairevals.training.estimators import TOLERANCE, without_mean
from fairevals.training.losses import PolicyGradient
from fairevals.training.models import Model
from fairevals.training.objectives import Objective, entropy_with_gradient, sum_at
from fairevals.training.policies import LEAST_BOUND, SLACK, Epoch, is_within
from fairevals.typing import Array, Floats

FULL_BATCH = 1 << 24
"""Up to so many feature values, all topics are one batch by default."""
STAGES = (3e-2, 3e-3, 3e-4, 3e-5, 3e-6)
"""The smoothing of each stage; the last ones only where smoothing still matters."""
NEGLIGIBLE_GAIN = 1e-4
"""Where smoothing changes an objective by no more than this, no further stage is needed."""
_BOUND_STAGES = (10.0, 3.0, 1.0, 0.3, 0.1)
"""The smoothing of each stage under a bound of the disparity, as multiples of the bound."""
_MOST_ROUNDS = 15
_ROUND = 60
"""The most steps of L-BFGS in a round: the next one has a better multiplier."""

OnEpoch = Callable[[Epoch, Model], object]


class Loss(Protocol):
    """What a method minimises, as a function of the scores."""

    def gradient(self, scores: Floats, batch: Batch, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The loss of each topic, and its gradient (topics, documents) with respect to the scores."""
        ...

    def quality(self, scores: Floats, batch: Batch) -> Floats:
        """What models are selected by, for each topic: higher is better; deterministic."""
        ...


@dataclass(frozen=True)
class Solution:
    """What a solver reached, beside the parameters, which are in the model."""

    curve: tuple[Epoch, ...]
    multiplier: float | None = None
    """Under a bound: the λ at which this would be a solution too; 0 where the bound costs nothing."""


class FullBatch:
    """A model and all topics: losses as functions of the model's parameters in one vector."""

    def __init__(self, model: Model, data: Dataset, weight_decay: float) -> None:
        self.model, self.data, self.weight_decay = model, data, weight_decay
        self.rng = np.random.default_rng(0)  # exact losses draw nothing
        is_small = data.features.size <= FULL_BATCH
        self._kept = [_in_double(batch) for batch in data.batches()] if is_small else None

    @property
    def batches(self) -> Iterable[Batch]:
        """All topics; kept in memory if they are few."""
        return self.data.batches() if self._kept is None else self._kept

    @property
    def vector(self) -> Floats:
        """The parameters."""
        return _flat(self.model.parameters)

    @vector.setter
    def vector(self, vector: Floats) -> None:
        start = 0
        for name, value in self.model.parameters.items():
            self.model.parameters[name] = vector[start : start + value.size].reshape(value.shape).copy()
            start += value.size

    def scored(self) -> Iterator[tuple[Batch, Floats]]:
        """The batches with the scores of the model, which can be differentiated until the next one."""
        for batch in self.batches:
            yield batch, batch.masked(self.model.scores(batch.features))

    def backward(self, by_score: Floats) -> Floats:
        """The gradient by the parameters, from that by the scores returned last."""
        gradients = self.model.differentiate(by_score)
        return _flat({name: gradients[name] for name in self.model.parameters})

    def penalty(self, vector: Floats) -> float:
        """½·weight decay·‖parameters‖²."""
        return 0.5 * self.weight_decay * float(vector @ vector)

    def loss_at(self, vector: Floats, loss: Loss) -> tuple[float, Floats]:
        """The mean of the loss over topics plus the penalty, and its gradient."""
        self.vector = vector
        total, gradient = 0.0, self.weight_decay * vector
        for batch, scores in self.scored():
            value, by_score = loss.gradient(scores, batch, self.rng)
            total += float(value.sum())
            gradient = gradient + self.backward(by_score / len(self.data))
        return total / len(self.data) + self.penalty(vector), gradient

    def minimise(
        self,
        function: Callable[[Floats], tuple[float, Floats]],
        iterations: int,
        heard: Callable[[float], object],
    ) -> Floats:
        """Lower a function of the parameters from where they are; `heard` is called with its value at each step."""

        def callback(intermediate_result: Any) -> None:
            heard(float(intermediate_result.fun))

        options = {"maxiter": iterations, "maxcor": 20, "gtol": 1e-6, "ftol": 1e-9}
        from scipy.optimize import minimize  # it takes time to import, and reports do not need it

        solve: Any = minimize  # whose stubs do not know all of its signatures
        found = solve(function, self.vector, jac=True, method="L-BFGS-B", callback=callback, options=options)
        solution: Floats = found.x
        return solution


def minimise_loss(
    model: Model,
    loss: Loss,
    data: Dataset,
    *,
    weight_decay: float,
    iterations: int,
    on_epoch: OnEpoch | None = None,
) -> Solution:
    """Minimise an exact loss over all topics, in stages of less and less smoothing where it has kinks.

    The parameters with the lowest loss of all stages are kept, or those at the beginning if none is lower.
    """
    problem, curve = FullBatch(model, data, weight_decay), _Curve(model, on_epoch)
    stages: list[Loss] = [loss]
    if isinstance(loss, PolicyGradient) and loss.objective.has_kinks:
        stages = [replace(loss, smoothing=smoothing) for smoothing in STAGES]
    best = at = problem.vector
    lowest = problem.loss_at(at, loss)[0]
    for stage in stages:
        problem.vector = at
        at = problem.minimise(partial(problem.loss_at, loss=stage), iterations, curve.add)
        value = problem.loss_at(at, loss)[0]
        if value < lowest:
            best, lowest = at, value
        if stage is loss or abs(value - problem.loss_at(at, stage)[0]) < NEGLIGIBLE_GAIN:
            break
    problem.vector = best
    return Solution(curve.finish(lowest))


class _Curve:
    """A learning curve: one epoch per step of L-BFGS, each with the smoothed loss."""

    def __init__(self, model: Model, on_epoch: OnEpoch | None) -> None:
        self.epochs: list[Epoch] = []
        self.model, self.on_epoch = model, on_epoch
        self._append(math.nan, True)

    def add(self, loss: float) -> None:
        self._append(loss, False)

    def finish(self, loss: float) -> tuple[Epoch, ...]:
        """The curve, with the loss of the parameters that are kept at its end."""
        self._append(loss, True)
        return tuple(self.epochs)

    def _append(self, loss: float, best: bool) -> None:
        self.epochs.append(Epoch(len(self.epochs), loss, None, best))
        if self.on_epoch is not None:
            self.on_epoch(self.epochs[-1], self.model)


def maximise_within(
    model: Model,
    objective: Objective,
    data: Dataset,
    bound: float,
    defined: int,
    *,
    weight_decay: float,
    iterations: int,
    multiplier: float | None = None,
    on_epoch: OnEpoch | None = None,
) -> Solution:
    """Maximise the utility such that the mean disparity, over the `defined` topics that have one, is within a bound.

    An augmented Lagrangian (Hestenes 1969; Powell 1969): U − (max(0, μ + ρ·(D − ε))² − μ²)/(2ρ) is maximised, then
    μ ← max(0, μ + ρ·(D − ε)), until D ≤ ε. What smoothing takes off D is added as it was before the round. The best
    parameters of all rounds that meet the bound are kept; if none does, those of least disparity. With the multiplier
    of a similar problem, whose solution the model has, only the last stage of smoothing is gone through.
    """
    problem, curve = FullBatch(model, data, weight_decay), _Curve(model, on_epoch)
    alone = replace(objective, lam=1.0)
    scale = max(bound, LEAST_BOUND)
    last = len(_BOUND_STAGES) - 1
    first, multiplier = (0, 0.0) if multiplier is None else (last, multiplier)
    rho, at = 0.2 / scale**2, problem.vector
    tried = [(at, *_means(problem, alone, defined, 0.0))]
    for number in range(first, _MOST_ROUNDS):
        smoothing = scale * _BOUND_STAGES[min(number, last)]
        problem.vector = at
        gap = _means(problem, alone, defined, 0.0)[1] - _means(problem, alone, defined, smoothing)[1]
        excess = gap - bound
        lagrangian = _Lagrangian(problem, alone, defined, smoothing, excess, multiplier, rho)
        at = problem.minimise(lagrangian.at, min(iterations, _ROUND), curve.add)
        problem.vector = at
        utility, disparity = _means(problem, alone, defined, 0.0)
        tried.append((at, utility, disparity))
        smoothed = _means(problem, alone, defined, smoothing)[1]
        multiplier = max(0.0, multiplier + rho * (smoothed + excess))
        settled = number + 1 >= len(_BOUND_STAGES)
        if (
            settled
            and is_within(disparity, bound)
            and (multiplier == 0.0 or disparity >= bound - 1.5 * SLACK * scale)
        ):
            break
    problem.vector, utility, _ = max(tried, key=lambda each: preference(each[1], each[2], bound))
    return Solution(curve.finish(-utility), multiplier)


def preference(utility: float, disparity: float, bound: float) -> tuple[bool, float]:
    """What orders policies under a bound: those that meet it come first, by utility; the others by disparity.

    >>> sorted([(0.9, 0.3), (0.8, 0.01), (0.7, 0.02)], key=lambda each: preference(*each, 0.02))[-1]
    (0.8, 0.01)
    """
    return (True, utility) if is_within(disparity, bound) else (False, -disparity)


@dataclass(frozen=True)
class _Apart:
    """Utility and cost of the disparity of a batch, and their gradients by exposure for each term of the objective."""

    utility: Floats
    cost: Floats
    pulls: tuple[tuple[Callable[[Floats], Floats], Floats, Floats], ...]

    @classmethod
    def at(cls, objective: Objective, scores: Floats, batch: Batch, smoothing: float) -> _Apart:
        policy, disparity = PlackettLuce(scores), objective.parts[-1]
        utility, cost, pulls = np.zeros(len(scores)), np.zeros(len(scores)), []
        for term in objective.exposure_terms:
            exposure, vjp = policy.exposure_with_vjp(term.attention, term.cutoff, tolerance=TOLERANCE)
            exposed = batch.block.exposed(exposure)
            gain, by_gain = sum_at([part for part in term.parts if part is not disparity], exposed)
            loss, by_loss = sum_at([part for part in term.parts if part is disparity], exposed, smoothing)
            utility, cost = utility + gain, cost - loss
            pulls.append((vjp, by_gain, -by_loss))
        return cls(utility, cost, tuple(pulls))

    def gradient(self, utility: float, cost: float, scores: Floats) -> Floats:
        """Of `utility`·utility + `cost`·cost, by the scores."""
        total = sum(
            (vjp(utility * gain + cost * loss) for vjp, gain, loss in self.pulls), np.zeros_like(scores)
        )
        return without_mean(total, scores)


def _means(problem: FullBatch, objective: Objective, defined: int, smoothing: float) -> tuple[float, float]:
    """The mean utility over all topics, and the mean disparity over those where it is defined."""
    utility = cost = 0.0
    for batch, scores in problem.scored():
        parts = _Apart.at(objective, scores, batch, smoothing)
        utility, cost = utility + float(parts.utility.sum()), cost + float(parts.cost.sum())
    return utility / len(problem.data), cost / defined


@dataclass(frozen=True)
class _Lagrangian:
    """Minus the augmented Lagrangian, with the penalty of the weight decay."""

    problem: FullBatch
    objective: Objective
    defined: int
    smoothing: float
    excess: float
    """What is added to the smoothed disparity for its distance from the bound."""
    multiplier: float
    rho: float

    def at(self, vector: Floats) -> tuple[float, Floats]:
        """Its value and gradient at parameters."""
        problem, topics, weight = self.problem, len(self.problem.data), self.objective.entropy
        problem.vector = vector
        computed = [
            (batch, scores, _Apart.at(self.objective, scores, batch, self.smoothing))
            for batch, scores in problem.scored()
        ]
        utility = math.fsum(float(parts.utility.sum()) for _, _, parts in computed) / topics
        cost = math.fsum(float(parts.cost.sum()) for _, _, parts in computed) / self.defined
        force = max(0.0, self.multiplier + self.rho * (cost + self.excess))
        gradient = problem.weight_decay * vector
        for batch, scores, parts in computed:
            by_score = parts.gradient(-1.0 / topics, force / self.defined, scores)
            if weight:
                entropy, slope = entropy_with_gradient(scores)
                utility += weight * float(entropy.sum()) / topics
                by_score = by_score - weight * slope / topics
            if len(computed) > 1:
                problem.model.scores(batch.features)  # what is differentiated is what was scored last
            gradient = gradient + problem.backward(by_score)
        value = -utility + (force**2 - self.multiplier**2) / (2.0 * self.rho)
        return value + problem.penalty(vector), gradient


def _flat(arrays: dict[str, Floats]) -> Floats:
    return np.concatenate([np.ravel(array) for array in arrays.values()])


def _in_double(batch: Batch) -> Batch:
    """The batch with features in double precision, which those of a model are: so they are converted only once."""
    features: Array = batch.features.astype(np.float64)
    return replace(batch, features=features)

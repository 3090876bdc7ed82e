"""L-BFGS with a weight decay and a temperature that are chosen on topics that were not trained on.

Disparity overfits: a model with many features can be fair on the training topics and unfair on others. Both a larger
weight decay and a higher temperature help. They are chosen on validation data or, without it, by folds over topics.
Under a bound of the disparity the simplest way to train that is level with the best is taken: estimates of a disparity
are uncertain, so that the best of many ways is often best by chance.
"""

from __future__ import annotations

import copy
import functools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training.data import Dataset
from fairevals.training.losses import PolicyGradient
from fairevals.training.models import Model
from fairevals.training.objectives import Differentiable, sum_at
from fairevals.training.policies import Candidate, FitRecord
from fairevals.training.settings import Settings
from fairevals.training.solvers import Loss, OnEpoch, Solution, maximise_within, minimise_loss, preference
from fairevals.typing import Floats

WEIGHT_DECAYS = (1.0, 0.3, 0.1, 0.03, 1e-2, 1e-3, 1e-4, 1e-6)
"""From the strongest: the solution with one is where the next begins."""
_DECAYS_WITHIN = (1.0, 0.1, 1e-2, 1e-3, 1e-4, WEIGHT_DECAYS[-1])
"""Those tried under a bound. They lie further apart, because a temperature makes up for a decay between them."""
WEIGHT_DECAY = WEIGHT_DECAYS[-1]
"""Where nothing is chosen: so little that it only keeps the parameters finite."""
TEMPERATURES = tuple(2.0 ** (step / 4) for step in range(-8, 25))
_HIGH_TEMPERATURES = tuple(2.0 ** (step / 2) for step in range(21))
"""Those tried under a bound. None is below 1, which would add to the disparity that was trained for."""
_RANDOM = 1e12
"""A temperature at which any order is random."""
LEVEL = 0.5
"""Within how many standard errors of the best utility a policy is level with it.

One, as Breiman et al. (1984) prune trees, gave up more utility than it saved, on simulated data and on splits of German
Credit's training people.
"""
_LEAST_GAIN = 1e-5
"""A policy that gains less than this by training is no better than without."""
FOLDS = 5
"""By default, under a largest disparity, and with more features than topics, which a model could learn by heart."""


@dataclass(frozen=True)
class Measured:
    """What a model reaches on topics at each temperature; the topics of folds can be joined."""

    value: Floats
    """(temperatures, topics): the objective, or under a bound the utility."""
    cost: Floats
    """(temperatures, topics): under a bound the disparity, 0 where it is undefined; else 0."""
    defined: int = 0
    """On how many topics the disparity is defined."""

    def __add__(self, other: Measured) -> Measured:
        value, cost = (np.hstack(pair) for pair in ((self.value, other.value), (self.cost, other.cost)))
        return Measured(value, cost, self.defined + other.defined)

    def means(self, bound: float | None) -> list[tuple[float, float | None]]:
        """The mean value, and under a bound the mean disparity, at each temperature."""
        costs = self.cost.sum(axis=1) / max(1, self.defined)
        return [
            (value, None if bound is None else cost)
            for value, cost in zip(self.value.mean(axis=1).tolist(), costs.tolist(), strict=True)
        ]

    def preferences(self, bound: float | None) -> list[Preference]:
        """What orders the temperatures: the objective, or the utility of those that meet the bound."""
        return [_preference(value, cost, bound) for value, cost in self.means(bound)]

    def best(self, temperatures: Sequence[float], bound: float | None) -> Chosen:
        """The best temperature, and what is reached there.

        Where the disparity crosses the bound between two temperatures, one between them is taken that about meets it:
        disparity and utility are taken as linear in log T there. Otherwise models would be compared by how far below
        the bound one of the temperatures happens to be. There, the slope of utility by disparity times the excess of a
        topic's disparity over the bound is subtracted from the topic's utility. This leaves the mean as it is, and
        makes the spread over topics that of the utility *at the bound*: it is as uncertain as the disparity.
        """
        chosen = [
            Chosen(temperature, values, cost)
            for temperature, values, (_, cost) in zip(
                temperatures, self.value, self.means(bound), strict=True
            )
        ]
        if bound is not None:
            chosen += self._at_bound(temperatures, bound)
        return max(chosen, key=lambda each: each.preference(bound))

    def _at_bound(self, temperatures: Sequence[float], bound: float) -> Iterator[Chosen]:
        """What is reached where the disparity crosses the bound between two temperatures."""
        # By topic; the mean is that over the topics on which the disparity is defined.
        costs = self.cost * self.value.shape[1] / max(1, self.defined)
        for at, (low, high) in enumerate(pairwise(costs.mean(axis=1).tolist())):
            if low > bound >= high:
                share = (low - bound) / (low - high)
                value, cost = ((1 - share) * each[at] + share * each[at + 1] for each in (self.value, costs))
                slope = (self.value[at] - self.value[at + 1]).mean() / (low - high)
                temperature = temperatures[at] * (temperatures[at + 1] / temperatures[at]) ** share
                yield Chosen(temperature, value - slope * (cost - bound), bound)


Preference: TypeAlias = tuple[bool, float]


def _preference(value: float, cost: float | None, bound: float | None) -> Preference:
    return (True, value) if bound is None or cost is None else preference(value, cost, bound)


class Chosen(NamedTuple):
    """A temperature, and the value on each topic, and under a bound the mean disparity, that a model reaches at it."""

    temperature: float
    values: Floats
    cost: float | None

    @property
    def value(self) -> float:
        """The mean over topics."""
        return float(self.values.mean())

    def preference(self, bound: float | None) -> Preference:
        """What orders them, as `Measured.preferences`."""
        return _preference(self.value, self.cost, bound)

    def is_level_with(self, best: Chosen, bound: float | None) -> bool:
        """Whether it meets the bound, if any, with a utility within `LEVEL` standard errors of that of the best.

        The standard error is that of the difference, paired by topic.
        """
        difference = best.values - self.values
        error = difference.std() / math.sqrt(max(1, len(difference) - 1))
        return bound is not None and self.preference(bound)[0] and bool(difference.mean() <= LEVEL * error)


class Way(NamedTuple):
    """A way to train: with a weight decay, and within the bound of the disparity if there is one, or for utility alone.

    Utility alone, at a higher temperature, may meet a bound on other topics with more utility than a model that was
    trained within it.
    """

    weight_decay: float
    bounded: bool = True


def simplest(tried: dict[Way, Chosen], bound: float | None) -> Way:
    """The first way that is level with the best: utility alone before a bound, a strong decay before a weak one."""
    best = max(tried.values(), key=lambda each: each.preference(bound))
    return next(way for way, each in tried.items() if each is best or each.is_level_with(best, bound))


@dataclass(frozen=True)
class Training:
    """A method that L-BFGS can train: its settings, and its loss."""

    settings: Settings
    loss: Loss

    def solve(
        self,
        model: Model,
        data: Dataset,
        way: Way,
        on_epoch: OnEpoch | None = None,
        earlier: Solution | None = None,
    ) -> Solution:
        """Train a model from where its parameters are: with another weight decay, those of the `earlier` solution."""
        settings, bound = self.settings, self.settings.max_disparity
        options: Any = {
            "weight_decay": way.weight_decay,
            "iterations": settings.iterations,
            "on_epoch": on_epoch,
        }
        if bound is None or not way.bounded:
            free = PolicyGradient(replace(settings.objective, lam=0.0))
            return minimise_loss(model, self.loss if bound is None else free, data, **options)
        defined = max(1, topics_defined(settings, data))  # a fold without any disparity meets the bound
        multiplier = earlier.multiplier if earlier else None
        return maximise_within(
            model, settings.objective, data, bound, defined, multiplier=multiplier, **options
        )

    def measure(self, model: Model, data: Dataset, temperatures: tuple[float, ...]) -> Measured:
        """What the model reaches on data."""
        shape, done = (len(temperatures), len(data)), 0
        value, cost = np.zeros(shape), np.zeros(shape)
        for batch in data.batches():
            scores = batch.masked(model.scores(batch.features))
            topics = slice(done, done := done + len(scores))
            for number, temperature in enumerate(temperatures):
                if self.settings.max_disparity is None:
                    value[number, topics] = self.loss.quality(scores / temperature, batch)
                    continue
                policy, objective = PlackettLuce(scores / temperature), self.settings.objective
                for term in objective.exposure_terms:
                    exposed = batch.block.exposed(
                        policy.exposure(term.attention, term.cutoff, tolerance=1e-6).value
                    )
                    for part in term.parts:
                        worth, _ = sum_at([part], exposed)
                        if part is objective.parts[-1]:
                            cost[number, topics] -= worth
                        else:
                            value[number, topics] += worth
        defined = 0 if self.settings.max_disparity is None else topics_defined(self.settings, data)
        return Measured(value, cost, defined)

    def train(
        self, model: Model, train: Dataset, valid: Dataset | None, on_epoch: OnEpoch | None = None
    ) -> tuple[Solution, FitRecord]:
        """Train a model, with the weight decay and the temperature that are given or chosen."""
        settings, bound, start = self.settings, self.settings.max_disparity, copy.deepcopy(model)
        default = FOLDS if bound is not None or train.features.shape[1] > len(train) else 0
        folds = 0 if valid is not None else default if settings.folds is None else settings.folds
        folds = min(folds, len(train))
        decay, temperature = settings.weight_decay, settings.temperature
        if (valid is None and folds < 2) or (decay is not None and temperature is not None):
            way = Way(WEIGHT_DECAY if decay is None else decay)
            solution = self.solve(model, train, way, on_epoch)
            record = FitRecord("lbfgs", weight_decay=way.weight_decay, temperature=temperature or 1.0)
            return solution, self._judged(record, solution, model, start, train, train)
        decays = WEIGHT_DECAYS if bound is None else _DECAYS_WITHIN
        temperatures = TEMPERATURES if bound is None else _HIGH_TEMPERATURES
        temperatures = temperatures if temperature is None else (temperature,)
        paths = [
            [Way(each, bounded) for each in (decays if decay is None else (decay,))]
            for bounded in ((True,) if bound is None else (False, True))
        ]
        best: dict[Way, Chosen] = {}
        fits = [_Fit(self, copy.deepcopy(start)) for _ in range(folds or 1)]
        for path in paths:
            for fit in fits:
                fit.restart()
            worse = 0
            for way in path:
                splits = [(train, valid)] if valid is not None else _folds(train, folds, settings.seed)
                sums = [
                    self.measure(fit.go_on(way, known, on_epoch), held, temperatures)
                    for fit, (known, held) in zip(fits, splits, strict=True)
                ]
                best[way] = functools.reduce(operator.add, sums).best(temperatures, bound)
                reached = [best[each].preference(bound) for each in path if each in best]
                worse = 0 if reached[-1] == max(reached) else worse + 1
                # Weaker ones are taken to be worse still. Training within a bound takes the longest by far.
                if worse == (2 if bound is None or not way.bounded else 1):
                    break
        chosen = simplest(best, bound)
        if valid is not None:
            solution, model.parameters = fits[0].states[chosen]
        else:
            path = next(path for path in paths if chosen in path)
            fit = _Fit(self, model)
            for way in path[: path.index(chosen) + 1]:
                fit.go_on(way, train, on_epoch)
            solution, _ = fit.states[chosen]
        kept = best[chosen].temperature
        if bound is not None:  # chosen on other topics, but the bound is for the training topics
            higher = (kept, *(each for each in temperatures if each > kept))
            within = [met for met, _ in self.measure(model, train, higher).preferences(bound)]
            kept = higher[within.index(True)] if True in within else kept
        candidates = tuple(
            Candidate(*way, each.temperature, each.value, each.cost) for way, each in best.items()
        )
        on = "validation data" if valid is not None else f"{folds} folds"
        record = FitRecord("lbfgs", True, chosen.weight_decay, kept, on, candidates)
        deciding = train if valid is None else valid
        return solution, self._judged(record, solution, model, start, train, deciding)

    def _judged(
        self,
        record: FitRecord,
        solution: Solution,
        model: Model,
        start: Model,
        train: Dataset,
        deciding: Dataset,
    ) -> FitRecord:
        """The record with whether the model is better than without training, and under a bound with what was reached.

        Without training means as it was at the start, or a random order, whichever is better.
        """
        bound, temperature = self.settings.max_disparity, (record.temperature,)
        before = max(self.measure(start, deciding, (1.0, _RANDOM)).preferences(bound))
        after = self.measure(model, deciding, temperature).preferences(bound)[0]
        record = replace(record, improved=after > (before[0], before[1] + _LEAST_GAIN))
        if bound is None:
            return record
        reached = self.measure(model, train, temperature)
        ((_, disparity),) = reached.means(bound)
        return replace(record, multiplier=solution.multiplier, disparity=disparity)


class _Fit:
    """A model that is trained in one way after the other, each from the solution of the one before.

    Not with hidden layers: a strong weight decay makes all of their parameters 0, where every gradient is 0.
    """

    def __init__(self, training: Training, model: Model) -> None:
        self.training, self.model, self.start = training, model, dict(model.parameters)
        self.solution: Solution | None = None
        self.states: dict[Way, tuple[Solution, dict[str, Floats]]] = {}
        """The solution of each way, and its parameters."""

    def restart(self) -> None:
        """Train the next way from the start."""
        self.solution, self.model.parameters = None, dict(self.start)

    def go_on(self, way: Way, data: Dataset, on_epoch: OnEpoch | None) -> Model:
        """Train the model in the next way."""
        if not self._is_met_without(way, data):
            if self.training.settings.model != "linear":
                self.restart()
            self.solution = self.training.solve(self.model, data, way, on_epoch, self.solution)
        assert self.solution is not None  # noqa: S101
        self.states[way] = self.solution, dict(self.model.parameters)
        return self.model

    def _is_met_without(self, way: Way, data: Dataset) -> bool:
        """Whether training for utility alone meets the bound: then its solution, which is taken, is the one within."""
        free, bound = way._replace(bounded=False), self.training.settings.max_disparity
        if bound is None or not way.bounded or free not in self.states:
            return False
        solution, parameters = self.states[free]
        model = copy.copy(self.model)
        model.parameters = parameters
        is_met, _ = self.training.measure(model, data, (1.0,)).preferences(bound)[0]
        if is_met:
            self.solution, self.model.parameters = replace(solution, multiplier=0.0), dict(parameters)
        return is_met


def _folds(data: Dataset, count: int, seed: int) -> Iterator[tuple[Dataset, Dataset]]:
    """The topics without each of the folds, and the fold."""
    order = np.random.default_rng([seed, 3]).permutation(len(data))
    for fold in range(count):
        held = np.sort(order[fold::count])
        yield data.split(np.setdiff1d(order, held)), data.split(held)


def topics_defined(settings: Settings, data: Dataset) -> int:
    """On how many topics the disparity is defined, for the uniform policy, which gives exposure to every document."""
    disparity = settings.objective.disparity
    if not isinstance(disparity, Differentiable):
        return 0
    count = 0
    for batch in data.batches():
        uniform = PlackettLuce(np.where(batch.present, 0.0, -np.inf))
        exposure = uniform.exposure(disparity.attention_model, disparity.cutoff).value
        values = disparity.value_and_gradient(batch.block.exposed(exposure))[0]
        count += int(np.count_nonzero(~np.isnan(values)))
    return count

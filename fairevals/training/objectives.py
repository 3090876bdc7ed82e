"""The objective of a policy, made of measures: U(π|q) − λ·D(π|q) + γ·entropy, with its exact value.

The measures are those of `fairevals.measures`: a name means the same here as everywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.special import log_softmax

from fairevals.attention import Attention
from fairevals.collection import Exposed, Ranked
from fairevals.errors import UsageError, escape
from fairevals.measures import Measure, RankingMeasure, parse_measure, parse_measures
from fairevals.measures.base import WithAttention
from fairevals.measures.numeric import absolute
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training.data import Batch
from fairevals.typing import Floats, Ints

UTILITY = "nDCG(dcg='exp-log2')"
"""The utility of Singh & Joachims 2019: gain 2^g − 1 over the whole list."""
DISPARITY = "D_group(attr='group')"

Differentiable: TypeAlias = WithAttention
"""A measure that is a function of exposure and has a gradient with respect to it."""


@dataclass(frozen=True)
class WeightedMeasure:
    """−weight·cost of a measure: weight·value if higher is better, −weight·value if lower is better.

    For a measure that is best at a target the cost is the distance from it. A topic on which the measure is undefined
    contributes 0, and no gradient.
    """

    weight: float
    measure: Measure

    def __post_init__(self) -> None:
        measure = self.measure
        if measure.across_topics:
            why = "it has one value for all topics together, and training goes topic by topic"
            raise UsageError(f"{measure} cannot be trained for: {why}")
        if isinstance(measure, Differentiable):
            if measure.attention_model.looks_at_grades:
                raise UsageError(f"{measure} cannot be trained for: its attention depends on grades")
        elif not isinstance(measure, RankingMeasure):
            raise UsageError(f"{measure} cannot be trained for: it combines other measures")
        measure.depth  # noqa: B018 -- raises if the measure lacks its cutoff

    def contribution(self, values: Floats) -> Floats:
        """What values of the measure contribute to an objective."""
        worth = -self.weight * self.measure.direction.cost(values)
        return np.where(np.isnan(worth), 0.0, worth)

    def of_rankings(self, ranked: Ranked) -> Floats:
        """The contribution (topics, samples) of each ranking."""
        if not isinstance(self.measure, RankingMeasure):
            raise UsageError(f"{self.measure} is no measure of a single ranking, so it is no reward")
        return self.contribution(self.measure.of_ranking(ranked))

    def of_exposure(self, exposed: Exposed, smoothing: float = 0.0) -> tuple[Floats, Floats]:
        """The contribution (topics,) at these exposures, and its gradient (topics, documents).

        With a smoothing above 0 the kinks of the measure are rounded off (see `fairevals.measures.base.hinge`).
        """
        assert isinstance(self.measure, Differentiable)  # noqa: S101 -- terms have only such measures
        (values, gradient), direction = self.measure.smoothed(exposed, smoothing), self.measure.direction
        if direction.target is not None:
            distance, sign = absolute(values - direction.target, smoothing)
            worth, gradient = -self.weight * distance, -self.weight * sign[:, None] * gradient
        else:
            weight = self.weight if direction.word == "higher" else -self.weight
            worth, gradient = weight * values, weight * gradient
        undefined = np.isnan(values)
        return np.where(undefined, 0.0, worth), np.where(undefined[:, None], 0.0, gradient)

    @property
    def has_kinks(self) -> bool:
        """Whether its gradient by exposure jumps, as at max(0, ·)."""
        measure = self.measure
        is_smooth = isinstance(measure, Differentiable) and "smoothed" not in vars(type(measure))
        return not is_smooth or measure.direction.target is not None


_WEIGHTED = re.compile(r"(?:(-?\d{1,9}(?:\.\d{1,17})?|-?\.\d{1,17})\s*\*\s*)?([A-Za-z].*)", re.S)


def parse_utility(utility: Any) -> tuple[WeightedMeasure, ...]:
    """Parse measures joined by `+`, each with an optional weight; higher values must be better.

    One or several measures as objects are the same as their names joined.

    >>> [(part.weight, str(part.measure)) for part in parse_utility("0.5*AP + nDCG@10")]
    [(0.5, 'AP'), (1.0, 'nDCG@10')]
    """
    text = utility if isinstance(utility, str) else "+".join(map(str, parse_measures(utility)))
    parts = []
    for piece in re.split(r"\+(?![^(]*\))", text):
        match = _WEIGHTED.fullmatch(piece.strip())
        if not match:
            expected = "expected, for example, nDCG@10 or 0.5*AP+0.5*RR"
            raise UsageError(f"cannot read the utility {escape(text)!r}; {expected}")
        measure = parse_measure(match[2])
        if measure.direction.word != "higher":
            raise UsageError(f"{measure} cannot be a utility: its direction is {measure.direction}")
        parts.append(WeightedMeasure(float(match[1] or 1), measure))
    return tuple(parts)


def total_reward(parts: Sequence[WeightedMeasure], rankings: Ints, batch: Batch) -> Floats:
    """The summed contributions (topics, samples) of rankings (topics, samples, ranks), −1 where one has ended."""
    total = np.zeros(rankings.shape[:2])
    if parts:
        ranked = batch.block.reordered(rankings)
        for part in parts:
            total += part.of_rankings(ranked)
    return total


def depth_of(parts: Sequence[WeightedMeasure]) -> int | None:
    """How many ranks the measures look at; None for all."""
    depths = [part.measure.depth for part in parts]
    return None if None in depths else max((d for d in depths if d is not None), default=None)


@dataclass(frozen=True)
class ExposureTerm:
    """The measures of an objective that are functions of exposure under one attention model and cutoff."""

    attention: Attention
    cutoff: int | None
    parts: tuple[WeightedMeasure, ...]

    def at(self, exposure: Floats, batch: Batch, smoothing: float = 0.0) -> tuple[Floats, Floats]:
        """The summed contributions (topics,) at these exposures, and their gradient (topics, documents)."""
        return sum_at(self.parts, batch.block.exposed(exposure), smoothing)


def sum_at(
    parts: Sequence[WeightedMeasure], exposed: Exposed, smoothing: float = 0.0
) -> tuple[Floats, Floats]:
    """The summed contributions (topics,) of measures at exposures, and their gradient (topics, documents)."""
    total, gradient = np.zeros(len(exposed.exposure)), np.zeros(exposed.exposure.shape)
    for part in parts:
        value, slope = part.of_exposure(exposed, smoothing)
        total += value
        gradient += slope
    return total, gradient


@dataclass(frozen=True)
class Objective:
    """What is maximised for each topic: U(π|q) − λ·D(π|q) + γ·H (Singh & Joachims 2019, equation 1).

    U is a weighted sum of measures. D is the cost of any measure: its value where lower is better, minus its value
    where higher is better, the distance from its target otherwise. H is the entropy of softmax(scores) (section
    3.2.1). On topics where a measure is undefined it counts as 0.

    >>> [(part.weight, str(part.measure)) for part in Objective.of("AP", lam=2.0).parts]
    [(1.0, 'AP'), (2.0, "D_group(attr='group')")]
    """

    utility: tuple[WeightedMeasure, ...]
    lam: float
    disparity: Measure
    entropy: float

    def __post_init__(self) -> None:
        self.parts  # noqa: B018 -- raises if a measure cannot be trained for

    @classmethod
    def of(
        cls, utility: Any = UTILITY, lam: float = 0.0, disparity: Any = DISPARITY, entropy: float = 0.0
    ) -> Objective:
        """An objective from its measures or their names."""
        return cls(parse_utility(utility), lam, parse_measure(disparity), entropy)

    @cached_property
    def parts(self) -> tuple[WeightedMeasure, ...]:
        """All measures with their weights; the disparity only if λ is above 0."""
        return (*self.utility, *((WeightedMeasure(self.lam, self.disparity),) if self.lam else ()))

    @cached_property
    def rewards(self) -> tuple[WeightedMeasure, ...]:
        """The measures that are not functions of exposure."""
        return tuple(part for part in self.parts if not isinstance(part.measure, Differentiable))

    @cached_property
    def exposure_terms(self) -> tuple[ExposureTerm, ...]:
        """The measures that are functions of exposure, by attention model and cutoff."""
        grouped: dict[tuple[Attention, int | None], list[WeightedMeasure]] = {}
        for part in self.parts:
            if isinstance(part.measure, Differentiable):
                grouped.setdefault((part.measure.attention_model, part.measure.cutoff), []).append(part)
        return tuple(ExposureTerm(*key, tuple(parts)) for key, parts in grouped.items())

    @cached_property
    def has_kinks(self) -> bool:
        """Whether its gradient jumps."""
        return any(part.has_kinks for part in self.parts)

    def value(self, scores: Floats, batch: Batch, samples: int = 100, tolerance: float = 1e-6) -> Floats:
        """The objective of each topic without the entropy, which only serves training.

        Functions of exposure are exact. Other measures are means over `samples` rankings drawn with a fixed seed, so
        that two models can be compared.
        """
        policy, total = PlackettLuce(scores), np.zeros(len(scores))
        if self.rewards:
            rankings = policy.sample(samples, depth_of(self.rewards), rng=0)
            total += total_reward(self.rewards, rankings, batch).mean(axis=1)
        for term in self.exposure_terms:
            exposure = policy.exposure(term.attention, term.cutoff, tolerance=tolerance).value
            total += term.at(exposure, batch)[0]
        return total


def entropy_with_gradient(scores: Floats) -> tuple[Floats, Floats]:
    """H = −Σ p log p of p = softmax(scores) (topics, documents), and ∂H/∂s = −p (log p + H); −inf is padding.

    >>> value, gradient = entropy_with_gradient(np.zeros((1, 2)))
    >>> value.round(4), np.abs(gradient).round(4)
    (array([0.6931]), array([[0., 0.]]))
    """
    log_p = log_softmax(scores, axis=1)
    p = np.exp(log_p)
    log_p = np.where(p > 0, log_p, 0.0)
    entropy = -(p * log_p).sum(axis=1)
    return entropy, -p * (log_p + entropy[:, None])

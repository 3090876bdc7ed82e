"""The expected value of measures under a policy: exact where it can be, else sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairevals.attention import parse_attention
from fairevals.collection import Exposed, Ranked
from fairevals.collection.blocks import Block
from fairevals.evaluation.prepare import parts_of
from fairevals.measures import (
    CompositeMeasure,
    ExposureMeasure,
    LinearMeasure,
    Measure,
    RankingMeasure,
)
from fairevals.policy.plackett_luce import Estimate
from fairevals.policy.policies import (
    Exposure,
    OneRanking,
    Policy,
    jackknife,
)
from fairevals.typing import Bools, Floats

if TYPE_CHECKING:
    pass


CELLS_OF_SAMPLES = 1 << 22
"""How many (topic, sample, rank, group) cells are looked at together, at most."""


def expectations(measures: Sequence[Measure], policy: Policy, block: Block) -> list[Estimate]:
    """The expected value of each measure on each topic of the block: exact where it can be, else sampled."""
    found: dict[str, Estimate] = {}
    exposures: dict[tuple[str, int | None], Exposure] = {}
    needed = {str(part): part for measure in measures for part in parts_of(measure)}
    sampled = {}
    for name, measure in needed.items():
        if isinstance(measure, ExposureMeasure) or (isinstance(measure, LinearMeasure) and policy.sampled):
            found[name] = _of_exposure(measure, policy, block, exposures)
        elif isinstance(measure, RankingMeasure):
            sampled[name] = measure
    found.update(_of_rankings(sampled, policy, block))
    for name, estimate in found.items():
        found[name] = _settle_missing(needed[name], block, estimate)
    return [_combined(measure, found) for measure in measures]


def _combined(measure: Measure, found: Mapping[str, Estimate]) -> Estimate:
    if not isinstance(measure, CompositeMeasure):
        return found[str(measure)]
    parts = [_combined(part, found) for part in measure.parts()]
    values = tuple(part.value for part in parts)
    centre = measure.combine(values)
    if all(part.se is None for part in parts):
        return Estimate(centre)
    # To first order: how far the value moves when each part moves by its standard error.
    squares = np.zeros(centre.shape)
    for i, part in enumerate(parts):
        if part.se is not None:
            moved = tuple(v + part.se if j == i else v for j, v in enumerate(values))
            squares = squares + (measure.combine(moved) - centre) ** 2
    return Estimate(centre, np.sqrt(squares))


def _of_exposure(
    measure: ExposureMeasure | LinearMeasure,
    policy: Policy,
    block: Block,
    known: dict[tuple[str, int | None], Exposure],
) -> Estimate:
    attention = parse_attention(measure.attention)
    key = (str(attention), measure.cutoff)
    if key not in known:
        known[key] = policy.exposure(block, attention, measure.cutoff)
    exposure = known[key]
    value = measure.of_exposure(_exposed(block, exposure.value))
    if exposure.left_out is None:
        return Estimate(value)
    without = np.stack([measure.of_exposure(_exposed(block, each)) for each in exposure.left_out])
    return jackknife(value, without)


def _exposed(block: Block, exposure: Floats) -> Exposed:
    return Exposed(
        grades=block.grades,
        present=block.present,
        ideal=block.ideal,
        max_grade=block.max_grade,
        attributes=block.attributes,
        utility_weight=block.utility_weight,
        exposure=exposure,
        retrieved=block.scores > -np.inf,
    )


def _of_rankings(measures: Mapping[str, RankingMeasure], policy: Policy, block: Block) -> dict[str, Estimate]:
    """Means over the policy's rankings, all measures on the same ones."""
    if not measures:
        return {}
    depths = [measure.depth for measure in measures.values()]
    depth = None if None in depths else max(d for d in depths if d is not None)
    if isinstance(policy, OneRanking):
        ranked = block.ranked(depth)
        return {name: Estimate(measure.of_ranking(ranked)) for name, measure in measures.items()}
    order = policy.rankings(block, depth)
    topics, samples, ranks = order.shape
    groups = max([1, *(len(a.groups) for a in block.attributes.values())])
    step = max(1, CELLS_OF_SAMPLES // max(1, topics * ranks * groups))
    values = {name: np.zeros((topics, samples)) for name in measures}
    for start in range(0, samples, step):
        part: Ranked = block.reordered(order[:, start : start + step])
        for name, measure in measures.items():
            values[name][:, start : start + step] = measure.of_ranking(part)
    has_any: Bools = np.any(order >= 0, axis=2)
    return {name: _sample_mean(found, has_any, policy.sampled) for name, found in values.items()}


def _sample_mean(values: Floats, counts: Bools, sampled: bool) -> Estimate:
    """Mean over the samples that count, (topics, samples) → (topics,), and its standard error if they were drawn."""
    # A topic without any ranking: all its (empty) samples say what the measure is worth on nothing.
    counts = counts | ~counts.any(axis=1, keepdims=True)
    count = np.maximum(counts.sum(axis=1), 1)
    values = np.where(counts, values, 0.0)
    mean = np.cumsum(values, axis=1)[:, -1] / count if values.shape[1] else np.zeros(values.shape[0])
    if not sampled:
        return Estimate(mean)
    spread = np.where(counts, values - mean[:, None], 0.0) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = spread.sum(axis=1) / (count - 1)
    return Estimate(mean, np.sqrt(variance / count))


def _settle_missing(measure: Measure, block: Block, estimate: Estimate) -> Estimate:
    """Topics of which the run has nothing: the measure's value for those, where it is defined there at all."""
    gone = block.retrieved == 0
    if not gone.any():
        return estimate
    value = estimate.value.copy()
    if np.isnan(measure.missing):
        value[gone] = np.nan
    else:  # still undefined where no ranking could have had a value
        value[gone & ~np.isnan(value)] = measure.missing
    se = None if estimate.se is None else np.where(gone, np.nan, estimate.se)
    return Estimate(value, se)

"""The expected value of measures under a policy: exact where it can be, else sampled."""

from collections.abc import Mapping, Sequence

import numpy as np

from fairevals.attention import Attention
from fairevals.collection import Ranked
from fairevals.collection.blocks import Block, Requirements, blocks
from fairevals.collection.collection import Collection
from fairevals.collection.run import Run
from fairevals.evaluation.plan import parts_of
from fairevals.io.task import Task
from fairevals.measures import CompositeMeasure, ExposureMeasure, LinearMeasure, Measure, RankingMeasure
from fairevals.measures.base import divide, rank_sum
from fairevals.policy.plackett_luce import Estimate
from fairevals.policy.policies import Exposure, OneRanking, Policy, jackknife
from fairevals.typing import Bools, Floats

CELLS_OF_SAMPLES = 1 << 22
"""How many (topic, sample, rank, group) cells are looked at together, at most."""


def expectations(
    measures: Sequence[Measure], policy: Policy, block: Block, task: Task | None = None
) -> list[Estimate]:
    """The expected value of each measure on each topic of the block: exact where it can be, else sampled.

    The task decides what topics without documents or without relevant documents are worth.
    """
    estimates: dict[str, Estimate] = {}
    exposures: dict[tuple[str, int | None], Exposure] = {}
    needed = {str(part): part for measure in measures for part in parts_of(measure)}
    sampled = {}
    for name, measure in needed.items():
        if isinstance(measure, ExposureMeasure) or (isinstance(measure, LinearMeasure) and policy.sampled):
            estimates[name] = _of_exposure(measure, policy, block, exposures)
        elif isinstance(measure, RankingMeasure):
            sampled[name] = measure
    estimates.update(_of_rankings(sampled, policy, block))
    for name, estimate in estimates.items():
        estimates[name] = _with_conventions(needed[name], block, estimate, task or Task())
    return [_combined(measure, estimates) for measure in measures]


def _combined(measure: Measure, estimates: Mapping[str, Estimate]) -> Estimate:
    if not isinstance(measure, CompositeMeasure):
        return estimates[str(measure)]
    parts = [_combined(part, estimates) for part in measure.parts()]
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
    key = (str(measure.attention_model), measure.cutoff)
    if key not in known:
        known[key] = policy.exposure(block, measure.attention_model, measure.cutoff)
    exposure = known[key]
    value = measure.of_exposure(block.exposed(exposure.value))
    if exposure.left_out is None:
        return Estimate(value)
    without = np.stack([measure.of_exposure(block.exposed(each)) for each in exposure.left_out])
    return jackknife(value, without)


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
    return {name: _sample_mean(drawn, has_any, policy.sampled) for name, drawn in values.items()}


def _sample_mean(values: Floats, counts: Bools, sampled: bool) -> Estimate:
    """Mean (topics,) over the samples (topics, samples) that count, and its standard error if they were drawn.

    A ranking on which the measure is undefined is left out: whether the mean is defined must not depend on whether
    a rare ranking happens to be drawn.
    """
    # A topic without any ranking: its empty samples have the value of the measure on an empty ranking.
    counts = (counts | ~counts.any(axis=1, keepdims=True)) & ~np.isnan(values)
    count = counts.sum(axis=1)
    mean = divide(rank_sum(np.where(counts, values, 0.0)), count, count > 0)
    if not sampled:
        return Estimate(mean)
    spread = np.where(counts, values - mean[:, None], 0.0) ** 2
    # One value says nothing about its error: 1/2 is the largest standard deviation of a measure in [0, 1].
    variance = divide(spread.sum(axis=1), count - 1, count > 1, otherwise=0.25)
    return Estimate(mean, np.sqrt(divide(variance, count, count > 0)))


def _with_conventions(measure: Measure, block: Block, estimate: Estimate, task: Task) -> Estimate:
    """The values under the task's conventions for missing topics and topics without relevant documents."""
    gone = block.retrieved == 0
    value, error = estimate.value.copy(), estimate.se
    if gone.any():
        missing = np.nan if task.missing == "skip" else measure.missing
        # A value that no ranking could have stays undefined.
        value[gone] = np.where(np.isnan(value[gone]), np.nan, missing)
    if task.conventions == "trec_eval" and measure.is_utility:
        value[np.isnan(value) & ~(gone & (task.missing == "skip"))] = 0.0
    return Estimate(value, None if error is None else np.where(gone, np.nan, error))


class _EqualAttention(OneRanking):
    """The ranking of the judged documents by grade, in which all get the same exposure whatever the cutoff."""

    def exposure(self, block: Block, attention: Attention, cutoff: int | None) -> Exposure:
        return Exposure(block.present.astype(np.float64))


def defined_on_judged(
    collection: Collection, measures: Sequence[Measure], attributes: tuple[str, ...]
) -> Bools:
    """(measures, topics): whether each measure has a value for the ranking of the judged documents by grade."""
    qrels = collection.qrels
    rows = np.lexsort((-qrels.grades, qrels.topic_of))
    lists = [(topic, "") for topic in qrels.topics]
    docs, grades = qrels.docs.take(rows), qrels.grades[rows]
    judged = Run("judged", qrels.source, lists, qrels.offsets, docs, grades, len(rows))
    defined = np.zeros((len(measures), len(qrels.topics)), dtype=bool)
    for block in blocks(judged, collection, Requirements(None, True, attributes)):
        here = slice(block.first, block.first + len(block.topics))
        for m, estimate in enumerate(expectations(measures, _EqualAttention(), block)):
            defined[m, here] = ~np.isnan(estimate.value)
    return defined

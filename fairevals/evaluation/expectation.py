"""The expected value of measures under a policy: exact where it can be, else sampled."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from fairevals.collection.blocks import Block, Requirements, blocks
from fairevals.collection.collection import Collection
from fairevals.collection.run import Run
from fairevals.evaluation.plan import Plan, parts_of
from fairevals.io.task import Task
from fairevals.measures import CompositeMeasure, ExposureMeasure, LinearMeasure, Measure, RankingMeasure
from fairevals.measures.numeric import divide, rank_sum, stretches
from fairevals.policy.plackett_luce import AGREED, Estimate, agreeing_se
from fairevals.policy.policies import Exposure, OneRanking, Policy, jackknife
from fairevals.typing import Bools, Floats, Ints

CELLS_OF_SAMPLES = 1 << 22
"""How many (topic, sample, rank, group) cells are looked at together, at most."""


Exposures: TypeAlias = dict[tuple[str, int | None], Exposure]
"""By attention and cutoff."""
NEARLY = 1e-3
"""Samples that differ from their mean by less than this agree."""


def expectations(
    measures: Sequence[Measure],
    policy: Policy,
    block: Block,
    task: Task | None = None,
    exposures: Exposures | None = None,
) -> list[Estimate]:
    """The expected value of each measure on each topic of the block: exact where it can be, else sampled.

    The task decides what topics without documents or without relevant documents are worth. Measures across topics are
    undefined on each; the exposures that they need are added to `exposures`.
    """
    estimates: dict[str, Estimate] = {}
    exposures = {} if exposures is None else exposures
    needed = {str(part): part for measure in measures for part in parts_of(measure)}
    sampled = {}
    for name, measure in needed.items():
        if isinstance(measure, ExposureMeasure) and measure.across_topics:
            exposure_for(measure, policy, block, exposures)
            estimates[name] = Estimate(np.full(len(block.topics), np.nan))
        elif isinstance(measure, ExposureMeasure) or (isinstance(measure, LinearMeasure) and policy.sampled):
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


def exposure_for(
    measure: ExposureMeasure | LinearMeasure, policy: Policy, block: Block, known: Exposures
) -> Exposure:
    """The exposures that a measure needs, computed only once for all measures."""
    key = exposure_key(measure)
    if key not in known:
        known[key] = policy.exposure(block, measure.attention_model, measure.cutoff)
    return known[key]


def exposure_key(measure: ExposureMeasure | LinearMeasure) -> tuple[str, int | None]:
    """What the exposures of a measure depend on."""
    return str(measure.attention_model), measure.cutoff


def _of_exposure(
    measure: ExposureMeasure | LinearMeasure, policy: Policy, block: Block, known: Exposures
) -> Estimate:
    exposure = exposure_for(measure, policy, block, known)
    value = measure.of_exposure(block.exposed(exposure.value))
    if exposure.left_out is None:
        return Estimate(
            _within_bounds(measure, block, value) if isinstance(measure, LinearMeasure) else value
        )
    without = np.stack([measure.of_exposure(block.exposed(each)) for each in exposure.left_out])
    estimate = jackknife(value, without)
    agree = np.asarray(estimate.se) < AGREED * np.maximum(1.0, np.abs(value))
    return (
        _with_unseen(estimate, agree, policy.agreeing_se(block, measure.cutoff)) if agree.any() else estimate
    )


def _within_bounds(measure: LinearMeasure, block: Block, value: Floats) -> Floats:
    """The mean over rankings, which is never beyond the best or the worst of them: quadrature errs by 1e-12."""
    attention = measure.attention_model.weights(block.row.shape[1])
    if np.any(np.diff(attention) > 0):  # then the best ranking is not that by worth
        return value
    worth = measure.worth(block.exposed(np.zeros(block.row.shape)))
    best, worst = _down_and_up(measure, block, worth)
    return np.clip(value, worst, best)


def _with_unseen(estimate: Estimate, where: Bools, unseen: Floats) -> Estimate:
    """The estimate with the part of its standard error that samples cannot show (see `agreeing_se`), in [0, 1]."""
    if estimate.se is None:
        return estimate
    se = np.hypot(estimate.se, unseen * np.maximum(1.0, np.abs(estimate.value)))
    return Estimate(estimate.value, np.where(where, se, estimate.se))


def _is_constant(measure: RankingMeasure, block: Block) -> Bools:
    """(topics,): whether utility is the same for any ranking, because it is for those up and down by grade."""
    if measure.attributes != "none":
        return np.zeros(len(block.topics), dtype=bool)
    grades = np.nan_to_num(block.raw_grades, nan=-np.inf)
    down, up = _down_and_up(measure, block, grades)
    return np.asarray(down == up)


def _down_and_up(measure: RankingMeasure, block: Block, key: Floats) -> tuple[Floats, Floats]:
    """The values (topics,) of the rankings with the largest, and with the smallest, key of a document first."""
    down, up = (block.reordered(_ranking_by(block, sign * key)[:, None]) for sign in (-1, 1))
    return measure.of_ranking(down).ravel(), measure.of_ranking(up).ravel()


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
    by_topic, by_sample = block.ranked(0), block.reordered(order[:, :1, :0])
    terms = {name: measure.terms(by_topic) for name, measure in measures.items()}
    drawn = {str(term): (term, *np.empty((2, topics, samples))) for ts in terms.values() for term in ts}
    for start in range(0, samples, step):
        part, here = block.reordered(order[:, start : start + step]), slice(start, start + step)
        for term, values, weights in drawn.values():
            values[:, here], weight = term.of_ranking(part), term.weight(part)
            weights[:, here] = ~np.isnan(values[:, here]) if weight is None else weight
    counts: Bools = np.any(order >= 0, axis=2)
    # A topic without any ranking: its empty samples have the value of the measure on an empty ranking.
    counts = counts | ~counts.any(axis=1, keepdims=True)
    means = {}
    for name, (term, values, weights) in drawn.items():
        possible = np.full(topics, np.nan)
        if policy.sampled and not np.any(counts & ~np.isnan(values), axis=1).all():
            possible = _possible_value(term, block)
        means[name] = _sample_mean(values, weights, counts, possible)
    estimates, count = {}, counts.sum(axis=1)
    for name, measure in measures.items():
        centres, deviations = zip(*(means[str(term)] for term in terms[name]), strict=True)
        estimates[name] = Estimate(measure.combine(centres, by_topic))
        if policy.sampled:
            value = estimates[name].value
            moved = np.where(counts, measure.combine(deviations, by_sample), 0.0)
            se = np.sqrt((moved**2).sum(axis=1) / (count - 1) / count)
            se[np.isnan(value)] = np.nan
            estimates[name] = Estimate(value, se)
            # A rare ranking may have a value that is far from those that came up, if these are nearly the same.
            agree = np.max(np.abs(moved), axis=1) < NEARLY * np.maximum(1.0, np.abs(value))
            if agree.any():
                agree &= ~_is_constant(measure, block)
                unseen = agreeing_se(samples, policy.unseen(block, order, agree))
                estimates[name] = _with_unseen(estimates[name], agree, unseen)
    return estimates


def _sample_mean(values: Floats, weights: Floats, counts: Bools, possible: Floats) -> tuple[Floats, Floats]:
    """Σ weight·value / Σ weight (topics,) over the samples (topics, samples) that count, and each sample's deviation.

    The variance of the deviations is that of the mean times the number of samples (to first order, as the divisor is a
    mean over samples too). A value that some ranking has is `possible`: whether the mean is defined must not depend on
    whether a rare ranking happens to be drawn. Without any other value it is the mean.
    """
    weights = np.where(counts, weights, 0.0)
    total, count = rank_sum(weights), counts.sum(axis=1)
    drawn = np.any(counts & ~np.isnan(values), axis=1)
    values = np.where(np.isnan(values), 0.0, values)
    mean = divide(rank_sum(weights * values), total, total > 0)
    mean = np.where(drawn | ~np.isnan(possible), np.where(total > 0, mean, possible), np.nan)
    deviations = weights * (values - mean[:, None]) * divide(count, total, total > 0)[:, None]
    # One value says nothing about its error: 1/2 is the largest standard deviation of a measure in [0, 1].
    alone = np.count_nonzero(weights, axis=1) < 2
    return mean, np.where(alone[:, None], 0.5 * np.sqrt(np.maximum(count - 1, 1))[:, None], deviations)


def _possible_value(measure: RankingMeasure, block: Block) -> Floats:
    """A value (topics,) that a ranking of the retrieved documents has, if it takes those with a membership first.

    NaN where the measure is undefined for both of the rankings that then go up and down by grade: it is taken to be
    undefined for every ranking.
    """
    unknown = np.zeros(block.row.shape)
    for name in measure.attributes_used() if measure.attributes != "all" else block.attributes:
        unknown += ~block.attributes[name].known
    first, second = (
        measure.of_ranking(block.reordered(_ranking_by(block, unknown, grades)))
        for grades in (-block.grades, block.grades)
    )
    return np.where(np.isnan(first), second, first)


def _order_by(block: Block, *keys: Floats | Ints) -> Ints:
    """The documents (topics, documents) of each topic by the keys, most significant first; retrieved ones first."""
    cells = np.broadcast_to(np.arange(block.row.shape[1]), block.row.shape)
    return np.lexsort((cells, *keys[::-1], cells >= block.retrieved[:, None]), axis=1)


def _ranking_by(block: Block, *keys: Floats | Ints) -> Ints:
    """The retrieved documents in that order, −1 behind them."""
    ranks = np.arange(block.row.shape[1])
    return np.where(ranks < block.retrieved[:, None], _order_by(block, *keys), -1)


class _Alternating(OneRanking):
    """The documents of the groups of an attribute in turn, each group by grade: all groups get exposure early."""

    def __init__(self, attributes: Sequence[str]) -> None:
        self.attributes = attributes

    def rankings(self, block: Block, depth: int | None) -> Ints:
        group, turn = np.zeros((2, *block.row.shape), dtype=np.int64)
        for name in self.attributes:
            group = block.attributes[name].main_group
        order = _order_by(block, group, -block.grades)
        first, _ = stretches(np.take_along_axis(group, order, axis=1))
        np.put_along_axis(turn, order, np.arange(order.shape[1]) - first, axis=1)
        return _ranking_by(block, turn, group, -block.grades)[:, None, :depth]


def _with_conventions(measure: Measure, block: Block, estimate: Estimate, task: Task) -> Estimate:
    """The values under the task's conventions for missing topics and topics without relevant documents."""
    gone = block.retrieved == 0
    value, error = estimate.value.copy(), estimate.se
    if gone.any():
        missing = measure.of_missing(block.raw_grades[gone], task.conventions)
        # A value that no ranking could have stays undefined.
        value[gone] = np.where(np.isnan(value[gone]) | (task.missing == "skip"), np.nan, missing)
    if task.conventions == "trec_eval" and measure.is_utility:
        value[np.isnan(value) & ~(gone & (task.missing == "skip"))] = 0.0
    return Estimate(value, None if error is None else np.where(gone, np.nan, error))


def defined_on_judged(collection: Collection, plan: Plan, numbers: Sequence[int]) -> Bools:
    """(measures, topics): whether the measures of these numbers have a value for some ranking of judged documents."""
    qrels, names = collection.qrels, plan.requirements.attributes
    rows = np.lexsort((-qrels.grades, qrels.topic_of))
    lists = [(topic, "") for topic in qrels.topics]
    docs, grades = qrels.docs.take(rows), qrels.grades[rows]
    judged = Run("judged", qrels.source, lists, qrels.offsets, docs, grades, len(rows))
    # Where no document may lack a membership, those of judged documents that no run shows may still be missing.
    attributes = dict(collection.attributes)
    for name, attribute in attributes.items():
        if attribute.spec.unmapped == "error":
            attributes[name] = replace(attribute, spec=replace(attribute.spec, unmapped="skip"))
    collection = replace(collection, attributes=attributes)
    parts = [(m, part) for m, number in enumerate(numbers) for part in parts_of(plan.measures[number])]
    defined = np.ones((len(numbers), len(qrels.topics)), dtype=bool)
    for block in blocks(judged, collection, Requirements(None, True, names)):
        here = slice(block.first, block.first + len(block.topics))
        for m, part in parts:
            if part.across_topics:  # what it is computed from is there on every topic
                continue
            if isinstance(part, RankingMeasure):
                value = _possible_value(part, block)
            elif isinstance(part, ExposureMeasure):
                exposure = block.present.astype(np.float64)  # of a policy that may rank each document first
                if plan.policy.kind == "ranking":
                    ranking = _Alternating(part.attributes_used())
                    exposure = ranking.exposure(block, part.attention_model, part.cutoff).value
                value = part.of_exposure(block.exposed(exposure))
            defined[m, here] &= ~np.isnan(value)
    return defined

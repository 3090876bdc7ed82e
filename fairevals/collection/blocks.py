"""Runs joined with the judgements, as padded blocks of topics, cut so that memory stays bounded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from fairevals.collection.collection import Collection
from fairevals.collection.memberships import map_rows
from fairevals.collection.qrels import Qrels, in_order
from fairevals.collection.run import Run
from fairevals.collection.views import AttributeView, Exposed, Ranked
from fairevals.errors import InputError, Place, escape
from fairevals.ids import Ids, Index
from fairevals.typing import Array, Bools, Floats, Ints

CELLS = 1 << 20
"""How many (topic, document) cells a block has at most, unless one topic alone has more."""
GROUP_CELLS = 1 << 23
"""How many (topic, document, group) cells of one attribute a block has at most, unless one topic alone has more."""


@dataclass(frozen=True)
class Block:
    """Some topics of a run with their documents: retrieved documents come first, in rank order.

    Arrays are (topics, documents), padded at the end.
    """

    first: int
    """The number of the first topic."""
    topics: tuple[str, ...]
    documents: Ids
    row: Ints
    """The index of each cell's document in `documents`; −1 for padding."""
    raw_grades: Floats
    """As judged; NaN for unjudged documents and padding."""
    scores: Floats
    """−inf for what was not retrieved."""
    retrieved: Ints
    """(topics,): how many documents were retrieved."""
    ideal: Floats
    rankings: Ints | None
    """(topics, samples, ranks) of sampled rankings as cell numbers, −1 for padding; None where there is only one."""
    max_grade: float
    utility_weight: float = 1.0
    candidates: str = "judged"
    """Which documents means over a group are taken over: "judged", or "retrieved" (judged or retrieved)."""
    attributes: Mapping[str, AttributeView] = field(default_factory=dict)

    @property
    def present(self) -> Bools:
        """Whether a cell has a document."""
        return self.row >= 0

    @property
    def grades(self) -> Floats:
        """Grades as measures take them: unjudged and negative are 0."""
        return np.fmax(self.raw_grades, 0.0)

    @property
    def is_candidate(self) -> Bools:
        """Whether a cell has a document that means over a group, and target exposures, are taken over."""
        return ~np.isnan(self.raw_grades) if self.candidates == "judged" else self.present

    def exposed(self, exposure: Floats) -> Exposed:
        """The documents with the given exposures (topics, documents)."""
        return Exposed(
            grades=self.grades,
            present=self.present,
            ideal=self.ideal,
            max_grade=self.max_grade,
            attributes=self.attributes,
            utility_weight=self.utility_weight,
            exposure=exposure,
            candidates=self.is_candidate,
            judged=~np.isnan(self.raw_grades),
        )

    def order(self, depth: int | None = None) -> Ints:
        """The one ranking of each topic as cell numbers (topics, ranks), −1 for padding."""
        width = int(self.retrieved.max(initial=0))
        ranks = np.arange(width if depth is None else min(width, depth))
        return np.where(ranks < self.retrieved[:, None], ranks, -1)

    def ranked(self, depth: int | None = None) -> Ranked:
        """The one ranking of each topic."""
        return self.reordered(self.order(depth))

    def reordered(self, order: Ints) -> Ranked:
        """The given rankings: `order` is (topics, ranks) or (topics, samples, ranks), cell numbers or −1."""
        there = order >= 0
        cells = np.maximum(order, 0)
        topic = np.arange(len(self.topics)).reshape(-1, *[1] * (order.ndim - 1))
        per_topic = (slice(None), None)[: order.ndim - 1]  # as many leading axes as `order` has
        attributes = {
            name: a.with_rows(
                lambda membership: membership[topic, cells] * there[..., None],
                target=a.target[per_topic],
                applies=a.applies[per_topic],
            )
            for name, a in self.attributes.items()
        }
        return Ranked(
            grades=np.where(there, self.grades[topic, cells], 0.0),
            present=there,
            ideal=self.ideal[per_topic],
            max_grade=self.max_grade,
            attributes=attributes,
            utility_weight=self.utility_weight,
            documents=order,
            raw_grades=self.raw_grades,
            scores=self.scores,
            candidates=self.is_candidate,
            pool=self.attributes,
        )


@dataclass(frozen=True)
class Requirements:
    """What the measures need of a block, so that nothing else is computed."""

    depth: int | None = None
    """How many ranks they look at; None for all."""
    all_documents: bool = False
    """Whether judged documents that were not retrieved are included."""
    attributes: tuple[str, ...] = ()
    by_rank: tuple[str, ...] = ()
    """Those of which a measure needs the memberships of every document, and not only sums over documents."""


@dataclass(frozen=True)
class _Rows:
    """A run's documents, each once per topic: sorted by topic, retrieved ones first and in rank order."""

    topic: Ints
    docs: Ids
    scores: Floats
    grades: Floats
    retrieved: Bools

    @cached_property
    def cell(self) -> Ints:
        """The place of each document among those of its topic."""
        return np.arange(self.topic.size) - np.searchsorted(self.topic, self.topic)


class _Samples(NamedTuple):
    """Sampled rankings: one element per line of the run."""

    topic: Ints
    sample: Ints
    """The number of its ranking among those of the topic, in the order of their ids."""
    rank: Ints
    cell: Ints


def blocks(
    run: Run, collection: Collection, requirements: Requirements, *, sampled: bool = False, cells: int = CELLS
) -> Iterator[Block]:
    """The run beside the judgements, for all judged topics in order; `sampled` if topics have several rankings."""
    qrels = collection.qrels
    topic_of_list = np.array([qrels.number.get(topic, -1) for topic, _ in run.lists], dtype=np.int64)
    counts = np.diff(run.offsets)
    list_of = np.repeat(np.arange(len(run.lists)), counts)
    rank = np.arange(len(run)) - np.repeat(run.offsets[:-1], counts)
    kept = topic_of_list[list_of] >= 0
    if requirements.depth is not None:
        kept &= rank < requirements.depth
    kept_rows = np.flatnonzero(kept)
    topic, docs, scores = topic_of_list[list_of[kept_rows]], run.docs.take(kept_rows), run.scores[kept_rows]
    samples: _Samples | None = None
    if not sampled:
        rows, _ = with_judged(topic, docs, scores, qrels, requirements.all_documents)
    else:
        first, inverse = np.unique(Index(topic, docs).find(topic, docs), return_inverse=True)
        once = topic[first], docs.take(first), scores[first]
        rows, order = with_judged(*once, qrels, requirements.all_documents, by_name=True)
        number = _sample_numbers(run, topic_of_list)[list_of[kept_rows]]
        samples = _Samples(topic, number, rank[kept_rows], rows.cell[np.argsort(order)[inverse]])
    sizes = np.maximum(np.bincount(rows.topic, minlength=len(qrels.topics)), np.diff(qrels.offsets))
    if samples is not None:
        sizes = np.maximum(sizes, _sample_sizes(samples, run, qrels))
    # Groups for which there is an array of documents × groups; those of the others are one row per topic.
    widths = [1, *(collection.width(name, name in requirements.by_rank) for name in requirements.attributes)]
    groups = [1, *(len(collection.attributes[name].spec.groups) for name in requirements.attributes)]
    sizes = np.maximum(sizes, max(groups) // max(widths))
    for start, stop in _cuts(sizes, min(cells, GROUP_CELLS // max(widths))):
        yield _block(rows, samples, start, stop, collection, requirements)


def with_judged(
    topic: Ints, docs: Ids, scores: Floats, qrels: Qrels, all_documents: bool, by_name: bool = False
) -> tuple[_Rows, Ints]:
    """Join the grades, and add the judged documents that are missing if required; also the order of the given rows.

    Retrieved documents keep their order, or (`by_name`) are ordered by their ids, where a topic has several rankings.
    """
    at = qrels.index.find(topic, docs)
    grades = np.where(at >= 0, qrels.grades[at] if len(qrels) else np.nan, np.nan)
    retrieved = np.ones(topic.size, dtype=bool)
    if all_documents:
        unseen = np.ones(len(qrels), dtype=bool)
        unseen[at[at >= 0]] = False
        rest = np.flatnonzero(unseen)
        topic = np.concatenate([topic, qrels.topic_of[rest]])
        docs = Ids.concatenate([docs, qrels.docs.take(rest)])
        scores = np.concatenate([scores, np.full(rest.size, -np.inf)])
        grades = np.concatenate([grades, qrels.grades[rest]])
        retrieved = np.concatenate([retrieved, np.zeros(rest.size, dtype=bool)])
    # Documents without a rank come in the order of their ids, so that a shuffled file changes no sum.
    nameable = np.flatnonzero(~retrieved | by_name)
    names = np.zeros(topic.size, dtype=np.int64)
    names[nameable] = docs.take(nameable).ranks()
    order = np.lexsort((names, ~retrieved, topic)) if nameable.size else np.argsort(topic, kind="stable")
    return _Rows(topic[order], docs.take(order), scores[order], grades[order], retrieved[order]), order


def _sample_numbers(run: Run, topic_of_list: Ints) -> Ints:
    """The number of each list among those of its topic, in the order of their sample ids."""
    labels = {label: i for i, label in enumerate(in_order({sample for _, sample in run.lists}))}
    label = np.array([labels[sample] for _, sample in run.lists], dtype=np.int64)
    order = np.lexsort((label, topic_of_list))
    topic = topic_of_list[order]
    numbers: Ints = np.arange(order.size) - np.searchsorted(topic, topic)
    return numbers[np.argsort(order)]


def _sample_sizes(samples: _Samples, run: Run, qrels: Qrels) -> Ints:
    """(topics,): the cells of a topic's rankings, padded to the longest.

    Raises where a small file would need a lot of memory: many samples of which one is far longer.
    """
    count, deepest = np.zeros((2, len(qrels.topics)), dtype=np.int64)
    np.maximum.at(count, samples.topic, samples.sample + 1)
    np.maximum.at(deepest, samples.topic, samples.rank + 1)
    lines = np.bincount(samples.topic, minlength=len(qrels.topics))
    sizes: Ints = count * deepest
    for topic in np.flatnonzero(sizes > np.maximum(16 * lines, 1 << 24))[:1].tolist():
        many = f"{count[topic]} samples of topic {escape(qrels.topics[topic])!r}"
        excess = f"{many}, one with {deepest[topic]} documents"
        raise InputError(Place(run.source), excess, "samples of similar length")
    return sizes


def _cuts(sizes: Ints, cells: int) -> Iterator[tuple[int, int]]:
    """Ranges of topics whose arrays, padded to the largest size, have at most `cells` cells (or one topic)."""
    start, widest = 0, 0
    for topic, size in enumerate(sizes.tolist()):
        width = max(widest, size, 1)
        if topic > start and width * (topic - start + 1) > cells:
            yield start, topic
            start, width = topic, max(size, 1)
        widest = width
    if sizes.size:
        yield start, sizes.size


def _block(
    rows: _Rows,
    samples: _Samples | None,
    start: int,
    stop: int,
    collection: Collection,
    requirements: Requirements,
) -> Block:
    low, high = np.searchsorted(rows.topic, [start, stop])
    here = slice(int(low), int(high))
    topic, column, docs = rows.topic[here] - start, rows.cell[here], rows.docs.take(here)
    shape = (stop - start, int(column.max(initial=-1)) + 1)
    row = np.full(shape, -1, dtype=np.int64)
    row[topic, column] = np.arange(topic.size)
    raw_grades, scores = np.full(shape, np.nan), np.full(shape, -np.inf)
    raw_grades[topic, column] = rows.grades[here]
    scores[topic, column] = rows.scores[here]

    views: dict[str, AttributeView] = {}
    for name in requirements.attributes:
        attribute = collection.attributes[name]
        target, applies = attribute.target[start:stop], attribute.applies[start:stop]
        concerned = np.flatnonzero(attribute.applies[rows.topic[here]])
        known = collection.memberships(name, rows.topic[here][concerned], docs.take(concerned))
        cells = topic[concerned] * shape[1] + column[concerned]
        views[name] = AttributeView(
            groups=attribute.spec.groups,
            ordinal=attribute.spec.kind == "ordinal",
            factors=tuple(map_rows(weights, partial(_scattered, cells, shape)) for weights in known),
            target=target,
            applies=applies,
            divergence=attribute.spec.divergence,
            weight=attribute.spec.weight,
        )
    return Block(
        first=start,
        topics=collection.qrels.topics[start:stop],
        documents=docs,
        row=row,
        raw_grades=raw_grades,
        scores=scores,
        retrieved=np.bincount(topic[rows.retrieved[here]], minlength=stop - start),
        ideal=collection.qrels.ideal(start, stop),
        rankings=_rankings(samples, start, stop) if samples is not None else None,
        max_grade=collection.max_grade,
        utility_weight=collection.task.utility_weight,
        candidates=collection.task.candidates,
        attributes=views,
    )


def _scattered(cells: Ints, shape: tuple[int, int], weights: Array) -> Array:
    """Memberships (n, groups) at their cells of (topics, documents, groups); 0 elsewhere."""
    if cells.size < shape[0] * shape[1]:  # else they fill the block, in order
        filled = np.zeros((shape[0] * shape[1], weights.shape[1]), dtype=weights.dtype)
        filled[cells] = weights
        weights = filled
    return weights.reshape(*shape, weights.shape[1])


def _rankings(samples: _Samples, start: int, stop: int) -> Ints:
    """(topics, samples, ranks) of cell numbers; a topic without any ranking has an empty one."""
    here = np.flatnonzero((samples.topic >= start) & (samples.topic < stop))
    topic, sample, rank, cell = (column[here] for column in samples)
    shape = (stop - start, int(sample.max(initial=0)) + 1, int(rank.max(initial=-1)) + 1)
    rankings = np.full(shape, -1, dtype=np.int64)
    rankings[topic - start, sample, rank] = cell
    return rankings

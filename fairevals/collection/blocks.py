"""Runs joined with the judgements, as padded blocks of topics, cut so that memory stays bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from fairevals.collection.groups import Attribute
from fairevals.collection.qrels import Qrels, in_order
from fairevals.collection.run import Run
from fairevals.collection.views import AttributeView, Exposed, Ranked
from fairevals.errors import InputError, Place, escape
from fairevals.ids import Ids, keys
from fairevals.typing import Bools, Floats, Ints

CELLS = 1 << 20
"""How many (topic, document) cells a block has at most, unless one topic alone has more."""


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

    def exposed(self, exposure: Floats) -> Exposed:
        """The documents with the given exposures (topics, documents)."""
        judged = ~np.isnan(self.raw_grades)
        return Exposed(
            grades=self.grades,
            present=self.present,
            ideal=self.ideal,
            max_grade=self.max_grade,
            attributes=self.attributes,
            utility_weight=self.utility_weight,
            exposure=exposure,
            candidates=judged if self.candidates == "judged" else self.present,
            judged=judged,
        )

    def ranked(self, depth: int | None = None) -> Ranked:
        """The one ranking of each topic."""
        width = int(self.retrieved.max(initial=0))
        width = min(width, depth) if depth is not None else width
        ranks = np.arange(width)
        there = ranks < self.retrieved[:, None]
        return Ranked(
            grades=np.where(there, self.grades[:, :width], 0.0),
            present=there,
            ideal=self.ideal,
            max_grade=self.max_grade,
            attributes={
                name: replace(a, membership=a.membership[:, :width] * there[..., None])
                for name, a in self.attributes.items()
            },
            utility_weight=self.utility_weight,
            documents=np.where(there, ranks, -1),
            raw_grades=self.raw_grades,
        )

    def reordered(self, order: Ints) -> Ranked:
        """The given rankings: `order` is (topics, samples, ranks), cell numbers or −1."""
        there = order >= 0
        cells = np.maximum(order, 0)
        topic = np.arange(len(self.topics))[:, None, None]
        return Ranked(
            grades=np.where(there, self.grades[topic, cells], 0.0),
            present=there,
            ideal=self.ideal[:, None, :],
            max_grade=self.max_grade,
            attributes={
                name: replace(
                    a,
                    membership=a.membership[topic, cells] * there[..., None],
                    target=a.target[:, None, :],
                    applies=a.applies[:, None],
                )
                for name, a in self.attributes.items()
            },
            utility_weight=self.utility_weight,
            documents=order,
            raw_grades=self.raw_grades,
        )


@dataclass(frozen=True)
class Requirements:
    """What the measures need of a block, so that nothing else is computed."""

    depth: int | None = None
    """How many ranks they look at; None for all."""
    all_documents: bool = False
    """Whether judged documents that were not retrieved are included."""
    attributes: tuple[str, ...] = ()


def _distinct(topic: Ints, docs: Ids) -> tuple[Ints, Ints]:
    """The first row of each (topic, document), and for every row the index of its own among those."""
    _, first, inverse = np.unique(keys(docs, topic), return_index=True, return_inverse=True)
    alike = (topic[first[inverse]] == topic) & docs.equals(np.arange(len(docs)), docs, first[inverse])
    if not alike.all():  # two documents hash alike: decide by the ids themselves
        seen: dict[tuple[int, str], int] = {}
        names = zip(topic.tolist(), docs.texts(), strict=True)
        inverse = np.array([seen.setdefault(name, len(seen)) for name in names], dtype=np.int64)
        first = np.unique(inverse, return_index=True)[1]
    return first, inverse


@dataclass(frozen=True)
class _Rows:
    """A run's documents, each once per topic: sorted by topic, retrieved ones first and in rank order."""

    topic: Ints
    docs: Ids
    scores: Floats
    grades: Floats
    retrieved: Bools


@dataclass(frozen=True)
class _Lists:
    """Sampled rankings: `topic` and `label` are by list, the rest by row."""

    topic: Ints
    label: Ints
    of_row: Ints
    rank: Ints
    cell: Ints


def blocks(
    run: Run,
    qrels: Qrels,
    attributes: Mapping[str, Attribute],
    requirements: Requirements,
    *,
    max_grade: float,
    utility_weight: float = 1.0,
    candidates: str = "judged",
    sampled: bool = False,
    cells: int = CELLS,
) -> Iterator[Block]:
    """The run beside the judgements, for all judged topics in order."""
    topic_of_list = np.array([qrels.number.get(topic, -1) for topic, _ in run.lists], dtype=np.int64)
    counts = np.diff(run.offsets)
    list_of = np.repeat(np.arange(len(run.lists)), counts)
    rank = np.arange(len(run)) - np.repeat(run.offsets[:-1], counts)
    kept = topic_of_list[list_of] >= 0
    if requirements.depth is not None:
        kept &= rank < requirements.depth
    kept_rows = np.flatnonzero(kept)
    list_of, rank = list_of[kept_rows], rank[kept_rows]
    topic, docs, scores = topic_of_list[list_of], run.docs.take(kept_rows), run.scores[kept_rows]
    inverse: Ints | None = None
    if sampled:
        first, inverse = _distinct(topic, docs)
        topic, docs, scores = topic[first], docs.take(first), scores[first]
    rows, place = _with_judged(topic, docs, scores, qrels, requirements.all_documents, by_name=sampled)
    cell = np.arange(rows.topic.size) - np.searchsorted(rows.topic, rows.topic)
    lists: _Lists | None = None
    if sampled and inverse is not None:
        labels = {label: i for i, label in enumerate(in_order({sample for _, sample in run.lists}))}
        label_of_list = np.array([labels[sample] for _, sample in run.lists], dtype=np.int64)
        lists = _Lists(topic_of_list, label_of_list, list_of, rank, cell[place[inverse]])
    if lists is not None:
        _check_samples(lists, run, qrels)
    judged = np.diff(qrels.offsets)
    for start, stop in _cuts(rows, lists, judged, cells):
        block = _block(rows, cell, lists, start, stop, qrels, attributes, requirements, max_grade)
        yield replace(block, utility_weight=utility_weight, candidates=candidates)


def _with_judged(
    topic: Ints, docs: Ids, scores: Floats, qrels: Qrels, all_documents: bool, by_name: bool
) -> tuple[_Rows, Ints]:
    """Join the grades, add the judged documents that are missing if requirements; also where each given row went.

    Retrieved documents keep their order, or (`by_name`) take that of their ids where there is no one ranking.
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
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    return _Rows(topic[order], docs.take(order), scores[order], grades[order], retrieved[order]), place


def _sizes(lists: _Lists, topics: int) -> tuple[Ints, Ints]:
    """How many samples each topic has, and how many documents its longest sample has."""
    deepest = np.zeros(topics, dtype=np.int64)
    np.maximum.at(deepest, lists.topic[lists.of_row], lists.rank + 1)
    return np.bincount(lists.topic[lists.topic >= 0], minlength=topics), deepest


def _check_samples(lists: _Lists, run: Run, qrels: Qrels) -> None:
    """Raise where a small file would need a lot of memory: many samples of which one is far longer."""
    samples, deepest = _sizes(lists, len(qrels.topics))
    lines = np.bincount(lists.topic[lists.of_row], minlength=len(qrels.topics))
    wasteful = np.flatnonzero(samples * deepest > np.maximum(16 * lines, 1 << 24))
    if wasteful.size:
        topic = int(wasteful[0])
        excess = (
            f"{samples[topic]} samples of topic {escape(qrels.topics[topic])!r}, "
            f"one with {deepest[topic]} documents"
        )
        raise InputError(Place(run.source), excess, "samples of similar length")


def _cuts(rows: _Rows, lists: _Lists | None, judged: Ints, cells: int) -> Iterator[tuple[int, int]]:
    """Ranges of topics whose padded arrays have at most `cells` cells (or one topic)."""
    topics = judged.size
    counts = np.maximum(np.bincount(rows.topic, minlength=topics), judged)
    if lists is not None:
        samples, deepest = _sizes(lists, topics)
        counts = np.maximum(counts, samples * deepest)
    start, widest = 0, 0
    for topic, count in enumerate(counts.tolist()):
        width = max(widest, count, 1)
        if topic > start and width * (topic - start + 1) > cells:
            yield start, topic
            start, width = topic, max(count, 1)
        widest = width
    if topics:
        yield start, topics


def _block(
    rows: _Rows,
    cell: Ints,
    lists: _Lists | None,
    start: int,
    stop: int,
    qrels: Qrels,
    attributes: Mapping[str, Attribute],
    requirements: Requirements,
    max_grade: float,
) -> Block:
    low, high = np.searchsorted(rows.topic, [start, stop])
    here = slice(int(low), int(high))
    topic, column, docs = rows.topic[here] - start, cell[here], rows.docs.take(here)
    shape = (stop - start, int(column.max(initial=-1)) + 1)
    row = np.full(shape, -1, dtype=np.int64)
    row[topic, column] = np.arange(topic.size)
    raw_grades, scores = np.full(shape, np.nan), np.full(shape, -np.inf)
    raw_grades[topic, column] = rows.grades[here]
    scores[topic, column] = rows.scores[here]
    views = {}
    for name in requirements.attributes:
        attribute = attributes[name]
        membership = np.zeros((*shape, len(attribute.spec.groups)))
        concerned = attribute.applies[rows.topic[here]]
        membership[topic[concerned], column[concerned]] = attribute.memberships(
            rows.topic[here][concerned], docs.take(concerned)
        )
        views[name] = AttributeView(
            groups=attribute.spec.groups,
            ordinal=attribute.spec.kind == "ordinal",
            membership=membership,
            target=attribute.target[start:stop],
            applies=attribute.applies[start:stop],
            divergence=attribute.spec.divergence,
            weight=attribute.spec.weight,
        )
    return Block(
        first=start,
        topics=qrels.topics[start:stop],
        documents=docs,
        row=row,
        raw_grades=raw_grades,
        scores=scores,
        retrieved=np.bincount(topic[rows.retrieved[here]], minlength=stop - start),
        ideal=qrels.ideal(start, stop),
        rankings=_rankings(lists, start, stop) if lists is not None else None,
        max_grade=max_grade,
        attributes=views,
    )


def _rankings(lists: _Lists, start: int, stop: int) -> Ints:
    """(topics, samples, ranks) of cell numbers; samples in the order of their ids."""
    inside = np.flatnonzero((lists.topic >= start) & (lists.topic < stop))
    topic = lists.topic[inside] - start
    order = np.lexsort((lists.label[inside], topic))
    sample = np.zeros(lists.topic.size, dtype=np.int64)
    sample[inside[order]] = np.arange(order.size) - np.searchsorted(topic[order], topic[order])
    rows = np.flatnonzero(np.isin(lists.of_row, inside))
    of_row = lists.of_row[rows]
    shape = (stop - start, int(sample.max(initial=-1)) + 1, int(lists.rank[rows].max(initial=-1)) + 1)
    rankings = np.full(shape, -1, dtype=np.int64)
    rankings[lists.topic[of_row] - start, sample[of_row], lists.rank[rows]] = lists.cell[rows]
    return rankings

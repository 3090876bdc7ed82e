"""What a measure sees.

Of a block of topics, documents by rank (`Ranked`) or documents with exposures (`Exposed`); or all topics of a run at
once (`ExposedTopics`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from fairevals.collection.memberships import Membership, SparseMembership, check_cells, map_rows
from fairevals.collection.products import product_membership, product_sums
from fairevals.errors import unknown
from fairevals.ids import Ids
from fairevals.typing import Array, Bools, Floats, Ints

if TYPE_CHECKING:
    from fairevals.collection.groups import Attribute
    from fairevals.collection.intersections import Intersection


MEMBERSHIP_CELLS = 1 << 22
"""About how many memberships of documents in groups `ExposedTopics` forms at once."""


@dataclass(frozen=True)
class AttributeView:
    """One attribute, or an intersection of several, of the documents in view.

    `factors` are the memberships (…, document or rank, group) in the attribute, or in each attribute of the
    intersection: a document's membership in a group of it is their product. A row sums to 1, or is all 0 for padding
    and for a document without membership under `unmapped = "skip"`. Measures that need only sums over documents take
    them from the factors (`group_sums`), because an array of documents × groups may be large. `target` is (…, group)
    and `applies` (…), both with the leading axes of the view, or 1 where it has samples.
    """

    groups: tuple[str, ...]
    ordinal: bool
    factors: tuple[Membership, ...]
    target: Floats
    applies: Bools
    divergence: str = "JSD"
    weight: float = 1.0

    @cached_property
    def membership(self) -> Floats:
        """(…, document or rank, group), formed when it is asked for, if it is not too large."""
        if len(self.factors) > 1:
            check_cells(prod(self.factors[0].shape[:-1]), len(self.groups))
        return product_membership(self.factors)

    def with_rows(self, rows: Callable[[Any], Any], **more: Floats | Bools) -> Self:
        """The same for other documents: `rows` selects their memberships from an array (…, document, group).

        It may also set memberships to 0.
        """
        factors = tuple(map_rows(factor, rows) for factor in self.factors)
        return replace(self, factors=factors, **more)  # type: ignore[arg-type]

    @property
    def known(self) -> Bools:
        """(…, document): whether the document has a membership."""
        known: Bools = np.logical_and.reduce([factor.any(axis=-1) for factor in self.factors])
        return known

    @property
    def main_group(self) -> Ints:
        """(…, document): the number of the group with the largest membership; the number of groups if there is none."""
        counts = tuple(factor.shape[-1] for factor in self.factors)
        largest = np.ravel_multi_index([factor.argmax(axis=-1) for factor in self.factors], counts)
        group: Ints = np.where(self.known, largest, prod(counts))
        return group


@dataclass(frozen=True)
class View:
    """What both views share."""

    grades: Floats
    """(…, document or rank): unjudged, negative and padding are 0."""
    present: Bools
    """Whether there is a document."""
    ideal: Floats
    """(…, rank): the positive grades of all judged documents, descending, padded with 0."""
    max_grade: float
    attributes: Mapping[str, AttributeView] = field(default_factory=dict)
    utility_weight: float = 1.0

    def attribute(self, name: str) -> AttributeView:
        """The attribute, or intersection, of that name."""
        if name not in self.attributes:
            raise unknown("attribute", name, self.attributes)
        return self.attributes[name]


@dataclass(frozen=True)
class Ranked(View):
    """Rankings: the last axis of `grades` and `present` is the rank, before it topics, or topics × samples."""

    documents: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """(…, rank): the index of the document at the rank, −1 where there is none."""
    raw_grades: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(topics, documents): grades as judged, NaN for unjudged; for measures that treat those two apart."""
    scores: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(topics, documents): the run's scores, for measures of other libraries."""
    candidates: Bools = field(default_factory=lambda: np.zeros((0, 0), bool))
    """(topics, documents): whether a document is a candidate, ranked or not."""
    pool: Mapping[str, AttributeView] = field(default_factory=dict)
    """The attributes of all documents, ranked or not."""

    @property
    def ranked_candidates(self) -> Bools:
        """(…, rank): whether the document at the rank is a candidate."""
        topics, documents = self.candidates.shape
        by_topic = self.candidates.reshape(topics, *[1] * (self.documents.ndim - 2), documents)
        return np.take_along_axis(by_topic, np.maximum(self.documents, 0), axis=-1) & self.present

    def cut(self, cutoff: int | None) -> Self:
        """The first `cutoff` ranks only (the ideal stays whole)."""
        if cutoff is None or cutoff >= self.grades.shape[-1]:
            return self
        return replace(
            self,
            grades=self.grades[..., :cutoff],
            present=self.present[..., :cutoff],
            documents=self.documents[..., :cutoff],
            attributes={
                name: a.with_rows(lambda membership: membership[..., :cutoff, :])
                for name, a in self.attributes.items()
            },
        )


@dataclass(frozen=True)
class Exposed(View):
    """Documents (retrieved or judged) of each topic with their expected exposure, in no particular order."""

    exposure: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(topics, documents); 0 for padding and for documents that were not retrieved."""
    candidates: Bools = field(default_factory=lambda: np.zeros((0, 0), bool))
    """(topics, documents): whether a document counts in the means over a group's documents."""
    judged: Bools = field(default_factory=lambda: np.zeros((0, 0), bool))
    """(topics, documents): whether the qrels have the document."""


@dataclass(frozen=True)
class ExposedTopics:
    """Several topics at once, in rows: one for each topic and document that is retrieved or judged, sorted by topic.

    A document has the same number in all topics, so that its exposures can be summed over them.
    """

    topic: Ints
    """(rows,): positions in `numbers`."""
    document: Ints
    """(rows,): from 0, in the order of the ids."""
    exposure: Floats
    grades: Floats
    """(rows,): unjudged and negative are 0."""
    candidates: Bools
    docs: Ids
    numbers: Ints
    """(topics,): the numbers of the topics in the qrels."""
    ranked: Bools
    """(topics,): whether the run ranks any document."""
    attributes: Mapping[str, Attribute | Intersection]
    memberships: Callable[[str, Ints, Ids], Sequence[Membership]]
    """The memberships of documents in an attribute, or in each of an intersection's: `Collection.memberships`."""
    topic_groups: Mapping[str, Ints]
    """For each name (topics,): the number of the topic's group, −1 without one."""
    left_out: Floats | None = None
    """(batches, rows): the exposure without each batch of samples, if it was sampled."""

    def on(self, topics: Array) -> Self:
        """Some of the topics, by their positions."""
        place = np.full(self.numbers.size, -1)
        place[topics] = np.arange(topics.size)
        kept = np.flatnonzero(place[self.topic] >= 0)
        kept = kept[np.argsort(place[self.topic[kept]], kind="stable")]
        return replace(
            self,
            topic=place[self.topic[kept]],
            document=self.document[kept],
            exposure=self.exposure[kept],
            grades=self.grades[kept],
            candidates=self.candidates[kept],
            docs=self.docs.take(kept),
            numbers=self.numbers[topics],
            ranked=self.ranked[topics],
            topic_groups={name: groups[topics] for name, groups in self.topic_groups.items()},
            left_out=None if self.left_out is None else self.left_out[:, kept],
        )

    @property
    def documents(self) -> int:
        """How many numbers of documents there are."""
        return int(self.document.max(initial=-1)) + 1

    def by_document(self, values: Array) -> Any:
        """The values (rows,) as a sparse array (topics, documents)."""
        return _sparse(values, self.topic, self.document, (self.numbers.size, self.documents))

    def sum_by_topic(self, values: Floats) -> Floats:
        """The sums (topics, …) of values (rows, …) over the documents of each topic."""
        rows = np.arange(self.topic.size)
        sums: Floats = _sparse(np.ones(rows.size), self.topic, rows, (self.numbers.size, rows.size)) @ values
        return sums

    def sum_by_document(self, values: Array) -> Floats:
        """The sums (documents, …) of values (rows, …) over the topics."""
        rows = np.arange(self.topic.size)
        sums: Floats = _sparse(np.ones(rows.size), self.document, rows, (self.documents, rows.size)) @ values
        return sums

    def applies(self, name: str) -> Bools:
        """(topics,): whether an attribute applies."""
        return self.attributes[name].applies[self.numbers]

    def group_sums(self, name: str, values: Floats) -> Floats:
        """The sums (topics, groups) of values (rows,), weighted by the memberships in an attribute."""
        factors = self.memberships(name, self.numbers[self.topic], self.docs)
        if len(factors) > 1:
            bounds = pairwise(np.searchsorted(self.topic, np.arange(self.numbers.size + 1)).tolist())
            sums = np.zeros((self.numbers.size, len(self.attributes[name].spec.groups)))
            for topic, ends in enumerate(bounds):
                sums[topic] = _product_sums(values, factors, slice(*ends))
            return sums
        if isinstance(factors[0], SparseMembership):
            return factors[0].sums_by(self.topic, self.numbers.size, values)
        return self.sum_by_topic(values[:, None] * factors[0])

    def document_memberships(self, name: str) -> Iterator[tuple[Ints, Floats]]:
        """Some documents at a time, and their memberships (documents, groups) in an attribute.

        Memberships may differ by topic: these are the means over the topics that a document has a row for.
        """
        order = np.argsort(self.document, kind="stable")
        sorted_documents = self.document[order]
        step = 1 + MEMBERSHIP_CELLS // len(self.attributes[name].spec.groups)
        first_rows = np.unique(np.searchsorted(sorted_documents, sorted_documents[::step]))
        for first, last in pairwise([*first_rows.tolist(), order.size]):
            rows = order[first:last]
            documents, place = np.unique(sorted_documents[first:last], return_inverse=True)
            each = _sparse(np.ones(rows.size), place, np.arange(rows.size), (documents.size, rows.size))
            factors = self.memberships(name, self.numbers[self.topic[rows]], self.docs.take(rows))
            yield documents, each @ product_membership(factors) / each.sum(axis=1)[:, None]


def _product_sums(values: Floats, factors: Sequence[Membership], rows: slice) -> Floats:
    return product_sums(values[rows], [map_rows(factor, lambda each: each[rows]) for factor in factors])


def _sparse(values: Array, rows: Ints, columns: Ints, shape: tuple[int, int]) -> Any:
    from scipy.sparse import csr_array  # it takes time to import

    return csr_array((values.astype(np.float64), (rows, columns)), shape=shape)

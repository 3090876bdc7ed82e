"""What a measure sees of a block of topics: documents by rank (`Ranked`), or documents with exposures (`Exposed`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from fairevals.errors import unknown
from fairevals.typing import Bools, Floats, Ints


@dataclass(frozen=True)
class AttributeView:
    """One attribute of the documents in view.

    `membership` is (…, document or rank, group): a row sums to 1, or is all 0 for padding and for a
    document without membership under `unmapped = "skip"`. `target` is (…, group)
    and `applies` (…), both with the leading axes of the view, or 1 where it has samples.
    """

    groups: tuple[str, ...]
    ordinal: bool
    membership: Floats
    target: Floats
    applies: Bools
    divergence: str = "JSD"
    weight: float = 1.0


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
        """The attribute of that name."""
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
    memberships: Mapping[str, Floats] = field(default_factory=dict)
    """(topics, documents, groups): the memberships in each attribute of all documents, ranked or not."""

    @property
    def ranked_candidates(self) -> Bools:
        """(…, rank): whether the document at the rank is a candidate."""
        topics, documents = self.candidates.shape
        by_topic = self.candidates.reshape(topics, *[1] * (self.documents.ndim - 2), documents)
        return np.take_along_axis(by_topic, np.maximum(self.documents, 0), axis=-1) & self.present

    def candidate_membership(self, name: str) -> Floats:
        """Memberships (topics, documents, groups) in an attribute, 0 for documents that are not candidates."""
        return self.memberships[name] * self.candidates[..., None]

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
                name: replace(a, membership=a.membership[..., :cutoff, :])
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

    def candidate_membership(self, name: str) -> Floats:
        """Memberships (topics, documents, groups) in an attribute, 0 for documents that are not candidates."""
        return self.attribute(name).membership * self.candidates[..., None]

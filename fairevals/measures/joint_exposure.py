"""Joint multisided exposure (JME): how far documents, or groups of them, are from the exposure of an ideal policy."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fairevals.collection import Exposed, ExposedTopics
from fairevals.errors import UsageError
from fairevals.measures.base import LOWER, AcrossTopicsMeasure, param
from fairevals.measures.expected_exposure import ideal_exposure
from fairevals.measures.numeric import divide
from fairevals.typing import Bools, Floats

LEVELS = ("II", "IG", "GI", "GG", "AI", "AG")


def mean_square(deviations: Any, parts: Bools | None, weights: Floats, columns: int) -> Floats:
    """The mean over rows and columns of squared deviations, averaged over the rows of each part first.

    `deviations` is (topics, columns), sparse or not. `parts` is (parts, topics), the topics of each group of them; with
    None each topic is a part of its own. `weights` (samples, topics) says how often a topic counts. (samples,).

    >>> d = np.array([[0.25, -0.25], [-0.25, 0.25]])
    >>> ones = np.ones((1, 2))
    >>> mean_square(d, None, ones, 2), mean_square(d, np.ones((1, 2), dtype=bool), ones, 2)
    (array([0.0625]), array([0.]))
    """
    if parts is None:
        squares = (deviations * deviations).sum(axis=1) / columns
        return divide(weights @ squares, weights.sum(axis=1), weights.sum(axis=1) > 0)
    total, count = np.zeros((2, len(weights)))
    for part in parts:
        within = weights * part
        size = within.sum(axis=1)
        means = divide(within @ deviations, size[:, None], (size > 0)[:, None], otherwise=0.0)
        total += (means**2).sum(axis=1) / columns
        count += size > 0
    return divide(total, count, count > 0)


@dataclass(frozen=True)
class JME(AcrossTopicsMeasure):
    """How far exposure ε is from that of an ideal policy, ε*, jointly for those who search and those who are found.

    D = ε − ε* is a table of all topics and all candidates, with 0 where a document is neither retrieved nor judged for
    a topic. The first letter of the level says what D is averaged over before it is squared: nothing (I: each topic for
    itself), the topics of a group (G), or all topics (A). The second letter is for documents: each for itself (I), or
    the documents of a group (G), weighted by their memberships. Wu et al. have users in place of topics. Undefined
    without candidates; at a level with groups, also where no topic or no candidate is in a group. A topic in several
    groups counts in the first of them, a topic in none does not count.
    """

    name = "JME"
    direction = LOWER
    formula = (
        "mean D², D = ε − ε* averaged before over the documents of a group, the topics of a group, or both"
    )
    source = "Wu, Mitra, Ma, Diaz, Liu: Joint multisided exposure fairness for recommendation. SIGIR 2022"

    level: str = param("II", "of topics and of documents: individual, group or all", choices=LEVELS)
    attr: str | None = param(None, "the attribute whose groups of documents the levels IG, GG and AG need")
    by: str | None = param(None, "the task's [topic_groups.…] that the levels GI and GG need")

    def __post_init__(self) -> None:
        super().__post_init__()
        for letter, name in zip(self.level, ("by", "attr"), strict=True):
            value = getattr(self, name)
            if letter == "G" and (not isinstance(value, str) or not value):
                raise UsageError(f"{self.name}(level={self.level!r}) requires {name}='…'")

    def attributes_used(self) -> tuple[str, ...]:
        return (self.attr,) if self.attr and self.level[1] == "G" else ()

    def topic_groups_used(self) -> tuple[str, ...]:
        return (self.by,) if self.by and self.level[0] == "G" else ()

    def topics_used(self, exposed: ExposedTopics) -> Bools:
        used = super().topics_used(exposed)
        for name in self.topic_groups_used():
            used = used & (exposed.topic_groups[name] >= 0)
        return used

    def of_topics(self, exposed: ExposedTopics, weights: Floats) -> Floats:
        deviations = self._deviations(exposed)
        columns = deviations.shape[1]
        if not columns:
            return np.full(len(weights), np.nan)
        parts = np.ones((1, exposed.numbers.size), dtype=bool) if self.level[0] == "A" else None
        for name in self.topic_groups_used():
            group = exposed.topic_groups[name]
            parts = np.unique(group)[:, None] == group
        return mean_square(deviations, parts, weights, columns)

    def _deviations(self, exposed: ExposedTopics) -> Any:
        """(topics, columns): D of the candidates, or its means over the candidates of each group that has some."""
        deviations = exposed.by_document(exposed.exposure - self._ideal(exposed))
        candidate = exposed.sum_by_document(exposed.candidates) > 0
        for name in self.attributes_used():
            groups = len(exposed.attributes[name].spec.groups)
            sums, sizes = np.zeros((exposed.numbers.size, groups)), np.zeros(groups)
            for documents, membership in exposed.document_memberships(name):
                counted = membership * candidate[documents, None]
                sums += deviations[:, documents] @ counted
                sizes += counted.sum(axis=0)
            return sums[:, sizes > 0] / sizes[sizes > 0]
        return deviations[:, np.flatnonzero(candidate)]

    def _ideal(self, exposed: ExposedTopics) -> Floats:
        """(rows,): ε* of the documents of each topic."""
        ideal = np.zeros(exposed.topic.size)
        for start, stop in pairwise(np.searchsorted(exposed.topic, np.arange(exposed.numbers.size + 1))):
            grades = exposed.grades[None, start:stop]
            view = Exposed(grades, grades >= 0, grades, 0.0, candidates=exposed.candidates[None, start:stop])
            ideal[start:stop] = ideal_exposure(view, self.attention_model, self.cutoff)[0]
        return ideal

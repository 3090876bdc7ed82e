"""A few topics of a collection, small enough to be sent to whoever scores them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from fairevals.collection.groups import Attribute
from fairevals.collection.qrels import Qrels
from fairevals.typing import Bools, Floats, Ints


@dataclass(frozen=True)
class Slice:
    """What is about some topics only: their judgements, and each attribute's target. Memberships stay whole."""

    qrels: Qrels
    targets: Mapping[str, tuple[Floats, Bools, Ints]]
    """Attribute: target, whether it applies, the topic's number among the memberships."""

    @classmethod
    def of(cls, qrels: Qrels, attributes: Mapping[str, Attribute], topics: Ints) -> Slice:
        """The topics of these numbers, which ascend."""
        starts = qrels.offsets[topics]
        counts = qrels.offsets[topics + 1] - starts
        rows = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        names = tuple(qrels.topics[number] for number in topics.tolist())
        codes = np.repeat(np.arange(topics.size), counts)
        judged = Qrels(qrels.source, names, codes, qrels.docs.take(rows).compact(), qrels.grades[rows])
        return cls(
            judged,
            {
                name: (a.target[topics], a.applies[topics], a.numbers[topics])
                for name, a in attributes.items()
            },
        )

    def bind(self, attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
        """The attributes for these topics only."""
        return {
            name: replace(
                attributes[name], topics=self.qrels.topics, target=target, applies=applies, numbers=numbers
            )
            for name, (target, applies, numbers) in self.targets.items()
        }


def without_topics(attribute: Attribute) -> Attribute:
    """What all slices share of an attribute."""
    nothing = np.zeros(0, dtype=np.int64)
    return replace(
        attribute, topics=(), target=attribute.target[:0], applies=attribute.applies[:0], numbers=nothing
    )

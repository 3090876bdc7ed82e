"""The exposures of a run on all topics, for measures across topics: taken from blocks, and put together again."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fairevals.collection import ExposedTopics
from fairevals.collection.blocks import Block, with_judged
from fairevals.collection.collection import Collection
from fairevals.collection.topics import topic_groups
from fairevals.evaluation.expectation import Exposures, exposure_key
from fairevals.ids import Ids
from fairevals.measures import ExposureMeasure, Measure
from fairevals.typing import Bools, Floats, Ints


def across_topics(measures: Iterable[Measure]) -> list[ExposureMeasure]:
    """The measures that have one value for all topics together."""
    return [m for m in measures if isinstance(m, ExposureMeasure) and m.across_topics]


class ExposureRows(NamedTuple):
    """Exposures of retrieved documents, one row per topic and document."""

    topic: Ints
    docs: Ids
    columns: Mapping[tuple[str, int | None], Floats]
    """By attention and cutoff (1 + batches, rows): the exposure, and if it was sampled that without each batch."""

    @classmethod
    def of(cls, block: Block, exposures: Exposures, measures: Iterable[ExposureMeasure]) -> "ExposureRows":
        """Those of a block. Documents without exposure are left out, unless being retrieved makes them candidates."""
        retrieved: Bools = np.arange(block.row.shape[1]) < block.retrieved[:, None]
        columns = {}
        for key in map(exposure_key, measures):
            value, left_out = exposures[key].value, exposures[key].left_out
            columns[key] = value[None] if left_out is None else np.concatenate([value[None], left_out])
        if block.candidates == "judged":
            retrieved = retrieved & np.any([c.any(axis=0) for c in columns.values()], axis=0)
        topic, cell = np.nonzero(retrieved)
        docs = block.documents.take(block.row[topic, cell]).compact()  # without the rest of the file
        return cls(topic + block.first, docs, {key: c[:, topic, cell] for key, c in columns.items()})

    def numbered(self, numbers: Ints) -> "ExposureRows":
        """The same with other numbers of topics."""
        return self._replace(topic=numbers[self.topic])


def exposed_topics(
    rows: Sequence[ExposureRows], measures: Sequence[ExposureMeasure], collection: Collection, ranked: Bools
) -> dict[str, ExposedTopics]:
    """What each measure across topics sees of a run, from all its rows, in whatever order they come.

    `ranked` (topics,) says on which topics the run has documents. Judged documents that it does not show are added.
    """
    if not measures:
        return {}
    topic = np.concatenate([np.zeros(0, np.int64), *(part.topic for part in rows)])
    docs = Ids.concatenate([part.docs for part in rows])
    # The order of the ids, not that of the rows, decides in which order exposures are added.
    joined, order = with_judged(topic, docs, np.zeros(topic.size), collection.qrels, True, by_name=True)
    judged = ~np.isnan(joined.grades)
    groups = {name for m in measures for name in getattr(m, "topic_groups_used", tuple)()}
    by_key = {}
    for key in dict.fromkeys(map(exposure_key, measures)):
        known = np.concatenate([part.columns[key] for part in rows], axis=1)
        columns = np.pad(known, ((0, 0), (0, order.size - topic.size)))[:, order]
        by_key[key] = ExposedTopics(
            topic=joined.topic,
            document=joined.docs.ranks(),
            exposure=columns[0],
            grades=np.fmax(joined.grades, 0.0),
            candidates=judged | (collection.task.candidates != "judged"),
            docs=joined.docs,
            numbers=np.arange(ranked.size),
            ranked=ranked,
            attributes=collection.attributes,
            memberships=collection.memberships,
            topic_groups={name: _group_numbers(collection, name) for name in groups},
            left_out=columns[1:] if len(columns) > 1 else None,
        )
    return {str(m): by_key[exposure_key(m)] for m in measures}


def _group_numbers(collection: Collection, name: str) -> Ints:
    """(topics,): the number of each topic's group; the first one, if it is in several. −1 without one."""
    topics = collection.qrels.topics
    numbers = np.full(len(topics), -1)
    groups = topic_groups(collection.task, name, topics)
    for number, members in reversed(list(enumerate(groups.values()))):
        numbers[members] = number
    return numbers

"""The first ranks of a run on every topic, kept while it is scored so that nothing is read twice to show them."""

from typing import Any, NamedTuple

import numpy as np

from fairevals.attention import parse_attention
from fairevals.collection.blocks import Block, Requirements
from fairevals.collection.collection import Collection
from fairevals.evaluation.expectation import Exposures
from fairevals.evaluation.plan import Plan, open_run
from fairevals.ids import Ids
from fairevals.io.specs import PolicySpec
from fairevals.policy.policies import OneRanking, Policy
from fairevals.typing import Floats, Ints

ATTENTION = "log2"
"""The attention model of the exposures that are kept."""


class TopRanks(NamedTuple):
    """Documents at the first ranks, one row per topic and rank.

    Of a Plackett-Luce policy it is the most likely ranking, which is that by scores; of sampled rankings the first.
    """

    topic: Ints
    rank: Ints
    """From 0."""
    docs: Ids
    exposure: Floats
    """Under the policy; NaN where the policy is one ranking, whose exposure is the attention of the rank."""

    @classmethod
    def of(
        cls, block: Block, policy: Policy, count: int, cutoff: int | None, exposures: Exposures
    ) -> "TopRanks":
        """The first `count` ranks of the topics of a block; exposures are those up to the cutoff, or known ones."""
        order = block.order(count) if block.rankings is None else block.rankings[:, 0, :count]
        topic, rank = np.nonzero(order >= 0)
        cell = order[topic, rank]
        docs = block.documents.take(block.row[topic, cell]).compact()  # without the rest of the file
        if isinstance(policy, OneRanking):
            return cls(topic + block.first, rank, docs, np.full(rank.size, np.nan))
        attention = parse_attention(ATTENTION)
        known = exposures.get((str(attention), cutoff))
        exposure = policy.exposure(block, attention, cutoff) if known is None else known
        return cls(topic + block.first, rank, docs, exposure.value[topic, cell])

    @classmethod
    def joined(cls, parts: "list[TopRanks]") -> "TopRanks":
        """The rows of several parts."""
        if len(parts) == 1:
            return parts[0]
        topic, rank = (np.concatenate([np.zeros(0, np.int64), *(p[i] for p in parts)]) for i in (0, 1))
        exposure = np.concatenate([np.zeros(0), *(part.exposure for part in parts)])
        return cls(topic, rank, Ids.concatenate([part.docs for part in parts]), exposure)

    def numbered(self, numbers: Ints) -> "TopRanks":
        """The same with other numbers of topics."""
        return self._replace(topic=numbers[self.topic])


def read_top_ranks(source: Any, collection: Collection, policy: PolicySpec, count: int) -> TopRanks:
    """The first ranks of a run that is not scored at the same time."""
    depth = None if policy.kind == "pl" else count  # there, exposure depends on all documents
    opened = open_run(source, collection, Plan((), policy, Requirements(depth)))
    cutoff = collection.task.cutoff
    return TopRanks.joined(
        [TopRanks.of(block, opened.policy, count, cutoff, {}) for block in opened.blocks()]
    )

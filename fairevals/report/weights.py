"""What the page needs to compute GFR with the reader's own weights, for all runs and any topics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairevals.collection.collection import Collection
from fairevals.evaluation import Plan
from fairevals.evaluation.scores import Scores
from fairevals.measures import Measure
from fairevals.measures.gf import GFR
from fairevals.typing import Array


@dataclass(frozen=True)
class WeightedParts:
    """The parts of the first GFR of a report: its utility, and GF for each attribute."""

    measure: Measure
    names: tuple[str, ...]
    """The utility's name, and those of the attributes."""
    weights: tuple[float, ...]
    """Those of the task."""
    scores: Scores
    """The values of the parts."""
    applies: Array
    """(parts, topics): whether the part counts there; the utility always does."""

    def sums(self, topics: Sequence[int]) -> list[list[list[float]]]:
        """For each run one row per kind of topic: which parts apply, which are defined, how many topics, sums of parts.

        The kinds are bits, the first part's the lowest. The mean of GFR with any weights follows from these rows: a
        topic's denominator depends on its kind only.
        """
        bits = 1 << np.arange(len(self.names))
        at = np.asarray(topics, dtype=int)
        values, applies = self.scores.values[:, :, at], bits @ self.applies[:, at]
        found = []
        for one in values:
            defined = bits @ ~np.isnan(one)
            kinds = sorted({*zip(applies.tolist(), defined.tolist(), strict=True)})
            rows = []
            for kind in kinds:
                here = (applies == kind[0]) & (defined == kind[1])
                rows.append([*kind, int(here.sum()), *np.nansum(one[:, here], axis=1).tolist()])
            found.append(rows)
        return found

    def data(self, measures: Sequence[Measure], parts: Mapping[str, Sequence[int]]) -> dict[str, Any]:
        """For the page: on all topics, and on each topic group."""
        return {
            "measure": list(map(str, measures)).index(str(self.measure)),
            "names": list(self.names),
            "weights": list(self.weights),
            "sums": self.sums(range(self.applies.shape[1])),
            "groups": [self.sums(topics) for topics in parts.values()],
        }


def parts_of_gfr(plan: Plan, collection: Collection) -> tuple[Measure, tuple[Measure, ...]] | None:
    """The first GFR of a plan and its parts, if it has one with an attribute."""
    gfr = next((measure for measure in plan.measures if isinstance(measure, GFR)), None)
    single = _attributes(collection)
    if gfr is None or not single:
        return None
    return gfr, gfr.components({name: collection.attributes[name].spec.kind == "ordinal" for name in single})


def weighted_parts(
    gfr: Measure, parts: Sequence[Measure], scores: Scores, collection: Collection
) -> WeightedParts:
    """The values of the parts of a GFR, from scores that have them."""
    single, names = _attributes(collection), list(map(str, scores.measures))
    at = [names.index(str(part)) for part in parts]
    attributes = [collection.attributes[name] for name in single]
    return WeightedParts(
        gfr,
        (parts[0].name, *single),
        (float(collection.task.utility_weight), *(float(one.spec.weight) for one in attributes)),
        scores.only(at),
        np.stack([np.ones(len(scores.topics), dtype=bool), *(one.applies for one in attributes)]),
    )


def _attributes(collection: Collection) -> list[str]:
    """The attributes that GFR takes into account, in its order: without intersections, which add nothing to it."""
    return sorted(set(collection.attributes) - set(collection.intersections))

"""What figures show of one run: the groups' shares of the first ranks, and exposure by merit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairevals.attention import parse_attention
from fairevals.evaluation import Collection, Plan, open_run
from fairevals.io.task import PolicySpec
from fairevals.measures.base import merit
from fairevals.measures.expected_exposure import target_exposure
from fairevals.measures.gf import mean_membership_along_ranks
from fairevals.typing import Bools, Floats, Ints

ATTENTION, MERIT = "log2", "identity"
MAX_LEVELS = 12
"""With more different merits than this, documents are put into so many bins of equal size."""


@dataclass(frozen=True)
class Distribution:
    """How one run shares the first ranks among the groups of an attribute, in the mean over topics.

    A topic is in the mean if the attribute applies to it, it has a target, and the run ranks a document with a known
    membership. So every row of `achieved` sums to 1; without such a topic all is NaN.
    """

    run: str
    attribute: str
    groups: tuple[str, ...]
    achieved: Floats
    """(ranks, groups): mean membership of ranks 1..k. Where a ranking has ended, its last value stays."""
    target: Floats
    """(groups,)."""
    topics: int
    """How many topics the mean is over."""


@dataclass(frozen=True)
class Merits:
    """Exposure by merit of one run; arrays have one element per level of merit, and none without documents."""

    run: str
    levels: Floats
    documents: tuple[int, ...]
    mean: Floats
    quantiles: Floats
    """(levels, 4): the 5 %, 25 %, 75 % and 95 % quantiles of the documents' exposure."""
    target: Floats
    """Mean exposure if documents of equal grade shared the ranks of an ideal order (Diaz et al. 2020)."""
    slope: float
    """Σ exposure / Σ merit: the exposure of merit 1 if it were proportional to merit; NaN if nothing has merit."""


def run_details(
    source: Any,
    collection: Collection,
    policy: PolicySpec,
    *,
    name: str = "run",
    attributes: Sequence[str] = (),
    depth: int = 20,
    cutoff: int | None = None,
) -> tuple[list[Distribution], Merits]:
    """Shares of the groups along the first `depth` ranks for each attribute, and exposure by merit.

    Under a policy with several rankings per topic, shares are means over the rankings that have a document with a
    known membership. Exposure is that of all documents that are retrieved or judged, on topics with a ranking.
    """
    collection = collection.with_attributes(attributes)
    opened = open_run(source, collection, Plan.reading(policy, attributes))
    shares: dict[str, list[tuple[Floats, Floats]]] = {attribute: [] for attribute in attributes}
    exposed: list[Floats] = []
    attention = parse_attention(ATTENTION)
    for block in opened.blocks():
        weights = attention.weights(block.row.shape[1])[:cutoff]
        ideal = target_exposure(block.grades, block.is_candidate, weights)
        exposure = opened.policy.exposure(block, attention, cutoff).value
        here = block.present & (block.retrieved > 0)[:, None]
        exposed.append(np.stack([a[here] for a in (merit(block.grades, MERIT), exposure, ideal)]))
        order = opened.policy.rankings(block, depth if attributes else 0)
        for attribute in attributes:
            view = block.attributes[attribute]
            for t in np.flatnonzero(view.applies & ~np.isnan(view.target).any(axis=1)):
                along = _shares_along_ranks(view.membership[t], order[t], depth)
                if along is not None:
                    shares[attribute].append((along, view.target[t]))
    distributions = []
    for attribute in attributes:
        groups, known = collection.attributes[attribute].spec.groups, shares[attribute]
        nothing = np.full((depth, len(groups)), np.nan)
        achieved, target = (np.mean(a, axis=0) for a in zip(*(known or [(nothing, nothing[0])]), strict=True))
        distributions.append(Distribution(name, attribute, groups, achieved, target, len(known)))
    return distributions, _by_merit(name, *np.concatenate([np.zeros((3, 0)), *exposed], axis=1))


def _shares_along_ranks(membership: Floats, order: Ints, depth: int) -> Floats | None:
    """(ranks, groups): the mean over rankings, (samples, ranks) cell numbers or −1, of the first ranks' membership.

    Ranks before the first and after the last with a value get the nearest one; None where there is no value at all.
    """
    along = mean_membership_along_ranks(membership[np.maximum(order, 0)] * (order >= 0)[..., None])
    known: Bools = np.asarray(~np.isnan(along[..., 0]))  # (samples, ranks)
    count = known.sum(axis=0)
    ranks = np.flatnonzero(count)
    if not ranks.size:
        return None
    mean = np.where(known[..., None], along, 0.0).sum(axis=0)[ranks] / count[ranks, None]
    nearest = np.clip(np.searchsorted(ranks, np.arange(depth), side="right") - 1, 0, None)
    filled: Floats = mean[nearest]
    return filled


def _by_merit(run: str, merits: Floats, exposures: Floats, targets: Floats) -> Merits:
    levels, bins = np.unique(merits, return_inverse=True)
    if levels.size > MAX_LEVELS:
        edges = np.quantile(merits, np.linspace(0, 1, MAX_LEVELS + 1)[1:-1])
        bins = np.searchsorted(edges, merits, side="right")
    members = [np.flatnonzero(bins == b) for b in np.unique(bins)]
    total = float(merits.sum())
    quantiles = [np.quantile(exposures[m], (0.05, 0.25, 0.75, 0.95)) for m in members]
    return Merits(
        run=run,
        levels=np.array([merits[m].mean() for m in members]),
        documents=tuple(m.size for m in members),
        mean=np.array([exposures[m].mean() for m in members]),
        quantiles=np.array(quantiles).reshape(-1, 4),
        target=np.array([targets[m].mean() for m in members]),
        slope=float(exposures.sum()) / total if total > 0 else float("nan"),
    )

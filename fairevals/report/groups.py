"""What figures show of one run: the groups' shares of the first ranks, and exposure by merit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from fairevals.attention import parse_attention
from fairevals.collection import AttributeView
from fairevals.evaluation import Collection, Plan, open_run
from fairevals.evaluation.expectation import CELLS_OF_SAMPLES
from fairevals.evaluation.tops import ATTENTION
from fairevals.io.specs import PolicySpec
from fairevals.measures.expected_exposure import ideal_exposure
from fairevals.measures.gf import mean_membership_along_ranks
from fairevals.measures.merits import merit
from fairevals.typing import Bools, Floats, Ints

MERIT = "identity"
MAX_LEVELS = 12
"""With more different merits than this, documents are put into so many bins of equal size."""
MAX_DRAWN_GROUPS = 12
"""With more groups than this, those with small shares are summed."""


def shown_ranks(cutoff: int | None) -> int:
    """How many first ranks of a run are shown: 20, or the task's cutoff up to 100."""
    return min(cutoff or 20, 100)


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
    counts: tuple[int, ...]
    """How many groups of the attribute each of `groups` stands for."""
    ordinal: bool

    @property
    def total(self) -> int:
        """How many groups the attribute has."""
        return sum(self.counts)


def condense(
    groups: Sequence[str], sizes: Floats, *, ordinal: bool = False
) -> tuple[tuple[str, ...], tuple[int, ...], Ints]:
    """At most `MAX_DRAWN_GROUPS` groups: names, how many groups each stands for, and which of them each group is in.

    Of nominal groups the largest stay, in their order, and all others together are the last. Neighbouring ordinal
    groups are joined to ranges of about equal size, since only a range has a place in their order. A name that a
    group has already is put in parentheses.

    >>> sizes = np.array([9.0, *[1.0] * 12, 7.0])
    >>> condense("abcdefghijklmn", sizes)[:2]
    (('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'n', 'others'), (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3))
    >>> condense("abcdefghijklmn", sizes, ordinal=True)[0]
    ('a', 'b – d', 'e – f', 'g – h', 'i – k', 'l – m', 'n')
    """
    count = len(groups)
    if count <= MAX_DRAWN_GROUPS:
        return tuple(groups), (1,) * count, np.arange(count)
    if ordinal:
        summed = np.cumsum(sizes)
        bins = np.floor(MAX_DRAWN_GROUPS * (summed - sizes / 2) / summed[-1])
        owner = np.unique(np.minimum(bins, MAX_DRAWN_GROUPS - 1), return_inverse=True)[1]
    else:
        kept = np.sort(np.argsort(-sizes, kind="stable")[: MAX_DRAWN_GROUPS - 1])
        owner = np.full(count, MAX_DRAWN_GROUPS - 1)
        owner[kept] = np.arange(kept.size)
    counts, taken, names = np.bincount(owner), set(groups), []
    for number, members in enumerate(counts.tolist()):
        mine = np.flatnonzero(owner == number)
        name = groups[mine[0]]
        if members > 1:
            name = f"{name} – {groups[mine[-1]]}" if ordinal else "others"
            while name in taken:
                name = f"({name})"
            taken.add(name)
        names.append(name)
    return tuple(names), tuple(counts.tolist()), owner


def condensed(distributions: Sequence[Distribution]) -> list[Distribution]:
    """The distributions of several runs over at most `MAX_DRAWN_GROUPS` groups, the largest by target and share."""
    shares = [one.target + one.achieved[-1] for one in distributions if one.topics]
    sizes = np.sum(shares or [np.ones(len(distributions[0].groups))], axis=0)
    first = distributions[0]
    groups, counts, owner = condense(first.groups, sizes, ordinal=first.ordinal)
    members = [np.flatnonzero(owner == number) for number in range(len(groups))]
    return [
        replace(
            one,
            groups=groups,
            counts=counts,
            achieved=np.stack([one.achieved[:, mine].sum(axis=1) for mine in members], axis=1),
            target=np.stack([one.target[mine].sum() for mine in members]),
        )
        for one in distributions
    ]


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
    # How many topics, and the sums of their shares and targets.
    sums: dict[str, tuple[int, Any, Any]] = dict.fromkeys(attributes, (0, 0.0, 0.0))
    exposed: list[Floats] = []
    attention = parse_attention(ATTENTION)
    for block in opened.blocks():
        exposure = opened.policy.exposure(block, attention, cutoff).value
        ideal = ideal_exposure(block.exposed(exposure), attention, cutoff)
        here = block.present & (block.retrieved > 0)[:, None]
        exposed.append(np.stack([a[here] for a in (merit(block.grades, MERIT), exposure, ideal)]))
        order = opened.policy.rankings(block, depth if attributes else 0)
        for attribute in attributes:
            view = block.attributes[attribute]
            for t in np.flatnonzero(view.applies & ~np.isnan(view.target).any(axis=1)).tolist():
                along = _shares_along_ranks(view, t, order[t], depth)
                if along is not None:
                    topics, achieved, target = sums[attribute]
                    sums[attribute] = topics + 1, achieved + along, target + view.target[t]
    distributions = []
    for attribute, (topics, achieved, target) in sums.items():
        spec = collection.attributes[attribute].spec
        groups, ordinal = spec.groups, spec.kind == "ordinal"
        if topics:
            achieved, target = achieved / topics, target / topics
        else:
            achieved, target = np.full((depth, len(groups)), np.nan), np.full(len(groups), np.nan)
        counts = (1,) * len(groups)
        distributions.append(Distribution(name, attribute, groups, achieved, target, topics, counts, ordinal))
    return distributions, _by_merit(name, *np.concatenate([np.zeros((3, 0)), *exposed], axis=1))


def _shares_along_ranks(view: AttributeView, topic: int, order: Ints, depth: int) -> Floats | None:
    """(ranks, groups): the mean over rankings, (samples, ranks) cell numbers or −1, of the first ranks' membership.

    Ranks before the first and after the last with a value get the nearest one; None where there is no value at all.
    """
    width, groups = order.shape[1], len(view.groups)
    count, total = np.zeros(width, dtype=np.int64), np.zeros((width, groups))
    step = max(1, CELLS_OF_SAMPLES // max(1, width * groups))
    for some in (order[start : start + step] for start in range(0, len(order), step)):
        ranked = view.with_rows(partial(_ranked_rows, topic, some))
        along = mean_membership_along_ranks(ranked.membership)
        known: Bools = np.asarray(~np.isnan(along[..., 0]))  # (samples, ranks)
        count += known.sum(axis=0)
        total += np.where(known[..., None], along, 0.0).sum(axis=0)
    ranks = np.flatnonzero(count)
    if not ranks.size:
        return None
    mean = total[ranks] / count[ranks, None]
    nearest = np.clip(np.searchsorted(ranks, np.arange(depth), side="right") - 1, 0, None)
    filled: Floats = mean[nearest]
    return filled


def _ranked_rows(topic: int, order: Ints, membership: Floats) -> Floats:
    """The memberships of a topic's documents in the given order, 0 for −1."""
    rows: Floats = membership[topic, np.maximum(order, 0)] * (order >= 0)[..., None]
    return rows


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

"""How the groups in the prefixes of a ranking are represented, against the target: NDKL, Skew and Infeasible.

All three look at groups and ranks alone. They cannot tell a relevant document from one that nobody judged, so a run
that fills its ranks with documents of the right groups gains: read them beside a utility, and beside Unjudged.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fairevals.collection import Ranked
from fairevals.measures.base import LOWER, RankingMeasure, attr_param, near, param
from fairevals.measures.numeric import divide, rank_sum
from fairevals.measures.prefix import EPS
from fairevals.typing import Floats, Ints

LEAST_SHARE = 1e-7
"""Smaller shares count as this: a logarithm of 0 would be infinite."""


def known_first(membership: Floats) -> tuple[Floats, Ints]:
    """Remove documents without a membership: memberships (…, rank, group) of the others in order, padded with 0.

    Also returns their number, (…).

    >>> rows, length = known_first(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]))
    >>> rows[:2].tolist(), int(length)
    ([[1.0, 0.0], [0.0, 1.0]], 2)
    """
    known = membership.any(axis=-1)
    if known.all():
        return membership, np.count_nonzero(known, axis=-1)
    order = np.argsort(~known, axis=-1, kind="stable")
    return np.take_along_axis(membership, order[..., None], axis=-2), np.count_nonzero(known, axis=-1)


def discounted_divergence(membership: Floats, target: Floats) -> Floats:
    """NDKL = Σ_k KL(p̄_k ‖ target)/log2(1+k) / Σ_k 1/log2(1+k), p̄_k the mean membership of the first k documents.

    `membership` is (…, rank, group), `target` (…, group). A row of zeros is no document, or one without a membership:
    it is skipped. The divergence is in nats; target shares are at least 1e-7. NaN without any document, or a target.

    >>> two = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(discounted_divergence(two, np.array([0.5, 0.5]))), 4)  # ln 2 at rank 1, and 0 at rank 2
    0.425
    """
    rows, length = known_first(membership)
    k = np.arange(1, rows.shape[-2] + 1)
    achieved = np.cumsum(rows, axis=-2) / k[:, None]
    wanted = np.maximum(target, LEAST_SHARE)[..., None, :]
    logarithms = np.log(divide(achieved, wanted, achieved > 0, otherwise=1.0))
    # Below 0 only by rounding, or by as much as the floor adds to the target.
    divergence = np.maximum(rank_sum(achieved * logarithms), 0.0)
    counted = k <= length[..., None]
    weights = counted / np.log2(k + 1)
    value = rank_sum(np.where(counted, weights * divergence, 0.0))
    total = rank_sum(weights)
    known = (total > 0) & ~np.isnan(target).any(axis=-1)
    return divide(value, total, known)


def skews(membership: Floats, target: Floats) -> Floats:
    """The skew ln(p̄(g)/target_g) of each group, (…, group), p̄ the mean membership of all documents.

    `membership` is (…, rank, group), `target` (…, group). Documents without a membership are skipped. Shares and
    targets are at least 1e-7. NaN without any document, or a target.

    >>> skews(np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0.5, 0.5])).round(4)
    array([ 0.4055, -0.6931])
    """
    size = np.count_nonzero(membership.any(axis=-1), axis=-1)[..., None]
    achieved = divide(rank_sum(membership.swapaxes(-1, -2)), size, size > 0)
    return np.log(np.maximum(achieved, LEAST_SHARE) / np.maximum(target, LEAST_SHARE))


def infeasible_count(membership: Floats, target: Floats, ranks: Ints) -> Floats:
    """The number of (k, g), k ≤ `ranks`, with fewer than ⌊target_g·k⌋ members of g among the first k ranks.

    `membership` is (…, rank, group), `target` (…, group), `ranks` (…). Ranks beyond the arrays hold no document; they
    add to no group, and nor does a row of zeros.

    >>> one = np.array([[1.0, 0.0]])  # then the second group lacks members from rank 2 on, and the first from rank 4
    >>> float(infeasible_count(one, np.array([0.5, 0.5]), np.array(4)))
    4.0
    """
    width = membership.shape[-2]
    k = np.arange(1, width + 1)
    members = np.cumsum(membership, axis=-2)
    needed = np.floor(target[..., None, :] * k[:, None] + EPS)
    lacking = (np.floor(members + EPS) < needed) & (k <= ranks[..., None])[..., None]
    # Beyond the arrays nothing is added, so that a group lacks members from the rank on where it needs one more.
    last = np.floor(rank_sum(membership.swapaxes(-1, -2)) + EPS)
    first = np.ceil(divide(last + 1 - EPS, target, target > 0, otherwise=np.inf))
    beyond = rank_sum(np.maximum(ranks[..., None] + 1 - np.maximum(first, width + 1), 0.0))
    return np.where(np.isnan(target).any(axis=-1), np.nan, np.count_nonzero(lacking, axis=(-2, -1)) + beyond)


@dataclass(frozen=True)
class _RepresentationMeasure(RankingMeasure):
    """What NDKL, Skew and Infeasible share."""

    source = (
        "Geyik, Ambler, Kenthapadi: Fairness-aware ranking in search and recommendation systems with application "
        "to LinkedIn talent search. KDD 2019"
    )
    attributes = "one"

    attr: str = attr_param()

    def of_ranking(self, ranked: Ranked) -> Floats:
        ranked = ranked.cut(self.cutoff)
        attribute = ranked.attribute(self.attr)
        defined = attribute.applies & attribute.membership.any(axis=(-2, -1))
        return np.where(defined, self._value(ranked, attribute.membership, attribute.target), np.nan)

    @abstractmethod
    def _value(self, ranked: Ranked, membership: Floats, target: Floats) -> Floats:
        """The value where some ranked document has a membership."""


@dataclass(frozen=True)
class NDKL(_RepresentationMeasure):
    """Normalised discounted Kullback-Leibler divergence: how far the groups in every prefix are from the target.

    0 where every prefix meets the target; with hard memberships, short prefixes cannot. The divergence is in nats.
    A target share below 1e-7 counts as 1e-7, so that ranking a group with target 0 costs much, but not infinitely.
    Documents without a membership are skipped. A list shorter than the cutoff is judged by the ranks that it has: to
    end a list before its groups drift from the target helps. Documents need not be relevant or judged to count.
    Undefined where no ranked document has a membership, the topic has no target, or the attribute does not apply.

    >>> NDKL(attr="SEX", cutoff=10)
    NDKL(attr='SEX')@10
    """

    name = "NDKL"
    direction = LOWER
    formula = "Σ_k KL(p̄_k ‖ target)/log2(1+k) / Σ_k 1/log2(1+k), p̄_k the mean membership of ranks 1..k"

    def _value(self, ranked: Ranked, membership: Floats, target: Floats) -> Floats:
        return discounted_divergence(membership, target)


@dataclass(frozen=True)
class Skew(_RepresentationMeasure):
    """By how much the least (of='max': the most) represented group at the cutoff is off its target, as a logarithm.

    MinSkew is at most 0 and MaxSkew at least 0, and both are 0 where all groups meet the target. Shares and targets
    below 1e-7 count as 1e-7: a group that is not shown has a skew of about −16, which is finite, so that a policy is
    charged for the rankings that hide a group. A group with target 0 matters only to of='max', if it is shown.
    Documents without a membership are skipped. In a list shorter than the cutoff, the shares are those of the documents
    that are there. Documents need not be relevant or judged to count. Undefined where no ranked document has a
    membership, the topic has no target, or the attribute does not apply.

    >>> skew = Skew(attr="SEX", cutoff=4)  # one woman of four, target one half
    >>> round(skew([1, 1, 1, 1], groups=["m", "m", "f", "m"]), 4)
    -0.6931
    """

    name = "Skew"
    direction = near(0.0)
    formula = "min (or max) over groups of ln(p̄_K(g) / target_g), p̄_K the mean membership of ranks 1..K"

    of: str = param("min", "which group: the least or the most represented", choices=("min", "max"))

    def _value(self, ranked: Ranked, membership: Floats, target: Floats) -> Floats:
        of_groups = skews(membership, target)
        extreme: Floats = of_groups.min(axis=-1) if self.of == "min" else of_groups.max(axis=-1)
        return extreme


@dataclass(frozen=True)
class Infeasible(_RepresentationMeasure):
    """How often a prefix has fewer members of a group than its target, rounded down, asks for: InfeasibleCount.

    A count from 0, where every prefix has enough of every group, to at most K for each group. Ranks that are empty up
    to the cutoff, and documents without a membership, add to no group: neither a short list nor padding removes a
    violation. Without a cutoff, K is the length of the list, and a shorter list has fewer prefixes: compare runs at a
    cutoff. Soft memberships are summed, and the sum is rounded down. A group with target 0 asks for nothing. Documents
    need not be relevant or judged to count. Undefined where no ranked document has a membership, the topic has no
    target, or the attribute does not apply.

    >>> infeasible = Infeasible(attr="SEX", cutoff=4)  # no woman among the first two, three and four
    >>> infeasible([1, 1, 1, 1], groups=["m", "m", "m", "m"], target={"m": 0.5, "f": 0.5})
    3.0
    """

    name = "Infeasible"
    direction = LOWER
    formula = "number of (k ≤ K, g) with fewer than ⌊target_g·k⌋ members of g among ranks 1..k"

    def _value(self, ranked: Ranked, membership: Floats, target: Floats) -> Floats:
        length = np.count_nonzero(ranked.present, axis=-1)
        ranks = length if self.cutoff is None else np.full(length.shape, self.cutoff)
        return infeasible_count(membership, target, ranks)

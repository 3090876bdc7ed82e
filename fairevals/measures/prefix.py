"""Fairness of the prefixes of a ranking to a protected group.

rND, rKL and rRD compare each prefix of 10, 20, … documents with the whole list. The deviation of a prefix of length i
is discounted by 1/log2(1+i), and the sum is divided by the largest sum of any order. The discount, the treatment of
shares of 0 and 1 in rKL, and the ratio of rRD follow the authors' published code and reproduce its values. (The paper's
text has 1/log2(i) and does not define the rest.)

The list is the ranking without the documents that have no membership. With soft memberships its number of protected
documents need not be whole.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from fairevals.collection import AttributeView, Ranked
from fairevals.measures.base import LOWER, RankingMeasure, attr_param, named, param, unit
from fairevals.measures.numeric import divide, rank_sum
from fairevals.measures.ratios import sides
from fairevals.typing import Array, Bools, Floats, Ints

Deviation: TypeAlias = Callable[[Floats, Array, Floats], Floats]
"""The deviation of a prefix, from its protected count, its size, and the protected share of the list."""

EPS = 1e-9
"""Counts that differ by less are equal: sums of soft memberships are rounded."""


def normalised_difference(count: Floats, size: Array, share: Floats) -> Floats:
    """The deviation of rND: |count/size − share|.

    >>> normalised_difference(np.array([0.0, 8.0]), np.array([10, 20]), np.array(0.5))
    array([0.5, 0.1])
    """
    return np.abs(count / size - share)


@lru_cache(maxsize=64)  # one function per floor, because it is a key in the cache of normalisers
def prefix_divergence(floor: float = 0.001) -> Deviation:
    """The deviation of rKL: the Kullback-Leibler divergence, in bits, of the prefix's shares from the list's.

    The protected share of the prefix is clipped to [floor, 1−floor], or up to the list's share where that is outside.
    The authors' code does this for shares of 0 and 1. With floor 0 nothing is clipped, and 0·log 0 = 0.

    >>> prefix_divergence(0.001)(np.array([0.0, 5.0]), np.array([10, 10]), np.array(0.5)).round(4)
    array([0.9886, 0.    ])
    """

    def term(p: Floats, q: Floats) -> Floats:
        return p * np.log2(divide(p, q, p > 0, otherwise=1.0))

    def divergence(count: Floats, size: Array, share: Floats) -> Floats:
        p = np.clip(count / size, np.minimum(floor, share), np.maximum(1 - floor, share))
        return term(p, share) + term(1 - p, 1 - share)

    return divergence


def ratio_difference(count: Floats, size: Array, share: Floats) -> Floats:
    """The deviation of rRD: how far the ratio protected/rest is below that of the list.

    A prefix with a higher ratio has deviation 0. The ratio of a prefix of protected documents only is 0, by the
    authors' convention. Intended for a protected group that is a minority.

    >>> ratio_difference(np.array([0.0, 5.0, 8.0, 10.0]), np.array(10), np.array(0.5))
    array([1., 0., 0., 1.])
    """
    whole = share / (1 - share)
    return whole - np.minimum(divide(count, size - count, size - count > EPS, otherwise=0.0), whole)


@lru_cache(maxsize=1 << 14)
def largest_prefix_sum(deviation: Deviation, total: float, length: int, reach: int, step: int) -> float:
    """The largest Σ_i deviation_i/log2(1+i) of any list with this length and protected count: the exact normaliser.

    The prefixes have i = step, 2·step, … ≤ `reach` documents. For rRD the worst order is not always all protected
    documents first or last. So this maximises over all orders, by dynamic programming over the protected counts of the
    prefixes. If the count is not whole, one document has the fraction and all others are entirely protected or not. No
    list of soft memberships with this length and count has a larger sum. For rND and rKL the sum is convex in the
    memberships (up to the floor of rKL), so the maximum is at an extreme point, which is such a list. For rRD the worst
    is to fill the first prefixes and keep the rest for the end.

    >>> round(largest_prefix_sum(normalised_difference, 10.0, 20, 20, 10) * float(np.log2(11)), 12)
    0.5
    """
    whole = math.floor(total + EPS)
    fraction = total - whole if total - whole > EPS else 0.0
    share = np.array(total / length)
    placed_before = np.arange(whole + 1)
    # best[f, c]: the largest sum so far with c documents placed; f is 1 once the fraction is placed too.
    best = np.full((2, whole + 1), -np.inf)
    best[0, 0] = 0.0
    size = 0
    for size in range(step, reach + 1, step):
        following = np.full_like(best, -np.inf)
        for placed in range(min(step, whole) + 1):
            np.maximum(following[:, placed:], best[:, : whole + 1 - placed], out=following[:, placed:])
        if fraction:
            for placed in range(min(step - 1, whole) + 1):
                np.maximum(following[1, placed:], best[0, : whole + 1 - placed], out=following[1, placed:])
        counts = np.minimum(np.stack([placed_before, placed_before + fraction]), size)
        best = following + deviation(counts, np.array(size), share) / np.log2(size + 1)
    # What has not been placed must fit after the last prefix.
    left = np.stack([whole - placed_before + (fraction > 0), whole - placed_before])
    return float(best[left <= length - size].max(initial=-np.inf))


def skip_unmapped(attribute: AttributeView, protected: str, cutoff: int | None) -> tuple[Floats, Ints, Ints]:
    """Remove documents without a membership: protected shares (…, rank) of the others in order, padded with 0.

    Also returns, each (…), the number of those documents, and how many of them are within the cutoff.

    >>> from fairevals.collection import AttributeView
    >>> membership = np.array([[1.0, 0.0], [0.0, 0.0], [0.25, 0.75], [0.0, 1.0]])
    >>> view = AttributeView(("a", "b"), False, (membership,), np.full(2, 0.5), np.array(True))
    >>> shares, length, reach = skip_unmapped(view, "a", 2)
    >>> shares, int(length), int(reach)
    (array([1.  , 0.25, 0.  , 0.  ]), 3, 1)
    """
    weights = sides(attribute, protected)
    mapped: Bools = np.any(weights > 0, axis=-1)
    order = np.argsort(~mapped, axis=-1, kind="stable")
    shares = np.take_along_axis(weights[..., 0], order, axis=-1)
    return shares, np.count_nonzero(mapped, axis=-1), np.count_nonzero(mapped[..., :cutoff], axis=-1)


@dataclass(frozen=True)
class PrefixMeasure(RankingMeasure):
    """Base class of rND, rKL and rRD. Prefixes end at the cutoff; all are compared with the whole list.

    Undefined where the list has no or only protected documents, where it is not longer than `step` (its only prefix is
    the list itself), where the cutoff is below `step`, and where the attribute does not apply.
    """

    direction = LOWER
    source = "Yang, Stoyanovich: Measuring fairness in ranked outputs. SSDBM 2017"
    attributes = "one"

    attr: str = attr_param()
    protected: str = param(None, "the protected group", check=named)
    step: int = param(10, "documents per step, at least 1", check=lambda n: type(n) is int and n > 0)
    normalise: bool = param(True, "divide by the largest sum of any order", choices=(True, False))

    @property
    def depth(self) -> None:
        """None: prefixes are compared with the whole ranking, whatever the cutoff."""

    @property
    @abstractmethod
    def deviation(self) -> Deviation:
        """The deviation of a prefix from the list."""

    def of_ranking(self, ranked: Ranked) -> Floats:
        attribute = ranked.attribute(self.attr)
        protected, length, reach = skip_unmapped(attribute, self.protected, self.cutoff)
        total = rank_sum(protected)
        both_sides = (total > EPS) & (total < length - EPS)
        defined = both_sides & (length > self.step) & (reach >= self.step) & attribute.applies
        protected, total = protected[defined], total[defined]
        length, reach = length[defined], reach[defined]
        sizes = np.arange(self.step, protected.shape[-1] + 1, self.step)
        counts = np.cumsum(protected, axis=-1)[..., sizes - 1]
        deviations = self.deviation(counts, sizes, (total / length)[:, None]) / np.log2(sizes + 1)
        sums = rank_sum(np.where(sizes <= reach[:, None], deviations, 0.0))
        if self.normalise:
            # Rounded, so that the normaliser does not depend on the order in which soft memberships were added.
            cases = zip(np.round(total, 9).tolist(), length.tolist(), reach.tolist(), strict=True)
            sums /= np.array([largest_prefix_sum(self.deviation, *case, self.step) for case in cases])
            sums = np.minimum(sums, 1.0)
        value = np.full(defined.shape, np.nan)
        value[defined] = sums
        return value


@dataclass(frozen=True)
class RND(PrefixMeasure):
    """Normalised discounted difference."""

    name = "rND"
    formula = (
        "Σ_i |c_i/i − c_N/N|/log2(1+i), i = 10, 20, …, c_i the protected among the first i; "
        "divided by its maximum"
    )

    deviation = staticmethod(normalised_difference)


@dataclass(frozen=True)
class RKL(PrefixMeasure):
    """Normalised discounted Kullback-Leibler divergence."""

    name = "rKL"
    formula = "Σ_i KL(c_i/i ‖ c_N/N)/log2(1+i) in bits, i = 10, 20, …; divided by its maximum"

    floor: float = param(0.001, "shares are clipped to [floor, 1−floor]; in [0, 1]", check=unit)

    @property
    def deviation(self) -> Deviation:
        """The divergence of the prefix's shares from the list's."""
        return prefix_divergence(self.floor)


@dataclass(frozen=True)
class RRD(PrefixMeasure):
    """Normalised discounted ratio difference, for a protected group that is a minority."""

    name = "rRD"
    formula = (
        "Σ_i max(0, c_N/(N−c_N) − c_i/(i−c_i))/log2(1+i), i = 10, 20, …, a ratio without rest is 0; "
        "divided by its maximum"
    )

    deviation = staticmethod(ratio_difference)

"""Fairness of the prefixes of a ranking: normalised difference (rND), divergence (rKL) and ratio (rRD).

A prefix of i documents is compared with the whole list; its deviation is discounted by 1/log2(1+i), summed
over the prefixes of 10, 20, … documents, and divided by the largest sum that any order could have. The
discount, the treatment of shares of 0 and 1 in rKL, and the ratio of rRD are those of the authors' published
code, whose values they reproduce; the paper's text has 1/log2(i) and leaves the rest open.

The list is the ranking without the documents of which the attribute says nothing. Its protected count may be
a fraction where memberships are soft.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from fairevals.collection import AttributeView, Ranked
from fairevals.measures.base import LOWER, RankingMeasure, named, param, rank_sum, unit
from fairevals.measures.ratios import sides
from fairevals.typing import Array, Bools, Floats, Ints

Deviation: TypeAlias = Callable[[Floats, Array, Floats], Floats]
"""A prefix's deviation, from its protected count, its size, and the protected share of the list."""

EPS = 1e-9
"""Counts nearer than this are equal: soft memberships add up in floating point."""


def normalised_difference(count: Floats, size: Array, share: Floats) -> Floats:
    """rND's deviation: |count/size − share|.

    >>> normalised_difference(np.array([0.0, 8.0]), np.array([10, 20]), np.array(0.5))
    array([0.5, 0.1])
    """
    return np.abs(count / size - share)


def prefix_divergence(count: Floats, size: Array, share: Floats, floor: float = 0.001) -> Floats:
    """rKL's deviation: the Kullback-Leibler divergence, in bits, of the prefix's shares from the list's.

    A protected share below `floor` is read as `floor`, one above 1−`floor` as that (but never beyond the
    list's own share), as the authors' code does for shares of 0 and 1. With 0, all shares stay as they are,
    and 0·log 0 = 0.

    >>> prefix_divergence(np.array([0.0, 5.0]), np.array([10, 10]), np.array(0.5)).round(4)
    array([0.9886, 0.    ])
    """
    p = np.clip(count / size, np.minimum(floor, share), np.maximum(1 - floor, share))
    return _relative(p, share) + _relative(1 - p, 1 - share)


def _relative(p: Floats, q: Floats) -> Floats:
    """p·log2(p/q), 0 where p is 0."""
    return p * np.log2(np.divide(p, q, out=np.ones(np.broadcast_shapes(p.shape, q.shape)), where=p > 0))


def ratio_difference(count: Floats, size: Array, share: Floats) -> Floats:
    """rRD's deviation: how far the ratio protected/rest falls short of that of the list.

    A prefix with a higher ratio does not deviate; one without any of the rest has, by the authors'
    convention, the ratio 0. Meant for a protected group that is the smaller side.

    >>> ratio_difference(np.array([0.0, 5.0, 8.0, 10.0]), np.array(10), np.array(0.5))
    array([1., 0., 0., 1.])
    """
    rest = size - count
    ratio = np.divide(
        count, rest, out=np.zeros(np.broadcast_shapes(count.shape, rest.shape)), where=rest > EPS
    )
    whole = share / (1 - share)
    return whole - np.minimum(ratio, whole)


def prefix_sum(
    deviation: Deviation, protected: Floats, total: Floats, length: Ints, reach: Ints, step: int
) -> Floats:
    """Σ_i deviation_i/log2(1+i) over the prefixes of i = step, 2·step, … ≤ `reach` documents.

    `protected` is (…, rank): each document's protected share, 0 behind the list. `length` and `total` (…) are
    the documents of the list and their protected count.

    >>> half = np.repeat([1.0, 0.0], 50)  # the example of the authors' code
    >>> n = np.array(100)
    >>> round(float(prefix_sum(normalised_difference, half, np.array(50.0), n, n, 10)), 12)
    0.660066334446
    """
    sizes = np.arange(step, protected.shape[-1] + 1, step)
    counts = np.cumsum(protected, axis=-1)[..., sizes - 1]
    share = np.divide(total, length, out=np.full(total.shape, 0.5), where=length > 0)[..., None]
    within = sizes <= reach[..., None]
    return rank_sum(np.where(within, deviation(counts, sizes, share) / np.log2(sizes + 1), 0.0))


@lru_cache(maxsize=1 << 14)
def largest_prefix_sum(deviation: Deviation, total: float, length: int, reach: int, step: int) -> float:
    """The largest `prefix_sum` of any list of that length and protected count: the exact normaliser.

    For rRD, all protected first, or last, is not always the worst: so this maximises over all orders, by
    dynamic programming over the protected counts of the prefixes. Where the count is not whole, one document
    holds the fraction and the others are wholly on one side. No list of soft memberships with the same length
    and count exceeds this: for rND and rKL because the sum is convex in the memberships, so that it is
    largest at an extreme point, which is such a list (but for the floor of rKL, by little); for rRD because
    nothing is worse than to fill the first prefixes and then to hold all others back.

    >>> round(largest_prefix_sum(normalised_difference, 10.0, 20, 20, 10) * float(np.log2(11)), 12)
    0.5
    """
    whole = math.floor(total + EPS)
    fraction = total - whole if total - whole > EPS else 0.0
    share = np.array(total / length)
    held = np.arange(whole + 1)
    # best[0]: the fraction is still to come (or there is none); best[1]: it has been placed.
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
        counts = np.minimum(np.stack([held, held + fraction]), size)
        best = following + deviation(counts, np.array(size), share) / np.log2(size + 1)
    # What has not been placed must fit behind the last prefix.
    left = np.stack([whole - held + (fraction > 0), whole - held])
    return float(best[left <= length - size].max(initial=-np.inf))


def skip_unmapped(attribute: AttributeView, protected: str, cutoff: int | None) -> tuple[Floats, Ints, Ints]:
    """The protected shares (…, rank) of the documents that have a membership, moved up in order, then 0.

    And, each (…), how many there are, and how many of them stand within the cutoff.

    >>> membership = np.array([[1.0, 0.0], [0.0, 0.0], [0.25, 0.75], [0.0, 1.0]])
    >>> view = AttributeView(("a", "b"), False, membership, np.full(2, 0.5), np.array(True))
    >>> shares, length, reach = skip_unmapped(view, "a", 2)
    >>> shares, int(length), int(reach)
    (array([1.  , 0.25, 0.  , 0.  ]), 3, 1)
    """
    weights = sides(attribute, protected)
    mapped: Bools = np.any(weights > 0, axis=-1, keepdims=False)
    order = np.argsort(~mapped, axis=-1, kind="stable")
    shares = np.take_along_axis(weights[..., 0], order, axis=-1)
    return shares, np.count_nonzero(mapped, axis=-1), np.count_nonzero(mapped[..., :cutoff], axis=-1)


@dataclass(frozen=True)
class PrefixMeasure(RankingMeasure):
    """What rND, rKL and rRD share. No prefix goes beyond the cutoff; all are compared with the whole list.

    Undefined where the list has no protected or only protected documents, where it is no longer than `step`
    (its only prefix is itself, and no order could be unfair), where the cutoff is below `step`, and where the
    attribute does not apply.
    """

    direction = LOWER
    source = "Yang, Stoyanovich: Measuring fairness in ranked outputs. SSDBM 2017"
    attributes = "one"

    attr: str = param(None, "the attribute's name", check=named)
    protected: str = param(None, "the group whose share in the prefixes is looked at", check=named)
    step: int = param(
        10, "documents from prefix to prefix, at least 1", check=lambda n: type(n) is int and n > 0
    )
    normalise: bool = param(
        True, "divide by the largest sum that any order could have", choices=(True, False)
    )

    @property
    def depth(self) -> None:
        """The whole ranking, whatever the cutoff: prefixes are compared with it."""

    @property
    @abstractmethod
    def deviation(self) -> Deviation:
        """How far a prefix is from the list."""

    def of_ranking(self, ranked: Ranked) -> Floats:
        """The value for each ranking; NaN where undefined."""
        attribute = ranked.attribute(self.attr)
        protected, length, reach = skip_unmapped(attribute, self.protected, self.cutoff)
        total = rank_sum(protected)
        both_sides = (total > EPS) & (total < length - EPS)
        defined = both_sides & (length > self.step) & (reach >= self.step) & attribute.applies
        value = np.full(defined.shape, np.nan)
        value[defined] = prefix_sum(
            self.deviation, protected[defined], total[defined], length[defined], reach[defined], self.step
        )
        if self.normalise:
            value[defined] = np.minimum(value[defined] / self._largest(total, length, reach, defined), 1.0)
        return value

    def _largest(self, total: Floats, length: Ints, reach: Ints, defined: Array) -> Floats:
        # Rounded, so that the order of adding soft memberships does not make another normaliser.
        total = np.round(total, 9)
        cases = zip(total[defined].tolist(), length[defined].tolist(), reach[defined].tolist(), strict=True)
        return np.array([largest_prefix_sum(self.deviation, *case, self.step) for case in cases])


@dataclass(frozen=True)
class RND(PrefixMeasure):
    """Normalised discounted difference.

    >>> str(RND(attr="SEX", protected="f", step=5))
    "rND(attr='SEX',protected='f',step=5)"
    """

    name = "rND"
    formula = (
        "Σ_i |c_i/i − c_N/N|/log2(1+i), i = 10, 20, …, c_i the protected among the first i; "
        "divided by its maximum"
    )

    @property
    def deviation(self) -> Deviation:
        """The difference of shares."""
        return normalised_difference


@dataclass(frozen=True)
class RKL(PrefixMeasure):
    """Normalised discounted Kullback-Leibler divergence.

    >>> str(RKL(attr="SEX", protected="f", normalise=False))
    "rKL(attr='SEX',protected='f',normalise=False)"
    """

    name = "rKL"
    formula = "Σ_i KL(c_i/i ‖ c_N/N)/log2(1+i) in bits, i = 10, 20, …; divided by its maximum"

    floor: float = param(0.001, "shares nearer to 0 or 1 are read as this near; in [0, 1]", check=unit)

    @property
    def deviation(self) -> Deviation:
        """The divergence of the prefix's shares from the list's."""
        return _divergence_with(self.floor)


@lru_cache(maxsize=64)
def _divergence_with(floor: float) -> Deviation:
    # One function per floor, so that it can stand for itself in the cache of normalisers.
    def deviation(count: Floats, size: Array, share: Floats) -> Floats:
        return prefix_divergence(count, size, share, floor)

    return deviation


@dataclass(frozen=True)
class RRD(PrefixMeasure):
    """Normalised discounted ratio difference, for a protected group that is the smaller side.

    >>> str(RRD(attr="SEX", protected="f", cutoff=50))
    "rRD(attr='SEX',protected='f')@50"
    """

    name = "rRD"
    formula = (
        "Σ_i max(0, c_N/(N−c_N) − c_i/(i−c_i))/log2(1+i), i = 10, 20, …, a ratio without rest being 0; "
        "divided by its maximum"
    )

    @property
    def deviation(self) -> Deviation:
        """How far the ratio falls short."""
        return ratio_difference

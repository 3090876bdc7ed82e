"""Disparity of exposure per merit between documents (D_ind, D_cross) and between groups (D_group)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairevals.collection import Exposed
from fairevals.collection.memberships import Membership
from fairevals.measures.base import LOWER, ExposureMeasure, attr_param, param
from fairevals.measures.group_sums import group_sums, spread
from fairevals.measures.merits import merit, merit_param
from fairevals.measures.numeric import divide, hinge, rank_sum, stretches
from fairevals.typing import Array, Bools, Floats, Ints

LEAST_MERIT = 1e-100
"""A smaller merit counts as none: exposure divided by it could be too large for a number."""
_PAIRS = 1 << 20
"""How many pairs are compared at a time."""
TIE = 1e-12
"""Neighbouring mean merits that differ by no more than this, relatively, are equal: rounding must not decide which is
larger."""


def places(major: Array, minor: Array) -> tuple[Ints, Ints]:
    """The order of the items on the last axis by `major`, then `minor`, and how many come before each; not equal ones.

    >>> places(np.array([3, 1, 3, 3]), np.array([1, 2, 0, 1]))
    (array([1, 2, 0, 3]), array([2, 0, 1, 2]))
    """
    order = np.lexsort((minor, major), axis=-1)
    first = np.zeros(order.shape, dtype=np.int64)
    sorted_keys = [np.take_along_axis(key, order, axis=-1) for key in (major, minor)]
    differs = np.logical_or.reduce([key[..., 1:] != key[..., :-1] for key in sorted_keys])
    first[..., 1:] = np.where(differs, np.arange(1, order.shape[-1]), 0)
    before = np.empty_like(first)
    np.put_along_axis(before, order, np.maximum.accumulate(first, axis=-1), axis=-1)
    return order, before


def pair_excess(ratios: Floats, levels: Ints) -> tuple[Floats, Floats]:
    """Sums over pairs i, j with level_i ≥ level_j > 0 of max(0, r_i − r_j), and their gradients by r.

    `ratios` and `levels` are (rows, items). Of two items of equal level both orders are meant, and their excesses sum
    to |r_i − r_j|. Time is O(items·log items): max(0, r_i − r_j) is max(r_i, r_j) − r_j, so r_i is counted as often as
    there are items with a smaller ratio, less the number of items with a larger level. That is the derivative; with
    equal ratios and levels kept apart, it is the difference of two places in a sorted order. Each gap between
    neighbouring ratios is spanned by as many pairs as the derivatives of the items up to it sum to, below 0. All
    these are whole numbers, so nothing cancels. At equal ratios the derivative is 0.

    >>> total, slope = pair_excess(np.array([[0.5, 0.63, 0.5]]), np.array([[2, 1, 1]]))
    >>> total.round(2), slope
    (array([0.13]), array([[ 0.,  1., -1.]]))
    """
    r = np.where(levels > 0, ratios, np.inf)
    order, lower = places(r, -levels)
    _, higher = places(-levels, -r)
    slope = np.where(levels > 0, lower - higher, 0)
    ascending = np.take_along_axis(r, order, axis=-1)
    spanning = -np.cumsum(np.take_along_axis(slope, order, axis=-1), axis=-1)[:, :-1]
    gaps = np.subtract(ascending[:, 1:], ascending[:, :-1], out=np.zeros(spanning.shape), where=spanning > 0)
    return rank_sum(gaps * spanning), slope.astype(np.float64)


def smoothed_pair_excess(ratios: Floats, levels: Ints, smoothing: float) -> tuple[Floats, Floats]:
    """As `pair_excess`, with `hinge(r_i − r_j, smoothing)`; pair by pair, in bounded memory.

    >>> smoothed_pair_excess(np.array([[0.5, 0.63, 0.5]]), np.array([[2, 1, 1]]), 0.02)[0].round(2)
    array([0.12])
    """
    rows, items = ratios.shape
    total, slope = np.zeros(rows), np.zeros(ratios.shape)
    at_once = max(1, _PAIRS // max(1, items * items))
    for start in range(0, rows, at_once):
        part = slice(start, start + at_once)
        r, level = ratios[part], levels[part]
        meant = (level[:, :, None] >= level[:, None, :]) & (level[:, None, :] > 0)
        value, derivative = hinge(r[:, :, None] - r[:, None, :], smoothing)
        derivative = derivative * meant
        total[part] = rank_sum(rank_sum(value * meant))
        slope[part] = rank_sum(derivative) - rank_sum(derivative.transpose(0, 2, 1))
    return total, slope


def worst_excess(ratios: Floats, levels: Ints) -> tuple[Floats, Floats]:
    """The largest max(0, r_i − r_j) over pairs with level_i ≥ level_j > 0, and its gradients by r; as `pair_excess`.

    The best rival of an item is the smallest ratio up to its level. Of equal pairs the first gives the gradient.

    >>> worst_excess(np.array([[0.5, 0.63, 0.5]]), np.array([[2, 1, 1]]))
    (array([0.13]), array([[ 0.,  1., -1.]]))
    """
    counted = levels > 0
    order = np.argsort(np.where(counted, levels, levels.shape[-1] + 1), axis=-1, kind="stable")
    r, ascending = (np.take_along_axis(each, order, axis=-1) for each in (ratios, levels))
    smallest = np.minimum.accumulate(np.where(ascending > 0, r, np.inf), axis=-1)
    smallest = np.take_along_axis(smallest, stretches(ascending)[1], axis=-1)
    rival = np.empty(ratios.shape)
    np.put_along_axis(rival, order, smallest, axis=-1)
    excess = np.subtract(ratios, rival, out=np.zeros(ratios.shape), where=counted)
    slope = np.zeros(ratios.shape)
    if not excess.shape[-1]:
        return np.zeros(len(excess)), slope
    one = np.argmax(excess, axis=-1, keepdims=True)
    value = np.take_along_axis(excess, one, axis=-1)
    no_larger = counted & (levels <= np.take_along_axis(levels, one, axis=-1))
    other = np.argmin(np.where(no_larger, ratios, np.inf), axis=-1, keepdims=True)
    np.put_along_axis(slope, one, 1.0 * (value > 0), axis=-1)
    np.put_along_axis(
        slope, other, np.where(value > 0, -1.0, np.take_along_axis(slope, other, axis=-1)), axis=-1
    )
    return value[:, 0], slope


def _excess(ratios: Floats, levels: Ints, pairs: str, smoothing: float) -> tuple[Floats, Floats]:
    """The sum over pairs, or for pairs="max" the largest, and its gradients by the ratios."""
    if pairs == "max":
        value, slope = worst_excess(ratios, levels)
        value, factor = hinge(value, smoothing)
        return value, slope * factor[:, None]
    return smoothed_pair_excess(ratios, levels, smoothing) if smoothing else pair_excess(ratios, levels)


def merit_levels(merits: Floats, tie: float = 0.0) -> Ints:
    """The positive merits (…, item) numbered from the smallest, 1, up; 0 where there is no merit, or NaN.

    Neighbouring merits that differ by no more than `tie`, relatively, have the same number.

    >>> merit_levels(np.array([[2.0, 0.0, 1.0, 2.0]]))
    array([[2, 0, 1, 2]])
    >>> merit_levels(np.array([0.1 + 0.2, 0.3, 0.7])), merit_levels(np.array([0.1 + 0.2, 0.3, 0.7]), TIE)
    (array([2, 1, 3]), array([1, 1, 2]))
    """
    positive = np.where(merits > 0, merits, 0.0)
    order = np.argsort(positive, axis=-1, kind="stable")
    ascending = np.take_along_axis(positive, order, axis=-1)
    before = np.concatenate([np.zeros((*merits.shape[:-1], 1)), ascending[..., :-1]], axis=-1)
    levels = np.zeros(merits.shape, dtype=np.int64)
    rises = ascending - before > tie * ascending
    np.put_along_axis(levels, order, np.cumsum(rises, axis=-1), axis=-1)
    return levels


def _individual(exposure: Floats, merits: Floats, smoothing: float = 0.0) -> tuple[Floats, Floats]:
    """D_ind and its gradient by the exposures."""
    both = np.stack(np.broadcast_arrays(exposure, merits))
    shape = both.shape[1:]
    v, m = both.reshape(2, math.prod(shape[:-1]), shape[-1])
    counted = m > LEAST_MERIT
    ratios, inverse = (divide(above, m, counted, otherwise=0.0) for above in (v, np.ones(())))
    levels = merit_levels(m)
    total, slope = _excess(ratios, levels, "mean", smoothing)
    n, ordered = counted.sum(axis=1), np.sort(levels, axis=1)
    tied = np.where(ordered > 0, np.arange(shape[-1]) - stretches(ordered)[0], 0).sum(axis=1)
    pairs = n * (n - 1) // 2 + tied
    defined = (pairs > 0) & np.any(counted & (v > 0), axis=1)
    value = divide(total, pairs, defined)
    gradient = divide(slope * inverse, pairs[:, None], defined[:, None], otherwise=0.0)
    return value.reshape(shape[:-1]), gradient.reshape(shape)


def individual_disparity(exposure: Floats, merits: Floats) -> Floats:
    """D_ind: the mean over ordered pairs i≠j with M_i ≥ M_j > 0 of max(0, ε_i/M_i − ε_j/M_j).

    `exposure` and `merits` are (…, document). Documents without merit, and so padding, take no part. Two
    documents of equal merit form two pairs, one in each order. NaN without a pair, and where no document with merit
    has exposure. See Singh and Joachims, NeurIPS 2019, equation 3, which taken literally would count the pairs (i, i).

    >>> exposure, merits = np.array([1.0, 0.63, 0.5]), np.array([2.0, 1.0, 1.0])
    >>> round(float(individual_disparity(exposure, merits)), 4)  # four pairs, of which 0.63 over 0.5 counts
    0.0325
    """
    return _individual(exposure, merits)[0]


def cross_disparity(exposure: Floats, merits: Floats, counted: Bools) -> tuple[Floats, Floats]:
    """D_cross: Σ_{i≠j} (ε_i·M_j − ε_j·M_i)²/(n(n−1)) over the n counted documents of the last axis.

    0 where all merits are 0, NaN with fewer than two documents or without exposure. The sum over all pairs is
    2·ΣM²·Σ(ε − c·M)² with c = ΣεM/ΣM², in which nothing cancels. See Oosterhuis, SIGIR 2021. Also returns the
    gradient by the exposures, 4·(ε_d·ΣM² − M_d·ΣεM)/(n(n−1)).

    >>> value, gradient = cross_disparity(np.array([1.0, 0.5]), np.array([1.0, 1.0]), np.array([True, True]))
    >>> float(value), gradient
    (0.25, array([ 1., -1.]))
    """
    v, m = exposure * counted, merits * counted
    squares, products = rank_sum(m * m), rank_sum(v * m)
    c = divide(products, squares, squares > 0, otherwise=0.0)
    total = 2 * squares * rank_sum(np.square(v - c[..., None] * m))
    slope = 4 * (v * squares[..., None] - m * products[..., None])
    n = counted.sum(axis=-1)
    pairs = n * (n - 1.0)
    value = divide(total, pairs, (n > 1) & np.any(v > 0, axis=-1))
    return value, divide(slope, pairs[..., None], (n > 1)[..., None], otherwise=0.0)


def group_levels(mean_merits: Floats, ties: str = "both") -> Ints:
    """The mean merits (…, group) numbered as by `merit_levels`, equal ones alike; with ties="first", all differently.

    Then, of groups of equal merit, the one named first has the largest number, as if it had the most merit.

    >>> group_levels(np.array([2.0, 1.0, 2.0])), group_levels(np.array([2.0, 1.0, 2.0]), "first")
    (array([2, 1, 2]), array([3, 1, 2]))
    """
    levels = merit_levels(mean_merits, TIE)
    if ties == "first":
        named_last = np.broadcast_to(np.arange(levels.shape[-1])[::-1], levels.shape)
        levels = np.where(levels > 0, places(levels, named_last)[1] + 1, 0)
    return levels


def _of_groups(
    exposure: Floats,
    merits: Floats,
    candidates: Bools,
    factors: Sequence[Membership],
    pairs: str,
    ties: str,
    smoothing: float = 0.0,
) -> tuple[Floats, Floats]:
    """D_group over the candidates, and its gradient by the documents' exposures."""
    sizes, *sums = (group_sums(each * candidates, *factors) for each in (np.ones(()), exposure, merits))
    means = [divide(each, sizes, sizes > 0) for each in sums]
    shape = sizes.shape
    v, m = (mean.reshape(-1, shape[-1]) for mean in means)
    counted = m > LEAST_MERIT  # False for the NaN of a group without documents
    ratios, inverse = (divide(above, m, counted, otherwise=0.0) for above in (v, np.ones(())))
    value, slope = _excess(ratios, group_levels(m, ties), pairs, smoothing)
    n = counted.sum(axis=1)
    count = np.ones(len(m)) if pairs == "max" else np.maximum(n * (n - 1) / 2, 1)
    defined = (n > 1) & np.any(v > 0, axis=1)
    value = np.where(defined, value / count, np.nan)
    slope = np.where(defined[:, None], slope * inverse / count[:, None], 0.0)
    share = divide(slope.reshape(shape), sizes, sizes > 0, otherwise=0.0)
    return value.reshape(shape[:-1]), spread(share, *factors) * candidates


def group_disparity(
    exposure: Floats, merits: Floats, membership: Floats, pairs: str = "mean", ties: str = "both"
) -> Floats:
    """D_group: over pairs of groups, the mean (or `max`) of max(0, ε̄_i/M̄_i − ε̄_j/M̄_j), M̄_i ≥ M̄_j.

    `exposure` and `merits` are (…, document), `membership` (…, document, group); ε̄ and M̄ are membership-weighted
    means. A group without documents or without merit is left out; NaN with fewer than two groups, and where no
    document has exposure: to show nobody is not fair. Pairs are unordered, n(n−1)/2 of n groups. Where the mean merits
    of a pair are equal (up to rounding), both orders meet the condition, and the larger violation
    |ε̄_i/M̄_i − ε̄_j/M̄_j| counts; with ties="first" only that of the group named first, as in the published code of
    Fair-PG-Rank. In D_ind, such a pair counts twice, once in each order. See Singh and Joachims, NeurIPS 2019,
    equation 4 (two groups).

    >>> two = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> round(float(group_disparity(np.array([1.0, 0.63, 0.5]), np.array([1.0, 1.0, 0.5]), two)), 4)
    0.2467
    """
    return _of_groups(exposure, merits, np.ones(exposure.shape, dtype=bool), [membership], pairs, ties)[0]


@dataclass(frozen=True)
class DInd(ExposureMeasure):
    """How far documents get more exposure per merit than documents of no more merit.

    Pairs are ordered: two documents of different merit form one pair, two of equal merit form two, one in each order,
    and only one of these can be violated. Undefined on a topic without two documents that
    have merit, or if none of them has exposure.
    """

    name = "D_ind"
    direction = LOWER
    formula = (
        "mean over ordered pairs i≠j with M_i ≥ M_j > 0 of max(0, ε_i/M_i − ε_j/M_j); "
        "equal merits are two pairs, one in each order"
    )
    source = "Singh, Joachims: Policy learning for fairness in ranking. NeurIPS 2019"

    merit: str = merit_param()

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """D_ind and ∂D_ind/∂ε; 0 at the kinks, where two documents have equal exposure per merit."""
        return self.smoothed(exposed, 0.0)

    def smoothed(self, exposed: Exposed, smoothing: float) -> tuple[Floats, Floats]:
        return _individual(exposed.exposure, merit(exposed.grades, self.merit), smoothing)


@dataclass(frozen=True)
class DCross(ExposureMeasure):
    """How far exposures are from being proportional to merits, smoothly.

    The documents are the candidates. Defined where merits are 0, undefined on a topic with fewer than two candidates,
    or if none has exposure.
    """

    name = "D_cross"
    direction = LOWER
    formula = "Σ_{i≠j} (ε_i·M_j − ε_j·M_i)² / (n(n−1)) over the n candidates"
    source = (
        "Oosterhuis: Computationally efficient optimization of Plackett-Luce ranking models for relevance and "
        "fairness. SIGIR 2021"
    )

    merit: str = merit_param()

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """D_cross and ∂D_cross/∂ε."""
        return cross_disparity(exposed.exposure, merit(exposed.grades, self.merit), exposed.candidates)


@dataclass(frozen=True)
class DGroup(ExposureMeasure):
    """How far groups get more exposure per merit than groups of no more merit.

    Pairs are unordered: any two groups form one pair, unlike in D_ind. Where their mean merits are equal, the larger of
    the two violations counts. Where all groups have the same mean exposure it is 0 whatever the grades, because only
    over-exposure of the group of higher merit counts: show D_ind, EE_L or D_cross beside it. Means are over the
    candidates. Undefined on a topic where fewer than two groups have
    candidates with merit, no candidate has exposure, or the attribute does not apply.
    """

    name = "D_group"
    direction = LOWER
    formula = (
        "mean over unordered pairs of groups (pairs='max': the worst) of max(0, ε̄_i/M̄_i − ε̄_j/M̄_j), M̄_i ≥ M̄_j > 0; "
        "|ε̄_i/M̄_i − ε̄_j/M̄_j| for equal merits; ε̄ and M̄ membership-weighted means over the group's candidates"
    )
    source = "Singh, Joachims: Policy learning for fairness in ranking. NeurIPS 2019"
    attributes = "one"

    attr: str = attr_param()
    pairs: str = param("mean", "how pairs of groups are aggregated", choices=("mean", "max"))
    ties: str = param("both", "what counts between groups of equal merit", choices=("both", "first"))
    merit: str = merit_param()

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """D_group and ∂D_group/∂ε; 0 at the kinks."""
        return self.smoothed(exposed, 0.0)

    def smoothed(self, exposed: Exposed, smoothing: float) -> tuple[Floats, Floats]:
        attribute, merits = exposed.attribute(self.attr), merit(exposed.grades, self.merit)
        documents = exposed.exposure, merits, exposed.candidates
        value, gradient = _of_groups(*documents, attribute.factors, self.pairs, self.ties, smoothing)
        applies = attribute.applies
        return np.where(applies, value, np.nan), np.where(applies[..., None], gradient, 0.0)

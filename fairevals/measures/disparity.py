"""Disparity of exposure per merit between documents (D_ind, D_cross) and between groups (D_group)."""

import math
from dataclasses import dataclass

import numpy as np

from fairevals.collection import Exposed
from fairevals.measures.base import (
    LOWER,
    ExposureMeasure,
    divide,
    merit,
    merit_param,
    named,
    param,
    rank_sum,
    stretches,
)
from fairevals.measures.expected_exposure import group_sums
from fairevals.typing import Bools, Floats, Ints

TIE = 1e-12
"""Mean merits that differ by less than this, relatively, are equal: rounding must not decide which is larger."""


def pair_excess(ratios: Floats, levels: Ints) -> tuple[Floats, Floats, Floats]:
    """Sums over ordered pairs i≠j, level_i ≥ level_j > 0, of max(0, r_i − r_j), their gradients by r, and how many.

    `ratios` and `levels` are (rows, items). max(0, r_i − r_j) is the length of the line between r_j and r_i, so the sum
    over pairs is the sum, over the gaps between neighbouring ratios, of the gap times the number of pairs that span
    it. That number is a sum over levels of products of two counts. Nothing cancels; memory is O(items) and time
    O(items × levels). At equal ratios the derivative is 0.

    >>> total, slope, pairs = pair_excess(np.array([[0.5, 0.63, 0.5]]), np.array([[2, 1, 1]]))
    >>> total.round(2), slope, pairs
    (array([0.13]), array([[ 0.,  1., -1.]]), array([4.]))
    """
    counted = levels > 0
    order = np.argsort(np.where(counted, ratios, np.inf), axis=-1, kind="stable")
    order = order[:, : int(counted.sum(axis=-1).max(initial=0))]
    r = np.take_along_axis(np.where(counted, ratios, np.inf), order, axis=-1)
    level_of = np.take_along_axis(np.where(counted, levels, 0), order, axis=-1)
    rows, items = r.shape
    first, last = stretches(r)
    spanning, up_to = np.zeros(r.shape), np.zeros((rows, items + 1))
    total_counts = np.cumsum(level_of > 0, axis=-1, dtype=np.float64)
    slope, pairs = np.zeros(r.shape), np.zeros(rows)
    for level in range(1, int(levels.max(initial=0)) + 1):
        here = level_of == level
        at = np.cumsum(here, axis=-1, dtype=np.float64)
        # After position k follow at[-1] − at[k] items of this level; up_to[k] of this or a lower one stand up to it.
        below_level = up_to[:, 1:].copy()
        up_to[:, 1:] += at
        spanning += (at[:, -1:] - at) * up_to[:, 1:]
        pairs += at[:, -1] * (up_to[:, -1] - 1)
        # An item rises above all lower ratios of at most its level, and sinks below all higher of at least it.
        lower = np.take_along_axis(up_to, first, axis=1)
        of_higher_level = total_counts - below_level
        higher = of_higher_level[:, -1:] - np.take_along_axis(of_higher_level, last, axis=1)
        slope += np.where(here, lower - higher, 0.0)
    following = np.concatenate([r[:, 1:], r[:, -1:]], axis=-1)
    gaps = np.subtract(following, r, out=np.zeros_like(r), where=spanning > 0)
    by_item = np.zeros(ratios.shape)
    np.put_along_axis(by_item, order, slope, axis=-1)
    return rank_sum(gaps * spanning), by_item, pairs


def merit_levels(merits: Floats) -> Ints:
    """The positive merits of each row (rows, items) numbered from the smallest, 1, up; 0 where there is no merit.

    >>> merit_levels(np.array([[2.0, 0.0, 1.0, 2.0]]))
    array([[2, 0, 1, 2]])
    """
    order = np.argsort(merits, axis=-1, kind="stable")
    ascending = np.take_along_axis(merits, order, axis=-1)
    before = np.concatenate([np.zeros((len(merits), 1)), ascending[:, :-1]], axis=-1)
    levels = np.zeros(merits.shape, dtype=np.int64)
    rises = (ascending > before) & (ascending > 0)
    np.put_along_axis(levels, order, np.cumsum(rises, axis=-1), axis=-1)
    return levels


def _individual(exposure: Floats, merits: Floats) -> tuple[Floats, Floats]:
    """D_ind and its gradient by the exposures."""
    both = np.stack(np.broadcast_arrays(exposure, merits))
    shape = both.shape[1:]
    v, m = both.reshape(2, math.prod(shape[:-1]), shape[-1])
    counted = m > 0
    ratios, inverse = (divide(above, m, counted, otherwise=0.0) for above in (v, np.ones(())))
    total, slope, pairs = pair_excess(ratios, merit_levels(m))
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


def group_means(values: Floats, membership: Floats) -> Floats:
    """The membership-weighted means (…, group) of (…, document) values; NaN in a group without documents.

    >>> group_means(np.array([1.0, 0.5, 0.2]), np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]))
    array([0.83333333, 0.5       ])
    """
    by_group = membership.swapaxes(-1, -2)
    weights = rank_sum(by_group)
    return divide(rank_sum(by_group * values[..., None, :]), weights, weights > 0)


def not_below(merits: Floats, group: int, ties: str = "both") -> Bools:
    """Whether the merit of a group is at least that of each group, (…, group); False for groups without merit.

    Of two equal merits, with ties="first" only that of the group named first is at least the other.

    >>> not_below(np.array([2.0, 1.0, 2.0]), 2), not_below(np.array([2.0, 1.0, 2.0]), 2, "first")
    (array([ True,  True,  True]), array([False,  True,  True]))
    """
    own = merits[..., group, None]
    margin = TIE * np.maximum(own, merits)
    lead = own - merits  # NaN, and so False below, for a group without documents
    above = lead >= -margin
    if ties == "first":
        above[..., :group] = (lead > margin)[..., :group]
    ahead: Bools = above & (own > 0) & (merits > 0)
    return ahead


def _of_groups(
    exposure: Floats, merits: Floats, membership: Floats, pairs: str, ties: str
) -> tuple[Floats, Floats]:
    """D_group, and its gradient by the documents' exposures."""
    sizes = rank_sum(membership.swapaxes(-1, -2))
    means = [divide(group_sums(each, membership), sizes, sizes > 0) for each in (exposure, merits)]
    shape = sizes.shape
    v, m = (mean.reshape(-1, shape[-1]) for mean in means)
    counted = m > 0  # False for the NaN of a group without documents
    ratios, inverse = (divide(above, m, counted, otherwise=0.0) for above in (v, np.ones(())))
    value, slope = np.zeros(len(m)), np.zeros(m.shape)
    for group in range(m.shape[1]):
        excess = np.maximum(ratios[:, group, None] - ratios, 0.0) * not_below(m, group, ties)
        if pairs == "max":
            other = np.argmax(excess, axis=1)
            worst = np.take_along_axis(excess, other[:, None], axis=1)[:, 0]
            rows = np.flatnonzero(worst > value)
            value[rows], slope[rows] = worst[rows], 0.0
            slope[rows, group], slope[rows, other[rows]] = 1.0, -1.0
        else:
            above = excess > 0
            value += rank_sum(excess)
            slope[:, group] += above.sum(axis=1)
            slope -= above
    n = counted.sum(axis=1)
    count = np.ones(len(m)) if pairs == "max" else np.maximum(n * (n - 1) / 2, 1)
    defined = (n > 1) & np.any(v > 0, axis=1)
    value = np.where(defined, value / count, np.nan)
    slope = np.where(defined[:, None], slope * inverse / count[:, None], 0.0)
    share = divide(slope.reshape(shape), sizes, sizes > 0, otherwise=0.0)
    return value.reshape(shape[:-1]), rank_sum(membership * share[..., None, :])


def group_disparity(
    exposure: Floats, merits: Floats, membership: Floats, pairs: str = "mean", ties: str = "both"
) -> Floats:
    """D_group: over pairs of groups, the mean (or `max`) of max(0, ε̄_i/M̄_i − ε̄_j/M̄_j), M̄_i ≥ M̄_j.

    `exposure` and `merits` are (…, document), `membership` (…, document, group); ε̄ and M̄ are membership-weighted
    means. A group without documents or without merit is left out; NaN with fewer than two groups, and where no
    document has exposure: to show nobody is not fair. A pair of groups counts once. Where its mean merits are
    equal, both orders meet the condition, and the larger violation |ε̄_i/M̄_i − ε̄_j/M̄_j| counts; with ties="first"
    only that of the group named first, as in the published code of Fair-PG-Rank. See Singh and Joachims, NeurIPS
    2019, equation 4 (two groups).

    >>> two = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> round(float(group_disparity(np.array([1.0, 0.63, 0.5]), np.array([1.0, 1.0, 0.5]), two)), 4)
    0.2467
    """
    return _of_groups(exposure, merits, membership, pairs, ties)[0]


@dataclass(frozen=True)
class DInd(ExposureMeasure):
    """How far documents get more exposure per merit than documents of no more merit.

    Two documents of equal merit form two pairs, one in each order. Undefined on a topic without two documents that
    have merit, or if none of them has exposure.
    """

    name = "D_ind"
    direction = LOWER
    formula = "mean over pairs i≠j with M_i ≥ M_j > 0 of max(0, ε_i/M_i − ε_j/M_j)"
    source = "Singh, Joachims: Policy learning for fairness in ranking. NeurIPS 2019"

    merit: str = merit_param()

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """D_ind and ∂D_ind/∂ε; 0 at the kinks, where two documents have equal exposure per merit."""
        return _individual(exposed.exposure, merit(exposed.grades, self.merit))


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

    A pair of groups counts once; where their mean merits are equal, the larger of the two violations counts. Means
    are over the candidates. Undefined on a topic where fewer than two groups have candidates with merit, no candidate
    has exposure, or the attribute does not apply.
    """

    name = "D_group"
    direction = LOWER
    formula = (
        "mean over pairs of groups (pairs='max': the worst) of max(0, ε̄_i/M̄_i − ε̄_j/M̄_j), M̄_i ≥ M̄_j, "
        "ε̄ and M̄ membership-weighted means over the group's candidates"
    )
    source = "Singh, Joachims: Policy learning for fairness in ranking. NeurIPS 2019"
    attributes = "one"

    attr: str = param(None, "the attribute's name", check=named)
    pairs: str = param("mean", "how pairs of groups are aggregated", choices=("mean", "max"))
    ties: str = param("both", "what counts between groups of equal merit", choices=("both", "first"))
    merit: str = merit_param()

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """D_group and ∂D_group/∂ε; 0 at the kinks."""
        merits, membership = merit(exposed.grades, self.merit), exposed.candidate_membership(self.attr)
        value, gradient = _of_groups(exposed.exposure, merits, membership, self.pairs, self.ties)
        applies = exposed.attribute(self.attr).applies
        return np.where(applies, value, np.nan), np.where(applies[..., None], gradient, 0.0)

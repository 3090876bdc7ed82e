"""Disparity of exposure per merit between documents (D_ind) and between groups (D_group)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fairevals.collection import Exposed
from fairevals.measures.base import LOWER, ExposureMeasure, named, param, rank_sum
from fairevals.measures.merit import merit, merit_param
from fairevals.typing import Bools, Floats, Ints

TIE = 1e-12
"""Mean merits closer than this, relatively, are a tie: which one rounding left larger must not decide."""


def individual_disparity(exposure: Floats, merits: Floats) -> Floats:
    """D_ind: the mean over ordered pairs i≠j with M_i ≥ M_j > 0 of max(0, v_i/M_i − v_j/M_j).

    `exposure` and `merits` are (…, document). Documents without merit, and so padding, take no part. Two
    documents of equal merit form two pairs, one in each order. NaN without a pair. See Singh and Joachims,
    NeurIPS 2019, equation 3, which taken by the letter would count the pairs (i, i) too.

    With r = v/M, a pair's max(0, r_i − r_j) is the length of the line between r_j and r_i. So the sum over
    pairs is the sum, over the gaps between neighbouring values of r, of the gap times the number of pairs
    that span it; that number is a sum over the levels of merit of products of two counts. Nothing cancels,
    memory is O(documents) and time O(documents × distinct merits).

    >>> exposure, merits = np.array([1.0, 0.63, 0.5]), np.array([2.0, 1.0, 1.0])
    >>> round(float(individual_disparity(exposure, merits)), 4)  # four pairs, of which 0.63 over 0.5 counts
    0.0325
    """
    shape = np.broadcast_shapes(exposure.shape, merits.shape)
    v, m = (np.broadcast_to(a, shape).reshape(math.prod(shape[:-1]), shape[-1]) for a in (exposure, merits))
    counted = m > 0
    ratios = np.divide(v, m, out=np.full(m.shape, np.inf), where=counted)
    order = np.argsort(ratios, axis=-1, kind="stable")[:, : int(counted.sum(axis=-1).max(initial=0))]
    ratios = np.take_along_axis(ratios, order, axis=-1)
    levels = np.take_along_axis(_levels(m), order, axis=-1)

    pairs, spanning, up_to = np.zeros(len(m)), np.zeros(levels.shape), np.zeros(levels.shape)
    for level in range(1, int(levels.max(initial=0)) + 1):
        at = np.cumsum(levels == level, axis=-1, dtype=np.float64)
        up_to += at
        # Behind position k stand at[-1] − at[k] of this level; up to it, up_to[k] of this or a lower one.
        spanning += (at[:, -1:] - at) * up_to
        pairs += at[:, -1] * (up_to[:, -1] - 1)
    # Behind the last document with merit stand infinities, where nothing spans the gap.
    following = np.concatenate([ratios[:, 1:], ratios[:, -1:]], axis=-1)
    gaps = np.subtract(following, ratios, out=np.zeros_like(ratios), where=spanning > 0)
    return _divide(rank_sum(gaps * spanning), pairs, pairs > 0).reshape(shape[:-1])


def _levels(merits: Floats) -> Ints:
    """The positive merits of each row numbered from the smallest, 1, up; 0 where there is no merit."""
    order = np.argsort(merits, axis=-1, kind="stable")
    ascending = np.take_along_axis(merits, order, axis=-1)
    before = np.concatenate([np.zeros((len(merits), 1)), ascending[:, :-1]], axis=-1)
    levels = np.zeros(merits.shape, dtype=np.int64)
    np.put_along_axis(levels, order, np.cumsum(ascending > np.maximum(before, 0), axis=-1), axis=-1)
    return levels


def group_means(values: Floats, membership: Floats) -> Floats:
    """The membership-weighted means (…, group) of (…, document) values; NaN in a group without documents.

    >>> group_means(np.array([1.0, 0.5, 0.2]), np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]))
    array([0.83333333, 0.5       ])
    """
    by_group = np.moveaxis(membership, -1, -2)
    weights = rank_sum(by_group)
    return _divide(rank_sum(by_group * values[..., None, :]), weights, weights > 0)


def group_disparity(exposure: Floats, merits: Floats, membership: Floats, pairs: str = "mean") -> Floats:
    """D_group: over pairs of groups, the mean (or `max`) of max(0, v̄_i/M̄_i − v̄_j/M̄_j), M̄_i ≥ M̄_j.

    `exposure` and `merits` are (…, document), `membership` (…, document, group); v̄ and M̄ are
    membership-weighted means. A group without documents or without merit is left out; NaN with fewer than two
    groups. Where the mean merits tie, both orders meet the condition, and the larger of the two violations,
    |v̄_i/M̄_i − v̄_j/M̄_j|, counts. See Singh and Joachims, NeurIPS 2019, equation 4 (two groups).

    >>> two = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> round(float(group_disparity(np.array([1.0, 0.63, 0.5]), np.array([1.0, 1.0, 0.5]), two)), 4)
    0.2467
    """
    mean_merit = group_means(merits, membership)
    mean_exposure = group_means(exposure, membership)
    ratio = _divide(mean_exposure, mean_merit, mean_merit > 0)
    total, worst, count = (np.zeros(ratio.shape[:-1]) for _ in range(3))
    for i, j in combinations(range(ratio.shape[-1]), 2):
        # The comparisons with the NaN of a group left out are False.
        both = (mean_merit[..., i] > 0) & (mean_merit[..., j] > 0)
        margin = TIE * np.maximum(mean_merit[..., i], mean_merit[..., j])
        excess = np.where(both, ratio[..., i] - ratio[..., j], 0.0)
        i_leads = mean_merit[..., i] - mean_merit[..., j] >= -margin
        j_leads = mean_merit[..., j] - mean_merit[..., i] >= -margin
        violation = np.maximum(np.where(i_leads, excess, 0.0), np.where(j_leads, -excess, 0.0))
        violation = np.maximum(violation, 0.0)
        total, worst, count = total + violation, np.maximum(worst, violation), count + both
    return _divide(total, count, count > 0) if pairs == "mean" else np.where(count > 0, worst, np.nan)


def _divide(above: Floats, below: Floats, where: Bools) -> Floats:
    quotient: Floats = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=where)
    return quotient


@dataclass(frozen=True)
class DInd(ExposureMeasure):
    """How far documents get more exposure per merit than documents of no more merit.

    Undefined on a topic without two documents that have merit.

    >>> str(DInd(merit="square", cutoff=10))
    "D_ind(merit='square')@10"
    """

    name = "D_ind"
    direction = LOWER
    formula = "mean over pairs i≠j with M_i ≥ M_j > 0 of max(0, v_i/M_i − v_j/M_j)"
    source = "Singh, Joachims: Policy learning for fairness in ranking. NeurIPS 2019"

    merit: str = merit_param()

    def of_exposure(self, exposed: Exposed) -> Floats:
        """The value for each topic; NaN without a pair."""
        return individual_disparity(exposed.exposure, merit(exposed.grades, self.merit))


@dataclass(frozen=True)
class DGroup(ExposureMeasure):
    """How far groups get more exposure per merit than groups of no more merit.

    Undefined on a topic where fewer than two groups have documents with merit, or to which the attribute does not
    apply.

    >>> str(DGroup(attr="SEX", pairs="max"))
    "D_group(attr='SEX',pairs='max')"
    """

    name = "D_group"
    direction = LOWER
    formula = (
        "mean over pairs of groups (pairs='max': the worst) of max(0, v̄_i/M̄_i − v̄_j/M̄_j), M̄_i ≥ M̄_j, "
        "v̄ and M̄ membership-weighted means over the group"
    )
    source = "Singh, Joachims: Policy learning for fairness in ranking. NeurIPS 2019"
    attributes = "one"

    attr: str = param(None, "the attribute's name", check=named)
    pairs: str = param("mean", "how pairs of groups are summed up", choices=("mean", "max"))
    merit: str = merit_param()

    def of_exposure(self, exposed: Exposed) -> Floats:
        """The value for each topic; NaN with fewer than two groups, or where the attribute does not apply."""
        attribute = exposed.attribute(self.attr)
        merits = merit(exposed.grades, self.merit)
        value = group_disparity(exposed.exposure, merits, attribute.membership, self.pairs)
        return np.where(attribute.applies, value, np.nan)

"""How far a distribution over groups is from its target: six divergences, each in [0, 1], 0 for equal ones.

All are functions `(p, target)` of arrays whose last axis is the group and whose other axes broadcast. Both
are distributions: no negative number, sum 1. A NaN in a distribution makes its divergence NaN. With one group
only, every divergence is 0. A value does not depend on what else is in the arrays, to the last bit.

JSD, NVD and RNSS do not look at the order of the groups; NMD, RNOD and RSNOD (`ORDINAL`) do: being one group
away from the target is better than being three groups away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fairevals.typing import Bools, Floats

Divergence: TypeAlias = Callable[[Floats, Floats], Floats]


def jensen_shannon_divergence(p: Floats, target: Floats) -> Floats:
    """JSD = Σ_i [p_i·log2(p_i/m_i) + p*_i·log2(p*_i/m_i)]/2, m the mean of both; base 2, no root.

    A probability of 0 adds 0. Symmetric; 1 for distributions without a common group. See Lin: Divergence
    measures based on the Shannon entropy, IEEE Transactions on Information Theory 1991.

    >>> float(jensen_shannon_divergence(np.array([1.0, 0.0]), np.array([0.0, 1.0])))
    1.0
    >>> round(float(jensen_shannon_divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5]))), 4)
    0.3113
    """
    both = p + target
    # A group's two terms together are never below 0, but for rounding.
    terms = np.maximum((_relative_to_mean(p, both) + _relative_to_mean(target, both)) / 2, 0)
    return _at_most_one(_group_sum(terms))


def normalised_match_distance(p: Floats, target: Floats) -> Floats:
    """NMD = Σ_i |cp_i − cp*_i|/(C−1), cp the cumulative probabilities: earth mover's distance in [0, 1].

    Symmetric; 1 for all mass at one end when the target has it at the other. See Werman, Peleg, Rosenfeld: A
    distance metric for multidimensional histograms, 1985; Sakai: Evaluating evaluation measures for ordinal
    classification and ordinal quantification, ACL-IJCNLP 2021.

    >>> p = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> normalised_match_distance(p, np.array([1.0, 0.0, 0.0]))
    array([0.5, 1. ])
    """
    moved = np.cumsum(p - target, axis=-1)
    return _at_most_one(_group_sum(np.abs(moved)) / _steps(moved))


def root_normalised_order_aware_divergence(p: Floats, target: Floats) -> Floats:
    """RNOD = sqrt(OD/(C−1)), OD the mean over groups i with p*_i>0 of Σ_j |i−j|·(p_j−p*_j)².

    Not symmetric. The literature gives it the range [0, 1], but the formula exceeds 1 where a target of five
    or more groups puts next to nothing on some that are far from both its own bulk and that of `p`; there
    the value is 1. See Sakai: Evaluating evaluation measures for ordinal classification and ordinal
    quantification, ACL-IJCNLP 2021.

    >>> p = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> root_normalised_order_aware_divergence(p, np.array([1.0, 0.0, 0.0])).round(4)
    array([0.7071, 1.    ])
    """
    squares = np.square(p - target)
    order_aware = _group_sum(_mean_distance(target > 0) * squares)
    return _at_most_one(np.sqrt(order_aware / _steps(squares)))


def root_symmetric_normalised_order_aware_divergence(p: Floats, target: Floats) -> Floats:
    """RSNOD: as RNOD, with OD averaged over both directions (groups with p*_i>0, and groups with p_i>0).

    Symmetric. It too is 1 where the formula would exceed it. See Sakai: Comparing two binned probability
    distributions for information access evaluation, SIGIR 2018.

    >>> p, target = np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.25, 0.25])
    >>> round(float(root_symmetric_normalised_order_aware_divergence(p, target)), 4)
    0.368
    """
    squares = np.square(p - target)
    order_aware = _group_sum((_mean_distance(target > 0) + _mean_distance(p > 0)) / 2 * squares)
    return _at_most_one(np.sqrt(order_aware / _steps(squares)))


def normalised_variational_distance(p: Floats, target: Floats) -> Floats:
    """NVD = Σ_i |p_i−p*_i|/2: the mass that is in the wrong group.

    Symmetric; 1 for distributions without a common group. See Sakai: Evaluating evaluation measures for
    ordinal classification and ordinal quantification, ACL-IJCNLP 2021.

    >>> float(normalised_variational_distance(np.array([1.0, 0.0]), np.array([0.75, 0.25])))
    0.25
    """
    return _at_most_one(_group_sum(np.abs(p - target)) / 2)


def root_normalised_sum_of_squares(p: Floats, target: Floats) -> Floats:
    """RNSS = sqrt(Σ_i (p_i−p*_i)²/2).

    Symmetric; 1 only for all mass in one group when the target has it in another. See Sakai: Comparing two
    binned probability distributions for information access evaluation, SIGIR 2018.

    >>> float(root_normalised_sum_of_squares(np.array([1.0, 0.0]), np.array([0.75, 0.25])))
    0.25
    """
    return _at_most_one(np.sqrt(_group_sum(np.square(p - target)) / 2))


DIVERGENCES: dict[str, Divergence] = {
    "JSD": jensen_shannon_divergence,
    "NMD": normalised_match_distance,
    "RNOD": root_normalised_order_aware_divergence,
    "RSNOD": root_symmetric_normalised_order_aware_divergence,
    "NVD": normalised_variational_distance,
    "RNSS": root_normalised_sum_of_squares,
}
"""The divergences by the names that measures and task files use."""

ORDINAL = frozenset({"NMD", "RNOD", "RSNOD"})
"""Those that look at the order of the groups."""


def _relative_to_mean(p: Floats, both: Floats) -> Floats:
    """p_i·log2(2·p_i/both_i), and 0 where p_i is 0."""
    ratio = np.divide(2 * p, both, out=np.ones(both.shape), where=np.broadcast_to(p != 0, both.shape))
    return p * np.log2(ratio)


def _mean_distance(support: Bools) -> Floats:
    """The mean of |i−j| over the groups i of the support, for each group j; NaN for an empty support."""
    groups = np.arange(support.shape[-1])
    # Sums of whole numbers: exact in whatever order the product adds them.
    total = support.astype(np.float64) @ np.abs(groups[:, None] - groups).astype(np.float64)
    size = np.count_nonzero(support, axis=-1, keepdims=True)
    mean: Floats = np.divide(total, size, out=np.full(total.shape, np.nan), where=size > 0)
    return mean


def _group_sum(terms: Floats) -> Floats:
    """The sum over groups, first to last. numpy's own may add in another order when the shape is another."""
    total: Floats = np.zeros(terms.shape[:-1])
    for group in range(terms.shape[-1]):
        total = total + terms[..., group]
    return total


def _steps(terms: Floats) -> int:
    """From the first group to the last, C−1; 1 for a single group, where all terms are 0."""
    return max(int(terms.shape[-1]) - 1, 1)


def _at_most_one(value: Floats) -> Floats:
    return np.minimum(value, 1.0)

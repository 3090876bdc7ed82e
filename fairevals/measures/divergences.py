"""Six divergences of a distribution over groups from its target, each in [0, 1] and 0 for equal distributions.

All are functions `(p, target)` of arrays whose last axis is the group and whose other axes broadcast. Both arguments
are distributions: no negative number, sum 1. A NaN in a distribution makes its divergence NaN. With a single group,
every divergence is 0. A value does not depend on the rest of the arrays, to the last bit.

NMD, RNOD and RSNOD (`ORDINAL`) depend on the order of the groups: mass one group away from the target counts less than
mass three groups away. JSD, NVD and RNSS ignore the order.

References: Lin, "Divergence measures based on the Shannon entropy", IEEE Transactions on Information Theory 1991 (JSD).
Werman, Peleg, Rosenfeld, "A distance metric for multidimensional histograms", 1985 (NMD). Sakai, "Comparing two binned
probability distributions for information access evaluation", SIGIR 2018 (RSNOD, RNSS). Sakai, "Evaluating evaluation
measures for ordinal classification and ordinal quantification", ACL-IJCNLP 2021 (NMD, RNOD, NVD).
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fairevals.measures.numeric import divide, rank_sum
from fairevals.typing import Bools, Floats

Divergence: TypeAlias = Callable[[Floats, Floats], Floats]


def jensen_shannon_divergence(p: Floats, target: Floats) -> Floats:
    """JSD = Σ_i [p_i·log2(p_i/m_i) + p*_i·log2(p*_i/m_i)]/2, m the mean of both; base 2, no root.

    A probability of 0 adds 0. Symmetric; 1 for distributions without a common group.

    >>> round(float(jensen_shannon_divergence(np.array([1.0, 0.0]), np.array([0.5, 0.5]))), 4)
    0.3113
    """
    both = p + target
    # The two terms of a group add up to at least 0, except for rounding.
    terms = np.maximum((_relative_to_mean(p, both) + _relative_to_mean(target, both)) / 2, 0)
    return np.minimum(rank_sum(terms), 1.0)


def normalised_match_distance(p: Floats, target: Floats) -> Floats:
    """NMD = Σ_i |cp_i − cp*_i|/(C−1), cp the cumulative probabilities: the earth mover's distance, scaled to [0, 1].

    Symmetric; 1 where all mass is in the first group and the target has it in the last, or the reverse.

    >>> p = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> normalised_match_distance(p, np.array([1.0, 0.0, 0.0]))
    array([0.5, 1. ])
    """
    moved = np.cumsum(p - target, axis=-1)
    return np.minimum(rank_sum(np.abs(moved)) / max(int(moved.shape[-1]) - 1, 1), 1.0)


def root_normalised_order_aware_divergence(p: Floats, target: Floats) -> Floats:
    """RNOD = sqrt(OD/(C−1)), OD the mean over groups i with p*_i>0 of Σ_j |i−j|·(p_j−p*_j)².

    Not symmetric. The literature gives it the range [0, 1], but the formula can exceed 1 with five or more groups: when
    the target has very little mass in groups that are far both from most of its own mass and from that of `p`. The
    value is then 1.

    >>> p = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> root_normalised_order_aware_divergence(p, np.array([1.0, 0.0, 0.0])).round(4)
    array([0.7071, 1.    ])
    """
    return _order_aware(p, target, _mean_distance(target > 0))


def root_symmetric_normalised_order_aware_divergence(p: Floats, target: Floats) -> Floats:
    """RSNOD: RNOD with OD averaged over both directions (groups with p*_i>0, and groups with p_i>0).

    Symmetric. Like RNOD it is 1 where the formula exceeds 1.

    >>> p, target = np.array([1.0, 0.0, 0.0]), np.array([0.5, 0.25, 0.25])
    >>> round(float(root_symmetric_normalised_order_aware_divergence(p, target)), 4)
    0.368
    """
    return _order_aware(p, target, (_mean_distance(target > 0) + _mean_distance(p > 0)) / 2)


def normalised_variational_distance(p: Floats, target: Floats) -> Floats:
    """NVD = Σ_i |p_i−p*_i|/2: the mass that is in the wrong group.

    Symmetric; 1 for distributions without a common group.

    >>> float(normalised_variational_distance(np.array([1.0, 0.0]), np.array([0.75, 0.25])))
    0.25
    """
    return np.minimum(rank_sum(np.abs(p - target)) / 2, 1.0)


def root_normalised_sum_of_squares(p: Floats, target: Floats) -> Floats:
    """RNSS = sqrt(Σ_i (p_i−p*_i)²/2).

    Symmetric; 1 only where all mass is in one group and the target has it in another.

    >>> float(root_normalised_sum_of_squares(np.array([1.0, 0.0]), np.array([0.75, 0.25])))
    0.25
    """
    return np.minimum(np.sqrt(rank_sum(np.square(p - target)) / 2), 1.0)


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
"""The divergences that depend on the order of the groups."""


def _relative_to_mean(p: Floats, both: Floats) -> Floats:
    """p_i·log2(2·p_i/both_i), and 0 where p_i is 0."""
    return p * np.log2(divide(2 * p, both, p != 0, otherwise=1.0))


def _order_aware(p: Floats, target: Floats, distance: Floats) -> Floats:
    """sqrt(Σ_j distance_j·(p_j−p*_j)²/(C−1)), at most 1."""
    squares = np.square(p - target)
    return np.minimum(np.sqrt(rank_sum(distance * squares) / max(int(squares.shape[-1]) - 1, 1)), 1.0)


def _mean_distance(support: Bools) -> Floats:
    """The mean of |i−j| over the groups i of the support, for each group j; NaN for an empty support."""
    place = np.arange(support.shape[-1])
    size = np.count_nonzero(support, axis=-1, keepdims=True)
    total = (support * place).sum(axis=-1, keepdims=True)
    up_to, sum_up_to = np.cumsum(support, axis=-1), np.cumsum(support * place, axis=-1)
    # Σ_{i≤j} (j−i) + Σ_{i>j} (i−j), in whole numbers.
    return divide(2 * (place * up_to - sum_up_to) + total - place * size, size, size > 0)

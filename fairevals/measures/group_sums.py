"""Sums of documents' values into groups, and back, for one attribute or an intersection of several."""

import numpy as np

from fairevals.collection.memberships import Membership, SparseMembership
from fairevals.collection.products import product_spread, product_sums
from fairevals.measures.numeric import divide, rank_sum
from fairevals.typing import Bools, Floats


def group_sums(values: Floats, *factors: Membership) -> Floats:
    """The membership-weighted sums (…, group) of (…, document) values.

    `factors` are memberships (…, document, group) in one attribute, or in several: then the groups are those of their
    product.

    >>> group_sums(np.array([1.0, 0.5]), np.array([[1.0, 0.0], [0.5, 0.5]]))
    array([1.25, 0.25])
    """
    if len(factors) > 1:
        return product_sums(values, factors)
    if isinstance(factors[0], SparseMembership):
        return factors[0].sums(values)
    return rank_sum(factors[0].swapaxes(-1, -2) * values[..., None, :])


def spread(by_group: Floats, *factors: Membership) -> Floats:
    """The membership-weighted sums (…, document) of (…, group) values: the transpose of `group_sums`.

    It takes a gradient by the sums of groups to that by the values of documents.

    >>> spread(np.array([1.0, 3.0]), np.array([[1.0, 0.0], [0.5, 0.5]]))
    array([1., 2.])
    """
    if len(factors) > 1:
        return product_spread(by_group, factors)
    if isinstance(factors[0], SparseMembership):
        return factors[0].spread(by_group)
    return rank_sum(factors[0] * by_group[..., None, :])


def group_means(values: Floats, *factors: Membership, counted: Bools | None = None) -> Floats:
    """The membership-weighted means (…, group) of (…, document) values; NaN in a group without documents.

    `counted` are the documents that count; all by default.

    >>> group_means(np.array([1.0, 0.5, 0.2]), np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 0.0]]))
    array([0.83333333, 0.5       ])
    """
    ones: Floats = np.ones(values.shape) if counted is None else counted.astype(np.float64)
    sizes = group_sums(ones, *factors)
    return divide(group_sums(values * ones, *factors), sizes, sizes > 0)

"""Products of memberships in several attributes, and sums of them over documents without forming them all.

Memberships are (…, document, group), one array for each attribute; the groups of the product are those of
`itertools.product`. A sum over documents of outer products is a matrix product, which needs no array of documents ×
product groups.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from math import prod
from operator import itemgetter

import numpy as np

from fairevals.collection.memberships import Membership, dense, map_rows
from fairevals.typing import Floats

CHUNK = 64
"""How many documents are summed at once. Always as many, padded with zeros, so that padding changes no bit of a sum."""


def product_membership(factors: Sequence[Membership]) -> Floats:
    """The memberships (…, document, product group).

    >>> product_membership([np.array([[0.5, 0.5]]), np.array([[0.0, 1.0]])])
    array([[0. , 0.5, 0. , 0.5]])
    """

    def times(left: Floats, right: Floats) -> Floats:
        both: Floats = left[..., :, None] * right[..., None, :]
        return both.reshape(*both.shape[:-2], left.shape[-1] * right.shape[-1])

    return reduce(times, map(dense, factors))


def product_sums(values: Floats, factors: Sequence[Membership]) -> Floats:
    """The sums (…, product group) of (…, document) values, weighted by the product of memberships.

    >>> product_sums(np.array([1.0, 2.0]), [np.eye(2), np.array([[0.5, 0.5], [0.0, 1.0]])])
    array([0.5, 0.5, 0. , 2. ])
    """
    shape = np.broadcast_shapes(values.shape, *(factor.shape[:-1] for factor in factors))[:-1]
    rows, columns = _sizes(factors)
    total = np.zeros((*shape, rows, columns))
    for here, left, right in _chunks(factors):
        weighted = left * _padded(values[..., here, None])
        total += np.matmul(weighted.swapaxes(-1, -2), right)
    return total.reshape(*shape, rows * columns)


def product_spread(by_group: Floats, factors: Sequence[Membership]) -> Floats:
    """What each document (…, document) has of values (…, product group), weighted by its memberships.

    The transpose of `product_sums`.

    >>> product_spread(np.array([1.0, 2.0, 3.0, 4.0]), [np.eye(2), np.array([[0.5, 0.5], [0.0, 1.0]])])
    array([1.5, 4. ])
    """
    matrix = by_group.reshape(*by_group.shape[:-1], *_sizes(factors))
    parts = [np.sum(np.matmul(left, matrix) * right, axis=-1) for _, left, right in _chunks(factors)]
    documents = factors[0].shape[-2]
    return np.concatenate([np.zeros((*by_group.shape[:-1], 0)), *parts], axis=-1)[..., :documents]


def _split(factors: Sequence[Membership]) -> int:
    """Where to cut the factors in two so that the products on both sides are small."""
    counts = [factor.shape[-1] for factor in factors]
    return min(range(1, len(counts)), key=lambda at: prod(counts[:at]) + prod(counts[at:]))


def _sizes(factors: Sequence[Membership]) -> tuple[int, int]:
    at = _split(factors)
    rows, columns = (prod(factor.shape[-1] for factor in half) for half in (factors[:at], factors[at:]))
    return rows, columns


def _chunks(factors: Sequence[Membership]) -> Iterator[tuple[slice, Floats, Floats]]:
    """Some documents at a time, and their memberships in the product of the first factors and in that of the others."""
    at = _split(factors)
    for start in range(0, factors[0].shape[-2], CHUNK):
        here = slice(start, start + CHUNK)
        some = itemgetter((..., here, slice(None)))
        left, right = (
            _padded(product_membership([map_rows(factor, some) for factor in half]))
            for half in (factors[:at], factors[at:])
        )
        yield here, left, right


def _padded(rows: Floats) -> Floats:
    """The rows (…, document, group) of a chunk with zeros up to its size."""
    missing = CHUNK - rows.shape[-2]
    return np.pad(rows, [*[(0, 0)] * (rows.ndim - 2), (0, missing), (0, 0)]) if missing else rows

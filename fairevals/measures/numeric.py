"""Functions of arrays that measures are made of: sums whose bits do not depend on padding, quotients, kinks."""

import numpy as np

from fairevals.typing import Array, Bools, Floats, Ints

FEW = 8
"""Up to so many terms, such as groups, numpy adds whole columns faster than it accumulates along the rows."""
MANY = 512
"""From so many sums on, too, if the terms of one are apart in memory, as documents beside thousands of groups are."""


def rank_sum(terms: Array) -> Floats:
    """The sum along the last axis, added strictly from left to right.

    numpy's own sum adds in blocks that depend on the length, so that padding would change the last bit of
    a value, and a score would depend on which other topics share its block. This one never does.

    >>> float(rank_sum(np.array([0.5, 0.25, 0.0])))
    0.75
    """
    if terms.shape[-1] <= FEW or (terms.strides[-1] > terms.itemsize and terms[..., 0].size >= MANY):
        total = np.zeros(terms.shape[:-1])
        for position in range(terms.shape[-1]):
            total += terms[..., position]
        return total
    last: Floats = np.cumsum(terms, axis=-1, dtype=np.float64)[..., -1]
    return last


def stretches(values: Array) -> tuple[Ints, Ints]:
    """The first and the last position of the stretch of equal neighbours that each position is in, on the last axis.

    >>> stretches(np.array([7, 7, 5]))
    (array([0, 0, 2]), array([1, 1, 2]))
    """
    size = values.shape[-1]
    position = np.broadcast_to(np.arange(size), values.shape)
    differs = values[..., 1:] != values[..., :-1]
    edge = np.ones((*values.shape[:-1], min(size, 1)), dtype=bool)
    first = np.where(np.concatenate([edge, differs], axis=-1), position, 0)
    last = np.where(np.concatenate([differs, edge], axis=-1), position, size)
    return np.maximum.accumulate(first, axis=-1), np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]


def hinge(x: Floats, smoothing: float = 0.0) -> tuple[Floats, Floats]:
    """max(0, x) and its derivative, 0 at the kink; with a smoothing τ > 0, Huber's: x²/(2τ) up to τ, then x − τ/2.

    Smoothed values are smaller, by at most τ/2, and have a continuous derivative, which solvers need.

    >>> hinge(np.array([-1.0, 1.0, 4.0]), 2.0)
    (array([0.  , 0.25, 3.  ]), array([0. , 0.5, 1. ]))
    """
    positive = np.maximum(x, 0.0)
    if not smoothing:
        return positive, (x > 0).astype(np.float64)
    slope = np.minimum(positive / smoothing, 1.0)
    return slope * (positive - 0.5 * smoothing * slope), slope


def absolute(x: Floats, smoothing: float = 0.0) -> tuple[Floats, Floats]:
    """|x| and its derivative, 0 at the kink; with a smoothing, Huber's, as for `hinge`.

    >>> absolute(np.array([-4.0, 1.0]), 2.0)
    (array([3.  , 0.25]), array([-1. ,  0.5]))
    """
    value, slope = hinge(np.abs(x), smoothing)
    return value, np.sign(x) * slope


def divide(above: Array, below: Array, where: Bools, otherwise: float = np.nan) -> Floats:
    """above/below where the condition holds, else `otherwise`; all broadcast.

    >>> divide(np.array([1.0, 1.0]), np.array([4.0, 0.0]), np.array([True, False]))
    array([0.25,  nan])
    """
    if np.all(where):  # the usual case, and much faster
        return np.true_divide(above, below)
    shape = np.broadcast_shapes(np.shape(above), np.shape(below))
    where = np.broadcast_to(where, shape)
    quotient: Floats = np.divide(above, below, out=np.full(shape, otherwise), where=where)
    return quotient

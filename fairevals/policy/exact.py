"""Exact expectations under Plackett-Luce policies, by quadrature over ringing times.

Let document i ring at an exponential time of rate ``w_i = e^{s_i}``: the order of ringing is the
Plackett-Luce ranking (Plackett 1975; in Gumbel form Kool et al. 2020 and Ma et al. 2021). Given that i rings at
t, the others have rung independently with probabilities ``1 − e^{−w_j t}``, so the rank of i is one more than
a Poisson-binomial count, and

    v(i) = ∫ w_i e^{−w_i t} E[v_{1 + N_{−i}(t)}] dt.

"Sample-Free (Almost) Exact Estimation of Plackett-Luce Propensities for Off-Policy Ranking" (ECIR 2026) takes
the same road to the rank probabilities. Here the integral is a trapezoid sum in ``log t`` whose error is
bounded (see `fairevals.policy.nodes`), and the leave-one-out expectations come from running the count over the
documents (`fairevals.policy.counts`), or, where the weights are a mixture of geometric sequences and no cutoff
cuts them short, in a shorter way (`fairevals.policy.mixtures`).

The order of every sum depends on the topic alone, so that a topic's results are the same to the last bit
in whatever batch it is computed: counts are summed one after another, nodes block by block.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fairevals.policy import counts
from fairevals.policy.chunks import Chunk, block_of_row, ringing
from fairevals.policy.nodes import Grid
from fairevals.typing import Floats, Ints

__all__ = ["exposure", "exposure_gradient", "rank_probabilities"]


def exposure(grid: Grid, chunks: Iterable[Chunk], weights: Floats) -> Floats:
    """Expected weight of each document's rank, shape of ``grid.scores``, in the documents' own order."""
    total = grid.tail * weights[:1].sum()
    for chunk in chunks:
        if chunk.mixture is None:
            integrand = counts.integrand(chunk, _last_values(grid, chunk, weights))
        else:
            certain = _certain(grid, chunk)
            integrand = chunk.mixture.integrand(chunk.rung, chunk.waiting, chunk.density, certain)
        integrand *= chunk.step
        _add_blocks(total, grid, chunk, integrand)
    return _unsort(total, grid.order)


def exposure_gradient(grid: Grid, chunks: Iterable[Chunk], weights: Floats, cotangent: Floats) -> Floats:
    """Gradient of ``Σ_i cotangent_i · exposure_i`` by the scores, in reverse mode."""
    ordered = np.take_along_axis(cotangent, grid.order, axis=1)
    total = grid.tail * weights[:1].sum() * ordered
    for chunk in chunks:
        cotangents = _per_row(grid, chunk, ordered)
        if chunk.mixture is None:
            slope = counts.slope(chunk, _last_values(grid, chunk, weights), cotangents)
        else:
            certain, own = _certain(grid, chunk), cotangents * (1.0 - chunk.rate)
            slope = chunk.mixture.slope(chunk.rung, chunk.waiting, chunk.density, own, cotangents, certain)
        slope *= chunk.step
        _add_blocks(total, grid, chunk, slope)
    return _unsort(total, grid.order)


def rank_probabilities(grid: Grid, k: int) -> Floats:
    """P(document at rank), (topics, n, k).

    The count without document i is built by adding documents only, never by dividing i out: halve the
    documents, add one half for the documents of the other, and go on so in each half; O(nodes · n log n · k).
    """
    total = np.zeros((*grid.scores.shape, k))
    total[:, :, 0] = grid.tail
    for chunk in ringing(grid):
        density = chunk.density * chunk.step
        probability = np.zeros((*chunk.rate.shape[:1], chunk.ranks, len(chunk.blocks)))
        nothing = np.ones((1, len(chunk.step)))
        for i, count in counts.leave_one_out(chunk, nothing, 0, 1 << (len(chunk.rate) - 1).bit_length()):
            np.add.reduceat(count * density[i], chunk.first_row, axis=1, out=probability[i, : len(count)])
        for b, block in enumerate(chunk.blocks.tolist()):
            low, high = grid.low[block], grid.high[block]
            last = min(k, low + chunk.ranks)
            total[grid.topic[block], low:high, low:last] += probability[: high - low, : last - low, b]
    unsorted = np.empty_like(total)
    np.put_along_axis(unsorted, grid.order[..., np.newaxis], total, axis=1)
    return unsorted


def _last_values(grid: Grid, chunk: Chunk, weights: Floats) -> Floats:
    """Value of a final count in each row, (ranks, rows): documents that have rung for certain shift it."""
    padded = np.concatenate([weights, np.zeros(chunk.ranks)])
    values: Floats = padded[grid.low[chunk.blocks] + np.arange(chunk.ranks)[:, np.newaxis]]
    return values[:, block_of_row(chunk)]


def _per_row(grid: Grid, chunk: Chunk, ordered: Floats) -> Floats:
    """Numbers of the sorted documents (topics, n) beside the rows, (documents, rows)."""
    columns = grid.low[chunk.blocks] + np.arange(len(chunk.rate))[:, np.newaxis]
    columns = np.minimum(columns, ordered.shape[1] - 1)
    return np.take(ordered[grid.topic[chunk.blocks], columns], block_of_row(chunk), axis=1)


def _certain(grid: Grid, chunk: Chunk) -> Ints:
    """How many documents have rung for certain, (rows,)."""
    return grid.low[chunk.blocks][block_of_row(chunk)]


def _add_blocks(total: Floats, grid: Grid, chunk: Chunk, rows: Floats) -> None:
    """Sum (documents, rows) over the rows of each block and add the sums to the sorted documents."""
    sums = np.ascontiguousarray(np.add.reduceat(rows, chunk.first_row, axis=1).T)
    described = (array[chunk.blocks].tolist() for array in (grid.topic, grid.low, grid.high))
    for block_sum, topic, low, high in zip(sums, *described, strict=True):
        total[topic, low:high] += block_sum[: high - low]


def _unsort(values: Floats, order: Ints) -> Floats:
    unsorted = np.empty_like(values)
    np.put_along_axis(unsorted, order, values, axis=1)
    return unsorted

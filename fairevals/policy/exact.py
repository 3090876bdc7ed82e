"""Exact expectations under Plackett-Luce policies, by quadrature over arrival times.

Let document i arrive at an exponential time of rate ``w_i = e^{s_i}``: the order of arrival is the Plackett-Luce
ranking (Plackett 1975; in Gumbel form Kool et al. 2020 and Ma et al. 2021). Given that i arrives at t, the
others have arrived independently with probabilities ``1 − e^{−w_j t}``, so the rank of i is one more than a
Poisson-binomial count, and

    v(i) = ∫ w_i e^{−w_i t} E[v_{1 + N_{−i}(t)}] dt.

"Sample-Free (Almost) Exact Estimation of Plackett-Luce Propensities for Off-Policy Ranking" (ECIR 2026) computes
rank probabilities in the same way. Here the integral is a trapezoid sum in ``log t`` with a bounded error
(`fairevals.policy.grid`). The leave-one-out expectations come from the distribution of the count
(`fairevals.policy.counts`), or, where the weights are a mixture of geometric sequences and there is no cutoff,
from products (`fairevals.policy.mixtures`).

The order of every sum depends on the topic alone, so a topic's results are the same to the last bit in every
batch: counts are summed one after another, nodes block by block.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from fairevals.policy.counts import count_integrand, count_slope, counts_without_each
from fairevals.policy.grid import Chunk, Grid, chunks_of
from fairevals.policy.mixtures import GeometricMixture
from fairevals.typing import Floats


def exact_exposure(grid: Grid, chunks: Iterable[Chunk], weights: Floats) -> Floats:
    """Expected weight of each document's rank, in the shape of ``grid.scores`` and the documents' own order."""
    total = grid.tail * weights[:1].sum()
    for chunk in chunks:
        if chunk.mixture is None:
            integrand = count_integrand(chunk, _last_values(chunk, weights))
        else:
            integrand = _mixture_integrand(chunk, chunk.mixture)
        _add_blocks(total, grid, chunk, integrand)
    return _unsort(total, grid)


def exposure_gradient(grid: Grid, chunks: Iterable[Chunk], weights: Floats, cotangent: Floats) -> Floats:
    """Gradient of ``Σ_i cotangent_i · exposure_i`` by the scores, in reverse mode."""
    by_score = np.take_along_axis(cotangent, grid.order, axis=1)
    total = grid.tail * weights[:1].sum() * by_score
    for chunk in chunks:
        column = grid.low[chunk.blocks] + np.arange(len(chunk.rate))[:, np.newaxis]
        column = np.minimum(column, by_score.shape[1] - 1)
        cotangents = np.take(by_score[grid.topic[chunk.blocks], column], chunk.block, axis=1)
        if chunk.mixture is None:
            slope = count_slope(chunk, _last_values(chunk, weights), cotangents)
        else:
            slope = _mixture_slope(chunk, chunk.mixture, cotangents)
        _add_blocks(total, grid, chunk, slope)
    return _unsort(total, grid)


def exact_rank_probabilities(grid: Grid, k: int) -> Floats:
    """P(document at rank), (topics, n, k).

    The count without document i is built by adding documents only, never by dividing i out: halve the
    documents, add each half to the count for the other, and repeat within each half; O(nodes · n log n · k).
    """
    total = np.zeros((*grid.scores.shape, k))
    total[:, :, :1] = grid.tail[:, :, np.newaxis]
    for chunk in chunks_of(grid):
        density = chunk.density * chunk.step
        probability = np.zeros((*chunk.rate.shape[:1], chunk.ranks, len(chunk.blocks)))
        nobody = np.ones((1, len(chunk.step)))
        for i, count in counts_without_each(chunk, nobody, 0, 1 << (len(chunk.rate) - 1).bit_length()):
            np.add.reduceat(count * density[i], chunk.first_row, axis=1, out=probability[i, : len(count)])
        for b, block in enumerate(chunk.blocks.tolist()):
            low, high = grid.low[block], grid.high[block]
            last = min(k, low + chunk.ranks)
            total[grid.topic[block], low:high, low:last] += probability[: high - low, : last - low, b]
    return _unsort(total, grid)


def _last_values(chunk: Chunk, weights: Floats) -> Floats:
    """Value of each final count, (ranks, rows): documents that have certainly arrived shift it."""
    padded = np.concatenate([weights, np.zeros(chunk.ranks)])
    values: Floats = padded[chunk.certain + np.arange(chunk.ranks)[:, np.newaxis]]
    return values


def _mixture_integrand(chunk: Chunk, mixture: GeometricMixture) -> Floats:
    """``f_i E[v_{1+N_{−i}}]`` (documents, rows)."""
    total = np.zeros_like(chunk.density)
    for _, odds, of_all in _mixture_terms(chunk, mixture):
        odds *= of_all
        total += odds
    return total


def _mixture_slope(chunk: Chunk, mixture: GeometricMixture, cotangents: Floats) -> Floats:
    """Derivative of ``Σ_i c_i f_i E[v_{1+N_{−i}}]`` by the scores (documents, rows).

    With ``R_jq = f_j / A_jq`` the sum is ``Σ_q μ_q P_q Σ_i c_i R_iq``; ``∂A_jq/∂s_j = −(1 − z_q) f_j`` and
    ``∂f_j/∂s_j = f_j (1 − w_j t)``, so that the derivative by ``s_j`` is

        Σ_q μ_q P_q R_jq (c_j (1 − w_j t) − (1 − z_q) Σ_{i≠j} c_i R_iq).
    """
    total, own = np.zeros_like(chunk.density), cotangents * (1.0 - chunk.rate)
    for ratio, odds, of_all in _mixture_terms(chunk, mixture):
        slope = cotangents * odds
        slope -= np.add.reduce(slope, axis=0)
        slope *= 1.0 - ratio
        slope += own
        slope *= odds
        slope *= of_all
        total += slope
    return total


def _mixture_terms(chunk: Chunk, mixture: GeometricMixture) -> Iterator[tuple[float, Floats, Floats]]:
    """For each term its ratio ``z_q``, ``f_i / A_iq`` (documents, rows) and ``μ_q P_q`` (rows,)."""
    for ratio, share in zip(mixture.ratio.tolist(), mixture.share.tolist(), strict=True):
        generating = ratio * chunk.arrived
        generating += chunk.pending
        of_all = share * ratio**chunk.certain * np.multiply.reduce(generating, axis=0)
        yield ratio, np.divide(chunk.density, generating, out=generating), of_all


def _add_blocks(total: Floats, grid: Grid, chunk: Chunk, integrand: Floats) -> None:
    """Integrate (documents, rows) over the rows of each block and add the sums to the sorted documents."""
    integrand *= chunk.step
    sums = np.ascontiguousarray(np.add.reduceat(integrand, chunk.first_row, axis=1).T)
    described = (array[chunk.blocks].tolist() for array in (grid.topic, grid.low, grid.high))
    for block_sum, topic, low, high in zip(sums, *described, strict=True):
        total[topic, low:high] += block_sum[: high - low]


def _unsort(values: Floats, grid: Grid) -> Floats:
    """Values (topics, n, …) of the sorted documents, in the documents' own order."""
    unsorted = np.empty_like(values)
    order = grid.order.reshape(grid.order.shape + (1,) * (values.ndim - 2))
    np.put_along_axis(unsorted, order, values, axis=1)
    return unsorted

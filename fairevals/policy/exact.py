"""Exact expectations under Plackett-Luce policies, by quadrature over ringing times.

Let document i ring at an exponential time of rate ``w_i = e^{s_i}``: the order of ringing is the
Plackett-Luce ranking (Plackett 1975; in Gumbel form Kool et al. 2020 and Ma et al. 2021). Given that i rings at
t, the others have rung independently with probabilities ``1 − e^{−w_j t}``, so the rank of i is one more than
a Poisson-binomial count, and

    v(i) = ∫ w_i e^{−w_i t} E[v_{1 + N_{−i}(t)}] dt.

"Sample-Free (Almost) Exact Estimation of Plackett-Luce Propensities for Off-Policy Ranking" (ECIR 2026) takes
the same road to the rank probabilities. Here the integral is a trapezoid sum in ``log t`` whose error is
bounded (see `fairevals.policy.nodes`), and the leave-one-out counts come from running the distribution of the
count forwards over the documents (``F``) and the value of a count backwards (``V``):

    F_{j+1}(c) = (1−p_j) F_j(c) + p_j F_j(c−1)        V_j(c) = (1−p_j) V_{j+1}(c) + p_j V_{j+1}(c+1)
    E[v_{1+N_{−j}}] = Σ_c F_j(c) V_{j+1}(c),          F_0 = [c = 0],  V_n(c) = v_{1+c},

sums and products of non-negative numbers only. Time O(nodes · n · k). So that numpy works on large arrays, the
documents are cut into segments of five: the count within each segment is found for all segments at once,
``F`` and ``V`` then go from segment to segment, and last from document to document in all segments at once.
Where the weights are a mixture of geometric sequences and no cutoff cuts them short, there is a shorter way
(`fairevals.policy.mixtures`).

The order of every sum depends on the topic alone, so that a topic's results are the same to the last bit
in whatever batch it is computed: counts are summed one after another, nodes block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fairevals.policy.mixtures import Mixture
from fairevals.policy.nodes import Grid
from fairevals.typing import Floats, Ints

__all__ = ["Chunk", "exposure", "exposure_gradient", "rank_probabilities", "ringing"]


_SEGMENT = 5  # documents; a constant, for the order of sums must not depend on the batch
_BUDGET = 1 << 20  # numbers in the store of counts of a chunk
_LITTLE = 1 << 15  # numbers that are sooner worked on than left out
_ROWS = 1024  # of a chunk, so that the arrays of small topics stay in the processor's cache
_MOST = 1 << 26  # counts, of all documents and rows together, that are worked on at a time
_RUNG_Y = 7.0  # exp(−e^7) is 0: beyond, a larger y changes nothing


@dataclass(frozen=True)
class Chunk:
    """Blocks computed together; a row is a node.

    Arrays are (documents, rows): documents in sorted order, up to a multiple of five, the last of them idle. The
    rows lie side by side in memory, so that numpy sums over documents in their order, idle ones or not.
    """

    blocks: Ints
    first_row: Ints  # (blocks,)
    ranks: int  # counts 0..ranks − 1 matter in these blocks
    rate: Floats  # e^y = w_j t
    rung: Floats  # p_j = 1 − e^{−w_j t}
    waiting: Floats  # 1 − p_j
    density: Floats  # of the log of the ringing time, and the derivative of p_j by s_j
    step: Floats  # (rows,)
    mixture: Mixture | None  # the weights of the ranks, if they are one for these topics


def ringing(grid: Grid, mixture_for: Callable[[int], Mixture | None] | None = None) -> Iterator[Chunk]:
    """Cut the blocks of a grid into chunks of bounded size, blocks of like size together.

    ``mixture_for(ranks)`` is asked for the weights of that many ranks as a mixture, for topics that are not cut off.
    """
    if mixture_for is None:
        yield from _chunks(grid, np.arange(len(grid.topic)), None)
        return
    whole = grid.ranks == np.count_nonzero(grid.scores > -np.inf, axis=1)
    # A power of two, so that topics of like length share a mixture; a function of the topic alone all the same.
    ranks = np.where(whole, 2 ** np.ceil(np.log2(np.maximum(grid.ranks, 2))), 0).astype(np.int64)[grid.topic]
    for number in np.unique(ranks).tolist():
        yield from _chunks(grid, np.flatnonzero(ranks == number), mixture_for(number) if number else None)


def _chunks(grid: Grid, blocks: Ints, mixture: Mixture | None) -> Iterator[Chunk]:
    size = grid.high - grid.low
    ranks = np.minimum(grid.ranks[grid.topic] - grid.low, size)
    depth = ranks if mixture is None else np.full_like(ranks, len(mixture.ratio))
    queue = blocks[np.argsort(size[blocks], kind="stable")]
    first = rows = most = 0
    for position, (m, d, nodes) in enumerate(
        zip(size[queue].tolist(), depth[queue].tolist(), grid.nodes[queue].tolist(), strict=True)
    ):
        most, rows = max(most, d), rows + nodes
        unlike = m > 1.25 * size[queue[first]] + 4 and m * most * rows > _LITTLE
        if position > first and (unlike or rows > min(_ROWS, _BUDGET // (m * most))):
            yield _chunk(grid, queue[first:position], ranks, mixture)
            first, rows, most = position, nodes, d
    if len(queue):
        yield _chunk(grid, queue[first:], ranks, mixture)


def _chunk(grid: Grid, blocks: Ints, ranks: Ints, mixture: Mixture | None) -> Chunk:
    topic, low, high, nodes = grid.topic[blocks], grid.low[blocks], grid.high[blocks], grid.nodes[blocks]
    documents = -(-int((high - low).max()) // _SEGMENT) * _SEGMENT
    sorted_document = low[:, np.newaxis] + np.arange(documents)
    inside = sorted_document < high[:, np.newaxis]
    columns = np.minimum(sorted_document, grid.scores.shape[1] - 1)
    scores = np.where(inside, grid.scores[topic[:, np.newaxis], columns], -np.inf)

    first_row = np.cumsum(nodes) - nodes
    block = np.repeat(np.arange(len(blocks)), nodes)
    node = grid.start[blocks][block] + (np.arange(len(block)) - first_row[block])
    step = grid.step[topic][block]
    x = node * step
    if len(x) == 1:  # a row without weight: with a single row numpy would sum in another order
        block, x, step = np.repeat(block, 2), np.repeat(x, 2), np.append(step, 0.0)
    y = np.take(scores.T, block, axis=1)  # not scores.T[:, block], whose order in memory is that of scores
    y += x
    rate = np.exp(np.minimum(y, _RUNG_Y, out=y), out=y)
    waiting = np.exp(-rate)
    rung = -np.expm1(-rate)
    density = rate * waiting
    most = int(ranks[blocks].max())
    return Chunk(blocks, first_row, most, rate, rung, waiting, density, step, mixture)


def exposure(grid: Grid, chunks: Iterable[Chunk], weights: Floats) -> Floats:
    """Expected weight of each document's rank, shape of ``grid.scores``, in the documents' own order."""
    total = grid.tail * weights[:1].sum()
    for chunk in chunks:
        if chunk.mixture is None:
            integrand = _integrand(grid, chunk, weights)
        else:
            certain = _certain(grid, chunk)
            integrand = chunk.mixture.integrand(chunk.rung, chunk.waiting, chunk.density, certain)
        integrand *= chunk.step
        _add_blocks(total, grid, chunk, integrand)
    return _unsort(total, grid.order)


def _integrand(grid: Grid, chunk: Chunk, weights: Floats) -> Floats:
    """``f_i E[v_{1+N_{−i}}]`` (documents, rows)."""
    values = _last_values(grid, chunk, weights)[np.newaxis]
    integrand = np.empty_like(chunk.rate)
    for rows in _row_slices(chunk):
        expected = _by_segment(integrand, rows)
        for segments, j, prefix, suffix in _sweep(chunk, rows, values[..., rows]):
            expected[segments, j] = np.einsum("scr,scr->sr", prefix[0], suffix[0])
    integrand *= chunk.density
    return integrand


def exposure_gradient(grid: Grid, chunks: Iterable[Chunk], weights: Floats, cotangent: Floats) -> Floats:
    """Gradient of ``Σ_i cotangent_i · exposure_i`` by the scores, in reverse mode."""
    ordered = np.take_along_axis(cotangent, grid.order, axis=1)
    total = grid.tail * weights[:1].sum() * ordered
    for chunk in chunks:
        cotangents = _per_row(grid, chunk, ordered)
        if chunk.mixture is None:
            slope = _slope(grid, chunk, weights, cotangents)
        else:
            certain, own = _certain(grid, chunk), cotangents * (1.0 - chunk.rate)
            slope = chunk.mixture.slope(chunk.rung, chunk.waiting, chunk.density, own, cotangents, certain)
        slope *= chunk.step
        _add_blocks(total, grid, chunk, slope)
    return _unsort(total, grid.order)


def _slope(grid: Grid, chunk: Chunk, weights: Floats, cotangents: Floats) -> Floats:
    """Derivative of ``Σ_i c_i f_i E[v_{1+N_{−i}}]`` by the scores (documents, rows).

    Leave a mark on one document, weighted ``c_i f_i``. The sum at a node is then the value of a count whose
    state also says whether the mark has been left (``M``) or not (``F``); the value of such a state is ``V`` or
    ``U``, and with ``T_j`` the step of the count over document j

        M_{j+1} = T_j M_j + c_j f_j F_j,   U_j = T_j* U_{j+1} + c_j f_j V_{j+1},   Σ_i c_i f_i E_i = U_0(0).

    Its derivative by ``p_j`` is ``Σ_c M_j(c) ΔV_{j+1}(c) + F_j(c) ΔU_{j+1}(c)``, and ``∂p_j/∂s_j = f_j``,
    ``∂f_j/∂s_j = f_j (1 − w_j t)``.
    """
    marks = cotangents * chunk.density
    values = np.zeros((2, chunk.ranks, len(chunk.step)))  # U, V
    values[1] = _last_values(grid, chunk, weights)
    slope, by_rung = np.empty_like(marks), np.empty_like(marks)
    for rows in _row_slices(chunk):
        expected, derivative = _by_segment(slope, rows), _by_segment(by_rung, rows)
        for segments, j, prefix, suffix in _sweep(chunk, rows, values[..., rows], marks):
            expected[segments, j] = np.einsum("scr,scr->sr", prefix[0], suffix[1])
            one_more = np.einsum("mscr,mscr->sr", prefix[:, :, :-1], suffix[:, :, 1:])
            derivative[segments, j] = one_more - np.einsum("mscr,mscr->sr", prefix, suffix)
    slope *= marks * (1.0 - chunk.rate)
    slope += by_rung * chunk.density
    return slope


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
        for i, count in _leave_one_out(chunk, nothing, 0, 1 << (len(chunk.rate) - 1).bit_length()):
            np.add.reduceat(count * density[i], chunk.first_row, axis=1, out=probability[i, : len(count)])
        for b, block in enumerate(chunk.blocks.tolist()):
            low, high = grid.low[block], grid.high[block]
            last = min(k, low + chunk.ranks)
            total[grid.topic[block], low:high, low:last] += probability[: high - low, : last - low, b]
    unsorted = np.empty_like(total)
    np.put_along_axis(unsorted, grid.order[..., np.newaxis], total, axis=1)
    return unsorted


def _leave_one_out(chunk: Chunk, count: Floats, a: int, size: int) -> Iterator[tuple[int, Floats]]:
    """Yield each document of a..a + size − 1 with the count of all others, given the count of those outside.

    ``size`` is a power of two, so that idle documents at the end do not change the order of the others.
    """
    if a >= len(chunk.rate):
        return
    if size == 1:
        yield a, count
        return
    half = size // 2
    yield from _leave_one_out(chunk, _with_documents(chunk, count, a + half, half), a, half)
    yield from _leave_one_out(chunk, _with_documents(chunk, count, a, half), a + half, half)


def _with_documents(chunk: Chunk, count: Floats, a: int, size: int) -> Floats:
    """The count (ranks, rows) with documents a..a + size − 1 added."""
    for j in range(a, min(a + size, len(chunk.rate))):
        width = len(count)
        grown = np.empty((min(width + 1, chunk.ranks), count.shape[1]))
        np.multiply(count, chunk.waiting[j], out=grown[:width])
        grown[width:] = 0.0
        grown[1:] += count[: len(grown) - 1] * chunk.rung[j]
        count = grown
    return count


def _sweep(
    chunk: Chunk, rows: slice, last: Floats, marks: Floats | None = None
) -> Iterator[tuple[slice, int, Floats, Floats]]:
    """For the j-th documents of some segments, yield the count of the documents before and the value after.

    Yields segments, j, and two arrays (states, segments, ranks, rows), valid until the next is asked for: the
    states are F and M of the count, U and V of the value, or F and V alone without ``marks``. ``last`` is the
    value (states, ranks, rows) when all documents have been passed.
    """
    rung, waiting = _by_segment(chunk.rung, rows), _by_segment(chunk.waiting, rows)
    mark = None if marks is None else _by_segment(marks, rows)
    before, after = _between_segments(_within_segments(rung, waiting, mark), last)
    at_once = max(1, _BUDGET // (_SEGMENT * last.size))
    store = np.empty((_SEGMENT + 2, len(last), min(at_once, len(rung)), *last.shape[1:]))
    for start in range(0, len(rung), at_once):
        segments = slice(start, min(start + at_once, len(rung)))
        *stored, buffer, scratch = store[:, :, : segments.stop - start]
        steps = [
            (
                rung[segments, j, None],
                waiting[segments, j, None],
                None if mark is None else mark[segments, j, None],
            )
            for j in range(_SEGMENT)
        ]
        prefixes = [before[:, segments]]
        for j, new in enumerate(stored[1:]):
            prefixes.append(_pass_forwards(prefixes[-1], *steps[j], new, scratch))
        suffix, buffers = after[:, segments], (stored[0], buffer)
        for j in reversed(range(_SEGMENT)):
            yield segments, j, prefixes[j], suffix
            if j:
                suffix = _pass_backwards(suffix, *steps[j], buffers[j % 2], scratch)


def _pass_forwards(
    count: Floats,
    rung: Floats,
    waiting: Floats,
    mark: Floats | None,
    new: Floats,
    scratch: Floats,
) -> Floats:
    """The count (states, segments, ranks, rows) after a document of each segment, from the count before."""
    np.multiply(count, waiting, out=new)
    new[:, :, 1:] += np.multiply(count[:, :, :-1], rung, out=scratch[:, :, 1:])
    if mark is not None:
        new[1] += np.multiply(count[0], mark, out=scratch[0])
    return new


def _pass_backwards(
    value: Floats,
    rung: Floats,
    waiting: Floats,
    mark: Floats | None,
    new: Floats,
    scratch: Floats,
) -> Floats:
    """The value (states, segments, ranks, rows) before a document of each segment, from the value after."""
    np.multiply(value, waiting, out=new)
    new[:, :, :-1] += np.multiply(value[:, :, 1:], rung, out=scratch[:, :, 1:])
    if mark is not None:
        new[0] += np.multiply(value[1], mark, out=scratch[0])
    return new


def _within_segments(rung: Floats, waiting: Floats, mark: Floats | None) -> Floats:
    """Count within each segment, 0..5: (states, segments, 6, rows)."""
    segments, _, rows = rung.shape
    count, new, scratch = np.zeros((3, 1 if mark is None else 2, segments, _SEGMENT + 1, rows))
    count[0, :, 0] = 1.0
    for j in range(_SEGMENT):
        mark_j = None if mark is None else mark[:, j, None]
        _pass_forwards(count, rung[:, j, None], waiting[:, j, None], mark_j, new, scratch)
        count, new = new, count
    return count


def _between_segments(within: Floats, last: Floats) -> tuple[Floats, Floats]:
    """Count before and value after each segment, both (states, segments, ranks, rows).

    The count is convolved with that of one segment after another, the value is correlated with it.
    """
    states, segments, _, rows = within.shape
    ranks = last.shape[1]
    before = np.zeros((states, segments, _SEGMENT + ranks, rows))  # counts below 0 have probability 0
    before[0, 0, _SEGMENT] = 1.0
    after = np.zeros((states, segments, ranks + _SEGMENT, rows))  # ranks beyond the last have value 0
    after[:, -1, :ranks] = last
    below = sliding_window_view(before, _SEGMENT + 1, axis=2)  # (states, segments, ranks, rows, 6)
    beyond = sliding_window_view(after, _SEGMENT + 1, axis=2)
    backwards = np.ascontiguousarray(within[:, :, ::-1])
    for this, following in pairwise(range(segments)):
        reach = min(ranks, _SEGMENT * following + 1)
        windows, target = below[:, this, :reach], before[:, following, _SEGMENT : _SEGMENT + reach]
        np.einsum("crd,dr->cr", windows[0], backwards[0, this], out=target[0])
        if states == 2:
            np.einsum("crd,dr->cr", windows[1], backwards[0, this], out=target[1])
            target[1] += np.einsum("crd,dr->cr", windows[0], backwards[1, this])
    for this, previous in pairwise(reversed(range(segments))):
        reach = min(ranks, _SEGMENT * this + 1)
        windows, target = beyond[:, this, :reach], after[:, previous, :reach]
        np.einsum("crd,dr->cr", windows[-1], within[0, this], out=target[-1])
        if states == 2:
            np.einsum("crd,dr->cr", windows[0], within[0, this], out=target[0])
            target[0] += np.einsum("crd,dr->cr", windows[1], within[1, this])
    return before[:, :, _SEGMENT:], after[:, :, :ranks]


def _by_segment(array: Floats, rows: slice) -> Floats:
    """View (documents, rows) as (segments, 5, rows), some of the rows."""
    return array.reshape(-1, _SEGMENT, array.shape[1])[:, :, rows]


def _row_slices(chunk: Chunk) -> Iterator[slice]:
    """Rows computed at a time: two or more, for with a single row numpy would sum in another order."""
    rows = len(chunk.step)
    pieces = max(1, min(rows // 2, rows * len(chunk.rate) * chunk.ranks // _MOST))
    for piece in range(pieces):
        yield slice(piece * rows // pieces, (piece + 1) * rows // pieces)


def _last_values(grid: Grid, chunk: Chunk, weights: Floats) -> Floats:
    """Value of a final count in each row, (ranks, rows): documents that have rung for certain shift it."""
    padded = np.concatenate([weights, np.zeros(chunk.ranks)])
    values: Floats = padded[grid.low[chunk.blocks] + np.arange(chunk.ranks)[:, np.newaxis]]
    return values[:, _block_of_row(chunk)]


def _per_row(grid: Grid, chunk: Chunk, ordered: Floats) -> Floats:
    """Numbers of the sorted documents (topics, n) beside the rows, (documents, rows)."""
    columns = grid.low[chunk.blocks] + np.arange(len(chunk.rate))[:, np.newaxis]
    columns = np.minimum(columns, ordered.shape[1] - 1)
    return np.take(ordered[grid.topic[chunk.blocks], columns], _block_of_row(chunk), axis=1)


def _certain(grid: Grid, chunk: Chunk) -> Ints:
    """How many documents have rung for certain, (rows,)."""
    return grid.low[chunk.blocks][_block_of_row(chunk)]


def _block_of_row(chunk: Chunk) -> Ints:
    block = np.zeros(len(chunk.step), dtype=np.int64)
    block[chunk.first_row[1:]] = 1
    return np.cumsum(block)


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

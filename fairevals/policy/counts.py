"""Leave-one-out expectations from the distribution of the number of arrived documents, for any rank weights.

The distribution of the count runs forwards over the documents (``F``), the value of a count backwards (``V``):

    F_{j+1}(c) = (1−p_j) F_j(c) + p_j F_j(c−1)        V_j(c) = (1−p_j) V_{j+1}(c) + p_j V_{j+1}(c+1)
    E[v_{1+N_{−j}}] = Σ_c F_j(c) V_{j+1}(c),          F_0 = [c = 0],  V_n(c) = v_{1+c},

sums and products of non-negative numbers only. Time is O(nodes · n · k). So that numpy works on large arrays, the
documents are divided into segments of five: first the count within each segment is computed for all segments at
once, then ``F`` and ``V`` go from segment to segment, and last from document to document in all segments at once.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fairevals.policy.grid import SEGMENT, Chunk
from fairevals.typing import Floats

_STORE_CELLS = 1 << 20  # counts stored at a time
_SWEEP_CELLS = 1 << 26  # counts, over all documents and rows, that are computed at a time


def count_integrand(chunk: Chunk, last: Floats) -> Floats:
    """``f_i E[v_{1+N_{−i}}]`` (documents, rows), given the value ``last`` (ranks, rows) of a count of all documents."""
    integrand = np.empty_like(chunk.rate)
    for rows in _row_slices(chunk):
        expected = _by_segment(integrand, rows)
        for segments, j, prefix, suffix in _sweep(chunk, rows, last[np.newaxis, :, rows]):
            expected[segments, j] = np.einsum("scr,scr->sr", prefix[0], suffix[0])
    integrand *= chunk.density
    return integrand


def count_slope(chunk: Chunk, last: Floats, cotangents: Floats) -> Floats:
    """Derivative of ``Σ_i c_i f_i E[v_{1+N_{−i}}]`` by the scores (documents, rows).

    Leave a mark on one document, weighted ``c_i f_i``. The sum at a node is then the value of a count whose
    state also tells whether the mark has been left (``M``) or not (``F``); the value of such a state is ``V`` or
    ``U``, and with ``T_j`` the step of the count over document j

        M_{j+1} = T_j M_j + c_j f_j F_j,   U_j = T_j* U_{j+1} + c_j f_j V_{j+1},   Σ_i c_i f_i E_i = U_0(0).

    Its derivative by ``p_j`` is ``Σ_c M_j(c) ΔV_{j+1}(c) + F_j(c) ΔU_{j+1}(c)``, and ``∂p_j/∂s_j = f_j``,
    ``∂f_j/∂s_j = f_j (1 − w_j t)``.
    """
    marks = cotangents * chunk.density
    values = np.stack([np.zeros_like(last), last])  # U, V
    slope, by_arrived = np.empty_like(marks), np.empty_like(marks)
    for rows in _row_slices(chunk):
        expected, derivative = _by_segment(slope, rows), _by_segment(by_arrived, rows)
        for segments, j, prefix, suffix in _sweep(chunk, rows, values[..., rows], marks):
            expected[segments, j] = np.einsum("scr,scr->sr", prefix[0], suffix[1])
            one_more = np.einsum("mscr,mscr->sr", prefix[:, :, :-1], suffix[:, :, 1:])
            derivative[segments, j] = one_more - np.einsum("mscr,mscr->sr", prefix, suffix)
    slope *= marks * (1.0 - chunk.rate)
    slope += by_arrived * chunk.density
    return slope


def counts_without_each(chunk: Chunk, count: Floats, a: int, size: int) -> Iterator[tuple[int, Floats]]:
    """Yield each document of a..a + size − 1 with the distribution (ranks, rows) of the count of all others.

    ``count`` is the distribution of the documents outside of a..a + size − 1. ``size`` is a power of two, so
    that padding at the end does not change the order in which the others are added.
    """
    if a >= len(chunk.rate):
        return
    if size == 1:
        yield a, count
        return
    half = size // 2
    yield from counts_without_each(chunk, _add_documents(chunk, count, a + half, half), a, half)
    yield from counts_without_each(chunk, _add_documents(chunk, count, a, half), a + half, half)


def _add_documents(chunk: Chunk, count: Floats, a: int, size: int) -> Floats:
    """The count (ranks, rows) with documents a..a + size − 1 added."""
    for j in range(a, min(a + size, len(chunk.rate))):
        width = len(count)
        grown = np.empty((min(width + 1, chunk.ranks), count.shape[1]))
        np.multiply(count, chunk.pending[j], out=grown[:width])
        grown[width:] = 0.0
        grown[1:] += count[: len(grown) - 1] * chunk.arrived[j]
        count = grown
    return count


def _sweep(
    chunk: Chunk, rows: slice, last: Floats, marks: Floats | None = None
) -> Iterator[tuple[slice, int, Floats, Floats]]:
    """For the j-th documents of some segments, yield the count of the documents before and the value after.

    Yields segments, j, and two arrays (states, segments, ranks, rows), valid until the next step: the states
    are F and M of the count, U and V of the value, or F and V alone without ``marks``. ``last`` is the value
    (states, ranks, rows) after all documents.
    """
    given = (chunk.arrived, chunk.pending) if marks is None else (chunk.arrived, chunk.pending, marks)
    by_segment = [_by_segment(array, rows) for array in given]
    before, after = _between_segments(_within_segments(by_segment), last)
    total = len(by_segment[0])
    at_once = max(1, _STORE_CELLS // (SEGMENT * last.size))
    store = np.empty((SEGMENT + 2, len(last), min(at_once, total), *last.shape[1:]))
    for start in range(0, total, at_once):
        segments = slice(start, min(start + at_once, total))
        *stored, buffer, scratch = store[:, :, : segments.stop - start]
        steps = [[array[segments, j, None] for array in by_segment] for j in range(SEGMENT)]
        prefixes = [before[:, segments]]
        for j, new in enumerate(stored[1:]):
            prefixes.append(_pass_document(prefixes[-1], steps[j], new, scratch))
        suffix, buffers = after[:, segments], (stored[0], buffer)
        for j in reversed(range(SEGMENT)):
            yield segments, j, prefixes[j], suffix
            if j:
                suffix = _pass_document(suffix, steps[j], buffers[j % 2], scratch, backwards=True)


def _pass_document(
    count: Floats, step: list[Floats], new: Floats, scratch: Floats, backwards: bool = False
) -> Floats:
    """The count (states, segments, ranks, rows) after a document of each segment, from the count before.

    ``step`` holds the probabilities that it has arrived and that it is pending, and its mark if there are marks.
    With ``backwards`` it is the value before the document, from the value after.
    """
    arrived, pending, *mark = step
    source, target = (slice(1, None), slice(-1)) if backwards else (slice(-1), slice(1, None))
    np.multiply(count, pending, out=new)
    new[:, :, target] += np.multiply(count[:, :, source], arrived, out=scratch[:, :, 1:])
    if mark:
        new[0 if backwards else 1] += np.multiply(count[1 if backwards else 0], mark[0], out=scratch[0])
    return new


def _within_segments(by_segment: list[Floats]) -> Floats:
    """Count within each segment, 0..5: (states, segments, 6, rows)."""
    segments, _, rows = by_segment[0].shape
    count, new, scratch = np.zeros((3, len(by_segment) - 1, segments, SEGMENT + 1, rows))
    count[0, :, 0] = 1.0
    for j in range(SEGMENT):
        _pass_document(count, [array[:, j, None] for array in by_segment], new, scratch)
        count, new = new, count
    return count


def _between_segments(within: Floats, last: Floats) -> tuple[Floats, Floats]:
    """Count before and value after each segment, both (states, segments, ranks, rows).

    The count is convolved with that of one segment after another, the value is correlated with it.
    """
    states, segments, _, rows = within.shape
    ranks = last.shape[1]
    before = np.zeros((states, segments, SEGMENT + ranks, rows))  # counts below 0 have probability 0
    before[0, 0, SEGMENT] = 1.0
    after = np.zeros((states, segments, ranks + SEGMENT, rows))  # ranks beyond the last have value 0
    after[:, -1, :ranks] = last
    below = sliding_window_view(before, SEGMENT + 1, axis=2)  # (states, segments, ranks, rows, 6)
    beyond = sliding_window_view(after, SEGMENT + 1, axis=2)
    backwards = np.ascontiguousarray(within[:, :, ::-1])
    for this, following in pairwise(range(segments)):
        reach = min(ranks, SEGMENT * following + 1)
        windows, target = below[:, this, :reach], before[:, following, SEGMENT : SEGMENT + reach]
        _convolve(windows, backwards[:, this], target)
    for this, previous in pairwise(reversed(range(segments))):
        reach = min(ranks, SEGMENT * this + 1)
        windows, target = beyond[::-1, this, :reach], after[::-1, previous, :reach]
        _convolve(windows, within[:, this], target)
    return before[:, :, SEGMENT:], after[:, :, :ranks]


def _convolve(windows: Floats, segment: Floats, target: Floats) -> None:
    """Add a segment's count to ``windows`` (states, ranks, rows, 6); a mark is left before it or within it."""
    for state in range(len(target)):
        np.einsum("crd,dr->cr", windows[state], segment[0], out=target[state])
    if len(target) == 2:
        target[1] += np.einsum("crd,dr->cr", windows[0], segment[1])


def _by_segment(array: Floats, rows: slice) -> Floats:
    """View (documents, rows) as (segments, 5, rows), for some of the rows."""
    return array.reshape(-1, SEGMENT, array.shape[1])[:, :, rows]


def _row_slices(chunk: Chunk) -> Iterator[slice]:
    """Rows to compute at a time: at least two, because with a single row numpy would sum in another order."""
    rows = len(chunk.step)
    pieces = max(1, min(rows // 2, rows * len(chunk.rate) * chunk.ranks // _SWEEP_CELLS))
    for piece in range(pieces):
        yield slice(piece * rows // pieces, (piece + 1) * rows // pieces)

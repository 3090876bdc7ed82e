"""Leave-one-out expectations by running the count of documents that have rung, for weights of any form.

The distribution of the count is run forwards over the documents (``F``) and the value of a count backwards (``V``):

    F_{j+1}(c) = (1−p_j) F_j(c) + p_j F_j(c−1)        V_j(c) = (1−p_j) V_{j+1}(c) + p_j V_{j+1}(c+1)
    E[v_{1+N_{−j}}] = Σ_c F_j(c) V_{j+1}(c),          F_0 = [c = 0],  V_n(c) = v_{1+c},

sums and products of non-negative numbers only. Time O(nodes · n · k). So that numpy works on large arrays, the
documents are cut into segments of five: the count within each segment is found for all segments at once,
``F`` and ``V`` then go from segment to segment, and last from document to document in all segments at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fairevals.policy.chunks import SEGMENT, Chunk
from fairevals.typing import Floats

__all__ = ["integrand", "leave_one_out", "slope"]

_BUDGET = 1 << 20  # numbers in the store of counts
_MOST = 1 << 26  # counts, of all documents and rows together, that are worked on at a time


def integrand(chunk: Chunk, last: Floats) -> Floats:
    """``f_i E[v_{1+N_{−i}}]`` (documents, rows), ``last`` (ranks, rows) the value of a count of all documents."""
    values = last[np.newaxis]
    found = np.empty_like(chunk.rate)
    for rows in _row_slices(chunk):
        expected = _by_segment(found, rows)
        for segments, j, prefix, suffix in _sweep(chunk, rows, values[..., rows]):
            expected[segments, j] = np.einsum("scr,scr->sr", prefix[0], suffix[0])
    found *= chunk.density
    return found


def slope(chunk: Chunk, last: Floats, cotangents: Floats) -> Floats:
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
    values[1] = last
    found, by_rung = np.empty_like(marks), np.empty_like(marks)
    for rows in _row_slices(chunk):
        expected, derivative = _by_segment(found, rows), _by_segment(by_rung, rows)
        for segments, j, prefix, suffix in _sweep(chunk, rows, values[..., rows], marks):
            expected[segments, j] = np.einsum("scr,scr->sr", prefix[0], suffix[1])
            one_more = np.einsum("mscr,mscr->sr", prefix[:, :, :-1], suffix[:, :, 1:])
            derivative[segments, j] = one_more - np.einsum("mscr,mscr->sr", prefix, suffix)
    found *= marks * (1.0 - chunk.rate)
    found += by_rung * chunk.density
    return found


def leave_one_out(chunk: Chunk, count: Floats, a: int, size: int) -> Iterator[tuple[int, Floats]]:
    """Yield each document of a..a + size − 1 with the count of all others, given the count of those outside.

    ``size`` is a power of two, so that idle documents at the end do not change the order of the others.
    """
    if a >= len(chunk.rate):
        return
    if size == 1:
        yield a, count
        return
    half = size // 2
    yield from leave_one_out(chunk, _with_documents(chunk, count, a + half, half), a, half)
    yield from leave_one_out(chunk, _with_documents(chunk, count, a, half), a + half, half)


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
    at_once = max(1, _BUDGET // (SEGMENT * last.size))
    store = np.empty((SEGMENT + 2, len(last), min(at_once, len(rung)), *last.shape[1:]))
    for start in range(0, len(rung), at_once):
        segments = slice(start, min(start + at_once, len(rung)))
        *stored, buffer, scratch = store[:, :, : segments.stop - start]
        steps = [
            (
                rung[segments, j, None],
                waiting[segments, j, None],
                None if mark is None else mark[segments, j, None],
            )
            for j in range(SEGMENT)
        ]
        prefixes = [before[:, segments]]
        for j, new in enumerate(stored[1:]):
            prefixes.append(_pass_forwards(prefixes[-1], *steps[j], new, scratch))
        suffix, buffers = after[:, segments], (stored[0], buffer)
        for j in reversed(range(SEGMENT)):
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
    count, new, scratch = np.zeros((3, 1 if mark is None else 2, segments, SEGMENT + 1, rows))
    count[0, :, 0] = 1.0
    for j in range(SEGMENT):
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
        np.einsum("crd,dr->cr", windows[0], backwards[0, this], out=target[0])
        if states == 2:
            np.einsum("crd,dr->cr", windows[1], backwards[0, this], out=target[1])
            target[1] += np.einsum("crd,dr->cr", windows[0], backwards[1, this])
    for this, previous in pairwise(reversed(range(segments))):
        reach = min(ranks, SEGMENT * this + 1)
        windows, target = beyond[:, this, :reach], after[:, previous, :reach]
        np.einsum("crd,dr->cr", windows[-1], within[0, this], out=target[-1])
        if states == 2:
            np.einsum("crd,dr->cr", windows[0], within[0, this], out=target[0])
            target[0] += np.einsum("crd,dr->cr", windows[1], within[1, this])
    return before[:, :, SEGMENT:], after[:, :, :ranks]


def _by_segment(array: Floats, rows: slice) -> Floats:
    """View (documents, rows) as (segments, 5, rows), some of the rows."""
    return array.reshape(-1, SEGMENT, array.shape[1])[:, :, rows]


def _row_slices(chunk: Chunk) -> Iterator[slice]:
    """Rows computed at a time: two or more, for with a single row numpy would sum in another order."""
    rows = len(chunk.step)
    pieces = max(1, min(rows // 2, rows * len(chunk.rate) * chunk.ranks // _MOST))
    for piece in range(pieces):
        yield slice(piece * rows // pieces, (piece + 1) * rows // pieces)

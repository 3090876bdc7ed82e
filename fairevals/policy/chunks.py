"""The documents' ringing at the nodes of a grid, cut into chunks of bounded size.

`fairevals.policy.exact` says what rings. The order of every sum depends on the topic alone: blocks are put together by
size, which changes nothing for any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fairevals.policy.mixtures import Mixture
from fairevals.policy.nodes import Grid
from fairevals.typing import Floats, Ints

__all__ = ["SEGMENT", "Chunk", "block_of_row", "ringing"]

SEGMENT = 5  # documents; a constant, for the order of sums must not depend on the batch
_BUDGET = 1 << 20  # numbers in the store of counts of a chunk
_LITTLE = 1 << 15  # numbers that are sooner worked on than left out
_ROWS = 1024  # of a chunk, so that the arrays of small topics stay in the processor's cache
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
    documents = -(-int((high - low).max()) // SEGMENT) * SEGMENT
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


def block_of_row(chunk: Chunk) -> Ints:
    """Which of the chunk's blocks a row belongs to, (rows,)."""
    block = np.zeros(len(chunk.step), dtype=np.int64)
    block[chunk.first_row[1:]] = 1
    return np.cumsum(block)

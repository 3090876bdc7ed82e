"""The quadrature nodes of exact Plackett-Luce exposure, and the arrival probabilities of documents at them.

With ``x = log t`` and ``y = x + s_i`` the exposure of document i is the integral over the real line of

    g_i(x) = f_i(x) Σ_c v_{1+c} P(N_{−i} = c),    f_i(x) = exp(y − e^y),    p_j(x) = 1 − exp(−e^{x + s_j}),

where ``N_{−i}`` is the number of other documents that arrived before ``t`` and ``p_j`` the probability that j is
one of them (see `fairevals.policy.exact`). The allowed error, ``tolerance · max|v|``, is divided as follows.

**Step** (one half). ``g_i`` is analytic for ``|Im x| < π/2``. On the line ``Im x = a`` a document's factors obey
``|1 − p_j| = 1 − p'_j`` and ``|p_j| ≤ p'_j / cos a``, where ``p'_j`` is the *real* probability at time
``t cos a``; hence ``|P(N = c)| ≤ P(N' = c) / cos^c a``, and where ``v_{m+1}, v_{m+2}, …`` is completely
monotone (a mixture of geometric sequences) all of its ranks together count as its first. So

    ∫ |g_i(x + ia)| dx ≤ M(a) = max_{c ≤ m} |v_{1+c}| / cos^{c+1} a,

with m the index of the last rank, or, without a cutoff, the index at which complete monotonicity begins. The
trapezoid rule of step h errs by at most ``2 M(a) / (e^{2πa/h} − 1)`` (Trefethen & Weideman 2014, theorem 5.1).
`_steps` takes the largest h that some a permits. It does not depend on the scores.

**Range** (the other half). Left of the first node, ``t_0``, only ``g_i ≈ w_i t v_1`` remains, up to ``w_i W t²
max|v|`` with W the sum of the weights; its sum over the omitted nodes is geometric (``tail``). Also omitted
are nodes at which all documents have arrived, or enough of them to fill the top k, by Chernoff's bound on
``N``; and documents that have certainly arrived (they only shift the count) or are certainly pending. Gaps
between scores across which the order is certain are narrowed, so that they do not add nodes.

The nodes of a topic depend on its own scores only, and so does the order of every sum over them: results do
not depend on the batch. Topics are computed in chunks of blocks of similar size, in bounded memory.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fairevals.policy.mixtures import GeometricMixture
from fairevals.typing import Floats, Ints

SEGMENT = 5  # documents; a constant, because the order of sums must not depend on the batch
_NODES_PER_BLOCK = 32
_GRID_CELLS = 1 << 22  # elements of a temporary array
_CHUNK_CELLS = 1 << 20  # counts stored for a chunk
_CHUNK_ROWS = 1024  # so that the arrays of small topics stay in the processor's cache
_FEW_CELLS = 1 << 15  # up to here, padding blocks to one size costs less than another chunk
_CANDIDATES = 16  # nodes that are tried at a time as the last one
_ARRIVED_Y = 7.0  # exp(−e^7) is 0: a larger y changes nothing


@dataclass(frozen=True)
class Grid:
    """The nodes of a batch of topics, divided into blocks of neighbouring nodes of one topic.

    ``order`` sorts a topic's documents by descending score; ``scores`` are the sorted scores, the largest
    shifted to 0 and wide gaps narrowed. Block b of topic ``topic[b]`` has the nodes ``x = step[topic] ·
    (start[b] + 0, 1, …, nodes[b] − 1)``. There the sorted documents before ``low[b]`` have certainly arrived
    and those from ``high[b]`` on are certainly pending.
    """

    order: Ints  # (topics, n)
    scores: Floats  # (topics, n)
    ranks: Ints  # (topics,): number of ranks that can be filled and have a weight
    tail: Floats  # (topics, n): probability of arriving, at rank 1, before the first node
    step: Floats  # (topics,)
    topic: Ints  # (blocks,), like the rest
    start: Ints
    nodes: Ints
    low: Ints
    high: Ints


def lay_grid(scores: Floats, weights: Floats, monotone_from: int | None, tolerance: float) -> Grid:
    """Choose the nodes for rank weights ``weights`` (k,) under ``scores`` (topics, n), −inf never ranked.

    ``monotone_from`` is the rank from which the weights, without the cutoff at k, are completely monotone.
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    if scores.size == 0 or len(weights) == 0:
        nothing = np.zeros(len(scores), dtype=np.int64)
        return Grid(order, scores, nothing, np.zeros_like(scores), np.ones(len(scores)), *[nothing[:0]] * 5)
    by_score = np.take_along_axis(scores, order, axis=1)
    documents = np.count_nonzero(scores > -np.inf, axis=1)
    log_n = np.log(np.maximum(documents, 1))
    last_with_weight = np.maximum.accumulate(np.where(weights != 0, np.arange(1, len(weights) + 1), 0))
    ranks = np.where(documents > 0, last_with_weight[np.minimum(documents, len(weights)) - 1], 0)
    others = math.log(16.0 / tolerance) + log_n
    arrived_from = np.log(others)

    ordered = _narrow_gaps(by_score, documents, others + math.log(2.0))
    weight = np.exp(ordered)
    reach = ranks
    if monotone_from is not None:
        reach = np.where(ranks < documents, ranks, np.minimum(ranks, monotone_from))
    step = _steps(weights.tobytes(), tolerance)[np.maximum(reach, 1) - 1]
    log_total = np.log(np.maximum(np.cumsum(weight, axis=1)[:, -1], 1.0))
    first = np.ceil(0.5 * (math.log(tolerance / 4.0) - log_total) / step)
    lowest = ordered[np.arange(len(ordered)), np.maximum(documents - 1, 0)]
    end = arrived_from - np.where(documents > 0, lowest, 0.0)
    full = np.flatnonzero((documents > ranks) & (ranks > 0))
    if len(full):
        needed = np.array([_mean_for_full(k, tolerance) for k in ranks[full].tolist()])
        end[full] = _full_by(ordered[full], needed, (first * step)[full], end[full])

    tail = weight * (step * np.exp(first * step) / np.expm1(step))[:, np.newaxis]
    count = np.where(ranks > 0, np.floor(end / step) - first + 1, 0).astype(np.int64)
    blocks = -(-count // _NODES_PER_BLOCK)
    topic = np.repeat(np.arange(len(blocks)), blocks)
    offset = (np.arange(len(topic)) - np.repeat(np.cumsum(blocks) - blocks, blocks)) * _NODES_PER_BLOCK
    start = first.astype(np.int64)[topic] + offset
    nodes = np.minimum(_NODES_PER_BLOCK, count[topic] - offset)
    low = _count_above(ordered, topic, arrived_from[topic] - start * step[topic])
    high = _count_above(ordered, topic, -others[topic] - (start + nodes - 1) * step[topic])
    kept = (low < ranks[topic]) & (low < high)
    return Grid(
        order, ordered, ranks, tail, step, topic[kept], start[kept], nodes[kept], low[kept], high[kept]
    )


@lru_cache(maxsize=64)
def _steps(weights: bytes, tolerance: float) -> Floats:
    """Largest permitted step if ranks 1..m have the given weights, for every m = 1..k."""
    v = np.abs(np.frombuffer(weights))
    angle = np.linspace(0.05, 1.56, 61)[:, np.newaxis]
    log_secant = -np.log(np.cos(angle))
    with np.errstate(divide="ignore"):
        log_v = np.log(v)
    heaviest = np.maximum.accumulate(log_v)
    log_bound = np.maximum.accumulate(log_v + np.arange(len(v)) * log_secant, axis=1)
    log_bound[:, v.cumsum() > 0] -= heaviest[v.cumsum() > 0]
    log_bound = np.maximum(log_bound, 0.0) + log_secant
    digits = np.logaddexp(0.0, log_bound + math.log(4.0 / tolerance))
    steps: Floats = np.max(2.0 * np.pi * angle / digits, axis=0)
    return steps


def _narrow_gaps(ordered: Floats, documents: Ints, widest: Floats) -> Floats:
    """Scores less their maximum, with gaps beyond ``widest`` (topics,) narrowed to it."""
    never = np.arange(ordered.shape[1]) >= documents[:, np.newaxis]
    finite = np.where(never, 0.0, ordered)
    with np.errstate(over="ignore"):  # an infinite gap is narrowed like any other
        shifted = finite - finite[:, :1]
        gaps = finite[:, :-1] - finite[:, 1:]
    wide = ((gaps > widest[:, np.newaxis]) & ~never[:, 1:]).any(axis=1)
    if wide.any():
        shifted[wide, 1:] = -np.cumsum(np.minimum(gaps[wide], widest[wide, np.newaxis]), axis=1)
    shifted[never] = -np.inf
    return shifted


def _full_by(ordered: Floats, needed: Floats, left: Floats, end: Floats) -> Floats:
    """An x, at most ``end``, from which on the expected count is at least ``needed``."""
    right = end
    shares = np.arange(1, _CANDIDATES + 1) / _CANDIDATES
    slab = max(1, _GRID_CELLS // (_CANDIDATES * ordered.shape[1]))
    for _ in range(2):
        x = left[:, np.newaxis] + (right - left)[:, np.newaxis] * shares
        reached = np.empty(x.shape, dtype=bool)
        for a in range(0, len(x), slab):
            y = ordered[a : a + slab, np.newaxis, :] + x[a : a + slab, :, np.newaxis]
            mean = np.cumsum(-np.expm1(-np.exp(np.minimum(y, _ARRIVED_Y))), axis=2)[..., -1]
            reached[a : a + slab] = mean >= needed[a : a + slab, np.newaxis]
        reached[:, -1] = True
        right = np.take_along_axis(x, np.argmax(reached, axis=1)[:, np.newaxis], axis=1)[:, 0]
        left = right - (x[:, 1] - x[:, 0])
    return np.minimum(right, end)


@lru_cache(maxsize=64)
def _mean_for_full(k: int, tolerance: float) -> float:
    """Expected count μ from which ``P(N_{−i} < k) ≤ e^{−m} (e m / (k−1))^{k−1} ≤ tolerance/8``, m = μ − 1."""
    allowed = math.log(tolerance / 8.0)
    others = k - 1.0
    mean = others + 1.0

    def log_bound(mean: float) -> float:
        return -mean + (others + others * math.log(mean / others) if others else 0.0)

    while log_bound(mean) > allowed:
        mean *= 1.02
    return mean + 1.0


def _count_above(ordered: Floats, topic: Ints, threshold: Floats) -> Ints:
    """How many of a topic's scores lie above the threshold, for each block."""
    counts = np.empty(len(topic), dtype=np.int64)
    slab = max(1, _GRID_CELLS // max(1, ordered.shape[1]))
    for a in range(0, len(topic), slab):
        above = ordered[topic[a : a + slab]] > threshold[a : a + slab, np.newaxis]
        counts[a : a + slab] = np.count_nonzero(above, axis=1)
    return counts


@dataclass(frozen=True)
class Chunk:
    """Blocks that are computed together. Each row is a node.

    Arrays are (documents, rows), with the documents in sorted order and padded to a multiple of `SEGMENT`.
    Rows are contiguous in memory, so numpy adds documents one after another, with or without padding.
    """

    blocks: Ints  # indices of the grid's blocks
    first_row: Ints  # (blocks,)
    block: Ints  # (rows,): which of the chunk's blocks a row belongs to
    certain: Ints  # (rows,): how many documents have certainly arrived
    step: Floats  # (rows,)
    ranks: int  # counts 0..ranks − 1 matter in these blocks
    rate: Floats  # e^y = w_j t
    arrived: Floats  # p_j = 1 − e^{−w_j t}
    pending: Floats  # 1 − p_j
    density: Floats  # of the logarithm of the arrival time; also the derivative of p_j by s_j
    mixture: GeometricMixture | None  # of the rank weights, if all topics of the chunk use it


def chunks_of(
    grid: Grid, mixture_for: Callable[[int], GeometricMixture | None] | None = None
) -> Iterator[Chunk]:
    """Divide the blocks of a grid into chunks of bounded size, blocks of similar size together.

    ``mixture_for(ranks)`` gives the weights of that many ranks as a mixture, for topics without a cutoff.
    """
    whole = (grid.ranks == np.count_nonzero(grid.scores > -np.inf, axis=1)) & (mixture_for is not None)
    # A power of two, so that topics of similar length share a mixture; still a function of the topic alone.
    ranks = np.where(whole, 2 ** np.ceil(np.log2(np.maximum(grid.ranks, 2))), 0).astype(np.int64)[grid.topic]
    for number in np.unique(ranks).tolist():
        mixture = mixture_for(number) if mixture_for and number else None
        yield from _chunks_of_blocks(grid, np.flatnonzero(ranks == number), mixture)


def _chunks_of_blocks(grid: Grid, blocks: Ints, mixture: GeometricMixture | None) -> Iterator[Chunk]:
    size = grid.high - grid.low
    ranks = np.minimum(grid.ranks[grid.topic] - grid.low, size)
    depth = ranks if mixture is None else np.full_like(ranks, len(mixture.ratio))
    queue = blocks[np.argsort(size[blocks], kind="stable")]
    first = rows = deepest = 0
    for position, (m, d, nodes) in enumerate(
        zip(size[queue].tolist(), depth[queue].tolist(), grid.nodes[queue].tolist(), strict=True)
    ):
        deepest, rows = max(deepest, d), rows + nodes
        larger = m > 1.25 * size[queue[first]] + 4 and m * deepest * rows > _FEW_CELLS
        if position > first and (larger or rows > min(_CHUNK_ROWS, _CHUNK_CELLS // (m * deepest))):
            yield _chunk(grid, queue[first:position], ranks, mixture)
            first, rows, deepest = position, nodes, d
    if len(queue):
        yield _chunk(grid, queue[first:], ranks, mixture)


def _chunk(grid: Grid, blocks: Ints, ranks: Ints, mixture: GeometricMixture | None) -> Chunk:
    topic, low, high, nodes = grid.topic[blocks], grid.low[blocks], grid.high[blocks], grid.nodes[blocks]
    documents = -(-int((high - low).max()) // SEGMENT) * SEGMENT
    column = low[:, np.newaxis] + np.arange(documents)
    inside = column < high[:, np.newaxis]
    column = np.minimum(column, grid.scores.shape[1] - 1)
    scores = np.where(inside, grid.scores[topic[:, np.newaxis], column], -np.inf)

    first_row = np.cumsum(nodes) - nodes
    block = np.repeat(np.arange(len(blocks)), nodes)
    node = grid.start[blocks][block] + (np.arange(len(block)) - first_row[block])
    step = grid.step[topic][block]
    x = node * step
    if len(x) == 1:  # add a row of weight 0: with a single row numpy would sum in another order
        block, x, step = np.repeat(block, 2), np.repeat(x, 2), np.append(step, 0.0)
    # Not scores.T[:, block], which would keep the memory order of scores.
    y = np.take(scores.T, block, axis=1) + x
    rate = np.exp(np.minimum(y, _ARRIVED_Y, out=y), out=y)
    pending = np.exp(-rate)
    return Chunk(
        blocks=blocks,
        first_row=first_row,
        block=block,
        certain=low[block],
        step=step,
        ranks=int(ranks[blocks].max()),
        rate=rate,
        arrived=-np.expm1(-rate),
        pending=pending,
        density=rate * pending,
        mixture=mixture,
    )

"""Where to evaluate the integrals of exact Plackett-Luce exposure, given the error that is allowed.

With ``x = log t`` and ``y = x + s_i`` the exposure of document i is the integral over the real line of

    g_i(x) = f_i(x) Σ_c v_{1+c} P(N_{−i} = c),    f_i(x) = exp(y − e^y),    p_j(x) = 1 − exp(−e^{x + s_j}),

``N_{−i}`` the number of other documents that rang before ``t``. The error allowed, ``tolerance · max|v|``, is
shared out as follows.

**Step** (one half). ``g_i`` is analytic for ``|Im x| < π/2``. On the line ``Im x = a`` a document's factors obey
``|1 − p_j| = 1 − p'_j`` and ``|p_j| ≤ p'_j / cos a``, where ``p'_j`` is the *real* probability at time
``t cos a``; hence ``|P(N = c)| ≤ P(N' = c) / cos^c a``, and where ``v_{m+1}, v_{m+2}, …`` is completely
monotone (a mixture of geometric sequences) all of its ranks together count as its first. So

    ∫ |g_i(x + ia)| dx ≤ M(a) = max_{c ≤ m} |v_{1+c}| / cos^{c+1} a,

with m the last rank's index, or the index at which complete monotonicity begins if no cutoff cuts it short,
and the trapezoid rule of step h errs by at most ``2 M(a) / (e^{2πa/h} − 1)`` (Trefethen & Weideman 2014,
theorem 5.1). `_steps` takes the largest h that some a permits. It does not depend on the scores.

**Range** (the other half). Left of the first node, ``t_0``, nothing but ``g_i ≈ w_i t v_1`` is left, up to ``w_i W
t² max|v|`` with W the sum of the weights; the sum of that over the nodes left out is geometric (``tail``).
Left out altogether are: nodes at which all documents have rung, or enough of them to fill the top k, by
Chernoff's bound on ``N``; documents that have certainly rung (they only shift the count) or certainly not
rung yet; and gaps between the scores so wide that the order across them is certain (they are narrowed, so
that the number of nodes does not grow with them).

Everything is a function of the topic's own scores, never of the batch that it is computed in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fairevals.typing import Floats, Ints

__all__ = ["NODES_PER_BLOCK", "Grid", "lay_grid"]


NODES_PER_BLOCK = 32
_SLAB = 1 << 22  # elements of a temporary array


@dataclass(frozen=True)
class Grid:
    """The nodes of a batch of topics, cut into blocks of neighbouring nodes of one topic.

    ``order`` sorts a topic's documents by descending score; ``scores`` are the sorted scores, the largest
    moved to 0 and wide gaps narrowed. In block b of topic ``topic[b]``, whose nodes are ``x = step[topic] ·
    (start[b] + 0, 1, …, nodes[b] − 1)``, the sorted documents before ``low[b]`` have rung and those from
    ``high[b]`` on have not.
    """

    order: Ints  # (topics, n)
    scores: Floats  # (topics, n)
    ranks: Ints  # (topics,): ranks that can be reached and have a weight
    tail: Floats  # (topics, n): probability, at rank 1, of ringing before the first node
    step: Floats  # (topics,)
    topic: Ints  # (blocks,), as are the rest
    start: Ints
    nodes: Ints
    low: Ints
    high: Ints


def lay_grid(scores: Floats, weights: Floats, monotone_from: int | None, tolerance: float) -> Grid:
    """Choose the nodes for rank weights ``weights`` (k,) under ``scores`` (topics, n), −inf never ranked.

    ``monotone_from`` is the rank from which the weights, were they not cut off at k, are completely monotone.
    """
    if scores.size == 0 or len(weights) == 0:
        return _empty_grid(scores)
    order = np.argsort(-scores, axis=1, kind="stable")
    by_score = scores[np.arange(len(scores))[:, np.newaxis], order]
    documents = np.count_nonzero(scores > -np.inf, axis=1)
    log_n = np.log(np.maximum(documents, 1))
    last_with_weight = np.maximum.accumulate(np.where(weights != 0, np.arange(1, len(weights) + 1), 0))
    ranks = np.where(documents > 0, last_with_weight[np.minimum(documents, len(weights)) - 1], 0)
    others = math.log(16.0 / tolerance) + log_n
    rung = np.log(others)

    ordered = _narrow_gaps(by_score, documents, others + math.log(2.0))
    weight = np.exp(ordered)
    reach = (
        ranks
        if monotone_from is None
        else np.where(ranks < documents, ranks, np.minimum(ranks, monotone_from))
    )
    step = _steps(weights.tobytes(), tolerance)[np.maximum(reach, 1) - 1]
    log_total = np.log(np.maximum(np.cumsum(weight, axis=1)[:, -1], 1.0))
    first = np.ceil(0.5 * (math.log(tolerance / 4.0) - log_total) / step)
    lowest = ordered[np.arange(len(ordered)), np.maximum(documents - 1, 0)]
    end = rung - np.where(documents > 0, lowest, 0.0)
    full = np.flatnonzero((documents > ranks) & (ranks > 0))
    if len(full):
        needed = np.array([_mean_for_full(k, tolerance) for k in ranks[full].tolist()])
        end[full] = _full_by(ordered[full], needed, (first * step)[full], end[full])

    tail = weight * (step * np.exp(first * step) / np.expm1(step))[:, np.newaxis]
    count = np.where(ranks > 0, np.floor(end / step) - first + 1, 0).astype(np.int64)
    blocks = -(-count // NODES_PER_BLOCK)
    topic = np.repeat(np.arange(len(blocks)), blocks)
    offset = (np.arange(len(topic)) - np.repeat(np.cumsum(blocks) - blocks, blocks)) * NODES_PER_BLOCK
    start = first.astype(np.int64)[topic] + offset
    nodes = np.minimum(NODES_PER_BLOCK, count[topic] - offset)
    low = _count_above(ordered, topic, rung[topic] - start * step[topic])
    high = _count_above(ordered, topic, -others[topic] - (start + nodes - 1) * step[topic])
    kept = (low < ranks[topic]) & (low < high)
    return Grid(
        order, ordered, ranks, tail, step, topic[kept], start[kept], nodes[kept], low[kept], high[kept]
    )


def _empty_grid(scores: Floats) -> Grid:
    zeros, none = np.zeros(len(scores), dtype=np.int64), np.zeros(0, dtype=np.int64)
    order = np.zeros(scores.shape, dtype=np.int64) + np.arange(scores.shape[1])
    return Grid(
        order, scores, zeros, np.zeros_like(scores), np.ones(len(scores)), none, none, none, none, none
    )


@lru_cache(maxsize=64)
def _steps(weights: bytes, tolerance: float) -> Floats:
    """Largest permitted step if ranks 1..m weigh as given, for every m = 1..k."""
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


def _full_by(ordered: Floats, needed: Floats, left: Floats, end: Floats, candidates: int = 16) -> Floats:
    """An x, at most ``end``, from which on the expected count is at least ``needed``."""
    right = end
    shares = np.arange(1, candidates + 1) / candidates
    slab = max(1, _SLAB // (candidates * ordered.shape[1]))
    for _ in range(2):
        x = left[:, np.newaxis] + (right - left)[:, np.newaxis] * shares
        reached = np.empty(x.shape, dtype=bool)
        for a in range(0, len(x), slab):
            y = ordered[a : a + slab, np.newaxis, :] + x[a : a + slab, :, np.newaxis]
            mean = np.cumsum(-np.expm1(-np.exp(np.minimum(y, 7.0))), axis=2)[..., -1]
            reached[a : a + slab] = mean >= needed[a : a + slab, np.newaxis]
        reached[:, -1] = True
        right = np.take_along_axis(x, np.argmax(reached, axis=1)[:, np.newaxis], axis=1)[:, 0]
        left = right - (x[:, 1] - x[:, 0])
    return np.minimum(right, end)


@lru_cache(maxsize=64)
def _mean_for_full(k: int, tolerance: float) -> float:
    """Expected count μ from which ``P(N_{−i} < k) ≤ e^{−m} (e m / (k−1))^{k−1} ≤ tolerance/8``, m = μ − 1."""
    wanted = math.log(tolerance / 8.0)
    most = k - 1.0
    mean = most + 1.0

    def log_bound(mean: float) -> float:
        return -mean + (most + most * math.log(mean / most) if most else 0.0)

    while log_bound(mean) > wanted:
        mean *= 1.02
    return mean + 1.0


def _count_above(ordered: Floats, topic: Ints, threshold: Floats) -> Ints:
    """How many of a topic's scores lie above the threshold, for each block."""
    counts = np.empty(len(topic), dtype=np.int64)
    slab = max(1, _SLAB // max(1, ordered.shape[1]))
    for a in range(0, len(topic), slab):
        above = ordered[topic[a : a + slab]] > threshold[a : a + slab, np.newaxis]
        counts[a : a + slab] = np.count_nonzero(above, axis=1)
    return counts

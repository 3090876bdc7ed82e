"""Re-rankers that build one ranking from the top: FA*IR, DetConstSort, and a quota in the manner of MMR.

Documents of one topic are numbered from the best to the worst, and all functions give an order of these numbers.
"""

from functools import lru_cache

import numpy as np

from fairevals.measures.fa_ir import Binomial, adjusted_alpha, minimum_counts
from fairevals.typing import Bools, Floats, Ints


def fa_ir(protected: Bools, share: float, alpha: float = 0.1, k: int | None = None) -> Ints:
    """FA*IR: every prefix has as many protected documents as a fair coin would nearly always give it.

    `protected` says which documents are, best first. A prefix of i ≤ k documents needs the number that a
    Binomial(i, `share`) reaches with a probability of 1 − α, with α adjusted for the k prefixes. Each rank gets the
    best document left, or the best protected one if the number is not reached otherwise. If the protected documents run
    out, the rest follows. See Zehlike et al., CIKM 2017.

    >>> fa_ir(np.array([False] * 4 + [True] * 2), share=0.6).tolist()
    [0, 1, 4, 2, 5, 3]
    """
    needed = fa_ir_counts(len(protected), share, alpha, k)
    waiting = {
        True: np.flatnonzero(protected).tolist()[::-1],
        False: np.flatnonzero(~protected).tolist()[::-1],
    }
    order: list[int] = []
    taken = 0
    for least in needed.tolist():
        better = not waiting[False] or bool(waiting[True] and waiting[True][-1] < waiting[False][-1])
        choice = bool(waiting[True]) and (taken < least or better)
        order.append(waiting[choice].pop())
        taken += choice
    return np.array(order, dtype=np.int64)


@lru_cache(maxsize=1024)
def fa_ir_counts(n: int, share: float, alpha: float, k: int | None = None) -> Ints:
    """How many protected documents FA*IR asks for in each prefix of 1, …, n documents; 0 beyond k.

    >>> fa_ir_counts(6, 0.6, 0.1).tolist()
    [0, 0, 1, 1, 2, 2]
    """
    counts: Ints = np.zeros(n, dtype=np.int64)
    depth = n if k is None else min(k, n)
    if depth and share > 0:
        null = Binomial(min(share, 1.0))
        counts[:depth] = minimum_counts(depth, null, adjusted_alpha(depth, null, alpha))
    return counts


def det_const_sort(group: Ints, share: Floats) -> Ints:
    """DetConstSort: every prefix of k has at least ⌊share_g·k⌋ documents of group g, while there are any.

    `group` is the number of each document's group, best document first, −1 for none. When a group's least number rises,
    its best document left enters at the end and moves up past worse ones, as far as none of them falls below the rank
    where it is needed. Documents that no group needs enter last. See Geyik, Ambler and Kenthapadi, KDD 2019,
    algorithm 3, whose printed comparison of ranks lets a document fall one rank too far if ranks are counted from 0.

    >>> det_const_sort(np.array([0, 0, 0, 0, 1, 1]), np.array([0.5, 0.5])).tolist()
    [0, 4, 1, 5, 2, 3]
    """
    needed = np.full(len(group), np.inf)  # the rank at which a document is needed at the latest
    for g in np.flatnonzero(share > 0).tolist():
        members = np.flatnonzero(group == g)
        needed[members] = np.ceil(np.arange(1, members.size + 1) / share[g] - 1e-9)
    order: list[int] = []
    for document in np.lexsort((np.arange(len(group)), needed)).tolist():
        place = len(order)
        while place and order[place - 1] > document and needed[order[place - 1]] > place:
            place -= 1
        order.insert(place, document)
    return np.array(order, dtype=np.int64)


def quota(scores: Floats, membership: Floats, share: Floats, strength: float) -> Ints:
    """A quota in the manner of maximal marginal relevance: at each rank the best mixture of score and need.

    Rank k takes the document with the largest (1 − strength)·s_d + strength·Σ_g m(d,g)·(share_g·k − count_g), with s_d
    the score scaled to [0, 1] in the topic and count_g the sum of memberships above the rank. It is the diversification
    of Carbonell and Goldstein, SIGIR 1998, with the need of a group in place of the difference to other documents.

    >>> quota(np.array([3.0, 2.0, 1.0, 0.0]), np.eye(2)[[0, 0, 1, 1]], np.array([0.5, 0.5]), strength=0.9).tolist()
    [0, 2, 1, 3]
    """
    n = len(scores)
    span = np.ptp(scores) if n else 0.0
    worth = (1.0 - strength) * (scores - scores.min(initial=0.0)) / (span or 1.0)
    left, count, order = np.ones(n, dtype=bool), np.zeros(len(share)), np.zeros(n, dtype=np.int64)
    for k in range(n):
        need = membership @ (share * (k + 1) - count)
        order[k] = np.argmax(np.where(left, worth + strength * need, -np.inf))
        left[order[k]] = False
        count = count + membership[order[k]]
    return order

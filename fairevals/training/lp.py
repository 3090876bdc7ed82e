"""The linear programme of fair exposure, and its decomposition into rankings (Birkhoff–von Neumann).

Singh & Joachims: Fairness of exposure in rankings. KDD 2018; with the slack λξ of Singh & Joachims 2019, appendix B.3.
"""

from itertools import combinations

import numpy as np

from fairevals.attention import parse_attention
from fairevals.errors import UsageError
from fairevals.measures.base import merit
from fairevals.measures.disparity import group_levels
from fairevals.measures.group_sums import group_means
from fairevals.measures.ndcg import gains
from fairevals.typing import Floats, Ints

_ZERO = 1e-12
"""Smaller probabilities are rounding errors."""


def fair_ranking(grades: Floats, membership: Floats, lam: float, merits: str = "identity") -> Floats:
    """P(document at rank), the doubly stochastic matrix that maximises uᵀPv − λ·(mean ξ over pairs of groups).

    u = 2^g − 1 for the (predicted) grades g of one topic, v the attention log2. For every pair of groups with
    M̄_i ≥ M̄_j > 0 the slack ξ ≥ 0 takes up v̄_i/M̄_i − v̄_j/M̄_j ≤ ξ, so that the mean of ξ is D_group of the exposures
    Pv (`fairevals.measures.disparity`). Solved with scipy's HiGHS.

    >>> two = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> fair_ranking(np.array([1.0, 0.9]), two, lam=0.0).round(3)
    array([[1., 0.],
           [0., 1.]])
    >>> fair_ranking(np.array([1.0, 0.9]), two, lam=9.0).round(3)
    array([[0.616, 0.384],
           [0.384, 0.616]])
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    n = len(grades)
    v = parse_attention("log2").weights(n)
    positive = np.maximum(grades, 0.0)
    worth = merit(positive, merits)
    total, means = worth @ membership, group_means(worth, membership)
    level = group_levels(means)
    pairs = list(combinations(np.flatnonzero(means > 0).tolist(), 2))
    unfair = []  # for each pair of groups and direction: the coefficients of P, then those of the slacks
    for slack, (i, j) in zip(-np.eye(len(pairs)), pairs, strict=True):
        difference = np.outer(membership[:, i] / total[i] - membership[:, j] / total[j], v).ravel()
        for above, below, sign in ((i, j, 1.0), (j, i, -1.0)):
            if level[above] >= level[below]:
                unfair.append(np.append(sign * difference, slack))
    utility = np.outer(gains(positive, "exp-log2"), v).ravel()
    cost = np.append(-utility, np.full(len(pairs), lam / max(len(pairs), 1)))
    cell = np.arange(n * n)
    at = np.concatenate([cell // n, n + cell % n]), np.tile(cell, 2)
    sums = coo_array((np.ones(2 * n * n), at), shape=(2 * n, n * n + len(pairs)))
    solution = linprog(  # type: ignore[call-overload]  # its stubs know no sparse matrices
        cost,
        A_ub=np.array(unfair) if unfair else None,
        b_ub=np.zeros(len(unfair)) if unfair else None,
        A_eq=sums.toarray() if n < 16 else sums.tocsr(),  # short lists are solved faster with a dense matrix
        b_eq=np.ones(2 * n),
        bounds=(0, None),
        method="highs",
    )
    if solution.x is None:
        raise UsageError(f"the linear programme could not be solved: {solution.message}")
    return _doubly_stochastic(solution.x[: n * n].reshape(n, n))


def _doubly_stochastic(P: Floats) -> Floats:
    """Remove the solver's inaccuracy, so that rows and columns sum to 1 up to rounding."""
    P = np.where(P < 1e-9, 0.0, P)
    for _ in range(100):
        P = P / P.sum(axis=1, keepdims=True)
        sums = P.sum(axis=0)
        if np.abs(sums - 1.0).max() < 1e-14:
            break
        P = P / sums
    return P


def birkhoff(P: Floats) -> tuple[Floats, Ints]:
    """Weights and rankings whose mixture is the doubly stochastic P: P = Σ_m weight_m · (ranking m as a matrix).

    Rankings are (m, rank): the document at each rank. Every step removes as much as possible of one permutation, and
    so sets at least one more entry to 0 (Birkhoff 1946).

    >>> weights, rankings = birkhoff(np.array([[0.75, 0.25], [0.25, 0.75]]))
    >>> weights, rankings
    (array([0.75, 0.25]), array([[0, 1],
           [1, 0]]))
    """
    from scipy.optimize import linear_sum_assignment

    left, n = P.copy(), len(P)
    weights: list[float] = []
    rankings: list[Ints] = []
    for _ in range(n * n):
        documents, ranks = linear_sum_assignment(np.where(left > _ZERO, -left, n + 1.0))
        weight = left[documents, ranks].min()
        if weight <= _ZERO:
            break
        left[documents, ranks] -= weight
        weights.append(weight)
        rankings.append(np.argsort(ranks))  # the document at each rank: documents are 0, 1, …
    return np.array(weights) / np.sum(weights), np.array(rankings)


def sample_mixture(weights: Floats, rankings: Ints, samples: int, rng: np.random.Generator) -> Ints:
    """Draw rankings (samples, rank) from a mixture by systematic sampling, so that the counts vary least.

    >>> sample_mixture(np.array([0.5, 0.5]), np.array([[0, 1], [1, 0]]), 4, np.random.default_rng(0))[:, 0].tolist()
    [0, 0, 1, 1]
    """
    places = (rng.random() + np.arange(samples)) / samples
    component = np.minimum(np.searchsorted(np.cumsum(weights), places, side="right"), weights.size - 1)
    return np.take(rankings, component, axis=0)

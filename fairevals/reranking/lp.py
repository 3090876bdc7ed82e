"""The linear programme of fair exposure, and its decomposition into rankings (Birkhoff–von Neumann).

Singh & Joachims: Fairness of exposure in rankings. KDD 2018; with the slack λξ of Singh & Joachims 2019, appendix B.3.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from fairevals.attention import parse_attention
from fairevals.errors import UsageError
from fairevals.measures.disparity import group_levels
from fairevals.measures.group_sums import group_means
from fairevals.measures.merits import merit
from fairevals.measures.ndcg import gains
from fairevals.typing import Bools, Floats, Ints

_ZERO = 1e-12
"""Smaller probabilities are rounding errors."""


class RankingMixture(NamedTuple):
    """Rankings (m, rank) of document numbers, drawn with probabilities `weights` (m,)."""

    weights: Floats
    rankings: Ints

    def exposure(self, attention: Floats) -> Floats:
        """The expected attention of each document.

        >>> RankingMixture(np.array([0.75, 0.25]), np.array([[0, 1], [1, 0]])).exposure(np.array([1.0, 0.5]))
        array([0.875, 0.625])
        """
        ranks = np.argsort(self.rankings, axis=1)
        return self.weights @ attention[ranks]

    def sample(self, samples: int, rng: np.random.Generator) -> Ints:
        """Draw rankings (samples, rank) by systematic sampling, so that the counts vary least.

        >>> even = RankingMixture(np.array([0.5, 0.5]), np.array([[0, 1], [1, 0]]))
        >>> even.sample(4, np.random.default_rng(0))[:, 0].tolist()
        [0, 0, 1, 1]
        """
        places = (rng.random() + np.arange(samples)) / samples
        component = np.searchsorted(np.cumsum(self.weights), places, side="right")
        return np.take(self.rankings, np.minimum(component, self.weights.size - 1), axis=0)


class _Programme(NamedTuple):
    """Maximise uᵀε − λ·mean over pairs of max(0, cᵀε), or of |cᵀε|, over the exposures ε = Pv of all policies P."""

    utility: Floats
    attention: Floats
    unfair: Floats
    """(pairs, documents): the coefficients c of each pair of groups."""
    both: Bools
    """(pairs,): whether the pair counts in both directions."""
    lam: float


def fair_mixture(
    grades: Floats,
    membership: Floats,
    lam: float,
    merits: str = "identity",
    attention: Floats | None = None,
) -> RankingMixture:
    """The mixture of rankings that maximises utility − λ·D_group for (predicted) grades g of one topic.

    With P the probabilities of a document at a rank, u = 2^g − 1 and v the `attention` of the ranks, which must not
    rise (default: log2), the utility is uᵀPv. For
    every pair of groups with M̄_i ≥ M̄_j > 0 the programme has a slack ξ ≥ v̄_i/M̄_i − v̄_j/M̄_j, so that the mean of ξ is
    D_group of the exposures Pv (`fairevals.measures.disparity`). For two groups the dual has one variable (`_by_dual`);
    more are solved with scipy's HiGHS and decomposed (`birkhoff`).

    >>> two = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> fair_mixture(np.array([1.0, 0.9]), two, lam=0.0)
    RankingMixture(weights=array([1.]), rankings=array([[0, 1]]))
    >>> fair_mixture(np.array([1.0, 0.9]), two, lam=9.0).weights.round(3)
    array([0.616, 0.384])
    """
    programme = _programme(grades, membership, lam, merits, attention)
    return _by_dual(programme) if len(programme.unfair) <= 1 else birkhoff(_by_highs(programme))


def _programme(
    grades: Floats,
    membership: Floats,
    lam: float,
    merits: str = "identity",
    attention: Floats | None = None,
) -> _Programme:
    positive = np.maximum(grades, 0.0)
    worth = merit(positive, merits)
    total, means = worth @ membership, group_means(worth, membership)
    level = group_levels(means)
    unfair, both = [], []
    for i, j in combinations(np.flatnonzero(means > 0).tolist(), 2):
        above, below = (i, j) if level[i] >= level[j] else (j, i)
        unfair.append(membership[:, above] / total[above] - membership[:, below] / total[below])
        both.append(level[i] == level[j])
    return _Programme(
        gains(positive, "exp-log2"),
        parse_attention("log2").weights(len(grades)) if attention is None else attention,
        np.array(unfair).reshape(-1, len(grades)),
        np.array(both, dtype=bool),
        lam,
    )


def _by_dual(programme: _Programme) -> RankingMixture:
    """The solution for one pair of groups, or none.

    λ·max(0, cᵀε) is the largest μ·cᵀε with 0 ≤ μ ≤ λ, so that the programme is to minimise over μ the maximum of
    (u − μc)ᵀε, which sorting by u − μc reaches. That maximum is convex in μ with the slope −cᵀε. Bisection finds
    where the slope changes its sign; the rankings on both sides are best there, and so are their mixtures, of which one
    has cᵀε = 0.
    """
    u, v, lam = programme.utility, programme.attention, programme.lam
    if not len(programme.unfair):
        return RankingMixture(np.ones(1), _sorted(u)[None])
    c = programme.unfair[0]

    def excess(ranking: Ints) -> float:
        return float(c[ranking] @ v)

    low, high = (-lam if programme.both[0] else 0.0), lam
    before, after = _sorted(u - low * c), _sorted(u - high * c)
    for end, beyond in ((before, excess(before) <= 0), (after, excess(after) >= 0)):
        if beyond:  # the best μ is at that end of its interval
            return RankingMixture(np.ones(1), end[None])
    while low < (middle := (low + high) / 2) < high:
        ranking = _sorted(u - middle * c)
        if excess(ranking) > 0:
            low, before = middle, ranking
        else:
            high, after = middle, ranking
    share = excess(after) / (excess(after) - excess(before))
    weights, rankings = np.array([share, 1 - share]), np.stack([before, after])
    return RankingMixture(weights[weights > 0], rankings[weights > 0])


def _sorted(values: Floats) -> Ints:
    """The documents, those of the largest values first."""
    return np.argsort(-values, kind="stable")


def _by_highs(programme: _Programme) -> Floats:
    """P(document at rank), the doubly stochastic matrix that solves the programme; by scipy's HiGHS."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, csr_array, hstack, vstack

    u, v, unfair, both, lam = programme
    n, pairs = len(u), len(unfair)
    # For each pair and direction: the coefficients of P, then those of the slacks.
    difference = csr_array(np.einsum("pd,r->pdr", unfair, v).reshape(pairs, n * n))
    slack = -csr_array(np.eye(pairs))
    limits = vstack([hstack([difference, slack]), hstack([-difference[both], slack[both]])], format="csr")
    cell = np.arange(n * n)
    at = np.concatenate([cell // n, n + cell % n]), np.tile(cell, 2)
    sums = coo_array((np.ones(2 * n * n), at), shape=(2 * n, n * n + pairs))
    solution = linprog(  # type: ignore[call-overload]  # its stubs know no sparse matrices
        np.append(-np.outer(u, v).ravel(), np.full(pairs, lam / max(pairs, 1))),
        A_ub=limits,
        b_ub=np.zeros(limits.shape[0]),
        A_eq=sums.tocsr(),
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


def birkhoff(P: Floats) -> RankingMixture:
    """Weights and rankings whose mixture is the doubly stochastic P: P = Σ_m weight_m · (ranking m as a matrix).

    Rankings are (m, rank): the document at each rank. Every step removes as much as possible of one permutation, and
    so sets at least one more entry to 0 (Birkhoff 1946).

    >>> birkhoff(np.array([[0.75, 0.25], [0.25, 0.75]])).weights
    array([0.75, 0.25])
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
    return RankingMixture(np.array(weights) / np.sum(weights), np.array(rankings))

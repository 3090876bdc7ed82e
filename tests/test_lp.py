"""The linear programme of fair exposure, by its dual and by HiGHS, and the decomposition into rankings."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairevals.measures.disparity import group_disparity
from fairevals.reranking import lp
from fairevals.reranking.lp import RankingMixture, birkhoff, fair_mixture


def attention(n):
    return 1 / np.log2(np.arange(2, n + 2))


def objective(exposure, grades, membership, lam):
    """DCG − λ·D_group, as the measures define them."""
    penalty = group_disparity(exposure, grades, membership)
    return (np.exp2(grades) - 1) @ exposure - lam * np.nan_to_num(penalty)


@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 4), st.floats(0, 5), st.booleans())
def test_no_ranking_and_no_mixture_beats_the_programme(seed, n, groups, lam, soft):
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 4, n) * rng.choice([1.0, 0.37])
    membership = (
        rng.dirichlet(np.ones(groups), size=n) if soft else np.eye(groups)[rng.integers(0, groups, n)]
    )
    mixture, v = fair_mixture(grades, membership, lam), attention(n)
    assert all(sorted(ranking) == list(range(n)) for ranking in mixture.rankings.tolist())
    assert mixture.weights.sum() == pytest.approx(1) and mixture.weights.min() > 0
    best = objective(mixture.exposure(v), grades, membership, lam)
    for _ in range(20):
        other = RankingMixture(rng.dirichlet(np.ones(4)), np.array([rng.permutation(n) for _ in range(4)]))
        assert objective(other.exposure(v), grades, membership, lam) <= best + 1e-7


@given(st.integers(0, 10**6), st.integers(2, 12), st.floats(0, 5))
def test_the_dual_reaches_the_objective_of_highs(seed, n, lam):
    """Two groups, merits that tie or do not, soft memberships, documents of neither group."""
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 3, n).astype(float) if rng.random() < 0.5 else rng.random(n)
    membership = np.eye(2)[rng.integers(0, 2, n)] if rng.random() < 0.5 else rng.dirichlet([1, 1], size=n)
    membership[rng.random(n) < 0.1] = 0.0
    v, solutions = attention(n), []
    original = lp._by_dual
    try:
        for method in (original, lambda programme: birkhoff(lp._by_highs(programme))):
            lp._by_dual = method
            solutions.append(
                objective(fair_mixture(grades, membership, lam).exposure(v), grades, membership, lam)
            )
    finally:
        lp._by_dual = original
    # HiGHS itself stops at 1e-7 of feasibility.
    assert solutions[0] >= solutions[1] - 1e-12 * max(1, abs(solutions[1]))
    assert solutions[0] == pytest.approx(solutions[1], abs=2e-6)


@given(st.integers(0, 10**6), st.integers(2, 40), st.floats(0, 5))
def test_the_dual_is_optimal_to_rounding(seed, n, lam):
    """The dual function has kinks where two documents exchange ranks; its least value bounds every policy."""
    rng = np.random.default_rng(seed)
    grades, membership = rng.random(n) * 3, rng.dirichlet([1, 1], size=n)
    v, u = attention(n), np.exp2(grades) - 1
    means = (grades @ membership) / membership.sum(axis=0)
    i, j = np.argsort(-means)
    c = membership[:, i] / (grades @ membership[:, i]) - membership[:, j] / (grades @ membership[:, j])
    with np.errstate(divide="ignore", invalid="ignore"):
        kinks = (np.subtract.outer(u, u) / np.subtract.outer(c, c)).ravel()
    multipliers = np.append(kinks[(kinks > 0) & (kinks < lam)], [0.0, lam])
    bound = np.min(np.sort(u - multipliers[:, None] * c, axis=1)[:, ::-1] @ v)
    solution = fair_mixture(grades, membership, lam)
    assert len(solution.weights) <= 2
    reached = objective(solution.exposure(v), grades, membership, lam)
    assert reached == pytest.approx(bound, rel=1e-12, abs=1e-12)


def test_the_attention_of_a_cutoff():
    grades, membership = np.array([3.0, 2.0, 1.0]), np.eye(2)[[0, 0, 1]]
    v = np.array([1.0, 0.0, 0.0])
    exposure = fair_mixture(grades, membership, 100.0, attention=v).exposure(v)
    assert exposure @ membership / (grades @ membership) == pytest.approx([1 / 6, 1 / 6])


def test_the_dual_is_the_best_of_all_mixtures_of_two_rankings():
    """Enumeration: at most two rankings are mixed, so the best of all pairs is the optimum."""
    grades, membership, lam = np.array([3.0, 2.0, 2.0, 1.0]), np.eye(2)[[0, 0, 1, 1]], 0.8
    v = attention(4)
    exposures = np.array([v[np.argsort(ranking)] for ranking in permutations(range(4))])
    c = membership[:, 0] / (grades @ membership[:, 0]) - membership[:, 1] / (grades @ membership[:, 1])
    gain, excess = exposures @ (np.exp2(grades) - 1), exposures @ c
    best = np.max(gain - lam * np.maximum(excess, 0))
    for i in range(24):
        for j in range(24):
            if excess[i] > 0 > excess[j]:  # mixed so that the excess is 0
                share = excess[j] / (excess[j] - excess[i])
                best = max(best, share * gain[i] + (1 - share) * gain[j])
    found = fair_mixture(grades, membership, lam).exposure(v)
    assert objective(found, grades, membership, lam) == pytest.approx(best, rel=1e-13)


def test_the_programme_trades_utility_for_fairness():
    grades, membership = np.array([1.0, 1.0, 0.99, 0.98]), np.eye(2)[[0, 0, 1, 1]]
    gaps, gains = [], []
    for lam in (0.0, 10.0):
        exposure = fair_mixture(grades, membership, lam).exposure(attention(4))
        ratio = exposure @ membership / (grades @ membership)
        gaps.append(max(0.0, ratio[0] - ratio[1]))
        gains.append((np.exp2(grades) - 1) @ exposure)
    assert gaps[0] > 0.1 and gaps[1] < 1e-12
    assert gains[1] < gains[0]


def test_birkhoff_of_a_dense_matrix():
    rng = np.random.default_rng(0)
    P = sum(w * np.eye(7)[rng.permutation(7)] for w in rng.dirichlet(np.ones(30)))
    weights, rankings = birkhoff(P)
    again = np.zeros_like(P)
    for weight, ranking in zip(weights, rankings, strict=True):
        again[ranking, np.arange(7)] += weight
    np.testing.assert_allclose(again, P, atol=1e-9)


def test_samples_of_a_mixture_have_its_shares():
    mixture = RankingMixture(np.array([0.6, 0.3, 0.1]), np.array([[0, 1], [1, 0], [0, 1]]))
    drawn = mixture.sample(1000, np.random.default_rng(0))
    assert abs((drawn[:, 0] == 0).mean() - 0.7) <= 0.002

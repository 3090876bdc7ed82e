"""Offsets of groups: what they reach, checked by all rankings, by sampling, and by a quadratic programme."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairevals as fe
from fairevals.measures.disparity import group_disparity
from fairevals.policy.offsets import exposure_offsets

seeds = st.integers(0, 10**6)


def attention(n, k=None):
    weights = 1 / np.log2(np.arange(2, n + 2))
    weights[n if k is None else k :] = 0
    return weights


def enumerated(scores, k=None):
    """The exposures under Plackett-Luce, by the probabilities of all rankings."""
    n = len(scores)
    exposure = np.zeros(n)
    for ranking in map(list, permutations(range(n))):
        left = np.logaddexp.accumulate(scores[ranking][::-1])[::-1]
        exposure[ranking] += np.exp(np.sum(scores[ranking] - left)) * attention(n, k)
    return exposure


def draw(rng, n, groups, soft):
    """Scores, and memberships of groups that all have documents."""
    scores = rng.normal(size=n) * rng.choice([0.3, 1, 4])
    membership = (
        rng.dirichlet(np.ones(groups), size=n)
        if soft
        else np.eye(groups)[rng.permutation(np.arange(n) % groups)]
    )
    return scores, membership


@given(seeds, st.integers(2, 6), st.integers(2, 3), st.booleans(), st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_parity_by_all_rankings_and_d_group_is_0_whatever_the_grades(seed, n, groups, soft, k):
    """Equal mean exposure of all groups leaves D_group nothing to punish, for any grades."""
    rng = np.random.default_rng(seed)
    scores, membership = draw(rng, n, min(groups, n), soft)
    offsets = exposure_offsets(scores[None], membership[None], membership.sum(axis=0)[None], k=k)
    exposure = enumerated(scores + membership @ offsets.value[0], k)
    means = exposure @ membership / membership.sum(axis=0)
    if not offsets.met[0]:  # with so few ranks no policy shares them equally
        assert np.ptp(means) > 1e-9
        return
    np.testing.assert_allclose(means, means[0], atol=1e-7)
    for _ in range(5):
        grades = rng.integers(0, 4, n) * rng.choice([1.0, 0.1])
        disparity = group_disparity(exposure, grades, membership)
        assert np.isnan(disparity) or disparity <= 1e-6


@given(seeds, st.integers(2, 6), st.booleans(), st.booleans())
@settings(max_examples=25, deadline=None)
def test_no_policy_is_nearer_to_the_goal(seed, n, soft, without):
    """Whatever rankings a policy mixes, its groups' exposures are in the convex hull of those of single rankings."""
    from scipy.optimize import nnls

    rng = np.random.default_rng(seed)
    scores, membership = draw(rng, n, 2 if n < 4 else 3, soft)
    if without:  # a document of no group keeps its score, and the others their exposure
        membership[0] = 0.0
        membership = membership[:, membership.any(axis=0)]
    k, goal = int(rng.integers(1, n + 1)), rng.dirichlet(np.full(membership.shape[1], 0.5))
    offsets = exposure_offsets(scores[None], membership[None], goal[None], k=k)
    total = (enumerated(scores, k) @ membership).sum()
    corners = np.array(
        [attention(n, k)[np.argsort(ranking)] @ membership for ranking in permutations(range(n))]
    )
    weighty = np.vstack([corners.T, np.full(len(corners), 1e4)])  # the weights of rankings sum to 1
    weights = nnls(weighty, np.append(goal * total, 1e4), maxiter=100_000)[0]
    least = np.linalg.norm(weights @ corners / weights.sum() - goal * total) / total
    reached = enumerated(scores + membership @ offsets.value[0], k) @ membership
    assert np.linalg.norm(reached - goal * total) / total <= least + 1e-4
    np.testing.assert_allclose(offsets.share[0], reached / reached.sum(), atol=1e-7)
    assert bool(offsets.met[0]) == bool(np.abs(reached / reached.sum() - goal).max() <= 1e-8) or least < 1e-6


def test_shares_by_sampling():
    rng = np.random.default_rng(5)
    scores, membership = draw(rng, 40, 3, soft=True)
    goal = np.array([0.38, 0.32, 0.3])
    offsets = exposure_offsets(scores[None], membership[None], goal[None], "rbp(0.9)", k=20)
    assert offsets.met[0]
    rankings = fe.PlackettLuce(scores + membership @ offsets.value[0]).sample(20_000, k=20, rng=1)
    shares = np.einsum("srg,r->sg", membership[rankings], 0.9 ** np.arange(20))
    shares = shares / shares.sum(axis=1, keepdims=True)
    error = shares.std(axis=0) / np.sqrt(len(shares))
    assert np.all(np.abs(shares.mean(axis=0) - goal) < 4 * error)


def test_a_group_without_documents_leaves_its_share_to_the_others():
    scores = np.array([[1.0, 0.0, -np.inf], [0.0, 0.5, 1.0]])
    membership = np.array([np.eye(3)[[0, 1, 2]], np.eye(3)[[2, 2, 2]]])
    goal = np.array([[0.3, 0.3, 0.4], [0.5, 0.5, 0.0]])
    offsets = exposure_offsets(scores, membership, goal)
    np.testing.assert_allclose(offsets.share, [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], atol=1e-8)
    np.testing.assert_allclose(offsets.goal, goal)
    assert offsets.met.tolist() == [False, False]
    assert offsets.value[1].tolist() == [0, 0, 0]


def test_a_share_that_even_the_first_ranks_do_not_give():
    scores, membership = np.array([[5.0, 4.0, 3.0, -2.0]]), np.eye(2)[[0, 0, 0, 1]][None]
    offsets = exposure_offsets(scores, membership, np.array([[0.1, 0.9]]))
    assert not offsets.met[0]
    assert offsets.share[0, 1] == pytest.approx(
        1 / attention(4).sum(), abs=1e-6
    )  # it is first with certainty


def test_documents_without_a_group_keep_scores_and_exposure():
    scores, membership = np.array([[2.0, 1.0, 0.5, 0.0]]), np.array([np.eye(3)[[0, 1, 2, 1]][:, :2]])
    offsets = exposure_offsets(scores, membership, np.array([[0.5, 0.5]]))
    before, after = enumerated(scores[0]), enumerated(scores[0] + membership[0] @ offsets.value[0])
    assert offsets.met[0] and after[2] == pytest.approx(before[2], abs=1e-8)


@pytest.mark.parametrize("spread", [1e-3, 30, 1e4, 1e9, 1e150])
def test_scores_near_to_each_other_or_far_apart(spread):
    scores = np.linspace(spread, 0, 12)[None]
    membership = np.eye(2)[np.arange(12) // 6][None]
    offsets = exposure_offsets(scores, membership, np.ones((1, 2)))
    assert offsets.met[0] == (spread < 1e12)  # beyond, rounding hides what offsets change


def test_attention_must_fall():
    with pytest.raises(fe.UsageError, match="does not fall"):
        exposure_offsets(np.zeros((1, 2)), np.eye(2)[None], np.ones((1, 2)), [0.5, 1.0])


def test_no_documents_of_any_group():
    offsets = exposure_offsets(np.array([[1.0, 0.0]]), np.zeros((1, 2, 2)), np.ones((1, 2)))
    assert np.isnan(offsets.share).all() and offsets.value.tolist() == [[0, 0]] and not offsets.met[0]

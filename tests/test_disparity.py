from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from exposure_cases import check_batching, close, one_topic, topics, value, without_attribute
from hypothesis import given
from hypothesis import strategies as st

from fairevals.errors import UsageError
from fairevals.measures.base import LOWER
from fairevals.measures.disparity import (
    DCross,
    DGroup,
    DInd,
    group_disparity,
    individual_disparity,
    merit_levels,
    pair_excess,
    worst_excess,
)
from fairevals.measures.merits import MERITS, merit


def slow_individual(exposure, merits):
    violations = [
        max(0.0, exposure[i] / merits[i] - exposure[j] / merits[j])
        for i, j in permutations(range(len(merits)), 2)
        if merits[i] >= merits[j] > 0
    ]
    return sum(violations) / len(violations) if violations else np.nan


def slow_group(exposure, merits, membership, pairs):
    found = []
    for g in range(membership.shape[1]):
        weight = sum(membership[:, g])
        mean_merit = (
            sum(m * w for m, w in zip(merits, membership[:, g], strict=True)) / weight if weight else 0
        )
        if mean_merit > 0:
            mean_exposure = sum(v * w for v, w in zip(exposure, membership[:, g], strict=True)) / weight
            found.append((mean_merit, mean_exposure / mean_merit))
    violations = []
    for one, other in combinations(found, 2):
        (m_i, r_i), (m_j, r_j) = max(one, other), min(one, other)
        violations.append(abs(r_i - r_j) if abs(m_i - m_j) < 1e-12 * m_i else max(0.0, r_i - r_j))
    if not violations or not any(v > 0 and row.any() for v, row in zip(exposure, membership, strict=True)):
        return np.nan
    return max(violations) if pairs == "max" else sum(violations) / len(violations)


@given(topics, st.sampled_from(sorted(MERITS)))
def test_individual_disparity_is_the_loop_over_pairs(topic, name):
    expected = slow_individual(topic.exposure[0].tolist(), merit(topic.grades[0], name).tolist())
    shown = np.any((topic.exposure[0] > 0) & (merit(topic.grades[0], name) > 0))
    assert close(value(DInd(merit=name), topic), expected if shown else np.nan)


@given(topics, st.sampled_from(sorted(MERITS)), st.sampled_from(["mean", "max"]))
def test_group_disparity_is_the_loop_over_groups(topic, name, pairs):
    membership = topic.attribute("A").membership[0]
    expected = slow_group(topic.exposure[0], merit(topic.grades[0], name), membership, pairs)
    assert close(value(DGroup(attr="A", merit=name, pairs=pairs), topic), expected)


@given(topics, st.sampled_from(sorted(MERITS)), st.integers(0, 4095))
def test_cross_disparity_is_the_loop_over_pairs(topic, name, left_out):
    n = topic.grades.shape[1]
    kept = [d for d in range(n) if not left_out >> d & 1]
    v, m = topic.exposure[0], merit(topic.grades[0], name)
    squares = [(v[i] * m[j] - v[j] * m[i]) ** 2 for i, j in permutations(kept, 2)]
    expected = np.mean(squares) if squares and any(v[i] > 0 for i in kept) else np.nan
    topic = replace(topic, candidates=np.isin(np.arange(n), kept)[None])
    assert close(value(DCross(merit=name), topic), expected)


@pytest.mark.parametrize(("exposure", "expected"), [([1.0, 0.25], 0.75), ([0.25, 1.0], 0.0)])
def test_of_groups_of_equal_merit_only_the_first_can_have_too_much(exposure, expected):
    topic = replace(one_topic(1, 2, 2), grades=np.ones((1, 2)), exposure=np.array([exposure]))
    view = replace(topic.attribute("A"), factors=(np.eye(2)[None],))
    topic = replace(topic, attributes={"A": view})
    assert value(DGroup(attr="A", ties="first"), topic) == expected
    assert value(DGroup(attr="A"), topic) == 0.75


@pytest.mark.parametrize("measure", [DInd(), DCross(), DGroup(attr="A"), DGroup(attr="A", pairs="max")])
def test_batches_and_padding_change_nothing(measure):
    check_batching(measure)


def test_equal_merits_count_in_both_orders():
    # Three orders of two of three equal documents: 6 pairs, violations 0.5, 0.8 and 0.3.
    assert np.isclose(individual_disparity(np.array([1.0, 0.5, 0.2]), np.ones(3)), (0.5 + 0.8 + 0.3) / 6)


def test_less_merit_with_more_exposure_per_merit_is_no_violation():
    assert individual_disparity(np.array([1.0, 0.9]), np.array([3.0, 1.0])) == 0.0
    assert individual_disparity(np.array([1.0, 0.1]), np.array([3.0, 1.0])) == pytest.approx(1 / 3 - 0.1)


def test_exposure_in_proportion_to_merit_is_fair():
    merits = np.array([4.0, 2.0, 1.0, 0.5])
    assert individual_disparity(merits / 8, merits) == 0.0
    assert group_disparity(merits / 8, merits, np.eye(2)[[0, 1, 1, 0]]) == 0.0


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(2, 4))
def test_identical_groups_have_no_group_disparity(seed, n, groups):
    rng = np.random.default_rng(seed)
    exposure, merits = rng.random(n), rng.integers(1, 4, size=n).astype(float)
    membership = np.repeat(np.eye(groups), n, axis=0)
    assert group_disparity(np.tile(exposure, groups), np.tile(merits, groups), membership) == 0.0


def test_tied_groups_violate_in_whichever_order_is_unfair():
    # The mean merits are one third of 0.1+0.2+0.3 added in different orders: equal but for the last bit.
    merits = np.array([0.1, 0.2, 0.3, 0.3, 0.2, 0.1])
    two = np.repeat(np.eye(2), 3, axis=0)
    exposure = np.array([0.5, 0.4, 0.3, 0.2, 0.1, 0.1])
    there, back = (group_disparity(exposure[s], merits[s], two) for s in (slice(None), slice(None, None, -1)))
    assert there == pytest.approx((0.4 - 0.4 / 3) / 0.2)
    assert back == pytest.approx(there)


def test_a_group_without_merit_or_documents_is_left_out():
    exposure, merits = np.array([1.0, 0.6, 0.5, 0.4]), np.array([1.0, 1.0, 0.0, 0.0])
    membership = np.eye(4)[[0, 1, 2, 2]]  # group 2 has no merit, group 3 no documents
    assert group_disparity(exposure, merits, membership) == pytest.approx(0.4)
    assert np.isnan(group_disparity(exposure, merits, np.eye(4)[[0, 0, 2, 2]]))


def test_without_a_pair_it_is_undefined_and_not_fair():
    assert np.isnan(individual_disparity(np.array([1.0, 0.5]), np.array([1.0, 0.0])))
    assert np.isnan(individual_disparity(np.zeros((2, 0)), np.zeros((2, 0)))).all()
    topic = one_topic(1, 6, 2, "hard")
    nothing = replace(topic, grades=np.zeros_like(topic.grades))
    assert np.isnan(value(DInd(), nothing))
    assert np.isnan(value(DGroup(attr="A"), nothing))
    assert np.isnan(value(DGroup(attr="A"), without_attribute(topic)))


def test_many_documents_need_neither_much_memory_nor_lose_digits():
    rng = np.random.default_rng(0)
    n = 20_000  # n² floats would be 3.2 GB
    exposure, merits = rng.random(n), rng.integers(1, 5, size=n).astype(float)
    ratios = exposure / merits
    total = pairs = 0.0
    for level in range(1, 5):
        lower = np.sort(ratios[merits <= level])
        here = ratios[merits == level]
        below = np.searchsorted(lower, here)
        sums = np.concatenate([[0.0], np.cumsum(lower)])
        total += float((here * below - sums[below]).sum())
        pairs += len(here) * (len(lower) - 1)
    assert float(individual_disparity(exposure, merits)) == pytest.approx(total / pairs, rel=1e-9)


def violations(ratios, levels):
    """All pairs of one row, one by one: (excess, i, j), with both orders of equal levels."""
    return [
        (max(Fraction(0), Fraction(ratios[i]) - Fraction(ratios[j])), i, j)
        for i, j in permutations(range(len(ratios)), 2)
        if levels[i] >= levels[j] > 0
    ]


ROWS = st.lists(st.tuples(st.sampled_from([0.1, 0.25, 1 / 3, 0.7, 1e-9]), st.integers(0, 3)), max_size=9)


@given(ROWS, st.integers(0, 3))
def test_excess_over_pairs_is_the_loop_over_pairs(row, padding):
    """Exact sums of fractions; equal ratios, equal levels, and items without merit among them."""
    ratios, levels = [r for r, _ in row], [level for _, level in row]
    pairs = violations(ratios, levels)
    slope = [0] * len(row)
    for excess, i, j in pairs:
        slope[i] += excess > 0
        slope[j] -= excess > 0
    padded = [np.array([[*each, *[0] * padding]] * 2) for each in (ratios, levels)]
    total, gradient = pair_excess(padded[0].astype(float), padded[1].astype(np.int64))
    assert total == pytest.approx([float(sum(excess for excess, _, _ in pairs))] * 2, rel=1e-15, abs=0)
    assert gradient.tolist() == [[*slope, *[0] * padding]] * 2
    worst, gradient = worst_excess(padded[0].astype(float), padded[1].astype(np.int64))
    expected = max((excess for excess, _, _ in pairs), default=Fraction(0))
    assert worst == pytest.approx([float(expected)] * 2, rel=1e-15, abs=0)
    ends = {(i, j) for excess, i, j in pairs if excess == expected} if expected else set()
    (plus,), (minus,) = (np.flatnonzero(gradient[0] == sign).tolist() or [None] for sign in (1, -1))
    assert (plus, minus) in ends if ends else plus is minus is None


@pytest.mark.parametrize("pairs", ["mean", "max"])
@pytest.mark.parametrize("ties", ["both", "first"])
@given(seed=st.integers(0, 2**32 - 1), groups=st.integers(2, 6))
def test_group_disparity_with_ties_is_the_loop_over_groups(pairs, ties, seed, groups):
    """Documents are groups here, so that means are exact."""
    rng = np.random.default_rng(seed)
    exposure, merits = rng.random(groups), rng.integers(1, 3, groups).astype(float)
    ratios = exposure / merits
    found = []
    for i, j in combinations(range(groups), 2):
        if merits[i] == merits[j]:
            found.append(abs(ratios[i] - ratios[j]) if ties == "both" else max(0.0, ratios[i] - ratios[j]))
        else:
            i, j = (i, j) if merits[i] > merits[j] else (j, i)
            found.append(max(0.0, ratios[i] - ratios[j]))
    expected = max(found) if pairs == "max" else sum(found) / len(found)
    assert group_disparity(exposure, merits, np.eye(groups), pairs, ties) == pytest.approx(
        expected, rel=1e-14
    )


def test_thousands_of_groups_with_different_merits():
    """Pair by pair and in exact arithmetic for a few rows; 50 rows would have 225 million pairs."""
    rng = np.random.default_rng(1)
    ratios, merits = rng.random((50, 3000)), rng.random((50, 3000))
    levels = merit_levels(merits)
    total, slope = pair_excess(ratios, levels)
    for row in (0, 49):
        r = ratios[row][np.argsort(merits[row])]
        excess = [math.fsum(np.maximum(r[k] - r[:k], 0.0)) for k in range(len(r))]
        assert total[row] == pytest.approx(math.fsum(excess), rel=1e-14)
        alone = pair_excess(ratios[row : row + 1], levels[row : row + 1])
        assert alone[0][0] == total[row] and np.array_equal(alone[1][0], slope[row])
    assert worst_excess(ratios, levels)[0][0] == max(
        r[k] - r[: k + 1].min() for r in [ratios[0][np.argsort(merits[0])]] for k in range(3000)
    )


def test_declarations():
    assert DInd.direction == DGroup.direction == LOWER
    assert DInd().needs_all_documents
    assert str(DGroup(attr="A", attention="rbp(0.8)", cutoff=5)) == "D_group(attr='A',attention='rbp(0.8)')@5"
    for wrong in ({}, {"attr": ""}, {"attr": "A", "pairs": "min"}):
        with pytest.raises(UsageError):
            DGroup(**wrong)
    with pytest.raises(UsageError, match="unknown attribute 'B'"):
        DGroup(attr="B").of_exposure(one_topic(1, 3))

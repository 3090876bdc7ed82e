from __future__ import annotations

from math import log2, sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from fairevals.measures.divergences import DIVERGENCES, ORDINAL

NAMES = sorted(DIVERGENCES)
SYMMETRIC = sorted(set(NAMES) - {"RNOD"})


def value(name, p, target):
    return float(DIVERGENCES[name](np.array(p, float), np.array(target, float)))


def distributions(groups, *, zeros=True):
    """Shares of whole numbers, so that different distributions differ by more than rounding."""
    share = st.integers(0 if zeros else 1, 20)
    return st.lists(share, min_size=groups, max_size=groups).filter(any).map(lambda n: np.array(n) / sum(n))


pairs = st.integers(1, 7).flatmap(lambda c: st.tuples(distributions(c), distributions(c)))


def order_aware(p, target):
    """OD as the paper writes it: an explicit mean of distance-weighted sums."""
    groups = range(len(p))
    within = [i for i in groups if target[i] > 0]
    return sum(sum(abs(i - j) * (p[j] - target[j]) ** 2 for j in groups) for i in within) / len(within)


# --- By hand ---


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("p", [[1.0], [0.3, 0.7], [1, 0, 0], [0.1, 0.2, 0.3, 0.4], [1 / 3, 1 / 3, 1 / 3]])
def test_equal_distributions_are_at_exactly_zero(name, p):
    assert value(name, p, p) == 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("groups", [2, 3, 4, 9])
def test_opposite_ends_are_at_exactly_one(name, groups):
    low, high = np.eye(groups)[0], np.eye(groups)[-1]
    assert value(name, low, high) == 1
    assert value(name, high, low) == 1


# All mass at one end, the target uniform over four groups: differences (3/4, −1/4, −1/4, −1/4).
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("JSD", (log2(1 / (5 / 8)) + 0.25 * log2(0.25 / (5 / 8)) + 3 * 0.25 * log2(0.25 / 0.125)) / 2),
        ("NMD", (3 / 4 + 2 / 4 + 1 / 4) / 3),
        # DW = (6, 12, 20, 30)/16, all four groups in the target.
        ("RNOD", sqrt((6 + 12 + 20 + 30) / 16 / 4 / 3)),
        # The other way only the first group counts: DW_1 = 6/16.
        ("RSNOD", sqrt(((6 + 12 + 20 + 30) / 16 / 4 + 6 / 16) / 2 / 3)),
        ("NVD", 3 / 4),
        ("RNSS", sqrt((9 + 1 + 1 + 1) / 16 / 2)),
    ],
)
def test_mass_at_one_end_against_uniform(name, expected):
    assert value(name, [1, 0, 0, 0], [0.25] * 4) == pytest.approx(expected, rel=1e-14)
    assert value(name, [0, 0, 0, 1], [0.25] * 4) == pytest.approx(expected, rel=1e-14)


# Differences (1/2, 0, −1/2, 0, 0), target on groups 1 and 3 of five (so groups outside the target count too).
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("JSD", (log2(4 / 3) + 0.5 * log2(2 / 3) + 0.5) / 2),
        ("NMD", (1 / 2 + 1 / 2) / 4),
        ("RNOD", sqrt(1 / 2 / 4)),
        ("RSNOD", sqrt(1 / 2 / 4)),
        ("NVD", 1 / 2),
        ("RNSS", sqrt(1 / 4)),
    ],
)
def test_half_of_the_target_missed(name, expected):
    assert value(name, [1, 0, 0, 0, 0], [0.5, 0, 0.5, 0, 0]) == pytest.approx(expected, rel=1e-14)


def test_rnod_means_over_the_groups_of_the_target_only():
    # The differences are (1, 1/2, 1/2) either way; which rows of |i−j| are averaged is not.
    p, target = [0, 0.5, 0.5], [1, 0, 0]
    assert value("RNOD", p, target) == pytest.approx(sqrt((0.25 + 2 * 0.25) / 2))
    assert value("RNOD", target, p) == pytest.approx(sqrt(((1 + 0.25) + (2 + 0.25)) / 2 / 2))


def test_rnod_is_cut_at_one_where_its_formula_exceeds_it():
    # The target has very little mass in two far groups and most next to the end, where `p` is: OD → 13/3.
    p, target = np.array([0, 0, 0, 0, 1.0]), np.array([0.001, 0.001, 0, 0.998, 0])
    assert order_aware(p, target) > 4
    assert value("RNOD", p, target) == 1
    p = np.array([0.001, 0.001, 0, 0, 0.998])
    assert (order_aware(p, target) + order_aware(target, p)) / 2 > 4
    assert value("RSNOD", p, target) == 1


# --- Properties ---


@given(pair=pairs)
def test_in_range_and_zero_only_for_equal(pair):
    for name in NAMES:
        result = value(name, *pair)
        assert 0 <= result <= 1, name
        assert (result == 0) == np.array_equal(*pair), name


@given(pair=pairs)
def test_all_but_rnod_are_symmetric(pair):
    for name in SYMMETRIC:
        assert value(name, *pair) == value(name, *pair[::-1]), name


@given(pair=pairs, data=st.data())
def test_order_of_nominal_groups_does_not_matter(pair, data):
    order = data.draw(st.permutations(range(len(pair[0]))))
    for name in sorted(set(NAMES) - ORDINAL):
        assert value(name, *(p[order] for p in pair)) == pytest.approx(value(name, *pair), abs=1e-12), name


@given(pair=pairs)
def test_reversing_the_groups_changes_nothing(pair):
    for name in NAMES:
        assert value(name, *(p[::-1] for p in pair)) == pytest.approx(value(name, *pair), abs=1e-7), name


@given(groups=st.integers(3, 8), data=st.data())
def test_a_nearer_miss_is_better_for_ordinal_divergences(groups, data):
    wanted, near, far = data.draw(st.permutations(range(groups)))[:3]
    assume(abs(near - wanted) < abs(far - wanted))
    p = np.eye(groups)
    for name in NAMES:
        nearer, farther = value(name, p[near], p[wanted]), value(name, p[far], p[wanted])
        assert (nearer < farther) if name in ORDINAL else (nearer == farther == 1), name


@given(pair=pairs)
def test_jsd_is_the_square_of_scipys_distance(pair):
    assert value("JSD", *pair) == pytest.approx(jensenshannon(*pair, base=2) ** 2, abs=1e-14)


@given(pair=pairs)
def test_nmd_is_scipys_earth_movers_distance_over_its_maximum(pair):
    groups = np.arange(len(pair[0]))
    distance = wasserstein_distance(groups, groups, *pair)
    assert value("NMD", *pair) == pytest.approx(distance / max(len(groups) - 1, 1), abs=1e-14)


@given(pair=pairs)
def test_order_aware_divergences_are_the_papers_sums(pair):
    p, target = pair
    steps = max(len(p) - 1, 1)
    one, other = order_aware(p, target), order_aware(target, p)
    assert value("RNOD", p, target) == pytest.approx(min(sqrt(one / steps), 1), abs=1e-12)
    assert value("RSNOD", p, target) == pytest.approx(min(sqrt((one + other) / 2 / steps), 1), abs=1e-12)


# --- Arrays ---


@pytest.mark.parametrize("name", NAMES)
def test_a_value_does_not_depend_on_its_neighbours(name):
    """To the last bit: any axes before the group, any layout in memory, the target broadcast or not."""
    rng = np.random.default_rng(3)
    for groups in (2, 3, 4, 9, 17):
        p, target = rng.dirichlet(np.ones(groups), (5, 6, 7)), rng.dirichlet(np.ones(groups), (5, 1, 1))
        p[..., 1:] *= rng.random((*p.shape[:-1], groups - 1)) < 0.7
        p /= p.sum(-1, keepdims=True)
        div = DIVERGENCES[name]
        whole = div(p, target)
        assert whole.shape == (5, 6, 7)
        single = [div(p[i], target[i[0], 0, 0]) for i in np.ndindex(5, 6, 7)]
        assert np.array_equal(whole.ravel(), single)
        assert np.array_equal(whole, div(np.asfortranarray(p), np.broadcast_to(target, p.shape)))
        assert np.array_equal(whole[:, ::2], div(p[:, ::2], target))


@pytest.mark.parametrize("name", NAMES)
def test_nan_in_nan_out_and_only_there(name):
    nothing, p = np.full(3, np.nan), np.array([1.0, 0.0, 0.0])
    div = DIVERGENCES[name]
    assert np.isnan(div(np.stack([nothing, p]), p)).tolist() == [True, False]
    assert np.isnan(div(p, np.stack([nothing, p]))).tolist() == [True, False]
    assert np.isnan(div(np.array([np.nan]), np.array([1.0])))


@pytest.mark.parametrize("name", NAMES)
def test_tiny_probabilities_do_not_overflow(name):
    assert value(name, [1, 5e-324, 0], [1, 0, 5e-324]) == pytest.approx(0, abs=1e-150)


def test_rounding_makes_no_jsd_negative():
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(3), 1000)
    near = p * (1 + 1e-9 * rng.standard_normal(p.shape))
    assert np.all(DIVERGENCES["JSD"](p, near) >= 0)


@pytest.mark.parametrize("name", sorted(ORDINAL))
def test_many_groups_need_little_memory(name):
    """Distances between all pairs of groups would be 80 GB. All mass one step away: by hand, from the formulas."""
    count, at = 100_000, 40_000
    p, target = np.zeros(count), np.zeros(count)
    p[at + 1], target[at] = 1.0, 1.0
    # RNOD: Σ_j |at−j|·(p_j−p*_j)² = 1; RSNOD: the same from the other side.
    expected = 1 / (count - 1) if name == "NMD" else sqrt(1 / (count - 1))
    assert value(name, p, target) == pytest.approx(expected)


def test_names():
    assert sorted(ORDINAL) == ["NMD", "RNOD", "RSNOD"]
    assert set(DIVERGENCES) == {"JSD", "NMD", "RNOD", "RSNOD", "NVD", "RNSS"}

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefix_cases import ranked

from fairevals.collection import AttributeView, Ranked
from fairevals.errors import UsageError
from fairevals.measures.base import LOWER
from fairevals.measures.prefix import RKL, RND, RRD, largest_prefix_sum

ALL = [RND, RKL, RRD]


def value(measure, shares):
    return float(measure.of_ranking(ranked(shares))[0])


def slow_deviation(kind, count, size, total, length):
    if kind is RND:
        return abs(count / size - total / length)
    if kind is RKL:
        q = total / length
        p = min(max(count / size, min(0.001, q)), max(0.999, q))
        return p * math.log2(p / q) + (1 - p) * math.log2((1 - p) / (1 - q))
    ratio = count / (size - count) if size - count > 1e-9 else 0.0
    return max(0.0, total / (length - total) - ratio)


def slow_sum(kind, shares, step, reach):
    total, length = sum(shares), len(shares)
    return sum(
        slow_deviation(kind, sum(shares[:i]), i, total, length) / math.log2(i + 1)
        for i in range(1, reach + 1)
        if i % step == 0
    )


def slow(kind, shares, step, cutoff, normalise):
    """By the definition; the normaliser by trying all orders (hard lists only)."""
    kept = [s for s in shares if s is not None]
    reach = sum(s is not None for s in shares[:cutoff])
    if not 1e-9 < sum(kept) < len(kept) - 1e-9 or len(kept) <= step or reach < step:
        return math.nan
    deviations = slow_sum(kind, kept, step, reach)
    return (
        deviations / slow_largest(kind, int(sum(kept)), len(kept), step, reach) if normalise else deviations
    )


def slow_largest(kind, protected, length, step, reach):
    orders = (
        [float(i in chosen) for i in range(length)] for chosen in combinations(range(length), protected)
    )
    return max(slow_sum(kind, order, step, reach) for order in orders)


hard = st.lists(st.sampled_from([0.0, 1.0, 0.0, 1.0, None]), min_size=1, max_size=11)
soft = st.lists(st.one_of(st.none(), st.sampled_from([0.0, 1.0]), st.floats(0, 1)), min_size=1, max_size=25)


@pytest.mark.parametrize("kind", ALL)
@given(shares=hard, step=st.integers(1, 4), cutoff=st.sampled_from([None, 3, 6]))
def test_hard_lists_against_all_orders(kind, shares, step, cutoff):
    measure = kind(attr="A", protected="p", step=step, cutoff=cutoff)
    expected = slow(kind, shares, step, cutoff, normalise=True)
    assert np.isclose(value(measure, shares), expected, rtol=1e-10, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize("kind", ALL)
@given(shares=soft, step=st.integers(1, 10), cutoff=st.sampled_from([None, 10, 17]))
def test_soft_lists_against_the_loop(kind, shares, step, cutoff):
    measure = kind(attr="A", protected="p", step=step, cutoff=cutoff, normalise=False)
    expected = slow(kind, shares, step, cutoff, normalise=False)
    assert np.isclose(value(measure, shares), expected, rtol=1e-9, atol=1e-9, equal_nan=True)


def test_published_values():
    # Half of 100 documents protected and ranked first; the authors' demonstration prints these.
    first = [1.0] * 50 + [0.0] * 50
    for kind, published in ((RKL, 1.15901724032), (RND, 0.660066334446), (RRD, 1.08152800722)):
        assert value(kind(attr="A", protected="p", normalise=False), first) == pytest.approx(
            published, abs=5e-12
        )


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(
    ("length", "protected", "step"), [(12, 3, 4), (13, 6, 4), (12, 9, 3), (14, 2, 5), (11, 5, 1)]
)
def test_normaliser_is_the_worst_of_all_orders(kind, length, protected, step):
    for reach in (length, length - 3):
        deviation = kind(attr="A", protected="p").deviation
        largest = largest_prefix_sum(deviation, float(protected), length, reach, step)
        assert largest == pytest.approx(slow_largest(kind, protected, length, step, reach), rel=1e-12)


@pytest.mark.parametrize("kind", ALL)
def test_only_for_the_ratio_can_a_mixed_order_be_the_worst(kind):
    deviation = kind(attr="A", protected="p").deviation
    exceeded = False
    for length, step, reach in ((17, 7, 14), (12, 3, 12), (40, 10, 40), (100, 10, 50)):
        for protected in range(1, length):
            first = [1.0] * protected + [0.0] * (length - protected)
            extremes = max(slow_sum(kind, order, step, reach) for order in (first, first[::-1]))
            largest = largest_prefix_sum(deviation, float(protected), length, reach, step)
            assert largest >= extremes - 1e-12
            exceeded |= largest > extremes + 1e-6
    assert exceeded == (kind is RRD)


@pytest.mark.parametrize(("kind", "parameters"), [(RND, {}), (RKL, {"floor": 0}), (RRD, {})])
@given(shares=st.lists(st.floats(0, 1), min_size=4, max_size=12), step=st.integers(1, 3))
def test_no_soft_list_exceeds_the_normaliser(kind, parameters, shares, step):
    measure = kind(attr="A", protected="p", step=step, normalise=False, **parameters)
    total, n = round(sum(shares), 9), len(shares)
    if 1e-6 < total < n - 1e-6:
        largest = largest_prefix_sum(measure.deviation, total, n, n, step)
        assert value(measure, shares) <= largest * (1 + 1e-6) + 1e-7


def test_floor_of_the_divergence():
    first = [1.0] * 10 + [0.0] * 10
    exact = RKL(attr="A", protected="p", floor=0, normalise=False)
    assert value(exact, first) == pytest.approx(1 / math.log2(11))  # one bit at the prefix of 10
    assert value(RKL(attr="A", protected="p", normalise=False), first) < value(exact, first)
    # The share of this list is below the floor; prefixes with the same share have deviation 0.
    rare = [1.0, *[0.0] * 1499, 1.0, *[0.0] * 1499]
    assert value(RKL(attr="A", protected="p", step=1500, normalise=False), rare) == pytest.approx(
        0, abs=1e-12
    )


@pytest.mark.parametrize("kind", ALL)
def test_even_lists_are_fair(kind):
    assert value(kind(attr="A", protected="p"), [1.0, 0.0] * 20) == pytest.approx(0, abs=1e-12)
    assert value(kind(attr="A", protected="p"), [0.3] * 40) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "early"), [(RND, 1.0), (RKL, 1.0), (RRD, 1.08152800722 / 1.4078088261544663)]
)
def test_half_protected_at_either_end(kind, early):
    measure = kind(attr="A", protected="p")
    assert value(measure, [0.0] * 50 + [1.0] * 50) == 1.0
    assert value(measure, [1.0] * 50 + [0.0] * 50) == pytest.approx(early)


@pytest.mark.parametrize("kind", ALL)
def test_undefined(kind):
    measure = kind(attr="A", protected="p")
    for shares in ([1.0] * 30, [0.0] * 30, [None] * 30, [1.0, 0.0] * 4, [1.0, 0.0] * 5):
        assert math.isnan(value(measure, shares))
        assert math.isnan(value(kind(attr="A", protected="p", normalise=False), shares))
    assert math.isnan(value(kind(attr="A", protected="p", cutoff=9), [1.0, 0.0] * 10))
    assert not math.isnan(value(kind(attr="A", protected="p", cutoff=10), [1.0, 0.0] * 10))
    assert np.isnan(measure.of_ranking(ranked([1.0, 0.0] * 10, applies=False))).all()


@pytest.mark.parametrize("kind", ALL)
def test_cutoff_ends_the_prefixes_and_keeps_the_list(kind):
    shares = [0.0] * 20 + [1.0] * 20 + [0.0] * 20
    measure = kind(attr="A", protected="p", cutoff=25, normalise=False)
    assert value(measure, shares) == pytest.approx(slow_sum(kind, shares, 10, 25))
    assert measure.depth is None


@pytest.mark.parametrize("kind", ALL)
def test_batches_samples_and_padding_change_nothing(kind):
    rng = np.random.default_rng(1)
    lists = [rng.choice([0.0, 1.0, 0.25, None], size=n).tolist() for n in (21, 25, 40, 23, 40)]
    measure = kind(attr="A", protected="p")
    alone = np.array([value(measure, shares) for shares in lists])
    assert np.isfinite(alone).all()
    for width in (40, 47, 100):
        np.testing.assert_array_equal(measure.of_ranking(ranked(*lists, width=width)), alone)
    # Topics × samples, the attribute's target and `applies` with one sample only.
    block = ranked(*lists[:4], width=40)
    view = block.attribute("A")
    folded = AttributeView(
        view.groups,
        False,
        (view.membership.reshape(2, 2, 40, 2),),
        np.full((2, 1, 2), 0.5),
        np.array([[True], [False]]),
    )
    samples = Ranked(
        np.zeros((2, 2, 40)), block.present.reshape(2, 2, 40), np.zeros((2, 1, 0)), 1.0, {"A": folded}
    )
    np.testing.assert_array_equal(measure.of_ranking(samples), [alone[:2], [np.nan, np.nan]])


def test_declarations():
    for kind in ALL:
        assert kind.direction == LOWER
        wrong = ({}, {"attr": "A"}, {"attr": "A", "protected": "p", "step": 0})
        for parameters in wrong:
            with pytest.raises(UsageError):
                kind(**parameters)
        with pytest.raises(UsageError, match="unknown group 'z'"):
            kind(attr="A", protected="z").of_ranking(ranked([1.0, 0.0] * 10))

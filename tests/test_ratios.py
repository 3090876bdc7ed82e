from __future__ import annotations

import math
import pickle
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from exposure_cases import check_batching, close, one_topic, topics, value, without_attribute
from hypothesis import given
from hypothesis import strategies as st

from fairevals.errors import UsageError
from fairevals.measures.base import LOWER, near
from fairevals.measures.merits import MERITS, merit
from fairevals.measures.ratios import DP, EUR, RUR

ALL = [DP, EUR, RUR]


def slow(kind, exposure, merits, membership):
    sides = []
    for protected in (True, False):
        weights = [row[0] if protected else sum(row[1:]) for row in membership.tolist()]
        size = sum(weights)
        if not size:
            return math.nan
        v = sum(w * x for w, x in zip(weights, exposure, strict=True)) / size
        m = sum(w * x for w, x in zip(weights, merits, strict=True)) / size
        vm = sum(w * x * y for w, x, y in zip(weights, exposure, merits, strict=True)) / size
        if kind is not DP and m == 0:
            return math.nan
        sides.append(v if kind is DP else v / m if kind is EUR else vm / m)
    return math.log(sides[0] / sides[1]) if min(sides) > 0 else math.nan


@pytest.mark.parametrize("kind", ALL)
@given(topic=topics, name=st.sampled_from(sorted(MERITS)))
def test_they_are_the_loops(kind, topic, name):
    membership = topic.attribute("A").membership[0]
    expected = slow(kind, topic.exposure[0].tolist(), merit(topic.grades[0], name).tolist(), membership)
    given_merit = {} if kind is DP else {"merit": name}
    assert close(value(kind(attr="A", protected="a", **given_merit), topic), expected)


def slow_range(kind, exposure, merits, membership):
    """The largest |difference| over all pairs of groups that have documents (and merit)."""
    logarithms = []
    for weights in membership.T.tolist():
        size = sum(weights)
        if not size:
            continue
        v = sum(w * x for w, x in zip(weights, exposure, strict=True)) / size
        m = sum(w * x for w, x in zip(weights, merits, strict=True)) / size
        vm = sum(w * x * y for w, x, y in zip(weights, exposure, merits, strict=True)) / size
        if kind is not DP and m == 0:
            continue
        quotient = v if kind is DP else v / m if kind is EUR else vm / m
        logarithms.append(math.log(quotient) if quotient > 0 else None)
    if len(logarithms) < 2 or None in logarithms:
        return math.nan
    return max(abs(a - b) for a, b in combinations(logarithms, 2))


@pytest.mark.parametrize("kind", ALL)
@given(topic=topics, name=st.sampled_from(sorted(MERITS)))
def test_without_a_protected_group_they_are_the_loops_over_pairs(kind, topic, name):
    membership = topic.attribute("A").membership[0]
    exposure, merits = topic.exposure[0].tolist(), merit(topic.grades[0], name).tolist()
    given_merit = {} if kind is DP else {"merit": name}
    result = value(kind(attr="A", **given_merit), topic)
    assert close(result, slow_range(kind, exposure, merits, membership))
    assert not result < 0


@pytest.mark.parametrize("kind", ALL)
def test_of_two_groups_the_largest_difference_is_the_distance_from_0(kind):
    for seed in range(20):
        topic = one_topic(seed, 9, 2)
        assert close(value(kind(attr="A"), topic), abs(value(kind(attr="A", protected="b"), topic)))


def test_a_worked_case_of_three_groups():
    """Mean exposures 0.9, 0.3 and 0.45, mean merits 3, 1 and 1: ln 3 of exposure, ln 1.5 of exposure per merit."""
    topic = one_topic(0, 4, 3)
    rows = np.array([[[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]], float)
    attribute = replace(topic.attribute("A"), factors=(rows,))
    arrays = {"exposure": np.array([[0.9, 0.3, 0.6, 0.3]]), "grades": np.array([[3.0, 1.0, 1.0, 1.0]])}
    topic = replace(topic, attributes={"A": attribute}, **arrays)
    assert value(DP(attr="A"), topic) == pytest.approx(math.log(3))
    assert value(EUR(attr="A"), topic) == pytest.approx(math.log(1.5))
    assert value(RUR(attr="A"), topic) == pytest.approx(math.log(0.9 / 0.3))
    for order in ([2, 0, 1], [1, 0, 2]):
        turned = replace(topic, attributes={"A": replace(attribute, factors=(rows[..., order],))})
        assert value(EUR(attr="A"), turned) == pytest.approx(math.log(1.5))
    even = replace(topic, exposure=np.array([[0.6, 0.2, 0.1, 0.3]]))
    assert value(EUR(attr="A"), even) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("kind", ALL)
def test_a_hidden_group_is_not_left_out(kind):
    """Or a run would gain by hiding the group that fares worst."""
    topic = one_topic(0, 3, 3)
    attribute = replace(topic.attribute("A"), factors=(np.eye(3)[None],))
    arrays = {"exposure": np.array([[0.5, 0.4, 0.0]]), "grades": np.ones((1, 3))}
    topic = replace(topic, attributes={"A": attribute}, **arrays)
    assert math.isnan(value(kind(attr="A"), topic))
    nobody = replace(topic, exposure=np.zeros((1, 3)))
    assert math.isnan(value(kind(attr="A"), nobody))
    absent = replace(
        topic, candidates=np.array([[True, True, False]])
    )  # nobody of the third group could be shown
    assert value(kind(attr="A"), absent) == pytest.approx(math.log(0.5 / 0.4))
    alone = replace(topic, candidates=np.array([[True, False, False]]))
    assert math.isnan(value(kind(attr="A"), alone))
    assert math.isnan(value(kind(attr="A"), without_attribute(absent)))


@pytest.mark.parametrize("kind", ALL)
def test_without_a_protected_group_lower_is_better(kind):
    assert kind(attr="A").direction == kind(attr="A", cutoff=5).direction == LOWER
    assert (kind(attr="A") @ 5).direction == LOWER
    assert pickle.loads(pickle.dumps(kind(attr="A"))).direction == LOWER
    assert kind(attr="A", protected="a").direction == kind.direction == near(0.0)
    assert str(kind(attr="A", cutoff=5)) == f"{kind.name}(attr='A')@5"
    check_batching(kind(attr="A"), "soft")


def two_groups(exposure, grades):
    """The first half of the documents in group a, the other in b."""
    n = len(exposure)
    topic = one_topic(0, n, 2)
    attribute = replace(topic.attribute("A"), factors=(np.repeat(np.eye(2), n // 2, axis=0)[None],))
    arrays = {"exposure": np.array([exposure], float), "grades": np.array([grades], float)}
    return replace(topic, attributes={"A": attribute}, **arrays)


def test_worked_case():
    topic = two_groups([1.0, 0.5, 0.4, 0.2], [2, 1, 1, 1])
    assert value(DP(attr="A", protected="a"), topic) == pytest.approx(math.log(0.75 / 0.3))
    assert value(EUR(attr="A", protected="a"), topic) == pytest.approx(math.log((0.75 / 1.5) / (0.3 / 1)))
    assert value(RUR(attr="A", protected="a"), topic) == pytest.approx(math.log((1.25 / 1.5) / (0.3 / 1)))


@pytest.mark.parametrize("kind", ALL)
def test_the_other_side_sees_the_opposite_sign_and_equal_sides_see_zero(kind):
    topic = two_groups([1.0, 0.5, 0.4, 0.2], [2, 1, 1, 1])
    there, back = (value(kind(attr="A", protected=g), topic) for g in "ab")
    assert there == pytest.approx(-back)
    assert value(kind(attr="A", protected="a"), two_groups([0.5, 0.3, 0.5, 0.3], [2, 1, 2, 1])) == 0.0


def test_the_rest_is_all_other_groups_together():
    topic = one_topic(7, 12, 3, "hard")
    attribute = topic.attribute("A")
    merged = np.stack([attribute.membership[..., 1], attribute.membership[..., [0, 2]].sum(-1)], axis=-1)
    pooled = replace(topic, attributes={"A": replace(attribute, groups=("b", "others"), factors=(merged,))})
    for kind in ALL:
        measure = kind(attr="A", protected="b")
        assert value(measure, topic) == pytest.approx(value(measure, pooled))


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("protected", ["a", "b"])
def test_undefined_never_infinite(kind, protected):
    measure = kind(attr="A", protected=protected)
    assert np.isnan(value(measure, two_groups([1.0, 0.5, 0.0, 0.0], [1, 1, 1, 1])))
    assert np.isnan(value(measure, two_groups([0.0, 0.0, 0.0, 0.0], [1, 1, 1, 1])))
    assert np.isnan(value(measure, two_groups([1.0, 0.5, 0.3, 0.2], [1, 1, 0, 0]))) == (kind is not DP)
    one_sided = one_topic(0, 4, 2)
    everyone = replace(one_sided.attribute("A"), factors=(np.broadcast_to([1.0, 0.0], (1, 4, 2)),))
    assert np.isnan(value(measure, replace(one_sided, attributes={"A": everyone})))
    assert np.isnan(value(measure, without_attribute(two_groups([1.0, 0.5, 0.3, 0.2], [1, 1, 1, 1]))))


@pytest.mark.parametrize("kind", ALL)
def test_batches_and_padding_change_nothing(kind):
    check_batching(kind(attr="A", protected="b"))


def test_declarations():
    for kind in ALL:
        assert kind.direction == near(0.0)
        assert kind.direction.cost(0.1) < kind.direction.cost(-0.2)
        with pytest.raises(UsageError):
            kind(attr="A", protected="")
        with pytest.raises(UsageError, match="unknown group 'z'"):
            kind(attr="A", protected="z").of_exposure(one_topic(0, 3))

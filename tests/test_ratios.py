from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from exposure_cases import check_batching, close, one_topic, topics, value, without_attribute
from hypothesis import given
from hypothesis import strategies as st

from fairevals.errors import UsageError
from fairevals.measures.base import MERITS, merit, near
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


def two_groups(exposure, grades):
    """The first half of the documents in group a, the other in b."""
    n = len(exposure)
    topic = one_topic(0, n, 2)
    attribute = replace(topic.attribute("A"), membership=np.repeat(np.eye(2), n // 2, axis=0)[None])
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
    pooled = replace(topic, attributes={"A": replace(attribute, groups=("b", "others"), membership=merged)})
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
    everyone = replace(one_sided.attribute("A"), membership=np.broadcast_to([1.0, 0.0], (1, 4, 2)))
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
            kind(attr="A")
        with pytest.raises(UsageError, match="unknown group 'z'"):
            kind(attr="A", protected="z").of_exposure(one_topic(0, 3))

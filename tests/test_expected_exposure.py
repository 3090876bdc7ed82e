from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from exposure_cases import check_batching, close, one_topic, stack, topics, value, without_attribute
from hypothesis import given
from hypothesis import strategies as st

from fairevals.attention import parse_attention
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER, LOWER
from fairevals.measures.expected_exposure import EED, EEL, EER, target_exposure

MODELS = ["log2", "trecfair", "rbp(0.8)", "[3, 1, 0.5]"]


def slow_target(grades, weights):
    """Each document's mean attention over the ranks that its grade's documents occupy in the ideal order."""
    ideal = sorted(grades, reverse=True)
    weights = [*weights, *[0.0] * len(grades)]
    ranks = {g: [k for k, other in enumerate(ideal) if other == g] for g in grades}
    return [sum(weights[k] for k in ranks[g]) / len(ranks[g]) for g in grades]


def slow(exposure, target, membership):
    if membership is not None:
        if not membership.any():
            return np.nan, np.nan, np.nan
        exposure, target = (
            [sum(x * w for x, w in zip(values, column, strict=True)) for column in membership.T]
            for values in (exposure, target)
        )
    pairs = list(zip(exposure, target, strict=True))
    return sum((e - t) ** 2 for e, t in pairs), sum(e * e for e, _ in pairs), sum(e * t for e, t in pairs)


@given(topics, st.sampled_from(MODELS), st.sampled_from([None, 1, 3, 50]), st.sampled_from([None, "A"]))
def test_they_are_the_loops(topic, attention, cutoff, attr):
    n = topic.grades.shape[1]
    weights = parse_attention(attention).weights(min(cutoff or n, n)).tolist()
    target = slow_target(topic.grades[0].tolist(), weights)
    membership = topic.attribute("A").membership[0] if attr else None
    expected = slow(topic.exposure[0].tolist(), target, membership)
    for measure, wanted in zip((EEL, EED, EER), expected, strict=True):
        assert close(value(measure(attention=attention, attr=attr, cutoff=cutoff), topic), wanted)


@given(topics, st.sampled_from([None, 4]), st.sampled_from([None, "A"]))
def test_loss_is_disparity_less_twice_relevance_and_a_constant(topic, cutoff, attr):
    loss, disparity, relevance = (value(m(attr=attr, cutoff=cutoff), topic) for m in (EEL, EED, EER))
    measure = EED(attr=attr, cutoff=cutoff)
    constant = value(measure, replace(topic, exposure=measure.target(topic)))
    assert close(loss, disparity - 2 * relevance + constant)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.sampled_from(["log2", "cascade(0.9,0.5)"]))
def test_target_is_the_mean_over_all_ideal_orders(grades, attention):
    grades = np.array(grades, dtype=float)
    n = len(grades)
    ideal = [order for order in permutations(range(n)) if (np.diff(grades[list(order)]) <= 0).all()]
    expected = np.zeros(n)
    for order in ideal:
        expected[list(order)] += parse_attention(attention).weights_given(grades[list(order)]) / len(ideal)
    topic = replace(one_topic(0, n), grades=grades[None])
    np.testing.assert_allclose(EEL(attention=attention).target(topic)[0], expected, rtol=1e-12)


def test_the_ideal_policy_has_no_loss():
    topic = one_topic(5, 9)
    ideal = replace(topic, exposure=EEL(cutoff=4).target(topic))
    assert value(EEL(cutoff=4), ideal) == 0.0
    assert value(EEL(cutoff=4, attr="A"), ideal) == 0.0
    assert value(EEL(cutoff=4), topic) > 0


def test_target_gives_out_all_attention_and_none_beyond_the_cutoff():
    grades = np.array([[0.0, 3.0, 1.0, 1.0, 0.0, 0.0]])
    present = np.array([[True, True, True, True, True, False]])
    weights = parse_attention("log2").weights(2)
    target = target_exposure(grades, present, weights)
    assert target.sum() == pytest.approx(weights.sum())
    assert target[0].tolist() == [0.0, 1.0, *[weights[1] / 2] * 2, 0.0, 0.0]


def test_judged_documents_that_were_not_retrieved_are_in_the_ideal_order():
    topic = one_topic(2, 2)
    topic = replace(topic, grades=np.array([[0.0, 1.0]]), exposure=np.array([[1.0, 0.0]]))
    assert value(EEL(cutoff=1), topic) == 2.0
    assert value(EER(cutoff=1), topic) == 0.0


@pytest.mark.parametrize("attr", [None, "A"])
@pytest.mark.parametrize("cutoff", [None, 6])
@pytest.mark.parametrize("attention", ["log2", "cascade(0.9,0.5)"])
def test_batches_and_padding_change_nothing(attr, cutoff, attention):
    for measure in (EEL, EED, EER):
        check_batching(measure(attr=attr, cutoff=cutoff, attention=attention))


def test_undefined():
    topic = one_topic(4, 5)
    assert np.isnan(value(EEL(attr="A"), without_attribute(topic)))
    assert not np.isnan(value(EEL(), without_attribute(topic)))
    unmapped = replace(topic.attribute("A"), membership=np.zeros((1, 5, 3)))
    assert np.isnan(value(EED(attr="A"), replace(topic, attributes={"A": unmapped})))
    padding = replace(stack([topic], 5), present=np.zeros((1, 5), bool), exposure=np.zeros((1, 5)))
    for measure in (EEL, EED, EER):
        assert np.isnan(value(measure(), padding))


def test_declarations():
    assert (EEL.direction, EED.direction, EER.direction) == (LOWER, LOWER, HIGHER)
    assert EEL(attr="A").attributes_used() == ("A",)
    assert EEL().attributes_used() == ()
    with pytest.raises(UsageError):
        EEL(attr="")

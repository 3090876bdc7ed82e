from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from exposure_cases import check_batching, close, one_topic, stack, topics, value, without_attribute
from hypothesis import given
from hypothesis import strategies as st

import fairevals as fe
from fairevals.attention import parse_attention
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER, LOWER
from fairevals.measures.expected_exposure import EED, EEL, EER, UEXP, ideal_exposure, target_exposure

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
    constant = value(measure, replace(topic, exposure=ideal_exposure(topic, parse_attention("log2"), cutoff)))
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
    np.testing.assert_allclose(
        ideal_exposure(topic, parse_attention(attention), None)[0], expected, rtol=1e-12
    )


def test_the_ideal_policy_has_no_loss():
    topic = one_topic(5, 9)
    ideal = replace(topic, exposure=ideal_exposure(topic, parse_attention("log2"), 4))
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


# --- The task's target, and relevant documents only: TREC Fair Ranking ---


def slow_trec_fair(topic, weights, relevant_only):
    """TREC 2022's Task 2 for groups: target shares of all attention, exposure of relevant documents."""
    attribute, shown = topic.attribute("A"), []
    for e, grade in zip(topic.exposure[0].tolist(), topic.grades[0].tolist(), strict=True):
        shown.append(e if grade > 0 or not relevant_only else 0.0)
    if not attribute.membership[0].any():
        return np.nan, np.nan, np.nan
    exposure = [
        sum(e * w for e, w in zip(shown, column, strict=True)) for column in attribute.membership[0].T
    ]
    pairs = [(e, t * sum(weights)) for e, t in zip(exposure, attribute.target[0].tolist(), strict=True)]
    return sum((e - t) ** 2 for e, t in pairs), sum(e * e for e, _ in pairs), sum(e * t for e, t in pairs)


@given(topics, st.sampled_from(MODELS), st.sampled_from([1, 3, 20]), st.booleans())
def test_the_target_of_the_task_is_the_loop(topic, attention, cutoff, relevant_only):
    expected = slow_trec_fair(topic, parse_attention(attention).weights(cutoff).tolist(), relevant_only)
    given = {"attr": "A", "target": "task", "relevant_only": relevant_only, "attention": attention}
    for measure, wanted in zip((EEL, EED, EER), expected, strict=True):
        assert close(value(measure(**given, cutoff=cutoff), topic), wanted)


TREC = {"attr": "G", "target": "task", "relevant_only": True, "attention": "trecfair", "cutoff": 4}


def test_a_worked_topic_of_trec_fair():
    """Two sampled rankings of four pages; r1 (x) and r2 (half x, half y) are relevant; attention 1, 1, .6309, .5."""
    third = 1 / math.log2(3)
    groups = {"r1": "x", "r2": {"x": 0.5, "y": 0.5}, "n1": "y", "n2": "x"}
    groups = {"G": fe.Attribute.of("G", groups, target=[0.25, 0.75])}
    rankings = {"1": ["r1", "n1", "r2", "n2"], "2": ["n1", "n2", "r2", "r1"]}
    rows = [(s, d) for s, docs in rankings.items() for d in docs]
    run = pd.DataFrame(
        {"topic": "t", "sample": [s for s, _ in rows], "doc": [d for _, d in rows], "score": -np.arange(8.0)}
    )
    exposure = np.array([(1 + 0.5) / 2 + third / 2, third / 2])  # of x and y
    target = np.array([0.25, 0.75]) * (1 + 1 + third + 0.5)
    expected = [np.square(exposure - target).sum(), np.square(exposure).sum(), exposure @ target]
    measures = [EEL(**TREC), EED(**TREC), EER(**TREC)]
    qrels = {"t": {"r1": 1, "r2": 1, "n1": 0, "n2": 0}}
    table = fe.evaluate({"r": run}, qrels, measures, groups=groups, policy="samples").frame()
    np.testing.assert_allclose(table.value, expected, rtol=1e-12)
    assert table.se.isna().all()


@pytest.mark.parametrize("policy", ["ranking", "pl"])
def test_padding_with_what_is_not_relevant_gains_nothing(policy):
    """Without `relevant_only`, unjudged documents of the group that lacks exposure would close the gap."""
    groups = {"G": fe.Attribute.of("G", {"r": "x"} | {f"u{i}": "y" for i in range(3)}, target=[0.5, 0.5])}
    plain, padded = {"t": {"r": 9.0}}, {"t": {"r": 9.0} | {f"u{i}": -float(i) for i in range(3)}}
    measures = [EEL(**TREC), EEL(**{**TREC, "relevant_only": False})]
    strict, lax = (
        fe.evaluate({"r": run}, {"t": {"r": 1}}, measures, groups=groups, policy=policy).frame().value
        for run in (plain, padded)
    )
    assert lax[0] >= strict[0] - 1e-12
    assert lax[1] < strict[1]


def test_the_loss_is_0_only_where_relevant_documents_meet_the_target():
    topic = one_topic(3, 2, 2, "hard")
    attribute = replace(topic.attribute("A"), factors=(np.eye(2)[None],), target=np.array([[0.6, 0.4]]))
    topic = replace(topic, grades=np.array([[1.0, 2.0]]), attributes={"A": attribute})
    measure = EEL(attr="A", target="task", relevant_only=True, attention="uniform", cutoff=5)
    assert value(measure, replace(topic, exposure=np.array([[3.0, 2.0]]))) == 0.0
    nothing = replace(topic, exposure=np.array([[3.0, 2.0]]), grades=np.zeros((1, 2)))
    assert value(measure, nothing) == 9 + 4  # exposure of what is not relevant is none


def test_what_a_target_of_the_task_needs():
    with pytest.raises(UsageError, match="needs attr="):
        EEL(target="task")
    with pytest.raises(UsageError, match="depends on ranks only"):
        EEL(attr="A", target="task", attention="cascade(0.9,0.5)")
    with pytest.raises(UsageError, match=r"EE_L\(attr='A',target='task'\) needs a cutoff"):
        fe.evaluate(
            {"t": {"a": 1.0}}, {"t": {"a": 1}}, [EEL(attr="A", target="task")], groups={"A": {"a": "x"}}
        ).frame()
    with pytest.raises(UsageError, match="needs a cutoff"):
        EEL(attr="A", target="task").of_exposure(one_topic(1, 3))
    unknown = replace(one_topic(1, 3).attribute("A"), target=np.full((1, 3), np.nan))
    topic = replace(one_topic(1, 3), attributes={"A": unknown})
    for measure in (EEL, EED, EER):
        assert np.isnan(value(measure(attr="A", target="task", cutoff=3), topic))


# --- Underexposure ---


def slow_underexposure(exposure, target, membership, total):
    if not sum(exposure) or not sum(target) or not membership.any():
        return np.nan
    groups = [0.0] * membership.shape[1]
    for e, t, row in zip(exposure, target, membership.tolist(), strict=True):
        under = max(0.0, t / sum(target) - e / sum(exposure))
        groups = [u + under * m for u, m in zip(groups, row, strict=True)]
    return sum(groups) if total else sum(u * u for u in groups)


@given(topics, st.sampled_from(MODELS), st.sampled_from([None, 3, 50]), st.booleans())
def test_underexposure_is_the_loop(topic, attention, cutoff, total):
    n = topic.grades.shape[1]
    weights = parse_attention(attention).weights(min(cutoff or n, n)).tolist()
    target = slow_target(topic.grades[0].tolist(), weights)
    membership = topic.attribute("A").membership[0]
    expected = slow_underexposure(topic.exposure[0].tolist(), target, membership, total)
    result = value(UEXP(attr="A", total=total, attention=attention, cutoff=cutoff), topic)
    assert close(result, expected)
    assert np.isnan(result) or 0 <= result <= 1 + 1e-12


def test_a_worked_case_of_underexposure():
    """Two relevant documents, f and m, and one unjudged m: shares .25, .25 and .5 against one half each."""
    topic = one_topic(0, 3, 2)
    attribute = replace(topic.attribute("A"), factors=(np.array([[[1.0, 0], [0, 1], [0, 1]]]),))
    topic = replace(
        topic,
        grades=np.array([[1.0, 1.0, 0.0]]),
        exposure=np.array([[0.5, 0.5, 1.0]]),
        candidates=np.array([[True, True, False]]),
        attributes={"A": attribute},
    )
    assert value(UEXP(attr="A", total=True), topic) == pytest.approx(0.5)
    assert value(UEXP(attr="A"), topic) == pytest.approx(2 * 0.25**2)
    assert value(UEXP(attr="A"), replace(topic, exposure=np.array([[0.7, 0.7, 0.0]]))) == 0.0
    one_sided = replace(topic, exposure=np.array([[0.9, 0.0, 0.0]]))
    assert value(UEXP(attr="A"), one_sided) == pytest.approx(0.5**2)


def test_the_ideal_policy_has_no_underexposure_and_padding_adds_some():
    topic = one_topic(5, 9, 3, "soft")
    topic = replace(topic, candidates=np.arange(9)[None] < 7)
    ideal = replace(topic, exposure=ideal_exposure(topic, parse_attention("log2"), 4))
    assert value(UEXP(attr="A", cutoff=4), ideal) == 0.0
    padded = replace(ideal, exposure=ideal.exposure + 0.2 * ~topic.candidates)
    assert value(UEXP(attr="A", cutoff=4), padded) > 0.0


def test_underexposure_is_undefined_where_there_is_nothing_to_compare():
    topic, measure = one_topic(4, 5), UEXP(attr="A")
    assert np.isnan(value(measure, without_attribute(topic)))
    assert np.isnan(value(measure, replace(topic, exposure=np.zeros((1, 5)))))
    assert np.isnan(value(measure, replace(topic, candidates=np.zeros((1, 5), bool))))
    unmapped = replace(topic.attribute("A"), factors=(np.zeros((1, 5, 3)),))
    assert np.isnan(value(measure, replace(topic, attributes={"A": unmapped})))
    with pytest.raises(UsageError, match="requires attr"):
        UEXP()


@pytest.mark.parametrize("total", [True, False])
@pytest.mark.parametrize("attention", ["log2", "cascade(0.9,0.5)"])
def test_batches_and_padding_do_not_change_underexposure(total, attention):
    check_batching(UEXP(attr="A", total=total, attention=attention))
    check_batching(EEL(attr="A", target="task", relevant_only=total, cutoff=6))


def test_undefined():
    topic = one_topic(4, 5)
    assert np.isnan(value(EEL(attr="A"), without_attribute(topic)))
    assert not np.isnan(value(EEL(), without_attribute(topic)))
    unmapped = replace(topic.attribute("A"), factors=(np.zeros((1, 5, 3)),))
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

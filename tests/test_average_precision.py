"""Average precision against a loop and pytrec_eval's levels of relevance, under a ranking and under a policy."""

from __future__ import annotations

import itertools
import math

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

import fairevals as fe


def slowly(grades, total, rel=1.0):
    """Walk down the ranking: at every relevant document, the share of relevant ones so far."""
    found = value = 0.0
    for rank, grade in enumerate(grades, 1):
        if grade >= rel:
            found += 1
            value += found / rank
    return value / total


def task(grades):
    """Documents with these grades, ranked in this order; one more of grade 3 is judged and not found."""
    qrels = {"q": {**{f"d{i}": g for i, g in enumerate(grades)}, "lost": 3}}
    return {"q": {f"d{i}": float(-i) for i in range(len(grades))}}, qrels


def value(run, qrels, measure, **options):
    table = fe.evaluate(run, qrels, [measure], **options).frame(per_topic=True)
    return table.set_index("topic").value["q"], table.set_index("topic").se["q"]


@given(
    st.lists(st.sampled_from([-1, 0, 0.5, 1, 1.5, 2, 3]), min_size=1, max_size=8),
    st.sampled_from([0.5, 1, 1.5, 2, 3]),
    st.integers(1, 10),
)
def test_a_ranking_agrees_with_the_loop(grades, rel, cutoff):
    """Grades need not be whole, which the providers of ir-measures want."""
    run, qrels = task(grades)
    total = 1 + sum(grade >= rel for grade in grades)
    expected = slowly(grades[:cutoff], total, rel)
    assert value(run, qrels, f"AP(rel={rel})@{cutoff}")[0] == pytest.approx(expected, abs=1e-12)
    assert value(run, qrels, f"AP(rel={rel})")[0] == pytest.approx(slowly(grades, total, rel), abs=1e-12)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 3))
def test_levels_of_relevance_agree_with_pytrec_eval(grades, rel):
    run, qrels = task(grades)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"map"}, relevance_level=rel).evaluate(run)["q"]["map"]
    assert value(run, qrels, f"AP(rel={rel})")[0] == pytest.approx(theirs, abs=1e-12)


def test_nothing_relevant_is_undefined_and_a_topic_left_out_is_0():
    qrels = {"q": {"a": 1}, "none": {"a": 1}, "left-out": {"a": 2}}
    run = {"q": {"a": 1.0}, "none": {"a": 1.0}}
    found = fe.evaluate(run, qrels, ["AP(rel=2)"]).frame(per_topic=True).set_index("topic").value
    assert math.isnan(found["q"]) and math.isnan(found["none"])
    assert found["left-out"] == 0.0 == found["all"]


def test_a_policy_is_near_all_rankings():
    grades, scores = [2, 0, 1], [0.3, 1.0, -0.5]
    run = {"q": {f"d{i}": s for i, s in enumerate(scores)}}
    expected = 0.0
    for order in itertools.permutations(range(3)):
        weights = [math.exp(scores[i]) for i in order]
        probability = math.prod(w / sum(weights[k:]) for k, w in enumerate(weights))
        expected += probability * slowly([grades[i] for i in order], 3)
    found, se = value(run, task(grades)[1], "AP", policy="pl", samples=4000, seed=1)
    assert 0 < se < 0.01
    assert found == pytest.approx(expected, abs=4 * se)

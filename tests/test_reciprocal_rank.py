"""Reciprocal rank against a loop and pytrec_eval's levels of relevance."""

from __future__ import annotations

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

import fairevals as fe


def value(grades, measure, **options):
    qrels = {"q": {f"d{i}": g for i, g in enumerate(grades)}}
    run = {"q": {f"d{i}": float(-i) for i in range(len(grades))}}
    return fe.evaluate(run, qrels, [measure], **options).frame(per_topic=True).set_index("topic").value["q"]


@given(
    st.lists(st.sampled_from([-1, 0, 0.5, 1, 2, 3]), min_size=1, max_size=8),
    st.sampled_from([0.5, 1, 2, 3]),
    st.integers(1, 10),
)
def test_a_ranking_agrees_with_the_loop(grades, rel, cutoff):
    expected = next((1 / rank for rank, grade in enumerate(grades[:cutoff], 1) if grade >= rel), 0.0)
    assert value(grades, f"RR(rel={rel})@{cutoff}") == pytest.approx(expected, abs=1e-15)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 3))
def test_levels_of_relevance_agree_with_pytrec_eval(grades, rel):
    qrels = {"q": {f"d{i}": g for i, g in enumerate(grades)}}
    run = {"q": {f"d{i}": float(-i) for i in range(len(grades))}}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}, relevance_level=rel)
    assert value(grades, f"RR(rel={rel})") == pytest.approx(
        evaluator.evaluate(run)["q"]["recip_rank"], abs=1e-12
    )


def test_a_topic_that_is_left_out_or_has_nothing_relevant_is_0():
    qrels = {"q": {"a": 0}, "left-out": {"a": 1}}
    found = fe.evaluate({"q": {"a": 1.0}}, qrels, ["RR"]).frame(per_topic=True).set_index("topic").value
    assert found.to_dict() == {"q": 0.0, "left-out": 0.0, "all": 0.0}


def test_a_policy_of_two_documents():
    """The relevant one leads with probability 3/4, so that RR is 3/4 + 1/4·1/2."""
    import math

    run = {"q": {"good": math.log(3.0), "bad": 0.0}}
    table = fe.evaluate(run, {"q": {"good": 1}}, ["RR"], policy="pl", samples=4000, seed=2).frame()
    assert 0 < table.se[0] < 0.01
    assert table.value[0] == pytest.approx(0.875, abs=4 * table.se[0])

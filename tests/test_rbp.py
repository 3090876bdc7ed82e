"""Rank-biased precision against a loop, under a ranking and under a policy."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairevals as fe


def slowly(grades, p, gain):
    """A reader looks at a rank, and goes on to the next with probability p."""
    total, reached = 0.0, 1.0
    for grade in grades:
        total += reached * gain(grade)
        reached *= p
    return (1 - p) * total


def task(grades):
    """A run of documents with these grades, in this order; a document of grade 4 sets the scale elsewhere."""
    qrels = {"q": {f"d{i}": g for i, g in enumerate(grades)}, "other": {"x": 4}}
    return {"q": {f"d{i}": float(-i) for i in range(len(grades))}}, qrels


def value(run, qrels, measure, **options):
    table = fe.evaluate(run, qrels, [measure], **options).frame(per_topic=True).set_index("topic")
    return table.value["q"]


@given(
    st.lists(st.integers(-1, 4), min_size=1, max_size=8),
    st.sampled_from([0.5, 0.8, 0.95]),
    st.integers(1, 10),
)
def test_a_ranking_agrees_with_the_loop(grades, p, cutoff):
    run, qrels = task(grades)
    graded = slowly(grades[:cutoff], p, lambda g: max(g, 0) / 4)
    binary = slowly(grades[:cutoff], p, lambda g: g >= 2)
    assert value(run, qrels, f"RBP(p={p})@{cutoff}") == pytest.approx(graded, abs=1e-12)
    assert value(run, qrels, f"RBP(p={p},rel=2)@{cutoff}") == pytest.approx(binary, abs=1e-12)


def test_a_policy_agrees_with_all_rankings():
    grades, scores = [4, 0, 2], [0.3, 1.0, -0.5]
    run = {"q": {f"d{i}": s for i, s in enumerate(scores)}}
    expected = 0.0
    for order in itertools.permutations(range(3)):
        weights = [math.exp(scores[i]) for i in order]
        probability = math.prod(w / sum(weights[k:]) for k, w in enumerate(weights))
        expected += probability * slowly([grades[i] for i in order][:2], 0.7, lambda g: g / 4)
    assert value(run, task(grades)[1], "RBP(p=0.7)@2", policy="pl") == pytest.approx(expected, abs=1e-10)

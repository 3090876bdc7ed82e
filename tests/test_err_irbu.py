"""ERR and iRBU against a textbook loop, gdeval and the worked example of NTCIR's FairWeb."""

from __future__ import annotations

import shutil

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fairevals as fe
from fairevals.measures.err import (
    expected_reciprocal_rank,
    intentwise_rank_biased_utility,
    stop_probabilities,
)


def slowly(grades, max_grade, worth):
    """A user goes down the list and stops where satisfied; what the stop at rank k is worth, expected."""
    expected, still_here = 0.0, 1.0
    for rank, grade in enumerate(grades, 1):
        satisfied = (2**grade - 1) / 2**max_grade
        expected += still_here * satisfied * worth(rank)
        still_here *= 1 - satisfied
    return expected


@st.composite
def lists(draw):
    top = draw(st.sampled_from([1, 2, 3, 4, 5.5]))
    grade = st.one_of(st.integers(0, int(top)), st.floats(0, top))
    width = draw(st.integers(0, 12))
    rows = st.lists(grade, min_size=width, max_size=width)
    found = draw(st.lists(rows, min_size=1, max_size=5))
    return np.array(found, dtype=float).reshape(len(found), width), top


@settings(max_examples=200)
@given(lists(), st.floats(0, 1))
def test_textbook_loops(case, phi):
    grades, top = case
    err, irbu = expected_reciprocal_rank(grades, top), intentwise_rank_biased_utility(grades, top, phi)
    for row, values in enumerate(grades.tolist()):
        assert err[row] == pytest.approx(slowly(values, top, lambda k: 1 / k), abs=1e-12)
        assert irbu[row] == pytest.approx(slowly(values, top, lambda k: phi**k), abs=1e-12)
    assert np.all(stop_probabilities(grades, top).sum(axis=-1) <= 1)


@given(
    st.lists(st.sampled_from([-1, 0, 0, 1, 2, 3, None]), min_size=1, max_size=15),
    st.sampled_from([None, 1, 5, 20]),
    st.sampled_from([None, 3, 4]),
)
def test_through_the_pipeline(grades, cutoff, declared):
    """Unjudged and negative are 0; the largest grade is the task's, or else the largest of all topics."""
    run = {"q": {f"d{rank:02}": -float(rank) for rank in range(len(grades))}, "other": {"x": 1.0}}
    judged = {f"d{rank:02}": grade for rank, grade in enumerate(grades) if grade is not None}
    qrels = {"q": {**judged, "not-found": 1}, "other": {"x": 3 if declared is None else 1}}
    at = f"@{cutoff}" if cutoff else ""
    task = fe.Task(max_grade=declared)
    found = fe.evaluate(run, qrels, [f"ERR{at}", f"iRBU(phi=0.9){at}"], task=task).frame(per_topic=True)
    values = {(row.topic, row.measure): row.value for row in found.itertuples()}
    top = declared or 3
    kept = [max(grade or 0, 0) for grade in grades][:cutoff]
    assert values["q", f"ERR{at}"] == pytest.approx(slowly(kept, top, lambda k: 1 / k), abs=1e-12)
    assert values["q", f"iRBU(phi=0.9){at}"] == pytest.approx(slowly(kept, top, lambda k: 0.9**k), abs=1e-12)


def test_worked_example_of_fairweb():
    run, qrels = {"q": {"one": 3.0, "two": 2.0, "three": 1.0}}, {"q": {"one": 2, "two": 0, "three": 1}}
    found = fe.evaluate(run, qrels, ["ERR", "iRBU"]).frame()
    assert found.value.round(4).tolist() == [0.7708, 0.8031]


# Grades by rank (None: unjudged), the cutoff, and what TREC's gdeval.pl printed for them.
GDEVAL = [
    ([4, 0, 2, 1, 3], 20, 0.94637),
    ([0, 0, 0, 1], 20, 0.01562),
    ([3, 3, 3, 3, 3, 3], 3, 0.60669),
    ([None, 1, None, 2, 0, 0, 4], 5, 0.07520),
    ([2, 1, -2, 4, 4, 1, 0, 3], 20, 0.40053),
    ([1] * 12, 10, 0.15886),
]


def graded(grades):
    run = {"1": {f"d{rank:02}": 100.0 - rank for rank in range(len(grades))}}
    return run, {"1": {f"d{rank:02}": grade for rank, grade in enumerate(grades) if grade is not None}}


def err_of_four(run, qrels, cutoff):
    return fe.evaluate(run, qrels, [f"ERR@{cutoff}"], task=fe.Task(max_grade=4)).frame().value[0]


@pytest.mark.parametrize(("grades", "cutoff", "printed"), GDEVAL)
def test_what_gdeval_printed(grades, cutoff, printed):
    assert err_of_four(*graded(grades), cutoff) == pytest.approx(printed, abs=5.001e-6)


@pytest.mark.skipif(not shutil.which("perl"), reason="gdeval is a perl script, and there is no perl")
def test_gdeval_itself():
    rng = np.random.default_rng(5)
    run = {f"{t}": {f"d{d:02}": float(-d) for d in range(rng.integers(1, 30))} for t in range(1, 41)}
    grades = [-2, 0, 0, 1, 2, 3, 4]
    qrels = {t: {d: int(rng.choice(grades)) for d in docs if rng.random() < 0.8} for t, docs in run.items()}
    qrels = {t: judged for t, judged in qrels.items() if any(g > 0 for g in judged.values())}
    measure = ir_measures.parse_measure("ERR@20")
    theirs = {m.query_id: m.value for m in ir_measures.gdeval.iter_calc([measure], qrels, run)}
    ours = fe.evaluate(run, qrels, ["ERR@20"], task=fe.Task(max_grade=4)).frame(per_topic=True)
    ours = dict(zip(ours.topic, ours.value, strict=True))
    assert len(theirs) > 30
    for topic, value in theirs.items():
        assert ours[topic] == pytest.approx(value, abs=5.001e-6), topic

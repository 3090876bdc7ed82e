"""Remarks on runs: one line for each kind, however many runs have it."""

import json

import pytest

import fairevals as fe
from fairevals.evaluation.remarks import of_runs

QRELS = {f"t{t}": {"a": 2, "b": 1} for t in range(6)}
GROUPS = {"G": {"a": "x", "b": "y"}}


def runs(count):
    """Runs of which the n-th lacks the first n topics, and has n others."""
    whole = {topic: {"a": 2.0, "b": 1.0} for topic in QRELS}
    return {
        f"r{n}": {t: docs for t, docs in whole.items() if int(t[1:]) >= n}
        | {f"other{i}": {"a": 1.0} for i in range(n)}
        for n in range(count)
    }


@pytest.fixture
def result():
    return fe.evaluate(runs(6), QRELS, ["nDCG@10", "AWRF(attr='G')@10", "EE_L@10"], groups=GROUPS)


def test_each_kind_is_one_line_with_a_count(result):
    missing, skipped, incomplete = (
        [note for note in result.scores.notes if word in note]
        for word in ("nothing", "skipped", "incomplete")
    )
    many = "5 runs (r1, r2, r3 and 2 more)"
    assert missing == [
        f"{many}: have nothing for up to 5 judged topics, such as t0: utility 0, exposure undefined"
    ]
    assert skipped == [f"{many}: skipped up to 5 topics without judgements, such as other0"]
    assert len(incomplete) == 1
    assert incomplete[0].startswith(f"{many}: incomplete for AWRF(attr='G')@10, EE_L@10: undefined on topics")
    assert len(result.scores.notes) == 3


def test_the_topics_of_each_run_are_kept(result, tmp_path):
    expected = {f"r{n}": tuple(f"t{t}" for t in range(n)) for n in range(1, 6)}
    assert result.missing_topics == expected
    assert result.scores.on_topics([1, 5]).missing_topics == {f"r{n}": ("t1",) for n in range(2, 6)}
    result.report(tmp_path / "report")
    record = json.loads((tmp_path / "report" / "report.json").read_text())
    assert record["missing_topics"] == {run: list(topics) for run, topics in expected.items()}


def test_comparisons_tell_what_is_undefined_in_one_line_for_all_runs_and_measures(result):
    lines = [line for line in result.compare(baseline="r0").render().splitlines() if "left out" in line]
    both = "AWRF(attr='G')@10, EE_L@10: left out as undefined for"
    assert lines == [
        f"{both} every run: 1 topic (t0)",
        f"{both} r2 (1 topic), r3 (2 topics), r4 (3 topics), r5 (4 topics)",
    ]


def test_one_run_keeps_its_own_words():
    (note, *_) = fe.evaluate({"r1": runs(2)["r1"]}, QRELS, "nDCG@10").scores.notes
    assert note == "r1: skipped 1 topic without judgements, such as other0"


def test_names_of_strangers_are_escaped():
    assert list(of_runs([("a\x1b[31m", "odd"), ("b\nc", "odd")])) == ["a\\x1b[31m: odd; similarly b\\nc"]

"""Remarks on ids that the run and the qrels spell with different Unicode characters."""

from __future__ import annotations

import json
import warnings
from unicodedata import normalize

import numpy as np
import pandas as pd
import pytest

from fairevals import InputError
from fairevals.cli.main import main
from fairevals.collection.inputs import load_qrels, load_run
from fairevals.collection.spelling import document_variants, topic_variants
from fairevals.evaluation import Plan, load_collection, score
from fairevals.io import dataset
from fairevals.io.specs import PolicySpec

WORDS = [
    "plain",
    "café",
    "caf\u0065\u0301",
    "Å",
    "\u212b",
    "A\u030a",
    "naïve",
    "naı\u0308ve",
    "x\u0323\u0307",
    "東京",
]


def slow_variants(run, qrels):
    """Pairs (topic, doc) of the run without judgement whose NFC is that of a judged document of the topic."""
    judged = {(t, normalize("NFC", d)) for t, docs in qrels.items() for d in docs}
    return {
        (t, d)
        for t, docs in run.items()
        for d in docs
        if t in qrels and d not in qrels[t] and not d.isascii() and (t, normalize("NFC", d)) in judged
    }


@pytest.mark.parametrize("seed", range(10))
def test_documents(seed):
    rng = np.random.default_rng(seed)

    def table():
        topics = rng.permutation([f"q{n}" for n in range(6)])[:4]
        return {t: dict.fromkeys(rng.permutation(WORDS)[: rng.integers(1, 9)].tolist(), 1) for t in topics}

    run, qrels = table(), table()
    expected = slow_variants(run, qrels)
    found = document_variants(load_run(run), load_qrels(qrels))
    assert found.count == len(expected)
    if expected:
        topic, ours, judged = found.example
        assert (topic, ours) == min(expected)
        assert judged in qrels[topic]
        assert normalize("NFC", judged) == normalize("NFC", ours)


def test_topics():
    qrels = load_qrels({"é": {"a": 1}, "o\u0308": {"a": 1}, "b": {"a": 1}})
    found = topic_variants(["b", "e\u0301", "\u00f6", "ü"], qrels)
    assert (found.count, str(found)) == (2, r"'e\u0301' for '\xe9'")
    assert topic_variants(["b", "x", "é"], qrels).count == 0


FRAME = pd.DataFrame(
    [(f"q{t}", normalize("NFD", f"dé{d}"), float(d)) for t in range(8) for d in range(6)]
    + [("to\u0308pic", "a", 1.0), ("q1", "plain", 3.0)],
    columns=["topic", "doc", "score"],
)
QRELS = {f"q{t}": {f"dé{d}": 1 for d in range(t % 4)} for t in range(1, 8)} | {
    "töpic": {"a": 1},
    "q9": {"a": 1},
}
QRELS = {topic: docs or {"other": 1} for topic, docs in QRELS.items()}


@pytest.mark.parametrize("kind", ["ranking", "pl"])
def test_the_same_however_the_work_is_cut(tmp_path, monkeypatch, kind):
    pytest.importorskip("pyarrow", reason="reading parquet needs pyarrow")
    collection = load_collection(None, QRELS)
    plan = Plan.of(collection, ["AP", "ERR@9"], PolicySpec(kind=kind, samples=5))
    (tmp_path / "one").mkdir()
    FRAME.to_parquet(tmp_path / "one" / "x.parquet")
    (tmp_path / "x").mkdir()
    for number in range(5):
        FRAME[number::5].to_parquet(tmp_path / "x" / f"{number}.parquet")
    expected = score([tmp_path / "one" / "x.parquet"], collection, plan).notes
    count = len(slow_variants({t: set(rows.doc) for t, rows in FRAME.groupby("topic")}, QRELS))
    remarks = [note for note in expected if "normalised" in note]
    assert remarks == [
        "x: 1 topic without judgements would have them if Unicode were normalised (NFC), "
        r"such as 'to\u0308pic' for 't\xf6pic'",
        f"x: {count} documents without judgements would have them if Unicode were normalised (NFC), "
        r"such as 'de\u03010' for 'd\xe90'",
    ]
    assert count > 5
    monkeypatch.setattr(dataset, "PART_ROWS", 9)
    for source in (tmp_path / "one" / "x.parquet", tmp_path / "x"):
        for jobs in (1, 3):
            assert score([source], collection, plan, jobs=jobs).notes == expected


def test_no_remark_without_reason():
    """Ids that match, that nobody judged, and runs in ASCII."""
    for run, qrels in (
        ({"q": {"é": 1.0}}, {"q": {"é": 1}}),
        ({"q": {"e\u0301": 1.0, "a": 0.5}}, {"q": {"e\u0301": 1}}),
        ({"q": {"e\u0301": 1.0, "a": 0.5}}, {"q": {"a": 1}, "p": {"é": 1}}),
        ({"q": {"a": 1.0}}, {"q": {"é": 1, "a": 1}}),
    ):
        collection = load_collection(None, qrels)
        notes = score([load_run(run)], collection, Plan.of(collection, ["AP"])).notes
        assert not [note for note in notes if "normalised" in note]


def test_no_topic_matches():
    collection = load_collection(None, {"é": {"a": 1}})
    with pytest.raises(
        InputError, match=r"1 of 2 would be if Unicode were normalised \(NFC: 'e.u0301' for '.xe9'\)"
    ):
        score([load_run({"e\u0301": {"a": 1.0}, "x": {"a": 1.0}})], collection, Plan.of(collection, ["AP"]))


def test_the_commands_that_look_at_one_run(tmp_path, capsys):
    """`exposure` and `validate`, of text and of a table, remark it as `score` does."""
    rows = FRAME.assign(rank=1, q0="Q0", tag="x")[["topic", "q0", "doc", "rank", "score", "tag"]]
    rows.to_csv(tmp_path / "x.run", sep=" ", header=False, index=False)
    FRAME.to_csv(tmp_path / "x.csv", index=False)
    judged = [(t, 0, d, grade) for t, docs in QRELS.items() for d, grade in docs.items()]
    pd.DataFrame(judged).to_csv(tmp_path / "q", sep=" ", header=False, index=False)
    for name in ("x.run", "x.csv"):
        words = ["--qrels", str(tmp_path / "q"), str(tmp_path / name)]
        assert main(["score", *words, "-m", "AP"]) == 0
        err = capsys.readouterr().err
        remarks = [line.split(": ", 2)[2] for line in err.splitlines() if "normalised" in line]
        assert len(remarks) == 2
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            assert main(["exposure", *words]) == 0
        assert [line.split(": ", 3)[3] for line in capsys.readouterr().err.splitlines()] == remarks
        assert main(["validate", *words, "--format", "json"]) == 1  # a topic is not the task's
        rows = [row for row in json.loads(capsys.readouterr().out) if row["kind"] == "spelling"]
        assert [(row["level"], row["found"]) for row in rows] == [("warning", remark) for remark in remarks]

"""`fairevals exposure`: rows of documents and groups."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fairevals.cli.main import main
from fairevals.collection.groups import Attribute
from fairevals.errors import UsageError
from fairevals.evaluation import load_collection
from fairevals.evaluation.exposures import ExposureQuery, document_exposures, group_exposures
from fairevals.io.specs import PolicySpec
from fairevals.io.task import Task

QRELS = {"q": {"a": 2, "b": 1, "c": 0, "unseen": 2}, "gone": {"z": 1}}
RUN = {"q": {"a": 0.5, "b": 1.5, "c": 0.0, "d": 0.9}}
GROUPS = {
    "SEX": Attribute.of(
        "SEX", {"a": "x", "b": {"x": 0.25, "y": 0.75}, "c": "y", "unseen": "y"}, unmapped="skip"
    )
}


def enumerated(scores, weights):
    """Exposure by going through every ranking, with its Plackett-Luce probability."""
    docs = list(scores)
    found = dict.fromkeys(docs, 0.0)
    for ranking in itertools.permutations(docs):
        probability, left = 1.0, [math.exp(scores[d]) for d in ranking]
        for place in range(len(ranking)):
            probability *= left[place] / sum(left[place:])
        for place, doc in enumerate(ranking):
            found[doc] += probability * (weights[place] if place < len(weights) else 0.0)
    return found


def test_documents_under_plackett_luce_agree_with_all_rankings():
    collection = load_collection(None, QRELS)
    question = ExposureQuery(PolicySpec("pl"), "reciprocal", cutoff=3)
    rows = {(r.topic, r.doc): r for r in document_exposures(RUN, collection, question)}
    expected = enumerated(RUN["q"], [1, 1 / 2, 1 / 3])
    for doc, value in expected.items():
        assert rows["q", doc].exposure == pytest.approx(value, abs=1e-9)
        assert math.isnan(rows["q", doc].se)
    # Judged and not retrieved: there, and without exposure. A topic that the run leaves out too.
    assert rows["q", "unseen"].exposure == 0.0
    assert rows["gone", "z"].exposure == 0.0
    assert rows["q", "d"].merit == 0.0
    # Ideal order: a and unseen share ranks 1 and 2, b has rank 3, c and d nothing.
    assert [rows["q", d].target for d in ("a", "unseen", "b", "c")] == pytest.approx([0.75, 0.75, 1 / 3, 0.0])


def test_sampled_exposure_carries_its_error_and_is_near():
    collection = load_collection(None, QRELS)
    exact = {
        r.doc: r
        for r in document_exposures(RUN, collection, ExposureQuery(PolicySpec("pl"), "log2"))
        if r.topic == "q"
    }
    drawn = ExposureQuery(PolicySpec("pl", samples=4000, seed=5), "log2", method="mc")
    for row in document_exposures(RUN, collection, drawn):
        if row.topic == "q" and row.doc != "unseen":
            assert row.se > 0
            assert abs(row.exposure - exact[row.doc].exposure) < 5 * row.se


def test_groups_are_membership_weighted_sums_of_documents():
    collection = load_collection(Task(), QRELS, GROUPS)
    rows = list(group_exposures(RUN, collection, ExposureQuery(PolicySpec("ranking"), "reciprocal")))
    by_group = {r.group: r for r in rows if r.topic == "q"}
    # Ranking b d a c: exposures 1, 1/2, 1/3, 1/4; b is a quarter x, d belongs to none.
    assert by_group["x"].exposure == pytest.approx(1 / 4 + 1 / 3)
    assert by_group["y"].exposure == pytest.approx(3 / 4 + 1 / 4)
    assert by_group["x"].share + by_group["y"].share == pytest.approx(1)
    assert by_group["x"].merit == pytest.approx((0.25 * 1 + 2) / 1.25)
    assert by_group["y"].merit == pytest.approx((0.75 * 1 + 0 + 2) / 2.75)
    assert not [r for r in rows if r.topic == "gone"], "a topic without a ranking has no shares"
    assert {r.group for r in rows if r.topic == "all"} == {"x", "y"}


def test_group_error_of_samples_is_right():
    collection = load_collection(Task(), QRELS, GROUPS)
    values, errors = [], []
    for seed in range(200):
        question = ExposureQuery(PolicySpec("pl", samples=100, seed=seed), "log2", method="mc")
        row = next(r for r in group_exposures(RUN, collection, question) if r.topic == "q" and r.group == "x")
        values.append(row.exposure)
        errors.append(row.se)
    assert np.mean(errors) == pytest.approx(np.std(values, ddof=1), rel=0.2)


def test_cascade_cannot_be_exact_under_plackett_luce_and_says_so():
    collection = load_collection(None, QRELS)
    with pytest.raises(UsageError, match="method 'mc'"):
        list(document_exposures(RUN, collection, ExposureQuery(PolicySpec("pl"), "cascade(0.9,0.5)")))
    rows = list(document_exposures(RUN, collection, ExposureQuery(PolicySpec("ranking"), "cascade(0.9,0.5)")))
    # b at rank 1 is relevant, so what follows it gets half of 0.9.
    assert next(r for r in rows if r.doc == "d").exposure == pytest.approx(0.45)


def test_command_prints_the_columns_of_the_design(tmp_path, capsys, monkeypatch):
    (tmp_path / "q").write_text("1 0 a 1\n1 0 b 0\n")
    (tmp_path / "r").write_text("1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n")
    monkeypatch.chdir(tmp_path)
    assert main(["exposure", "--qrels", "q", "r", "--figure", "f.svg"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("topic,doc,exposure,se")
    assert out[1].startswith("1,a,1.0,,")
    assert "<svg" in (tmp_path / "f.svg").read_text()
    assert main(["exposure", "--qrels", "q", "r", "--by", "group"]) == 2
    assert main(["exposure", "--qrels", "q", "r", "--attention", "nonsense"]) == 2
    assert main(["exposure", "--qrels", "q", "r", "--topic", "9"]) == 2
    assert main(["exposure", "--qrels", "q", "r", "--figure", "f.exe"]) == 2

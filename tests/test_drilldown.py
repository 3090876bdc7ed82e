"""The first ranks of runs in the page: what is encoded is what the run ranks, and it stays within its bounds."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_cases import HOSTILE, Page, make, write_task

import fairevals as fe
from fairevals.errors import UsageError, escape
from fairevals.evaluation import Plan, load_collection, score
from fairevals.evaluation.exposures import ExposureQuery, document_exposures
from fairevals.evaluation.tops import read_top_ranks
from fairevals.io.specs import PolicySpec
from fairevals.io.task import Task
from fairevals.report import drilldown as drilling
from fairevals.report.drilldown import DIGITS, depth_for, drilldown, front_coded, packed


def unpacked(text: str, count: int) -> list[int]:
    data = base64.b64decode(text)
    width = len(data) // count if count else 1
    assert len(data) == width * count
    return [int.from_bytes(data[i * width : (i + 1) * width], "little") for i in range(count)]


def names_of(coded: str) -> list[str]:
    names, last = [], ""
    for part in coded.split("\n") if coded else []:
        last = last[: DIGITS.index(part[0])] + part[1:]
        names.append(last)
    return names


def decoded(data, topic: int):
    """{run: [(document, grade or None, memberships by attribute, exposure)]} of one topic."""
    table, depth, runs = data["topics"][topic], data["depth"], data["runs"]
    names = names_of(table["docs"])
    grades = [
        None if code == 0 else float(data["grades"][code - 1])
        for code in unpacked(table["grades"], len(names))
    ]
    memberships = []
    for spec, codes in zip(data["attributes"], table["groups"], strict=True):
        rows = []
        for code in unpacked(codes, len(names)) if codes is not None else []:
            row = [0.0] * len(spec["groups"])
            if code > len(row):
                soft = unpacked(spec["soft"], spec["rows"] * len(row))
                start = (code - 1 - len(row)) * len(row)
                row = [share / spec["share"] for share in soft[start : start + len(row)]]
            elif code:
                row[code - 1] = 1.0
            rows.append(row)
        memberships.append(rows)
    ranks = unpacked(table["ranks"], len(runs) * depth)
    exposure = unpacked(table["exposure"], len(ranks)) if "exposure" in table else [None] * len(ranks)
    found = {}
    for r, run in enumerate(runs):
        here = slice(r * depth, (r + 1) * depth)
        found[run] = [
            (names[d - 1], grades[d - 1], [rows[d - 1] if rows else None for rows in memberships], e)
            for d, e in zip(ranks[here], exposure[here], strict=True)
            if d
        ]
    return found


QRELS = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"a": 1, "é": 2, "🦊": -1}, "q3": {"z": 1}}
RUNS = {
    # Ties go to the larger id; q3 is missing, and "u" is unjudged.
    "one": {"q1": {"a": 1.0, "b": 1.0, "u": 3.0, "c": 0.5}, "q2": {"é": 1.0, "🦊": 2.0}},
    "two": {"q1": {"c": 5.0}, "q2": {"a": 1.0, "u": 0.5, "w": 0.2, "x": 0.1}, "q3": {"z": 1.0}},
}
SOFT = {"a": {"g0": 1.0}, "b": {"g0": 0.25, "g1": 0.75}, "c": {"g1": 1.0}, "é": {"g0": 1 / 3, "g1": 2 / 3}}


GROUPS = {"G": fe.Attribute.of("G", SOFT, groups=["g0", "g1"], unmapped="skip", topics=["q1", "q2"])}


def opened(task=None, groups=GROUPS, **policy):
    collection = load_collection(task or Task(cutoff=3), QRELS, groups)
    plan = Plan.of(collection, ["nDCG@2"], PolicySpec(**policy))
    return collection.with_attributes(groups), plan


def encoded(runs, collection, plan):
    scores = score(runs, collection, plan, top=3)
    attributes = list(collection.attributes)
    return json.loads(
        json.dumps(drilldown(scores, runs, collection, plan.policy, attributes=attributes).data)
    )


def plain_runs():
    return [fe.Run.from_dict(run, tag) for tag, run in RUNS.items()]


def test_what_is_encoded_is_what_runs_rank():
    data = encoded(plain_runs(), *opened())
    ranked = [decoded(data, t)[r] for t in range(3) for r in range(2)]
    docs = [[doc for doc, *_ in run] for run in ranked]
    assert docs == [["u", "b", "a"], ["c"], ["🦊", "é"], ["a", "u", "w"], [], ["z"]]
    assert [grade for _, grade, *_ in ranked[0] + ranked[2]] == [None, 0.0, 2.0, -1.0, 2.0]
    assert [rows for _, _, rows, _ in ranked[0]] == [[[0.0, 0.0]], [[0.25, 0.75]], [[1.0, 0.0]]]
    assert ranked[2][1][2] == [[0.3333, 0.6667]]
    assert ranked[5][0][2] == [None]  # the attribute does not apply there
    assert [table["targets"] for table in data["topics"]] == [[0], [0], [None]]
    assert data["attributes"][0]["targets"] == [[5000, 5000]]
    assert all(exposure is None for run in ranked for *_, exposure in run)


def test_scores_of_trec_eval_tie_as_float32():
    runs = [fe.Run.from_dict({"q1": {"a": 1.0 + 1e-9, "b": 1.0}}, "close")]
    for conventions, expected in (("fairevals", ["a", "b"]), ("trec_eval", ["b", "a"])):
        data = encoded(runs, *opened(Task(cutoff=3, conventions=conventions)))
        assert [doc for doc, *_ in decoded(data, 0)[0]] == expected


def test_exposure_is_that_of_the_policy():
    collection, plan = opened(kind="pl", temperature=0.7)
    runs = plain_runs()
    data = encoded(runs, collection, plan)
    for r, run in enumerate(runs):
        query = ExposureQuery(plan.policy, cutoff=3)
        expected = {(row.topic, row.doc): row.exposure for row in document_exposures(run, collection, query)}
        for t, topic in enumerate(QRELS):
            for doc, *_, exposure in decoded(data, t)[r]:
                assert exposure == round(10_000 * expected[topic, doc]), (run, topic, doc)
    assert [doc for doc, *_ in decoded(data, 0)[0]] == ["u", "b", "a"]  # the most likely ranking


def test_of_sampled_rankings_the_first_is_shown():
    rows = [("q1", "s1", "a"), ("q1", "s1", "b"), ("q1", "s2", "b"), ("q1", "s2", "c"), ("q2", "s2", "é")]
    frame = pd.DataFrame(rows, columns=["topic", "sample", "doc"]).assign(score=range(5, 0, -1))
    data = encoded([fe.Run.from_frame(frame, "drawn")], *opened(kind="samples"))
    second = 10_000 / np.log2(3)
    assert [(doc, e) for doc, _, _, e in decoded(data, 0)[0]] == [
        ("a", 5000),
        ("b", round(second / 2 + 5000)),
    ]
    assert [doc for doc, *_ in decoded(data, 1)[0]] == ["é"]


@pytest.mark.parametrize("kind", ["ranking", "pl"])
def test_reading_again_gives_the_same_as_keeping(tmp_path, kind):
    task, files = write_task(tmp_path, ["one", "two"], [f"t{i}" for i in range(7)])
    collection = load_collection(task)
    plan = Plan.of(collection, ["nDCG@5"], PolicySpec(kind=kind))
    kept = score(files, collection, plan, top=10)
    cut = score(files, collection, plan, top=10, jobs=2)
    for r, file in enumerate(files):
        again = read_top_ranks(file, collection, plan.policy, 10)
        for other in (again, cut.tops[r]):
            assert np.array_equal(kept.tops[r].topic, other.topic)
            assert np.array_equal(kept.tops[r].rank, other.rank)
            assert kept.tops[r].docs.texts() == other.docs.texts()
            assert np.array_equal(kept.tops[r].exposure, other.exposure, equal_nan=True)
    assert kept.tops[0].rank.size == 7 * 10
    assert np.array_equal(kept.values, score(files, collection, plan).values)


def test_more_than_twelve_groups_are_summed():
    groups = {
        "G": fe.Attribute.of("G", {"a": "g00", "b": "g19", "c": "g05"}, [f"g{i:02}" for i in range(20)])
    }
    data = encoded(plain_runs(), *opened(groups=groups))
    spec = data["attributes"][0]
    assert len(spec["groups"]) == 12 and spec["total"] == 20
    assert sum(spec["targets"][0]) == pytest.approx(10_000, abs=6)
    ranked = decoded(data, 0)[0]
    assert [spec["groups"][np.argmax(rows[0])] for doc, _, rows, _ in ranked if doc in "ab"] == ["g19", "g00"]


def test_many_different_memberships_are_rounded(monkeypatch):
    monkeypatch.setattr(drilling, "MAX_SOFT", 1)
    ranked = decoded(encoded(plain_runs(), *opened()), 1)[0]
    assert ranked[1][2] == [[67 / 200, 133 / 200]]


def test_ids_are_escaped_and_shared_prefixes_left_out():
    names = sorted([*HOSTILE, "x" * 70 + "1", "x" * 70 + "2", "\n", "", "a" * 200], key=str.encode)
    assert names_of(front_coded(names)) == [escape(name, 100) for name in names]
    assert unpacked(packed(np.array([0, 70_000])), 2) == [0, 70_000]


def test_bounds(tmp_path, monkeypatch):
    assert depth_for(None, 40, 200, None) == 20
    assert depth_for(None, 400, 200, None) == 0
    assert depth_for(1000, 2, 2, None) == 100
    with pytest.raises(UsageError, match="unknown drilldown 'some'; expected one of all, front, none"):
        depth_for(None, 1, 1, "some")
    task, files = write_task(tmp_path, [f"run{i}" for i in range(6)], [f"t{i}" for i in range(5)])
    collection = load_collection(task).with_attributes(["G"])
    plan = Plan.of(collection, ["nDCG@5"])

    def kept(important=(1, 4), choice=None):
        top = depth_for(10, 6, 5, choice)
        scores = score(files, collection, plan, top=top)
        options = {"attributes": ["G"], "important": important, "choice": choice}
        return drilldown(scores, files, collection, plan.policy, **options)

    everything = kept()
    assert everything.runs == (0, 1, 2, 3, 4, 5) and everything.reason == ""
    assert kept(choice="front").runs == (1, 4)
    assert kept(choice="none") == drilling.Drilldown((), 0, "first ranks are shown of 0 of 6 runs", {})
    size = len(json.dumps(everything.data))
    monkeypatch.setattr(drilling, "MAX_CHARACTERS", size - 1)
    few = kept()
    assert few.runs == (1, 4) and "2 of 6 runs" in few.reason
    assert few.data == kept(choice="front").data
    monkeypatch.setattr(drilling, "MAX_CHARACTERS", 10)
    assert kept().runs == () and kept().data == {}
    assert kept(choice="all").runs == (0, 1, 2, 3, 4, 5)
    monkeypatch.setattr(drilling, "MAX_CHARACTERS", size)
    monkeypatch.setattr(drilling, "MAX_RANKS", 2 * 5 * 10)
    assert kept(important=(4, 2, 0)).runs == (2, 4)  # as many as fit, the first before the others
    assert kept(important=(4, 2)).data["topics"] == kept(important=(2, 4)).data["topics"]


def test_the_page_has_them_and_the_command_leaves_them_out(tmp_path):
    task, files = write_task(tmp_path, ["weak", "strong"], ["t1", "t2"])
    make(task, files, tmp_path / "with")
    make(task, files, tmp_path / "without", "--drilldown", "none")
    read = [Page((tmp_path / name / "index.html").read_text("utf-8")) for name in ("with", "without")]
    data, nothing = (
        json.loads(page.scripts[[script.get("id") for script in page.all("script")].index("ranks")])
        for page in read
    )
    fe.evaluate(files, task=str(task)).report(tmp_path / "python", drilldown="none")
    assert (tmp_path / "python" / "index.html").read_bytes() == (
        tmp_path / "without" / "index.html"
    ).read_bytes()
    assert nothing == {} and data["depth"] == 10 and data["runs"] == [0, 1]
    assert "first ranks are shown of 0 of 2 runs" in read[1].text
    lines = [line.split() for line in Path(files[1]).read_text("utf-8").splitlines()]
    best = sorted((-float(line[4]), line[2]) for line in lines if line[0] == "t2")
    assert [doc for doc, *_ in decoded(data, 1)[1]] == [doc for _, doc in best[:10]]

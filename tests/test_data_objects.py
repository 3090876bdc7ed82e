"""Runs, qrels, attributes and tasks made in Python, and the errors of wrong ones."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairevals as fe
from fairevals import Attribute, FairevalsError, InputError, Qrels, Run, Task, UsageError, nDCG
from fairevals.io.specs import AttributeSpec, PolicySpec, RunInfo
from fairevals.io.task import read_task
from fairevals.training.rows import Rows

ROOT = Path(__file__).parents[1]
RUN = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}, "r": {"c": 2.0, "a": 1.0}}
QRELS = {"q": {"a": 0, "b": 2, "c": 1}, "r": {"a": 1}}

# Runs and qrels


def test_runs_from_everything(tmp_path):
    run = Run.from_dict(RUN, "mine")
    assert (run.tag, run.topics, len(run)) == ("mine", ["q", "r"], 5)
    pd.testing.assert_frame_equal(Run.from_frame(run.to_frame(), "mine").to_frame(), run.to_frame())
    assert run.to_frame().columns.tolist() == ["topic", "doc", "rank", "score"]
    terrier = run.to_frame().rename(columns={"topic": "qid", "doc": "docno"})
    pd.testing.assert_frame_equal(Run.from_frame(terrier).to_frame(), run.to_frame())
    path = tmp_path / "x.run"
    path.write_text("q Q0 b 1 1.0 x\nq Q0 a 2 2.0 x\n")
    assert (
        Run.from_file(path).to_frame().doc.tolist() == fe.read_run(path).to_frame().doc.tolist() == ["a", "b"]
    )
    assert Run.from_file(path, order="file").to_frame().doc.tolist() == ["b", "a"]
    frame = pd.DataFrame({"topic": ["q", "q"], "doc": ["b", "a"], "score": [1.0, 2.0]})
    assert Run.from_frame(frame, order="file").to_frame().doc.tolist() == ["b", "a"]
    sampled = Run.from_frame(frame.assign(sample=["1", "2"]))
    assert sampled.lists == [("q", "1"), ("q", "2")]
    pd.testing.assert_frame_equal(Run.from_frame(sampled.to_frame()).to_frame(), sampled.to_frame())
    for given_run in (run, RUN, run.to_frame()):
        assert fe.evaluate({"mine": given_run}, QRELS, "nDCG").frame().value.tolist() == pytest.approx(
            [0.75], abs=0.1
        )


def test_qrels_from_everything(tmp_path):
    qrels = Qrels.from_dict(QRELS)
    assert (qrels.topics, len(qrels), qrels.max_grade) == (("q", "r"), 4, 2)
    again = Qrels.from_frame(qrels.to_frame())
    pd.testing.assert_frame_equal(again.to_frame(), qrels.to_frame())
    lines = [f"{topic} 0 {doc} {grade}\n" for topic, docs in QRELS.items() for doc, grade in docs.items()]
    (tmp_path / "one").write_text("".join(lines[:2]))
    (tmp_path / "two").write_text("".join(lines[2:]))
    both = Qrels.from_file(tmp_path / "one", tmp_path / "two")
    pd.testing.assert_frame_equal(both.to_frame(), qrels.to_frame())
    pd.testing.assert_frame_equal(
        fe.read_qrels(tmp_path / "one", tmp_path / "two").to_frame(), qrels.to_frame()
    )


NOTHING = [{}, [], iter([]), {"q": {}}, pd.DataFrame({"topic": [], "doc": [], "grade": []})]


@pytest.mark.parametrize("number", range(len(NOTHING)))
def test_no_judgements_are_refused_at_every_door(number):
    """They would give NaN for every run."""
    for door in (
        lambda nothing: fe.evaluate(RUN, nothing, "nDCG"),
        Qrels.from_frame,
        Qrels.from_dict,
        lambda nothing: fe.collection.collection.load_collection(None, nothing),
    ):
        with pytest.raises(UsageError, match="the qrels have no judgement; expected at least one"):
            door(NOTHING[number])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Run.from_dict({}), "the run 'run' has no documents"),
        (lambda: Run.from_dict({"q": {}}, "mine"), "the run 'mine' has no documents"),
        (lambda: Run.from_dict({"q": 3}), "3 for topic 'q'; expected a dict {doc: score}"),
        (lambda: Qrels.from_dict({"q": ["a"]}), r"\['a'\] for topic 'q'; expected a dict {doc: grade}"),
        (lambda: Run.from_dict({"q": {"a": "high"}}), "score 'high'"),
        (lambda: Qrels.from_dict({"q": {"a": "high"}}), "grade 'high'; expected a number"),
        (lambda: Run.from_frame(pd.DataFrame({"qid": ["q"]})), "columns topic"),
        (lambda: Run.from_frame(3), "cannot take an int as a run; expected a path, a DataFrame"),
        (
            lambda: Run.from_frame(pd.DataFrame({"topic": ["q"], "doc": ["a"], "score": [1]}), order="best"),
            "order",
        ),
        (
            lambda: Run.from_file("none.run", order="best"),
            "unknown order 'best'; expected one of score, file",
        ),
        (lambda: Qrels.from_file(), "no qrels file to read"),
        (lambda: Qrels.from_file(["q"]), r"\['q'\] is not a path; expected the path of a file"),
        (lambda: fe.read_run(None), "None is not a path; expected the path of a file"),
        (lambda: Task.from_file(5), "5 is not a path; expected the path of a file"),
        (lambda: Task().save(5), "5 is not a path; expected the path of a file"),
        (lambda: Run.from_file("x", depth="x"), "depth is 'x'; expected a whole number of at least 1"),
        (lambda: Run.from_file("x", depth=0), "depth is 0; expected a whole number of at least 1"),
        (lambda: fe.evaluate(RUN, QRELS, samples=10.0), "samples is 10.0; expected a whole number"),
        (lambda: fe.evaluate(RUN, QRELS, "nDCG", policy=3), "unknown policy 3; expected one of ranking"),
        (
            lambda: fe.evaluate(RUN, QRELS, "nDCG", samples="many"),
            "samples is 'many'; expected a whole number of at least 2",
        ),
        (lambda: fe.evaluate(RUN, QRELS, "nDCG", seed=1.5), r"seed=1\.5; expected a whole number"),
        (
            lambda: fe.evaluate(RUN, QRELS, "nDCG", temperature="hot"),
            "temperature is 'hot'; expected a number",
        ),
    ],
)
def test_wrong_data(call, message):
    with pytest.raises(FairevalsError, match=message):
        call()


def test_runs_and_qrels_are_keys_and_compared_as_objects():
    """Comparing their arrays would raise an error about truth values."""
    run, qrels = Run.from_dict(RUN), Qrels.from_dict(QRELS)
    assert {run: 1, qrels: 2} == {run: 1, qrels: 2}
    assert run != Run.from_dict(RUN)
    assert qrels != Qrels.from_dict(QRELS)


# Attributes


def awrf(groups) -> float:
    return fe.evaluate(RUN, QRELS, "AWRF(attr='S')", groups={"S": groups}).frame().value[0]


SEX = {"a": "f", "b": "m", "c": "f"}


def test_memberships_from_everything(tmp_path):
    expected = awrf(SEX)
    (tmp_path / "sex.csv").write_text("doc,group\na,f\nb,m\nc,f\n")
    series = pd.Series(SEX)
    frame = pd.DataFrame({"docno": list(SEX), "group": list(SEX.values())})
    pairs = pd.MultiIndex.from_tuples([(topic, doc) for topic in RUN for doc in RUN[topic]])
    by_topic = pd.Series([SEX[doc] for _, doc in pairs], index=pairs)
    wide = pd.get_dummies(frame.set_index("docno").group).reset_index()
    for form in (
        series,
        frame,
        tmp_path / "sex.csv",
        by_topic,
        {doc: {g: 1} for doc, g in SEX.items()},
        wide,
        wide.astype({"f": float}),
    ):
        assert awrf(form) == expected
        assert Attribute.of("S", form).spec.groups == ("f", "m")


def test_a_wide_table_has_one_column_per_group():
    wide = pd.DataFrame({"qid": ["q", "q", "r"], "doc": [7, 8, 7], "m": [0.25, 0, 1], "f": [0.75, 1, 0]})
    attribute = Attribute.of("S", wide)
    assert attribute.spec.groups == ("m", "f")  # in the order of the columns
    assert attribute.columns.weights.tolist() == [[0.25, 0.75], [0, 1], [1, 0]]
    assert attribute.columns.topics == ["q", "r"]
    assert list(attribute.columns.docs.texts()) == ["7", "8", "7"]
    assert Attribute.of("S", wide, groups=["f", "m"]).columns.weights[0].tolist() == [0.75, 0.25]
    wide.loc[1, ["m", "f"]] = np.nan
    assert len(Attribute.of("S", wide).columns.docs) == 2  # the groups of the second row are unknown
    numbers = pd.DataFrame({"doc": ["a"], 1: [0.5], 2.0: [0.5]})
    assert Attribute.of("S", numbers).spec.groups == ("1", "2")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            {"doc": ["a"], "SEX": ["f"]},
            "S: columns doc, SEX; expected columns doc and group, .* or columns doc,",
        ),
        ({"doc": ["a"], "weight": [1.0]}, "S: columns doc, weight; expected columns doc and group"),
        ({"doc": ["a"]}, "S: columns doc; expected"),
        ({"f": [1.0], "m": [0.0]}, "S: columns f, m; expected"),
        ({"doc": ["a"], "f": [np.nan], "m": [1.0]}, "S:1: weight 'nan'; expected a number of at least 0"),
        ({"doc": ["a"], "f": [-1.0], "m": [1.0]}, "S:1: weight '-1.0'; expected a number of at least 0"),
        ({"doc": ["a", "a"], "f": [1, 1]}, "S:2: document 'a' a second time"),
    ],
)
def test_wrong_wide_tables(frame, message):
    with pytest.raises(fe.InputError, match=message):
        Attribute.of("S", pd.DataFrame(frame))


@pytest.mark.parametrize(
    "memberships",
    [
        {"a": {"f": 1, "m": 3}, "b": "m", "c": {"f": 2}},
        pd.DataFrame({"doc": list("aabc"), "group": list("fmmf"), "weight": [1, 3, 1, 2]}),
        pd.DataFrame({"doc": list("abc"), "f": [1, 0, 2], "m": [3, 1, 0]}),
    ],
)
def test_weights_that_do_not_sum_to_1_are_reported_once(memberships):
    message = (
        r"S: the memberships of 2 documents do not sum to 1 and were normalised \(line 1 has a sum of 4\)"
    )
    with pytest.warns(fe.FairevalsWarning, match=message) as caught:
        value = awrf(memberships)
    assert sum("sum to 1" in str(one.message) for one in caught) == 1
    assert value == awrf({"a": {"f": 0.25, "m": 0.75}, "b": "m", "c": "f"})
    several = pd.DataFrame(
        {"doc": ["a", "a"], "group": ["f", "m"]}
    )  # no weights: in equal parts, as in a file
    assert Attribute.of("S", several).columns.weights.tolist() == [[0.5, 0.5]]


RESULT = fe.evaluate({"1": {"a": 1.0}, "2": {"a": 1.0}}, {"1": {"a": 1}, "2": {"a": 1}}, "RR")


@pytest.mark.parametrize(
    "call",
    [
        lambda: fe.evaluate({1: {"a": 1.0}, "1": {"b": 1.0}}, {"1": {"a": 1}}, "RR"),
        lambda: fe.evaluate({"1": {1: 1.0, "1": 2.0}}, {"1": {"1": 1}}, "RR"),
        lambda: fe.evaluate({1: RUN, "1": RUN}, QRELS, "RR"),
        lambda: Run.from_dict({1: {"a": 1.0}, "1": {"b": 1.0}}),
        lambda: Qrels.from_dict({1: {"a": 1}, "1": {"b": 0}}),
        lambda: Qrels.from_dict({"1": {1: 1, "1": 0}}),
        lambda: awrf({1: "f", "1": "m"}),
        lambda: awrf({b"1": "f", "1": "m"}),
        lambda: awrf({"a": {1: 0.5, "1": 0.5}}),
        lambda: fe.evaluate(RUN, QRELS, "AWRF(attr='1')", groups={1: SEX, "1": SEX}),
        lambda: Attribute.of("S", SEX, groups=[1, "1"]),
        lambda: Attribute.of("S", SEX, target={1: 0.5, "1": 0.5}),
        lambda: RESULT.by({1: "x", "1": "y", "2": "x"}),
        lambda: RESULT.by({1: ["1"], "1": ["2"]}),
        lambda: RESULT.by(pd.DataFrame({"topic": ["1", "1"], "group": ["x", "y"]})),
        lambda: fe.Task(topic_groups={"T": {1: ["1"], "1": ["2"]}}),
        lambda: fe.Ridge().fit([[1.0], [2.0]], [1, 2], qid=[1, "1"]),
        lambda: fe.DELTR().fit([[1.0], [2.0]], [1, 2], groups=[1, "1"]),
    ],
)
def test_one_and_the_text_one_are_not_two_keys(call):
    """Silently one would replace the other, or both would be one: 1 and "1" have the same text in a file."""
    twice = "twice in group '1'|topic '1' twice|judged twice|a second time|no group twice"
    message = rf"the text '1'|the same text|key 1 of topic_groups|{twice}"
    with pytest.raises(fe.FairevalsError, match=message):
        call()


def test_a_missing_group_is_unknown():
    """It is not a group named "None" or ""."""
    known = {"a": "f", "b": "m"}
    for form in (
        {**known, "c": None},
        {**known, "c": math.nan},
        {**known, "c": pd.NA},
        pd.Series({**known, "c": None}),
        pd.Series({**known, "c": np.nan}, dtype="category"),
    ):
        attribute = Attribute.of("S", form)
        assert attribute.spec.groups == ("f", "m")
        assert awrf(form) == awrf(known)
    frame = pd.DataFrame({"doc": ["a", "b", "c"], "group": ["f", "m", None]})
    assert awrf(frame) == awrf(known)


def test_numbers_as_groups():
    """A missing label makes whole numbers real; the estimators name the groups alike."""
    attribute = Attribute.of(
        "S", pd.Series([1, 2, np.nan], index=["a", "b", "c"]), target={1.0: 0.5, 2.0: 0.5}
    )
    assert attribute.spec.groups == ("1", "2")
    assert Rows.of([[0.0]] * 3, groups=[1.0, 2.0, 1.0]).data.groups == ("1", "2")
    assert Attribute.of("S", {"a": 1234567.0, "b": 1234568.0}).spec.groups == ("1234567", "1234568")


def test_attributes_and_policies_print_on_one_line():
    assert repr(Attribute.of("S", SEX)) == "<Attribute 'S': nominal, 2 groups, 3 documents>"
    policy = fe.PlackettLuce([[1.0, 2.0, 3.0]] * 2, temperature=0.5)
    assert repr(policy) == "<PlackettLuce: 2 topics × 3 documents, temperature 0.5>"


def test_the_order_of_groups():
    sizes = pd.Series({"a": "S", "b": "L"})
    assert Attribute.of("X", sizes).spec.groups == ("L", "S")
    assert Attribute.of("X", sizes, ["S", "M", "L"]).spec.groups == ("S", "M", "L")
    categories = pd.CategoricalDtype(["S", "M", "L"])
    plain = Attribute.of("X", sizes.astype(categories)).spec
    assert (plain.groups, plain.kind, plain.divergence) == (("S", "M", "L"), "nominal", "JSD")
    ordered = pd.CategoricalDtype(["S", "M", "L"], ordered=True)
    spec = Attribute.of("X", sizes.astype(ordered)).spec
    assert (spec.groups, spec.kind, spec.divergence) == (("S", "M", "L"), "ordinal", "RNOD")
    assert Attribute.of("X", sizes.astype(ordered), kind="nominal").spec.kind == "nominal"
    frame = pd.DataFrame({"doc": ["a", "b"], "group": sizes.astype(ordered).to_numpy()})
    frame["group"] = pd.Categorical(["S", "L"], categories=["S", "M", "L"], ordered=True)
    assert Attribute.of("X", frame).spec == spec
    by_target = Attribute.of("X", sizes, kind="ordinal", target={"S": 0.5, "M": 0.0, "L": 0.5}).spec
    assert by_target.groups == ("S", "M", "L")


def test_a_target_by_group(tmp_path):
    by_name = Attribute.of("S", SEX, target={"m": 0.7, "f": 0.3})
    assert by_name.spec.groups == ("m", "f")
    assert awrf(by_name) == pytest.approx(awrf(Attribute.of("S", SEX, ["f", "m"], target=[0.3, 0.7])))
    assert awrf(Attribute.of("S", SEX, ["f", "m"], target={"m": 0.7, "f": 0.3})) == pytest.approx(
        awrf(by_name)
    )
    assert awrf(Attribute.of("S", SEX, target=pd.Series({"m": 0.7, "f": np.float64(0.3)}))) == awrf(by_name)
    (tmp_path / "x.gmemb").write_text("q a 1 0\nq b 0 1\n")  # NTCIR's form has no names of groups
    ntcir = Attribute.of("S", tmp_path / "x.gmemb", target={"m": 0.7, "f": 0.3})
    assert (ntcir.spec.groups, ntcir.columns.weights.tolist()) == (("m", "f"), [[1, 0], [0, 1]])
    by_topic = Attribute.of("S", SEX, target={"q": [0.5, 0.5], "*": np.array([0.3, 0.7])})
    assert by_topic.spec.target == {"q": (0.5, 0.5), "*": (0.3, 0.7)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"memberships": 3},
            "attribute S: memberships=3; expected a dict {doc: group}, a DataFrame, a Series",
        ),
        ({"memberships": {}}, "S: no membership; expected one or more"),
        ({"target": 3}, "attribute S: target=3; expected 'uniform', 'relevant', shares, {group: share}"),
        ({"target": {"f": "much", "m": 1}}, "attribute S: target="),
        ({"groups": ["f", "m"], "target": {"f": 1.0}}, "a target for f; expected a share for f, m"),
        ({"target": {"f": 0.5, "m": 0.6}}, "a target that sums to 1.1; expected 1"),
        ({"groups": "fm"}, "attribute S: groups='fm'; expected a list of names"),
        ({"groups": ["f"]}, "the unknown group 'm'; expected one of f"),
        ({"topics": "q*"}, "attribute S: topics='q.'; expected a list"),
        ({"weight": "heavy"}, "attribute S: weight='heavy'; expected a number"),
        ({"kind": "interval"}, "attribute S: kind='interval'; expected one of nominal, ordinal"),
        ({"kind": "ordinal"}, "ordinal groups need groups="),
        (
            {"memberships": {"a": ["x", "y"]}},
            r"attribute S: the group \['x', 'y'\]; expected its name, or {group",
        ),
        ({"memberships": {"a": np.array(["x"])}}, r"the group array\(\['x'\].*; expected its name"),
        ({"memberships": {"a": pd.Series(["x"])}}, "the group .*; expected its name"),
        ({"groups": 5}, "attribute S: groups=5; expected a list of names"),
        ({"topics": [1]}, r"attribute S: topics=\[1\]; expected a list of names or globs"),
        (
            {"target": "equal"},
            "target 'equal': there is no such file; expected 'uniform', 'relevant', shares",
        ),
        ({"name": None}, "the name of an attribute is None; expected a text"),
        ({"name": 5}, "the name of an attribute is 5; expected a text"),
        ({"name": ""}, "the name of an attribute is ''; expected a text"),
    ],
)
def test_wrong_attributes(options, message):
    with pytest.raises(FairevalsError, match=message):
        awrf(Attribute.of(**{"name": "S", "memberships": SEX, **options}))


# Tasks


FULL = Task(
    name='a "name"\n\t\\ with 東京 and \x7f',
    qrels=["data/a.qrels", Path("b.qrels")],
    max_grade=2.5,
    order="file",
    cutoff=20,
    measures=[nDCG @ 10, {"measure": fe.GFR(util="ERR"), "label": "GFR-ERR"}, "RR"],
    utility_weight=0.5,
    candidates="retrieved",
    conventions="trec_eval",
    missing="skip",
    max_documents=50,
    attributes={
        "H": {
            "kind": "ordinal",
            "groups": ("<10", "10+"),
            "bins": [10],
            "memberships": "h.gmemb",
            "weight": 2,
        },
        "an odd.name": {
            "groups": ["f", "m"],
            "target": {"f": 0.3, "m": 0.7},
            "topics": ["R*"],
            "unmapped": "skip",
        },
        "T": {"groups": ["f", "m"], "target": {"q.1": [1, 0], "*": (0.5, 0.5)}, "divergence": "NMD"},
        "F": {"groups": ["f"], "target": Path("uniform")},
        "R": AttributeSpec("R", ("x", "y"), target="relevant"),
    },
    policy={"kind": "pl", "temperature": 0.5, "samples": 77, "seed": 9},
)


def test_a_task_from_plain_values():
    assert FULL.qrels == (Path("data/a.qrels"), Path("b.qrels"))
    assert FULL.measures == ("nDCG@10", "GFR(util='ERR')", "RR")
    assert FULL.labels == {"GFR(util='ERR')": "GFR-ERR"}
    assert FULL.attributes["H"].divergence == "RNOD"
    assert FULL.attributes["H"].memberships == Path("h.gmemb")
    assert FULL.attributes["T"].target == {"q.1": (1.0, 0.0), "*": (0.5, 0.5)}
    assert FULL.policy == PolicySpec("pl", 0.5, 77, 9)
    assert Task(policy="pl").policy == PolicySpec("pl")
    assert Task(qrels="x").qrels == (Path("x"),)
    assert Task(measures=nDCG).measures == Task(measures="nDCG").measures == ("nDCG",)
    assert Task(cutoff=np.int64(5), max_grade=np.float32(2), policy={"seed": np.int64(1)}).to_toml() == (
        "max_grade = 2.0\ncutoff = 5\n\n[policy]\nseed = 1\n"
    )
    assert Task(labels={"RR": "first"}, measures="RR").labels == {"RR": "first"}


def test_a_task_is_written_and_read_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FULL.save("task.toml")
    assert Task.from_file("task.toml") == read_task("task.toml") == FULL
    assert fe.Task.from_file(tmp_path / "task.toml").path == tmp_path / "task.toml"
    Task().save("empty.toml")
    assert (Path("empty.toml").read_text(), read_task("empty.toml")) == ("", Task())


def test_paths_follow_the_file(tmp_path, monkeypatch):
    """A task that is written to another folder names the same files."""
    monkeypatch.chdir(tmp_path)
    task = Task(
        qrels=["q.qrels", "/data/q"], attributes={"A": {"groups": ["g"], "memberships": "deep/a.csv"}}
    )
    task.save("deep/task.toml")
    again = read_task("deep/task.toml")
    assert [path.resolve() for path in again.qrels] == [tmp_path / "q.qrels", Path("/data/q")]
    assert again.attributes["A"].memberships == Path("deep/a.csv")
    assert '"a.csv"' in Path("deep/task.toml").read_text()


def test_a_task_is_equal_however_its_paths_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs.csv").write_text("file,name\na.run,A\n")
    sex = {"groups": ["f", "m"], "memberships": "sex.csv", "target": "shares.txt"}
    types = {"TYPE": {"file": "types.csv"}}
    task = fe.Task(qrels="my.qrels", attributes={"SEX": sex}, runs="runs.csv", topic_groups=types)
    task.save(tmp_path / "task.toml")
    for name in ("task.toml", tmp_path / "task.toml", "../" + tmp_path.name + "/task.toml"):
        assert read_task(name) == task
    for change in ({"qrels": "other.qrels"}, {"attributes": {}}, {"runs": ()}, {"cutoff": 3}):
        assert replace(task, **change) != task
    monkeypatch.chdir(tmp_path.parent)
    assert read_task(tmp_path / "task.toml") != task  # relative paths now lead to other files
    assert task != "task.toml"


def test_a_task_in_another_folder_is_read_back_equal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    for task in (Task(qrels=["t.qrels", "a/../b"]), Task(max_grade=0.5), Task(max_grade=1e15)):
        task.save("sub/task.toml")
        assert read_task("sub/task.toml") == task


def test_behind_a_link_a_parent_folder_is_not_that_of_the_link(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("far/deep").mkdir(parents=True)
    Path("link").symlink_to("far/deep")
    Path("far/deep/task.toml").write_text('qrels = "../t.qrels"\n')
    assert read_task("link/task.toml").qrels[0].resolve() == tmp_path / "far" / "t.qrels"
    Task(qrels="t.qrels").save("link/task.toml")
    assert read_task("link/task.toml").qrels[0].resolve() == tmp_path / "t.qrels"


def test_one_glob_of_topics_is_a_list_of_one(tmp_path):
    task = Task(topic_groups={"T": {"M": "M*", "R": ["R*"]}})
    assert task.topic_groups == {"T": {"M": ("M*",), "R": ("R*",)}}
    task.save(tmp_path / "task.toml")
    assert read_task(tmp_path / "task.toml") == task
    assert Task(topic_groups={"T": {"file": "t.csv"}}).topic_groups == {"T": {"file": Path("t.csv")}}


def test_the_sample_task_survives(tmp_path):
    task = read_task(ROOT / "qrels" / "task.toml")
    task.save(tmp_path / "task.toml")
    assert read_task(tmp_path / "task.toml") == task
    with pytest.raises(UsageError, match="runs were given without a table"):
        Task(runs=(RunInfo("a.run"),)).to_toml()


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
shares = st.floats(0, 1e15)


@given(names, names, st.lists(names, min_size=1, max_size=3, unique=True), st.data())
def test_any_text_and_number_survives(tmp_path_factory, name, attribute, groups, data):
    target = data.draw(st.fixed_dictionaries(dict.fromkeys(groups, shares)))
    spec = {"groups": groups, "target": target, "topics": groups, "weight": data.draw(shares)}
    task = Task(name=name, measures=groups, attributes={attribute: spec}, labels={groups[0]: name})
    path = tmp_path_factory.mktemp("task") / "task.toml"
    task.save(path)
    assert read_task(path) == task


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": 3}, "^Task: name = 3; expected a text$"),
        ({"cutoff": 0}, "Task: cutoff = 0; expected a whole number of at least 1"),
        ({"max_grade": -1}, "Task: max_grade = -1; expected a number above 0"),
        ({"max_grade": math.inf}, "Task: max_grade = inf; expected a number"),
        ({"max_grade": 10**400}, "Task: max_grade = 1000.*; expected a number above 0"),
        ({"max_grade": "2"}, "Task: max_grade = '2'; expected a number"),
        ({"order": "rank"}, "Task: order = 'rank'; expected one of score, file"),
        ({"measures": 3}, "Task: measures = 3; expected a list of texts"),
        ({"measures": ["RR", None]}, "Task: measures = .*; expected a list of texts"),
        ({"labels": ["RR"]}, r"Task: labels = \['RR'\]; expected a label for each measure"),
        (
            {"labels": {"RR": "first"}},
            "Task: labels.RR = 'first'; expected labels of nDCG@10, ERR@20, iRBU@20",
        ),
        ({"qrels": 3}, "Task: qrels = 3; expected the name of a file"),
        ({"runs": 3}, "Task: runs = 3; expected the name of a file"),
        ({"runs": "none.csv"}, "none.csv: cannot be read"),
        ({"policy": "PL"}, "Task: policy.kind = 'PL'; expected one of ranking, pl, samples"),
        ({"policy": 3}, r"Task: policy = 3; expected a table, \[policy\]"),
        ({"policy": {"sed": 3}}, "Task: the unknown key 'sed'; expected one of kind, temperature"),
        ({"attributes": ["SEX"]}, r"Task: attributes = \['SEX'\]; expected a table"),
        ({"attributes": {"SEX": 3}}, "Task: attributes.SEX = 3; expected a table"),
        ({"attributes": {"SEX": {}}}, r"Task: attributes.SEX.groups = \[\]; expected one or more names"),
        (
            {"attributes": {"S": {"groups": "fm"}}},
            "Task: attributes.S.groups = 'fm'; expected a list of texts",
        ),
        (
            {"attributes": {"S": {"groups": ["f"], "kind": "x"}}},
            "Task: attributes.S.kind = 'x'; expected one of",
        ),
        (
            {"attributes": {"S": AttributeSpec("S", ("f", "f"))}},
            "Task: attributes.S.groups = .*; expected no group",
        ),
        ({"name": "\udc80"}, "cannot be written as UTF-8"),
    ],
)
def test_wrong_tasks(values, message):
    with pytest.raises((UsageError, InputError), match=message):
        Task(**values).to_toml()

"""What README and the tour do at a terminal can be done in a notebook, with the same numbers."""

from __future__ import annotations

import csv
import io
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairevals as fe
from fairevals.cli.main import main
from fairevals.collection.collection import load_collection
from fairevals.collection.pool import pool
from fairevals.collection.submission import check_submission
from fairevals.derive import derive, describe_derived, read_annotations, write_derived

TOP = Path(__file__).resolve().parent.parent
README = (TOP / "README.md").read_text(encoding="utf-8")
RUN = {"nurse": {"bruno": 3.1, "emil": 2.9, "adaeze": 2.7, "chen": 1.1, "dana": 0.7}}
QRELS = {"nurse": {"adaeze": 2, "bruno": 2, "chen": 1, "dana": 1, "emil": 0}}
GENDER = {"adaeze": "women", "bruno": "men", "chen": "women", "dana": "women", "emil": "men"}


@pytest.fixture(autouse=True)
def beside_the_sample(tmp_path, monkeypatch):
    for part in ("runs", "qrels"):
        shutil.copytree(TOP / part, tmp_path / part)
    monkeypatch.chdir(tmp_path)


def printed(capsys, *words):
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


# README prints the leaderboards of four results (that its commands print them is tested in test_docs.py).


def test_a_run_and_qrels():
    result = fe.evaluate({"system": RUN}, QRELS, ["nDCG@5", "ERR@5", "AP"])
    assert f"-m nDCG@5 -m ERR@5 -m AP\n{result}\n```" in README


def test_a_task_with_groups():
    gender = fe.Attribute.of("GENDER", GENDER, groups=["women", "men"], target={"women": 0.6, "men": 0.4})
    measures = ["nDCG", "GF(attr='GENDER')", "AWRF(attr='GENDER')", "D_group(attr='GENDER')"]
    task = fe.Task(name="Jobs", cutoff=5, measures=measures)
    result = fe.evaluate({"system": RUN}, QRELS, task=task, groups={"GENDER": gender})
    assert f"--task jobs.toml system.run\n{result}\n```" in README


def test_the_leaderboard():
    result = fe.evaluate(sorted(Path("runs").glob("*.run")), task="qrels/task.toml")
    assert f"{result}\n```" in README
    remarks = "".join(f"fairevals: {remark}\n" for remark in result.remarks)
    assert f"{remarks}{result}\n```" in README


def test_policies():
    measures = [fe.nDCG @ 10, fe.ERR, fe.AWRF(attr="ORIGIN")]
    fair = fe.rerank("runs/bm25.run", "target", task="qrels/task.toml", attr="ORIGIN").run
    result = fe.evaluate(["runs/bm25.run", fair], task="qrels/task.toml", measures=measures, policy="pl")
    assert f"{result}\n```" in README


def test_the_python_example_of_the_readme():
    from matplotlib import pyplot

    (block,) = re.findall(r"^```python\n(.*?)^```$", README, re.S | re.M)
    X = np.random.default_rng(0).uniform(0, 3, (40, 2))
    names = {
        "df": pd.read_csv("runs/dense.run", sep=" ", names=["qid", "Q0", "docno", "rank", "score", "tag"]),
        "X": X,
        "y": X.sum(axis=1),
        "qid": np.repeat([1, 2, 3, 4], 10),
        "groups": np.where(X[:, 0] < 1, "f", "m"),
    }
    pyplot.switch_backend("agg")
    exec(block, names)
    pyplot.close("all")
    assert names["result"].runs[0] == "bm25"
    assert Path("report/index.html").is_file()


# The other commands of README's table; for `compare` and `report` see test_result.py.


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--policy", "pl", "-k", "20"], {"policy": "pl", "cutoff": 20}),
        (
            ["--policy", "pl", "--method", "mc", "--samples", "50", "--seed", "3", "--temperature", "2"],
            {"policy": "pl", "method": "mc", "samples": 50, "seed": 3, "temperature": 2.0},
        ),
        (["--attention", "rbp(0.8)", "--merit", "square"], {"attention": "rbp(0.8)", "merit": "square"}),
        (["--by", "group"], {"by": "group"}),
        (["--by", "group", "--attr", "ORIGIN"], {"by": "group", "attributes": "ORIGIN"}),
    ],
)
def test_exposure(capsys, words, options):
    text = printed(capsys, "exposure", "--task", "qrels/task.toml", "runs/popularity.run", *words)
    frame = fe.exposure("runs/popularity.run", task="qrels/task.toml", **options)
    pd.testing.assert_frame_equal(frame, pd.read_csv(io.StringIO(text)), rtol=1e-12, check_dtype=False)


def test_exposure_of_what_python_has():
    frame = fe.exposure({"mine": RUN}, QRELS, groups={"GENDER": GENDER}, by="group")
    overall = frame[frame.topic == "all"].set_index("group")
    weights = 1 / np.log2(1 + np.arange(1, 6))
    assert overall.exposure["men"] == pytest.approx(weights[0] + weights[1])
    assert overall.merit["women"] == pytest.approx(4 / 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "topic"}, "unknown unit of exposure 'topic'; expected one of doc, group"),
        ({"method": "exactly"}, "unknown method 'exactly'; expected one of exact, mc"),
        ({"merit": "cubed"}, "unknown merit 'cubed'"),
        ({"cutoff": 0}, "the cutoff is 0; expected a whole number above 0"),
        ({"by": "group"}, "there are no attributes"),
    ],
)
def test_wrong_exposure(options, message):
    with pytest.raises(fe.UsageError, match=message):
        fe.exposure(RUN, QRELS, **options)
    with pytest.raises(fe.UsageError, match="there are 2 runs; expected one"):
        fe.exposure({"a": RUN, "b": RUN}, QRELS)


def test_validate(capsys):
    Path("broken.run").write_text("R01 Q0 a 1 9.5 mine\nR01 Q0 a 2 9.1 mine\nX99 Q0 b 1 nan yours\n")
    words = ["validate", "--task", "qrels/task.toml", "broken.run", "--most", "99", "--format", "csv"]
    assert main(words) == 1
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))[1:]
    problems = list(check_submission("broken.run", load_collection("qrels/task.toml")))
    assert len(problems) > 3
    assert [[kind, found, expected] for *_, kind, found, expected in rows] == [
        [problem.kind, problem.found, problem.expected] for problem in problems
    ]


def test_pool(capsys):
    files = ["runs/bm25.run", "runs/dense.run"]
    text = printed(capsys, "pool", *files, "--depth", 10)
    assert text == "".join(f"{t} {d} {n}\n" for t, d, n in pool(map(fe.read_run, files), depth=10))


def test_derive(capsys):
    Path("a.csv").write_text("topic,doc,entity,annotator,ORIGIN\nM1,f,X,ann,Asia\nM1,f,X,bob,Asia\n")
    task = fe.Task(
        qrels="d.qrels",
        attributes={"ORIGIN": {"groups": ["Asia", "Europe"], "memberships": "d.gmemb"}},
    )
    task.save("d.toml")
    text = printed(capsys, "derive", "--task", "d.toml", "--annotations", "a.csv", "--out", "by-command")
    derived = derive(fe.read_task("d.toml"), read_annotations("a.csv"))
    files = write_derived(derived, "by-python")
    assert text.startswith(describe_derived(derived))
    for file in files:
        assert file.read_bytes() == (Path("by-command") / file.name).read_bytes()


def test_train_and_predict(capsys):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 3, (40, 2)).round(3), rng.integers(0, 4, 40)
    qid, docs = np.repeat(["a", "b", "c", "d"], 10), np.array([f"d{row}" for row in range(40)])
    groups = np.where(rng.random(40) < 0.4, "minority", "majority")
    letor = (
        f"{g} qid:{q} 1:{one} 2:{two} # {doc}\n"
        for g, q, (one, two), doc in zip(y, qid, X.tolist(), docs, strict=True)
    )
    Path("train.letor").write_text("".join(letor))
    members = pd.DataFrame({"topic": qid, "doc": docs, "group": groups})
    members.to_csv("groups.csv", index=False)
    words = ["--train", "train.letor", "--groups", "groups.csv", "--lambda", "2", "--epochs", "3"]
    printed(capsys, "train", "fair-pg-rank", *words, "-o", "policies")
    fair = fe.FairPGRank(lam=2.0, epochs=3).fit(X, y, qid=qid, groups=groups)
    folder = "policies/fair-pg-rank-lambda2-seed0"
    np.testing.assert_array_equal(fair.predict(X), fe.load_policy(folder).predict(X))

    run = pd.DataFrame({"qid": qid, "docno": docs, "score": fair.predict(X)})
    printed(capsys, "predict", folder, "--data", "train.letor", "-o", "new.run")
    written = fe.read_run("new.run").to_frame().sort_values(["topic", "doc"])
    expected = run.sort_values(["qid", "docno"])
    np.testing.assert_array_equal(written.score, expected.score)

    # The measures of the summary, for this policy as a run.
    summary = pd.read_csv("policies/summary.csv").query("se.isna()")
    qrels = pd.DataFrame({"qid": qid, "docno": docs, "label": y})
    result = fe.evaluate(
        {"fair": run},
        qrels,
        list(summary.measure.unique()),
        groups={"group": fe.Attribute.of("group", members)},
        policy="pl",
    )
    for row in summary[summary.policy == fair.policy_.name].itertuples():
        assert result["fair"][row.measure] == pytest.approx(row.value, abs=1e-12), row.measure

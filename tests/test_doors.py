"""Every door to a number gives the same one, on random tasks: commands, files, Python and ir-measures.

The tasks have what makes doors differ: soft groups, documents without one, intersections, ties, unjudged documents,
missing topics, several rankings, and groups of topics.
"""

from __future__ import annotations

import csv
import io
import json
import math
import warnings
from collections import defaultdict
from pathlib import Path

import ir_measures
import numpy as np
import pandas as pd
import pytest

import fairevals as fe
from fairevals.cli.main import main

TOPICS = [f"{kind}{number}" for kind in "RM" for number in range(4)]
DOCS = [f"d{number}" for number in range(14)]
MEASURES = [
    *("nDCG@5", "ERR@5", "AP", "GFR(util='ERR')@5", "GF(attr='AGE')@5", "M1(attr='X')@5", "Rprec"),
    *("AWRF(attr='X')@5", "D_group(attr='SEX')", "EE_L(attr='X')@5", "UEXP(attr='AGE')", "DP(attr='SEX')"),
    *("Skew(attr='AGE')@5", "NDKL(attr='X')@5", "FAIR(attr='SEX',protected='f',null='hypergeometric')"),
    *("Gini@5", "L2(attr='X')@5", "IAA(amortised=True)", "JME(level='GG',attr='SEX',by='KIND')@5"),
]
TASK = """
qrels = "my.qrels"
max_grade = 3
measures = {measures}
[policy]
kind = "{policy}"
samples = 50
seed = 7
[topic_groups.KIND]
R = ["R*"]
M = ["M*"]
[attributes.SEX]
groups = ["f", "m"]
memberships = "sex.csv"
unmapped = "skip"
target = "relevant"
[attributes.AGE]
kind = "ordinal"
groups = ["young", "mid", "old"]
memberships = "age.csv"
[intersections.X]
of = ["SEX", "AGE"]
"""


def write_run(path: Path, name: str, rng: np.random.Generator, policy: str, lacking: int) -> None:
    lines = []
    for topic in TOPICS[lacking:]:
        for sample in range(3 if policy == "samples" else 1):
            docs = rng.choice(DOCS, rng.integers(4, 10), replace=False).tolist()
            scores = np.round(rng.normal(size=len(docs)), 1)  # some are equal
            lines += [
                f"{topic} {sample} {doc} 1 {score} {name}\n" for doc, score in zip(docs, scores, strict=True)
            ]
    path.write_text("".join(lines))


@pytest.fixture(params=["ranking", "pl", "samples"])
def folder(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(len(request.param))
    Path("my.qrels").write_text(
        "".join(f"{t} 0 {d} {rng.integers(-1, 4)}\n" for t in TOPICS for d in DOCS if rng.random() < 0.6)
    )
    Path("sex.csv").write_text("doc,group\n" + "".join(f"{d},{rng.choice(['f', 'm'])}\n" for d in DOCS[2:]))
    ages = [(d, *rng.dirichlet(np.ones(3))) for d in DOCS[1:]]
    pd.DataFrame(ages, columns=["doc", "young", "mid", "old"]).to_csv("age.csv", index=False)
    Path("task.toml").write_text(TASK.format(measures=json.dumps(MEASURES), policy=request.param))
    for number, name in enumerate(["one", "two", "short"]):
        write_run(Path(f"{name}.run"), name, rng, request.param, lacking=number // 2)
    return request.param


RUNS = ["one.run", "two.run", "short.run"]


def printed(capsys, *words) -> list[dict[str, str]]:
    assert main([*words, "--format", "csv"]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def number(text: str) -> float | None:
    return float(text) if text else None


def by_key(rows, column: str = "value") -> dict[tuple[str, str, str], float | None]:
    return {(row["run"], row["topic"], row["measure"]): number(row[column]) for row in rows}


def read(path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(Path(path).read_text())))


def plain(value: float) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def test_every_door_has_the_same_number(folder, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fe.evaluate(RUNS, task="task.toml")
    frame = result.frame(per_topic=True)
    known = {(r, t, m): plain(v) for r, t, m, v in frame[["run", "topic", "measure", "value"]].to_numpy()}
    errors = {(r, t, m): plain(v) for r, t, m, v in frame[["run", "topic", "measure", "se"]].to_numpy()}
    assert sum(value is not None for value in known.values()) > 0.6 * len(known)
    assert all(known[run, "all", measure] is not None for run in result for measure in MEASURES)

    overall = {key: value for key, value in known.items() if key[1] == "all"}
    rows = printed(capsys, "score", "--task", "task.toml", *RUNS, "-q")
    assert by_key(rows) == known and by_key(rows, "se") == errors

    page = {}
    if folder == "pl":  # its figures take time
        assert main(["report", "--task", "task.toml", *RUNS, "--by", "KIND", "-o", "report"]) == 0
        capsys.readouterr()
        scored = by_key(read("report/scores.csv"))
        assert {key: scored[key] for key in known} == known
        record = json.loads(Path("report/report.json").read_text())
        listed = {(row["run"], "all", row["measure"]): row["value"] for row in record["means"]}
        assert {key: listed[key] for key in overall} == overall
        rows = read("report/leaderboard.csv")
        assert {(row["run"], "all", m): number(row[m]) for row in rows for m in MEASURES} == overall
        page = {(row["run"], row["group"], row["measure"]): row["value"] for row in record["by_group"]}

    assert main(["export", "participants", "--task", "task.toml", *RUNS, "-o", "out"]) == 0
    assert main(["export", "tira", "--task", "task.toml", "one.run", "-o", "tira"]) == 0
    capsys.readouterr()
    for run in result:
        own = by_key({**row, "run": run} for row in read(f"out/{run}.csv"))
        assert {key: known[key] for key in own} == own
    text = Path("tira/evaluation.prototext").read_text()
    assert all(f'value: "{overall["one", "all", m]!r}"' in text for m in MEASURES)

    # The two runs with all topics: where both have a value everywhere, `compare` has the means.
    rows = printed(capsys, "compare", "--task", "task.toml", *RUNS[:2], "--baseline", "one")
    defined = defaultdict(set)
    for (run, topic, measure), value in known.items():
        if run != "short" and value is not None:
            defined[measure, run].add(topic)
    alike = [row for row in rows if defined[row["measure"], "one"] == defined[row["measure"], "two"]]
    assert len(alike) > 10
    for row in alike:
        pair = number(row["mean"]), number(row["baseline_mean"])
        assert pair == tuple(overall[run, "all", row["measure"]] for run in ("two", "one"))

    # A group of topics has the values of a task with these topics alone.
    rows = printed(capsys, "score", "--task", "task.toml", *RUNS, "--by", "KIND")
    for kind in "RM":
        here = [line for line in Path("my.qrels").read_text().splitlines() if line.startswith(kind)]
        Path("part.qrels").write_text("\n".join(here) + "\n")
        wanted = MEASURES[:-1]  # JME needs both groups of topics
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = fe.evaluate(RUNS, "part.qrels", wanted, task="task.toml").pivot()
        for row in rows:
            if row["group"] == kind and row["measure"] in wanted:
                assert number(row["value"]) == plain(alone.loc[row["run"], row["measure"]])
                assert not page or page[row["run"], kind, row["measure"]] == number(row["value"])

    # ir-measures has no place for several rankings, and names the runs by nothing: samples would be drawn otherwise.
    if folder == "ranking":
        by_topic = [m for m in MEASURES[:-4] if "attr" in m or "util" in m]  # others are their own there
        with fe.task("task.toml"):
            asked = [ir_measures.parse_measure(m) for m in by_topic]
            run = list(ir_measures.read_trec_run("one.run"))
            values = ir_measures.iter_calc(asked, list(ir_measures.read_trec_qrels("my.qrels")), run)
            theirs = {("one", v.query_id, m): plain(v.value) for v in values for m in [str(v.measure)]}
        names = {str(measure): ours for measure, ours in zip(asked, by_topic, strict=True)}
        assert len(theirs) >= 0.6 * len(by_topic) * len(TOPICS)
        assert theirs == {key: known[*key[:2], names[key[2]]] for key in theirs}

"""What tables show beyond values: labels of measures, topic groups, intervals, teams and statuses, matrices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import fairevals as fe
from fairevals.cli.main import main

TOP = Path(__file__).resolve().parents[1]
SAMPLE = TOP / "qrels" / "task.toml"
RUNS = [str(TOP / "runs" / f"{name}.run") for name in ("bm25", "dense", "fair-rerank", "random")]
GFR = "GFR(util='ERR')@20"


def printed(capsys, *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.fixture
def task(tmp_path):
    """The sample task with labels and topic groups."""
    text = SAMPLE.read_text(encoding="utf-8")
    for name in ("sample.", "runs.csv"):
        text = text.replace(f'"{name}', f'"{SAMPLE.parent.as_posix()}/{name}')
    label = """{ measure = "GFR(util='ERR')", label = "GFR_ERR" }"""
    start, end = text.index("measures ="), text.index("[attributes.HINDEX]")
    groups = '[topic_groups.TYPE]\nR = ["R*"]\nM = ["M*"]\n'
    text = f'{text[:start]}measures = ["nDCG@10", {label}]\n{groups}{text[end:]}'
    file = tmp_path / "task.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_labels_are_displayed_and_names_stay_in_files(task, capsys):
    score = ["score", "--task", task, *RUNS]
    for style, label in (("table", "GFR_ERR ↑"), ("latex", r"GFR\_ERR $\uparrow$")):
        out = printed(capsys, *score, "--format", style)
        assert label in out
        assert "GFR(" not in out
        out = printed(capsys, "compare", "--task", task, *RUNS, "--baseline", "bm25", "--format", style)
        assert label in out
        assert "GFR(" not in out
    # By the full name, which is that of the task at its cutoff, as much as by the task's own.
    assert "GFR_ERR" in printed(capsys, *score, "-m", GFR)
    assert f'"{GFR}"' in printed(capsys, *score, "--format", "json")
    assert "GFR_ERR" not in printed(capsys, *score, "--format", "csv")


def test_a_dict_of_measures_is_a_task_with_labels(task, capsys):
    labelled = fe.evaluate(
        RUNS, task=SAMPLE, measures={"nDCG@10": fe.nDCG @ 10, "GFR_ERR": "GFR(util='ERR')"}
    )
    assert labelled.render() == printed(capsys, "score", "--task", task, *RUNS)
    assert list(labelled.pivot().columns) == ["nDCG@10", GFR]


def test_labels_in_the_report(task, tmp_path):
    fe.evaluate(RUNS, task=task).report(tmp_path / "r")
    measures = json.loads((tmp_path / "r" / "report.json").read_text(encoding="utf-8"))["measures"]
    assert [(one["name"], one["label"]) for one in measures[:2]] == [("nDCG@10",) * 2, (GFR, "GFR_ERR")]
    page = (tmp_path / "r" / "index.html").read_text(encoding="utf-8")
    assert "Best by GFR_ERR" in page
    assert f"Best by {GFR}" not in page
    assert "GFR_ERR" in (tmp_path / "r" / "figures" / "agreement.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("label", ["same", "RR@20"])
def test_labels_that_collide(label):
    measures = [{"measure": "ERR", "label": label}, {"measure": "RR", "label": "same"}]
    measures = measures if label == "same" else [measures[0], "RR"]
    task = fe.Task(qrels=TOP / "qrels" / "sample.qrels", cutoff=20, measures=measures)
    with pytest.raises(fe.UsageError, match=f"ERR@20 and RR@20 are both displayed as '{label}'"):
        fe.evaluate(RUNS[0], task=task)

"""Names of runs: told apart where tags collide, with teams, and hidden on a public page."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import fairevals as fe
from fairevals.cli.main import main
from fairevals.evaluation.scoring import name_runs

TEAMS = ("alphateam", "betateam", "gammateam")
SECRETS = re.compile("alphateam|betateam|gammateam|[A-Z]+secrettag|secretfile|secretname|secretmeta", re.I)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three runs that need remarks: a topic without judgements, a missing topic, and unjudged documents."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.qrels").write_text("q1 0 a 1\nq1 0 b 0\nq2 0 a 1\nq2 0 b 1\nq3 0 a 1\nq4 0 c 1\n")
    rows = []
    for number, team in enumerate(TEAMS):
        tag = f"{'XYZ'[number]}secrettag"
        docs = ["a", "b", "c", "u", "z"][number:]
        lines = [
            f"q{q} Q0 {doc} 1 {-k} {tag}\n"
            for q in (1, 2, 3, 9)[: 4 - number // 2]
            for k, doc in enumerate(docs)
        ]
        head = "# ir_metadata.start\n# team: secretmeta\n# ir_metadata.end\n"
        (tmp_path / f"secretfile{number}.run").write_text(head + "".join(lines))
        rows.append(f"secretfile{number}.run,{'secretname' if number == 0 else ''},{team},official\n")
    (tmp_path / "runs.csv").write_text("file,name,team,status\n" + "".join(rows))
    (tmp_path / "task.toml").write_text(
        'qrels = "my.qrels"\nruns = "runs.csv"\nmeasures = ["nDCG@10", "EE_L"]\n'
    )
    return tmp_path


FILES = [f"secretfile{number}.run" for number in range(3)]


def key(path):
    return {row["name"]: row for row in csv.DictReader(Path(path).read_text().splitlines())}


def test_nothing_of_the_names_is_in_what_is_published(folder, capsys):
    words = ["--task", "task.toml", *FILES, "--anonymous", "key.csv"]
    assert main(["report", *words, "-o", "out", "--baseline", "Ysecrettag"]) == 0
    published = [path for path in (folder / "out").rglob("*") if path.is_file()]
    assert len(published) > 5
    for path in published:
        assert not SECRETS.search(path.read_text() + str(path.relative_to(folder))), path
    assert "Run 01" in (folder / "out" / "index.html").read_text()
    rows = key("key.csv")
    assert sorted(rows) == ["Run 01", "Run 02", "Run 03"]
    assert {(row["run"], row["file"], row["team"]) for row in rows.values()} == {
        ("secretname", FILES[0], "alphateam"),
        ("Ysecrettag", FILES[1], "betateam"),
        ("Zsecrettag", FILES[2], "gammateam"),
    }
    capsys.readouterr()
    for command in (["score", "-q"], ["compare", "--baseline", FILES[1]]):
        for form in ("table", "csv", "json", "latex"):
            assert main([*command, *words, "--format", form]) == 0
            out, err = capsys.readouterr()
            assert not SECRETS.search(out + err), command
    assert key("key.csv") == rows  # all commands use the same names


def test_values_are_those_of_the_runs(folder):
    options = {"task": "task.toml", "policy": "pl", "samples": 50}
    with pytest.warns(fe.FairevalsWarning):
        plain = fe.evaluate(FILES, **options)
        hidden = fe.evaluate(FILES, **options, anonymous="key.csv")
        other = fe.evaluate(FILES[::-1], **options, anonymous="other.csv")
        seeds = [fe.evaluate(FILES, task="task.toml", seed=s, anonymous=f"{s}.csv").runs for s in range(4)]
    names = {row["run"]: name for name, row in key("key.csv").items()}
    for run in plain.runs:
        assert hidden[names[run]].tolist() == plain[run].tolist()
    assert hidden.frame().equals(other.frame())  # the order of the files does not matter
    assert hidden.runs == ("Run 01", "Run 02", "Run 03")
    assert {*seeds} == {hidden.runs}
    assert len({tuple(row["run"] for row in key(f"{s}.csv").values()) for s in range(4)}) > 1
    assert hidden.compare("Ysecrettag").frame().run.tolist() == hidden.compare(FILES[1]).frame().run.tolist()


def test_the_baseline_is_the_run_that_was_given(folder, capsys):
    words = ["compare", "--task", "task.toml", *FILES, "--anonymous", "key.csv", "--format", "csv"]
    outputs = []
    for baseline in (FILES[2], "Zsecrettag", str(folder / FILES[2])):
        assert main([*words, "--baseline", baseline]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]
    name = next(name for name, row in key("key.csv").items() if row["run"] == "Zsecrettag")
    assert name not in {row["run"] for row in csv.DictReader(outputs[0].splitlines())}


def test_the_key_stays_outside_the_page(folder, capsys):
    words = ["report", "--task", "task.toml", *FILES, "-o", "out"]
    assert main([*words, "--anonymous", "out/key.csv"]) == 2
    assert "is in the folder of the report" in capsys.readouterr().err
    assert main(["score", "--task", "task.toml", *FILES, "--anonymous", FILES[0]]) == 2
    assert "is read by this command" in capsys.readouterr().err


def test_teams_are_shown(folder):
    assert main(["report", "--task", "task.toml", *FILES, "-o", "out"]) == 0
    page = (folder / "out" / "index.html").read_text()
    assert all(team in page for team in TEAMS)


def test_a_baseline_of_the_runs_table_is_that_of_the_report(folder, capsys):
    table = (folder / "runs.csv").read_text()
    for baseline, why in (("secretname", "the first run"), ("Zsecrettag", "the first with that status")):
        assert main(["report", "--task", "task.toml", *FILES, "-o", "out", "--force"]) == 0
        assert f"the baseline is {baseline}, {why}" in capsys.readouterr().err
        assert json.loads((folder / "out" / "report.json").read_text())["baseline"] == baseline
        (folder / "runs.csv").write_text(table.replace("gammateam,official", "gammateam,baseline"))


def test_six_runs_with_three_tags():
    """As at FairWeb-1, where the runs of a team share their tags."""
    runs = [(tag, f"runs/{team}/{tag}.txt") for team in ("A", "B") for tag in ("bm25", "qld", "rerank")]
    assert name_runs(runs)[:4] == [
        "bm25 (A/bm25.txt)",
        "qld (A/qld.txt)",
        "rerank (A/rerank.txt)",
        "bm25 (B/bm25.txt)",
    ]
    assert name_runs([("t", "a/b/x"), ("t", "c/b/x"), ("t", "c/y")]) == ["t (a/b/x)", "t (c/b/x)", "t (y)"]
    assert name_runs([("t", "x"), ("t", "x"), ("u", "x")]) == ["t (x) #1", "t (x) #2", "u"]

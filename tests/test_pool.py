"""The pool of runs, against a version with a dictionary and a loop."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from fairevals.cli.main import main
from fairevals.collection import pool as pooling


def natural(topic):
    """R9 before R10, numbers before letters."""
    return [
        (not part.isdigit(), int(part) if part.isdigit() else part) for part in re.findall(r"\d+|\D+", topic)
    ]


def slow_pool(runs, depth, order, samples, pool_order="document"):
    """Lines of runs, each (topic, sample, doc, score) -> the lines of the pool."""
    counts, ranks = Counter(), Counter()
    for run in runs:
        lists = {}
        for topic, sample, doc, score in run:
            lists.setdefault((topic, sample if samples else ""), []).append((score, doc.encode()))
        seen = {}
        for (topic, _), rows in lists.items():
            best = sorted(rows, reverse=True) if order == "score" else rows
            for rank, (_, doc) in enumerate(best[:depth], 1):
                seen[topic, doc] = min(rank, seen.get((topic, doc), rank))
        counts.update(seen.keys())
        ranks.update(seen)
    if pool_order == "priority":
        ordered = sorted(counts, key=lambda pair: (natural(pair[0]), -counts[pair], ranks[pair], pair[1]))
    else:
        ordered = sorted(counts, key=lambda pair: (natural(pair[0]), pair[1]))
    return "".join(f"{topic} {doc.decode()} {counts[topic, doc]}\n" for topic, doc in ordered)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("samples", [False, True])
def test_random_runs(tmp_path, capsys, monkeypatch, seed, samples):
    rng = np.random.default_rng(seed)
    names = [f"R{n}" for n in range(1, 13)] + ["a", "10"]
    docs = ["d", "D", "dé", "z" * 30, "€", *(f"doc{n}" for n in range(25))]
    runs, files = [], []
    for number in range(int(rng.integers(1, 5))):
        rows = []
        for topic in rng.permutation(names)[: rng.integers(1, len(names))]:
            for sample in ("s1", "s2", "s3") if samples else ("Q0",):
                some = rng.permutation(docs)[: rng.integers(1, 20)]
                rows += [(topic, sample, doc, int(rng.integers(4))) for doc in some]  # many ties
        rows = [rows[i] for i in rng.permutation(len(rows))]
        runs.append(rows)
        files.append(tmp_path / f"{number}.run")
        files[-1].write_text("".join(f"{t} {s} {d} 1 {score} tag\n" for t, s, d, score in rows))
    for depth in (1, 3, 100):
        for order, pool_order in (("score", "document"), ("file", "document"), ("score", "priority")):
            words = ["pool", *map(str, files), "--depth", str(depth), "--rank-by", order]
            words += ["--order", pool_order, *(["--policy", "samples"] if samples else [])]
            expected = slow_pool(runs, depth, order, samples, pool_order)
            for rows_at_once in (1, 7, 1 << 16):
                monkeypatch.setattr(pooling, "_ROWS", rows_at_once)
                assert main(words) == 0
                assert capsys.readouterr().out == expected


def test_texts_are_made_of_few_rows_at_a_time(tmp_path, monkeypatch):
    """Each time, only what is needed is copied: the whole buffer for every topic would take quadratic time."""
    copied = []
    texts = pooling.Ids.texts

    def counting(ids):
        copied.append(ids.buffer.size)
        return texts(ids)

    lines = [f"t{topic} Q0 doc{doc} 1 {-doc} tag\n" for topic in range(300) for doc in range(10)]
    (tmp_path / "a.run").write_text("".join(lines))
    monkeypatch.setattr(pooling, "_ROWS", 100)
    monkeypatch.setattr(pooling.Ids, "texts", counting)
    run = pooling.Run.open(tmp_path / "a.run")
    copied.clear()
    assert len(list(pooling.pool([run], 10))) == 3000
    assert sum(copied) < 2 * run.docs.buffer.size


TASK = """topics = "topics.txt"
qrels = "notyet.qrels"
runs = "runs.csv"
order = "file"
"""


@pytest.fixture
def task(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.toml").write_text(TASK)
    (tmp_path / "topics.txt").write_text("R1\nR2\n")
    (tmp_path / "runs.csv").write_text("file,status\na.run,official\nb.run,baseline\n")
    # The scores contradict the order of lines, which is the task's.
    (tmp_path / "a.run").write_text("R1 Q0 d1 1 1 a\nR1 Q0 d2 2 2 a\nR1 Q0 d3 3 3 a\nX Q0 d1 1 1 a\n")
    (tmp_path / "b.run").write_text("R1 Q0 d3 1 1 b\nR1 Q0 d4 2 2 b\nR2 Q0 d9 1 1 b\n")
    return tmp_path


def test_a_task_before_judging(task, capsys):
    words = ["pool", "--task", "task.toml", "a.run", "b.run"]
    assert main([*words, "--depth", "2"]) == 0
    out, err = capsys.readouterr()
    assert out == "R1 d1 1\nR1 d2 1\nR1 d3 1\nR1 d4 1\nR2 d9 1\n"
    assert "a.run: skipped 1 topic not in the list of topics, such as 'X'" in err
    assert "a.run: nothing for 1 topic, such as 'R2'" in err
    assert "b.run" not in err


@pytest.mark.parametrize(
    ("depth", "expected"),
    [
        ("3,baseline=1", "R1 d3 2\nR1 d1 1\nR1 d2 1\nR2 d9 1\n"),
        ("official=3", "R1 d1 1\nR1 d2 1\nR1 d3 1\n"),
        ("1,official=0", "R1 d3 1\nR2 d9 1\n"),
    ],
)
def test_depth_by_status_and_pages(task, capsys, depth, expected):
    words = ["pool", "--task", "task.toml", "a.run", "b.run", "--order", "priority", "--pages", "pages.tsv"]
    assert main([*words, "--depth", depth]) == 0
    assert capsys.readouterr().out == expected
    pages = [line.rsplit(" ", 1)[0].replace(" ", "\t") for line in expected.splitlines()]
    assert (task / "pages.tsv").read_text() == "\n".join(["topic\tdoc", *pages, ""])


def test_a_run_without_status_is_pooled_as_official_with_a_remark(task, capsys):
    (task / "b.run").rename(task / "c.run")
    assert main(["pool", "--task", "task.toml", "a.run", "c.run", "--depth", "2,baseline=1"]) == 0
    out, err = capsys.readouterr()
    assert "1 run not in the runs table, such as c.run: pooled as official" in err and "R1 d4 1" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--depth", "0"], "'0' is not a whole number of at least 1"),
        (["--depth", "5,winner=3"], "'winner' is not one of official, unofficial, baseline, reference"),
        (["--depth", "5,6"], "two depths for all runs"),
        (["--depth", "5,baseline=3"], "--depth by status needs a task with a runs table"),
        (["--depth", "baseline=3"], "--depth by status needs a task with a runs table"),
        (["--depth", "5", "--pages", "a.run"], "a.run is read by this command"),
        (["--depth", "5", "--pages", "p", "-o", "p"], "two outputs are p"),
    ],
)
def test_wrong_options(task, capsys, words, message):
    try:
        assert main(["pool", "a.run", *words]) == 2
    except SystemExit as exit:
        assert exit.code == 2
    assert message in capsys.readouterr().err

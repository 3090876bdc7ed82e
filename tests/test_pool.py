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
    return [(not part.isdigit(), int(part) if part.isdigit() else part) for part in re.findall(r"\d+|\D+", topic)]


def slow_pool(runs, depth, order, samples):
    """Lines of runs, each (topic, sample, doc, score) -> the lines of the pool."""
    counts = Counter()
    for run in runs:
        lists = {}
        for topic, sample, doc, score in run:
            lists.setdefault((topic, sample if samples else ""), []).append((score, doc.encode()))
        seen = set()
        for (topic, _), rows in lists.items():
            best = sorted(rows, reverse=True) if order == "score" else rows
            seen |= {(topic, doc) for _, doc in best[:depth]}
        counts.update(seen)
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
        for order in ("score", "file"):
            words = ["pool", *map(str, files), "--depth", str(depth), "--order", order]
            words += ["--policy", "samples"] if samples else []
            expected = slow_pool(runs, depth, order, samples)
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

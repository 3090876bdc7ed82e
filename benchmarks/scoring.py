"""Scoring against pytrec_eval: whole processes, from import to printed result, wall time and peak memory.

    python benchmarks/scoring.py            the two comparisons
    python benchmarks/scoring.py --large    also a run of 20 million lines, by this project alone

The peer is a plain script that parses the same files with Python and calls pytrec_eval, as most people do.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PEER = """
import sys, pytrec_eval
def read(path, value, column):
    table = {}
    with open(path) as file:
        for line in file:
            parts = line.split()
            table.setdefault(parts[0], {})[parts[2]] = value(parts[column])
    return table
qrels = read(sys.argv[1], int, 3)
evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10,100"})
for path in sys.argv[2:]:
    result = evaluator.evaluate(read(path, float, 4))
    print(path, *(sum(r[m] for r in result.values()) / len(qrels) for m in ("ndcg_cut_10", "ndcg_cut_100")))
"""


def make(folder: Path, runs: int, topics: int, depth: int) -> tuple[Path, list[Path]]:
    """Files of the given size: sorted runs, 50 judged documents per topic.

    Scores have four decimals, because trec_eval compares scores as float32 and would see more ties with more decimals.
    """
    rng = np.random.default_rng(7)
    qrels, paths = folder / "q.qrels", [folder / f"r{i:03}.run" for i in range(runs)]
    pools = [rng.choice(9_000_000, depth + 200, replace=False) + 1_000_000 for _ in range(topics)]
    with qrels.open("w") as file:
        for topic, pool in enumerate(pools):
            judged = rng.choice(pool, 50, replace=False)
            file.writelines(
                f"{1000 + topic} 0 MSM-{doc} {grade}\n"
                for doc, grade in zip(judged, rng.integers(0, 4, 50), strict=True)
            )
    for number, path in enumerate(paths):
        with path.open("w") as file:
            for topic, pool in enumerate(pools):
                docs = rng.permutation(pool)[:depth]
                scores = np.sort(rng.random(depth) * 30)[::-1]
                file.writelines(
                    f"{1000 + topic} Q0 MSM-{doc} {rank} {score:.4f} run{number:03}\n"
                    for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), 1)
                )
    return qrels, paths


def measure(command: list[str]) -> tuple[float, float, str]:
    """Seconds, peak megabytes and output of a process."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        out.seek(0)
        text = out.read().decode()
    if status:
        raise SystemExit(f"failed: {' '.join(command[:4])} …")
    return seconds, usage.ru_maxrss / 1024, text


def compare(name: str, runs: int, topics: int, depth: int) -> None:
    """Time both on the same files, and check that their values are equal."""
    with tempfile.TemporaryDirectory() as folder:
        qrels, paths = make(Path(folder), runs, topics, depth)
        size = sum(path.stat().st_size for path in paths) / 1e6
        files = [str(path) for path in paths]
        ours = [sys.executable, "-m", "fairevals", "score", "--qrels", str(qrels), "--format", "csv", *files]
        ours += ["-m", "nDCG@10", "-m", "nDCG@100", "-m", "ERR@20"]
        peer_seconds, peer_memory, peer_text = measure([sys.executable, "-c", PEER, str(qrels), *files])
        seconds, memory, text = measure(ours)
        theirs = [float(value) for line in peer_text.splitlines() for value in line.split()[1:]]
        mine = [float(line.split(",")[3]) for line in text.splitlines()[1:] if ",nDCG" in line]
        np.testing.assert_allclose(mine, theirs, atol=1e-9)
    print(f"{name} ({runs * topics * depth:,} lines, {size:.0f} MB)")
    print(f"  pytrec_eval  {peer_seconds:6.2f} s  {peer_memory:6.0f} MB   nDCG@10 nDCG@100")
    print(f"  fairevals    {seconds:6.2f} s  {memory:6.0f} MB   nDCG@10 nDCG@100 ERR@20; same nDCG to 1e-9")
    print(f"  ratio        {seconds / peer_seconds:6.2f}    {memory / peer_memory:6.2f}", flush=True)


def large() -> None:
    """A run of 20 million lines, by this project alone."""
    with tempfile.TemporaryDirectory() as folder:
        qrels, paths = make(Path(folder), 1, 20_000, 1000)
        command = [sys.executable, "-m", "fairevals", "score", "--qrels", str(qrels), str(paths[0])]
        size = paths[0].stat().st_size / 1e6
        print(
            f"one run of 20,000 topics × 1,000 documents (20,000,000 lines, {size:.0f} MB), fairevals alone"
        )
        for measures in (["nDCG@10", "ERR@20"], ["nDCG"]):
            options = [option for m in measures for option in ("-m", m)]
            seconds, memory, _ = measure([*command, *options])
            print(f"  {' '.join(measures):<16} {seconds:6.2f} s  {memory:6.0f} MB", flush=True)


if __name__ == "__main__":
    compare("one large run: 5,000 topics × 1,000 documents", 1, 5000, 1000)
    compare("many runs: 100 × 50 topics × 1,000 documents", 100, 50, 1000)
    if "--large" in sys.argv[1:]:
        large()

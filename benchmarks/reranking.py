"""Re-ranking: the linear programme by its dual against HiGHS, and the time of exposure offsets.

    python benchmarks/reranking.py

Every line is one process; times are of the process, the best of a few runs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fairevals.measures.disparity import group_disparity
from fairevals.policy.offsets import exposure_offsets
from fairevals.reranking import lp
from fairevals.typing import Floats


def seconds(work: Callable[[], object], runs: int = 3) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def programme(n: int) -> None:
    """One topic of two groups, with a λ at which rankings are mixed, solved by both."""
    rng = np.random.default_rng(n)
    membership = np.eye(2)[rng.integers(0, 2, n)]
    grades, lam = 1 + 0.2 * rng.random(n) + 0.2 * membership[:, 0], 1000.0
    solved = lp._programme(grades, membership, lam)

    def objective(exposure: Floats) -> float:
        disparity = group_disparity(exposure, grades, membership)
        return float((np.exp2(grades) - 1) @ exposure - lam * disparity)

    mixture, matrix = lp._by_dual(solved), lp._by_highs(solved)  # the first call loads scipy
    dual, highs = seconds(lambda: lp._by_dual(solved)), seconds(lambda: lp._by_highs(solved))
    ours, peer = objective(mixture.exposure(solved.attention)), objective(matrix @ solved.attention)
    print(
        f"  {n:5} documents: dual {1e3 * dual:6.2f} ms ({len(mixture.weights)} rankings), HiGHS {1e3 * highs:7.1f} ms: "
        f"{highs / dual:5.0f} times faster; objective {(ours - peer) / abs(peer):+.0e} of its size",
        flush=True,
    )


def offsets(n: int, groups: int) -> None:
    """Parity for topics of n documents."""
    rng = np.random.default_rng(n)
    scores, membership = 3 * rng.normal(size=(5, n)), np.eye(groups)[rng.integers(0, groups, (5, n))]
    found = exposure_offsets(scores, membership, membership.sum(axis=1))
    each = seconds(lambda: exposure_offsets(scores, membership, membership.sum(axis=1)), runs=1) / 5
    worst = np.abs(found.share - found.goal).max()
    print(
        f"  {n:5} documents, {groups:2} groups: {1e3 * each:7.1f} ms a topic; shares off by {worst:.0e}",
        flush=True,
    )


def main() -> None:
    print("The linear programme of two groups, without the decomposition into rankings that HiGHS needs")
    for n in (10, 30, 100):
        programme(n)
    print("Exposure offsets for parity")
    for n, groups in ((10, 2), (100, 2), (1000, 2), (100, 5), (1000, 5)):
        offsets(n, groups)


if __name__ == "__main__":
    main()

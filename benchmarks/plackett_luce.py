"""Plackett-Luce: exact exposure against Monte-Carlo, the sampler against a loop over numpy's `choice`.

    python benchmarks/plackett_luce.py

Every line compares two ways in one process. Times are the best of a few runs; errors are the largest over the
documents, against exact exposure at tolerance 1e-12. Peak memory is what numpy and Python allocate during one
run, as traced by tracemalloc.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fairevals.policy.plackett_luce import PlackettLuce


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def peak_megabytes(work: Callable[[], object]) -> float:
    tracemalloc.start()
    work()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def line(what: str, *numbers: str) -> None:
    print(f"{what:<46}" + "".join(f"{number:>20}" for number in numbers))


def milliseconds(time: float) -> str:
    return f"{1e3 * time:.2f} ms"


def exact_against_monte_carlo(n: int, k: int | None) -> None:
    policy = PlackettLuce(np.random.default_rng(n).normal(size=n))

    def exact(tolerance: float = 1e-6) -> np.ndarray:
        return policy.exposure("log2", k, tolerance=tolerance).value

    def sampled() -> np.ndarray:
        return policy.exposure("log2", k, method="mc", samples=5000).value

    reference = exact(1e-12)
    exact_error, sampled_error = (np.abs(way() - reference).max() for way in (exact, sampled))
    exact_time, sampled_time = seconds(exact, runs=20), seconds(sampled, runs=10)
    line(
        f"{n} documents, {'all ranks' if k is None else f'top {k}'}",
        milliseconds(exact_time),
        milliseconds(sampled_time),
        f"{sampled_time / exact_time:.1f}",
        f"{exact_error:.1e}",
        f"{sampled_error:.1e}",
        f"{sampled_error / exact_error:.0f}",
    )


def batches() -> None:
    for topics in (250, 500, 1000):
        policy = PlackettLuce(np.random.default_rng(1).normal(size=(topics, 100)))
        work = lambda policy=policy: policy.exposure("log2", tolerance=1e-6)  # noqa: E731
        time = seconds(work, runs=1)
        memory = f"{peak_megabytes(work):.0f}" if topics == 1000 else ""
        line(
            f"{topics} topics × 100 documents, all ranks",
            milliseconds(time),
            milliseconds(time / topics),
            memory,
        )
    policy = PlackettLuce(np.random.default_rng(2).normal(size=10_000))
    work = lambda: policy.exposure("log2", 100, tolerance=1e-6)  # noqa: E731
    time = seconds(work, runs=1)
    line(
        "1 topic × 10,000 documents, top 100",
        milliseconds(time),
        milliseconds(time),
        f"{peak_megabytes(work):.0f}",
    )


def training() -> None:
    for topics, n in ((1, 10), (1, 24), (500, 10)):
        scores = np.random.default_rng(3).normal(size=(topics, n))
        exposure = seconds(lambda scores=scores: PlackettLuce(scores).exposure("log2", tolerance=1e-6))
        value, vjp = PlackettLuce(scores).exposure_with_vjp("log2", tolerance=1e-6)
        gradient = seconds(lambda value=value, vjp=vjp: vjp(value))
        line(f"{topics} topics × {n} documents, all ranks", milliseconds(exposure), milliseconds(gradient))


def choice_loop(scores: np.ndarray, samples: int, k: int) -> None:
    rng = np.random.default_rng(0)
    weights = np.exp(scores - scores.max())
    share = weights / weights.sum()
    for _ in range(samples):
        rng.choice(len(scores), size=k, replace=False, p=share)


def sampler_against_choice(n: int, k: int, samples: int) -> None:
    scores = np.random.default_rng(4).normal(size=n)
    ours = seconds(lambda: PlackettLuce(scores).sample(samples, k)) / samples
    loop = seconds(lambda: choice_loop(scores, samples, k), runs=2) / samples
    line(f"{n} documents, {f'top {k}'}", f"{1 / ours:,.0f}/s", f"{1 / loop:,.0f}/s", f"{loop / ours:.1f}")


def sampling_memory() -> None:
    policy = PlackettLuce(np.random.default_rng(5).normal(size=(1000, 100)))
    work = lambda: policy.sample(1000, 10)  # noqa: E731
    time = seconds(work, runs=1)
    line("1,000 topics × 100 documents × 1,000, top 10", milliseconds(time), f"{peak_megabytes(work):.0f}")


def main() -> None:
    line(
        "Exact (1e-6) against 5,000 samples",
        "exact",
        "sampled",
        "times faster",
        "exact error",
        "sampled error",
        "ratio",
    )
    exact_against_monte_carlo(10, None)
    exact_against_monte_carlo(100, None)
    exact_against_monte_carlo(100, 10)
    exact_against_monte_carlo(1000, 10)
    print()
    line("Batches, exact (1e-6)", "all", "per topic", "peak MB")
    batches()
    print()
    line("Training, exact (1e-6)", "exposure", "gradient")
    training()
    print()
    line("Sampler against a loop over choice", "sampler", "choice", "times faster")
    sampler_against_choice(10, 10, 2000)
    sampler_against_choice(100, 10, 2000)
    sampler_against_choice(100, 100, 1000)
    sampler_against_choice(1000, 10, 1000)
    print()
    line("Sampling in bounded memory", "all", "peak MB")
    sampling_memory()


if __name__ == "__main__":
    main()

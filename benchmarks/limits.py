"""Large inputs: time and peak memory of whole processes, and how both grow.

    python benchmarks/limits.py                  all cases at full size, some minutes
    python benchmarks/limits.py --scale 0.1      at a tenth
    python benchmarks/limits.py topics pool      only these cases

Each case is run at a quarter of its size and at its size. The growth is the exponent e of n^e between the two: of the
processor's time in the program itself, which other programs disturb least, and of the memory, both beyond what a call
with next to no input needs. 1 is linear, and n·log n is at most 1.1 at these sizes. One large run is then scored with
one process and with two, which must print the same bytes; of three calls each the fastest counts.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

SCORE = ["score", "--qrels", "q.qrels", "--format", "csv"]


def write(name: str, lines: Iterable[str]) -> str:
    with Path(name).open("w") as file:
        file.writelines(lines)
    return name


def qrels(topics: int, documents: int = 1) -> None:
    write("q.qrels", (f"t{t} 0 d{d} {(t + d) % 3}\n" for t in range(topics) for d in range(documents)))


def run(topics: int, documents: int, number: int = 0) -> str:
    lines = (
        f"t{t} Q0 d{(d * 7 + number) % documents if documents % 7 else d} {d + 1} {documents - d} run{number}\n"
        for t in range(topics)
        for d in range(documents)
    )
    return write(f"r{number}.run", lines)


def topics(n: int) -> list[str]:
    qrels(n)
    return [*SCORE, run(n, 1), "-m", "nDCG@10", "-m", "P@1"]


def documents(n: int) -> list[str]:
    qrels(1, min(n, 1000))
    return [*SCORE, run(1, n), "-m", "nDCG", "-m", "AP"]


def groups(n: int) -> list[str]:
    per_topic = math.ceil(n / 100)
    qrels(100, per_topic)
    write("groups.csv", ["doc,group\n", *(f"d{d},g{d % n}\n" for d in range(n))])
    names = ", ".join(f'"g{g}"' for g in range(n))
    write(
        "task.toml",
        [f'qrels = "q.qrels"\n[attributes.G]\ngroups = [{names}]\nmemberships = "groups.csv"\n'],
    )
    return ["score", "--task", "task.toml", run(100, min(per_topic, 100)), "-m", "AWRF(attr='G')@20"]


def runs(n: int) -> list[str]:
    qrels(50, 20)
    return [*SCORE, *(run(50, 20, number) for number in range(n)), "-m", "nDCG@10", "-m", "AP"]


def measures(n: int) -> list[str]:
    qrels(50, 20)
    return [*SCORE, run(50, 100), *(word for k in range(1, n + 1) for word in ("-m", f"nDCG@{k}"))]


def pool(n: int) -> list[str]:
    return ["pool", run(n, 1), "--depth", "10"]


def report(n: int) -> list[str]:
    qrels(50, 20)
    names = [run(50, 20, number) for number in range(n)]
    return ["report", "--qrels", "q.qrels", *names, "-m", "nDCG@10", "-m", "AP", "-o", f"report-{n}"]


CASES: dict[str, tuple[Callable[[int], list[str]], int, str]] = {
    "topics": (topics, 1_000_000, "score: topics, 1 document each"),
    "documents": (documents, 5_000_000, "score: documents of 1 topic"),
    "groups": (groups, 100_000, "score: groups of an attribute"),
    "runs": (runs, 1000, "score: runs of 50 topics"),
    "measures": (measures, 1000, "score: measures"),
    "pool": (pool, 1_000_000, "pool: topics"),
    "report": (report, 200, "report: runs of 50 topics"),
}


class Usage(NamedTuple):
    """What a process needed: seconds on the clock and of the processor, and megabytes at most."""

    seconds: float
    processor: float
    memory: float
    output: bytes


def call(words: list[str]) -> Usage:
    """Run the program."""
    # Installed programs have their bytecode; some containers forbid to write it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    start = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "fairevals", *words],
            stdout=out,
            stderr=err,
            env=environment,
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        for file in (out, err):
            file.seek(0)
        if status:
            raise RuntimeError(err.read().decode().strip().rpartition("\n")[2])
        return Usage(seconds, used.ru_utime, used.ru_maxrss / 1024, out.read())


def exponent(start: float, quarter: float, full: float, least: float) -> str:
    """The growth from a quarter to the whole, beyond what every call needs; – where that is too little to tell."""
    if quarter - start < least:
        return "–"
    return f"{math.log(max(full - start, 1e-9) / (quarter - start), 4):.2f}"


def grow(name: str, scale: float) -> None:
    make, size, label = CASES[name]
    full = max(8, round(size * scale))
    start, quarter = call(make(2)), call(make(full // 4))
    print(
        f"{label:<32} {full // 4:>9,} {quarter.seconds:8.2f} s {'':>6} {quarter.memory:8.0f} MB", flush=True
    )
    whole = call(make(full))
    time_growth = exponent(start.processor, quarter.processor, whole.processor, 0.05)
    memory_growth = exponent(start.memory, quarter.memory, whole.memory, 2)
    print(
        f"{label:<32} {full:>9,} {whole.seconds:8.2f} s {time_growth:>6} {whole.memory:8.0f} MB {memory_growth:>6}"
    )


def parallel(scale: float) -> None:
    lines = round(5_000_000 * scale)
    qrels(lines // 1000, 50)
    words = [*SCORE, run(lines // 1000, 1000), "-m", "nDCG@10", "-q"]
    calls = [[call([*words, "--jobs", jobs]) for jobs in ("1", "2")] for _ in range(3)]
    one, two = (min(column, key=lambda usage: usage.seconds) for column in zip(*calls, strict=True))
    same = "the same bytes" if one.output == two.output else "OTHER BYTES"
    ratio = two.seconds / one.seconds
    print(
        f"one run of {lines:,} lines: {one.seconds:.2f} s, with --jobs 2 {two.seconds:.2f} s, ratio {ratio:.2f}; {same}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join([*CASES, "parallel"]))
    parser.add_argument("--scale", type=float, default=1.0, help="size of all inputs, as a share")
    args = parser.parse_args()
    chosen = args.cases or [*CASES, "parallel"]
    if unknown := set(chosen) - {*CASES, "parallel"}:
        parser.error(f"unknown case {min(unknown)}")
    # A case that asks for more memory than the machine has fails by itself, not the machine.
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    print(f"{'':<32} {'n':>9} {'time':>10} {'growth':>6} {'memory':>11} {'growth':>6}")
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            try:
                parallel(args.scale) if name == "parallel" else grow(name, args.scale)
            except RuntimeError as error:
                print(f"{name} failed: {error}", flush=True)


if __name__ == "__main__":
    main()

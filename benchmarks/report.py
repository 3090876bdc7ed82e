"""Time and size of a whole report: generated runs, ten measures, one process.

python benchmarks/report.py [RUNS [TOPICS [DEPTH]]]      default 30 100 1000
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scoring import make

MEASURES = [
    *("nDCG@10", "nDCG@100", "ERR@20", "iRBU@20", "P@10", "AP", "RR@10"),
    *("GF(attr='SIDE',div='JSD')@20", "AWRF(attr='SIDE')@20", "D_group(attr='SIDE')@20"),
]


def main(runs: int = 30, topics: int = 100, depth: int = 1000) -> None:
    print(f"Report of {runs} runs x {topics} topics x {depth} documents x {len(MEASURES)} measures, one job")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        qrels, paths = make(folder, runs, topics, depth)
        docs = sorted({line.split()[2] for path in (qrels, *paths) for line in path.open()})
        rows = (f"{doc},{'left' if number % 3 else 'right'},1\n" for number, doc in enumerate(docs))
        (folder / "groups.csv").write_text("doc,group,weight\n" + "".join(rows))
        (folder / "task.toml").write_text(
            f'name = "generated"\nqrels = "{qrels.name}"\nmeasures = {MEASURES!r}\n\n'
            '[attributes.SIDE]\ngroups = ["left", "right"]\nmemberships = "groups.csv"\n'
        )
        command = [sys.executable, "-m", "fairevals", "report", "--task", str(folder / "task.toml")]
        begin = time.perf_counter()
        subprocess.run(
            [*command, *map(str, paths), "-o", str(folder / "out")], check=True, capture_output=True
        )
        seconds = time.perf_counter() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        page = (folder / "out" / "index.html").stat().st_size / 1e6
        processor = used.ru_utime + used.ru_stime
        print(
            f"  {seconds:.1f} s ({processor:.1f} s of processor), {used.ru_maxrss / 1024:.0f} MB at most, "
            f"index.html {page:.2f} MB"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

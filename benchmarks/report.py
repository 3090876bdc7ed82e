"""Time and size of a whole report, and how soon a browser shows it: generated runs, ten measures, one process.

    python benchmarks/report.py [RUNS [TOPICS [DEPTH]]]      default 40 200 1000

The first paint needs Playwright and Chromium, and is skipped without them.
"""

from __future__ import annotations

import resource
import shutil
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


def main(runs: int = 40, topics: int = 200, depth: int = 1000) -> None:
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
        page = folder / "out" / "index.html"
        processor = used.ru_utime + used.ru_stime
        print(
            f"  {seconds:.1f} s ({processor:.1f} s of processor), {used.ru_maxrss / 1024:.0f} MB at most, "
            f"index.html {page.stat().st_size / 1e6:.2f} MB"
        )
        first_paint(page)


def first_paint(page: Path, times: int = 3) -> None:
    """Print how soon Chromium paints the page for the first time, and when its script has run; the best of several."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("  first paint: not measured, there is no Playwright or no Chromium")
        return
    painted, loaded = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(times):
            tab = browser.new_page(viewport={"width": 1400, "height": 900})
            tab.goto(page.as_uri())
            tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
            paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            painted.append(tab.evaluate(paint) / 1000)
            loaded.append(tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000)
            tab.close()
        browser.close()
    print(f"  first paint after {min(painted):.2f} s, loaded after {min(loaded):.2f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

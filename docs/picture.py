"""Draw the picture of the report that the README shows: the sample task's report, as Chromium shows it.

    python docs/picture.py [FILE]      default docs/report.png

Needs Playwright's Python package and Chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import fairevals as fe

TOP = Path(__file__).resolve().parent.parent
VIEW = "#runs=fair-rerank&runs=dense"


def main(target: str = str(TOP / "docs" / "report.png")) -> None:
    """Write the report of the sample to a temporary folder, and its first screens to a file."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    result = fe.evaluate(sorted(TOP.glob("runs/*.run")), task=TOP / "qrels" / "task.toml")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = result.report(Path(folder) / "report", baseline="bm25")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1400, "height": 1130})
        tab.goto(page.as_uri() + VIEW)
        tab.wait_for_timeout(300)
        tab.screenshot(path=target)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Draw the picture of the annotation tool in the README.

    python docs/make_annotate_picture.py        writes docs/annotate.png

It starts `fairevals demo --annotate` in a temporary folder, enters the people of a page by keyboard, and takes a
picture in Chromium. It needs Playwright's Python package and a Chromium.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PICTURE = Path(__file__).resolve().parent / "annotate.png"
SIZE = {"width": 1200, "height": 640}
GROUPS = ("Africa", "Americas", "Asia", "Europe", "Oceania")


def enter(page: Page) -> None:
    """Go to a page that names several people, and enter the first three."""
    while len(people := re.findall(r"(\w+ \w+) has an h-index of (\d+)", shown_text(page))) < 2:
        page.keyboard.press("s")
        page.wait_for_load_state()
    regions = re.search(r"tied to ([\w ]+)\.", shown_text(page))
    for number, (name, hindex) in enumerate(people[:3], 1):
        page.keyboard.press("Escape")
        page.keyboard.press(str(number))
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        page.keyboard.type(hindex)
        page.keyboard.press("Enter")
        for region in regions[1].split(" and ") if regions else ():
            page.keyboard.press(str(GROUPS.index(region) + 1))


def shown_text(page: Page) -> str:
    """The text of the pooled page."""
    return page.frame_locator("#frame").locator("body").inner_text()


def main() -> None:
    """Write the picture."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "fairevals", "demo", "--annotate", "-o", folder, "--port", "0"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server, sync_playwright() as p:
            try:
                links = dict((server.stdout or sys.stdin).readline().split() for _ in range(3))
                browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                page = browser.new_page(viewport=SIZE)
                page.goto(links["ann"])
                enter(page)
                page.screenshot(path=PICTURE)
                browser.close()
            finally:
                server.terminate()


if __name__ == "__main__":
    main()

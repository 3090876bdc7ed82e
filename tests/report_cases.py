"""Tasks, hostile names and a reader of pages, for the tests of reports."""

from __future__ import annotations

import argparse
import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from fairevals.cli.report import configure
from fairevals.cli.report import run as run_report

HOSTILE = [
    "<script>alert(1)</script>",
    "\"quotes'&amp;`",
    "long" * 2500,
    "\u202eright-to-left\u202c",
    "emoji🦊👩‍🔬",
    "../../x",
    "</script><img/src=x/onerror=alert(1)>",
    "{{7*7}}{%raw%}",
    "$x^2$\\frac",
]
MEASURES = ["nDCG@10", "ERR@10", "AWRF(attr='G')", "D_group(attr='G')", "DP(attr='G',protected='g1')"]


class Page(HTMLParser):
    """What stands in a page: elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text, self.scripts, self._inside = "", [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else ""
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif not self._inside:
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def write_task(place: Path, runs: list[str], topics: list[str], seed: int = 0) -> tuple[Path, list[str]]:
    """A task of `topics` with an attribute of three groups, and a run for each tag, each better than the one before."""
    place.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    docs = [f"d{i:02}" for i in range(30)]
    grades = {(t, d): int(rng.choice([0, 0, 1, 2])) for t in topics for d in docs}
    (place / "t.qrels").write_text(
        "".join(f"{t} 0 {d} {g}\n" for (t, d), g in grades.items()), encoding="utf-8"
    )
    (place / "g.csv").write_text("doc,group\n" + "".join(f"{d},g{i % 3}\n" for i, d in enumerate(docs)))
    (place / "task.toml").write_text(
        'name = "A <b>bold</b> task"\nqrels = "t.qrels"\ncutoff = 10\n'
        f"measures = {json.dumps(MEASURES)}\n"
        '[attributes.G]\nkind = "nominal"\ngroups = ["g0", "g1", "g2"]\nmemberships = "g.csv"\n',
        encoding="utf-8",
    )
    files = []
    for number, tag in enumerate(runs):
        path = place / f"{number:02}.run"
        with path.open("w", encoding="utf-8") as file:
            for t in topics:
                scores = rng.random(len(docs))
                for i, d in enumerate(docs):
                    score = scores[i] + 0.3 * number * grades[t, d] - 0.1 * number * (i % 3 == 0)
                    file.write(f"{t} Q0 {d} 0 {score:.6f} {tag}\n")
        files.append(str(path))
    return place / "task.toml", files


def make(task, files, out: Path, *arguments: str) -> int:
    """Run `fairevals report`."""
    parser = argparse.ArgumentParser()
    configure(parser)
    return run_report(parser.parse_args(["--task", str(task), *files, "-o", str(out), *arguments]))

"""A small annotation project: the worked example of NTCIR-17 FairWeb-1, with pages, a pool and two assessors."""

from __future__ import annotations

from pathlib import Path

from fairevals.annotate.server import AnnotationInputs, open_site
from fairevals.annotate.store import Store

TASK = """
name = "Ants & <others>"
topics = "topics.tsv"
qrels = "fairweb.qrels"
max_grade = 2
measures = ["ERR@20", "iRBU@20", "GF(attr='HINDEX',div='NMD')@20"]

[attributes.HINDEX]
kind = "ordinal"
groups = ["<10", "10-29", "30-49", ">=50"]
bins = [10, 30, 50]
memberships = "fairweb.HINDEX.gmemb"

[attributes.REGION]
groups = ["Africa", "Americas", "Asia", "Europe"]
memberships = "fairweb.REGION.gmemb"

[attributes.SUBSCRIBERS]
groups = ["few", "many"]
topics = ["Y*"]

[topic_groups.TYPE]
researchers = ["R*"]

[annotation]
entities = 3

[annotation.fields]
researchers = ["h-index URL"]
"""
PAGES = {
    "p1.html": "<h1>Ant people</h1><p>Xenia Ant, Yuri Ant and Zoe Ant study ants.</p>",
    "p2.txt": "Nobody is named here, only ants.\n",
    "p3.html": "<h1>W</h1><p>Wanda Ant has an h-index of 90.</p>",
}
RUN = "".join(f"R01 Q0 p{rank} {rank} {10 - rank} mine\n" for rank in (1, 2, 3))
EXAMPLE = {
    "ann": {"p1": {"Xenia Ant": "5", "Zoe Ant": "20"}, "p2": {}, "p3": {"Wanda Ant": "90"}},
    "bob": {"p1": {"xenia ant": "5", "Yuri Ant": "6", "Zoe Ant": "20"}, "p2": {}, "p3": {}},
}
"""What each assessor finds on each page: entities with their h-index. X and Z are found by two, Y and W by one."""
GOLD = {"ERR@20": 0.7708, "iRBU@20": 0.8031, "GF(attr='HINDEX',div='NMD')@20": 0.5162}


def write_inputs(
    folder: Path, pages: dict[str, str] = PAGES, per_page: int | None = None
) -> AnnotationInputs:
    """Write the files of the project."""
    (folder / "pages").mkdir(parents=True)
    files = {
        "task.toml": TASK,
        "topics.tsv": "topic\ttitle\ttype\nR01\tpeople who <i>study</i> ants\tresearchers\n",
        "pool.txt": "".join(f"R01 {name.partition('.')[0]} 2\n" for name in pages),
        "assessors.csv": "assessor\nann\nbob\n",
        "mine.run": RUN,
        **{f"pages/{name}": text for name, text in pages.items()},
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    names = ("task.toml", "pool.txt", "pages", "assessors.csv")
    return AnnotationInputs(*(folder / name for name in names), per_page=per_page)


def opened(folder: Path, url: str = "http://localhost:8765", **given):
    """A site, and the tokens of its assessors and of the organiser (with an empty name)."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    store = Store(folder / "data", create=True)
    site, tokens = open_site(write_inputs(folder, **given), store, url)
    return site, {**tokens, "": site.project.new_link("")}


def fields_of(entities: dict[str, str]) -> dict[str, str]:
    """The inputs of the form for entities with their h-index, all from Asia."""
    inputs = {}
    for i, (name, hindex) in enumerate(entities.items()):
        inputs |= {f"e{i}": name, f"e{i}f0": hindex, f"e{i}f1": "Asia", f"e{i}f2": "https://example.org/h"}
    return inputs

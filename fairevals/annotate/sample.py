"""A small project to try the tool on: some topics of the sample task, with invented pages."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np

from fairevals.annotate.server import AnnotationInputs
from fairevals.collection.pool import pool
from fairevals.collection.run import read_run
from fairevals.io.memberships import read_memberships
from fairevals.io.specs import AnnotationSpec, AttributeSpec
from fairevals.io.streams import written
from fairevals.io.task import Task, read_task

TOPICS = ("R01", "R02", "M01")
DEPTH = 3
SAMPLE_PEOPLE = ("Ana Brook", "Ben Stone", "Cai Reed", "Dua Field", "Eli Marsh")
"""The members of groups, who have no names in the sample."""

Shares = Mapping[str, Mapping[str, float]]
"""By attribute, the share of each group."""


def write_sample_project(data: Path, folder: Path) -> AnnotationInputs:
    """Write a task, a pool, its pages and two assessors for the sample in `data`; files that exist stay as they are."""
    fields = AnnotationSpec(fields={"R*": ("biography URL",)})
    task = replace(
        read_task(data / "qrels" / "task.toml"), topics=data / "qrels" / "topics.tsv", annotation=fields
    )
    runs = [read_run(path) for path in sorted((data / "runs").glob("*.run"))]
    pooled = [(topic, doc) for topic, doc, _ in pool(runs, DEPTH, topics=TOPICS)]
    shares = _shares(task)
    texts = {
        "task.toml": task.to_toml(folder),
        "pool.txt": "".join(f"{topic} {doc}\n" for topic, doc in pooled),
        "assessors.csv": "assessor\nann\nbob\n",
        **{f"pages/{doc}.html": page_text(task, doc, shares.get(doc, {})) for _, doc in pooled},
    }
    for name, text in texts.items():
        if not (folder / name).exists():
            with written(folder / name) as file:
                file.write(text)
    return AnnotationInputs(
        folder / "task.toml", folder / "pool.txt", folder / "pages", folder / "assessors.csv"
    )


def _shares(task: Task) -> dict[str, dict[str, dict[str, float]]]:
    """By document, then by attribute."""
    shares: dict[str, dict[str, dict[str, float]]] = {}
    for name, spec in task.attributes.items():
        columns = read_memberships(spec)
        weights = columns.dense(np.arange(columns.topic_of.size))
        for doc, row in zip(columns.docs.texts(), weights.tolist(), strict=True):
            shares.setdefault(doc, {})[name] = {g: w for g, w in zip(spec.groups, row, strict=True) if w > 0}
    return shares


def page_text(task: Task, doc: str, shares: Shares) -> str:
    """An invented page on a researcher, a group of researchers or a film, which states what its memberships say."""
    owner, _, place = doc.partition(".")
    title = owner.replace("-", " ").title()
    if not place:
        origin = " and ".join(shares.get("ORIGIN", {})) or "an unknown part of the world"
        lines = [f"A film from {origin}.", "Its plot, its cast and its director are invented."]
    else:
        lines = [
            f"{title}, {place.replace('-', ' ').title()}.",
            *_people(task.attributes["HINDEX"], doc, title, shares),
        ]
    style = "body{font:17px/1.6 Georgia,serif;max-width:38rem;margin:2rem auto;padding:0 1rem}"
    body = "\n".join(f"<p>{escape(line)}</p>" for line in lines)
    return (
        f'<!doctype html><meta charset="utf-8"><title>{escape(title)}</title><style>{style}</style>\n'
        f"<h1>{escape(title)}</h1>\n{body}\n<p><small>An invented page of the sample task.</small></p>\n"
    )


def _people(hindex: AttributeSpec, doc: str, title: str, shares: Shares) -> Iterator[str]:
    draws, groups = random.Random(doc), shares.get("HINDEX", {})
    ends = [0, *map(int, hindex.bins), 90]
    # So many people that each of them is in one group.
    size = next((n for n in range(1, 6) if all(abs(w * n - round(w * n)) < 1e-6 for w in groups.values())), 1)
    of = [group for group, weight in groups.items() for _ in range(round(weight * size))] or [""]
    names = iter(SAMPLE_PEOPLE)
    for group in of:
        name = title if size == 1 and "group" not in doc else next(names)
        at = hindex.groups.index(group) if group else -1
        known = (
            f"has an h-index of {draws.randrange(ends[at], ends[at + 1])}"
            if group
            else "has published little so far"
        )
        yield f"{name} {known}."
    regions = " and ".join(shares.get("REGION", {}))
    yield (
        f"Their work and lives are tied to {regions}."
        if regions
        else "Nothing is known about where they come from."
    )

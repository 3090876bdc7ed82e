"""The files of the sample task, as text."""

from __future__ import annotations

from collections.abc import Iterable

from tools.sample.letor import group_rows, letor_lines
from tools.sample.pages import GROUPS, Page
from tools.sample.systems import LEFT_OUT, ORIGIN_TARGET, SYSTEMS
from tools.sample.topics import Topic


def sample_files(topics: list[Topic], seed: int) -> dict[str, str]:
    """Every file of the task: its path below the folder, and its text."""
    files = {f"runs/{tag}.run": run_text(tag, topics, seed) for tag in SYSTEMS}
    return files | {
        "qrels/sample.qrels": qrels_text(topics),
        "qrels/sample.HINDEX.gmemb": hindex_text(topics),
        "qrels/sample.REGION.csv": region_text(topics),
        "qrels/sample.ORIGIN.tsv": origin_text(topics),
        "qrels/sample.letor": _lines(letor_lines(topics, seed)),
        "qrels/sample.groups.csv": _lines(("doc,group,weight", *group_rows(topics))),
        "qrels/topics.tsv": topics_text(topics),
        "qrels/runs.csv": runs_text(),
        "qrels/task.toml": task_text(),
    }


def run_text(tag: str, topics: list[Topic], seed: int) -> str:
    """A run in TREC's format."""
    return _lines(
        f"{topic.topic} Q0 {doc} {rank} {score} {tag}"
        for topic in topics
        if topic.topic != LEFT_OUT.get(tag)
        for rank, (doc, score) in enumerate(SYSTEMS[tag](topic, seed), 1)
    )


def qrels_text(topics: list[Topic]) -> str:
    """The judgements in TREC's format."""
    return _lines(
        f"{topic.topic} 0 {doc} {grade}" for topic in topics for doc, grade in sorted(topic.grades.items())
    )


def hindex_text(topics: list[Topic]) -> str:
    """The h-index memberships, in NTCIR's format."""
    return _lines(
        f"{topic.topic} {page.doc} " + " ".join(f"{share:.4f}" for share in page.memberships["HINDEX"])
        for topic in topics
        for page in sorted(topic.pages, key=lambda page: page.doc)
        if "HINDEX" in page.memberships
    )


def region_text(topics: list[Topic]) -> str:
    """The region memberships as a long table with weights."""
    rows = (f"{doc},{group},{round(weight, 4):g}" for doc, group, weight in _long_table("REGION", topics))
    return _lines(("doc,group,weight", *rows))


def origin_text(topics: list[Topic]) -> str:
    """The films' origins as a long table without weights."""
    rows = (f"{doc}\t{group}" for doc, group, _ in _long_table("ORIGIN", topics))
    return _lines(("doc\tgroup", *rows))


def topics_text(topics: list[Topic]) -> str:
    """The topics with their kinds and titles."""
    rows = (f"{topic.topic}\t{topic.kind}\t{topic.title}" for topic in topics)
    return _lines(("topic\tkind\ttitle", *rows))


def runs_text() -> str:
    """The runs table: which runs are baselines and references; all others are official."""
    statuses = {
        "bm25": "baseline",
        "fair-pg-rank": "reference",
        "pg-rank": "reference",
        "random": "reference",
    }
    return _lines(("file,status", *(f"../runs/{tag}.run,{status}" for tag, status in statuses.items())))


def task_text() -> str:
    """The task file that names all the others."""
    return f"""\
# An invented task: its people, places and films are made up.
name = "Researchers and films"
topics = "topics.tsv"
qrels = "sample.qrels"
runs = "runs.csv"
max_grade = 2
order = "score"
cutoff = 20
measures = [
    "nDCG@10",
    "ERR",
    "iRBU",
    {{ measure = "GFR(util='ERR')", label = "GFR-ERR" }},
    {{ measure = "GFR(util='iRBU')", label = "GFR-iRBU" }},
]

[topic_groups.TYPE]
column = "kind"

[attributes.HINDEX]
kind = "ordinal"
groups = {_strings(GROUPS["HINDEX"])}
bins = [10, 30, 50]
memberships = "sample.HINDEX.gmemb"
target = "uniform"
unmapped = "uniform"
divergence = "RNOD"
topics = ["R*"]

[attributes.REGION]
kind = "nominal"
groups = {_strings(GROUPS["REGION"])}
memberships = "sample.REGION.csv"
target = "relevant"
unmapped = "uniform"
divergence = "JSD"
topics = ["R*"]

[attributes.ORIGIN]
kind = "nominal"
groups = {_strings(GROUPS["ORIGIN"])}
memberships = "sample.ORIGIN.tsv"
target = {list(ORIGIN_TARGET)}
unmapped = "uniform"
divergence = "JSD"
topics = ["M*"]

[policy]
kind = "ranking"
"""


def _long_table(attribute: str, topics: list[Topic]) -> list[tuple[str, str, float]]:
    pages: dict[str, Page] = {page.doc: page for topic in topics for page in topic.pages}
    return [
        (doc, group, weight)
        for doc, page in sorted(pages.items())
        for group, weight in zip(GROUPS[attribute], page.memberships.get(attribute, ()), strict=False)
        if weight > 0
    ]


def _strings(items: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)

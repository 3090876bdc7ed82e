"""`fairevals rerank`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairevals.cli import common
from fairevals.errors import escape, pluralize

if TYPE_CHECKING:
    from fairevals.reranking.runs import Reranked

SUMMARY = "Re-rank runs so that groups share exposure as wanted: one new run for each strength."
EXAMPLE = """  fairevals rerank parity runs/bm25.run --task qrels/task.toml --attr ORIGIN -o fair
  fairevals rerank target runs/*.run --task my.toml --attr SEX --strength 0.5 --strength 1 -o fair
  fairevals rerank fa-ir my.run --task my.toml --attr SEX --protected women -o fair"""
METHOD_HELP = (
    "parity, target, merit: offsets of groups for a Plackett-Luce run, so that exposure is shared by numbers of "
    "documents, by the target, or by predicted grades; fa-ir, detconstsort, quota: one ranking for the target; "
    "lp: rankings that trade predicted utility for D_group"
)


def configure(parser: argparse.ArgumentParser) -> None:
    methods = ("parity", "target", "merit", "fa-ir", "detconstsort", "quota", "lp")
    add = parser.add_argument
    add("method", choices=methods, metavar="METHOD", help=METHOD_HELP)
    common.add_runs(parser)
    text = "task file: attributes with their targets, and qrels if a target depends on them"
    add("--task", required=True, metavar="T.toml", help=text)
    add(
        "--qrels",
        action="append",
        metavar="Q",
        help="qrels file, repeated to join several; overrides the task's",
    )
    add(
        "--attr", required=True, metavar="A", help="the attribute, or intersection, whose groups are balanced"
    )
    text = (
        "repeated for several. Offsets: 0 is the run, 1 meets the goal (default), others trace a curve; fa-ir and "
        "detconstsort: a factor of the target, 0 to 1 (1); quota: weight of need against score, 0 to 1 (0.5); "
        "lp: λ (10)"
    )
    add("--strength", action="append", type=_strength, metavar="S", help=text)
    add("--protected", metavar="G", help="fa-ir: the group to protect")
    add("--alpha", type=_strength, default=0.1, metavar="α", help="fa-ir: level of its test (default 0.1)")
    add("--attention", default="log2", metavar="V", help="log2 (default), trecfair, 'rbp(0.8)', …")
    text = "ranks beyond K get no attention (default: the task's cutoff)"
    add("-k", "--cutoff", type=common.whole(1), metavar="K", help=text)
    text = "offsets: divides the log-weights; score the new run with the same (default: the task's, else 1)"
    add("--temperature", type=common.positive_number, metavar="T", help=text)
    text = "lp: rankings to write per topic (default 100)"
    add("--samples", type=common.whole(1, 10**6), default=100, metavar="N", help=text)
    add(
        "--seed",
        type=common.whole(0),
        metavar="N",
        help="lp: seed of the random numbers (default: the task's)",
    )
    output = parser.add_argument_group("output")
    common.add_folder(output, "the new runs")
    output.add_argument("-q", "--per-topic", action="store_true", help="print every topic, not only means")
    output.add_argument(
        "--format", choices=("table", "csv", "tsv", "json"), default="table", help="default: table"
    )


def _strength(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{escape(text)!r} is not a number of at least 0")
    return value


def run(args: argparse.Namespace) -> int:
    from fairevals.collection.inputs import list_runs
    from fairevals.io.folders import check_folder, replacing
    from fairevals.io.out import Table, render
    from fairevals.io.task import read_task
    from fairevals.reranking.runs import load_labels, rerank_run
    from fairevals.reranking.topics import Reranking

    check_folder(args.output, force=args.force)
    task = read_task(args.task)
    collection = load_labels(task, args.qrels)
    how = Reranking(
        *(args.method, args.attr, args.protected, args.alpha, args.attention),
        cutoff=args.cutoff or task.cutoff,
        temperature=args.temperature or task.policy.temperature,
        samples=args.samples,
        seed=task.policy.seed if args.seed is None else args.seed,
    )
    strengths = list(dict.fromkeys(args.strength or [None]))
    for strength in strengths:
        how.factor(strength)  # a wrong one should fail before the work
    rows: list[tuple[str | float | int, ...]] = []
    taken: set[str] = set()
    with replacing(args.output) as part:
        for source in list_runs(args.runs):
            remarks: list[str] = []
            for new in rerank_run(source, collection, how, strengths, common.progress("re-ranking")):
                new.run.to_file(part / _file_name(new.run.tag, taken))
                rows += _topic_rows(new) if args.per_topic else [_summary(new)]
                remarks += _remarks(new)
            common.log(*dict.fromkeys(remarks))  # those on the run itself are the same for every strength
    columns = TOPIC_COLUMNS if args.per_topic else RERANK_COLUMNS
    common.emit([render(Table(columns, tuple(rows)), args.format)], None)
    return 0


RERANK_COLUMNS = ("run", "strength", "topics", "off before", "off after", "infeasible", "untouched")
TOPIC_COLUMNS = ("run", "strength", "topic", "off before", "off after", "note")


def _file_name(tag: str, taken: set[str]) -> str:
    """A safe name for the file of a run, numbered where a run of the same tag has it."""
    from fairevals.io.folders import safe_name

    name, number = safe_name(tag), 1
    while f"{name}.run".casefold() in taken:
        number += 1
        name = f"{safe_name(tag)}_{number}"
    taken.add(f"{name}.run".casefold())
    return f"{name}.run"


def _summary(new: Reranked) -> tuple[str | float | int, ...]:
    counts = (new.count(note) for note in ("infeasible", "untouched"))
    return new.run.tag, f"{new.strength:g}", len(new.topics), new.mean("before"), new.mean("after"), *counts


def _topic_rows(new: Reranked) -> list[tuple[str | float | int, ...]]:
    return [(new.run.tag, f"{new.strength:g}", *topic) for topic in new.topics]


def _remarks(new: Reranked) -> list[str]:
    """What a user should know before the run is used."""
    remarks = [*new.remarks]
    short = [topic for topic in new.topics if topic.note == "infeasible"]
    if short:
        worst = max(short, key=lambda topic: topic.after)
        topics = f"the goal cannot be met on {pluralize(len(short), 'topic')}"
        furthest = f"a share of {escape(worst.topic)!r} is off by {worst.after:.4f}"
        remarks.append(f"{escape(new.run.tag)}: {topics}, furthest where {furthest}")
    return remarks

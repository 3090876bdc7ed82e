"""`fairevals pool`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from fairevals.cli import common
from fairevals.errors import UsageError, escape, pluralize

if TYPE_CHECKING:
    from fairevals.collection.run import Run

SUMMARY = "List the documents in the first ranks of runs, for judging: topic, document, number of runs."
EXAMPLE = """  fairevals pool runs/*.run --depth 20 -o pool.txt
  fairevals pool --task my.toml submissions.zip --depth 50,baseline=10 --order priority --pages pages.tsv"""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "task file: topics, runs table, conventions; no judgements are needed"
    add("--task", metavar="T.toml", help=text)
    common.add_topics(parser)
    common.add_runs(parser)
    text = (
        "ranks to take from each run; with a runs table also by status, such as 50,baseline=10 (0 for none)"
    )
    add("--depth", type=_depths, required=True, metavar="K", help=text)
    text = (
        "the documents of a topic by id (document, default), or as NTCIRPOOL lists them (priority): by the number "
        "of runs, then by the sum of their ranks"
    )
    add("--order", choices=("document", "priority"), default="document", help=text)
    text = "rank by score or by lines (default: the task's, else score)"
    add("--rank-by", choices=("score", "file"), help=text)
    text = "samples: pool every sample (default: the task's, else ranking)"
    add("--policy", choices=("ranking", "pl", "samples"), help=text)
    text = "also write the list of pages for assessors, a table topic, doc in the order of the pool"
    add("--pages", metavar="FILE", help=text)
    common.add_file(add)


def _depths(text: str) -> dict[str, int]:
    """The depth of each status; "" is that of all others."""
    from fairevals.io.specs import STATUSES

    depths: dict[str, int] = {}
    for part in text.split(","):
        status, equals, number = part.rpartition("=")
        if equals and status not in STATUSES:
            raise argparse.ArgumentTypeError(f"{escape(status)!r} is not one of {', '.join(STATUSES)}")
        if status in depths:
            raise argparse.ArgumentTypeError(f"{escape(text)!r} has two depths for {status or 'all runs'}")
        depths[status] = common.whole(0 if equals else 1)(number)
    return depths


def run(args: argparse.Namespace) -> int:
    from fairevals.collection.pool import pool
    from fairevals.collection.run import read_run
    from fairevals.io.streams import written
    from fairevals.io.task import Task, read_task, run_info
    from fairevals.io.topics import read_topics

    task = read_task(args.task) if args.task else Task()
    if set(args.depth) != {""} and not task.runs:
        raise UsageError("--depth by status needs a task with a runs table")
    common.check_outputs(args, task.files, [Path(args.pages)] if args.pages else ())
    path = args.topics or task.topics
    listed = dict.fromkeys(read_topics(path).ids) if path is not None else None
    infos = [run_info(task, file) for file in args.runs]
    unlisted = [file for file, info in zip(args.runs, infos, strict=True) if info is None]
    if set(args.depth) != {""} and unlisted:
        some = f"{pluralize(len(unlisted), 'run')} not in the runs table, such as {escape(unlisted[0], 300)}"
        common.log(f"{some}: pooled as official")
    statuses = [info.status if info else "official" for info in infos]
    depths = [args.depth.get(status, args.depth.get("", 0)) for status in statuses]
    pooled = [(file, depth) for file, depth in zip(args.runs, depths, strict=True) if depth]
    if len(pooled) < len(args.runs):
        common.log(f"{pluralize(len(args.runs) - len(pooled), 'run')} not pooled, by --depth")
    show = common.progress("pooling")

    def runs() -> Iterator[Run]:
        samples = (args.policy or task.policy.kind) == "samples"
        for number, (file, depth) in enumerate(pooled, 1):
            one = read_run(file, order=args.rank_by or task.order, samples=samples, depth=depth)
            if listed is not None:
                common.log(*_topic_remarks(one, listed))
            yield one
            if show:
                show(number, len(pooled))

    with written(Path(args.pages)) if args.pages else nullcontext() as pages:

        def lines() -> Iterator[str]:
            if pages:
                pages.write("topic\tdoc\n")
            found = pool(runs(), [depth for _, depth in pooled], order=args.order, topics=listed)
            for topic, doc, count in found:
                if pages:
                    pages.write(f"{topic}\t{doc}\n")
                yield f"{topic} {doc} {count}\n"

        common.emit(lines(), args.output)
    return 0


def _topic_remarks(run: Run, listed: dict[str, None]) -> Iterator[str]:
    """Topics that the run should not have, and topics that it lacks."""
    topics, name = dict.fromkeys(run.topics), escape(run.source, 300)
    others = [topic for topic in topics if topic not in listed]
    if others:
        some = f"{pluralize(len(others), 'topic')} not in the list of topics"
        yield f"{name}: skipped {some}, such as {escape(others[0])!r}"
    lacking = [topic for topic in listed if topic not in topics]
    if lacking:
        yield f"{name}: nothing for {pluralize(len(lacking), 'topic')}, such as {escape(lacking[0])!r}"

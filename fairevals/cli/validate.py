"""`fairevals validate`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairevals.cli import common
from fairevals.errors import FairevalsError, InputError, Place, escape, pluralize

if TYPE_CHECKING:
    from fairevals.io.check import Rules
    from fairevals.io.lines import Problem
    from fairevals.io.out import Cell

SUMMARY = "Find everything that is wrong with submissions, by file and line; exit 1 if anything is."
EXAMPLE = "  fairevals validate --task qrels/task.toml runs/*.run"


def configure(parser: argparse.ArgumentParser) -> None:
    common.add_collection(parser)
    add = parser.add_argument
    common.add_runs(parser)
    text = "maximum number of documents per topic (default: the task's, 1000)"
    add("--max-docs", type=common.whole(1), metavar="N", help=text)
    text = "how many problems of a kind to show per file (default 10)"
    add("--most", type=common.whole(1), default=10, metavar="N", help=text)
    text = "samples: the second column is a sample id"
    add("--policy", choices=("ranking", "pl", "samples"), help=text)
    common.add_output(parser)


def run(args: argparse.Namespace) -> int:
    from fairevals.io.check import Rules
    from fairevals.io.out import Table

    collection = common.collection_of(args)
    task = collection.task
    rules = Rules(
        topics=collection.qrels.number,
        max_documents=args.max_docs or task.max_documents,
        samples=(args.policy or task.policy.kind) == "samples",
        order=task.order,
        trailing=task.conventions == "trec_eval",
        style=True,
    )
    rows: list[tuple[Cell, ...]] = []
    errors = warnings = bad_files = 0
    for path in args.runs:
        counts: Counter[str] = Counter()
        errors_before = errors
        for problem in _check(path, rules):
            counts[problem.kind] += 1
            errors, warnings = errors + (not problem.warning), warnings + problem.warning
            if counts[problem.kind] <= args.most:
                place, level = problem.place, "warning" if problem.warning else "error"
                where = (escape(place.file), place.line or None, level)
                rows.append((*where, problem.kind, problem.found, problem.expected))
        for kind, count in counts.items():
            if count > args.most:
                more = f"{count - args.most} more (--most {count} shows all)"
                rows.append((escape(path), None, "…", kind, more, ""))
        bad_files += errors > errors_before
    if rows or args.format != "table":
        common.emit_table(Table(("file", "line", "level", "kind", "found", "expected"), tuple(rows)), args)
    files = len(args.runs)
    common.log(
        f"{pluralize(files, 'file')}: {files - bad_files} fine, {bad_files} with errors; "
        f"{pluralize(errors, 'error')}, {pluralize(warnings, 'warning')}"
    )
    return 1 if errors else 0


def _check(path: str, rules: Rules) -> Iterator[Problem]:
    """The problems of one run. A table or a folder is either readable or not; then its topics are checked."""
    from fairevals.collection.run import Run
    from fairevals.io.check import check_lists, check_run
    from fairevals.io.dataset import is_dataset
    from fairevals.io.lines import Problem
    from fairevals.io.runs import RunOptions, is_table
    from fairevals.io.streams import Source

    try:
        source = path if is_dataset(path) else Source.of(path)
        if isinstance(source, Source) and not is_table(source):
            yield from check_run(source, rules)
        else:
            ranked = Run.open(source, RunOptions(rules.order, rules.samples))
            counts = (ranked.offsets[1:] - ranked.offsets[:-1]).tolist()
            yield from check_lists(ranked.source, [topic for topic, _ in ranked.lists], counts, rules)
    except FairevalsError as error:  # the file cannot be opened, is cut short, or is beyond the limits
        place = error.place if isinstance(error, InputError) else Place(path)
        yield Problem(place, "unreadable", str(error))

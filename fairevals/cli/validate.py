"""`fairevals validate`."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import TYPE_CHECKING

from fairevals.cli import common
from fairevals.errors import InputError, escape, pluralize

if TYPE_CHECKING:
    from fairevals.io.out import Cell

SUMMARY = "Find everything that is wrong with submissions, by file and line; exit 1 if anything is."
EXAMPLE = """  fairevals validate --task qrels/task.toml runs/*.run
  fairevals validate --topics topics.tsv runs/*.run"""


def configure(parser: argparse.ArgumentParser) -> None:
    common.add_collection(parser)
    common.add_topics(parser)
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
    from fairevals.collection.submission import check_submission
    from fairevals.io.out import Table

    collection = common.collection_of(args, judged=False)
    rows: list[tuple[Cell, ...]] = []
    errors = warnings = bad_files = 0
    files = [file for path in args.runs for file in _files(path)]
    for path in files:
        counts: Counter[str] = Counter()
        errors_before = errors
        for problem in check_submission(path, collection, max_documents=args.max_docs, policy=args.policy):
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
    common.log(
        f"{pluralize(len(files), 'file')}: {len(files) - bad_files} fine, {bad_files} with errors; "
        f"{pluralize(errors, 'error')}, {pluralize(warnings, 'warning')}"
    )
    return 1 if errors else 0


def _files(path: str) -> list[str]:
    """The files of a folder or an archive; the path itself if it is neither, or cannot be read."""
    from fairevals.io.archives import each_run

    try:
        return each_run([path])
    except InputError:
        return [path]

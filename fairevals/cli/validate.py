"""`fairevals validate`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairevals.cli import common

if TYPE_CHECKING:
    from fairevals.io.check import Problem, Rules
    from fairevals.io.out import Cell
    from fairevals.io.streams import Source

SUMMARY = "Find everything that is wrong with submissions, by file and line; exit 1 if anything is."
EXAMPLE = "  fairevals validate --task qrels/task.toml runs/*.run"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.add_collection(parser)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run file, compressed or not")
    parser.add_argument(
        "--max-docs",
        type=common.whole(1),
        metavar="N",
        help="documents a topic may have (default: the task's, 1000)",
    )
    parser.add_argument(
        "--most",
        type=common.whole(1),
        default=10,
        metavar="N",
        help="problems of a kind shown a file (default 10)",
    )
    parser.add_argument(
        "--policy", choices=("ranking", "pl", "samples"), help="samples: the second column is a sample id"
    )
    common.add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Check every file and print what was found."""
    from fairevals.errors import FairevalsError, InputError, escape, pluralize
    from fairevals.io.check import Rules, check_run
    from fairevals.io.out import Table
    from fairevals.io.runs import is_table
    from fairevals.io.streams import Source

    collection = common.collection_of(args)
    task = collection.task
    kind = args.policy or task.policy.kind
    rules = Rules(
        topics=collection.qrels.number,
        max_documents=args.max_docs or task.max_documents,
        samples=kind == "samples",
        order=task.order,
        style=True,
    )
    rows: list[tuple[Cell, ...]] = []
    errors = warnings = bad_files = 0
    for path in args.runs:
        found: Counter[str] = Counter()
        failed = False
        try:
            source = Source.of(path)
            problems = _check_table(source, rules) if is_table(source) else check_run(source, rules)
            for problem in problems:
                found[problem.kind] += 1
                failed |= not problem.warning
                errors, warnings = errors + (not problem.warning), warnings + problem.warning
                if found[problem.kind] <= args.most:
                    rows.append(_row(problem))
        except FairevalsError as error:  # the file cannot be opened, is cut short, or is beyond the limits
            failed, errors = True, errors + 1
            place = error.place if isinstance(error, InputError) else None
            rows.append(
                (
                    escape(path),
                    place.line or None if place else None,
                    "error",
                    "unreadable",
                    str(error),
                    "",
                )
            )
        for name, count in found.items():
            if count > args.most:
                rows.append(
                    (
                        escape(source.name),
                        None,
                        "…",
                        name,
                        f"{count - args.most} more (--most {count} shows all)",
                        "",
                    )
                )
        bad_files += failed
    if rows or args.format != "table":
        common.emit_table(Table(("file", "line", "level", "kind", "found", "expected"), tuple(rows)), args)
    files = len(args.runs)
    common.log(
        f"{pluralize(files, 'file')}: {files - bad_files} fine, {bad_files} with errors; "
        f"{pluralize(errors, 'error')}, {pluralize(warnings, 'warning')}"
    )
    return 1 if errors else 0


def _row(problem: Problem) -> tuple[Cell, ...]:
    from fairevals.errors import escape

    level = "warning" if problem.warning else "error"
    line = problem.place.line or None
    return (escape(problem.place.file), line, level, problem.kind, problem.found, problem.expected)


def _check_table(source: Source, rules: Rules) -> Iterator[Problem]:
    """A CSV or parquet run: readable or not, and which topics it has."""
    from fairevals.collection.run import Run
    from fairevals.io.check import check_lists
    from fairevals.io.runs import read_columns

    columns = read_columns(source, order=rules.order, samples=rules.samples)
    found = Run.of(columns)
    counts = (found.offsets[1:] - found.offsets[:-1]).tolist()
    yield from check_lists(source.name, [topic for topic, _ in found.lists], counts, rules)

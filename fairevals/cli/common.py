"""Options that commands share, and how they print."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairevals.errors import UsageError, escape

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from fairevals.evaluation import Collection
    from fairevals.io.out import Table
    from fairevals.io.task import PolicySpec


def whole(least: int, most: int = 10**15) -> Callable[[str], int]:
    """A type for options that are whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or len(text) > 18 or not least <= int(text) <= most:
            limit = "" if len(text) < len(str(most)) else f" and at most {most}"
            raise argparse.ArgumentTypeError(
                f"{escape(text)!r} is not a whole number of at least {least}{limit}"
            )
        return int(text)

    return parse


def positive(text: str) -> float:
    """A type for options that are numbers above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{escape(text)!r} is not a number above 0")
    return value


def add_collection(parser: argparse.ArgumentParser) -> None:
    """--task and --qrels."""
    parser.add_argument(
        "--task", metavar="T.toml", help="task file: qrels, attributes, measures, conventions"
    )
    parser.add_argument(
        "--qrels",
        action="append",
        metavar="Q",
        help="qrels file, overrides the task's; more than once for several, which are joined",
    )


def add_measures(parser: argparse.ArgumentParser) -> None:
    """-m."""
    parser.add_argument(
        "-m",
        "--measure",
        action="append",
        dest="measures",
        metavar="MEASURE",
        help="such as nDCG@10 or \"GF(attr='HINDEX')@20\"; more than once for several (default: the task's)",
    )


def add_policy(parser: argparse.ArgumentParser) -> None:
    """--policy, --samples, --seed, --temperature."""
    group = parser.add_argument_group("policy")
    group.add_argument(
        "--policy",
        choices=("ranking", "pl", "samples"),
        help="how a run is read: one ranking a topic; scores as Plackett-Luce log-weights; several rankings a "
        "topic, the second column being the sample id (default: the task's, else ranking)",
    )
    group.add_argument(
        "--samples",
        type=whole(2),
        metavar="N",
        help="rankings drawn where a value is not exact (default 1000)",
    )
    group.add_argument("--seed", type=whole(0), metavar="N", help="seed of the drawing (default 0)")
    group.add_argument(
        "--temperature", type=positive, metavar="T", help="divides the log-weights (default 1)"
    )


def add_output(parser: argparse.ArgumentParser, default: str = "table") -> None:
    """--format, -o, -p."""
    group = parser.add_argument_group("output")
    group.add_argument(
        "--format",
        choices=("table", "csv", "tsv", "json", "latex"),
        default=default,
        help=f"default: {default}",
    )
    group.add_argument(
        "-o", "--output", metavar="FILE", help="write there instead of printing; an old file is replaced"
    )
    group.add_argument(
        "-p", "--places", type=whole(0, 100), metavar="N", help="decimals (default: 4 in tables, else all)"
    )


def add_dask(parser: argparse.ArgumentParser) -> None:
    """--dask."""
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="score on a Dask cluster, such as tcp://host:8786, whose workers can read the same files",
    )


def executor_of(args: argparse.Namespace) -> AbstractContextManager[Executor | None]:
    """The cluster that --dask names, or nothing."""
    if args.dask is None:
        return nullcontext()
    if args.jobs > 1:
        raise UsageError("give --jobs or --dask, not both")
    from fairevals.ecosystem.cluster import connected

    return connected(args.dask)


def add_folder(
    group: Any, contents: str, force: str = "write into a folder that has other things in it, too"
) -> None:
    """-o for a folder, and --force."""
    group.add_argument("-o", "--output", required=True, metavar="DIR", help=f"folder for {contents}")
    group.add_argument("--force", action="store_true", help=force)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """--jobs."""
    parser.add_argument("--jobs", type=whole(1), default=1, metavar="N", help="processes to use (default 1)")


def collection_of(args: argparse.Namespace) -> Collection:
    """What --task and --qrels name."""
    from fairevals.evaluation import load_collection

    if not args.task and not args.qrels:
        raise UsageError("give --task T.toml or --qrels Q")
    return load_collection(args.task, args.qrels)


def policy_of(args: argparse.Namespace, collection: Collection) -> PolicySpec:
    """The task's policy, changed as the options say."""
    given = {"kind": args.policy, "samples": args.samples, "seed": args.seed, "temperature": args.temperature}
    return replace(
        collection.task.policy, **{key: value for key, value in given.items() if value is not None}
    )


def emit(text: str, output: str | None) -> None:
    """Print a result, or write it to a file, whole."""
    if output is None or output == "-":
        sys.stdout.write(text)
        return
    from fairevals.io.streams import written

    with written(Path(output)) as file:
        file.write(text)


def emit_table(table: Table, args: argparse.Namespace) -> None:
    """Print a table as --format, -o and -p say."""
    from fairevals.io.out import render

    emit(render(table, args.format, args.places), args.output)


def say(text: str) -> None:
    """A remark for the person at the terminal; never part of the result."""
    print(f"fairevals: {text}", file=sys.stderr)


def progress(what: str) -> Callable[[int, int], None] | None:
    """A progress line on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, of: int) -> None:
        width = 24
        filled = width * done // max(of, 1)
        end = "\r\033[K" if done == of else ""
        print(
            f"\r{what} [{'█' * filled}{'·' * (width - filled)}] {done}/{of}",
            end=end,
            file=sys.stderr,
            flush=True,
        )

    return show

"""Options that commands share, and output to the terminal."""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from os.path import realpath, samefile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairevals.errors import UsageError, escape

if TYPE_CHECKING:
    from fairevals.evaluation import Collection, Plan
    from fairevals.io.out import Table
    from fairevals.io.specs import PolicySpec


def whole(least: int, most: int = 10**15) -> Callable[[str], int]:
    """An argument type: whole numbers from `least` to `most`."""

    def parse(text: str) -> int:
        if not text.isdecimal() or len(text) > 18 or not least <= int(text) <= most:
            limit = "" if len(text) < len(str(most)) else f" and at most {most}"
            error = f"{escape(text)!r} is not a whole number of at least {least}{limit}"
            raise argparse.ArgumentTypeError(error)
        return int(text)

    return parse


def positive_number(text: str) -> float:
    """An argument type: numbers above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{escape(text)!r} is not a number above 0")
    return value


def add_collection(parser: Any) -> None:
    """--task and --qrels."""
    text = "task file: qrels, attributes, measures, conventions"
    parser.add_argument("--task", metavar="T.toml", help=text)
    text = "qrels file, repeated to join several; overrides the task's"
    parser.add_argument("--qrels", action="append", metavar="Q", help=text)


def add_anonymous(parser: Any) -> None:
    """--anonymous."""
    text = 'call the runs "Run 01" and so on, in an order that --seed decides, and write which is which to this file'
    parser.add_argument("--anonymous", metavar="KEY.csv", help=text)


def add_topics(parser: Any) -> None:
    """--topics."""
    text = "list of the topics, one id per line or a table with a column topic; overrides the task's"
    parser.add_argument("--topics", metavar="FILE", help=text)


RUN = "a run file, compressed or not, - for standard input; or a folder of parquet files"
RUNS = f"{RUN}; or a folder or a zip archive of runs"


def add_runs(parser: Any) -> None:
    """The runs."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help=RUNS)


def add_measures(parser: Any) -> None:
    """-m."""
    text = "such as nDCG@10 or \"GF(attr='HINDEX')@20\"; repeated for several (default: the task's)"
    parser.add_argument("-m", "--measure", action="append", dest="measures", metavar="MEASURE", help=text)


def add_by(parser: Any) -> None:
    """--by."""
    text = "by topic group: the name of [topic_groups.NAME] in the task, or a csv or tsv table with topic and group"
    parser.add_argument("--by", dest="topic_groups", metavar="GROUPS", help=text)


def add_tests(parser: Any) -> None:
    """--test and --correct."""
    text = (
        "against the baseline: paired t-test (default); Wilcoxon signed-rank; randomised Tukey HSD over the "
        "baseline and all runs that the task does not list as baseline or reference; paired bootstrap"
    )
    tests = ("ttest", "wilcoxon", "tukey", "bootstrap")
    parser.add_argument("--test", choices=tests, default="ttest", help=text)
    text = (
        "correction of p over the runs of each measure: Holm (default), Benjamini-Hochberg, none; "
        "Tukey HSD corrects by itself"
    )
    parser.add_argument("--correct", choices=("holm", "bh", "none"), help=text)


def add_policy(parser: Any) -> None:
    """--policy, --samples, --seed, --temperature."""
    add = parser.add_argument_group("policy").add_argument
    text = (
        "read a run as one ranking per topic, as log-weights of a Plackett-Luce policy, or as several rankings per "
        "topic with the sample id in the second column (default: the task's, else ranking)"
    )
    add("--policy", choices=("ranking", "pl", "samples"), help=text)
    text = "rankings to draw where a value is not exact (default 1000)"
    add("--samples", type=whole(2), metavar="N", help=text)
    add("--seed", type=whole(0), metavar="N", help="seed of the random numbers (default 0)")
    add("--temperature", type=positive_number, metavar="T", help="divides the log-weights (default 1)")


def add_output(parser: Any, default: str = "table", more: tuple[str, ...] = ()) -> None:
    """--format, -o, --force, --spreadsheet, -p."""
    add = parser.add_argument_group("output").add_argument
    formats = ("table", "csv", "tsv", "json", "latex")
    add("--format", choices=(*formats, *more), default=default, help=f"default: {default}")
    add_file(add)
    text = "in csv and tsv, put ' before names that a spreadsheet would take for formulas, such as =1+1"
    add("--spreadsheet", action="store_true", help=text)
    add("-p", "--places", type=whole(0, 100), metavar="N", help="decimals (default: 4 in tables, else all)")


def add_file(add: Callable[..., Any]) -> None:
    """-o for a file, and --force."""
    add("-o", "--output", metavar="FILE", help="write to this file, replacing it, instead of printing")
    add("--force", action="store_true", help="write even if that replaces a file that the command reads")


def add_folder(
    parser: Any, contents: str, force: str = "write even if the folder has other files in it"
) -> None:
    """-o for a folder, and --force."""
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help=f"folder for {contents}")
    parser.add_argument("--force", action="store_true", help=force)


def add_jobs(parser: Any) -> None:
    """--jobs."""
    text = "number of processes (default 1)"
    parser.add_argument("--jobs", type=whole(1), default=1, metavar="N", help=text)


INPUTS = (
    "task",
    "topics",
    "qrels",
    "runs",
    "run_file",
    "baseline",
    "trained",
    "data",
    "groups",
    "topic_groups",
)
"""The arguments of all commands that name files or folders to read."""


def check_outputs(args: argparse.Namespace, named: Iterable[Path] = (), outputs: Iterable[Path] = ()) -> None:
    """Refuse to replace an input, unless --force is given; call it before any work.

    Inputs are what the arguments name, with all files of a folder, and the files `named` in the task. Outputs are
    -o, --figure and --anonymous, and the `outputs` given here.
    """
    from fairevals.io.archives import member_of
    from fairevals.io.streams import reads_once

    given = (getattr(args, name, None) for name in ("output", "figure", "anonymous"))
    files = [*(Path(file) for file in given if file not in (None, "-")), *outputs]
    if len({realpath(file) for file in files}) < len(files):
        raise UsageError(f"two outputs are {escape(str(files[0]), 200)}; give each a file of its own")
    files = [file for file in files if file.is_file() and not reads_once(file)]
    if args.force or not files:
        return
    values = [getattr(args, name, None) or [] for name in INPUTS]
    inputs = [path for value in values for path in ([value] if isinstance(value, str) else value)]
    for given_path in (*inputs, *named):
        archive = member_of(given_path)
        path = archive[0] if archive else given_path
        folder = Path(path)
        for read in folder.rglob("*") if folder.is_dir() else [path]:
            for file in files:
                is_same = False
                # It may be a tag, or not exist: the reader of the file reports that.
                with suppress(OSError, ValueError):
                    # Standard input (0) may be a file too.
                    is_same = samefile(0 if read == "-" else read, file)  # noqa: PTH121
                if is_same:
                    problem = f"{escape(str(file), 200)} is read by this command"
                    raise UsageError(f"{problem}; choose another file, or force replacing it")


def collection_of(
    args: argparse.Namespace, outputs: Iterable[Path] = (), *, judged: bool = True
) -> Collection:
    """The collection that --task, --qrels and --topics name, once it is clear that no output replaces an input.

    Without `judged`, a list of topics is enough.
    """
    from fairevals.evaluation import load_collection
    from fairevals.io.task import read_task

    topics = getattr(args, "topics", None)
    if not args.task and not args.qrels and not topics:
        raise UsageError("give --task T.toml or --qrels Q" + ("" if judged else ", or --topics FILE"))
    task = read_task(args.task) if args.task else None
    check_outputs(args, task.files if task else (), outputs)
    # Workers can read runs meanwhile.
    late = getattr(args, "jobs", 1) > 1
    return load_collection(task, args.qrels, topics=topics, judged=judged, late=late)


def policy_of(args: argparse.Namespace, collection: Collection) -> PolicySpec:
    """The task's policy, with the options that were given."""
    given = {"samples": args.samples, "seed": args.seed, "temperature": args.temperature}
    return collection.task.policy.updated(kind=args.policy, **given)


def plan_of(args: argparse.Namespace, outputs: Iterable[Path] = ()) -> tuple[Collection, Plan]:
    """The collection, and the plan with the measures and the policy that were given."""
    from fairevals.collection.topics import topic_groups
    from fairevals.evaluation import Plan

    collection = collection_of(args, outputs)
    if getattr(args, "topic_groups", None) is not None:  # a wrong name should fail before the work
        topic_groups(collection.task, args.topic_groups, collection.qrels.topics)
    return collection, Plan.of(collection, args.measures, policy_of(args, collection))


def emit(texts: Iterable[str], output: str | None) -> None:
    """Print the texts of a result one after the other, or write them to a file."""
    if output is None or output == "-":
        sys.stdout.writelines(texts)
        return
    from fairevals.io.streams import written

    with written(Path(output)) as file:
        file.writelines(texts)


def emit_table(table: Table, args: argparse.Namespace) -> None:
    """Print a table as --format, -o, --spreadsheet and -p ask."""
    from fairevals.io.out import render

    emit([render(table, args.format, args.places, spreadsheet=args.spreadsheet)], args.output)


def log(*lines: str) -> None:
    """Print remarks to standard error, apart from the result, and after what was printed of it before."""
    sys.stdout.flush()
    for line in lines:
        print(f"fairevals: {line}", file=sys.stderr)


def progress(label: str) -> Progress | None:
    """A progress bar on standard error if that is a terminal, else None."""
    return Progress(label) if sys.stderr.isatty() else None


def stages() -> Callable[[str, int, int], None] | None:
    """The same for work in stages, with a bar for each: called with the stage, how much is done, and the total."""
    if not sys.stderr.isatty():
        return None
    bars: dict[str, Progress] = {}

    def show(stage: str, done: int, total: int) -> None:
        bars.setdefault(stage, Progress(stage))(done, total)

    return show


class Progress:
    """A line on standard error with a bar, how much is done, a note, and how long the rest may take."""

    def __init__(self, label: str) -> None:
        from fairevals.io.screen import Screen

        self.label, self.begin = label, time.monotonic()
        self.full, self.empty = "█·" if Screen.of(sys.stderr).unicode else "#."

    def __call__(self, done: int, total: int, note: str = "") -> None:
        filled = 24 * done // max(total, 1)
        line = f"{self.label} [{self.full * filled}{self.empty * (24 - filled)}] {done}/{total}"
        seconds = time.monotonic() - self.begin
        if done and seconds > 2:
            left = round(seconds * (total - done) / done)
            clock = f"{left // 3600}:{left // 60 % 60:02}" if left >= 3600 else f"{left // 60}"
            line += f", {clock}:{left % 60:02} left"
        line += f", {note}" if note else ""
        # A line that is longer than the terminal could not be overwritten.
        shown = line[: shutil.get_terminal_size().columns - 1]
        print(f"\r\033[K{shown}", end="\r\033[K" if done == total else "", file=sys.stderr, flush=True)

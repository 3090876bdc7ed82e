"""`fairevals demo`."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairevals.cli import common

SUMMARY = "Score the sample task (invented researchers and films) and show the way to everything else."
EXAMPLE = "  fairevals demo -o fairevals-demo"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-o", "--output", default="fairevals-demo", metavar="DIR", help="default: fairevals-demo"
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="a folder with runs/ and qrels/ (default: made anew below the output folder)",
    )


def run(args: argparse.Namespace) -> int:
    """Make the sample if need be, report on it, print the leaderboard and what to try next."""
    from fairevals.errors import UsageError, escape
    from fairevals.evaluation import Plan, leaderboard, load_collection
    from fairevals.io.out import render
    from fairevals.report.gather import ReportOptions, gather
    from fairevals.report.record import REPORT
    from fairevals.report.write import write_report

    out = Path(args.output)
    REPORT.check(out)
    data = Path(args.data) if args.data else out
    if not args.data:
        from tools.sample import write_sample

        write_sample(data)
    task, runs = data / "qrels" / "task.toml", sorted((data / "runs").glob("*.run"))
    if not runs:
        raise UsageError(f"there is no run in {escape(str(data / 'runs'), 200)}")
    collection = load_collection(task)
    plan = Plan.of(collection)
    names = [path.stem for path in runs]
    wish = ReportOptions(
        baseline=names.index("bm25") if "bm25" in names else None,
        references=tuple(place for place, name in enumerate(names) if is_reference(name)),
    )
    report = gather([str(path) for path in runs], collection, plan, wish, progress=common.progress("scoring"))
    files = write_report(report, out, force=True)  # it was checked before the sample was put there
    common.emit(render(leaderboard.leaderboard(report.asked_scores()), "table"), None)
    for note in report.scores.notes:
        common.say(note)
    print(
        f"\nwritten: {files[0]} (open it in a browser), {out / 'scores.csv'}, {out / 'report.json'}, {out / 'figures'}/"
    )
    given = f"--task {task} {data / 'runs'}/*.run"
    print(f"next:    fairevals compare {given} --baseline bm25")
    print(f"         fairevals score {given} -m \"AWRF(attr='ORIGIN')\" --policy pl")
    print(f"         fairevals report {given} --policy pl -o my-report")
    return 0


def is_reference(name: str) -> bool:
    """Whether a run of the sample is a reference policy: a random order, or one that was trained.

    >>> is_reference("random"), is_reference("fair-pg-rank-lambda1-seed0"), is_reference("dense")
    (True, True, False)
    """
    from fairevals.training.settings import METHODS

    return name == "random" or any(name == method or name.startswith(f"{method}-") for method in METHODS)

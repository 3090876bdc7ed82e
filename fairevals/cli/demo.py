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
    """Make the sample if need be, score it, print the leaderboard and write it down."""
    from fairevals import leaderboard
    from fairevals.io.out import render
    from fairevals.io.streams import written
    from fairevals.pipeline import Plan, load_collection, score

    out = Path(args.output)
    data = Path(args.data) if args.data else out
    if not args.data:
        from fairevals.sample import write_sample

        write_sample(data)
    task, runs = data / "qrels" / "task.toml", sorted((data / "runs").glob("*.run"))
    collection = load_collection(task)
    scores = score(
        [str(path) for path in runs], collection, Plan.of(collection), progress=common.progress("scoring")
    )
    with written(out / "scores.csv") as file:
        file.write(render(leaderboard.long_table(scores, per_topic=True), "csv"))
    with written(out / "index.html") as file:
        file.write(leaderboard.page(scores, collection.task.name))
    common.emit(render(leaderboard.leaderboard(scores), "table"), None)
    for note in scores.notes:
        common.say(note)
    print(f"\nwritten: {out / 'index.html'}, {out / 'scores.csv'}")
    print(
        f"next:    fairevals score --task {task} {data / 'runs'}/*.run -m \"AWRF(attr='ORIGIN')\" --policy pl"
    )
    return 0

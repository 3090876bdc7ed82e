"""`fairevals reproduce`."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairevals.cli import common

SUMMARY = "Do experiments of papers again: figures, numbers, and the papers' claims beside what was measured."
EXAMPLE = """  fairevals reproduce fair-pg-rank-simulated -o simulated
  fairevals reproduce fair-pg-rank-german german.data -o german
  fairevals reproduce bandit-rank-rewards train.letor.gz test.letor.gz -o rewards"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    from experiments.reproduce import EXPERIMENTS

    parser.add_argument(
        "name",
        metavar="NAME",
        choices=EXPERIMENTS,
        help="; ".join(f"{name}: {what}" for name, what in EXPERIMENTS.items()),
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="the data, where the experiment needs some")
    parser.add_argument(
        "--seeds", type=common.whole(1, 100), metavar="N", help="draws or seeds (default: the experiment's)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="as little as shows that it works; no claim is judged by that"
    )
    common.add_jobs(parser)
    common.add_folder(
        parser.add_argument_group("output"),
        "index.html, the csv files, reproduction.json and figures/; an earlier reproduction there is "
        "replaced",
    )


def run(args: argparse.Namespace) -> int:
    """Train, measure, judge, draw and write."""
    from experiments.reproduce import REPRODUCTION, Budget, reproduce, write_reproduction

    folder = Path(args.output)
    REPRODUCTION.check(folder, force=args.force)  # before the work, not after it
    effort = Budget(args.quick, args.seeds, common.progress("training"), args.jobs)
    found = reproduce(args.name, args.files, effort)
    files = write_reproduction(found, folder, force=args.force)
    for claim in found.claims:
        print(f"{claim.verdict} ({claim.count}): {claim.text}")
    if found.quick:
        common.say("a quick run: it shows that everything works, and no claim can be judged by it")
    print(f"written: {files[0]} and {len(files) - 1} other files")
    return 0

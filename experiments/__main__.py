"""`python -m experiments`: run an experiment of a paper and write its page."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from experiments import EXPERIMENTS, Budget, reproduce
from experiments.page import REPRODUCTION, write_reproduction
from fairevals.cli.common import add_folder, add_jobs, progress, whole
from fairevals.errors import FairevalsError, UsageError

EXAMPLE = """examples:
  python -m experiments fair-pg-rank-simulated -o simulated
  python -m experiments fair-pg-rank-german german.data -o german
  python -m experiments bandit-rank-rewards train.letor.gz test.letor.gz -o rewards"""


def make_parser() -> argparse.ArgumentParser:
    """Declare the options."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description="Run an experiment of a paper: figures, numbers, and the paper's claims beside what was measured.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        choices=EXPERIMENTS,
        help="; ".join(f"{name}: {description}" for name, description in EXPERIMENTS.items()),
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="the data, if the experiment needs any")
    parser.add_argument(
        "--seeds",
        type=whole(1, 100),
        metavar="N",
        help="number of draws or seeds (default: the experiment's)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a short run that only shows that everything works; too short to judge a claim",
    )
    add_jobs(parser)
    add_folder(parser, "index.html, the csv files, reproduction.json and figures/")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the experiment, write its page and print the verdicts: 0 done, 1 invalid input, 2 wrong usage."""
    args = make_parser().parse_args(argv)
    warnings.showwarning = _print_warning
    folder = Path(args.output)
    try:
        REPRODUCTION.check(folder, force=args.force)  # before the work, not after it
        budget = Budget(args.quick, args.seeds, progress("training"), args.jobs)
        reproduction = reproduce(args.name, args.files, budget)
        files = write_reproduction(reproduction, folder, force=args.force)
    except FairevalsError as error:
        print(f"experiments: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    for claim in reproduction.claims:
        print(f"{claim.verdict} ({claim.count}): {claim.text}")
    if reproduction.quick:
        print("experiments: a quick run; too short to judge the claims", file=sys.stderr)
    print(f"written: {files[0]} and {len(files) - 1} other files")
    return 0


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"experiments: warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

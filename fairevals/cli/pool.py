"""`fairevals pool`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairevals.cli import common

if TYPE_CHECKING:
    from fairevals.collection.run import Run

SUMMARY = "List the documents in the first ranks of runs, for judging: topic, document, number of runs."
EXAMPLE = "  fairevals pool runs/*.run --depth 20 -o pool.txt"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    common.add_runs(parser)
    add("--depth", type=common.whole(1), required=True, metavar="K", help="ranks to take from each run")
    add("--order", choices=("score", "file"), default="score", help="rank by score (default) or by lines")
    add("--policy", choices=("ranking", "samples"), default="ranking", help="samples: pool every sample")
    common.add_file(add)


def run(args: argparse.Namespace) -> int:
    from fairevals.collection.pool import pool
    from fairevals.collection.run import read_run

    common.check_outputs(args)
    show = common.progress("pooling")

    def runs() -> Iterator[Run]:
        for number, path in enumerate(args.runs, 1):
            yield read_run(path, order=args.order, samples=args.policy == "samples", depth=args.depth)
            if show:
                show(number, len(args.runs))

    lines = (f"{topic} {doc} {count}\n" for topic, doc, count in pool(runs(), args.depth))
    common.emit(lines, args.output)
    return 0

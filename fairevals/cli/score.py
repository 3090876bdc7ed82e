"""`fairevals score`."""

import argparse
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from fairevals.cli import common
from fairevals.errors import UsageError

SUMMARY = "Score runs for usefulness and fairness: a leaderboard, or a table for other programs."
EXAMPLE = """  fairevals score --task qrels/task.toml runs/*.run
  fairevals score --qrels my.qrels my.run -m nDCG@10 -m AP -q --format csv -o scores.csv"""


def configure(parser: argparse.ArgumentParser) -> None:
    common.add_collection(parser)
    common.add_runs(parser)
    common.add_measures(parser)
    add = parser.add_argument
    add("-q", "--per-topic", action="store_true", help="print every topic, not only means")
    text = "also print the parts of composed measures (GFR, M1), and the share of attention on unjudged documents"
    add("--components", action="store_true", help=text)
    common.add_policy(parser)
    common.add_anonymous(parser)
    common.add_output(parser)
    common.add_jobs(parser)
    text = "score on a Dask cluster, such as tcp://host:8786, whose workers can read the files"
    add("--dask", metavar="ADDRESS", help=text)
    text = "how long to wait for the cluster while it does not answer or has no workers (default 30)"
    add("--timeout", type=common.whole(1, 10**6), metavar="SECONDS", help=text)


def run(args: argparse.Namespace) -> int:
    from fairevals.evaluation import with_components
    from fairevals.result import scored

    if args.dask is not None and args.jobs > 1:
        raise UsageError("give --jobs or --dask, not both")
    if args.timeout is not None and args.dask is None:
        raise UsageError("--timeout is for --dask ADDRESS")
    collection, plan = common.plan_of(args)
    if args.components:
        plan = with_components(plan, collection, unjudged=True)
    show = common.progress("scoring")
    with nullcontext() if args.dask is None else _cluster(args) as executor:
        options: Any = {"jobs": args.jobs, "executor": executor, "progress": show}
        result = scored(args.runs, collection, plan, anonymous=args.anonymous, **options)
    common.log(*result.remarks)
    options = {"places": args.places, "spreadsheet": args.spreadsheet}
    common.emit([result.render(args.format, per_topic=args.per_topic, **options)], args.output)
    return 0


def _cluster(args: argparse.Namespace) -> AbstractContextManager[Executor]:
    """The cluster of --dask; the module takes time to import."""
    from fairevals.ecosystem.cluster import TIMEOUT, connected

    return connected(args.dask, args.timeout or TIMEOUT)

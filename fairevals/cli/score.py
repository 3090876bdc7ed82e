"""`fairevals score`."""

from __future__ import annotations

import argparse
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from fairevals.cli import common
from fairevals.errors import UsageError, pluralize

if TYPE_CHECKING:
    from fairevals.result import Result

SUMMARY = "Score runs for usefulness and fairness: a leaderboard, or a table for other programs."
EXAMPLE = """  fairevals score --task qrels/task.toml runs/*.run
  fairevals score --task my.toml runs/*.run --by TYPE --ci --format latex
  fairevals score --qrels my.qrels my.run -m nDCG@10 -m AP -q --format csv -o scores.csv"""


def configure(parser: argparse.ArgumentParser) -> None:
    common.add_collection(parser)
    common.add_runs(parser)
    common.add_measures(parser)
    add = parser.add_argument
    add("-q", "--per-topic", action="store_true", help="print every topic, not only means")
    common.add_by(parser)
    text = "also print 95 %% intervals over topics, and in tables letters: runs that share one do not differ"
    add("--ci", action="store_true", help=text)
    text = "also print the parts of composed measures (GFR, M1), and the share of attention on unjudged documents"
    add("--components", action="store_true", help=text)
    common.add_policy(parser)
    common.add_anonymous(parser)
    common.add_output(parser, more=("tsm",))
    common.add_jobs(parser)
    text = "score on a Dask cluster, such as tcp://host:8786, whose workers can read the files"
    add("--dask", metavar="ADDRESS", help=text)
    text = "how long to wait for the cluster while it does not answer or has no workers (default 30)"
    add("--timeout", type=common.whole(1, 10**6), metavar="SECONDS", help=text)


def run(args: argparse.Namespace) -> int:
    from fairevals.api import scored
    from fairevals.evaluation import with_components

    if args.dask is not None and args.jobs > 1:
        raise UsageError("give --jobs or --dask, not both")
    if args.timeout is not None and args.dask is None:
        raise UsageError("--timeout is for --dask ADDRESS")
    if args.format == "tsm":
        _check_tsm(args)
    collection, plan = common.plan_of(args)
    if args.format == "tsm" and args.output is None and len(plan.measures) > 1:
        raise UsageError("a tsm file has one measure: give one -m, or a folder for the files with -o")
    if args.components:
        plan = with_components(plan, collection, unjudged=True)
    show = common.progress("scoring")
    with nullcontext() if args.dask is None else _cluster(args) as executor:
        options: Any = {"jobs": args.jobs, "executor": executor, "progress": show}
        result = scored(args.runs, collection, plan, anonymous=args.anonymous, **options)
    common.log(*result.remarks)
    if args.format == "tsm":
        return _emit_tsm(result, args)
    shown = {"by": args.topic_groups, "ci": args.ci, "places": args.places, "spreadsheet": args.spreadsheet}
    common.emit([result.render(args.format, per_topic=args.per_topic, **shown)], args.output)
    return 0


def _check_tsm(args: argparse.Namespace) -> None:
    """Refuse what topic-by-run matrices do not have, and a folder that they cannot be written to."""
    from fairevals.io.folders import check_folder

    if args.topic_groups is not None or args.ci:
        raise UsageError("--format tsm has values by topic: omit --by and --ci")
    if args.output is not None:
        check_folder(args.output, force=args.force)


def _emit_tsm(result: Result, args: argparse.Namespace) -> int:
    for measure in result.measures:
        if measure.across_topics:
            common.log(f"{result.scores.label(measure)}: no matrix: it has one value for all topics together")
        elif count := int(result.matrix(measure).isna().any(axis=1).sum()):
            topics = f"{pluralize(count, 'topic')} without a value of every run"
            common.log(f"{result.scores.label(measure)}: left out of the matrix: {topics}")
    if args.output is None:
        common.emit([result.tsm(places=args.places)], None)
    else:
        result.to_tsm(args.output, places=args.places, force=args.force)
    return 0


def _cluster(args: argparse.Namespace) -> AbstractContextManager[Executor]:
    """The cluster of --dask; the module takes time to import."""
    from fairevals.ecosystem.cluster import TIMEOUT, connected

    return connected(args.dask, args.timeout or TIMEOUT)

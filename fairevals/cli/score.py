"""`fairevals score`."""

from __future__ import annotations

import argparse

from fairevals.cli import common

SUMMARY = "Score runs for usefulness and fairness: a leaderboard, or a table for other programs."
EXAMPLE = """  fairevals score --task qrels/task.toml runs/*.run
  fairevals score --qrels my.qrels my.run -m nDCG@10 -m AP -q --format csv -o scores.csv"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.add_collection(parser)
    common.add_runs(parser)
    common.add_measures(parser)
    parser.add_argument("-q", "--per-topic", action="store_true", help="print every topic, not only means")
    parser.add_argument(
        "--components",
        action="store_true",
        help="also print the parts of composed measures (GFR, M1), and the share of attention on unjudged documents",
    )
    common.add_policy(parser)
    common.add_output(parser)
    common.add_jobs(parser)
    common.add_dask(parser)


def run(args: argparse.Namespace) -> int:
    """Score and print."""
    from fairevals.errors import pluralize
    from fairevals.evaluation import Plan, leaderboard, score, with_components

    collection = common.collection_of(args)
    plan = Plan.of(collection, args.measures, common.policy_of(args, collection))
    if args.components:
        plan = with_components(plan, collection, unjudged=True)
    show = common.progress("scoring")
    with common.executor_of(args) as executor:
        scores = score(args.runs, collection, plan, jobs=args.jobs, executor=executor, progress=show)
    for note in scores.notes:
        common.log(note)
    topics = pluralize(len(scores.topics), "topic")
    for measure, count in zip(plan.measures, scores.undefined().tolist(), strict=True):
        if count:
            common.log(f"{measure} is undefined on up to {count} of {topics}: not in its mean")
    if args.format in ("table", "latex"):
        make = leaderboard.topic_table if args.per_topic else leaderboard.leaderboard
        table = make(scores, 4 if args.places is None else args.places)
    else:
        make_long = leaderboard.json_table if args.format == "json" else leaderboard.long_table
        table = make_long(scores, args.per_topic)
    common.emit_table(table, args)
    return 0

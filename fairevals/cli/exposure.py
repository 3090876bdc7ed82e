"""`fairevals exposure`."""

import argparse
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

from fairevals.cli import common

SUMMARY = "Compute the expected exposure of every document or group under a run, beside merit and target."
EXAMPLE = """  fairevals exposure --qrels qrels/sample.qrels runs/bm25.run --policy pl -k 20 --figure exposure.svg
  fairevals exposure --task qrels/task.toml runs/bm25.run --by group --format table"""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    common.add_collection(parser)
    add("run_file", metavar="RUN", help=common.RUN)
    add("--by", choices=("doc", "group"), default="doc", help="one row per document (default) or per group")
    add("--attr", action="append", default=[], metavar="A", help="with --by group: only this attribute")
    add("--attention", default="log2", metavar="V", help="log2 (default), trecfair, 'rbp(0.8)', …")
    add("-k", "--cutoff", type=common.whole(1), metavar="K", help="ranks beyond K get no attention")
    add("--merit", default="identity", metavar="F", help="identity (default), square, sqrt, exp, binary")
    add("--topic", action="append", default=[], metavar="T", help="only this topic; repeated for several")
    add("--figure", metavar="FILE", help="also draw a figure, as .svg, .png or .pdf")
    common.add_policy(parser)
    text = "mc: mean over samples, with standard error"
    add("--method", choices=("exact", "mc"), default="exact", help=text)
    common.add_output(parser, default="csv")


def run(args: argparse.Namespace) -> int:
    from fairevals.errors import UsageError, escape
    from fairevals.evaluation import exposures
    from fairevals.io.out import Table

    collection = common.collection_of(args)
    unknown = [topic for topic in args.topic if topic not in collection.qrels.number]
    if unknown:
        raise UsageError(f"--topic {escape(unknown[0])}: the qrels have no such topic")
    policy = common.policy_of(args, collection)
    query = exposures.ExposureQuery(policy, args.attention, args.cutoff, args.method, args.merit)
    kind: Any = exposures.DocumentRow
    every: Any = exposures.document_exposures(args.run_file, collection, query)
    if args.by == "group":
        kind = exposures.GroupRow
        every = exposures.group_exposures(args.run_file, collection, query, tuple(args.attr))
    rows = [row for row in every if not args.topic or row.topic in args.topic]
    common.emit_table(Table(tuple(f.name for f in fields(kind)), tuple(map(astuple, rows))), args)
    if args.figure:
        from fairevals.report import figures, style

        title = Path(args.run_file).name
        if args.by == "doc":
            figure = figures.exposure_against_merit(rows, title, str(query.model))
        else:
            figure = figures.group_share_against_target(rows, title)
        style.save(figure, Path(args.figure))
        common.log(f"wrote {escape(args.figure, 200)}")
    return 0

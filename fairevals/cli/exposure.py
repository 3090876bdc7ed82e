"""`fairevals exposure`."""

import argparse
from dataclasses import astuple
from pathlib import Path

from fairevals.cli import common

SUMMARY = "Compute the expected exposure of every document or group under a run, beside merit and target."
EXAMPLE = """  fairevals exposure --qrels qrels/sample.qrels runs/bm25.run --policy pl -k 20 --figure exposure.svg
  fairevals exposure --task qrels/task.toml runs/bm25.run --by group --format table"""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    common.add_collection(parser)
    add("run_file", metavar="RUN", help="run file, compressed or not; - for standard input")
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
    from fairevals.evaluation.exposures import ExposureQuery, document_exposures, group_exposures
    from fairevals.io.out import Table

    collection = common.collection_of(args)
    unknown = [topic for topic in args.topic if topic not in collection.qrels.number]
    if unknown:
        raise UsageError(f"--topic {escape(unknown[0])}: the qrels have no such topic")
    policy = common.policy_of(args, collection)
    query = ExposureQuery(policy, args.attention, args.cutoff, args.method, args.merit)
    attention, name = str(query.model), Path(args.run_file).name
    topics = set(args.topic) or set(collection.qrels.number)
    figure = None
    if args.by == "doc":
        docs = [row for row in document_exposures(args.run_file, collection, query) if row.topic in topics]
        table = Table(("topic", "doc", "exposure", "se", "merit", "target"), tuple(map(astuple, docs)))
        if args.figure:
            from fairevals.report.figures import exposure_against_merit

            figure = exposure_against_merit(docs, name, attention)
    else:
        if not args.topic:
            topics.add("all")
        rows = group_exposures(args.run_file, collection, query, tuple(args.attr))
        groups = [row for row in rows if row.topic in topics]
        columns = ("topic", "attribute", "group", "exposure", "se", "share", "target", "merit")
        table = Table(columns, tuple(map(astuple, groups)))
        if args.figure:
            from fairevals.report.figures import group_share_against_target

            figure = group_share_against_target(groups, name)
    common.emit_table(table, args)
    if figure is not None:
        from fairevals.report.style import save

        save(figure, Path(args.figure))
        common.log(f"wrote {escape(args.figure, 200)}")
    return 0

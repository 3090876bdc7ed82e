"""`fairevals exposure`."""

from __future__ import annotations

import argparse
from dataclasses import astuple
from pathlib import Path

from fairevals.cli import common

SUMMARY = "Expected exposure of every document or group under a run, with merit and target beside it."
EXAMPLE = """  fairevals exposure --qrels qrels/sample.qrels runs/bm25.run --policy pl -k 20 --figure exposure.svg
  fairevals exposure --task qrels/task.toml runs/bm25.run --by group --format table"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.add_collection(parser)
    parser.add_argument("run_file", metavar="RUN", help="run file, compressed or not; - for standard input")
    parser.add_argument(
        "--by", choices=("doc", "group"), default="doc", help="rows are documents (default) or groups"
    )
    parser.add_argument(
        "--attr", action="append", default=[], metavar="A", help="with --by group: only this attribute"
    )
    parser.add_argument(
        "--attention", default="log2", metavar="V", help="log2 (default), trecfair, 'rbp(0.8)', …"
    )
    parser.add_argument(
        "-k", "--cutoff", type=common.whole(1), metavar="K", help="ranks beyond K get no attention"
    )
    parser.add_argument(
        "--merit", default="identity", metavar="F", help="identity (default), square, sqrt, exp, binary"
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="T",
        help="only this topic (more than once for several)",
    )
    parser.add_argument("--figure", metavar="FILE", help="also draw it, as .svg, .png or .pdf")
    common.add_policy(parser)
    parser.add_argument(
        "--method",
        choices=("exact", "mc"),
        default="exact",
        help="mc: the mean over sampled rankings, with its standard error",
    )
    common.add_output(parser, default="csv")


def run(args: argparse.Namespace) -> int:
    """Compute, print, and draw if asked to."""
    from fairevals.errors import UsageError, escape
    from fairevals.evaluation.exposures import ExposureQuery, document_exposures, group_exposures
    from fairevals.io.out import Table
    from fairevals.measures.merit import MERITS

    if args.merit not in MERITS:
        raise UsageError(f"--merit {escape(args.merit)}: expected one of {', '.join(MERITS)}")
    collection = common.collection_of(args)
    unknown = [topic for topic in args.topic if topic not in collection.qrels.number]
    if unknown:
        raise UsageError(f"--topic {escape(unknown[0])}: the qrels have no such topic")
    question = ExposureQuery(
        common.policy_of(args, collection), args.attention, args.cutoff, args.method, args.merit
    )
    question.model()
    wanted = set(args.topic)
    if args.by == "doc":
        docs = [
            row
            for row in document_exposures(args.run_file, collection, question)
            if not wanted or row.topic in wanted
        ]
        table = Table(("topic", "doc", "exposure", "se", "merit", "target"), tuple(map(astuple, docs)))
        if args.figure:
            from fairevals.report.figures import exposure_against_merit

            figure = exposure_against_merit(docs, Path(args.run_file).name, str(question.model()))
    else:
        found = group_exposures(args.run_file, collection, question, tuple(args.attr))
        groups = [row for row in found if not wanted or row.topic in wanted]
        columns = ("topic", "attribute", "group", "exposure", "se", "share", "target", "merit")
        table = Table(columns, tuple(map(astuple, groups)))
        if args.figure:
            from fairevals.report.figures import group_share_against_target

            figure = group_share_against_target(groups, Path(args.run_file).name)
    common.emit_table(table, args)
    if args.figure:
        from fairevals.report.style import save

        save(figure, Path(args.figure))
        common.say(f"drawn: {args.figure}")
    return 0

"""`fairevals power`."""

import argparse
from pathlib import Path

from fairevals.cli import common

SUMMARY = "Estimate from runs how many topics a task needs to tell runs apart (topic set size design)."
EXAMPLE = """  fairevals power --task qrels/task.toml runs/*.run
  fairevals power --task my.toml pilot/*.run --difference 0.1 --systems 20 --figure power.svg"""


def configure(parser: argparse.ArgumentParser) -> None:
    common.add_collection(parser)
    common.add_runs(parser)
    common.add_measures(parser)
    add = parser.add_argument
    text = "difference of means to detect; repeated for several (default: 0.05, 0.1, 0.15 and 0.2)"
    add("--difference", type=float, action="append", metavar="D", help=text)
    add("--power", type=float, default=0.8, metavar="P", help="probability to detect it (default 0.8)")
    add("--alpha", type=float, default=0.05, metavar="A", help="significance level (default 0.05)")
    text = "number of runs that ANOVA compares (default: the number of runs given)"
    add("--systems", type=common.whole(2), metavar="M", help=text)
    text = "also draw power against the number of topics, as .svg, .png or .pdf"
    add("--figure", metavar="FILE", help=text)
    common.add_policy(parser)
    common.add_output(parser)
    common.add_jobs(parser)


def run(args: argparse.Namespace) -> int:
    from fairevals.api import scored
    from fairevals.errors import escape
    from fairevals.statistics.power import topic_set_sizes

    collection, plan = common.plan_of(args)
    result = scored(args.runs, collection, plan, jobs=args.jobs, progress=common.progress("scoring"))
    options = {"power": args.power, "alpha": args.alpha, "systems": args.systems}
    sizes = topic_set_sizes(result.scores, args.difference, **options)
    common.log(*result.scores.notes, *sizes.remarks)
    common.emit([sizes.render(args.format, args.places, spreadsheet=args.spreadsheet)], args.output)
    if args.figure:
        from fairevals.report import figures, style

        style.save(figures.power_figure(sizes), Path(args.figure))
        common.log(f"wrote {escape(args.figure, 200)}")
    return 0

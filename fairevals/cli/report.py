"""`fairevals report`."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairevals.cli import common

SUMMARY = "Write a report: one self-contained page, the scores, the figures, and a JSON file with all of it."
EXAMPLE = """  fairevals report --task qrels/task.toml runs/*.run --baseline bm25 -o report
  fairevals report --task my.toml my.run other.run --reference random --trained policies -o report"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.add_collection(parser)
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="run file, compressed or not, or a folder of parquet files"
    )
    parser.add_argument(
        "--baseline", metavar="RUN", help="a run file, or the tag of one of the runs (default: the first run)"
    )
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        dest="references",
        metavar="TAG",
        help="the tag of a run to mark as a reference policy, without letters; may be given several times",
    )
    common.add_measures(parser)
    parser.add_argument(
        "--test",
        choices=("ttest", "wilcoxon", "tukey", "bootstrap"),
        default="ttest",
        help="against the baseline: paired t-test (default); Wilcoxon signed-rank; randomised Tukey HSD over the "
        "baseline and all runs that the task does not list as baseline or reference; paired bootstrap",
    )
    parser.add_argument(
        "--correct",
        choices=("holm", "bh", "none"),
        help="correction of p over the runs of each measure: Holm (default), Benjamini-Hochberg, none",
    )
    parser.add_argument(
        "--trained",
        action="append",
        default=[],
        metavar="DIR",
        help="an output folder of `fairevals train` whose policies are shown too; may be given several times",
    )
    common.add_policy(parser)
    common.add_jobs(parser)
    common.add_folder(
        parser.add_argument_group("output"),
        "index.html, scores.csv, report.json and figures/; an earlier report there is replaced",
    )


def run(args: argparse.Namespace) -> int:
    """Score, compute, draw and write."""
    from fairevals.cli.compare import with_baseline
    from fairevals.errors import UsageError
    from fairevals.evaluation import Plan
    from fairevals.report.gather import gather
    from fairevals.report.write import REPORT, write_report

    folder = Path(args.output)
    REPORT.check(folder, force=args.force)  # before the work
    if args.test == "tukey" and args.correct in ("holm", "bh"):
        raise UsageError("--test tukey corrects for all pairs of runs by itself: omit --correct")
    collection = common.collection_of(args)
    plan = Plan.of(collection, args.measures, common.policy_of(args, collection))
    runs: list[str] = args.runs
    baseline: int | str | None = args.baseline
    if args.baseline is not None:
        runs, place = with_baseline(runs, args.baseline)
        baseline = args.baseline if place is None else place
    report = gather(
        runs,
        collection,
        plan,
        baseline=baseline,
        references=args.references,
        test=args.test,
        correction=args.correct,
        trained=[Path(name) for name in args.trained],
        given=args.measures is not None,
        qrels=args.qrels,
        jobs=args.jobs,
        progress=common.progress("scoring"),
    )
    files = write_report(report, folder, force=args.force)
    for line in report.remarks:
        common.log(line)
    print(f"written: {files[0]} and {len(files) - 1} other files")
    return 0

"""`fairevals report`."""

import argparse
from pathlib import Path

from fairevals.cli import common
from fairevals.cli.compare import check_tests, with_baseline
from fairevals.errors import UsageError, escape

SUMMARY = "Write a report: one self-contained page, the scores, the figures, and a JSON file with all of it."
EXAMPLE = """  fairevals report --task qrels/task.toml runs/*.run --baseline bm25 -o report
  fairevals report --task my.toml my.run other.run --reference random --trained policies -o report"""


def configure(parser: argparse.ArgumentParser) -> None:
    common.add_collection(parser)
    common.add_runs(parser)
    add = parser.add_argument
    text = (
        "a run file or a folder of parquet files, or the tag of one of the runs (default: the first baseline of the "
        "runs table, or the first run)"
    )
    add("--baseline", metavar="RUN", help=text)
    text = "the tag of a run to mark as a reference policy, without letters; may be given several times"
    add("--reference", action="append", default=[], dest="references", metavar="TAG", help=text)
    common.add_measures(parser)
    common.add_by(parser)
    common.add_tests(parser)
    text = "an output folder of `fairevals train` whose policies are shown too; may be given several times"
    add("--trained", action="append", default=[], metavar="DIR", help=text)
    text = "which runs have their first ranks in the page: all, the baseline, Pareto front and references, or none"
    add("--drilldown", choices=("all", "front", "none"), help=f"{text} (default: all if they fit)")
    common.add_policy(parser)
    common.add_anonymous(parser)
    common.add_jobs(parser)
    files = "index.html, scores.csv, leaderboard.csv and .tex, report.json and figures/"
    common.add_folder(parser.add_argument_group("output"), f"{files}; an earlier report there is replaced")


def run(args: argparse.Namespace) -> int:
    from fairevals.evaluation.anonymous import anonymised, write_key
    from fairevals.io.folders import PAGE
    from fairevals.report.gather import gather
    from fairevals.report.write import REPORT, write_report

    folder = Path(args.output)
    REPORT.check(folder, force=args.force)  # before the work
    check_tests(args)
    replaced = [
        folder / name for name in (PAGE, "scores.csv", "leaderboard.csv", "leaderboard.tex", REPORT.marker)
    ]
    show = common.stages()
    if show:
        show("reading", 0, 2)
    collection, plan = common.plan_of(args, [*replaced, *folder.glob("figures/*")])
    runs, baseline = args.runs, None
    if args.baseline is not None:
        runs, baseline = with_baseline(runs, args.baseline)
    if args.anonymous:
        if Path(args.anonymous).resolve().is_relative_to(folder.resolve()):
            raise UsageError(f"--anonymous {escape(args.anonymous)} is in the folder of the report")
        hidden = anonymised(runs, plan.policy.seed)
        if isinstance(baseline, int):
            baseline = [one.run for one in hidden].index(runs[baseline])
        runs = hidden
    report = gather(
        runs,
        collection,
        plan,
        baseline=baseline,
        references=args.references,
        test=args.test,
        correction=args.correct,
        by=args.topic_groups,
        trained=[Path(name) for name in args.trained],
        given=args.measures is not None,
        qrels=args.qrels,
        drilldown=args.drilldown,
        jobs=args.jobs,
        progress=show,
    )
    if args.anonymous:
        write_key(args.anonymous, report.scores, runs, collection.task)
    files = write_report(report, folder, force=args.force, progress=show)
    common.log(*report.remarks)
    print(f"written: {files[0]} and {len(files) - 1} other files")
    return 0

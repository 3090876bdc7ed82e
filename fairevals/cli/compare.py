"""`fairevals compare`."""

from __future__ import annotations

import argparse
from os.path import realpath
from pathlib import Path
from typing import Any

from fairevals.cli import common
from fairevals.errors import UsageError, escape

SUMMARY = "Compare runs with a baseline or each other: differences, intervals, tests, effect sizes, wins and losses."
EXAMPLE = """  fairevals compare --task qrels/task.toml runs/*.run --baseline bm25
  fairevals compare --task qrels/task.toml runs/*.run --all-pairs --figure pairs.svg
  fairevals compare --qrels my.qrels new.run --baseline old.run -m nDCG@10 --test wilcoxon --format latex"""


def configure(parser: argparse.ArgumentParser) -> None:
    common.add_collection(parser)
    common.add_runs(parser)
    text = "a run file or a folder of parquet files, or the tag of one of the runs"
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--baseline", metavar="RUN", help=text)
    text = "compare every two runs by randomised Tukey HSD, with letters: runs that share one do not differ"
    which.add_argument("--all-pairs", action="store_true", help=text)
    common.add_measures(parser)
    common.add_by(parser)
    common.add_tests(parser)
    common.add_policy(parser)
    common.add_anonymous(parser)
    common.add_output(parser)
    text = "with --all-pairs, draw the differences and their p-values into this .svg, .png or .pdf file"
    parser.add_argument("--figure", metavar="FILE", help=text)
    common.add_jobs(parser)


def run(args: argparse.Namespace) -> int:
    from fairevals.api import scored
    from fairevals.statistics.all_pairs import AllPairs

    check_tests(args)
    collection, plan = common.plan_of(args)
    runs, baseline = (args.runs, 0) if args.all_pairs else with_baseline(args.runs, args.baseline)
    options: Any = {"jobs": args.jobs, "progress": common.progress("scoring")}
    result = scored(runs, collection, plan, anonymous=args.anonymous, **options)
    common.log(*result.scores.notes)  # the comparisons tell what is undefined
    if args.anonymous and isinstance(baseline, int) and not args.all_pairs:
        baseline = [run.run for run in result.sources].index(runs[baseline])
    how = {"all_pairs": args.all_pairs, "by": args.topic_groups, "correct": args.correct}
    compared = result.compare(baseline, test=args.test, **how)
    text = compared.render(args.format, args.places, spreadsheet=args.spreadsheet)
    common.emit([text], args.output)
    if isinstance(compared, AllPairs) and args.figure is not None:
        from fairevals.report import figures, style

        groups, measures = compared.groups, range(len(result.measures))
        style.save(figures.pairs_figure(result.scores, groups, measures, compared.alpha), Path(args.figure))
        common.log(f"wrote {escape(args.figure, 200)}")
    return 0


def check_tests(args: argparse.Namespace) -> None:
    """Refuse a correction of Tukey's test, another test of all pairs, and a figure of anything but all pairs."""
    all_pairs = getattr(args, "all_pairs", False)
    if all_pairs and (args.test in ("wilcoxon", "bootstrap") or args.correct in ("holm", "bh")):
        raise UsageError(
            "--all-pairs is tested by Tukey HSD, which corrects by itself: omit --test and --correct"
        )
    if getattr(args, "figure", None) and (not all_pairs or args.topic_groups):
        raise UsageError("--figure is for --all-pairs without --by")
    if args.test == "tukey" and args.correct in ("holm", "bh"):
        raise UsageError("--test tukey corrects for all pairs of runs by itself: omit --correct")


def with_baseline(runs: list[str], baseline: str) -> tuple[list[str], int | str]:
    """The runs to score, and the position of the baseline among them (as given if it is a tag).

    A file (perhaps of an archive) or a folder of parquet files that is not among the runs is added.

    >>> with_baseline(["a.run", "b.run"], "b.run"), with_baseline(["a.run"], "bm25")
    ((['a.run', 'b.run'], 1), (['a.run'], 'bm25'))
    """
    from fairevals.io.archives import member_of
    from fairevals.io.streams import reads_once

    places = [number for number, file in enumerate(runs) if realpath(file) == realpath(baseline)]
    if places:
        return runs, places[0]
    path = Path(baseline)
    # A folder without such files may have the name of a tag by chance.
    if reads_once(baseline) or path.is_file() or member_of(baseline) or any(path.rglob("*.parquet")):
        return [baseline, *runs], 0
    return runs, baseline

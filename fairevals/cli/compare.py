"""`fairevals compare`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from fairevals.cli import common
from fairevals.errors import UsageError, escape

if TYPE_CHECKING:
    from fairevals.statistics.compare import Comparisons

SUMMARY = (
    "Compare runs with a baseline: differences, intervals, tests, effect sizes, wins and losses by topic."
)
EXAMPLE = """  fairevals compare --task qrels/task.toml runs/*.run --baseline bm25
  fairevals compare --qrels my.qrels new.run --baseline old.run -m nDCG@10 --test wilcoxon --format latex"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    common.add_collection(parser)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run file, compressed or not")
    parser.add_argument(
        "--baseline", required=True, metavar="RUN", help="a run file, or the tag of one of the runs"
    )
    common.add_measures(parser)
    parser.add_argument(
        "--test",
        choices=("ttest", "wilcoxon", "tukey", "bootstrap"),
        default="ttest",
        help="paired t-test (default); Wilcoxon signed-rank; randomised Tukey HSD over all runs; paired bootstrap",
    )
    parser.add_argument(
        "--correct",
        choices=("holm", "bh", "none"),
        help="correction of p over the runs of each measure: Holm (default), Benjamini-Hochberg, none; "
        "Tukey HSD corrects by itself",
    )
    common.add_policy(parser)
    common.add_output(parser)
    common.add_jobs(parser)


def run(args: argparse.Namespace) -> int:
    """Score, compare and print."""
    from fairevals.evaluation import Plan, score
    from fairevals.statistics.compare import compare

    if args.test == "tukey" and args.correct in ("holm", "bh"):
        raise UsageError("--test tukey corrects for all pairs of runs by itself: leave --correct out")
    collection = common.collection_of(args)
    plan = Plan.of(collection, args.measures, common.policy_of(args, collection))
    runs, place = with_baseline(args.runs, args.baseline)
    scores = score(runs, collection, plan, jobs=args.jobs, progress=common.progress("scoring"))
    for note in scores.notes:
        common.log(note)
    if place is None:
        place = tagged(scores.runs, args.baseline)
    if len(scores.runs) < 2:
        raise UsageError("there is nothing to compare: give a run beside the baseline")
    found = compare(scores, place, test=args.test, correction=args.correct, seed=plan.policy.seed)
    common.emit(rendered(found, args.format, args.places), args.output)
    return 0


def with_baseline(runs: list[str], baseline: str) -> tuple[list[str], int | None]:
    """The files to score, and which is the baseline: None if it is a tag. A file that is not a run yet is added.

    >>> with_baseline(["a.run", "b.run"], "b.run"), with_baseline(["a.run"], "bm25")
    ((['a.run', 'b.run'], 1), (['a.run'], None))
    """
    for number, file in enumerate(runs):
        if file == baseline or _same_file(file, baseline):
            return runs, number
    if baseline == "-" or Path(baseline).is_file():
        return [baseline, *runs], 0
    return runs, None


def _same_file(a: str, b: str) -> bool:
    try:
        return Path(a).samefile(b)
    except (OSError, ValueError):
        return False


def tagged(names: tuple[str, ...], baseline: str) -> int:
    """The run with that tag."""
    if baseline in names:
        return names.index(baseline)
    raise UsageError(
        f"--baseline {escape(baseline)!r} is neither a file nor the tag of a run; "
        f"the runs are {', '.join(map(escape, names))}"
    )


def rendered(found: Comparisons, style: str, places: int | None) -> str:
    """The comparisons as text; for people with the notes under the table, in LaTeX as comments."""
    from fairevals.io.out import render
    from fairevals.statistics.tables import data_table, notes, people_table

    if style not in ("table", "latex"):
        return render(data_table(found), style, places)
    table = render(people_table(found, 4 if places is None else places), style, places)
    before, mark = ("% ", "bold:") if style == "latex" else ("", "*")
    return table + "".join(f"{before}{line}\n" for line in notes(found, mark))

"""`fairevals compare`."""

from __future__ import annotations

import argparse
import math
from functools import partial
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING

from fairevals.cli import common
from fairevals.errors import UsageError

if TYPE_CHECKING:
    from fairevals.io.out import Cell, Table
    from fairevals.statistics.compare import Comparisons

SUMMARY = "Compare runs with a baseline: differences, intervals, tests, effect sizes, wins and losses."
EXAMPLE = """  fairevals compare --task qrels/task.toml runs/*.run --baseline bm25
  fairevals compare --qrels my.qrels new.run --baseline old.run -m nDCG@10 --test wilcoxon --format latex"""


def configure(parser: argparse.ArgumentParser) -> None:
    common.add_collection(parser)
    common.add_runs(parser)
    text = "a run file or a folder of parquet files, or the tag of one of the runs"
    parser.add_argument("--baseline", required=True, metavar="RUN", help=text)
    common.add_measures(parser)
    common.add_tests(parser)
    common.add_policy(parser)
    common.add_output(parser)
    common.add_jobs(parser)


def run(args: argparse.Namespace) -> int:
    from fairevals.evaluation import score
    from fairevals.io.out import render
    from fairevals.statistics.compare import compare, description, full_table, remarks

    check_tests(args)
    collection, plan = common.plan_of(args)
    runs, baseline = with_baseline(args.runs, args.baseline)
    scores = score(runs, collection, plan, jobs=args.jobs, progress=common.progress("scoring"))
    common.log(*scores.notes)
    if len(scores.runs) < 2:
        raise UsageError("nothing to compare: give at least one run besides the baseline")
    comparisons = compare(scores, baseline, test=args.test, correction=args.correct, seed=plan.policy.seed)
    if args.format not in ("table", "latex"):
        common.emit_table(full_table(comparisons), args)
        return 0
    table = summary_table(comparisons, 4 if args.places is None else args.places)
    prefix, mark = ("% ", "bold:") if args.format == "latex" else ("", "*")
    notes = [f"{prefix}{line}\n" for line in (description(comparisons, mark), *remarks(comparisons))]
    common.emit([render(table, args.format, args.places), *notes], args.output)
    return 0


def check_tests(args: argparse.Namespace) -> None:
    """Refuse a correction of Tukey's test."""
    if args.test == "tukey" and args.correct in ("holm", "bh"):
        raise UsageError("--test tukey corrects for all pairs of runs by itself: omit --correct")


def with_baseline(runs: list[str], baseline: str) -> tuple[list[str], int | str]:
    """The runs to score, and the position of the baseline among them (as given if it is a tag).

    A file or a folder of parquet files that is not among the runs is added.

    >>> with_baseline(["a.run", "b.run"], "b.run"), with_baseline(["a.run"], "bm25")
    ((['a.run', 'b.run'], 1), (['a.run'], 'bm25'))
    """
    from fairevals.io.streams import reads_once

    places = [number for number, file in enumerate(runs) if realpath(file) == realpath(baseline)]
    if places:
        return runs, places[0]
    path = Path(baseline)
    # A folder without such files may have the name of a tag by chance.
    if reads_once(baseline) or path.is_file() or any(path.rglob("*.parquet")):
        return [baseline, *runs], 0
    return runs, baseline


def summary_table(comparisons: Comparisons, places: int = 4) -> Table:
    """For each measure the baseline, then one row per run; significant differences are marked.

    The mean of the baseline is over all its topics, everything else over the topics common to the run and the baseline.
    """
    from fairevals.io.out import Table
    from fairevals.report.html import format_number, format_p

    signed = partial(format_number, sign="+", minus="-")
    scores, b = comparisons.scores, comparisons.scores.runs.index(comparisons.baseline)
    correction = {"holm": ["p Holm"], "bh": ["p BH"]}.get(comparisons.correction, [])
    level = f"{100 * (1 - comparisons.alpha):g} % interval"
    columns = ("measure", "run", "mean", "difference", level, "p", *correction, comparisons.procedure.effect)
    columns += ("won/tied/lost", "common topics", "")
    rows: list[tuple[Cell, ...]] = []
    marked = set()
    for m, measure in enumerate(scores.measures):
        mean = scores.mean(b, m)
        blanks: tuple[Cell, ...] = (None,) * (5 + len(correction))
        remark = "baseline, incomplete" if scores.incomplete[b, m] else "baseline"
        head = f"{measure} {measure.direction.arrow}".rstrip()
        value = mean.value / mean.topics if measure.aggregation == "sum" and mean.topics else mean.value
        rows.append((head, comparisons.baseline, value, *blanks, mean.topics, remark))
        for row in comparisons.of(str(measure)):
            if row.significant:
                marked.add((len(rows), 5 + len(correction)))
            interval = f"[{signed(row.low, places)}, {signed(row.high, places)}]"
            flags = {"incomplete": row.run in row.incomplete, "not tested": bool(row.untested)}
            remarks = [row.statement, *(text for text, holds in flags.items() if holds)]
            rows.append(
                (
                    *("", row.run, row.mean, signed(row.difference, places)),
                    None if math.isnan(row.low) else interval,
                    *(format_p(p, places) for p in (row.p, row.corrected)[: 1 + len(correction)]),
                    *(signed(row.effect, min(places, 2)), f"{row.wins}/{row.ties}/{row.losses}"),
                    *(len(row.topics), ", ".join(filter(None, remarks))),
                )
            )
    return Table(columns, tuple(rows), frozenset(marked))

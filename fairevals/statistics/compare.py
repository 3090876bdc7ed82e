"""Runs against a baseline: differences, intervals, tests and effect sizes for every measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairevals.errors import UsageError, abridged, check_known, escape, pluralize
from fairevals.evaluation.leaderboard import head
from fairevals.evaluation.scores import Scores
from fairevals.io.out import (
    DECIMALS,
    PEOPLE,
    Cell,
    Table,
    format_number,
    format_p,
    render,
    render_with_notes,
)
from fairevals.statistics import inference
from fairevals.statistics.across import compare_across, deviations_of, pair_across, topics_across
from fairevals.statistics.inference import CORRECTIONS, Interval, PairedTest, correct
from fairevals.statistics.pairing import (
    NEGLIGIBLE_SAMPLING,
    Paired,
    orientation,
    pair,
    position,
    subtract,
)
from fairevals.statistics.tukey import Family, RunGroups, significance_groups, tukey_family

if TYPE_CHECKING:
    import pandas as pd


class Procedure(NamedTuple):
    """The titles of a test, and of the interval and the effect size that go with it."""

    title: str
    interval: str
    effect: str
    effect_title: str


_DZ = ("d_z", "d_z = mean/sd of the differences")
PROCEDURES = {
    "ttest": Procedure("paired t-test", "t", *_DZ),
    "wilcoxon": Procedure("Wilcoxon signed-rank test", "t", "r", "r = rank-biserial correlation"),
    "tukey": Procedure(
        "randomised Tukey HSD", "simultaneous", "d", "d = difference / residual standard deviation"
    ),
    "bootstrap": Procedure("paired bootstrap test", "BCa bootstrap", *_DZ),
}
LISTED_NAMES = 5
"""How many names a remark lists."""


@dataclass(frozen=True)
class Comparison(Paired):
    """A run against the baseline on one measure, over their common topics (for Tukey's test: the family's)."""

    low: float
    high: float
    p: float
    """NaN if it could not be computed; `untested` says why."""
    corrected: float
    """p corrected over the runs compared on this measure."""
    effect: float
    """With the sign of the difference; `Comparisons.procedure` says which effect size."""
    untested: str
    """Why there is no p-value; empty if there is one."""
    incomplete: tuple[str, ...]
    """Those of the two runs that lack a value on a topic on which some other run has one."""
    alpha: float

    @property
    def significant(self) -> bool:
        return self.corrected < self.alpha

    @property
    def verdict(self) -> str:
        """ "better" or "worse" by the direction of the measure if the difference is significant, else "".

        The sign is that of the tested effect, which for Wilcoxon's test can differ from that of the mean difference.
        """
        gain = orientation(self.direction) * (self.difference if math.isnan(self.effect) else self.effect)
        if not self.significant or not gain:
            return ""
        return "better" if gain > 0 else "worse"

    @property
    def statement(self) -> str:
        """The verdict for readers: with the number of common topics if one of the two runs is incomplete."""
        on = f" on {pluralize(len(self.topics), 'common topic')}" if self.incomplete else ""
        return self.verdict and self.verdict + on


@dataclass(frozen=True, repr=False)
class Comparisons:
    """All comparisons with one baseline, measure by measure, and how they were made."""

    scores: Scores
    baseline: str
    test: str
    correction: str
    alpha: float
    rows: tuple[Comparison, ...]
    families: tuple[Family, ...]
    """The family of each measure for Tukey's test; empty for other tests."""

    @property
    def procedure(self) -> Procedure:
        return PROCEDURES[self.test]

    @property
    def across(self) -> list[str]:
        """The measures across topics."""
        return [str(measure) for measure in self.scores.measures if measure.across_topics]

    def of(self, measure: str) -> tuple[Comparison, ...]:
        """The rows of one measure."""
        return tuple(row for row in self.rows if row.measure == measure)

    def full(self) -> Table:
        """One row per measure and run, with all digits: see `full_table`."""
        return full_table(self)

    def summaries(self, style: str, places: int) -> tuple[list[Table], list[str]]:
        """The tables for people, and the notes below them."""
        notes = [description(self, "*" if style == "table" else "bold:"), *remarks(self)]
        return [summary_table(self, places)], notes

    def frame(self) -> pd.DataFrame:
        """The full table as a DataFrame."""
        return self.full().frame()

    def render(self, style: str = "table", places: int | None = None, *, spreadsheet: bool = False) -> str:
        """As text: a summary with remarks ("table", "latex" or "html"), or all digits ("csv", "tsv", "json")."""
        if style not in PEOPLE:
            return render(self.full(), style, places, spreadsheet=spreadsheet)
        tables, notes = self.summaries(style, DECIMALS if places is None else places)
        texts = [render(table, style, places) for table in tables[:-1]]
        return "\n".join([*texts, render_with_notes(tables[-1], style, places, notes)])

    def __str__(self) -> str:
        return self.render().rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.render("html")


def compare_with_baseline(
    scores: Scores,
    baseline: int | str,
    *,
    test: str = "ttest",
    correction: str | None = None,
    alpha: float = 0.05,
    resamples: int | None = None,
    seed: int = 0,
) -> Comparisons:
    """Compare every other run with the baseline, on every measure.

    A pair is compared on the topics where both have a value; by Tukey's test on those common to its family, which is
    the baseline and the runs that `tukey_family` puts inside (the others are not tested). p-values are corrected
    (`holm`, the default, `bh` or `none`) over the runs of one measure. Tukey's are corrected for all pairs of runs by
    construction, so another correction is a `UsageError`. A difference is significant if its corrected p < alpha.

    A measure across topics has no values by topic. Whatever the test is, it is compared by a paired bootstrap over the
    common topics (see `fairevals.statistics.across`), and instead of Tukey's by `bootstrap_hsd`.

    >>> from fairevals.measures import parse_measure
    >>> values = np.array([[[0.3, 0.4, 0.2, 0.6]], [[0.5, 0.5, 0.5, 0.7]]])
    >>> scores = Scores(("a", "b"), (parse_measure("nDCG@10"),), ("1", "2", "3", "4"), values, values * np.nan)
    >>> row = compare_with_baseline(scores, "a").rows[0]
    >>> row.run, round(row.difference, 3), round(row.p, 3), row.wins, row.verdict
    ('b', 0.175, 0.035, 4, 'better')
    """
    check_alpha(alpha)
    check_known("test", test, PROCEDURES)
    if correction is not None:
        check_known("correction", correction, CORRECTIONS)
    if test == "tukey" and correction not in (None, "none"):
        raise UsageError(f"{test} corrects for all pairs of runs by itself: do not ask for a correction")
    correction = correction or ("none" if test == "tukey" else "holm")
    b = position(scores, baseline)
    others = [r for r in range(len(scores.runs)) if r != b]
    draws: Any = {"seed": seed} if resamples is None else {"resamples": resamples, "seed": seed}
    rows: list[Comparison] = []
    families: list[Family] = []
    for m, measure in enumerate(scores.measures):
        family = None
        if test == "tukey":
            family = tukey_family(scores, m, include=b)
            families.append(family)
            groups = significance_groups(scores, m, family, alpha=alpha, **draws)
            tested = [within_family(scores, m, r, b, groups) for r in others]
        elif measure.across_topics:
            tested = [_test_across(scores, m, r, b, 1 - alpha, seed) for r in others]
        else:
            tested = [_test_pair(pair(scores, m, r, b), test, 1 - alpha, draws) for r in others]
        corrected = correct(np.array([result.p for _, result, _ in tested]), correction).tolist()
        for r, p, one in zip(others, corrected, tested, strict=True):
            outside = family is not None and r not in family.places
            rows.append(comparison(scores, m, (r, b), one, p, alpha, outside=outside))
    return Comparisons(scores, scores.runs[b], test, correction, alpha, tuple(rows), tuple(families))


def check_alpha(alpha: Any) -> None:
    """Raise unless it is a number between 0 and 1."""
    if not isinstance(alpha, (int, float)) or not 0 < alpha < 1:
        raise UsageError(f"alpha is {escape(repr(alpha))}; expected a number between 0 and 1")


def comparison(
    scores: Scores,
    m: int,
    runs: tuple[int, int],
    tested: tuple[Paired, PairedTest, Interval],
    corrected: float,
    alpha: float,
    *,
    outside: bool = False,
) -> Comparison:
    """A tested pair, with the reason where there is no p-value; `outside`: a run is not in the family."""
    paired, result, interval = tested
    everywhere = "in every resample" if scores.measures[m].across_topics else "on every topic"
    untested = f"the difference is the same {everywhere}"
    if len(paired.topics) < 2:
        untested = "at least two common topics are needed"
    elif outside:
        untested = "the run is outside the family"
    elif math.isnan(paired.difference):
        untested = "the measure is undefined on the common topics"
    return Comparison(
        **vars(paired),
        **interval._asdict(),
        p=result.p,
        corrected=corrected,
        effect=result.effect,
        untested=untested if math.isnan(result.p) else "",
        incomplete=tuple(scores.runs[i] for i in runs if scores.incomplete[i, m]),
        alpha=alpha,
    )


def _test_pair(paired: Paired, test: str, level: float, draws: Any) -> tuple[Paired, PairedTest, Interval]:
    """The result of a test of two runs; the interval of equal runs has width 0."""
    d = paired.differences
    if test == "bootstrap":
        result = inference.bootstrap_test(d, **draws)
        interval = inference.bootstrap_interval(d, level, **draws)
    else:
        result = inference.wilcoxon_test(d) if test == "wilcoxon" else inference.t_test(d)
        interval = inference.t_interval(d, level)
    return paired, result, Interval(0.0, 0.0) if d.size >= 2 and not d.any() else interval


def _test_across(
    scores: Scores, m: int, r: int, b: int, level: float, seed: int
) -> tuple[Paired, PairedTest, Interval]:
    """The result for a measure across topics, by bootstrap over topics; it has no effect size."""
    paired, p, interval = compare_across(scores, m, r, b, level, seed)
    return paired, PairedTest(paired.difference, p), Interval(*interval)


def within_family(
    scores: Scores, m: int, r: int, b: int, groups: RunGroups
) -> tuple[Paired, PairedTest, Interval]:
    """The result of Tukey's test for two runs, on the topics of the family; undefined for a run outside it."""
    places, tukey = groups.family.places, groups.tukey
    if not {r, b} <= set(places):
        across = scores.measures[m].across_topics
        paired = compare_across(scores, m, r, b)[0] if across else pair(scores, m, r, b)
        return paired, PairedTest(), Interval()
    at = places.index(r), places.index(b)
    if groups.drawn is None:
        paired = pair(scores, m, r, b, places)
    else:
        deviations = deviations_of(subtract(*groups.drawn[list(at)]), len(groups.topics))
        paired = pair_across(scores, m, r, b, topics_across(scores, m, places), deviations)
    effect = -orientation(paired.direction) * float(tukey.effects[at]) + 0.0  # the test is of costs
    difference = paired.difference
    interval = Interval(difference - tukey.critical, difference + tukey.critical)
    return paired, PairedTest(difference, float(tukey.p[at]), effect), interval


def description(comparisons: Comparisons, mark: str = "*") -> str:
    """One line: the test, the interval, the correction, what `mark` means, and the effect size."""
    procedure = comparisons.procedure
    runs = len({row.run for row in comparisons.rows})
    marked = "p"
    if comparisons.test == "tukey":
        corrected = "p corrected for all pairs of runs of a measure by the test itself"
    elif runs == 1:
        corrected = "one run and so one p for each measure, nothing to correct"
    elif comparisons.correction == "none":
        corrected = f"p not corrected for testing {runs} runs"
    else:
        marked = "corrected p"
        name = CORRECTIONS[comparisons.correction]
        corrected = f"p corrected by {name} over the {runs} runs of each measure"
    return (
        f"{procedure.title}, baseline {escape(comparisons.baseline)}; "
        f"{100 * (1 - comparisons.alpha):g} % {procedure.interval} intervals; "
        f"{corrected}; {mark} {marked} < {comparisons.alpha:g}; {procedure.effect_title}"
    )


def remarks(comparisons: Comparisons) -> list[str]:
    """What else a reader must know, one line each, with at most `LISTED_NAMES` names in each.

    Distances to a target, measures across topics, the family of Tukey's test, p-values that could not be computed,
    incomplete runs, topics that were left out, and notable sampling error.
    """
    lines, all_rows, label = [], comparisons.rows, comparisons.scores.label
    measures = list(dict.fromkeys(row.measure for row in all_rows))
    targets = dict.fromkeys(row.measure for row in all_rows if row.direction.target is not None)
    if targets:
        what = "differences are of the distances to the best value, less is better"
        lines.append(f"{', '.join(map(label, targets))}: {what}")
    if comparisons.across:
        test = "Tukey HSD by" if comparisons.test == "tukey" else "paired"
        what = f"one value for all topics together: {test} bootstrap over common topics, no effect size"
        lines.append(f"{', '.join(map(label, comparisons.across))}: {what}")
    lines += dict.fromkeys(map(str, comparisons.families))
    for reason in dict.fromkeys(row.untested for row in all_rows if row.untested):
        untested = [row for row in all_rows if row.untested == reason]
        lines.append(f"no p-value, {reason}: {_listed(untested, label)}")
    by_text: dict[str, list[str]] = {}
    for measure in measures:
        rows = comparisons.of(measure)
        incomplete = list(dict.fromkeys(escape(run) for row in rows for run in row.incomplete))
        if incomplete:
            names = abridged(incomplete, LISTED_NAMES)
            text = f"incomplete runs, compared on common topics only: {names}"
            by_text.setdefault(text, []).append(label(measure))
        shared = set(rows[0].undefined).intersection(*(row.undefined for row in rows))
        others = [(row.run, set(row.undefined) - shared) for row in rows if set(row.undefined) - shared]
        left_out = [("" if len(rows) == 1 else " for every run", shared)] if shared else []
        if len(others) == 1:
            left_out.append((f" for {escape(others[0][0])}", others[0][1]))
        texts = []
        for whom, topics in left_out:
            names = abridged([escape(t) for t in comparisons.scores.topics if t in topics], LISTED_NAMES)
            texts.append(f"{whom}: {pluralize(len(topics), 'topic')} ({names})")
        if len(others) > 1:
            counts = [f"{escape(run)} ({pluralize(len(topics), 'topic')})" for run, topics in others]
            texts.append(f" for {abridged(counts, LISTED_NAMES)}")
        for text in texts:
            by_text.setdefault(f"left out as undefined{text}", []).append(label(measure))
    lines += [f"{abridged(labels, LISTED_NAMES)}: {text}" for text, labels in by_text.items()]
    noisy = [row for row in all_rows if row.spread.notable]
    if noisy:
        what = (
            f"sampling error above {100 * NEGLIGIBLE_SAMPLING:g} % of the standard error (draw more samples)"
        )
        lines.append(f"{what}: {_listed(noisy, label)}")
    return lines


def _listed(rows: Sequence[Comparison], label: Callable[[str], str]) -> str:
    return abridged([f"{label(row.measure)} of {escape(row.run)}" for row in rows], LISTED_NAMES)


COMPARISON_COLUMNS = (
    *("measure", "direction", "run", "baseline", "mean", "baseline_mean", "difference", "low", "high"),
    *("p", "corrected_p", "effect", "verdict", "wins", "ties", "losses", "topics", "undefined"),
    *("undefined_topics", "se", "sampling_se", "test", "correction", "level", "incomplete", "untested"),
)


def full_table(comparisons: Comparisons) -> Table:
    """One row per measure and run, with all digits.

    `undefined_topics` and `incomplete` (which of the run and the baseline) are names separated by spaces. `se` is the
    standard error of the difference over topics, `sampling_se` the part of it from sampling rankings.
    """
    rows: list[tuple[Cell, ...]] = [
        (
            *(row.measure, str(row.direction), row.run, row.baseline, row.mean, row.baseline_mean),
            *(row.difference, row.low, row.high, row.p, row.corrected, row.effect, row.verdict),
            *(row.wins, row.ties, row.losses, len(row.topics), len(row.undefined), " ".join(row.undefined)),
            *(row.spread.total, row.spread.sampling, *_method(comparisons, row.measure)),
            *(1 - comparisons.alpha, " ".join(row.incomplete), row.untested),
        )
        for row in comparisons.rows
    ]
    return Table(COMPARISON_COLUMNS, tuple(rows))


def _method(comparisons: Comparisons, measure: str) -> tuple[str, str]:
    """The test and the correction of a measure."""
    paired = measure in comparisons.across and comparisons.test != "tukey"
    return "bootstrap" if paired else comparisons.test, comparisons.correction


def summary_table(comparisons: Comparisons, places: int = 4) -> Table:
    """For each measure the baseline, then one row per run; significant differences are marked.

    The mean of the baseline is over all its topics, everything else over the topics common to the run and the baseline.
    """
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
        value = mean.value / mean.topics if measure.aggregation == "sum" and mean.topics else mean.value
        rows.append((head(scores, m), comparisons.baseline, value, *blanks, mean.topics, remark))
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
                    signed(row.effect, min(places, 2)),
                    None if row.measure in comparisons.across else f"{row.wins}/{row.ties}/{row.losses}",
                    *(len(row.topics), ", ".join(filter(None, remarks))),
                )
            )
    return Table(columns, tuple(rows), frozenset(marked), keys=2)

"""Runs against a baseline: differences, intervals, tests and effect sizes for every measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairevals.errors import UsageError, escape, pluralize
from fairevals.evaluation.scores import Scores
from fairevals.io.out import Cell, Table
from fairevals.statistics.intervals import Interval, bootstrap_interval, t_interval
from fairevals.statistics.pairing import (
    DEFAULT_RESAMPLES,
    NEGLIGIBLE,
    Paired,
    abridged,
    common_topics,
    orientation,
    pair,
    run_number,
)
from fairevals.statistics.tests import CORRECTIONS, PairedTest, bootstrap_test, correct, t_test, wilcoxon_test
from fairevals.statistics.tukey import Family, RunGroups, significance_groups, tukey_family


@dataclass(frozen=True)
class Procedure:
    """The titles of a test, and of the interval and the effect size that go with it."""

    title: str
    interval: str
    effect: str
    effect_title: str
    corrected: bool = False
    """Whether its p-values are corrected for many runs by construction."""


_DZ = ("d_z", "d_z = mean/sd of the differences")
PROCEDURES = {
    "ttest": Procedure("paired t-test", "t", *_DZ),
    "wilcoxon": Procedure("Wilcoxon signed-rank test", "t", "r", "r = rank-biserial correlation"),
    "tukey": Procedure(
        "randomised Tukey HSD", "simultaneous", "d", "d = difference / residual standard deviation", True
    ),
    "bootstrap": Procedure("paired bootstrap test", "BCa bootstrap", *_DZ),
}
"""Every test by name."""


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
        """Whether corrected p < alpha."""
        return self.corrected < self.alpha

    @property
    def verdict(self) -> str:
        """ "better" or "worse" by the direction of the measure if the difference is significant, else "".

        The sign is that of the tested effect, which for Wilcoxon's test can differ from that of the mean difference.
        """
        sign = self.difference if math.isnan(self.effect) else self.effect
        if not self.significant or not sign or not orientation(self.direction):
            return ""
        return "better" if sign * orientation(self.direction) > 0 else "worse"

    @property
    def statement(self) -> str:
        """The verdict for readers: with the number of common topics if one of the two runs is incomplete."""
        if not self.verdict or not self.incomplete:
            return self.verdict
        return f"{self.verdict} on {pluralize(len(self.topics), 'common topic')}"


@dataclass(frozen=True)
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
        """The titles of test, interval and effect size."""
        return PROCEDURES[self.test]

    def of(self, measure: str) -> tuple[Comparison, ...]:
        """The rows of one measure."""
        return tuple(row for row in self.rows if row.measure == measure)


def compare(
    scores: Scores,
    baseline: int | str,
    *,
    test: str = "ttest",
    correction: str | None = None,
    alpha: float = 0.05,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
) -> Comparisons:
    """Compare every other run with the baseline, on every measure.

    A pair is compared on the topics where both have a value; by Tukey's test on those common to its family, which is
    the baseline and the runs that `tukey_family` puts inside (the others are not tested). p-values are corrected
    (`holm`, the default, `bh` or `none`) over the runs of one measure. Tukey's are corrected for all pairs of runs by
    construction, so another correction is a `UsageError`. A difference is significant if its corrected p < alpha.

    >>> from fairevals.measures import parse_measure
    >>> values = np.array([[[0.3, 0.4, 0.2, 0.6]], [[0.5, 0.5, 0.5, 0.7]]])
    >>> scores = Scores(("a", "b"), (parse_measure("nDCG@10"),), ("1", "2", "3", "4"), values, values * np.nan)
    >>> row = compare(scores, "a").rows[0]
    >>> row.run, round(row.difference, 3), round(row.p, 3), row.wins, row.verdict
    ('b', 0.175, 0.035, 4, 'better')
    """
    if test not in PROCEDURES:
        raise UsageError(f"the test is {escape(test)!r}; expected one of {', '.join(PROCEDURES)}")
    if PROCEDURES[test].corrected and correction not in (None, "none"):
        raise UsageError(f"{test} corrects for all pairs of runs by itself: do not ask for a correction")
    correction = correction or ("none" if PROCEDURES[test].corrected else "holm")
    b = run_number(scores, baseline)
    rows: list[Comparison] = []
    families: list[Family] = []
    for m in range(len(scores.measures)):
        groups = None
        if test == "tukey":
            families.append(tukey_family(scores, m, include=b))
            groups = significance_groups(scores, m, families[-1], alpha=alpha, resamples=resamples, seed=seed)
        tested = [
            _compare_pair(scores, m, r, b, groups or test, alpha, resamples, seed)
            for r in range(len(scores.runs))
            if r != b
        ]
        corrected = correct(np.array([row.p for row in tested]), correction)
        rows += [replace(row, corrected=float(p)) for row, p in zip(tested, corrected, strict=True)]
    return Comparisons(scores, scores.runs[b], test, correction, alpha, tuple(rows), tuple(families))


def _compare_pair(
    scores: Scores, m: int, r: int, b: int, test: str | RunGroups, alpha: float, resamples: int, seed: int
) -> Comparison:
    """One row; `test` is a name, or the result of Tukey's test."""
    outside = False
    if isinstance(test, RunGroups):
        places = test.family.places
        outside = not {r, b} <= set(places)
        paired = pair(scores, m, r, b, None if outside else common_topics(scores, m, places))
        tested, interval = PairedTest(math.nan, math.nan, math.nan), Interval()
        if not outside:
            at = places.index(r), places.index(b)
            tukey, difference = test.tukey, paired.difference
            effect = -orientation(paired.direction) * float(tukey.effects[at]) + 0.0  # the test is of costs
            tested = PairedTest(difference, float(tukey.p[at]), effect)
            interval = Interval(difference - tukey.critical, difference + tukey.critical)
    else:
        paired = pair(scores, m, r, b)
        d = paired.differences
        if test == "bootstrap":
            tested = bootstrap_test(d, resamples=resamples, seed=seed)
            interval = bootstrap_interval(d, 1 - alpha, resamples=resamples, seed=seed)
        else:
            tested = wilcoxon_test(d) if test == "wilcoxon" else t_test(d)
            interval = t_interval(d, 1 - alpha)
        if d.size >= 2 and not d.any():
            interval = Interval(0.0, 0.0)
    if not math.isnan(tested.p):
        reason = ""
    elif len(paired.topics) < 2:
        reason = "at least two common topics are needed"
    else:
        reason = "the run is outside the family" if outside else "the difference is the same on every topic"
    return Comparison(
        **vars(paired),
        low=interval.low,
        high=interval.high,
        p=tested.p,
        corrected=tested.p,
        effect=tested.effect,
        untested=reason,
        incomplete=tuple(scores.runs[i] for i in (r, b) if scores.incomplete[i, m]),
        alpha=alpha,
    )


def description(comparisons: Comparisons, mark: str = "*") -> str:
    """One line: the test, the interval, the correction, what `mark` means, and the effect size."""
    procedure = comparisons.procedure
    runs = len({row.run for row in comparisons.rows})
    marked = "p"
    if procedure.corrected:
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


def remarks(comparisons: Comparisons, limit: int = 5) -> list[str]:
    """What else a reader must know, one line each, with at most `limit` names in each.

    Distances to a target, the family of Tukey's test, p-values that could not be computed, incomplete runs, topics
    that were left out, and notable sampling error.
    """
    lines = []
    measures = list(dict.fromkeys(row.measure for row in comparisons.rows))
    targets = [name for name in measures if comparisons.of(name)[0].direction.target is not None]
    if targets:
        lines.append(
            f"{', '.join(targets)}: differences are of the distances to the best value, less is better"
        )
    lines += dict.fromkeys(map(str, comparisons.families))

    def add(text: str, rows: Sequence[Comparison]) -> None:
        if rows:
            names = [f"{row.measure} of {escape(row.run)}" for row in rows]
            lines.append(f"{text}: {abridged(names, limit)}")

    for reason in dict.fromkeys(row.untested for row in comparisons.rows if row.untested):
        add(f"no p-value, {reason}", [row for row in comparisons.rows if row.untested == reason])
    for measure in measures:
        rows = comparisons.of(measure)
        incomplete = list(dict.fromkeys(escape(run) for row in rows for run in row.incomplete))
        if incomplete:
            names = abridged(incomplete, limit)
            lines.append(f"{measure}: incomplete runs, compared on common topics only: {names}")
        lines += _left_out(measure, rows, limit)
    add(
        f"sampling error above {100 * NEGLIGIBLE:g} % of the standard error (draw more samples)",
        [row for row in comparisons.rows if row.spread.notable],
    )
    return lines


def _left_out(measure: str, rows: Sequence[Comparison], limit: int) -> list[str]:
    """The topics left out for all runs, then those left out for one."""
    shared = set(rows[0].undefined).intersection(*(row.undefined for row in rows))
    whom = "" if len(rows) == 1 else " for every run"
    parts = [(whom, [t for t in rows[0].undefined if t in shared])]
    parts += [(f" for {escape(row.run)}", [t for t in row.undefined if t not in shared]) for row in rows]
    return [
        f"{measure}: left out as undefined{whom}: "
        f"{pluralize(len(topics), 'topic')} ({abridged([escape(t) for t in topics], limit)})"
        for whom, topics in parts
        if topics
    ]


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
            *(row.spread.total, row.spread.sampling, comparisons.test, comparisons.correction),
            *(1 - comparisons.alpha, " ".join(row.incomplete), row.untested),
        )
        for row in comparisons.rows
    ]
    return Table(COMPARISON_COLUMNS, tuple(rows))

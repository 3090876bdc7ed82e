"""Runs against a baseline: differences, intervals, tests and effect sizes for every measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairevals.errors import UsageError, escape, pluralize
from fairevals.evaluation.scores import Scores
from fairevals.measures import Direction
from fairevals.statistics.corrections import CORRECTIONS, correct
from fairevals.statistics.intervals import Interval, bootstrap_interval, t_interval
from fairevals.statistics.paired import PairedTest, bootstrap_test, t_test, wilcoxon_test
from fairevals.statistics.pairing import Paired, defined_everywhere, mean, orientation, pair, run_number
from fairevals.statistics.resampling import RESAMPLES
from fairevals.statistics.sampling import NEGLIGIBLE, Spread
from fairevals.statistics.tukey import RunGroups, significance_groups


@dataclass(frozen=True)
class Procedure:
    """A way to test: what it is called, and what interval and effect size go with it."""

    title: str
    interval: str
    effect: str
    effect_title: str
    corrected: bool = False
    """Whether its p-values are corrected for many runs by construction."""


PROCEDURES = {
    "ttest": Procedure("paired t-test", "t", "d_z", "d_z = mean/sd of the differences"),
    "wilcoxon": Procedure("Wilcoxon signed-rank test", "t", "r", "r = rank-biserial correlation"),
    "tukey": Procedure(
        "randomised Tukey HSD over all runs",
        "simultaneous",
        "d",
        "d = difference / residual standard deviation",
        True,
    ),
    "bootstrap": Procedure(
        "paired bootstrap test", "BCa bootstrap", "d_z", "d_z = mean/sd of the differences"
    ),
}
"""Every test by the name that commands use."""


@dataclass(frozen=True)
class Comparison:
    """A run against the baseline on one measure, over the topics used."""

    measure: str
    direction: Direction
    run: str
    baseline: str
    mean: float
    baseline_mean: float
    difference: float
    """mean − baseline_mean; where the direction has a target, the difference of the mean distances to it."""
    low: float
    high: float
    p: float
    corrected: float
    """p corrected over the runs compared on this measure."""
    effect: float
    """With the sign of the difference; which effect size, `Comparisons.procedure` says."""
    wins: int
    ties: int
    losses: int
    topics: int
    undefined: tuple[str, ...]
    """The names of the topics left out."""
    spread: Spread
    """The standard error of the difference, from topics and from sampling rankings."""
    alpha: float

    @property
    def significant(self) -> bool:
        """Whether corrected p < alpha."""
        return self.corrected < self.alpha

    @property
    def gain(self) -> float:
        """The difference so that above 0 the run is better."""
        return self.difference * orientation(self.direction) + 0.0  # no -0.0

    @property
    def verdict(self) -> str:
        """ "better" or "worse" where the difference is significant, else ""; by the direction of the measure.

        It goes by the sign of the effect that was tested, which for Wilcoxon's test need not be that of the mean.
        """
        if not self.significant or not self.effect or not orientation(self.direction):
            return ""
        sign = self.difference if math.isnan(self.effect) else self.effect
        return "better" if sign * orientation(self.direction) > 0 else "worse"


@dataclass(frozen=True)
class Comparisons:
    """All comparisons with one baseline, measure by measure, and how they were made."""

    baseline: str
    test: str
    correction: str
    alpha: float
    seed: int
    resamples: int
    rows: tuple[Comparison, ...]
    baseline_means: tuple[tuple[str, float, int], ...]
    """(measure, mean, topics) of the baseline by itself, on all topics where it is defined."""

    @property
    def level(self) -> float:
        """The level of the intervals, 1 − alpha."""
        return 1 - self.alpha

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
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Comparisons:
    """Every other run against the baseline, on every measure.

    A pair is compared on the topics where both are defined; by Tukey's test on those where all runs are. p-values are
    corrected (`holm` unless told, `bh`, `none`) over the runs of one measure. Tukey's are corrected for all pairs of
    runs by construction, and asking for more is a `UsageError`. Significant is a corrected p < alpha.

    >>> from fairevals.measures import parse_measure
    >>> values = np.array([[[0.3, 0.4, 0.2, 0.6]], [[0.5, 0.5, 0.5, 0.7]]])
    >>> scores = Scores(("a", "b"), (parse_measure("nDCG@10"),), ("1", "2", "3", "4"), values, values * np.nan)
    >>> row = compare(scores, "a").rows[0]
    >>> row.run, round(row.difference, 3), round(row.p, 3), row.wins, row.verdict
    ('b', 0.175, 0.035, 4, 'better')
    """
    if test not in PROCEDURES:
        raise UsageError(f"the test is {escape(test)!r}; expected one of {', '.join(PROCEDURES)}")
    already = PROCEDURES[test].corrected
    if already and correction not in (None, "none"):
        raise UsageError(f"{test} corrects for all pairs of runs by itself: leave the correction out")
    correction = correction or ("none" if already else "holm")
    if correction not in CORRECTIONS:
        raise UsageError(
            f"the correction is {escape(correction)!r}; expected one of {', '.join(CORRECTIONS)}"
        )
    b = run_number(scores, baseline)
    others = [r for r in range(len(scores.runs)) if r != b]
    rows: list[Comparison] = []
    for m in range(len(scores.measures)):
        if test == "tukey":
            groups = significance_groups(scores, m, alpha=alpha, resamples=resamples, seed=seed)
            _, used = defined_everywhere(scores, m)
            found = [_by_tukey(pair(scores, m, r, b, used), groups, r, b) for r in others]
        else:
            found = [_by_pair(pair(scores, m, r, b), test, alpha, resamples, seed) for r in others]
        corrected = correct(np.array([row.p for row in found]), correction)
        rows += [replace(row, corrected=float(p)) for row, p in zip(found, corrected, strict=True)]
    means = []
    for m, measure in enumerate(scores.measures):
        values = scores.values[b, m][np.isfinite(scores.values[b, m])]
        means.append((str(measure), mean(values), values.size))
    return Comparisons(scores.runs[b], test, correction, alpha, seed, resamples, tuple(rows), tuple(means))


def _row(paired: Paired, test: PairedTest, interval: Interval, alpha: float) -> Comparison:
    return Comparison(
        measure=paired.measure,
        direction=paired.direction,
        run=paired.run,
        baseline=paired.baseline,
        mean=mean(paired.values),
        baseline_mean=mean(paired.baseline_values),
        difference=paired.difference,
        low=interval.low,
        high=interval.high,
        p=test.p,
        corrected=test.p,
        effect=test.effect,
        wins=paired.wins,
        ties=paired.ties,
        losses=paired.losses,
        topics=len(paired.topics),
        undefined=paired.undefined,
        spread=paired.spread,
        alpha=alpha,
    )


def _by_pair(paired: Paired, test: str, alpha: float, resamples: int, seed: int) -> Comparison:
    d = paired.differences
    if test == "bootstrap":
        tested = bootstrap_test(d, resamples=resamples, seed=seed)
        interval = bootstrap_interval(d, 1 - alpha, resamples=resamples, seed=seed)
    else:
        tested = wilcoxon_test(d) if test == "wilcoxon" else t_test(d)
        interval = t_interval(d, 1 - alpha)
    if d.size and not d.any():
        interval = Interval(0.0, 0.0)
    return _row(paired, tested, interval, alpha)


def _by_tukey(paired: Paired, groups: RunGroups, run: int, baseline: int) -> Comparison:
    tested = PairedTest(
        statistic=float(groups.differences[run, baseline]),
        p=float(groups.p[run, baseline]),
        effect=float(groups.effects[run, baseline]),
        topics=len(paired.topics),
    )
    difference = paired.difference
    interval = Interval(difference - groups.critical, difference + groups.critical)
    return _row(paired, tested, interval, groups.alpha)


def description(found: Comparisons, mark: str = "*") -> str:
    """One line: which test, interval, correction over which family, effect size, and what is marked, and how."""
    procedure = found.procedure
    runs = len({row.run for row in found.rows})
    marked = "p"
    if procedure.corrected:
        corrected = "p corrected for all pairs of runs of a measure by the test itself"
    elif runs == 1:
        corrected = "one run and so one p for each measure, nothing to correct"
    elif found.correction == "none":
        corrected = f"p not corrected for testing {runs} runs"
    else:
        marked = "corrected p"
        corrected = f"p corrected by {CORRECTIONS[found.correction]} over the {runs} runs of each measure"
    return (
        f"{procedure.title}, baseline {escape(found.baseline)}; "
        f"{100 * found.level:g} % {procedure.interval} intervals; "
        f"{corrected}; {mark} {marked} < {found.alpha:g}; {procedure.effect_title}"
    )


def remarks(found: Comparisons, names: int = 5) -> list[str]:
    """What a reader must know too: distances to a target, undefined topics, sampling error that matters."""
    lines = []
    measures = list(dict.fromkeys(row.measure for row in found.rows))
    targets = [name for name in measures if found.of(name)[0].direction.target is not None]
    if targets:
        lines.append(
            f"{', '.join(targets)}: differences are of the distances to the best value, less is better"
        )
    for measure in measures:
        lines += _undefined(measure, found.of(measure), names)
    noisy = [f"{row.measure} of {escape(row.run)}" for row in found.rows if row.spread.notable]
    if noisy:
        lines.append(
            f"sampling error above {100 * NEGLIGIBLE:g} % of the standard error (draw more samples): "
            f"{_some(noisy, names)}"
        )
    return lines


def _undefined(measure: str, rows: Sequence[Comparison], names: int) -> list[str]:
    """Topics left out for all runs, then those left out for one."""
    shared = [t for t in rows[0].undefined if all(t in row.undefined for row in rows)]
    lines = []
    if shared:
        whom = "" if len(rows) == 1 else " for every run"
        lines.append(f"{measure}: left out as undefined{whom}: {_topics(shared, names)}")
    for row in rows:
        own = [t for t in row.undefined if t not in set(shared)]
        if own:
            lines.append(f"{measure}: left out as undefined for {escape(row.run)}: {_topics(own, names)}")
    return lines


def _topics(topics: Sequence[str], names: int) -> str:
    return f"{pluralize(len(topics), 'topic')} ({_some([escape(t) for t in topics], names)})"


def _some(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")

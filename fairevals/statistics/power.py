"""How many topics a task needs: topic set size design, from the variances of runs at hand.

Source: Sakai: Topic set size design. Information Retrieval Journal 19, 2016. Scores are taken as a run's mean plus the
topic's effect plus a normal residual of the same variance for all runs. A test that pairs topics sees the residual
alone; one-way ANOVA, as if every run had topics of its own, sees the effects of topics too.
"""

from __future__ import annotations

import bisect
import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import stats

from fairevals.errors import UsageError, escape, pluralize
from fairevals.evaluation.scores import Scores
from fairevals.io.out import PEOPLE, Cell, Table, render, render_with_notes
from fairevals.io.specs import check_whole, is_number
from fairevals.statistics.pairing import ROUNDING, common_topics, costs_of
from fairevals.typing import Floats

if TYPE_CHECKING:
    import pandas as pd

DIFFERENCES = (0.05, 0.1, 0.15, 0.2)
"""The differences to plan for unless others are given."""
MAX_TOPICS = 10**9
"""A number of topics above this is not searched for."""
MAX_EFFECT = 1e6
"""A larger difference, in standard deviations, is detected with any number of topics; its square might overflow."""


class Variances(NamedTuple):
    """Estimates of a measure's variance."""

    residual: float
    """What is left of the variance of values when means of runs and topics are taken out: V_E2 of two-way ANOVA
    without replication. Twice this is the mean variance of the differences between two runs."""
    within: float
    """The mean variance of the values of a run over topics: V_E1 of one-way ANOVA."""


def variances(values: Floats) -> Variances:
    """The variances of `values` (runs, topics), at least two of each; exactly 0 where there is only rounding.

    >>> residual, within = variances(np.array([[0.0, 0.4, 0.2], [0.1, 0.5, 0.6]]))
    >>> round(residual, 4), round(within, 4)
    (0.015, 0.055)
    """
    runs, topics = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    residuals = centred - centred.mean(axis=0)
    least = (ROUNDING * np.abs(values).max()) ** 2
    found = [
        float((residuals**2).sum() / ((runs - 1) * (topics - 1))),
        float((centred**2).sum() / (runs * (topics - 1))),
    ]
    return Variances(*(0.0 if variance <= least else variance for variance in found))


def _effect(difference: float, variance: float) -> float:
    """D²/2σ²; times the number of topics it is the noncentrality of both tests."""
    return min(difference / math.sqrt(2 * variance), MAX_EFFECT) ** 2


def ttest_power(topics: Any, difference: float, residual: float, alpha: float = 0.05) -> Any:
    """The power of the two-sided paired t-test where the true difference of two runs is `difference`.

    t² has a noncentral F distribution with 1 and n−1 degrees of freedom and λ = nD²/σ_t²; the variance of differences
    is σ_t² = 2σ², σ² the residual variance.

    >>> [round(float(ttest_power(n, 0.5, residual=0.5)), 4) for n in (33, 34)]
    [0.7954, 0.8078]
    """
    noncentrality = topics * _effect(difference, residual)
    return stats.ncf.sf(stats.f.isf(alpha, 1, topics - 1), 1, topics - 1, noncentrality)


def anova_power(topics: Any, difference: float, within: float, systems: int, alpha: float = 0.05) -> Any:
    """The least power of one-way ANOVA where the best and the worst of `systems` runs differ by `difference`.

    F has m−1 and m(n−1) degrees of freedom. Of all means with that range, those with all other runs in the middle give
    the least noncentrality, λ = nD²/2σ², σ² the variance within runs.

    >>> round(float(anova_power(100, 0.4, within=1.0, systems=2)), 4)
    0.8036
    """
    noncentrality = topics * _effect(difference, within)
    degrees = systems - 1, systems * (topics - 1)
    return stats.ncf.sf(stats.f.isf(alpha, *degrees), *degrees, noncentrality)


def half_width(topics: Any, residual: float, alpha: float = 0.05) -> Any:
    """The expected half-width of the t interval of the mean difference of two runs, t(n−1)·E[s]/√n.

    >>> round(float(half_width(2, residual=0.5)), 4), round(float(half_width(100, residual=0.5)), 4)
    (7.1687, 0.1979)
    """
    degrees = topics - 1
    deviation = np.sqrt(2 * residual / degrees) * stats.chi.mean(degrees)
    return stats.t.isf(alpha / 2, degrees) * deviation / np.sqrt(topics)


def smallest(enough: Callable[[int], bool]) -> int | None:
    """The smallest number of topics that is enough, at least 2; None if that is above `MAX_TOPICS`."""
    high = 2
    while not enough(high):
        high *= 2
        if high > MAX_TOPICS:
            return None
    return bisect.bisect_left(range(high), True, lo=max(2, high // 2), key=enough)


@dataclass(frozen=True)
class TopicSetSize:
    """How many topics it takes to see a difference by a measure."""

    measure: str
    difference: float
    ttest: int | None
    """For the wanted power of the paired t-test; None if it is undefined: see the remarks."""
    anova: int | None
    """For the wanted power of one-way ANOVA over `systems` runs, the best and the worst `difference` apart."""
    interval: int | None
    """For an expected half-width of the interval of a paired difference of at most `difference`."""
    power: float
    alpha: float
    systems: int
    runs: int
    """How many runs the variances are estimated from, on how many common topics."""
    topics: int
    residual_variance: float
    within_variance: float


SIZES = ("ttest", "anova", "interval")


@dataclass(frozen=True)
class TopicSetSizes:
    """The numbers of topics for all measures and differences, and remarks."""

    rows: tuple[TopicSetSize, ...]
    remarks: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    """What tables and figures display for a measure, by its name."""

    def label(self, measure: str) -> str:
        """The label of a measure, or else its name."""
        return self.labels.get(measure, measure)

    def frame(self) -> pd.DataFrame:
        """One row for each measure and difference: the fields of `TopicSetSize`."""
        import pandas as pd

        frame = pd.DataFrame(
            [astuple(row) for row in self.rows], columns=[f.name for f in fields(TopicSetSize)]
        )
        return frame.astype(dict.fromkeys(SIZES, "Int64"))  # <NA> where undefined

    def render(self, style: str = "table", places: int | None = None, *, spreadsheet: bool = False) -> str:
        """As text: two tables and a description ("table", "latex" or "html"), or all columns of `frame`."""
        if style not in PEOPLE:
            every = Table(tuple(f.name for f in fields(TopicSetSize)), tuple(map(astuple, self.rows)))
            return render(every, style, places, spreadsheet=spreadsheet)
        first = self.rows[0]
        texts = (
            f"topics needed; t-test: a paired difference of D is found with power {first.power:g} at "
            f"α {first.alpha:g}; ANOVA: the same for {first.systems} runs, the best and the worst D apart, each with "
            f"topics of its own; interval: the {100 * (1 - first.alpha):g} % interval of a paired difference is "
            "expected to be ±D or narrower",
            f"variances of {first.runs} runs; residual: without the means of runs and topics (t-test, interval); "
            "within: of a run over topics (ANOVA)",
        )
        notes = texts if style == "html" else [line for text in texts for line in textwrap.wrap(text, 78)]
        sizes = render(self._sizes(), style, places)
        return f"{sizes}\n{render_with_notes(self._variances(), style, places, notes)}"

    def _sizes(self) -> Table:
        rows: list[tuple[Cell, ...]] = []
        for place, row in enumerate(self.rows):
            name = "" if place and self.rows[place - 1].measure == row.measure else self.label(row.measure)
            rows.append((name, f"{row.difference:g}", row.ttest, row.anova, row.interval))
        return Table(("measure", "D", "t-test", "ANOVA", "interval"), tuple(rows))

    def _variances(self) -> Table:
        firsts = {row.measure: row for row in reversed(self.rows)}
        rows = [
            (self.label(name), row.topics, row.residual_variance, row.within_variance)
            for name, row in reversed(firsts.items())
        ]
        return Table(("measure", "topics", "residual", "within"), tuple(rows))


def topic_set_sizes(
    scores: Scores,
    difference: float | Iterable[float] | None = None,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    systems: int | None = None,
) -> TopicSetSizes:
    """How many topics are needed to see a difference of the mean, for each measure of scored runs.

    Variances are estimated from all runs on the topics where all have a value. `difference` is one or several
    (`DIFFERENCES` by default), in the units of the measure; where a measure has a target value, of the distance to it.
    `systems` is the number of runs that ANOVA compares, by default that of the runs. A measure without two common
    topics, such as one with a single value for each run, is left out, and where a variance is 0 the numbers that
    depend on it are undefined; the remarks tell both.

    >>> from fairevals.measures import parse_measure
    >>> values = np.array([[[0.3, 0.4, 0.2, 0.6]], [[0.5, 0.5, 0.5, 0.7]]])
    >>> scores = Scores(("a", "b"), (parse_measure("nDCG@10"),), ("1", "2", "3", "4"), values, values * np.nan)
    >>> topic_set_sizes(scores, 0.1).frame()[["measure", "difference", "ttest", "anova", "interval", "topics"]]
       measure  difference  ttest  anova  interval  topics
    0  nDCG@10         0.1     10     32         6       4
    """
    if difference is None:
        difference = DIFFERENCES
    differences = list(difference) if isinstance(difference, Iterable) else [difference]
    systems = len(scores.runs) if systems is None else systems
    _check(differences, power, alpha, systems, len(scores.runs))
    differences, power, alpha = [float(d) for d in differences], float(power), float(alpha)
    rows, remarks = [], []
    for m, measure in enumerate(scores.measures):
        label = scores.label(measure)
        common = common_topics(scores, m, range(len(scores.runs)))
        topics, lost = int(common.sum()), int((~common).sum())
        if measure.across_topics:
            remarks.append(f"{label}: left out; it has one value for all topics together")
            continue
        if topics < 2:
            few = pluralize(topics, "topic") if topics else "no topic"
            remarks.append(f"{label}: left out; all runs have a value on {few}, and at least 2 are needed")
            continue
        if lost:
            remarks.append(f"{label}: variances over {topics} topics; on {lost} others some run has no value")
        found = variances(costs_of(measure.direction, scores.values[:, m, common]))
        if not found.residual:
            which = "t-test and interval" if found.within else "all numbers"
            remarks.append(
                f"{label}: {which} undefined, runs differ equally on all topics (residual variance 0)"
            )
        for d in differences:
            sizes = _sizes(d, found, power, alpha, systems)
            rows.append(
                TopicSetSize(str(measure), d, *sizes, power, alpha, systems, len(scores.runs), topics, *found)
            )
            if any(size is None and variance for size, variance in zip(sizes, _used(found), strict=True)):
                remarks.append(f"{label}: a difference of {d:g} needs more than {MAX_TOPICS:,} topics")
    if not rows:
        raise UsageError(
            "no measure has a value on two topics for all runs: there is no variance to estimate"
        )
    return TopicSetSizes(tuple(rows), tuple(remarks), scores.labels)


def _sizes(
    d: float, found: Variances, power: float, alpha: float, systems: int
) -> tuple[int | None, int | None, int | None]:
    """The fields `SIZES`; None where the variance that one depends on is 0."""
    ttest, anova, interval = map(bool, _used(found))
    return (
        smallest(lambda n: bool(ttest_power(n, d, found.residual, alpha) >= power)) if ttest else None,
        smallest(lambda n: bool(anova_power(n, d, found.within, systems, alpha) >= power)) if anova else None,
        smallest(lambda n: bool(half_width(n, found.residual, alpha) <= d)) if interval else None,
    )


def _used(found: Variances) -> tuple[float, float, float]:
    """The variances that `SIZES` depend on."""
    return found.residual, found.within, found.residual


def _check(differences: list[Any], power: Any, alpha: Any, systems: Any, runs: int) -> None:
    if runs < 2:
        raise UsageError("there is one run: the variance of differences takes at least two")

    for d in differences or [None]:
        if not is_number(d) or not 0 < d <= sys.float_info.max:
            raise UsageError(f"the difference is {escape(repr(d))}; expected a number above 0")
    for name, value in (("power", power), ("alpha", alpha)):
        if not is_number(value) or not 0 < value < 1:
            raise UsageError(f"{name} is {escape(repr(value))}; expected a number between 0 and 1")
    check_whole("systems", systems, 2)

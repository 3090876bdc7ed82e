"""Figures for notebooks: what the report draws, on Axes of the caller or new ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from fairevals.errors import UsageError, check_known, escape
from fairevals.evaluation import Collection, Plan, Scores
from fairevals.report import figures
from fairevals.report.board import ALPHA, FAIRNESS, USEFULNESS, board, role
from fairevals.report.groups import run_details, shown_ranks
from fairevals.report.style import labels, styled
from fairevals.statistics.pairing import measure_position, pair
from fairevals.statistics.power import topic_set_sizes
from fairevals.statistics.tukey import significance_groups


@dataclass(frozen=True)
class Plots:
    """The figures of a result. Each method draws on `ax`, or on a new figure of pyplot, and returns the Axes."""

    scores: Scores
    collection: Collection
    plan: Plan
    sources: Sequence[Any]
    place: Callable[[Any], int]
    """The position of a run, from its name or its file."""

    def tradeoff(self, x: Any = None, y: Any = None, *, baseline: Any = None, ax: Axes | None = None) -> Axes:
        """Each run in the plane of two measures, with 95 % intervals over topics and the Pareto front.

        By default the first measure of utility against the first of fairness.
        """
        across, up = self._measure(x, USEFULNESS), self._measure(y, FAIRNESS)
        marked = None if baseline is None else self.place(baseline)
        means = board(self.scores, baseline=marked, seed=self.plan.policy.seed)
        kinds = {} if marked is None else {marked: "baseline"}
        with _drawing(ax) as axes:
            figures.draw_tradeoff(axes, means, labels(self.scores.runs, 28), across, up, kinds)
            axes.legend(frameon=False)
        return axes

    def topics(self, measure: Any = None, run: Any = 1, *, baseline: Any = 0, ax: Axes | None = None) -> Axes:
        """The gain of a run over the baseline on each topic, the largest first."""
        if len(self.scores.runs) < 2:
            raise UsageError("there is one run: evaluate another to show gains over it")
        r, b = self.place(run), self.place(baseline)
        if r == b:
            raise UsageError(f"the run and the baseline are both {self.scores.runs[r]!r}")
        place = self._measure(measure)
        if self.scores.measures[place].across_topics:
            raise UsageError(f"{self.scores.measures[place]} has one value for all topics, and none by topic")
        paired = pair(self.scores, place, r, b)
        with _drawing(ax, 9.0, 3.2) as axes:
            name, other = labels([paired.run, paired.baseline], 40)
            figures.draw_gains(axes, paired, name, other, self.scores.label(paired.measure))
        return axes

    def pairs(self, measure: Any = None, *, ax: Axes | None = None) -> Axes:
        """Every two runs by randomised Tukey HSD, best first: gains above the diagonal, p-values below it.

        Pairs that differ significantly are coloured: blue where the run of the row is better.
        """
        m = self._measure(measure)
        group = significance_groups(self.scores, m, alpha=ALPHA, seed=self.plan.policy.seed)
        with _drawing(ax) as axes:
            figures.draw_pairs(axes, self.scores, m, group, ALPHA)
        return axes

    def power(
        self, measure: Any = None, difference: Any = None, *, ax: Axes | None = None, **options: Any
    ) -> Axes:
        """Power against the number of topics, for differences of a measure; see `Result.power`."""
        name = str(self.scores.measures[self._measure(measure)])
        sizes = topic_set_sizes(self.scores, difference, **options)
        rows = [row for row in sizes.rows if row.measure == name and row.residual_variance]
        if not rows:
            raise UsageError(f"the power of {name} is undefined: {'; '.join(sizes.remarks)}")
        with _drawing(ax) as axes:
            figures.draw_power(axes, rows, sizes.label(name))
            axes.legend(frameon=False)
        return axes

    def groups(self, attribute: str | None = None, run: Any = 0, *, ax: Axes | None = None) -> Axes:
        """The groups' shares of the first k ranks, and the target; by default of the first attribute."""
        known = self.collection.attribute_names
        if not known:
            raise UsageError("there are no attributes: give groups= or a task with attributes to evaluate")
        name = known[0] if attribute is None else attribute
        check_known("attribute", name, known)
        depth = shown_ranks(self.collection.task.cutoff)
        (distribution,), _ = self._details(run, attributes=[name], depth=depth)
        if not distribution.topics:
            raise UsageError(f"{distribution.run} ranks no document with a known group of {name}")
        with _drawing(ax) as axes:
            figures.draw_ranks(axes, distribution)
            axes.set_ylabel("mean membership")
            axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)
        return axes

    def exposure(self, run: Any = 0, *, ax: Axes | None = None) -> Axes:
        """The expected exposure of documents by their merit (the grade), and what would be in proportion to it."""
        _, merits = self._details(run, cutoff=self.collection.task.cutoff)
        with _drawing(ax) as axes:
            figures.draw_merits(axes, merits)
            axes.set_ylabel("expected exposure")
            axes.legend(frameon=False)
        return axes

    def _details(self, run: Any, **options: Any) -> Any:
        r = self.place(run)
        name = labels(self.scores.runs, 40)[r]
        return run_details(self.sources[r], self.collection, self.plan.policy, name=name, **options)

    def _measure(self, measure: Any, kind: str = "") -> int:
        """The position of a measure; by default the first of its kind, or of all."""
        measures = self.scores.measures
        if measure is None:
            fitting = [m for m, one in enumerate(measures) if not kind or role(one) == kind]
            if not fitting:
                raise UsageError(f"there is no measure of {kind} among {', '.join(map(str, measures))}")
            return fitting[0]
        return measure_position(self.scores, measure, self.collection.task.cutoff)


@contextmanager
def _drawing(ax: Axes | None, width: float = 6.4, height: float = 4.4) -> Iterator[Axes]:
    """The caller's Axes as they are, or new ones in the style of the report."""
    if ax is not None:
        if not isinstance(ax, Axes):
            raise UsageError(f"ax is {escape(repr(ax))}; expected matplotlib Axes")
        yield ax
        return
    from matplotlib import pyplot

    # A notebook's backend sets itself up with the first figure. In the context, leaving it would undo that.
    figure = pyplot.figure(figsize=(width, height), layout="constrained")
    with styled():
        yield figure.add_subplot()

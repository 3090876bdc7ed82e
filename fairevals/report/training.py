"""Trained policies: their summaries as training wrote them, the effect of λ, and learning curves."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fairevals.errors import InputError, Place, escape
from fairevals.io.streams import Source
from fairevals.io.tables import table
from fairevals.measures.base import HIGHER, Direction
from fairevals.measures.index import INDEX, measure_class
from fairevals.report.figures import place_labels
from fairevals.report.style import band, figure_legend, labels, look, new_figure
from fairevals.training import TrainedPolicy
from fairevals.training.outputs import GREEDY_SUFFIX, SUMMARY_COLUMNS

MAX_METHODS = 8
MAX_LAMBDAS = 8
"""Learning curves are drawn for so many λ; the others are in their log.csv."""
_DISPARITIES = ("D_group", "D_ind")


def is_greedy(method: str) -> bool:
    """Whether the points of a method are of greedy readings."""
    return method.endswith("(greedy)")


def direction_of(measure: str) -> Direction:
    """A measure's direction by its name alone (in a summary D_group has no attribute)."""
    name = re.split(r"[(@]", measure)[0]
    return measure_class(name).direction if name in INDEX else HIGHER


@dataclass(frozen=True)
class SweepPoint:
    """A method at one λ on a split: its mean over seeds on a measure."""

    family: str
    """The method, with " (greedy)" for the greedy reading of its policies: the one ranking by descending score."""
    lam: float | None
    split: str
    measure: str
    mean: float
    deviation: float
    """Standard deviation over seeds; NaN with one seed."""
    seeds: int
    values: tuple[float, ...]


@dataclass(frozen=True)
class TrainingSummary:
    """The policies of one or more folders."""

    points: tuple[SweepPoint, ...]

    @property
    def utility(self) -> str | None:
        """The first measure that is not a disparity."""
        return next((p.measure for p in self.points if not p.measure.startswith(_DISPARITIES)), None)

    @property
    def disparity(self) -> str | None:
        """D_group if there is one, else D_ind."""
        measures = [p.measure for start in _DISPARITIES for p in self.points if p.measure.startswith(start)]
        return measures[0] if measures else None

    @property
    def pair(self) -> list[str]:
        """Utility and disparity, as far as there are any."""
        return [measure for measure in (self.utility, self.disparity) if measure]

    @property
    def shown_splits(self) -> list[str]:
        """The splits that figures show: training and test data, or else the first two."""
        splits = [p.split for p in self.points]
        ordered = dict.fromkeys(("train", "test", *splits))
        return [split for split in ordered if split in splits and split != "valid"][:2] or ["valid"]

    @property
    def families(self) -> tuple[str, ...]:
        """The methods; greedy readings last."""
        return tuple(sorted(dict.fromkeys(p.family for p in self.points), key=is_greedy))

    def of(self, name: str, split: str, measure: str | None) -> list[SweepPoint]:
        """The points of a method on a split and measure, by λ."""
        mine = [p for p in self.points if (p.family, p.split, p.measure) == (name, split, measure)]
        return sorted(mine, key=lambda p: (p.lam is None, p.lam or 0))

    def lambdas(self, *names: str) -> list[float]:
        """The λ of methods, in ascending order; empty for methods without λ."""
        return sorted({p.lam for p in self.points if p.family in names and p.lam is not None})

    @property
    def swept(self) -> tuple[str, ...]:
        """The methods that were trained with more than one λ."""
        return tuple(name for name in self.families if len(self.lambdas(name)) > 1)

    def rows(self) -> Iterator[tuple[str, float | None, list[SweepPoint | None]]]:
        """(method, λ, points): one point for each measure of `pair` and each split that figures show."""
        columns = [(split, measure) for measure in self.pair for split in self.shown_splits]
        for name in self.families:
            for lam in (*self.lambdas(name),) or (None,):
                points = [{p.lam: p for p in self.of(name, *column)} for column in columns]
                yield name, lam, [by_lambda.get(lam) for by_lambda in points]


def read_summaries(folders: Sequence[Path]) -> TrainingSummary | None:
    """The summaries of all folders together, with means and standard deviations over seeds; None without any row.

    Undefined values are skipped. An invalid file is an `InputError` with file and line.
    """
    seeds: dict[tuple[str, float | None, str, str], list[float]] = {}
    for folder in folders:
        source = Source.of(folder / "summary.csv")
        _, header, rows = table(source, SUMMARY_COLUMNS[:-1])
        for line, cells in rows:
            row, place = dict(zip(header, cells, strict=True)), Place(source.name, line)
            lam, value, _ = (_finite(row[name], place) for name in ("lambda", "value", "se"))
            method = row["method"] + (" (greedy)" if row["policy"].endswith(GREEDY_SUFFIX) else "")
            values = seeds.setdefault((method, lam, row["split"], row["measure"]), [])
            values += [] if value is None else [value]
    points = []
    for key, values in seeds.items():
        mean = math.fsum(values) / len(values) if values else math.nan
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
        points.append(SweepPoint(*key, mean, deviation, len(values), tuple(values)))
    return TrainingSummary(tuple(points)) if points else None


def _finite(text: str, place: Place) -> float | None:
    """A finite number; None for an empty cell."""
    try:
        value = float(text) if text else None
    except ValueError:
        value = math.inf
    if value is not None and not math.isfinite(value):
        raise InputError(place, f"{escape(text)!r}", "a finite number")
    return value


def lambda_figure(summary: TrainingSummary) -> Figure:
    """Utility and disparity along λ, one Axes each: lines are means, bands ± one standard deviation over seeds."""
    names = [name for name in summary.swept if not is_greedy(name)] or list(summary.swept)
    names = names[: MAX_METHODS // 2]
    # λ = 0, 1, 10, 100 are drawn at equal distances, in their order.
    lams = summary.lambdas(*names)
    with new_figure(1.2 + 4.6 * len(summary.pair), 3.9) as figure:
        for number, measure in enumerate(summary.pair, 1):
            axes = figure.add_subplot(1, len(summary.pair), number)
            for f, name in enumerate(names):
                for s, split in enumerate(summary.shown_splits):
                    points = [p for p in summary.of(name, split, measure) if not math.isnan(p.mean)]
                    known = [(lams.index(p.lam), p.mean, p.deviation) for p in points if p.lam is not None]
                    x, mean, deviation = np.array(known).reshape(-1, 3).T
                    label, line = f"{labels([name])[0]}, {split}", ("-", "--")[s]
                    band(axes, x, mean, deviation, 2 * f + s, label, linestyle=line)
            axes.set_xticks(range(len(lams)), [f"{lam:g}" for lam in lams])
            axes.set(xlabel="λ (weight of the disparity)", ylabel=f"{measure} {direction_of(measure).arrow}")
            if measure == summary.disparity:
                axes.set_ylim(bottom=0)
        figure_legend(figure)
    return figure


def plane_figure(summary: TrainingSummary) -> Figure:
    """Utility against disparity on the last split: a method is a line over its λ, or a point without λ.

    Greedy readings are shown only for methods without a sweep.
    """
    utility, disparity, split = summary.utility, summary.disparity, summary.shown_splits[-1]
    methods = [name for name in summary.families if not (is_greedy(name) and name in summary.swept)]
    named: list[tuple[str, float, float]] = []
    with new_figure(7.4, 4.8) as figure:
        axes = figure.add_subplot()
        for f, name in enumerate(methods[:MAX_METHODS]):
            up = {q.lam: q for q in summary.of(name, split, disparity)}
            both = [(p, up[p.lam]) for p in summary.of(name, split, utility) if p.lam in up]
            both = [(p, q) for p, q in both if not math.isnan(p.mean + q.mean)]
            if not both:
                continue
            rows = [(p.mean, q.mean, q.deviation, p.deviation) for p, q in both]
            line: Any = {"linestyle": "-" if len(both) > 1 else "none", "elinewidth": 0.8}
            x, y, yerr, xerr = np.nan_to_num(np.array(rows).T)
            axes.errorbar(x, y, yerr, xerr, label=labels([name])[0], **look(f), **line)
            if name in summary.swept:
                named += [(f"λ={p.lam:g}", p.mean, q.mean) for p, q in both]
        axes.set_xlabel(f"{utility} {direction_of(utility or '').arrow}, {split}")
        axes.set_ylabel(f"{disparity} {direction_of(disparity or '').arrow}, {split}")
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.margins(0.1)
        places = np.array([place for _, *place in named]).reshape(-1, 2)
        place_labels(axes, places[:, 0], places[:, 1], [text for text, _, _ in named])
        figure_legend(figure, "right center")
    return figure


def learning_figure(policies: Sequence[TrainedPolicy]) -> Figure | None:
    """Loss and quality on validation data along epochs; None if no policy was trained step by step.

    One line per policy, one colour per λ, and a mark where validation was best. The loss at an epoch is the mean over
    topics, each before the step that it caused.
    """
    stepwise = [policy for policy in policies if len(policy.curve) > 1]
    lambdas = list(dict.fromkeys(policy.settings.lam for policy in stepwise))[:MAX_LAMBDAS]
    if not lambdas:
        return None
    texts = ["training loss, mean over topics ↓"]
    if any(valid is not None for policy in stepwise for _, _, valid, _ in policy.curve):
        texts.append("quality on validation data, mean over topics ↑")
    with new_figure(1.2 + 4.6 * len(texts), 4.2) as figure:
        for column, text in enumerate(texts, 1):
            axes = figure.add_subplot(1, len(texts), column, xlabel="epoch", ylabel=text)
            for policy in (policy for policy in stepwise if policy.settings.lam in lambdas):
                curve, lam = np.array(policy.curve, dtype=np.float64), policy.settings.lam
                curve = curve[~np.isnan(curve[:, column])]  # NaN for None too
                chosen: Any = np.flatnonzero(curve[:, 3])[-1:].tolist() if column == 2 else []
                line = look(lambdas.index(lam)) | {"markevery": chosen}
                label = f"{labels([policy.settings.method])[0]}, λ = {lam:g}"
                axes.plot(curve[:, 0], curve[:, column], label=label, **line)
        figure_legend(figure)
    return figure

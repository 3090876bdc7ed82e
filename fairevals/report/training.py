"""Trained policies: their summaries as training wrote them, the effect of λ, and learning curves."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairevals.errors import InputError, Place, escape
from fairevals.evaluation.leaderboard import best_of
from fairevals.io.out import Cell, Table
from fairevals.io.streams import Source
from fairevals.io.tables import table
from fairevals.measures.base import HIGHER, Direction
from fairevals.measures.index import INDEX, measure_class
from fairevals.report.figures import place_labels
from fairevals.report.style import band, figure_legend, labels, look, new_figure
from fairevals.training import TrainedPolicy
from fairevals.training.baselines import PARITY, RANDOM, TEMPERATURE
from fairevals.training.objectives import UTILITY
from fairevals.training.settings import WITH_LAMBDA, Settings
from fairevals.training.summary import GREEDY_SUFFIX, SUMMARY_COLUMNS, SummaryRow, bound_of

MAX_METHODS = 8
MAX_LAMBDAS = 8
"""Learning curves are drawn for so many λ; the others are in their log.csv."""
_DISPARITIES = ("D_group", "D_ind")
_BESIDE = ("D_group", "D_ind", "D_cross", "EE_L")
"""What stands beside utility and disparity in tables."""
_TEMPERATURE = re.compile(r"\.T([\d.]+(?:e[+]\d+)?)(?:-max|$)")
BOUNDED = "D ≤ ε: "
"""Begins the family of policies that were trained under a bound ε of the disparity, which stands in the place of λ."""


def is_greedy(method: str) -> bool:
    """Whether the points of a method are of greedy readings."""
    return method.endswith("(greedy)")


def direction_of(measure: str) -> Direction:
    """A measure's direction by its name alone (in a summary D_group has no attribute)."""
    name = re.split(r"[(@]", measure)[0]
    return measure_class(name).direction if name in INDEX else HIGHER


def _is_utility(measure: str) -> bool:
    """Whether a measure is one of utility alone, by its name."""
    name = re.split(r"[(@]", measure)[0]
    return name not in INDEX or (
        measure_class(name).missing == 0 and measure_class(name).attributes == "none"
    )


@dataclass(frozen=True)
class SweepPoint:
    """A method at one λ on a split: its mean over seeds on a measure."""

    family: str
    """The method, with " (greedy)" for the greedy reading of its policies: the one ranking by descending score."""
    lam: float | None
    """λ, or the bound of the disparity; None for what has neither."""
    split: str
    measure: str
    mean: float
    deviation: float
    """Standard deviation over seeds; NaN with one seed."""
    seeds: int
    values: tuple[float, ...]
    temperature: float | None = None
    """Where a policy is read at a temperature: its mean over seeds."""


@dataclass(frozen=True)
class TrainingSummary:
    """The policies of one or more folders."""

    points: tuple[SweepPoint, ...]

    @classmethod
    def of(cls, rows: Iterable[SummaryRow]) -> TrainingSummary:
        """Means and standard deviations over seeds; undefined values are skipped."""
        seeds: dict[tuple[str, float | None, str, str], list[tuple[float, str]]] = {}
        for row in rows:
            method = row.method + (" (greedy)" if row.policy.endswith(GREEDY_SUFFIX) else "")
            lam = None if math.isnan(row.lam) else row.lam
            bound = bound_of(row.policy.removesuffix(GREEDY_SUFFIX))
            if bound is not None:
                method, lam = BOUNDED + method, bound
            values = seeds.setdefault((method, lam, row.split, row.measure), [])
            values += [] if math.isnan(row.value) else [(row.value, row.policy)]
        points = []
        for key, known in seeds.items():
            means = tuple(value for value, _ in known)
            mean = math.fsum(means) / len(means) if means else math.nan
            deviation = float(np.std(means, ddof=1)) if len(means) > 1 else math.nan
            heats = [float(match[1]) for _, policy in known if (match := _TEMPERATURE.search(policy))]
            heat = math.fsum(heats) / len(heats) if heats else None
            points.append(SweepPoint(*key, mean, deviation, len(means), means, heat))
        return cls(tuple(points))

    @property
    def utility(self) -> str | None:
        """The first measure that is not a disparity."""
        return next((p.measure for p in self.points if not p.measure.startswith(_DISPARITIES)), None)

    @property
    def disparity(self) -> str | None:
        """The disparity that was trained for; else D_group if there is one, else D_ind.

        What policies were trained for comes first in a summary: see `default_measures`.
        """
        measures = list(dict.fromkeys(p.measure for p in self.points))
        end = max(
            (measures.index(each) for each in (UTILITY, f"{UTILITY}@10") if each in measures), default=0
        )
        trained = [each for each in measures[:end] if each != self.utility and not _is_utility(each)]
        usual = [each for start in _DISPARITIES for each in measures if each.startswith(start)]
        return next(iter(trained + usual), None)

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
    def columns(self) -> list[tuple[str, str]]:
        """(measure, split) of the columns of a table: utility and disparity on two splits, others on the last one.

        D_group alone is met by any policy that gives the groups equal exposure, so other disparities stand beside it.
        """
        measures = list(dict.fromkeys(p.measure for p in self.points))
        others = [m for name in _BESIDE for m in measures if m.startswith(name) and m not in self.pair]
        splits = self.shown_splits[::-1]
        return [(m, split) for m in self.pair for split in splits] + [(m, splits[0]) for m in others]

    @property
    def families(self) -> tuple[str, ...]:
        """The methods; greedy readings last."""
        return tuple(sorted(dict.fromkeys(p.family for p in self.points), key=is_greedy))

    def of_family(self, name: str, split: str, measure: str | None) -> list[SweepPoint]:
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

    @property
    def greedy_measure(self) -> str | None:
        """What greedy readings are shown by: the first measure with a cutoff, else the utility."""
        return next((p.measure for p in self.points if "@" in p.measure), self.utility)

    def rows(self) -> Iterator[PolicyRow]:
        """A method at a λ in each row, with a point for each of `columns`; what it is compared with stands below it."""
        places = []
        for at, name in enumerate(name for name in self.families if not is_greedy(name)):
            method = self.families.index(_base(name)) if _base(name) in self.families else at
            places += [
                ((name != RANDOM, method, name.startswith(BOUNDED), lam or 0.0, at), name, lam)
                for lam in (*self.lambdas(name),) or (None,)
            ]
        split = self.shown_splits[-1]
        for _, name, lam in sorted(places, key=lambda place: place[0]):
            points = [self.point(name, lam, split, measure) for measure, split in self.columns]
            greedy = self.point(f"{name} (greedy)", lam, split, self.greedy_measure)
            yield PolicyRow(name, lam, tuple(points), greedy)

    def point(self, name: str, lam: float | None, split: str, measure: str | None) -> SweepPoint | None:
        """A method at one λ on a split and measure."""
        return next((p for p in self.of_family(name, split, measure) if p.lam == lam), None)


def _base(name: str) -> str:
    """The method of the policy that a temperature or an offset is applied to."""
    return name.removeprefix(BOUNDED).removesuffix(TEMPERATURE).removesuffix(PARITY)


@dataclass(frozen=True)
class PolicyRow:
    """A row of a table of policies."""

    family: str
    lam: float | None
    points: tuple[SweepPoint | None, ...]
    greedy: SweepPoint | None

    @property
    def seeds(self) -> int:
        """How many policies the means are over, at most."""
        return max((point.seeds for point in self.points if point is not None), default=0)

    @property
    def method(self) -> str:
        """The method of the policy, or of the one that a temperature or an offset is applied to."""
        return "–" if self.family == RANDOM else _base(self.family)

    @property
    def label(self) -> str:
        """What it is, for people."""
        base = "λ=0" if self.method in WITH_LAMBDA else self.method
        if self.family == RANDOM or self.family.endswith(PARITY):
            return RANDOM if self.family == RANDOM else f"{base}, parity"
        heats = [point.temperature for point in self.points if point is not None and point.temperature]
        if self.family.endswith(TEMPERATURE) and heats:
            return f"{base}, T={heats[0]:.3g}"
        if self.family.startswith(BOUNDED):
            return f"D≤{self.lam:g}"
        return f"λ={self.lam or 0:g}" if self.method in WITH_LAMBDA else self.method


def family_of(settings: Settings) -> tuple[str, float]:
    """The family of a policy in a summary, and its λ or bound of the disparity."""
    if settings.max_disparity is not None:
        return BOUNDED + settings.method, settings.max_disparity
    return settings.method, settings.lam


def training_table(
    summary: TrainingSummary, places: int, untrained: Collection[tuple[str, float | None]] = ()
) -> Table:
    """The summary for a terminal: means over seeds. Families at a λ that are `untrained` are marked with †."""
    rows, split = list(summary.rows()), summary.shown_splits[-1]
    cells: list[list[Cell]] = [
        [row.label + (" †" if (row.family, row.lam) in untrained else "") for row in rows]
    ]
    columns = [(measure, "" if of == split else f"{of} ") for measure, of in summary.columns]
    points = [[row.points[at] for row in rows] for at in range(len(columns))]
    if summary.greedy_measure and any(row.greedy for row in rows):
        columns.append((summary.greedy_measure, "greedy "))
        points.append([row.greedy for row in rows])
    methods = {row.method for row in rows if row.family != RANDOM}
    names, marked = [f"{methods.pop() if len(methods) == 1 else 'policy'} ({split} data)"], set()
    short = {measure: re.sub(r"[(].*[)]", "", measure) for measure, _ in columns}
    for (measure, prefix), column in zip(columns, points, strict=True):
        values = [math.nan if point is None else point.mean for point in column]
        direction = direction_of(measure)
        best = best_of([float(direction.cost(value)) for value in values], places)
        marked |= {(at, len(cells)) for at, is_best in enumerate(best) if is_best}
        is_clear = list(short.values()).count(short[measure]) == 1
        names.append(f"{prefix}{short[measure] if is_clear else measure} {direction.arrow}")
        cells.append(list(values))
    return Table(tuple(names), tuple(zip(*cells, strict=True)), frozenset(marked))


def read_summaries(folders: Sequence[Path]) -> TrainingSummary | None:
    """The summaries of all folders together, with means and standard deviations over seeds; None without any row.

    An invalid file is an `InputError` with file and line.
    """
    rows = []
    for folder in folders:
        source = Source.of(folder / "summary.csv")
        _, header, lines = table(source, SUMMARY_COLUMNS[:-1])
        for line, cells in lines:
            row, place = dict(zip(header, cells, strict=True)), Place(source.name, line)
            lam, value, se = (_finite(row[name], place) for name in ("lambda", "value", "se"))
            facts = row["policy"], row["method"], lam, 0, row["split"], row["measure"]
            rows.append(SummaryRow(*facts, value, se, 0))
    return TrainingSummary.of(rows) if rows else None


def _finite(text: str, place: Place) -> float:
    """A finite number; NaN for an empty cell."""
    try:
        value = float(text) if text else math.nan
    except ValueError:
        value = math.inf
    if text and not math.isfinite(value):
        raise InputError(place, f"{escape(text)!r}", "a finite number")
    return value


def lambda_figure(summary: TrainingSummary) -> Figure:
    """Utility and disparity along λ, one Axes each: lines are means, bands ± one standard deviation over seeds."""
    by_lambda = [name for name in summary.swept if not name.startswith(BOUNDED)]
    names = [name for name in by_lambda if not is_greedy(name)] or by_lambda
    names = names[: MAX_METHODS // 2]
    # λ = 0, 1, 10, 100 are drawn at equal distances, in their order.
    lams = summary.lambdas(*names)
    with new_figure(1.2 + 4.6 * len(summary.pair), 3.9) as figure:
        for number, measure in enumerate(summary.pair, 1):
            axes = figure.add_subplot(1, len(summary.pair), number)
            for f, name in enumerate(names):
                for s, split in enumerate(summary.shown_splits):
                    points = [p for p in summary.of_family(name, split, measure) if not math.isnan(p.mean)]
                    known = [(lams.index(p.lam), p.mean, p.deviation) for p in points if p.lam is not None]
                    x, mean, deviation = np.array(known).reshape(-1, 3).T
                    label, line = f"{labels([_legend_label(name)])[0]}, {split}", ("-", "--")[s]
                    band(axes, x, mean, deviation, 2 * f + s, label, linestyle=line)
            axes.set_xticks(range(len(lams)), [f"{lam:g}" for lam in lams])
            axes.set(xlabel="λ (weight of the disparity)", ylabel=f"{measure} {direction_of(measure).arrow}")
            if measure == summary.disparity:
                axes.set_ylim(bottom=0)
        figure_legend(figure)
    return figure


def plane_figure(summary: TrainingSummary) -> Figure:
    """Utility against disparity on the last split, as `draw_plane` draws it."""
    with new_figure(7.4, 4.8) as figure:
        draw_plane(figure.add_subplot(), summary)
        figure_legend(figure, "right center")
    return figure


def draw_plane(axes: Axes, summary: TrainingSummary) -> None:
    """Draw utility against disparity on the last split: a method is a line over its λ, or a point without λ.

    A temperature is a line over the λ whose disparity it reaches. Greedy readings are shown only for methods without a
    sweep or a bound.
    """
    utility, disparity, split = summary.utility, summary.disparity, summary.shown_splits[-1]
    named_by = {name: "ε" if name.startswith(BOUNDED) else "λ" for name in summary.families}
    named_by = {name: by for name, by in named_by.items() if by == "ε" or name in summary.swept}
    methods = [name for name in summary.families if not (is_greedy(name) and name in named_by)]
    named: list[tuple[str, float, float]] = []
    for f, name in enumerate(methods[:MAX_METHODS]):
        up = {q.lam: q for q in summary.of_family(name, split, disparity)}
        both = [(p, up[p.lam]) for p in summary.of_family(name, split, utility) if p.lam in up]
        both = [(p, q) for p, q in both if not math.isnan(p.mean + q.mean)]
        if not both:
            continue
        rows = [(p.mean, q.mean, q.deviation, p.deviation) for p, q in both]
        line: Any = {"linestyle": "-" if len(both) > 1 else "none", "elinewidth": 0.8}
        x, y, yerr, xerr = np.nan_to_num(np.array(rows).T)
        axes.errorbar(x, y, yerr, xerr, label=labels([_legend_label(name)])[0], **look(f), **line)
        if name in named_by and not name.endswith(TEMPERATURE):
            named += [(f"{named_by[name]}={p.lam:g}", p.mean, q.mean) for p, q in both]
    axes.set_xlabel(f"{utility} {direction_of(utility or '').arrow}, {split}")
    axes.set_ylabel(f"{disparity} {direction_of(disparity or '').arrow}, {split}")
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.margins(0.1)
    places = np.array([place for _, *place in named]).reshape(-1, 2)
    place_labels(axes, places[:, 0], places[:, 1], [text for text, _, _ in named])


def _legend_label(name: str) -> str:
    """A method in a legend."""
    if name.endswith(PARITY):
        return "λ=0, parity offset"
    if name.endswith(TEMPERATURE):
        return "λ=0, temperature" + (" for ε" if name.startswith(BOUNDED) else "")
    return f"{name.removeprefix(BOUNDED)}, D ≤ ε" if name.startswith(BOUNDED) else name


def learning_figure(
    policies: Sequence[TrainedPolicy], summary: TrainingSummary | None = None
) -> Figure | None:
    """Loss and quality on validation data along epochs; None if no policy was trained step by step.

    One line per policy, one colour per λ, and a mark where validation was best. The loss at an epoch is the mean over
    topics, each before the step that it caused. With a summary, an Axes shows where this leads, beside the baselines:
    see `draw_plane`.
    """
    stepwise = [policy for policy in policies if len(policy.curve) > 1]
    families = list(dict.fromkeys(family_of(policy.settings) for policy in stepwise))[:MAX_LAMBDAS]
    if not families:
        return None
    texts = ["training loss, mean over topics ↓"]
    if any(valid is not None for policy in stepwise for _, _, valid, _ in policy.curve):
        texts.append("quality on validation data, mean over topics ↑")
    has_plane = summary is not None and len(summary.pair) == 2
    panels = len(texts) + has_plane
    with new_figure(1.2 + 4.6 * panels, 4.2) as figure:
        for column, text in enumerate(texts, 1):
            axes = figure.add_subplot(1, panels, column, xlabel="epoch, or step of L-BFGS", ylabel=text)
            for policy in stepwise:
                family, bound = family_of(policy.settings), policy.settings.max_disparity
                if family not in families:
                    continue
                curve = np.array(policy.curve, dtype=np.float64)
                curve = curve[~np.isnan(curve[:, column])]  # NaN for None too
                chosen: Any = np.flatnonzero(curve[:, 3])[-1:].tolist() if column == 2 else []
                line = look(families.index(family)) | {"markevery": chosen}
                at = f"λ = {policy.settings.lam:g}" if bound is None else f"D ≤ {bound:g}"
                label = f"{labels([policy.settings.method])[0]}, {at}"
                axes.plot(curve[:, 0], curve[:, column], label=label, **line)
        figure_legend(figure)
        if summary is not None and has_plane:
            axes = figure.add_subplot(1, panels, panels)
            draw_plane(axes, summary)
            if axes.get_legend_handles_labels()[0]:  # nothing is drawn where all values are undefined
                axes.legend(fontsize="small")
    return figure

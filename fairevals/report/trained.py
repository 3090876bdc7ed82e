"""Trained policies: what λ costs in usefulness and buys in fairness, from the summaries that training wrote."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairevals.errors import FairevalsError, InputError, Place, escape
from fairevals.io.streams import Source
from fairevals.measures.base import HIGHER, Direction, split_name
from fairevals.measures.index import INDEX, measure_class
from fairevals.report.style import COLOURS, MARKERS, band, labels, styled
from fairevals.report.tradeoff import place_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ("policy", "method", "lambda", "seed", "split", "measure", "value", "se")
DISPARITIES = ("D_group", "D_ind")
MOST_FAMILIES = 8
GREEDY = ".greedy"
_FAMILY = re.compile(r"-seed\d+$")
_LAMBDA = re.compile(r"-lambda[-+.0-9e]+$")


def family(policy: str) -> str:
    """What policies of other λ and seeds share: their method.

    >>> family("fair-pg-rank-lambda0.5-seed3"), family("ridge-seed0.greedy"), family("mine")
    ('fair-pg-rank', 'ridge (greedy)', 'mine')
    """
    greedy = policy.endswith(GREEDY)
    name = _LAMBDA.sub("", _FAMILY.sub("", policy.removesuffix(GREEDY)))
    return f"{name} (greedy)" if greedy else name


def is_greedy(name: str) -> bool:
    """Whether a family is the greedy reading of policies: the one ranking by descending score."""
    return name.endswith("(greedy)")


@dataclass(frozen=True)
class Row:
    """A row of summary.csv."""

    policy: str
    lam: float
    seed: str
    split: str
    measure: str
    value: float
    se: float


@dataclass(frozen=True)
class Point:
    """A method at a λ on a split: its mean over seeds on a measure."""

    family: str
    lam: float
    split: str
    measure: str
    mean: float
    deviation: float
    """Standard deviation over seeds; NaN with one seed."""
    seeds: int
    values: tuple[float, ...]


def read_summary(folder: Path) -> list[Row]:
    """The rows of a folder's summary.csv; a wrong one is an `InputError` with file and line."""
    source = Source.of(folder / "summary.csv")
    try:
        lines = source.read().decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(Place(source.name), "bytes that are not UTF-8", "UTF-8") from None
    reader = csv.reader(lines)
    head = tuple(next(reader, ()))
    if head[: len(COLUMNS)] != COLUMNS:  # what follows is for other readers
        raise InputError(Place(source.name, 1), f"columns {escape(','.join(head))}", ",".join(COLUMNS))
    rows = []
    for cells in reader:
        place = Place(source.name, reader.line_num)
        if len(cells) != len(head):
            raise InputError(place, f"{len(cells)} columns", str(len(head)))
        policy, _, lam, seed, split, measure, value, se = cells[: len(COLUMNS)]
        numbers = [_number(text, place) for text in (lam, value, se)]
        rows.append(Row(policy, numbers[0], seed, split, measure, numbers[1], numbers[2]))
    return rows


def _number(text: str, place: Place) -> float:
    if not text:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if math.isinf(value):
        raise InputError(place, f"{escape(text)!r}", "a finite number")
    return value


def points(rows: Iterable[Row]) -> list[Point]:
    """Means and standard deviations over seeds, in the order of the rows; undefined values do not count."""
    found: dict[tuple[str, float | None, str, str], list[float]] = {}
    for row in rows:
        lam = None if math.isnan(row.lam) else row.lam
        values = found.setdefault((family(row.policy), lam, row.split, row.measure), [])
        if not math.isnan(row.value):
            values.append(row.value)
    return [
        Point(
            name,
            math.nan if lam is None else lam,
            split,
            measure,
            math.fsum(values) / len(values) if values else math.nan,
            float(np.std(values, ddof=1)) if len(values) > 1 else math.nan,
            len(values),
            tuple(values),
        )
        for (name, lam, split, measure), values in found.items()
    ]


def direction_of(measure: str) -> Direction:
    """A measure's direction by its name alone (in a summary D_group has no attribute)."""
    try:
        name = split_name(measure)[0]
    except FairevalsError:
        return HIGHER
    return measure_class(name).direction if name in INDEX else HIGHER


@dataclass(frozen=True)
class TrainingSummary:
    """The policies of one or several folders."""

    points: tuple[Point, ...]

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures, in the order of the files."""
        return tuple(dict.fromkeys(p.measure for p in self.points))

    @property
    def utility(self) -> str | None:
        """The first measure that is not a disparity."""
        return next((m for m in self.measures if not m.startswith(DISPARITIES)), None)

    @property
    def disparity(self) -> str | None:
        """D_group where it is there, else D_ind."""
        return next((m for start in DISPARITIES for m in self.measures if m.startswith(start)), None)

    @property
    def splits(self) -> tuple[str, ...]:
        """train, valid, test, as far as they are there, then others."""
        there = dict.fromkeys(p.split for p in self.points)
        return tuple(
            [s for s in ("train", "valid", "test") if s in there]
            + [s for s in there if s not in ("train", "valid", "test")]
        )

    @property
    def shown_splits(self) -> tuple[str, ...]:
        """The splits that figures show: training and test data, or whatever there is."""
        return tuple(s for s in self.splits if s != "valid")[:2] or self.splits[:2]

    @property
    def families(self) -> tuple[str, ...]:
        """The methods; greedy readings of a policy last."""
        names = dict.fromkeys(p.family for p in self.points)
        return tuple(sorted(names, key=is_greedy))

    def of(self, name: str, split: str, measure: str) -> list[Point]:
        """By λ."""
        mine = [p for p in self.points if (p.family, p.split, p.measure) == (name, split, measure)]
        return sorted(mine, key=lambda p: (math.isnan(p.lam), p.lam))

    @property
    def swept(self) -> tuple[str, ...]:
        """The methods that were trained with several λ."""
        return tuple(
            name for name in self.families if len({p.lam for p in self.points if p.family == name}) > 1
        )

    @property
    def in_plane(self) -> tuple[str, ...]:
        """The methods that the plane shows: all policies as they are, and baselines as plain rankings too."""
        swept = set(self.swept)
        return tuple(name for name in self.families if not (is_greedy(name) and name in swept))


def read_summaries(folders: Sequence[Path]) -> TrainingSummary | None:
    """The summaries of all folders together; None without any row."""
    rows = [row for folder in folders for row in read_summary(folder)]
    return TrainingSummary(tuple(points(rows))) if rows else None


def _places(lams: Sequence[float]) -> dict[float, int]:
    """λ are tried at 0, 1, 10, 100: they stand at equal distances, in their order."""
    return {lam: place for place, lam in enumerate(sorted(set(lams)))}


def lambda_figure(summary: TrainingSummary) -> Figure:
    """Utility and disparity along λ, an axes each: lines are means, bands ± one standard deviation over seeds."""
    from matplotlib.figure import Figure

    names = [name for name in summary.swept if not is_greedy(name)] or list(summary.swept)
    names = names[: MOST_FAMILIES // 2]
    measures = [m for m in (summary.utility, summary.disparity) if m]
    place = _places([p.lam for p in summary.points if p.family in names and not math.isnan(p.lam)])
    with styled():
        figure = Figure(figsize=(1.2 + 4.6 * len(measures), 3.9))
        for number, measure in enumerate(measures, 1):
            axes = figure.add_subplot(1, len(measures), number)
            for f, name in enumerate(names):
                for s, split in enumerate(summary.shown_splits):
                    _curve(
                        axes, summary.of(name, split, measure), place, f, s, f"{labels([name])[0]}, {split}"
                    )
            axes.set_xticks(range(len(place)), [f"{lam:g}" for lam in place])
            axes.set(xlabel="λ (weight of the disparity)", ylabel=f"{measure} {direction_of(measure).arrow}")
            if measure == summary.disparity:
                axes.set_ylim(bottom=0)
        handles, texts = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=min(4, len(texts)), frameon=False)
    return figure


def _curve(
    axes: Axes, found: Sequence[Point], place: dict[float, int], colour: int, split: int, label: str
) -> None:
    known = [p for p in found if p.lam in place and not math.isnan(p.mean)]
    x, mean, spread = ([place[p.lam] for p in known], [p.mean for p in known], [p.deviation for p in known])
    band(axes, x, mean, spread, 2 * colour + split, label, linestyle=("-", "--")[split % 2])


def plane_figure(summary: TrainingSummary) -> Figure:
    """Utility against disparity on the last split: a λ sweep is a line, a method without λ a point."""
    from matplotlib.figure import Figure

    utility, disparity, split = summary.utility, summary.disparity, summary.shown_splits[-1]
    with styled():
        figure = Figure(figsize=(7.4, 4.8))
        axes = figure.add_subplot()
        texts: list[str] = []
        xs: list[float] = []
        ys: list[float] = []
        for f, name in enumerate(summary.in_plane[:MOST_FAMILIES]):
            across = {p.lam: p for p in summary.of(name, split, utility or "")}
            up = {p.lam: p for p in summary.of(name, split, disparity or "")}
            shared = [lam for lam in across if lam in up]
            if any(math.isnan(lam) for lam in across):  # NaN is no key that could be found again
                both = [(p, q) for p, q in zip(across.values(), up.values(), strict=False)]
            else:
                both = [(across[lam], up[lam]) for lam in shared]
            both = [(p, q) for p, q in both if not math.isnan(p.mean) and not math.isnan(q.mean)]
            if not both:
                continue
            x, y = [p.mean for p, _ in both], [q.mean for _, q in both]
            axes.errorbar(
                x,
                y,
                np.nan_to_num([q.deviation for _, q in both]),
                np.nan_to_num([p.deviation for p, _ in both]),
                marker=MARKERS[f % len(MARKERS)],
                linestyle="-" if len(both) > 1 else "none",
                color=COLOURS[f % len(COLOURS)],
                elinewidth=0.8,
                label=labels([name])[0],
            )
            if name in summary.swept:
                texts += [f"λ={p.lam:g}" for p, _ in both]
                xs += x
                ys += y
        higher = direction_of(utility or "").arrow
        axes.set(
            xlabel=f"{utility} {higher}, {split}",
            ylabel=f"{disparity} {direction_of(disparity or '').arrow}, {split}",
        )
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.margins(0.1)
        place_labels(axes, np.array(xs), np.array(ys), texts, range(len(texts)))
        figure.legend(loc="outside right center", frameon=False)
    return figure

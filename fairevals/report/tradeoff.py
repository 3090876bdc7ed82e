"""Usefulness against fairness: the plane, and the runs that no other run beats on both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.measures import Direction
from fairevals.report.style import COLOURS, INK, styled
from fairevals.typing import Bools, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def pareto(costs: Floats) -> Bools:
    """Which rows of (points, criteria) no other row beats: as small everywhere, and smaller somewhere.

    A row with a NaN is never on the front, and beats none.

    >>> pareto(np.array([[0.1, 0.9], [0.5, 0.5], [0.6, 0.6], [0.9, np.nan]]))
    array([ True,  True, False, False])
    """
    known: Bools = np.asarray(~np.isnan(costs).any(axis=1))
    filled = np.where(known[:, None], costs, np.inf)
    as_small = (filled[:, None, :] <= filled[None, :, :]).all(axis=2)
    smaller = (filled[:, None, :] < filled[None, :, :]).any(axis=2)
    beaten = (as_small & smaller & known[:, None]).any(axis=0)
    front: Bools = known & ~beaten
    return front


@dataclass(frozen=True)
class Axis:
    """The values of all points on a measure."""

    name: str
    direction: Direction
    values: Floats
    low: Floats
    high: Floats

    @property
    def title(self) -> str:
        """The name with the direction's sign."""
        return f"{self.name} {self.direction.arrow}"


@dataclass(frozen=True)
class Points:
    """What is drawn in the plane."""

    labels: Sequence[str]
    baseline: int | None
    references: frozenset[int]


MOST_LABELS = 14


def scatter(points: Points, across: Axis, up: Sequence[Axis], title: str = "") -> Figure:
    """A plane for each of `up`, with 95 % intervals, the Pareto front, the baseline and reference policies."""
    from matplotlib.figure import Figure

    columns = min(3, len(up))
    rows = -(-len(up) // columns)
    with styled():
        figure = Figure(figsize=(4.6 * columns if columns > 1 else 6.4, 3.9 * rows))
        for number, axis in enumerate(up, 1):
            axes = figure.add_subplot(rows, columns, number)
            _plane(axes, points, across, axis)
        handles, names = figure.axes[0].get_legend_handles_labels()
        for axes in figure.axes[1:]:  # a kind of point may be in some planes only
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                if name not in names:
                    handles.append(handle)
                    names.append(name)
        figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False)
        if title:
            figure.suptitle(title)
    return figure


def _plane(axes: Axes, points: Points, across: Axis, up: Axis) -> None:
    x, y = across.values, up.values
    known = ~(np.isnan(x) | np.isnan(y))
    costs = np.stack([across.direction.cost(x), up.direction.cost(y)], axis=1)
    front = pareto(costs)
    thin: Any = {"color": "#888888", "alpha": 0.45, "linewidth": 0.8, "zorder": 1}
    wide, tall = (known & ~np.isnan(axis.low + axis.high) for axis in (across, up))
    axes.hlines(y[wide], across.low[wide], across.high[wide], **thin)
    axes.vlines(x[tall], up.low[tall], up.high[tall], **thin)
    on_front = np.flatnonzero(front)
    along = on_front[np.argsort(costs[on_front, 0], kind="stable")]
    axes.plot(x[along], y[along], "--", color=COLOURS[1], linewidth=1.3, label="Pareto front", zorder=2)
    kinds: list[tuple[str, str, str, Any]] = [
        ("run", "o", COLOURS[0], lambda r: r not in points.references and r != points.baseline),
        ("reference policy", "D", COLOURS[2], lambda r: r in points.references and r != points.baseline),
        ("baseline", "s", INK, lambda r: r == points.baseline),
    ]
    for label, marker, colour, belongs in kinds:
        mine = [r for r in np.flatnonzero(known).tolist() if belongs(r)]
        if mine:
            axes.plot(x[mine], y[mine], marker, color=colour, markersize=6, label=label, zorder=3)
    axes.set(xlabel=across.title, ylabel=up.title)
    axes.margins(0.12)
    _best_corner(axes, across.direction, up.direction)
    some = [r for r in np.flatnonzero(known).tolist() if front[r] or r == points.baseline]
    named = np.flatnonzero(known).tolist() if known.sum() <= MOST_LABELS else some
    place_labels(axes, x, y, points.labels, named)


def _best_corner(axes: Axes, across: Direction, up: Direction) -> None:
    """A word in the corner where both are best, unless one of them is best in the middle."""
    if across.target is None and up.target is None:
        right, top = across.word == "higher", up.word == "higher"
        axes.text(
            0.99 if right else 0.01,
            0.985 if top else 0.015,
            f"better {'↗' if right and top else '↘' if right else '↖' if top else '↙'}",
            transform=axes.transAxes,
            ha="right" if right else "left",
            va="top" if top else "bottom",
            color="#777777",
            fontsize=8,
        )


def place_labels(axes: Axes, x: Floats, y: Floats, texts: Sequence[str], which: Sequence[int]) -> None:
    """Names beside their points, each where it covers the least of what is there already; none where that is much."""
    figure = axes.get_figure(root=True)
    if figure is None:
        return
    to_pixels = axes.transData.transform
    size = np.array(figure.get_size_inches()) * figure.dpi
    points = to_pixels(np.column_stack([x, y]))
    boxes = [(px - 5, py - 5, px + 5, py + 5) for px, py in points if np.isfinite(px) and np.isfinite(py)]
    for r in which:
        width, height = 5.0 * len(texts[r]) * figure.dpi / 72, 9.0 * figure.dpi / 72
        best: tuple[float, float, float, tuple[float, ...]] | None = None
        for dx, dy in ((7, 4), (7, -12), (-7, 4), (-7, -12), (0, 9), (0, -17)):
            left = points[r][0] + dx - (0 if dx > 0 else width if dx < 0 else width / 2)
            low = points[r][1] + dy
            box = (left, low, left + width, low + height)
            outside = max(0.0, -box[0]) + max(0.0, box[2] - size[0])
            cost = sum(_overlap(box, other) for other in boxes) + 50 * outside
            if best is None or cost < best[0]:
                best = (cost, dx, dy, box)
        if best is None or best[0] > 0.3 * width * height:  # a name upon names says nothing
            continue
        boxes.append((best[3][0], best[3][1], best[3][2], best[3][3]))
        axes.annotate(
            texts[r],
            (x[r], y[r]),
            (best[1] * 72 / figure.dpi, best[2] * 72 / figure.dpi),
            textcoords="offset points",
            ha="left" if best[1] > 0 else "right" if best[1] < 0 else "center",
            fontsize=8,
            zorder=4,
        )


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))

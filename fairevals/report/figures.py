"""The figures of a report, apart from those of trained policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.errors import escape
from fairevals.evaluation.exposures import DocumentRow, GroupRow
from fairevals.measures import Direction
from fairevals.report.board import Board
from fairevals.report.groups import Distribution, Merits
from fairevals.report.style import COLOURS, HATCHES, INK, MARKERS, legend_below, new_figure
from fairevals.statistics.correlation import RankCorrelations
from fairevals.statistics.pairing import Paired
from fairevals.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_MEASURES = 24
"""The heat map shows at most so many measures."""
MAX_LABELS = 14
"""With more runs than this, only the front and the baseline are named in the plane."""


@contextmanager
def _panels(
    count: int,
    size: tuple[float, float],
    margin: tuple[float, float],
    xlabel: str,
    ylabel: str,
    **shared: Any,
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with `count` Axes in rows of three, labelled at its left and lower edge; places left over are empty."""
    columns = min(3, count)
    rows = -(-count // columns)
    with new_figure(margin[0] + size[0] * columns, margin[1] + size[1] * rows) as figure:
        axes = list(figure.subplots(rows, columns, squeeze=False, **shared).ravel())
        for unused in axes[count:]:
            unused.set_axis_off()
        for left in axes[:count:columns]:
            left.set_ylabel(ylabel)
        for lowest in axes[max(0, count - columns) : count]:
            lowest.set_xlabel(xlabel)
            lowest.tick_params(labelbottom=True)
        yield figure, axes[:count]


def tradeoff_figure(
    board: Board, names: Sequence[str], across: int, up: Sequence[int], kinds: Mapping[int, str]
) -> Figure:
    """One plane per measure of `up`: means with intervals, and the Pareto front; incomplete runs are hollow.

    `kinds` says which runs are "baseline" or "reference policy".
    """
    columns = min(3, len(up))
    rows = -(-len(up) // columns)
    with new_figure(4.6 * columns if columns > 1 else 6.4, 3.9 * rows) as figure:
        legend: dict[str, Any] = {}
        for number, measure in enumerate(up, 1):
            axes = figure.add_subplot(rows, columns, number)
            _plane(axes, board, names, across, measure, kinds)
            handles, texts = axes.get_legend_handles_labels()
            legend = dict(zip(texts, handles, strict=True)) | legend
        figure.legend(legend.values(), legend, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _plane(
    axes: Axes, board: Board, names: Sequence[str], across: int, up: int, kinds: Mapping[int, str]
) -> None:
    x, y = board.column(across, "value"), board.column(up, "value")
    known = np.flatnonzero(~np.isnan(x + y)).tolist()
    thin: Any = {"color": "#888888", "alpha": 0.45, "linewidth": 0.8, "zorder": 1}
    for measure, at, lines in ((across, y, axes.hlines), (up, x, axes.vlines)):
        low, high = board.column(measure, "low"), board.column(measure, "high")
        with_interval = [r for r in known if not np.isnan(low[r])]
        lines(at[with_interval], low[with_interval], high[with_interval], **thin)
    front = sorted(board.front(across, up), key=lambda r: board.entries[r][across].cost)
    axes.plot(x[front], y[front], "--", color=COLOURS[1], linewidth=1.3, label="Pareto front", zorder=2)
    lacks = board.column(across, "incomplete") + board.column(up, "incomplete") > 0
    for kind, marker, colour in (
        ("run", "o", COLOURS[0]),
        ("reference policy", "D", COLOURS[2]),
        ("baseline", "s", INK),
    ):
        for label, fill, hollow in ((kind, colour, False), (f"{kind}, incomplete", "none", True)):
            mine = [r for r in known if kinds.get(r, "run") == kind and lacks[r] == hollow]
            look: Any = {"color": colour, "markerfacecolor": fill, "markersize": 6, "zorder": 3}
            if mine:
                axes.plot(x[mine], y[mine], marker, label=label, **look)
    directions = [board.scores.measures[m].direction for m in (across, up)]
    axes.set_xlabel(f"{board.scores.measures[across]} {directions[0].arrow}")
    axes.set_ylabel(f"{board.scores.measures[up]} {directions[1].arrow}")
    axes.margins(0.12)
    _mark_best_corner(axes, *directions)
    some = [r for r in known if r in front or kinds.get(r) == "baseline"]
    place_labels(axes, x, y, names, known if len(known) <= MAX_LABELS else some)


def _mark_best_corner(axes: Axes, across: Direction, up: Direction) -> None:
    """Write "better" into the corner where both are best, unless a measure is best at a target value."""
    if across.target is None and up.target is None:
        right, top = across.word == "higher", up.word == "higher"
        text = f"better {'↗' if right and top else '↘' if right else '↖' if top else '↙'}"
        place = (0.99 if right else 0.01, 0.985 if top else 0.015)
        align: Any = {"ha": "right" if right else "left", "va": "top" if top else "bottom"}
        axes.text(*place, text, transform=axes.transAxes, color="#777777", fontsize=8, **align)


def place_labels(axes: Axes, x: Floats, y: Floats, texts: Sequence[str], which: Sequence[int]) -> None:
    """Names beside their points, each where it overlaps least; a name that would cover too much is skipped."""
    figure = axes.get_figure(root=True)
    if figure is None:
        return
    size = np.array(figure.get_size_inches()) * figure.dpi
    points = axes.transData.transform(np.column_stack([x, y]))
    boxes = [(px - 5, py - 5, px + 5, py + 5) for px, py in points if np.isfinite(px) and np.isfinite(py)]
    for r in which:
        width, height = 5.0 * len(texts[r]) * figure.dpi / 72, 9.0 * figure.dpi / 72
        places = []
        for dx, dy in ((7, 4), (7, -12), (-7, 4), (-7, -12), (0, 9), (0, -17)):
            left = points[r][0] + dx - (0 if dx > 0 else width if dx < 0 else width / 2)
            low = points[r][1] + dy
            box = (left, low, left + width, low + height)
            outside = max(0.0, -left) + max(0.0, left + width - size[0])
            places.append((sum(_overlap(box, other) for other in boxes) + 50 * outside, dx, dy, box))
        cost, dx, dy, box = min(places, key=lambda place: place[0])
        if cost > 0.3 * width * height:
            continue
        boxes.append(box)
        axes.annotate(
            texts[r],
            (x[r], y[r]),
            (dx * 72 / figure.dpi, dy * 72 / figure.dpi),
            textcoords="offset points",
            ha="left" if dx > 0 else "right" if dx < 0 else "center",
            fontsize=8,
            zorder=4,
        )


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def gains_figure(paired: Paired, run: str, baseline: str) -> Figure:
    """One bar per topic, the largest gain first; the run is better where a bar goes up."""
    gains = np.sort(paired.gains)[::-1]
    with new_figure(9.0, 3.2) as figure:
        axes = figure.add_subplot()
        for members, style, name in ((gains > 0, 0, "better"), (gains < 0, 1, "worse")):
            look: Any = {"color": COLOURS[style], "hatch": HATCHES[style], "edgecolor": "white"}
            look["linewidth"] = 0.3
            axes.bar(np.flatnonzero(members), gains[members], 0.8, label=name, **look)
        axes.axhline(0, color="#000000", linewidth=0.8)
        if gains.size:
            axes.axhline(float(gains.mean()), color="#000000", linestyle=":", linewidth=1.2, label="mean")
        axes.set_xticks([])
        axes.set(
            xlabel=f"topics, the largest gain first ({gains.size})",
            ylabel=f"gain in {paired.measure}",
            title=f"{run} against {baseline}",
        )
        axes.grid(axis="x", visible=False)
        axes.legend(frameon=False)
    return figure


def heat_map(correlations: RankCorrelations, names: Sequence[str]) -> Figure:
    """Kendall's τ between every two measures, from −1 (orange) through 0 (white) to 1 (blue)."""
    from matplotlib.colors import LinearSegmentedColormap

    count = min(len(names), MAX_MEASURES)
    tau = correlations.tau[:count, :count]
    with new_figure(2.6 + 0.62 * count, 1.9 + 0.5 * count) as figure:
        scale = LinearSegmentedColormap.from_list("tau", [COLOURS[1], "#f4f4f4", COLOURS[0]])
        axes = figure.add_subplot()
        edges = np.arange(count + 1) - 0.5
        look: Any = {"cmap": scale.with_extremes(bad="#bbbbbb"), "vmin": -1, "vmax": 1, "edgecolors": "white"}
        mesh = axes.pcolormesh(edges, edges, np.ma.masked_invalid(tau), **look)
        for (a, b), value in np.ndenumerate(tau):
            text = "–" if np.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00")
            # Not the ink of the scheme: the cell keeps its colour in the dark scheme.
            ink = "#fdfdfd" if abs(np.nan_to_num(value)) > 0.6 else "#161616"
            axes.text(b, a, text, ha="center", va="center", fontsize=8, color=ink)
        axes.set_xticks(range(count), names[:count], rotation=40, ha="right", fontsize=9)
        axes.set_yticks(range(count), names[:count], fontsize=9)
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        figure.colorbar(mesh, ax=axes, shrink=0.8).set_label("Kendall's τ")
    return figure


def ranks_figure(distributions: Sequence[Distribution]) -> Figure:
    """Stacked shares of the groups along the ranks, one Axes per run, with the target as a bar at the right."""
    ylabel = f"mean membership ({escape(distributions[0].attribute, 24)})"
    with _panels(len(distributions), (2.6, 2.9), (1.6, 0.6), "first k ranks", ylabel, sharey=True) as panels:
        figure, all_axes = panels
        for axes, distribution in zip(all_axes, distributions, strict=True):
            _stacked_shares(axes, distribution)
        handles, texts = all_axes[0].get_legend_handles_labels()
        figure.legend(handles[::-1], texts[::-1], loc="outside right center", frameon=False)
    return figure


def _stacked_shares(axes: Axes, distribution: Distribution) -> None:
    ranks = np.arange(1, distribution.achieved.shape[0] + 1)
    below, target_below = np.zeros(ranks.size), 0.0
    width = 0.1 * ranks.size
    place = ranks[-1] + 2 * width
    for g, group in enumerate(distribution.groups):
        look: Any = {"facecolor": COLOURS[g % len(COLOURS)], "hatch": HATCHES[g % len(HATCHES)]}
        look |= {"alpha": 0.75, "edgecolor": "white", "linewidth": 0.3}
        above = below + distribution.achieved[:, g]
        axes.fill_between(ranks, below, above, label=str(escape(group, 24)), **look)
        axes.bar(place, distribution.target[g], width, target_below, **look)
        below, target_below = above, target_below + float(distribution.target[g])
    ticks = [1, *[k for k in (5, 10, 20, 50, 100) if 1 < k <= ranks[-1]]]
    axes.set_xticks([*ticks, place], [*map(str, ticks), "target"])
    axes.set(ylim=(0, 1), xlim=(1, ranks[-1] + 3 * width))
    axes.set_title(str(escape(distribution.run, 28)), fontsize=10)
    axes.grid(visible=False)


def merits_figure(merits: Sequence[Merits]) -> Figure:
    """Exposure by merit, one Axes per run: thin bars hold 90 % of the documents, thick ones half."""
    texts = ("merit (the grade)", "expected exposure")
    with _panels(len(merits), (3.1, 2.7), (1.0, 0.8), *texts, sharex=True, sharey=True) as (figure, all_axes):
        for axes, one in zip(all_axes, merits, strict=True):
            low, lower, upper, high = one.quantiles.T
            thick: Any = {"linewidth": 6, "alpha": 0.65, "label": "half of them"}
            level: Any = {"markersize": 14, "markeredgewidth": 1.6, "label": "equal share among equal grades"}
            axes.vlines(one.levels, low, high, color=COLOURS[5], linewidth=1.5, label="90 % of documents")
            axes.vlines(one.levels, lower, upper, color=COLOURS[0], **thick)
            axes.plot(one.levels, one.mean, "D", color=COLOURS[1], markersize=6, label="mean", zorder=4)
            axes.plot(one.levels, one.target, "_", color="#000000", zorder=3, **level)
            ends = np.array([0.0, float(one.levels.max(initial=0.0))])
            axes.plot(ends, one.slope * ends, ":", color="#000000", label="in proportion to merit")
            axes.set_title(one.run, fontsize=10)
            axes.set_ylim(bottom=0)
            axes.margins(x=0.12)
        legend_below(figure, all_axes[0], min(5, 1 + 2 * len(merits)))
    return figure


def exposure_against_merit(rows: Sequence[DocumentRow], title: str = "", attention: str = "log2") -> Figure:
    """Each document's exposure against its merit, with the line on which exposure is in proportion to merit.

    The line has the slope Σ exposure / Σ merit: a document below it has less than its share. Vertical bars are 95 %
    intervals where the exposure was sampled.
    """
    merit, exposure, se = (
        np.array([getattr(row, name) for row in rows]) for name in ("merit", "exposure", "se")
    )
    with new_figure(6.4, 4.4) as figure:
        axes = figure.add_subplot()
        # There are few grades: spread the points a little, always in the same way, to keep them apart.
        x = merit + 0.02 * (np.ptp(merit) or 1.0) * (np.arange(merit.size) * 0.618 % 1 - 0.5)
        axes.plot(x, exposure, ".", color=COLOURS[0], alpha=0.45, markersize=5, label="document", zorder=3)
        sampled = ~np.isnan(se)
        if sampled.any():
            look: Any = {"fmt": "none", "ecolor": COLOURS[0], "alpha": 0.4, "label": "95 % interval"}
            axes.errorbar(x[sampled], exposure[sampled], 1.96 * se[sampled], **look)
        levels = np.unique(merit)
        means = [exposure[merit == level].mean() for level in levels]
        axes.plot(levels, means, "D", color=COLOURS[1], markersize=7, label="mean of a merit", zorder=4)
        if merit.sum() > 0:
            ends = np.array([0.0, merit.max()])
            slope = exposure.sum() / merit.sum()
            axes.plot(ends, slope * ends, "--", color="#444444", label="in proportion to merit")
        axes.set(xlabel="merit (function of the grade)", title=title)
        axes.set_ylabel(f"expected exposure ({attention} attention)")
        axes.set_ylim(bottom=min(0.0, float(exposure.min(initial=0))))
        axes.legend(frameon=False)
    return figure


def group_share_against_target(rows: Sequence[GroupRow], title: str = "") -> Figure:
    """Each group's mean share of exposure beside its target share (rows of topic "all"), one Axes per attribute."""
    means = [row for row in rows if row.topic == "all"]
    attributes = list(dict.fromkeys(row.attribute for row in means))
    with new_figure(1.2 + 3.6 * max(len(attributes), 1), 3.8) as figure:
        for number, attribute in enumerate(attributes):
            axes = figure.add_subplot(1, len(attributes), number + 1)
            mine = [row for row in means if row.attribute == attribute]
            place = np.arange(len(mine))
            target: Any = {"color": COLOURS[1], "markersize": 8, "label": "target"}
            axes.bar(place, [row.share for row in mine], 0.6, color=COLOURS[5], label="share of exposure")
            axes.plot(place, [row.target for row in mine], MARKERS[3], **target)
            axes.set_xticks(place, [row.group for row in mine], rotation=30, ha="right")
            axes.set(title=attribute, ylim=(0, 1), xlabel="group")
            if number == 0:
                axes.set_ylabel("share (mean over topics)")
                axes.legend(frameon=False)
        if title:
            figure.suptitle(title)
    return figure

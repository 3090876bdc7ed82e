"""The figures of a report, apart from those of trained policies."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from fairevals.errors import escape
from fairevals.evaluation.exposures import DocumentRow, GroupRow
from fairevals.evaluation.leaderboard import head
from fairevals.evaluation.scores import Scores
from fairevals.io.out import format_number, format_p
from fairevals.report.board import Board
from fairevals.report.groups import Distribution, Merits, condense
from fairevals.report.style import COLOURS, HATCHES, INK, figure_legend, filling, labels, new_figure
from fairevals.statistics.all_pairs import best_first
from fairevals.statistics.correlation import RankCorrelations
from fairevals.statistics.pairing import Paired
from fairevals.statistics.tukey import RunGroups
from fairevals.typing import Floats

if TYPE_CHECKING:
    from fairevals.statistics.power import TopicSetSize, TopicSetSizes

MAX_MEASURES = 24
"""The heat map shows at most so many measures."""
MAX_RUNS = 24
"""The matrix of all pairs shows at most so many runs, the best."""
OTHERS = ("#cccccc", "")
"""The colour and the hatch of all small groups together."""
MAX_LABELS = 14
"""With more runs than this, only the front and the baseline are named in the plane, and matrices have no numbers."""


@contextmanager
def _panels(count: int, width: float, height: float, **shared: Any) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure with `count` Axes in rows of three, each of a size in inches."""
    columns = min(3, count)
    rows = -(-count // columns)
    with new_figure(1.5 + width * columns, 0.6 + height * rows) as figure:
        axes = list(figure.subplots(rows, columns, squeeze=False, **shared).ravel())
        for unused in axes[count:]:
            unused.set_axis_off()
        yield figure, axes[:count]


def tradeoff_figure(
    board: Board, names: Sequence[str], across: int, up: Sequence[int], kinds: Mapping[int, str]
) -> Figure:
    """One plane per measure of `up`: means with intervals, and the Pareto front; incomplete runs are hollow.

    `kinds` says which runs are "baseline" or "reference policy".
    """
    with _panels(len(up), 4.2, 3.6) as (figure, planes):
        for axes, measure in zip(planes, up, strict=True):
            draw_tradeoff(axes, board, names, across, measure, kinds)
        figure_legend(figure)
    return figure


def draw_tradeoff(
    axes: Axes, board: Board, names: Sequence[str], across: int, up: int, kinds: Mapping[int, str]
) -> None:
    """The means of two measures with intervals, and the Pareto front."""
    x, y = board.column(across, "value"), board.column(up, "value")
    known = np.flatnonzero(~np.isnan(x + y)).tolist()
    thin: Any = {"color": "#888888", "alpha": 0.45, "linewidth": 0.8, "zorder": 1}
    for measure, at, lines in ((across, y, axes.hlines), (up, x, axes.vlines)):
        low, high = board.column(measure, "low"), board.column(measure, "high")
        with_interval = [r for r in known if not np.isnan(low[r])]
        lines(at[with_interval], low[with_interval], high[with_interval], **thin)
    front = sorted(board.front(across, up), key=lambda r: board.entries[r][across].cost)
    if all(board.scores.measures[m].direction.target is None for m in (across, up)):
        axes.plot(
            *staircase(x[front], y[front]), "--", color=INK, linewidth=1.1, label="Pareto front", zorder=2
        )
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
    x_name, y_name = (head(board.scores, m) for m in (across, up))
    axes.set(xlabel=x_name, ylabel=y_name)
    axes.margins(0.12)
    some = [r for r in known if len(known) <= MAX_LABELS or r in front or kinds.get(r) == "baseline"]
    place_labels(axes, x[some], y[some], [names[r] for r in some])


def staircase(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The corners of a Pareto front through points in the order of x's cost.

    A line from point to point would pass through values that no run reaches.

    >>> [steps.tolist() for steps in staircase(np.array([0.9, 0.5]), np.array([0.2, 0.6]))]
    [[0.9, 0.5, 0.5], [0.2, 0.2, 0.6]]
    """
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def place_labels(axes: Axes, x: Floats, y: Floats, texts: Sequence[str]) -> None:
    """Names beside their points; a name that would cover other names or points on every side is skipped."""
    dots = 100 / 72  # pixels for each point of the font
    axes.autoscale_view()
    points = axes.transData.transform(np.column_stack([x, y]))
    taken = [Bbox.from_bounds(px - 3, py - 3, 6, 6) for px, py in points]
    for place, text in enumerate(texts):
        width, height = 4.5 * len(text) * dots, 8.0 * dots
        for dx, dy in ((5, 2), (-5, 2), (5, -9), (-5, -9), (0, 6), (0, -14)):
            side, share = {5: ("left", 0.0), -5: ("right", 1.0), 0: ("center", 0.5)}[dx]
            left, low = points[place] + (dx * dots - share * width, dy * dots)
            box = Bbox.from_bounds(left, low, width, height)
            if not box.count_overlaps(taken):
                taken.append(box)
                look: Any = {"textcoords": "offset points", "ha": side, "fontsize": 8, "zorder": 4}
                axes.annotate(text, (x[place], y[place]), (dx, dy), **look)
                break


def gains_figure(paired: Paired, run: str, baseline: str, measure: str) -> Figure:
    """One bar per topic, the largest gain first; the run is better where a bar goes up."""
    with new_figure(9.0, 3.2) as figure:
        draw_gains(figure.add_subplot(), paired, run, baseline, measure)
    return figure


def draw_gains(axes: Axes, paired: Paired, run: str, baseline: str, measure: str) -> None:
    """One bar per topic, the largest gain first, and the mean."""
    gains = np.sort(paired.gains)[::-1]
    for members, style, name in ((gains > 0, 0, "better"), (gains < 0, 1, "worse")):
        look: Any = {"color": COLOURS[style], "hatch": HATCHES[style], "edgecolor": "white"}
        axes.bar(np.flatnonzero(members), gains[members], 0.8, label=name, linewidth=0.3, **look)
    axes.axhline(0, color="#000000", linewidth=0.8)
    if gains.size:
        axes.axhline(float(gains.mean()), color="#000000", linestyle=":", linewidth=1.2, label="mean")
    axes.set_xticks([])
    axes.set(
        xlabel=f"topics, the largest gain first ({gains.size})",
        ylabel=f"gain in {measure}",
        title=f"{run} against {baseline}",
    )
    axes.grid(axis="x", visible=False)
    axes.legend(frameon=False)


def heat_map(correlations: RankCorrelations, names: Sequence[str]) -> Figure:
    """Kendall's τ between every two measures, from −1 (orange) through 0 (white) to 1 (blue)."""
    count = min(len(names), MAX_MEASURES)
    tau = correlations.tau[:count, :count]
    texts = [["–" if np.isnan(value) else f"{value:z.2f}" for value in row] for row in tau.tolist()]
    with new_figure(2.6 + 0.62 * count, 1.9 + 0.5 * count) as figure:
        axes = figure.add_subplot()
        mesh = _draw_matrix(axes, tau, texts, names[:count])
        figure.colorbar(mesh, ax=axes, shrink=0.8).set_label("Kendall's τ")
    return figure


def _draw_matrix(axes: Axes, values: Floats, texts: Sequence[Sequence[str]], names: Sequence[str]) -> Any:
    """Coloured cells from −1 (orange) through 0 (white) to 1 (blue), NaN grey, with a text in each if there are any."""
    places = range(len(names))
    scale = LinearSegmentedColormap.from_list("signed", [COLOURS[1], "#f4f4f4", COLOURS[0]])
    look: Any = {"cmap": scale.with_extremes(bad="#bbbbbb"), "vmin": -1, "vmax": 1, "edgecolors": "white"}
    look["rasterized"] = not texts  # one image instead of very many cells
    mesh = axes.pcolormesh(places, places, np.ma.masked_invalid(values), **look)
    for (a, b), value in np.ndenumerate(values) if texts else ():
        # Not the ink of the scheme: the cell keeps its colour in the dark scheme.
        ink = readable_ink(look["cmap"]((value + 1) / 2)[:3])
        axes.text(b, a, texts[a][b], ha="center", va="center", fontsize=8, color=ink)
    axes.set_xticks(places, names, rotation=40, ha="right", fontsize=9)
    axes.set_yticks(places, names, fontsize=9)
    axes.invert_yaxis()
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return mesh


def readable_ink(background: Sequence[float]) -> str:
    """Near-black or near-white, whichever has the higher contrast (WCAG 2) on a background of red, green and blue.

    >>> readable_ink((1, 1, 1)), readable_ink((0.2, 0.4, 0.7))
    ('#161616', '#fdfdfd')
    """
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in background]
    luminance = float(np.dot((0.2126, 0.7152, 0.0722), channels))
    # Of #161616 it is 0.008, of #fdfdfd 0.98.
    return "#161616" if (luminance + 0.05) / 0.058 > 1.03 / (luminance + 0.05) else "#fdfdfd"


def pairs_figure(
    scores: Scores, groups: Sequence[RunGroups], measures: Sequence[int], alpha: float
) -> Figure:
    """Every two runs by Tukey HSD, one Axes per measure: see `draw_pairs`."""
    largest = max(min(len(groups[m].family.places), MAX_RUNS) for m in measures)
    with _panels(len(measures), 2.2 + 0.55 * largest, 1.6 + 0.42 * largest) as (figure, all_axes):
        for axes, m in zip(all_axes, measures, strict=True):
            draw_pairs(axes, scores, m, groups[m], alpha)
    return figure


def draw_pairs(axes: Axes, scores: Scores, m: int, group: RunGroups, alpha: float) -> None:
    """The runs of a family against each other, best first: the gain of the row above the diagonal, p below it.

    Pairs that differ significantly are coloured, blue where the row is better and orange where the column is. Above
    `MAX_LABELS` runs there are only colours.
    """
    order, p = best_first(scores, m, group)
    order, p = order[:MAX_RUNS], p[:MAX_RUNS, :MAX_RUNS]
    inside = [group.family.places.index(r) for r in order]
    gains = -group.tukey.differences[np.ix_(inside, inside)]  # the test is of costs
    texts = [
        [
            "" if i == j else format_number(gains[i, j], 3, "+") if i < j else format_p(p[i, j])
            for j in range(len(p))
        ]
        for i in range(len(p))
    ]
    largest = np.abs(gains).max(initial=0.0) or 1.0
    shown = np.where(p < alpha, gains / largest, np.where(np.isnan(p), np.nan, 0.0))
    names = labels([f"{scores.runs[r]} {group.letters[r]}".rstrip() for r in order], 24)
    _draw_matrix(axes, shown, texts if len(p) <= MAX_LABELS else (), names)
    axes.set_title(head(scores, m), fontsize=10)


def group_labels(distribution: Distribution) -> list[str]:
    """Short texts for the groups; longer ones for ranges of groups, which have two names."""
    return labels(distribution.groups, 40 if distribution.ordinal and max(distribution.counts) > 1 else 24)


def ranks_figure(distributions: Sequence[Distribution]) -> Figure:
    """Stacked shares of the groups along the ranks, one Axes per run, with the target as a bar at the right."""
    with _panels(len(distributions), 2.6, 2.9, sharey=True) as (figure, all_axes):
        for axes, distribution in zip(all_axes, distributions, strict=True):
            draw_ranks(axes, distribution)
        figure.supylabel(f"mean membership ({escape(distributions[0].attribute, 24)})", fontsize=10)
        figure_legend(figure, "right center", reverse=True)
    return figure


def draw_ranks(axes: Axes, distribution: Distribution) -> None:
    """Stacked shares of the groups along the ranks, and the target as a bar at the right."""
    ranks = np.arange(1, distribution.achieved.shape[0] + 1)
    width = 0.1 * ranks.size
    place = ranks[-1] + 2 * width
    names = group_labels(distribution)
    fillings = [filling(series) for series in range(len(names))]
    if len(names) < distribution.total and not distribution.ordinal:
        fillings[-1] = OTHERS
    colours, hatches = zip(*fillings, strict=True)
    look: Any = {"hatch": hatches, "alpha": 0.75, "edgecolor": "white", "linewidth": 0.3}
    axes.stackplot(ranks, distribution.achieved.T, labels=names, colors=colours, **look)
    below = np.cumsum(distribution.target) - distribution.target
    axes.bar(place, distribution.target, width, below, color=colours, **look)
    ticks = [1, *[k for k in (5, 10, 20, 50, 100) if 1 < k <= ranks[-1]]]
    axes.set_xticks([*ticks, place], [*map(str, ticks), "target"])
    axes.set(ylim=(0, 1), xlim=(1, ranks[-1] + 3 * width), xlabel="first k ranks")
    axes.set_title(str(escape(distribution.run, 28)), fontsize=10)
    axes.grid(visible=False)


def merits_figure(merits: Sequence[Merits]) -> Figure:
    """Exposure by merit, one Axes per run: thin bars hold 90 % of the documents, thick ones half."""
    with _panels(len(merits), 3.1, 2.7, sharey=True) as (figure, all_axes):
        for axes, one in zip(all_axes, merits, strict=True):
            draw_merits(axes, one)
        figure.supylabel("expected exposure", fontsize=10)
        figure_legend(figure)
    return figure


def draw_merits(axes: Axes, one: Merits) -> None:
    """Exposure by merit of one run: thin bars hold 90 % of the documents, thick ones half."""
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
    axes.set(xlabel="merit (the grade)")
    axes.set_ylim(bottom=0)
    axes.margins(x=0.12)


def exposure_against_merit(rows: Sequence[DocumentRow], title: str = "", attention: str = "log2") -> Figure:
    """Each document's exposure against its merit, with the line on which exposure is in proportion to merit.

    The line has the slope Σ exposure / Σ merit: a document below it has less than its share. Vertical bars are 95 %
    intervals where the exposure was sampled.
    """
    columns = np.array([(row.merit, row.exposure, row.se) for row in rows])
    merit, exposure, se = columns.reshape(-1, 3).T
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
    """Each group's mean share of exposure beside its target share (rows of topic "all"), one Axes per attribute.

    Of many groups the largest are shown, and the sums of all others.
    """
    means = [row for row in rows if row.topic == "all"]
    attributes = list(dict.fromkeys(row.attribute for row in means))
    with _panels(max(len(attributes), 1), 3.6, 3.2, sharey=True) as (figure, all_axes):
        for axes, attribute in zip(all_axes, attributes, strict=False):
            mine = [row for row in means if row.attribute == attribute]
            share, target = np.array([(row.share, row.target) for row in mine]).T
            names, counts, owner = condense([row.group for row in mine], np.nan_to_num(share + target))
            texts = [f"{name} ({n:,})" if n > 1 else name for name, n in zip(names, counts, strict=True)]
            place = np.arange(len(names))
            axes.bar(place, np.bincount(owner, share), 0.6, color=COLOURS[5], label="share of exposure")
            axes.plot(place, np.bincount(owner, target), "D", color=COLOURS[1], label="target")
            axes.set_xticks(place, texts, rotation=30, ha="right")
            axes.set(title=attribute, ylim=(0, 1), xlabel="group")
        figure.supylabel("share (mean over topics)", fontsize=10)
        figure_legend(figure)
        figure.suptitle(title)
    return figure


def power_figure(sizes: "TopicSetSizes") -> Figure:
    """Power against the number of topics, one Axes per measure with a variance above 0."""
    shown = [row for row in sizes.rows if row.residual_variance]
    measures = list(dict.fromkeys(row.measure for row in shown))[:MAX_MEASURES]
    with _panels(max(len(measures), 1), 3.6, 3.2, sharey=True) as (figure, all_axes):
        for axes, measure in zip(all_axes, measures, strict=False):
            draw_power(axes, [row for row in shown if row.measure == measure], sizes.label(measure))
        figure_legend(figure)
    return figure


def draw_power(axes: Axes, rows: Sequence["TopicSetSize"], title: str) -> None:
    """The power of the t-test (solid) and of ANOVA (dashed) for the differences of one measure."""
    from fairevals.statistics.power import anova_power, ttest_power  # a report does not need scipy.stats

    most = max([20, *(size for row in rows for size in (row.ttest, row.anova) if size)])
    topics = np.unique(np.geomspace(2, 2 * most, 200).round())
    for style, row in enumerate(rows):
        colour = COLOURS[style % len(COLOURS)]
        ttest = ttest_power(topics, row.difference, row.residual_variance, row.alpha)
        anova = anova_power(topics, row.difference, row.within_variance, row.systems, row.alpha)
        axes.plot(topics, ttest, color=colour, label=f"t-test, D = {row.difference:g}")
        axes.plot(topics, anova, "--", color=colour, label=f"ANOVA, D = {row.difference:g}")
    axes.axhline(rows[0].power, color=INK, linestyle=":", linewidth=1, label=f"power {rows[0].power:g}")
    axes.set(xscale="log", ylim=(0, 1.02), title=title, xlabel="topics", ylabel="power")
    axes.xaxis.set_major_formatter("{x:g}")  # powers of ten would be mathtext

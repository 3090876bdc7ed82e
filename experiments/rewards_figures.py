"""BanditRank's figure 1 and table 6: rewards along epochs, and methods with their differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from experiments.results import Drawing
from experiments.rewards_points import (
    ALONG,
    BASELINES,
    LEVEL,
    MEASURES,
    OURS,
    REWARDS,
    EpochValue,
    MethodComparison,
    ScoredPolicy,
    mean_and_deviation,
    over_seeds,
)
from fairevals.io.out import Table, format_number
from fairevals.report.style import COLOURS, INK, MARKERS, band, styled
from fairevals.training import Dataset

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {"one measure": ("R1", "R2", "R3"), "several measures": ("R4", "R5", "R6")}
"""The paper compares rewards within these kinds, so each kind has its own axes."""


def methods_table(scored: Sequence[ScoredPolicy]) -> Table:
    """The paper's table 6, one row per method: means over test topics and seeds, ± the deviation over seeds."""

    def cell(method: str, measure: str) -> str:
        mean, deviation = mean_and_deviation(over_seeds(scored, method, measure).mean(axis=1))
        return (
            format_number(mean, 3)
            if np.isnan(deviation)
            else f"{format_number(mean, 3)} ± {format_number(deviation, 3)}"
        )

    return Table(
        ("method", *MEASURES),
        tuple((method, *(cell(method, name) for name in MEASURES)) for method in (OURS, *BASELINES)),
    )


def differences_table(compared: Sequence[MethodComparison]) -> Table:
    """BanditRank minus each baseline, with both tests."""
    interval = f"{1 - LEVEL:.0%}"
    columns = ("measure", "baseline", "bandit-rank", "sd", "baseline mean", "baseline sd", "difference")
    return Table(
        (*columns, f"{interval} from", f"{interval} to", "p, t", "p, Wilcoxon"),
        tuple(
            (
                c.measure,
                c.baseline,
                *(c.ours, c.ours_sd, c.theirs, c.theirs_sd),
                *(c.difference, c.low, c.high, c.p_t, c.p_wilcoxon),
            )
            for c in compared
        ),
    )


def epochs_table(curves: Sequence[EpochValue]) -> Table:
    """The values of the rewards figure, for each seed."""
    return Table(
        ("reward", "formula", "seed", "epoch", "measure", "value"),
        tuple((a.reward, REWARDS[a.reward], a.seed, a.epoch, a.measure, a.value) for a in curves),
    )


def topics_table(scored: Sequence[ScoredPolicy], data: Dataset) -> Table:
    """The values that are tested, before the mean over seeds."""
    return Table(
        ("method", "seed", "topic", *MEASURES),
        tuple(
            (one.method, one.seed, topic, *(float(one.values[name][t]) for name in MEASURES))
            for one in scored
            for t, topic in enumerate(data.topics)
        ),
    )


def drawings(curves: Sequence[EpochValue], compared: Sequence[MethodComparison]) -> tuple[Drawing, ...]:
    """Both figures."""
    last = max(a.epoch for a in curves)
    ends = "; ".join(
        f"{name} ends at "
        + ", ".join(f"{measure} {_along(curves, name, measure)[-1][0]:.3f}" for measure in ALONG)
        for name in dict.fromkeys(a.reward for a in curves)
    )
    at_ten = "; ".join(
        f"{c.baseline} {c.difference:+.3f} (from {c.low:+.3f} to {c.high:+.3f})"
        for c in compared
        if c.measure == "nDCG@10"
    )
    return (
        Drawing.of(
            "rewards",
            rewards_figure(curves),
            f"MAP and nDCG@10 of the test topics over {last} epochs, one line per reward: {ends}.",
            "MAP and nDCG@10 on the test topics over epochs of training with each reward (γ = 1): means over seeds, "
            "with bands of one standard deviation over seeds. Epoch 0 is before training.",
        ),
        Drawing.of(
            "baselines",
            differences_figure(compared),
            f"BanditRank minus each baseline for all measures; nDCG@10: {at_ten}.",
            f"BanditRank minus each baseline on the test topics, with {1 - LEVEL:.0%} confidence intervals of the mean "
            "over topics (t), on each topic's mean over seeds. Right of the line BanditRank is better.",
        ),
    )


def _along(curves: Sequence[EpochValue], reward: str, measure: str) -> list[tuple[float, float]]:
    """Mean and deviation over seeds, epoch by epoch."""
    values: dict[int, list[float]] = {}
    for a in curves:
        if (a.reward, a.measure) == (reward, measure):
            values.setdefault(a.epoch, []).append(a.value)
    return [mean_and_deviation(values[epoch]) for epoch in sorted(values)]


def _formula(name: str) -> str:
    text = REWARDS[name].replace("(dcg='exp-log2')", "")
    text = text.replace("0.3333*", "⅓·").replace("0.5*", "½·").replace("+", " + ")
    return f"{name} = {text}"


def rewards_figure(curves: Sequence[EpochValue]) -> Figure:
    """Rewards over epochs: one row per measure, one column per kind of reward."""
    from matplotlib.figure import Figure

    known = {a.reward for a in curves}
    with styled():
        figure = Figure(figsize=(10.4, 7.2))
        grid = figure.subplots(len(ALONG), len(KINDS), sharex=True, sharey="row", squeeze=False)
        for row, measure in zip(grid, ALONG, strict=True):
            for axes, (kind, names) in zip(row, KINDS.items(), strict=True):
                for style, name in enumerate(names):
                    if name in known:
                        mean, deviation = np.array(_along(curves, name, measure)).T
                        every = max(1, mean.size // 8)
                        band(
                            axes,
                            np.arange(mean.size),
                            mean,
                            deviation,
                            style,
                            _formula(name),
                            markevery=every,
                        )
                axes.set_title(f"reward of {kind}" if measure == ALONG[0] else "")
            row[0].set_ylabel(f"{measure} on the test topics ↑")
        for axes in grid[-1]:
            axes.set_xlabel("epoch")
            if axes.lines:
                axes.legend(loc="best", frameon=False)
    return figure


def differences_figure(compared: Sequence[MethodComparison]) -> Figure:
    """One interval per measure and baseline, beside the line of no difference."""
    from matplotlib.figure import Figure

    measures = list(dict.fromkeys(c.measure for c in compared))
    with styled():
        figure = Figure(figsize=(7.4, 4.6))
        axes = figure.add_subplot()
        for style, baseline in enumerate(dict.fromkeys(c.baseline for c in compared)):
            mine = [c for c in compared if c.baseline == baseline]
            middle = np.array([c.difference for c in mine])
            around = np.nan_to_num([(c.difference - c.low, c.high - c.difference) for c in mine]).T
            height = np.array([measures.index(c.measure) for c in mine]) + 0.22 * style - 0.11
            axes.errorbar(
                middle,
                height,
                xerr=around,
                fmt=MARKERS[style],
                color=COLOURS[style],
                capsize=3,
                label=f"minus {baseline}",
            )
        axes.axvline(0, color=INK, linewidth=1)
        axes.set_yticks(range(len(measures)), measures)
        axes.invert_yaxis()
        axes.set_xlabel("difference of the measure: bandit-rank minus the baseline")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure

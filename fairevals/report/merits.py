"""Exposure against merit for several runs: how much attention documents of a merit get, and would get in proportion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.attention import parse_attention
from fairevals.collection.blocks import Requirements
from fairevals.evaluation import Collection, Plan, open_run
from fairevals.io.task import PolicySpec
from fairevals.measures.expected_exposure import target_exposure
from fairevals.measures.merit import merit
from fairevals.report.style import COLOURS, styled
from fairevals.typing import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ATTENTION, MERIT = "log2", "identity"
MOST_LEVELS = 12


@dataclass(frozen=True)
class Merits:
    """A run's exposure by merit: arrays are by level of merit."""

    run: str
    levels: Floats
    documents: tuple[int, ...]
    mean: Floats
    quantiles: Floats
    """(levels, 4): 5 %, 25 %, 75 % and 95 % of the documents have at most that exposure."""
    target: Floats
    """Mean exposure if documents of equal grade shared the ranks of an ideal order (Diaz et al. 2020)."""
    slope: float
    """Σ exposure / Σ merit: exposure for a merit of 1, were it shared in proportion; NaN where nothing has merit."""


def exposure_by_merit(
    source: Any, collection: Collection, policy: PolicySpec, cutoff: int | None = None
) -> Merits:
    """Expected exposure of all documents retrieved or judged, for each merit, over all topics with a ranking."""
    plan = Plan((), policy, collection.task.order, Requirements(None, True))
    opened, attention = open_run(source, collection, plan), parse_attention(ATTENTION)
    run, drawn = opened.run, opened.policy
    found: list[tuple[Floats, Floats, Floats]] = []
    for block in opened.blocks():
        exposure = drawn.exposure(block, attention, cutoff).value
        width = block.row.shape[1]
        weights = attention.weights(width if cutoff is None else min(width, cutoff))
        target = target_exposure(block.grades, block.present, weights)
        here = block.present & (block.retrieved > 0)[:, None]
        found.append((merit(block.grades, MERIT)[here], exposure[here], target[here]))
    merits, exposures, targets = (np.concatenate([part[i] for part in found]) for i in range(3))
    levels = np.unique(merits)
    if levels.size > MOST_LEVELS:  # real-valued grades: as many documents in each bin
        edges = np.unique(np.quantile(merits, np.linspace(0, 1, MOST_LEVELS + 1)))
        bins = np.clip(np.searchsorted(edges, merits, side="right") - 1, 0, edges.size - 2)
    else:
        bins = np.searchsorted(levels, merits)
    members = [np.flatnonzero(bins == b) for b in np.unique(bins)]
    total = float(merits.sum())
    return Merits(
        run=run.tag,
        levels=np.array([merits[m].mean() for m in members]),
        documents=tuple(m.size for m in members),
        mean=np.array([exposures[m].mean() for m in members]),
        quantiles=np.array([np.quantile(exposures[m], (0.05, 0.25, 0.75, 0.95)) for m in members]),
        target=np.array([targets[m].mean() for m in members]),
        slope=float(exposures.sum()) / total if total > 0 else float("nan"),
    )


def merits_figure(found: Sequence[Merits], title: str = "") -> Figure:
    """An axes a run: thin bars hold 90 % of the documents of a merit, thick ones half; the mean is a diamond."""
    from matplotlib.figure import Figure

    columns = min(3, len(found))
    rows = -(-len(found) // columns)
    with styled():
        figure = Figure(figsize=(1.0 + 3.1 * columns, 0.8 + 2.7 * rows))
        all_axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for number, axes in enumerate(all_axes):
            if number >= len(found):
                axes.set_axis_off()
                continue
            one = found[number]
            thin, thick = one.quantiles[:, [0, 3]], one.quantiles[:, [1, 2]]
            axes.vlines(
                one.levels, thin[:, 0], thin[:, 1], color=COLOURS[5], linewidth=1.5, label="90 % of documents"
            )
            axes.vlines(
                one.levels,
                thick[:, 0],
                thick[:, 1],
                color=COLOURS[0],
                linewidth=6,
                alpha=0.65,
                label="half of them",
            )
            axes.plot(one.levels, one.mean, "D", color=COLOURS[1], markersize=6, label="mean", zorder=4)
            axes.plot(
                one.levels,
                one.target,
                "_",
                color="#000000",
                markersize=14,
                markeredgewidth=1.6,
                label="equal share among equal grades",
                zorder=3,
            )
            ends = np.array([0.0, float(one.levels.max(initial=0.0))])
            axes.plot(ends, one.slope * ends, ":", color="#000000", label="in proportion to merit")
            axes.set_title(one.run, fontsize=10)
            axes.set_ylim(bottom=0)
            axes.margins(x=0.12)
            if number + columns >= len(found):
                axes.set_xlabel("merit (the grade)")
                axes.tick_params(labelbottom=True)
            if number % columns == 0:
                axes.set_ylabel("expected exposure")
        handles, names = all_axes[0].get_legend_handles_labels()
        figure.legend(
            handles, names, loc="outside lower center", ncols=min(5, 1 + 2 * columns), frameon=False
        )
        if title:
            figure.suptitle(title)
    return figure

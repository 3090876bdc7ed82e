"""Figures of exposure: against merit for documents, against the target for groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairevals.evaluation.exposures import DocumentRow, GroupRow
from fairevals.report.style import COLOURS, MARKERS, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def exposure_against_merit(rows: Sequence[DocumentRow], title: str = "", attention: str = "log2") -> Figure:
    """Each document's exposure against its merit, with the line on which exposure is in proportion to merit.

    The line has the slope Σ exposure / Σ merit: under it a document has less than its share. Vertical bars are
    95 % intervals where the exposure was sampled.
    """
    from matplotlib.figure import Figure

    merit = np.array([row.merit for row in rows])
    exposure = np.array([row.exposure for row in rows])
    se = np.array([row.se for row in rows])
    with styled():
        figure = Figure(figsize=(6.4, 4.4))
        axes = figure.add_subplot()
        # Grades are few: spread the points a little, always the same way, so that they do not hide each other.
        width = 0.02 * (np.ptp(merit) or 1.0)
        aside = merit + width * (np.arange(merit.size) * 0.618 % 1 - 0.5)
        sampled = ~np.isnan(se)
        axes.plot(
            aside, exposure, ".", color=COLOURS[0], alpha=0.45, markersize=5, label="document", zorder=3
        )
        if sampled.any():
            axes.errorbar(
                aside[sampled],
                exposure[sampled],
                1.96 * se[sampled],
                fmt="none",
                ecolor=COLOURS[0],
                alpha=0.4,
                label="95 % interval",
            )
        levels = np.unique(merit)
        means = [exposure[merit == level].mean() for level in levels]
        axes.plot(levels, means, "D", color=COLOURS[1], markersize=7, label="mean of a merit", zorder=4)
        if merit.sum() > 0:
            slope = exposure.sum() / merit.sum()
            ends = np.array([0.0, merit.max()])
            axes.plot(ends, slope * ends, "--", color="#444444", label="in proportion to merit")
        axes.set(
            xlabel="merit (function of the grade)",
            ylabel=f"expected exposure ({attention} attention)",
            title=title,
        )
        axes.set_ylim(bottom=min(0.0, float(exposure.min(initial=0))))
        axes.legend(frameon=False)
    return figure


def group_share_against_target(rows: Sequence[GroupRow], title: str = "") -> Figure:
    """Each group's mean share of exposure beside its target share, an axes an attribute (rows of topic "all")."""
    from matplotlib.figure import Figure

    means = [row for row in rows if row.topic == "all"]
    attributes = list(dict.fromkeys(row.attribute for row in means))
    with styled():
        figure = Figure(figsize=(1.2 + 3.6 * max(len(attributes), 1), 3.8))
        for number, attribute in enumerate(attributes):
            axes = figure.add_subplot(1, len(attributes), number + 1)
            mine = [row for row in means if row.attribute == attribute]
            place = np.arange(len(mine))
            axes.bar(place, [row.share for row in mine], 0.6, color=COLOURS[5], label="share of exposure")
            axes.plot(
                place,
                [row.target for row in mine],
                MARKERS[3],
                color=COLOURS[1],
                markersize=8,
                label="target",
            )
            axes.set_xticks(place, [row.group for row in mine], rotation=30, ha="right")
            axes.set(title=attribute, ylim=(0, 1), xlabel="group")
            if number == 0:
                axes.set_ylabel("share (mean over topics)")
                axes.legend(frameon=False)
        if title:
            figure.suptitle(title)
    return figure

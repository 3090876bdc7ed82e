"""Heat map of Kendall's τ between measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairevals.report.style import COLOURS, styled
from fairevals.statistics import RankCorrelations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 24
"""So many measures are drawn, at most."""


def heat_map(found: RankCorrelations, names: Sequence[str]) -> Figure:
    """τ between every two measures, from −1 (orange) over 0 (white) to 1 (blue), with its value."""
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    count = min(len(names), MOST)
    tau = found.tau[:count, :count]
    with styled():
        scale = LinearSegmentedColormap.from_list("tau", [COLOURS[1], "#f4f4f4", COLOURS[0]])
        colours = scale.with_extremes(bad="#bbbbbb")
        figure = Figure(figsize=(2.6 + 0.62 * count, 1.9 + 0.5 * count))
        axes = figure.add_subplot()
        edges = np.arange(count + 1) - 0.5
        mesh = axes.pcolormesh(
            edges, edges, np.ma.masked_invalid(tau), cmap=colours, vmin=-1, vmax=1, edgecolors="white"
        )
        for a in range(count):
            for b in range(count):
                value = tau[a, b]
                text = "–" if np.isnan(value) else f"{value:.2f}".replace("-0.00", "0.00")
                # Not the ink of the scheme: the cell below keeps its colour in the dark.
                dark = "#fdfdfd" if abs(np.nan_to_num(value)) > 0.6 else "#161616"
                axes.text(b, a, text, ha="center", va="center", fontsize=8, color=dark)
        axes.set_xticks(range(count), names[:count], rotation=40, ha="right", fontsize=9)
        axes.set_yticks(range(count), names[:count], fontsize=9)
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.tick_params(length=0)
        for spine in axes.spines.values():
            spine.set_visible(False)
        bar = figure.colorbar(mesh, ax=axes, shrink=0.8)
        bar.set_label("Kendall's τ")
    return figure

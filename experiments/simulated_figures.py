"""Fair-PG-Rank's figure 1, and the tables behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from experiments.curves import CurvePoint
from experiments.measuring import PARITY, TEMPERATURE
from experiments.results import Drawing
from experiments.simulated_claims import FAIR, LABELS, curve_of
from fairevals.io.out import Table
from fairevals.report.style import COLOURS, INK, MARKERS, styled
from fairevals.typing import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = LABELS | {
    TEMPERATURE: "Fair-PG-Rank, λ = 0, at higher temperatures",
    PARITY: "Fair-PG-Rank, λ = 0, with a parity offset",
}
ON_MAP = "#1a1a1a"
"""The colour of marks on the maps, which stay pale in a dark scheme too."""


def numbers(points: Sequence[CurvePoint]) -> Table:
    """Every policy."""
    return Table(
        ("method", "lambda", "draw", "nDCG", "D_group", "theta1", "theta2"),
        tuple((p.method, p.lam, p.seed, p.ndcg, p.disparity, p.theta1, p.theta2) for p in points),
    )


def tables(points: Sequence[CurvePoint]) -> tuple[tuple[str, Table], ...]:
    """Fair-PG-Rank on all draws, and the baselines."""
    head = ("draw, λ", "nDCG", "D_group", "θ1", "θ2", "θ2/θ1")
    fair = tuple(
        (f"draw {p.seed}, λ = {p.lam:g}", p.ndcg, p.disparity, p.theta1, p.theta2, p.ratio)
        for p in points
        if p.method == FAIR
    )
    rest = tuple(
        (
            f"{SHOWN.get(p.method, 'random order')}, draw {p.seed}{_at(p)}",
            p.ndcg,
            p.disparity,
        )
        for p in points
        if p.method != FAIR
    )
    return (
        ("Fair-PG-Rank", Table(head, fair)),
        ("Baselines, and a random order", Table(("method, draw, λ", "nDCG", "D_group"), rest)),
    )


def _at(p: CurvePoint) -> str:
    if p.method == TEMPERATURE:
        return f", temperature {p.lam:g}"
    return f", λ = {p.lam:g}" if p.method in LABELS else ""


def drawings(
    points: Sequence[CurvePoint], draw: int, axis: Floats, ndcg: Floats, disparity: Floats
) -> tuple[Drawing, ...]:
    """Figure 1: (a) and (b) as one figure, and (c)."""
    fair = curve_of(points, FAIR, draw)
    path = "; ".join(f"λ = {p.lam:g} at ({p.theta1:.2f}, {p.theta2:.2f})" for p in fair)
    return (
        Drawing.of(
            "plane",
            plane_figure(fair, axis, ndcg, disparity),
            f"Two maps of nDCG and D_group over the plane of θ1 and θ2, with the learned models: {path}.",
            f"nDCG and D_group of the policy with parameters (θ1, θ2) on draw {draw}; + the models that Fair-PG-Rank "
            "learned, with their λ; dotted: θ1 = θ2, the direction of the true grades.",
        ),
        Drawing.of(
            "tradeoff",
            tradeoff_figure(points, draw),
            "Curves of D_group against nDCG for Fair-PG-Rank, the linear programme and DELTR, one point per λ, and for "
            "λ = 0 at higher temperatures and with a parity offset. "
            + "; ".join(
                f"{SHOWN[m]} from nDCG {c[0].ndcg:.3f}, D_group {c[0].disparity:.4f} to "
                f"{c[-1].ndcg:.3f}, {c[-1].disparity:.4f}"
                for m in SHOWN
                if (c := curve_of(points, m, draw))
            )
            + ".",
            f"Cost and benefit of λ: one point per λ, draw {draw} thick, the other draws thin. Below and to the "
            "right is better; the vertical line is a random order. Temperatures and the parity offset are applied to "
            "the policy of λ = 0.",
        ),
    )


def plane_figure(fair: Sequence[CurvePoint], axis: Floats, ndcg: Floats, disparity: Floats) -> Figure:
    """nDCG and D_group as shades over (θ1, θ2), with the learned models."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(10.4, 4.3))
        for number, (title, values, shades) in enumerate(
            (("nDCG ↑", ndcg, "Blues"), ("D_group ↓", disparity, "Oranges")), 1
        ):
            axes = figure.add_subplot(1, 2, number)
            axes.grid(False)
            # Pale shades keep the models and their λ readable on the darkest.
            levels = np.linspace(values.min(), values.max() + 1e-12, 13)
            pale = [colormaps[shades](share) for share in np.linspace(0.05, 0.6, 12)]
            map_ = axes.contourf(axis, axis, values, levels=levels, colors=pale)
            figure.colorbar(map_, ax=axes, format="%.3f")
            axes.plot(axis, axis, ":", color=ON_MAP, linewidth=1)
            x, y = [p.theta1 for p in fair], [p.theta2 for p in fair]
            axes.plot(x, y, "-", color=ON_MAP, linewidth=0.6)
            axes.plot(x, y, "+", color=ON_MAP, markersize=9, markeredgewidth=1.8)
            for p in fair:
                axes.annotate(
                    f"λ={p.lam:g}",
                    (p.theta1, p.theta2),
                    xytext=(5, 5),
                    textcoords="offset points",
                    fontsize=8.5,
                    color=ON_MAP,
                )
            axes.set(
                xlabel="θ1", ylabel="θ2", title=title, xlim=(axis[0], axis[-1]), ylim=(axis[0], axis[-1])
            )
    return figure


def tradeoff_figure(points: Sequence[CurvePoint], draw: int) -> Figure:
    """D_group against nDCG, one line per method and draw; one draw is thick."""
    from matplotlib.figure import Figure

    draws = dict.fromkeys(p.seed for p in points)
    with styled():
        figure = Figure(figsize=(7.4, 4.6))
        axes = figure.add_subplot()
        for number, (method, label) in enumerate(SHOWN.items()):
            for each in draws:
                curve = curve_of(points, method, each)
                main = each == draw
                axes.plot(
                    [p.ndcg for p in curve],
                    [p.disparity for p in curve],
                    "-",
                    marker=MARKERS[number] if main else None,
                    color=COLOURS[number],
                    linewidth=1.8 if main else 0.7,
                    alpha=1.0 if main else 0.5,
                    label=label if main else None,
                )
        for p in points:
            if p.method == "random" and p.seed == draw:
                axes.axvline(p.ndcg, color=INK, linestyle=":", linewidth=1)
        axes.set(xlabel="nDCG ↑", ylabel="D_group ↓")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
    return figure

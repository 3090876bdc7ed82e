"""Fair-PG-Rank's figure 3, left and right, and the tables behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from experiments.german_points import COUNTED, TIES, SeriesMean, SeriesPolicy, curve_of
from experiments.measuring import PARITY, TEMPERATURE
from experiments.results import Drawing
from fairevals.io.out import Table
from fairevals.report.style import COLOURS, INK, MARKERS, band, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def numbers(policies: Sequence[SeriesPolicy]) -> Table:
    """Every policy on every seed."""
    columns = ("method", "trained with ties", "lambda", "seed", "nDCG", "above random")
    return Table(
        (*columns, "D_group", "D_group published"),
        tuple(
            (t.name, t.ties, t.lam, t.seed, t.outcome.ndcg, t.above, t.outcome.package, t.outcome.published)
            for t in policies
        ),
    )


def table(means: Sequence[SeriesMean]) -> Table:
    """The means."""
    columns = ("method", "trained with ties", "λ", "nDCG", "nDCG sd", "above random", "D_group", "D_group sd")
    return Table(
        (*columns, "D_group published", "D_group published sd"),
        tuple(
            (
                m.name,
                m.ties,
                f"T = {m.lam:g}"
                if m.name.endswith(TEMPERATURE)
                else "0"
                if m.name.endswith(PARITY)
                else f"{m.lam:g}",
                m.ndcg,
                m.ndcg_sd,
                m.above,
                *m.counted("both"),
                *m.counted("first"),
            )
            for m in means
        ),
    )


def drawings(means: Sequence[SeriesMean], labels: Mapping[str, str]) -> tuple[Drawing, ...]:
    """Figure 3; `labels` maps each series to its label, in order."""
    exact = curve_of(means, "exact", "both")
    return (
        Drawing.of(
            "lambda",
            lambda_figure(means, labels),
            "nDCG and D_group along λ for Fair-PG-Rank. Exact gradients, this package's D_group: "
            + "; ".join(f"λ = {m.lam:g}: nDCG {m.ndcg:.3f}, D_group {m.package:.5f}" for m in exact)
            + ".",
            "Fair-PG-Rank on the test queries along λ, means over seeds with bands of one standard deviation; "
            "trained for, and measured by, this package's D_group. The dotted line is a random "
            "order, whose D_group is 0.",
        ),
        Drawing.of(
            "tradeoff",
            tradeoff_figure(means, labels),
            "D_group against nDCG for Fair-PG-Rank, the linear programme, DELTR, and λ = 0 at higher temperatures and "
            "with a parity offset, D_group counted as in this package on the left and as in the published code on the "
            "right; the numbers are in the table.",
            "Cost and benefit of λ on the test queries, one point per λ; below and to the right is better. Left: "
            "D_group as this package counts it, right: as the published code does. The dotted line "
            "is a random order. Temperatures from 1 to 32, and the parity offset, are applied to policies of λ = 0.",
        ),
    )


def lambda_figure(means: Sequence[SeriesMean], labels: Mapping[str, str]) -> Figure:
    """nDCG and D_group along λ, with bands of a standard deviation."""
    from matplotlib.figure import Figure

    others = ("lp", "deltr", TEMPERATURE, PARITY)
    curves = {name: curve_of(means, name, "both") for name in labels if not name.endswith(others)}
    place = {lam: x for x, lam in enumerate(sorted({m.lam for curve in curves.values() for m in curve}))}
    with styled():
        figure = Figure(figsize=(10.4, 4.2))
        left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
        for number, (name, curve) in enumerate(curves.items()):
            x = [place[m.lam] for m in curve]
            band(left, x, [m.ndcg for m in curve], [m.ndcg_sd for m in curve], number, labels[name])
            band(right, x, [m.package for m in curve], [m.package_sd for m in curve], number, labels[name])
        _random(left, means, across=True)
        left.set_ylabel("nDCG ↑")
        right.set_ylabel("D_group ↓")
        right.set_ylim(bottom=0)
        for axes in (left, right):
            axes.set_xticks(range(len(place)), [f"{lam:g}" for lam in place])
            axes.set_xlabel("λ")
        handles, texts = left.get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=3, frameon=False)
    return figure


def _random(axes: Axes, means: Sequence[SeriesMean], across: bool) -> None:
    for m in means:
        if m.name == "random":
            line = axes.axhline if across else axes.axvline
            line(m.ndcg, color=INK, linestyle=":", linewidth=1)


def tradeoff_figure(means: Sequence[SeriesMean], labels: Mapping[str, str]) -> Figure:
    """D_group against nDCG, counted both ways."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(10.4, 4.4))
        for place, ties in enumerate(TIES, 1):
            axes = figure.add_subplot(1, 2, place)
            for number, (name, label) in enumerate(labels.items()):
                curve = curve_of(means, name, ties)
                style = {"marker": MARKERS[number], "color": COLOURS[number], "label": label}
                axes.plot([m.ndcg for m in curve], [m.counted(ties)[0] for m in curve], "-", **style)  # type: ignore[arg-type]
            _random(axes, means, across=False)
            axes.set(xlabel="nDCG ↑", ylabel="D_group ↓", title=f"D_group: {COUNTED[ties]}")
            axes.set_ylim(bottom=0)
        handles, texts = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=3, frameon=False)
    return figure

"""Fair-PG-Rank's figure 1: a feature that is missing for a minority, and policies that unlearn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.errors import UsageError
from fairevals.io.out import Table
from fairevals.measures.disparity import group_disparity
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.report.style import COLOURS, INK, MARKERS, styled
from fairevals.reproduce.curves import Point, falls, mean_ndcg, not_below, point, random_order
from fairevals.reproduce.parts import Claim, Drawing, Effort, Finding, Reproduction, Steps
from fairevals.training import Dataset, sweep
from fairevals.training.examples import simulated
from fairevals.typing import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FAIR, LP, DELTR = "fair-pg-rank", "lp", "deltr"
LABELS = {FAIR: "Fair-PG-Rank", LP: "linear programme on predicted grades", DELTR: "DELTR"}
ON_MAP = "#1a1a1a"
"""The ink upon shades, which stay pale in a dark scheme too."""
DRAWS = (1, 0, 2, 3, 4)
"""The default draw of the data set first: the figures show it."""


@dataclass(frozen=True)
class Recipe:
    """The λ of each method, and how the models are trained."""

    lambdas: dict[str, tuple[float, ...]]
    training: dict[str, Any]
    grid: int


WHOLE = Recipe(
    {
        FAIR: (0.0, 1.0, 5.0, 10.0, 25.0),
        LP: (0.0, 0.1, 0.2, 1.0, 10.0, 100.0),
        DELTR: (0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6),
    },
    {"batch": 0, "epochs": 150, "lr": 0.05, "standardise": False},
    25,
)
QUICK = Recipe(
    {FAIR: (0.0, 25.0), LP: (0.0, 100.0), DELTR: (0.0, 1e6)},
    {"batch": 0, "epochs": 25, "lr": 0.2, "standardise": False},
    6,
)


def run(files: Sequence[str], effort: Effort) -> Reproduction:
    """The whole experiment."""
    if files:
        raise UsageError("fair-pg-rank-simulated makes its own data: give no file")
    recipe = QUICK if effort.quick else WHOLE
    count = effort.choose(len(DRAWS), 2)
    draws = (*DRAWS, *range(len(DRAWS), count))[:count]
    steps = Steps(effort, len(draws) * sum(map(len, recipe.lambdas.values())) + 1)
    points: list[Point] = []
    for draw in draws:
        points += measure(simulated(seed=draw), draw, recipe, steps)
    axis, ndcg, disparity = plane(simulated(seed=draws[0]), points, recipe.grid)
    steps.step()
    return Reproduction(
        name="fair-pg-rank-simulated",
        title="A biased feature, unlearned",
        paper="Singh & Joachims: Policy Learning for Fairness in Ranking. NeurIPS 2019, section 4.2 and figure 1.",
        about=(
            "100 queries of 10 documents; a document is of the minority G1 with probability 0.2. x1 and x2 are drawn "
            "from U(0, 3), the grade is x1 + x2 clipped to 0…5, and for G1 the second feature is then put to 0. A "
            "linear model θ1·x1 + θ2·x2 is trained with exact gradients on all queries at once, for nDCG less λ times "
            "D_group.",
            "A hundred queries are few, and what is found depends on the draw. So the experiment is done on "
            f"{len(draws)} draws of the data set (seeds {', '.join(map(str, draws))}), and every claim is judged on "
            f"each of them. The figures show draw {draws[0]}, the others thin in the trade-off.",
        ),
        claims=claims(points),
        drawings=drawings(points, draws[0], axis, ndcg, disparity),
        tables=tables(points),
        numbers={
            "numbers.csv": numbers(points),
            "plane.csv": Table(
                ("theta1", "theta2", "nDCG", "D_group"),
                tuple(
                    (float(x), float(y), float(ndcg[j, i]), float(disparity[j, i]))
                    for j, y in enumerate(axis)
                    for i, x in enumerate(axis)
                ),
            ),
        },
        settings=(
            *((f"λ of {name}", ", ".join(f"{lam:g}" for lam in recipe.lambdas[name])) for name in LABELS),
            ("training", "linear model, estimator exact (DELTR: its own loss), all queries a step"),
            *((name, str(value)) for name, value in recipe.training.items()),
            ("draws", ", ".join(map(str, draws))),
            ("seed of the models", "0"),
            ("nDCG", "whole list, gain 2^g − 1; exact expectation over rankings, as is D_group"),
        ),
        notes=(
            "The paper lets the λ of the linear programme go from 0 to 0.2, where on its scale all predicted disparity "
            "is gone; with utilities 2^g − 1 of grades up to 5 that takes larger ones, which are there too.",
        ),
        quick=effort.quick,
    )


def measure(data: Dataset, draw: int, recipe: Recipe, steps: Steps) -> list[Point]:
    """All policies of a draw, and the random order."""
    found = [point(random_order(data), data, draw, "random")]
    for method, lambdas in recipe.lambdas.items():
        training = {} if method == LP else recipe.training
        for lam in lambdas:
            found.append(point(sweep(method, data, lambdas=[lam], **training)[0], data, draw))
            steps.step()
    return found


def plane(data: Dataset, points: Sequence[Point], size: int) -> tuple[Floats, Floats, Floats]:
    """θ along an axis, and nDCG and D_group (θ2, θ1) on the grid that it spans, wide enough for all learned models."""
    block = data.block(range(len(data)))
    membership = np.zeros((*block.grades.shape, 1)) if block.membership is None else block.membership
    widest = max(
        (abs(value) for p in points if p.method == FAIR for value in (p.theta1, p.theta2)), default=1.0
    )
    axis = np.linspace(0.0, max(1.0, np.ceil(widest * 1.1)), size)
    ndcg, disparity = np.empty((size, size)), np.empty((size, size))
    for j, y in enumerate(axis):
        for i, x in enumerate(axis):
            exposure = PlackettLuce(block.features @ np.array([x, y])).exposure("log2").value
            ndcg[j, i] = mean_ndcg(exposure, block)
            disparity[j, i] = np.nanmean(group_disparity(exposure, block.grades, membership))
    return axis, ndcg, disparity


def of(points: Sequence[Point], method: str, draw: int) -> list[Point]:
    """The points of a method on a draw, by λ."""
    return sorted((p for p in points if (p.method, p.seed) == (method, draw)), key=lambda p: p.lam)


def claims(points: Sequence[Point]) -> tuple[Claim, ...]:
    """The paper's claims, each judged on every draw."""
    draws = list(dict.fromkeys(p.seed for p in points))
    paper, design = "paper, section 4.2", "the published code, run again"
    ratio, cosine, stochastic, fall, start, end, lp, deltr, above, close = ([] for _ in range(10))
    for draw in draws:
        where = f"draw {draw}"
        fair = of(points, FAIR, draw)
        first, last = fair[0], fair[-1]
        ratio.append(Finding(where, f"θ2/θ1 = {first.ratio:.3f}", first.ratio > 0.6))
        cosine.append(Finding(where, f"θ2/θ1 = {last.ratio:.3f}", abs(last.ratio) < 0.1))
        lengths = [float(np.hypot(p.theta1, p.theta2)) for p in (first, last)]
        stochastic.append(
            Finding(where, f"|θ| from {lengths[0]:.2f} to {lengths[1]:.2f}", lengths[1] < lengths[0])
        )
        d = [p.disparity for p in fair]
        fall.append(Finding(where, " > ".join(f"{value:.4f}" for value in d), falls(d)))
        start.append(
            Finding(
                where,
                f"nDCG {first.ndcg:.4f}, D_group {first.disparity:.4f}",
                first.ndcg >= 0.95 and first.disparity > 0.015,
            )
        )
        end.append(
            Finding(
                where,
                f"nDCG {last.ndcg:.4f}, D_group {last.disparity:.4f}",
                last.disparity < 0.003 and abs(last.ndcg - 0.84) <= 0.03,
            )
        )
        programme, other = of(points, LP, draw), of(points, DELTR, draw)
        ends = programme[0].disparity, programme[-1].disparity
        lp.append(Finding(where, f"D_group from {ends[0]:.4f} to {ends[1]:.4f}", ends[1] > ends[0]))
        ends = other[0].disparity, min(p.disparity for p in other)
        deltr.append(
            Finding(where, f"D_group from {ends[0]:.4f} to {ends[1]:.4f} at best", ends[1] >= ends[0] / 2)
        )
        curve = [(p.disparity, p.ndcg) for p in fair]
        least = min(p.disparity for p in fair)
        for name, theirs in ((LABELS[LP], programme), (LABELS[DELTR], other)):
            better = not_below(curve, [(p.disparity, p.ndcg) for p in theirs])
            above.append(
                Finding(
                    f"{where}, {name}",
                    f"so at {sum(better)} of its {len(better)} policies whose disparity Fair-PG-Rank reaches",
                    bool(better) and all(better),
                )
            )
            lowest = min(theirs, key=lambda p: p.disparity)
            close.append(
                Finding(
                    f"{where}, {name}",
                    f"{lowest.disparity:.4f} with nDCG {lowest.ndcg:.4f}; Fair-PG-Rank {least:.4f} with "
                    f"{min(fair, key=lambda p: p.disparity).ndcg:.4f}",
                    lowest.disparity > 2 * least,
                )
            )
    return (
        Claim(
            paper,
            "For small λ, Fair-PG-Rank learns parameters along θ1 = θ2.",
            "θ2/θ1 > 0.6 at λ = 0",
            tuple(ratio),
        ),
        Claim(
            paper,
            "With more weight on fairness it discounts the biased feature: θ1 ≫ θ2.",
            "|θ2/θ1| < 0.1 at the largest λ",
            tuple(cosine),
        ),
        Claim(
            paper,
            "With increasing λ the policies become more stochastic.",
            "|θ| is less at the largest λ than at 0",
            tuple(stochastic),
        ),
        Claim(
            paper,
            "Fair-PG-Rank reduces disparity with increasing λ.",
            "D_group falls from each λ to the next",
            tuple(fall),
        ),
        Claim(
            design,
            "At λ = 0 nDCG is about .96 and D_group about .020.",
            "nDCG at least .95, D_group above .015",
            tuple(start),
        ),
        Claim(
            design,
            "At λ = 25 D_group is about .0014 and nDCG about .84.",
            "D_group below .003 and nDCG within .03 of .84 at the largest λ",
            tuple(end),
        ),
        Claim(
            paper,
            "Post-processing is misled by the predicted grades: its policies become even less fair as λ is increased.",
            "D_group of the linear programme is larger at the largest λ than at 0",
            tuple(lp),
        ),
        Claim(
            paper,
            "What DELTR optimises has little effect on disparity.",
            "the least D_group of DELTR is at least half of that at λ = 0",
            tuple(deltr),
        ),
        Claim(
            "paper, figure 1 (c)",
            "Fair-PG-Rank's trade-off is better than that of both baselines.",
            "at every D_group of a baseline that it reaches, its nDCG (between its λ linearly) is at least as high",
            tuple(above),
        ),
        Claim(
            "paper, figure 1 (c)",
            "Only Fair-PG-Rank brings disparity near 0.",
            "the least D_group of a baseline is more than twice that of Fair-PG-Rank",
            tuple(close),
        ),
    )


def numbers(points: Sequence[Point]) -> Table:
    """Every policy."""
    return Table(
        ("method", "lambda", "draw", "nDCG", "D_group", "theta1", "theta2"),
        tuple((p.method, p.lam, p.seed, p.ndcg, p.disparity, p.theta1, p.theta2) for p in points),
    )


def tables(points: Sequence[Point]) -> tuple[tuple[str, Table], ...]:
    """Fair-PG-Rank on all draws, and the baselines."""
    head = ("draw, λ", "nDCG", "D_group", "θ1", "θ2", "θ2/θ1")
    fair = tuple(
        (f"draw {p.seed}, λ = {p.lam:g}", p.ndcg, p.disparity, p.theta1, p.theta2, p.ratio)
        for p in points
        if p.method == FAIR
    )
    rest = tuple(
        (
            f"{LABELS.get(p.method, 'random order')}, draw {p.seed}"
            + (f", λ = {p.lam:g}" if p.method in LABELS else ""),
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


def drawings(
    points: Sequence[Point], draw: int, axis: Floats, ndcg: Floats, disparity: Floats
) -> tuple[Drawing, ...]:
    """Figure 1, (a) and (b) in one, and (c)."""
    fair = of(points, FAIR, draw)
    path = "; ".join(f"λ = {p.lam:g} at ({p.theta1:.2f}, {p.theta2:.2f})" for p in fair)
    return (
        Drawing.of(
            "plane",
            plane_figure(fair, axis, ndcg, disparity),
            f"Two maps of nDCG and D_group over the plane of θ1 and θ2, with the learned models: {path}.",
            f"nDCG and D_group of the policy with parameters (θ1, θ2) on draw {draw}; + the models that Fair-PG-Rank "
            "learned, with their λ; dotted: θ1 = θ2, where the true grades lie.",
        ),
        Drawing.of(
            "tradeoff",
            tradeoff_figure(points, draw),
            "Curves of D_group against nDCG for Fair-PG-Rank, the linear programme and DELTR, a point a λ. "
            + "; ".join(
                f"{LABELS[m]} from nDCG {c[0].ndcg:.3f}, D_group {c[0].disparity:.4f} to "
                f"{c[-1].ndcg:.3f}, {c[-1].disparity:.4f}"
                for m in LABELS
                if (c := of(points, m, draw))
            )
            + ".",
            f"What λ costs and buys: a point a λ, draw {draw} thick, the other draws thin. Below and to the right is "
            "better; the vertical line is a random order.",
        ),
    )


def plane_figure(fair: Sequence[Point], axis: Floats, ndcg: Floats, disparity: Floats) -> Figure:
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
            # Pale shades, so that the models and their λ can be read upon the darkest.
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


def tradeoff_figure(points: Sequence[Point], draw: int) -> Figure:
    """D_group against nDCG, a line a method; all draws, one of them thick."""
    from matplotlib.figure import Figure

    draws = dict.fromkeys(p.seed for p in points)
    with styled():
        figure = Figure(figsize=(7.4, 4.6))
        axes = figure.add_subplot()
        for number, (method, label) in enumerate(LABELS.items()):
            for each in draws:
                curve = of(points, method, each)
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

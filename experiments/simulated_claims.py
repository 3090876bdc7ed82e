"""Published claims about the simulated data, beside what was measured on every draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from experiments.curves import CurvePoint, falls, not_below
from experiments.results import Claim, Finding

FAIR, LP, DELTR = "fair-pg-rank", "lp", "deltr"
LABELS = {FAIR: "Fair-PG-Rank", LP: "linear programme on predicted grades", DELTR: "DELTR"}
PAPER, AGAIN, FIGURE = "paper, section 4.2", "the published code, run again", "paper, figure 1 (c)"


def curve_of(points: Sequence[CurvePoint], method: str, draw: int) -> list[CurvePoint]:
    """The points of a method on a draw, ordered by λ."""
    return sorted((p for p in points if (p.method, p.seed) == (method, draw)), key=lambda p: p.lam)


Look = Callable[[Sequence[CurvePoint]], tuple[str, bool]]
"""Examines the points of a method on one draw, ordered by λ: what was measured, and whether the claim holds."""


def claims(points: Sequence[CurvePoint]) -> tuple[Claim, ...]:
    """The claims, each judged on every draw."""

    def judged(source: str, text: str, rule: str, method: str, look: Look) -> Claim:
        return Claim(
            source,
            text,
            rule,
            tuple(Finding(f"draw {draw}", *look(curve_of(points, method, draw))) for draw in _draws(points)),
        )

    return (
        judged(
            PAPER,
            "For small λ, Fair-PG-Rank learns parameters along θ1 = θ2.",
            "θ2/θ1 > 0.6 at λ = 0",
            FAIR,
            lambda curve: (f"θ2/θ1 = {curve[0].ratio:.3f}", curve[0].ratio > 0.6),
        ),
        judged(
            PAPER,
            "With more weight on fairness it discounts the biased feature: θ1 ≫ θ2.",
            "|θ2/θ1| < 0.1 at the largest λ",
            FAIR,
            lambda curve: (f"θ2/θ1 = {curve[-1].ratio:.3f}", abs(curve[-1].ratio) < 0.1),
        ),
        judged(
            PAPER,
            "With increasing λ the policies become more stochastic.",
            "|θ| is smaller at the largest λ than at 0",
            FAIR,
            _more_stochastic,
        ),
        judged(
            PAPER,
            "Fair-PG-Rank reduces disparity with increasing λ.",
            "D_group falls from each λ to the next",
            FAIR,
            _disparity_falls,
        ),
        judged(
            AGAIN,
            "At λ = 0 nDCG is about .96 and D_group about .020.",
            "nDCG at least .95, D_group above .015",
            FAIR,
            lambda curve: (_reached(curve[0]), curve[0].ndcg >= 0.95 and curve[0].disparity > 0.015),
        ),
        judged(
            AGAIN,
            "At λ = 25 D_group is about .0014 and nDCG about .84.",
            "D_group below .003 and nDCG within .03 of .84 at the largest λ",
            FAIR,
            lambda curve: (
                _reached(curve[-1]),
                curve[-1].disparity < 0.003 and abs(curve[-1].ndcg - 0.84) <= 0.03,
            ),
        ),
        judged(
            PAPER,
            "Post-processing is misled by the predicted grades: its policies become even less fair "
            "as λ is increased.",
            "D_group of the linear programme is larger at the largest λ than at 0",
            LP,
            _less_fair,
        ),
        judged(
            PAPER,
            "What DELTR optimises has little effect on disparity.",
            "the smallest D_group of DELTR is at least half of that at λ = 0",
            DELTR,
            _little_effect,
        ),
        Claim(
            FIGURE,
            "Fair-PG-Rank's trade-off is better than that of both baselines.",
            "at every D_group of a baseline that it reaches, its nDCG (interpolated between λ) is at least as high",
            _against_baselines(points, _not_above),
        ),
        Claim(
            FIGURE,
            "Only Fair-PG-Rank brings disparity near 0.",
            "the smallest D_group of a baseline is more than twice that of Fair-PG-Rank",
            _against_baselines(points, _not_near_0),
        ),
    )


def _draws(points: Sequence[CurvePoint]) -> list[int]:
    return list(dict.fromkeys(p.seed for p in points))


def _reached(p: CurvePoint) -> str:
    return f"nDCG {p.ndcg:.4f}, D_group {p.disparity:.4f}"


def _more_stochastic(curve: Sequence[CurvePoint]) -> tuple[str, bool]:
    first, last = (float(np.hypot(p.theta1, p.theta2)) for p in (curve[0], curve[-1]))
    return f"|θ| from {first:.2f} to {last:.2f}", last < first


def _disparity_falls(curve: Sequence[CurvePoint]) -> tuple[str, bool]:
    disparities = [p.disparity for p in curve]
    return " > ".join(f"{value:.4f}" for value in disparities), falls(disparities)


def _less_fair(curve: Sequence[CurvePoint]) -> tuple[str, bool]:
    first, last = curve[0].disparity, curve[-1].disparity
    return f"D_group from {first:.4f} to {last:.4f}", last > first


def _little_effect(curve: Sequence[CurvePoint]) -> tuple[str, bool]:
    first, least = curve[0].disparity, min(p.disparity for p in curve)
    return f"D_group from {first:.4f} to {least:.4f} at best", least >= first / 2


def _against_baselines(
    points: Sequence[CurvePoint],
    look: Callable[[Sequence[CurvePoint], Sequence[CurvePoint]], tuple[str, bool]],
) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            f"draw {draw}, {LABELS[method]}",
            *look(curve_of(points, FAIR, draw), curve_of(points, method, draw)),
        )
        for draw in _draws(points)
        for method in (LP, DELTR)
    )


def _not_above(fair: Sequence[CurvePoint], theirs: Sequence[CurvePoint]) -> tuple[str, bool]:
    better = not_below([(p.disparity, p.ndcg) for p in fair], [(p.disparity, p.ndcg) for p in theirs])
    text = f"at {sum(better)} of its {len(better)} policies whose disparity Fair-PG-Rank reaches"
    return text, bool(better) and all(better)


def _not_near_0(fair: Sequence[CurvePoint], theirs: Sequence[CurvePoint]) -> tuple[str, bool]:
    ours, lowest = (min(curve, key=lambda p: p.disparity) for curve in (fair, theirs))
    text = (
        f"{lowest.disparity:.4f} with nDCG {lowest.ndcg:.4f}; Fair-PG-Rank {ours.disparity:.4f} with "
        f"{ours.ndcg:.4f}"
    )
    return text, lowest.disparity > 2 * ours.disparity

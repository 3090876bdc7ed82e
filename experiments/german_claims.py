"""Published claims about German Credit, beside what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from experiments.curves import not_below
from experiments.german_points import COUNTED, TIES, SeriesMean, curve_of
from experiments.results import Claim, Finding

RANDOM_NDCG = 0.6975
"""A random order's nDCG in the published code's data."""
PUBLISHED = (
    ("the published code, run again", "reinforce", 0.0, 0.816, 0.0098),
    ("the published code, run again", "reinforce", 10.0, 0.707, 0.0),
    ("the published code, run again", "reinforce", 25.0, 0.696, 0.0),
    ("exact gradients on the published data", "exact", 0.0, 0.817, 0.012),
    ("exact gradients on the published data", "exact", 25.0, 0.747, 0.0),
)
"""Source, series, λ, nDCG and D_group (the published code's) on the test queries."""

FAIR_LIMIT, ABOVE = 0.001, 0.03
"""The largest D_group of a fair policy, and by how much the nDCG of a useful one exceeds a random order's."""
OURS, PAPER = "aim of this package", "paper, section 4.3"
EXACT, BASELINES = ("exact", "exact, relative"), ("lp", "deltr")
LEARNED = (*EXACT, "reinforce")


Look = Callable[[Sequence[SeriesMean], str], tuple[str, bool]]
"""Examines a series with D_group counted in one of two ways: what was measured, and whether the claim holds."""


def claims(means: Sequence[SeriesMean]) -> tuple[Claim, ...]:
    """Published numbers and the paper's claims, judged by the means."""

    def judged(source: str, text: str, rule: str, names: Sequence[str], look: Look) -> Claim:
        findings = (
            Finding(f"{name}, {COUNTED[ties]}", *look(curve_of(means, name, ties), ties))
            for ties in TIES
            for name in names
        )
        return Claim(source, text, rule, tuple(findings))

    return (
        _random_order(means),
        *(_published(means, *one) for one in PUBLISHED),
        judged(
            PAPER,
            "Fair-PG-Rank effectively trades off nDCG and D_group.",
            f"some λ has {HALVED}",
            LEARNED,
            _from_end_to_end,
        ),
        judged(
            OURS,
            "With exact gradients a policy is fair and still useful.",
            f"some λ has D_group at most {FAIR_LIMIT} with nDCG at least {ABOVE} above a random order",
            EXACT,
            _fair_and_useful,
        ),
        judged(
            PAPER,
            "It reliably converges to solutions of similar performance over several runs.",
            "the standard deviation of nDCG over seeds is at most .02 at every λ",
            LEARNED,
            _spread,
        ),
        judged(
            PAPER,
            "The baselines fail to trade off nDCG for D_group.",
            f"no λ of theirs has {HALVED}",
            BASELINES,
            _fails,
        ),
        judged(
            OURS,
            "Exact gradients are not below reinforce.",
            "at every D_group of reinforce that exact reaches, nDCG is not lower by more than a standard deviation",
            EXACT,
            lambda curve, ties: _not_below(curve, curve_of(means, "reinforce", ties), ties),
        ),
    )


def near(published: float, mean: float, deviation: float, least: float) -> bool:
    """Whether a published number is within two standard deviations of a mean, or within `least` of it.

    >>> near(0.816, 0.82, 0.001, 0.01), near(0.816, 0.84, 0.001, 0.01), near(0.816, 0.84, 0.02, 0.01)
    (True, False, True)
    """
    return abs(published - mean) <= max(least, 2 * float(np.nan_to_num(deviation)))


def trades_off(means: Sequence[SeriesMean], ties: str) -> bool:
    """Whether some λ has at most half the D_group of λ = 0 and is still useful."""
    start = min(means, key=lambda m: m.lam)
    return any(m.counted(ties)[0] <= start.counted(ties)[0] / 2 and m.above >= ABOVE for m in means)


NEAR = "the number is within two standard deviations over seeds of the mean, or within .01 (nDCG), .001 (D_group)"
HALVED = "at most half the D_group of λ = 0 with nDCG at least .03 above a random order"


def _random_order(means: Sequence[SeriesMean]) -> Claim:
    chance = next(m for m in means if m.name == "random")
    finding = Finding(
        "random order",
        f"nDCG {chance.ndcg:.4f} ({chance.ndcg_sd:.4f})",
        near(RANDOM_NDCG, chance.ndcg, chance.ndcg_sd, 0.01),
    )
    return Claim(PUBLISHED[0][0], f"A random order has nDCG {RANDOM_NDCG}.", NEAR, (finding,))


def _published(
    means: Sequence[SeriesMean], source: str, name: str, lam: float, ndcg: float, disparity: float
) -> Claim:
    findings: tuple[Finding, ...] = ()
    for m in curve_of(means, name, "first"):
        if m.lam == lam:
            findings = (
                Finding("nDCG", f"{m.ndcg:.4f} ({m.ndcg_sd:.4f})", near(ndcg, m.ndcg, m.ndcg_sd, 0.01)),
                Finding(
                    f"D_group, {COUNTED['first']}",
                    f"{m.published:.5f} ({m.published_sd:.5f})",
                    near(disparity, m.published, m.published_sd, 0.001),
                ),
            )
    text = f"{name.capitalize()}, λ = {lam:g}: nDCG {ndcg:.3f} and D_group {disparity:.4f}."
    return Claim(source, text, NEAR, findings)


def _from_end_to_end(curve: Sequence[SeriesMean], ties: str) -> tuple[str, bool]:
    ends = (f"nDCG {m.ndcg:.3f}, D_group {m.counted(ties)[0]:.5f}" for m in (curve[0], curve[-1]))
    return " to ".join(ends), trades_off(curve, ties)


def _fair_and_useful(curve: Sequence[SeriesMean], ties: str) -> tuple[str, bool]:
    fair = [m for m in curve if m.counted(ties)[0] <= FAIR_LIMIT]
    if not fair:
        return "no λ has such a small D_group", False
    best = max(fair, key=lambda m: m.above)
    disparity = best.counted(ties)[0]
    text = f"λ = {best.lam:g}: D_group {disparity:.5f}, nDCG {best.above:.4f} above random"
    return text, best.above >= ABOVE


def _spread(curve: Sequence[SeriesMean], ties: str) -> tuple[str, bool]:
    widest = max(float(np.nan_to_num(m.ndcg_sd)) for m in curve)
    return f"at most {widest:.4f}, trained with ties {ties}", widest <= 0.02


def _fails(curve: Sequence[SeriesMean], ties: str) -> tuple[str, bool]:
    least = min(curve, key=lambda m: m.counted(ties)[0])
    text = (
        f"D_group {curve[0].counted(ties)[0]:.5f} at λ = 0; smallest {least.counted(ties)[0]:.5f} at λ = "
        f"{least.lam:g}, nDCG {least.above:.4f} above random"
    )
    return text, not trades_off(curve, ties)


def _not_below(curve: Sequence[SeriesMean], other: Sequence[SeriesMean], ties: str) -> tuple[str, bool]:
    better = not_below(
        [(m.counted(ties)[0], m.ndcg) for m in curve],
        [(m.counted(ties)[0], m.ndcg) for m in other],
        [float(np.nan_to_num(m.ndcg_sd)) for m in other],
    )
    text = f"{sum(better)} of the {len(better)} policies whose D_group it reaches, of {len(other)}"
    return text, bool(better) and all(better)

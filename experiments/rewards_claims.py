"""The BanditRank paper's claims about rewards and methods, beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments.results import Claim, Finding
from experiments.rewards_points import ALONG, LEVEL, OURS, EpochValue, MethodComparison, ScoredPolicy

REWARDS_SOURCE, METHODS_SOURCE = "paper, section 5.4", "paper, section 5.3"
FIRST, LAST = "first", "last"
NEAR = 0.02
"""How far below the best baseline BanditRank may be."""


def claims(
    curves: Sequence[EpochValue], scored: Sequence[ScoredPolicy], compared: Sequence[MethodComparison]
) -> tuple[Claim, ...]:
    """The paper's claims on rewards, on γ and on ListNet, and this package's aim."""
    return (*_of_rewards(curves), *_of_gamma(scored), *_of_methods(compared), _aim(compared))


def part_mean(curves: Sequence[EpochValue], reward: str, measure: str, seed: int, part: str) -> float:
    """The mean of a measure over the first or the last third of the epochs, without the one before training."""
    last = max((a.epoch for a in curves), default=0)
    third = max(1, last // 3)
    epochs = range(1, third + 1) if part == FIRST else range(last - third + 1, last + 1)
    values = [
        a.value
        for a in curves
        if (a.reward, a.measure, a.seed) == (reward, measure, seed) and a.epoch in epochs
    ]
    return float(np.mean(values)) if values else float("nan")


def _parts(
    curves: Sequence[EpochValue], rewards: Sequence[str], part: str
) -> list[tuple[str, dict[str, float], str]]:
    """For each measure and seed: where, the means of the rewards in a part of the epochs, and these as text."""
    parts = []
    for measure in ALONG:
        for seed in dict.fromkeys(a.seed for a in curves):
            values = {name: part_mean(curves, name, measure, seed, part) for name in rewards}
            if not np.isnan(list(values.values())).any():
                text = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
                parts.append((f"{measure}, seed {seed}", values, text))
    return parts


def _of_rewards(curves: Sequence[EpochValue]) -> list[Claim]:
    orders = (
        (
            "R1 (AP) has good measures right from the start, compared with R2 and R3.",
            ("R1", "R2", "R3"),
            FIRST,
        ),
        ("In the initial epochs R4 is clearly better than R5 and R6.", ("R4", "R5", "R6"), FIRST),
        ("In the final stages R4 is better than R5 and R6.", ("R4", "R5", "R6"), LAST),
    )
    ordered = [
        Claim(
            REWARDS_SOURCE,
            text,
            f"in the {part} third of the epochs its mean is above theirs",
            tuple(
                Finding(where, values, all(means[mine] > means[other] for other in others))
                for where, means, values in _parts(curves, (mine, *others), part)
            ),
        )
        for text, (mine, *others), part in orders
    ]
    many = Claim(
        REWARDS_SOURCE,
        "A reward of many measures (R6) does not necessarily improve MAP and nDCG@10.",
        f"in the {LAST} third of the epochs its mean is not above both R4 and R5",
        tuple(
            Finding(where, values, means["R6"] <= max(means["R4"], means["R5"]))
            for where, means, values in _parts(curves, ("R4", "R5", "R6"), LAST)
        ),
    )
    return [*ordered, many]


def _of_gamma(scored: Sequence[ScoredPolicy]) -> list[Claim]:
    best, alone = [], []
    for seed in dict.fromkeys(one.seed for one in scored if one.method == OURS):
        valid = {one.reward_weight: one.valid for one in scored if (one.method, one.seed) == (OURS, seed)}
        if {0.5, 1.0} <= set(valid):
            text = ", ".join(f"γ = {gamma:g}: {value:.4f}" for gamma, value in valid.items())
            best.append(Finding(f"seed {seed}", text, valid[0.5] == max(valid.values())))
            alone.append(Finding(f"seed {seed}", text, valid[1.0] < valid[0.5]))
    return [
        Claim(
            METHODS_SOURCE,
            "The hybrid loss is best with γ = 0.5.",
            "of all γ it has the highest reward on the validation topics",
            tuple(best),
        ),
        Claim(
            METHODS_SOURCE,
            "The reward alone (γ = 1) cannot explore efficiently.",
            "its reward on the validation topics is below that of γ = 0.5",
            tuple(alone),
        ),
    ]


def _of_methods(compared: Sequence[MethodComparison]) -> list[Claim]:
    listnet = [c for c in compared if c.baseline == "listnet"]
    return [
        Claim(
            METHODS_SOURCE,
            "BanditRank clearly outperforms ListNet.",
            "its mean over test topics and seeds is higher",
            tuple(Finding(c.measure, f"{c.ours:.4f} and {c.theirs:.4f}", c.difference > 0) for c in listnet),
        ),
        Claim(
            METHODS_SOURCE,
            "The improvement is statistically significant by both tests.",
            f"it is higher, and both p-values are below {LEVEL}",
            tuple(
                Finding(
                    c.measure,
                    f"difference {c.difference:+.4f}, p = {c.p_t:.3f} (t), {c.p_wilcoxon:.3f} (Wilcoxon)",
                    c.difference > 0 and c.significant,
                )
                for c in listnet
            ),
        ),
    ]


def _aim(compared: Sequence[MethodComparison]) -> Claim:
    at_ten = [c for c in compared if c.measure == "nDCG@10"]
    best = max(at_ten, key=lambda c: c.theirs, default=None)
    return Claim(
        "aim of this package",
        "BanditRank is not far below the best baseline.",
        f"its nDCG@10 is at most {NEAR} below the better of ridge and ListNet",
        ()
        if best is None
        else (
            Finding(
                best.measure,
                f"{best.ours:.4f}, {best.baseline} {best.theirs:.4f}, difference {best.difference:+.4f} "
                f"({1 - LEVEL:.0%} from {best.low:+.4f} to {best.high:+.4f})",
                best.difference >= -NEAR,
            ),
        ),
    )

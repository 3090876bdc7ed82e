"""Policies on German Credit's test queries: one per seed, and their means over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.measuring import Outcome

TIES = ("both", "first")
"""How training counts ties in merit: as this package does, or as the published code does (see `Outcome`)."""
COUNTED = {"both": "this package's", "first": "the published code's"}


@dataclass(frozen=True)
class SeriesPolicy:
    """A policy of a series on the test queries of a seed, with the nDCG of a random order (`chance`) beside it."""

    name: str
    ties: str
    lam: float
    seed: int
    outcome: Outcome
    chance: float

    @property
    def above(self) -> float:
        """nDCG minus that of a random order."""
        return self.outcome.ndcg - self.chance


@dataclass(frozen=True)
class SeriesMean:
    """Means and standard deviations over seeds of the policies of a series at a λ."""

    name: str
    ties: str
    lam: float
    ndcg: float
    ndcg_sd: float
    above: float
    package: float
    package_sd: float
    published: float
    published_sd: float

    def counted(self, ties: str) -> tuple[float, float]:
        """D_group counted in this way, and its standard deviation."""
        return (self.package, self.package_sd) if ties == "both" else (self.published, self.published_sd)


def summarise(policies: Sequence[SeriesPolicy]) -> list[SeriesMean]:
    """Means and standard deviations over seeds, in the order of the policies."""
    grouped: dict[tuple[str, str, float], list[SeriesPolicy]] = {}
    for one in policies:
        grouped.setdefault((one.name, one.ties, one.lam), []).append(one)
    means = []
    for (name, ties, lam), ones in grouped.items():
        values = np.array([(o.outcome.ndcg, o.outcome.package, o.outcome.published, o.above) for o in ones])
        ndcg, package, published, above = values.mean(axis=0).tolist()
        sd = values.std(axis=0, ddof=1).tolist() if len(ones) > 1 else [float("nan")] * 4
        means.append(SeriesMean(name, ties, lam, ndcg, sd[0], above, package, sd[1], published, sd[2]))
    return means


def curve_of(means: Sequence[SeriesMean], name: str, ties: str) -> list[SeriesMean]:
    """The means of a series ordered by λ; a series trained with one way of counting stands for both."""
    mine = [m for m in means if m.name == name]
    ways = {m.ties for m in mine}
    return sorted((m for m in mine if m.ties == ties or len(ways) == 1), key=lambda m: m.lam)

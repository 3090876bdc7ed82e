"""Policies on German Credit's test queries: one a seed, and their means over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.reproduce.curves import exposures, mean_ndcg
from fairevals.measures.disparity import TIE, group_disparity
from fairevals.training import Batch, Dataset, TrainedPolicy
from fairevals.training.data import no_groups
from fairevals.training.disparities import group_with_gradient
from fairevals.typing import Floats

TIES = ("both", "first")
"""The two D_group: this package's, and that of the published code (see `Reached`), by the ties that training counts."""
COUNTED = {"both": "this package's", "first": "the published code's"}


@dataclass(frozen=True)
class Reached:
    """nDCG on some queries, and D_group counted in two ways.

    This package takes the mean over the queries on which D_group is defined, and where two groups have the same
    merit counts a violation of either. The published code counts 0 where it is undefined, and where merits are the
    same only what the group named first (men) gets too much.
    """

    ndcg: float
    package: float
    published: float

    @classmethod
    def by(cls, policy: TrainedPolicy, data: Dataset) -> Reached:
        """What a policy reaches, exactly."""
        block, membership = _with_groups(data)
        exposure = exposures(policy, data)
        package = group_disparity(exposure, block.grades, membership)
        published = group_with_gradient(exposure, block.grades, membership, "first")[0]
        return cls(mean_ndcg(exposure, block), float(np.nanmean(package)), float(published.mean()))


@dataclass(frozen=True)
class Trained:
    """A policy of a series, trained with ties counted so, on the test queries of a seed; and a random order's nDCG."""

    name: str
    ties: str
    lam: float
    seed: int
    reached: Reached
    chance: float

    @property
    def above(self) -> float:
        """How much nDCG is above a random order's."""
        return self.reached.ndcg - self.chance


@dataclass(frozen=True)
class Mean:
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
        """D_group that goes with these ties, and its standard deviation."""
        return (self.package, self.package_sd) if ties == "both" else (self.published, self.published_sd)


def summarise(found: Sequence[Trained]) -> list[Mean]:
    """Means and standard deviations over seeds, in the order of the policies."""
    grouped: dict[tuple[str, str, float], list[Trained]] = {}
    for one in found:
        grouped.setdefault((one.name, one.ties, one.lam), []).append(one)
    means = []
    for (name, ties, lam), ones in grouped.items():
        values = np.array([(o.reached.ndcg, o.reached.package, o.reached.published, o.above) for o in ones])
        ndcg, package, published, above = values.mean(axis=0).tolist()
        sd = values.std(axis=0, ddof=1).tolist() if len(ones) > 1 else [float("nan")] * 4
        means.append(Mean(name, ties, lam, ndcg, sd[0], above, package, sd[1], published, sd[2]))
    return means


def of(means: Sequence[Mean], name: str, ties: str) -> list[Mean]:
    """The means of a series, by λ; a series that was trained in one way is there for both."""
    mine = [m for m in means if m.name == name]
    ways = {m.ties for m in mine}
    return sorted((m for m in mine if m.ties == ties or len(ways) == 1), key=lambda m: m.lam)


def tied(data: Dataset) -> tuple[int, int, int]:
    """Queries whose two groups have the same mean merit, queries on which D_group is defined, and all."""
    block, membership = _with_groups(data)
    total = np.einsum("td,tdg->tg", block.grades, membership)
    mean = total / np.maximum(membership.sum(axis=1), 1.0)
    defined = (total > 0).all(axis=1)
    same = np.abs(mean[:, 0] - mean[:, 1]) <= TIE * mean.max(axis=1)
    return int(np.count_nonzero(defined & same)), int(np.count_nonzero(defined)), len(data)


def _with_groups(data: Dataset) -> tuple[Batch, Floats]:
    block = data.block(range(len(data)))
    if block.membership is None:
        raise no_groups("D_group")
    return block, block.membership

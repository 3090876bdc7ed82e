"""Group fairness and relevance in one number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from fairevals.collection import Ranked
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER, RankingMeasure, param, unit
from fairevals.measures.divergences import DIVERGENCES
from fairevals.measures.err import ERR, IRBU
from fairevals.measures.gf import GF
from fairevals.typing import Floats


def weighted_mean(values: Iterable[Floats], weights: Iterable[Floats | float]) -> Floats:
    """Σ_m w_m·value_m/Σ_m w_m over the components m of each ranking.

    A component of weight 0 is left out even where its value is NaN; NaN where all are.

    >>> weighted_mean([np.array([0.5, 0.5]), np.array([0.9, np.nan])], [1.0, np.array([3.0, 0.0])])
    array([0.8, 0.5])
    """
    total: Floats = np.zeros(())
    weight_of_all: Floats = np.zeros(())
    for value, weight in zip(values, weights, strict=True):
        total = total + np.where(np.not_equal(weight, 0), weight * value, 0.0)
        weight_of_all = weight_of_all + weight
    shape = np.broadcast_shapes(np.shape(total), np.shape(weight_of_all))
    known = np.broadcast_to(weight_of_all != 0, shape)
    mean: Floats = np.divide(total, weight_of_all, out=np.full(shape, np.nan), where=known)
    return mean


@dataclass(frozen=True)
class GFR(RankingMeasure):
    """The weighted mean of a utility and of GF for every attribute that applies to the topic.

    The weights are the task's (`utility_weight`, and each attribute's `weight`); with equal ones it is the
    plain mean. `div` replaces the divergence of ordinal attributes; nominal ones keep their own. A topic to which
    no attribute applies has the utility alone. Undefined where GF is undefined for an attribute that applies.
    """

    name = "GFR"
    direction = HIGHER
    formula = "(w_0·util + Σ_A w_A·GF(A)) / (w_0 + Σ_A w_A), A the attributes that apply to the topic"
    source = (
        "Sakai, Kim, Kang: A versatile framework for evaluating ranked lists in terms of group fairness "
        "and relevance. TOIS 2023"
    )
    attributes = "all"
    missing = 0.0

    # None means ERR, so that a printed name always shows the utility.
    util: str | None = param(None, "the utility: 'ERR' (if not given) or 'iRBU'", choices=("ERR", "iRBU"))
    phi: float = param(0.99, "persistence of iRBU, a number in [0, 1]", check=unit)
    div: str | None = param(
        None,
        "the divergence of ordinal attributes; None: each attribute's own in the task",
        choices=(None, *DIVERGENCES),
    )

    def __post_init__(self) -> None:
        if self.util is None:
            object.__setattr__(self, "util", "ERR")
        super().__post_init__()
        if self.util == "ERR" and self.phi != type(self).phi:
            raise UsageError(f"GFR: phi={self.phi!r} is iRBU's; it needs util='iRBU'")

    def components(self, ordinal: Mapping[str, bool]) -> tuple[RankingMeasure, ...]:
        """What it is the mean of: the utility, then GF for each attribute, all at its own cutoff.

        `ordinal` says of each attribute whether it is ordinal; the divergence `div` is used for those only.

        >>> gfr = GFR(util="ERR", div="NMD", cutoff=20)
        >>> [str(c) for c in gfr.components({"HINDEX": True, "GENDER": False})]
        ['ERR@20', "GF(attr='HINDEX',div='NMD')@20", "GF(attr='GENDER')@20"]
        """
        utility: RankingMeasure
        utility = ERR(cutoff=self.cutoff) if self.util == "ERR" else IRBU(phi=self.phi, cutoff=self.cutoff)
        fairness = (
            GF(attr=name, div=self.div if ordered else None, cutoff=self.cutoff)
            for name, ordered in ordinal.items()
        )
        return (utility, *fairness)

    def of_ranking(self, ranked: Ranked) -> Floats:
        names = sorted(ranked.attributes)  # a sum in another order differs in the last bit
        weights = [
            np.where(attribute.applies, attribute.weight, 0.0) for attribute in map(ranked.attribute, names)
        ]
        components = self.components({name: ranked.attribute(name).ordinal for name in names})
        values = (component.of_ranking(ranked) for component in components)
        return weighted_mean(values, [ranked.utility_weight, *weights])

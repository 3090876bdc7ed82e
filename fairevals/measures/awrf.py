"""Attention-weighted rank fairness, and TREC Fair Ranking's product of it with nDCG."""

import math
from dataclasses import dataclass

import numpy as np

from fairevals.collection import Exposed
from fairevals.measures.base import (
    HIGHER,
    CompositeMeasure,
    ExposureMeasure,
    WithAttention,
    attention_param,
    attr_param,
    param,
)
from fairevals.measures.divergences import jensen_shannon_divergence
from fairevals.measures.group_sums import group_sums, spread
from fairevals.measures.ndcg import NDCG
from fairevals.measures.numeric import divide, rank_sum
from fairevals.measures.shares import shares_of_sum
from fairevals.typing import Floats


def attention_weighted_rank_fairness(
    exposure: Floats, membership: Floats, target: Floats, base: str = "2"
) -> Floats:
    """AWRF = 1 − JSD(exposure share of groups, target).

    `exposure` is (…, document), `membership` (…, document, group), `target` (…, group). Documents without
    membership take no part in the shares. NaN where no group has exposure. With base 2 it lies in [0, 1]; with
    base e, as in TREC 2021's and 2022's code, AWRF is at least 1 − ln 2 ≈ 0.307.

    >>> hard = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> worst = attention_weighted_rank_fairness(np.array([1.0, 0.0]), hard, np.array([0.0, 1.0]), base="e")
    >>> round(float(worst), 4)
    0.3069
    """
    return _fairness_of_sums(group_sums(exposure, membership), target, base)


def _fairness_of_sums(sums: Floats, target: Floats, base: str) -> Floats:
    divergence = jensen_shannon_divergence(shares_of_sum(sums), target)
    return 1 - divergence * (math.log(2) if base == "e" else 1.0)


@dataclass(frozen=True)
class AWRF(ExposureMeasure):
    """How near the groups' shares of exposure are to the target.

    Undefined on a topic where no document with a membership has exposure, or the attribute does not apply.
    """

    name = "AWRF"
    direction = HIGHER
    formula = "1 − JSD(exposure share of groups, target); base='e': JSD in nats, as in TREC 2021 and 2022"
    source = (
        "Sapiezynski, Zeng, Robertson, Mislove, Wilson: Quantifying the impact of user attention on fair "
        "group representation in ranked lists. WWW Companion 2019; Ekstrand, McDonald, Raj, Johnson: "
        "Overview of the TREC 2021 Fair Ranking track"
    )
    attributes = "one"

    attr: str = attr_param()
    base: str = param("2", "base of the divergence's logarithm", choices=("2", "e"))

    def of_exposure(self, exposed: Exposed) -> Floats:
        attribute = exposed.attribute(self.attr)
        sums = group_sums(exposed.exposure, *attribute.factors)
        return np.where(attribute.applies, _fairness_of_sums(sums, attribute.target, self.base), np.nan)

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """AWRF and ∂AWRF/∂ε. The slope at a share of 0 is infinite: shares below 1e-12 have the slope there."""
        attribute = exposed.attribute(self.attr)
        sums = group_sums(exposed.exposure, *attribute.factors)
        total = rank_sum(sums)[..., None]
        share = np.maximum(shares_of_sum(sums), 1e-12)
        # ∂JSD/∂share = log2(share/mean)/2, and ∂share_g/∂sum_h = ([g = h] − share_g)/total.
        slope = np.log2(2 * share / (share + attribute.target)) / 2
        slope = -(slope - rank_sum(share * slope)[..., None]) * (math.log(2) if self.base == "e" else 1.0)
        defined = (total > 0) & attribute.applies[..., None] & ~np.isnan(slope)
        by_group = divide(slope, total, defined, otherwise=0.0)
        return self.of_exposure(exposed), spread(by_group, *attribute.factors)


@dataclass(frozen=True)
class M1(WithAttention, CompositeMeasure):
    """TREC Fair Ranking's score of a ranking: nDCG times AWRF, at one cutoff.

    Undefined where either is. `attention` discounts the ranks of both. TREC's own numbers have
    attention='trecfair', grades of 0 and 1, and base e.
    """

    name = "M1"
    direction = HIGHER
    formula = "nDCG·AWRF"
    source = "Ekstrand, McDonald, Raj, Johnson: Overview of the TREC 2021 Fair Ranking track"
    attributes = "one"

    attr: str = attr_param()
    attention: str | tuple[float, ...] = attention_param("attention model of both, such as 'trecfair'")
    base: str = param("2", "base of AWRF's logarithm", choices=("2", "e"))
    dcg: str = param("log2", "gain of a grade in nDCG: g, or 2^g−1", choices=("log2", "exp-log2"))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parts()  # an attention that cannot be parsed is an error now

    def parts(self) -> tuple[NDCG, AWRF]:
        return (
            NDCG(dcg=self.dcg, attention=self.attention, cutoff=self.cutoff),
            AWRF(attr=self.attr, attention=self.attention, base=self.base, cutoff=self.cutoff),
        )

    def combine(self, values: tuple[Floats, ...]) -> Floats:
        ndcg, awrf = values
        return ndcg * awrf

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """M1 and ∂M1/∂ε, by the product rule."""
        (ndcg, by_ndcg), (awrf, by_awrf) = (part.value_and_gradient(exposed) for part in self.parts())
        gradient = awrf[..., None] * by_ndcg + ndcg[..., None] * by_awrf
        value = ndcg * awrf
        return value, np.where(np.isnan(value)[..., None], 0.0, gradient)

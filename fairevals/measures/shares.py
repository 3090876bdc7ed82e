"""Shares of exposure: inequity of attention (IAA), and the share of unjudged documents (Unjudged)."""

from dataclasses import dataclass

import numpy as np

from fairevals.collection import Exposed, ExposedTopics
from fairevals.measures.base import LOWER, ExposureMeasure, param
from fairevals.measures.merits import merit, merit_param
from fairevals.measures.numeric import absolute, divide, rank_sum
from fairevals.typing import Bools, Floats


def shares_of_sum(values: Floats) -> Floats:
    """Each document's part of the sum over the last axis; NaN throughout where the sum is 0.

    >>> shares_of_sum(np.array([[1.0, 3.0], [0.0, 0.0]]))
    array([[0.25, 0.75],
           [ nan,  nan]])
    """
    total = rank_sum(values)[..., None]
    return divide(values, total, total > 0)


def inequity_of_attention(exposure: Floats, merits: Floats) -> Floats:
    """IAA = Σ_d |exposure share − merit share| over the last axis, in [0, 2]; NaN without exposure or merit.

    See Biega et al., SIGIR 2018, where attention and relevance are summed over a sequence of rankings; here
    the expectation under the policy takes the place of that sum.

    >>> float(inequity_of_attention(np.array([0.5, 0.5, 0.0]), np.array([1.0, 0.0, 1.0])))
    1.0
    """
    value = rank_sum(np.abs(shares_of_sum(exposure) - shares_of_sum(merits)))
    # A topic without documents has no NaN to sum.
    return np.where((rank_sum(exposure) > 0) & (rank_sum(merits) > 0), value, np.nan)


@dataclass(frozen=True)
class IAA(ExposureMeasure):
    """How far the documents' shares of exposure are from their shares of merit.

    With amortised=True both shares are first averaged over the topics, so that a document (the same by its id) may get
    on one topic what it lacks on another; the value is one for the run, and never above the mean over topics. Undefined
    on a topic without exposure or without merit.
    """

    name = "IAA"
    direction = LOWER
    formula = "Σ_d |ε_d/Σε − M_d/ΣM|"
    source = (
        "Biega, Gummadi, Weikum: Equity of attention: amortizing individual fairness in rankings. SIGIR 2018"
    )

    merit: str = merit_param()
    amortised: bool = param(False, "average the shares over the topics first", choices=(False, True))

    @property
    def across_topics(self) -> bool:
        return self.amortised

    def topics_used(self, exposed: ExposedTopics) -> Bools:
        sums = (exposed.sum_by_topic(v) for v in (exposed.exposure, merit(exposed.grades, self.merit)))
        return super().topics_used(exposed) & np.logical_and(*(each > 0 for each in sums))

    def of_topics(self, exposed: ExposedTopics, weights: Floats) -> Floats:
        exposure, merits = (
            weights @ exposed.by_document(values / exposed.sum_by_topic(values)[exposed.topic])
            for values in (exposed.exposure, merit(exposed.grades, self.merit))
        )
        return inequity_of_attention(exposure, merits)

    def of_exposure(self, exposed: Exposed) -> Floats:
        return inequity_of_attention(exposed.exposure, merit(exposed.grades, self.merit))

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """IAA and ∂IAA/∂ε; 0 at the kinks, where the shares are equal."""
        return self.of_exposure(exposed), self.smoothed(exposed, 0.0)[1]

    def smoothed(self, exposed: Exposed, smoothing: float) -> tuple[Floats, Floats]:
        share = shares_of_sum(exposed.exposure)
        distance, sign = absolute(share - shares_of_sum(merit(exposed.grades, self.merit)), smoothing)
        slope = sign - rank_sum(sign * share)[..., None]
        total, defined = rank_sum(exposed.exposure)[..., None], ~np.isnan(slope) & exposed.present
        return rank_sum(distance), divide(slope, total, defined, otherwise=0.0)


@dataclass(frozen=True)
class Unjudged(ExposureMeasure):
    """How much of the attention goes to documents that nobody judged.

    Measures that take means over the judged documents cannot see that attention, and all others treat those documents
    as not relevant. Undefined on a topic without exposure.
    """

    name = "Unjudged"
    direction = LOWER
    formula = "Σ ε_d over unjudged documents / Σ ε_d over all"
    source = "MacAvaney, Macdonald, Ounis: Streamlining evaluation with ir-measures. ECIR 2022 (as Judged@K)"

    def of_exposure(self, exposed: Exposed) -> Floats:
        total = rank_sum(exposed.exposure)
        return divide(rank_sum(exposed.exposure * ~exposed.judged), total, total > 0)

"""Measures of a cascading user, who stops at the first satisfying document: ERR and iRBU."""

from dataclasses import dataclass

import numpy as np

from fairevals.collection import Ranked
from fairevals.measures.base import HIGHER, RankingMeasure, param, unit
from fairevals.measures.numeric import rank_sum
from fairevals.typing import Floats


def stop_probabilities(grades: Floats, max_grade: float) -> Floats:
    """The probability w_k that a cascading user stops at rank k: s_k·Π_{j<k}(1−s_j), s_k=(2^{g_k}−1)/2^G.

    `grades` is (…, rank), at least 0; G is `max_grade`. See Chapelle et al., CIKM 2009.

    >>> stop_probabilities(np.array([2.0, 0.0, 1.0]), 2)
    array([0.75  , 0.    , 0.0625])
    """
    # (2^g − 1)/2^G, written so that large grades do not overflow.
    satisfied: Floats = np.exp2(grades - max_grade) - np.exp2(-float(max_grade))
    reached = np.ones_like(satisfied)
    np.cumprod(1 - satisfied[..., :-1], axis=-1, out=reached[..., 1:])
    return satisfied * reached


def expected_reciprocal_rank(grades: Floats, max_grade: float) -> Floats:
    """ERR = Σ_k w_k/k over the last axis; 0 for a ranking without relevant documents.

    >>> round(float(expected_reciprocal_rank(np.array([2.0, 0.0, 1.0]), 2)), 4)  # FairWeb-1's worked example
    0.7708
    """
    ranks = np.arange(1, grades.shape[-1] + 1)
    return rank_sum(stop_probabilities(grades, max_grade) / ranks)


@dataclass(frozen=True)
class ERR(RankingMeasure):
    """Expected reciprocal rank with the task's own max grade (ir-measures' ERR fixes it at 4)."""

    name = "ERR"
    direction = HIGHER
    formula = "Σ_k w_k/k, w_k = s_k·Π_{j<k}(1−s_j), s_k = (2^{g_k}−1)/2^G, G the task's max grade"
    source = "Chapelle, Metzler, Zhang, Grinspan: Expected reciprocal rank for graded relevance. CIKM 2009"
    missing = 0.0

    def of_ranking(self, ranked: Ranked) -> Floats:
        return expected_reciprocal_rank(ranked.cut(self.cutoff).grades, ranked.max_grade)


def intentwise_rank_biased_utility(grades: Floats, max_grade: float, phi: float = 0.99) -> Floats:
    """iRBU = Σ_k w_k·phi^k over the last axis, w_k as in ERR; 0 for a ranking without relevant documents.

    >>> value = intentwise_rank_biased_utility(np.array([2.0, 0.0, 1.0]), 2)  # FairWeb-1's worked example
    >>> round(float(value), 4)
    0.8031
    """
    ranks = np.arange(1, grades.shape[-1] + 1)
    return rank_sum(stop_probabilities(grades, max_grade) * np.power(float(phi), ranks))


@dataclass(frozen=True)
class IRBU(RankingMeasure):
    """The utility part of rank-biased utility for one intent: each rank that the user looks at costs a share 1−phi."""

    name = "iRBU"
    direction = HIGHER
    formula = "Σ_k w_k·phi^k, w_k as in ERR"
    source = (
        "Amigó, Spina, Carrillo-de-Albornoz: An axiomatic analysis of diversity evaluation metrics. SIGIR 2018; "
        "Sakai, Zeng: Retrieval evaluation measures that agree with users' SERP preferences. TOIS 2021"
    )
    missing = 0.0

    phi: float = param(0.99, "persistence, a number in [0, 1]", check=unit)

    def of_ranking(self, ranked: Ranked) -> Floats:
        return intentwise_rank_biased_utility(ranked.cut(self.cutoff).grades, ranked.max_grade, self.phi)

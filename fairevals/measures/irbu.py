"""Intentwise rank-biased utility."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.collection import Ranked
from fairevals.measures.base import HIGHER, RankingMeasure, param, rank_sum, unit
from fairevals.measures.err import stop_probabilities
from fairevals.typing import Floats


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
    """The utility part of rank-biased utility for one intent: the effort to the stop costs 1−phi a rank.

    >>> str(IRBU(phi=0.9, cutoff=20))
    'iRBU(phi=0.9)@20'
    """

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

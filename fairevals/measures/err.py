"""Expected reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.collection import Ranked
from fairevals.measures.base import HIGHER, RankingMeasure, rank_sum
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
    """Expected reciprocal rank with the task's own max grade (ir-measures' ERR fixes it at 4).

    >>> str(ERR(cutoff=20))
    'ERR@20'
    """

    name = "ERR"
    direction = HIGHER
    formula = "Σ_k w_k/k, w_k = s_k·Π_{j<k}(1−s_j), s_k = (2^{g_k}−1)/2^G, G the task's max grade"
    source = "Chapelle, Metzler, Zhang, Grinspan: Expected reciprocal rank for graded relevance. CIKM 2009"
    missing = 0.0

    def of_ranking(self, ranked: Ranked) -> Floats:
        return expected_reciprocal_rank(ranked.cut(self.cutoff).grades, ranked.max_grade)

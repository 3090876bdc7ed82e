"""Reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.collection import Ranked
from fairevals.measures.base import HIGHER, RankingMeasure, param, positive
from fairevals.typing import Array, Floats


def reciprocal_rank(relevant: Array) -> Floats:
    """1/k at the first relevant rank k, 0 without one.

    >>> reciprocal_rank(np.array([[False, True], [False, False]]))
    array([0.5, 0. ])
    """
    if relevant.shape[-1] == 0:
        return np.zeros(relevant.shape[:-1])
    value: Floats = relevant.any(axis=-1) / (1.0 + np.argmax(relevant, axis=-1))
    return value


@dataclass(frozen=True)
class RR(RankingMeasure):
    """Reciprocal rank of the first relevant document; 0 if there is none, found or at all.

    >>> str(RR(cutoff=10))
    'RR@10'
    """

    name = "RR"
    direction = HIGHER
    formula = "1/k, k ≤ K the first rank with g_k ≥ rel; 0 without one"
    source = "Kantor, Voorhees: The TREC-5 confusion track. Information Retrieval 2000"
    missing = 0.0

    rel: float = param(1, "the least grade that counts as relevant, above 0", check=positive)

    def of_ranking(self, ranked: Ranked) -> Floats:
        return reciprocal_rank(ranked.cut(self.cutoff).grades >= self.rel)

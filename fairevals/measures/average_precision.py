"""Average precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.collection import Ranked
from fairevals.measures.base import HIGHER, RankingMeasure, divide, param, positive, rank_sum
from fairevals.typing import Array, Floats


def average_precision(relevant: Array, total: Array) -> Floats:
    """Σ over relevant ranks k of the precision at k, over `total`, the relevant documents ranked or not.

    NaN where there are none at all.

    >>> round(float(average_precision(np.array([True, False, True]), np.array(4))), 4)
    0.4167
    """
    hit = relevant.astype(np.float64)
    precision = np.cumsum(hit, axis=-1) / np.arange(1, hit.shape[-1] + 1)
    return divide(rank_sum(precision * hit), total, total > 0)


@dataclass(frozen=True)
class AP(RankingMeasure):
    """Average precision, as trec_eval computes it; with a cutoff it still divides by all relevant documents.

    Undefined on a topic without a relevant document (trec_eval gives 0 there).

    >>> str(AP(rel=2, cutoff=100))
    'AP(rel=2)@100'
    """

    name = "AP"
    direction = HIGHER
    formula = "Σ_{k≤K, g_k≥rel} P@k, divided by the number of judged documents with g ≥ rel"
    source = "Buckley, Voorhees: Evaluating evaluation measure stability. SIGIR 2000"
    missing = 0.0

    rel: float = param(1, "the least grade that counts as relevant, above 0", check=positive)

    def of_ranking(self, ranked: Ranked) -> Floats:
        total = np.count_nonzero(ranked.ideal >= self.rel, axis=-1)
        return average_precision(ranked.cut(self.cutoff).grades >= self.rel, total)

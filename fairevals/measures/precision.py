"""Measures of binary relevance: precision, average precision and reciprocal rank."""

from dataclasses import dataclass

import numpy as np

from fairevals.collection import Ranked, View
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER, LinearMeasure, RankingMeasure, param, positive
from fairevals.measures.numeric import divide, rank_sum
from fairevals.typing import Array, Floats


@dataclass(frozen=True)
class P(LinearMeasure):
    """The share of relevant documents among the first `cutoff` ranks.

    Ranks without a document count as not relevant, as in trec_eval: P@10 of a ranking of three documents divides
    by 10. Never undefined.
    """

    name = "P"
    direction = HIGHER
    formula = "Σ_{k≤K} [g_k ≥ rel] / K"
    source = "van Rijsbergen: Information retrieval. 1979"
    missing = 0.0
    attention = "uniform"

    rel: float = param(1, "the least grade that counts as relevant, above 0", check=positive)

    @property
    def depth(self) -> int:
        """The cutoff, without which precision means nothing."""
        if self.cutoff is None:
            raise UsageError(f"{self} needs a cutoff, such as P@10")
        return self.cutoff

    def worth(self, view: View) -> Floats:
        return ((view.grades >= self.rel) & view.present).astype(np.float64)

    def scale(self, view: View) -> float:
        return self.depth


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
    """Reciprocal rank of the first relevant document; 0 if none is retrieved, or the topic has none."""

    name = "RR"
    direction = HIGHER
    formula = "1/k, k ≤ K the first rank with g_k ≥ rel; 0 without one"
    source = "Kantor, Voorhees: The TREC-5 confusion track. Information Retrieval 2000"
    missing = 0.0

    rel: float = param(1, "the least grade that counts as relevant, above 0", check=positive)

    def of_ranking(self, ranked: Ranked) -> Floats:
        return reciprocal_rank(ranked.cut(self.cutoff).grades >= self.rel)

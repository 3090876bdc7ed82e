"""Normalised discounted cumulative gain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.attention import Attention, parse_attention
from fairevals.collection import Exposed, Ranked
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER, LinearMeasure, param, rank_sum
from fairevals.typing import Floats

MOST = 500
"""The highest grade whose gain 2^g−1, summed and multiplied, stays a finite number."""


def gains(grades: Floats, dcg: str = "log2") -> Floats:
    """What a document of each grade is worth: the grade itself, or 2^g−1 (`exp-log2`)."""
    if dcg != "exp-log2":
        return grades
    if grades.size and float(grades.max()) > MOST:
        highest = float(grades.max())
        raise UsageError(
            f"nDCG(dcg='exp-log2'): a grade of {highest:g}; expected at most {MOST}, as 2^g grows fast"
        )
    found: Floats = np.exp2(grades) - 1
    return found


def discounted_cumulative_gain(gain: Floats) -> Floats:
    """DCG = Σ_k gain_k/log2(1+k) over the last axis.

    >>> round(float(discounted_cumulative_gain(np.array([3.0, 0.0, 1.0]))), 4)
    3.5
    """
    return rank_sum(gain / np.log2(np.arange(2, gain.shape[-1] + 2)))


@dataclass(frozen=True)
class NDCG(LinearMeasure):
    """DCG over that of the ideal order of all judged documents, as trec_eval computes it.

    Undefined on a topic without a relevant document, where the ideal is 0 (trec_eval gives 0 there).

    >>> str(NDCG(dcg="exp-log2", cutoff=10))
    "nDCG(dcg='exp-log2')@10"
    """

    name = "nDCG"
    direction = HIGHER
    formula = "Σ_k gain(g_k)/log2(1+k), divided by the same of the ideal order; gain g, or 2^g−1 with dcg='exp-log2'"
    source = "Järvelin, Kekäläinen: Cumulated gain-based evaluation of IR techniques. TOIS 2002"
    missing = 0.0

    dcg: str = param("log2", "gain of a grade: g, or 2^g−1", choices=("log2", "exp-log2"))

    @property
    def attention(self) -> Attention:
        """1/log2(1+k)."""
        return parse_attention("log2")

    def of_ranking(self, ranked: Ranked) -> Floats:
        """The value for each ranking; NaN where nothing relevant was judged."""
        dcg = discounted_cumulative_gain(gains(ranked.cut(self.cutoff).grades, self.dcg))
        return self._normalise(dcg, ranked.ideal)

    def of_exposure(self, exposed: Exposed) -> Floats:
        """The expected value for each topic."""
        return self._normalise(rank_sum(exposed.exposure * gains(exposed.grades, self.dcg)), exposed.ideal)

    def _normalise(self, dcg: Floats, ideal_grades: Floats) -> Floats:
        ideal = discounted_cumulative_gain(gains(ideal_grades[..., : self.cutoff], self.dcg))
        defined = np.broadcast_to(ideal > 0, dcg.shape)
        value: Floats = np.divide(dcg, ideal, out=np.full(dcg.shape, np.nan), where=defined)
        return value

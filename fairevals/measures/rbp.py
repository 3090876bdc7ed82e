"""Rank-biased precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.attention import Attention, parse_attention
from fairevals.collection import Exposed, Ranked
from fairevals.collection.views import View
from fairevals.measures.base import HIGHER, LinearMeasure, param, rank_sum
from fairevals.typing import Floats


def rank_biased_precision(gain: Floats, p: float = 0.8) -> Floats:
    """RBP = (1−p)·Σ_k p^{k−1}·gain_k over the last axis; gains are in [0, 1].

    >>> float(rank_biased_precision(np.array([1.0, 0.0, 1.0]), 0.5))
    0.625
    """
    found: Floats = (1 - p) * rank_sum(gain * np.power(float(p), np.arange(gain.shape[-1])))
    return found


@dataclass(frozen=True)
class RBP(LinearMeasure):
    """The rate at which a reader of persistence `p` finds what is relevant.

    A document counts by its grade over the max grade, or, with `rel`, by whether its grade is at least that.

    >>> str(RBP(p=0.9, rel=2, cutoff=50))
    'RBP(p=0.9,rel=2)@50'
    """

    name = "RBP"
    direction = HIGHER
    formula = "(1−p)·Σ_k p^{k−1}·gain_k, gain g_k/G, or [g_k ≥ rel] where rel is given"
    source = "Moffat, Zobel: Rank-biased precision for measurement of retrieval effectiveness. TOIS 2008"
    missing = 0.0

    p: float = param(
        0.8, "persistence, above 0 and below 1", check=lambda p: isinstance(p, (int, float)) and 0 < p < 1
    )
    rel: float | None = param(
        None,
        "the least grade that counts as relevant",
        check=lambda rel: rel is None or isinstance(rel, (int, float)),
    )

    @property
    def attention(self) -> Attention:
        """p^{k−1}."""
        return parse_attention(f"rbp({self.p!r})")

    def _gain(self, view: View) -> Floats:
        if self.rel is None:
            return view.grades / view.max_grade
        return ((view.grades >= self.rel) & view.present).astype(np.float64)

    def of_ranking(self, ranked: Ranked) -> Floats:
        """The value for each ranking; never undefined."""
        return rank_biased_precision(self._gain(ranked.cut(self.cutoff)), self.p)

    def of_exposure(self, exposed: Exposed) -> Floats:
        """The expected value for each topic."""
        found: Floats = (1 - self.p) * rank_sum(exposed.exposure * self._gain(exposed))
        return found

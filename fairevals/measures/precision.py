"""Precision at a cutoff."""

from __future__ import annotations

from dataclasses import dataclass

from fairevals.attention import Attention, parse_attention
from fairevals.collection import Exposed, Ranked
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER, LinearMeasure, param, rank_sum
from fairevals.typing import Array, Floats


def precision(relevant: Array, cutoff: int) -> Floats:
    """The share of relevant documents among the first `cutoff` ranks; ranks without a document count as not relevant.

    >>> import numpy as np
    >>> float(precision(np.array([True, False, True]), 5))
    0.4
    """
    found: Floats = rank_sum(relevant[..., :cutoff]) / cutoff
    return found


@dataclass(frozen=True)
class P(LinearMeasure):
    """Precision, as trec_eval computes it: P@10 of a ranking of three documents divides by 10.

    >>> str(P(rel=2, cutoff=5))
    'P(rel=2)@5'
    """

    name = "P"
    direction = HIGHER
    formula = "Σ_{k≤K} [g_k ≥ rel] / K"
    source = "van Rijsbergen: Information retrieval. 1979"
    missing = 0.0

    rel: float = param(
        1, "the least grade that counts as relevant", check=lambda rel: isinstance(rel, (int, float))
    )

    def _cutoff(self) -> int:
        if self.cutoff is None:
            raise UsageError(f"{self} needs a cutoff, such as P@10")
        return self.cutoff

    @property
    def attention(self) -> Attention:
        """The same for every rank."""
        return parse_attention("uniform")

    def of_ranking(self, ranked: Ranked) -> Floats:
        """The value for each ranking; never undefined."""
        return precision((ranked.grades >= self.rel) & ranked.present, self._cutoff())

    def of_exposure(self, exposed: Exposed) -> Floats:
        """The expected value for each topic."""
        found: Floats = rank_sum(exposed.exposure * (exposed.grades >= self.rel)) / self._cutoff()
        return found

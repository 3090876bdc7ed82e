"""Precision at a cutoff."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.collection import View
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER, LinearMeasure, param
from fairevals.typing import Floats


@dataclass(frozen=True)
class P(LinearMeasure):
    """The share of relevant documents among the first `cutoff` ranks.

    Ranks without a document count as not relevant, as in trec_eval: P@10 of a ranking of three documents divides
    by 10. Never undefined.

    >>> str(P(rel=2, cutoff=5))
    'P(rel=2)@5'
    """

    name = "P"
    direction = HIGHER
    formula = "Σ_{k≤K} [g_k ≥ rel] / K"
    source = "van Rijsbergen: Information retrieval. 1979"
    missing = 0.0
    attention = "uniform"

    rel: float = param(
        1, "the least grade that counts as relevant", check=lambda rel: isinstance(rel, (int, float))
    )

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

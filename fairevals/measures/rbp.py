"""Rank-biased precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.collection import View
from fairevals.measures.base import HIGHER, LinearMeasure, param
from fairevals.typing import Floats


@dataclass(frozen=True)
class RBP(LinearMeasure):
    """The rate at which a user of persistence `p` finds what is relevant.

    A document counts by its grade over the max grade, or, with `rel`, by whether its grade is at least that. Never
    undefined.
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
    def attention(self) -> str:  # type: ignore[override]
        """p^{k−1}."""
        return f"rbp({self.p!r})"

    def worth(self, view: View) -> Floats:
        """(1−p)·gain of each document."""
        if self.rel is None:
            return (1 - self.p) * view.grades / view.max_grade
        return (1 - self.p) * ((view.grades >= self.rel) & view.present).astype(np.float64)

    def scale(self, view: View) -> float:
        """1: the weights sum to 1 already."""
        return 1.0

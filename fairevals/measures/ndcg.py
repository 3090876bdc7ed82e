"""Measures of graded gain, discounted by rank: nDCG and rank-biased precision."""

from dataclasses import dataclass

import numpy as np

from fairevals.collection import View
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER, LinearMeasure, attention_param, optional, param, positive, unit
from fairevals.measures.merits import exponential
from fairevals.measures.numeric import rank_sum
from fairevals.typing import Floats


def gains(grades: Floats, dcg: str = "log2") -> Floats:
    """The gain of each grade: the grade itself, or 2^g−1 (`exp-log2`).

    >>> gains(np.array([0.0, 1.0, 3.0]), "exp-log2")
    array([0., 1., 7.])
    """
    return exponential(grades) if dcg == "exp-log2" else grades


@dataclass(frozen=True)
class NDCG(LinearMeasure):
    """DCG divided by that of the ideal order of all judged documents, as trec_eval computes it.

    `attention` replaces the discount 1/log2(1+k) in both, as TREC Fair Ranking does. Undefined on a topic without a
    relevant document, where the ideal is 0 (trec_eval gives 0 there).
    """

    name = "nDCG"
    direction = HIGHER
    formula = (
        "Σ_k v_k·gain(g_k), divided by the same of the ideal order; v_k = 1/log2(1+k), or attention=; "
        "gain g, or 2^g−1 with dcg='exp-log2'"
    )
    source = "Järvelin, Kekäläinen: Cumulated gain-based evaluation of IR techniques. TOIS 2002"
    missing = 0.0

    dcg: str = param("log2", "gain of a grade: g, or 2^g−1", choices=("log2", "exp-log2"))
    attention: str | tuple[float, ...] = attention_param("discount of the ranks, such as 'trecfair'")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attention_model.looks_at_grades:
            raise UsageError(f"nDCG: the attention {self.attention_model} depends on the grades shown above")

    def worth(self, view: View) -> Floats:
        return gains(view.grades, self.dcg)

    def scale(self, view: View) -> Floats:
        """The DCG of the ideal order."""
        ideal = gains(view.ideal[..., : self.cutoff], self.dcg)
        return rank_sum(ideal * self.attention_model.weights(ideal.shape[-1]))


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

    p: float = param(0.8, "persistence, above 0 and below 1", check=lambda p: unit(p) and 0 < p < 1)
    rel: float | None = param(
        None,
        "the least grade that counts as relevant, above 0",
        check=optional(positive),
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

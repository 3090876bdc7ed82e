"""The share of attention that documents without judgement get."""

from __future__ import annotations

from dataclasses import dataclass

from fairevals.collection import Exposed
from fairevals.measures.base import LOWER, ExposureMeasure, divide, rank_sum
from fairevals.typing import Floats


@dataclass(frozen=True)
class Unjudged(ExposureMeasure):
    """How much of the attention goes to documents that nobody judged.

    Measures that take means over the judged documents cannot see that attention, and all others treat those documents
    as not relevant. Undefined on a topic without exposure.
    """

    name = "Unjudged"
    direction = LOWER
    formula = "Σ ε_d over unjudged documents / Σ ε_d over all"
    source = "MacAvaney, Macdonald, Ounis: Streamlining evaluation with ir-measures. ECIR 2022 (as Judged@K)"

    def of_exposure(self, exposed: Exposed) -> Floats:
        total = rank_sum(exposed.exposure)
        return divide(rank_sum(exposed.exposure * ~exposed.judged), total, total > 0)

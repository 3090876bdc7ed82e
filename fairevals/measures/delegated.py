"""Measures that ir-measures knows and this package does not compute itself: Rprec, Bpref, Judged and so on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairevals.collection import Ranked
from fairevals.errors import UsageError, escape
from fairevals.measures.base import HIGHER, RankingMeasure, split_name
from fairevals.typing import Floats

NEED_RELEVANT = frozenset({"AP", "R", "Rprec", "Bpref", "infAP", "SetR", "SetF", "SetAP", "IPrec", "nDCG"})
"""Measures that divide by what the relevant documents would give: undefined where there is none."""

MOST = 1_000_000
"""The highest grade: trec_eval keeps a counter for every grade up to it."""


@dataclass(frozen=True)
class Delegated(RankingMeasure):
    """A measure by its ir-measures name, computed by whichever provider ir-measures picks.

    The provider sees the documents in this package's order, without ties, so that its own way of breaking ties
    does not matter. Grades must be whole numbers, as the providers want them.

    >>> measure = Delegated("R(rel=2)@5")
    >>> str(measure), measure.cutoff
    ('R(rel=2)@5', 5)
    """

    direction = HIGHER
    formula = "as in ir-measures"
    source = "MacAvaney, Macdonald, Ounis: Streamlining evaluation with ir-measures. ECIR 2022"
    missing = 0.0

    text: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        cutoff = self.measure.params.get("cutoff")
        object.__setattr__(self, "cutoff", int(cutoff) if cutoff and cutoff >= 1 else None)

    @cached_property
    def measure(self) -> Any:
        """The measure as ir-measures knows it."""
        import ir_measures

        try:
            # ir-measures' own parser uses parts of `ast` that newer Pythons no longer have.
            name, params, cutoff = split_name(self.text)
            found = ir_measures.measures.registry[name](**params)
            found = found if cutoff is None else found @ cutoff
            supported = bool(ir_measures.DefaultPipeline.supports(found))  # type: ignore[no-untyped-call]
        except Exception:  # a wrong name or parameter: NameError, ValueError, AssertionError, SyntaxError …
            raise UsageError(f"unknown measure {escape(self.text)!r}") from None
        if not supported:
            raise UsageError(f"ir-measures knows {escape(self.text)!r} but no installed package computes it")
        return found

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name without parameters."""
        return str(self.measure.NAME)

    def with_cutoff(self, cutoff: int | None) -> Delegated:
        """The same with the cutoff, where the measure takes one and has none."""
        if cutoff is None or self.cutoff or "cutoff" not in self.measure.SUPPORTED_PARAMS:
            return self
        return Delegated(str(self.measure @ cutoff))

    @property
    def needs_all_documents(self) -> bool:
        """Recall and its like count the judged documents that were not found."""
        return True

    def of_ranking(self, ranked: Ranked) -> Floats:
        """The value for each ranking, from one call of the provider a sample."""
        import ir_measures

        raw = ranked.raw_grades
        if np.any(raw[~np.isnan(raw)] % 1):
            raise UsageError(f"{self} needs whole grades, and the qrels have others")
        if np.nanmax(raw, initial=0.0) > MOST:
            raise UsageError(
                f"{self}: a grade of {np.nanmax(raw):g}; expected at most {MOST:,}, as trec_eval counts grades"
            )
        # trec_eval's C code writes outside its arrays for a grade below −1, and for a topic without any grade from
        # 0 on. All negative grades mean the same to it, and such a topic has nothing relevant either way.
        floor = np.where(np.any(raw >= 0, axis=1, keepdims=True), -1.0, 0.0)
        raw = np.where(raw < floor, floor, raw)
        qrels = {
            str(t): {str(d): int(grades[d]) for d in np.flatnonzero(~np.isnan(grades)).tolist()}
            for t, grades in enumerate(raw)
        }
        evaluator = ir_measures.DefaultPipeline.evaluator([self.measure], qrels)
        samples = ranked.documents[:, None, :] if ranked.documents.ndim == 2 else ranked.documents
        values = np.zeros(samples.shape[:2])
        for sample in range(samples.shape[1]):
            run = {}
            for t, documents in enumerate(samples[:, sample].tolist()):
                if documents and documents[0] >= 0:
                    run[str(t)] = {str(d): float(-rank) for rank, d in enumerate(documents) if d >= 0}
            for found in evaluator.iter_calc(run):
                values[int(found.query_id), sample] = found.value
        if self.name in NEED_RELEVANT:
            least = self.measure.params.get("rel", 1)
            values[~np.any(raw >= least, axis=1)] = np.nan
        return values.reshape(ranked.documents.shape[:-1])

    def __str__(self) -> str:
        return str(self.measure)

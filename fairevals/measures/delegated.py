"""Measures that ir-measures computes and this package does not: Rprec, Bpref, Judged, condensed lists and so on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fairevals.collection import Ranked
from fairevals.errors import UsageError, escape
from fairevals.measures.base import HIGHER, NEUTRAL, Direction, RankingMeasure
from fairevals.measures.parsing import split_name
from fairevals.typing import Floats

NEED_RELEVANT = frozenset({"AP", "R", "Rprec", "Bpref", "infAP", "SetR", "SetF", "SetAP", "IPrec", "nDCG"})
"""Measures that divide by what the relevant documents would give: undefined on a topic without any."""

STOP_AT_CUTOFF = frozenset({"P", "R", "RR", "AP", "nDCG", "Success", "Judged", "Accuracy"})
"""Measures that never look below their cutoff, unless they remove unjudged documents first (`judged_only`)."""

HIGHEST_GRADE = 1_000_000
"""trec_eval allocates one counter for every grade up to the highest one."""


@dataclass(frozen=True)
class Delegated(RankingMeasure):
    """A measure of ir-measures, computed by the provider that ir-measures chooses for it.

    The value of a topic is the one that ir-measures gives for the same ranking, except that a measure which divides by
    the number of relevant documents is undefined on a topic without any. Counts (NumRet, NumRel, NumQ) are summed over
    topics, as ir-measures does, and have no direction.

    The provider is given the run's scores, because one of them (Compat) looks at their sign. Where scores tie, or a
    ranking was drawn, they are n, n−1, …, 1 in this package's order: how the provider breaks ties plays no role.

    >>> measure = Delegated("R(rel=2)@5")
    >>> str(measure), measure.cutoff, measure.depth
    ('R(rel=2)@5', 5, 5)
    >>> Delegated("P(judged_only=True)@10").depth is None
    True
    """

    formula = "as in ir-measures"
    source = "MacAvaney, Macdonald, Ounis: Streamlining evaluation with ir-measures. ECIR 2022"
    missing = 0.0

    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "cutoff", self.measure.params.get("cutoff"))
        object.__setattr__(self, "text", str(self.measure))  # two spellings of a measure are equal
        super().__post_init__()

    def __matmul__(self, cutoff: Any) -> Delegated:
        return Delegated(str(self.measure @ cutoff))  # for IPrec, say, it is a level of recall

    @cached_property
    def measure(self) -> Any:
        """The measure as an object of ir-measures, checked; only a required cutoff may still be missing."""
        import ir_measures

        # ir-measures' own parser uses parts of `ast` that newer Pythons no longer have.
        name, params, at = split_name(self.text)
        known = ir_measures.measures.registry.get(name)
        if known is None:
            raise UsageError(f"unknown measure {escape(self.text)!r}")
        given = dict(params) if at is None else {**params, known.AT_PARAM: at}
        for key, value in given.items():
            info = known.SUPPORTED_PARAMS.get(key)
            if info is not None and info.dtype is float and type(value) is int:
                given[key] = float(value)
        measure = known(**given)
        for key, info in known.SUPPORTED_PARAMS.items():
            if info.required and key not in measure.params and key != "cutoff":
                raise UsageError(f"{escape(self.text)} requires the parameter {key} ({info.desc})")
        try:
            probe = measure(cutoff=1) if self._lacks_cutoff(measure) else measure
            probe.validate_params()
        except AssertionError as error:
            raise UsageError(f"{escape(self.text)}: {escape(str(error))}") from None
        gains = [*measure.params.get("gains", {}).items()]
        if any(not isinstance(number, (int, float)) for pair in gains for number in pair):
            raise UsageError(f"{escape(self.text)}: gains must be given as {{grade: gain}}, both numbers")
        if not 0 <= measure.params.get("rel", 0) <= HIGHEST_GRADE:
            raise UsageError(f"{escape(self.text)}: rel must be between 0 and {HIGHEST_GRADE:,}")
        providers = [p for p in ir_measures.DefaultPipeline.providers if p.supports(probe)]
        if any(p.NAME == "pyndeval" for p in providers):
            raise UsageError(f"{escape(self.text)} needs judgements of subtopics, which are not supported")
        if not any(p.is_available() for p in providers):
            hints = ", or ".join(filter(None, (p.install_instructions() for p in providers)))
            raise UsageError(
                f"ir-measures knows {escape(self.text)} but no installed package computes it"
                + (f" ({hints})" if hints else "")
            )
        return measure

    @staticmethod
    def _lacks_cutoff(measure: Any) -> bool:
        cutoff = measure.SUPPORTED_PARAMS.get("cutoff")
        return cutoff is not None and cutoff.required and "cutoff" not in measure.params

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(self.measure.NAME)

    @property
    def aggregation(self) -> str:  # type: ignore[override]
        """As in ir-measures: "sum" for counts, else "mean"."""
        import ir_measures

        return "sum" if isinstance(self.measure.aggregator(), ir_measures.SumAgg) else "mean"

    @property
    def direction(self) -> Direction:  # type: ignore[override]
        """None for counts; higher is better for all others."""
        return NEUTRAL if self.aggregation == "sum" else HIGHER

    def with_cutoff(self, cutoff: int | None) -> Delegated:
        """The same measure at the given cutoff, if it takes one and has none."""
        if cutoff is None or self.cutoff or "cutoff" not in self.measure.SUPPORTED_PARAMS:
            return self
        return Delegated(str(self.measure(cutoff=cutoff)))

    @property
    def depth(self) -> int | None:
        """The whole ranking, unless it is certain that the provider ignores what is below the cutoff."""
        stops = self.name in STOP_AT_CUTOFF and not self.measure.params.get("judged_only")
        return self.cutoff if stops else None

    @property
    def needs_all_documents(self) -> bool:
        """True: providers count the judged documents that were not retrieved."""
        return True

    def of_missing(self, raw_grades: Floats, conventions: str) -> Floats | float:
        """trec_eval -c counts the topic and its relevant documents; ir-measures does not."""
        if conventions != "trec_eval" or self.name not in ("NumQ", "NumRel"):
            return self.missing
        relevant = np.count_nonzero(raw_grades >= self.measure.params.get("rel", 1), axis=1)
        return 1.0 if self.name == "NumQ" else relevant.astype(np.float64)

    def of_ranking(self, ranked: Ranked) -> Floats:
        import ir_measures

        if self._lacks_cutoff(self.measure):
            raise UsageError(f"{self} needs a cutoff, such as {self}@10")
        grades = self._grades(ranked.raw_grades)
        qrels = {
            str(t): {str(d): int(row[d]) for d in np.flatnonzero(~np.isnan(row)).tolist()}
            for t, row in enumerate(grades)
        }
        for judged in qrels.values():
            # trec_eval's C code writes outside its arrays where all grades are negative. A document that is not
            # retrieved and not relevant prevents it and changes no value.
            if judged and max(judged.values()) < 0:
                judged["none"] = 0
        params = {key: value for key, value in self.measure.params.items() if key != "gains"}
        samples = ranked.documents[:, None, :] if ranked.documents.ndim == 2 else ranked.documents
        lengths = np.count_nonzero(samples >= 0, axis=2)
        names = [str(d) for d in range(grades.shape[1])]
        scores = np.broadcast_to(np.arange(samples.shape[2], 0, -1.0), samples.shape)
        if ranked.documents.ndim == 2:
            own = np.take_along_axis(ranked.scores, np.maximum(ranked.documents, 0), axis=1)
            with np.errstate(over="ignore"):
                single = own.astype(np.float32)  # as which providers compare scores
            falls = (single[:, 1:] < single[:, :-1]) | (ranked.documents[:, 1:] < 0)
            scores = np.where(np.all(falls, axis=1, keepdims=True), own, scores[:, 0])[:, None]
        values = np.full(samples.shape[:2], np.nan)
        try:
            evaluator = ir_measures.DefaultPipeline.evaluator([type(self.measure)(**params)], qrels)
            for sample in range(samples.shape[1]):
                columns = (a[:, sample].tolist() for a in (samples, scores, lengths))
                run = {
                    str(t): dict(zip([names[d] for d in documents[:length]], values_of, strict=False))
                    for t, (documents, values_of, length) in enumerate(zip(*columns, strict=True))
                    if length
                }
                for metric in _metrics(evaluator, run):
                    values[int(metric.query_id), sample] = metric.value
        except (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise UsageError(f"ir-measures cannot compute {self}: {escape(str(error))}") from None
        if self.name in NEED_RELEVANT:
            values[~np.any(grades >= self.measure.params.get("rel", 1), axis=1)] = np.nan
        return values.reshape(ranked.documents.shape[:-1])

    def _grades(self, raw: Floats) -> Floats:
        """Grades as providers can take them: whole numbers from −1 to `HIGHEST_GRADE`, NaN for unjudged.

        Gains are applied here, before negative grades are raised to −1: trec_eval's C code writes outside its arrays
        for grades below −1. All negative grades mean the same to it.
        """
        grades = raw.copy()
        for grade, gain in self.measure.params.get("gains", {}).items():
            grades[raw == grade] = gain
        if np.any(grades[~np.isnan(grades)] % 1):
            raise UsageError(f"{self} needs whole grades, and the qrels have others")
        highest = np.nanmax(grades, initial=0.0)
        if highest > HIGHEST_GRADE:
            expected = f"expected at most {HIGHEST_GRADE:,}, as trec_eval counts grades"
            raise UsageError(f"{self}: a grade of {highest:g}; {expected}")
        lowest: Floats = np.maximum(grades, -1.0)
        return lowest

    def __str__(self) -> str:
        return str(self.measure)


def _metrics(evaluator: Any, run: dict[str, dict[str, float]]) -> Iterator[Any]:
    """ir-measures' values for the topics of a run; nothing for a topic on which the provider divides by 0.

    Accuracy does so where every retrieved document is relevant: there is no pair that could be in the wrong order.
    """
    try:
        yield from list(evaluator.iter_calc(run))
    except ZeroDivisionError:
        for topic, documents in run.items():
            try:
                yield from [m for m in evaluator.iter_calc({topic: documents}) if m.query_id == topic]
            except ZeroDivisionError:
                continue

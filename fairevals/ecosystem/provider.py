"""This package's measures in ir-measures: names that it parses, and a provider that computes them.

`import fairevals` imports this module, so it loads nothing but ir-measures; numpy and the rest of this package are
loaded when a measure is given parameters or computed.
"""

# ir-measures declares itself typed, but only half of it is.
# mypy: disallow-untyped-calls=False

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, isnan
from typing import TYPE_CHECKING, Any

import ir_measures
from ir_measures.measures import base as their_measures
from ir_measures.providers import base as their_providers

from fairevals.measures.index import INDEX, measure_class

if TYPE_CHECKING:
    from fairevals.ecosystem.evaluator import NativeEvaluator
    from fairevals.measures import Measure

PROVIDER_NAME = "fairevals"


class MeanOfDefined(their_measures.MeanAgg):
    """The mean over the topics on which a measure is defined, rounded once; NaN where it is defined on none.

    >>> mean = MeanOfDefined()
    >>> for value in (0.5, float("nan"), 1.0):
    ...     mean.add(value)
    >>> mean.result()
    0.75
    """

    def __init__(self) -> None:
        super().__init__()
        self._values: list[float] = []

    def add(self, value: float) -> None:
        if not isnan(value):
            self._values.append(value)

    def result(self) -> float:
        return fsum(self._values) / len(self._values) if self._values else float("nan")


def native_measure(theirs: Any) -> Measure:
    """This package's measure for one of ir-measures; a `UsageError` where a parameter is missing or wrong."""
    return measure_class(str(theirs.NAME))(**theirs.params)


class NativeMeasure(their_measures.Measure):
    """A measure of this package as one of ir-measures; `_declare` makes a subclass for each."""

    def __init__(self, **params: Any) -> None:
        for name in params:
            if name not in self.SUPPORTED_PARAMS:
                from fairevals.errors import UsageError, escape

                takes = ", ".join(self.SUPPORTED_PARAMS)
                raise UsageError(f"{self.NAME} has no parameter {escape(name)!r} (it takes {takes})")
        super().__init__(**params)

    @property
    def _native(self) -> type[Measure]:
        return measure_class(str(self.NAME))

    @property
    def SUPPORTED_PARAMS(self) -> dict[str, their_measures.ParamInfo]:  # type: ignore[override] # noqa: N802
        """The parameters that the measure declares, and the cutoff."""
        info = their_measures.ParamInfo
        cutoff = info(dtype=int, required=False, desc="ranking cutoff threshold")
        declared = self._native.parameters()
        # A required one has the default None; the measure itself says so if it is not given.
        params = {f.name: info(default=f.default, desc=f.metadata["meaning"]) for f in declared}
        return {"cutoff": cutoff, **params}

    @property
    def SHORT_DESC(self) -> str:  # noqa: N802
        """The formula, and which values are better."""
        return f"{self._native.formula} ({self.direction} is better)"

    @property
    def DEFAULT(self) -> float:  # type: ignore[override] # noqa: N802
        """The value on a topic that a run leaves out."""
        return self._native.missing

    @property
    def direction(self) -> str:
        """Which values are better: "higher", "lower", or a target."""
        return str(self._native.direction)

    def validate_params(self) -> None:
        if not self.validated:
            native_measure(self)
            self.validated = True

    def aggregator(self) -> MeanOfDefined:
        return MeanOfDefined()  # a 0 for an undefined topic would read as perfect for many measures

    def __repr__(self) -> str:
        from fairevals.errors import UsageError

        try:
            return str(native_measure(self))
        except UsageError:  # such as GF, which needs an attribute before it can be computed
            return str(super().__repr__())


def _declare(name: str) -> NativeMeasure:
    """The ir-measures form of one of this package's measures."""
    # Its documentation can be replaced, as PyTerrier does; that of the native class would load numpy.
    about = f"{name} of fairevals; see fairevals.{name}."
    members = {"__name__": name, "NAME": name, "PRETTY_NAME": name, "__doc__": about}
    measure: NativeMeasure = type(f"_{name}", (NativeMeasure,), members)()
    return measure


class NativeProvider(their_providers.Provider):
    """Computes the given measures, under the task in force (`fairevals.task`)."""

    NAME = PROVIDER_NAME

    def __init__(self, measures: Iterable[Any]) -> None:
        super().__init__()
        self.SUPPORTED_MEASURES = list(measures)

    def supports(self, measure: Any) -> bool:
        if not super().supports(measure):
            return False
        return set(measure.params) <= {"cutoff", *(f.name for f in measure_class(measure.NAME).parameters())}

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> NativeEvaluator:
        from fairevals.ecosystem.evaluator import NativeEvaluator

        return NativeEvaluator(measures, qrels)


def register() -> None:
    """Add to ir-measures the missing names, a provider at the end of its pipeline, and `ir_measures.fairevals`.

    nDCG, ERR, P, AP, RR and RBP stay ir-measures' own. To compute them with this package, call its provider:
    `ir_measures.fairevals.calc_aggregate([ir_measures.ERR@20], qrels, run)`.
    """
    if PROVIDER_NAME in their_providers.registry:
        return
    known = their_measures.registry
    everything = {name: known[name] if name in known else _declare(name) for name in INDEX}
    ours = {name: measure for name, measure in everything.items() if isinstance(measure, NativeMeasure)}
    for name, measure in ours.items():
        their_measures.register(measure)
        setattr(ir_measures, name, measure)
    by_name = NativeProvider(everything.values())
    their_providers.register(by_name)
    setattr(ir_measures, PROVIDER_NAME, by_name)
    ir_measures.DefaultPipeline.providers.append(NativeProvider(ours.values()))

"""This package's measures in ir-measures: names that it parses, and a provider that computes them."""

# ir-measures declares itself typed, but only half of it is.
# mypy: disallow-untyped-calls=False

from collections.abc import Iterable, Iterator
from dataclasses import MISSING
from math import fsum, isnan
from typing import Any

import ir_measures
from ir_measures.measures import base as their_measures
from ir_measures.providers import base as their_providers

from fairevals.collection.inputs import Named
from fairevals.ecosystem.context import TaskContext, current_context
from fairevals.errors import UsageError, escape
from fairevals.evaluation import Plan, score
from fairevals.measures import INDEX, Measure, measure_class

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

    __name__ = PROVIDER_NAME

    def __init__(self, **params: Any) -> None:
        for name in params:
            if name not in self.SUPPORTED_PARAMS:
                takes = ", ".join(self.SUPPORTED_PARAMS)
                raise UsageError(f"{self.NAME} has no parameter {escape(name)!r} (it takes {takes})")
        super().__init__(**params)

    @property
    def direction(self) -> str:
        """Which values are better: "higher", "lower", or a target."""
        return str(measure_class(str(self.NAME)).direction)

    def validate_params(self) -> None:
        if not self.validated:
            native_measure(self)
            self.validated = True

    def aggregator(self) -> MeanOfDefined:
        return MeanOfDefined()  # a 0 for an undefined topic would read as perfect for many measures

    def __repr__(self) -> str:
        try:
            return str(native_measure(self))
        except UsageError:  # such as GF, which needs an attribute before it can be computed
            return str(super().__repr__())


def _declare(name: str) -> NativeMeasure:
    """The ir-measures form of one of this package's measures, from its declaration."""
    cls = measure_class(name)
    info = their_measures.ParamInfo
    params = {"cutoff": info(dtype=int, required=False, desc="ranking cutoff threshold")}
    for f in cls.parameters():
        default = None if f.default is MISSING else f.default
        params[f.name] = info(required=False, default=default, desc=f.metadata["meaning"])
    members = {
        "__name__": name,
        "__doc__": cls.__doc__,
        "NAME": name,
        "PRETTY_NAME": name,
        "SHORT_DESC": f"{cls.formula} ({cls.direction} is better)",
        "SUPPORTED_PARAMS": params,
        "DEFAULT": cls.missing,
    }
    measure: NativeMeasure = type(f"_{name}", (NativeMeasure,), members)()
    return measure


class NativeEvaluator(their_providers.Evaluator):
    """Scores runs with the given measures and qrels, and the attributes of the task in force."""

    def __init__(self, measures: Iterable[Any], qrels: Any) -> None:
        context = current_context.get() or TaskContext()
        collection = context.collection(_columns(qrels, "relevance"))
        # Two spellings may be one measure, such as GFR and GFR(util='ERR').
        self._natives = {theirs: native_measure(theirs) for theirs in measures}
        super().__init__(list(self._natives), set(collection.qrels.topics))
        for measure in self._natives.values():
            if current_context.get() is None and measure.attributes != "none":
                raise UsageError(
                    f"{measure} needs groups: compute it inside `with fairevals.task('task.toml'):`, "
                    "or with fairevals.task(groups={'ATTRIBUTE': …})"
                )
        self._plan = Plan.of(collection, self._natives.values()) if collection.qrels.topics else None
        names = self._plan.requirements.attributes if self._plan else ()
        self._collection = collection.with_attributes(names)
        context.loaded.update(self._collection.attributes)

    def calc_aggregate(self, run: Any) -> dict[Any, float]:
        means: dict[Any, float] = self.calc(run).aggregated
        return means

    def calc(self, run: Any) -> Any:
        """The value on every topic, and the means over the topics on which a measure is defined."""
        means = {measure: MeanOfDefined() for measure in self._natives}
        metrics = list(self.iter_calc(run))
        for metric in metrics:
            means[metric.measure].add(metric.value)
        return ir_measures.CalcResults({measure: mean.result() for measure, mean in means.items()}, metrics)

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        """A value for every judged topic; NaN where the measure is undefined."""
        if self._plan is None:
            return
        scores = score([Named("run", _columns(run, "score"))], self._collection, self._plan)
        row = {str(measure): m for m, measure in enumerate(self._plan.measures)}
        for theirs, native in self._natives.items():
            values = scores.values[0, row[str(native)]].tolist()
            for topic, value in zip(scores.topics, values, strict=True):
                yield ir_measures.Metric(query_id=topic, measure=theirs, value=value)


def _columns(data: Any, value: str) -> Any:
    """A table reduced to the columns that ir-measures reads, so that no other column is mistaken for one."""
    wanted = ["query_id", "doc_id", value]
    if not hasattr(data, "itertuples") or any(name not in data.columns for name in wanted):
        return data
    return data[[*wanted, *(name for name in ("sample",) if name in data.columns)]]


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


register()

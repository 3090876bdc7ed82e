"""Scores runs for ir-measures."""

# mypy: disallow-untyped-calls=False

from collections.abc import Iterable, Iterator
from typing import Any

import ir_measures

from fairevals.collection.inputs import Named, frame_of
from fairevals.ecosystem.context import TaskContext, current_context
from fairevals.ecosystem.provider import MeanOfDefined, native_measure
from fairevals.errors import UsageError
from fairevals.evaluation import Plan, score


class NativeEvaluator(ir_measures.Evaluator):
    """Scores runs with the given measures and qrels, and the attributes of the task in force."""

    def __init__(self, measures: Iterable[Any], qrels: Any) -> None:
        context = current_context.get() or TaskContext()
        # Two spellings may be one measure, such as GFR and GFR(util='ERR').
        self._natives = {theirs: native_measure(theirs) for theirs in measures}
        for measure in self._natives.values():
            if measure.across_topics:
                raise UsageError(
                    f"{measure} has one value for all topics together, which ir-measures has no place for; "
                    "use fairevals.evaluate"
                )
            if current_context.get() is None and measure.attributes != "none":
                raise UsageError(
                    f"{measure} needs groups: compute it inside `with fairevals.task('task.toml'):`, "
                    "or with fairevals.task(groups={'ATTRIBUTE': …})"
                )
        judged = frame_of(_columns(qrels, "relevance"), "grade", "qrels", "relevance")
        # ir-measures gives no values without judgements; PyTerrier may ask so for a batch of topics.
        self._plan = None
        topics: set[str] = set()
        if len(judged):
            collection = context.collection(judged)
            topics = set(collection.qrels.topics)
            self._plan = Plan.of(collection, self._natives.values())
            self._collection = collection.with_attributes(self._plan.requirements.attributes)
            context.loaded.update(self._collection.attributes)
        super().__init__(list(self._natives), topics)

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

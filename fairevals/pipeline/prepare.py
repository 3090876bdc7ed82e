"""What is scored against what: the collection, the plan, and a run beside the judgements."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.collection.blocks import CELLS, Block, Wanted, blocks
from fairevals.collection.inputs import load_attribute_by_name, load_qrels, load_run
from fairevals.collection.qrels import Qrels
from fairevals.collection.run import Run
from fairevals.collection.slices import Slice, without_topics
from fairevals.errors import UsageError, shown
from fairevals.io.task import POLICIES, PolicySpec, Task, read_task
from fairevals.measures import (
    CompositeMeasure,
    Measure,
    parse_measure,
)
from fairevals.policy.policies import (
    OneRanking,
    PlackettLuceRun,
    Policy,
    SampledRankings,
)

if TYPE_CHECKING:
    from fairevals.collection.groups import Attribute


@dataclass(frozen=True)
class Collection:
    """What runs are scored against, loaded and indexed once."""

    task: Task
    qrels: Qrels
    groups: Mapping[str, Any] = field(default_factory=dict)
    """Attributes handed in from Python, which count before the task's."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    """Those that were loaded because a measure needs them."""

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """All attributes, loaded or not."""
        return tuple(dict.fromkeys([*self.task.attributes, *self.groups]))

    def with_attributes(self, names: Iterable[str]) -> Collection:
        """The same with these attributes loaded."""
        loaded = {
            name: self.attributes[name]
            if name in self.attributes
            else load_attribute_by_name(name, self.task, self.groups, self.qrels)
            for name in names
        }
        return replace(self, attributes=loaded)

    def shareable(self, *, slices_only: bool = False) -> Collection:
        """What workers need of it; with `slices_only`, nothing that is about topics."""
        task = replace(self.task, max_grade=self.max_grade)  # a slice has only the grades of its own topics
        if not slices_only:
            return replace(self, task=task, groups={})
        attributes = {name: without_topics(attribute) for name, attribute in self.attributes.items()}
        qrels = Slice.of(self.qrels, {}, np.zeros(0, np.int64)).qrels
        return replace(self, task=task, qrels=qrels, groups={}, attributes=attributes)

    def sliced(self, part: Slice) -> Collection:
        """The topics of the slice only."""
        return replace(self, qrels=part.qrels, attributes=part.bind(self.attributes))

    @property
    def max_grade(self) -> float:
        """The task's, or the largest in the qrels."""
        return float(self.task.max_grade) if self.task.max_grade is not None else self.qrels.max_grade


def load_collection(
    task: Task | str | os.PathLike[str] | None, qrels: Any = None, groups: Mapping[str, Any] | None = None
) -> Collection:
    """Bring together a task file (or none), qrels and groups; what is given beside the task counts."""
    found = task if isinstance(task, Task) else read_task(task) if task is not None else Task()
    if qrels is None and found.qrels is None:
        raise UsageError("there are no qrels: give a task that names them, or qrels")
    judged = load_qrels(qrels if qrels is not None else found.qrels)
    if found.max_grade is not None and found.max_grade < judged.max_grade:
        place = found.path or "the task"
        raise UsageError(
            f"{place}: max_grade is {found.max_grade:g}, but {judged.source} has a grade {judged.max_grade:g}"
        )
    return Collection(found, judged, dict(groups or {}))


@dataclass(frozen=True)
class Plan:
    """Which measures are wanted, under which policy, and so what must be read."""

    measures: tuple[Measure, ...]
    policy: PolicySpec
    order: str
    wanted: Wanted

    @classmethod
    def of(
        cls, collection: Collection, measures: Iterable[Any] | None = None, policy: PolicySpec | None = None
    ) -> Plan:
        """Resolve names, cutoffs and attributes; a measure that the task cannot serve is a `UsageError`."""
        task = collection.task
        policy = policy or task.policy
        asked = [parse_measure(m).with_cutoff(task.cutoff) for m in (measures or task.measures)]
        found = tuple({str(m): m for m in asked}.values())
        if not found:
            raise UsageError("there is no measure to compute")
        depths: list[int | None] = []
        attributes: set[str] = set()
        everything = False
        for measure in (part for m in found for part in parts_of(m)):
            depths.append(measure.depth)
            everything |= measure.needs_all_documents
            attributes |= _attributes(measure, collection)
        whole = policy.kind == "pl" or any(depth is None for depth in depths)
        depth = None if whole else max(d for d in depths if d is not None)
        names = tuple(name for name in collection.attribute_names if name in attributes)
        return cls(found, policy, task.order, Wanted(depth, everything, names))


def with_components(plan: Plan, collection: Collection) -> Plan:
    """The same plan with, after each composed measure, those that it is made of."""
    asked: list[Measure] = []
    for measure in plan.measures:
        asked.append(measure)
        if isinstance(measure, CompositeMeasure):
            asked.extend(measure.parts())
        elif hasattr(measure, "components"):
            asked.extend(measure.components(collection.attribute_names))
    return Plan.of(collection, asked, plan.policy)


def parts_of(measure: Measure) -> Iterator[Measure]:
    """The measure itself, or those that it is made of."""
    if isinstance(measure, CompositeMeasure):
        for part in measure.parts():
            yield from parts_of(part)
    else:
        yield measure


def _attributes(measure: Measure, collection: Collection) -> set[str]:
    known = collection.attribute_names
    for name in measure.attributes_used():
        if name not in known:
            there = ", ".join(map(shown, known)) or "no attributes"
            raise UsageError(f"{measure}: there is no attribute {shown(name)!r} (the task has {there})")
    if measure.attributes == "all":
        if not known:
            raise UsageError(f"{measure} needs attributes, and the task has none")
        return set(known)
    return set(measure.attributes_used())


def load(source: Any, plan: Plan) -> Run:
    """Read a run as the plan needs it."""
    return load_run(source, order=plan.order, samples=plan.policy.kind == "samples", depth=plan.wanted.depth)


def blocks_of(run: Run, collection: Collection, plan: Plan, cells: int | None = None) -> Iterator[Block]:
    """The run beside the judgements, in blocks of topics; results never depend on how large they are."""
    return blocks(
        run,
        collection.qrels,
        collection.attributes,
        plan.wanted,
        max_grade=collection.max_grade,
        utility_weight=collection.task.utility_weight,
        sampled=plan.policy.kind == "samples",
        cells=cells or CELLS,
    )


def make_policy(spec: PolicySpec, run: Run) -> Policy:
    """The policy that the run is."""
    if spec.kind == "pl":
        return PlackettLuceRun(run.tag, spec.temperature, spec.samples, spec.seed)
    if spec.kind == "samples":
        return SampledRankings()
    if spec.kind != "ranking":
        raise UsageError(f"the policy is {shown(spec.kind)!r}; expected one of {', '.join(POLICIES)}")
    return OneRanking()

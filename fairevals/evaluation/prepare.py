"""What is scored against what: the collection, the plan, and a run beside the judgements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from fairevals.collection.blocks import CELLS, Block, Requirements, blocks
from fairevals.collection.collection import Collection
from fairevals.collection.inputs import load_run
from fairevals.collection.run import Run
from fairevals.errors import UsageError, escape
from fairevals.io.task import POLICIES, PolicySpec
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


@dataclass(frozen=True)
class Plan:
    """Which measures are wanted, under which policy, and so what must be read."""

    measures: tuple[Measure, ...]
    policy: PolicySpec
    order: str
    wanted: Requirements

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
        return cls(found, policy, task.order, Requirements(depth, everything, names))


def with_components(plan: Plan, collection: Collection) -> Plan:
    """The same plan with, after each composed measure, those that it is made of."""
    asked: list[Measure] = []
    for measure in plan.measures:
        asked.append(measure)
        if isinstance(measure, CompositeMeasure):
            asked.extend(measure.parts())
        elif hasattr(measure, "components"):
            asked.extend(measure.components(collection.ordinal))
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
            there = ", ".join(map(escape, known)) or "no attributes"
            raise UsageError(f"{measure}: there is no attribute {escape(name)!r} (the task has {there})")
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
        raise UsageError(f"the policy is {escape(spec.kind)!r}; expected one of {', '.join(POLICIES)}")
    return OneRanking()

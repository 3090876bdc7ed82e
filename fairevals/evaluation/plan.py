"""Which measures are computed, under which policy, and how a run is opened for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from fairevals.collection.blocks import CELLS, Block, Requirements, blocks
from fairevals.collection.collection import Collection
from fairevals.collection.inputs import load_run
from fairevals.collection.qrels import Qrels
from fairevals.collection.run import Run
from fairevals.collection.spelling import topic_variants
from fairevals.errors import InputError, Place, UsageError, escape, unknown
from fairevals.io.runs import RunOptions
from fairevals.io.specs import PolicySpec
from fairevals.measures import (
    CompositeMeasure,
    ExposureMeasure,
    LinearMeasure,
    Measure,
    RankingMeasure,
    parse_measure,
    parse_measures,
)
from fairevals.measures.shares import Unjudged
from fairevals.policy.diagnosis import diagnose_policy
from fairevals.policy.policies import OneRanking, PlackettLuceRun, Policy, SampledRankings
from fairevals.typing import Floats, Ints

DIAGNOSED_TOPICS = 1000
"""How many topics of a run decide whether its policy is nearly uniform."""


@dataclass(frozen=True)
class Plan:
    """The measures and the policy of an evaluation, and what must be read for them."""

    measures: tuple[Measure, ...]
    policy: PolicySpec
    requirements: Requirements
    labels: Mapping[str, str] = field(default_factory=dict)
    """What is displayed for a measure, by its name: the task's labels."""
    top: int = 0
    """How many first ranks of every topic are kept, to be shown."""

    def keeping(self, top: int) -> Self:
        """The same plan, which also reads and keeps the first `top` ranks of every topic."""
        depth = self.requirements.depth
        deep_enough = None if depth is None else max(depth, top)
        return replace(self, top=top, requirements=replace(self.requirements, depth=deep_enough))

    @classmethod
    def of(cls, collection: Collection, measures: Any = None, policy: PolicySpec | None = None) -> Self:
        """Resolve names, cutoffs and attributes; a measure that the task cannot serve is a `UsageError`."""
        task = collection.task
        policy = policy or task.policy
        given = parse_measures(task.measures if measures is None else measures)
        unique = tuple({str(m): m for m in (measure.with_cutoff(task.cutoff) for measure in given)}.values())
        parts = [part for measure in unique for part in parts_of(measure)]
        depths = [part.depth for part in parts if part.depth is not None]
        depth = None if policy.kind == "pl" or len(depths) < len(parts) else max(depths)
        attributes = {name for part in parts for name in _attributes(part, collection)}
        names = tuple(name for name in collection.attribute_names if name in attributes)
        everything = any(part.needs_all_documents for part in parts)
        ranked = {
            n for part in parts if isinstance(part, RankingMeasure) for n in _attributes(part, collection)
        }
        by_rank = tuple(name for name in names if name in ranked)
        requirements = Requirements(depth, everything, names, by_rank)
        return cls(unique, policy, requirements, _labels(collection, unique))

    @classmethod
    def reading(cls, policy: PolicySpec, attributes: Iterable[str] = ()) -> Self:
        """A plan without measures, to open runs with: all documents and all ranks."""
        return cls((), policy, Requirements(None, True, tuple(attributes)))


def _labels(collection: Collection, measures: Sequence[Measure]) -> dict[str, str]:
    """The task's labels by the full names of the measures; two measures displayed alike are a `UsageError`."""
    task = collection.task
    resolved = ((parse_measure(text).with_cutoff(task.cutoff), label) for text, label in task.labels.items())
    labels = {str(measure): str(escape(label, 80)) for measure, label in resolved}
    displayed: dict[str, str] = {}
    for name in map(str, measures):
        label = labels.get(name, name)
        if label in displayed:
            both = f"{displayed[label]} and {name} are both displayed as {label!r}"
            raise UsageError(
                f"{escape(str(task.path or 'measures'), 200)}: {both}; give each a label of its own"
            )
        displayed[label] = name
    return labels


def with_components(plan: Plan, collection: Collection, *, unjudged: bool = False) -> Plan:
    """The same plan with, after each composed measure, its parts; and last, if asked for, `Unjudged`."""
    measures: list[Measure] = []
    for measure in plan.measures:
        measures.append(measure)
        if isinstance(measure, CompositeMeasure):
            measures.extend(measure.parts())
        elif hasattr(measure, "components"):
            measures.extend(measure.components(collection.ordinal))
    if unjudged:
        measures += unjudged_shares(measures) or (Unjudged(cutoff=collection.task.cutoff),)
    return Plan.of(collection, measures, plan.policy)


def unjudged_shares(measures: Iterable[Measure]) -> tuple[Unjudged, ...]:
    """`Unjudged` under each attention and cutoff of the measures."""
    return tuple(
        dict.fromkeys(
            Unjudged(attention=m.attention, cutoff=m.cutoff)
            for m in measures
            if isinstance(m, (ExposureMeasure, LinearMeasure))
        )
    )


def parts_of(measure: Measure) -> Iterator[Measure]:
    """The measure itself, or those that it is made of."""
    if isinstance(measure, CompositeMeasure):
        for part in measure.parts():
            yield from parts_of(part)
    else:
        yield measure


def _attributes(measure: Measure, collection: Collection) -> Sequence[str]:
    """The attributes that a measure needs, all of which the collection has."""
    known = collection.attribute_names
    for name in getattr(measure, "topic_groups_used", tuple)():
        if name not in collection.task.topic_groups:
            raise UsageError(f"{measure}: {unknown('topic groups', name, collection.task.topic_groups)}")
    for name in measure.attributes_used():
        if name not in known:
            raise UsageError(f"{measure}: {unknown('attribute', name, known)}")
    if measure.attributes != "all":
        return measure.attributes_used()
    if not known:
        raise UsageError(f"{measure} needs attributes, and the task has none")
    return tuple(collection.ordinal)


@dataclass(frozen=True)
class OpenRun:
    """A run, checked, beside what it is scored against."""

    run: Run
    policy: Policy
    collection: Collection
    plan: Plan

    def blocks(self) -> Iterator[Block]:
        """The run beside the judgements, in blocks of topics; results never depend on how large they are."""
        sampled = self.plan.policy.kind == "samples"
        return blocks(self.run, self.collection, self.plan.requirements, sampled=sampled)

    def diagnosed(self) -> tuple[Ints, Floats]:
        """The lengths and scores of the first lists, for `policy_remarks`; empty if they are not log-weights."""
        count = DIAGNOSED_TOPICS if self.plan.policy.kind == "pl" else 0
        lengths = np.diff(self.run.offsets[: count + 1])
        return lengths, self.run.scores[: lengths.sum()]


def policy_remarks(policy: PolicySpec, diagnosed: Sequence[tuple[Ints, Floats]]) -> Iterator[str]:
    """A remark if a run is read as Plackett-Luce but its policy is nearly uniform; `diagnosed` is that of its parts."""
    lengths, scores = (np.concatenate(parts) for parts in zip(*diagnosed, strict=True))
    lengths = lengths[:DIAGNOSED_TOPICS]
    if lengths.size:
        lengths = lengths[: max(1, CELLS // int(lengths.max()))]
        padded = np.full((lengths.size, int(lengths.max())), -np.inf)
        padded[np.arange(padded.shape[1]) < lengths[:, None]] = scores[: lengths.sum()]
        diagnosis = diagnose_policy(padded, policy.temperature)
        if diagnosis.nearly_uniform:
            yield diagnosis.remark()


def load(source: Any, collection: Collection, plan: Plan) -> Run:
    """Read a run as the plan needs it."""
    single = collection.task.conventions == "trec_eval"
    # Scores that differ may be equal as float32, so that the cut at a depth must come after the rounding.
    depth = None if single else plan.requirements.depth
    order = collection.task.order
    if isinstance(source, Run) and order == "file" and source.order != "file":
        raise UsageError(f"{source!r} was ranked by score; the task has order='file'")
    run = load_run(source, RunOptions(order, plan.policy.kind == "samples", depth, trailing=single))
    return run.as_float32() if single else run


def open_run(source: Any, collection: Collection, plan: Plan, *, check_topics: bool = True) -> OpenRun:
    """Read and check a run: the one way from a run to its policy and its blocks.

    Raises where the run has several rankings of a topic but the policy is not `samples`, and, with `check_topics`,
    where none of its topics is judged.
    """
    run = load(source, collection, plan)
    if plan.policy.kind != "samples" and len(run.lists) > len(run.topics):
        raise UsageError(
            f"{escape(run.source, 300)} has several rankings of a topic; expected one, or the policy 'samples'"
        )
    if check_topics:
        require_judged_topic(run.source, run.topics, collection.qrels)
    if plan.policy.kind == "pl":
        _require_log_weights(run, plan.policy.temperature)
    return OpenRun(run, make_policy(plan.policy, run), collection, plan)


def _require_log_weights(run: Run, temperature: float) -> None:
    """Raise if the difference of two scores, divided by the temperature, may be too large for a number."""
    limit = float(np.finfo(np.float64).max) / 4
    for row in np.flatnonzero(np.abs(run.scores) > min(1.0, temperature) * limit)[:1].tolist():
        topic, _ = run.lists[int(np.searchsorted(run.offsets, row, side="right")) - 1]
        doc = escape(run.docs.text(row))
        found = f"score {run.scores[row]:g} of document {doc!r} in topic {escape(topic)!r}"
        expected = f"log-weights that stay below {limit:.3g} when divided by the temperature {temperature:g}"
        raise InputError(Place(run.source), found, expected)


def require_judged_topic(source: str, topics: Sequence[str], qrels: Qrels) -> None:
    """Raise unless one of the topics is judged: `001` in a run against `1` in the qrels is the usual cause."""
    if not topics or any(topic in qrels.number for topic in topics):
        return  # readers refuse an empty file themselves
    ours = f"no topic that is judged (such as {escape(topics[0])!r})"
    if (variants := topic_variants(topics, qrels)).count:
        ours += f"; {variants.count} of {len(topics)} would be if Unicode were normalised (NFC: {variants})"
    known = repr(escape(qrels.topics[0])) if qrels.topics else "(none)"
    raise InputError(Place(source), ours, f"topics of {escape(qrels.source, 300)}, such as {known}")


def make_policy(spec: PolicySpec, run: Run) -> Policy:
    """The policy that the run is."""
    if spec.kind == "pl":
        return PlackettLuceRun(run.tag, spec.temperature, spec.samples, spec.seed)
    if spec.kind == "samples":
        return SampledRankings()
    return OneRanking()

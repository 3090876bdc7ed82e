"""What runs are scored against: the task, its judgements and its attributes, loaded and indexed once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.collection.inputs import load_attribute_by_name, load_qrels
from fairevals.collection.qrels import Qrels
from fairevals.errors import UsageError
from fairevals.io.task import Task, read_task
from fairevals.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from fairevals.collection.groups import Attribute


@dataclass(frozen=True)
class Slice:
    """What depends on some topics only: their judgements and targets. Memberships are shared by all slices.

    It is small enough to be sent to whoever scores those topics.
    """

    qrels: Qrels
    targets: Mapping[str, tuple[Floats, Bools, Ints]]
    """For each attribute: target, whether it applies, and the topics' numbers among the memberships."""

    @classmethod
    def of(cls, qrels: Qrels, attributes: Mapping[str, Attribute], topics: Ints) -> Slice:
        """The topics of these numbers, which ascend."""
        starts = qrels.offsets[topics]
        counts = qrels.offsets[topics + 1] - starts
        rows = np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))
        names = tuple(qrels.topics[number] for number in topics.tolist())
        codes = np.repeat(np.arange(topics.size), counts)
        judged = Qrels(qrels.source, names, codes, qrels.docs.take(rows).compact(), qrels.grades[rows])
        return cls(
            judged,
            {
                name: (a.target[topics], a.applies[topics], a.numbers[topics])
                for name, a in attributes.items()
            },
        )

    def bind(self, attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
        """The attributes for these topics only."""
        return {
            name: replace(
                attributes[name], topics=self.qrels.topics, target=target, applies=applies, numbers=numbers
            )
            for name, (target, applies, numbers) in self.targets.items()
        }


def without_topics(attribute: Attribute) -> Attribute:
    """The part of an attribute that all slices share."""
    nothing = np.zeros(0, dtype=np.int64)
    return replace(
        attribute, topics=(), target=attribute.target[:0], applies=attribute.applies[:0], numbers=nothing
    )


@dataclass(frozen=True)
class Collection:
    """What runs are scored against, loaded and indexed once."""

    task: Task
    qrels: Qrels
    groups: Mapping[str, Any] = field(default_factory=dict)
    """Attributes given from Python; they override the task's."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    """Those that are loaded, because a measure needs them."""

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """All attributes, loaded or not."""
        return tuple(dict.fromkeys([*self.task.attributes, *self.groups]))

    @property
    def ordinal(self) -> dict[str, bool]:
        """Whether each attribute, loaded or not, is ordinal."""
        specs = {name: spec.kind == "ordinal" for name, spec in self.task.attributes.items()}
        given = {
            name: getattr(getattr(a, "spec", None), "kind", "") == "ordinal"
            for name, a in self.groups.items()
        }
        return {**specs, **given}

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
        """The part that workers need; with `slices_only`, nothing that depends on topics."""
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
    """Bring together a task (or none), qrels and groups; qrels and groups override the task's."""
    task = task if isinstance(task, Task) else read_task(task) if task is not None else Task()
    if qrels is None and not task.qrels:
        raise UsageError("there are no qrels: give a task that names them, or qrels")
    judged = load_qrels(qrels if qrels is not None else task.qrels)
    if task.max_grade is not None and task.max_grade < judged.max_grade:
        place = task.path or "the task"
        raise UsageError(
            f"{place}: max_grade is {task.max_grade:g}, but {judged.source} has a grade {judged.max_grade:g}"
        )
    return Collection(task, judged, dict(groups or {}))

"""What runs are scored against: the task, its judgements and its attributes, loaded and indexed once."""

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np

from fairevals.collection.groups import Attribute, load_attribute
from fairevals.collection.inputs import load_qrels
from fairevals.collection.intersections import Intersection
from fairevals.collection.late import LateQrels, can_wait
from fairevals.collection.memberships import Membership
from fairevals.collection.qrels import Qrels
from fairevals.errors import InputError, InputWarning, UsageError, check_known, escape, names, pluralize
from fairevals.ids import Ids
from fairevals.io.tables import text_keys
from fairevals.io.task import Task, read_task
from fairevals.io.topics import Topics, read_topics
from fairevals.typing import Ints

Slice = tuple[Qrels, dict[str, dict[str, Any]]]
"""What depends on some topics only: their judgements, and those fields of each attribute. It is small enough to be
sent to the worker that scores those topics; memberships are shared by all slices."""


@dataclass(frozen=True)
class Collection:
    """What runs are scored against, loaded and indexed once."""

    task: Task
    qrels: Qrels
    groups: Mapping[str, Any] = field(default_factory=dict)
    """Attributes given from Python; they override the task's."""
    attributes: Mapping[str, Attribute | Intersection] = field(default_factory=dict)
    """Those that are loaded, because a measure, or an intersection, needs them."""
    listed: Topics | None = None
    """The list of topics, if there is one."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the task, judged or not: those that are listed, or else those of the qrels."""
        return self.listed.ids if self.listed is not None else self.qrels.topics

    @property
    def intersections(self) -> dict[str, Intersection]:
        """All intersections of attributes; only those in `attributes` are bound to the topics."""
        given = {name: one for name, one in self.groups.items() if isinstance(one, Intersection)}
        declared = {name: Intersection.from_spec(spec) for name, spec in self.task.intersections.items()}
        return {**{name: one for name, one in declared.items() if name not in self.groups}, **given}

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """All attributes and then all intersections, loaded or not."""
        return tuple(dict.fromkeys([*self.ordinal, *self.intersections]))

    @property
    def ordinal(self) -> dict[str, bool]:
        """Whether each attribute, loaded or not, is ordinal; without intersections."""
        given = {name: getattr(one, "spec", None) for name, one in self.groups.items()}
        specs, crossed = {**self.task.attributes, **given}, self.intersections
        return {n: getattr(spec, "kind", "") == "ordinal" for n, spec in specs.items() if n not in crossed}

    def width(self, name: str, by_rank: bool) -> int:
        """How many groups there are for each document in memory.

        All of them are only formed if a measure looks at ranks; else there are those of an intersection's attributes,
        or the few that documents are in.
        """
        attribute = self.attributes[name]
        if by_rank:
            return len(attribute.spec.groups)
        if isinstance(attribute, Intersection):
            return max(cast(Attribute, self.attributes[part]).width for part in attribute.attributes)
        return attribute.width

    def memberships(self, name: str, topic_codes: Ints, docs: Ids) -> list[Membership]:
        """The memberships (n, groups) of n documents in an attribute, or in each of an intersection's."""
        attribute = self.attributes[name]
        if isinstance(attribute, Intersection):
            parts = [cast(Attribute, self.attributes[part]) for part in attribute.attributes]
            return attribute.memberships(parts, topic_codes, docs)
        return [attribute.memberships(topic_codes, docs)]

    def with_attributes(self, names: Iterable[str]) -> Self:
        """The same with these attributes loaded, and those that their intersections are made of."""
        loaded: dict[str, Attribute | Intersection] = {}
        crossed = self.intersections
        for name in names:
            for each in (*(crossed[name].attributes if name in crossed else ()), name):
                if each not in loaded:
                    loaded[each] = self.attributes.get(each) or self._load(each, loaded)
        return replace(self, attributes=loaded)

    def _load(self, name: str, loaded: Mapping[str, Any]) -> Attribute | Intersection:
        check_known("attribute", name, self.attribute_names)
        if name in self.intersections:
            intersection = self.intersections[name]
            return intersection.bound(self.qrels, [loaded[part] for part in intersection.attributes])
        if name not in self.groups:
            return load_attribute(self.task.attributes[name], self.qrels)
        given = self.groups[name]
        return (given if isinstance(given, Attribute) else Attribute.of(name, given)).bound(self.qrels)

    def shareable(self, *, slices_only: bool = False) -> Self:
        """The part that workers need; with `slices_only`, nothing that depends on topics."""
        shared = self.sliced(self.slice_of(np.zeros(0, np.int64))) if slices_only else self
        return replace(shared, groups={})

    def slice_of(self, numbers: Ints) -> Slice:
        """The slice for the topics of these numbers, which ascend."""
        qrels = self.qrels
        code = np.full(len(qrels.topics), -1)
        code[numbers] = np.arange(numbers.size)
        rows = np.flatnonzero(code[qrels.topic_of] >= 0)
        topics = tuple(qrels.topics[number] for number in numbers.tolist())
        docs = qrels.docs.take(rows).compact()
        judged = Qrels(qrels.source, topics, code[qrels.topic_of[rows]], docs, qrels.grades[rows])
        by_topic = {
            name: {
                field: getattr(a, field)[numbers]
                for field in ("target", "applies", "numbers")
                if hasattr(a, field)
            }
            for name, a in self.attributes.items()
        }
        return judged, {name: {"topics": topics, **fields} for name, fields in by_topic.items()}

    def sliced(self, part: Slice) -> Self:
        """The topics of the slice only."""
        qrels, fields = part
        attributes = {name: replace(self.attributes[name], **fields[name]) for name in fields}
        task = replace(self.task, max_grade=self.max_grade)  # a slice has only the grades of its own topics
        return replace(self, task=task, qrels=qrels, attributes=attributes)

    @property
    def max_grade(self) -> float:
        """The task's, or the largest in the qrels."""
        return float(self.task.max_grade) if self.task.max_grade is not None else self.qrels.max_grade


def load_collection(
    task: Task | str | os.PathLike[str] | None,
    qrels: Any = None,
    groups: Mapping[str, Any] | None = None,
    *,
    topics: str | os.PathLike[str] | None = None,
    judged: bool = True,
    late: bool = False,
) -> Collection:
    """Bring together a task (or none), qrels, groups and a list of topics; what is given overrides the task's.

    Without `judged`, the task's qrels need not exist yet if there is a list of topics. With `late`, qrels may be read,
    and checked, when they are first needed.
    """
    if task is not None and not isinstance(task, (Task, str, os.PathLike)):
        raise UsageError(
            f"cannot take {escape(repr(task))} as a task; expected a Task or the path of a task file"
        )
    task = task if isinstance(task, Task) else read_task(task) if task is not None else Task()
    topics = topics if topics is not None else task.topics
    listed = read_topics(topics) if topics is not None else None
    own = qrels is None
    if own:
        qrels = task.qrels if judged or listed is None else [path for path in task.qrels if path.exists()]
        if not qrels and (judged or listed is None):
            raise UsageError("there are no qrels: give a task that names them, or qrels")
        if not qrels:
            qrels = Qrels("(no qrels)", (), np.zeros(0, np.int64), Ids.of([]), np.zeros(0))

    def read() -> Qrels:
        loaded = load_qrels(qrels)
        if task.max_grade is not None and task.max_grade < loaded.max_grade and loaded.topics:
            place = task.path or "the task"
            higher = f"{loaded.source} has a grade {loaded.max_grade:g}"
            raise UsageError(f"{place}: max_grade is {task.max_grade:g}, but {higher}")
        unlisted = sorted(set(loaded.topics).difference(listed.ids)) if listed is not None else []
        if listed is not None and unlisted and own:  # others' qrels may have other topics
            lists = f"{escape(listed.source, 300)} does not list {pluralize(len(unlisted), 'judged topic')}"
            warnings.warn(InputWarning(f"{lists}, such as {escape(unlisted[0])!r}"), stacklevel=3)
        return loaded

    loaded = LateQrels(read) if late and can_wait() else read()
    collection = Collection(task, loaded, named_groups(groups), listed=listed)
    _check_intersections(collection)
    return collection


def _check_intersections(collection: Collection) -> None:
    for name, one in collection.intersections.items():
        if name in collection.task.attributes:
            found = f"an intersection {escape(name)} with the name of an attribute"
            raise InputError(one.spec.place, found, "a name of its own")
        for part in one.attributes:
            if part not in collection.ordinal:
                found = f"an intersection {escape(name)} of the missing attribute {escape(part)!r}"
                expected = f"one of {names(collection.ordinal)}" if collection.ordinal else "attributes"
                raise InputError(one.spec.place, found, expected)


def named_groups(groups: Any) -> dict[str, Any]:
    """Attributes by name, from a dict {name: memberships or Attribute}, an `Attribute` or a list of them.

    An `Intersection` may stand wherever an `Attribute` may.
    """
    if groups is None:
        return {}
    if isinstance(groups, Mapping):
        return text_keys(groups, "groups")
    kinds = (Attribute, Intersection)
    several = [groups] if isinstance(groups, kinds) else groups
    if isinstance(several, (list, tuple)) and all(isinstance(one, kinds) for one in several):
        return {one.spec.name: one for one in several}
    raise UsageError(
        f"cannot take {escape(repr(groups))} as groups; expected a dict {{attribute: memberships}}, or Attributes"
    )

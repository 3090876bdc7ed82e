"""What runs are scored against: the task, its judgements and its attributes, loaded and indexed once."""

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from fairevals.collection.groups import Attribute, load_attribute
from fairevals.collection.inputs import load_qrels
from fairevals.collection.qrels import Qrels
from fairevals.errors import InputWarning, UsageError, check_known, escape, pluralize
from fairevals.ids import Ids
from fairevals.io.tables import text_keys
from fairevals.io.task import Task, read_task
from fairevals.io.topics import Topics, read_topics
from fairevals.typing import Ints

Slice = tuple[Qrels, dict[str, dict[str, Any]]]
"""What depends on some topics only: their judgements, and those fields of each attribute. It is small enough to be
sent to whoever scores those topics; memberships are shared by all slices."""


@dataclass(frozen=True)
class Collection:
    """What runs are scored against, loaded and indexed once."""

    task: Task
    qrels: Qrels
    groups: Mapping[str, Any] = field(default_factory=dict)
    """Attributes given from Python; they override the task's."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    """Those that are loaded, because a measure needs them."""
    listed: Topics | None = None
    """The list of topics, if there is one."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics of the task, judged or not: those that are listed, or else those of the qrels."""
        return self.listed.ids if self.listed is not None else self.qrels.topics

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """All attributes, loaded or not."""
        return tuple(dict.fromkeys([*self.task.attributes, *self.groups]))

    @property
    def ordinal(self) -> dict[str, bool]:
        """Whether each attribute, loaded or not, is ordinal."""
        given = {name: getattr(attribute, "spec", None) for name, attribute in self.groups.items()}
        specs = {**self.task.attributes, **given}
        return {name: getattr(spec, "kind", "") == "ordinal" for name, spec in specs.items()}

    def with_attributes(self, names: Iterable[str]) -> Self:
        """The same with these attributes loaded."""
        loaded = {name: self.attributes.get(name) or self._load(name) for name in names}
        return replace(self, attributes=loaded)

    def _load(self, name: str) -> Attribute:
        check_known("attribute", name, self.attribute_names)
        if name not in self.groups:
            return load_attribute(self.task.attributes[name], self.qrels)
        given = self.groups[name]
        return (given if isinstance(given, Attribute) else Attribute.of(name, given)).bound(self.qrels)

    def shareable(self, *, slices_only: bool = False) -> Self:
        """The part that workers need; with `slices_only`, nothing that depends on topics."""
        task = replace(self.task, max_grade=self.max_grade)  # a slice has only the grades of its own topics
        shared = self.sliced(self.slice_of(np.zeros(0, np.int64))) if slices_only else self
        return replace(shared, task=task, groups={})

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
            name: {field: getattr(a, field)[numbers] for field in ("target", "applies", "numbers")}
            for name, a in self.attributes.items()
        }
        return judged, {name: {"topics": topics, **fields} for name, fields in by_topic.items()}

    def sliced(self, part: Slice) -> Self:
        """The topics of the slice only."""
        qrels, fields = part
        attributes = {name: replace(self.attributes[name], **fields[name]) for name in fields}
        return replace(self, qrels=qrels, attributes=attributes)

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
) -> Collection:
    """Bring together a task (or none), qrels, groups and a list of topics; what is given overrides the task's.

    Without `judged`, the task's qrels need not exist yet if there is a list of topics.
    """
    if task is not None and not isinstance(task, (Task, str, os.PathLike)):
        raise UsageError(
            f"cannot take {escape(repr(task))} as a task; expected a Task or the path of a task file"
        )
    task = task if isinstance(task, Task) else read_task(task) if task is not None else Task()
    topics = topics if topics is not None else task.topics
    listed = read_topics(topics) if topics is not None else None
    if qrels is None:
        qrels = task.qrels if judged or listed is None else [path for path in task.qrels if path.exists()]
        if not qrels and (judged or listed is None):
            raise UsageError("there are no qrels: give a task that names them, or qrels")
    nothing = Qrels("(no qrels)", (), np.zeros(0, np.int64), Ids.of([]), np.zeros(0))
    loaded = load_qrels(qrels) if not isinstance(qrels, (list, tuple)) or qrels else nothing
    if task.max_grade is not None and task.max_grade < loaded.max_grade and loaded.topics:
        place = task.path or "the task"
        higher = f"{loaded.source} has a grade {loaded.max_grade:g}"
        raise UsageError(f"{place}: max_grade is {task.max_grade:g}, but {higher}")
    unlisted = sorted(set(loaded.topics).difference(listed.ids)) if listed is not None else []
    if listed is not None and unlisted:
        lists = f"{escape(listed.source, 300)} does not list {pluralize(len(unlisted), 'judged topic')}"
        warnings.warn(InputWarning(f"{lists}, such as {escape(unlisted[0])!r}"), stacklevel=2)
    return Collection(task, loaded, named_groups(groups), listed=listed)


def named_groups(groups: Any) -> dict[str, Any]:
    """Attributes by name, from a dict {name: memberships or Attribute}, an `Attribute` or a list of them."""
    if groups is None:
        return {}
    if isinstance(groups, Mapping):
        return text_keys(groups, "groups")
    several = [groups] if isinstance(groups, Attribute) else groups
    if isinstance(several, (list, tuple)) and all(isinstance(one, Attribute) for one in several):
        return {one.spec.name: one for one in several}
    raise UsageError(
        f"cannot take {escape(repr(groups))} as groups; expected a dict {{attribute: memberships}}, or Attributes"
    )

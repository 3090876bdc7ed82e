"""What measures need besides run and qrels, for libraries whose calls have no place for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from fairevals.collection.groups import Attribute
from fairevals.collection.inputs import load_attribute_by_name, load_qrels
from fairevals.collection.qrels import Qrels
from fairevals.errors import UsageError
from fairevals.evaluation import Collection
from fairevals.io.task import Task, read_task

_current: ContextVar[TaskContext | None] = ContextVar("fairevals.task", default=None)


@dataclass(frozen=True)
class TaskContext:
    """A task in force: attributes with groups and targets, the grade scale, the policy."""

    task: Task = field(default_factory=Task)
    groups: Mapping[str, Any] = field(default_factory=dict)
    known: dict[str, Attribute] = field(default_factory=dict)
    """Attributes that were read already; they are asked for once a system, or once a batch of topics."""

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """All attributes there are."""
        return tuple(dict.fromkeys([*self.task.attributes, *self.groups]))

    def attribute(self, name: str, qrels: Qrels) -> Attribute:
        """The attribute of that name; whoever gets it binds it to the qrels at hand."""
        if name not in self.known:
            self.known[name] = load_attribute_by_name(name, self.task, self.groups, qrels)
        return self.known[name]

    def collection(self, qrels: Any) -> Collection:
        """These qrels in place of the task's own, which only say what the largest grade is.

        A measure's name says its cutoff here, so the task's default does not count; and rankings are by score.
        """
        judged = load_qrels(qrels)
        top = self.task.max_grade
        if top is not None and judged.max_grade > top:
            raise UsageError(f"the task's max_grade is {top:g}, but there is a grade {judged.max_grade:g}")
        task = replace(self.task, qrels=(), max_grade=top, cutoff=None, order="score")
        return Collection(task, judged, _Attributes(self, judged))


class _Attributes(Mapping[str, Attribute]):
    """The attributes by name, each read when it is first asked for."""

    def __init__(self, surroundings: TaskContext, qrels: Qrels) -> None:
        self._surroundings, self._qrels = surroundings, qrels

    def __getitem__(self, name: str) -> Attribute:
        if name not in self._surroundings.attribute_names:
            raise KeyError(name)
        return self._surroundings.attribute(name, self._qrels)

    def __iter__(self) -> Iterator[str]:
        return iter(self._surroundings.attribute_names)

    def __len__(self) -> int:
        return len(self._surroundings.attribute_names)


def surroundings() -> TaskContext | None:
    """The task in force; None outside of every `with fairevals.task(…)`."""
    return _current.get()


@contextmanager
def task(
    source: Task | str | os.PathLike[str] | None = None,
    *,
    groups: Mapping[str, Any] | None = None,
    policy: str | None = None,
) -> Iterator[None]:
    """Let ir-measures (and so PyTerrier) compute fairness measures under a task, within a `with`.

    `source` is a task file or a `Task`: its attributes, targets, weights, largest grade and policy count. Its
    qrels, measures, order and default cutoff do not: those come with the call. `groups` is
    {attribute: memberships} as for `evaluate`, and counts before the task's; `policy` likewise.

    >>> import fairevals, ir_measures
    >>> qrels = [ir_measures.Qrel("q1", "a", 1), ir_measures.Qrel("q1", "b", 1)]
    >>> run = [ir_measures.ScoredDoc("q1", "a", 2.0), ir_measures.ScoredDoc("q1", "b", 1.0)]
    >>> fair = ir_measures.parse_measure("AWRF(attr='SEX')@1")
    >>> with fairevals.task(groups={"SEX": {"a": "she", "b": "he"}}):
    ...     round(ir_measures.calc_aggregate([fair], qrels, run)[fair], 4)
    0.6887

    It holds for the thread (or asynchronous task) that entered it; the innermost of several counts.
    """
    found = source if isinstance(source, Task) else read_task(source) if source is not None else Task()
    if found.max_grade is None and found.qrels:
        # So that a batch of topics that lacks the largest grade is scored as all of them together are.
        found = replace(found, max_grade=load_qrels(found.qrels).max_grade)
    if policy is not None:
        found = replace(found, policy=replace(found.policy, kind=policy))
    token = _current.set(TaskContext(found, dict(groups or {})))
    try:
        yield
    finally:
        _current.reset(token)

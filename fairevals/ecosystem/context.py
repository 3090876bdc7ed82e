"""A task in force, for libraries whose calls only have a run and qrels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from fairevals.collection.groups import Attribute
from fairevals.collection.inputs import load_qrels
from fairevals.errors import UsageError
from fairevals.evaluation import Collection
from fairevals.io.task import Task, read_task

_current: ContextVar[TaskContext | None] = ContextVar("fairevals.task", default=None)


@dataclass(frozen=True)
class TaskContext:
    """A task in force: attributes with groups and targets, the largest grade, the policy."""

    task: Task = field(default_factory=Task)
    groups: Mapping[str, Any] = field(default_factory=dict)
    loaded: dict[str, Attribute] = field(default_factory=dict)
    """Attributes are kept once loaded: ir-measures needs them for every run and batch of topics."""

    def collection(self, qrels: Any) -> Collection:
        """A collection with these qrels instead of the task's, which only determine the largest grade.

        The task's default cutoff and order do not apply: a measure's name has its cutoff, rankings are by score.
        """
        judged = load_qrels(qrels)
        top = self.task.max_grade
        if top is not None and judged.max_grade > top:
            problem = f"the task's max_grade is {top:g}, but the qrels have a grade {judged.max_grade:g}"
            raise UsageError(problem)
        task = replace(self.task, qrels=(), max_grade=top, cutoff=None, order="score")
        return Collection(task, judged, {**self.groups, **self.loaded})

    def load_attributes(self, collection: Collection, names: Iterable[str]) -> Collection:
        """The collection with these attributes loaded."""
        with_attributes = collection.with_attributes(names)
        for name, attribute in with_attributes.attributes.items():
            self.loaded.setdefault(name, attribute)
        return with_attributes


def current_context() -> TaskContext | None:
    """The task in force; None outside of `with fairevals.task(…)`."""
    return _current.get()


@contextmanager
def task(
    source: Task | str | os.PathLike[str] | None = None,
    *,
    groups: Mapping[str, Any] | None = None,
    policy: str | None = None,
) -> Iterator[None]:
    """Let ir-measures (and so PyTerrier) compute fairness measures with a task, inside a `with` statement.

    `source` is a task file or a `Task`, of which attributes, targets, weights, largest grade and policy are
    used. Its qrels, measures, order and default cutoff are not: those come with the call. `groups` is
    {attribute: memberships} as for `evaluate`. `groups` and `policy` override the task's.

    >>> import fairevals, ir_measures
    >>> qrels = [ir_measures.Qrel("q1", "a", 1), ir_measures.Qrel("q1", "b", 1)]
    >>> run = [ir_measures.ScoredDoc("q1", "a", 2.0), ir_measures.ScoredDoc("q1", "b", 1.0)]
    >>> fair = ir_measures.parse_measure("AWRF(attr='SEX')@1")
    >>> with fairevals.task(groups={"SEX": {"a": "she", "b": "he"}}):
    ...     round(ir_measures.calc_aggregate([fair], qrels, run)[fair], 4)
    0.6887

    It holds for the thread (or asynchronous task) that entered it; of nested ones, the innermost holds.
    """
    given = source if isinstance(source, Task) else read_task(source) if source is not None else Task()
    if given.max_grade is None and given.qrels:
        # A batch of topics without the largest grade must score as it does among all topics.
        given = replace(given, max_grade=load_qrels(given.qrels).max_grade)
    if policy is not None:
        given = replace(given, policy=replace(given.policy, kind=policy))
    token = _current.set(TaskContext(given, dict(groups or {})))
    try:
        yield
    finally:
        _current.reset(token)

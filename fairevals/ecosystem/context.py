"""A task in force, for libraries whose calls only have a run and qrels."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from fairevals.collection.collection import named_groups
from fairevals.collection.groups import Attribute
from fairevals.collection.inputs import load_qrels
from fairevals.collection.intersections import Intersection
from fairevals.evaluation import Collection, load_collection
from fairevals.io.task import Task, read_task

current_context: ContextVar[TaskContext | None] = ContextVar("fairevals.task", default=None)
"""The task in force; None outside of `with fairevals.task(…)`."""


@dataclass(frozen=True)
class TaskContext:
    """A task in force: attributes with groups and targets, the largest grade, the policy."""

    task: Task = field(default_factory=Task)
    groups: Mapping[str, Any] = field(default_factory=dict)
    loaded: dict[str, Attribute | Intersection] = field(default_factory=dict)
    """Attributes are kept once loaded: ir-measures needs them for every run and batch of topics."""

    def collection(self, qrels: Any) -> Collection:
        """A collection with these qrels instead of the task's, which only determine the largest grade.

        The task's default cutoff and order do not apply: a measure's name has its cutoff, rankings are by score.
        """
        task = replace(self.task, qrels=(), cutoff=None, order="score")
        return load_collection(task, qrels, {**self.groups, **self.loaded})


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
    given = replace(given, policy=given.policy.updated(kind=policy))
    token = current_context.set(TaskContext(given, named_groups(groups)))
    try:
        yield
    finally:
        current_context.reset(token)

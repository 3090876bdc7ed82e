"""Learning data with the attributes and targets of a task.

The names of measures mean what they say: the task's cutoff is not added to them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fairevals.collection import AttributeView
from fairevals.collection.collection import Collection
from fairevals.collection.qrels import Qrels
from fairevals.errors import UsageError, unknown
from fairevals.ids import Ids
from fairevals.io.qrels import QrelsColumns
from fairevals.io.task import Task, read_task
from fairevals.measures import Measure
from fairevals.training.data import Dataset
from fairevals.training.objectives import parse_utility
from fairevals.training.settings import Settings


def qrels_of(data: Dataset) -> Qrels:
    """The grades of a dataset as judgements."""
    topic_of = np.repeat(np.arange(len(data)), data.lengths)
    return Qrels.of(QrelsColumns(data.name, list(data.topics), topic_of, Ids.of(data.docs), data.grades))


def with_task(
    data: Sequence[Dataset], task: Task | str | os.PathLike[str], settings: Settings
) -> list[Dataset]:
    """The datasets with the attributes of a task that the measures of the settings name, or all if they name none.

    Their targets are the task's; a target "relevant" is that of the relevant documents of the dataset. The first of
    them gives the groups of methods and options that have no measure, such as `deltr`.
    """
    task = task if isinstance(task, Task) else read_task(task)
    names = _attributes(task, settings)
    plain = replace(task, topics=None, qrels=(), runs=(), runs_table=None, cutoff=None, topic_groups={})
    found = []
    for each in data:
        collection = Collection(plain, qrels_of(each)).with_attributes(names)
        topic_of, docs = np.repeat(np.arange(len(each)), each.lengths), Ids.of(each.docs)
        views = {}
        for name in names:
            attribute, factors = collection.attributes[name], collection.memberships(name, topic_of, docs)
            spec = attribute.spec
            of_groups = spec.groups, spec.kind == "ordinal", tuple(factors)
            of_topics = attribute.target, attribute.applies
            views[name] = AttributeView(*of_groups, *of_topics, spec.divergence, spec.weight)
        first = views[names[0]]
        groups: Any = {"groups": first.groups, "membership": first.membership, "attribute": names[0]}
        found.append(replace(each, task=plain, attributes=views, **groups))
    return found


def _attributes(task: Task, settings: Settings) -> list[str]:
    """The names of the attributes, and intersections, that are used."""
    if not task.attributes:
        raise UsageError("the task has no attribute")
    measures: list[Measure] = []
    if settings.method in ("pg-rank", "fair-pg-rank"):
        measures = [part.measure for part in settings.objective.parts]
        measures += [settings.objective.disparity] if settings.method == "fair-pg-rank" else []
    elif settings.method == "bandit-rank":
        measures = [part.measure for part in parse_utility(settings.reward)]
    elif settings.method == "lp":
        measures = [settings.group_disparity]
    # The disparity is the last, and its groups are those of baselines.
    names = [name for measure in reversed(measures) for name in measure.attributes_used()]
    if not names or any(measure.attributes == "all" for measure in measures):
        names += list(task.attributes)
    known = [*task.attributes, *task.intersections]
    for measure in measures:
        for name in measure.attributes_used():
            if name not in known:
                raise UsageError(f"{measure}: {unknown('attribute', name, known)}")
    return list(dict.fromkeys(names))

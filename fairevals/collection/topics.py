"""Groups of topics: by globs or by a table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fairevals.errors import InputError, Place, UsageError, escape, type_of, unknown
from fairevals.io.streams import Source
from fairevals.io.tables import table
from fairevals.io.task import Task


def topic_groups(task: Task, groups: Any, topics: Sequence[str]) -> dict[str, list[int]]:
    """The positions of the topics in each group.

    `groups` is the name of `[topic_groups.NAME]` in the task; a dict {group: globs} or {topic: group}; or the path of
    a table with columns topic and group. A group without any of the topics is a `UsageError`.

    >>> topic_groups(Task(), {"R": ["R*"], "M": "M1"}, ["R1", "M1", "R2"])
    {'R': [0, 2], 'M': [1]}
    >>> topic_groups(Task(), {"R1": "long", "R2": "short", "M1": "long"}, ["R1", "M1", "R2"])
    {'long': [0, 1], 'short': [2]}
    """
    name = "topic groups"
    if isinstance(groups, str) and groups in task.topic_groups:
        name, groups = f"topic groups {groups}", task.topic_groups[groups]
    elif isinstance(groups, str) and not Path(groups).is_file():
        raise unknown("topic groups", groups, task.topic_groups)
    if isinstance(groups, Mapping) and isinstance(groups.get("file"), Path):
        groups = groups["file"]
    if isinstance(groups, (str, os.PathLike)):
        groups = _read(groups)
    if not isinstance(groups, Mapping):
        raise UsageError(f"{name}: cannot take {type_of(groups)}; expected a name, a dict or a path")
    if set(groups) & set(topics):  # {topic: group}
        by_group: dict[str, list[str]] = {}
        for topic, group in groups.items():
            by_group.setdefault(str(group), []).append(str(topic))
        groups = by_group
    found = {}
    for group, globs in groups.items():
        patterns = [globs] if isinstance(globs, str) else list(globs)
        found[str(group)] = [
            at for at, topic in enumerate(topics) if any(fnmatchcase(topic, pattern) for pattern in patterns)
        ]
        if not found[str(group)]:
            first = repr(escape(topics[0])) if topics else "(none)"
            raise UsageError(
                f"{name}: no judged topic is in the group {escape(str(group))!r}; topics are such as {first}"
            )
    return found


def _read(path: str | os.PathLike[str]) -> dict[str, str]:
    """The group of each topic in a csv or tsv table; a topic that is listed twice is an error."""
    source = Source.of(path)
    _, header, rows = table(source, ("topic", "group"))
    groups: dict[str, str] = {}
    for line, row in rows:
        topic, group = (row[header.index(column)] for column in ("topic", "group"))
        if not topic or not group or topic in groups:
            found = f"topic {escape(topic)!r} in group {escape(group)!r}"
            raise InputError(Place(source.name, line), found, "every topic once, with its group")
        groups[topic] = group
    return groups

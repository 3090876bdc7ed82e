"""Groups of topics: by globs, by a table, or by a column of the list of topics."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fairevals.collection.inputs import is_frame, rename_columns
from fairevals.errors import FairevalsError, InputError, Place, UsageError, escape, names, unknown
from fairevals.io.streams import Source
from fairevals.io.tables import check_columns, table, text_keys
from fairevals.io.task import Task, place_in
from fairevals.io.topics import read_topics

RESERVED = ("run", "measure", "gap", "worst")
"""Names of other columns in a table with one column per group."""


def topic_groups(task: Task, groups: Any, topics: Sequence[str]) -> dict[str, list[int]]:
    """The positions of the topics in each group.

    `groups` is the name of `[topic_groups.NAME]` in the task; a dict {group: globs}; a dict {topic: group} or a Series
    of groups by topic; or a DataFrame or the path of a table with columns topic and group. It is an error if there are
    no groups, or if a group has none of the topics.

    >>> topic_groups(Task(), {"R": ["R*"], "M": "M1"}, ["R1", "M1", "R2"])
    {'R': [0, 2], 'M': [1]}
    >>> topic_groups(Task(), {"R1": "long", "R2": "short", "M1": "long"}, ["R1", "M1", "R2"])
    {'long': [0, 1], 'short': [2]}
    """
    name, place = "topic groups", None
    if isinstance(groups, str) and groups in task.topic_groups:
        place = place_in(task, "topic_groups", groups)
        name, groups = f"topic groups {escape(groups)}", task.topic_groups[groups]
        if isinstance(groups.get("column"), str):
            groups = _column(task, str(groups["column"]), name, place)
    elif isinstance(groups, str) and not Path(groups).is_file():
        raise unknown("topic groups", groups, task.topic_groups)
    if isinstance(groups, Mapping) and isinstance(groups.get("file"), Path):
        groups = groups["file"]
    if isinstance(groups, (str, os.PathLike)):
        place, groups = Place(os.fspath(groups)), _read(groups)
    elif is_frame(groups):
        groups = rename_columns(groups, ("topic",))
        check_columns(groups, name, ("topic", "group"), "columns topic and group")
        groups = groups.set_index("topic")["group"]
    if hasattr(groups, "to_dict") and hasattr(groups, "index"):  # a Series
        if not groups.index.is_unique:
            twice = escape(str(groups.index[groups.index.duplicated()][0]))
            raise UsageError(f"{name}: topic {twice!r} twice; expected every topic once, with its group")
        groups = groups.dropna().to_dict()
    if not isinstance(groups, Mapping) or not groups:
        raise UsageError(
            f"{name}: cannot take {escape(repr(groups))}; expected a name, a dict {{group: globs}} or "
            "{topic: group}, or a path"
        )
    groups = text_keys(groups, name)
    several = any(isinstance(value, (list, tuple, set, frozenset)) for value in groups.values())
    if not several and groups.keys() & set(topics):  # {topic: group}
        at = {topic: number for number, topic in enumerate(topics)}
        found: dict[str, list[int]] = {}
        for topic, group in groups.items():
            if group is not None and group == group:  # not NaN
                found.setdefault(str(group), []).extend([at[topic]] if topic in at else [])
        found = {group: sorted(numbers) for group, numbers in found.items()}
    else:
        found = {group: _matching(globs, topics, name) for group, globs in groups.items()}
    for group in found:
        if group in RESERVED:
            raise _error(place, name, f"a group that is called {group!r}", "another name")
        if not found[group]:
            first = repr(escape(topics[0])) if topics else "(none)"
            wrong = f"no judged topic is in the group {escape(group)!r}"
            raise _error(place, name, wrong, f"some of the topics, which are such as {first}")
    return found


def _error(place: Place | None, name: str, found: str, expected: str) -> FairevalsError:
    """An error with the place of the groups, if they are in a file."""
    if place is None:
        return UsageError(f"{name}: {found}; expected {expected}")
    return InputError(place, f"{name}: {found}", expected)


def _matching(globs: Any, topics: Sequence[str], name: str) -> list[int]:
    """The positions of the topics that match one of the globs."""
    if not isinstance(globs, (str, list, tuple, set, frozenset)):
        raise UsageError(f'{name}: cannot take {escape(repr(globs))}; expected globs such as ["R*"]')
    patterns = [globs] if isinstance(globs, str) else [str(pattern) for pattern in globs]
    return [at for at, topic in enumerate(topics) if any(fnmatchcase(topic, pattern) for pattern in patterns)]


def _column(task: Task, column: str, name: str, place: Place | None) -> dict[str, str]:
    """The group of each topic in a column of the task's list of topics; a topic with an empty cell is in none."""
    if task.topics is None:
        raise _error(place, name, f"column = {escape(column)!r} needs a list of topics", "topics = …")
    listed = read_topics(task.topics)
    if column not in listed.columns:
        expected = f"one of {names(listed.columns)}" if listed.columns else "a table with a header"
        raise InputError(Place(listed.source), f"no column {escape(column)!r} for the {name}", expected)
    return {topic: group for topic, group in zip(listed.ids, listed.columns[column], strict=True) if group}


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

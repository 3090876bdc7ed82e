"""Writes a task as TOML."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields, is_dataclass
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairevals.errors import UsageError, escape
from fairevals.io.specs import INTERSECTION_TARGETS, AttributeSpec, IntersectionSpec

if TYPE_CHECKING:
    from fairevals.io.task import Task


class TaskWriter:
    """Writes a task as TOML: only what differs from the defaults, paths relative to the folder of the file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def task(self, task: "Task") -> str:
        if task.runs and task.runs_table is None:
            raise UsageError(
                "runs were given without a table; write one and give its path: Task(runs='runs.csv')"
            )
        measures = [
            {"measure": name, "label": task.labels[name]} if name in task.labels else name
            for name in task.measures
        ]
        given = {**_changed(task), "runs": task.runs_table}
        given |= {"measures": measures} if "measures" in given or task.labels else {}
        if len(task.qrels) == 1:
            given["qrels"] = task.qrels[0]
        values = {key: value for key, value in given.items() if key != "labels" and value is not None}
        return "".join(self.table((), values))

    def table(self, at: tuple[str, ...], values: Mapping[str, Any]) -> Iterator[str]:
        """The lines of a table, with the tables in it behind the single values."""
        inner = {key: value for key, value in values.items() if is_dataclass(value) or _has_tables(value)}
        single = {key: value for key, value in values.items() if key not in inner}
        if at and (single or not inner):
            yield f"\n[{'.'.join(map(_key, at))}]\n"
        for key, value in single.items():
            yield f"{_key(key)} = {self.value(value)}\n"
        for key, value in inner.items():
            yield from self.table((*at, key), _changed(value) if is_dataclass(value) else value)

    def value(self, value: Any) -> str:
        """A single value."""
        if isinstance(value, Path):
            return _quoted(self.path(value))
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{_key(key)} = {self.value(item)}" for key, item in value.items()) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(self.value, value)) + "]"
        if isinstance(value, bool):
            return "true" if value else "false"
        return repr(int(value) if isinstance(value, Integral) else float(value))

    def path(self, path: Path) -> str:
        inside = (
            path if path.is_absolute() or self.folder == Path() else Path(os.path.relpath(path, self.folder))
        )
        full = os.path.realpath(path)
        if os.path.realpath(self.folder / inside) != full:  # the folder is a link, and `..` leads elsewhere
            inside = Path(os.path.relpath(full, os.path.realpath(self.folder)))
        # A file whose name is that of a target.
        return f"./{inside}" if str(inside) in INTERSECTION_TARGETS else inside.as_posix()


def _changed(record: Any) -> dict[str, Any]:
    """The fields of a dataclass that a file should have: those that differ from their default."""
    values = {}
    for f in fields(record):
        default = f.default_factory() if f.default_factory is not NO_DEFAULT else f.default
        value = getattr(record, f.name)
        # The default of the divergence depends on the kind.
        if f.compare and (value != default or f.name == "divergence"):
            values[f.name] = value
    if isinstance(record, (AttributeSpec, IntersectionSpec)):
        del values["name"]
    return values


def _has_tables(value: Any) -> bool:
    return isinstance(value, Mapping) and any(
        is_dataclass(item) or isinstance(item, Mapping) for item in value.values()
    )


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    """A TOML string: that of JSON, except that TOML also escapes the character 127."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{escape(text)!r} cannot be written as UTF-8") from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

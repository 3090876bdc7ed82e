"""What Python users pass (paths, DataFrames, dicts, other libraries' objects) turned into runs and qrels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.collection.qrels import Qrels, read_qrels
from fairevals.collection.run import Run
from fairevals.errors import UsageError, escape, type_of
from fairevals.io.archives import each_run
from fairevals.io.dataset import Part, read_part
from fairevals.io.qrels import qrels_from_frame
from fairevals.io.runs import BY_SCORE, RunOptions, read_run_columns, run_from_frame
from fairevals.io.streams import Source
from fairevals.io.tables import check_distinct, text_keys

if TYPE_CHECKING:
    import pandas as pd

COLUMN_NAMES = {
    "topic": ("topic", "query_id", "qid", "query", "q_id"),
    "doc": ("doc", "doc_id", "docno", "docid", "document"),
    "score": ("score", "sim"),
    "grade": ("grade", "relevance", "label", "rel"),
    "sample": ("sample", "seq_no"),
}
"""What ir-measures, PyTerrier and others call the columns."""


@dataclass(frozen=True)
class Named:
    """A run from Python, with the name it was given."""

    name: str
    run: Any


class Anonymous(Named):
    """A run whose own name, tag and file must not be shown."""


def is_frame(what: Any) -> bool:
    """Whether it is a DataFrame, without importing pandas."""
    return hasattr(what, "columns") and hasattr(what, "itertuples")


def _is_ranx(what: Any) -> bool:
    """Whether it is a `ranx.Run` or `ranx.Qrels`, without importing ranx."""
    return hasattr(what, "to_dict") and (hasattr(what, "run") or hasattr(what, "qrels"))


def _fields(item: Any, *columns: str) -> list[str]:
    """The names that a document of ir_datasets, ir-measures and so on has for these columns; "" for a missing one."""
    return [next((name for name in COLUMN_NAMES[ours] if hasattr(item, name)), "") for ours in columns]


def _tabled(source: Any, value: str) -> Any:
    """A dict of dicts, a ranx object, or an iterable of items as a DataFrame; anything else as it is.

    Unlike an iterator, the table can be read more than once.
    """
    if is_frame(source):
        return source.copy()  # the caller may change it while the result is in use
    if isinstance(source, (str, bytes)):
        return source
    if _is_ranx(source):
        source = source.to_dict()
    if isinstance(source, Mapping):
        check_distinct(list(map(str, source)), "topics")
        for topic, docs in source.items():
            if not isinstance(docs, Mapping):
                found = f"{escape(repr(docs))} for topic {escape(str(topic))!r}"
                raise UsageError(f"{found}; expected a dict {{doc: {value}}} for each topic")
        rows = [(topic, doc, number) for topic, docs in source.items() for doc, number in docs.items()]
    elif np.iterable(source):
        items = list(source)
        names = _fields(items[0], "topic", "doc", value) if items else []
        if not all(names):
            return source
        rows = [tuple(getattr(item, name) for name in names) for item in items]
    else:
        return source
    import pandas as pd

    return pd.DataFrame(rows, columns=["topic", "doc", value])


def rename_columns(frame: pd.DataFrame, columns: Iterable[str] = tuple(COLUMN_NAMES)) -> pd.DataFrame:
    """The table with this package's names for columns."""
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise UsageError(f"the table has the column {escape(str(twice))!r} twice; expected different names")
    names = {ours: [name for name in COLUMN_NAMES[ours] if name in frame.columns] for ours in columns}
    return frame.rename(columns={given[0]: ours for ours, given in names.items() if given})


def list_runs(runs: Any) -> list[Any]:
    """The runs one by one, also those of a folder or an archive, named where they have no file."""
    if isinstance(runs, (str, os.PathLike, Run)):
        return each_run([runs])
    if is_frame(runs) or _is_ranx(runs) or (isinstance(runs, Mapping) and _is_scores(runs)):
        return [_named("run", runs)]
    if isinstance(runs, Mapping):
        return [named_run(name, run) for name, run in text_keys(runs, "runs").items()]
    if not np.iterable(runs) or isinstance(runs, bytes):
        raise UsageError(
            f"cannot take {escape(repr(runs))} as runs; expected a path, a Run, a DataFrame, a dict of dicts, a list "
            "of those or a dict {name: run}"
        )
    items = list(runs)
    if items and not is_frame(items[0]) and all(_fields(items[0], "topic", "doc")):
        return [named_run("run", items)]
    return each_run(_named(f"run{i}", run) for i, run in enumerate(items, 1))


def _named(name: str, run: Any) -> Any:
    """The run under the name it has of its own, or else the given one."""
    if isinstance(run, (str, os.PathLike, Run, Named)):
        return run
    own = getattr(run, "name", None) if _is_ranx(run) else None
    return named_run(str(own or name), run)


def named_run(name: str, run: Any) -> Named:
    """A run from Python under a name; without documents it is a `UsageError`, as an empty file is."""
    table = _tabled(run, "score")
    if is_frame(table) and not len(table):
        expected = "at least one, such as {'topic': {'doc': 1.0}}"
        raise UsageError(f"the run {escape(str(name))!r} has no documents; expected {expected}")
    return Named(name, table)


def _is_scores(mapping: Mapping[Any, Any]) -> bool:
    """Whether a dict is {topic: {doc: score}} and not {name: run}."""
    return all(isinstance(value, Mapping) for value in mapping.values()) and not any(
        isinstance(score, Mapping) or is_frame(score)
        for value in mapping.values()
        for score in value.values()
    )


def load_run(source: Any, options: RunOptions = BY_SCORE) -> Run:
    """A run from a path, a `Run`, a DataFrame, a dict of dicts, a `ranx.Run` or an iterable of scored documents."""
    name = ""
    if isinstance(source, Named):
        name, source = source.name, source.run
    if isinstance(source, Run):
        return source
    if isinstance(source, Part):
        return Run.of(read_part(source, options))
    if isinstance(source, (str, os.PathLike)):
        return Run.open(source, options)
    if isinstance(source, Source):
        return Run.of(read_run_columns(source, options))
    frame = frame_of(source, "score", "a run", "score")
    tag = name or str(frame.attrs.get("tag", "run"))
    lines = range(1, len(frame) + 1)
    return Run.of(run_from_frame(frame, tag, lines, tag, options))


def load_qrels(source: Any) -> Qrels:
    """Qrels from a path, a list of paths, `Qrels`, a DataFrame, a dict of dicts, `ranx.Qrels` or judgements."""
    if isinstance(source, Qrels):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_qrels(source)
    if isinstance(source, (list, tuple)) and source and isinstance(source[0], (str, os.PathLike)):
        return read_qrels(*source)
    frame = frame_of(source, "grade", "qrels", "relevance")
    if not len(frame):
        raise UsageError("the qrels have no judgement; expected at least one, such as {'topic': {'doc': 1}}")
    return Qrels.of(qrels_from_frame(frame, "qrels"))


def frame_of(source: Any, value: str, what: str, theirs: str) -> pd.DataFrame:
    """Anything but a path as a DataFrame with this package's names; what cannot be one is a `UsageError`."""
    frame = _tabled(source, value)
    if not is_frame(frame):
        raise UsageError(
            f"cannot take {type_of(frame)} as {what}; expected a path, a DataFrame, a dict of dicts, "
            f"or items with query_id, doc_id and {theirs}"
        )
    return rename_columns(frame)

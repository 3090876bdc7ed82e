"""What Python users hand in (paths, DataFrames, dicts) turned into runs, qrels and groups."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairevals.collection.qrels import Qrels, read_qrels
from fairevals.collection.run import Run, read_run
from fairevals.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from fairevals.collection.groups import Attribute
    from fairevals.io.task import Task

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
    """A run handed in from Python, with the name it was given."""

    name: str
    run: Any


def _is_frame(what: Any) -> bool:
    return hasattr(what, "columns") and hasattr(what, "itertuples")


def _renamed(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with this package's names for columns."""
    names = {}
    for ours, theirs in COLUMN_NAMES.items():
        found = [name for name in theirs if name in frame.columns]
        if found:
            names[found[0]] = ours
    return frame.rename(columns=names)


def _flat(nested: Mapping[str, Mapping[str, float]], value: str) -> pd.DataFrame:
    import pandas as pd

    rows = [(topic, doc, number) for topic, docs in nested.items() for doc, number in docs.items()]
    return pd.DataFrame(rows, columns=["topic", "doc", value])


def list_runs(runs: Any) -> list[Any]:
    """The runs one by one, named where they have no file."""
    if isinstance(runs, (str, os.PathLike, Run)):
        return [runs]
    if _is_frame(runs) or (isinstance(runs, Mapping) and _is_scores(runs)):
        return [Named("run", runs)]
    if isinstance(runs, Mapping):
        return [Named(str(name), run) for name, run in runs.items()]
    found = list(runs)
    unnamed = (dict, Mapping)
    return [
        Named(f"run{i}", r) if _is_frame(r) or isinstance(r, unnamed) else r for i, r in enumerate(found, 1)
    ]


def _is_scores(mapping: Mapping[Any, Any]) -> bool:
    """Whether a dict is {topic: {doc: score}} and not {name: run}."""
    values = [value for value in mapping.values() if isinstance(value, Mapping)]
    return len(values) == len(mapping) and all(
        not isinstance(score, Mapping) and not _is_frame(score)
        for value in values
        for score in value.values()
    )


def load_run(source: Any, *, order: str = "score", samples: bool = False, depth: int | None = None) -> Run:
    """A run from a path, a `Run`, a DataFrame or a dict of dicts."""
    from fairevals.io.runs import columns_of_frame

    name = ""
    if isinstance(source, Named):
        name, source = source.name, source.run
    if isinstance(source, Run):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_run(source, order=order, samples=samples, depth=depth)
    if isinstance(source, Mapping):
        source = _flat(source, "score")
    if not _is_frame(source):
        raise UsageError(
            f"cannot take a {type(source).__name__} as a run; expected a path, DataFrame or dict of dicts"
        )
    frame = _renamed(source)
    tag = name or str(source.attrs.get("tag", "run"))
    return Run.of(
        columns_of_frame(frame, tag, tag=tag, order=order, samples=samples, depth=depth, header_lines=0)
    )


def load_qrels(source: Any) -> Qrels:
    """Qrels from a path, `Qrels`, a DataFrame or a dict of dicts."""
    from fairevals.io.qrels import columns_of_frame

    if isinstance(source, Qrels):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_qrels(source)
    if isinstance(source, Mapping):
        source = _flat(source, "grade")
    if not _is_frame(source):
        raise UsageError(
            f"cannot take a {type(source).__name__} as qrels; expected a path, DataFrame or dict of dicts"
        )
    return Qrels.of(columns_of_frame(_renamed(source), "qrels"))


def load_attribute_by_name(name: str, task: Task, groups: Mapping[str, Any], qrels: Qrels) -> Attribute:
    """An attribute that was handed in (`groups`), or else the task's."""
    from fairevals.collection.groups import Attribute, load_attribute

    if name not in groups:
        return load_attribute(task.attributes[name], qrels)
    given = groups[name]
    return (given if isinstance(given, Attribute) else Attribute.of(name, given)).bound(qrels)

"""What Python users hand in (paths, DataFrames, dicts, other libraries' objects) turned into runs, qrels and groups."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairevals.collection.qrels import Qrels, read_qrels
from fairevals.collection.run import Run, read_run
from fairevals.errors import UsageError
from fairevals.io.dataset import Part, is_dataset, open_dataset, read_part

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


def _is_ranx(what: Any) -> bool:
    """Whether it is a `ranx.Run` or `ranx.Qrels`, without importing ranx."""
    return hasattr(what, "to_dict") and (hasattr(what, "run") or hasattr(what, "qrels"))


def _field(item: Any, ours: str) -> str:
    """What an item of ir_datasets, ir-measures or the like calls its topic, document, score or grade."""
    return next((name for name in COLUMN_NAMES[ours] if hasattr(item, name)), "")


def _is_item(what: Any) -> bool:
    """Whether it is one document of a run: ir-measures' and ir_datasets' `ScoredDoc`, or one like it."""
    return not _is_frame(what) and bool(_field(what, "topic") and _field(what, "doc"))


def _tabled(source: Any, value: str) -> Any:
    """A dict of dicts, a ranx object, or an iterable of items as a DataFrame; anything else as it is."""
    if isinstance(source, Mapping):
        return _flat(source, value)
    if _is_frame(source) or isinstance(source, (str, bytes)):
        return source
    if _is_ranx(source):
        return _flat(source.to_dict(), value)
    if not isinstance(source, Iterable):
        return source
    import pandas as pd

    items = list(source)
    names = [_field(items[0], ours) if items else ours for ours in ("topic", "doc", value)]
    if not all(names):
        return source
    rows = [tuple(getattr(item, name) for name in names) for item in items]
    return pd.DataFrame(rows, columns=["topic", "doc", value])


def _renamed(frame: pd.DataFrame, only: tuple[str, ...] = tuple(COLUMN_NAMES)) -> pd.DataFrame:
    """The table with this package's names for columns."""
    names = {}
    for ours in only:
        found = [name for name in COLUMN_NAMES[ours] if name in frame.columns]
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
    if _is_frame(runs) or _is_ranx(runs) or (isinstance(runs, Mapping) and _is_scores(runs)):
        return [_named("run", runs)]
    if isinstance(runs, Mapping):
        return [Named(str(name), _whole(run)) for name, run in runs.items()]
    found = list(runs)
    if found and _is_item(found[0]):
        return [Named("run", _tabled(found, "score"))]
    return [_named(f"run{i}", run) for i, run in enumerate(found, 1)]


def _whole(run: Any) -> Any:
    """A run that can be read more than once: what an iterator gives is kept."""
    files = (str, os.PathLike, Run, Named)
    return run if isinstance(run, files) or _is_frame(run) else _tabled(run, "score")


def _named(name: str, run: Any) -> Any:
    """The run under the name it has of its own, or else the given one."""
    if isinstance(run, (str, os.PathLike, Run, Named)):
        return run
    own = getattr(run, "name", None) if _is_ranx(run) else None
    return Named(str(own or name), _whole(run))


def _is_scores(mapping: Mapping[Any, Any]) -> bool:
    """Whether a dict is {topic: {doc: score}} and not {name: run}."""
    values = [value for value in mapping.values() if isinstance(value, Mapping)]
    return len(values) == len(mapping) and all(
        not isinstance(score, Mapping) and not _is_frame(score)
        for value in values
        for score in value.values()
    )


def load_run(source: Any, *, order: str = "score", samples: bool = False, depth: int | None = None) -> Run:
    """A run from a path, a `Run`, a DataFrame, a dict of dicts, a `ranx.Run` or an iterable of scored documents."""
    from fairevals.io.runs import run_from_frame

    name = ""
    if isinstance(source, Named):
        name, source = source.name, source.run
    if isinstance(source, Run):
        return source
    if is_dataset(source):
        source = open_dataset(source)
    if isinstance(source, Part):
        return Run.of(read_part(source, order=order, samples=samples, depth=depth))
    if isinstance(source, (str, os.PathLike)):
        return read_run(source, order=order, samples=samples, depth=depth)
    source = _tabled(source, "score")
    if not _is_frame(source):
        raise UsageError(
            f"cannot take a {type(source).__name__} as a run; expected a path, a DataFrame, a dict of dicts, "
            "or items with query_id, doc_id and score"
        )
    frame = _renamed(source)
    tag = name or str(source.attrs.get("tag", "run"))
    lines = range(1, len(frame) + 1)
    return Run.of(run_from_frame(frame, tag, lines, tag=tag, order=order, samples=samples, depth=depth))


def load_qrels(source: Any) -> Qrels:
    """Qrels from a path, a list of paths, `Qrels`, a DataFrame, a dict of dicts, `ranx.Qrels` or judgements."""
    from fairevals.io.qrels import qrels_from_frame

    if isinstance(source, Qrels):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_qrels(source)
    if isinstance(source, (list, tuple)) and source and isinstance(source[0], (str, os.PathLike)):
        return read_qrels(*source)
    source = _tabled(source, "grade")
    if not _is_frame(source):
        raise UsageError(
            f"cannot take a {type(source).__name__} as qrels; expected a path, a DataFrame, a dict of dicts, "
            "or items with query_id, doc_id and relevance"
        )
    return Qrels.of(qrels_from_frame(_renamed(source), "qrels"))


def load_attribute_by_name(name: str, task: Task, groups: Mapping[str, Any], qrels: Qrels) -> Attribute:
    """An attribute that was handed in (`groups`), or else the task's."""
    from fairevals.collection.groups import Attribute, load_attribute

    if name not in groups:
        return load_attribute(task.attributes[name], qrels)
    given = groups[name]
    if _is_frame(given):
        given = _renamed(given, ("topic", "doc"))
    return (given if isinstance(given, Attribute) else Attribute.of(name, given)).bound(qrels)

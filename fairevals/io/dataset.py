"""Parquet: a run as one file or as a folder of files, and parts of a folder that can be scored alone."""

import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from fairevals.errors import InputError, Place, UsageError, escape, names, pluralize
from fairevals.ids import Ids, numbered, padded_buffer
from fairevals.io.archives import files_in
from fairevals.io.runs import (
    RunBuilder,
    RunColumns,
    RunOptions,
    RunRows,
    finite_scores,
    raise_repeated_row,
    require_rows,
)
from fairevals.io.streams import Limits, Source, reading, too_large
from fairevals.io.tables import ID_TYPES, id_text

PART_ROWS = 1 << 18
"""The approximate number of rows of a part."""

_NOTHING = "__HIVE_DEFAULT_PARTITION__"


def arrow(part: str = "") -> Any:
    """pyarrow, or a module of it such as ".parquet". It has no types."""
    try:
        return import_module(f"pyarrow{part}")
    except ImportError:
        raise UsageError("reading parquet needs: pip install 'fairevals[parquet]'") from None


@dataclass(frozen=True)
class Fragment:
    """One file of a data set. Folders named `key=value`, as Hive, Spark and Dask write them, are columns of it."""

    path: str
    constants: tuple[tuple[str, str], ...] = ()
    topics: tuple[str, ...] = ()
    """The topics of its rows; known after `with_topics`."""
    rows: int = 0
    data: bytes | None = field(default=None, repr=False)
    """The content of the file, if it is not to be read from the path."""

    def open(self, **options: Any) -> Any:
        """The file, opened by pyarrow."""
        file = self.path if self.data is None else io.BytesIO(self.data)
        return arrow(".parquet").ParquetFile(file, **options)


@dataclass(frozen=True)
class Part:
    """Some topics of a data set. All of their rows are in these files."""

    name: str
    files: tuple[Fragment, ...]
    topics: tuple[str, ...] | None = None
    """None: all topics in the files."""
    whole: bool = True
    """Whether the files have no rows of other topics."""

    @property
    def tag(self) -> str:
        """The name of the folder without suffixes, as the tag of a table is the name of its file."""
        return Path(self.name).name.split(".")[0]


def is_dataset(source: Any) -> bool:
    """Whether a run is a folder."""
    return isinstance(source, (str, os.PathLike)) and Path(source).is_dir()


def open_dataset(folder: str | os.PathLike[str]) -> Part:
    """All parquet files in a folder and its subfolders, sorted by path, except hidden ones and those named `_…`."""
    root = Path(folder)
    fragments = []
    for path in sorted(root.rglob("*.parquet")):
        below = path.relative_to(root).parts
        if path.is_file() and not any(name.startswith((".", "_")) for name in below):
            pairs = (name.split("=", 1) for name in below[:-1] if "=" in name)
            fragments.append(Fragment(str(path), tuple((key, unquote(value)) for key, value in pairs)))
    if not fragments:
        found = f"a folder of {pluralize(len(files_in(folder)), 'file')}"
        raise InputError(Place(str(folder)), found, "one run: a file, or a folder of parquet files")
    return Part(str(folder), tuple(fragments))


# Which topics are where -------------------------------------------------------------------------------------


def with_topics(fragment: Fragment) -> Fragment:
    """The same with its topics and number of rows. Only the column of topics is read."""
    with _opened(fragment, unpacked=True) as file:
        rows = file.metadata.num_rows
        constant = dict(fragment.constants).get("topic")
        if constant is not None:
            return replace(fragment, topics=(constant,) if rows else (), rows=rows)
        seen: dict[str, None] = {}
        for group, lines in _row_groups(file):
            column = _strings(fragment, file, group, "topic", lines)
            # A row without topic is reported when it is read.
            seen.update(dict.fromkeys(topic for topic in column.unique().to_pylist() if topic))
    return replace(fragment, topics=tuple(seen), rows=rows)


def parts(dataset: Part, fragments: Sequence[Fragment], rows: int | None = None) -> list[Part]:
    """Cut a data set whose fragments know their topics, so that no topic is in two parts.

    A part has about `rows` rows, and up to twice as many if that spares reading a file twice: files that have topics of
    several parts are read for each of them.

    >>> files = [Fragment("a", topics=("1", "2"), rows=9), Fragment("b", topics=("3",), rows=9)]
    >>> files.append(Fragment("c", topics=("2",), rows=9))
    >>> [("".join(f.path for f in p.files), p.topics) for p in parts(Part("x", ()), files, rows=9)]
    [('ac', ('1', '2')), ('b', ('3',))]
    """
    rows = rows or PART_ROWS
    files_of: dict[str, list[int]] = {}
    for i, fragment in enumerate(fragments):
        for topic in fragment.topics:
            files_of.setdefault(topic, []).append(i)
    cut: list[tuple[set[int], list[str]]] = []
    held = 2.0 * rows
    """The rows of the last part, as if all topics of a file had the same number."""
    for topic, indices in files_of.items():
        if held >= 2 * rows or (held >= rows and cut[-1][0].isdisjoint(indices)):
            cut.append((set(), []))
            held = 0
        cut[-1][0].update(indices)
        cut[-1][1].append(topic)
        held += sum(fragments[i].rows / len(fragments[i].topics) for i in indices)
    # What is wrong with a file without any topic is reported when it is read.
    cut += [({i}, []) for i, fragment in enumerate(fragments) if not fragment.topics]
    result = []
    for numbers, topics in cut:
        files = [fragments[i] for i in sorted(numbers)]
        whole = set(topics).issuperset(topic for f in files for topic in f.topics)
        # Parts are sent to workers, which do not need the topics of each file.
        result.append(Part(dataset.name, tuple(replace(f, topics=()) for f in files), tuple(topics), whole))
    return result


# Rows -------------------------------------------------------------------------------------------------------


def read_part(part: Part, options: RunOptions, tag: str = "") -> RunColumns:
    """The rows of a part as a run. Row groups are read one by one and cut to the depth at once."""
    builder, samples = RunBuilder(options.order, options.depth), options.samples
    for _, topic, sample, docs, scores in _chunks(part, samples):
        builder.add(topic, sample, docs, scores)
    return builder.finish(part.name, tag or part.tag, lambda: raise_repeated_row(_chunks(part, samples)))


def read_parquet(source: Source, tag: str, options: RunOptions) -> RunColumns:
    """A run from one parquet file."""
    fragment = Fragment(source.name, data=source.read())
    with _opened(fragment, unpacked=True):
        columns = read_part(Part(source.name, (fragment,)), options, tag)
    require_rows(source.name, columns.lines)
    return columns


def read_dataset(folder: str | os.PathLike[str], options: RunOptions) -> RunColumns:
    """A run from a folder of parquet files."""
    columns = read_part(open_dataset(folder), options)
    require_rows(columns.name, columns.lines)
    return columns


def _chunks(part: Part, samples: bool) -> Iterator[RunRows]:
    """The rows of a part, one row group at a time. Columns are read as needed."""
    for fragment in part.files:
        with _opened(fragment) as file:
            sampled = samples and "sample" in {*file.schema_arrow.names, *dict(fragment.constants)}
            for group, lines in _row_groups(file):
                topics = _ids(fragment, file, group, "topic", lines)
                kept = np.arange(len(lines))
                if not part.whole and part.topics is not None:
                    wanted = {topic: number for number, topic in enumerate(part.topics)}
                    kept = np.flatnonzero(numbered(topics, wanted) < len(part.topics))
                if kept.size:
                    docs = _ids(fragment, file, group, "doc", lines).take(kept)
                    sample = _ids(fragment, file, group, "sample", lines).take(kept) if sampled else None
                    column = file.read_row_group(group, columns=["score"]).column("score").to_pandas()
                    scores = finite_scores(column, fragment.path, lines)[kept]
                    places = (Place(fragment.path, lines[row]) for row in kept.tolist())
                    yield places, topics.take(kept), sample, docs, scores


def _row_groups(file: Any) -> Iterator[tuple[int, range]]:
    """The number of each row group, and the lines that its rows would have in a table with a header."""
    line = 2
    for group in range(file.num_row_groups):
        lines = range(line, line + file.metadata.row_group(group).num_rows)
        line = lines.stop
        yield group, lines


@contextmanager
def _opened(fragment: Fragment, *, unpacked: bool = False) -> Iterator[Any]:
    """The file, after a check of its columns and size. Every error in reading it becomes an `InputError`."""
    with reading(fragment.path, "not a readable table", 120), fragment.open() as file:
        _check_columns(fragment, file)
        _check_size(fragment, file, unpacked)
        yield file


def _check_columns(fragment: Fragment, file: Any) -> None:
    place, schema = Place(fragment.path), file.schema_arrow
    columns = [*schema.names, *dict(fragment.constants)]
    if not {"topic", "doc", "score"} <= set(columns) or "score" in dict(fragment.constants):
        raise InputError(place, f"columns {names(columns)}", "topic, doc, score[, sample]")
    for key, value in fragment.constants:
        if key in ("topic", "doc", "sample") and (value in ("", _NOTHING) or "\0" in value):
            raise InputError(place, f"an empty or invalid {key} in the path", f"a {key}")
    for column in schema:
        if arrow().types.is_nested(column.type):
            found = f"the column {escape(column.name)!r} of lists or tables"
            raise InputError(place, found, "texts and numbers")
        if column.name in ("topic", "doc", "sample") and not _is_id(column.type):
            raise InputError(place, f"the column {column.name!r} of type {column.type}", ID_TYPES)


def _is_id(kind: Any) -> bool:
    """Whether a column of this type can be ids, as `tables.id_text` decides for single values."""
    types = arrow().types
    if types.is_dictionary(kind):
        return _is_id(kind.value_type)
    whole = types.is_integer(kind) or (types.is_decimal(kind) and kind.scale == 0)
    return whole or types.is_null(kind) or _is_text(kind)


def _is_text(kind: Any) -> bool:
    """Whether its values are texts, or bytes, as which many programs write texts."""
    # Not by the functions of `pyarrow.types`: those of views came later than the oldest version supported.
    return re.fullmatch(r"(large_)?(string|binary)(_view)?|fixed_size_binary\[\d+\]", str(kind)) is not None


def _check_size(fragment: Fragment, file: Any, unpacked: bool) -> None:
    """Raise if the file is larger than the limit: as it is stored or, with `unpacked`, with all texts written out.

    A text that is repeated in a million rows takes a few bytes of the file; its sum over all rows is what counts.
    """
    pc, metadata, columns = arrow(".compute"), file.metadata, file.schema_arrow.names
    limit = Limits.current().bytes
    stored = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    total = max(stored, 8 * metadata.num_rows * len(columns))
    # Nothing can be too large if it would not be even if every row had all of the file.
    if total <= limit and unpacked and metadata.num_rows * stored > limit:
        with fragment.open(read_dictionary=columns) as file:
            for batch in file.iter_batches(1 << 16):
                for column in batch.columns:
                    if arrow().types.is_dictionary(column.type):
                        lengths = pc.binary_length(column.dictionary).take(column.indices)
                        total += pc.sum(lengths).as_py() or 0
                if total > limit:
                    break
    if total > limit:
        raise too_large(fragment.path, limit)


def _strings(fragment: Fragment, file: Any, group: int, name: str, lines: range) -> Any:
    """A column of a row group as texts; missing values are null. Bytes that are not UTF-8 are an `InputError`."""
    pa = arrow()
    column = file.read_row_group(group, columns=[name]).column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not _is_text(column.type):
        return column.cast(pa.large_string()).combine_chunks()
    column = column.cast(pa.large_binary()).combine_chunks()
    texts = column.view(pa.large_string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        for line, value in zip(lines, column.to_pylist(), strict=True):
            id_text(value or b"", name, Place(fragment.path, line))  # raises for the first that is not UTF-8
        raise
    return texts


def _ids(fragment: Fragment, file: Any, group: int, name: str, lines: range) -> Ids:
    """A column of a row group as ids, taken from Arrow's buffers without decoding; an error if a row is empty."""
    constant = dict(fragment.constants).get(name)
    if constant is not None:
        return Ids.of([constant]).take(np.zeros(len(lines), np.int64))
    pc, column = arrow(".compute"), _strings(fragment, file, group, name, lines)
    empty = pc.fill_null(pc.equal(pc.binary_length(column), 0), True).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(empty)[:1].tolist():
        raise InputError(Place(fragment.path, lines[row]), f"an empty {name}", f"a {name}")
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    low, high = (int(ends[0]), int(ends[-1])) if len(column) else (0, 0)
    text = bytes(memoryview(data)[low:high]) if data is not None else b""
    ids = Ids(padded_buffer(text), ends[:-1] - low, np.diff(ends))
    if b"\0" in text:
        row = int(np.searchsorted(ends - low, text.index(b"\0"), side="right")) - 1
        found = f"a {name} with an invalid character: {escape(ascii(ids.text(row)))}"
        raise InputError(Place(fragment.path, lines[row]), found, "text")
    return ids

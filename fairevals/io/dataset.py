"""A run as a folder of parquet files, cut in any way: which topics are where, and parts that can be scored alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.ids import PAD_FRONT, Ids, padded_buffer
from fairevals.io.runs import RunColumns, _Builder, _numbers, _Suspicious
from fairevals.io.streams import Limits
from fairevals.io.tables import check_parquet
from fairevals.typing import Floats

PART_ROWS = 1 << 18
"""About how many rows a part has: small ones are put together, large ones are cut between topics."""

_NOTHING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Fragment:
    """One file of a data set. Folders named `key=value` (as Hive, Spark and Dask write them) are columns of it."""

    path: str
    constants: tuple[tuple[str, str], ...] = ()
    topics: tuple[str, ...] = ()
    """The topics it has a row of; known after `with_topics`."""
    rows: int = 0

    def constant(self, column: str) -> str | None:
        """The value of a column that stands in the path."""
        return dict(self.constants).get(column)


@dataclass(frozen=True)
class Part:
    """Some topics of a data set: all rows of theirs are in these files."""

    name: str
    files: tuple[Fragment, ...]
    topics: tuple[str, ...] | None = None
    """None: all that the files have."""
    whole: bool = True
    """Whether the files have no rows of other topics."""

    @property
    def tag(self) -> str:
        """The name of the folder, without endings, as a table file's name is its tag."""
        return Path(self.name).name.split(".")[0]


def is_dataset(source: Any) -> bool:
    """Whether a run is a folder."""
    return isinstance(source, (str, os.PathLike)) and Path(source).is_dir()


def open_dataset(folder: str | os.PathLike[str]) -> Part:
    """All files of a folder and of those below it, in the order of their paths; hidden ones and `_…` do not count."""
    root = Path(folder)
    found = []
    for path in sorted(root.rglob("*.parquet")):
        below = path.relative_to(root).parts
        if path.is_file() and not any(name.startswith((".", "_")) for name in below):
            pairs = (name.split("=", 1) for name in below[:-1] if "=" in name)
            found.append(Fragment(str(path), tuple((key, unquote(value)) for key, value in pairs)))
    if not found:
        raise InputError(
            Place(str(folder)), "a folder without *.parquet files", "a run file, or a folder of parquet files"
        )
    return Part(str(folder), tuple(found))


# Which topics are where -------------------------------------------------------------------------------------


def with_topics(fragment: Fragment) -> Fragment:
    """The same, after a look at nothing but its column of topics."""
    with _opened(fragment) as file:
        check_parquet(fragment.path, fragment.path, Limits.current().bytes)
        rows = file.metadata.num_rows
        constant = fragment.constant("topic")
        if constant is not None:
            return replace(fragment, topics=(constant,) if rows else (), rows=rows)
        seen: dict[str, None] = {}
        for group in range(file.num_row_groups):
            column = file.read_row_group(group, columns=["topic"]).column("topic")
            found = _strings(column.unique()).to_pylist()
            seen.update(
                dict.fromkeys(topic for topic in found if topic)
            )  # one without is said when it is read
    return replace(fragment, topics=tuple(seen), rows=rows)


def parts(dataset: Part, fragments: Sequence[Fragment], rows: int | None = None) -> list[Part]:
    """Cut a data set whose fragments know their topics, so that no topic is in two parts.

    Files that share a topic stay together; several small lots of files make one part. A lot with far more than
    `rows` rows is cut between its topics: each part then reads its own topics out of the files that have them.

    >>> files = [Fragment("a", topics=("1", "2"), rows=9), Fragment("b", topics=("3",), rows=9)]
    >>> files.append(Fragment("c", topics=("2",), rows=9))
    >>> [("".join(f.path for f in p.files), p.topics) for p in parts(Part("x", ()), files, rows=9)]
    [('a', ('1',)), ('ac', ('2',)), ('b', ('3',))]
    """
    rows = rows or PART_ROWS
    found: list[Part] = []
    small: list[tuple[list[Fragment], list[str]]] = []
    held = 0

    def flush() -> None:
        nonlocal held
        if small:
            files = tuple(f for lot, _ in small for f in lot)
            found.append(Part(dataset.name, files, tuple(t for _, topics in small for t in topics)))
        small.clear()
        held = 0

    for lot, topics in _lots(fragments):
        size = sum(f.rows for f in lot)
        if size < 2 * rows or len(topics) < 2:
            small.append((lot, topics))
            held += size
            if held >= rows:
                flush()
            continue
        flush()
        count = min(len(topics), -(-size // rows))
        for bucket in np.array_split(np.array(topics, dtype=object), count):
            wanted = tuple(bucket.tolist())
            files = tuple(f for f in lot if not set(wanted).isdisjoint(f.topics))
            found.append(Part(dataset.name, files, wanted, whole=False))
    flush()
    # A part is sent to where it is scored: it need not name the topics of all its files again.
    return [replace(p, files=tuple(replace(f, topics=()) for f in p.files)) for p in found]


def _lots(fragments: Sequence[Fragment]) -> Iterator[tuple[list[Fragment], list[str]]]:
    """Files that hang together by topics they share, with those topics; in the order of the first file of each."""
    leader = list(range(len(fragments)))

    def find(i: int) -> int:
        while leader[i] != i:
            leader[i] = leader[leader[i]]
            i = leader[i]
        return i

    first: dict[str, int] = {}
    for i, fragment in enumerate(fragments):
        for topic in fragment.topics:
            a, b = find(first.setdefault(topic, i)), find(i)
            leader[max(a, b)] = min(a, b)
    lots: dict[int, tuple[list[Fragment], list[str]]] = {}
    for i, fragment in enumerate(fragments):
        lots.setdefault(find(i), ([], []))[0].append(fragment)
    for topic, i in first.items():
        lots[find(i)][1].append(topic)
    yield from lots.values()


def _arrow() -> tuple[Any, Any]:
    """pyarrow and its functions; it has no types."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.compute")
    except ImportError:
        raise UsageError("reading parquet needs: pip install 'fairevals[parquet]'") from None


# Rows -------------------------------------------------------------------------------------------------------


def read_part(
    part: Part, *, order: str = "score", samples: bool = False, depth: int | None = None
) -> RunColumns:
    """The rows of a part as a run, read a row group at a time and cut to `depth` as they come."""
    builder = _Builder(order, depth)
    for topic, sample, docs, scores in _chunks(part, samples):
        if len(docs):
            builder.add(topic, sample, docs, scores)
    try:
        return builder.finished(part.name, part.tag)
    except _Suspicious as trouble:
        _raise_repeated(part, samples)
        return trouble.columns


@dataclass(frozen=True)
class _RowGroup:
    """Some rows of a file, as parquet cuts it; a column is read when it is asked for."""

    fragment: Fragment
    file: Any
    number: int
    place: Place
    """The line of the first row: as in any table, line 1 would be the header."""

    def has(self, name: str) -> bool:
        return self.fragment.constant(name) is not None or name in self.file.schema_arrow.names

    def column(self, name: str) -> Any:
        return self.file.read_row_group(self.number, columns=[name]).column(name)

    def texts(self, name: str) -> Any:
        """A column of which every row has a text."""
        constant = self.fragment.constant(name)
        if constant is None:
            return _checked(_strings(self.column(name)), name, self.place)
        pa, _ = _arrow()
        rows = self.file.metadata.row_group(self.number).num_rows
        return pa.array([constant], pa.large_string()).take(pa.array(np.zeros(rows, np.int64)))

    def scores(self) -> Floats:
        """The column of scores, all finite."""
        import pandas as pd

        frame = pd.DataFrame({"score": self.column("score").to_pandas()})
        return _numbers(frame, self.place.file, np.arange(len(frame)) + self.place.line)


def _row_groups(fragment: Fragment) -> Iterator[_RowGroup]:
    with _opened(fragment) as file:
        line = 2
        for number in range(file.num_row_groups):
            yield _RowGroup(fragment, file, number, Place(fragment.path, line))
            line += file.metadata.row_group(number).num_rows


def _chunks(part: Part, samples: bool) -> Iterator[tuple[Ids, Ids | None, Ids, Floats]]:
    """Topics, samples, documents and scores of the part's rows, a row group at a time."""
    pa, pc = _arrow()
    wanted = None if part.whole or part.topics is None else pa.array(part.topics, pa.large_string())
    for group in (group for fragment in part.files for group in _row_groups(fragment)):
        with _said_of(group.fragment):
            topic = group.texts("topic")
            kept = pc.is_in(topic, value_set=wanted) if wanted is not None else None
            if kept is not None and not pc.any(kept).as_py():
                continue
            texts = [topic, group.texts("doc")]
            if samples and group.has("sample"):
                texts.append(group.texts("sample"))
            scores = group.scores()
            if kept is not None:
                texts = [column.filter(kept) for column in texts]
                scores = scores[kept.to_numpy(zero_copy_only=False)]
            ids = [_ids(column) for column in texts]
        yield ids[0], ids[2] if len(ids) > 2 else None, ids[1], scores


@contextmanager
def _said_of(fragment: Fragment) -> Iterator[None]:
    """All that can be wrong with a file becomes an `InputError` that names it."""
    pa, _ = _arrow()
    try:
        yield
    except (InputError, UsageError):
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.strerror:
            raise InputError(Place(fragment.path), f"cannot be read ({error.strerror})") from None
        first = str(error).strip().split("\n")[0]
        raise InputError(Place(fragment.path), f"not a readable table ({escape(first, 120)})") from None


@contextmanager
def _opened(fragment: Fragment) -> Iterator[Any]:
    """The file, once it is known to have the columns and to be within limits."""
    _arrow()
    with _said_of(fragment), import_module("pyarrow.parquet").ParquetFile(fragment.path) as file:
        _check_columns(fragment, file)
        most = Limits.current().bytes
        size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
        if size > most:
            raise InputError(Place(fragment.path), f"more than {most} bytes", "less (FAIREVALS_MAX_BYTES)")
        yield file


def _check_columns(fragment: Fragment, file: Any) -> None:
    names = [*file.schema_arrow.names, *(key for key, _ in fragment.constants)]
    for needed in ("topic", "doc", "score"):
        if needed not in names or (needed == "score" and fragment.constant("score") is not None):
            found = ", ".join(map(escape, names))
            raise InputError(
                Place(fragment.path), f"columns {escape(found, 200)}", "topic, doc, score[, sample]"
            )
    for key, value in fragment.constants:
        if key in ("topic", "sample") and value in ("", _NOTHING):
            raise InputError(Place(fragment.path), f"an empty {key} in the path", f"a {key}")


def _strings(column: Any) -> Any:
    """A column as text, spelt as `tables.identifiers` spells it; null where there is nothing."""
    pa, _ = _arrow()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    kinds = pa.types
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if kinds.is_string(column.type) or kinds.is_large_string(column.type) or kinds.is_integer(column.type):
        return column.cast(pa.large_string())
    values = zip(column.to_pandas().tolist(), column.is_null().to_pylist(), strict=True)
    return pa.array([None if missing else str(value) for value, missing in values], pa.large_string())


def _checked(column: Any, name: str, place: Place) -> Any:
    """The column, once it is known to have a text in every row."""
    _, pc = _arrow()
    column.validate(full=True)  # bytes that are not UTF-8
    empty = pc.fill_null(pc.equal(pc.binary_length(column), 0), True).to_numpy(zero_copy_only=False)
    if empty.any():
        line = place.line + int(np.flatnonzero(empty)[0])
        raise InputError(Place(place.file, line), f"an empty {name}", f"a {name}")
    return column


def _ids(column: Any) -> Ids:
    """The texts as they lie in Arrow's buffers: nothing is decoded."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    low, high = (int(ends[0]), int(ends[-1])) if len(column) else (0, 0)
    text = bytes(memoryview(data)[low:high]) if data is not None else b""
    if b"\0" in text:
        raise ValueError("a NUL character in a text")
    return Ids(padded_buffer(text), PAD_FRONT + ends[:-1] - low, np.diff(ends))


def _raise_repeated(part: Part, samples: bool) -> None:
    """Raise for the first document that stands twice in a list; none does where two ids hash alike."""
    seen: set[tuple[str, str, str]] = set()
    for fragment in part.files:
        alone = replace(part, files=(fragment,))
        for topic, sample, docs, _ in _chunks(alone, samples):
            names: Iterable[str] = sample.texts() if sample is not None else [""] * len(docs)
            for row in zip(topic.texts(), names, docs.texts(), strict=True):
                if row in seen:
                    found = f"document {escape(row[2])!r} a second time in topic {escape(row[0])!r}"
                    raise InputError(Place(fragment.path), found, "it once in all files") from None
                seen.add(row)

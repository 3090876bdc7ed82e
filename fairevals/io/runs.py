"""Run files as columns: TREC and NTCIR lines, sampled rankings, TREC Fair's three columns, CSV and parquet tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairevals.errors import InputError, Place, escape
from fairevals.ids import Ids, keys
from fairevals.io.check import Rules, is_header, is_sysdesc, raise_first
from fairevals.io.decimals import parse_decimals
from fairevals.io.streams import Source
from fairevals.io.tables import identifiers
from fairevals.io.tokens import Irregular, Tokens, tokenise
from fairevals.typing import Bools, Floats, Ints, Words

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunColumns:
    """A run as it was read: a row a line, perhaps only the best of each ranking (see `depth`).

    A *list* is one ranking: that of a topic, or of a topic and a sample.
    """

    name: str
    tag: str
    lists: list[tuple[str, str]]
    """(topic, sample) of each list; the sample is "" where the run has one ranking a topic."""
    list_of: Ints
    docs: Ids
    scores: Floats
    order: str
    """What ranks: "score", or the order of lines ("file")."""
    lines: int
    """How many lines were read; more than there are rows where only the best were kept."""


def _segments(codes: Ints) -> tuple[Ints, Ints]:
    """Where each stretch of equal codes starts, and how long it is."""
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    return starts, np.diff(starts, append=codes.size)


def best_rows(codes: Ints, scores: Floats, depth: int) -> Ints:
    """The rows with the `depth` highest scores of each code, and all that tie with the last of them.

    >>> best_rows(np.array([0, 0, 0, 1]), np.array([3.0, 2.0, 2.0, 1.0]), 2)
    array([0, 1, 2, 3])
    """
    starts, lengths = _segments(codes)
    falling = (np.diff(scores) <= 0) | (np.diff(codes) != 0)
    order = None
    if not falling.all() or np.unique(codes[starts]).size < starts.size:
        order = np.lexsort((-scores, codes))
        codes, scores = codes[order], scores[order]
        starts, lengths = _segments(codes)
    last = np.where(lengths > depth, starts + depth - 1, starts + lengths - 1)
    rows = np.flatnonzero(scores >= np.repeat(scores[last], lengths))
    return rows if order is None else np.sort(order[rows])


def first_rows(codes: Ints, depth: int) -> Ints:
    """The first `depth` rows of each code."""
    order = np.argsort(codes, kind="stable")
    starts, lengths = _segments(codes[order])
    place = np.arange(codes.size) - np.repeat(starts, lengths)
    return np.sort(order[place < depth])


@dataclass
class _Builder:
    """Collects chunks, keeping no more of each list than `depth` asks for."""

    order: str
    depth: int | None
    lists: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    parts: list[tuple[Ints, Ids, Floats]] = field(default_factory=list)
    keys: list[Words] = field(default_factory=list)
    held: int = 0
    reduced: int = 1 << 21

    def add(self, topic: Ids, sample: Ids | None, docs: Ids, scores: Floats) -> None:
        same: Bools = topic.repeats()
        if sample is not None:
            same &= sample.repeats()
        starts = np.flatnonzero(~same)
        topics = topic.take(starts).texts()
        samples = sample.take(starts).texts() if sample is not None else [""] * len(topics)
        names = [(t.encode(), s.encode()) for t, s in zip(topics, samples, strict=True)]
        at = np.fromiter(
            (self.lists.setdefault(name, len(self.lists)) for name in names), dtype=np.int64, count=len(names)
        )
        codes = np.repeat(at, np.diff(starts, append=len(docs)))
        self.keys.append(keys(docs, codes))
        self._hold(codes, docs, scores)
        if self.depth is not None and self.held > 2 * self.reduced:
            self._hold(*self.merged())
            self.reduced = max(self.reduced, self.held)

    def _hold(self, codes: Ints, docs: Ids, scores: Floats) -> None:
        if self.depth is not None:
            rows = (
                best_rows(codes, scores, self.depth)
                if self.order == "score"
                else first_rows(codes, self.depth)
            )
            codes, docs, scores = codes[rows], docs.take(rows), scores[rows]
        self.parts.append((codes, docs.compact(), scores))
        self.held += len(docs)

    def merged(self) -> tuple[Ints, Ids, Floats]:
        """All parts as one; the builder is then empty."""
        parts, self.parts, self.held = self.parts, [], 0
        return (
            np.concatenate([part[0] for part in parts]) if parts else np.zeros(0, np.int64),
            Ids.concatenate([part[1] for part in parts]),
            np.concatenate([part[2] for part in parts]) if parts else np.zeros(0),
        )

    def finished(self, name: str, tag: str) -> RunColumns:
        """The columns; `Irregular` where a document may stand twice in a list."""
        found = np.concatenate(self.keys) if self.keys else np.zeros(0, np.uint64)
        lines = found.size
        self.keys = []
        found.sort()
        suspicious = bool(np.any(found[1:] == found[:-1]))
        del found
        if self.depth is not None and len(self.parts) > 1:
            self._hold(*self.merged())
        codes, docs, scores = self.merged()
        lists = [(topic.decode(), sample.decode()) for topic, sample in self.lists]
        columns = RunColumns(name, tag, lists, codes, docs, scores, self.order, lines)
        if suspicious:
            raise _Suspicious(columns)
        return columns


class _Suspicious(Irregular):
    """Two lines have one key: a document that stands twice, or (hardly ever) two that hash alike."""

    def __init__(self, columns: RunColumns) -> None:
        super().__init__()
        self.columns = columns


def _trec(source: Source, builder: _Builder, samples: bool, columns: int) -> RunColumns:
    tag, first = _tag(source) if columns == 3 else "", True
    for chunk in source.chunks():
        if first:
            line, _, rest = chunk.lstrip().partition(b"\n")
            if is_sysdesc(line) or is_header(line.split()):
                chunk = rest
        tokens: Tokens = tokenise(chunk, columns)
        if first and len(tokens) and columns == 6:
            tag = tokens.column(5).text(0)
        first = first and not len(tokens)
        if columns == 6:
            scores, bad = parse_decimals(tokens.buffer, tokens.start[:, 4], tokens.end[:, 4])
            if bad.size:
                raise Irregular
        else:
            scores = np.zeros(len(tokens))
        sample = tokens.column(1) if samples or columns == 3 else None
        builder.add(tokens.column(0), sample, tokens.column(2), scores)
    return builder.finished(source.name, tag)


def _tag(source: Source) -> str:
    """The file's name; bytes of it that are no text are escaped, since a tag is written and printed."""
    return Path(source.name).name.encode("utf-8", "backslashreplace").decode()


def _body(source: Source) -> list[bytes]:
    """The first lines without NTCIR's description of the system."""
    return [line for number, line in enumerate(source.head()) if number or not is_sysdesc(line)]


def is_table(source: Source) -> bool:
    """Whether a run is a parquet, CSV or TSV table with named columns, by its name or its first line."""
    if source.table_suffix == ".parquet":
        return True
    names = [
        {name.strip(b' "\r') for name in line.split(by)} for line in _body(source)[:1] for by in (b",", b"\t")
    ]
    return any({b"topic", b"doc", b"score"} <= found for found in names)


def read_columns(
    source: Source, *, order: str = "score", samples: bool = False, depth: int | None = None
) -> RunColumns:
    """Read a run file of any form.

    `depth` keeps the first so many documents of each list (and those that tie with the last), which is all that
    measures with a cutoff look at; every line is read and checked all the same.
    """
    if is_table(source):
        return _table(source, order, samples, depth)
    body = _body(source)
    columns = 3 if body and len(body[0].split()) == 3 else 6
    # TREC Fair's rankings are in the order of lines: they have no scores.
    builder = _Builder("file" if columns == 3 else order, depth)
    try:
        found = _trec(source, builder, samples, columns)
    except Irregular as trouble:
        raise_first(source, Rules(samples=samples))
        if not isinstance(trouble, _Suspicious):
            raise InputError(Place(source.name), "a line that cannot be read", "a TREC run") from None
        return trouble.columns
    if not found.lines:
        raise_first(source)
    return found


def _table(source: Source, order: str, samples: bool, depth: int | None) -> RunColumns:
    from fairevals.io.tables import read_table

    frame = read_table(source)
    if frame.empty:
        raise InputError(Place(source.name), "no row", "rows of topic, doc, score[, sample]")
    return columns_of_frame(
        frame,
        source.name,
        tag=_tag(source).split(".")[0],
        order=order,
        samples=samples,
        depth=depth,
    )


def columns_of_frame(
    frame: pd.DataFrame,
    name: str,
    *,
    tag: str,
    order: str = "score",
    samples: bool | None = None,
    depth: int | None = None,
    header_lines: int = 1,
) -> RunColumns:
    """A run from a table with columns topic, doc, score[, sample]; rows are named by their number in messages."""
    for needed in ("topic", "doc", "score"):
        if needed not in frame.columns:
            raise InputError(Place(name), f"columns {_names(frame)}", "topic, doc, score[, sample]")
    lines = (frame.index.to_numpy() if header_lines else np.arange(len(frame))) + 1 + header_lines
    topic, docs = (identifiers(frame, column, name, lines.tolist()) for column in ("topic", "doc"))
    scores = _numbers(frame, name, lines)
    sampled = (samples if samples is not None else True) and "sample" in frame.columns
    sample = identifiers(frame, "sample", name, lines.tolist()) if sampled else None
    builder = _Builder(order, depth)
    if len(docs):
        builder.add(topic, sample, docs, scores)
    try:
        return builder.finished(name, tag)
    except _Suspicious as trouble:
        seen: dict[tuple[str, str, str], int] = {}
        rows = zip(topic.texts(), sample.texts() if sample else [""] * len(docs), docs.texts(), strict=True)
        for number, row in zip(lines.tolist(), rows, strict=True):
            if row in seen:
                raise InputError(
                    Place(name, number),
                    f"document {escape(row[2])!r} a second time in topic {escape(row[0])!r}",
                    f"it once (first in line {seen[row]})",
                ) from None
            seen[row] = number
        return trouble.columns


def _numbers(frame: pd.DataFrame, name: str, lines: Ints) -> Floats:
    from pandas.api.types import is_numeric_dtype

    found = frame["score"]
    if is_numeric_dtype(found):
        scores = found.to_numpy(dtype=np.float64, na_value=np.nan)
    else:  # as in a TREC run: pandas rounds some decimals another way and takes what is no decimal
        known = zip(found.tolist(), found.isna().tolist(), strict=True)
        texts = Ids.of(
            "" if missing else str(value).encode("ascii", "replace").decode() for value, missing in known
        )
        scores, _ = parse_decimals(texts.buffer, texts.start, texts.start + texts.length)
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        row = int(bad[0])
        wrong = escape(repr(found.iloc[row]))
        raise InputError(Place(name, int(lines[row])), f"score {wrong}", "a finite number")
    return scores


def _names(frame: pd.DataFrame) -> str:
    return escape(", ".join(map(str, frame.columns)), 200)

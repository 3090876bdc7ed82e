"""Learning data: LETOR / SVMlight lines `grade qid:ID 1:0.5 … # docid`, sparse or dense."""

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from fairevals.errors import InputError, InputWarning, Place, escape
from fairevals.ids import numbered
from fairevals.io.decimals import number_of, parse_decimals, whole_numbers
from fairevals.io.lines import COLON, HASH, SPACE, Column, LineFormat, Tokens
from fairevals.io.specs import LARGEST
from fairevals.io.streams import Source
from fairevals.typing import Array, Floats, Ints

MOST_FEATURES = 100_000
"""Rows are stored densely: one absurd feature number must not use up the memory."""

_CHUNK = 1 << 19
"""How many bytes are parsed at a time: their cells take some thirty times as much memory."""
_BLOCK = 33 << 20
"""How many bytes of features are allocated at a time. Of more than 32 MiB, every common allocator returns them."""

_DOC = re.compile(rb"docid\s*=\s*(\S+)")
_HEAD = (Column("grade", "number", largest=LARGEST), Column("topic", prefix=b"qid:"))


@dataclass(frozen=True)
class LetorColumns:
    """Learning data: one row per document. The rows of a topic are consecutive, in the order of the file."""

    name: str
    topics: list[str]
    starts: Ints
    """Topic t has the rows `starts[t]:starts[t + 1]`."""
    docs: list[str]
    grades: Floats
    features: Array
    """(rows, features); feature number N of the file is column N − 1, and what a line leaves out is 0."""


def read_letor(what: str | os.PathLike[str] | bytes, dtype: type[np.floating] = np.float32) -> LetorColumns:
    """Read learning data, compressed or not, from a path, `-` or bytes.

    The name of a document is the comment's `docid = X`, or the first word of the comment. Without a comment it is
    made from the topic and the position of the line in the topic (`q7:3`). The lines of a topic need not
    be consecutive. Features are stored as `dtype`.

    An error with file and line: a line that is not `grade qid:ID number:value …`, a value that is not finite, a
    feature number below 1 or twice in a line, a document twice in a topic.

    >>> data = read_letor(b"2 qid:q7 1:0.5 3:1 # docid = d1 inc = 1\\n0 qid:q7 2:0.25\\n")
    >>> data.topics, data.docs, data.grades.tolist(), data.features.tolist()
    (['q7'], ['d1', 'q7:2'], [2.0, 0.0], [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]])
    """
    source = Source.of(what)
    try:
        return _read(source, dtype)
    except InputError as error:
        if source.ends_in_newline or error.place.line != max(
            (number for number, _ in source.lines()), default=0
        ):
            raise
        found = f"{error.found} in the last line, which has no line end: is the file cut short?"
        raise InputError(error.place, found, error.expected) from None


def _read(source: Source, dtype: type[np.floating]) -> LetorColumns:
    line_format = LineFormat(
        "LETOR data", _HEAD, "grade qid:ID 1:0.5 2:0.3 … # doc", rest=partial(_wrong_rest, dtype=dtype)
    )
    topics: dict[str, int] = {}
    matrix = _Matrix(dtype)
    codes, grades, counts, names = [], [], [], []
    for tokens in line_format.read(source, _CHUNK):
        topic = tokens.column(1)
        codes.append(numbered(replace(topic, start=topic.start + 4, length=topic.length - 4), topics))
        grades.append(tokens.numbers[0])
        try:
            cells, comments = _cells(tokens)
            names += [_doc_name(comment) for comment in comments]
            counts.append(np.bincount(cells[0], minlength=len(tokens)))
            rows, most = len(names), max(matrix.width, int(cells[1].max(initial=-1)) + 1)
            size = rows * most * np.dtype(dtype).itemsize
            if size > source.limits.bytes:
                found = f"{rows} rows of {most} features, {size} bytes; raise FAIREVALS_MAX_BYTES to allow it"
                raise InputError(Place(source.name), found)
            matrix.add(len(tokens), *cells)
        except InputError:
            raise
        except ValueError:
            line_format.raise_problem(source)
    if not names:
        raise InputError(Place(source.name), "no line", line_format.expected)
    if not source.ends_in_newline:
        _warn_if_cut(source, np.concatenate(counts), names)
    topic_of = np.concatenate(codes)
    order = np.argsort(topic_of, kind="stable")
    starts = np.searchsorted(topic_of[order], np.arange(len(topics) + 1)).astype(np.int64)
    docs = [names[row] for row in order.tolist()]
    for name, start, stop in zip(topics, starts.tolist(), starts[1:].tolist(), strict=False):
        docs[start:stop] = named = [doc or f"{name}:{n}" for n, doc in enumerate(docs[start:stop], 1)]
        if len(set(named)) < len(named):
            first = dict(zip(reversed(named), reversed(range(len(named))), strict=True))
            at = next(at for at, doc in enumerate(named) if first[doc] < at)
            found = f"document {escape(named[at])!r} twice in topic {escape(name)!r}"
            place = line_format.place_of(source, int(order[start + at]))
            raise InputError(place, found, "a document once in a topic")
    features = matrix.ordered(np.argsort(order))
    return LetorColumns(source.name, list(topics), starts, docs, np.concatenate(grades)[order], features)


@dataclass
class _Matrix:
    """Rows of features that come in pieces, each perhaps wider than those before.

    They are held in blocks so large that the system takes each back as soon as it is freed. So the result, whose pages
    are taken up when they are written, and the blocks need little more memory than the result alone.
    """

    dtype: type[np.floating]
    blocks: list[Array] = field(default_factory=list)
    used: int = 0
    """How many rows of the last block are used."""
    rows: int = 0
    width: int = 0

    def add(self, rows: int, row: Ints, column: Ints, value: Floats) -> None:
        """Add rows with these values at (row, column); a `ValueError` if one is too large for the type."""
        with np.errstate(over="ignore"):
            numbers = value.astype(self.dtype)
        if not np.isfinite(numbers).all():
            raise ValueError
        width = int(column.max(initial=-1)) + 1
        if not self.blocks or width > self.blocks[-1].shape[1] or self.used + rows > len(self.blocks[-1]):
            if self.blocks:
                self.blocks[-1] = self.blocks[-1][: self.used]
            self.width = max(self.width, width)
            length = _BLOCK // max(self.width * np.dtype(self.dtype).itemsize, 1) + 1
            self.blocks.append(np.zeros((max(length, rows), self.width), self.dtype))
            self.used = 0
        block = self.blocks[-1]
        block.reshape(-1)[(self.used + row) * block.shape[1] + column] = numbers
        self.used, self.rows = self.used + rows, self.rows + rows

    def ordered(self, place: Ints) -> Array:
        """All rows as one array, row r at `place[r]`; nothing is held here any more."""
        features = np.zeros((self.rows, self.width), dtype=self.dtype)
        self.blocks[-1] = self.blocks[-1][: self.used]
        while self.blocks:
            block = self.blocks.pop(0)
            features[place[: len(block)], : block.shape[1]] = block
            place = place[len(block) :]
        return features


def _warn_if_cut(source: Source, counts: Ints, names: Sequence[str]) -> None:
    """Warn if the last line, which has no line end, has less than all others: the file may have been cut short."""
    if counts.size < 2:
        return
    whole, last = counts[:-1], int(counts[-1])
    lacks = []
    if whole.min() == whole.max() > last:
        lacks.append(f"{last} features where all others have {whole[0]}")
    if not names[-1] and all(names[:-1]):
        lacks.append("no document where all others name one")
    if lacks:
        what = f"the last line has no line end, and {' and '.join(lacks)}"
        warnings.warn(InputWarning(f"{Place(source.name)}: {what}; is the file cut short?"), stacklevel=3)


def _doc_name(comment: bytes) -> str:
    """The document that a comment names, "" for none; a `ValueError` if the name cannot be printed."""
    match = _DOC.search(comment)
    words = [match[1]] if match else comment.split(None, 1)
    name = words[0].decode() if words else ""
    if not name.isprintable():
        raise ValueError
    return name


def _cells(tokens: Tokens) -> tuple[tuple[Ints, Ints, Floats], list[bytes]]:
    """Row, column and value of the `number:value` cells, and the comments; a `ValueError` if a cell is wrong."""
    buffer, head_end = tokens.buffer, tokens.end[:, -1]
    hashes = np.append(np.flatnonzero(buffer == HASH), buffer.size)
    text_end = np.minimum(hashes[np.searchsorted(hashes, head_end)], tokens.line_end)
    ends = zip(text_end.tolist(), tokens.line_end.tolist(), strict=True)
    comments = [buffer[start + 1 : end].tobytes() for start, end in ends]
    # Marks are white space, colons, and the end of the features. A colon has a number and a value beside it.
    marks = np.flatnonzero((buffer <= SPACE) | (buffer == COLON) | (buffer == HASH))
    first, last = np.searchsorted(marks, head_end), np.searchsorted(marks, text_end)
    colons = np.flatnonzero(buffer[marks] == COLON)
    skipped, stop = np.searchsorted(colons, first), np.searchsorted(colons, last)
    counts = stop - skipped
    row = np.repeat(np.arange(len(tokens)), counts)
    colons = colons[np.arange(row.size) + (skipped - np.cumsum(counts) + counts)[row]]
    filled = np.append(0, np.cumsum(marks[1:] > marks[:-1] + 1))  # how many pieces of text precede a mark
    if np.any(colons[1:] == colons[:-1] + 1) or np.any(filled[last] - filled[first] != 2 * counts):
        raise ValueError
    colon = marks[colons]
    value, wrong = parse_decimals(buffer, colon + 1, marks[colons + 1])
    length = colon - marks[colons - 1] - 1
    number, digits = whole_numbers(buffer, colon, np.minimum(length, 6))
    column = number.astype(np.int64) - 1
    fits = digits & (length >= 1) & (length <= 6) & (column >= 0) & (column < MOST_FEATURES)
    if wrong.size or not fits.all():
        raise ValueError
    key = row * MOST_FEATURES + column
    if not np.all(key[1:] > key[:-1]):  # in most files features are in ascending order
        key.sort()
        if np.any(key[1:] == key[:-1]):
            raise ValueError
    return (row, column, value), comments


def _wrong_rest(rest: bytes, dtype: type[np.floating]) -> tuple[str, str] | None:
    """What is wrong with the features and the comment of a line, and what was expected."""
    text, _, comment = rest.partition(b"#")
    seen: set[int] = set()
    for cell in text.split():
        name, colon, value = cell.partition(b":")
        if not colon or not name.isdigit():
            return f"{escape(cell)!r}", "number:value, such as 3:0.25"
        number = int(name) if len(name) <= 6 else 0  # Python refuses to convert thousands of digits
        if not 1 <= number <= MOST_FEATURES:
            return f"feature number {escape(name)}", f"1 to {MOST_FEATURES} (not counted from 0)"
        if number in seen:
            return f"feature {number} twice", "every feature once"
        seen.add(number)
        with np.errstate(over="ignore"):
            if not np.isfinite(dtype(number_of(value))):
                expected = f"a number below {np.finfo(dtype).max:.2g}"
                return f"{escape(value)!r} as the value of feature {number}", expected
    try:
        _doc_name(comment)
    except ValueError:
        return f"document {escape(comment.strip())!r}", "printable characters"
    return None

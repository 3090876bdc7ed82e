"""Learning data: LETOR / SVMlight lines `grade qid:ID 1:0.5 … # docid`, sparse or dense."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import numpy as np

from fairevals.errors import InputError, Place, escape
from fairevals.ids import Ids, Index, numbered
from fairevals.io.decimals import parse_decimals
from fairevals.io.lines import Column, Irregular, LineFormat, Tokens, number_of
from fairevals.io.streams import Limits, Source
from fairevals.typing import Array, Bytes, Floats, Ints

MOST_FEATURES = 100_000
"""Rows are stored densely: one absurd feature number must not use up the memory."""

_DOC = re.compile(rb"docid\s*=\s*(\S+)|(\S+)")


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


@dataclass(frozen=True)
class _Part:
    """The content of one chunk of a file."""

    topic_of: Ints
    docs: list[str]
    """Empty where a line names no document."""
    grades: Floats
    features: Array


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
    line_format = LineFormat(
        "LETOR data",
        (Column("grade", "number"), Column("topic", prefix=b"qid:")),
        "grade qid:ID 1:0.5 2:0.3 … # doc",
        ragged=True,
        check=lambda cells, comment: _wrong_cells(cells[2:], comment, dtype),
    )
    topics: dict[str, int] = {}
    parts: list[_Part] = []
    rows = most = 0
    for tokens in line_format.read(source):
        try:
            docs = [_doc_name(comment) for comment in tokens.comments]
            row, column, value = _features(tokens)
        except Irregular:
            line_format.raise_problem(source)
        width = int(column.max(initial=-1)) + 1
        rows, most = rows + len(docs), max(most, width)
        size = rows * most * np.dtype(dtype).itemsize
        if size > Limits.current().bytes:
            found = f"{rows} rows of {most} features, {size} bytes; raise FAIREVALS_MAX_BYTES to allow it"
            raise InputError(Place(source.name), found)
        features = np.zeros((len(docs), width), dtype)
        with np.errstate(over="ignore"):
            features[row, column] = value
        if not np.isfinite(features).all():
            line_format.raise_problem(source)
        if docs:
            parts.append(_Part(numbered(tokens.column(1), topics), docs, tokens.numbers[0], features))
    if not parts:
        raise InputError(Place(source.name), "no line", line_format.expected)
    return _joined(source, line_format, list(topics), parts, dtype)


def _joined(
    source: Source, line_format: LineFormat, topics: list[str], parts: list[_Part], dtype: type[np.floating]
) -> LetorColumns:
    topic_of = np.concatenate([part.topic_of for part in parts])
    order = np.argsort(topic_of, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    starts = np.searchsorted(topic_of[order], np.arange(len(topics) + 1)).astype(np.int64)
    names = [doc for part in parts for doc in part.docs]
    docs = [names[row] for row in order.tolist()]
    for topic, (start, stop) in enumerate(zip(starts.tolist(), starts[1:].tolist(), strict=False)):
        docs[start:stop] = [doc or f"{topics[topic]}:{n}" for n, doc in enumerate(docs[start:stop], 1)]
    for row in Index(topic_of[order], Ids.of(docs)).duplicates()[:1].tolist():
        topic_name = escape(topics[int(topic_of[order[row]])])
        found = f"document {escape(docs[row])!r} twice in topic {topic_name!r}"
        raise InputError(line_format.place_of(source, int(order[row])), found, "a document once in a topic")
    grades = np.concatenate([part.grades for part in parts])[order]
    features = np.zeros((order.size, max(part.features.shape[1] for part in parts)), dtype=dtype)
    row = 0
    while parts:  # each part is freed once it is copied, so that the data is never held more than twice
        values = parts.pop(0).features
        features[place[row : row + len(values)], : values.shape[1]] = values
        row += len(values)
    return LetorColumns(source.name, topics, starts, docs, grades, features)


def _features(tokens: Tokens) -> tuple[Ints, Ints, Floats]:
    """Row, column and value of the `number:value` cells."""
    start, end, row = tokens.rest
    if start.size == 0:
        return row, row, np.zeros(0)
    colons = np.flatnonzero(tokens.buffer == ord(":"))
    at = np.searchsorted(colons, start)
    if int(at[-1]) >= colons.size:
        raise Irregular
    colon = colons[at]
    if np.any(colon >= end):
        raise Irregular
    value, wrong = parse_decimals(tokens.buffer, colon + 1, end)
    column = _whole_numbers(tokens.buffer, start, colon) - 1
    if wrong.size or column.min() < 0 or column.max() >= MOST_FEATURES:
        raise Irregular
    if np.any((np.diff(column) <= 0) & (np.diff(row) == 0)):
        cells = np.sort(row * MOST_FEATURES + column)
        if np.any(cells[1:] == cells[:-1]):
            raise Irregular
    return row, column, value


def _whole_numbers(buffer: Bytes, start: Ints, end: Ints) -> Ints:
    """The whole numbers at `buffer[start:end]`, of at most six digits."""
    length = end - start
    if not 1 <= int(length.min()) <= int(length.max()) <= 6:
        raise Irregular
    number = np.zeros(start.size, dtype=np.int64)
    for place in range(int(length.max())):
        inside = length > place
        digit = buffer[start + place] - np.uint8(ord("0"))
        if np.any(inside & (digit > 9)):
            raise Irregular
        np.copyto(number, number * 10 + digit, where=inside)
    return number


def _doc_name(comment: bytes) -> str:
    match = _DOC.search(comment) if b"docid" in comment else _DOC.match(comment.strip())
    if not match:
        return ""
    name = (match[1] or match[2]).decode()
    if not name.isprintable():
        raise Irregular
    return name


def _wrong_cells(cells: list[bytes], comment: bytes, dtype: type[np.floating]) -> tuple[str, str] | None:
    """What is wrong with the features and the comment of a line: what was found and what was expected."""
    try:
        _doc_name(comment)
    except Irregular:
        return f"document {escape(comment.strip())!r}", "printable characters"
    seen: set[int] = set()
    for cell in cells:
        name, colon, text = cell.partition(b":")
        if not colon or not name.isdigit():
            return f"{escape(cell)!r}", "number:value, such as 3:0.25"
        number = int(name) if len(name) <= 6 else 0  # Python refuses to convert thousands of digits
        if not 1 <= number <= MOST_FEATURES:
            return f"feature number {escape(name)}", f"1 to {MOST_FEATURES} (not counted from 0)"
        if number in seen:
            return f"feature {number} twice", "every feature once"
        seen.add(number)
        with np.errstate(over="ignore"):
            if not np.isfinite(dtype(number_of(text))):
                expected = f"a number below {np.finfo(dtype).max:.2g}"
                return f"{escape(text)!r} as the value of feature {number}", expected
    return None

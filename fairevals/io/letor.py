"""Learning data: LETOR / SVMlight lines `grade qid:ID 1:0.5 … # docid`, sparse or dense."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from fairevals.errors import InputError, Place, escape
from fairevals.ids import Ids, Index, numbered, padded_buffer
from fairevals.io.decimals import number_of, parse_decimals, whole_numbers
from fairevals.io.lines import SPACE, Column, LineFormat
from fairevals.io.specs import LARGEST
from fairevals.io.streams import Source
from fairevals.typing import Array, Floats, Ints

MOST_FEATURES = 100_000
"""Rows are stored densely: one absurd feature number must not use up the memory."""

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
    line_format = LineFormat(
        "LETOR data", _HEAD, "grade qid:ID 1:0.5 2:0.3 … # doc", rest=partial(_wrong_rest, dtype=dtype)
    )
    topics: dict[str, int] = {}
    parts: list[Array] = []
    codes, grades, names = [], [], []
    rows = most = 0
    for tokens in line_format.read(source):
        topic, rests = tokens.column(1), [rest.partition(b"#") for rest in tokens.rests()]
        codes.append(numbered(replace(topic, start=topic.start + 4, length=topic.length - 4), topics))
        grades.append(tokens.numbers[0])
        try:
            names += [_doc_name(comment) for _, _, comment in rests]
            row, column, value = _features([text.split() for text, _, _ in rests])
            width = int(column.max(initial=-1)) + 1
            rows, most = rows + len(tokens), max(most, width)
            size = rows * most * np.dtype(dtype).itemsize
            if size > source.limits.bytes:
                found = f"{rows} rows of {most} features, {size} bytes; raise FAIREVALS_MAX_BYTES to allow it"
                raise InputError(Place(source.name), found)
            parts.append(np.zeros((len(tokens), width), dtype))
            with np.errstate(over="ignore"):
                parts[-1][row, column] = value
            if not np.isfinite(parts[-1]).all():
                raise ValueError
        except InputError:
            raise
        except ValueError:
            line_format.raise_problem(source)
    if not rows:
        raise InputError(Place(source.name), "no line", line_format.expected)
    topic_of = np.concatenate(codes)
    order = np.argsort(topic_of, kind="stable")
    starts = np.searchsorted(topic_of[order], np.arange(len(topics) + 1)).astype(np.int64)
    docs = [names[row] for row in order.tolist()]
    for name, start, stop in zip(topics, starts.tolist(), starts[1:].tolist(), strict=False):
        docs[start:stop] = [doc or f"{name}:{n}" for n, doc in enumerate(docs[start:stop], 1)]
    for at in Index(topic_of[order], Ids.of(docs)).duplicates()[:1].tolist():
        found = f"document {escape(docs[at])!r} twice in topic {escape(list(topics)[topic_of[order[at]]])!r}"
        raise InputError(line_format.place_of(source, int(order[at])), found, "a document once in a topic")
    features = np.zeros((order.size, most), dtype=dtype)
    place = np.argsort(order)
    while parts:  # each part is freed once it is copied, so that the data is never held more than twice
        part = parts.pop(0)
        features[place[: len(part)], : part.shape[1]] = part
        place = place[len(part) :]
    return LetorColumns(source.name, list(topics), starts, docs, np.concatenate(grades)[order], features)


def _doc_name(comment: bytes) -> str:
    """The document that a comment names, "" for none; a `ValueError` if the name cannot be printed."""
    match = _DOC.search(comment)
    words = [match[1]] if match else comment.split(None, 1)
    name = words[0].decode() if words else ""
    if not name.isprintable():
        raise ValueError
    return name


def _features(rows: Sequence[list[bytes]]) -> tuple[Ints, Ints, Floats]:
    """Row, column and value of the `number:value` cells; a `ValueError` if one of them is wrong."""
    cells = [cell for row in rows for cell in row]
    buffer = padded_buffer(b" ".join([*cells, b""]))
    ends = np.flatnonzero((buffer == ord(":")) | (buffer == SPACE))
    if ends.size != 2 * len(cells) or np.any(buffer[ends].reshape(-1, 2) != (ord(":"), SPACE)):
        raise ValueError
    start, end = np.append(0, ends + 1)[:-1].reshape(-1, 2), ends.reshape(-1, 2)
    length = end[:, 0] - start[:, 0]
    number, digits = whole_numbers(buffer, end[:, 0], np.clip(length, 0, 6))
    value, wrong = parse_decimals(buffer, start[:, 1], end[:, 1])
    column = number.astype(np.int64) - 1
    fits = digits & (length >= 1) & (length <= 6) & (column >= 0) & (column < MOST_FEATURES)
    row_of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    twice = np.diff(np.sort(row_of * MOST_FEATURES + column)) == 0
    if wrong.size or not fits.all() or twice.any():
        raise ValueError
    return row_of, column, value


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

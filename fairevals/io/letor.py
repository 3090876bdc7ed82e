"""Learning data: LETOR / SVMlight lines `grade qid:ID 1:0.5 … # docid`, sparse or dense."""

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairevals.errors import InputError, Place, escape
from fairevals.ids import PAD_FRONT, Ids, Index, padded_buffer
from fairevals.io.decimals import number_of, parse_decimals, whole_numbers
from fairevals.io.lines import SPACE, encoding_problem
from fairevals.io.streams import Source
from fairevals.typing import Array, Floats, Ints

MOST_FEATURES = 100_000
"""Rows are stored densely: one absurd feature number must not use up the memory."""

_LINE = "grade qid:ID 1:0.5 2:0.3 … # doc"
_DOC = re.compile(rb"docid\s*=\s*(\S+)|(\S+)")


_Row = tuple[str, tuple[float, str], list[bytes]]
"""Topic, grade and document ("" if it has no name), and features of a line."""


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
    topics: dict[str, int] = {}
    rows: list[tuple[int, int, float, str]] = []
    """Line, topic, grade and document of each row."""
    parts: list[Array] = []
    before = most = 0
    for chunk in source.chunks():
        lines = list(enumerate(chunk.split(b"\n")[:-1], before + 1))
        before += len(lines)
        try:
            read = [(number, row) for number, line in lines if (row := _row(line))]
            at, column, value = _features([cells for _, (_, _, cells) in read])
            rows += [(n, topics.setdefault(topic, len(topics)), *row) for n, (topic, row, _) in read]
            width = int(column.max(initial=-1)) + 1
            most = max(most, width)
            size = len(rows) * most * np.dtype(dtype).itemsize
            if size > source.limits.bytes:
                found = f"{len(rows)} rows of {most} features, {size} bytes; raise FAIREVALS_MAX_BYTES to allow it"
                raise InputError(Place(source.name), found)
            parts.append(np.zeros((len(read), width), dtype))
            with np.errstate(over="ignore"):
                parts[-1][at, column] = value
            if not np.isfinite(parts[-1]).all():
                raise ValueError
        except ValueError:
            for number, line in lines:
                try:
                    _check_features(_row(line), dtype)
                except ValueError as error:
                    source.refuse(InputError(Place(source.name, number), *error.args), "LETOR data")
            raise
    if not rows:
        raise InputError(Place(source.name), "no line", _LINE)
    topic_of = np.array([topic for _, topic, _, _ in rows], dtype=np.int64)
    order = np.argsort(topic_of, kind="stable")
    starts = np.searchsorted(topic_of[order], np.arange(len(topics) + 1)).astype(np.int64)
    docs = [rows[row][3] for row in order.tolist()]
    for topic, start, stop in zip(topics, starts.tolist(), starts[1:].tolist(), strict=False):
        docs[start:stop] = [doc or f"{topic}:{n}" for n, doc in enumerate(docs[start:stop], 1)]
    for row in Index(topic_of[order], Ids.of(docs)).duplicates()[:1].tolist():
        line, number, *_ = rows[order[row]]
        found = f"document {escape(docs[row])!r} twice in topic {escape(list(topics)[number])!r}"
        raise InputError(Place(source.name, line), found, "a document once in a topic")
    features = np.zeros((order.size, most), dtype=dtype)
    place = np.argsort(order)
    while parts:  # each part is freed once it is copied, so that the data is never held more than twice
        part = parts.pop(0)
        features[place[: len(part)], : part.shape[1]] = part
        place = place[len(part) :]
    grades = np.array([grade for _, _, grade, _ in rows])[order]
    return LetorColumns(source.name, list(topics), starts, docs, grades, features)


def _row(line: bytes) -> _Row | None:
    """The content of a line; None if it has no data.

    A `ValueError` has what was found and what was expected.
    """
    text, _, comment = line.partition(b"#")
    if problem := encoding_problem(Place(""), line, text):
        raise ValueError(problem.found, problem.expected)
    cells = text.split()
    if not cells:
        return None
    if len(cells) < 2:
        raise ValueError(f"{len(cells)} columns: {escape(line)!r}", _LINE)
    grade, topic = number_of(cells[0]), cells[1]
    if math.isnan(grade):
        raise ValueError(f"grade {escape(cells[0])!r}", "a finite number")
    if not topic.startswith(b"qid:") or topic == b"qid:":
        raise ValueError(f"topic {escape(topic)!r}", "qid:ID")
    match = _DOC.search(comment) if b"docid" in comment else _DOC.match(comment.strip())
    doc = (match[1] or match[2]).decode() if match else ""
    if not doc.isprintable():
        raise ValueError(f"document {escape(comment.strip())!r}", "printable characters")
    return topic[4:].decode(), (grade, doc), cells[2:]


def _features(rows: Sequence[list[bytes]]) -> tuple[Ints, Ints, Floats]:
    """Row, column and value of the `number:value` cells; a `ValueError` if one of them is wrong."""
    cells = [cell for row in rows for cell in row]
    buffer = padded_buffer(b" ".join([*cells, b""]))
    ends = np.flatnonzero((buffer == ord(":")) | (buffer == SPACE))
    if ends.size != 2 * len(cells) or np.any(buffer[ends].reshape(-1, 2) != (ord(":"), SPACE)):
        raise ValueError
    start, end = np.append(PAD_FRONT, ends + 1)[:-1].reshape(-1, 2), ends.reshape(-1, 2)
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


def _check_features(row: _Row | None, dtype: type[np.floating]) -> None:
    """Raise a `ValueError` with what was found and what was expected if a feature is wrong."""
    seen: set[int] = set()
    for cell in row[2] if row else ():
        name, colon, text = cell.partition(b":")
        if not colon or not name.isdigit():
            raise ValueError(f"{escape(cell)!r}", "number:value, such as 3:0.25")
        number = int(name) if len(name) <= 6 else 0  # Python refuses to convert thousands of digits
        if not 1 <= number <= MOST_FEATURES:
            raise ValueError(f"feature number {escape(name)}", f"1 to {MOST_FEATURES} (not counted from 0)")
        if number in seen:
            raise ValueError(f"feature {number} twice", "every feature once")
        seen.add(number)
        with np.errstate(over="ignore"):
            if not np.isfinite(dtype(number_of(text))):
                expected = f"a number below {np.finfo(dtype).max:.2g}"
                raise ValueError(f"{escape(text)!r} as the value of feature {number}", expected)

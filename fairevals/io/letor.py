"""Learning data: LETOR / SVMlight lines `grade qid:ID 1:0.5 … # docid`, sparse or dense, a chunk at a time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from fairevals.errors import InputError, Place, escape
from fairevals.ids import PAD_BACK, PAD_FRONT, Ids, Index, padded_buffer
from fairevals.io.decimals import NUMBER, parse_decimals
from fairevals.io.streams import Limits, Source
from fairevals.io.tokens import NEWLINE, RETURN, SPACE, TAB, Irregular
from fairevals.typing import Array, Bytes, Floats, Ints

MOST_FEATURES = 100_000
"""Rows are held with all their features; one absurd number must not ask for all the memory there is."""

EXPECTED = "grade qid:ID 1:0.5 2:0.3 … # doc"

_QID = np.frombuffer(b"qid:", dtype=np.uint8)
_COLON, _HASH = ord(":"), ord("#")
_DOC = re.compile(rb"docid\s*=\s*(\S+)|(\S+)")


@dataclass(frozen=True)
class LetorColumns:
    """Learning data as it was read: a row a document, the documents of a topic together, in the file's order."""

    name: str
    topics: list[str]
    starts: Ints
    """Topic t has the rows `starts[t]:starts[t + 1]`."""
    docs: list[str]
    grades: Floats
    features: Array
    """(rows, features); feature number N of the file is column N − 1, what a line leaves out is 0."""


@dataclass(frozen=True)
class _Part:
    """What one chunk of a file holds."""

    topic: Ids
    docs: list[str]
    """Empty where a line names no document."""
    grades: Floats
    features: Array


def read_letor(what: str | os.PathLike[str] | bytes, dtype: type[np.floating] = np.float32) -> LetorColumns:
    """Read learning data, compressed or not, from a path, `-` or bytes.

    The document's name is the comment's `docid = X`, or its first word; without a comment it is made up
    from the topic and the place of the line among the topic's (`q7:3`). The lines of a topic need not
    stand together. Features are kept in `dtype`.

    An error with file and line: a line that is not `grade qid:ID number:value …`, a value that is not finite, a
    feature number below 1 or twice in a line, a document twice in a topic.

    >>> read = read_letor(b"2 qid:q7 1:0.5 3:1 # docid = d1 inc = 1\\n0 qid:q7 2:0.25\\n")
    >>> read.topics, read.docs, read.grades.tolist(), read.features.tolist()
    (['q7'], ['d1', 'q7:2'], [2.0, 0.0], [[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]])
    """
    source = Source.of(what)
    codes: dict[str, int] = {}
    parts: list[_Part] = []
    topic_of: list[Ints] = []
    rows = most = 0
    try:
        for chunk in source.chunks():
            part = _read_chunk(chunk, dtype)
            rows, most = rows + len(part.docs), max(most, part.features.shape[1])
            _check_size(rows, most, dtype)
            if len(part.docs) == 0:
                continue
            firsts = np.flatnonzero(~part.topic.repeats())
            found = [codes.setdefault(text, len(codes)) for text in part.topic.take(firsts).texts()]
            topic_of.append(np.repeat(np.array(found, np.int64), np.diff(firsts, append=len(part.docs))))
            parts.append(_Part(Ids.of(()), part.docs, part.grades, part.features))
    except Irregular:
        _explain(source, dtype)
    except _TooLarge as much:
        raise InputError(Place(source.name), f"{much} bytes", "less (FAIREVALS_MAX_BYTES)") from None
    if not parts:
        raise InputError(Place(source.name), "no line", EXPECTED)
    return _together(source, list(codes), np.concatenate(topic_of), parts, dtype)


def _together(
    source: Source, topics: list[str], topic_of: Ints, parts: list[_Part], dtype: type[np.floating]
) -> LetorColumns:
    order = np.argsort(topic_of, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    starts = np.searchsorted(topic_of[order], np.arange(len(topics) + 1)).astype(np.int64)
    names = [doc for part in parts for doc in part.docs]
    docs = [names[row] for row in order.tolist()]
    for topic, (start, stop) in enumerate(zip(starts.tolist(), starts[1:].tolist(), strict=False)):
        docs[start:stop] = [doc or f"{topics[topic]}:{n}" for n, doc in enumerate(docs[start:stop], 1)]
    twice = Index(topic_of[order], Ids.of(docs)).duplicates()
    if twice.size:
        row = int(twice[0])
        raise InputError(
            Place(source.name, _line_of(source, int(order[row]))),
            f"document {escape(docs[row])!r} twice in topic {escape(topics[int(topic_of[order[row]])])!r}",
            "a document once in a topic",
        )
    grades = np.concatenate([part.grades for part in parts])[order]
    features = np.zeros((order.size, max(part.features.shape[1] for part in parts)), dtype=dtype)
    row = 0
    while parts:  # a part is let go once it is copied, so that no more than twice the data is ever held
        values = parts.pop(0).features
        features[place[row : row + len(values)], : values.shape[1]] = values
        row += len(values)
    return LetorColumns(source.name, topics, starts, docs, grades, features)


def _read_chunk(chunk: bytes, dtype: type[np.floating]) -> _Part:
    """The lines of a chunk; `Irregular` if there is anything wrong with one of them."""
    buffer = padded_buffer(chunk)
    body = buffer[PAD_FRONT : buffer.size - PAD_BACK]
    if body.size and int(body.max()) >= 0x7F:
        try:
            chunk.decode()
        except UnicodeDecodeError:
            raise Irregular from None
    line_end = np.flatnonzero(body == NEWLINE)
    content, comment = _without_comments(body, line_end)
    blank = content <= SPACE
    kinds = content[blank]
    if np.any((kinds != SPACE) & (kinds != NEWLINE) & (kinds != TAB) & (kinds != RETURN)):
        raise Irregular  # a control character
    edges = np.diff(blank, prepend=True)
    start, end = np.flatnonzero(edges & ~blank), np.flatnonzero(edges & blank)
    if start.size == 0:
        return _Part(Ids.of(()), [], np.zeros(0), np.zeros((0, 0), dtype))
    line = np.searchsorted(line_end, start)
    first = np.flatnonzero(np.diff(line, prepend=-1))  # of each line, the token of the grade
    tokens = np.diff(first, append=line.size)
    if int(tokens.min()) < 2:
        raise Irregular
    docs = _doc_names(chunk, comment[line[first]], line_end[line[first]])

    start, end = start + PAD_FRONT, end + PAD_FRONT
    grades, wrong = parse_decimals(buffer, start[first], end[first])
    qid = first + 1
    named = np.all(buffer[start[qid, None] + np.arange(4)] == _QID, axis=1) & (end[qid] - start[qid] > 4)
    if wrong.size or not named.all():
        raise Irregular
    topic = Ids(buffer, start[qid] + 4, end[qid] - start[qid] - 4)

    pairs = np.ones(start.size, dtype=bool)
    pairs[first] = pairs[qid] = False
    row = np.repeat(np.arange(first.size), tokens)[pairs]
    return _Part(topic, docs, grades, _features(buffer, start[pairs], end[pairs], row, first.size, dtype))


def _features(buffer: Bytes, start: Ints, end: Ints, row: Ints, rows: int, dtype: type[np.floating]) -> Array:
    """The `number:value` tokens as a matrix."""
    if start.size == 0:
        return np.zeros((rows, 0), dtype)
    colons = np.flatnonzero(buffer == _COLON)
    at = np.searchsorted(colons, start)
    if int(at[-1]) >= colons.size:
        raise Irregular
    colon = colons[at]
    if np.any(colon >= end):
        raise Irregular
    value, wrong = parse_decimals(buffer, colon + 1, end)
    column = _whole_numbers(buffer, start, colon) - 1
    if wrong.size or column.min() < 0 or column.max() >= MOST_FEATURES:
        raise Irregular
    if np.any((np.diff(column) <= 0) & (np.diff(row) == 0)):
        cells = np.sort(row * MOST_FEATURES + column)
        if np.any(cells[1:] == cells[:-1]):
            raise Irregular
    _check_size(rows, int(column.max()) + 1, dtype)
    features = np.zeros((rows, int(column.max()) + 1), dtype)
    with np.errstate(over="ignore"):
        features[row, column] = value
    if not np.isfinite(features).all():
        raise Irregular
    return features


class _TooLarge(Exception):  # noqa: N818 -- becomes an `InputError` where the file's name is known
    """Rows of few bytes that would take very many with all their features."""


def _check_size(rows: int, features: int, dtype: type[np.floating]) -> None:
    size = rows * features * np.dtype(dtype).itemsize
    if size > Limits.current().bytes:
        raise _TooLarge(f"{rows} rows of {features} features, {size}")


def _whole_numbers(buffer: Bytes, start: Ints, end: Ints) -> Ints:
    """The whole numbers at `buffer[start:end]`, of six digits at most."""
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


def _without_comments(body: Bytes, line_end: Ints) -> tuple[Bytes, Ints]:
    """The bytes with comments blanked out, and where each line's begins (its end if it has none)."""
    hashes = np.flatnonzero(body == _HASH)
    comment = line_end.copy()
    if hashes.size == 0:
        return body, comment
    lines = np.searchsorted(line_end, hashes)
    leading = np.flatnonzero(np.diff(lines, prepend=-1))
    comment[lines[leading]] = hashes[leading]
    change = np.zeros(body.size + 1, dtype=np.int8)
    change[comment[lines[leading]]] = 1
    change[line_end[lines[leading]]] = -1
    content = body.copy()
    content[np.cumsum(change[:-1], dtype=np.int8) > 0] = SPACE
    return content, comment


def _doc_names(chunk: bytes, comment: Ints, line_end: Ints) -> list[str]:
    return [
        _doc_name(chunk[begin + 1 : end]) if begin < end else ""
        for begin, end in zip(comment.tolist(), line_end.tolist(), strict=True)
    ]


def _doc_name(comment: bytes) -> str:
    found = _DOC.search(comment) if b"docid" in comment else _DOC.match(comment.strip())
    if not found:
        return ""
    name = (found[1] or found[2]).decode()
    if not name.isprintable():
        raise Irregular
    return name


def _data_lines(source: Source) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, content and comment of the lines that hold something."""
    for number, line in source.lines():
        content, _, comment = line.partition(b"#")
        if content.strip():
            yield number, content, comment


def _line_of(source: Source, row: int) -> int:
    return next((number for at, (number, _, _) in enumerate(_data_lines(source)) if at == row), 0)


def _explain(source: Source, dtype: type[np.floating]) -> NoReturn:
    """Find the line that cannot be read, and say why."""
    for number, content, comment in _data_lines(source):
        place = Place(source.name, number)
        try:
            (content + comment).decode()
        except UnicodeDecodeError:
            raise InputError(place, "bytes that are not UTF-8", "UTF-8") from None
        if re.search(rb"[\x00-\x08\x0b-\x1f]", content):
            raise InputError(place, f"a control character in {escape(content)!r}", EXPECTED)
        try:
            _doc_name(comment)
        except Irregular:
            raise InputError(place, f"document {escape(comment.strip())!r}", "printable characters") from None
        grade, *rest = content.split()
        if not NUMBER.fullmatch(grade) or not np.isfinite(float(grade)):
            raise InputError(place, f"grade {escape(grade)!r}", f"a number, as in {EXPECTED}")
        if not rest or not rest[0].startswith(b"qid:") or rest[0] == b"qid:":
            found = f"{escape(rest[0])!r} after the grade" if rest else "nothing after the grade"
            raise InputError(place, found, f"qid:ID, as in {EXPECTED}")
        _explain_pairs(rest[1:], place, dtype)
    raise InputError(Place(source.name), "a line that cannot be read", EXPECTED)


def _explain_pairs(tokens: list[bytes], place: Place, dtype: type[np.floating]) -> None:
    seen: set[int] = set()
    for token in tokens:
        name, colon, text = token.partition(b":")
        if not colon or not name.isdigit():
            raise InputError(place, f"{escape(token)!r}", "number:value, such as 3:0.25")
        number = int(name) if len(name) <= 6 else 0  # Python refuses to convert thousands of digits
        if not 1 <= number <= MOST_FEATURES:
            raise InputError(
                place, f"feature number {escape(name)}", f"1 to {MOST_FEATURES} (not counted from 0)"
            )
        if number in seen:
            raise InputError(place, f"feature {number} twice", "every feature once")
        seen.add(number)
        with np.errstate(over="ignore"):
            if not NUMBER.fullmatch(text) or not np.isfinite(dtype(float(text))):
                limit = f"a number below {np.finfo(dtype).max:.2g}"
                raise InputError(place, f"{escape(text)!r} as the value of feature {number}", limit)

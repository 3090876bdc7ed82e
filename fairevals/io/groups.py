"""Memberships of documents in the groups of an attribute: files in, checked to the line.

Two formats of memberships: NTCIR's `topic doc p1 … pC`, a line a document, and a long table (csv or tsv)
whose header names the columns `[topic,] doc, group [, weight]`, a line for each group of a document.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.errors import InputError, Place, escape
from fairevals.ids import Ids, Index, numbered
from fairevals.io.decimals import NUMBER, parse_decimals
from fairevals.io.delimited import names, split_line, table, text_of
from fairevals.io.streams import Source
from fairevals.io.task import AttributeSpec
from fairevals.io.tokens import Irregular, tokenise
from fairevals.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

LONG_COLUMNS = ("topic", "doc", "group", "weight")
LONG = "columns doc and group, perhaps topic and weight"
TOLERANCE = 1e-4
"""How far from 1 the sum of a target may be: probabilities printed with four places or more are within it."""


@dataclass(frozen=True)
class MembershipColumns:
    """Memberships: a row a document, or a document of a topic; each row of `weights` sums to 1."""

    name: str
    topics: list[str] | None
    """None: a document's membership is the same for every topic."""
    topic_of: Ints
    """The row's index into `topics`; zeros if there are none."""
    docs: Ids
    weights: Floats
    """(rows, groups)"""


# Rows of numbers -------------------------------------------------------------


def shares(weights: Floats) -> Floats:
    """Each row (…, group) of non-negative numbers, not all 0, divided by its sum.

    A row that sums to 1 but for rounding stays as it is, so that what was written with all its digits comes
    back to the last bit.

    >>> shares(np.array([[2.0, 1.0, 1.0], [0.3, 0.3, 0.4]]))
    array([[0.5 , 0.25, 0.25],
           [0.3 , 0.3 , 0.4 ]])
    """
    scaled = weights / weights.max(axis=-1, keepdims=True)  # the sum of huge numbers would overflow
    scaled /= scaled.sum(axis=-1, keepdims=True)
    with np.errstate(over="ignore"):
        off = np.abs(weights.sum(axis=-1, keepdims=True) - 1)
    settled = off <= weights.shape[-1] * np.finfo(np.float64).eps
    result: Floats = np.where(settled, weights, scaled) + 0.0  # never −0
    return result


def _proper(weights: Floats) -> Bools:
    """Whether each row can be normalised: finite, not negative, not all 0."""
    proper: Bools = np.all(np.isfinite(weights) & (weights >= 0), axis=1) & np.any(weights > 0, axis=1)
    return proper


def number_of(text: str | bytes) -> float:
    """The number that a text is; NaN if it is none, or none that is finite."""
    raw = text.encode() if isinstance(text, str) else text
    value = float(raw) if NUMBER.fullmatch(raw) else math.nan
    return value if math.isfinite(value) else math.nan


def read_memberships(spec: AttributeSpec) -> MembershipColumns:
    """Read the memberships file of an attribute, in either format.

    A first line that names the columns `doc` and `group` makes it a long table, anything else is NTCIR's.
    Rows of either are normalised to sum to 1 (NTCIR's are probabilities, often printed with few digits).

    An error with file and line: a row with the wrong number of columns, with a number that is negative or not
    finite, with nothing above 0, of an unknown group, without document, or of a document that had its row.
    """
    if spec.memberships is None:
        raise InputError(
            spec.place, f"attribute {escape(spec.name)} without memberships", 'memberships = "FILE"'
        )
    source = Source.of(spec.memberships)
    return _read_long(source, spec.groups) if is_long(source) else _read_ntcir(source, spec.groups)


def is_long(source: Source) -> bool:
    """Whether a file's first line is the header of a long table."""
    head = source.head()
    try:
        header = split_line(head[0].decode()) if head else []
    except (UnicodeDecodeError, csv.Error):
        return False
    return {"doc", "group"} <= set(header)


def _read_ntcir(source: Source, groups: Sequence[str]) -> MembershipColumns:
    columns = 2 + len(groups)
    topics: dict[str, int] = {}
    parts: list[tuple[Ints, Ids, Floats]] = []
    try:
        for chunk in source.chunks():
            tokens = tokenise(chunk, columns)
            codes = numbered(tokens.column(0), topics)
            numbers = [
                parse_decimals(tokens.buffer, tokens.start[:, column], tokens.end[:, column])[0]
                for column in range(2, columns)
            ]
            weights = np.stack(numbers, axis=1)
            if not _proper(weights).all():
                raise Irregular
            parts.append((codes, tokens.column(1).compact(), shares(weights)))
    except Irregular:
        _explain(source, groups)
    if not topics:
        raise InputError(Place(source.name), "no line", f"{_ntcir(groups)}, or a table with {LONG}")
    read = MembershipColumns(
        source.name,
        list(topics),
        np.concatenate([part[0] for part in parts]),
        Ids.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )
    again = Index(read.topic_of, read.docs).duplicates()
    if again.size:
        row = int(again[0])
        lines = (number for number, line in source.lines() if line.split())
        place = Place(source.name, next(islice(lines, row, None)))
        doc, topic_name = escape(read.docs.text(row)), escape(list(topics)[read.topic_of[row]])
        raise InputError(place, f"document {doc!r} twice in topic {topic_name!r}", "one line a document")
    return read


def _ntcir(groups: Sequence[str]) -> str:
    return f"{2 + len(groups)} columns (topic doc and {len(groups)} numbers, one a group)"


def _explain(source: Source, groups: Sequence[str]) -> None:
    """Find the line of an NTCIR file that cannot be read, and say why."""
    first = True
    for number, line in source.lines():
        place = Place(source.name, number)
        parts = line.split()
        if not parts:
            continue
        text_of(line, place)
        if len(parts) != 2 + len(groups):
            # Perhaps it was meant as a table, and its header is wrong.
            expected = _ntcir(groups) + (f", or a table with {LONG}" if first else "")
            raise InputError(place, f"{len(parts)} columns: {escape(line)!r}", expected)
        first = False
        values = [number_of(part) for part in parts[2:]]
        for part, value in zip(parts[2:], values, strict=True):
            if not value >= 0:
                raise InputError(place, f"membership {escape(part)!r}", "a number of at least 0")
        if not any(values):
            raise InputError(place, "memberships that are all 0", "one above 0")
    raise InputError(Place(source.name), "a line that cannot be read", _ntcir(groups))


def _read_long(source: Source, groups: Sequence[str]) -> MembershipColumns:
    _, header, rows = table(source, ("doc", "group"), known=LONG_COLUMNS)
    topic, weight = (header.index(c) if c in header else None for c in ("topic", "weight"))
    doc, group = header.index("doc"), header.index("group")
    entries = (
        (
            line,
            "" if topic is None else row[topic],
            row[doc],
            row[group],
            1.0 if weight is None else row[weight],
        )
        for line, row in rows
    )
    return collect(source.name, entries, groups, by_topic=topic is not None)


def collect(
    name: str, entries: Iterable[tuple[int, str, str, str, Any]], groups: Sequence[str], *, by_topic: bool
) -> MembershipColumns:
    """Memberships from (line, topic, doc, group, weight), normalised per document.

    The same group of a document twice is an error: it is a slip more often than it is meant as a sum.
    """
    column = {group: number for number, group in enumerate(groups)}
    topics: dict[str, int] = {}
    row_of: dict[tuple[int, str], int] = {}
    first_line: list[int] = []
    cells: dict[tuple[int, int], float] = {}
    for line, topic, doc, group, given in entries:
        if not doc or (by_topic and not topic):
            raise InputError(Place(name, line), f"an empty {'topic' if doc else 'doc'}", "a name")
        if group not in column:
            raise InputError(
                Place(name, line), f"the unknown group {escape(group)!r}", f"one of {names(groups)}"
            )
        weight = number_of(given) if isinstance(given, str) else float(given)
        if not 0 <= weight < math.inf:
            raise InputError(Place(name, line), f"weight {escape(str(given))!r}", "a number of at least 0")
        key = (topics.setdefault(topic, len(topics)) if by_topic else 0, doc)
        row = row_of.setdefault(key, len(row_of))
        if row == len(first_line):
            first_line.append(line)
        if (row, column[group]) in cells:
            where = f" in topic {escape(topic)!r}" if by_topic else ""
            found = f"document {escape(doc)!r}{where} twice in group {escape(group)!r}"
            raise InputError(Place(name, line), found, "one line for each of its groups")
        cells[row, column[group]] = weight
    if not row_of:
        raise InputError(Place(name), "no membership", "one or more")
    weights = np.zeros((len(row_of), len(groups)))
    at = np.array(list(cells), dtype=np.int64)
    weights[at[:, 0], at[:, 1]] = list(cells.values())
    empty = np.flatnonzero(~_proper(weights))
    if empty.size:
        row = int(empty[0])
        found = f"weights of document {escape(list(row_of)[row][1])!r} that are all 0"
        raise InputError(Place(name, first_line[row]), found, "one above 0")
    return MembershipColumns(
        name,
        list(topics) if by_topic else None,
        np.array([topic for topic, _ in row_of], dtype=np.int64),
        Ids.of(doc for _, doc in row_of),
        shares(weights),
    )


# Memberships from Python -----------------------------------------------------

Entry = tuple[int, str, str, str, Any]


def entries_of_frame(frame: pd.DataFrame, name: str) -> tuple[list[Entry], bool]:
    """The rows of a table `[topic,] doc, group [, weight]` for `collect`, and whether it has topics."""
    unknown = [c for c in frame.columns if c not in LONG_COLUMNS]
    if unknown or not {"doc", "group"} <= set(frame.columns):
        raise InputError(Place(name), f"columns {names(map(str, frame.columns))}", LONG)
    known = frame.notna()

    def texts(column: str) -> list[str]:
        pairs = zip(frame[column].tolist(), known[column].tolist(), strict=True)
        return [str(value) if there else "" for value, there in pairs]

    by_topic = "topic" in frame.columns
    topics = texts("topic") if by_topic else [""] * len(frame)
    weights: list[Any] = frame["weight"].tolist() if "weight" in frame.columns else [1.0] * len(frame)
    columns = (topics, texts("doc"), texts("group"), [_weight(weight) for weight in weights])
    return list(zip(range(1, len(frame) + 1), *columns, strict=True)), by_topic


def entries_of_dict(given: Mapping[str, str | Mapping[str, float]]) -> list[Entry]:
    """The entries of {doc: group} or {doc: {group: weight}} for `collect`; the line is the place in the dict.

    >>> entries_of_dict({"a": "she", "b": {"he": 1, "she": 3}})
    [(1, '', 'a', 'she', 1.0), (2, '', 'b', 'he', 1), (2, '', 'b', 'she', 3)]
    """
    return [
        (number, "", str(doc), str(group), _weight(weight))
        for number, (doc, groups) in enumerate(given.items(), 1)
        for group, weight in (groups.items() if isinstance(groups, Mapping) else [(groups, 1.0)])
    ]


def _weight(value: Any) -> Any:
    """A weight as `collect` takes it: anything that is not a number becomes a text, to be read or refused."""
    return value if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else str(value)


def group_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of the groups in a long table, sorted."""
    _, header, rows = table(Source.of(path), ("doc", "group"), known=LONG_COLUMNS)
    return sorted({row[header.index("group")] for _, row in rows})

"""Memberships of documents in the groups of an attribute.

Three formats of memberships: NTCIR's `topic doc p1 … pC` with one line per document, a long table (csv or tsv) with
columns `[topic,] doc, group [, weight]` and one line per group of a document, and a wide table (csv or tsv) with a
header `[topic,] doc, <one column per group>` and one line per document.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.errors import InputError, InputWarning, Place, UsageError, escape, names, pluralize
from fairevals.ids import Ids, Index, numbered
from fairevals.io.decimals import number_of
from fairevals.io.lines import Column, LineFormat
from fairevals.io.specs import AttributeSpec
from fairevals.io.streams import Source
from fairevals.io.tables import check_distinct, has_header, header_of, id_text, id_texts, table
from fairevals.typing import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

MEMBERSHIP_COLUMNS = ("topic", "doc", "group", "weight")
LONG_TABLE = "columns doc and group, perhaps topic and weight"
WIDE_TABLE = "columns doc, perhaps topic, and one column of numbers per group"
ROW_TOLERANCE = 0.01 + 1e-9
"""How far from 1 memberships may sum without a warning: enough for three shares printed with two decimals."""

Row = tuple[int, Sequence[Any]]
"""The line and the cells of a row."""


@dataclass(frozen=True)
class MembershipColumns:
    """Memberships: one row per document, or per document of a topic. The shares of each row sum to 1.

    There may be thousands of groups, and a document is in few of them: only shares above 0 are stored.
    """

    name: str
    topics: list[str] | None
    """None: a document's membership is the same for every topic."""
    topic_of: Ints
    """The row's index into `topics`; zeros if there are none."""
    docs: Ids
    groups: int
    """How many groups there are."""
    row_of: Ints
    """The row of each share, ascending."""
    group_of: Ints
    """The group of each share."""
    shares: Floats

    @cached_property
    def index(self) -> Index:
        """Finds a row by its topic's number here and the document."""
        return Index(self.topic_of, self.docs)

    @cached_property
    def _starts(self) -> Ints:
        """Where the shares of each row begin, and the end."""
        starts: Ints = np.searchsorted(self.row_of, np.arange(self.topic_of.size + 1))
        return starts

    def rows_of(self, other: MembershipColumns) -> Ints:
        """For each row of another attribute, the row here of its topic and document, −1 where there is none.

        Only if memberships here do not depend on the topic, or those of the other attribute do so too.
        """
        topic = np.zeros(other.topic_of.size, dtype=np.int64)
        if self.topics is not None and other.topics is not None:
            number = {name: at for at, name in enumerate(self.topics)}
            topic = np.array([number.get(name, -1) for name in other.topics], dtype=np.int64)[other.topic_of]
        return self.index.find(topic, other.docs)

    @cached_property
    def most(self) -> int:
        """The largest number of groups that a document is in."""
        return int(np.bincount(self.row_of, minlength=1).max())

    def few(self, rows: Ints) -> tuple[Ints, Floats]:
        """The groups of n rows and the shares in them, (n, most); padded with 0, as for a row of −1."""
        counts = np.where(rows >= 0, np.diff(self._starts, append=0)[rows], 0)
        at = self._starts[rows][:, None] + np.arange(self.most)
        there = np.arange(self.most) < counts[:, None]
        at = np.where(there, at, 0)
        return np.where(there, self.group_of[at], 0), np.where(there, self.shares[at], 0.0)

    def dense(self, rows: Ints) -> Floats:
        """The memberships (n, groups) of n rows; zeros for a row of −1."""
        weights = np.zeros((rows.size, self.groups))
        if self.shares.size == self.topic_of.size:  # every row has one share
            found = np.flatnonzero(rows >= 0)
            weights[found, self.group_of[rows[found]]] = self.shares[rows[found]]
            return weights
        counts = np.where(rows >= 0, np.diff(self._starts, append=0)[rows], 0)
        ends = np.cumsum(counts)
        at = np.arange(ends[-1] if rows.size else 0) + np.repeat(self._starts[rows] - (ends - counts), counts)
        weights[np.repeat(np.arange(rows.size), counts), self.group_of[at]] = self.shares[at]
        return weights

    @property
    def weights(self) -> Floats:
        """All rows, (rows, groups)."""
        return self.dense(np.arange(self.topic_of.size))


def normalise_rows(weights: Floats, row_of: Ints, groups: int) -> Floats:
    """Positive numbers, each divided by the sum of its row; `row_of` says which row of how many `groups` it is in.

    A row that sums to 1 except for rounding stays as it is, so that values written with all their digits are read
    back bit for bit.

    >>> normalise_rows(np.array([2.0, 1.0, 1.0, 0.3, 0.3, 0.4]), np.array([0, 0, 0, 1, 1, 1]), 3)
    array([0.5 , 0.25, 0.25, 0.3 , 0.3 , 0.4 ])
    """
    if not weights.size:
        return weights
    largest = np.zeros(int(row_of.max()) + 1)
    np.maximum.at(largest, row_of, weights)
    scaled = weights / largest[row_of]  # the sum of huge numbers would overflow
    scaled /= np.bincount(row_of, scaled)[row_of]
    with np.errstate(over="ignore"):
        off = np.abs(np.bincount(row_of, weights) - 1)
    settled = off <= groups * np.finfo(np.float64).eps
    result: Floats = np.where(settled[row_of], weights, scaled)
    return result


def _normalised(
    columns: MembershipColumns, place_of: Callable[[int], Place], *, warn: bool = True
) -> MembershipColumns:
    """The same with rows that sum to 1: an error if one is all 0; with `warn`, one warning if others do not yet."""
    weights, row_of, size = columns.shares, columns.row_of, columns.topic_of.size
    for row in np.flatnonzero(np.bincount(row_of, minlength=size) == 0)[:1].tolist():
        found = f"memberships of document {escape(columns.docs.text(row))!r} that are all 0"
        raise InputError(place_of(row), found, "one above 0")
    with np.errstate(over="ignore"):
        sums = np.bincount(row_of, weights, minlength=size)
    off = np.flatnonzero(~(np.abs(sums - 1) <= ROW_TOLERANCE))
    if warn and off.size:
        message = (
            f"{Place(columns.name)}: the memberships of {pluralize(off.size, 'document')} do not sum to 1 and were "
            f"normalised (line {place_of(int(off[0])).line} has a sum of {sums[off[0]]:.6g})"
        )
        warnings.warn(InputWarning(message), stacklevel=3)
    return replace(columns, shares=normalise_rows(weights, row_of, columns.groups))


def read_memberships(spec: AttributeSpec) -> MembershipColumns:
    """Read the memberships file of an attribute, in any of the formats.

    A first line that names the columns `doc` and `group` makes it a long table, one that names groups a wide table;
    anything else is NTCIR's format. Rows are normalised to sum to 1. An `InputWarning` reports rows whose sum is
    further from 1 than rounding explains, unless the file is a long table without weights.
    """
    if spec.memberships is None:
        found = f"attribute {escape(spec.name)} without memberships"
        raise InputError(spec.place, found, 'memberships = "FILE"')
    source = Source.of(spec.memberships)
    if has_header(source, "doc", "group"):
        _, header, rows = table(source, ("doc", "group"), known=MEMBERSHIP_COLUMNS)
        return collect(source.name, header, rows, spec.groups, warn="weight" in header)
    if _is_wide(header_of(source), spec.groups):
        line, header, rows = table(source, ())
        header = _wide_header(Place(source.name, line), header, spec.groups)
        return collect(source.name, *long_rows(source.name, header, rows), spec.groups, warn=True)
    return _read_ntcir(source, spec.groups)


def _is_wide(header: Sequence[str], groups: Sequence[str]) -> bool:
    """Whether a first line is the header of a wide table: groups may be called 0 and 1, and a line of NTCIR's may
    be separated by tabs, so there must be a column `doc`, or no number."""
    return not set(groups).isdisjoint(header) and (
        "doc" in header or all(math.isnan(number_of(cell)) for cell in header)
    )


def _wide_header(place: Place, header: Sequence[str], groups: Sequence[str]) -> list[str]:
    """The header of a wide file; the one column that is neither `topic` nor a group has the documents.

    It has other names too: `page_id` in TREC Fair.
    """
    others = [name for name in header if name not in groups and name != "topic"]
    lacking = [group for group in groups if group not in header]
    if lacking or len(others) != 1 or others[0] in MEMBERSHIP_COLUMNS[2:]:
        found = f"no column for the group {escape(lacking[0])!r}" if lacking else f"columns {names(header)}"
        raise InputError(place, found, f"{WIDE_TABLE} ({names(groups)})")
    return ["doc" if name == others[0] else name for name in header]


def _read_ntcir(source: Source, groups: Sequence[str]) -> MembershipColumns:
    count = len(groups)
    line_format = LineFormat(
        "memberships",
        (Column("topic"), Column("doc"), *[Column("membership", "number", least=0)] * count),
        f"{2 + count} columns (topic doc and one number for each of {count} groups), or a table with {LONG_TABLE}, "
        f"or with {WIDE_TABLE}",
    )
    topics: dict[str, int] = {}
    codes_of, docs_of, lines = [], [], 0
    cells: list[tuple[Ints, Ints, Floats]] = []
    for tokens in line_format.read(source):
        weights = np.stack(tokens.numbers, axis=1)
        row, group = np.nonzero(weights)
        cells.append((lines + row, group, weights[row, group]))
        codes_of.append(numbered(tokens.column(0), topics))
        docs_of.append(tokens.column(1).compact())
        lines += len(weights)
    if not topics:
        raise InputError(Place(source.name), "no line", line_format.expected)
    codes, docs = np.concatenate(codes_of), Ids.concatenate(docs_of)
    for row in Index(codes, docs).duplicates()[:1].tolist():
        doc, topic = escape(docs.text(row)), escape(list(topics)[codes[row]])
        place = line_format.place_of(source, row)
        raise InputError(place, f"document {doc!r} twice in topic {topic!r}", "one line per document")
    shares = (np.concatenate(column) for column in zip(*cells, strict=True))
    columns = MembershipColumns(source.name, list(topics), codes, docs, count, *shares)
    return _normalised(columns, lambda row: line_format.place_of(source, row))


def collect(
    name: str, header: Sequence[str], rows: Iterable[Row], groups: Sequence[str], *, warn: bool = False
) -> MembershipColumns:
    """Memberships from the rows of a long table, normalised per document; `warn` reports sums that are not 1.

    The same group of a document twice is an error: it is more often a mistake than meant as a sum.
    """
    column = {group: number for number, group in enumerate(groups)}
    by_topic = "topic" in header
    topics: dict[str, int] = {}
    row_of: dict[tuple[int, str], int] = {}
    first_line: list[int] = []
    cells: dict[tuple[int, int], float] = {}
    for line, values in rows:
        entry = dict(zip(header, values, strict=True))
        doc, group = entry["doc"], entry["group"]
        topic, given = entry.get("topic", ""), entry.get("weight", 1.0)
        if not doc or (by_topic and not topic):
            raise InputError(Place(name, line), f"an empty {'topic' if doc else 'doc'}", "a name")
        if group not in column:
            found = f"the unknown group {escape(group)!r}"
            raise InputError(Place(name, line), found, f"one of {names(groups)}")
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
    at, weights = np.array(list(cells), dtype=np.int64), np.array(list(cells.values()))
    order = np.lexsort((at[:, 1], at[:, 0]))
    order = order[weights[order] > 0]
    shares = at[order, 0], at[order, 1], weights[order]
    codes = np.array([topic for topic, _ in row_of], dtype=np.int64)
    docs = Ids.of(doc for _, doc in row_of)
    columns = MembershipColumns(name, list(topics) if by_topic else None, codes, docs, len(groups), *shares)
    return _normalised(columns, lambda row: Place(name, first_line[row]), warn=warn)


def long_rows(name: str, header: Sequence[str], rows: Iterable[Row]) -> tuple[list[str], Iterator[Row]]:
    """The header and the rows of a wide table, `[topic,] doc` and one column per group, as those of a long one.

    >>> header, rows = long_rows("x.csv", ["doc", "f", "m"], [(2, ["a", "0.2", "0.8"])])
    >>> header, list(rows)
    (['doc', 'group', 'weight'], [(2, ('a', 'f', '0.2')), (2, ('a', 'm', '0.8'))])
    """
    keys = [key for key in ("topic", "doc") if key in header]
    at = [header.index(key) for key in keys]
    groups = [(column, group) for column, group in enumerate(header) if group not in keys]

    def cells() -> Iterator[Row]:
        seen = set()
        for line, row in rows:
            ids = tuple(row[column] for column in at)
            if ids in seen:
                where = f" in topic {escape(ids[0])!r}" if len(ids) > 1 else ""
                found = f"document {escape(ids[-1])!r}{where} a second time"
                raise InputError(Place(name, line), found, "one line per document")
            seen.add(ids)
            # Most cells are 0. A row without any other keeps one, to be reported.
            filled = [(group, row[column]) for column, group in groups if row[column] not in ("0", "0.0", 0)]
            for group, weight in filled or [(groups[0][1], 0.0)]:
                yield line, (*ids, group, weight)

    return [*keys, "group", "weight"], cells()


def group_name(label: Any, where: str = "") -> str:
    """The name of a group that is given as a label: a whole number is written without a decimal point.

    A column of whole numbers becomes one of real numbers if one of them is missing, and its groups stay the same.

    >>> group_name(1.0), group_name(1), group_name(np.float32(0.1)), group_name("m")
    ('1', '1', '0.1', 'm')
    """
    if isinstance(label, Sized) and not isinstance(label, str):
        raise UsageError(f"{where}the group {escape(repr(label))}; expected its name, or {{group: share}}")
    if isinstance(label, (float, np.floating)):
        return np.format_float_positional(label, trim="-")
    return str(label)


def rows_of(given: pd.DataFrame | Mapping[str, Any], name: str) -> tuple[list[str], list[Row]]:
    """The header and the rows of memberships from Python, for `collect`.

    They are {doc: group}, {doc: {group: weight}}, a table `[topic,] doc, group [, weight]`, or a wide table
    `[topic,] doc` with one column of numbers per group; the line is the place in it.

    >>> rows_of({"a": "she", "b": {"he": 1, "she": 3}}, "SEX")[1]
    [(1, ('a', 'she', 1.0)), (2, ('b', 'he', 1)), (2, ('b', 'she', 3))]
    """
    where = f"attribute {escape(name)}: "
    if isinstance(given, Mapping):
        docs = [id_text(doc, "doc", Place(name, number)) for number, doc in enumerate(given, 1)]
        check_distinct(docs, f"{where}documents")
        return ["doc", "group", "weight"], [
            (number, (doc, group_name(group, where), _weight(weight)))
            for number, (doc, groups) in enumerate(zip(docs, given.values(), strict=True), 1)
            for group, weight in (groups.items() if isinstance(groups, Mapping) else [(groups, 1.0)])
        ]
    wide = is_wide(given)
    if not wide and not {"doc", "group"} <= set(given.columns) <= set(MEMBERSHIP_COLUMNS):
        raise InputError(
            Place(name), f"columns {names(map(str, given.columns))}", f"{LONG_TABLE}, or {WIDE_TABLE}"
        )

    def cells(column: Any) -> Iterable[Any]:
        if column in ("topic", "doc"):
            return id_texts(given[column], column, name, range(1, len(given) + 1))
        if column == "group":
            return (group_name(group, where) for group in given[column].tolist())
        return given[column].astype(float).tolist() if wide else map(_weight, given[column].tolist())

    header = [group_name(column, where) for column in given.columns]
    rows: Iterable[Row] = enumerate(zip(*map(cells, given.columns), strict=True), 1)
    if wide:
        header, rows = long_rows(name, header, rows)
    return header, list(rows)


def is_wide(given: Any) -> bool:
    """Whether a table from Python has `[topic,] doc` and one column of numbers (or truth values) for each group."""
    groups = [column for column in getattr(given, "columns", ()) if column not in ("topic", "doc")]
    return (
        bool(groups)
        and "doc" in given.columns
        and not {"group", "weight"} & set(groups)
        and all(given[column].dtype.kind in "biuf" for column in groups)
    )


def _weight(value: Any) -> Any:
    """A weight for `collect`: anything that is not a number becomes a text, to be parsed or refused."""
    return value if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) else str(value)


def group_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of the groups in a long table, sorted, or in a wide one, in the order of its columns."""
    source = Source.of(path)
    if has_header(source, "doc") and not has_header(source, "group"):
        _, header, _ = table(source, ("doc",))
        return [name for name in header if name not in ("topic", "doc")]
    _, header, rows = table(source, ("doc", "group"), known=MEMBERSHIP_COLUMNS)
    return sorted({row[header.index("group")] for _, row in rows})

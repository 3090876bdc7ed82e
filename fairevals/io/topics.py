"""The list of a task's topics: ids, one per line; a table with further columns; or JSON lines as at TREC Fair."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fairevals.errors import InputError, Place, escape
from fairevals.io.jsonl import has_key, id_of, json_lines
from fairevals.io.streams import Source
from fairevals.io.tables import check_id, header_of, table, text_lines

ID_COLUMNS = ("topic", "id", "qid")
"""What the column of ids may be called."""


@dataclass(frozen=True)
class Topics:
    """Topics in the order of their file, with the columns of the file by name."""

    source: str
    ids: tuple[str, ...]
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)


def read_topics(path: str | os.PathLike[str]) -> Topics:
    """Read a list of topics: ids, one per line, or a csv or tsv table whose column `topic` (or `id`, `qid`) has them.

    JSON lines with an `id` or a `qid`, as TREC's Fair Ranking track publishes topics, are read too; their columns are
    what the first line has texts and numbers for. An error with file and line: a topic that is listed twice, an id with
    a space, or no topic.
    """
    source = Source.of(path)
    header, rows = _rows(source)
    ids: dict[str, int] = {}
    cells: list[list[str]] = []
    for line, (topic, *others) in rows:
        place = Place(source.name, line)
        if len(check_id(topic, "topic", place).split()) > 1:
            expected = "one id per line, or a table with a header"
            raise InputError(place, f"a topic with spaces: {escape(topic)!r}", expected)
        if topic in ids:
            expected = f"it once (first in line {ids[topic]})"
            raise InputError(place, f"the topic {escape(topic)!r} a second time", expected)
        ids[topic] = line
        cells.append(others)
    if not ids:
        raise InputError(Place(source.name), "no topic", "one topic id per line")
    return Topics(source.name, tuple(ids), dict(zip(header, zip(*cells, strict=True), strict=True)))


def _rows(source: Source) -> tuple[list[str], Iterable[tuple[int, list[str]]]]:
    """The names of the columns after the id, and the line, id and columns of each topic."""
    if key := next((key for key in ("id", "qid") if has_key(source, key)), ""):
        return _json_rows(source, key)
    names = header_of(source)
    key = next((column for column in ID_COLUMNS if column in names), ID_COLUMNS[0])
    if len(names) == 1 and key not in names:
        lines = text_lines(source, "a list of topics")
        return [], ((number, [line.strip()]) for number, line in lines if not line.lstrip().startswith("#"))
    _, header, rows = table(source, (key,))
    at = header.index(key)
    return header[:at] + header[at + 1 :], (
        (line, [row[at], *row[:at], *row[at + 1 :]]) for line, row in rows
    )


def _json_rows(source: Source, key: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    expected = f'an object with an id, such as {{"{key}": 1, "title": "…"}}'
    first = next((value for _, value in json_lines(source, expected)), {})
    header = [name for name, value in first.items() if name != key and isinstance(value, (str, int, float))]

    def rows() -> Iterator[tuple[int, list[str]]]:
        for place, value in json_lines(source, expected):
            cells = [value.get(name) for name in header]
            # Escaped, since JSON can write any character.
            texts = [str(escape(str(c), 1000)) if isinstance(c, (str, int, float)) else "" for c in cells]
            yield place.line, [id_of(value, key, place, expected), *texts]

    return header, rows()

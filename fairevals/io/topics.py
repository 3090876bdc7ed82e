"""The list of a task's topics: ids, one per line; a table with further columns; or JSON lines as at TREC Fair."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fairevals.errors import InputError, Place, escape
from fairevals.io.jsonl import has_key, id_of, json_lines
from fairevals.io.lines import data_lines
from fairevals.io.streams import Source
from fairevals.io.tables import check_id, table, text_lines

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

    JSON lines with an `id`, as TREC's Fair Ranking track publishes topics, are read too; of these only the
    ids are kept. An error with file and line: a topic that is listed twice, an id with a space, or no topic.
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
    if has_key(source, "id"):
        return [], _json_rows(source)
    _, first = next(data_lines(source), (0, b""))
    names = [name.strip().strip('"') for name in first.decode(errors="replace").replace("\t", ",").split(",")]
    key = next((column for column in ID_COLUMNS if column in names), ID_COLUMNS[0])
    if len(names) == 1 and key not in names:
        lines = text_lines(source, "a list of topics")
        return [], ((number, [line.strip()]) for number, line in lines if not line.lstrip().startswith("#"))
    _, header, rows = table(source, (key,))
    at = header.index(key)
    return header[:at] + header[at + 1 :], (
        (line, [row[at], *row[:at], *row[at + 1 :]]) for line, row in rows
    )


def _json_rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    expected = 'an object with an id, such as {"id": 1, "title": "…"}'
    for place, value in json_lines(source, expected):
        yield place.line, [id_of(value, "id", place, expected)]

"""The table of entity annotations: who named which entity on which page, and what they found out about it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from fairevals.errors import InputError, Place, escape
from fairevals.io.streams import Source
from fairevals.io.tables import table

COLUMNS = ("topic", "doc", "entity", "annotator")


@dataclass(frozen=True)
class Annotation:
    """One line: an annotator named an entity on a page; or, with an empty entity, a page was looked at."""

    line: int
    topic: str
    doc: str
    entity: str
    annotator: str
    values: Mapping[str, str]
    """The raw value for each of the other columns."""


@dataclass(frozen=True)
class Annotations:
    """A whole table of them, in the order of its lines."""

    name: str
    columns: tuple[str, ...]
    """The columns beside topic, doc, entity and annotator."""
    lines: tuple[Annotation, ...]
    header: int = 1
    """The line of the header."""

    def place(self, line: int = 0) -> Place:
        """A line of the file, for a message; its header if none is given."""
        return Place(self.name, line or self.header)


def read_annotations(path: str | os.PathLike[str] | Source) -> Annotations:
    """Read a csv or tsv table with columns `topic, doc, entity, annotator` and any others.

    An error with file and line: a missing column, an empty topic or doc or one with white space in it (qrels
    could not hold it), an entity without annotator, the same line twice, and an annotator who names an
    entity on a page and says on another line that there is none.
    """
    source = path if isinstance(path, Source) else Source.of(path)
    header_line, header, rows = table(source, COLUMNS)
    others = tuple(column for column in header if column not in COLUMNS)
    at = {column: number for number, column in enumerate(header)}
    lines: list[Annotation] = []
    seen: dict[tuple[str, str, str, str], int] = {}
    for number, cells in rows:
        topic, doc, entity, annotator = (cells[at[column]] for column in COLUMNS)
        place = Place(source.name, number)
        for column, name in (("topic", topic), ("doc", doc)):
            if len(name.split()) != 1:
                wrong = f"{column} {escape(name)!r}" if name else f"an empty {column}"
                raise InputError(place, wrong, "a name without white space")
        if entity and not annotator:
            raise InputError(place, f"entity {escape(entity)!r} without annotator", "who named it")
        before = seen.setdefault((topic, doc, entity, annotator), number)
        if before != number:
            raise InputError(
                place,
                f"the same topic, doc, entity and annotator as line {before}",
                "one line for each entity that an annotator named on a page",
            )
        lines.append(Annotation(number, topic, doc, entity, annotator, {c: cells[at[c]] for c in others}))
    if not lines:
        raise InputError(Place(source.name), "no annotation", "one or more lines below the header")
    for one in lines:
        nothing = seen.get((one.topic, one.doc, "", one.annotator)) if one.entity else None
        if nothing:
            raise InputError(
                Place(source.name, max(one.line, nothing)),
                f"annotator {escape(one.annotator)!r} names {escape(one.entity)!r} on a page where line "
                f"{min(one.line, nothing)} of the same annotator says otherwise",
                "an empty entity only where there is none",
            )
    return Annotations(source.name, others, tuple(lines), header_line)

"""The table of entity annotations: which annotator named which entity on which page."""

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from fairevals.errors import InputError, Place, escape
from fairevals.io.streams import Source
from fairevals.io.tables import table

ANNOTATION_COLUMNS = ("topic", "doc", "entity", "annotator")


@dataclass(frozen=True)
class Annotation:
    """One line: an annotator named an entity on a page, or, with an empty entity, found none there."""

    line: int
    topic: str
    doc: str
    entity: str
    """The name in its first spelling in the table."""
    annotator: str
    values: Mapping[str, str]
    """The raw value of every other column: attributes, and whatever else the table has, such as URLs."""


@dataclass(frozen=True)
class Annotations:
    """All lines of a table, in the order of the file."""

    name: str
    columns: tuple[str, ...]
    """The columns besides topic, doc, entity and annotator."""
    lines: tuple[Annotation, ...]
    header: int = 1
    """The line number of the header."""


def entity_key(name: str) -> str:
    """The form in which entity names are compared: Unicode NFKC, case folded, white space collapsed.

    >>> entity_key("Ada  LOVELACE") == entity_key("Ａｄａ lovelace")
    True
    """
    # Case folding can undo the normalisation of some letters, so normalise again.
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def read_annotations(path: str | os.PathLike[str] | Source) -> Annotations:
    """Read a csv or tsv table with the columns `topic, doc, entity, annotator` and any others.

    Each of these is an error with file and line: a missing column; a topic or doc that is empty or contains
    white space (qrels cannot hold it); an entity without annotator; two lines of one annotator for the same
    entity of a page; and an annotator who both names an entity on a page and states that there is none.
    """
    source = path if isinstance(path, Source) else Source.of(path)
    header_line, header, rows = table(source, ANNOTATION_COLUMNS)
    others = tuple(column for column in header if column not in ANNOTATION_COLUMNS)
    lines: list[Annotation] = []
    spelling: dict[str, str] = {}
    named: dict[tuple[str, str, str], dict[str, int]] = {}
    for number, row in rows:
        place, cells = Place(source.name, number), dict(zip(header, row, strict=True))
        topic, doc, entity, annotator = (cells.pop(column) for column in ANNOTATION_COLUMNS)
        for column, name in (("topic", topic), ("doc", doc)):
            if len(name.split()) != 1:
                problem = f"{column} {escape(name)!r}" if name else f"an empty {column}"
                raise InputError(place, problem, "a name without white space")
        if entity and not annotator:
            raise InputError(place, f"entity {escape(entity)!r} without annotator", "who named it")
        entity = spelling.setdefault(entity_key(entity), entity)
        earlier = named.setdefault((topic, doc, annotator), {})  # entity: line
        if entity in earlier:
            problem = f"the same topic, doc, entity and annotator as line {earlier[entity]}"
            expected = "one line for each entity that an annotator named on a page (in upper or lower case)"
            raise InputError(place, problem, expected)
        if earlier and ("" in earlier or not entity):
            other, line = next(iter(earlier.items()))
            named_here = f"annotator {escape(annotator)!r} names {escape(entity or other)!r} on this page"
            problem = f"{named_here}, but no entity on another line ({line} and {number})"
            raise InputError(place, problem, "an empty entity only where the annotator found none")
        earlier[entity] = number
        lines.append(Annotation(number, topic, doc, entity, annotator, cells))
    if not lines:
        raise InputError(Place(source.name), "no annotation", "one or more lines below the header")
    return Annotations(source.name, others, tuple(lines), header_line)

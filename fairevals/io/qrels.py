"""Qrels files as columns: TREC `topic iteration doc grade`, or NTCIR `topic doc L2`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from fairevals.errors import InputError, Place, escape
from fairevals.ids import Ids, Index, numbered
from fairevals.io.decimals import NUMBER, parse_decimals
from fairevals.io.streams import Source
from fairevals.io.tables import identifiers
from fairevals.io.tokens import Irregular, tokenise
from fairevals.typing import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

TREC = "4 columns (topic iteration doc grade)"
NTCIR = "3 columns (topic doc L0…)"


@dataclass(frozen=True)
class QrelsColumns:
    """Judgements: a row a judged document of a topic."""

    name: str
    topics: list[str]
    topic_of: Ints
    docs: Ids
    grades: Floats


def read_columns(source: Source) -> QrelsColumns:
    """Read a qrels file; which of the two forms it has is found from its first line.

    A document judged twice in a topic is an error where the grades differ.
    """
    head = source.head()
    columns = 3 if head and len(head[0].split()) == 3 else 4
    doc, grade = (1, 2) if columns == 3 else (2, 3)
    topics: dict[str, int] = {}
    parts: list[tuple[Ints, Ids, Floats]] = []
    try:
        for chunk in source.chunks():
            tokens = tokenise(chunk, columns)
            codes = numbered(tokens.column(0), topics)
            begin = tokens.start[:, grade]
            begin = begin + np.isin(tokens.buffer[begin], (ord("L"), ord("l")))
            grades, bad = parse_decimals(tokens.buffer, begin, tokens.end[:, grade])
            if bad.size:
                raise Irregular
            parts.append((codes, tokens.column(doc).compact(), grades))
    except Irregular:
        _explain(source, columns)
    if not any(part[0].size for part in parts):
        raise InputError(Place(source.name), "no line", TREC + " or " + NTCIR)
    codes = np.concatenate([part[0] for part in parts])
    columns_ = QrelsColumns(
        source.name,
        list(topics),
        codes,
        Ids.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )
    try:
        return unique(columns_)
    except InputError as error:  # rows are counted without blank lines, people count with them
        lines = (number for number, line in source.lines() if line.split())
        place = Place(source.name, next(islice(lines, error.place.line - 1, None)))
        raise InputError(place, error.found, error.expected) from None


def unique(columns: QrelsColumns) -> QrelsColumns:
    """The same without repeated judgements; an error where two judgements of a document differ."""
    index = Index(columns.topic_of, columns.docs)
    again = index.duplicates()
    if again.size == 0:
        return columns
    drop = np.zeros(len(columns.docs), dtype=bool)
    drop[again] = True
    kept = np.flatnonzero(~drop)
    kept_docs, kept_topics, kept_grades = (
        columns.docs.take(kept),
        columns.topic_of[kept],
        columns.grades[kept],
    )
    first = Index(kept_topics, kept_docs).find(columns.topic_of[again], columns.docs.take(again))
    differs = np.flatnonzero(kept_grades[first] != columns.grades[again])
    if differs.size:
        row = int(again[differs[0]])
        topic, text = columns.topics[columns.topic_of[row]], columns.docs.text(row)
        grades = f"{kept_grades[first[differs[0]]]:g} and {columns.grades[row]:g}"
        raise InputError(
            Place(columns.name, row + 1),
            f"document {escape(text)!r} of topic {escape(topic)!r} judged twice, {grades}",
            "one grade",
        )
    return QrelsColumns(columns.name, columns.topics, kept_topics, kept_docs, kept_grades)


def _explain(source: Source, columns: int) -> None:
    """Find the line that cannot be read, and say why."""
    expected = NTCIR if columns == 3 else TREC
    for number, line in source.lines():
        place = Place(source.name, number)
        parts = line.split()
        if not parts:
            continue
        try:
            line.decode()
        except UnicodeDecodeError:
            raise InputError(place, "bytes that are not UTF-8", "UTF-8") from None
        if any(c < 32 and c not in (9, 13) for c in line):
            raise InputError(place, f"a control character in {escape(line)!r}", "text")
        if len(parts) != columns:
            raise InputError(place, f"{len(parts)} columns: {escape(line)!r}", expected)
        number_text = parts[-1][1:] if parts[-1][:1] in (b"L", b"l") else parts[-1]
        if not NUMBER.fullmatch(number_text) or not np.isfinite(float(number_text)):
            raise InputError(place, f"grade {escape(parts[-1])!r}", "a number, or L and a number")
    raise InputError(Place(source.name), "a line that cannot be read", expected)


def columns_of_frame(frame: pd.DataFrame, name: str) -> QrelsColumns:
    """Qrels from a table with columns topic, doc, grade."""
    for needed in ("topic", "doc", "grade"):
        if needed not in frame.columns:
            raise InputError(
                Place(name), f"columns {escape(', '.join(map(str, frame.columns)), 200)}", "topic, doc, grade"
            )
    import pandas as pd

    grades = pd.to_numeric(frame["grade"], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    bad = np.flatnonzero(~np.isfinite(grades))
    if bad.size:
        wrong = escape(repr(frame["grade"].iloc[int(bad[0])]))
        raise InputError(Place(name, int(bad[0]) + 1), f"grade {wrong}", "a number")
    lines = range(1, len(frame) + 1)
    codes, topics = pd.factorize(np.array(identifiers(frame, "topic", name, lines).texts(), dtype=object))
    docs = identifiers(frame, "doc", name, lines)
    return unique(QrelsColumns(name, [str(t) for t in topics], codes.astype(np.int64), docs, grades))

"""Qrels files as columns: TREC `topic iteration doc grade`, NTCIR `topic doc L2`, or TREC Fair's JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.errors import InputError, Place, escape, type_of
from fairevals.ids import Ids, Index, keys, numbered
from fairevals.io.jsonl import has_key, id_of, json_lines, list_of
from fairevals.io.lines import Column, LineFormat, data_lines, joined
from fairevals.io.specs import LARGEST
from fairevals.io.streams import Source
from fairevals.io.tables import cell_text, check_columns, check_id, id_text, identifiers
from fairevals.typing import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

_GRADE = Column("grade", "grade", largest=LARGEST)
TREC_QRELS = LineFormat("qrels", (*map(Column, ("topic", "iteration", "doc")), _GRADE))
NTCIR_QRELS = LineFormat("qrels", (*map(Column, ("topic", "doc")), _GRADE))


_JSON_QRELS = '{"id": 1, "rel_docs": ["doc", …]}'
_JSON_QUERIES = '{"qid": 1, "documents": [{"doc_id": "doc", "relevance": 1}, …]}'


@dataclass(frozen=True)
class QrelsColumns:
    """Judgements: one row per judged document of a topic."""

    name: str
    topics: list[str]
    topic_of: Ints
    docs: Ids
    grades: Floats


def read_qrels_columns(*sources: Source) -> QrelsColumns:
    """Read one or several qrels files and join them. The first line of a file decides on its format.

    In the JSON lines of TREC Fair 2021 and 2022, all of the `rel_docs` of an `id` have the grade 1; in those of 2019
    and 2020, each of the `documents` of a `qid` has its `relevance`.

    A document that is judged twice in a topic is an error if the grades differ.
    """
    topics: dict[str, int] = {}
    parts: list[tuple[Ints, Ids, Floats]] = []
    files: list[tuple[int, Source, LineFormat | None]] = []
    """The number of rows before each file, the file, and its format if it has columns."""
    rows = 0
    for source in sources:
        if has_key(source, "rel_docs") or has_key(source, "documents"):
            files.append((rows, source, None))
            for _, topic, docs, grades in _json_topics(source):
                code = topics.setdefault(topic, len(topics))
                parts.append((np.full(len(docs), code), Ids.of(docs), np.array(grades, dtype=np.float64)))
                rows += len(docs)
            continue
        _, first = next(data_lines(source), (0, b""))
        line_format = NTCIR_QRELS if len(first.split()) == 3 else TREC_QRELS
        files.append((rows, source, line_format))
        doc = len(line_format.columns) - 2
        for tokens in line_format.read(source):
            codes = numbered(tokens.column(0), topics)
            parts.append((codes, tokens.column(doc).compact(), tokens.numbers[0]))
            rows += len(tokens)
        if rows == files[-1][0]:
            expected = f"{TREC_QRELS.expected} or {NTCIR_QRELS.expected}"
            raise InputError(Place(source.name), "no line", expected)

    def place_of(row: int) -> Place:
        before, source, line_format = [file for file in files if file[0] <= row][-1]
        if line_format is not None:
            return line_format.place_of(source, row - before)
        places = (place for place, _, docs, _ in _json_topics(source) for _ in docs)
        return next(islice(places, row - before, None))

    if not rows:
        raise InputError(Place(sources[0].name), "no relevant document", _JSON_QRELS)
    name = ", ".join(source.name for source in sources)
    return _unique(QrelsColumns(name, list(topics), *joined(parts)), place_of)


def _json_topics(source: Source) -> Iterator[tuple[Place, str, list[str], list[float]]]:
    """The topics of TREC Fair with their documents and grades."""
    listed = has_key(source, "rel_docs")
    expected = _JSON_QRELS if listed else _JSON_QUERIES
    for place, value in json_lines(source, expected):
        topic = id_of(value, "id" if listed else "qid", place, expected)
        docs = list_of(value, "rel_docs" if listed else "documents", place, expected)
        if listed:
            ids = [check_id(id_text(doc, "doc", place), "doc", place) for doc in docs]
            yield place, topic, ids, [1.0] * len(ids)
        else:
            pairs = [_judged(doc, place) for doc in docs]
            yield place, topic, [doc for doc, _ in pairs], [grade for _, grade in pairs]


def _judged(document: Any, place: Place) -> tuple[str, float]:
    """The id and the relevance of one of the documents of TREC Fair 2019 and 2020."""
    if not isinstance(document, dict):
        raise InputError(place, f"a document that is {type_of(document)}", _JSON_QUERIES)
    doc, grade = id_of(document, "doc_id", place, _JSON_QUERIES), document.get("relevance")
    if isinstance(grade, bool) or not isinstance(grade, (int, float)) or not abs(grade) <= LARGEST:
        found = f"relevance = {escape(repr(grade))}" if "relevance" in document else "no relevance"
        raise InputError(place, f"{found} of the document {escape(doc)!r}", "a number")
    return doc, float(grade)


def _unique(columns: QrelsColumns, place_of: Callable[[int], Place]) -> QrelsColumns:
    """The same without repeated judgements; an error at both places if two judgements of a document differ."""
    topic_of, docs, grades = columns.topic_of, columns.docs, columns.grades
    hashes = np.sort(keys(docs, topic_of))
    if not np.any(hashes[1:] == hashes[:-1]):  # as in most files; much faster than to find each
        return columns
    first = Index(topic_of, docs).find(topic_of, docs)
    for row in np.flatnonzero(grades[first] != grades)[:1].tolist():
        topic, doc = escape(columns.topics[topic_of[row]]), escape(docs.text(row))
        earlier = f"{grades[first[row]]:g} in {place_of(int(first[row]))}"
        found = f"document {doc!r} of topic {topic!r} judged twice, {earlier} and {grades[row]:g} here"
        raise InputError(place_of(row), found, "one grade")
    kept = np.flatnonzero(first == np.arange(len(docs)))
    return replace(columns, topic_of=topic_of[kept], docs=docs.take(kept), grades=grades[kept])


def qrels_from_frame(frame: pd.DataFrame, name: str) -> QrelsColumns:
    """Qrels from a table with columns topic, doc, grade."""
    import pandas as pd

    check_columns(frame, name, ("topic", "doc", "grade"), "topic, doc, grade")
    grades = pd.to_numeric(frame["grade"], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    for row in np.flatnonzero(~(np.abs(grades) <= LARGEST))[:1].tolist():
        wrong, large = cell_text(frame["grade"].iloc[row]), np.isfinite(grades[row])
        expected = f"a number of at most {LARGEST:g}" if large else "a number"
        raise InputError(Place(name, row + 1), f"grade {wrong}", expected)
    lines = range(1, len(frame) + 1)
    topics: dict[str, int] = {}
    codes = numbered(identifiers(frame, "topic", name, lines), topics)
    columns = QrelsColumns(name, list(topics), codes, identifiers(frame, "doc", name, lines), grades)
    return _unique(columns, lambda row: Place(name, row + 1))

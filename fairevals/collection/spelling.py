"""Ids of a run that would be those of the qrels if Unicode were normalised: usually two programs wrote one name.

An accented letter is one character (NFC) or a letter and a combining accent (NFD). Both look the same, but ids are
compared as bytes. Nothing is normalised here, since that would make two ids of a collection one; the user is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from unicodedata import is_normalized, normalize

import numpy as np

from fairevals.collection.qrels import Qrels
from fairevals.collection.run import Run
from fairevals.errors import escape, pluralize
from fairevals.ids import Ids
from fairevals.typing import Ints

_ROWS = 1 << 16
"""How many ids become text at a time."""


@dataclass(frozen=True)
class Variants:
    """How many ids differ from judged ones by normalisation only, and the first: (topic, the run's id, the judged)."""

    count: int = 0
    example: tuple[str, str, str] = ("", "", "")

    def __str__(self) -> str:
        """Such as: `'cafe\\u0301' for 'caf\\xe9'`, so that the difference can be seen."""
        _, ours, judged = self.example
        return f"{escape(ascii(ours))} for {escape(ascii(judged))}"

    def remark(self, noun: str) -> str:
        """What to tell about them; the noun is what they are ids of."""
        many = f"{pluralize(self.count, noun)} without judgements"
        return f"{many} would have them if Unicode were normalised (NFC), such as {self}"


def topic_variants(topics: Iterable[str], qrels: Qrels) -> Variants:
    """Of topics that are not judged, those that are after normalisation."""
    odd = sorted(topic for topic in topics if not topic.isascii() and topic not in qrels.number)
    if not odd:
        return Variants()
    judged = {normalize("NFC", topic): topic for topic in reversed(qrels.topics)}
    same = [(topic, judged[name]) for topic in odd if (name := normalize("NFC", topic)) in judged]
    return Variants(len(same), (same[0][0], *same[0])) if same else Variants()


def document_variants(run: Run, qrels: Qrels) -> Variants:
    """Of documents that are not judged in their topic, those that are after normalisation."""
    if not np.any(run.docs.buffer >= 128):
        return Variants()
    number = np.array([qrels.number.get(topic, -1) for topic, _ in run.lists], dtype=np.int64)
    topic = np.repeat(number, np.diff(run.offsets))
    rows = _not_ascii(run.docs)
    rows = rows[topic[rows] >= 0]
    rows = rows[qrels.index.find(topic[rows], run.docs.take(rows)) < 0]
    if not rows.size:
        return Variants()
    judged = {(int(qrels.topic_of[row]), name): row for row, name in _denormalised(qrels.docs)}
    found: dict[tuple[int, str], str] = {}
    """The judged document for each (topic, the run's document); several samples count once."""
    for some in np.array_split(rows, -(-rows.size // _ROWS)):
        texts = run.docs.take(some).compact().texts()
        if not judged and is_normalized("NFC", "\0".join(texts)):  # much faster than one by one
            continue
        codes, names = topic[some], [normalize("NFC", text) for text in texts]
        index = qrels.index.find(codes, Ids.of(names)).tolist()
        for code, text, name, row in zip(codes.tolist(), texts, names, index, strict=True):
            row = judged.get((code, name), -1) if row < 0 else row
            if row >= 0:
                found[code, text] = qrels.docs.text(row)
    if not found:
        return Variants()
    first = min(found)
    return Variants(len(found), (qrels.topics[first[0]], first[1], found[first]))


def variant_remarks(run: Run, qrels: Qrels) -> Iterator[str]:
    """What to tell about the topics and documents of a run."""
    for noun, variants in (
        ("topic", topic_variants(run.topics, qrels)),
        ("document", document_variants(run, qrels)),
    ):
        if variants.count:
            yield variants.remark(noun)


def _denormalised(docs: Ids) -> Iterator[tuple[int, str]]:
    """The row and the normalised text of each id that is not normalised."""
    for row in _not_ascii(docs).tolist():
        text = docs.text(row)
        name = normalize("NFC", text)
        if name != text:
            yield row, name


def _not_ascii(ids: Ids) -> Ints:
    """The rows of ids with a character beyond ASCII."""
    high = np.flatnonzero(ids.buffer >= 128)
    return np.flatnonzero(np.searchsorted(high, ids.start) < np.searchsorted(high, ids.start + ids.length))

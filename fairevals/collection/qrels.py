"""Judgements, indexed once and asked for many runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairevals.errors import UsageError
from fairevals.ids import Ids, Index
from fairevals.io.qrels import QrelsColumns, read_qrels_columns
from fairevals.io.streams import Source
from fairevals.typing import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd


def in_order(topics: Iterable[str]) -> list[str]:
    """Topics as people count them: numbers inside names by value.

    >>> in_order(["R10", "R9", "M2"])
    ['M2', 'R9', 'R10']
    """
    split = re.compile(r"[0-9]+|[^0-9]+").findall

    def key(topic: str) -> tuple[list[tuple[int, int, str]], str]:
        parts = split(topic)
        return [
            (0, int(p), "") if p[0] in "0123456789" and len(p) < 1000 else (1, 0, p) for p in parts
        ], topic

    return sorted(topics, key=key)


@dataclass(frozen=True, eq=False)
class Qrels:
    """The grades of a task's judged documents; rows are sorted by topic."""

    source: str
    topics: tuple[str, ...]
    topic_of: Ints
    docs: Ids
    grades: Floats

    @classmethod
    def from_file(cls, *paths: str | os.PathLike[str]) -> Qrels:
        """Read one or several qrels files, TREC's or NTCIR's form, compressed or not, and join them.

        A line that cannot be read, or a document judged twice with different grades, raises `InputError` with file
        and line.
        """
        if not paths:
            raise UsageError("there is no qrels file to read; expected at least one path")
        return cls.of(read_qrels_columns(*map(Source.of, paths)))

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Qrels:
        """Qrels from a table with columns topic, doc, grade, or as ir-measures and PyTerrier call them.

        >>> import pandas as pd
        >>> Qrels.from_frame(pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "label": [1, 0]}))
        <Qrels 'qrels': 1 topics, 2 judgements>
        """
        from fairevals.collection.inputs import load_qrels

        return load_qrels(frame)

    @classmethod
    def from_dict(cls, grades: Mapping[str, Mapping[str, float]]) -> Qrels:
        """Qrels from {topic: {doc: grade}}.

        >>> Qrels.from_dict({"q": {"a": 2, "b": 0}}).max_grade
        2.0
        """
        return cls.from_frame(grades)  # type: ignore[arg-type] # it takes either

    @classmethod
    def of(cls, columns: QrelsColumns) -> Qrels:
        """Sort the rows, whatever order the file had."""
        topics = in_order(columns.topics)
        number = {topic: i for i, topic in enumerate(topics)}
        codes = np.array([number[topic] for topic in columns.topics], dtype=np.int64)[columns.topic_of]
        # Any fixed order of documents does: sums over them must not depend on the order of lines.
        rows = np.lexsort((columns.docs.hashes(), codes))
        return cls(columns.name, tuple(topics), codes[rows], columns.docs.take(rows), columns.grades[rows])

    @cached_property
    def index(self) -> Index:
        """Rows by (topic number, document)."""
        return Index(self.topic_of, self.docs)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each topic."""
        return {topic: i for i, topic in enumerate(self.topics)}

    def numbers(self, topics: Iterable[str]) -> Ints:
        """The numbers, ascending, of those of the topics that are judged."""
        return np.array(sorted(self.number[topic] for topic in topics if topic in self.number), np.int64)

    @cached_property
    def offsets(self) -> Ints:
        """Where the rows of each topic start."""
        return np.searchsorted(self.topic_of, np.arange(len(self.topics) + 1))

    @cached_property
    def _descending(self) -> Floats:
        """The grades, highest first within each topic, negative ones as 0."""
        order = np.lexsort((-self.grades, self.topic_of))
        return np.maximum(self.grades[order], 0.0)

    @cached_property
    def max_grade(self) -> float:
        """The largest grade; 1 where nothing is relevant, so that there is a scale."""
        largest = float(self.grades.max(initial=0.0))
        return largest if largest > 0 else 1.0

    def ideal(self, first: int, last: int) -> Floats:
        """The grades of the ideal order of topics `first` to `last`−1: (topics, ranks), padded with 0.

        All of them, whatever the cutoff of a measure: AP@10 divides by all relevant documents.
        """
        starts, ends = self.offsets[first:last], self.offsets[first + 1 : last + 1]
        width = int((ends - starts).max(initial=0))
        at = starts[:, None] + np.arange(width)
        inside = at < ends[:, None]
        return np.where(inside, self._descending[np.minimum(at, max(len(self.docs) - 1, 0))], 0.0)

    def __len__(self) -> int:
        return len(self.docs)

    def __repr__(self) -> str:
        return f"<Qrels {self.source!r}: {len(self.topics)} topics, {len(self)} judgements>"

    def to_frame(self) -> pd.DataFrame:
        """A table with columns topic, doc, grade."""
        import pandas as pd

        topics = np.array(self.topics, dtype=object)[self.topic_of]
        return pd.DataFrame({"topic": topics, "doc": self.docs.texts(), "grade": self.grades})


read_qrels = Qrels.from_file
"""The same as `Qrels.from_file`."""

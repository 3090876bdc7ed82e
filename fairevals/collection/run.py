"""A run: rankings of documents, as columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.ids import Ids
from fairevals.io.archives import files_in, is_zip
from fairevals.io.dataset import is_dataset, read_dataset
from fairevals.io.runs import BY_SCORE, RunColumns, RunOptions, read_run_columns, score_order
from fairevals.io.streams import Source, written
from fairevals.typing import Floats, Ints

if TYPE_CHECKING:
    import pandas as pd


def ranking_order(lists: Ints, docs: Ids, scores: Floats) -> Ints:
    """Rows by list, then score descending, then document id descending, as trec_eval ranks.

    Scores are compared as float64, ids as bytes. Ids are looked at only where scores tie.

    >>> ranking_order(np.array([0, 0, 0]), Ids.of(["b", "c", "a"]), np.array([1.0, 1.0, 2.0]))
    array([2, 1, 0])
    """
    order = score_order(lists, scores)
    order = np.arange(lists.size) if order is None else order
    lists, scores = lists[order], scores[order]
    tie = (scores[1:] == scores[:-1]) & (lists[1:] == lists[:-1])
    if tie.any():
        tied = np.flatnonzero(np.append(tie, False) | np.append(False, tie))
        names = docs.take(order[tied]).ranks()
        order[tied] = order[tied][np.lexsort((-names, -scores[tied], lists[tied]))]
    return order


@dataclass(frozen=True, eq=False)
class Run:
    """Rankings, one per topic, or several (samples). Rows are sorted by list and rank.

    A *list* is one ranking; list i has rows `offsets[i]` to `offsets[i+1]`.
    """

    tag: str
    source: str
    lists: list[tuple[str, str]]
    """(topic, sample) of each list; the sample is "" where a topic has one ranking."""
    offsets: Ints
    docs: Ids
    scores: Floats
    lines: int
    order: str = "score"
    """What ranks its documents: "score", or the order of lines ("file")."""

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        order: str = "score",
        samples: bool = False,
        depth: int | None = None,
    ) -> Run:
        """Read a run: a file of any of the known forms, a folder of parquet files, or `-` for standard input.

        `order="file"` ranks by the order of lines (NTCIR); `samples=True` reads the second column as a sample id;
        `depth` keeps only so many documents per ranking (and those that tie with the last).

        A document twice in a topic, a score that is not a finite number, a wrong number of columns or a byte that is
        not UTF-8 raises `InputError` with file and line.
        """
        return cls.open(path, RunOptions(order, samples, depth))

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, tag: str = "run", *, order: str = "score") -> Run:
        """A run from a table with columns topic, doc, score[, sample], or as ir-measures and PyTerrier call them.

        >>> import pandas as pd
        >>> Run.from_frame(pd.DataFrame({"qid": ["q", "q"], "docno": ["a", "b"], "score": [1.0, 2.0]}), "mine")
        <Run 'mine': 1 topics, 2 documents>
        """
        return cls._from(frame, tag, order)

    @classmethod
    def from_dict(cls, scores: Mapping[str, Mapping[str, float]], tag: str = "run") -> Run:
        """A run from {topic: {doc: score}}.

        >>> Run.from_dict({"q": {"a": 1.0, "b": 2.0}}).to_frame().doc.tolist()
        ['b', 'a']
        """
        return cls._from(scores, tag, "score")

    @classmethod
    def _from(cls, source: Any, tag: str, order: str) -> Run:
        from fairevals.collection.inputs import frame_of, load_run, named_run

        frame = frame_of(source, "score", "a run", "score")
        return load_run(named_run(tag, frame), RunOptions(order, "sample" in frame.columns))

    @classmethod
    def of(cls, columns: RunColumns) -> Run:
        """Rank what was read: by score, or as the lines stand."""
        if columns.order == "score":
            rows = ranking_order(columns.list_of, columns.docs, columns.scores)
        else:
            rows = np.argsort(columns.list_of, kind="stable")
        counts = np.bincount(columns.list_of, minlength=len(columns.lists))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        docs, scores = columns.docs.take(rows), columns.scores[rows]
        return cls(
            columns.tag, columns.name, columns.lists, offsets, docs, scores, columns.lines, columns.order
        )

    @classmethod
    def open(cls, what: str | os.PathLike[str] | Source, options: RunOptions = BY_SCORE) -> Run:
        """Read a run from a file of any format, a folder of parquet files, or `-` for standard input.

        An archive must have one run.
        """
        if isinstance(what, (str, os.PathLike)) and is_zip(what):
            files = files_in(what)
            if len(files) > 1:
                raise InputError(Place(os.fspath(what)), f"an archive of {len(files)} files", "one run")
            what = files[0]
        if isinstance(what, Source):
            return cls.of(read_run_columns(what, options))
        return cls.of(read_dataset(what, options)) if is_dataset(what) else cls.open(Source.of(what), options)

    def as_float32(self) -> Run:
        """The same run ranked by scores rounded to float32, as trec_eval holds them: more of them tie."""
        if self.order != "score":
            return self
        limit = float(np.finfo(np.float32).max)
        scores = np.clip(self.scores, -limit, limit).astype(np.float32).astype(np.float64)
        lists = np.repeat(np.arange(len(self.lists)), np.diff(self.offsets))
        rows = ranking_order(lists, self.docs, scores)
        return replace(self, docs=self.docs.take(rows), scores=scores[rows])

    @cached_property
    def topics(self) -> list[str]:
        """The topics it has, each once, in the order of its file."""
        return list(dict.fromkeys(topic for topic, _ in self.lists))

    def parts(self, count: int) -> list[Run]:
        """The run cut into so many parts of similar size, or fewer, that share no topic."""
        code = {topic: number for number, topic in enumerate(self.topics)}
        lengths = np.diff(self.offsets)
        topic_of = np.array([code[topic] for topic, _ in self.lists], np.int64)
        before = np.cumsum(np.bincount(topic_of, lengths)) - 1
        part_of = (before * count // max(1, len(self))).astype(np.int64)[topic_of]
        cut = []
        for part in np.unique(part_of).tolist():
            here = np.flatnonzero(part_of == part)
            rows = np.flatnonzero(np.repeat(part_of == part, lengths))
            cut.append(
                replace(
                    self,
                    lists=[self.lists[number] for number in here.tolist()],
                    offsets=np.concatenate([[0], np.cumsum(lengths[here])]).astype(np.int64),
                    docs=self.docs.take(rows).compact(),
                    scores=self.scores[rows],
                )
            )
        return cut

    def __len__(self) -> int:
        return len(self.docs)

    def __repr__(self) -> str:
        return f"<Run {self.tag!r}: {len(self.topics)} topics, {len(self)} documents>"

    def to_file(self, path: str | os.PathLike[str]) -> None:
        """Write a run file in TREC's format, completely or not at all."""
        with written(Path(path)) as file:
            file.writelines(run_lines(self))

    def to_frame(self) -> pd.DataFrame:
        """A table with columns topic, [sample,] doc, rank, score, best first."""
        import pandas as pd

        counts = np.diff(self.offsets)
        names = {
            "topic": np.repeat(np.array([topic for topic, _ in self.lists], dtype=object), counts),
            "sample": np.repeat(np.array([sample for _, sample in self.lists], dtype=object), counts),
            "doc": self.docs.texts(),
            "rank": np.arange(len(self)) - np.repeat(self.offsets[:-1], counts) + 1,
            "score": self.scores,
        }
        if not any(sample for _, sample in self.lists):
            del names["sample"]
        return pd.DataFrame(names)


def run_lines(run: Run) -> Iterator[str]:
    """The lines of a run file in TREC's format; the second column is the sample.

    >>> list(run_lines(Run.from_dict({"q": {"a": 1.5, "b": 2.0}}, "mine")))
    ['q Q0 b 1 2.0 mine\\n', 'q Q0 a 2 1.5 mine\\n']
    """
    rows = zip(run.docs.texts(), run.scores.tolist(), strict=True)
    for (topic, sample), length in zip(run.lists, np.diff(run.offsets).tolist(), strict=True):
        for rank, (doc, value) in enumerate(islice(rows, length), 1):
            line = f"{topic} {sample or 'Q0'} {doc} {rank} {int(value) if sample else value!r} {run.tag}\n"
            if len(line.split()) != 6:
                found = f"white space in an id or the tag of {escape(line[:-1], 200)!r}"
                raise UsageError(
                    f"{found}; expected ids and a tag without it, as a run file separates columns by it"
                )
            yield line


read_run = Run.from_file
"""The same as `Run.from_file`."""

"""Run files as columns: TREC and NTCIR lines, sampled rankings, TREC Fair's columns and JSON, csv and parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairevals.errors import InputError, Place, check_known, escape
from fairevals.ids import Ids, keys, numbered
from fairevals.io.archives import file_name
from fairevals.io.check import FAIR_RUNS, Rules, raise_first, run_format
from fairevals.io.decimals import parse_decimals
from fairevals.io.jsonl import has_key, id_of, json_lines, list_of
from fairevals.io.lines import joined
from fairevals.io.specs import ORDERS, check_whole
from fairevals.io.streams import Source
from fairevals.io.tables import (
    cell_text,
    check_columns,
    check_id,
    has_header,
    id_text,
    identifiers,
    read_frame,
    texts,
)
from fairevals.typing import Floats, Ints, Words

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunOptions:
    """How a run is read."""

    order: str = "score"
    """What ranks its documents: "score", or the order of lines ("file")."""
    samples: bool = False
    """Whether a topic may have several rankings: the second column, or the column `sample`, tells them apart."""
    depth: int | None = None
    """Keep only the first so many documents of each list (and those that tie with the last), which is all that measures
    with a cutoff need. Every line is read and checked all the same."""
    trailing: bool = False
    """Whether text after the tag of a TREC run is ignored, as trec_eval does; it is an error otherwise."""

    def __post_init__(self) -> None:
        check_known("order", self.order, ORDERS)
        if self.depth is not None:
            check_whole("depth", self.depth)


BY_SCORE = RunOptions()


@dataclass(frozen=True)
class RunColumns:
    """A run as it was read: one row per line, or only the best rows of each ranking (see `depth`).

    A *list* is one ranking: that of a topic, or of a topic and a sample.
    """

    name: str
    tag: str
    lists: list[tuple[str, str]]
    """(topic, sample) of each list; the sample is "" where a topic has only one ranking."""
    list_of: Ints
    docs: Ids
    scores: Floats
    order: str
    lines: int
    """How many lines were read: more than there are rows if only the best were kept."""


def score_order(codes: Ints, scores: Floats) -> Ints | None:
    """Rows by code, then by score descending; None if they are in that order."""
    same = codes[1:] == codes[:-1]
    if np.all(np.where(same, scores[1:] <= scores[:-1], codes[1:] > codes[:-1])):
        return None
    return np.lexsort((-scores, codes))


def best_rows(codes: Ints, scores: Floats, depth: int) -> Ints:
    """The rows with the `depth` highest scores of each code, and those that tie with the last of them.

    >>> best_rows(np.array([0, 0, 0, 1]), np.array([3.0, 2.0, 2.0, 1.0]), 2)
    array([0, 1, 2, 3])
    """
    order = score_order(codes, scores)
    if order is not None:
        codes, scores = codes[order], scores[order]
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    lengths = np.diff(starts, append=codes.size)
    last = starts + np.minimum(lengths, depth) - 1
    rows = np.flatnonzero(scores >= np.repeat(scores[last], lengths))
    return rows if order is None else np.sort(order[rows])


_FEW_ROWS = 100
"""Lists that are shorter on average are not sorted one by one."""


@dataclass
class RunBuilder:
    """Collects chunks of a run, keeping no more of each list than `depth` needs."""

    order: str
    depth: int | None
    lists: dict[str | tuple[str, str], int] = field(default_factory=dict)
    """The number of each topic, or of each topic and sample."""
    parts: list[tuple[Ints, Ids, Floats]] = field(default_factory=list)
    keys: list[Words] = field(default_factory=list)
    stretches: list[Ints] = field(default_factory=list)
    """Code and count of neighbouring rows of one list, (stretches, 2) for each chunk."""
    reduced: int = 1 << 21

    def add(self, topic: Ids, sample: Ids | None, docs: Ids, scores: Floats) -> None:
        """Add some rows."""
        codes = numbered(topic, self.lists, sample)
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        self.stretches.append(np.stack([codes[starts], np.diff(starts, append=codes.size)], axis=1))
        self.keys.append(keys(docs, codes))
        self._hold(codes, docs, scores)
        if self.depth is not None and sum(held.size for held, _, _ in self.parts) > 2 * self.reduced:
            self._hold(*self.merged())
            self.reduced = max(self.reduced, self.parts[0][0].size)

    def _hold(self, codes: Ints, docs: Ids, scores: Floats) -> None:
        if self.depth is not None:
            ranked_by = scores if self.order == "score" else -np.arange(codes.size, dtype=np.float64)
            rows = best_rows(codes, ranked_by, self.depth)
            codes, docs, scores = codes[rows], docs.take(rows), scores[rows]
        self.parts.append((codes, docs.compact(), scores))

    def merged(self) -> tuple[Ints, Ids, Floats]:
        """All parts as one; the builder is then empty."""
        parts, self.parts = self.parts, []
        return joined(parts)

    def finish(self, name: str, tag: str, raise_repeated: Callable[[], None]) -> RunColumns:
        """The columns. `raise_repeated` is called if a document may be twice in a list, to find out."""
        lines = sum(part.size for part in self.keys)
        if lines and self._may_repeat():
            raise_repeated()
        if self.depth is not None and len(self.parts) > 1:
            self._hold(*self.merged())
        codes, docs, scores = self.merged()
        lists = [key if isinstance(key, tuple) else (key, "") for key in self.lists]
        return RunColumns(name, tag, lists, codes, docs, scores, self.order, lines)

    def _may_repeat(self) -> bool:
        """Whether a document is twice in a list, or (rarely) two have one hash."""
        all_keys, (code, count) = np.concatenate(self.keys), np.concatenate(self.stretches).T
        self.keys, self.stretches = [], []
        torn = np.bincount(code)[code] > 1
        if torn.sum() > 0.1 * code.size or count.mean() < _FEW_ROWS:
            all_keys.sort()
            return bool(np.any(all_keys[1:] == all_keys[:-1]))
        # To sort each list by itself is faster. Those that stand in several places are put together first.
        together = np.sort(all_keys[np.repeat(torn, count)])
        ends = np.cumsum(count)
        for start, end in zip((ends - count)[~torn].tolist(), ends[~torn].tolist(), strict=True):
            all_keys[start:end].sort()
        return any(bool(np.any(part[1:] == part[:-1])) for part in (together, all_keys))


RunRows = tuple[Iterable[Place], Ids, Ids | None, Ids, Floats]
"""Places, topics, samples, documents and scores of some rows."""


def raise_repeated_row(chunks: Iterable[RunRows]) -> None:
    """Raise for the first document that comes a second time in a list, if there is one."""
    seen: dict[tuple[str, ...], Place] = {}
    for places, topics, sample, docs, _ in chunks:
        samples = sample.texts() if sample is not None else [""] * len(docs)
        for place, *row in zip(places, topics.texts(), samples, docs.texts(), strict=True):
            first = seen.setdefault(tuple(row), place)
            if first is not place:
                where = f"line {first.line}" if first.file == place.file and first.line else str(first)
                found = f"document {escape(row[2])!r} a second time in topic {escape(row[0])!r}"
                raise InputError(place, found, f"it once (first in {where})")


_PROBES = 64
"""In how many places the topics of a file are looked at before it is cut."""


def is_table(source: Source) -> bool:
    """Whether a run is a parquet, CSV or TSV table with named columns, or JSON, by its name or its first line."""
    return (
        source.table_suffix == ".parquet"
        or has_key(source, "ranking")
        or has_header(source, "topic", "doc", "score")
    )


_JSON_RUN = '{"q_num": "1.7", "qid": 7, "ranking": ["doc", …]}'
_JSON_ROWS = 1 << 16


def _json_rows(source: Source) -> Iterator[RunRows]:
    """The rankings of TREC Fair 2019 and 2020, JSON lines, some thousand documents at a time."""
    rows: list[tuple[Place, str, str, str]] = []
    for place, value in json_lines(source, _JSON_RUN):
        topic = id_of(value, "qid", place, _JSON_RUN)
        sample = id_of(value, "q_num", place, _JSON_RUN) if "q_num" in value else ""
        docs = list_of(value, "ranking", place, _JSON_RUN)
        rows += ((place, topic, sample, check_id(id_text(doc, "doc", place), "doc", place)) for doc in docs)
        if len(rows) >= _JSON_ROWS:
            yield _columns(rows)
            rows = []
    if rows:
        yield _columns(rows)


def _columns(rows: Sequence[tuple[Place, str, str, str]]) -> RunRows:
    places, topics, samples, docs = zip(*rows, strict=True)
    return places, Ids.of(topics), Ids.of(samples), Ids.of(docs), np.zeros(len(docs))


def _read_json(source: Source, tag: str, options: RunOptions) -> RunColumns:
    builder = RunBuilder("file", options.depth)
    for _, topic, sample, docs, scores in _json_rows(source):
        builder.add(topic, sample, docs, scores)
    columns = builder.finish(source.name, tag, lambda: raise_repeated_row(_json_rows(source)))
    if not columns.lines:
        raise InputError(Place(source.name), "no document", _JSON_RUN)
    return columns


def read_run_columns(source: Source, options: RunOptions = BY_SCORE) -> RunColumns:
    """Read a run file of any format."""
    # Bytes of the name that are not UTF-8 are escaped, since a tag is written and printed.
    file = file_name(source.name).encode("utf-8", "backslashreplace").decode()
    if source.table_suffix == ".parquet":
        from fairevals.io.dataset import read_parquet

        return read_parquet(source, file.split(".")[0], options)
    if has_key(source, "ranking"):
        return _read_json(source, file, options)
    if is_table(source):
        frame, lines = read_frame(source, ("topic", "doc", "score"))
        require_rows(source.name, len(frame))
        return run_from_frame(frame, source.name, lines, file.split(".")[0], options)
    line_format = run_format(source.whole, trailing=options.trailing)
    fair, single = len(line_format.columns) in FAIR_RUNS, len(line_format.columns) == 2
    tag = file if fair else ""
    if source.start:  # a part has the tag of the whole, by which random numbers are drawn
        _, cells, _ = next(line_format.examine(source.whole))
        tag = tag or b"".join(cells[5:6]).decode(errors="replace")
        line_format = replace(line_format, skip=0)
    # TREC Fair's rankings have no scores: they are in the order of lines.
    builder = RunBuilder("file" if fair else options.order, options.depth)
    for tokens in line_format.read(source):
        if not tag and len(tokens):
            tag = tokens.column(5).text(0)
        scores = np.zeros(len(tokens)) if fair else tokens.numbers[0]
        sample = tokens.column(1) if (options.samples or fair) and not single else None
        builder.add(tokens.column(0), sample, tokens.column(1 if single else 2), scores)
    rules = Rules(samples=options.samples, trailing=options.trailing)
    columns = builder.finish(source.name, tag, lambda: raise_first(source, rules))
    if not columns.lines:
        raise_first(source)
    return columns


def require_rows(name: str, rows: int) -> None:
    """Raise if a table has no row at all. Some of the files of a folder may be empty."""
    if not rows:
        raise InputError(Place(name), "no row", "rows of topic, doc, score[, sample]")


def cut_run(source: Source, parts: int) -> list[Source]:
    """Cut a run of TREC lines into about so many parts of similar size; the whole if it cannot be cut.

    A cut is where the topic changes, so that no topic is in two parts if all its lines are consecutive. The
    reader of the parts must check that: only a few lines are read here.
    """
    if parts < 2 or not source.is_plain or is_table(source):
        return [source]
    longest = source.limits.line
    with Path(source.name).open("rb") as file:
        size = file.seek(0, os.SEEK_END)

        def line_after(position: int) -> tuple[int, bytes]:
            """The start and the topic of the first line that starts after a position."""
            file.seek(position)
            start = position + len(file.readline(longest))
            return start, b"".join(file.readline(longest).split(None, 1)[:1])

        topics = [line_after(size * n // _PROBES)[1] for n in range(_PROBES)]
        if len(set(topics)) < 1 + sum(one != other for one, other in pairwise(topics)):
            return [source]  # a topic comes again after another
        cuts = [0]
        for n in range(1, parts):
            low, high = size * n // parts, size * (n + 1) // parts
            _, topic = line_after(low)
            if line_after(high)[1] == topic:
                continue  # one topic is longer than a part
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if line_after(middle)[1] == topic else (low, middle)
            cuts.append(line_after(high)[0])
    ends = [*dict.fromkeys(cuts), size]
    return [source.part(start, end) for start, end in pairwise(ends) if start < end]


def run_from_frame(
    frame: pd.DataFrame, name: str, lines: Sequence[int], tag: str, options: RunOptions = BY_SCORE
) -> RunColumns:
    """A run from a table with columns topic, doc, score[, sample]; `lines` are the row numbers for messages."""
    check_columns(frame, name, ("topic", "doc", "score"), "topic, doc, score[, sample]")
    topic, docs = (identifiers(frame, column, name, lines) for column in ("topic", "doc"))
    scores = finite_scores(frame["score"], name, lines)
    sampled = options.samples and "sample" in frame.columns
    sample = identifiers(frame, "sample", name, lines) if sampled else None
    builder = RunBuilder(options.order, options.depth)
    builder.add(topic, sample, docs, scores)
    places = (Place(name, line) for line in lines)
    chunk = (places, topic, sample, docs, scores)
    return builder.finish(name, tag, lambda: raise_repeated_row([chunk]))


def finite_scores(column: pd.Series, name: str, lines: Sequence[int]) -> Floats:
    """A column of scores; an `InputError` if one is not a finite number."""
    from pandas.api.types import is_numeric_dtype

    if is_numeric_dtype(column):
        scores: Floats = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:  # parsed as in a TREC run: pandas rounds some decimals differently and accepts more than decimals
        ids = Ids.of(text.encode("ascii", "replace").decode() for text in texts(column))
        scores, _ = parse_decimals(ids.buffer, ids.start, ids.start + ids.length)
    for row in np.flatnonzero(~np.isfinite(scores))[:1].tolist():
        wrong = f"score {cell_text(column.iloc[row])}"
        raise InputError(Place(name, int(lines[row])), wrong, "a finite number")
    return scores

"""The pool of runs: which documents are in their first ranks, for judging."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from fairevals.collection.qrels import in_order
from fairevals.collection.run import Run
from fairevals.ids import Ids, Index
from fairevals.typing import Ints

_ROWS = 1 << 16
"""About how many rows become text at a time."""

Counted = tuple[Ints, Ids, Ints]
"""Topic numbers, documents and, for each, the number of runs."""


def pool(runs: Iterable[Run], depth: int) -> Iterator[tuple[str, str, int]]:
    """Each topic and document in the first `depth` ranks of a run, with the number of runs that have it there.

    Topics are in the order of `in_order`, the documents of a topic in that of their bytes. A document that several
    samples of a run have counts once for the run.

    >>> from fairevals.collection.inputs import load_run
    >>> runs = [load_run({"q": {"a": 3, "b": 2, "c": 1}}), load_run({"q": {"c": 2, "a": 1}})]
    >>> list(pool(runs, depth=2))
    [('q', 'a', 2), ('q', 'b', 1), ('q', 'c', 1)]
    """
    topics: dict[str, int] = {}
    parts: list[Counted] = []
    merged = 0
    for run in runs:
        parts.append(_first_rows(run, depth, topics))
        if sum(topic.size for topic, _, _ in parts) > 2 * merged:  # so that merging takes linear time in all
            parts = [_unique(parts)]
            merged = parts[0][0].size
    topic, docs, count = _unique(parts)
    names = in_order(topics)
    place = np.empty(len(names), dtype=np.int64)
    place[[topics[name] for name in names]] = np.arange(len(names))
    order = np.argsort(place[topic], kind="stable")
    starts = np.searchsorted(place[topic][order], np.arange(len(names) + 1))
    first = 0
    while first < len(names):
        # Whole topics, at least one.
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + _ROWS, side="right")) - 1)
        rows = order[starts[first] : starts[last]]
        some = docs.take(rows).compact()
        by_name = np.lexsort((some.ranks(), place[topic[rows]]))
        rows, texts = rows[by_name], some.take(by_name).texts()
        for at, doc, number in zip(place[topic[rows]].tolist(), texts, count[rows].tolist(), strict=True):
            yield names[at], doc, number
        first = last


def _first_rows(run: Run, depth: int, topics: dict[str, int]) -> Counted:
    """Each document of the first ranks once; new topics are added to `topics`."""
    lengths = np.diff(run.offsets)
    number = np.array([topics.setdefault(topic, len(topics)) for topic, _ in run.lists], dtype=np.int64)
    rows = np.flatnonzero(np.arange(len(run)) - np.repeat(run.offsets[:-1], lengths) < depth)
    topic, docs = np.repeat(number, np.minimum(lengths, depth)), run.docs.take(rows)
    if np.unique(number).size < number.size:  # several samples of a topic; a document is once in each
        kept = np.delete(np.arange(rows.size), Index(topic, docs).duplicates())
        topic, docs = topic[kept], docs.take(kept)
    return topic, docs.compact(), np.ones(topic.size, np.int64)


def _unique(parts: list[Counted]) -> Counted:
    """Each topic and document once, with the sum of its counts."""
    if len(parts) == 1:
        return parts[0]
    topics, ids, counts = zip(*parts, strict=True)
    topic, docs = np.concatenate(topics), Ids.concatenate(ids)
    first = Index(topic, docs).find(topic, docs)
    kept, group = np.unique(first, return_inverse=True)
    count = np.bincount(group, weights=np.concatenate(counts)).astype(np.int64)
    return topic[kept], docs.take(kept).compact(), count

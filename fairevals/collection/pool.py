"""The pool of runs: which documents are in their first ranks, for judging."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import repeat

import numpy as np

from fairevals.collection.qrels import in_order
from fairevals.collection.run import Run
from fairevals.errors import unknown
from fairevals.ids import Ids, Index
from fairevals.typing import Ints

_ROWS = 1 << 16
"""About how many rows become text at a time."""

POOL_ORDERS = ("document", "priority")

Counted = tuple[Ints, Ids, Ints, Ints]
"""Topic numbers, documents and, for each, the number of runs and the sum of its ranks in them."""


def pool(
    runs: Iterable[Run],
    depth: int | Iterable[int],
    *,
    order: str = "document",
    topics: Container[str] | None = None,
) -> Iterator[tuple[str, str, int]]:
    """Each topic and document in the first `depth` ranks of a run, with the number of runs that have it there.

    `depth` is one number, or one for each run. Only the given `topics` are pooled, by default all; they are in the
    order of `in_order`. The documents of a topic are in the order of their bytes; with `order="priority"` as
    NTCIRPOOL lists them, likely relevant ones first: by the number of runs, descending, then by the sum of their
    ranks in these runs, ascending, then by their bytes. A document that several samples of a run have counts once for
    the run, at its best rank.

    >>> from fairevals.collection.inputs import load_run
    >>> runs = [load_run({"q": {"a": 3, "b": 2, "c": 1}}), load_run({"q": {"c": 2, "a": 1}})]
    >>> list(pool(runs, depth=2))
    [('q', 'a', 2), ('q', 'b', 1), ('q', 'c', 1)]
    >>> list(pool(runs, depth=2, order="priority"))
    [('q', 'a', 2), ('q', 'c', 1), ('q', 'b', 1)]
    """
    if order not in POOL_ORDERS:
        raise unknown("order of the pool", order, POOL_ORDERS)
    number: dict[str, int] = {}
    parts: list[Counted] = []
    merged = 0
    depths = repeat(depth) if isinstance(depth, int) else depth
    for run, ranks in zip(runs, depths, strict=not isinstance(depth, int)):
        parts.append(_first_rows(run, ranks, number, topics))
        if sum(part[0].size for part in parts) > 2 * merged:  # so that merging takes linear time in all
            parts = [_unique(parts)]
            merged = parts[0][0].size
    if not parts:
        return
    topic, docs, count, rank_sum = _unique(parts)
    names = in_order(number)
    place = np.empty(len(names), dtype=np.int64)
    place[[number[name] for name in names]] = np.arange(len(names))
    by_topic = np.argsort(place[topic], kind="stable")
    starts = np.searchsorted(place[topic][by_topic], np.arange(len(names) + 1))
    first = 0
    while first < len(names):
        # Whole topics, at least one.
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + _ROWS, side="right")) - 1)
        rows = by_topic[starts[first] : starts[last]]
        some = docs.take(rows).compact()
        first_keys = (rank_sum[rows], -count[rows]) if order == "priority" else ()
        listed = np.lexsort((some.ranks(), *first_keys, place[topic[rows]]))
        rows, texts = rows[listed], some.take(listed).texts()
        for at, doc, found in zip(place[topic[rows]].tolist(), texts, count[rows].tolist(), strict=True):
            yield names[at], doc, found
        first = last


def _first_rows(run: Run, depth: int, number: dict[str, int], topics: Container[str] | None) -> Counted:
    """Each document of the first ranks once; new topics get their `number`."""
    pooled = np.array([topics is None or topic in topics for topic, _ in run.lists], dtype=bool)
    lists = [topic for (topic, _), is_pooled in zip(run.lists, pooled, strict=True) if is_pooled]
    codes = np.array([number.setdefault(topic, len(number)) for topic in lists], dtype=np.int64)
    lengths = np.diff(run.offsets)
    depths = np.where(pooled, np.minimum(lengths, depth), 0)
    rank = np.arange(len(run)) - np.repeat(run.offsets[:-1], lengths) + 1
    rows = np.flatnonzero(rank <= np.repeat(depths, lengths))
    topic, rank = np.repeat(codes, depths[pooled]), rank[rows]
    if np.unique(codes).size < codes.size:  # several samples of a topic; a document is once in each
        best_first = np.argsort(rank, kind="stable")
        rows, topic, rank = rows[best_first], topic[best_first], rank[best_first]
        kept = np.delete(np.arange(rows.size), Index(topic, run.docs.take(rows)).duplicates())
        rows, topic, rank = rows[kept], topic[kept], rank[kept]
    return topic, run.docs.take(rows).compact(), np.ones(topic.size, np.int64), rank


def _unique(parts: list[Counted]) -> Counted:
    """Each topic and document once, with the sums of its counts and ranks."""
    if len(parts) == 1:
        return parts[0]
    topics, ids, *numbers = zip(*parts, strict=True)
    topic, docs = np.concatenate(topics), Ids.concatenate(ids)
    first = Index(topic, docs).find(topic, docs)
    kept, group = np.unique(first, return_inverse=True)
    sums = [np.bincount(group, weights=np.concatenate(some)).astype(np.int64) for some in numbers]
    return topic[kept], docs.take(kept).compact(), sums[0], sums[1]

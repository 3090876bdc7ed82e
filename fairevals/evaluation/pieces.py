"""Independent pieces of work, a run or some topics of one: how runs are cut, and where pieces are scored."""

import math
import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from fairevals.collection.collection import Collection, Slice
from fairevals.collection.spelling import Variants, document_variants
from fairevals.errors import FairevalsError
from fairevals.evaluation.across import ExposureRows, across_topics
from fairevals.evaluation.expectation import Exposures, expectations
from fairevals.evaluation.plan import Plan, load, open_run, require_judged_topic
from fairevals.evaluation.tops import TopRanks
from fairevals.evaluation.workers import AHEAD, Workers
from fairevals.io.dataset import open_dataset, parts, with_topics
from fairevals.io.runs import cut_run, require_rows
from fairevals.io.streams import Source
from fairevals.typing import Floats, Ints


@dataclass(frozen=True)
class RunScores:
    """The scores of one run: values and standard errors are (measures, topics)."""

    tag: str
    source: str
    values: Floats
    se: Floats
    topics: tuple[str, ...]
    """The topics that the run has, judged or not."""
    numbers: Ints
    """(topics,): the numbers of the judged topics that are scored."""
    documents: Ints
    """(topics,): how many documents the run ranks, within the depth that is read."""
    diagnosed: tuple[Ints, Floats]
    """See `OpenRun.diagnosed`."""
    judged: bool
    """Whether any of its documents is judged."""
    variants: Variants
    """Documents that would be judged if Unicode were normalised."""
    exposures: tuple[ExposureRows, ...]
    """For measures across topics; empty without any."""
    tops: tuple[TopRanks, ...]
    """The first ranks, if they are kept."""


def score_piece(
    shared: tuple[Collection, Plan] | None, source: Any, numbers: Ints | None, part: Slice | None
) -> RunScores | None:
    """Read and score a run, or some topics of it, wherever this is called.

    `shared` is None in a process that got it from `_share`. `numbers` are those of the topics that are scored, and
    `part` has what they need beyond it; by default they are all topics, or those in the part of a file. Returns None if
    that part is invalid: only a reader of the whole file can tell what is wrong, and on which line.
    """
    collection, plan = shared or _shared[0]
    if isinstance(source, Source):
        try:
            source = load(source, collection, plan)
        except FairevalsError:
            return None
        numbers = collection.qrels.numbers(source.topics)
        part = collection.slice_of(numbers)
    if part is not None:
        collection = collection.sliced(part)
    opened = open_run(source, collection, plan, check_topics=part is None)
    run = opened.run
    shape = (len(plan.measures), len(collection.qrels.topics))
    values, se = np.full(shape, np.nan), np.full(shape, np.nan)
    documents, judged = np.zeros(shape[1], dtype=np.int64), False
    across, kept, tops = across_topics(plan.measures), [], []
    for block in opened.blocks():
        here = slice(block.first, block.first + len(block.topics))
        documents[here] = block.retrieved
        judged = judged or bool(np.any(~np.isnan(block.raw_grades) & (block.scores > -np.inf)))
        exposures: Exposures = {}
        estimates = expectations(plan.measures, opened.policy, block, collection.task, exposures)
        if across:
            kept.append(ExposureRows.of(block, exposures, across))
        if plan.top:
            tops.append(TopRanks.of(block, opened.policy, plan.top, collection.task.cutoff, exposures))
        for m, estimate in enumerate(estimates):
            values[m, here] = estimate.value
            if estimate.se is not None:
                se[m, here] = estimate.se
    numbers = np.arange(shape[1]) if numbers is None else numbers
    return RunScores(
        tag=run.tag,
        source=run.source,
        values=values,
        se=se,
        topics=tuple(run.topics),
        numbers=numbers,
        documents=documents,
        diagnosed=opened.diagnosed(),
        judged=judged,
        variants=document_variants(run, collection.qrels),
        exposures=tuple(part.numbered(numbers) for part in kept),
        tops=tuple(part.numbered(numbers) for part in tops),
    )


class SharingExecutor(Executor):
    """An executor whose workers may be on other machines: what all pieces need is sent to each only once."""

    jobs: int
    """How many pieces can be worked on at a time."""

    @abstractmethod
    def share(self, value: Any) -> Any:
        """A stand-in for the value in `submit`, which workers receive as the value itself."""

    @abstractmethod
    def result(self, name: str, future: Future[Any]) -> Any:
        """The result of what was submitted; raises if no worker is left. Messages use the name."""


_shared: list[tuple[Collection, Plan]] = []


def _share(collection: Collection, plan: Plan) -> None:
    """Give a worker process what all pieces need, once."""
    _shared[:] = [(collection, plan)]


@dataclass(frozen=True)
class Piece:
    """One unit of work: a run, or some topics of it."""

    run: int
    source: Any
    topics: Ints | None = None
    """The numbers of its topics; None for all, or for those in the part of a file."""

    @property
    def name(self) -> str:
        """The name of its run in messages."""
        if is_path(self.source):
            return os.fspath(self.source)
        names = (getattr(self.source, attribute, None) for attribute in ("name", "source"))
        return next((name for name in names if isinstance(name, str)), f"run {self.run + 1}")


@contextmanager
def pool_for(
    collection: Collection, plan: Plan, jobs: int, executor: Executor | None
) -> Iterator[tuple[Executor | Workers | None, Any]]:
    """Where pieces are scored (None: in this process), and what `score_piece` gets there as `shared`."""
    both: Any = (collection, plan)
    if executor is not None:
        yield executor, executor.share(both) if isinstance(executor, SharingExecutor) else both
    elif jobs == 1:
        yield None, both
    else:
        with Workers(jobs, _share, *both) as workers:
            yield workers, None


def results_of(
    pool: Executor | Workers | None,
    jobs: int,
    function: Callable[..., Any],
    calls: Iterable[tuple[str, tuple[Any, ...]]],
) -> Iterator[Any]:
    """The results of the calls, in order. Only a few are queued, so that the rest need not be in memory."""
    if isinstance(pool, Workers):
        yield from pool.results(function, calls)
        return

    def result(name: str, future: Future[Any]) -> Any:
        return pool.result(name, future) if isinstance(pool, SharingExecutor) else future.result()

    waiting: deque[tuple[str, Future[Any]]] = deque()
    for name, call in calls:
        if pool is None:
            yield function(*call)
            continue
        waiting.append((name, pool.submit(function, *call)))
        if len(waiting) >= AHEAD * max(jobs, 2):
            yield result(*waiting.popleft())
    while waiting:
        yield result(*waiting.popleft())


LEAST_BYTES = 1 << 16
"""Files are not cut into smaller parts than this."""


def cut_source(source: Any, parts: int, collection: Collection, plan: Plan) -> list[tuple[Any, Ints | None]]:
    """A run cut into about so many parts that share no topic, with the numbers of their topics where they are known.

    Parts of a plain file are read where they are scored. Any other run is cut only if computing takes longer than
    reading, which happens here.
    """
    if parts > 1 and _size(source):
        cut = cut_run(Source.of(source), min(parts, _size(source) // LEAST_BYTES))
        if len(cut) > 1:
            return [(part, None) for part in cut]
    if parts == 1 or plan.policy.kind == "ranking":
        return [(source, None)]
    run = open_run(source, collection, plan).run
    return [(part, collection.qrels.numbers(part.topics)) for part in run.parts(parts)]


def _size(source: Any) -> int:
    """The bytes of a file; 0 for anything else."""
    return Path(source).stat().st_size if is_path(source) and Path(source).is_file() else 0


def pieces_of_dataset(
    run: int, source: Any, collection: Collection, pool: Executor | Workers | None, jobs: int
) -> list[Piece]:
    """Pieces of a data set that share no topic."""
    dataset, qrels = open_dataset(source), collection.qrels
    calls = ((fragment.path, (fragment,)) for fragment in dataset.files)
    fragments = list(results_of(pool, jobs, with_topics, calls))
    require_rows(dataset.name, sum(fragment.rows for fragment in fragments))
    require_judged_topic(dataset.name, sorted({t for file in fragments for t in file.topics}), qrels)
    pieces = []
    for part in parts(dataset, fragments):
        there = part.topics or ()
        part = replace(part, topics=None if part.whole else there)
        pieces.append(Piece(run, part, qrels.numbers(there)))
    return pieces


def piece_calls(
    pieces: Iterable[Piece], shared: Any, collection: Collection, jobs: int
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """For each piece its name and the arguments of `score_piece`."""
    for number, piece in enumerate(pieces):
        if number == jobs > 1:
            # Late qrels are read here when they are first asked for, while the workers read the first pieces.
            len(collection.qrels.topics)
        part = None if piece.topics is None else collection.slice_of(piece.topics)
        yield piece.name, (shared, piece.source, piece.topics, part)
    len(collection.qrels.topics)


def parts_per_run(sources: Sequence[Any], jobs: int) -> list[int]:
    """Into how many parts each run should be cut: files by their size, so that all jobs have work."""
    if jobs == 1:
        return [1] * len(sources)
    sizes = [_size(source) for source in sources]
    shares = [jobs * size / max(1, sum(sizes)) if size else jobs / len(sources) for size in sizes]
    # Parts of equal size take different time: with twice as many no worker waits long for another.
    return [1 if share <= 1 else 2 * math.ceil(share) for share in shares]


def is_path(source: Any) -> TypeGuard[str | os.PathLike[str]]:
    """Whether a run is given as a path."""
    return isinstance(source, (str, os.PathLike))

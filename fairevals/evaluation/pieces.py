"""Scoring as a list of independent pieces: in this process, a pool of processes or a cluster."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairevals.collection.blocks import CELLS
from fairevals.collection.collection import Collection, Slice
from fairevals.collection.qrels import Qrels
from fairevals.collection.run import Run
from fairevals.errors import UsageError, escape, pluralize
from fairevals.evaluation.expectation import expectations
from fairevals.evaluation.plan import Plan, load, open_run, require_judged_topic, unjudged_shares
from fairevals.evaluation.scores import Scores
from fairevals.ids import Ids
from fairevals.io.dataset import is_dataset, open_dataset, parts, with_topics
from fairevals.io.streams import reads_once
from fairevals.io.task import run_info
from fairevals.measures import Measure
from fairevals.typing import Floats, Ints

UNJUDGED_REMARK = 0.05
"""The share of attention to unjudged documents from which a remark is made."""


@dataclass(frozen=True)
class RunScores:
    """The scores of one run: values and standard errors are (measures, topics)."""

    tag: str
    source: str
    values: Floats
    se: Floats
    notes: tuple[str, ...]
    policy_remark: str


def score_run(
    source: Any,
    collection: Collection,
    plan: Plan,
    shard: tuple[int, int] = (0, 1),
    *,
    check_topics: bool = True,
) -> RunScores:
    """Read a run and score it; with `shard` (i, n) only every n-th block, the rest being NaN."""
    opened = open_run(source, collection, plan, check_topics=check_topics)
    run, policy = opened.run, opened.policy
    shape = (len(plan.measures), len(collection.qrels.topics))
    values, se = np.full(shape, np.nan), np.full(shape, np.nan)
    for number, block in enumerate(opened.blocks(CELLS if shard[1] == 1 else CELLS // (1 << 8))):
        if number % shard[1] == shard[0]:
            here = slice(block.first, block.first + len(block.topics))
            for m, estimate in enumerate(expectations(plan.measures, policy, block, collection.task)):
                values[m, here] = estimate.value
                if estimate.se is not None:
                    se[m, here] = estimate.se
    return RunScores(
        run.tag,
        run.source,
        values,
        se,
        tuple(_notes(run.tag, set(run.topics), collection.qrels)),
        opened.policy_remark if shard[0] == 0 else "",
    )


def _notes(tag: str, topics: Set[str], qrels: Qrels) -> Iterator[str]:
    extra = [topic for topic in topics if topic not in qrels.number]
    if extra:
        many = pluralize(len(extra), "topic")
        yield f"{escape(tag)}: skipped {many} without judgements, such as {escape(min(extra))}"
    missing = [topic for topic in qrels.topics if topic not in topics]
    if missing:
        many = pluralize(len(missing), "judged topic")
        yield f"{escape(tag)}: has nothing for {many}, such as {escape(missing[0])}: utility 0, exposure undefined"


def name_runs(scored: Sequence[tuple[str, str]]) -> list[str]:
    """Names for (tag, file) pairs: the tag, told apart by file name, or by the whole path, where tags collide.

    >>> name_runs([("bm25", "a/x.run"), ("bm25", "a/y.run"), ("dense", "a/z.run")])
    ['bm25 (x.run)', 'bm25 (y.run)', 'dense']
    """
    candidates: list[Callable[[str, str], str]] = [
        lambda tag, _: tag,
        lambda tag, file: f"{tag} ({os.path.basename(file)})",  # noqa: PTH119 -- any text may stand here
        lambda tag, file: f"{tag} ({file})",
    ]
    names = [""] * len(scored)
    open_ = list(range(len(scored)))
    for make in candidates:
        for i in open_:
            names[i] = make(*scored[i])
        open_ = [i for i in open_ if sum(names[i] == names[j] for j in range(len(names))) > 1]
    for number, i in enumerate(open_, 1):
        names[i] = f"{names[i]} #{number}"
    return names


class SharingExecutor(Executor):
    """An executor whose workers may be on other machines: what all pieces need is sent to each only once."""

    jobs: int
    """How many pieces can be worked on at a time."""

    @abstractmethod
    def share(self, value: Any) -> Any:
        """A stand-in for the value in `submit`, which workers receive as the value itself."""


_shared: list[tuple[Collection, Plan]] = []


def _share(collection: Collection, plan: Plan) -> None:
    """Give a worker process what all pieces need, once."""
    _shared[:] = [(collection, plan)]


@dataclass(frozen=True)
class Piece:
    """One unit of work: a run, every n-th block of a run, or some topics of a data set."""

    run: int
    source: Any
    shard: tuple[int, int] = (0, 1)
    topics: Ints | None = None
    """The numbers of its topics; None for all."""


def score_piece(
    shared: tuple[Collection, Plan] | None, source: Any, shard: tuple[int, int], part: Slice | None
) -> RunScores:
    """Score a piece wherever this runs; `part` is what the topics of the piece need beyond what all share."""
    collection, plan = shared or _shared[0]
    if part is None:
        return score_run(source, collection, plan, shard)
    return score_run(source, collection.sliced(part), plan, shard, check_topics=False)


@dataclass(frozen=True)
class _Workers:
    """Where pieces are computed: here (no pool), or in a pool that has been given `shared`."""

    pool: Executor | None
    shared: Any
    ahead: int
    """How many pieces may be queued; the rest is not cut yet."""

    def run(self, function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """The results, in order."""
        if self.pool is None:
            yield from (function(*call) for call in calls)
            return
        waiting: deque[Future[Any]] = deque()
        for call in calls:
            waiting.append(self.pool.submit(function, *call))
            if len(waiting) >= self.ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def _workers(collection: Collection, plan: Plan, jobs: int, executor: Executor | None) -> Iterator[_Workers]:
    """Workers that have what all pieces need."""
    if executor is None and jobs == 1:
        yield _Workers(None, (collection, plan), 1)
    elif executor is None:
        pool = ProcessPoolExecutor(jobs, initializer=_share, initargs=(collection, plan))
        try:
            yield _Workers(pool, None, 4 * jobs)
        except BaseException:
            # Interrupted, or one piece failed: nobody needs the others.
            for process in list(pool._processes.values()):
                process.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
    else:
        both: Any = (collection, plan)
        shared = executor.share(both) if isinstance(executor, SharingExecutor) else both
        yield _Workers(executor, shared, 4 * max(jobs, 2))


def _readable_anywhere(source: Any, collection: Collection, plan: Plan) -> Any:
    """The source; or the run itself where other processes cannot read it again (standard input, a pipe)."""
    if not isinstance(source, (str, os.PathLike)) or not reads_once(source):
        return source
    return load(source, collection, plan)


def _shards(runs: int, jobs: int, plan: Plan) -> int:
    """Into how many pieces each run is cut: one, unless computing takes longer than reading."""
    return 1 if plan.policy.kind == "ranking" or runs >= jobs else -(-jobs // runs)


def _pieces_of_dataset(
    run: int, source: Any, collection: Collection, workers: _Workers
) -> tuple[list[Piece], tuple[str, ...]]:
    """A data set cut into parts that share no topic, the judged topics that it lacks, and remarks on it."""
    qrels = collection.qrels
    dataset = open_dataset(source)
    fragments = list(workers.run(with_topics, ((fragment,) for fragment in dataset.files)))
    pieces = []
    topics: set[str] = set()
    for part in parts(dataset, fragments):
        there = part.topics or ()
        topics.update(there)
        numbers = sorted(qrels.number[topic] for topic in there if topic in qrels.number)
        pieces.append(Piece(run, replace(part, topics=None if part.whole else there), topics=_array(numbers)))
    require_judged_topic(dataset.name, sorted(topics), collection)
    missing = [number for topic, number in qrels.number.items() if topic not in topics]
    if missing:
        nothing = Run(dataset.tag, dataset.name, [], np.zeros(1, np.int64), Ids.of([]), np.zeros(0), 0)
        pieces.append(Piece(run, nothing, topics=_array(missing)))
    return pieces, tuple(_notes(dataset.tag, topics, qrels))


def _array(numbers: list[int]) -> Ints:
    return np.array(numbers, dtype=np.int64)


def score(
    runs: Sequence[Any],
    collection: Collection,
    plan: Plan,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Scores:
    """Score runs: a list of independent pieces, in this process or over an executor; the result is the same.

    A run that is a folder of parquet files is cut into parts that share no topic: each is read where it is scored,
    and only values of topics come back.
    """
    if not runs:
        raise UsageError("there is no run to score")
    # Measures over candidates cannot see the attention that unjudged documents get: it is computed beside them.
    shown = plan.measures
    hidden = unjudged_shares(m for m in shown if m.uses_candidates)
    plan = replace(plan, measures=(*shown, *(m for m in hidden if m not in shown)))
    collection = collection.with_attributes(plan.requirements.attributes)
    if isinstance(executor, SharingExecutor):
        jobs = executor.jobs
    if jobs > 1 or executor is not None:
        runs = [_readable_anywhere(source, collection, plan) for source in runs]
    far = isinstance(executor, SharingExecutor)
    datasets = [is_dataset(source) for source in runs]
    shards = _shards(len(runs), jobs, plan)
    if not any(datasets):
        jobs = min(jobs, len(runs) * shards)
    pieces: list[Piece] = []
    notes: dict[int, tuple[str, ...]] = {}
    policies: dict[int, str] = {}
    statuses: dict[int, str] = {}
    shape = (len(runs), len(plan.measures), len(collection.qrels.topics))
    values, se = np.full(shape, np.nan), np.full(shape, np.nan)
    named: dict[int, tuple[str, str]] = {}
    with _workers(collection.shareable(slices_only=all(datasets)), plan, jobs, executor) as workers:
        for run, source in enumerate(runs):
            path = _absolute(source) if far else source
            if datasets[run]:
                cut, notes[run] = _pieces_of_dataset(run, path, collection, workers)
                pieces += cut
            else:
                pieces += [Piece(run, path, (i, shards)) for i in range(shards)]
        calls = ((workers.shared, p.source, p.shard, _slice(p, collection)) for p in pieces)
        for done, (piece, scored) in enumerate(zip(pieces, workers.run(score_piece, calls), strict=True), 1):
            at: Any = slice(None) if piece.topics is None else piece.topics
            for all_, some in ((values[piece.run], scored.values), (se[piece.run], scored.se)):
                # Each topic is in at most one piece.
                all_[:, at] = np.where(np.isnan(some), all_[:, at], some)
            source = runs[piece.run]
            given = os.fspath(source) if isinstance(source, (str, os.PathLike)) else scored.source
            info = run_info(collection.task, given)
            tag = info.name if info and info.name else scored.tag
            named.setdefault(piece.run, (tag, given if given != "-" else scored.source))
            statuses.setdefault(piece.run, info.status if info else "official")
            notes.setdefault(piece.run, scored.notes)
            policies.setdefault(piece.run, scored.policy_remark)
            if progress:
                progress(done, len(pieces))
    names = tuple(name_runs([named[run] for run in range(len(runs))]))
    scores = Scores(names, plan.measures, collection.qrels.topics, values, se)
    remarks = [note for run in range(len(runs)) for note in (*notes[run], policies[run]) if note]
    remarks += _unjudged_remarks(scores, hidden) + _incomplete_remarks(scores, len(shown))
    return replace(
        scores,
        measures=shown,
        values=values[:, : len(shown)],
        se=se[:, : len(shown)],
        notes=tuple(remarks),
        statuses=tuple(statuses[run] for run in range(len(runs))) if collection.task.runs else (),
    )


def _incomplete_remarks(scores: Scores, measures: int) -> list[str]:
    """A remark for each run that lacks values which other runs have."""
    remarks = []
    for r, run in enumerate(scores.runs):
        names = [str(scores.measures[m]) for m in range(measures) if scores.incomplete[r, m]]
        if names:
            some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            remarks.append(
                f"{escape(run)}: incomplete for {some}: undefined on topics where other runs have a value; "
                "listed after the complete runs and never marked as the best"
            )
    return remarks


def _unjudged_remarks(scores: Scores, hidden: Sequence[Measure]) -> list[str]:
    """A remark for each run that gives more than a twentieth of the attention to unjudged documents."""
    remarks = []
    for r, run in enumerate(scores.runs):
        shares = [scores.mean(r, scores.measures.index(measure)).value for measure in hidden]
        large = [
            share for share in shares if share > UNJUDGED_REMARK
        ]  # not the NaN of a run without exposure
        if large:
            remarks.append(
                f"{escape(run)}: {max(large):.0%} of the attention goes to unjudged documents, which means over a "
                "group's judged documents do not count"
            )
    return remarks


def _slice(piece: Piece, collection: Collection) -> Slice | None:
    """What is sent along with a piece of some topics only."""
    return None if piece.topics is None else Slice.of(collection.qrels, collection.attributes, piece.topics)


def _absolute(source: Any) -> Any:
    """A path that means the same in another working folder."""
    return os.path.abspath(source) if isinstance(source, (str, os.PathLike)) else source  # noqa: PTH100 -- links stay

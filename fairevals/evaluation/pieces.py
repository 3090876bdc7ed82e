"""Scoring as a list of independent pieces: in this process, a pool of processes or a cluster."""

import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from fairevals.collection.blocks import CELLS
from fairevals.collection.collection import Collection, Slice
from fairevals.collection.run import Run
from fairevals.errors import UsageError, escape, pluralize
from fairevals.evaluation.expectation import defined_on_judged, expectations
from fairevals.evaluation.plan import (
    Plan,
    load,
    open_run,
    parts_of,
    require_judged_topic,
    unjudged_shares,
)
from fairevals.evaluation.scores import Scores
from fairevals.evaluation.workers import AHEAD, Workers
from fairevals.ids import Ids
from fairevals.io.dataset import is_dataset, open_dataset, parts, with_topics
from fairevals.io.streams import reads_once
from fairevals.io.task import RunInfo, run_info
from fairevals.measures import ExposureMeasure, Measure, RankingMeasure
from fairevals.typing import Bools, Floats, Ints

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
    documents: Ints
    """(topics,): how many documents the run ranks, within the depth that is read."""
    policy_remark: str
    judged: bool
    """Whether any of its documents is judged."""


def score_piece(
    shared: tuple[Collection, Plan] | None, source: Any, shard: tuple[int, int], part: Slice | None
) -> RunScores:
    """Read and score a run, wherever this is called; with `shard` (i, n) only every n-th block, the rest being NaN.

    `shared` is None in a process that got it from `_share`. `part` has what the topics of the piece need beyond it.
    """
    collection, plan = shared or _shared[0]
    if part is not None:
        collection = collection.sliced(part)
    opened = open_run(source, collection, plan, check_topics=part is None)
    run = opened.run
    shape = (len(plan.measures), len(collection.qrels.topics))
    values, se = np.full(shape, np.nan), np.full(shape, np.nan)
    documents, judged = np.zeros(shape[1], dtype=np.int64), False
    for number, block in enumerate(opened.blocks(CELLS if shard[1] == 1 else CELLS // (1 << 8))):
        if number % shard[1] == shard[0]:
            here = slice(block.first, block.first + len(block.topics))
            documents[here] = block.retrieved
            judged = judged or bool(np.any(~np.isnan(block.raw_grades) & (block.scores > -np.inf)))
            for m, estimate in enumerate(expectations(plan.measures, opened.policy, block, collection.task)):
                values[m, here] = estimate.value
                if estimate.se is not None:
                    se[m, here] = estimate.se
    notes = tuple(_notes(run.tag, set(run.topics), collection))
    remark = opened.policy_remark if shard[0] == 0 else ""
    return RunScores(run.tag, run.source, values, se, notes, documents, remark, judged)


def _notes(tag: str, topics: Set[str], collection: Collection) -> Iterator[str]:
    qrels, skips = collection.qrels, collection.task.missing == "skip"
    extra = [topic for topic in topics if topic not in qrels.number]
    if extra:
        many = pluralize(len(extra), "topic")
        yield f"{escape(tag)}: skipped {many} without judgements, such as {escape(min(extra))}"
    missing = [topic for topic in qrels.topics if topic not in topics]
    if missing:
        many = pluralize(len(missing), "judged topic")
        value = "undefined there" if skips else "utility 0, exposure undefined"
        yield f"{escape(tag)}: has nothing for {many}, such as {escape(missing[0])}: {value}"


def name_runs(scored: Sequence[tuple[str, str]]) -> list[str]:
    """Names for (tag, file) pairs: the tag, told apart by file name, or by the whole path, where tags collide.

    >>> name_runs([("bm25", "a/x.run"), ("bm25", "a/y.run"), ("dense", "a/z.run")])
    ['bm25 (x.run)', 'bm25 (y.run)', 'dense']
    """
    forms = [(tag, f"{tag} ({os.path.basename(file)})", f"{tag} ({file})") for tag, file in scored]  # noqa: PTH119
    names, ambiguous = [""] * len(scored), list(range(len(scored)))
    for form in range(3):
        for i in ambiguous:
            names[i] = forms[i][form]
        ambiguous = [i for i in ambiguous if names.count(names[i]) > 1]
    for number, i in enumerate(ambiguous, 1):
        names[i] += f" #{number}"
    return names


class SharingExecutor(Executor):
    """An executor whose workers may be on other machines: what all pieces need is sent to each only once."""

    jobs: int
    """How many pieces can be worked on at a time."""

    @abstractmethod
    def share(self, value: Any) -> Any:
        """A stand-in for the value in `submit`, which workers receive as the value itself."""

    @abstractmethod
    def result(self, name: str, future: Future[Any]) -> Any:
        """The result of what was submitted; raises if nobody is left to compute it. Messages call it by the name."""


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

    @property
    def name(self) -> str:
        """What a message calls its run."""
        if _is_path(self.source):
            return os.fspath(self.source)
        names = (getattr(self.source, attribute, None) for attribute in ("name", "source"))
        return next((name for name in names if isinstance(name, str)), f"run {self.run + 1}")


@contextmanager
def _pool(
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


def _results(
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


def _pieces_of_dataset(
    run: int, source: Any, collection: Collection, pool: Executor | Workers | None, jobs: int
) -> tuple[list[Piece], tuple[str, ...]]:
    """Pieces of a data set that share no topic, one for the judged topics that it lacks, and remarks on it."""
    dataset, qrels = open_dataset(source), collection.qrels
    calls = ((fragment.path, (fragment,)) for fragment in dataset.files)
    fragments = list(_results(pool, jobs, with_topics, calls))
    pieces = []
    topics: set[str] = set()
    for part in parts(dataset, fragments):
        there = part.topics or ()
        topics.update(there)
        numbers = sorted(qrels.number[topic] for topic in there if topic in qrels.number)
        part = replace(part, topics=None if part.whole else there)
        pieces.append(Piece(run, part, topics=np.array(numbers, dtype=np.int64)))
    require_judged_topic(dataset.name, sorted(topics), qrels)
    missing = [number for topic, number in qrels.number.items() if topic not in topics]
    if missing:
        nothing = Run(dataset.tag, dataset.name, [], np.zeros(1, np.int64), Ids.of([]), np.zeros(0), 0)
        pieces.append(Piece(run, nothing, topics=np.array(missing, dtype=np.int64)))
    return pieces, tuple(_notes(dataset.tag, topics, collection))


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
    # The attention that unjudged documents get is computed beside measures of exposure, for a remark.
    shown = plan.measures
    hidden = unjudged_shares(part for m in shown for part in parts_of(m) if isinstance(part, ExposureMeasure))
    plan = replace(plan, measures=(*shown, *(m for m in hidden if m not in shown)))
    collection = collection.with_attributes(plan.requirements.attributes)
    qrels, far = collection.qrels, isinstance(executor, SharingExecutor)
    if isinstance(executor, SharingExecutor):
        jobs = executor.jobs
    if jobs > 1 or executor is not None:  # other processes cannot read standard input or a pipe
        runs = [load(run, collection, plan) if _is_path(run) and reads_once(run) else run for run in runs]
    datasets = [is_dataset(source) for source in runs]
    # A run is cut only if there are more jobs than runs and computing takes longer than reading.
    shards = 1 if plan.policy.kind == "ranking" else -(-jobs // min(jobs, len(runs)))
    if not any(datasets):
        jobs = min(jobs, len(runs) * shards)
    pieces: list[Piece] = []
    notes: dict[int, tuple[str, ...]] = {}
    first: dict[int, RunScores] = {}
    shape = (len(runs), len(plan.measures), len(qrels.topics))
    values, se = np.full(shape, np.nan), np.full(shape, np.nan)
    documents, judged = np.zeros((shape[0], shape[2]), dtype=np.int64), set()
    with _pool(collection.shareable(slices_only=all(datasets)), plan, jobs, executor) as (pool, shared):
        for run, source in enumerate(runs):
            # Workers elsewhere have other working folders; links stay as they are.
            path = os.path.abspath(source) if far and _is_path(source) else source  # noqa: PTH100
            if datasets[run]:
                cut, notes[run] = _pieces_of_dataset(run, path, collection, pool, jobs)
                pieces += cut
            else:
                pieces += [Piece(run, path, (i, shards)) for i in range(shards)]
        calls = (
            (
                p.name,
                (shared, p.source, p.shard, None if p.topics is None else collection.slice_of(p.topics)),
            )
            for p in pieces
        )
        results = _results(pool, jobs, score_piece, calls)
        for done, (piece, scored) in enumerate(zip(pieces, results, strict=True), 1):
            at: Any = slice(None) if piece.topics is None else piece.topics
            for all_, some in ((values[piece.run], scored.values), (se[piece.run], scored.se)):
                # Each topic is in at most one piece.
                all_[:, at] = np.where(np.isnan(some), all_[:, at], some)
            documents[piece.run, at] += scored.documents
            judged |= {piece.run} if scored.judged else set()
            first.setdefault(piece.run, scored)
            if progress:
                progress(done, len(pieces))
    named, statuses, remarks = [], [], []
    for run, source in enumerate(runs):
        scored = first[run]
        file = os.fspath(source) if _is_path(source) else scored.source
        info = run_info(collection.task, file) or RunInfo(file)
        named.append((info.name or scored.tag, scored.source if file == "-" else file))
        statuses.append(info.status)
        remarks += [note for note in (*notes.get(run, scored.notes), scored.policy_remark) if note]
        if run not in judged and documents[run].any():
            remarks.append(f"{escape(scored.tag)}: none of its documents is judged")
    scores = Scores(tuple(name_runs(named)), plan.measures, qrels.topics, values, se)
    remarks += _unjudged_remarks(scores, hidden, collection.task.candidates)
    scores = replace(
        scores,
        measures=shown,
        values=values[:, : len(shown)],
        se=se[:, : len(shown)],
        comparable=_comparable(collection, replace(plan, measures=shown), values[:, : len(shown)], documents),
        statuses=tuple(statuses) if collection.task.runs else (),
    )
    return replace(scores, notes=(*remarks, *_incomplete_remarks(scores)))


def _comparable(collection: Collection, plan: Plan, values: Floats, documents: Ints) -> Bools:
    """(runs, measures, topics): where a run without a value is incomplete, because one that ranks documents has one.

    A run that ranks fewer documents than that one, or none at all, is incomplete in any case. Another is if most runs
    have a value, or a ranking of judged documents would: no run can make others incomplete by a value that the
    judgements do not allow them.
    """
    limits = [m.depth if isinstance(m, RankingMeasure) else m.cutoff for m in plan.measures]
    reach = np.array([np.iinfo(np.int64).max if limit is None else limit for limit in limits])
    ranked = np.minimum(documents[:, None, :], reach[:, None])
    valued = ~np.isnan(values) & (ranked > 0)
    attainable = 2 * np.sum(valued, axis=0) > np.sum(documents > 0, axis=0)
    silent = ranked < np.max(np.where(valued, ranked, 0), axis=0)
    doubtful = np.flatnonzero(
        np.any(np.isnan(values) & np.any(valued, axis=0) & ~attainable & ~silent, axis=(0, 2))
    )
    if doubtful.size:
        attainable[doubtful] |= defined_on_judged(collection, plan, doubtful.tolist())
    comparable: Bools = np.any(valued, axis=0) & (attainable | silent)
    return comparable


def _is_path(source: Any) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(source, (str, os.PathLike))


def _incomplete_remarks(scores: Scores) -> Iterator[str]:
    """A remark for each run that lacks values which other runs have."""
    for r, run in enumerate(scores.runs):
        names = [str(m) for m, lacks in zip(scores.measures, scores.incomplete[r], strict=True) if lacks]
        if names:
            some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            yield (
                f"{escape(run)}: incomplete for {some}: undefined on topics where other runs have a value; "
                "listed after the complete runs and never marked as the best"
            )


def _unjudged_remarks(scores: Scores, hidden: Sequence[Measure], candidates: str) -> Iterator[str]:
    """A remark for each run that gives more than a twentieth of the attention to unjudged documents."""
    means = ", and not at all in means over a group's judged documents" if candidates == "judged" else ""
    for r, run in enumerate(scores.runs):
        shares = [scores.mean(r, scores.measures.index(measure)).value for measure in hidden]
        large = [share for share in shares if share > UNJUDGED_REMARK]  # not NaN, without exposure
        if large:
            what = f"{max(large):.0%} of the attention goes to unjudged documents"
            yield f"{escape(run)}: {what}, which count as not relevant{means}"

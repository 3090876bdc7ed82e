"""Scoring as a list of independent pieces: in this process, a pool of processes or a cluster."""

import math
import os
import re
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from fairevals.collection.collection import Collection, Slice
from fairevals.collection.groups import Attribute
from fairevals.collection.inputs import Anonymous, Named
from fairevals.collection.intersections import Intersection
from fairevals.collection.run import Run
from fairevals.collection.spelling import Variants, document_variants, topic_variants
from fairevals.errors import FairevalsError, UsageError, escape, pluralize
from fairevals.evaluation.across import ExposureRows, across_topics, exposed_topics
from fairevals.evaluation.expectation import Exposures, defined_on_judged, expectations
from fairevals.evaluation.plan import (
    Plan,
    load,
    open_run,
    parts_of,
    policy_remarks,
    require_judged_topic,
    unjudged_shares,
)
from fairevals.evaluation.scores import Scores
from fairevals.evaluation.workers import AHEAD, Workers
from fairevals.ids import Ids
from fairevals.io.dataset import is_dataset, open_dataset, parts, require_rows, with_topics
from fairevals.io.runs import cut_run
from fairevals.io.specs import RunInfo
from fairevals.io.streams import Source, reads_once
from fairevals.io.task import run_info
from fairevals.measures import Measure, RankingMeasure
from fairevals.measures.shares import Unjudged
from fairevals.typing import Bools, Floats, Ints

UNJUDGED_REMARK = 0.05
"""The share of attention to unjudged documents from which a remark is made."""
UNMAPPED_REMARK = 0.5
"""The share of judged documents without membership above which a remark is made."""


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


def score_piece(
    shared: tuple[Collection, Plan] | None, source: Any, numbers: Ints | None, part: Slice | None
) -> RunScores | None:
    """Read and score a run, or some topics of it, wherever this is called.

    `shared` is None in a process that got it from `_share`. `numbers` are those of the topics that are scored, and
    `part` has what they need beyond it; by default they are all topics, or those in the part of a file. None if there
    is anything wrong with that part: only who reads the whole file can say what, and where.
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
    across, kept = across_topics(plan.measures), []
    for block in opened.blocks():
        here = slice(block.first, block.first + len(block.topics))
        documents[here] = block.retrieved
        judged = judged or bool(np.any(~np.isnan(block.raw_grades) & (block.scores > -np.inf)))
        exposures: Exposures = {}
        estimates = expectations(plan.measures, opened.policy, block, collection.task, exposures)
        if across:
            kept.append(ExposureRows.of(block, exposures, across))
        for m, estimate in enumerate(estimates):
            values[m, here] = estimate.value
            if estimate.se is not None:
                se[m, here] = estimate.se
    numbers = np.arange(shape[1]) if numbers is None else numbers
    variants = document_variants(run, collection.qrels)
    rows = tuple(part.numbered(numbers) for part in kept)
    found = (tuple(run.topics), numbers, documents, opened.diagnosed(), judged, variants, rows)
    return RunScores(run.tag, run.source, values, se, *found)


def _notes(tag: str, topics: Set[str], collection: Collection) -> Iterator[str]:
    qrels, skips = collection.qrels, collection.task.missing == "skip"
    extra = [topic for topic in topics if topic not in qrels.number]
    if extra:
        many = pluralize(len(extra), "topic")
        yield f"{escape(tag)}: skipped {many} without judgements, such as {escape(min(extra))}"
        if (variants := topic_variants(extra, qrels)).count:
            yield f"{escape(tag)}: {variants.remark('topic')}"
    missing = [topic for topic in qrels.topics if topic not in topics]
    if missing:
        many = pluralize(len(missing), "judged topic")
        value = "undefined there" if skips else "utility 0, exposure undefined"
        yield f"{escape(tag)}: has nothing for {many}, such as {escape(missing[0])}: {value}"


def _unmapped_remarks(attributes: Mapping[str, Attribute | Intersection]) -> Iterator[str]:
    """A remark for each attribute that most judged documents lack."""
    for name, attribute in attributes.items():
        if isinstance(attribute, Intersection):
            continue
        lacking, judged = attribute.judged_unmapped, attribute.judged
        if lacking > UNMAPPED_REMARK * judged:
            share = f"{lacking} of {pluralize(judged, 'judged document')} ({lacking / judged:.0%})"
            unmapped = f'unmapped = "{escape(attribute.spec.unmapped)}"'
            yield f"{escape(name)}: {share} have no membership and count as {unmapped} says"


def name_runs(scored: Sequence[tuple[str, str]]) -> list[str]:
    """Names for (tag, file) pairs: the tag and, where tags collide, as much of the path's end as tells them apart.

    >>> name_runs([("bm25", "a/x.run"), ("bm25", "a/y.run"), ("dense", "a/z.run")])
    ['bm25 (x.run)', 'bm25 (y.run)', 'dense']
    >>> name_runs([("t", "teams/a/x.run"), ("t", "teams/b/x.run")])
    ['t (a/x.run)', 't (b/x.run)']
    >>> name_runs([("t", "teams.zip:a/x.run"), ("t", "teams.zip:y.run")])
    ['t (x.run)', 't (y.run)']
    """
    names, ambiguous = [tag for tag, _ in scored], list(range(len(scored)))
    # The ends of each path, the shortest first; a colon is between an archive and its file.
    ends = [[*(f[m.end() :] for m in re.finditer("[/:]", f)), f] for _, f in scored]
    ends = [sorted({*filter(None, some)}, key=len) or [""] for some in ends]
    for length in range(max(map(len, ends), default=0) + 1):
        for i in ambiguous if length else ():
            names[i] = f"{scored[i][0]} ({ends[i][:length][-1]})"
        counts = Counter(names)
        ambiguous = [i for i in ambiguous if counts[names[i]] > 1]
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
    """One unit of work: a run, or some topics of it."""

    run: int
    source: Any
    topics: Ints | None = None
    """The numbers of its topics; None for all, or for those in the part of a file."""

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


LEAST_BYTES = 1 << 16
"""Files are not cut into smaller parts than this."""


def _cut(source: Any, parts: int, collection: Collection, plan: Plan) -> list[tuple[Any, Ints | None]]:
    """A run cut into about so many parts that share no topic, with the numbers of their topics where they are known.

    Parts of a plain file are read by whoever scores them. Any other run is cut only if computing takes longer than
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
    return Path(source).stat().st_size if _is_path(source) and Path(source).is_file() else 0


def _pieces_of_dataset(
    run: int, source: Any, collection: Collection, pool: Executor | Workers | None, jobs: int
) -> list[Piece]:
    """Pieces of a data set that share no topic."""
    dataset, qrels = open_dataset(source), collection.qrels
    calls = ((fragment.path, (fragment,)) for fragment in dataset.files)
    fragments = list(_results(pool, jobs, with_topics, calls))
    require_rows(dataset.name, sum(fragment.rows for fragment in fragments))
    require_judged_topic(dataset.name, sorted({t for file in fragments for t in file.topics}), qrels)
    pieces = []
    for part in parts(dataset, fragments):
        there = part.topics or ()
        part = replace(part, topics=None if part.whole else there)
        pieces.append(Piece(run, part, qrels.numbers(there)))
    return pieces


class _Gathered:
    """The scores of one run, put together from those of its pieces."""

    def __init__(self, measures: int, topics: int) -> None:
        self.values, self.se = np.full((2, measures, topics), np.nan)
        self.documents, self.scored = np.zeros(topics, dtype=np.int64), np.zeros(topics, dtype=bool)
        self.topics: dict[str, None] = {}
        self.pieces: list[RunScores] = []
        self.is_broken = False
        """Whether a piece has something wrong, or a topic that another has too."""

    def add(self, piece: RunScores | None) -> None:
        if piece is None or not self.topics.keys().isdisjoint(piece.topics):
            self.is_broken = True
            return
        self.values[:, piece.numbers], self.se[:, piece.numbers] = piece.values, piece.se
        self.documents[piece.numbers], self.scored[piece.numbers] = piece.documents, True
        self.topics.update(dict.fromkeys(piece.topics))
        self.pieces.append(piece)

    @property
    def needs_whole(self) -> bool:
        """Whether only the whole run can tell what is wrong: a piece is broken, or no topic is judged."""
        return self.is_broken or bool(self.scored.size and not self.scored.any())

    def missing(self, run: int, order: str) -> list[Piece]:
        """A piece for the judged topics that the run lacks, if there are any."""
        numbers = np.flatnonzero(~self.scored)
        tag, file = self.pieces[0].tag, self.pieces[0].source
        nothing = Run(tag, file, [], np.zeros(1, np.int64), Ids.of([]), np.zeros(0), 0, order)
        return [Piece(run, nothing, numbers)] if numbers.size else []


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

    With several jobs large runs are cut into parts that share no topic, and a folder of parquet files always is: each
    part is read where it is scored, and only values of topics come back.
    """
    if not runs:
        raise UsageError("there is no run to score")
    # A name given in Python to a file or a `Run` is shown; random numbers are still drawn by the tag.
    hidden = any(isinstance(run, Anonymous) for run in runs)
    given = [
        run.name if isinstance(run, Anonymous) or (isinstance(run, Named) and _is_whole(run.run)) else ""
        for run in runs
    ]
    runs = [
        run.run if name and isinstance(run, Named) else run for name, run in zip(given, runs, strict=True)
    ]
    # The attention that unjudged documents get is computed beside the measures, for a remark.
    shown = plan.measures
    unjudged = unjudged_shares(part for m in shown for part in parts_of(m))
    if not unjudged and plan.policy.kind != "pl":  # there, exposure alone would cost as much as the measures
        unjudged = (Unjudged(cutoff=plan.requirements.depth),)
    plan = replace(plan, measures=(*shown, *(m for m in unjudged if m not in shown)))
    collection = collection.with_attributes(plan.requirements.attributes)
    qrels, far = collection.qrels, isinstance(executor, SharingExecutor)
    if isinstance(executor, SharingExecutor):
        jobs = executor.jobs
    # Workers elsewhere have other working folders; links stay as they are.
    sources = [os.path.abspath(run) if far and _is_path(run) and run != "-" else run for run in runs]  # noqa: PTH100
    if jobs > 1 or executor is not None:  # other processes cannot read standard input or a pipe
        sources = [load(s, collection, plan) if _is_path(s) and reads_once(s) else s for s in sources]
    datasets = [is_dataset(source) for source in sources]
    pieces = []
    for run, parts_wanted in enumerate(_shares(sources, jobs)):
        if not datasets[run]:
            pieces += [Piece(run, *part) for part in _cut(sources[run], parts_wanted, collection, plan)]
    if not any(datasets):
        jobs = min(jobs, len(pieces))
    gathered = [_Gathered(len(plan.measures), len(qrels.topics)) for _ in runs]
    done = 0
    with _pool(collection.shareable(slices_only=all(datasets)), plan, jobs, executor) as (pool, shared):
        for run in np.flatnonzero(datasets).tolist():
            pieces += _pieces_of_dataset(run, sources[run], collection, pool, jobs)
        while pieces:
            calls = (
                (
                    p.name,
                    (
                        shared,
                        p.source,
                        p.topics,
                        p.topics if p.topics is None else collection.slice_of(p.topics),
                    ),
                )
                for p in pieces
            )
            results = _results(pool, jobs, score_piece, calls)
            for piece, scored in zip(pieces, results, strict=True):
                gathered[piece.run].add(scored)
                done += 1
                if progress:
                    progress(done, max(done, len(pieces)))
            pieces = []
            for run, one in enumerate(gathered):
                if one.needs_whole:
                    gathered[run] = _Gathered(len(plan.measures), len(qrels.topics))
                    pieces.append(Piece(run, sources[run]))
                else:
                    pieces += one.missing(run, collection.task.order)
    named, originals, infos = [], [], []
    remarks = list(_unmapped_remarks(collection.attributes))
    for run, one in enumerate(gathered):
        tag, source = one.pieces[0].tag, one.pieces[0].source
        file = os.fspath(runs[run]) if _is_path(runs[run]) else source
        info = run_info(collection.task, file) or RunInfo(file)
        named.append((given[run] or info.name or tag, source if file == "-" else file))
        originals.append(info.name or tag)
        tag = given[run] or tag
        infos.append(info)
        remarks += _notes(tag, one.topics.keys(), collection)
        remarks += policy_remarks(tag, plan.policy, [piece.diagnosed for piece in one.pieces])
        if one.documents.any() and not any(piece.judged for piece in one.pieces):
            remarks.append(f"{escape(tag)}: none of its documents is judged")
        variants = [piece.variants for piece in one.pieces if piece.variants.count]
        if variants:
            earliest = min(variants, key=lambda some: qrels.number[some.example[0]])
            every = Variants(sum(some.count for some in variants), earliest.example)
            remarks.append(f"{escape(tag)}: {every.remark('document')}")
    values, se = (np.stack([getattr(one, name) for one in gathered]) for name in ("values", "se"))
    documents = np.stack([one.documents for one in gathered])
    across = tuple(
        exposed_topics(
            [rows for piece in one.pieces for rows in piece.exposures],
            across_topics(shown),
            collection,
            one.documents > 0,
        )
        for one in gathered
    )
    scores = Scores(tuple(name_runs(named)), plan.measures, qrels.topics, values, se, across=across)
    remarks += _unjudged_remarks(scores, unjudged, collection.task.candidates)
    valued = np.where(scores.defined & np.isnan(values), 0.0, values)[:, : len(shown)]
    scores = replace(
        scores,
        measures=shown,
        values=values[:, : len(shown)],
        se=se[:, : len(shown)],
        comparable=_comparable(collection, replace(plan, measures=shown), valued, documents),
        statuses=tuple(info.status for info in infos) if collection.task.runs else (),
        teams=tuple(info.team for info in infos) if not hidden and any(info.team for info in infos) else (),
        originals=tuple(originals) if hidden else (),
        labels=plan.labels,
    )
    return replace(scores, notes=(*remarks, *_incomplete_remarks(scores)))


def _shares(sources: Sequence[Any], jobs: int) -> list[int]:
    """Into how many parts each run should be cut: files by their size, so that all jobs have work."""
    if jobs == 1:
        return [1] * len(sources)
    sizes = [_size(source) for source in sources]
    shares = [jobs * size / max(1, sum(sizes)) if size else jobs / len(sources) for size in sizes]
    # Parts of equal size take different time: with twice as many no worker waits long for another.
    return [1 if share <= 1 else 2 * math.ceil(share) for share in shares]


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


def _is_whole(source: Any) -> bool:
    """Whether it has a name of its own: a file or a `Run`."""
    return _is_path(source) or isinstance(source, Run)


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
    """One remark about the runs that give more than a twentieth of the attention to unjudged documents."""
    columns = [scores.measures.index(measure) for measure in hidden]
    # Not NaN, without exposure.
    shares = [
        np.fmax.reduce([0.0, *(scores.mean(r, m).value for m in columns)]) for r in range(len(scores.runs))
    ]
    large = [r for r in np.argsort(shares, kind="stable")[::-1].tolist() if shares[r] > UNJUDGED_REMARK]
    if large:
        some = ", ".join(escape(scores.runs[r]) for r in large[:3])
        some += f" and {pluralize(len(large) - 3, 'more run')}" if len(large) > 3 else ""
        most = f"{'up to ' if len(large) > 1 else ''}{max(shares):.0%} of the attention goes"
        means = ", and not at all in means over a group's judged documents" if candidates == "judged" else ""
        yield f"{some}: {most} to unjudged documents, which count as not relevant{means}"

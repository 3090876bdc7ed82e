"""Score runs: their pieces, in this process, a pool of processes or a cluster, put together again."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from fairevals.collection.collection import Collection
from fairevals.collection.inputs import Anonymous, Named
from fairevals.collection.run import Run
from fairevals.collection.spelling import Variants, topic_variants
from fairevals.errors import UsageError
from fairevals.evaluation import remarks
from fairevals.evaluation.across import across_topics, exposed_topics
from fairevals.evaluation.expectation import defined_on_judged
from fairevals.evaluation.pieces import (
    Piece,
    RunScores,
    SharingExecutor,
    cut_source,
    is_path,
    parts_per_run,
    piece_calls,
    pieces_of_dataset,
    pool_for,
    results_of,
    score_piece,
)
from fairevals.evaluation.plan import Plan, load, parts_of, policy_remarks, unjudged_shares
from fairevals.evaluation.scores import Scores
from fairevals.evaluation.tops import TopRanks
from fairevals.ids import Ids
from fairevals.io.dataset import is_dataset
from fairevals.io.specs import RunInfo
from fairevals.io.streams import reads_once
from fairevals.io.task import run_info
from fairevals.measures import RankingMeasure
from fairevals.measures.shares import Unjudged
from fairevals.typing import Bools, Floats, Ints


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


class _Gathered:
    """The scores of one run, put together from those of its pieces."""

    def __init__(self, plan: Plan, collection: Collection) -> None:
        topics = len(collection.qrels.topics)
        self.values, self.se = np.full((2, len(plan.measures), topics), np.nan)
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
        self.topics |= dict.fromkeys(piece.topics)
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
    top: int = 0,
) -> Scores:
    """Score runs: a list of independent pieces, in this process or over an executor; the result is the same.

    With several jobs large runs are cut into parts that share no topic, and a folder of parquet files always is: each
    part is read where it is scored, and only values of topics come back; and, if asked for, the `top` first ranks.
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
    plan = replace(plan, measures=tuple(dict.fromkeys((*shown, *unjudged)))).keeping(top)
    collection = collection.with_attributes(plan.requirements.attributes)
    gathered = _gathered(runs, collection, plan, jobs, executor, progress)
    named, originals, infos = [], [], []
    for run, one in enumerate(gathered):
        tag, source = one.pieces[0].tag, one.pieces[0].source
        file = os.fspath(runs[run]) if is_path(runs[run]) else source
        info = run_info(collection.task, file) or RunInfo(file)
        named.append((given[run] or info.name or tag, source if file == "-" else file))
        originals.append(info.name or tag)
        infos.append(info)
    names, qrels = name_runs(named), collection.qrels
    extra = [[topic for topic in one.topics if topic not in qrels.number] for one in gathered]
    missing = {
        name: tuple(topic for topic in qrels.topics if topic not in one.topics)
        for name, one, others in zip(names, gathered, extra, strict=True)
        if len(one.topics) - len(others) < len(qrels.topics)
    }
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
    scores = Scores(
        tuple(names), plan.measures, qrels.topics, values, se, missing_topics=missing, across=across
    )
    notes = [
        *remarks.unmapped_documents(collection.attributes),
        *_remarks_on_runs(scores, gathered, extra, collection, plan),
        *remarks.unjudged_attention(scores, unjudged, collection.task.candidates),
    ]
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
        tops=tuple(
            TopRanks.joined([some for piece in one.pieces for some in piece.tops]) for one in gathered if top
        ),
    )
    return replace(scores, notes=(*notes, *remarks.incomplete_runs(scores)))


def _gathered(
    runs: Sequence[Any],
    collection: Collection,
    plan: Plan,
    jobs: int,
    executor: Executor | None,
    progress: Callable[[int, int], None] | None,
) -> list[_Gathered]:
    """The scores of every run. A run that is broken in pieces is scored again as a whole, which tells what is wrong."""
    far = isinstance(executor, SharingExecutor)
    if isinstance(executor, SharingExecutor):
        jobs = executor.jobs
    # Workers elsewhere have other working folders; links stay as they are.
    sources = [os.path.abspath(run) if far and is_path(run) and run != "-" else run for run in runs]  # noqa: PTH100
    if jobs > 1 or executor is not None:  # other processes cannot read standard input or a pipe
        sources = [load(s, collection, plan) if is_path(s) and reads_once(s) else s for s in sources]
    datasets = [is_dataset(source) for source in sources]
    pieces = []
    for run, parts_wanted in enumerate(parts_per_run(sources, jobs)):
        if not datasets[run]:
            pieces += [Piece(run, *part) for part in cut_source(sources[run], parts_wanted, collection, plan)]
    if not any(datasets):
        jobs = min(jobs, len(pieces))
    gathered: list[_Gathered] = []
    done = 0
    with pool_for(collection.shareable(slices_only=all(datasets)), plan, jobs, executor) as (pool, shared):
        for run in np.flatnonzero(datasets).tolist():
            pieces += pieces_of_dataset(run, sources[run], collection, pool, jobs)
        while pieces:
            results = results_of(pool, jobs, score_piece, piece_calls(pieces, shared, collection, jobs))
            for piece, scored in zip(pieces, results, strict=True):
                gathered = gathered or [_Gathered(plan, collection) for _ in runs]
                gathered[piece.run].add(scored)
                done += 1
                if progress:
                    progress(done, max(done, len(pieces)))
            pieces = []
            for run, one in enumerate(gathered):
                if one.needs_whole:
                    gathered[run] = _Gathered(plan, collection)
                    pieces.append(Piece(run, sources[run]))
                else:
                    pieces += one.missing(run, collection.task.order)
    return gathered


def _remarks_on_runs(
    scores: Scores,
    gathered: Sequence[_Gathered],
    extra: Sequence[Sequence[str]],
    collection: Collection,
    plan: Plan,
) -> Iterator[str]:
    """What the reading of the runs showed; `extra` are the topics without judgements that each has."""
    qrels, skips = collection.qrels, collection.task.missing == "skip"
    skipped = {name: topics for name, topics in zip(scores.runs, extra, strict=True) if topics}
    yield from remarks.skipped_topics(skipped)
    spelled = ((name, topic_variants(topics, qrels)) for name, topics in skipped.items())
    yield from remarks.of_runs([(name, some.remark("topic")) for name, some in spelled if some.count])
    yield from remarks.missing_topics(scores.missing_topics, skips=skips)
    policies, unjudged, documents = [], [], []
    for name, one in zip(scores.runs, gathered, strict=True):
        policies += [(name, text) for text in policy_remarks(plan.policy, [p.diagnosed for p in one.pieces])]
        if one.documents.any() and not any(piece.judged for piece in one.pieces):
            unjudged.append((name, "none of its documents is judged"))
        variants = [piece.variants for piece in one.pieces if piece.variants.count]
        if variants:
            earliest = min(variants, key=lambda some: qrels.number[some.example[0]])
            every = Variants(sum(some.count for some in variants), earliest.example)
            documents.append((name, every.remark("document")))
    for kind in (policies, unjudged, documents):
        yield from remarks.of_runs(kind)


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
    return is_path(source) or isinstance(source, Run)

"""The one pipeline: every command and the Python API score through here."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.attention import parse_attention
from fairevals.collection import Exposed, Ranked
from fairevals.collection.blocks import CELLS, Block, Wanted, blocks
from fairevals.collection.inputs import list_runs, load_attribute_by_name, load_qrels, load_run
from fairevals.collection.qrels import Qrels
from fairevals.collection.run import Run
from fairevals.collection.slices import Slice, without_topics
from fairevals.errors import UsageError, counted, shown
from fairevals.ids import Ids
from fairevals.io.dataset import is_dataset, open_dataset, parts, with_topics
from fairevals.io.streams import reads_once
from fairevals.io.task import POLICIES, PolicySpec, Task, read_task
from fairevals.measures import (
    CompositeMeasure,
    ExposureMeasure,
    LinearMeasure,
    Measure,
    RankingMeasure,
    parse_measure,
)
from fairevals.policy.estimate import Estimate
from fairevals.policy.policies import (
    Exposure,
    OneRanking,
    PlackettLuceRun,
    Policy,
    SampledRankings,
    jackknife,
)
from fairevals.scores import Scores
from fairevals.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

    from fairevals.collection.groups import Attribute

CELLS_OF_SAMPLES = 1 << 22
"""How many (topic, sample, rank, group) cells are looked at together, at most."""


@dataclass(frozen=True)
class Collection:
    """What runs are scored against, loaded and indexed once."""

    task: Task
    qrels: Qrels
    groups: Mapping[str, Any] = field(default_factory=dict)
    """Attributes handed in from Python, which count before the task's."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    """Those that were loaded because a measure needs them."""

    @property
    def attribute_names(self) -> tuple[str, ...]:
        """All attributes, loaded or not."""
        return tuple(dict.fromkeys([*self.task.attributes, *self.groups]))

    def with_attributes(self, names: Iterable[str]) -> Collection:
        """The same with these attributes loaded."""
        loaded = {
            name: self.attributes[name]
            if name in self.attributes
            else load_attribute_by_name(name, self.task, self.groups, self.qrels)
            for name in names
        }
        return replace(self, attributes=loaded)

    def shareable(self, *, slices_only: bool = False) -> Collection:
        """What workers need of it; with `slices_only`, nothing that is about topics."""
        task = replace(self.task, max_grade=self.max_grade)  # a slice has only the grades of its own topics
        if not slices_only:
            return replace(self, task=task, groups={})
        attributes = {name: without_topics(attribute) for name, attribute in self.attributes.items()}
        qrels = Slice.of(self.qrels, {}, np.zeros(0, np.int64)).qrels
        return replace(self, task=task, qrels=qrels, groups={}, attributes=attributes)

    def sliced(self, part: Slice) -> Collection:
        """The topics of the slice only."""
        return replace(self, qrels=part.qrels, attributes=part.bind(self.attributes))

    @property
    def max_grade(self) -> float:
        """The task's, or the largest in the qrels."""
        return float(self.task.max_grade) if self.task.max_grade is not None else self.qrels.max_grade


def load_collection(
    task: Task | str | os.PathLike[str] | None, qrels: Any = None, groups: Mapping[str, Any] | None = None
) -> Collection:
    """Bring together a task file (or none), qrels and groups; what is given beside the task counts."""
    found = task if isinstance(task, Task) else read_task(task) if task is not None else Task()
    if qrels is None and found.qrels is None:
        raise UsageError("there are no qrels: give a task that names them, or qrels")
    judged = load_qrels(qrels if qrels is not None else found.qrels)
    if found.max_grade is not None and found.max_grade < judged.max_grade:
        place = found.path or "the task"
        raise UsageError(
            f"{place}: max_grade is {found.max_grade:g}, but {judged.source} has a grade {judged.max_grade:g}"
        )
    return Collection(found, judged, dict(groups or {}))


@dataclass(frozen=True)
class Plan:
    """Which measures are wanted, under which policy, and so what must be read."""

    measures: tuple[Measure, ...]
    policy: PolicySpec
    order: str
    wanted: Wanted

    @classmethod
    def of(
        cls, collection: Collection, measures: Iterable[Any] | None = None, policy: PolicySpec | None = None
    ) -> Plan:
        """Resolve names, cutoffs and attributes; a measure that the task cannot serve is a `UsageError`."""
        task = collection.task
        policy = policy or task.policy
        asked = [parse_measure(m).with_cutoff(task.cutoff) for m in (measures or task.measures)]
        found = tuple({str(m): m for m in asked}.values())
        if not found:
            raise UsageError("there is no measure to compute")
        depths: list[int | None] = []
        attributes: set[str] = set()
        everything = False
        for measure in (part for m in found for part in _parts(m)):
            depths.append(measure.depth)
            everything |= measure.needs_all_documents
            attributes |= _attributes(measure, collection)
        whole = policy.kind == "pl" or any(depth is None for depth in depths)
        depth = None if whole else max(d for d in depths if d is not None)
        names = tuple(name for name in collection.attribute_names if name in attributes)
        return cls(found, policy, task.order, Wanted(depth, everything, names))


def with_components(plan: Plan, collection: Collection) -> Plan:
    """The same plan with, after each composed measure, those that it is made of."""
    asked: list[Measure] = []
    for measure in plan.measures:
        asked.append(measure)
        if isinstance(measure, CompositeMeasure):
            asked.extend(measure.parts())
        elif hasattr(measure, "components"):
            asked.extend(measure.components(collection.attribute_names))
    return Plan.of(collection, asked, plan.policy)


def _parts(measure: Measure) -> Iterator[Measure]:
    """The measure itself, or those that it is made of."""
    if isinstance(measure, CompositeMeasure):
        for part in measure.parts():
            yield from _parts(part)
    else:
        yield measure


def _attributes(measure: Measure, collection: Collection) -> set[str]:
    known = collection.attribute_names
    for name in measure.attributes_used():
        if name not in known:
            there = ", ".join(map(shown, known)) or "no attributes"
            raise UsageError(f"{measure}: there is no attribute {shown(name)!r} (the task has {there})")
    if measure.attributes == "all":
        if not known:
            raise UsageError(f"{measure} needs attributes, and the task has none")
        return set(known)
    return set(measure.attributes_used())


@dataclass(frozen=True)
class RunScores:
    """The scores of one run: values and standard errors are (measures, topics)."""

    tag: str
    source: str
    values: Floats
    se: Floats
    notes: tuple[str, ...]


def score_run(source: Any, collection: Collection, plan: Plan, shard: tuple[int, int] = (0, 1)) -> RunScores:
    """Read a run and score it; with `shard` (i, n) only every n-th block, the rest being NaN."""
    run = load(source, plan)
    policy = make_policy(plan.policy, run)
    if plan.policy.kind != "samples" and len(run.lists) > len(run.topics):
        raise UsageError(
            f"{shown(run.source, 300)} has several rankings of a topic; expected one (or --policy samples)"
        )
    shape = (len(plan.measures), len(collection.qrels.topics))
    values, se = np.full(shape, np.nan), np.full(shape, np.nan)
    pieces = blocks_of(run, collection, plan, CELLS if shard[1] == 1 else CELLS // (1 << 8))
    for number, block in enumerate(pieces):
        if number % shard[1] == shard[0]:
            here = slice(block.first, block.first + len(block.topics))
            for m, estimate in enumerate(expectations(plan.measures, policy, block)):
                values[m, here] = estimate.value
                if estimate.se is not None:
                    se[m, here] = estimate.se
    return RunScores(
        run.tag, run.source, values, se, tuple(_notes(run.tag, set(run.topics), collection.qrels))
    )


def load(source: Any, plan: Plan) -> Run:
    """Read a run as the plan needs it."""
    return load_run(source, order=plan.order, samples=plan.policy.kind == "samples", depth=plan.wanted.depth)


def blocks_of(run: Run, collection: Collection, plan: Plan, cells: int | None = None) -> Iterator[Block]:
    """The run beside the judgements, in blocks of topics; results never depend on how large they are."""
    return blocks(
        run,
        collection.qrels,
        collection.attributes,
        plan.wanted,
        max_grade=collection.max_grade,
        utility_weight=collection.task.utility_weight,
        sampled=plan.policy.kind == "samples",
        cells=cells or CELLS,
    )


def _notes(tag: str, topics: Set[str], qrels: Qrels) -> Iterator[str]:
    extra = [topic for topic in topics if topic not in qrels.number]
    if extra:
        many = counted(len(extra), "topic")
        yield f"{shown(tag)}: left out {many} without judgements, such as {shown(min(extra))}"
    missing = [topic for topic in qrels.topics if topic not in topics]
    if missing:
        many = counted(len(missing), "judged topic")
        yield f"{shown(tag)}: has nothing for {many}, such as {shown(missing[0])}: utility 0, exposure undefined"


def make_policy(spec: PolicySpec, run: Run) -> Policy:
    """The policy that the run is."""
    if spec.kind == "pl":
        return PlackettLuceRun(run.tag, spec.temperature, spec.samples, spec.seed)
    if spec.kind == "samples":
        return SampledRankings()
    if spec.kind != "ranking":
        raise UsageError(f"the policy is {shown(spec.kind)!r}; expected one of {', '.join(POLICIES)}")
    return OneRanking()


def expectations(measures: Sequence[Measure], policy: Policy, block: Block) -> list[Estimate]:
    """The expected value of each measure on each topic of the block: exact where it can be, else sampled."""
    found: dict[str, Estimate] = {}
    exposures: dict[tuple[str, int | None], Exposure] = {}
    needed = {str(part): part for measure in measures for part in _parts(measure)}
    sampled = {}
    for name, measure in needed.items():
        if isinstance(measure, ExposureMeasure) or (isinstance(measure, LinearMeasure) and policy.sampled):
            found[name] = _of_exposure(measure, policy, block, exposures)
        elif isinstance(measure, RankingMeasure):
            sampled[name] = measure
    found.update(_of_rankings(sampled, policy, block))
    for name, estimate in found.items():
        found[name] = _settle_missing(needed[name], block, estimate)
    return [_combined(measure, found) for measure in measures]


def _combined(measure: Measure, found: Mapping[str, Estimate]) -> Estimate:
    if not isinstance(measure, CompositeMeasure):
        return found[str(measure)]
    parts = [_combined(part, found) for part in measure.parts()]
    values = tuple(part.value for part in parts)
    centre = measure.combine(values)
    if all(part.se is None for part in parts):
        return Estimate(centre)
    # To first order: how far the value moves when each part moves by its standard error.
    squares = np.zeros(centre.shape)
    for i, part in enumerate(parts):
        if part.se is not None:
            moved = tuple(v + part.se if j == i else v for j, v in enumerate(values))
            squares = squares + (measure.combine(moved) - centre) ** 2
    return Estimate(centre, np.sqrt(squares))


def _of_exposure(
    measure: ExposureMeasure | LinearMeasure,
    policy: Policy,
    block: Block,
    known: dict[tuple[str, int | None], Exposure],
) -> Estimate:
    attention = parse_attention(measure.attention)
    key = (str(attention), measure.cutoff)
    if key not in known:
        known[key] = policy.exposure(block, attention, measure.cutoff)
    exposure = known[key]
    value = measure.of_exposure(_exposed(block, exposure.value))
    if exposure.left_out is None:
        return Estimate(value)
    without = np.stack([measure.of_exposure(_exposed(block, each)) for each in exposure.left_out])
    return jackknife(value, without)


def _exposed(block: Block, exposure: Floats) -> Exposed:
    return Exposed(
        grades=block.grades,
        present=block.present,
        ideal=block.ideal,
        max_grade=block.max_grade,
        attributes=block.attributes,
        utility_weight=block.utility_weight,
        exposure=exposure,
        retrieved=block.scores > -np.inf,
    )


def _of_rankings(measures: Mapping[str, RankingMeasure], policy: Policy, block: Block) -> dict[str, Estimate]:
    """Means over the policy's rankings, all measures on the same ones."""
    if not measures:
        return {}
    depths = [measure.depth for measure in measures.values()]
    depth = None if None in depths else max(d for d in depths if d is not None)
    if isinstance(policy, OneRanking):
        ranked = block.ranked(depth)
        return {name: Estimate(measure.of_ranking(ranked)) for name, measure in measures.items()}
    order = policy.rankings(block, depth)
    topics, samples, ranks = order.shape
    groups = max([1, *(len(a.groups) for a in block.attributes.values())])
    step = max(1, CELLS_OF_SAMPLES // max(1, topics * ranks * groups))
    values = {name: np.zeros((topics, samples)) for name in measures}
    for start in range(0, samples, step):
        part: Ranked = block.reordered(order[:, start : start + step])
        for name, measure in measures.items():
            values[name][:, start : start + step] = measure.of_ranking(part)
    has_any: Bools = np.any(order >= 0, axis=2)
    return {name: _sample_mean(found, has_any, policy.sampled) for name, found in values.items()}


def _sample_mean(values: Floats, counts: Bools, sampled: bool) -> Estimate:
    """Mean over the samples that count, (topics, samples) → (topics,), and its standard error if they were drawn."""
    # A topic without any ranking: all its (empty) samples say what the measure is worth on nothing.
    counts = counts | ~counts.any(axis=1, keepdims=True)
    count = np.maximum(counts.sum(axis=1), 1)
    values = np.where(counts, values, 0.0)
    mean = np.cumsum(values, axis=1)[:, -1] / count if values.shape[1] else np.zeros(values.shape[0])
    if not sampled:
        return Estimate(mean)
    spread = np.where(counts, values - mean[:, None], 0.0) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = spread.sum(axis=1) / (count - 1)
    return Estimate(mean, np.sqrt(variance / count))


def _settle_missing(measure: Measure, block: Block, estimate: Estimate) -> Estimate:
    """Topics of which the run has nothing: the measure's value for those, where it is defined there at all."""
    gone = block.retrieved == 0
    if not gone.any():
        return estimate
    value = estimate.value.copy()
    if np.isnan(measure.missing):
        value[gone] = np.nan
    else:  # still undefined where no ranking could have had a value
        value[gone & ~np.isnan(value)] = measure.missing
    se = None if estimate.se is None else np.where(gone, np.nan, estimate.se)
    return Estimate(value, se)


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

    def share(self, value: Any) -> Any:
        """Something to hand to `submit` in place of the value, which the workers then get."""
        raise NotImplementedError


_shared: list[tuple[Collection, Plan]] = []


def _share(collection: Collection, plan: Plan) -> None:
    """Give a worker process what all pieces need, once."""
    _shared[:] = [(collection, plan)]


@dataclass(frozen=True)
class Piece:
    """A piece of the work: a run, every n-th block of one, or some topics of a data set."""

    run: int
    source: Any
    shard: tuple[int, int] = (0, 1)
    topics: Ints | None = None
    """The numbers of the topics that it is about; None for all."""


def score_piece(
    shared: tuple[Collection, Plan] | None, source: Any, shard: tuple[int, int], part: Slice | None
) -> RunScores:
    """Score a piece wherever this runs; `part` is what the topics of the piece need beyond what all share."""
    collection, plan = shared or _shared[0]
    return score_run(source, collection if part is None else collection.sliced(part), plan, shard)


@dataclass(frozen=True)
class _Workers:
    """Where pieces are worked on: here (no pool), or by a pool that knows `shared`."""

    pool: Executor | None
    shared: Any
    ahead: int
    """How many pieces may wait; the rest is not even cut yet."""

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
    """Workers that have been told what all pieces need."""
    if executor is None and jobs == 1:
        yield _Workers(None, (collection, plan), 1)
    elif executor is None:
        pool = ProcessPoolExecutor(jobs, initializer=_share, initargs=(collection, plan))
        try:
            yield _Workers(pool, None, 4 * jobs)
        finally:
            pool.shutdown(cancel_futures=True)
    else:
        both: Any = (collection, plan)
        shared = executor.share(both) if isinstance(executor, SharingExecutor) else both
        yield _Workers(executor, shared, 4 * max(jobs, 2))


def _at_hand(source: Any, plan: Plan) -> Any:
    """The source, or the run itself where other processes could not read it (again): `-`, a pipe."""
    if not isinstance(source, (str, os.PathLike)) or not reads_once(source):
        return source
    return load(source, plan)


def _shards(runs: int, jobs: int, plan: Plan) -> int:
    """Into how many pieces each run is cut: one, unless there is more work in computing than in reading."""
    return 1 if plan.policy.kind == "ranking" or runs >= jobs else -(-jobs // runs)


def _pieces_of_dataset(
    run: int, source: Any, qrels: Qrels, workers: _Workers
) -> tuple[list[Piece], tuple[str, ...]]:
    """A data set cut into parts that share no topic, the judged topics that it lacks, and what to say of it."""
    dataset = open_dataset(source)
    fragments = list(workers.run(with_topics, ((fragment,) for fragment in dataset.files)))
    pieces = []
    topics: set[str] = set()
    for part in parts(dataset, fragments):
        there = part.topics or ()
        topics.update(there)
        numbers = sorted(qrels.number[topic] for topic in there if topic in qrels.number)
        pieces.append(Piece(run, replace(part, topics=None if part.whole else there), topics=_array(numbers)))
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
    collection = collection.with_attributes(plan.wanted.attributes)
    if isinstance(executor, SharingExecutor):
        jobs = executor.jobs
    if jobs > 1 or executor is not None:
        runs = [_at_hand(source, plan) for source in runs]
    far = isinstance(executor, SharingExecutor)
    datasets = [is_dataset(source) for source in runs]
    shards = _shards(len(runs), jobs, plan)
    if not any(datasets):
        jobs = min(jobs, len(runs) * shards)
    pieces: list[Piece] = []
    notes: dict[int, tuple[str, ...]] = {}
    shape = (len(runs), len(plan.measures), len(collection.qrels.topics))
    values, se = np.full(shape, np.nan), np.full(shape, np.nan)
    named: dict[int, tuple[str, str]] = {}
    with _workers(collection.shareable(slices_only=all(datasets)), plan, jobs, executor) as workers:
        for run, source in enumerate(runs):
            path = _absolute(source) if far else source
            if datasets[run]:
                found, notes[run] = _pieces_of_dataset(run, path, collection.qrels, workers)
                pieces += found
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
            named.setdefault(piece.run, (scored.tag, given if given != "-" else scored.source))
            notes.setdefault(piece.run, scored.notes)
            if progress:
                progress(done, len(pieces))
    return Scores(
        runs=tuple(name_runs([named[run] for run in range(len(runs))])),
        measures=plan.measures,
        topics=collection.qrels.topics,
        values=values,
        se=se,
        notes=tuple(note for run in range(len(runs)) for note in notes[run]),
    )


def _slice(piece: Piece, collection: Collection) -> Slice | None:
    """What is sent along with a piece that is about some topics only."""
    return None if piece.topics is None else Slice.of(collection.qrels, collection.attributes, piece.topics)


def _absolute(source: Any) -> Any:
    """A path that means the same in another working folder."""
    return os.path.abspath(source) if isinstance(source, (str, os.PathLike)) else source  # noqa: PTH100 -- links stay


def evaluate(
    runs: Any,
    qrels: Any = None,
    measures: Iterable[Any] | None = None,
    *,
    task: Task | str | os.PathLike[str] | None = None,
    groups: Mapping[str, Any] | None = None,
    policy: str | PolicySpec | None = None,
    samples: int | None = None,
    seed: int | None = None,
    temperature: float | None = None,
    per_topic: bool = False,
    jobs: int = 1,
) -> pd.DataFrame:
    """Score runs and return a table with columns run, topic, measure, value, se.

    `runs` is a path, a DataFrame (topic, doc, score[, sample]), a dict of dicts {topic: {doc: score}}, a `Run`,
    a list of those, or a dict {name: run}. `qrels` is a path, a DataFrame (topic, doc, grade) or a dict of dicts.
    `groups` is {attribute: …}, see `fairevals.Attribute.of`. A `task` gives defaults for all but the runs.

    The rows with topic `all` are means over the topics on which the measure is defined; an undefined value is
    NaN. `se` is the standard error from sampling rankings, NaN where the value is exact.

    >>> run = {"q1": {"a": 2.0, "b": 1.0}}
    >>> evaluate(run, {"q1": {"b": 1}}, ["nDCG@10", "RR"])
       run topic  measure    value  se
    0  run   all  nDCG@10  0.63093 NaN
    1  run   all       RR  0.50000 NaN
    """
    collection = load_collection(task, qrels, groups)
    spec = policy if isinstance(policy, PolicySpec) else collection.task.policy
    if isinstance(policy, str):
        spec = replace(spec, kind=policy)
    given: dict[str, Any] = {"samples": samples, "seed": seed, "temperature": temperature}
    spec = replace(spec, **{key: value for key, value in given.items() if value is not None})
    plan = Plan.of(collection, measures, spec)
    return score(list_runs(runs), collection, plan, jobs=jobs).frame(per_topic)

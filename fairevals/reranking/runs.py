"""Re-rank the topics of a run."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from fairevals.attention import AttentionLike
from fairevals.collection.blocks import Requirements, blocks
from fairevals.collection.collection import Collection, load_collection
from fairevals.collection.inputs import list_runs
from fairevals.collection.qrels import Qrels
from fairevals.collection.run import Run, ranking_order
from fairevals.errors import RemarkWarning, UsageError, check_known, escape, pluralize
from fairevals.evaluation.plan import Plan, open_run, policy_remarks
from fairevals.ids import Ids, Index
from fairevals.io.qrels import QrelsColumns
from fairevals.io.task import Task, read_task
from fairevals.policy.sampling import Seed, whole_seed
from fairevals.reranking.topics import (
    INFEASIBLE,
    OFFSETS,
    UNTOUCHED,
    RankedTopic,
    Rankings,
    Reranking,
    reranked,
    untouched,
)

if TYPE_CHECKING:
    import pandas as pd


class RerankedTopic(NamedTuple):
    """How near the groups of a topic come to their shares of exposure."""

    topic: str
    before: float
    """The largest difference of a group's share of exposure from its goal, in the run as it was."""
    after: float
    """The same in the new run."""
    note: str
    """`infeasible` if no offsets, or too few documents of a group, meet the goal; `untouched` if there is none.

    There is none if the topic is not one of the task, and where the attribute does not apply or has no target.
    """


@dataclass(frozen=True)
class Reranked:
    """A run that was re-ranked, and how near each of its topics came to the goal."""

    run: Run
    strength: float
    topics: tuple[RerankedTopic, ...]
    remarks: tuple[str, ...] = ()

    def count(self, note: str) -> int:
        """The number of topics that are `infeasible` or `untouched`."""
        return sum(topic.note == note for topic in self.topics)

    def mean(self, when: Literal["before", "after"]) -> float:
        """The mean of `before` or `after` over the topics that have one."""
        gaps = [gap for topic in self.topics if not np.isnan(gap := getattr(topic, when))]
        return float(np.mean(gaps)) if gaps else np.nan

    def frame(self) -> pd.DataFrame:
        """One row per topic: topic, before, after, note."""
        import pandas as pd

        return pd.DataFrame(self.topics, columns=RerankedTopic._fields)

    def __repr__(self) -> str:
        goal = f"shares off by {self.mean('before'):.4f} before, {self.mean('after'):.4f} after"
        counts = f"{self.count(INFEASIBLE)} infeasible, {self.count(UNTOUCHED)} untouched"
        return f"<Reranked {self.run.tag!r}: {pluralize(len(self.topics), 'topic')}, {goal}, {counts}>"


def rerank(
    run: Any,
    method: str = "parity",
    *,
    attr: str,
    strength: float | None = None,
    qrels: Any = None,
    task: Task | str | os.PathLike[str] | None = None,
    groups: Mapping[str, Any] | None = None,
    protected: str | None = None,
    alpha: float = 0.1,
    attention: AttentionLike = "log2",
    cutoff: int | None = None,
    temperature: float | None = None,
    samples: int = 100,
    seed: Seed | Literal["task"] = "task",
) -> Reranked:
    """Re-rank a run so that the groups of an attribute share exposure as wanted.

    Offsets: `parity`, `target` and `merit` read the scores, divided by `temperature`, as log-weights of a
    Plackett-Luce policy and add `strength`·Σ_g m(d,g)·b_g to them, with offsets b for each topic with which, at
    strength 1, the exact exposures meet the goal. Groups share exposure by their numbers of retrieved documents
    (`parity`), by the attribute's target (`target`), or by the sums of predicted grades (`merit`). The result is again
    a Plackett-Luce policy: score it with the same temperature. Other strengths trace a curve from the run, at 0.

    After `parity` all groups have the same mean exposure, and then D_group is 0 whatever the grades, because it only
    counts over-exposure of the group of higher merit. This holds for the attention and cutoff given here, where the
    candidates are the documents of the run.

    One ranking, for the attribute's target: `fa-ir` tests every prefix for too few documents of the group `protected`,
    at the level `alpha`; `detconstsort` gives every prefix of k at least ⌊target·k⌋ documents of each group; both take
    `strength` as a factor of the target, from 0 to 1. Of soft memberships, `fa-ir` counts a document as protected if
    more than half of it is, and `detconstsort` gives it to the group of its largest membership, unless several share
    it. `quota` mixes score and need with the weight `strength` (default 0.5). `lp` writes `samples` rankings of the
    mixture that trades utility for D_group of the predicted grades with λ = `strength` (default 10): score it as
    samples.

    Predicted grades are the scores, scaled to the range of the grades in each topic. Judgements are used only for
    that range, and for a target that depends on them: a task with `groups` needs no `qrels`. `cutoff` is the task's
    unless it is given. `run`, `task`, `groups` and `seed` are as in `evaluate`.

    Returns:
        A `Reranked`: `.run`, `.frame()` with how near each topic came to its goal, `.remarks`.

    >>> groups = {"SEX": {"ann": "f", "bob": "m", "cai": "m"}}
    >>> fair = rerank({"nurse": {"bob": 3.0, "cai": 2.0, "ann": 0.0}}, "parity", attr="SEX", groups=groups)
    >>> fair
    <Reranked 'run-parity-1': 1 topic, shares off by 0.0845 before, 0.0000 after, 0 infeasible, 0 untouched>
    >>> fair.run.to_frame().round(3)
       topic  doc  rank  score
    0  nurse  bob     1  1.722
    1  nurse  ann     2  1.278
    2  nurse  cai     3  0.722
    """
    listed = list_runs(run)
    if len(listed) != 1:
        raise UsageError(f"there are {len(listed)} runs; expected one")
    collection = load_labels(task, qrels, groups)
    spec = collection.task.policy
    number = spec.seed if isinstance(seed, str) and seed == "task" else whole_seed(seed)
    how = Reranking(
        *(method, attr, protected, alpha, attention),
        cutoff=collection.task.cutoff if cutoff is None else cutoff,
        temperature=spec.temperature if temperature is None else temperature,
        samples=samples,
        seed=number,
    )
    (result,) = rerank_run(listed[0], collection, how, [strength])
    for remark in result.remarks:
        warnings.warn(RemarkWarning(remark), stacklevel=2)
    return result


def load_labels(task: Any, qrels: Any = None, groups: Mapping[str, Any] | None = None) -> Collection:
    """The task and its attributes, with judgements if there are any."""
    if isinstance(task, (str, os.PathLike)):
        task = read_task(task)
    if qrels is None and not any(path.exists() for path in getattr(task, "qrels", ())):
        qrels = Qrels("(no qrels)", (), np.zeros(0, np.int64), Ids.of([]), np.zeros(0))
    return load_collection(task, qrels, groups)


def rerank_run(
    source: Any,
    collection: Collection,
    how: Reranking,
    strengths: Sequence[float | None] = (None,),
    progress: Callable[[int, int], object] | None = None,
) -> list[Reranked]:
    """Re-rank every topic of a run with each strength."""
    factors = [how.factor(strength) for strength in strengths]
    policy = replace(collection.task.policy, kind="pl", temperature=how.temperature)
    opened = open_run(source, collection, Plan.reading(policy), check_topics=False)
    run = opened.run
    known = _with_documents(collection, run).with_attributes((how.attr,))
    if how.protected is not None:
        check_known("group", how.protected, known.attributes[how.attr].spec.groups)
    found: list[list[Rankings]] = [[] for _ in factors]
    topics: list[str] = []
    for topic in _topics(run, known, how):
        rankings = reranked(topic, how, factors) if topic.applies else [untouched(topic)] * len(factors)
        for each, ranking in zip(found, rankings, strict=True):
            each.append(ranking)
        topics.append(topic.name)
        if progress:
            progress(len(topics), len(run.topics))
    for name, start, end in zip(run.topics, run.offsets[:-1], run.offsets[1:], strict=True):
        if name not in known.qrels.number:
            topics.append(name)
            for each in found:
                each.append(
                    Rankings(np.arange(end - start)[None], run.scores[None, start:end], note=UNTOUCHED)
                )
    remarks = () if how.method not in OFFSETS else policy_remarks(policy, [opened.diagnosed()])
    shared = tuple(f"{escape(run.tag)}: {remark}" for remark in remarks)
    return [
        Reranked(
            _joined(run, topics, rankings, f"{run.tag}-{how.method}-{factor:g}"),
            factor,
            tuple(RerankedTopic(topic, *found[2:]) for topic, found in zip(topics, rankings, strict=True)),
            shared,
        )
        for factor, rankings in zip(factors, found, strict=True)
    ]


def _topics(run: Run, known: Collection, how: Reranking) -> Iterator[RankedTopic]:
    needs_target = how.method not in ("parity", "merit", "lp")
    for block in blocks(run, known, Requirements(attributes=(how.attr,), by_rank=(how.attr,))):
        view = block.attributes[how.attr]
        for t in np.flatnonzero(block.retrieved > 0).tolist():
            n = int(block.retrieved[t])
            membership, target = view.membership[t, :n], view.target[t]
            applies = bool(view.applies[t] and membership.any())
            if needs_target:
                applies = applies and not np.isnan(target).any()
            yield RankedTopic(
                run.tag,
                block.topics[t],
                block.scores[t, :n],
                membership,
                target,
                view.groups,
                block.max_grade or 1.0,
                applies,
            )


def _joined(run: Run, topics: Sequence[str], rankings: Sequence[Rankings], tag: str) -> Run:
    """The run of these rankings of its topics."""
    start_of = dict(zip(run.topics, run.offsets.tolist(), strict=False))
    lists: list[tuple[str, str]] = []
    rows, scores = [np.zeros(0, np.int64)], [np.zeros(0)]
    for topic, ranking in zip(topics, rankings, strict=True):
        several = len(ranking.order) > 1
        lists += [(topic, str(sample) if several else "") for sample in range(1, len(ranking.order) + 1)]
        rows += [start_of[topic] + order for order in ranking.order]
        scores += list(ranking.scores)
    docs, values = run.docs.take(np.concatenate(rows)), np.concatenate(scores)
    lengths = [len(row) for row in rows[1:]]
    if run.order == "score":  # offsets may bring about ties
        order = ranking_order(np.repeat(np.arange(len(lists)), lengths), docs, values)
        docs, values = docs.take(order), values[order]
    return Run(tag, tag, lists, np.cumsum([0, *lengths]), docs, values, len(docs), run.order)


def _with_documents(collection: Collection, run: Run) -> Collection:
    """The same with grade 0 for every unjudged document of the run, so that topics have targets before judging.

    The run's topics that are not of the task are left out, unless it has none.
    """
    qrels = collection.qrels
    topics = list(dict.fromkeys([*qrels.topics, *collection.topics])) or run.topics
    number = {topic: i for i, topic in enumerate(topics)}
    topic_of = np.repeat([number.get(topic, -1) for topic, _ in run.lists], np.diff(run.offsets))
    is_new = Index(qrels.topic_of, qrels.docs).find(topic_of, run.docs) < 0
    new = np.flatnonzero(is_new & (topic_of >= 0))
    columns = QrelsColumns(
        qrels.source,
        topics,
        np.concatenate([qrels.topic_of, topic_of[new]]),
        Ids.concatenate([qrels.docs, run.docs.take(new)]),
        np.concatenate([qrels.grades, np.zeros(new.size)]),
    )
    return replace(collection, qrels=Qrels.of(columns), attributes={})

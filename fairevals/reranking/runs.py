"""Re-rank the topics of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fairevals.attention import AttentionLike
from fairevals.collection.blocks import Requirements, blocks
from fairevals.collection.collection import Collection
from fairevals.collection.qrels import Qrels
from fairevals.collection.run import Run
from fairevals.errors import UsageError, escape, unknown
from fairevals.evaluation.plan import Plan, load
from fairevals.ids import Ids, Index
from fairevals.io.qrels import QrelsColumns
from fairevals.io.specs import PolicySpec
from fairevals.policy.offsets import MET, exposure_offsets
from fairevals.policy.policies import generator
from fairevals.reranking.greedy import det_const_sort, fa_ir, quota
from fairevals.reranking.lp import fair_mixture
from fairevals.typing import Floats, Ints

OFFSETS = ("parity", "target", "merit")
METHODS = (*OFFSETS, "fa-ir", "detconstsort", "quota", "lp")
STRENGTHS = {"quota": 0.5, "lp": 10.0}
"""The strength of a method, unless it is 1."""
LONGEST_PROGRAMME = 200
"""How many documents `lp` takes for more than two groups: it has a variable for each of them and each rank."""


@dataclass(frozen=True)
class Reranking:
    """How a run is re-ranked.

    Args:
        method: `parity`, `target` and `merit` add offsets to the log-weights of a Plackett-Luce run, so that groups
            share exposure by their numbers of documents, by the attribute's target, or by the sums of their documents'
            weights e^s. `fa-ir`, `detconstsort` and `quota` build one ranking for the attribute's target. `lp` takes
            the scores, scaled to the range of grades, as predicted grades, and mixes rankings that trade utility for
            D_group.
        attr: the attribute.
        strength: of offsets, the factor α; of `fa-ir` and `detconstsort`, a factor of the target from 0 to 1; of
            `quota`, the weight of need against score from 0 to 1; of `lp`, its λ. By default 1, for `quota` 0.5, for
            `lp` 10.
        protected: the group that `fa-ir` protects.
        alpha: the level of its test.
        attention, cutoff: of the exposure that offsets share out.
        temperature: divides the log-weights.
        samples, seed: of the rankings that `lp` writes for each topic.
    """

    method: str
    attr: str
    strength: float | None = None
    protected: str | None = None
    alpha: float = 0.1
    attention: AttentionLike = "log2"
    cutoff: int | None = None
    temperature: float = 1.0
    samples: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown("method", self.method, METHODS)
        limit = np.inf if self.method in (*OFFSETS, "lp") else 1.0
        if not 0 <= self.factor <= limit or not np.isfinite(self.factor):
            expected = "a number of at least 0" if limit > 1 else "a number from 0 to 1"
            raise UsageError(f"the strength of {self.method} is {self.factor:g}; expected {expected}")
        if (self.protected is None) == (self.method == "fa-ir"):
            wanted = "needs the group to protect" if self.protected is None else "protects no single group"
            raise UsageError(f"{self.method} {wanted}")

    @property
    def factor(self) -> float:
        """The strength, or that of the method."""
        return STRENGTHS.get(self.method, 1.0) if self.strength is None else self.strength

    @property
    def name(self) -> str:
        """What it adds to the name of a run."""
        return f"{self.method}-{self.factor:g}"


class Reranked(NamedTuple):
    """A run that was re-ranked, and the topics on which that was not, or not fully, possible."""

    run: Run
    unmet: dict[str, float]
    """Topics whose groups cannot share exposure as wanted, with the largest difference of a share from its goal."""
    untouched: tuple[str, ...]
    """Topics that are as they were: the attribute does not apply to them, or their target is undefined."""


def rerank(source: Any, collection: Collection, how: Reranking) -> Reranked:
    """Re-rank every topic of a run; judgements are used only for a target that depends on them.

    >>> from fairevals.collection.collection import load_collection
    >>> run = Run.from_dict({"q": {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.0}}, "bm25")
    >>> known = load_collection(None, {"q": {"a": 1}}, {"SEX": {"a": "m", "b": "m", "c": "f", "d": "f"}})
    >>> rerank(run, known, Reranking("detconstsort", "SEX")).run.to_frame().doc.tolist()
    ['a', 'c', 'b', 'd']
    """
    run = load(source, collection, Plan.reading(PolicySpec("pl", temperature=how.temperature)))
    if len(run.lists) > len(run.topics):
        raise UsageError(f"{escape(run.source, 300)} has several rankings of a topic; expected one")
    known = _with_documents(collection, run).with_attributes((how.attr,))
    start_of = dict(zip(run.topics, run.offsets.tolist(), strict=False))
    lists: list[tuple[str, str]] = []
    rows, scores = [], []
    unmet: dict[str, float] = {}
    untouched = []
    for block in blocks(run, known, Requirements(attributes=(how.attr,))):
        view = block.attributes[how.attr]
        for t in np.flatnonzero(block.retrieved > 0).tolist():
            name, n = block.topics[t], int(block.retrieved[t])
            topic = _Topic(
                run.tag, name, block.scores[t, :n] / how.temperature, view.membership[t, :n], view.target[t]
            )
            if view.applies[t] and not np.isnan(topic.target).any():
                found = _reranked(topic, view.groups, block.max_grade, how)
            else:
                untouched.append(name)
                found = _Rankings(np.arange(n)[None], topic.scores[None])
            if found.gap > MET:
                unmet[name] = found.gap
            several = len(found.order) > 1
            lists += [(name, str(sample) if several else "") for sample in range(1, len(found.order) + 1)]
            rows += [start_of[name] + order for order in found.order]
            scores += list(found.scores)
    docs, tag = run.docs.take(np.concatenate(rows)), f"{run.tag}-{how.name}"
    offsets = np.cumsum([0, *map(len, rows)])
    new = Run(tag, tag, lists, offsets, docs, np.concatenate(scores), len(docs))
    return Reranked(new, unmet, tuple(untouched))


class _Topic(NamedTuple):
    run: str
    name: str
    scores: Floats
    """Of its documents, best first."""
    membership: Floats
    """(documents, groups)."""
    target: Floats


class _Rankings(NamedTuple):
    """One or several orders (m, documents) of a topic, with descending scores, and how far a share is from its goal."""

    order: Ints
    scores: Floats
    gap: float = 0.0


def _reranked(topic: _Topic, groups: tuple[str, ...], max_grade: float, how: Reranking) -> _Rankings:
    scores, membership, n = topic.scores, topic.membership, len(topic.scores)
    if how.method in OFFSETS:
        return _offset(topic, how)
    places = np.arange(n, 0, -1, dtype=np.float64)
    if how.method == "lp":
        order = _drawn(topic, max_grade, how)
        return _Rankings(order, np.broadcast_to(places, order.shape))
    share = how.factor * topic.target
    if how.method == "quota":
        order = quota(scores, membership, topic.target, how.factor)
    elif how.method == "detconstsort":
        order = det_const_sort(np.where(membership.any(axis=1), membership.argmax(axis=1), -1), share)
    elif how.protected in groups:
        protected = groups.index(how.protected)
        order = fa_ir(membership[:, protected] > 0.5, float(share[protected]), how.alpha)
    else:
        raise unknown("group", str(how.protected), groups)
    return _Rankings(order[None], places[None])


def _offset(topic: _Topic, how: Reranking) -> _Rankings:
    """The ranking by scores with offsets."""
    scores, membership = topic.scores, topic.membership
    if how.method == "target":
        goal = topic.target
    else:
        weights = np.exp(scores - scores.max()) if how.method == "merit" else np.ones(len(scores))
        goal = weights @ membership
    value, share, goal = exposure_offsets(
        scores[None], membership[None], goal[None], how.attention, how.cutoff
    )
    moved = scores + how.factor * (membership @ value[0])
    order = np.argsort(-moved, kind="stable")
    # Without documents of any group there is nothing to share.
    return _Rankings(order[None], moved[order][None], float(np.nan_to_num(np.abs(share - goal)).max()))


def _drawn(topic: _Topic, max_grade: float, how: Reranking) -> Ints:
    """Rankings drawn from the mixture of the linear programme."""
    groups, n = int(topic.membership.any(axis=0).sum()), len(topic.scores)
    if groups > 2 and n > LONGEST_PROGRAMME:
        expected = f"at most {LONGEST_PROGRAMME} where there are more than two groups"
        raise UsageError(
            f"topic {escape(topic.name)!r} has {n} documents of {groups} groups; lp takes {expected}"
        )
    grades = max_grade * (topic.scores - topic.scores.min()) / (np.ptp(topic.scores) or 1.0)
    return fair_mixture(grades, topic.membership, how.factor).sample(
        how.samples, generator(how.seed, topic.run, topic.name)
    )


def _with_documents(collection: Collection, run: Run) -> Collection:
    """The same with grade 0 for every unjudged document of the run, so that all its topics have targets."""
    qrels = collection.qrels
    topics = list(dict.fromkeys([*qrels.topics, *run.topics]))
    number = {topic: i for i, topic in enumerate(topics)}
    topic_of = np.repeat([number[topic] for topic, _ in run.lists], np.diff(run.offsets))
    new = np.flatnonzero(Index(qrels.topic_of, qrels.docs).find(topic_of, run.docs) < 0)
    columns = QrelsColumns(
        qrels.source,
        topics,
        np.concatenate([qrels.topic_of, topic_of[new]]),
        Ids.concatenate([qrels.docs, run.docs.take(new)]),
        np.concatenate([qrels.grades, np.zeros(new.size)]),
    )
    return replace(collection, qrels=Qrels.of(columns), attributes={})

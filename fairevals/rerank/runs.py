"""Re-rank the topics of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fairevals.attention import AttentionLike
from fairevals.collection.collection import Collection
from fairevals.collection.groups import Attribute
from fairevals.collection.qrels import Qrels
from fairevals.collection.run import Run
from fairevals.errors import UsageError, escape, unknown
from fairevals.evaluation.plan import Plan, load
from fairevals.ids import Ids, Index
from fairevals.io.qrels import QrelsColumns
from fairevals.io.task import PolicySpec
from fairevals.policy.offsets import MET, exposure_offsets
from fairevals.policy.policies import generator
from fairevals.rerank.greedy import det_const_sort, fa_ir, quota
from fairevals.rerank.lp import fair_mixture
from fairevals.typing import Floats, Ints

OFFSETS = ("parity", "target", "merit")
METHODS = (*OFFSETS, "fa-ir", "detconstsort", "quota", "lp")
STRENGTHS = {"quota": 0.5, "lp": 10.0}
"""The strength of a method, unless it is 1."""
LONGEST_PROGRAMME = 200
"""How many documents `lp` takes for more than two groups: its programme has a variable for each of them and each rank."""


@dataclass(frozen=True)
class Reranking:
    """How a run is re-ranked.

    Args:
        method: `parity`, `target` and `merit` add offsets to the log-weights of a Plackett-Luce run, so that groups share
            exposure by their numbers of documents, by the attribute's target, or by the sums of their documents' weights
            e^s. `fa-ir`, `detconstsort` and `quota` build one ranking for the attribute's target. `lp` takes the scores,
            scaled to the range of grades, as predicted grades, and mixes rankings that trade utility for D_group.
        attr: the attribute.
        strength: of offsets, the factor α; of `fa-ir` and `detconstsort`, a factor of the target from 0 to 1; of `quota`,
            the weight of need against score from 0 to 1; of `lp`, its λ. By default 1, for `quota` 0.5, for `lp` 10.
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
    known = _with_documents(collection, run)
    attribute = known.with_attributes((how.attr,)).attributes[how.attr]
    if how.protected is not None and how.protected not in attribute.spec.groups:
        raise unknown("group", how.protected, attribute.spec.groups)
    lists: list[tuple[str, str]] = []
    rows, scores = [], []
    unmet: dict[str, float] = {}
    untouched = []
    for number, (topic, _) in enumerate(run.lists):
        here = slice(int(run.offsets[number]), int(run.offsets[number + 1]))
        t = known.qrels.number[topic]
        target = attribute.target[t]
        if not attribute.applies[t] or np.isnan(target).any():
            untouched.append(topic)
            found = _Rankings(
                np.arange(here.stop - here.start)[None], run.scores[None, here] / how.temperature
            )
        else:
            docs = run.docs.take(np.arange(here.start, here.stop))
            membership = attribute.memberships(np.full(len(docs), t), docs)
            found = _reranked(
                run, topic, run.scores[here] / how.temperature, membership, target, how, known, attribute
            )
        if found.gap > MET:
            unmet[topic] = found.gap
        samples = [""] if len(found.order) == 1 else [str(s) for s in range(1, len(found.order) + 1)]
        lists += [(topic, sample) for sample in samples]
        rows += [here.start + order for order in found.order]
        scores += list(found.scores)
    offsets = np.cumsum([0, *map(len, rows)])
    tag = f"{run.tag}-{how.name}"
    docs = run.docs.take(np.concatenate(rows))
    return Reranked(
        Run(tag, tag, lists, offsets, docs, np.concatenate(scores), len(docs)), unmet, tuple(untouched)
    )


class _Rankings(NamedTuple):
    """One or several orders (m, documents) of a topic, with descending scores, and how far a share is from its goal."""

    order: Ints
    scores: Floats
    gap: float = 0.0


def _reranked(
    run: Run,
    topic: str,
    scores: Floats,
    membership: Floats,
    target: Floats,
    how: Reranking,
    known: Collection,
    attribute: Attribute,
) -> _Rankings:
    n = len(scores)
    if how.method in OFFSETS:
        weights = np.exp(scores - scores.max())
        goal = {"parity": membership.sum(axis=0), "target": target, "merit": weights @ membership}[how.method]
        found = exposure_offsets(scores[None], membership[None], goal[None], how.attention, how.cutoff)
        moved = scores + how.factor * (membership @ found.value[0])
        order = np.lexsort((np.arange(n), -moved))
        gap = (
            float(np.max(np.abs(found.share[0] - found.goal[0])))
            if not np.isnan(found.share[0]).any()
            else 0.0
        )
        return _Rankings(order[None], moved[order][None], gap)
    if how.method == "lp":
        return _mixed(run, topic, scores, membership, how, known)
    share = how.factor * target
    if how.method == "quota":
        order = quota(scores, membership, target, how.factor)
    elif how.method == "fa-ir":
        protected = attribute.spec.groups.index(str(how.protected))
        order = fa_ir(membership[:, protected] > 0.5, float(share[protected]), how.alpha)
    else:
        order = det_const_sort(np.where(membership.any(axis=1), membership.argmax(axis=1), -1), share)
    return _Rankings(order[None], np.arange(n, 0, -1, dtype=np.float64)[None])


def _mixed(
    run: Run, topic: str, scores: Floats, membership: Floats, how: Reranking, known: Collection
) -> _Rankings:
    """Rankings drawn from the mixture of the linear programme."""
    n = len(scores)
    groups = int(membership.any(axis=0).sum())
    if groups > 2 and n > LONGEST_PROGRAMME:
        raise UsageError(
            f"{escape(run.source, 300)}: topic {escape(topic)!r} has {n} documents of {groups} groups; lp takes at most "
            f"{LONGEST_PROGRAMME} documents of more than two groups"
        )
    grades = known.max_grade * (scores - scores.min()) / (np.ptp(scores) or 1.0)
    mixture = fair_mixture(grades, membership, how.factor)
    drawn = mixture.sample(how.samples, generator(how.seed, run.tag, topic))
    return _Rankings(drawn, np.broadcast_to(np.arange(n, 0, -1, dtype=np.float64), drawn.shape))


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

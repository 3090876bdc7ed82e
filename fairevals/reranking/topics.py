"""Re-rank the documents of one topic, by any method."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairevals.attention import AttentionLike, parse_attention
from fairevals.errors import UsageError, check_known, escape
from fairevals.io.specs import check_whole, is_number
from fairevals.measures.representation import infeasible_count
from fairevals.policy.offsets import exposure_offsets
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.policy.policies import generator
from fairevals.reranking.greedy import det_const_sort, fa_ir, fa_ir_counts, quota
from fairevals.reranking.lp import fair_mixture
from fairevals.typing import Floats, Ints

OFFSETS = ("parity", "target", "merit")
RERANKERS = (*OFFSETS, "fa-ir", "detconstsort", "quota", "lp")
DEFAULT_STRENGTHS = {"quota": 0.5, "lp": 10.0}
"""The strength of a method, unless it is 1."""
LONGEST_PROGRAMME = 200
"""How many documents `lp` takes for more than two groups: it has a variable for each of them and each rank."""
STRONGEST = 1e9
"""Of offsets and `lp`: beyond it, rounding hides the scores."""
INFEASIBLE, UNTOUCHED = "infeasible", "untouched"


@dataclass(frozen=True)
class Reranking:
    """How a run is re-ranked; see `rerank` for the fields."""

    method: str
    attr: str
    protected: str | None = None
    alpha: float = 0.1
    attention: AttentionLike = "log2"
    cutoff: int | None = None
    temperature: float = 1.0
    samples: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        check_known("method", self.method, RERANKERS)
        if (self.protected is None) == (self.method == "fa-ir"):
            wanted = "needs the group to protect (protected, or option --protected)"
            if self.protected is not None:
                wanted = "protects no single group"
            raise UsageError(f"{self.method} {wanted}")
        if not is_number(self.alpha) or not 0 < self.alpha < 1:
            raise UsageError(f"alpha is {escape(repr(self.alpha))}; expected a number between 0 and 1")
        object.__setattr__(self, "alpha", float(self.alpha))
        check_whole("samples", self.samples)
        if self.cutoff is not None:
            check_whole("cutoff", self.cutoff)
        if np.any(np.diff(self.weights(2 + len(parse_attention(self.attention).parameters))) > 0):
            raise UsageError(
                f"the attention {self.attention} does not fall with the rank; re-ranking needs that"
            )

    def factor(self, strength: float | None) -> float:
        """The strength, or that of the method; one that the method does not take is a `UsageError`."""
        strength = DEFAULT_STRENGTHS.get(self.method, 1.0) if strength is None else strength
        limit = STRONGEST if self.method in (*OFFSETS, "lp") else 1.0
        if not is_number(strength) or not 0 <= strength <= limit:
            found = f"the strength of {self.method} is {escape(repr(strength))}"
            raise UsageError(f"{found}; expected a number from 0 to {limit:g}")
        return float(strength)

    def weights(self, ranks: int) -> Floats:
        """The attention of so many ranks."""
        weights = parse_attention(self.attention).weights(ranks)
        if self.cutoff is not None:
            weights[self.cutoff :] = 0.0
        return weights


class RankedTopic(NamedTuple):
    """A topic of a run; its documents are ordered from the best to the worst."""

    run: str
    name: str
    scores: Floats
    membership: Floats
    """(documents, groups)."""
    target: Floats
    groups: tuple[str, ...]
    max_grade: float
    applies: bool
    """Whether there is anything to share, and a target where one is needed."""

    @property
    def predicted_grades(self) -> Floats:
        """The scores, scaled to the range of grades."""
        grades: Floats = self.max_grade * (self.scores - self.scores.min()) / (np.ptp(self.scores) or 1.0)
        return grades


class Rankings(NamedTuple):
    """One or several orders (m, documents) of a topic, with scores, and how near it came to the goal."""

    order: Ints
    scores: Floats
    before: float = np.nan
    after: float = np.nan
    note: str = ""


def untouched(topic: RankedTopic) -> Rankings:
    """The topic as it is."""
    return Rankings(np.arange(len(topic.scores))[None], topic.scores[None], note=UNTOUCHED)


def reranked(topic: RankedTopic, how: Reranking, factors: Sequence[float]) -> list[Rankings]:
    """The topic re-ranked with each strength."""
    goal = _goal(topic, how)
    if not goal.sum() > 0:  # all grades are predicted to be equal, or no group has any merit
        return [untouched(topic)] * len(factors)
    if how.method in OFFSETS:
        return _offset(topic, how, factors, goal)
    n, membership, weights = len(topic.scores), topic.membership, how.weights(len(topic.scores))
    if how.method == "fa-ir":  # all other groups are one to it
        protected = np.array([group == how.protected for group in topic.groups])
        sides = np.stack([protected, ~protected], axis=1).astype(np.float64)
        membership, goal = membership @ sides, goal @ sides
    before = _gap(weights, membership, goal)
    found = []
    for factor in factors:
        order = _drawn(topic, how, factor) if how.method == "lp" else _order(topic, how, factor)[None]
        exposure = np.zeros(n)
        np.add.at(exposure, order, np.broadcast_to(weights / len(order), order.shape))
        scores = np.broadcast_to(np.arange(n, 0, -1, dtype=np.float64), order.shape)
        note = INFEASIBLE if _is_short(topic, how, factor, order[0]) else ""
        found.append(Rankings(order, scores, before, _gap(exposure, membership, goal), note))
    return found


def _goal(topic: RankedTopic, how: Reranking) -> Floats:
    """The shares of exposure that the groups should have, up to a factor."""
    if how.method == "parity":
        return np.asarray(topic.membership.sum(axis=0))
    return topic.predicted_grades @ topic.membership if how.method in ("merit", "lp") else topic.target


def _gap(exposure: Floats, membership: Floats, goal: Floats) -> float:
    """The largest difference of a group's share of exposure from its goal; NaN where there is no exposure or goal."""
    sums = exposure @ membership
    with np.errstate(invalid="ignore"):
        return float(np.abs(sums / sums.sum() - goal / goal.sum()).max())


def _offset(topic: RankedTopic, how: Reranking, factors: Sequence[float], goal: Floats) -> list[Rankings]:
    """The rankings by scores with offsets."""
    membership, log_weights = topic.membership, topic.scores / how.temperature
    offsets = exposure_offsets(log_weights[None], membership[None], goal[None], how.attention, how.cutoff)
    note = "" if offsets.met[0] else INFEASIBLE
    change = membership @ offsets.value[0]

    def gap(factor: float) -> float:
        policy = PlackettLuce(log_weights + factor * change)
        return _gap(policy.exposure(how.attention, how.cutoff).value, membership, goal)

    before, found = gap(0.0), []
    for factor in factors:
        moved = topic.scores + how.temperature * factor * change
        order = np.argsort(-moved, kind="stable")
        found.append(Rankings(order[None], moved[order][None], before, gap(factor), note))
    return found


def _order(topic: RankedTopic, how: Reranking, factor: float) -> Ints:
    """The one ranking of a method that makes one."""
    membership, share = topic.membership, factor * topic.target
    if how.method == "quota":
        return quota(topic.scores, membership, topic.target, factor)
    if how.method == "detconstsort":
        return det_const_sort(_main_group(membership), share)
    protected = topic.groups.index(str(how.protected))
    return fa_ir(membership[:, protected] > 0.5, float(share[protected]), how.alpha, how.cutoff)


def _main_group(membership: Floats) -> Ints:
    """The group of each document's largest membership; −1 if it has none, or if several groups share the largest.

    The first of several would make the ranking depend on the order of the groups in the task.
    """
    largest = membership.max(axis=1, keepdims=True)
    is_one = (np.count_nonzero(membership == largest, axis=1) == 1) & (largest[:, 0] > 0)
    return np.where(is_one, membership.argmax(axis=1), -1)


def _is_short(topic: RankedTopic, how: Reranking, factor: float, order: Ints) -> bool:
    """Whether the ranking lacks documents of a group that the method asks for, because there are too few."""
    membership, share = topic.membership[order], factor * topic.target
    if how.method == "detconstsort":
        group = _main_group(membership)
        hard = np.eye(len(share))[group] * (group >= 0)[:, None]
        ranks = np.array(min(len(order), how.cutoff or len(order)))
        return bool(infeasible_count(hard, share, ranks) > 0)
    if how.method == "fa-ir":
        protected = topic.groups.index(str(how.protected))
        needed = fa_ir_counts(len(order), float(share[protected]), how.alpha, how.cutoff)
        return bool(np.any(np.cumsum(membership[:, protected] > 0.5) < needed))
    return False


def _drawn(topic: RankedTopic, how: Reranking, factor: float) -> Ints:
    """Rankings drawn from the mixture of the linear programme."""
    groups, n = int(topic.membership.any(axis=0).sum()), len(topic.scores)
    if groups > 2 and n > LONGEST_PROGRAMME:
        expected = f"at most {LONGEST_PROGRAMME} where there are more than two groups"
        raise UsageError(
            f"topic {escape(topic.name)!r} has {n} documents of {groups} groups; lp takes {expected}"
        )
    mixture = fair_mixture(topic.predicted_grades, topic.membership, factor, attention=how.weights(n))
    return mixture.sample(how.samples, generator(how.seed, topic.run, topic.name))

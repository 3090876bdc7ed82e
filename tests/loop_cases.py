"""Slow versions of measures, written from their formulas with dicts and loops: topics, rankings and groups of one task.

A policy is a list of (probability, ranking), so that every expectation is a sum.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

NAN = math.nan
ATTENTION: dict[str, Callable[[int], float]] = {
    "log2": lambda k: 1 / math.log2(1 + k),
    "trecfair": lambda k: 1 / math.log2(max(k, 2)),
    "rbp(0.8)": lambda k: 0.8 ** (k - 1),
}


@dataclass(frozen=True)
class LoopAttribute:
    """Memberships of some documents, what the others are, the target, and the first letter of its topics, if any."""

    groups: tuple[str, ...]
    memberships: Mapping[str, Sequence[float]]
    unmapped: str
    target: str | Sequence[float]
    letter: str = ""

    def of(self, doc: str) -> Sequence[float] | None:
        if doc in self.memberships:
            return self.memberships[doc]
        if self.unmapped == "skip":
            return None
        shares = {"uniform": [1 / len(self.groups)] * len(self.groups)}
        return shares.get(self.unmapped, [float(group == self.unmapped) for group in self.groups])


@dataclass(frozen=True)
class LoopTopic:
    """One topic of a run beside its judgements. The attribute "X" is the product of all others."""

    name: str
    policy: Sequence[tuple[float, Sequence[str]]]
    qrels: Mapping[str, int]
    attributes: Mapping[str, LoopAttribute]
    rule: str
    attention: str
    cutoff: int | None

    def weight(self, k: int) -> float:
        return ATTENTION[self.attention](k) if self.cutoff is None or k <= self.cutoff else 0.0

    @property
    def docs(self) -> list[str]:
        return sorted({*self.qrels, *(doc for _, ranking in self.policy for doc in ranking)})

    @property
    def candidates(self) -> list[str]:
        return sorted(self.qrels) if self.rule == "judged" else self.docs

    def grade(self, doc: str) -> int:
        return max(self.qrels.get(doc, 0), 0)

    @property
    def exposure(self) -> dict[str, float]:
        exposure = dict.fromkeys(self.docs, 0.0)
        for p, ranking in self.policy:
            for k, doc in enumerate(ranking, 1):
                exposure[doc] += p * self.weight(k)
        return exposure

    @property
    def ideal(self) -> dict[str, float]:
        """The exposure of each document if the candidates of a grade share their ranks."""
        grades = sorted((self.grade(doc) for doc in self.candidates), reverse=True)
        ideal = dict.fromkeys(self.docs, 0.0)
        for doc in self.candidates:
            ranks = [k for k, grade in enumerate(grades, 1) if grade == self.grade(doc)]
            ideal[doc] = sum(map(self.weight, ranks)) / len(ranks)
        return ideal

    def _parts(self, attr: str) -> list[LoopAttribute]:
        return [*self.attributes.values()] if attr == "X" else [self.attributes[attr]]

    def applies(self, attr: str) -> bool:
        return all(self.name.startswith(part.letter) for part in self._parts(attr))

    def member(self, attr: str, doc: str) -> list[float] | None:
        shares = [part.of(doc) for part in self._parts(attr)]
        known = [share for share in shares if share is not None]
        return [math.prod(cell) for cell in itertools.product(*known)] if len(known) == len(shares) else None

    def target(self, attr: str) -> list[float] | None:
        targets = []
        for part in self._parts(attr):
            target = part.target
            if target == "relevant":
                rows = [row for doc, grade in self.qrels.items() if grade > 0 and (row := part.of(doc))]
                if not rows:
                    return None
                target = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
            targets.append([1 / len(part.groups)] * len(part.groups) if target == "uniform" else target)
        return [math.prod(cell) for cell in itertools.product(*targets)]

    def sums(self, attr: str, values: Mapping[str, float]) -> list[float] | None:
        """The sums of documents' values by group; None if no document is in any."""
        rows = [[x * m for m in member] for doc, x in values.items() if (member := self.member(attr, doc))]
        return [sum(column) for column in zip(*rows, strict=True)] if rows else None

    def mean(self, value: Callable[[Sequence[str]], float]) -> float:
        """The mean of the defined values of the policy's rankings."""
        values = [(p, value(ranking[: self.cutoff])) for p, ranking in self.policy]
        defined = [(p, v) for p, v in values if not math.isnan(v)]
        return sum(p * v for p, v in defined) / sum(p for p, _ in defined) if defined else NAN


def d_cross(topic: LoopTopic) -> float:
    docs, e, m = topic.candidates, topic.exposure, topic.grade
    if len(docs) < 2 or not any(e[doc] > 0 for doc in docs):
        return NAN
    pairs = list(itertools.permutations(docs, 2))
    return sum((e[i] * m(j) - e[j] * m(i)) ** 2 for i, j in pairs) / len(pairs)


def awrf(topic: LoopTopic, attr: str) -> float:
    target, sums = topic.target(attr), topic.sums(attr, topic.exposure)
    if not topic.applies(attr) or target is None or not sums or sum(sums) <= 0:
        return NAN
    shares = [x / sum(sums) for x in sums]

    def entropy_gap(p: Sequence[float]) -> float:
        return sum(x * math.log2(2 * x / (s + t)) for x, s, t in zip(p, shares, target, strict=True) if x > 0)

    return 1 - (entropy_gap(shares) + entropy_gap(target)) / 2


def ee_l(topic: LoopTopic, attr: str) -> float:
    """Against the ideal policy."""
    ours, ideal = topic.sums(attr, topic.exposure), topic.sums(attr, topic.ideal)
    if not topic.applies(attr) or ours is None or ideal is None:
        return NAN
    return sum((a - b) ** 2 for a, b in zip(ours, ideal, strict=True))


def uexp(topic: LoopTopic, attr: str) -> float:
    e, ideal = topic.exposure, topic.ideal
    given, wanted = sum(e.values()), sum(ideal.values())
    known = any(topic.member(attr, doc) for doc in topic.candidates)
    if not topic.applies(attr) or given <= 0 or wanted <= 0 or not known:
        return NAN
    under = {doc: max(0.0, ideal[doc] / wanted - e[doc] / given) for doc in topic.docs}
    return sum(x**2 for x in topic.sums(attr, under) or [])


def _by_candidates(topic: LoopTopic, attr: str) -> list[tuple[float, float, float]]:
    """Of each group with candidates: mean exposure, mean merit and mean exposure×merit."""
    if not topic.applies(attr):
        return []
    e, m = topic.exposure, topic.grade
    columns = [
        topic.sums(attr, {doc: value(doc) for doc in topic.candidates}) or []
        for value in (lambda d: 1.0, lambda d: e[d], m, lambda d: e[d] * m(d))
    ]
    return [(a / n, b / n, c / n) for n, a, b, c in zip(*columns, strict=True) if n > 0]


def d_group(topic: LoopTopic, attr: str) -> float:
    groups = _by_candidates(topic, attr)
    with_merit = [(e, m) for e, m, _ in groups if m > 0]
    if len(with_merit) < 2 or not any(e > 0 for e, *_ in groups):
        return NAN
    gaps = []
    for pair in itertools.combinations(with_merit, 2):
        (e, m), (f, n) = sorted(pair, key=lambda group: -group[1])
        gap = e / m - f / n
        gaps.append(abs(gap) if math.isclose(m, n, rel_tol=1e-12) else max(0.0, gap))
    return sum(gaps) / len(gaps)


def rur(topic: LoopTopic, attr: str) -> float:
    quotients = [both / m for _, m, both in _by_candidates(topic, attr) if m > 0]
    if len(quotients) < 2 or min(quotients) <= 0:
        return NAN
    return max(map(math.log, quotients)) - min(map(math.log, quotients))


def ndkl(topic: LoopTopic, attr: str) -> float:
    target = topic.target(attr)
    if not topic.applies(attr) or target is None:
        return NAN

    def value(ranking: Sequence[str]) -> float:
        rows = [row for doc in ranking if (row := topic.member(attr, doc))]
        total = discounts = 0.0
        for k in range(1, len(rows) + 1):
            shares = [sum(column) / k for column in zip(*rows[:k], strict=True)]
            terms = [p * math.log(p / max(t, 1e-7)) for p, t in zip(shares, target, strict=True) if p > 0]
            total += sum(terms) / math.log2(k + 1)
            discounts += 1 / math.log2(k + 1)
        return total / discounts if rows else NAN

    return topic.mean(value)


def arp(topic: LoopTopic, attr: str) -> float:
    def value(ranking: Sequence[str]) -> float:
        rows = [row for doc in ranking if (row := topic.member(attr, doc))]
        shares = []
        for column in zip(*rows, strict=True):
            pairs = [(a * (1 - b), b * (1 - a)) for a, b in itertools.combinations(column, 2)]
            won, lost = sum(first for first, _ in pairs), sum(second for _, second in pairs)
            shares += [won / (won + lost)] if won + lost > 1e-9 else []
        return max(shares) - min(shares) if len(shares) > 1 else NAN

    return topic.mean(value) if topic.applies(attr) else NAN


def gini(topics: Sequence[LoopTopic]) -> float:
    docs = sorted({doc for topic in topics for doc in topic.candidates})
    x = sorted(sum(topic.exposure.get(doc, 0.0) for topic in topics) for doc in docs)
    if sum(x) <= 0:
        return NAN
    sums = list(itertools.accumulate(x))
    return (len(x) + 1 - 2 * sum(sums) / sums[-1]) / len(x)


def l2(topics: Sequence[LoopTopic], attr: str) -> float:
    topics = [topic for topic in topics if topic.applies(attr)]
    exposure = [sums for topic in topics if (sums := topic.sums(attr, topic.exposure))]
    grades = [sums for topic in topics if (sums := topic.sums(attr, {d: topic.grade(d) for d in topic.docs}))]
    e, r = ([sum(column) for column in zip(*rows, strict=True)] for rows in (exposure, grades))
    if sum(e) <= 0 or sum(r) <= 0:
        return NAN
    return math.dist([x / sum(e) for x in e], [x / sum(r) for x in r])


def jme(topics: Sequence[LoopTopic], attr: str) -> float:
    """Level AG: D averaged over the documents of a group and over all topics."""
    topics = [topic for topic in topics if topic.applies(attr)]
    members: dict[str, list[float]] = {}
    for doc in sorted({doc for topic in topics for doc in topic.candidates}):
        rows = [topic.member(attr, doc) for topic in topics if doc in topic.docs]
        known = [row for row in rows if row]
        if known:
            members[doc] = [sum(column) / len(rows) for column in zip(*known, strict=True)]
    means = []
    for group in zip(*members.values(), strict=True):
        if sum(group) > 0:
            deviation = sum(
                share * (topic.exposure.get(doc, 0.0) - topic.ideal.get(doc, 0.0))
                for topic in topics
                for doc, share in zip(members, group, strict=True)
            )
            means.append(deviation / sum(group) / len(topics))
    return sum(x**2 for x in means) / len(means) if means else NAN

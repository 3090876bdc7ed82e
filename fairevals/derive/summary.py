"""What the annotations hold and how far the annotators agree, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fairevals.derive.agreement import cohen_kappa, krippendorff_alpha
from fairevals.derive.pages import Derived
from fairevals.errors import escape
from fairevals.io.tables import names


@dataclass(frozen=True)
class Agreement:
    """How far annotators agree on yes or no, over units that two or more of them looked at."""

    units: int
    alpha: float
    """Krippendorff's, nominal; NaN where undefined."""
    kappa: float | None
    """Cohen's, NaN where undefined; None unless the file has exactly two annotators."""


@dataclass(frozen=True)
class Summary:
    """Counts and agreement.

    Annotators have looked at all pages of the topics for which they have a line, with or without entity.
    """

    annotators: tuple[str, ...]
    topics: int
    pages: int
    pages_without_entity: int
    grades: dict[int, int]
    """How many pages have each grade."""
    named_by: dict[int, int]
    """How many entities of pages were named by 1, 2, … annotators."""
    positive: float
    """Positive agreement: of the entities that one annotator named on a page, the share that another named
    too, over all ordered pairs of annotators; of two it is the F1. NaN without such a pair."""
    entities: Agreement
    """On entities: the units are each page with each entity named anywhere in its topic, so that «not on this
    page» can be agreed on as well; yes: the annotator named it on this page."""
    relevance: Agreement
    """On pages: the units are the pages; yes: the annotator named some entity there."""


def summarise(derived: Derived) -> Summary:
    """Count, and compare the annotators."""
    annotators_of: dict[str, set[str]] = {topic: set() for topic in derived.topics}
    for one in derived.annotations.lines:
        if one.annotator:
            annotators_of[one.topic].add(one.annotator)
    annotators = tuple(sorted(set().union(*annotators_of.values())))
    pair = annotators if len(annotators) == 2 else None
    pool: dict[str, set[str]] = {topic: set() for topic in annotators_of}
    for topic, page in zip(derived.topics, derived.entities, strict=True):
        pool[topic].update(page)

    entities, relevance = _Votes(pair), _Votes(pair)
    named_by: Counter[int] = Counter()
    shared = possible = 0
    for topic, page in zip(derived.topics, derived.entities, strict=True):
        looked = annotators_of[topic]
        named = [{line.annotator for line in lines} for lines in page.values()]
        for who in named:
            named_by[len(who)] += 1
            shared += len(who) * (len(who) - 1)
            possible += len(who) * (len(looked) - 1)
            entities.add(who, looked)
        entities.add((), looked, times=len(pool[topic]) - len(named))
        relevance.add(set().union(*named), looked)
    return Summary(
        annotators=annotators,
        topics=len(annotators_of),
        pages=len(derived.docs),
        pages_without_entity=sum(not page for page in derived.entities),
        grades=dict(sorted(Counter(derived.grades.tolist()).items())),
        named_by=dict(sorted(named_by.items())),
        positive=shared / possible if possible else float("nan"),
        entities=entities.agreement(),
        relevance=relevance.agreement(),
    )


class _Votes:
    """Counts who said yes of those who looked, unit by unit."""

    def __init__(self, pair: tuple[str, ...] | None) -> None:
        self.pair = pair
        self.counts: Counter[tuple[int, int]] = Counter()  # (yes, no): units
        self.table = np.zeros((2, 2))

    def add(self, yes: Iterable[str], looked: set[str], times: int = 1) -> None:
        yes = set(yes)
        self.counts[len(yes), len(looked) - len(yes)] += times
        if self.pair and looked == set(self.pair):
            self.table[int(self.pair[0] in yes), int(self.pair[1] in yes)] += times

    def agreement(self) -> Agreement:
        counts = np.array(list(self.counts), dtype=np.int64).reshape(-1, 2)
        times = np.array(list(self.counts.values()), dtype=np.int64)
        return Agreement(
            units=int(times[counts.sum(axis=1) >= 2].sum()),
            alpha=krippendorff_alpha(counts, times),
            kappa=cohen_kappa(self.table) if self.pair else None,
        )


def describe(derived: Derived) -> str:
    """The summary as text, with every conflict of values listed under its attribute."""
    found = summarise(derived)
    rows = [
        ("annotators", f"{len(found.annotators)} ({names(found.annotators)})"),
        ("topics", str(found.topics)),
        ("pages", f"{found.pages}, {found.pages_without_entity} of them without entity"),
        ("pages by grade", _counts(found.grades)),
        ("entities of pages", str(sum(found.named_by.values()))),
        ("… by annotators who named them", _counts(found.named_by)),
        ("positive agreement on entities", _value(found.positive)),
        *_agreement("entity on page", found.entities),
        *_agreement("page with any entity", found.relevance),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    for name, memberships in derived.memberships.items():
        lines += [
            "",
            f"{escape(name)}: {len(memberships.rows)} pages, {memberships.valueless} of them with entities "
            f"but without a known value; {memberships.unknown} entities without a known value, "
            f"{len(memberships.conflicts)} with conflicting values",
        ]
        for conflict in memberships.conflicts:
            said = ", ".join(
                f"{escape(one.annotator)} {escape(one.values[name])} (line {one.line})"
                for one in conflict.lines
            )
            lines.append(
                f"  {escape(conflict.topic)} {escape(conflict.doc)} {escape(conflict.entity)}: {said}"
            )
    return "\n".join(lines) + "\n"


def _agreement(what: str, agreement: Agreement) -> list[tuple[str, str]]:
    rows = [(f"Krippendorff's alpha, {what}", f"{_value(agreement.alpha)} ({agreement.units} units)")]
    if agreement.kappa is not None:
        rows.append((f"Cohen's kappa, {what}", f"{_value(agreement.kappa)} ({agreement.units} units)"))
    return rows


def _counts(counts: dict[int, int]) -> str:
    return ", ".join(f"{key}: {count}" for key, count in counts.items()) or "none"


def _value(value: float) -> str:
    return "undefined (nothing to disagree on)" if np.isnan(value) else f"{value:.3f}"

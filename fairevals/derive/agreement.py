"""How far annotators agree beyond chance, and a summary of the annotations."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from fairevals.derive.pages import AnnotatedPage, Derived
from fairevals.errors import escape, names
from fairevals.typing import Array


def krippendorff_alpha(counts: Array, times: Array | None = None) -> float:
    """Krippendorff's alpha for nominal values, any number of annotators, and missing values.

    `counts` is (units, values): how many annotators gave the unit each value. `times` (units,) is how often
    such a unit occurs, by default once. alpha = 1 − D_o/D_e with the coincidences
    o_ck = Σ_u n_uc·(n_uk − [c=k])/(m_u − 1) over units of m_u ≥ 2 annotators, n_c = Σ_k o_ck, n = Σ_c n_c,
    D_o = Σ_{c≠k} o_ck/n, D_e = Σ_{c≠k} n_c·n_k/(n·(n−1)). NaN where no unit has two annotators, and where all
    values are the same, because then chance alone gives full agreement.
    See Krippendorff: Content Analysis, chapter "Reliability"; the example is from his "Computing
    Krippendorff's alpha-reliability" (2011).

    >>> ratings = [(0, 1), (1, 1), (0, 1), (0, 0), (0, 0), (0, 1), (0, 0), (0, 0), (1, 0), (0, 0)]
    >>> counts = np.array([[pair.count(value) for value in (0, 1)] for pair in ratings])
    >>> round(krippendorff_alpha(counts), 3)
    0.095
    """
    annotators = counts.sum(axis=1)
    paired = annotators >= 2
    counts, annotators = counts[paired].astype(np.float64), annotators[paired]
    weight = (np.ones(len(counts)) if times is None else times[paired]) / (annotators - 1)
    coincidences = np.einsum("u,uc,uk->ck", weight, counts, counts)
    coincidences -= np.diag(weight @ counts)
    of_value = coincidences.sum(axis=1)
    total = of_value.sum()
    by_chance = total**2 - (of_value**2).sum()
    if by_chance <= 0:
        return float("nan")
    return float(1 - (total - 1) * (total - np.trace(coincidences)) / by_chance)


def cohen_kappa(table: Array) -> float:
    """Cohen's kappa of two annotators; `table[i, j]` counts units to which the first gave i, the second j.

    kappa = (p_o − p_e)/(1 − p_e), p_o the share of units on the diagonal, p_e = Σ_i p_i·p'_i from the
    shares p, p' of the values of each annotator. NaN without units, and where both always give one same value.

    >>> round(cohen_kappa(np.array([[20, 5], [10, 15]])), 3)
    0.4
    """
    total = table.sum()
    if total == 0:
        return float("nan")
    same = float(np.trace(table)) / total
    by_chance = float(table.sum(axis=0) @ table.sum(axis=1)) / total**2
    return float((same - by_chance) / (1 - by_chance)) if by_chance < 1 else float("nan")


class AnnotatorAgreement(NamedTuple):
    """How far annotators agree on yes or no, over the units that two or more of them saw."""

    units: int
    alpha: float
    """Krippendorff's, nominal; NaN where undefined."""
    kappa: float | None
    """Cohen's, NaN where undefined; None unless the table has exactly two annotators."""


class AnnotationSummary(NamedTuple):
    """Counts, and agreement over the pages that annotators share.

    An annotator has seen the pages for which the table has a line of that annotator, with or without entity.
    """

    annotators: tuple[str, ...]
    named_by: dict[int, int]
    """How many entities of pages were named by 1, 2, … annotators."""
    positive: float
    """Of the entities that one annotator named on a page, the share that another named too, over all ordered pairs
    of annotators who saw the page; with two annotators it is F1. NaN if no entity was named on a shared page."""
    entities: AnnotatorAgreement
    """The units are each page with each entity named anywhere in the topic. Yes: named on this page."""
    relevance: AnnotatorAgreement
    """The units are the pages. Yes: some entity was named there."""


Unit = tuple[frozenset[str], frozenset[str]]
"""Who saw a unit, and who of them said yes."""


@dataclass
class AnnotationTally:
    """What the summary of some topics is computed from. Those of different topics can be added."""

    named_by: Counter[int] = field(default_factory=Counter)
    entities: Counter[Unit] = field(default_factory=Counter)
    relevance: Counter[Unit] = field(default_factory=Counter)
    agreed: int = 0
    possible: int = 0

    @classmethod
    def of(cls, pages: Iterable[AnnotatedPage]) -> Self:
        """Count the pages of whole topics."""
        tally = cls()
        topics: dict[str, list[AnnotatedPage]] = {}
        for page in pages:
            topics.setdefault(page.topic, []).append(page)
        for of_topic in topics.values():
            pool = len(set().union(*(page.entities for page in of_topic)))
            for page in of_topic:
                tally._add_page(page, pool)
        return tally

    def _add_page(self, page: AnnotatedPage, pool: int) -> None:
        """Add a page of a topic in which so many entities were named."""
        seen, yes = frozenset(page.annotators), frozenset[str]()
        for lines in page.entities.values():
            named = frozenset(one.annotator for one in lines)
            yes |= named
            self.named_by[len(named)] += 1
            self.agreed += len(named) * (len(named) - 1)
            self.possible += len(named) * (len(seen) - 1)
            self.entities[seen, named] += 1
        self.entities[seen, frozenset()] += pool - len(page.entities)
        self.relevance[seen, yes] += 1

    def add(self, other: Self) -> None:
        """Add the counts of other topics."""
        self.named_by.update(other.named_by)
        self.entities.update(other.entities)
        self.relevance.update(other.relevance)
        self.agreed += other.agreed
        self.possible += other.possible

    def summary(self) -> AnnotationSummary:
        """Compare the annotators."""
        annotators = tuple(sorted(frozenset[str]().union(*(seen for seen, _ in self.relevance))))
        positive = self.agreed / self.possible if self.possible else float("nan")
        counts = dict(sorted(self.named_by.items()))
        of = (_agreement(units, annotators) for units in (self.entities, self.relevance))
        return AnnotationSummary(annotators, counts, positive, *of)


def _agreement(units: Counter[Unit], annotators: Sequence[str]) -> AnnotatorAgreement:
    """Agreement over units, given how often each combination of votes occurs."""
    counts = np.array([(len(seen) - len(yes), len(yes)) for seen, yes in units])
    times = np.array(list(units.values()))
    kappa = None
    if len(annotators) == 2:
        one, other = annotators
        table = np.zeros((2, 2))
        for (seen, yes), number in units.items():
            if len(seen) == 2:
                table[int(one in yes), int(other in yes)] += number
        kappa = cohen_kappa(table)
    shared = int(times[counts.sum(axis=1) >= 2].sum())
    return AnnotatorAgreement(shared, krippendorff_alpha(counts, times), kappa)


def describe_derived(derived: Derived) -> str:
    """The summary as text, with every conflict of values listed under its attribute."""
    pages, summary = derived.pages, AnnotationTally.of(derived.pages).summary()
    without = sum(not page.entities for page in pages)
    rows = [
        ("annotators", f"{len(summary.annotators)} ({names(summary.annotators)})"),
        ("topics", str(len({page.topic for page in pages}))),
        ("pages", f"{len(pages)}, {without} of them without entity"),
        ("pages by grade", _list_counts(Counter(page.grade for page in pages))),
        ("entities of pages", str(sum(summary.named_by.values()))),
        ("… by annotators who named them", _list_counts(summary.named_by)),
        ("positive agreement on entities", _value(summary.positive)),
    ]
    for unit, of in (("entity on page", summary.entities), ("page with any entity", summary.relevance)):
        for name, value in (("Krippendorff's alpha", of.alpha), ("Cohen's kappa", of.kappa)):
            if value is not None:
                rows.append((f"{name}, {unit}", f"{_value(value)} ({of.units} units)"))
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    for name, memberships in derived.memberships.items():
        lines += [
            "",
            f"{escape(name)}: {len(memberships.pages)} pages, {memberships.valueless} of them with entities "
            f"but without a known value; {memberships.unknown} entities without a known value, "
            f"{len(memberships.conflicts)} with conflicting values",
        ]
        for conflict in memberships.conflicts:
            values = [f"{escape(x.annotator)} {escape(x.values[name])} (line {x.line})" for x in conflict]
            entity = " ".join(map(escape, (conflict[0].topic, conflict[0].doc, conflict[0].entity)))
            lines.append(f"  {entity}: {', '.join(values)}")
    return "\n".join(lines) + "\n"


def _list_counts(counts: Mapping[int, int]) -> str:
    return ", ".join(f"{key}: {counts[key]}" for key in sorted(counts)) or "none"


def _value(value: float) -> str:
    return "undefined (nothing to disagree on)" if np.isnan(value) else f"{value:.3f}"

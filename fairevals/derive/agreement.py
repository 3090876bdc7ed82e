"""How far annotators agree beyond chance, and a summary of the annotations."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

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


def summarise(pages: Sequence[AnnotatedPage]) -> AnnotationSummary:
    """Count the annotations and compare the annotators."""
    annotators = tuple(sorted(set().union(*(page.annotators for page in pages))))
    pool: dict[str, set[str]] = {}
    for page in pages:
        pool.setdefault(page.topic, set()).update(page.entities)

    def votes(page: AnnotatedPage, yes: Set[str]) -> tuple[int, ...]:
        """The vote of each annotator: 1 yes, 0 no, −1 has not seen the page."""
        return tuple(int(who in yes) if who in page.annotators else -1 for who in annotators)

    entities: Counter[tuple[int, ...]] = Counter()
    relevance: Counter[tuple[int, ...]] = Counter()
    named_by: Counter[int] = Counter()
    agreed = possible = 0
    for page in pages:
        voters = [{one.annotator for one in lines} for lines in page.entities.values()]
        for yes in voters:
            named_by[len(yes)] += 1
            agreed += len(yes) * (len(yes) - 1)
            possible += len(yes) * (len(page.annotators) - 1)
            entities[votes(page, yes)] += 1
        entities[votes(page, set())] += len(pool[page.topic]) - len(voters)
        relevance[votes(page, set().union(*voters))] += 1
    positive = agreed / possible if possible else float("nan")
    counts = dict(sorted(named_by.items()))
    return AnnotationSummary(annotators, counts, positive, _agreement(entities), _agreement(relevance))


def _agreement(units: Counter[tuple[int, ...]]) -> AnnotatorAgreement:
    """Agreement over units, given how often each combination of votes (0, 1, −1 for missing) occurs."""
    votes, times = np.array(list(units)), np.array(list(units.values()))
    counts = np.stack([(votes == value).sum(axis=1) for value in (0, 1)], axis=1)
    kappa = None
    if votes.shape[1] == 2:
        both = [(votes == pair).all(axis=1) for pair in ((0, 0), (0, 1), (1, 0), (1, 1))]
        kappa = cohen_kappa(np.array([times[rows].sum() for rows in both]).reshape(2, 2))
    shared = int(times[counts.sum(axis=1) >= 2].sum())
    return AnnotatorAgreement(shared, krippendorff_alpha(counts, times), kappa)


def describe_derived(derived: Derived) -> str:
    """The summary as text, with every conflict of values listed under its attribute."""
    pages, summary = derived.pages, summarise(derived.pages)
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

"""Grades and memberships of pages from the entities that annotators named on them.

See Sakai: A web search task that takes group fairness into account (NTCIR-17 FairWeb-1), section 5.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairevals.derive.annotations import Annotation, Annotations
from fairevals.errors import InputError, InputWarning, Place, escape
from fairevals.io.decimals import NUMBER
from fairevals.io.tables import names
from fairevals.io.task import AttributeSpec, Task
from fairevals.typing import Floats, Ints

UNKNOWN = ("", "NA")
"""How a value that nobody could find out is written."""


@dataclass(frozen=True)
class Conflict:
    """Annotators who put one entity of a page into different groups."""

    topic: str
    doc: str
    entity: str
    lines: tuple[Annotation, ...]
    """What each said, those who did not know left out."""


@dataclass(frozen=True)
class PageMemberships:
    """One attribute's memberships: of the pages `rows`, those of topics to which it applies."""

    rows: Ints
    weights: Floats
    """(rows, groups), each row summing to 1."""
    valueless: int
    """How many of these pages have entities, but none with a known value; they are uniform as well."""
    unknown: int
    """How many entities of these pages have no known value."""
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True)
class Derived:
    """What follows from the annotations: a row a page (a topic's document), topic by topic."""

    task: Task
    annotations: Annotations
    topics: tuple[str, ...]
    """The topic of each page."""
    docs: tuple[str, ...]
    grades: Ints
    entities: tuple[Mapping[str, tuple[Annotation, ...]], ...]
    """The entities of each page, and the lines that name them."""
    memberships: Mapping[str, PageMemberships]
    """By attribute; only those that apply to a topic of the annotations."""


def derive(task: Task, annotations: Annotations) -> Derived:
    """Grades and memberships of all annotated pages.

    r(e) is the number of annotators who named entity e on page d; g(d) = max_e r(e), 0 without entity. An
    entity's membership is 1/m in each of its m groups, averaged over the annotators who know its value; a
    page's is the mean of its entities': P(d, C_i) = Σ_e m_e(C_i)/Σ_i Σ_e m_e(C_i). It is uniform where d
    has no entity, or none with a known value. How many annotators named e does not weigh in P.

    All sums are of fractions, so that neither the order of lines nor the number of annotators who agree can
    change the last bit.
    """
    found: dict[str, dict[str, dict[str, list[Annotation]]]] = {}
    for one in annotations.lines:
        page = found.setdefault(one.topic, {}).setdefault(one.doc, {})
        if one.entity:
            page.setdefault(one.entity, []).append(one)
    pages = [(topic, doc, entities) for topic, docs in found.items() for doc, entities in docs.items()]
    topics = tuple(topic for topic, _, _ in pages)
    entities = tuple({name: tuple(lines) for name, lines in page.items()} for _, _, page in pages)
    grades = np.array([max(map(len, page.values()), default=0) for page in entities], dtype=np.int64)
    highest = int(grades.max())
    if task.max_grade is not None and highest > task.max_grade:
        said = f"an entity named by {highest} annotators, above the task's max_grade of {task.max_grade:g}"
        warnings.warn(InputWarning(f"{Place(annotations.name)}: {said}"), stacklevel=2)
    docs = tuple(doc for _, doc, _ in pages)
    memberships = {}
    for name, spec in task.attributes.items():
        applies = {topic: spec.applies_to(topic) for topic in found}
        rows = [row for row, topic in enumerate(topics) if applies[topic]]
        if rows:
            memberships[name] = _memberships(spec, annotations, rows, topics, docs, entities)
    return Derived(task, annotations, topics, docs, grades, entities, memberships)


def _memberships(
    spec: AttributeSpec,
    annotations: Annotations,
    rows: Sequence[int],
    topics: Sequence[str],
    docs: Sequence[str],
    entities: Sequence[Mapping[str, tuple[Annotation, ...]]],
) -> PageMemberships:
    if spec.name not in annotations.columns:
        columns = names(annotations.columns) if annotations.columns else "none"
        raise InputError(
            annotations.place(),
            f"no column {escape(spec.name)!r} (beside the first four: {columns})",
            "a column for it",
        )
    if "NA" in spec.groups:
        raise InputError(
            spec.place,
            f"the group 'NA' of {escape(spec.name)}",
            "another name: in annotations NA means unknown",
        )
    concerned = {topics[row] for row in rows}
    groups_of: dict[int, tuple[int, ...]] = {}
    for one in annotations.lines:
        if one.topic in concerned:
            text, place = one.values[spec.name], annotations.place(one.line)
            groups_of[one.line] = groups_of_value(text, spec, place)
            if not one.entity and groups_of[one.line]:
                wrong = f"{escape(spec.name)} {escape(text)!r} without entity"
                raise InputError(place, wrong, "a value only where an entity is named")
    weights = np.full((len(rows), len(spec.groups)), 1 / len(spec.groups))
    valueless = unknown = 0
    conflicts = []
    for at, row in enumerate(rows):
        total = [Fraction(0)] * len(spec.groups)
        for entity, lines in entities[row].items():
            known = [line for line in lines if groups_of[line.line]]
            unknown += not known
            for line in known:
                for group in groups_of[line.line]:
                    total[group] += Fraction(1, len(groups_of[line.line]) * len(known))
            if len({groups_of[line.line] for line in known}) > 1:
                conflicts.append(Conflict(topics[row], docs[row], entity, tuple(known)))
        valued = sum(total)  # each entity with a known value adds 1
        if valued:
            weights[at] = [float(share / valued) for share in total]
        valueless += not valued and bool(entities[row])
    return PageMemberships(np.array(rows, dtype=np.int64), weights, valueless, unknown, tuple(conflicts))


def groups_of_value(text: str, spec: AttributeSpec, place: Place) -> tuple[int, ...]:
    """The groups, ascending, that a raw value stands for; none if it is unknown.

    With `bins` b_1 < … < b_{C−1} a number x is in group 1 if x < b_1, in group i if b_{i−1} ≤ x < b_i, in
    group C if b_{C−1} ≤ x. Without, the value is a group's name, or several joined with `|`.

    >>> hindex = AttributeSpec("HINDEX", ("<10", "10-29", "30-49", ">=50"), bins=(10, 30, 50))
    >>> [groups_of_value(text, hindex, Place("a.tsv", 2)) for text in ("9.5", "10", "90", "NA")]
    [(0,), (1,), (3,), ()]
    >>> groups_of_value("Asia|Africa", AttributeSpec("ORIGIN", ("Africa", "Asia")), Place("a.tsv", 2))
    (0, 1)
    """
    if text in UNKNOWN:
        return ()
    if spec.bins:
        number = float(text) if NUMBER.fullmatch(text.encode()) else math.nan
        if not math.isfinite(number):
            raise InputError(
                place, f"{escape(spec.name)} {escape(text)!r}", "a number, or empty or NA if unknown"
            )
        return (bisect_right(spec.bins, number),)
    parts: Iterable[str] = [text] if text in spec.groups else [part.strip() for part in text.split("|")]
    for part in parts:
        if part not in spec.groups:
            wrong = f"the unknown group {escape(part)!r} of {escape(spec.name)}"
            raise InputError(place, wrong, f"one or more of {names(spec.groups)}, joined with |")
    return tuple(sorted({spec.groups.index(part) for part in parts}))

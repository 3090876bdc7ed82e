"""Grades and memberships of pages from a table of the entities that annotators named on them.

See Sakai: A web search task that takes group fairness into account (NTCIR-17 FairWeb-1), section 5.
"""

import math
import os
import unicodedata
import warnings
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from fairevals.errors import InputError, InputWarning, Place, UsageError, escape, names
from fairevals.io.decimals import number_of
from fairevals.io.folders import check_folder, replacing, safe_name
from fairevals.io.specs import AttributeSpec
from fairevals.io.streams import Source, written
from fairevals.io.tables import table
from fairevals.io.task import Task
from fairevals.typing import Floats

ANNOTATION_COLUMNS = ("topic", "doc", "entity", "annotator")


@dataclass(frozen=True)
class Annotation:
    """One line: an annotator named an entity on a page, or, with an empty entity, found none there."""

    line: int
    topic: str
    doc: str
    entity: str
    """The name in its first spelling in the table."""
    annotator: str
    values: Mapping[str, str]
    """The raw value of every other column: attributes, and whatever else the table has, such as URLs."""


@dataclass(frozen=True)
class Annotations:
    """All lines of a table, in the order of the file."""

    name: str
    columns: tuple[str, ...]
    """The columns besides topic, doc, entity and annotator."""
    lines: tuple[Annotation, ...]
    header: int = 1
    """The line number of the header."""


def entity_key(name: str) -> str:
    """The form in which entity names are compared: Unicode NFKC, case folded, white space collapsed.

    Invisible format characters, such as soft hyphens, which come along when a name is copied from a page, are ignored,
    much as in Unicode's own NFKC_Casefold.

    >>> entity_key("Ada  LOVELACE") == entity_key("Ａｄａ love\N{SOFT HYPHEN}lace")
    True
    """
    visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    # Case folding can undo the normalisation of some letters, so normalise again.
    folded = unicodedata.normalize("NFKC", visible).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def read_annotations(path: str | os.PathLike[str] | Source) -> Annotations:
    """Read a csv or tsv table with the columns `topic, doc, entity, annotator` and any others.

    Each of these is an error with file and line: a missing column; a topic or doc that is empty or contains
    white space (qrels cannot hold it); an entity without annotator; two lines of one annotator for the same
    entity of a page; and an annotator who both names an entity on a page and states that there is none.
    """
    source = path if isinstance(path, Source) else Source.of(path)
    header_line, header, rows = table(source, ANNOTATION_COLUMNS)
    others = tuple(column for column in header if column not in ANNOTATION_COLUMNS)
    lines: list[Annotation] = []
    spelling: dict[str, str] = {}
    named: dict[tuple[str, str, str], dict[str, int]] = {}
    for number, row in rows:
        place, cells = Place(source.name, number), dict(zip(header, row, strict=True))
        topic, doc, entity, annotator = (cells.pop(column) for column in ANNOTATION_COLUMNS)
        for column, name in (("topic", topic), ("doc", doc)):
            if len(name.split()) != 1:
                problem = f"{column} {escape(name)!r}" if name else f"an empty {column}"
                raise InputError(place, problem, "a name without white space")
        if entity and not annotator:
            raise InputError(place, f"entity {escape(entity)!r} without annotator", "who named it")
        if entity and not entity_key(entity):
            raise InputError(place, f"entity {escape(entity)!r}", "a name with visible letters, or nothing")
        entity = spelling.setdefault(entity_key(entity), entity)
        earlier = named.setdefault((topic, doc, annotator), {})  # entity: line
        if entity in earlier:
            problem = f"the same topic, doc, entity and annotator as line {earlier[entity]}"
            expected = "one line for each entity that an annotator named on a page (in upper or lower case)"
            raise InputError(place, problem, expected)
        if earlier and ("" in earlier or not entity):
            other, line = next(iter(earlier.items()))
            named_here = f"annotator {escape(annotator)!r} names {escape(entity or other)!r} on this page"
            problem = f"{named_here}, but no entity on another line ({line} and {number})"
            raise InputError(place, problem, "an empty entity only where the annotator found none")
        earlier[entity] = number
        lines.append(Annotation(number, topic, doc, entity, annotator, cells))
    if not lines:
        raise InputError(Place(source.name), "no annotation", "one or more lines below the header")
    return Annotations(source.name, others, tuple(lines), header_line)


@dataclass(frozen=True)
class AnnotatedPage:
    """A document of a topic with the entities that were named on it."""

    topic: str
    doc: str
    annotators: set[str]
    """Who saw the page: everyone with a line for it, with or without entity."""
    entities: dict[str, list[Annotation]]
    """Each entity with the lines that name it."""

    @property
    def grade(self) -> int:
        """The largest number of annotators who named the same entity; 0 without entity."""
        return max((len({one.annotator for one in lines}) for lines in self.entities.values()), default=0)


@dataclass(frozen=True)
class PageMemberships:
    """The memberships of one attribute."""

    pages: tuple[AnnotatedPage, ...]
    """The pages of the topics to which the attribute applies."""
    weights: Floats
    """(pages, groups); each row sums to 1."""
    valueless: int
    """How many of these pages have entities, but none with a known value; their rows are uniform too."""
    unknown: int
    """How many entities of these pages have no known value."""
    conflicts: tuple[tuple[Annotation, ...], ...]
    """Lines with known values that put one entity of a page into different groups, for each such entity."""


@dataclass(frozen=True)
class Derived:
    """What follows from the annotations."""

    task: Task
    pages: tuple[AnnotatedPage, ...]
    """Grouped by topic; topics and pages in the order of their first lines."""
    memberships: Mapping[str, PageMemberships]
    """By attribute; only those that apply to a topic of the annotations."""


def annotated_pages(annotations: Annotations) -> tuple[AnnotatedPage, ...]:
    """The pages of a table, grouped by topic; topics and pages are in the order of their first lines."""
    topics: dict[str, dict[str, AnnotatedPage]] = {}
    for one in annotations.lines:
        docs = topics.setdefault(one.topic, {})
        page = docs.setdefault(one.doc, AnnotatedPage(one.topic, one.doc, set(), {}))
        if one.annotator:
            page.annotators.add(one.annotator)
        if one.entity:
            page.entities.setdefault(one.entity, []).append(one)
    return tuple(page for docs in topics.values() for page in docs.values())


def derive(task: Task, annotations: Annotations) -> Derived:
    """Derive grades and memberships of all annotated pages.

    r(e) is the number of annotators who named entity e on page d; g(d) = max_e r(e), 0 without entity. An
    entity's membership is 1/m in each of its m groups, averaged over the annotators who know its value; a
    page's is the mean of its entities': P(d, C_i) = Σ_e m_e(C_i)/Σ_i Σ_e m_e(C_i). It is uniform where d
    has no entity, or none with a known value. P does not depend on how many annotators named e.

    All sums are sums of fractions, so neither the order of lines nor the number of annotators who agree can
    change the last bit.
    """
    pages = annotated_pages(annotations)
    highest = max(page.grade for page in pages)
    if task.max_grade is not None and highest > task.max_grade:
        problem = f"an entity named by {highest} annotators, above the task's max_grade of {task.max_grade:g}"
        warnings.warn(InputWarning(f"{Place(annotations.name)}: {problem}"), stacklevel=2)
    people: dict[str, str] = {}
    for who in sorted(set().union(*(page.annotators for page in pages))):
        other = people.setdefault(entity_key(who), who)
        if other != who:
            problem = (
                f"annotators {escape(other)!r} and {escape(who)!r} differ in spelling only; they count as two"
            )
            warnings.warn(InputWarning(f"{Place(annotations.name)}: {problem}"), stacklevel=2)
    memberships = {}
    for name, spec in task.attributes.items():
        concerned = tuple(page for page in pages if spec.applies_to(page.topic))
        if concerned:
            groups = _groups_of_lines(spec, annotations)
            memberships[name] = _memberships(concerned, groups, len(spec.groups))
    return Derived(task, pages, memberships)


def _groups_of_lines(spec: AttributeSpec, annotations: Annotations) -> dict[int, tuple[int, ...]]:
    """The groups that the value on each line to which the attribute applies belongs to, by line number."""
    if spec.name not in annotations.columns:
        columns = names(annotations.columns) if annotations.columns else "none"
        problem = f"no column {escape(spec.name)!r} (besides the first four: {columns})"
        raise InputError(Place(annotations.name, annotations.header), problem, "a column for this attribute")
    if "NA" in spec.groups:
        problem = f"the group 'NA' of {escape(spec.name)}"
        raise InputError(spec.place, problem, "another name: in annotations NA means unknown")
    groups = {}
    for one in annotations.lines:
        if spec.applies_to(one.topic):
            value, place = one.values[spec.name], Place(annotations.name, one.line)
            groups[one.line] = groups_of_value(value, spec, place)
            if groups[one.line] and not one.entity:
                problem = f"{escape(spec.name)} {escape(value)!r} without entity"
                raise InputError(place, problem, "a value only where an entity is named")
    return groups


def _memberships(
    pages: tuple[AnnotatedPage, ...], groups_of: Mapping[int, tuple[int, ...]], size: int
) -> PageMemberships:
    weights = np.full((len(pages), size), 1 / size)
    valueless = unknown = 0
    conflicts = []
    for row, page in enumerate(pages):
        total = [Fraction(0)] * size
        for lines in page.entities.values():
            known = tuple(one for one in lines if groups_of[one.line])
            unknown += not known
            for one in known:
                for group in groups_of[one.line]:
                    total[group] += Fraction(1, len(groups_of[one.line]) * len(known))
            if len({groups_of[one.line] for one in known}) > 1:
                conflicts.append(known)
        with_value = sum(total)  # each entity with a known value adds 1
        if with_value:
            weights[row] = [float(share / with_value) for share in total]
        elif page.entities:
            valueless += 1
    return PageMemberships(pages, weights, valueless, unknown, tuple(conflicts))


def groups_of_value(text: str, spec: AttributeSpec, place: Place) -> tuple[int, ...]:
    """The groups, ascending, that a raw value belongs to; none if it is unknown (empty or NA).

    With `bins` b_1 < … < b_{C−1} a number x is in group 1 if x < b_1, in group i if b_{i−1} ≤ x < b_i, in
    group C if b_{C−1} ≤ x. Without bins the value is the name of a group, or several joined with `|`.

    >>> hindex = AttributeSpec("HINDEX", ("<10", "10-29", "30-49", ">=50"), bins=(10, 30, 50))
    >>> [groups_of_value(text, hindex, Place("a.tsv", 2)) for text in ("9.5", "10", "90", "NA")]
    [(0,), (1,), (3,), ()]
    >>> groups_of_value("Asia|Africa", AttributeSpec("ORIGIN", ("Africa", "Asia")), Place("a.tsv", 2))
    (0, 1)
    """
    if text in ("", "NA"):
        return ()
    if spec.bins:
        number = number_of(text)
        if math.isnan(number):
            problem = f"{escape(spec.name)} {escape(text)!r}"
            raise InputError(place, problem, "a number, or empty or NA if unknown")
        return (bisect_right(spec.bins, number),)
    parts = [text] if text in spec.groups else [part.strip() for part in text.split("|")]
    for part in parts:
        if part not in spec.groups:
            problem = f"the unknown group {escape(part)!r} of {escape(spec.name)}"
            raise InputError(place, problem, f"one or more of {names(spec.groups)}, joined with |")
    return tuple(sorted({spec.groups.index(part) for part in parts}))


def write_derived(derived: Derived, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
    """Write qrels (TREC) and memberships (NTCIR, full precision) into a folder and return the files.

    The names are those in the task, without folder and compression suffix, or by default `derived.qrels` and
    `derived.ATTRIBUTE.gmemb`. Unless `force` is true, nothing is written if one of them exists already. All files are
    written under temporary names before the first one gets its own.
    """
    target = check_folder(folder, force=True)
    texts = {"": [f"{page.topic} 0 {page.doc} {page.grade}\n" for page in derived.pages]}  # "": the qrels
    paths = {"": target / (_base_name(next(iter(derived.task.qrels), None)) or "derived.qrels")}
    for name, of in derived.memberships.items():
        given = _base_name(derived.task.attributes[name].memberships)
        paths[name] = target / (given or f"derived.{safe_name(name)}.gmemb")
        rows = zip(of.pages, of.weights.tolist(), strict=True)
        texts[name] = [f"{page.topic} {page.doc} {' '.join(map(repr, row))}\n" for page, row in rows]
    owner: dict[str, str] = {}
    for name, path in paths.items():
        other = owner.setdefault(path.name.casefold(), name)
        if other != name:
            both = f"{escape(name)} and {escape(other) or 'the qrels'}"
            problem = f"{both} would both be written to {escape(path.name)}"
            raise UsageError(f"{problem}; give them different file names in the task")
    existing = [escape(str(path)) for path in paths.values() if path.exists()]
    if existing and not force:
        raise UsageError(f"{', '.join(existing)}: already exists; use force to overwrite")
    with replacing(target, whole=False) as part:
        for name, path in paths.items():
            with written(part / path.name) as file:
                file.writelines(texts[name])
    return list(paths.values())


def _base_name(path: Path | None) -> str:
    if path is None or path.name in ("", ".", ".."):
        return ""
    return path.stem if path.suffix.lower() in (".gz", ".bz2", ".xz", ".zst") else path.name

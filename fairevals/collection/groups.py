"""Attributes: the groups of documents and the target of each topic, aligned with the topics of the qrels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np

from fairevals.collection.inputs import is_frame, rename_columns
from fairevals.collection.memberships import Membership, SparseMembership
from fairevals.collection.qrels import Qrels
from fairevals.collection.targets import Targets, mean_of_relevant
from fairevals.errors import InputError, Place, UsageError, escape, pluralize
from fairevals.ids import Ids
from fairevals.io.memberships import (
    MembershipColumns,
    Row,
    collect,
    group_name,
    group_names,
    is_wide,
    read_memberships,
    rows_of,
)
from fairevals.io.specs import TARGET_NAMES, AttributeSpec, TargetMixture, is_mixture
from fairevals.io.streams import Limits
from fairevals.io.tables import check_distinct
from fairevals.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

    Memberships: TypeAlias = (
        pd.DataFrame | pd.Series[Any] | Mapping[str, str | Mapping[str, float]] | str | os.PathLike[str]
    )
    Target: TypeAlias = str | os.PathLike[str] | Sequence[float] | Mapping[str, Any]

SPARSE_GROUPS, SPARSE_RATIO = 256, 8
"""From so many groups on, and if there are so many times more than any document is in, memberships are sparse."""


@dataclass(frozen=True, eq=False)
class Attribute:
    """An attribute of documents: its declaration, the memberships, and the target of each topic.

    `load_attribute` makes one from a task, `Attribute.of` from Python; `bound` aligns it with the topics of qrels.
    `target` is (topics, groups), a row of NaN where the attribute does not apply or the target is undefined;
    `applies` is (topics,).

    >>> sex = Attribute.of("SEX", {"m-okafor": "she", "j-lindqvist": "he"})
    >>> sex.spec.groups
    ('he', 'she')
    """

    spec: AttributeSpec
    columns: MembershipColumns
    topics: tuple[str, ...] = ()
    """The topics of the qrels; topic codes are indices into them."""
    target: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    applies: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    numbers: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """(topics,): the topic's number in `columns`, −1 where it has no memberships."""
    judged: int = 0
    """How many judged documents the topics to which it applies have; a document judged for two topics counts twice."""
    judged_unmapped: int = 0
    """How many of them have no membership."""

    @classmethod
    def of(
        cls,
        name: str,
        memberships: Memberships,
        groups: Sequence[str] | None = None,
        kind: str | None = None,
        target: Target = "uniform",
        *,
        unmapped: str = "uniform",
        divergence: str | None = None,
        topics: Sequence[str] = ("*",),
        weight: float = 1.0,
    ) -> Attribute:
        """An attribute from Python; the other parameters mean what they mean in a task file.

        Args:
            name: as in `attr='NAME'` of a measure.
            memberships: a dict {doc: group} or {doc: {group: weight}}, a DataFrame with columns
                `[topic,] doc, group [, weight]` or `[topic,] doc` and one column of numbers for each group, a Series
                of groups whose index has the documents (or topics and documents), or the path of a memberships file.
                Weights are divided by their sum for each document, with an `InputWarning` if it is not 1. A missing
                group (None, NaN) is unknown: `unmapped` says what such a document counts as.
            groups: the groups in their order. Without them, the columns of a wide table or the categories of a
                Categorical; else the groups of a target {group: share}; else those that occur, sorted by name. Ordinal
                groups need one of the first four, and so do those of an NTCIR file.
            kind: "nominal" or "ordinal"; by default nominal, except for an ordered Categorical.
            target: "uniform", "relevant", one share for each group in their order, {group: share}, a file,
                {topic: shares}, or a mixture {"mix": [target, background], "weights": […], "unknown": group}.

        >>> faculty = Attribute.of("FACULTY", {"a": {"law": 0.25, "arts": 0.75}, "b": "law"})
        >>> faculty.spec.groups, faculty.columns.weights.tolist()
        (('arts', 'law'), [[0.75, 0.25], [0.0, 1.0]])
        >>> Attribute.of("SEX", {"a": "m"}, target={"m": 0.7, "f": 0.3}).spec.groups
        ('m', 'f')
        """
        if not isinstance(name, str) or not name:
            raise UsageError(f"the name of an attribute is {escape(repr(name))}; expected a text")
        for key, text in (("kind", kind), ("divergence", divergence)):
            if text is not None and not isinstance(text, str):
                raise _wrong(name, key, text, "a text")
        header: list[str] = []
        rows: list[Row] = []
        path = None
        if isinstance(memberships, (str, os.PathLike)):
            path = Path(memberships)
        else:
            table = _table_of(memberships, name)
            if groups is None and is_wide(table):
                groups = [column for column in table.columns if column not in ("topic", "doc")]
            dtype: Any = getattr(getattr(table, "group", None), "dtype", None)
            if hasattr(dtype, "categories"):
                groups = dtype.categories if groups is None else groups
                kind = kind or ("ordinal" if dtype.ordered else None)
            header, rows = rows_of(table, name)
        kind = kind or "nominal"
        shares = target_of(target, name)
        by_group = isinstance(shares, Mapping) and float in map(type, shares.values())
        if groups is None and kind == "ordinal" and not by_group:
            raise UsageError(f"attribute {escape(name)}: ordinal groups need groups=[…], in their order")
        if groups is None and path:
            groups = list(shares) if by_group else group_names(path)
        elif groups is None:
            used = sorted({row[header.index("group")] for _, row in rows})
            # A target that lacks a group is reported when it is used.
            groups = list(shares) if by_group and set(used) <= set(shares) else used
        for key, value, fits, expected in (
            ("groups", groups, _is_list(groups), "a list of names"),
            (
                "topics",
                topics,
                _is_list(topics) and all(isinstance(topic, str) for topic in topics),
                "a list of names or globs, such as ['R*']",
            ),
            ("weight", weight, isinstance(weight, (int, float)), "a number of at least 0"),
        ):
            if not fits:
                raise _wrong(name, key, value, expected)
        spec = AttributeSpec(
            name=name,
            groups=tuple(map(group_name, groups)),
            kind=kind,
            memberships=path,
            target=shares,
            unmapped=unmapped,
            divergence=divergence or ("RNOD" if kind == "ordinal" else "JSD"),
            topics=tuple(topics),
            weight=float(weight),
            place=Place(name),
        )
        for key, value, expected in spec.problems():
            raise _wrong(name, key, value, expected)
        if path:
            return cls(spec, read_memberships(spec))
        return cls(spec, collect(name, header, rows, spec.groups, warn="weight" in header))

    def __repr__(self) -> str:
        counts = pluralize(len(self.spec.groups), "group"), pluralize(len(self.columns.docs), "document")
        return f"<Attribute {self.spec.name!r}: {self.spec.kind}, {', '.join(counts)}>"

    def bound(self, qrels: Qrels, *, by_position: bool = False) -> Attribute:
        """The same for the topics of the qrels, with their targets.

        Raises an `InputError` if there are memberships, but none of a judged document of a topic to which it applies:
        every document would count as unmapped, and any ranking as fair. With `by_position` ids are made up, not
        given, so they cannot be wrong.
        """
        topics = qrels.topics
        numbers = np.zeros(len(topics), dtype=np.int64)
        if self.columns.topics is not None:
            number_of = {topic: number for number, topic in enumerate(self.columns.topics)}
            numbers = np.array([number_of.get(topic, -1) for topic in topics], dtype=np.int64)
        applies = np.array([self.spec.applies_to(topic) for topic in topics], dtype=bool)
        rows = np.flatnonzero(applies[qrels.topic_of])
        known = self.columns.index.find(numbers[qrels.topic_of[rows]], qrels.docs.take(rows)) >= 0
        # One that was bound before has known documents: later qrels may be a batch of few topics.
        if rows.size and not known.any() and not (by_position or self.topics):
            self._raise_unknown(qrels, int(rows[0]))
        aligned = replace(
            self,
            topics=tuple(topics),
            applies=applies,
            numbers=numbers,
            judged=rows.size,
            judged_unmapped=int(np.count_nonzero(~known)),
        )
        target = aligned.targets(qrels).of(self.spec.target)
        return replace(aligned, target=np.where(applies[:, None], target, np.nan))

    def _raise_unknown(self, qrels: Qrels, row: int) -> NoReturn:
        """Raise, with an id of each side: `doc1` against `DOC1` is the usual cause."""
        columns, spec = self.columns, self.spec
        ours, theirs = repr(escape(columns.docs.text(0))), repr(escape(qrels.docs.text(row)))
        if columns.topics is not None:
            ours += f" of topic {escape(columns.topics[int(columns.topic_of[0])])!r}"
            theirs += f" of topic {escape(qrels.topics[int(qrels.topic_of[row])])!r}"
        raise InputError(
            Place(columns.name),
            f"no judged document has a membership in {escape(spec.name)} (there is one of {ours})",
            f"memberships of documents of {escape(qrels.source, 300)}, such as {theirs}",
        )

    def rows(self, topic_codes: Ints, docs: Ids) -> Ints:
        """The row of each document in `columns`, −1 where it has no membership."""
        return self.columns.index.find(self.numbers[topic_codes], docs)

    @property
    def width(self) -> int:
        """How many numbers there are for each document in memory."""
        return self.columns.most if self.is_sparse else len(self.spec.groups)

    @property
    def is_sparse(self) -> bool:
        """Whether there are so many groups, and so few of each document, that no array of both is formed."""
        groups = len(self.spec.groups)
        return groups >= SPARSE_GROUPS and groups >= SPARSE_RATIO * self.columns.most

    def memberships(self, topic_codes: Ints, docs: Ids, rows: Ints | None = None) -> Membership:
        """The memberships (n, groups) of n documents, each of the topic `topics[code]`; `rows` if they are found.

        A document without membership gets what `unmapped` says: equal shares of all groups, the whole of one, or
        a row of zeros (`skip`); under `error` it is an `InputError`. Where the attribute does not apply the
        row is zeros. Raises before an array is made that is larger than `Limits` allow.
        """
        spec, applies = self.spec, self.applies[topic_codes]
        counts = np.bincount(topic_codes, minlength=1)
        if counts.max() * self.width > Limits.current().cells:
            topic = self.topics[int(counts.argmax())]
            many = f"{counts.max()} documents of topic {escape(topic)!r}"
            found = f"{many} in {self.width} groups of {escape(spec.name)}"
            raise InputError(Place(self.columns.name), f"{found}; raise FAIREVALS_MAX_CELLS to allow it")
        rows = self.rows(topic_codes, docs) if rows is None else rows
        unmapped = applies & (rows < 0)
        if spec.unmapped == "error":
            for row in np.flatnonzero(unmapped)[:1].tolist():
                topic = self.topics[int(topic_codes[row])]
                raise InputError(
                    Place(self.columns.name),
                    f"no membership of document {escape(docs.text(row))!r} of topic {escape(topic)!r} "
                    f"in {escape(spec.name)}",
                    'one for every document, as the task says unmapped = "error"',
                )
        rows = np.where(applies, rows, -1)
        uniform = spec.unmapped == "uniform" and "uniform" not in spec.groups
        if self.is_sparse:
            groups, shares = self.columns.few(rows)
            if spec.unmapped in spec.groups:
                groups[unmapped, 0], shares[unmapped, 0] = spec.groups.index(spec.unmapped), 1.0
            everywhere = np.where(unmapped & uniform, 1 / len(spec.groups), 0.0)[:, None]
            return SparseMembership(groups, shares, everywhere, len(spec.groups))
        weights = self.columns.dense(rows)
        if unmapped.any():
            named = [float(group == spec.unmapped) for group in spec.groups]
            weights[unmapped] = 1 / len(spec.groups) if uniform else named
        return weights

    def targets(self, qrels: Qrels) -> Targets:
        """What makes its targets for the topics of the qrels, to which it is bound."""
        relevant = partial(mean_of_relevant, qrels, self.applies, [self])
        spec = self.spec
        return Targets(spec.name, spec.groups, self.topics, self.applies, spec.place, {"relevant": relevant})


def _is_list(value: Any) -> bool:
    return np.iterable(value) and not isinstance(value, str)


def _is_missing(value: Any) -> bool:
    """Whether it is None, NaN or pandas' NA; an array is not."""
    import pandas as pd

    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def _table_of(memberships: Any, name: str) -> Any:
    """Memberships from Python as a dict or a table, without the documents whose group is missing."""
    if isinstance(memberships, Mapping):
        return {doc: group for doc, group in memberships.items() if not _is_missing(group)}
    if is_frame(memberships):
        table = rename_columns(memberships, ("topic", "doc"))
        if "group" in table.columns:
            return table.dropna(subset=["group"])
        return table.dropna(subset=table.columns.difference(["topic", "doc"]), how="all")
    levels = getattr(getattr(memberships, "index", None), "nlevels", 0)
    if not 1 <= levels <= 2:
        expected = "a dict {doc: group}, a DataFrame, a Series of groups by document, or a path"
        raise _wrong(name, "memberships", memberships, expected)
    return memberships.dropna().rename("group").rename_axis(["topic", "doc"][-levels:]).reset_index()


def target_of(target: Any, name: str, known: Sequence[str] = TARGET_NAMES) -> Any:
    """A target given from Python as an `AttributeSpec` holds it; `known` are the distributions with a name."""
    if isinstance(target, (str, os.PathLike)):
        return target if target in known else Path(target)
    if isinstance(target, TargetMixture):
        return target
    if is_mixture(target):
        try:
            return TargetMixture.of(target, partial(target_of, name=name, known=known))
        except ValueError as error:
            raise _wrong(name, "target", target, str(error)) from None
    if hasattr(target, "to_dict"):  # a Series
        target = target.to_dict()
    try:
        if not isinstance(target, Mapping):
            return tuple(map(float, target))
        check_distinct(list(map(group_name, target)), f"attribute {escape(name)}: target")
        return {
            group_name(key): tuple(map(float, row)) if isinstance(row, Iterable) else float(row)
            for key, row in target.items()
        }
    except UsageError:
        raise
    except (TypeError, ValueError):
        expected = f"{', '.join(map(repr, known))}, shares, {{group: share}}, {{topic: shares}} or a file"
        raise _wrong(name, "target", target, expected) from None


def _wrong(name: str, key: str, value: Any, expected: str) -> UsageError:
    return UsageError(f"attribute {escape(name)}: {key}={escape(repr(value))}; expected {expected}")


def load_attribute(spec: AttributeSpec, qrels: Qrels) -> Attribute:
    """Read the attribute of a task, with a target for every topic of the qrels."""
    return Attribute(spec, read_memberships(spec)).bound(qrels)

"""Intersections of attributes: groups such as `women × Africa`, to which a document belongs in part or whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from fairevals.collection.groups import Attribute, target_of
from fairevals.collection.memberships import Membership
from fairevals.collection.products import product_membership
from fairevals.collection.qrels import Qrels
from fairevals.collection.targets import Targets, mean_of_relevant
from fairevals.errors import InputError, Place, UsageError, escape, names, pluralize
from fairevals.ids import Ids
from fairevals.io.specs import INTERSECTION_TARGETS, AttributeSpec, IntersectionSpec, TargetMixture
from fairevals.typing import Bools, Floats, Ints

MAX_PRODUCT_GROUPS = 1 << 16
MAX_CELLS = 1 << 26
"""How many targets, topics × groups, an intersection has at most."""


@dataclass(frozen=True, eq=False)
class Intersection:
    """The product of two or more attributes, which measures take as attr='…' like an attribute.

    A document's membership in a group `g1 × g2` is the product of its memberships in g1 and g2. It is known if the
    document is known in every attribute. An intersection is nominal, whatever its attributes are, and GFR, which is
    about single attributes, leaves it out. `Intersection.of` makes one in Python; `bound` aligns it with the topics
    of qrels.
    """

    declared: IntersectionSpec
    spec: AttributeSpec
    """What it has in common with an attribute; its groups are known when it is bound."""
    topics: tuple[str, ...] = ()
    target: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(topics, groups); a row of NaN where it does not apply or the target is undefined."""
    applies: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """(topics,): whether all of its attributes apply."""
    base: int = 0
    """The number of the attribute in which documents are looked up."""
    joins: tuple[Ints, ...] = ()
    """For each attribute, where its memberships of the documents in the base are."""

    @classmethod
    def of(cls, name: str, of: Sequence[str], target: Any = "product") -> Intersection:
        """An intersection of the attributes with these names.

        Args:
            name: as in `attr='NAME'` of a measure.
            of: the names of two or more attributes.
            target: "product" of the targets of the attributes, or any target of an attribute, over the product
                groups. In a mixture, "backgrounds" stands for those of the attributes' own mixtures.

        >>> sex, age = {"a": "f", "b": "m"}, {"a": "old", "b": {"old": 0.25, "young": 0.75}}
        >>> both = Intersection.of("BOTH", ["SEX", "AGE"])
        >>> import fairevals as fe
        >>> run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1, "b": 1}}
        >>> result = fe.evaluate(run, qrels, ["AWRF(attr='BOTH')"], groups={"SEX": sex, "AGE": age, "BOTH": both})
        >>> round(float(result.scores.values[0, 0, 0]), 4)
        0.7918
        """
        if isinstance(of, str) or not all(isinstance(one, str) for one in of):
            raise UsageError(
                f"intersection {escape(name)}: of={escape(repr(of))}; expected names of attributes"
            )
        spec = IntersectionSpec(name, tuple(of), target_of(target, name, INTERSECTION_TARGETS), Place(name))
        for key, value, expected in spec.problems():
            raise UsageError(f"intersection {escape(name)}: {key}={escape(repr(value))}; expected {expected}")
        return cls.from_spec(spec)

    @classmethod
    def from_spec(cls, declared: IntersectionSpec) -> Intersection:
        """As a task declares it, not yet bound to topics."""
        return cls(
            declared,
            AttributeSpec(declared.name, (), target=declared.target, weight=0.0, place=declared.place),
        )

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of its attributes."""
        return self.declared.of

    def bound(self, qrels: Qrels, parts: Sequence[Attribute]) -> Intersection:
        """The same for the topics of the qrels, with their targets; `parts` are its attributes, bound to them."""
        place, name = self.spec.place, self.spec.name
        count, limit = prod(len(part.spec.groups) for part in parts), MAX_CELLS // max(1, len(qrels.topics))
        if count > min(limit, MAX_PRODUCT_GROUPS):
            found = f"an intersection {escape(name)} of {count} groups"
            raise InputError(
                place,
                found,
                f"at most {min(limit, MAX_PRODUCT_GROUPS)} with {pluralize(len(qrels.topics), 'topic')}",
            )
        groups = tuple(map(" × ".join, product(*(part.spec.groups for part in parts))))
        if len(set(groups)) < count:
            found = f"an intersection {escape(name)} with two groups of one name"
            raise InputError(place, found, "names of groups without ' × '")
        applies = np.logical_and.reduce([part.applies for part in parts])
        targets = Targets(
            name,
            groups,
            qrels.topics,
            applies,
            place,
            {
                "relevant": partial(mean_of_relevant, qrels, applies, parts),
                "product": partial(product_membership, [part.target for part in parts]),
            },
        )
        base = next((at for at, part in enumerate(parts) if part.columns.topics is not None), 0)
        given = self.declared.target
        if isinstance(given, TargetMixture) and "backgrounds" in given.mix:
            if given.mix[1:] != ("backgrounds",) or given.unknown is not None:
                found = f"a mixture of {names(map(str, given.mix))}"
                expected = '{mix = ["relevant", "backgrounds"]}, as the attributes say what is unknown'
                raise InputError(place, found, expected)
            target = self._with_backgrounds(targets.of(given.mix[0]), given.weights[0], qrels, parts)
        else:
            target = targets.of(given)
        return replace(
            self,
            spec=replace(self.spec, groups=groups),
            topics=tuple(qrels.topics),
            target=np.where(applies[:, None], target, np.nan),
            applies=applies,
            base=base,
            joins=tuple(part.columns.rows_of(parts[base].columns) for part in parts),
        )

    def memberships(self, parts: Sequence[Attribute], topic_codes: Ints, docs: Ids) -> list[Membership]:
        """The memberships (n, groups) of n documents in each of its attributes, `parts`.

        Documents are looked up in one attribute, and only those that it does not have in the others too.
        """
        found = parts[self.base].rows(topic_codes, docs)
        lacking = np.flatnonzero(found < 0)
        memberships = []
        for part, join in zip(parts, self.joins, strict=True):
            rows = np.where(found >= 0, join[found], -1)
            rows[lacking] = part.rows(topic_codes[lacking], docs.take(lacking))
            memberships.append(part.memberships(topic_codes, docs, rows))
        return memberships

    def _with_backgrounds(
        self, target: Floats, own: float, qrels: Qrels, parts: Sequence[Attribute]
    ) -> Floats:
        """The target mixed with the backgrounds of those attributes whose own targets are mixtures."""
        backgrounds: dict[int, tuple[Bools, Floats]] = {}
        for axis, part in enumerate(parts):
            if isinstance(part.spec.target, TargetMixture):
                made = part.targets(qrels)
                backgrounds[axis] = made.known(part.spec.target), made.background(part.spec.target)
        if not backgrounds:
            found = f"no attribute of {escape(self.spec.name)} with a background"
            raise InputError(
                self.spec.place, found, 'an attribute with target = {mix = ["relevant", "FILE"]}'
            )
        shape = [len(part.spec.groups) for part in parts]
        mixed = np.empty(target.shape)
        for topic, row in enumerate(target):
            of_topic = {axis: (known, shares[topic]) for axis, (known, shares) in backgrounds.items()}
            mixed[topic] = mix_backgrounds(row.reshape(shape), of_topic, own).ravel()
        return mixed


def mix_backgrounds(target: Floats, backgrounds: Mapping[int, tuple[Bools, Floats]], own: float) -> Floats:
    """A target over the product of attributes, one axis for each, mixed with backgrounds of some of them.

    `backgrounds` has, by axis, which of its groups are known, and their background shares. The cells in which exactly
    the attributes K are known (of those with a background) have the mass c in the target T. Their target becomes
    own·T + (1 − own)·c·Π_{a∈K} b_a·T(other attributes | cell), and cells without any known attribute keep T. The other
    attributes are those without a background; where T has no mass in a cell, theirs is that of all cells, as in TREC
    2022 Fair Ranking.

    >>> known, half = np.array([False, True, True]), np.array([0.0, 0.5, 0.5])
    >>> mix_backgrounds(np.array([0.2, 0.8, 0.0]), {0: (known, half)}, 0.5)
    array([0.2, 0.6, 0.2])
    """
    others = tuple(axis for axis in range(target.ndim) if axis not in backgrounds)
    cell_mass = target.sum(axis=others, keepdims=True)
    of_all = target.sum(axis=tuple(backgrounds), keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        conditional = np.where(cell_mass > 0, target / cell_mass, of_all / of_all.sum())
    case_mass, spread, some_known = cell_mass, conditional, np.zeros((1,) * target.ndim, dtype=bool)
    for axis, (known, background) in backgrounds.items():
        along = [-1 if other == axis else 1 for other in range(target.ndim)]
        # The sum over the groups that are known, or unknown, as each group is.
        same = (known[:, None] == known).astype(np.float64)
        case_mass = np.moveaxis(np.tensordot(case_mass, same, axes=(axis, 0)), -1, axis)
        spread = spread * np.where(known, background, 1.0).reshape(along)
        some_known = some_known | known.reshape(along)
    return np.where(some_known, own * target + (1 - own) * case_mass * spread, target)

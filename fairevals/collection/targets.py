"""The target of an attribute, or of an intersection of attributes, for each topic."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.collection.memberships import Membership, SparseMembership, map_rows
from fairevals.collection.products import product_sums
from fairevals.collection.qrels import Qrels
from fairevals.errors import InputError, Place, escape, names
from fairevals.io.specs import TargetMixture
from fairevals.io.targets import checked_target, read_target_file
from fairevals.typing import Bools, Floats

if TYPE_CHECKING:
    from fairevals.collection.groups import Attribute

MEAN_CELLS = 1 << 23
"""About how many memberships are averaged together, unless one topic alone has more."""


@dataclass(frozen=True)
class Targets:
    """Makes the targets (topics, groups) of one attribute or intersection from what its specification says."""

    name: str
    groups: tuple[str, ...]
    topics: tuple[str, ...]
    applies: Bools
    """(topics,): other topics need no target; their rows are arbitrary."""
    place: Place
    """Where the specification is."""
    named: Mapping[str, Callable[[], Floats]]
    """Distributions that a target may name, such as "relevant"; "uniform" always is one."""

    def of(self, target: Any) -> Floats:
        """The target of every topic to which it applies."""
        if isinstance(target, TargetMixture):
            return self._mixed(target)
        return self._shares(target, self.groups)

    def known(self, mixture: TargetMixture) -> Bools:
        """(groups,): which groups are known, that is, all but the mixture's `unknown`."""
        if mixture.unknown is not None and mixture.unknown not in self.groups:
            found = f"unknown = {escape(mixture.unknown)!r}"
            raise InputError(self.place, found, f"one of {names(self.groups)}")
        return np.array([group != mixture.unknown for group in self.groups])

    def background(self, mixture: TargetMixture) -> Floats:
        """(topics, groups): the mean of the backgrounds by their weights, 0 for the unknown group."""
        known = self.known(mixture)
        groups = tuple(np.array(self.groups, dtype=object)[known])
        background = np.zeros((len(self.topics), len(self.groups)))
        for target, weight in zip(mixture.mix[1:], mixture.weights[1:], strict=True):
            if isinstance(target, str) and target != "uniform":
                shares = self._shares(target, self.groups)[:, known]
                shares = shares / shares.sum(axis=1, keepdims=True)
            else:
                shares = self._shares(target, groups)
            background[:, known] += weight / sum(mixture.weights[1:]) * shares
        return background

    def _mixed(self, mixture: TargetMixture) -> Floats:
        """w·T + (1−w)·c·b on the known groups, c their mass in T; the unknown group keeps its share."""
        known, own = self.known(mixture), mixture.weights[0]
        target = self._shares(mixture.mix[0], self.groups)
        mass = target[:, known].sum(axis=1, keepdims=True)
        return np.where(known, own * target + (1 - own) * mass * self.background(mixture), target)

    def _shares(self, target: Any, groups: tuple[str, ...]) -> Floats:
        """(topics, groups) from a target that is not a mixture; `groups` may be only the known ones."""
        shape, place = (len(self.topics), len(groups)), self.place
        if target == "uniform":
            return np.full(shape, 1 / len(groups))
        if isinstance(target, str) and target in self.named:
            return self.named[target]()
        if isinstance(target, (str, os.PathLike)):
            if not Path(target).exists():
                found = f"target {escape(os.fspath(target), 300)!r}: there is no such file"
                expected = f"{names(map(repr, ('uniform', *self.named)))}, shares of the groups, or a file"
                raise InputError(place, found, expected)
            place, target = Place(os.fspath(target)), read_target_file(target, groups)
        elif isinstance(target, Mapping) and all(
            isinstance(share, (int, float)) for share in target.values()
        ):
            if set(target) != set(groups):
                raise InputError(place, f"a target for {names(target)}", f"a share for {names(groups)}")
            target = checked_target([target[group] for group in groups], groups, place)
        elif isinstance(target, Mapping):
            target = {topic: checked_target(row, groups, place) for topic, row in target.items()}
        else:
            target = checked_target(target, groups, place)
        if not isinstance(target, Mapping):
            return np.broadcast_to(np.array(target), shape)
        rows = np.full(shape, np.nan)
        for code in np.flatnonzero(self.applies).tolist():
            topic = self.topics[code]
            if topic not in target and "*" not in target:
                raise InputError(
                    place,
                    f"no target of {escape(self.name)} for topic {escape(topic)!r}",
                    'one for every topic that it applies to, or "*" = […] for the rest',
                )
            rows[code] = target[topic] if topic in target else target["*"]
        return rows


def mean_of_relevant(qrels: Qrels, applies: Bools, parts: Sequence[Attribute]) -> Floats:
    """(topics, groups): the mean membership of each topic's documents with a grade above 0, in one or more attributes.

    Documents without membership count as `unmapped` says; skipped ones do not count. A topic without any other
    has no target (NaN). Of several attributes, the groups are those of their product.
    """
    relevant = np.flatnonzero((qrels.grades > 0) & applies[qrels.topic_of])
    relevant = relevant[np.argsort(qrels.topic_of[relevant], kind="stable")]
    size = len(qrels.topics)
    starts = np.searchsorted(qrels.topic_of[relevant], np.arange(size + 1))
    mean = np.full((size, prod(len(part.spec.groups) for part in parts)), np.nan)
    # Some topics at a time: the memberships of all relevant documents in thousands of groups need not fit.
    _, cuts = np.unique(
        starts[:-1] // (1 + MEAN_CELLS // max(part.width for part in parts)), return_index=True
    )
    for first, last in pairwise((*cuts.tolist(), size)):
        here = relevant[starts[first] : starts[last]]
        rows = [part.memberships(qrels.topic_of[here], qrels.docs.take(here)) for part in parts]
        counted: Bools = np.all([each.any(axis=1) for each in rows], axis=0)
        for topic in range(first, last):
            mine = slice(starts[topic] - starts[first], starts[topic + 1] - starts[first])
            if counted[mine].any():
                of_topic = [map_rows(each, itemgetter(mine)) for each in rows]
                mean[topic] = _sums(of_topic, counted[mine]) / np.count_nonzero(counted[mine])
    return mean


def _sums(factors: Sequence[Membership], counted: Bools) -> Floats:
    """The sums (groups,) of the memberships (document, group) of the documents that count."""
    if len(factors) > 1:
        return product_sums(counted.astype(np.float64), factors)
    (membership,) = factors
    if isinstance(membership, SparseMembership):
        return membership.sums(np.ones(counted.size))
    sums: Floats = membership.sum(axis=0)
    return sums

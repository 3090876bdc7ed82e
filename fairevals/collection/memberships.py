"""Memberships (…, document, group): an array, or few weights per document where there are many groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from fairevals.errors import UsageError
from fairevals.io.streams import Limits
from fairevals.typing import Bools, Floats, Ints


@dataclass(frozen=True)
class SparseMembership:
    """Memberships of documents that are in few of many groups, without an array of documents × groups.

    It has those operations of an array that views and sums need. `group` and `weight` are (…, document, m): the
    groups of each document ascend, and the rest is padded with the weight 0. A document without known groups may be
    in all of them alike: `everywhere` (…, document, 1) is its share in each.

    >>> some = SparseMembership(np.array([[1, 2], [0, 0]]), np.array([[0.5, 0.5], [0, 0]]), np.array([[0], [1 / 3]]), 3)
    >>> some.dense().round(2)
    array([[0.  , 0.5 , 0.5 ],
           [0.33, 0.33, 0.33]])
    """

    group: Ints
    weight: Floats
    everywhere: Floats
    groups: int

    @property
    def shape(self) -> tuple[int, ...]:
        """(…, document, group)."""
        return (*self.weight.shape[:-1], self.groups)

    def map(self, rows: Callable[[Any], Any]) -> SparseMembership:
        """Memberships of other documents: `rows` selects them from an array (…, document, any), or sets them to 0."""
        return SparseMembership(
            rows(self.group).astype(np.int64), rows(self.weight), rows(self.everywhere), self.groups
        )

    def any(self, axis: int = -1) -> Bools:
        """(…, document): whether it has a membership; as for an array, over the last axis."""
        known: Bools = np.any(self.weight, axis=axis) | np.any(self.everywhere, axis=axis)
        return known

    def argmax(self, axis: int = -1) -> Ints:
        """(…, document): the first of the groups with the largest membership."""
        largest = np.take_along_axis(self.group, self.weight.argmax(axis)[..., None], axis)[..., 0]
        return np.where(self.weight.any(axis), largest, 0)

    def split(self, group: int) -> tuple[Floats, Floats]:
        """(…, document): the memberships in one group, and in all others together."""
        mine = np.where(self.group == group, self.weight, 0.0).sum(axis=-1)
        others = np.where(self.group == group, 0.0, self.weight).sum(axis=-1)
        everywhere = self.everywhere[..., 0]
        return mine + everywhere, others + (self.groups - 1) * everywhere

    def sums(self, values: Floats) -> Floats:
        """The sums (…, group) of (…, document) values, weighted by the memberships; documents are added in order."""
        shape = np.broadcast_shapes(values.shape, self.weight.shape[:-1])
        lists = np.arange(prod(shape[:-1])).reshape(*shape[:-1], 1)
        return self.sums_by(np.broadcast_to(lists, shape), lists.size, values).reshape(
            *shape[:-1], self.groups
        )

    def sums_by(self, key: Ints, size: int, values: Floats) -> Floats:
        """The sums (size, group) over the documents of each key below `size`."""
        cells = key[..., None] * self.groups + self.group
        weighted = np.broadcast_to(values[..., None] * self.weight, cells.shape)
        sums: Floats = np.bincount(cells.ravel(), weighted.ravel(), size * self.groups)  # type: ignore[assignment]
        sums = sums.reshape(size, self.groups)
        if self.everywhere.any():
            shared = np.broadcast_to(values * self.everywhere[..., 0], key.shape)
            sums += np.bincount(key.ravel(), shared.ravel(), size)[:, None]
        return sums

    def spread(self, by_group: Floats) -> Floats:
        """The sums (…, document) of values (…, group), weighted by the memberships: the transpose of `sums`."""
        picked = np.take_along_axis(by_group[..., None, :], self.group, axis=-1)
        of_all = (
            self.everywhere[..., 0] * by_group.sum(axis=-1, keepdims=True) if self.everywhere.any() else 0.0
        )
        spread: Floats = np.cumsum(picked * self.weight, axis=-1)[..., -1] + of_all
        return spread

    def dense(self) -> Floats:
        """As an array, unless it is larger than `Limits` allow."""
        check_cells(prod(self.shape[:-1]), self.groups)
        weights = np.empty(self.shape)
        weights[...] = self.everywhere
        first = self.groups * np.arange(prod(self.shape[:-1])).reshape(*self.shape[:-1], 1)
        np.add.at(weights.reshape(-1), (first + self.group).ravel(), self.weight.ravel())  # padding adds 0
        return weights


Membership: TypeAlias = "Floats | SparseMembership"


def check_cells(documents: int, groups: int) -> None:
    """Raise if an array of documents × groups is larger than `Limits` allow."""
    if documents * groups > Limits.current().cells:
        raise UsageError(
            f"a measure needs the memberships of {documents:,} documents in each of {groups:,} groups; "
            "raise FAIREVALS_MAX_CELLS to allow it"
        )


def dense(membership: Membership) -> Floats:
    """As an array (…, document, group)."""
    return membership.dense() if isinstance(membership, SparseMembership) else membership


def map_rows(membership: Membership, rows: Callable[[Any], Any]) -> Any:
    """The memberships of other documents: `rows` selects them from an array (…, document, group), or sets them to 0."""
    return membership.map(rows) if isinstance(membership, SparseMembership) else rows(membership)

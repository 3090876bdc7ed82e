"""The target shares of groups: checked numbers, and files of them."""

import math
import os
import warnings
from collections.abc import Sequence

import numpy as np

from fairevals.errors import InputError, InputWarning, Place, escape, names
from fairevals.io.decimals import number_of
from fairevals.io.memberships import normalise_rows
from fairevals.io.streams import Source
from fairevals.io.tables import has_header, table, text_lines

TARGET_TOLERANCE = 1e-4
"""How far from 1 the sum of a target may be: enough for shares printed with four decimals."""


def checked_target(values: Sequence[float], groups: Sequence[str], place: Place) -> tuple[float, ...]:
    """A target as shares that sum to 1; an error unless there is one number per group and they almost do.

    If the sum is not 1 (by more than 1e-12), an `InputWarning` reports that it was normalised.
    """
    if len(values) != len(groups):
        raise InputError(place, f"a target of {len(values)} numbers", f"{len(groups)}, one for each group")
    for value in values:
        if not 0 <= value < math.inf:
            raise InputError(place, f"{value!r} in a target", "numbers of at least 0")
    total = math.fsum(values) if max(values) < 2 else sum(values)  # fsum raises if huge numbers overflow
    if abs(total - 1) > TARGET_TOLERANCE:
        raise InputError(place, f"a target that sums to {total:.10g}", f"1 (within {TARGET_TOLERANCE:g})")
    if abs(total - 1) > 1e-12:
        message = f"{place}: the target sums to {total:.13g}; it was divided by that"
        warnings.warn(InputWarning(message), stacklevel=2)
    shares = np.array(values, dtype=np.float64) + 0.0  # never −0
    return tuple(normalise_rows(shares, np.zeros(len(values), dtype=np.int64), len(values)).tolist())


def read_target_file(
    path: str | os.PathLike[str], groups: Sequence[str]
) -> tuple[float, ...] | dict[str, tuple[float, ...]]:
    """The shares of the groups in their order, or those of each topic, from a file.

    A header (csv or tsv) with a column `topic` and one for each group: one line per topic, `*` for all others. With a
    column `group` and one more: one line per group. Without a header, as FairWeb's `golddistr`: one probability per
    line, in the order of the groups. Several on one line are accepted too; blank lines are skipped.
    """
    source = Source.of(path)
    if has_header(source, "topic"):
        return _by_topic(source, groups)
    if has_header(source, "group"):
        return _by_group(source, groups)
    values: list[float] = []
    place = Place(source.name)
    for number, line in text_lines(source, "a target"):
        place = Place(source.name, number)
        for part in line.encode().split():
            value = number_of(part)
            if not value >= 0:
                error = InputError(place, f"probability {escape(part)!r}", "a number of at least 0")
                source.refuse(error, "a target")
            if len(values) == len(groups):
                raise InputError(place, f"more than {len(groups)} numbers", "one for each group")
            values.append(value)
    return checked_target(values, groups, place)


def _share(cell: str, place: Place) -> float:
    value = number_of(cell)
    if not value >= 0:
        raise InputError(place, f"share {escape(cell)!r}", "a number of at least 0")
    return value


def _by_topic(source: Source, groups: Sequence[str]) -> dict[str, tuple[float, ...]]:
    start, header, rows = table(source, ("topic",))
    if set(header) != {"topic", *groups}:
        raise InputError(
            Place(source.name, start),
            f"columns {names(header)}",
            f"topic and one for each of {names(groups)}",
        )
    shares: dict[str, tuple[float, ...]] = {}
    for line, row in rows:
        place, cells = Place(source.name, line), dict(zip(header, row, strict=True))
        if not cells["topic"] or cells["topic"] in shares:
            found = (
                f"the topic {escape(cells['topic'])!r} a second time" if cells["topic"] else "an empty topic"
            )
            raise InputError(place, found, "one line per topic")
        shares[cells["topic"]] = checked_target([_share(cells[g], place) for g in groups], groups, place)
    return shares


def _by_group(source: Source, groups: Sequence[str]) -> tuple[float, ...]:
    line, header, rows = table(source, ("group",))
    if len(header) != 2:
        raise InputError(
            Place(source.name, line), f"columns {names(header)}", "group and the column of its share"
        )
    at, shares = header.index("group"), dict[str, float]()
    for line, row in rows:
        place, group = Place(source.name, line), row[at]
        if group not in groups:
            raise InputError(
                place, f"a share for the unknown group {escape(group)!r}", f"one of {names(groups)}"
            )
        if group in shares:
            raise InputError(place, f"the group {escape(group)!r} a second time", "one line per group")
        shares[group] = _share(row[1 - at], place)
    for group in groups:
        if group not in shares:
            found = f"no share for the group {escape(group)!r}"
            raise InputError(Place(source.name, line), found, "one line per group")
    return checked_target([shares[group] for group in groups], groups, Place(source.name, line))

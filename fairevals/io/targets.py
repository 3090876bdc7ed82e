"""Targets: the shares that the groups of an attribute should have."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Sequence

import numpy as np

from fairevals.errors import InputError, InputWarning, Place, escape
from fairevals.io.delimited import text_of
from fairevals.io.groups import TOLERANCE, number_of, shares
from fairevals.io.streams import Source


def checked_target(values: Sequence[float], groups: Sequence[str], place: Place) -> tuple[float, ...]:
    """A target as shares that sum to 1; an error unless there is one for each group and they almost do.

    Where the sum was not 1 (by more than 1e-12), an `InputWarning` says that it was normalised.
    """
    if len(values) != len(groups):
        raise InputError(place, f"a target of {len(values)} numbers", f"{len(groups)}, one for each group")
    for value in values:
        if not 0 <= value < math.inf:
            raise InputError(place, f"{value!r} in a target", "numbers of at least 0")
    total = math.fsum(values)
    if abs(total - 1) > TOLERANCE:
        raise InputError(place, f"a target that sums to {total:.10g}", f"1 (within {TOLERANCE:g})")
    if abs(total - 1) > 1e-12:
        warnings.warn(
            InputWarning(f"{place}: the target sums to {total:.13g}; it was divided by that"), stacklevel=2
        )
    return tuple(shares(np.array(values, dtype=np.float64)).tolist())


def read_target_file(path: str | os.PathLike[str], groups: Sequence[str]) -> tuple[float, ...]:
    """A target from a file such as FairWeb's `golddistr`: one probability a line, in the order of the groups.

    All on one line will do too; blank lines are passed over.
    """
    source = Source.of(path)
    values: list[float] = []
    place = Place(source.name)
    for number, line in source.lines():
        for part in line.split():
            place = Place(source.name, number)
            text_of(line, place)
            value = number_of(part)
            if not value >= 0:
                raise InputError(place, f"probability {escape(part)!r}", "a number of at least 0")
            if len(values) == len(groups):
                raise InputError(place, f"more than {len(groups)} numbers", "one for each group")
            values.append(value)
    return checked_target(values, groups, place)

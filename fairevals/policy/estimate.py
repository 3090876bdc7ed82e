"""A value and how far it may be off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Estimate"]

FloatArray: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """``value``, and its standard error ``se``: None where the value is exact.

    >>> Estimate(np.array([0.5])).se is None
    True
    """

    value: FloatArray
    se: FloatArray | None = None

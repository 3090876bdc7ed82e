"""A value and how far it may be off."""

from __future__ import annotations

from dataclasses import dataclass

from fairevals.typing import Floats

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """``value``, and its standard error ``se``: None where the value is exact.

    >>> import numpy as np
    >>> Estimate(np.array([0.5])).se is None
    True
    """

    value: Floats
    se: Floats | None = None

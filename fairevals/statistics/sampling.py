"""Where the uncertainty of a mean comes from: which topics there are, and which rankings were drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairevals.typing import Floats

NEGLIGIBLE = 0.1
"""Up to this share of the whole standard error, that of sampling rankings is negligible."""


@dataclass(frozen=True)
class Spread:
    """The standard error of a mean over topics, and its parts."""

    total: float
    """s/√n: what a t-test divides by. It holds both parts; NaN with fewer than two topics."""
    topics: float
    """What more samples cannot take away: √max(0, total² − sampling²)."""
    sampling: float
    """From drawing rankings, √(Σ se²)/n; NaN where every value is exact."""

    @property
    def notable(self) -> bool:
        """Whether the sampling error is not negligible: above `NEGLIGIBLE` of the whole.

        At that bound another seed moves a t of 2 by about 0.1, and so a p of 0.05 by about 0.01. It is notable
        too where there is nothing to compare it with: a single topic, or topics that do not differ.
        """
        if math.isnan(self.sampling) or self.sampling == 0:
            return False
        return math.isnan(self.total) or self.sampling > NEGLIGIBLE * self.total


def spread_of(values: Floats, errors: Floats) -> Spread:
    """The standard error of the mean of `values` (topics,), and how much of it comes from sampling.

    `errors` are the standard errors of the values, (topics,) or (parts, topics) where each value is a sum or
    difference of independently sampled parts; NaN is exact. The spread over topics that is seen holds the
    sampling error already (Var(x̂) = Var(x) + E[se²]), so intervals and tests from it need no correction.

    >>> exact = spread_of(np.array([0.2, 0.4]), np.array([np.nan, np.nan]))
    >>> round(exact.total, 9), exact.sampling, exact.notable
    (0.1, nan, False)
    >>> spread_of(np.array([0.2, 0.4]), np.array([0.03, 0.04])).notable
    True
    """
    n = values.size
    total = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    if not n or np.isnan(errors).all():
        return Spread(total, total, math.nan)
    sampling = math.sqrt(math.fsum((np.nan_to_num(errors) ** 2).ravel())) / n
    return Spread(total, math.sqrt(max(0.0, total**2 - sampling**2)) if n > 1 else math.nan, sampling)

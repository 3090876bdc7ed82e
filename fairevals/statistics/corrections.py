"""Corrections of p-values for testing many hypotheses. NaN, a test that says nothing, is not one of them."""

from __future__ import annotations

import numpy as np

from fairevals.errors import UsageError, escape
from fairevals.typing import Floats

CORRECTIONS = {"holm": "Holm", "bh": "Benjamini–Hochberg", "none": "none"}
"""Every correction and what people call it."""


def holm(p: Floats) -> Floats:
    """Holm's step-down correction, max_{j ≤ i} min(1, (m − j + 1) p₍ⱼ₎): the chance of any false discovery.

    Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6, 1979.

    >>> holm(np.array([0.01, 0.04, np.nan, 0.03]))
    array([0.03, 0.06,  nan, 0.06])
    """
    p = np.asarray(p, dtype=np.float64)
    found = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    left = np.arange(order.size, 0, -1)
    found[order] = np.minimum(np.maximum.accumulate(left * p[order]), 1.0)
    return found


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's step-up correction, min_{j ≥ i} min(1, m p₍ⱼ₎ / j): the rate of false discoveries.

    Benjamini & Hochberg, "Controlling the false discovery rate", JRSS B 57, 1995.

    >>> benjamini_hochberg(np.array([0.01, 0.04, np.nan, 0.03]))
    array([0.03, 0.04,  nan, 0.04])
    """
    p = np.asarray(p, dtype=np.float64)
    found = np.full(p.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")][::-1]
    place = np.arange(order.size, 0, -1)
    found[order] = np.minimum(np.minimum.accumulate(p[order] * order.size / np.maximum(place, 1)), 1.0)
    return found


def correct(p: Floats, correction: str) -> Floats:
    """The p-values of one family, corrected: `holm`, `bh` or `none`."""
    if correction == "holm":
        return holm(p)
    if correction == "bh":
        return benjamini_hochberg(p)
    if correction == "none":
        return np.array(p, dtype=np.float64)
    raise UsageError(f"the correction is {escape(correction)!r}; expected one of {', '.join(CORRECTIONS)}")

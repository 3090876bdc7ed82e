"""How far annotators agree beyond chance, from counts."""

from __future__ import annotations

import numpy as np

from fairevals.typing import Array


def krippendorff_alpha(counts: Array, times: Array | None = None) -> float:
    """Krippendorff's alpha for nominal values, any number of annotators, missing values allowed.

    `counts` is (units, values): how many annotators gave the unit each value; `times` (units,) how often such
    a unit occurs (once). alpha = 1 − D_o/D_e with the coincidences
    o_ck = Σ_u n_uc·(n_uk − [c=k])/(m_u − 1) over units of m_u ≥ 2 annotators, n_c = Σ_k o_ck, n = Σ_c n_c,
    D_o = Σ_{c≠k} o_ck/n, D_e = Σ_{c≠k} n_c·n_k/(n·(n−1)). NaN where no unit has two annotators, and where all
    values are the same: then there was nothing to disagree on.
    See Krippendorff: Content Analysis, chapter "Reliability"; the example is from his "Computing
    Krippendorff's alpha-reliability" (2011).

    >>> ratings = [(0, 1), (1, 1), (0, 1), (0, 0), (0, 0), (0, 1), (0, 0), (0, 0), (1, 0), (0, 0)]
    >>> counts = np.array([[pair.count(value) for value in (0, 1)] for pair in ratings])
    >>> round(krippendorff_alpha(counts), 3)
    0.095
    """
    annotators = counts.sum(axis=1)
    paired = annotators >= 2
    counts, annotators = counts[paired].astype(np.float64), annotators[paired]
    weight = (np.ones(len(counts)) if times is None else times[paired]) / (annotators - 1)
    together = np.einsum("u,uc,uk->ck", weight, counts, counts)
    together -= np.diag(weight @ counts)
    of_value = together.sum(axis=1)
    total = of_value.sum()
    by_chance = total**2 - (of_value**2).sum()
    if by_chance <= 0:
        return float("nan")
    return float(1 - (total - 1) * (total - np.trace(together)) / by_chance)


def cohen_kappa(table: Array) -> float:
    """Cohen's kappa of two annotators; `table[i, j]` counts units to which the first gave i, the second j.

    kappa = (p_o − p_e)/(1 − p_e), p_o the share of units on the diagonal, p_e = Σ_i p_i·p'_i from the
    shares p, p' of values of each. NaN without units, and where both give one and the same value throughout.

    >>> round(cohen_kappa(np.array([[20, 5], [10, 15]])), 3)
    0.4
    """
    total = table.sum()
    if total == 0:
        return float("nan")
    same = float(np.trace(table)) / total
    by_chance = float(table.sum(axis=0) @ table.sum(axis=1)) / total**2
    return float((same - by_chance) / (1 - by_chance)) if by_chance < 1 else float("nan")

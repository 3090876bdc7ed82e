"""Disparities of exposure with their gradients by the exposures: what Fair-PG-Rank's penalty needs."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from fairevals.errors import UsageError
from fairevals.measures.disparity import TIE
from fairevals.training.data import no_groups
from fairevals.typing import Floats

DISPARITIES = ("D_group", "D_ind")
TIES = ("both", "first")
"""What counts where two groups have the same mean merit, so that the definition holds for either order: the
violation in both orders, as in `fairevals.measures.disparity`; or only that of the group named first over the other,
as in the published code of Fair-PG-Rank (ξ = +1 if M_G0 ≥ M_G1). It matters where groups are small: see
`experiments.datasets.german_credit`."""


def disparity_with_gradient(
    kind: str, exposure: Floats, merits: Floats, membership: Floats | None, ties: str = "both"
) -> tuple[Floats, Floats]:
    """D(π|q) and ∂D/∂v of exposures v (topics, documents): `D_group` or `D_ind`; 0 and 0 where undefined.

    See Singh & Joachims 2019, equations 3 and 4, and `fairevals.measures.disparity` for the values.
    """
    if kind == "D_ind":
        return individual_with_gradient(exposure, merits)
    if kind != "D_group":
        raise UsageError(f"unknown disparity {kind!r}; known are {', '.join(DISPARITIES)}")
    if membership is None:
        raise no_groups("D_group")
    return group_with_gradient(exposure, merits, membership, ties)


def individual_with_gradient(exposure: Floats, merits: Floats) -> tuple[Floats, Floats]:
    """D_ind: mean over pairs M_i ≥ M_j > 0, i ≠ j, of max(0, v_i/M_i − v_j/M_j), and its gradient.

    >>> value, gradient = individual_with_gradient(np.array([[1.0, 0.2]]), np.array([[2.0, 1.0]]))
    >>> value, gradient
    (array([0.3]), array([[ 0.5, -1. ]]))
    """
    inverse = np.divide(1.0, merits, out=np.zeros_like(merits), where=merits > 0)
    ratio = exposure * inverse
    value, gradient = np.zeros(len(exposure)), np.zeros_like(exposure)
    for t in range(len(exposure)):  # a topic at a time: pairs are many
        at = np.flatnonzero(merits[t] > 0)
        m, r = merits[t, at], ratio[t, at]
        pair = m[:, None] >= m
        count = np.count_nonzero(pair) - at.size
        if count <= 0:
            continue
        excess = np.where(pair, np.maximum(r[:, None] - r, 0.0), 0.0)
        above = excess > 0
        value[t] = excess.sum() / count
        gradient[t, at] = (above.sum(axis=1) - above.sum(axis=0)) * inverse[t, at] / count
    return value, gradient


def group_with_gradient(
    exposure: Floats, merits: Floats, membership: Floats, ties: str = "both"
) -> tuple[Floats, Floats]:
    """D_group: mean over pairs of groups M̄_i ≥ M̄_j of max(0, v̄_i/M̄_i − v̄_j/M̄_j), and its gradient.

    >>> two = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    >>> group_with_gradient(np.array([[1.0, 0.2]]), np.array([[2.0, 1.0]]), two)
    (array([0.3]), array([[ 0.5, -1. ]]))
    """
    # With sums in place of means the number of documents cancels: v̄_i/M̄_i = Σv/ΣM.
    weight = membership.sum(axis=1)
    merit = np.einsum("td,tdg->tg", merits, membership)
    counted = merit > 0
    inverse = np.divide(1.0, merit, out=np.zeros_like(merit), where=counted)
    mean_merit = np.divide(merit, weight, out=np.zeros_like(merit), where=weight > 0)
    ratio = np.einsum("td,tdg->tg", exposure, membership) * inverse
    value, by_ratio, pairs = np.zeros(len(exposure)), np.zeros_like(ratio), np.zeros(len(exposure))
    for i, j in combinations(range(membership.shape[2]), 2):
        both = counted[:, i] & counted[:, j]
        margin = TIE * np.maximum(mean_merit[:, i], mean_merit[:, j])
        lead = mean_merit[:, i] - mean_merit[:, j]
        excess = ratio[:, i] - ratio[:, j]
        up = both & (excess > 0) & (lead >= -margin)
        down = both & (excess < 0) & ((lead <= margin) if ties == "both" else (lead < -margin))
        sign = up.astype(np.float64) - down
        value += sign * excess
        by_ratio[:, i] += sign
        by_ratio[:, j] -= sign
        pairs += both
    share = 1.0 / np.maximum(pairs, 1.0)
    gradient: Floats = np.einsum("tg,tdg->td", by_ratio * inverse, membership) * share[:, None]
    return value * share, gradient

"""Attention as a mixture of geometric sequences, for which exact exposure is a sum of products.

Weights ``v_1, v_2, …`` that are completely monotone are a mixture of geometric sequences (Hausdorff 1921), and a
few terms suffice for any tolerance (Beylkin & Monzón 2005):

    v_{1+c} = ∫ z^c dμ(z) ≈ Σ_q μ_q z_q^c,    μ_q ≥ 0,  0 < z_q ≤ 1.

The number N of documents that have arrived is a sum of independent variables, so ``E[z^N]`` is a product, and
leaving document i out is a division (``p_j`` and the density ``f_i`` are defined in `fairevals.policy.grid`):

    E[v_{1+N_{−i}}] = Σ_q μ_q P_q / A_iq,    A_jq = 1 − p_j + z_q p_j,    P_q = Π_j A_jq.

Time is O(nodes · n · terms) with about ten terms, instead of O(nodes · n²) for the distribution of the count. All
numbers are positive, and ``f_i / A_iq ≤ w_i t``: nothing cancels and nothing overflows.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fairevals.attention import Attention
from fairevals.typing import Floats, Ints

# So few numbers that no linear algebra library uses several threads, which would change the last bits.
_BASIS = 48
_FITTED = 256


@dataclass(frozen=True, eq=False)
class GeometricMixture:
    """The weights ``v_{1+c} = Σ_q share_q ratio_q^c``."""

    ratio: Floats  # z_q (terms,)
    share: Floats  # μ_q (terms,)

    def weights(self, k: int) -> Floats:
        """Weights of ranks 1..k, added up term by term.

        >>> GeometricMixture(np.array([0.5, 1.0]), np.array([2.0, 1.0])).weights(3)
        array([3. , 2. , 1.5])
        """
        total, count = np.zeros(k), np.arange(k)
        for ratio, share in zip(self.ratio.tolist(), self.share.tolist(), strict=True):
            total += share * ratio**count
        return total


@lru_cache(maxsize=64)
def mixture_of(model: Attention, ranks: int, tolerance: float) -> GeometricMixture | None:
    """A mixture with few terms within ``tolerance · v_1`` of the weights of ranks 1..ranks, an even number.

    In the space of functions of z with ``⟨f, g⟩ = ∫ f g dμ`` the weights determine all inner products:
    ``⟨z^a, z^b⟩ = v_{1+a+b}``, and ``⟨z^a, z · z^b⟩ = v_{2+a+b}``. The ratios are the eigenvalues of the
    multiplication by z, compressed to the directions in which powers of z are longest; for all polynomials of a
    degree that would be Gauss quadrature (Golub & Welsch 1969). The shares follow by least squares. None if
    the weights are not such a mixture, or the tolerance is too close to rounding.
    """
    weights = model.weights(ranks)
    power, fitted = _spaced(ranks // 2, _BASIS), _spaced(ranks, _FITTED)
    sums = power[:, np.newaxis] + power
    length, direction = np.linalg.eigh(weights[sums])  # in ascending order
    for terms in range(1, np.count_nonzero(length > np.finfo(float).eps * length[-1]) + 1):
        unit = direction[:, -terms:] / np.sqrt(length[-terms:])
        ratio = np.linalg.eigvalsh(unit.T @ weights[sums + 1] @ unit)
        ratio = np.clip(ratio, np.finfo(float).tiny, 1.0)  # above 0, so that one may divide by it
        share = np.linalg.lstsq(ratio ** fitted[:, np.newaxis], weights[fitted], rcond=None)[0]
        mixture = GeometricMixture(ratio, share.astype(np.float64))
        if share.min() >= 0 and np.abs(mixture.weights(ranks) - weights).max() <= tolerance * weights[0]:
            return mixture
    return None


def _spaced(end: int, most: int) -> Ints:
    """At most ``most`` of 0..end − 1: all of the small numbers, fewer of the large ones."""
    return np.unique(np.geomspace(1, end, most).astype(np.int64)) - 1

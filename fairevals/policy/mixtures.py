"""Attention as a mixture of geometric sequences, under which exact exposure needs no distribution of the count.

Weights ``v_1, v_2, …`` that are completely monotone are a mixture of geometric sequences (Hausdorff 1921), and of
its infinitely many, few are enough for any tolerance (Beylkin & Monzón 2005):

    v_{1+c} = ∫ z^c dμ(z) ≈ Σ_q μ_q z_q^c,    μ_q ≥ 0,  0 < z_q ≤ 1.

The count N of the documents that have rung is a sum of independent ones, so ``E[z^N]`` is a product, and leaving
document i out of it is a division (`fairevals.policy.exact` says what ``p_j`` and the density ``f_i`` are):

    E[v_{1+N_{−i}}] = Σ_q μ_q P_q / A_iq,    A_jq = 1 − p_j + z_q p_j,    P_q = Π_j A_jq.

Time is O(nodes · n · terms) with about ten terms, where running the count takes O(nodes · n²). All numbers are
positive, and ``f_i / A_iq ≤ w_i t``: nothing cancels and nothing overflows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fairevals.attention import Attention
from fairevals.typing import Floats, Ints

__all__ = ["Mixture", "mixture_of"]


# Few enough numbers that no linear algebra library shares them among threads, which would change the last bits.
_BASIS = 48
_FITTED = 256


@dataclass(frozen=True, eq=False)
class Mixture:
    """The weights ``v_{1+c} = Σ_q share_q ratio_q^c``."""

    ratio: Floats  # z_q (terms,)
    share: Floats  # μ_q (terms,)

    def weights(self, k: int) -> Floats:
        """Weights of ranks 1..k, added up term by term.

        >>> Mixture(np.array([0.5, 1.0]), np.array([2.0, 1.0])).weights(3)
        array([3. , 2. , 1.5])
        """
        total, count = np.zeros(k), np.arange(k)
        for ratio, share in zip(self.ratio.tolist(), self.share.tolist(), strict=True):
            total += share * ratio**count
        return total

    def integrand(self, rung: Floats, waiting: Floats, density: Floats, certain: Ints) -> Floats:
        """``f_i E[v_{1+N_{−i}}]`` (documents, rows), with ``certain`` (rows,) more documents that have rung."""
        total = np.zeros_like(density)
        for _, odds, of_all in self._terms(rung, waiting, density, certain):
            odds *= of_all
            total += odds
        return total

    def slope(
        self, rung: Floats, waiting: Floats, density: Floats, own: Floats, cotangent: Floats, certain: Ints
    ) -> Floats:
        """Derivative of ``Σ_i c_i f_i E[v_{1+N_{−i}}]`` by the scores (documents, rows).

        With ``R_jq = f_j / A_jq`` the sum is ``Σ_q μ_q P_q Σ_i c_i R_iq``; ``∂A_jq/∂s_j = −(1 − z_q) f_j`` and
        ``∂f_j/∂s_j = f_j (1 − w_j t)``, so that the derivative by ``s_j`` is

            Σ_q μ_q P_q R_jq (c_j (1 − w_j t) − (1 − z_q) Σ_{i≠j} c_i R_iq).

        ``own`` is ``c_j (1 − w_j t)``.
        """
        total = np.zeros_like(density)
        for ratio, odds, of_all in self._terms(rung, waiting, density, certain):
            slope = cotangent * odds
            slope -= np.add.reduce(slope, axis=0)
            slope *= 1.0 - ratio
            slope += own
            slope *= odds
            slope *= of_all
            total += slope
        return total

    def _terms(
        self, rung: Floats, waiting: Floats, density: Floats, certain: Ints
    ) -> Iterator[tuple[float, Floats, Floats]]:
        """For each term its ratio ``z_q``, ``f_i / A_iq`` (documents, rows) and ``μ_q P_q`` (rows,)."""
        for ratio, share in zip(self.ratio.tolist(), self.share.tolist(), strict=True):
            generating = ratio * rung
            generating += waiting
            of_all = share * ratio**certain * np.multiply.reduce(generating, axis=0)
            yield ratio, np.divide(density, generating, out=generating), of_all


@lru_cache(maxsize=64)
def mixture_of(model: Attention, ranks: int, tolerance: float) -> Mixture | None:
    """The fewest terms found that keep within ``tolerance · v_1`` of the weights of ranks 1..ranks, an even number.

    In the space of functions of z with ``⟨f, g⟩ = ∫ f g dμ`` the weights are all that need be known of μ:
    ``⟨z^a, z^b⟩ = v_{1+a+b}``, and ``⟨z^a, z · z^b⟩ = v_{2+a+b}``. The ratios are the eigenvalues of the
    multiplication by z, compressed to the directions in which powers of z are longest; for all polynomials of a
    degree that would be Gauss quadrature (Golub & Welsch 1969). The shares then follow by least squares. None if
    the weights are no such mixture, or the tolerance is too near to rounding.
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
        mixture = Mixture(ratio, share.astype(np.float64))
        if share.min() >= 0 and np.abs(mixture.weights(ranks) - weights).max() <= tolerance * weights[0]:
            return mixture
    return None


def _spaced(end: int, most: int) -> Ints:
    """Some of 0..end − 1, at most so many: all of the small ones, ever fewer of the large."""
    return np.unique(np.geomspace(1, end, most).astype(np.int64)) - 1

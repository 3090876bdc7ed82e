"""Topics drawn with replacement, a bounded number of cells at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairevals.typing import Floats

RESAMPLES = 10_000
"""How many resamples or permutations a p-value or an interval rests on, unless told otherwise."""

CELLS = 1 << 21
"""How many numbers are held together, at most (unless a single resample has more). Results do not depend on it."""


def pieces(total: int, cells_each: int) -> Iterator[int]:
    """Sizes that sum to `total`, each as large as `CELLS` allows.

    >>> list(pieces(5, CELLS // 2))
    [2, 2, 1]
    """
    step = max(1, CELLS // max(1, cells_each))
    for start in range(0, total, step):
        yield min(step, total - start)


def resampled_moments(values: Floats, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Mean and standard deviation (n − 1) of each resample of `values`, which should be centred near 0."""
    rng = np.random.default_rng(seed)
    n = values.size
    means, spreads = [], []
    for count in pieces(resamples, n):
        drawn = values[rng.integers(0, n, size=(count, n))]
        means.append(drawn.mean(axis=1))
        spreads.append(drawn.std(axis=1, ddof=1))
    return np.concatenate(means), np.concatenate(spreads)


def resampled_means(values: Floats, resamples: int, seed: int) -> Floats:
    """The mean of each resample of `values`; the same resamples as `resampled_moments`."""
    rng = np.random.default_rng(seed)
    n = values.size
    return np.concatenate(
        [values[rng.integers(0, n, size=(count, n))].mean(axis=1) for count in pieces(resamples, n)]
    )

"""Random draws that are the same on every machine and with every version of Python and numpy."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """Draws keyed by a seed and a purpose, so that a new draw in one place changes no other.

    Python guarantees the sequence of `random.Random.random` only. Everything else is made from it by sums and products;
    the last digit of a logarithm would depend on the machine.

    >>> Draws(2026, "run", "bm25").below(100) == Draws(2026, "run", "bm25").below(100)
    True
    """

    def __init__(self, seed: int, *purpose: str) -> None:
        self._random = random.Random("/".join((str(seed), *purpose)))

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def below(self, n: int) -> int:
        """A whole number in 0 … n−1."""
        return int(self._random.random() * n)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """One of the items, all equally likely."""
        return items[self.below(len(items))]

    def weighted(self, weights: Sequence[float]) -> int:
        """An index, with probability proportional to its weight."""
        rest = self.uniform() * math.fsum(weights)
        for index, weight in enumerate(weights):
            rest -= weight
            if rest < 0:
                return index
        return len(weights) - 1

    def noise(self) -> float:
        """A nearly normal number with mean 0 and variance 1: the sum of twelve uniform ones, minus 6."""
        return math.fsum(self.uniform() for _ in range(12)) - 6.0

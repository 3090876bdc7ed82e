"""FA*IR: a statistical test of whether every prefix has enough protected documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fairevals.collection import Ranked
from fairevals.measures.base import HIGHER, RankingMeasure, named, param, rank_sum
from fairevals.measures.prefix import EPS, skip_unmapped
from fairevals.typing import Floats, Ints


def binomial_cdf(count: Floats, size: Ints, p: Floats) -> Floats:
    """F(count; size, p), elementwise: the probability of at most `count` successes in `size` trials.

    A count that is not whole (from soft memberships) is rounded down.

    >>> binomial_cdf(np.array([0.0, 1.5, 2.0]), np.array([2, 2, 2]), np.array(0.5))
    array([0.25, 0.75, 1.  ])
    """
    from scipy.special import bdtr  # imported here so that listing the measures does not load scipy

    return np.asarray(bdtr(np.floor(count + EPS), size, p), dtype=np.float64)


def minimum_counts(k: int, p: float, alpha: float) -> Ints:
    """The m-table: the smallest number of protected documents with which each prefix of 1, …, k documents passes.

    A prefix of i documents passes if F(count; i, p) ≥ alpha. See Zehlike et al., CIKM 2017.

    >>> minimum_counts(10, 0.2, 0.15)
    array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1])
    """
    sizes = np.arange(1, k + 1)
    # Bisection at all sizes at once: the answer is in [low, high], and i protected documents of i always pass.
    low, high = np.zeros_like(sizes), sizes
    while (low < high).any():
        middle = (low + high) // 2
        passes = binomial_cdf(middle.astype(np.float64), sizes, np.array(p)) >= alpha
        low, high = np.where(passes, low, np.minimum(middle + 1, high)), np.where(passes, middle, high)
    return high


def fail_probability(table: Ints, p: float) -> float:
    """The probability that documents drawn with P(protected) = p are below the m-table at some prefix.

    >>> round(fail_probability(minimum_counts(10, 0.2, 0.15), 0.2), 9)  # that is 0.8^9
    0.134217728
    """
    passing = np.zeros(int(max(table, default=0)) + 1)
    passing[0] = 1.0
    for needed in table:
        # passing[c] is the probability of c protected documents without a failure; the last entry is for c or more,
        # from where no failure is possible.
        drawn = passing * p
        passing = passing * (1 - p)
        passing[1:] += drawn[:-1]
        passing[-1] += drawn[-1]
        passing[:needed] = 0.0
    return float(1 - passing.sum())


class _Probe(NamedTuple):
    alpha: float
    mass: int
    fail: float


@lru_cache(maxsize=4096)
def adjusted_alpha(k: int, p: float, alpha: float) -> float:
    """The level at which to test each of k prefixes, so that some test fails with a probability close to `alpha`.

    The m-table changes at certain levels only, so `alpha` can be met only approximately. This is the search of the
    authors' published code and reproduces its tables: bisection until the tables at both ends (and in the middle) are
    neighbours; the one whose probability of failing is closest to `alpha` is chosen. As in that code, the last prefix
    does not enter the probability. See Zehlike et al., CIKM 2017.

    >>> round(adjusted_alpha(20, 0.25, 0.1), 6)
    0.078125
    """

    def probe(level: float) -> _Probe:
        table = minimum_counts(k, p, level)
        return _Probe(level, int(table.sum()), fail_probability(table[:-1], p))

    low, high, middle = probe(0.0), probe(alpha), probe(alpha / 2)
    while low.mass < high.mass and middle.fail != alpha:
        low, high = (middle, high) if middle.fail < alpha else (low, middle)
        middle = probe((low.alpha + high.alpha) / 2)
        if high.mass - low.mass == 1 or high.alpha - low.alpha <= 1e-16:
            return min(low, high, key=lambda end: abs(end.fail - alpha)).alpha
        if high.mass - middle.mass == middle.mass - low.mass == 1:
            return min(middle, low, high, key=lambda each: abs(each.fail - alpha)).alpha
    return middle.alpha


@dataclass(frozen=True)
class FAIR(RankingMeasure):
    """The probability of at most as many protected documents in a prefix, if documents were drawn at the target share.

    Without `alpha`, the mean of these probabilities over the prefixes: close to 1 where the protected come first. With
    `alpha`, the share of prefixes that pass the ranked group fairness test at the adjusted level; 1 if the ranking
    passes. The target share is that of the protected group in the attribute's target for the topic. Documents without
    a membership are skipped; a count that is not whole is rounded down. Undefined where no ranked document has a
    membership, and where the attribute does not apply.

    >>> str(FAIR(attr="SEX", protected="f", alpha=0.1, cutoff=20))
    "FAIR(attr='SEX',protected='f',alpha=0.1)@20"
    """

    name = "FAIR"
    direction = HIGHER
    formula = (
        "mean over prefixes k of F(c_k; k, p), F the binomial CDF, c_k the protected among the first k, p "
        "the target share; with alpha: the share of prefixes with F(c_k; k, p) ≥ the adjusted alpha"
    )
    source = (
        "Zehlike, Bonchi, Castillo, Hajian, Megahed, Baeza-Yates: FA*IR: A fair top-k ranking algorithm. "
        "CIKM 2017"
    )
    attributes = "one"

    attr: str = param(None, "the attribute's name", check=named)
    protected: str = param(None, "the protected group", check=named)
    alpha: float | None = param(
        None,
        "significance level of the test, a number between 0 and 1; None: no test",
        check=lambda alpha: alpha is None or (isinstance(alpha, float) and 0 < alpha < 1),
    )

    def of_ranking(self, ranked: Ranked) -> Floats:
        """The value for each ranking; NaN where undefined."""
        ranked = ranked.cut(self.cutoff)
        attribute = ranked.attribute(self.attr)
        protected, length, _ = skip_unmapped(attribute, self.protected, None)
        p = np.broadcast_to(attribute.target[..., attribute.groups.index(self.protected)], length.shape)
        defined = (length > 0) & attribute.applies & (p >= 0)

        protected, length, p = protected[defined], length[defined], p[defined]
        sizes = np.arange(1, protected.shape[-1] + 1)
        scores = binomial_cdf(np.minimum(np.cumsum(protected, axis=-1), sizes), sizes, p[..., None])
        if self.alpha is not None:
            cases = zip(length.tolist(), p.tolist(), strict=True)
            levels = np.array([adjusted_alpha(n, share, self.alpha) for n, share in cases])
            scores = (scores >= levels[:, None]).astype(np.float64)
        value = np.full(defined.shape, np.nan)
        value[defined] = rank_sum(np.where(sizes <= length[:, None], scores, 0.0)) / length
        return value

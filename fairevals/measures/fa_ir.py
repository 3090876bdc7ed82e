"""FA*IR: whether every prefix of a ranking has enough documents of a protected group, as chance would give it."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fairevals.collection import Ranked
from fairevals.measures.base import HIGHER, RankingMeasure, attr_param, named, optional, param
from fairevals.measures.numeric import rank_sum
from fairevals.measures.prefix import EPS, skip_unmapped
from fairevals.typing import Array, Floats, Ints


class Binomial(NamedTuple):
    """Documents drawn independently, each protected with probability p."""

    p: Any

    def cdf(self, count: Array, size: Array) -> Floats:
        """The probability of at most `count` protected documents among `size`, elementwise.

        >>> Binomial(0.5).cdf(np.array([0, 1, 2]), np.array([2, 2, 2]))
        array([0.25, 0.75, 1.  ])
        """
        from scipy.special import bdtr  # imported here so that listing the measures does not load scipy

        return np.asarray(bdtr(count, size, self.p), dtype=np.float64)

    def chance(self, count: Ints, size: int) -> Any:
        """The probability that the next document is protected, after `size` documents, `count` of them protected."""
        return self.p


class Hypergeometric(NamedTuple):
    """Documents drawn without replacement from a pool, of which so many are protected."""

    pool: Any
    protected: Any

    def cdf(self, count: Array, size: Array) -> Floats:
        """As of `Binomial`.

        >>> Hypergeometric(4, 2).cdf(np.array([0, 1, 2]), np.array([2, 2, 2])).round(4)
        array([0.1667, 0.8333, 1.    ])
        """
        from scipy.stats import hypergeom

        return np.asarray(hypergeom.cdf(count, self.pool, self.protected, size), dtype=np.float64)

    def chance(self, count: Ints, size: int) -> Any:
        """As of `Binomial`."""
        return np.maximum(self.protected - count, 0) / (self.pool - size)


Null: TypeAlias = Binomial | Hypergeometric
"""How documents are drawn if groups play no role. In `cdf`, the parameters may be arrays."""


def minimum_counts(k: int, null: Null, alpha: float) -> Ints:
    """The m-table: the smallest number of protected documents with which each prefix of 1, …, k documents passes.

    A prefix of i documents passes if F(count; i) ≥ alpha, F the CDF of the null. See Zehlike et al., CIKM 2017.

    >>> minimum_counts(10, Binomial(0.2), 0.15)
    array([0, 0, 0, 0, 0, 0, 0, 0, 1, 1])
    """
    sizes = np.arange(1, k + 1)
    # Bisection at all sizes at once: the answer is in [low, high], and i protected documents of i always pass.
    low, high = np.zeros_like(sizes), sizes
    while (low < high).any():
        middle = (low + high) // 2
        passes = null.cdf(middle, sizes) >= alpha
        low, high = np.where(passes, low, np.minimum(middle + 1, high)), np.where(passes, middle, high)
    return high


def fail_probability(table: Ints, null: Null) -> float:
    """The probability that documents drawn under the null are below the m-table at some prefix.

    >>> round(fail_probability(minimum_counts(10, Binomial(0.2), 0.15), Binomial(0.2)), 9)  # that is 0.8^9
    0.134217728
    """
    passing = np.zeros(int(max(table, default=0)) + 1)
    passing[0] = 1.0
    for size, needed in enumerate(table):
        # passing[c] is the probability of c protected documents without a failure; the last entry is for c or more,
        # from where no failure is possible.
        drawn = passing * null.chance(np.arange(passing.size), size)
        passing = passing - drawn
        passing[1:] += drawn[:-1]
        passing[-1] += drawn[-1]
        passing[:needed] = 0.0
    return float(1 - passing.sum())


class _Probe(NamedTuple):
    alpha: float
    mass: int
    fail: float


@lru_cache(maxsize=4096)
def adjusted_alpha(k: int, null: Null, alpha: float) -> float:
    """The level at which to test each of k prefixes, so that some test fails with a probability close to `alpha`.

    The m-table changes at certain levels only, so `alpha` can be met only approximately. This is the search of the
    authors' published code and reproduces its tables: bisection until the tables at both ends (and in the middle) are
    neighbours; the one whose probability of failing is closest to `alpha` is chosen. As in that code, the last prefix
    does not enter the probability. See Zehlike et al., CIKM 2017.

    >>> round(adjusted_alpha(20, Binomial(0.25), 0.1), 6)
    0.078125
    """

    def probe(level: float) -> _Probe:
        table = minimum_counts(k, null, level)
        return _Probe(level, int(table.sum()), fail_probability(table[:-1], null))

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
    """The probability of at most as many protected documents in a prefix, if groups played no role.

    Without `alpha`, the mean of these probabilities over the prefixes: close to 1 where the protected come first. With
    `alpha`, the share of prefixes that pass the ranked group fairness test at the adjusted level; 1 if the ranking
    passes. By default documents are drawn at the target share, that of the protected group in the attribute's target
    for the topic. With null='hypergeometric' they are drawn from the topic's candidates without replacement, and the
    target plays no role; ranked documents that are not candidates are skipped, so that a run cannot change the pool,
    nor gain by unjudged documents. Documents without a membership are skipped; a count that is not whole is rounded
    down. Only prefixes of the ranked documents are tested: to end a list after its protected documents helps.
    Undefined where no ranked document has a membership, and where the attribute does not apply; with
    null='hypergeometric', also where no candidate or every candidate is protected, because all orders are then alike.
    """

    name = "FAIR"
    direction = HIGHER
    formula = (
        "mean over prefixes k of F(c_k; k), c_k the protected among the first k, F the CDF, binomial with the target "
        "share or hypergeometric; with alpha: the share of prefixes with F(c_k; k) ≥ the adjusted alpha"
    )
    source = (
        "Zehlike, Bonchi, Castillo, Hajian, Megahed, Baeza-Yates: FA*IR: A fair top-k ranking algorithm. CIKM 2017; "
        "null='hypergeometric': Cartier van Dissel, Martin-Gutierrez, Espín-Noboa, Jaramillo, Karimi: hyperFA*IR: A "
        "hypergeometric approach to fair rankings with finite candidate pool. FAccT 2025"
    )
    attributes = "one"

    attr: str = attr_param()
    protected: str = param(None, "the protected group", check=named)
    alpha: float | None = param(
        None,
        "significance level of the test, a number between 0 and 1; None: no test",
        check=optional(lambda alpha: isinstance(alpha, float) and 0 < alpha < 1),
    )
    null: str = param(
        "binomial",
        "how documents are drawn: at the target share, or from the candidates",
        choices=("binomial", "hypergeometric"),
    )

    @property
    def depth(self) -> int | None:
        """The cutoff; None for a pool of candidates, to which documents retrieved below it may belong."""
        return self.cutoff if self.null == "binomial" else None

    @property
    def needs_all_documents(self) -> bool:
        """A pool has the candidates that were not retrieved, too."""
        return self.null == "hypergeometric"

    def of_ranking(self, ranked: Ranked) -> Floats:
        ranked = ranked.cut(self.cutoff)
        attribute = ranked.attribute(self.attr)
        if self.null == "hypergeometric":
            candidates = ranked.ranked_candidates[..., None]
            attribute = attribute.with_rows(lambda membership: membership * candidates)
        protected, length, _ = skip_unmapped(attribute, self.protected, None)
        parameters = [np.broadcast_to(each, length.shape) for each in self._parameters(ranked)]
        defined = (length > 0) & attribute.applies & ~np.isnan(parameters).any(axis=0)
        protected, length = protected[defined], length[defined]
        parameters = [each[defined] for each in parameters]
        null = Binomial if self.null == "binomial" else Hypergeometric
        sizes = np.arange(1, protected.shape[-1] + 1)
        counts = np.floor(np.minimum(np.cumsum(protected, axis=-1), sizes) + EPS)
        scores = null(*(each[:, None] for each in parameters)).cdf(counts, sizes)
        if self.alpha is not None:
            cases = zip(length.tolist(), *(each.tolist() for each in parameters), strict=True)
            levels = np.array([adjusted_alpha(n, null(*case), self.alpha) for n, *case in cases])
            scores = (scores >= levels[:, None]).astype(np.float64)
        value = np.full(defined.shape, np.nan)
        value[defined] = rank_sum(np.where(sizes <= length[:, None], scores, 0.0)) / length
        return value

    def _parameters(self, ranked: Ranked) -> tuple[Floats, ...]:
        """Those of the null, each (…); NaN where it is unknown or says nothing."""
        attribute = ranked.attribute(self.attr)
        if self.null == "binomial":
            return (attribute.target[..., attribute.groups.index(self.protected)],)
        candidates = ranked.candidates[..., None]
        pool = ranked.pool[self.attr].with_rows(lambda membership: membership * candidates)
        shares, size, _ = skip_unmapped(pool, self.protected, None)
        protected = np.floor(rank_sum(shares) + EPS)
        says_something = (protected > 0) & (protected < size)
        both = (np.where(says_something, each, np.nan) for each in (size, protected))
        samples = [1] * (ranked.present.ndim - 2)
        return tuple(each.reshape(-1, *samples) for each in both)

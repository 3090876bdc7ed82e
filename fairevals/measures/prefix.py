"""Fairness of the prefixes of a ranking to a protected group.

rND, rKL and rRD compare each prefix of 10, 20, … documents with the whole list. The deviation of a prefix of length i
is discounted by 1/log2(1+i), and the sum is divided by the largest sum of any order. The discount, the treatment of
shares of 0 and 1 in rKL, and the ratio of rRD follow the authors' published code and reproduce its values. (The paper's
text has 1/log2(i) and does not define the rest.) FA*IR tests whether every prefix has enough protected documents.

The list is the ranking without the documents that have no membership. With soft memberships its number of protected
documents need not be whole.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fairevals.collection import GroupView, Ranked
from fairevals.measures.base import HIGHER, LOWER, RankingMeasure, divide, named, param, rank_sum, unit
from fairevals.measures.ratios import sides
from fairevals.typing import Array, Bools, Floats, Ints

Deviation: TypeAlias = Callable[[Floats, Array, Floats], Floats]
"""The deviation of a prefix, from its protected count, its size, and the protected share of the list."""

EPS = 1e-9
"""Counts that differ by less are equal: sums of soft memberships are rounded."""


def normalised_difference(count: Floats, size: Array, share: Floats) -> Floats:
    """The deviation of rND: |count/size − share|.

    >>> normalised_difference(np.array([0.0, 8.0]), np.array([10, 20]), np.array(0.5))
    array([0.5, 0.1])
    """
    return np.abs(count / size - share)


@lru_cache(maxsize=64)  # one function per floor, because it is a key in the cache of normalisers
def prefix_divergence(floor: float = 0.001) -> Deviation:
    """The deviation of rKL: the Kullback-Leibler divergence, in bits, of the prefix's shares from the list's.

    The protected share of the prefix is clipped to [floor, 1−floor], or up to the list's share where that is outside.
    The authors' code does this for shares of 0 and 1. With floor 0 nothing is clipped, and 0·log 0 = 0.

    >>> prefix_divergence(0.001)(np.array([0.0, 5.0]), np.array([10, 10]), np.array(0.5)).round(4)
    array([0.9886, 0.    ])
    """

    def term(p: Floats, q: Floats) -> Floats:
        return p * np.log2(divide(p, q, p > 0, otherwise=1.0))

    def divergence(count: Floats, size: Array, share: Floats) -> Floats:
        p = np.clip(count / size, np.minimum(floor, share), np.maximum(1 - floor, share))
        return term(p, share) + term(1 - p, 1 - share)

    return divergence


def ratio_difference(count: Floats, size: Array, share: Floats) -> Floats:
    """The deviation of rRD: how far the ratio protected/rest is below that of the list.

    A prefix with a higher ratio has deviation 0. The ratio of a prefix of protected documents only is 0, by the
    authors' convention. Intended for a protected group that is a minority.

    >>> ratio_difference(np.array([0.0, 5.0, 8.0, 10.0]), np.array(10), np.array(0.5))
    array([1., 0., 0., 1.])
    """
    whole = share / (1 - share)
    return whole - np.minimum(divide(count, size - count, size - count > EPS, otherwise=0.0), whole)


@lru_cache(maxsize=1 << 14)
def largest_prefix_sum(deviation: Deviation, total: float, length: int, reach: int, step: int) -> float:
    """The largest Σ_i deviation_i/log2(1+i) of any list with this length and protected count: the exact normaliser.

    The prefixes have i = step, 2·step, … ≤ `reach` documents. For rRD the worst order is not always all protected
    documents first or last. So this maximises over all orders, by dynamic programming over the protected counts of the
    prefixes. If the count is not whole, one document has the fraction and all others are entirely protected or not. No
    list of soft memberships with this length and count has a larger sum. For rND and rKL the sum is convex in the
    memberships (up to the floor of rKL), so the maximum is at an extreme point, which is such a list. For rRD the worst
    is to fill the first prefixes and keep the rest for the end.

    >>> round(largest_prefix_sum(normalised_difference, 10.0, 20, 20, 10) * float(np.log2(11)), 12)
    0.5
    """
    whole = math.floor(total + EPS)
    fraction = total - whole if total - whole > EPS else 0.0
    share = np.array(total / length)
    placed_before = np.arange(whole + 1)
    # best[f, c]: the largest sum so far with c documents placed; f is 1 once the fraction is placed too.
    best = np.full((2, whole + 1), -np.inf)
    best[0, 0] = 0.0
    size = 0
    for size in range(step, reach + 1, step):
        following = np.full_like(best, -np.inf)
        for placed in range(min(step, whole) + 1):
            np.maximum(following[:, placed:], best[:, : whole + 1 - placed], out=following[:, placed:])
        if fraction:
            for placed in range(min(step - 1, whole) + 1):
                np.maximum(following[1, placed:], best[0, : whole + 1 - placed], out=following[1, placed:])
        counts = np.minimum(np.stack([placed_before, placed_before + fraction]), size)
        best = following + deviation(counts, np.array(size), share) / np.log2(size + 1)
    # What has not been placed must fit after the last prefix.
    left = np.stack([whole - placed_before + (fraction > 0), whole - placed_before])
    return float(best[left <= length - size].max(initial=-np.inf))


def skip_unmapped(attribute: GroupView, protected: str, cutoff: int | None) -> tuple[Floats, Ints, Ints]:
    """Remove documents without a membership: protected shares (…, rank) of the others in order, padded with 0.

    Also returns, each (…), the number of those documents, and how many of them are within the cutoff.

    >>> from fairevals.collection import AttributeView
    >>> membership = np.array([[1.0, 0.0], [0.0, 0.0], [0.25, 0.75], [0.0, 1.0]])
    >>> view = AttributeView(("a", "b"), False, membership, np.full(2, 0.5), np.array(True))
    >>> shares, length, reach = skip_unmapped(view, "a", 2)
    >>> shares, int(length), int(reach)
    (array([1.  , 0.25, 0.  , 0.  ]), 3, 1)
    """
    weights = sides(attribute, protected)
    mapped: Bools = np.any(weights > 0, axis=-1)
    order = np.argsort(~mapped, axis=-1, kind="stable")
    shares = np.take_along_axis(weights[..., 0], order, axis=-1)
    return shares, np.count_nonzero(mapped, axis=-1), np.count_nonzero(mapped[..., :cutoff], axis=-1)


@dataclass(frozen=True)
class PrefixMeasure(RankingMeasure):
    """Base class of rND, rKL and rRD. Prefixes end at the cutoff; all are compared with the whole list.

    Undefined where the list has no or only protected documents, where it is not longer than `step` (its only prefix is
    the list itself), where the cutoff is below `step`, and where the attribute does not apply.
    """

    direction = LOWER
    source = "Yang, Stoyanovich: Measuring fairness in ranked outputs. SSDBM 2017"
    attributes = "one"

    attr: str = param(None, "the attribute's name", check=named)
    protected: str = param(None, "the protected group", check=named)
    step: int = param(10, "documents per step, at least 1", check=lambda n: type(n) is int and n > 0)
    normalise: bool = param(True, "divide by the largest sum of any order", choices=(True, False))

    @property
    def depth(self) -> None:
        """None: prefixes are compared with the whole ranking, whatever the cutoff."""

    @property
    @abstractmethod
    def deviation(self) -> Deviation:
        """The deviation of a prefix from the list."""

    def of_ranking(self, ranked: Ranked) -> Floats:
        attribute = ranked.attribute(self.attr)
        protected, length, reach = skip_unmapped(attribute, self.protected, self.cutoff)
        total = rank_sum(protected)
        both_sides = (total > EPS) & (total < length - EPS)
        defined = both_sides & (length > self.step) & (reach >= self.step) & attribute.applies
        protected, total = protected[defined], total[defined]
        length, reach = length[defined], reach[defined]
        sizes = np.arange(self.step, protected.shape[-1] + 1, self.step)
        counts = np.cumsum(protected, axis=-1)[..., sizes - 1]
        deviations = self.deviation(counts, sizes, (total / length)[:, None]) / np.log2(sizes + 1)
        sums = rank_sum(np.where(sizes <= reach[:, None], deviations, 0.0))
        if self.normalise:
            # Rounded, so that the normaliser does not depend on the order in which soft memberships were added.
            cases = zip(np.round(total, 9).tolist(), length.tolist(), reach.tolist(), strict=True)
            sums /= np.array([largest_prefix_sum(self.deviation, *case, self.step) for case in cases])
            sums = np.minimum(sums, 1.0)
        value = np.full(defined.shape, np.nan)
        value[defined] = sums
        return value


@dataclass(frozen=True)
class RND(PrefixMeasure):
    """Normalised discounted difference."""

    name = "rND"
    formula = (
        "Σ_i |c_i/i − c_N/N|/log2(1+i), i = 10, 20, …, c_i the protected among the first i; "
        "divided by its maximum"
    )

    deviation = staticmethod(normalised_difference)


@dataclass(frozen=True)
class RKL(PrefixMeasure):
    """Normalised discounted Kullback-Leibler divergence."""

    name = "rKL"
    formula = "Σ_i KL(c_i/i ‖ c_N/N)/log2(1+i) in bits, i = 10, 20, …; divided by its maximum"

    floor: float = param(0.001, "shares are clipped to [floor, 1−floor]; in [0, 1]", check=unit)

    @property
    def deviation(self) -> Deviation:
        """The divergence of the prefix's shares from the list's."""
        return prefix_divergence(self.floor)


@dataclass(frozen=True)
class RRD(PrefixMeasure):
    """Normalised discounted ratio difference, for a protected group that is a minority."""

    name = "rRD"
    formula = (
        "Σ_i max(0, c_N/(N−c_N) − c_i/(i−c_i))/log2(1+i), i = 10, 20, …, a ratio without rest is 0; "
        "divided by its maximum"
    )

    deviation = staticmethod(ratio_difference)


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

    attr: str = param(None, "the attribute's name", check=named)
    protected: str = param(None, "the protected group", check=named)
    alpha: float | None = param(
        None,
        "significance level of the test, a number between 0 and 1; None: no test",
        check=lambda alpha: alpha is None or (isinstance(alpha, float) and 0 < alpha < 1),
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

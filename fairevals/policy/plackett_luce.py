"""The Plackett-Luce policy: samples, log-probabilities, exact exposure and its gradient."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fairevals.attention import Attention, AttentionLike, parse_attention
from fairevals.errors import UsageError, check_known, escape, pluralize
from fairevals.io.specs import is_number
from fairevals.policy.exact import exact_exposure, exact_rank_probabilities, exposure_gradient
from fairevals.policy.grid import Chunk, Grid, chunks_of, lay_grid
from fairevals.policy.mixtures import mixture_of
from fairevals.policy.sampling import Randomness, sample_topic, topic_generators
from fairevals.typing import Floats, Ints

_LOG_PROB_CELLS = 1 << 21  # numbers in a temporary array
# Differentiating by a score multiplies the bound of the quadrature error by at most 2πe/h: under 256 for k ≤ 100.
_GRADIENT_MARGIN = 256.0
# The share of the tolerance that a mixture in place of the weights may use; quadrature has the rest.
_MIXTURE_SHARE = 1.0 / 64.0


@dataclass(frozen=True)
class Estimate:
    """``value``, and its standard error ``se``: None where the value is exact."""

    value: Floats
    se: Floats | None = None


class PlackettLuce:
    """A distribution over rankings: documents are drawn one after another with odds ``e^{score}``.

    P(d_1, …, d_n) = Π_j e^{s_{d_j} / T} / Σ_{l ≥ j} e^{s_{d_l} / T}    (Plackett 1975)

    Args:
        scores: log-weights, ``(n,)`` for one topic or ``(topics, n)``. A document at −inf is never ranked, so
            rows of different lengths are padded with −inf. NaN and +inf raise `UsageError`.
        temperature: T, above 0; the higher, the closer to a random order.

    Results have the shape of the scores, without the topic axis if there is one topic. The results of a topic
    are the same to the last bit for any other topics and any padding beside it.

    >>> policy = PlackettLuce([1.0, 0.0, -np.inf])
    >>> policy.exposure("log2").value.round(4)
    array([0.9007, 0.7302, 0.    ])
    >>> policy.sample(3, k=2, rng=0)
    array([[0, 1],
           [1, 0],
           [0, 1]])
    >>> np.exp(policy.log_prob([0, 1])).round(4)
    np.float64(0.7311)
    """

    def __init__(self, scores: ArrayLike, temperature: float = 1.0) -> None:
        given = _floats(scores, "scores")
        if given.ndim not in (1, 2):
            raise UsageError(f"scores must have shape (n,) or (topics, n), got {given.shape}")
        if not (isinstance(temperature, int | float | np.number) and 0 < temperature < np.inf):
            raise UsageError(f"temperature must be a number above 0, got {escape(repr(temperature))}")
        with np.errstate(over="ignore"):
            tempered = given / temperature
        wrong = np.isnan(tempered) | (tempered == np.inf) | ((tempered == -np.inf) & (given != -np.inf))
        if wrong.any():
            place = tuple(int(axis) for axis in np.argwhere(wrong)[0])
            raise UsageError(
                f"scores over temperature must be finite, or −inf for a document that is never ranked; "
                f"got {given[place]} at {place if len(place) > 1 else place[0]}"
            )
        self.temperature = float(temperature)
        self._one_topic = given.ndim == 1
        self._scores: Floats = np.atleast_2d(tempered)

    def __repr__(self) -> str:
        topics, documents = self._scores.shape
        size = pluralize(topics, "topic"), pluralize(documents, "document")
        return f"<PlackettLuce: {' × '.join(size)}, temperature {self.temperature:g}>"

    def sample(self, samples: int, k: int | None = None, rng: Randomness = 0) -> Ints:
        """Draw rankings: document indices, ``(samples, k)`` or ``(topics, samples, k)``.

        Each document draws an exponential key, and the k smallest keys are the ranking: the Gumbel top-k trick
        (Kool et al. 2020; Ma et al. 2021). Ranks for which no document is left hold −1.

        Args:
            samples: rankings per topic.
            k: ranks; all documents by default.
            rng: a seed, from which topic i draws with ``default_rng([seed, i])``; a Generator, which all topics use
                in turn; one Generator per topic; or None, for other rankings at every call.

        >>> PlackettLuce([[0.0, 50.0], [0.0, -np.inf]]).sample(2, rng=1)
        array([[[ 1,  0],
                [ 1,  0]],
        <BLANKLINE>
               [[ 0, -1],
                [ 0, -1]]])
        """
        samples, k = _whole(samples, 0, "samples"), self._ranks(k)
        rankings = np.empty((len(self._scores), samples, k), dtype=np.int64)
        for topic, generator in enumerate(topic_generators(rng, len(self._scores))):
            rankings[topic] = sample_topic(self._scores[topic], samples, k, generator)
        return rankings[0] if self._one_topic else rankings

    def log_prob(self, rankings: ArrayLike) -> Floats:
        """Log-probability of rankings, or of their top k.

        log P = −Σ_j log(1 + e^{r_j − s_{d_j}}), with r_j the log of the weight left after rank j: a running
        log-sum-exp from the last rank upwards, accurate for ties far down and for nearly certain ranks.

        Args:
            rankings: document indices ``(…, k)``, or ``(topics, …, k)`` for several topics; −1 at the end is
                padding. A shorter ranking has the probability of all rankings that begin with it.

        Returns:
            Shape ``(…)`` or ``(topics, …)``; −inf for a ranking that repeats a document or contains one that
            is never ranked, 0 for an empty one.

        >>> PlackettLuce([0.0, 0.0, 0.0]).log_prob([[0, 1, 2], [0, -1, -1], [0, 0, 1]]).round(4)
        array([-1.7918, -1.0986,    -inf])
        """
        try:
            given = np.asarray(rankings)
        except ValueError:
            raise UsageError("rankings of different lengths; expected them padded with −1") from None
        if given.ndim < 1 or not (np.issubdtype(given.dtype, np.integer) or given.size == 0):
            raise UsageError("rankings must be document indices of shape (…, k)")
        given = given.astype(np.int64)
        if self._one_topic:
            given = given[np.newaxis]
        topics, n = self._scores.shape
        if given.ndim < 2 or len(given) != topics:
            raise UsageError(f"rankings must have shape ({topics}, …, k), got {given.shape}")
        if given.size and (given.min() < -1 or given.max() >= n):
            raise UsageError(f"rankings must hold document indices below {n}, or −1 for padding")
        flat = given.reshape(int(np.prod(given.shape[:-1])), given.shape[-1])
        if np.any((flat[:, :-1] < 0) & (flat[:, 1:] >= 0)):
            raise UsageError("−1 is allowed only at the end of a ranking")
        topic = np.repeat(np.arange(topics), len(flat) // max(topics, 1))
        result = np.empty(len(flat))
        at_once = max(1, _LOG_PROB_CELLS // (n + 1 + flat.shape[1]))
        for a in range(0, len(flat), at_once):
            rows = slice(a, a + at_once)
            result[rows] = _log_prob(self._scores[topic[rows]], flat[rows])
        return self._as_given(result.reshape(given.shape[:-1]))

    def exposure(
        self,
        attention: AttentionLike = "log2",
        k: int | None = None,
        method: Literal["exact", "mc"] = "exact",
        samples: int = 1000,
        rng: Randomness = 0,
        tolerance: float = 1e-9,
        grades: ArrayLike | None = None,
    ) -> Estimate:
        """Exposure ``E[v_{rank(d)}]`` of each document, ``(n,)`` or ``(topics, n)``; ranks beyond k weigh 0.

        ``exact`` integrates over exponential arrival times (see `fairevals.policy.exact`). Every exposure is
        within ``tolerance · max_k v_k`` of the truth, up to rounding (about 1e-14 for 100 documents): the nodes
        are chosen from a proven bound. Time per topic is O(nodes · n), with some tens of nodes, for named
        attention models without a cutoff, except ``trecfair``. Otherwise it is O(nodes · n · k), and the number
        of nodes grows with about the square root of k.

        ``mc`` is the mean over sampled rankings with its standard error (ddof 1; NaN for a single sample). Where all
        samples agree it is that of `agreeing_se`, and 0 only if there is no other ranking.

        Args:
            attention: a model or its text (`fairevals.attention`). One that looks at grades needs ``mc``.
            k: cutoff; all ranks by default.
            method: ``"exact"`` or ``"mc"``.
            samples: rankings per topic, for ``mc``.
            rng: as for `sample`, for ``mc``.
            tolerance: bound of the error of ``exact``, from 1e-13 up to 0.1.
            grades: grades in the shape of the scores, for an attention that looks at them.

        >>> PlackettLuce([2.0, 2.0]).exposure("reciprocal").value
        array([0.75, 0.75])
        >>> PlackettLuce([0.0, 0.0]).exposure("uniform", k=1, method="mc", samples=100).se.round(4)
        array([0.0502, 0.0502])
        """
        model, k = parse_attention(attention), self._ranks(k)
        check_known("method", method, ("exact", "mc"))
        if method == "mc":
            return self._sampled_exposure(model, k, samples, rng, grades)
        weights, grid, chunks = self._quadrature(model, k, tolerance)
        return Estimate(self._as_given(self._within(weights, exact_exposure(grid, chunks, weights))))

    def exposure_with_vjp(
        self, attention: AttentionLike = "log2", k: int | None = None, tolerance: float = 1e-9
    ) -> tuple[Floats, Callable[[ArrayLike], Floats]]:
        """Exact exposure, and the function that turns a gradient by exposures into one by scores.

        ``vjp(cotangent)`` is the gradient of ``Σ_d cotangent_d · exposure_d`` by the scores as given (before
        division by the temperature), 0 for documents never ranked. It is computed in reverse mode at two to
        four times the cost of the exposure. For k up to 100, and for named attention models without a cutoff,
        it errs by at most ``tolerance · max_k v_k · Σ_d |cotangent_d|`` (over the temperature), up to rounding.

        >>> exposure, vjp = PlackettLuce([0.0, 0.0]).exposure_with_vjp("uniform", k=1)
        >>> vjp([1.0, 0.0])
        array([ 0.25, -0.25])
        """
        model, k = parse_attention(attention), self._ranks(k)
        weights, grid, lazy_chunks = self._quadrature(model, k, tolerance, margin=_GRADIENT_MARGIN)
        chunks = list(lazy_chunks)
        value = self._within(weights, exact_exposure(grid, chunks, weights))

        def vjp(cotangent: ArrayLike) -> Floats:
            given = self._per_document(cotangent, "the cotangent")
            return self._as_given(exposure_gradient(grid, chunks, weights, given) / self.temperature)

        return self._as_given(value), vjp

    def rank_probabilities(self, k: int | None = None, tolerance: float = 1e-9) -> Floats:
        """P(document at rank), ``(n, k)`` or ``(topics, n, k)``, each within ``tolerance`` of the truth.

        Rows sum to the probability of being in the top k; a rank that has a document sums to 1. Time is
        O(nodes · n log n · k), with about 30 √k nodes.

        >>> PlackettLuce([0.0, 0.0, 0.0]).rank_probabilities(k=2).round(9)
        array([[0.33333333, 0.33333333],
               [0.33333333, 0.33333333],
               [0.33333333, 0.33333333]])
        """
        k = self._ranks(k)
        _, grid, _ = self._quadrature(Attention("list", (1.0,) * max(k, 1)), k, tolerance)
        return self._as_given(exact_rank_probabilities(grid, k))

    def _quadrature(
        self, model: Attention, k: int, tolerance: float, margin: float = 1.0
    ) -> tuple[Floats, Grid, Iterator[Chunk]]:
        """Weights of the ranks, the quadrature nodes, and the arrival probabilities there."""
        if model.looks_at_grades:
            raise UsageError(
                f"the attention {model} depends on the grades ranked above a document, so its exposure cannot be "
                "integrated exactly: use method='mc'"
            )
        if not isinstance(tolerance, int | float) or not 1e-13 <= tolerance <= 0.1:
            raise UsageError(f"tolerance must lie between 1e-13 and 0.1, got {escape(repr(tolerance))}")
        weights = model.weights(min(k, self._scores.shape[1]))
        allowed = tolerance / margin
        if model.monotone_from != 1:
            grid = lay_grid(self._scores, weights, model.monotone_from, allowed)
            return weights, grid, chunks_of(grid)
        grid = lay_grid(self._scores, weights, 1, (1.0 - _MIXTURE_SHARE) * allowed)
        mixture_for = partial(mixture_of, model, tolerance=_MIXTURE_SHARE * allowed)
        return weights, grid, chunks_of(grid, mixture_for)

    def _sampled_exposure(
        self, model: Attention, k: int, samples: int, rng: Randomness, grades: ArrayLike | None
    ) -> Estimate:
        samples = _whole(samples, 1, "samples")
        given = self._scores
        if model.looks_at_grades:
            if grades is None:
                raise UsageError(f"the attention {model} looks at grades: give them as grades=")
            given = self._per_document(grades, "grades")
        value, se = np.zeros_like(self._scores), np.zeros_like(self._scores)
        for topic, generator in enumerate(topic_generators(rng, len(self._scores))):
            ranked = int(np.count_nonzero(self._scores[topic] > -np.inf))
            rankings = sample_topic(self._scores[topic], samples, min(k, ranked), generator)
            weights = model.weights_given(given[topic][rankings])
            value[topic], se[topic] = _mean_and_se(rankings, weights, self._scores.shape[1])
        agree = (se < AGREED) & (self._scores > -np.inf)
        if agree.any():
            other = np.reshape(self.other_rankings(k), (-1, 1))
            span = 1.0  # of an attention that looks at grades
            if not model.looks_at_grades:
                weights = np.append(model.weights(min(k, self._scores.shape[1])), 0.0)  # 0 beyond the cutoff
                span = float(weights.max() - weights.min())
            se = np.where(agree, span * agreeing_se(samples, other), se)
        return Estimate(self._as_given(value), self._as_given(se))

    def other_rankings(self, k: int | None = None) -> Floats:
        """The probability that the first k ranks are not the documents of the highest scores in their order.

        >>> PlackettLuce([[1.0, 0.0], [50.0, 0.0], [1.0, -np.inf]]).other_rankings()
        array([2.68941421e-01, 1.92874985e-22, 0.00000000e+00])
        """
        order = np.argsort(-self._scores, axis=1, kind="stable")[:, : self._ranks(k)]
        order = np.where(np.take_along_axis(self._scores, order, axis=1) > -np.inf, order, -1)
        return self._as_given(np.abs(np.expm1(_log_prob(self._scores, order))))

    def _within(self, weights: Floats, exposure: Floats) -> Floats:
        """The exposures, none above the largest or below the smallest weight of a rank: quadrature errs a little."""
        ranked = self._scores > -np.inf
        count = ranked.sum(axis=1)
        weights = np.concatenate([weights, np.zeros(max(1, ranked.shape[1] - weights.size))])
        last = np.maximum(count, 1) - 1
        low, high = (extreme.accumulate(weights)[last][:, None] for extreme in (np.minimum, np.maximum))
        return np.where(ranked, np.clip(exposure, low, high), 0.0)

    def _ranks(self, k: int | None) -> int:
        return int(self._scores.shape[1]) if k is None else _whole(k, 1, "k")

    def _per_document(self, values: ArrayLike, name: str) -> Floats:
        given = np.atleast_2d(_floats(values, name))
        if given.shape != self._scores.shape:
            raise UsageError(f"{name} must have the scores' shape, got {np.shape(values)}")
        return given

    def _as_given(self, array: Floats) -> Floats:
        return array[0] if self._one_topic else array


def _floats(values: ArrayLike, name: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be an array of numbers, got {escape(repr(values))}") from None


def _whole(value: int, least: int, name: str) -> int:
    if not is_number(value, Integral) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, got {escape(repr(value))}")
    return int(value)


AGREED = 1e-12
"""A standard error below this is that of samples that agree, up to rounding."""


def agreeing_se(samples: int, other: Floats) -> Floats:
    """The standard error of a mean over samples that all have one value, if others may differ from it by up to 1.

    It is not 0: such samples only show that rankings with another value are rare. Their probability is at most that
    of all `other` rankings, and below 3/n with a confidence of 95 % (the rule of three; Hanley and Lippman-Hand,
    JAMA 1983). The interval of 1.96 standard errors reaches that far.

    >>> agreeing_se(1000, np.array([0.5, 1e-6, 0.0])).round(9)
    array([1.530612e-03, 5.100000e-07, 0.000000e+00])
    """
    return np.minimum(3.0 / samples, other) / 1.96


def _mean_and_se(rankings: Ints, weights: Floats, n: int) -> tuple[Floats, Floats]:
    """Mean weight of each of n documents over the rankings (samples, k), and its standard error."""
    samples = len(rankings)
    document = rankings.ravel()
    mean = np.bincount(document, weights=weights.ravel(), minlength=n) / samples
    absent = samples - np.bincount(document, minlength=n)
    deviations = (weights.ravel() - mean[document]) ** 2
    squares = np.bincount(document, weights=deviations, minlength=n) + absent * mean**2
    if samples == 1:
        return mean, np.full(n, np.nan)
    return mean, np.sqrt(squares / (samples - 1) / samples)


def _log_prob(scores: Floats, rankings: Ints) -> Floats:
    """Log-probability of ``rankings`` (rows, k) under ``scores`` (rows, n)."""
    rows, n = scores.shape
    left = np.full((rows, n + 1), -np.inf)  # −1 refers to the last column
    left[:, :n] = scores
    ranked = np.take_along_axis(left, rankings, axis=1)
    np.put_along_axis(left, rankings, -np.inf, axis=1)
    in_order = np.sort(rankings, axis=1)
    impossible = np.any((in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0), axis=1)
    impossible |= np.any((ranked == -np.inf) & (rankings >= 0), axis=1)

    # The log of the remaining weight is kept as a score plus a remainder, and scores are only subtracted from
    # scores: the remainder keeps its precision, however large they are.
    score = np.max(left, axis=1)
    score[score == -np.inf] = 0.0
    log_prob = np.zeros(rows)
    with np.errstate(divide="ignore", over="ignore"):
        # Summed in order, so that padding changes no bit.
        remainder = np.log(np.cumsum(np.exp(left - score[:, np.newaxis]), axis=1)[:, -1])
        for chosen in ranked.T[::-1]:
            real = chosen > -np.inf
            log_choice = np.logaddexp(0.0, score - np.where(real, chosen, score) + remainder)
            log_prob -= np.where(real, log_choice, 0.0)
            remainder = np.where(real, log_choice, remainder)
            score = np.where(real, chosen, score)
    return np.where(impossible, -np.inf, log_prob)

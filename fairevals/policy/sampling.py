"""Rankings drawn from Plackett-Luce policies."""

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairevals.errors import UsageError, escape, pluralize
from fairevals.io.specs import is_number
from fairevals.typing import Floats, Ints

Seed: TypeAlias = int | np.random.Generator | None
"""What `seed` and `rng` are everywhere in this package: a whole number, which gives the same random numbers at every
call; a numpy Generator, whose numbers go on from call to call; or None, for fresh numbers at every call. Without one,
the number is 0."""
Randomness: TypeAlias = Seed | Sequence[np.random.Generator]
"""A `Seed`, or one generator for each topic."""

_KEYS_AT_ONCE = 1 << 18  # so that they stay in the processor's cache
_WIDEST = 600.0  # e^600 times an exponential number is still finite
_CERTAIN_GAP = 64.0
_SHORT = 48  # rows up to this length are sorted, longer ones partitioned first
_MANY = 8  # documents per rank from which on they are drawn one by one


def checked_seed(given: Any, name: str = "rng") -> int | np.random.Generator:
    """A `Seed` as a whole number or a Generator, which for None is a new one; anything else is a `UsageError`.

    >>> checked_seed(7), checked_seed(None).random() == checked_seed(None).random()
    (7, False)
    """
    if given is None or isinstance(given, np.random.Generator):
        return np.random.default_rng(given)
    if is_number(given, Integral) and given >= 0:
        return int(given)
    expected = "a whole number of at least 0, a numpy Generator, or None for fresh random numbers"
    raise UsageError(f"{name}={escape(repr(given))}; expected {expected}")


def whole_seed(given: Any) -> int:
    """A `Seed` as a whole number, for settings that are written down: one is drawn where none is given."""
    seed = checked_seed(given, "seed")
    return seed if isinstance(seed, int) else int(seed.integers(1 << 32))


def topic_generators(rng: Randomness, topics: int) -> list[np.random.Generator]:
    """One generator per topic: the given ones; from a seed those keyed by (seed, topic); from None a new one.

    A single generator serves all topics in turn, so the draws of a topic depend on the topics before it.

    >>> same = np.random.default_rng([7, 1]).random()
    >>> topic_generators(7, 2)[1].random() == same
    True
    """
    if isinstance(rng, list | tuple) and all(isinstance(g, np.random.Generator) for g in rng):
        if len(rng) != topics:
            raise UsageError(
                f"rng has {pluralize(len(rng), 'Generator')}; expected one for each of {topics} topics"
            )
        return list(rng)
    seed = checked_seed(rng)
    if isinstance(seed, np.random.Generator):
        return [seed] * topics
    return [np.random.default_rng([seed, topic]) for topic in range(topics)]


def sample_topic(scores: Floats, samples: int, k: int, rng: np.random.Generator) -> Ints:
    """Rankings (samples, k) of one topic's documents; −1 where fewer than k can be ranked.

    Each document draws a key, an exponential time of rate ``e^s``; the k earliest, in order, are the ranking
    (the exponential form of the Gumbel top-k trick, Kool et al. 2020). If k is far below the number of
    documents, they are drawn one by one instead. Documents at −inf draw nothing, so padding changes no
    ranking.

    >>> sample_topic(np.array([0.0, -np.inf, 900.0]), 2, 3, np.random.default_rng(0))
    array([[ 2,  0, -1],
           [ 2,  0, -1]])
    """
    rankings = np.full((samples, k), -1, dtype=np.int64)
    documents = np.flatnonzero(scores > -np.inf)
    n = len(documents)
    if n == 0:
        return rankings
    shown = min(k, n)
    behind = _behind_first(scores[documents])
    weights = np.exp(-behind)
    if n >= _MANY * shown and 2.0 * np.sort(weights)[n - shown + 1 :].sum() <= weights.sum():
        drawn = _with_replacement(weights, samples, shown, rng)
    else:
        drawn = _by_sorting(behind, samples, shown, rng)
    rankings[:, :shown] = documents[drawn]
    return rankings


def _by_sorting(behind: Floats, samples: int, k: int, rng: np.random.Generator) -> Ints:
    """Draw every document's time (or its logarithm, where e^behind would overflow) and sort."""
    narrow = behind.max() <= _WIDEST
    slowness = np.exp(behind) if narrow else behind
    rankings = np.empty((samples, k), dtype=np.int64)
    for rows in _pieces(samples, len(behind)):
        keys = rng.standard_exponential((rows.stop - rows.start, len(behind)))
        if narrow:
            keys *= slowness
        else:
            with np.errstate(divide="ignore"):
                np.log(keys, out=keys)
            keys += slowness
        rankings[rows] = _smallest(keys, k)
    return rankings


def _with_replacement(weights: Floats, samples: int, k: int, rng: np.random.Generator) -> Ints:
    """Draw documents with replacement and skip those drawn before, as Plackett-Luce is defined.

    Fast where no k − 1 documents have more than half of the weight, so that most draws are new.
    """
    cumulative = np.cumsum(weights)
    width = k + k // 4 + 4

    def draws(rows: int) -> Ints:
        places = np.searchsorted(cumulative, rng.random((rows, width)) * cumulative[-1], side="right")
        drawn: Ints = np.minimum(places, len(weights) - 1)
        return drawn

    rankings = np.empty((samples, k), dtype=np.int64)
    for rows in _pieces(samples, width):
        unfinished = np.arange(rows.start, rows.stop)
        drawn = draws(len(unfinished))
        while True:
            new = _first_occurrences(drawn)
            rank = np.cumsum(new, axis=1)
            done = rank[:, -1] >= k
            shown = new & (rank <= k) & done[:, np.newaxis]
            rankings[unfinished[done]] = drawn[shown].reshape(-1, k)
            if done.all():
                break
            unfinished, drawn = unfinished[~done], drawn[~done]
            drawn = np.concatenate([drawn, draws(len(drawn))], axis=1)
    return rankings


def _first_occurrences(rows: Ints) -> NDArray[np.bool_]:
    """Whether each number occurs in its row for the first time."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    first = np.ones(rows.shape, dtype=bool)
    np.put_along_axis(first, order[:, 1:], ordered[:, 1:] != ordered[:, :-1], axis=1)
    return first


def _pieces(samples: int, n: int) -> Iterator[slice]:
    at_once = max(1, _KEYS_AT_ONCE // n)
    for start in range(0, samples, at_once):
        yield slice(start, min(start + at_once, samples))


def _behind_first(scores: Floats) -> Floats:
    """How far each score lies below the highest, with gaps between neighbours of at most 64.

    The order across a gap of 64 is reversed once in e^64 (6e27) draws. Wider gaps would only cost the keys of
    the documents below them their random part, by rounding.
    """
    with np.errstate(over="ignore"):
        behind: Floats = scores.max() - scores
        if behind.max() <= _WIDEST:
            return behind
        order = np.argsort(-scores, kind="stable")
        gaps = np.minimum(-np.diff(scores[order]), _CERTAIN_GAP)
    behind[order] = np.concatenate([[0.0], np.cumsum(gaps)])
    return behind


def _smallest(keys: Floats, k: int) -> Ints:
    """Indices of the k smallest keys of each row, smallest first."""
    if keys.shape[1] <= max(2 * k, _SHORT):
        return np.argsort(keys, axis=1)[:, :k]
    top = np.argpartition(keys, k - 1, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(keys, top, axis=1), axis=1)
    return np.take_along_axis(top, order, axis=1)

"""Which values are compared, and where their uncertainty comes from.

Runs are compared on common topics: those on which all runs concerned have a value. A measure whose best value is a
target is compared by the distance to it, topic by topic: two runs at +1 and −1 around a target of 0 are equally far
from it, although the mean of such a run may be 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairevals.errors import UsageError, escape
from fairevals.evaluation.scores import Scores
from fairevals.measures import Direction
from fairevals.typing import Bools, Floats

ROUNDING = 1e-12
"""Two values are equal if they differ by at most this share of the larger one: sums round differently."""
NEGLIGIBLE = 0.1
"""The error from sampling rankings is negligible up to this share of the whole standard error."""
DEFAULT_RESAMPLES = 10_000
"""The default number of resamples or permutations."""
BATCH_CELLS = 1 << 21
"""How many numbers are held in memory at once while resampling. Results do not depend on it."""


def batches(total: int, cells_each: int) -> Iterator[int]:
    """Batch sizes that sum to `total`, each as large as `BATCH_CELLS` allows.

    >>> list(batches(5, BATCH_CELLS // 2))
    [2, 2, 1]
    """
    step = max(1, BATCH_CELLS // max(1, cells_each))
    for start in range(0, total, step):
        yield min(step, total - start)


def orientation(direction: Direction) -> int:
    """1 if a larger number is better, −1 if a smaller one is (lower is better, or a distance), 0 for neither.

    >>> from fairevals.measures.base import HIGHER, LOWER, NEUTRAL, near
    >>> orientation(HIGHER), orientation(LOWER), orientation(near(0.0)), orientation(NEUTRAL)
    (1, -1, -1, 0)
    """
    return {"higher": 1, "none": 0}.get(direction.word, -1)


def costs_of(direction: Direction, values: Floats) -> Floats:
    """The numbers that tests compare, smaller if better; the negated values of a measure without a direction."""
    costs: Floats = direction.cost(values) if orientation(direction) else np.negative(values)
    return costs


def subtract(a: Floats, b: Floats, scale: Floats | float = 0.0) -> Floats:
    """a − b, and exactly 0 where the two differ only by rounding (`ROUNDING` of the largest of a, b and `scale`).

    >>> subtract(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.25]))
    array([0.  , 0.25])
    """
    equal = np.abs(a - b) <= ROUNDING * np.maximum(np.maximum(np.abs(a), np.abs(b)), scale)
    differences: Floats = np.where(equal, 0.0, a - b)
    return differences


def mean(values: Floats) -> float:
    """The mean, exactly rounded as in `Scores.mean`; NaN without values.

    >>> mean(np.array([0.1] * 10)), mean(np.zeros(0))
    (0.1, nan)
    """
    return math.fsum(values) / values.size if values.size else math.nan


@dataclass(frozen=True)
class Spread:
    """The standard error of a mean over topics, and its parts."""

    total: float
    """s/√n, the divisor of a t-test. It includes both parts; NaN with fewer than two topics."""
    topics: float
    """The part that more samples cannot reduce: √max(0, total² − sampling²)."""
    sampling: float
    """The part from sampling rankings, √(Σ se²)/n; NaN if every value is exact."""

    @property
    def notable(self) -> bool:
        """Whether the sampling error is above `NEGLIGIBLE` of the total.

        At that bound another seed moves a t of 2 by about 0.1, and so a p of 0.05 by about 0.01. A sampling error is
        also notable if there is no total to compare it with: a single topic, or equal values on all topics.
        """
        if math.isnan(self.sampling) or self.sampling == 0:
            return False
        return math.isnan(self.total) or self.sampling > NEGLIGIBLE * self.total


def spread_of(values: Floats, errors: Floats) -> Spread:
    """The standard error of the mean of `values` (topics,), and how much of it comes from sampling rankings.

    `errors` are the standard errors of the values, (topics,), or (parts, topics) if each value is a sum or difference
    of independently sampled parts; NaN means exact. The observed spread over topics already includes the sampling
    error (Var(x̂) = Var(x) + E[se²]), so intervals and tests based on it need no correction.

    >>> exact = spread_of(np.array([0.2, 0.4]), np.array([np.nan, np.nan]))
    >>> round(exact.total, 9), exact.sampling, exact.notable
    (0.1, nan, False)
    >>> spread_of(np.array([0.2, 0.4]), np.array([0.03, 0.04])).notable
    True
    """
    n = values.size
    total = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    if not n or np.isnan(errors).all():
        return Spread(total, total, math.nan)
    sampling = math.sqrt(math.fsum((np.nan_to_num(errors) ** 2).ravel())) / n
    return Spread(total, math.sqrt(max(0.0, total**2 - sampling**2)) if n > 1 else math.nan, sampling)


@dataclass(frozen=True)
class Paired:
    """A run and a baseline on their common topics."""

    measure: str
    direction: Direction
    run: str
    baseline: str
    topics: tuple[str, ...]
    """The common topics."""
    undefined: tuple[str, ...]
    """The topics on which one of the runs concerned has no value."""
    values: Floats
    baseline_values: Floats
    gains: Floats
    """The difference on each common topic, with the sign such that above 0 the run is better."""
    spread: Spread
    """The standard error of the mean difference."""

    @property
    def mean(self) -> float:
        """The mean of the run over the common topics."""
        return mean(self.values)

    @property
    def baseline_mean(self) -> float:
        """The mean of the baseline over the common topics."""
        return mean(self.baseline_values)

    @property
    def differences(self) -> Floats:
        """Run − baseline on each common topic; of the distances to the target if the direction has one."""
        differences: Floats = self.gains * (orientation(self.direction) or 1) + 0.0  # no -0.0
        return differences

    @property
    def difference(self) -> float:
        """The mean of `differences`."""
        return mean(self.differences)

    @property
    def wins(self) -> int:
        """The number of topics on which the run is better."""
        return int((self.gains * abs(orientation(self.direction)) > 0).sum())

    @property
    def ties(self) -> int:
        """The number of topics on which the two are equal, up to rounding."""
        return int((self.gains == 0).sum())

    @property
    def losses(self) -> int:
        """The number of topics on which the run is worse."""
        return int((self.gains * abs(orientation(self.direction)) < 0).sum())

    def driving(self, count: int = 10) -> tuple[tuple[str, float], ...]:
        """(topic, gain) of the `count` topics with the largest differences, largest first."""
        gains = self.gains
        order = sorted(range(gains.size), key=lambda t: (-abs(gains[t]), t))
        return tuple((self.topics[t], float(gains[t])) for t in order[:count] if gains[t])


def run_number(scores: Scores, run: int | str) -> int:
    """The position of a run in the scores, by name or position."""
    return _position("run", scores.runs, run)


def measure_number(scores: Scores, measure: int | str) -> int:
    """The position of a measure in the scores, by name or position."""
    return _position("measure", [str(m) for m in scores.measures], measure)


def _position(kind: str, names: Sequence[str], wanted: int | str) -> int:
    if isinstance(wanted, int):
        return wanted
    if wanted not in names:
        known = ", ".join(map(escape, names))
        raise UsageError(f"there is no {kind} {escape(wanted)!r}; the {kind}s are {known}")
    return names.index(wanted)


def abridged(names: Sequence[str], limit: int) -> str:
    """A list of names as text, shortened after `limit` names.

    >>> abridged(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def topic_names(scores: Scores, chosen: Bools) -> tuple[str, ...]:
    """The names of the topics that a mask chooses."""
    return tuple(topic for topic, use in zip(scores.topics, chosen, strict=True) if use)


def common_topics(scores: Scores, measure: int, runs: Sequence[int]) -> Bools:
    """The topics on which all of `runs` have a value; none without runs."""
    topics: Bools = np.full(len(scores.topics), bool(runs))
    topics &= np.isfinite(scores.values[list(runs), measure]).all(axis=0)
    return topics


def pair(
    scores: Scores, measure: int | str, run: int | str, baseline: int | str, topics: Bools | None = None
) -> Paired:
    """A run and a baseline on the topics where both have a value (among `topics`, if given)."""
    m, r, b = measure_number(scores, measure), run_number(scores, run), run_number(scores, baseline)
    direction = scores.measures[m].direction
    first, second = scores.values[r, m], scores.values[b, m]
    used: Bools = np.isfinite(first) & np.isfinite(second)
    if topics is not None:
        used &= topics
    first, second = first[used], second[used]
    scale = np.maximum(np.abs(first), np.abs(second))
    gains = subtract(costs_of(direction, second), costs_of(direction, first), scale)
    return Paired(
        measure=str(scores.measures[m]),
        direction=direction,
        run=scores.runs[r],
        baseline=scores.runs[b],
        topics=topic_names(scores, used),
        undefined=topic_names(scores, ~used),
        values=first,
        baseline_values=second,
        gains=gains,
        spread=spread_of(gains, scores.se[[r, b], m][:, used]),
    )

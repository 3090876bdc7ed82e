"""Which values are compared, and where their uncertainty comes from.

Runs are compared on common topics: those on which all runs concerned have a value. A measure whose best value is a
target is compared by the distance to it, topic by topic: two runs at +1 and −1 around a target of 0 are equally far
from it, although the mean of such a run may be 0.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from numbers import Integral
from typing import Any

import numpy as np

from fairevals.errors import unknown
from fairevals.evaluation.scores import Scores
from fairevals.io.specs import is_number
from fairevals.measures import Direction, parse_measure
from fairevals.typing import Bools, Floats

ROUNDING = 1e-12
"""Two values are equal if they differ by at most this share of the larger one: sums round differently."""
NEGLIGIBLE_SAMPLING = 0.1
"""The error from sampling rankings is negligible up to this share of the whole standard error."""
DEFAULT_RESAMPLES = 10_000
"""The default number of resamples or permutations."""
BATCH_CELLS = 1 << 21
"""How many numbers are held in memory at once while resampling. Results do not depend on it."""


def batches(total: int, cells_each: int) -> Iterator[int]:
    """Batch sizes that sum to `total`, each as large as `BATCH_CELLS` allows."""
    step = max(1, BATCH_CELLS // max(1, cells_each))
    for start in range(0, total, step):
        yield min(step, total - start)


def orientation(direction: Direction) -> int:
    """1 if a larger number is better, −1 if a smaller one is (lower is better, or a distance), 0 for neither."""
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
    """The mean, exactly rounded as in `Scores.mean`; NaN without values."""
    return math.fsum(values) / values.size if values.size else math.nan


@dataclass(frozen=True)
class Spread:
    """The standard error of a mean over topics, and its parts."""

    total: float
    """s/√n, the divisor of a t-test. It includes the sampling error; NaN with fewer than two topics."""
    sampling: float
    """The part from sampling rankings, √(Σ se²)/n; NaN if every value is exact."""

    @property
    def topics(self) -> float:
        """The part that more samples cannot reduce: √max(0, total² − sampling²)."""
        if math.isnan(self.total) or math.isnan(self.sampling):
            return self.total
        return math.sqrt(max(0.0, self.total**2 - self.sampling**2))

    @property
    def notable(self) -> bool:
        """Whether the sampling error is above `NEGLIGIBLE_SAMPLING` of the total.

        At that bound another seed moves a t of 2 by about 0.1, and so a p of 0.05 by about 0.01. A sampling error is
        also notable if there is no total to compare it with: a single topic, or equal values on all topics.
        """
        if math.isnan(self.sampling) or self.sampling == 0:
            return False
        return math.isnan(self.total) or self.sampling > NEGLIGIBLE_SAMPLING * self.total


def spread_of(values: Floats, errors: Floats) -> Spread:
    """The standard error of the mean of `values` (topics,), and how much of it comes from sampling rankings.

    `errors` are the standard errors of the values, (topics,), or (parts, topics) if each value is a sum or difference
    of independently sampled parts; NaN means exact. The observed spread over topics already includes the sampling
    error (Var(x̂) = Var(x) + E[se²]), so intervals and tests based on it need no correction.

    >>> spread = spread_of(np.array([0.2, 0.4]), np.array([0.03, 0.04]))
    >>> round(spread.total, 9), round(spread.sampling, 9), spread.notable
    (0.1, 0.025, True)
    """
    n = values.size
    total = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    if not n or np.isnan(errors).all():
        return Spread(total, math.nan)
    return Spread(total, math.sqrt(math.fsum((np.nan_to_num(errors) ** 2).ravel())) / n)


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
    mean: float
    baseline_mean: float
    differences: Floats
    """Run − baseline on each common topic; of the distances to the target if the direction has one."""
    difference: float
    """The mean of the differences."""
    spread: Spread
    """The standard error of the mean difference."""
    gains: Floats
    """The differences, with the sign such that above 0 the run is better."""
    wins: int
    """On how many topics the run is better, and in `losses` worse; 0 if the measure has no direction."""
    ties: int
    losses: int


def position(scores: Scores, run: int | str) -> int:
    """The position of a run in the scores, by its position or its name."""
    if isinstance(run, str) and run in scores.runs:
        return scores.runs.index(run)
    if isinstance(run, str) and scores.originals.count(run) == 1:  # by the name that is not shown
        return scores.originals.index(run)
    if not isinstance(run, str) and is_number(run, Integral) and 0 <= run < len(scores.runs):
        return int(run)
    raise unknown("run or file", str(run), scores.runs)


def measure_position(scores: Scores, measure: Any, cutoff: int | None = None) -> int:
    """The position of a measure in the scores, by the measure, its name or its label; `cutoff` is the task's."""
    labels = {label: name for name, label in scores.labels.items()}
    known = [str(one) for one in scores.measures]
    name = labels.get(measure) if isinstance(measure, str) else None
    name = name or str(parse_measure(measure).with_cutoff(cutoff))
    if name not in known:
        raise unknown("measure", name, known)
    return known.index(name)


def common_topics(scores: Scores, measure: int, runs: Sequence[int]) -> Bools:
    """The topics on which all of `runs` have a value, as a mask; none without runs."""
    values = scores.values[list(runs), measure]
    topics: Bools = np.logical_and.reduce(np.isfinite(values), axis=0, initial=bool(runs))
    return topics


def pair(scores: Scores, measure: int, run: int, baseline: int, family: Sequence[int] = ()) -> Paired:
    """A run and a baseline on the topics where both, and all runs of `family`, have a value."""
    direction = scores.measures[measure].direction
    used = common_topics(scores, measure, (run, baseline, *family))
    first, second = scores.values[[run, baseline], measure][:, used]
    scale = np.maximum(np.abs(first), np.abs(second))
    gains = subtract(costs_of(direction, second), costs_of(direction, first), scale)
    differences = gains * (orientation(direction) or 1) + 0.0  # no -0.0
    better = gains * abs(orientation(direction))
    return Paired(
        measure=str(scores.measures[measure]),
        direction=direction,
        run=scores.runs[run],
        baseline=scores.runs[baseline],
        topics=tuple(compress(scores.topics, used)),
        undefined=tuple(compress(scores.topics, ~used)),
        values=first,
        baseline_values=second,
        mean=mean(first),
        baseline_mean=mean(second),
        differences=differences,
        difference=mean(differences),
        spread=spread_of(gains, scores.se[[run, baseline], measure][:, used]),
        gains=gains,
        wins=int((better > 0).sum()),
        ties=int((gains == 0).sum()),
        losses=int((better < 0).sum()),
    )

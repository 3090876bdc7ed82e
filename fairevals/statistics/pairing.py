"""Which values are compared: topics on which all runs concerned are defined, in one orientation.

A measure whose best is a target value is compared by the distance to it, topic by topic: two runs at +1 and
−1 around a target of 0 are equally far from it, and their mean of 0 would say otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairevals.errors import UsageError, escape
from fairevals.evaluation.scores import Scores
from fairevals.measures import Direction
from fairevals.statistics.sampling import Spread, spread_of
from fairevals.typing import Bools, Floats

ROUNDING = 1e-12
"""Two values are the same where they differ by no more than this share of the larger: sums round differently."""


def comparable(direction: Direction, values: Floats) -> Floats:
    """The numbers that are compared: the values, or for a target their distances to it. NaN stays NaN.

    >>> from fairevals.measures.base import HIGHER, near
    >>> comparable(HIGHER, np.array([0.3, -0.3])), comparable(near(0.0), np.array([0.3, -0.3]))
    (array([ 0.3, -0.3]), array([0.3, 0.3]))
    """
    found: Floats = values if direction.target is None else np.abs(values - direction.target)
    return found


def orientation(direction: Direction) -> int:
    """1 where more of what is compared is better, −1 where less is (lower is better, or a distance), 0 for neither.

    >>> from fairevals.measures.base import HIGHER, LOWER, NEUTRAL, near
    >>> orientation(HIGHER), orientation(LOWER), orientation(near(0.0)), orientation(NEUTRAL)
    (1, -1, -1, 0)
    """
    return {"higher": 1, "none": 0}.get(direction.word, -1)


def subtract(a: Floats, b: Floats, scale: Floats | float = 0.0) -> Floats:
    """a − b, exactly 0 where they differ by rounding only (`ROUNDING`, of the larger of a, b and `scale`).

    >>> subtract(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 0.25]))
    array([0.  , 0.25])
    """
    difference = a - b
    same = np.abs(difference) <= ROUNDING * np.maximum(np.maximum(np.abs(a), np.abs(b)), scale)
    found: Floats = np.where(same, 0.0, difference)
    return found


def mean(values: Floats) -> float:
    """The mean, exactly rounded as in `Scores.mean`; NaN of nothing.

    >>> mean(np.array([0.1] * 10)), mean(np.zeros(0))
    (0.1, nan)
    """
    return math.fsum(values) / values.size if values.size else math.nan


@dataclass(frozen=True)
class Paired:
    """A run and a baseline on the topics where both are defined."""

    measure: str
    direction: Direction
    run: str
    baseline: str
    topics: tuple[str, ...]
    """The topics used."""
    undefined: tuple[str, ...]
    """The topics left out, since one of the runs concerned has no value there."""
    values: Floats
    baseline_values: Floats
    differences: Floats
    """Run − baseline on each topic used; of the distances to the target where the direction has one."""
    spread: Spread
    """The standard error of the mean difference: from topics, and from sampling rankings."""

    @property
    def difference(self) -> float:
        """The mean of `differences`."""
        return mean(self.differences)

    @property
    def gains(self) -> Floats:
        """The differences so that above 0 the run is better than the baseline, whatever the direction."""
        found: Floats = self.differences * orientation(self.direction) + 0.0  # no -0.0
        return found

    @property
    def wins(self) -> int:
        """Topics on which the run is better."""
        return int((self.gains > 0).sum())

    @property
    def ties(self) -> int:
        """Topics on which the two are the same, but for rounding."""
        return int((self.differences == 0).sum())

    @property
    def losses(self) -> int:
        """Topics on which the run is worse."""
        return int((self.gains < 0).sum())

    def driving(self, most: int = 10) -> tuple[tuple[str, float], ...]:
        """(topic, gain) of the topics that differ most, the largest difference first."""
        gains = self.gains
        order = sorted(range(gains.size), key=lambda t: (-abs(gains[t]), t))
        return tuple((self.topics[t], float(gains[t])) for t in order[:most] if gains[t])


def run_number(scores: Scores, run: int | str) -> int:
    """The place of a run in the scores, by name or place."""
    if isinstance(run, int):
        return run
    if run not in scores.runs:
        raise UsageError(
            f"there is no run {escape(run)!r}; the runs are {', '.join(map(escape, scores.runs))}"
        )
    return scores.runs.index(run)


def measure_number(scores: Scores, measure: int | str) -> int:
    """The place of a measure in the scores, by name or place."""
    if isinstance(measure, int):
        return measure
    names = [str(m) for m in scores.measures]
    if measure not in names:
        raise UsageError(f"there is no measure {escape(measure)!r}; the measures are {', '.join(names)}")
    return names.index(measure)


def defined_everywhere(scores: Scores, measure: int) -> tuple[list[int], Bools]:
    """The runs that have any value, and the topics on which all of these have one.

    A run without a single value is set aside: it would leave nothing to compare the others on.
    """
    finite = np.isfinite(scores.values[:, measure])
    runs = [r for r in range(len(scores.runs)) if finite[r].any()]
    topics: Bools = np.full(len(scores.topics), bool(runs))
    for r in runs:
        topics &= finite[r]
    return runs, topics


def pair(
    scores: Scores, measure: int | str, run: int | str, baseline: int | str, topics: Bools | None = None
) -> Paired:
    """A run and a baseline on the topics where both are defined (among `topics`, if given)."""
    m, r, b = measure_number(scores, measure), run_number(scores, run), run_number(scores, baseline)
    direction = scores.measures[m].direction
    first, second = scores.values[r, m], scores.values[b, m]
    used: Bools = np.isfinite(first) & np.isfinite(second)
    if topics is not None:
        used &= topics
    first, second = first[used], second[used]
    differences = subtract(
        comparable(direction, first),
        comparable(direction, second),
        np.maximum(np.abs(first), np.abs(second)),
    )
    return Paired(
        measure=str(scores.measures[m]),
        direction=direction,
        run=scores.runs[r],
        baseline=scores.runs[b],
        topics=tuple(topic for topic, use in zip(scores.topics, used, strict=True) if use),
        undefined=tuple(topic for topic, use in zip(scores.topics, used, strict=True) if not use),
        values=first,
        baseline_values=second,
        differences=differences,
        spread=spread_of(differences, scores.se[[r, b], m][:, used]),
    )

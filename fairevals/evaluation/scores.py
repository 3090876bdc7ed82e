"""The result of scoring: a value for every run, measure and topic, with its standard error where sampled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairevals.errors import pluralize
from fairevals.measures import Measure
from fairevals.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
"""The topic name of the mean over topics."""


@dataclass(frozen=True)
class Mean:
    """A mean (or sum, see `Measure.aggregation`) over the topics on which a measure is defined; NaN without any."""

    value: float
    se: float
    """Its standard error from sampling rankings (not from sampling topics); NaN where the value is exact."""
    topics: int
    undefined: int


@dataclass(frozen=True)
class Scores:
    """Values by (run, measure, topic); NaN is undefined. `se` is NaN where a value is exact."""

    runs: tuple[str, ...]
    measures: tuple[Measure, ...]
    topics: tuple[str, ...]
    values: Floats
    se: Floats
    notes: tuple[str, ...] = ()
    """Remarks on the runs: skipped topics, missing topics, incomplete runs and so on."""
    statuses: tuple[str, ...] = ()
    """The status of each run (see `io.task.STATUSES`); empty where no runs table gives any: all are official."""
    teams: tuple[str, ...] = ()
    """The team of each run, which may be empty; empty where no runs table gives any."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What is displayed for a measure, by its name; a measure without a label has its name displayed."""
    comparable: Bools | None = None
    """(runs, measures, topics): whether a run without a value there is incomplete; None: where any run has a value."""

    def status(self, run: int) -> str:
        """official, unofficial, baseline or reference."""
        return self.statuses[run] if self.statuses else "official"

    def label(self, measure: Measure | str) -> str:
        """What tables and figures display for a measure: its label, or else its name."""
        return self.labels.get(str(measure), str(measure))

    def on_topics(self, positions: Sequence[int]) -> Scores:
        """The scores on some of the topics."""
        at = list(positions)
        return replace(
            self,
            topics=tuple(self.topics[t] for t in at),
            values=self.values[:, :, at],
            se=self.se[:, :, at],
            comparable=None if self.comparable is None else self.comparable[:, :, at],
        )

    def mean(self, run: int, measure: int) -> Mean:
        """The mean over defined topics, exactly rounded, so that the order of topics cannot change it.

        Counts are summed instead: their `aggregation` is "sum".
        """
        values, errors = self.values[run, measure], self.se[run, measure]
        defined: Bools = ~np.isnan(values)
        count = int(defined.sum())
        if not count:
            return Mean(math.nan, math.nan, 0, values.size)
        errors = errors[defined]
        divisor = 1 if self.measures[measure].aggregation == "sum" else count
        sampled = not np.isnan(errors).all()
        se = math.sqrt(math.fsum(np.nan_to_num(errors) ** 2)) / divisor if sampled else math.nan
        return Mean(math.fsum(values[defined]) / divisor, se, count, values.size - count)

    def cost(self, run: int, measure: int) -> float:
        """A number that is smaller the better the run is: of the mean, or the mean distance from a target value.

        The distance of the mean would not do: topics that miss the target on opposite sides would cancel.
        """
        direction, values = self.measures[measure].direction, self.values[run, measure]
        if direction.target is None:
            return float(direction.cost(self.mean(run, measure).value))
        distances = direction.cost(values[~np.isnan(values)])
        return math.fsum(distances) / len(distances) if len(distances) else math.nan

    @cached_property
    def lacking(self) -> Ints:
        """(runs, measures): the number of topics on which the run has no value but would need one to be compared."""
        defined = ~np.isnan(self.values)
        counted = defined.any(axis=0) if self.comparable is None else self.comparable
        count: Ints = np.sum(~defined & counted, axis=2)
        return count

    @property
    def incomplete(self) -> Bools:
        """(runs, measures): whether the run lacks a value on a topic on which some other run has one.

        Means over different topics cannot be compared, and leaving out a topic must never pay: an incomplete run is
        listed after the complete ones, marked, and never wins (see "Missing topics" in the conventions).
        """
        return self.lacking > 0

    def undefined(self) -> Ints:
        """For each measure, the largest number of topics on which it is undefined for a run."""
        count: Ints = np.isnan(self.values).sum(axis=2).max(axis=0)
        return count

    def undefined_remarks(self) -> list[str]:
        """A remark for each measure that is undefined on some topic for some run."""
        topics = pluralize(len(self.topics), "topic")
        return [
            f"{self.label(measure)} is undefined on up to {count} of {topics}: not in its mean"
            for measure, count in zip(self.measures, self.undefined().tolist(), strict=True)
            if count
        ]

    def rows(self, per_topic: bool = False) -> list[tuple[str, str, str, float, float]]:
        """Rows (run, topic, measure, value, se): the means, with topic `all`, after the topics if wanted."""
        rows = []
        for r, run in enumerate(self.runs):
            for m, measure in enumerate(self.measures):
                name = str(measure)
                if per_topic:
                    for t, topic in enumerate(self.topics):
                        rows.append((run, topic, name, float(self.values[r, m, t]), float(self.se[r, m, t])))
                mean = self.mean(r, m)
                rows.append((run, ALL, name, mean.value, mean.se))
        return rows

    def frame(self, per_topic: bool = False) -> pd.DataFrame:
        """The same as a table; NaN where a value is undefined, or exact (`se`)."""
        import pandas as pd

        return pd.DataFrame(self.rows(per_topic), columns=["run", "topic", "measure", "value", "se"])

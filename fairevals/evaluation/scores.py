"""The result of scoring: a value for every run, measure and topic, with its standard error where sampled.

A measure across topics has one value for every run instead, computed from the exposures on all topics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fairevals.collection import ExposedTopics
from fairevals.errors import pluralize
from fairevals.evaluation.tops import TopRanks
from fairevals.measures import ExposureMeasure, Measure
from fairevals.policy.policies import jackknife
from fairevals.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

ALL = "all"
"""The topic name of the mean over topics."""
SCORE_COLUMNS = ("run", "topic", "measure", "value", "se")


@dataclass(frozen=True)
class Mean:
    """A mean (or sum, see `Measure.aggregation`) over the topics on which a measure is defined; NaN without any.

    Of a measure across topics, the value for those topics together.
    """

    value: float
    se: float
    """Its standard error from sampling rankings (not from sampling topics); NaN where the value is exact."""
    topics: int
    undefined: int


@dataclass(frozen=True)
class Scores:
    """Values by (run, measure, topic); NaN is undefined. `se` is NaN where a value is exact.

    Those of a measure across topics are all NaN: see `mean`, and `defined` for the topics that it is computed from.
    """

    runs: tuple[str, ...]
    measures: tuple[Measure, ...]
    topics: tuple[str, ...]
    values: Floats
    se: Floats
    notes: tuple[str, ...] = ()
    """Remarks on the runs: skipped topics, missing topics, incomplete runs and so on."""
    missing_topics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By the names of the runs that leave out judged topics: those topics."""
    statuses: tuple[str, ...] = ()
    """The status of each run (see `io.specs.STATUSES`); empty where no runs table gives any: all are official."""
    teams: tuple[str, ...] = ()
    """The team of each run, "" where it is not known; empty where no runs table gives any."""
    originals: tuple[str, ...] = ()
    """The names that anonymous runs have; empty where runs are shown by their names."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What is displayed for a measure, by its name; a measure without a label has its name displayed."""
    comparable: Bools | None = None
    """(runs, measures, topics): whether a run without a value there is incomplete; None: where any run has a value."""
    across: tuple[Mapping[str, ExposedTopics], ...] = ()
    """For each run, by the name of each measure across topics: what it is computed from."""
    tops: tuple[TopRanks, ...] = ()
    """For each run its first ranks on all topics, if they were asked for."""

    def status(self, run: int) -> str:
        """official, unofficial, baseline or reference."""
        return self.statuses[run] if self.statuses else "official"

    def label(self, measure: Measure | str) -> str:
        """What tables and figures display for a measure: its label, or else its name."""
        return self.labels.get(str(measure), str(measure))

    def only(self, measures: Sequence[int]) -> Scores:
        """The scores of some of the measures."""
        at = list(measures)
        return replace(
            self,
            measures=tuple(self.measures[m] for m in at),
            values=self.values[:, at],
            se=self.se[:, at],
            comparable=None if self.comparable is None else self.comparable[:, at],
        )

    def on_topics(self, positions: Sequence[int]) -> Scores:
        """The scores on some of the topics."""
        at = list(positions)
        topics = tuple(self.topics[t] for t in at)
        kept = set(topics)
        missing = {run: tuple(t for t in some if t in kept) for run, some in self.missing_topics.items()}
        return replace(
            self,
            topics=topics,
            missing_topics={run: some for run, some in missing.items() if some},
            values=self.values[:, :, at],
            se=self.se[:, :, at],
            comparable=None if self.comparable is None else self.comparable[:, :, at],
            across=tuple({name: e.on(np.array(at, int)) for name, e in run.items()} for run in self.across),
            tops=(),
        )

    @cached_property
    def _across(self) -> dict[tuple[int, int], tuple[Bools, Mean]]:
        """By run and measure across topics: the topics that it takes into account, and its value; none without one."""
        found = {}
        for r, run in enumerate(self.across):
            for m, measure in enumerate(self.measures):
                if isinstance(measure, ExposureMeasure) and measure.across_topics:
                    used = measure.topics_used(run[str(measure)])
                    mean = self.across_mean(r, m, used)
                    found[r, m] = used & (mean.topics > 0), mean
        return found

    def exposed(self, run: int, measure: int, topics: Bools) -> tuple[ExposureMeasure, ExposedTopics]:
        """A measure across topics, and what it is computed from on these topics."""
        definition = self.measures[measure]
        assert isinstance(definition, ExposureMeasure)  # noqa: S101 -- as all measures across topics are
        return definition, self.across[run][str(definition)].on(np.flatnonzero(topics))

    def across_mean(self, run: int, measure: int, topics: Bools) -> Mean:
        """The value of a measure across topics on these topics together."""
        definition, exposed = self.exposed(run, measure, topics)
        count, total = exposed.numbers.size, len(self.topics)
        once = np.ones((1, count))
        value, se = definition.of_topics(exposed, once), np.full(1, np.nan)
        if np.isnan(value[0]):
            return Mean(math.nan, math.nan, 0, total)
        if exposed.left_out is not None:
            without = [definition.of_topics(replace(exposed, exposure=e), once) for e in exposed.left_out]
            se = np.asarray(jackknife(value, np.stack(without)).se)
        return Mean(float(value[0]), float(se[0]), count, total - count)

    @cached_property
    def resampled(self) -> dict[tuple[int, int, bytes, int], Floats]:
        """By run, measure, topics and seed: values of a measure across topics that intervals and tests share."""
        return {}

    @cached_property
    def defined(self) -> Bools:
        """(runs, measures, topics): where a measure has a value, or one across topics takes the topic into account."""
        defined = ~np.isnan(self.values)
        for at, (used, _) in self._across.items():
            defined[at] = used
        return defined

    def mean(self, run: int, measure: int) -> Mean:
        """The mean over defined topics, exactly rounded, so that the order of topics cannot change it.

        Counts are summed instead: their `aggregation` is "sum".
        """
        if self.measures[measure].across_topics:
            return self._across[run, measure][1]
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

        It is not the distance of the mean: topics that miss the target on opposite sides would cancel.
        """
        direction, values = self.measures[measure].direction, self.values[run, measure]
        if direction.target is None or self.measures[measure].across_topics:
            return float(direction.cost(self.mean(run, measure).value))
        distances = direction.cost(values[~np.isnan(values)])
        return math.fsum(distances) / len(distances) if len(distances) else math.nan

    @cached_property
    def lacking(self) -> Ints:
        """(runs, measures): the number of topics on which the run has no value but would need one to be compared."""
        counted = self.defined.any(axis=0) if self.comparable is None else self.comparable
        count: Ints = np.sum(~self.defined & counted, axis=2)
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
        count: Ints = (~self.defined).sum(axis=2).max(axis=0)
        return count

    def undefined_remarks(self) -> list[str]:
        """A remark for each measure that is undefined on some topic for some run."""
        topics = pluralize(len(self.topics), "topic")
        return [
            f"{self.label(measure)} is undefined on up to {count} of {topics}: "
            f"not in its {'value' if measure.across_topics else 'mean'}"
            for measure, count in zip(self.measures, self.undefined().tolist(), strict=True)
            if count
        ]

    def rows(self, per_topic: bool = False) -> list[tuple[str, str, str, float, float]]:
        """Rows (run, topic, measure, value, se): the means, with topic `all`, after the topics if wanted.

        A measure across topics has the row `all` only.
        """
        rows = []
        for r, run in enumerate(self.runs):
            for m, measure in enumerate(self.measures):
                name = str(measure)
                if per_topic and not measure.across_topics:
                    for t, topic in enumerate(self.topics):
                        rows.append((run, topic, name, float(self.values[r, m, t]), float(self.se[r, m, t])))
                mean = self.mean(r, m)
                rows.append((run, ALL, name, mean.value, mean.se))
        return rows

    def frame(self, per_topic: bool = False) -> pd.DataFrame:
        """The same as a table; NaN where a value is undefined, or exact (`se`)."""
        import pandas as pd

        return pd.DataFrame(self.rows(per_topic), columns=list(SCORE_COLUMNS))

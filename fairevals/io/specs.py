"""What a task is made of: how it declares an attribute, a policy and a run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

from fairevals.errors import Place, UsageError, check_known, escape, names

KINDS = ("nominal", "ordinal")
ORDERS = ("score", "file")
POLICIES = ("ranking", "pl", "samples")
CANDIDATES = ("judged", "retrieved")
CONVENTIONS = ("fairevals", "trec_eval")
MISSING = ("zero", "skip")
STATUSES = ("official", "unofficial", "baseline", "reference")
LARGEST = 1e15
"""The largest number in a task: whole numbers up to it are exact, and nothing overflows."""
DIVERGENCE_NAMES = ("JSD", "NMD", "RNOD", "RSNOD", "NVD", "RNSS")


def is_number(value: Any, kind: Any = Real) -> bool:
    """Whether a value is a number of a kind; a bool is none."""
    return isinstance(value, kind) and not isinstance(value, bool)


@dataclass(frozen=True)
class AttributeSpec:
    """An attribute as the task file declares it."""

    name: str
    groups: tuple[str, ...]
    kind: str = "nominal"
    bins: tuple[float, ...] = ()
    memberships: Path | None = None
    target: str | Path | tuple[float, ...] | Mapping[str, tuple[float, ...] | float] = "uniform"
    """"uniform", "relevant", a file, one distribution, or one per topic."""
    unmapped: str = "uniform"
    """"uniform", "skip", "error", or a group's name."""
    divergence: str = "JSD"
    topics: tuple[str, ...] = ("*",)
    weight: float = 1.0
    place: Place = field(default=Place("task.toml"), compare=False)

    def applies_to(self, topic: str) -> bool:
        """Whether one of its globs matches the topic."""
        return any(fnmatchcase(topic, pattern) for pattern in self.topics)

    def problems(self) -> Iterator[tuple[str, Any, str]]:
        """Fields that do not fit: the name, the value, and what was expected."""
        groups, bins = list(self.groups), list(self.bins)
        fallbacks = ("uniform", "skip", "error", *groups)
        choices = {"kind": KINDS, "divergence": DIVERGENCE_NAMES, "unmapped": fallbacks}
        for key, allowed in choices.items():
            value = getattr(self, key)
            if not isinstance(value, str) or value not in allowed:
                yield key, value, f"one of {names(allowed)}"
        if not 0 <= self.weight < float("inf"):
            yield "weight", self.weight, "a number of at least 0"
        if len(set(groups)) < len(groups):
            yield "groups", groups, "no group twice"
        if bins and (len(bins) != len(groups) - 1 or bins != sorted(set(bins))):
            yield "bins", bins, f"{len(groups) - 1} ascending numbers, one less than groups"


@dataclass(frozen=True)
class PolicySpec:
    """How a run is read: one ranking, log-weights of Plackett-Luce (`pl`), or sampled rankings (`samples`)."""

    kind: str = "ranking"
    temperature: float = 1.0
    samples: int = 1000
    """How many rankings are drawn if a value cannot be computed exactly."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_known("policy", self.kind, POLICIES)
        if not is_number(self.samples, Integral) or not 2 <= self.samples <= LARGEST:
            raise UsageError(
                f"samples is {escape(repr(self.samples))}; expected a whole number of at least 2, for a standard error"
            )
        if not is_number(self.temperature) or not 0 < self.temperature <= LARGEST:
            found = f"temperature is {escape(repr(self.temperature))}"
            raise UsageError(f"{found}; expected a number above 0 and at most {LARGEST:g}")
        if not is_number(self.seed, Integral) or self.seed < 0:
            raise UsageError(f"seed is {escape(repr(self.seed))}; expected a whole number of at least 0")

    def updated(self, **given: Any) -> Self:
        """The same with the values that are given, that is, not None."""
        return replace(self, **{key: value for key, value in given.items() if value is not None})


@dataclass(frozen=True)
class RunInfo:
    """One row of the runs table of a task."""

    file: str
    """The path of the run: the table's folder joined with the path in the table."""
    name: str = ""
    team: str = ""
    status: str = "official"

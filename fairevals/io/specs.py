"""What a task is made of: how it declares an attribute, a policy, a run and the work of assessors."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self, TypeAlias

from fairevals.errors import Place, UsageError, check_known, escape, names

ATTRIBUTE_KINDS = ("nominal", "ordinal")
ORDERS = ("score", "file")
POLICIES = ("ranking", "pl", "samples")
CANDIDATES = ("judged", "retrieved")
CONVENTIONS = ("fairevals", "trec_eval")
MISSING = ("zero", "skip")
STATUSES = ("official", "unofficial", "baseline", "reference")
LARGEST = 1e15
"""The largest number in a task, and the largest grade: whole numbers up to it are exact, and nothing overflows."""
TARGET_NAMES = ("uniform", "relevant")
INTERSECTION_TARGETS = (*TARGET_NAMES, "product", "backgrounds")
DIVERGENCE_NAMES = ("JSD", "NMD", "RNOD", "RSNOD", "NVD", "RNSS")


def is_number(value: Any, kind: Any = Real) -> bool:
    """Whether a value is a number of a kind; a bool is not."""
    return isinstance(value, kind) and not isinstance(value, bool)


def check_whole(name: str, value: Any, least: int = 1) -> None:
    """Raise a `UsageError` unless a value is a whole number of at least this.

    >>> check_whole("jobs", 0)
    Traceback (most recent call last):
    fairevals.errors.UsageError: jobs is 0; expected a whole number of at least 1
    """
    if not is_number(value, Integral) or value < least:
        raise UsageError(f"{name} is {escape(repr(value))}; expected a whole number of at least {least}")


@dataclass(frozen=True)
class TargetMixture:
    """A target T mixed with backgrounds b: T' = w·T + (1−w)·c·b on the known groups, c their mass in T.

    The group `unknown` keeps its share. So TREC Fair Ranking 2021 and 2022 mix the distribution of the relevant
    documents with that of the world.
    """

    mix: tuple[Any, ...]
    """T and one or more backgrounds, each in any form of a target but this one."""
    weights: tuple[float, ...]
    """The weights of `mix`, which sum to 1."""
    unknown: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], convert: Callable[[Any], Any]) -> Self:
        """From {"mix": […], "weights": […], "unknown": …}; `convert` checks each target of the mix.

        Weights are equal by default. Raises a `ValueError` that says what was expected.
        """
        if set(given) - {"mix", "weights", "unknown"}:
            raise ValueError("mix, and perhaps weights and unknown, in a mixture")
        mix, unknown_group = given["mix"], given.get("unknown")
        if not isinstance(mix, (list, tuple)) or len(mix) < 2 or any(map(is_mixture, mix)):
            raise ValueError('mix = ["relevant", "FILE"], two or more targets')
        weights = given.get("weights", [1 / len(mix)] * len(mix))
        fits = isinstance(weights, (list, tuple)) and len(weights) == len(mix)
        if (
            not fits
            or not all(is_number(w) and 0 < w < 1 for w in weights)
            or abs(math.fsum(weights) - 1) > 1e-9
        ):
            raise ValueError(f"weights: {len(mix)} numbers above 0 that sum to 1")
        if unknown_group is not None and not isinstance(unknown_group, str):
            raise ValueError("unknown: the name of a group")
        return cls(tuple(map(convert, mix)), tuple(map(float, weights)), unknown_group)


def is_mixture(target: Any) -> bool:
    """Whether a target is given as a mixture, {"mix": […], …}."""
    return isinstance(target, Mapping) and "mix" in target


Target: TypeAlias = str | Path | tuple[float, ...] | Mapping[str, tuple[float, ...] | float] | TargetMixture
"""The name of a distribution ("uniform", "relevant", …), a file, shares in the order of the groups, {group: share},
{topic: shares}, or a mixture."""


def target_files(target: Target) -> tuple[Path, ...]:
    """The files that a target names."""
    several = target.mix if isinstance(target, TargetMixture) else (target,)
    return tuple(one for one in several if isinstance(one, Path))


@dataclass(frozen=True)
class IntersectionSpec:
    """An intersection of attributes as the task file declares it."""

    name: str
    of: tuple[str, ...]
    """The attributes; groups are named in their order, `g1 × g2`."""
    target: Target = "product"
    """Also "product", of the attributes' own; "backgrounds" in a mixture stands for those of the attributes."""
    place: Place = field(default=Place("task.toml"), compare=False)

    def problems(self) -> Iterator[tuple[str, Any, str]]:
        """Fields that do not fit: the name, the value, and what was expected."""
        if len(set(self.of)) < max(2, len(self.of)):
            yield "of", list(self.of), "two or more different attributes"
        if self.target == "backgrounds":
            yield (
                "target",
                self.target,
                '{mix = ["relevant", "backgrounds"]}: backgrounds are part of a mixture',
            )


@dataclass(frozen=True)
class AttributeSpec:
    """An attribute as the task file declares it."""

    name: str
    groups: tuple[str, ...]
    kind: str = "nominal"
    bins: tuple[float, ...] = ()
    memberships: Path | None = None
    target: Target = "uniform"
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
        choices = {"kind": ATTRIBUTE_KINDS, "divergence": DIVERGENCE_NAMES, "unmapped": fallbacks}
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
        check_whole("seed", self.seed, 0)

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


@dataclass(frozen=True)
class AnnotationSpec:
    """How assessors annotate pages: `[annotation]` of a task."""

    entities: int = 3
    """How many entities an assessor may name on a page."""
    assessors_per_page: int = 2
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What an entity has beyond its name and attributes, by topic group or glob of topics."""

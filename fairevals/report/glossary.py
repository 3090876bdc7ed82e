"""Each measure's formula, direction and source, from its declaration."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass

from fairevals.measures import Measure
from fairevals.report.roles import role


@dataclass(frozen=True)
class GlossaryEntry:
    """A measure as the glossary explains it."""

    name: str
    shown_as: tuple[str, ...]
    """The measures of the report that are this one with some parameters."""
    role: str
    direction: str
    formula: str
    source: str
    text: str
    parameters: tuple[tuple[str, str, str], ...]
    """Name, default, meaning."""


WORDS = (
    (
        "policy",
        "a distribution over rankings of a topic's documents; a plain run is a policy with one ranking",
    ),
    ("attention", "how much of a user's attention a rank gets"),
    ("exposure", "the expected attention of a document under the policy"),
    ("merit", "what exposure should follow: a function of the grade"),
    (
        "attribute, group",
        "a named set of groups, ordinal or nominal; a document's membership is its share in each group",
    ),
    ("target", "the distribution over groups that an attribute should reach"),
    ("undefined", "a topic on which a measure has no meaning: left out of its mean, and counted"),
    (
        "letters",
        "runs that share a letter do not differ significantly on the measure (randomised Tukey HSD over all runs)",
    ),
    ("Pareto front", "the runs that no other run beats on both measures"),
    ("gain", "a difference to the baseline, turned so that above 0 the run is better whatever the direction"),
)


def terms(measures: Iterable[Measure]) -> list[GlossaryEntry]:
    """A term for each kind of measure, in the order of the report."""
    by_name: dict[str, list[Measure]] = {}
    for measure in measures:
        by_name.setdefault(measure.name, []).append(measure)
    return [_term(name, found) for name, found in by_name.items()]


def _term(name: str, found: list[Measure]) -> GlossaryEntry:
    first = found[0]
    return GlossaryEntry(
        name=name,
        shown_as=tuple(map(str, found)),
        role=role(first),
        direction=first.direction.words,
        formula=first.formula,
        source=first.source,
        text=_prose(type(first)),
        parameters=tuple(
            (f.name, "" if f.default is None else repr(f.default), str(f.metadata["meaning"]))
            for f in first.parameters()
        ),
    )


def _prose(cls: type) -> str:
    """The docstring without its examples, as one paragraph."""
    lines = inspect.cleandoc(cls.__doc__ or "").split("\n")
    kept: list[str] = []
    for line in lines:
        if line.startswith(">>>"):
            break
        kept.append(line)
    return " ".join(" ".join(kept).replace("`", "").split())

"""The task file: TOML that names the qrels, the attributes and the conventions of a task once."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.io.streams import Source

KINDS = ("nominal", "ordinal")
ORDERS = ("score", "file")
POLICIES = ("ranking", "pl", "samples")
CANDIDATES = ("judged", "retrieved")
CONVENTIONS = ("fairevals", "trec_eval")
MISSING = ("zero", "skip")
STATUSES = ("official", "unofficial", "baseline", "reference")
LARGEST = 1e15
"""No number of a task is larger, so that whole ones are exact and none overflows on the way."""
MOST_PARTS = 100
DIVERGENCES = ("JSD", "NMD", "RNOD", "RSNOD", "NVD", "RNSS")


@dataclass(frozen=True)
class AttributeSpec:
    """An attribute as the task file declares it."""

    name: str
    groups: tuple[str, ...]
    kind: str = "nominal"
    bins: tuple[float, ...] = ()
    memberships: Path | None = None
    target: str | Path | tuple[float, ...] | Mapping[str, tuple[float, ...]] = "uniform"
    """"uniform", "relevant", a file, one distribution, or one for each topic."""
    unmapped: str = "uniform"
    """"uniform", "skip", "error", or a group's name."""
    divergence: str = "JSD"
    topics: tuple[str, ...] = ("*",)
    weight: float = 1.0
    place: Place = field(default=Place("task.toml"), compare=False)

    def applies_to(self, topic: str) -> bool:
        """Whether one of its globs fits the topic."""
        return any(fnmatchcase(topic, pattern) for pattern in self.topics)


@dataclass(frozen=True)
class PolicySpec:
    """How a run is read: one ranking, log-weights of Plackett-Luce (`pl`), or sampled rankings (`samples`)."""

    kind: str = "ranking"
    temperature: float = 1.0
    samples: int = 1000
    """How many rankings are drawn where a value cannot be computed exactly."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.samples < 2:
            raise UsageError(f"samples is {self.samples}; expected at least 2, for a standard error")
        if not 0 < self.temperature < float("inf"):
            raise UsageError(f"temperature is {self.temperature}; expected a number above 0")
        if self.seed < 0:
            raise UsageError(f"seed is {self.seed}; expected at least 0")


@dataclass(frozen=True)
class RunInfo:
    """What the runs table of a task says about one run file."""

    file: str
    name: str = ""
    team: str = ""
    status: str = "official"


@dataclass(frozen=True)
class Task:
    """All that scoring needs to know besides the runs."""

    name: str = ""
    qrels: Path | None = None
    max_grade: float | None = None
    order: str = "score"
    cutoff: int | None = None
    measures: tuple[str, ...] = ("nDCG@10", "ERR@20", "iRBU@20")
    utility_weight: float = 1.0
    candidates: str = "judged"
    """Which documents group means are taken over: the judged ones, or those judged or retrieved."""
    conventions: str = "fairevals"
    """"trec_eval": scores are compared as float32, and utility is 0 where nothing is relevant."""
    missing: str = "zero"
    """The utility of a judged topic that a run leaves out: 0 (trec_eval -c), or "skip" (trec_eval without -c)."""
    runs: tuple[RunInfo, ...] = ()
    max_documents: int = 1000
    """How many documents a topic may have before `validate` objects."""
    attributes: Mapping[str, AttributeSpec] = field(default_factory=dict)
    policy: PolicySpec = PolicySpec()
    path: Path | None = None


class _Reader:
    """Takes values out of the parsed file, and says file and line where one is wrong."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text, self.folder = name, text, Path(name).parent

    def line(self, *keys: str) -> int:
        """The line of a key, by the way: the last that names it below its table's heading."""
        wanted, at = list(keys), 0
        for number, line in enumerate(self.text.split("\n"), 1):
            plain = line.strip().replace('"', "").replace("'", "")
            heading = plain.split("]")[0].strip("[ ").split(".") if plain.startswith("[") else None
            if heading is not None:
                if heading[: len(keys)] == list(keys):
                    return number
                left = keys[len(heading) :] if list(keys[: len(heading)]) == heading else None
                wanted = list(left) if left is not None else ["\0"]
                at = number if left is not None and not at else at
            if wanted and re.split(r"[\s=.]", plain, maxsplit=1)[0] == wanted[0]:
                return number
        return at

    def wrong(self, keys: tuple[str, ...], found: Any, expected: str) -> InputError:
        shown_keys = ".".join(escape(key) for key in keys)
        return InputError(
            Place(self.name, self.line(*keys)), f"{shown_keys} = {escape(_value(found))}", expected
        )

    def known(self, table: Mapping[str, Any], keys: tuple[str, ...], known: tuple[str, ...]) -> None:
        for key in table:
            if key not in known:
                place = Place(self.name, self.line(*keys, key))
                raise InputError(place, f"the unknown key {escape(key)!r}", f"one of {', '.join(known)}")

    def number(
        self, table: Mapping[str, Any], keys: tuple[str, ...], default: Any, *, low: float, whole: bool
    ) -> Any:
        value = table.get(keys[-1], default)
        if value is default:
            return default
        fits = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        if not fits or not low <= value <= LARGEST:
            most = f" and at most {LARGEST:g}" if fits and value > LARGEST else ""
            raise self.wrong(keys, value, f"a {'whole ' if whole else ''}number of at least {low:g}{most}")
        return value

    def choice(
        self, table: Mapping[str, Any], keys: tuple[str, ...], default: str, choices: tuple[str, ...]
    ) -> str:
        value = table.get(keys[-1], default)
        if value not in choices:
            raise self.wrong(keys, value, f"one of {', '.join(choices)}")
        return str(value)

    def strings(
        self, table: Mapping[str, Any], keys: tuple[str, ...], default: tuple[str, ...]
    ) -> tuple[str, ...]:
        value = table.get(keys[-1], list(default))
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.wrong(keys, value, 'a list of texts, such as ["R*"]')
        return tuple(value)

    def path(self, table: Mapping[str, Any], keys: tuple[str, ...]) -> Path | None:
        value = table.get(keys[-1])
        if value is None:
            return None
        if not isinstance(value, str) or not value or "\0" in value:
            raise self.wrong(keys, value, "the name of a file")
        return self.folder / value

    def numbers(self, value: Any, keys: tuple[str, ...]) -> tuple[float, ...]:
        right = isinstance(value, list) and all(
            isinstance(x, (int, float)) and not isinstance(x, bool) and abs(x) <= sys.float_info.max
            for x in value
        )
        if not right:
            raise self.wrong(keys, value, "a list of finite numbers")
        return tuple(float(x) for x in value)

    def table(self, parent: Mapping[str, Any], keys: tuple[str, ...]) -> Mapping[str, Any]:
        value = parent.get(keys[-1], {})
        if not isinstance(value, dict):
            raise self.wrong(keys, value, f"a table, [{'.'.join(keys)}]")
        return value

    def attribute(self, name: str, table: Mapping[str, Any]) -> AttributeSpec:
        at = ("attributes", name)
        known = (
            "kind",
            "groups",
            "bins",
            "memberships",
            "target",
            "unmapped",
            "divergence",
            "topics",
            "weight",
        )
        self.known(table, at, known)
        groups = self.strings(table, (*at, "groups"), ())
        if len(groups) < 1 or len(set(groups)) < len(groups):
            raise self.wrong((*at, "groups"), list(groups), "one or more different names")
        kind = self.choice(table, (*at, "kind"), "nominal", KINDS)
        bins = self.numbers(table.get("bins", []), (*at, "bins"))
        if bins and (len(bins) != len(groups) - 1 or list(bins) != sorted(set(bins))):
            raise self.wrong(
                (*at, "bins"), list(bins), f"{len(groups) - 1} ascending numbers, one less than groups"
            )
        unmapped = table.get("unmapped", "uniform")
        if unmapped not in ("uniform", "skip", "error", *groups):
            raise self.wrong((*at, "unmapped"), unmapped, "uniform, skip, error, or the name of a group")
        return AttributeSpec(
            name=name,
            groups=groups,
            kind=kind,
            bins=bins,
            memberships=self.path(table, (*at, "memberships")),
            target=self.target(table, at),
            unmapped=unmapped,
            divergence=self.choice(
                table, (*at, "divergence"), "RNOD" if kind == "ordinal" else "JSD", DIVERGENCES
            ),
            topics=self.strings(table, (*at, "topics"), ("*",)),
            weight=self.number(table, (*at, "weight"), 1.0, low=0, whole=False),
            place=Place(self.name, self.line(*at)),
        )

    def target(self, table: Mapping[str, Any], at: tuple[str, ...]) -> Any:
        value = table.get("target", "uniform")
        keys = (*at, "target")
        if isinstance(value, str):
            return value if value in ("uniform", "relevant") else self.path(table, keys)
        if isinstance(value, dict):
            return {topic: self.numbers(numbers, (*keys, topic)) for topic, numbers in value.items()}
        return self.numbers(value, keys)


def _value(found: Any) -> str:
    """A value of the file as Python writes it, however deeply nested or large it is."""
    try:
        return repr(found)
    except (RecursionError, ValueError):  # tables in tables in tables; a whole number of thousands of digits
        return f"a {type(found).__name__}"


def _check_keys(name: str, text: str) -> None:
    """Refuse keys of absurdly many parts (`a.a.a…`): reading them takes time by the square of their number."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > MOST_PARTS and not line.lstrip().startswith("#"):
            longest = max(part.count(".") for part in re.split(r"""[^\w\s."'-]""", line))
            if longest > MOST_PARTS:
                raise InputError(Place(name, number), f"a key of more than {MOST_PARTS} parts", "a few")


def read_task(path: str | os.PathLike[str]) -> Task:
    """Read a task file; paths in it are relative to it."""
    source = Source.of(path)
    data = b"".join(source.chunks())
    try:
        text = data.decode()
        _check_keys(source.name, text)
        parsed = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(Place(source.name, line), "bytes that are not UTF-8", "UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+), column \d+\)", str(error))
        message = str(error).split(" (at ")[0]
        raise InputError(
            Place(source.name, int(where[1]) if where else 0), f"not TOML ({escape(message)})"
        ) from None
    except RecursionError:
        raise InputError(Place(source.name), "not TOML (nested too deeply)") from None
    except ValueError as error:  # a whole number of thousands of digits
        raise InputError(Place(source.name), f"not TOML ({escape(str(error))})") from None
    reader = _Reader(source.name, text)
    keys = ("name", "qrels", "max_grade", "order", "cutoff", "measures", "utility_weight", "max_documents")
    reader.known(parsed, (), (*keys, "candidates", "conventions", "missing", "attributes", "policy"))
    name = parsed.get("name", "")
    if not isinstance(name, str):
        raise reader.wrong(("name",), name, "a text")
    attributes = reader.table(parsed, ("attributes",))
    policy = reader.table(parsed, ("policy",))
    reader.known(policy, ("policy",), ("kind", "temperature", "samples", "seed"))
    temperature = reader.number(policy, ("policy", "temperature"), 1.0, low=0, whole=False)
    if temperature == 0:
        raise reader.wrong(("policy", "temperature"), temperature, "a number above 0")
    return Task(
        name=name,
        qrels=reader.path(parsed, ("qrels",)),
        max_grade=reader.number(parsed, ("max_grade",), None, low=1, whole=False),
        order=reader.choice(parsed, ("order",), "score", ORDERS),
        cutoff=reader.number(parsed, ("cutoff",), None, low=1, whole=True),
        measures=reader.strings(parsed, ("measures",), Task.measures),
        utility_weight=reader.number(parsed, ("utility_weight",), 1.0, low=0, whole=False),
        candidates=reader.choice(parsed, ("candidates",), "judged", CANDIDATES),
        conventions=reader.choice(parsed, ("conventions",), "fairevals", CONVENTIONS),
        missing=reader.choice(parsed, ("missing",), "zero", MISSING),
        max_documents=reader.number(parsed, ("max_documents",), 1000, low=1, whole=True),
        attributes={
            key: reader.attribute(key, reader.table(attributes, ("attributes", key))) for key in attributes
        },
        policy=PolicySpec(
            kind=reader.choice(policy, ("policy", "kind"), "ranking", POLICIES),
            temperature=float(temperature),
            samples=reader.number(policy, ("policy", "samples"), 1000, low=2, whole=True),
            seed=reader.number(policy, ("policy", "seed"), 0, low=0, whole=True),
        ),
        path=Path(source.name),
    )

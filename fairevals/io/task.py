"""The task file: TOML that names the qrels, the runs, the attributes and the conventions of a task."""

import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeGuard

from fairevals.errors import FairevalsError, InputError, Place, UsageError, escape, names, type_of, unknown
from fairevals.io.streams import Source, checked_path, written_bytes
from fairevals.io.tables import table

KINDS = ("nominal", "ordinal")
ORDERS = ("score", "file")
POLICIES = ("ranking", "pl", "samples")
CANDIDATES = ("judged", "retrieved")
CONVENTIONS = ("fairevals", "trec_eval")
MISSING = ("zero", "skip")
STATUSES = ("official", "unofficial", "baseline", "reference")
LARGEST = 1e15
"""The largest number in a task, and the largest grade: whole numbers up to it are exact, and nothing overflows."""
MAX_KEY_PARTS = 100
MAX_BYTES = 4 << 20
"""Of a task file, which is parsed slowly; 100,000 names of groups take less than half of it."""
DIVERGENCE_NAMES = ("JSD", "NMD", "RNOD", "RSNOD", "NVD", "RNSS")


def _is_number(value: Any, kind: Any = Real) -> bool:
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
            if getattr(self, key) not in allowed:
                yield key, getattr(self, key), f"one of {names(allowed)}"
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
        if self.kind not in POLICIES:
            raise unknown("policy", self.kind, POLICIES)
        if not _is_number(self.samples, Integral) or self.samples < 2:
            raise UsageError(
                f"samples is {self.samples!r}; expected a whole number of at least 2, for a standard error"
            )
        if not _is_number(self.temperature) or not 0 < self.temperature < float("inf"):
            raise UsageError(f"temperature is {self.temperature!r}; expected a number above 0")
        if not _is_number(self.seed, Integral) or self.seed < 0:
            raise UsageError(f"seed is {self.seed!r}; expected a whole number of at least 0")

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
class Task:
    """Everything that scoring needs to know besides the runs: what a task file says, or the same from Python.

    Values are given as in a task file. Paths are relative to the working directory. `qrels` and `measures` take one
    or several; a measure is its name, an object such as `fairevals.nDCG @ 10`, or {"measure": …, "label": …}.
    `attributes` is {name: {"groups": […], "memberships": …, …}}, `runs` the path of a runs table, `policy` the name of
    a policy, a dict or a `PolicySpec`. Wrong values raise a `UsageError` that says what was expected.

    >>> sex = {"groups": ["f", "m"], "memberships": "sex.csv", "target": {"f": 0.3, "m": 0.7}}
    >>> task = Task(qrels="my.qrels", measures=["nDCG@10", "GFR@20"], attributes={"SEX": sex}, policy="pl")
    >>> print(task.to_toml())
    qrels = "my.qrels"
    measures = ["nDCG@10", "GFR@20"]
    <BLANKLINE>
    [attributes.SEX]
    groups = ["f", "m"]
    memberships = "sex.csv"
    target = {f = 0.3, m = 0.7}
    divergence = "JSD"
    <BLANKLINE>
    [policy]
    kind = "pl"
    <BLANKLINE>
    """

    name: str = ""
    qrels: tuple[Path, ...] = ()
    """Judgements of all these files are joined."""
    max_grade: float | None = None
    order: str = "score"
    cutoff: int | None = None
    measures: tuple[str, ...] = ("nDCG@10", "ERR@20", "iRBU@20")
    labels: Mapping[str, str] = field(default_factory=dict)
    """How measures are to be displayed, by their text in `measures`."""
    utility_weight: float = 1.0
    candidates: str = "judged"
    """Which documents group means are taken over: the judged ones, or those judged or retrieved."""
    conventions: str = "fairevals"
    """"trec_eval": scores are compared as float32, and utility is 0 where nothing is relevant."""
    missing: str = "zero"
    """The utility of a judged topic that a run leaves out: 0 (trec_eval -c), or "skip" (trec_eval without -c)."""
    runs: tuple[RunInfo, ...] = ()
    max_documents: int = 1000
    """How many documents a topic may have without an error in `validate`."""
    attributes: Mapping[str, AttributeSpec] = field(default_factory=dict)
    topic_groups: Mapping[str, Mapping[str, tuple[str, ...] | Path]] = field(default_factory=dict)
    """Named sets of topics: {name: {group: globs}}, or {name: {"file": table of topic and group}}."""
    policy: PolicySpec = PolicySpec()
    path: Path | None = field(default=None, compare=False)
    """The task file."""
    runs_table: Path | None = field(default=None, compare=False)
    """The table that `runs` was read from."""

    if TYPE_CHECKING:  # what it takes is wider than what it stores

        def __init__(self, **values: Any) -> None: ...

    def __post_init__(self) -> None:
        checker = _Checker()
        if isinstance(self.runs, (str, os.PathLike)):
            object.__setattr__(self, "runs_table", Path(self.runs))
        checks = {**checker.checks(), "labels": _labels}
        values = checker.section({name: getattr(self, name) for name in checks}, (), checks)
        values["labels"] |= {measure: label for measure, label in values["measures"] if label}
        values["measures"] = tuple(measure for measure, _ in values["measures"])
        for measure in values["labels"].keys() - values["measures"]:
            expected = f"labels of {names(values['measures'])}"
            raise checker.wrong(("labels", measure), values["labels"][measure], expected)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a task file; paths in it are relative to it. Errors have the file and line."""
        return cls(**_read(path))

    def to_toml(self, folder: str | os.PathLike[str] = ".") -> str:
        """The task as the text of a task file in the given folder, to which its paths are made relative.

        Values at their default are left out. `Task.from_file` reads back an equal task.
        """
        return _Writer(Path(checked_path(folder))).task(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a task file."""
        content = self.to_toml(Path(checked_path(path)).parent).encode()
        with written_bytes(Path(path)) as file:
            file.write(content)

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that it names, with those of the runs table."""
        specs = self.attributes.values()
        named = [
            *self.qrels,
            self.runs_table,
            *(groups.get("file") for groups in self.topic_groups.values()),
            *(spec.memberships for spec in specs),
            *(spec.target for spec in specs),
        ]
        return (*(path for path in named if isinstance(path, Path)), *(Path(row.file) for row in self.runs))


def run_info(task: Task, path: str | os.PathLike[str]) -> RunInfo | None:
    """The row of the runs table for a run file, found by its path, or else by its file name if only one row has it.

    The file name decides only where the row's own path leads to no file: a run elsewhere cannot take its place.

    >>> task = Task(runs=(RunInfo("lists/bm25.run", "BM25", status="baseline"),))
    >>> run_info(task, "elsewhere/bm25.run").name, run_info(task, "other.run")
    ('BM25', None)
    """
    full = os.path.realpath(path)
    rows = [row for row in task.runs if os.path.realpath(row.file) == full]
    loose = (row for row in task.runs if not Path(row.file).exists())
    rows = rows or [row for row in loose if Path(row.file).name == Path(path).name]
    return rows[0] if len(rows) == 1 else None


def read_runs_table(path: str | os.PathLike[str]) -> tuple[RunInfo, ...]:
    """Read a table (csv or tsv) with columns file, name, team and status; all but the file may be missing or empty.

    An error with file and line: an unknown status, no file, or a file that is listed twice.
    """
    source = Source.of(path)
    _, header, rows = table(source, ("file",), known=("file", "name", "team", "status"))
    infos: dict[str, RunInfo] = {}
    for line, row in rows:
        cells = {column: cell for column, cell in zip(header, row, strict=True) if cell}
        file = str(Path(source.name).parent / cells.get("file", ""))
        problem = None
        if "file" not in cells or "\0" in cells["file"]:
            problem = "an empty file", "the name of a run file"
        elif cells.get("status", "official") not in STATUSES:
            problem = f"status {escape(cells['status'])!r}", f"one of {', '.join(STATUSES)}"
        elif os.path.normpath(file) in infos:
            problem = f"the file {escape(cells['file'])!r} a second time", "every file once"
        if problem:
            raise InputError(Place(source.name, line), *problem)
        infos[os.path.normpath(file)] = RunInfo(**{**cells, "file": file})
    return tuple(infos.values())


# Checks of single values -------------------------------------------------------------------------------------

Check = Callable[[Any], Any]
"""Returns a value of the file as the task stores it, or raises a `ValueError` that says what was expected."""


def _check(expected: str, fits: Callable[[Any], bool], convert: Check = lambda value: value) -> Check:
    def check(value: Any) -> Any:
        if not fits(value):
            raise ValueError(expected)
        return convert(value)

    return check


def _optional(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _number(low: float, *, whole: bool = False) -> Check:
    kind = Integral if whole else Real
    expected = f"a {'whole ' if whole else ''}number of at least {low:g} and at most {LARGEST:g}"
    return _check(expected, lambda value: _is_number(value, kind) and low <= value <= LARGEST)


def _choice(choices: tuple[str, ...]) -> Check:
    return _check(f"one of {', '.join(choices)}", lambda value: value in choices)


_text = _check("a text", lambda value: isinstance(value, str))
_texts = _check(
    'a list of texts, such as ["R*"]',
    lambda value: isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value),
    tuple,
)
_numbers = _check(
    "a list of finite numbers",
    lambda value: (
        isinstance(value, (list, tuple))
        and all(_is_number(item) and abs(item) <= sys.float_info.max for item in value)
    ),
    lambda value: tuple(map(float, value)),
)
_labels = _check(
    "a label for each measure, such as {'ERR@20': 'ERR'}",
    lambda value: isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()),
    lambda value: {str(measure): label for measure, label in value.items()},
)
_positive = _check(
    f"a number above 0 and at most {LARGEST:g}",
    lambda value: _is_number(value) and 0 < value <= LARGEST,
    float,
)


def _is_name(value: Any) -> TypeGuard[str | os.PathLike[str]]:
    return isinstance(value, (str, os.PathLike)) and str(value) != "" and "\0" not in str(value)


def _named_measures(value: Any) -> Any:
    """Measures from Python, of which those that are objects become their names."""

    def name(item: Any) -> Any:
        if isinstance(item, Mapping) and "measure" in item:
            return {**item, "measure": name(item["measure"])}
        # This package's measures, their classes, and those of ir-measures, none of which are known here.
        return str(item) if hasattr(item, "with_cutoff") or hasattr(item, "SUPPORTED_PARAMS") else item

    alone = isinstance(value, (str, type, Mapping)) or not isinstance(value, Iterable)
    return [name(item) for item in ([value] if alone else value)]


def _labelled(value: Any) -> list[tuple[str, str]]:
    """The measures with their labels, which are empty where none is given."""
    pairs = []
    for item in value if isinstance(value, list) else [None]:
        if isinstance(item, str):
            pairs.append((item, ""))
        elif (
            isinstance(item, dict) and set(item) == {"measure", "label"} and all(map(_is_name, item.values()))
        ):
            pairs.append((item["measure"], item["label"]))
        else:
            raise ValueError('a list of texts or tables such as { measure = "ERR@20", label = "ERR" }')
    return pairs


class _Checker:
    """Checks the values of a task from Python; errors name the key."""

    folder = Path()
    single_globs = True
    """Whether a text is a list of one glob."""

    def error(self, keys: tuple[str, ...], found: str, expected: str) -> FairevalsError:
        """The error for a key."""
        return UsageError(f"Task: {found}; expected {expected}")

    def wrong(self, keys: tuple[str, ...], value: Any, expected: str) -> FairevalsError:
        """The error for a key's value."""
        try:
            shown = repr(value)
        except (RecursionError, ValueError):  # deeply nested tables; a whole number of thousands of digits
            shown = type_of(value)
        return self.error(keys, f"{'.'.join(map(escape, keys))} = {escape(shown)}", expected)

    def section(self, parent: Any, at: tuple[str, ...], checks: Mapping[str, Check]) -> dict[str, Any]:
        """The values of a table, each checked; `checks` has all keys that are known."""
        if not isinstance(parent, Mapping):
            raise self.wrong(at, parent, f"a table, [{'.'.join(at)}]")
        values = {}
        for key, value in parent.items():
            if key not in checks:
                found = f"the unknown key {escape(str(key))!r}"
                raise self.error((*at, str(key)), found, f"one of {', '.join(checks)}")
            try:
                values[key] = checks[key](value)
            except FairevalsError:
                raise
            except ValueError as error:
                raise self.wrong((*at, key), value, str(error)) from None
        return values

    def checks(self) -> dict[str, Check]:
        """The check of each key."""
        return {
            "name": _text,
            "qrels": self.paths,
            "runs": self.runs,
            "max_grade": _optional(_positive),
            "order": _choice(ORDERS),
            "cutoff": _optional(_number(1, whole=True)),
            "measures": lambda value: _labelled(_named_measures(value)),
            "utility_weight": _number(0),
            "max_documents": _number(1, whole=True),
            "candidates": _choice(CANDIDATES),
            "conventions": _choice(CONVENTIONS),
            "missing": _choice(MISSING),
            "attributes": self.attributes,
            "topic_groups": self.topic_groups,
            "policy": self.policy,
        }

    def path(self, value: Any) -> Path:
        if not _is_name(value):
            raise ValueError("the name of a file")
        path = self.folder / value
        plain = Path(os.path.normpath(path))
        # Behind a link to a folder, `..` is not the folder of the link.
        return plain if os.path.realpath(plain) == os.path.realpath(path) else path

    def paths(self, value: Any) -> tuple[Path, ...]:
        return tuple(map(self.path, value)) if isinstance(value, (list, tuple)) else (self.path(value),)

    def runs(self, value: Any) -> tuple[RunInfo, ...]:
        if isinstance(value, tuple) and all(isinstance(row, RunInfo) for row in value):
            return value
        return read_runs_table(self.path(value))

    def topic_groups(self, given: Any) -> dict[str, Any]:
        def globs(key: str, value: Any) -> Any:
            if isinstance(value, str) and key != "file" and self.single_globs:
                return (value,)
            return self.path(value) if isinstance(value, (str, os.PathLike)) else _texts(value)

        def groups(name: str, value: Any) -> dict[str, Any]:
            at = ("topic_groups", name)
            if not isinstance(value, Mapping) or not value:
                raise self.wrong(at, value, f'a table, [{".".join(at)}], with globs such as R = ["R*"]')
            checked = self.section(value, at, {key: partial(globs, key) for key in value})
            files = [key for key, item in checked.items() if isinstance(item, Path)]
            if files and (len(checked) > 1 or files != ["file"]):
                raise self.wrong((*at, files[0]), value[files[0]], 'a list of globs, or only file = "…"')
            return checked

        keys = given if isinstance(given, Mapping) else ()
        return self.section(given, ("topic_groups",), {name: partial(groups, name) for name in keys})

    def target(self, name: str, value: Any) -> Any:
        if isinstance(value, (str, os.PathLike)):
            return value if value in ("uniform", "relevant") else self.path(value)
        if not isinstance(value, Mapping):
            return _numbers(value)
        # One share for each group, or one list of shares for each topic.
        by_group = not any(isinstance(share, (list, tuple, Mapping)) for share in value.values())
        check = _number(0) if by_group else _numbers
        return self.section(value, ("attributes", name, "target"), dict.fromkeys(value, check))

    def attribute(self, name: str, given: Any) -> AttributeSpec:
        at = ("attributes", name)
        if isinstance(given, AttributeSpec):
            spec = given
        else:
            checks: dict[str, Check] = {
                "kind": _text,
                "groups": _texts,
                "bins": _numbers,
                "memberships": self.path,
                "target": partial(self.target, name),
                "unmapped": _text,
                "divergence": _text,
                "topics": _texts,
                "weight": _number(0),
            }
            values = {"groups": (), **self.section(given, at, checks)}
            if not values["groups"]:
                raise self.wrong((*at, "groups"), [], "one or more names")
            values.setdefault("divergence", "RNOD" if values.get("kind") == "ordinal" else "JSD")
            spec = AttributeSpec(name, place=self.place_of(at), **values)
        for key, value, expected in spec.problems():
            raise self.wrong((*at, key), value, expected)
        return spec

    def place_of(self, at: tuple[str, ...]) -> Place:
        """Where the attribute is declared."""
        return Place(".".join(("Task", *at)))

    def attributes(self, given: Any) -> dict[str, AttributeSpec]:
        keys = given if isinstance(given, Mapping) else ()
        return self.section(given, ("attributes",), {name: partial(self.attribute, name) for name in keys})

    def policy(self, given: Any) -> PolicySpec:
        if isinstance(given, PolicySpec):
            return given
        checks: dict[str, Check] = {
            "kind": _choice(POLICIES),
            "temperature": _positive,
            "samples": _number(2, whole=True),
            "seed": _number(0, whole=True),
        }
        given = {"kind": given} if isinstance(given, str) else given
        return PolicySpec(**self.section(given, ("policy",), checks))


class _Reader(_Checker):
    """Checks the values of a parsed file, where a list is a list and a table is a table; errors have file and line."""

    single_globs = False

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text, self.folder = name, text, Path(name).parent

    def line(self, *keys: str) -> int:
        """The line of a key, approximately: the first that names it below the heading of its table."""
        wanted, at = keys, 0
        for number, line in enumerate(self.text.split("\n"), 1):
            plain = line.strip().replace('"', "").replace("'", "")
            if plain.startswith("["):
                heading = tuple(plain.split("]")[0].strip("[ ").split("."))
                if heading[: len(keys)] == keys:
                    return number
                wanted = keys[len(heading) :] if keys[: len(heading)] == heading else ()
                at = at or (number if wanted else 0)
            if wanted and re.split(r"[\s=.]", plain, maxsplit=1)[0] == wanted[0]:
                return number
        return at

    def error(self, keys: tuple[str, ...], found: str, expected: str) -> FairevalsError:
        return InputError(self.place_of(keys), found, expected)

    def place_of(self, at: tuple[str, ...]) -> Place:
        return Place(self.name, self.line(*at))

    def checks(self) -> dict[str, Check]:
        return {**super().checks(), "measures": _labelled}

    def policy(self, given: Any) -> PolicySpec:
        if isinstance(given, str):
            raise self.wrong(("policy",), given, "a table, [policy]")
        return super().policy(given)


def _parse(name: str, data: bytes) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file, and its content."""
    try:
        text = data.decode()
        for number, line in enumerate(text.split("\n"), 1):
            if line.count(".") <= MAX_KEY_PARTS or line.lstrip().startswith("#"):
                continue
            longest = max(part.count(".") for part in re.split(r"""[^\w\s."'-]""", line))
            if longest > MAX_KEY_PARTS:  # tomllib takes quadratic time
                raise InputError(Place(name, number), f"a key of more than {MAX_KEY_PARTS} parts", "a few")
        return text, tomllib.loads(text)
    except InputError:
        raise
    except UnicodeDecodeError as error:
        line_number = data.count(b"\n", 0, error.start) + 1
        raise InputError(Place(name, line_number), "bytes that are not UTF-8", "UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+), column \d+\)", str(error))
        place = Place(name, int(where[1]) if where else 0)
        if "Cannot overwrite" in str(error) and place.line:
            # The position is where the second value ends; its key is on that line or above.
            keys = re.findall(r"""(?m)^\s*([\w."'-]+)\s*=""", "\n".join(text.split("\n")[: place.line]))
            if keys:
                found = f"the key {escape(keys[-1])!r} a second time"
                raise InputError(place, found, "every key once") from None
        raise InputError(place, f"not TOML ({escape(str(error).split(' (at ')[0])})") from None
    except (RecursionError, ValueError) as error:  # such as a whole number of thousands of digits
        reason = "nested too deeply" if isinstance(error, RecursionError) else escape(str(error))
        raise InputError(Place(name), f"not TOML ({reason})") from None


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The values of a task file, by the names of a task's fields."""
    source = Source.of(path)
    data = bytearray()
    try:
        for chunk in source.chunks():
            data += chunk
            if len(data) > MAX_BYTES:
                raise InputError(Place(source.name), f"more than {MAX_BYTES} bytes", "a smaller task file")
        text, content = _parse(source.name, bytes(data))
    except InputError as error:
        source.refuse(error, "a task file in TOML")
    reader = _Reader(source.name, text)
    values = reader.section(content, (), reader.checks())
    if "measures" in values:
        values["labels"] = {measure: label for measure, label in values["measures"] if label}
        values["measures"] = tuple(measure for measure, _ in values["measures"])
    if "runs" in values:
        values["runs_table"] = reader.path(content["runs"])
    return {**values, "path": Path(source.name)}


read_task = Task.from_file
"""The same as `Task.from_file`."""


# Writing -----------------------------------------------------------------------------------------------------


class _Writer:
    """Writes a task as TOML: only what differs from the defaults, paths relative to the folder of the file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def task(self, task: Task) -> str:
        if task.runs and task.runs_table is None:
            raise UsageError(
                "runs were given without a table; write one and give its path: Task(runs='runs.csv')"
            )
        measures = [
            {"measure": name, "label": task.labels[name]} if name in task.labels else name
            for name in task.measures
        ]
        given = {**_changed(task), "runs": task.runs_table}
        given |= {"measures": measures} if "measures" in given or task.labels else {}
        if len(task.qrels) == 1:
            given["qrels"] = task.qrels[0]
        values = {key: value for key, value in given.items() if key != "labels" and value is not None}
        return "".join(self.table((), values))

    def table(self, at: tuple[str, ...], values: Mapping[str, Any]) -> Iterator[str]:
        """The lines of a table, with the tables in it behind the single values."""
        inner = {key: value for key, value in values.items() if is_dataclass(value) or _has_tables(value)}
        single = {key: value for key, value in values.items() if key not in inner}
        if at and (single or not inner):
            yield f"\n[{'.'.join(map(_key, at))}]\n"
        for key, value in single.items():
            yield f"{_key(key)} = {self.value(value)}\n"
        for key, value in inner.items():
            yield from self.table((*at, key), _changed(value) if is_dataclass(value) else value)

    def value(self, value: Any) -> str:
        """A single value."""
        if isinstance(value, Path):
            return _quoted(self.path(value))
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{_key(key)} = {self.value(item)}" for key, item in value.items()) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(self.value, value)) + "]"
        if isinstance(value, bool):
            return "true" if value else "false"
        return repr(int(value) if isinstance(value, Integral) else float(value))

    def path(self, path: Path) -> str:
        inside = (
            path if path.is_absolute() or self.folder == Path() else Path(os.path.relpath(path, self.folder))
        )
        full = os.path.realpath(path)
        if os.path.realpath(self.folder / inside) != full:  # the folder is a link, and `..` leads elsewhere
            inside = Path(os.path.relpath(full, os.path.realpath(self.folder)))
        # A file whose name is that of a target.
        return f"./{inside}" if str(inside) in ("uniform", "relevant") else inside.as_posix()


def _changed(record: Any) -> dict[str, Any]:
    """The fields of a dataclass that a file should have: those that differ from their default."""
    values = {}
    for f in fields(record):
        default = f.default_factory() if f.default_factory is not NO_DEFAULT else f.default
        value = getattr(record, f.name)
        # The default of the divergence depends on the kind.
        if f.compare and (value != default or f.name == "divergence"):
            values[f.name] = value
    if isinstance(record, AttributeSpec):
        del values["name"]
    return values


def _has_tables(value: Any) -> bool:
    return isinstance(value, Mapping) and any(
        is_dataclass(item) or isinstance(item, Mapping) for item in value.values()
    )


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    """A TOML string: that of JSON, except that TOML also escapes the character 127."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{escape(text)!r} cannot be written as UTF-8") from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

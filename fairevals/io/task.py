"""The task file: TOML that names the qrels, the runs, the attributes and the conventions of a task."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from fairevals.errors import FairevalsError, InputError, Place, escape, names
from fairevals.io.archives import file_name, member_of
from fairevals.io.specs import (
    AnnotationSpec,
    AttributeSpec,
    IntersectionSpec,
    PolicySpec,
    RunInfo,
    target_files,
)
from fairevals.io.streams import Source, checked_path, written_bytes
from fairevals.io.task_checks import Check, Checker, check_labels, labelled
from fairevals.io.task_writer import TaskWriter

MAX_KEY_PARTS = 100
MAX_BYTES = 4 << 20
"""Of a task file, which is parsed slowly; 100,000 names of groups take less than half of it."""


@dataclass(frozen=True)
class Task:  # noqa: PLW1641 # it has no hash, because it holds dicts
    """Everything that scoring needs to know besides the runs: what a task file says, or the same from Python.

    Values are given as in a task file. Paths are relative to the working directory. `qrels` and `measures` take one
    or several; a measure is its name, an object such as `fairevals.nDCG @ 10`, or {"measure": …, "label": …}.
    `attributes` is {name: {"groups": […], "memberships": …, …}}, `intersections`
    {name: {"of": […], "target": …}}, `runs` the path of a runs table, `policy` the name of a policy, a dict or a
    `PolicySpec`. Wrong values raise a `UsageError` that says what was expected.

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
    topics: Path | None = None
    """The list of the topics; those of the qrels by default."""
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
    topic_groups: Mapping[str, Mapping[str, tuple[str, ...] | Path | str]] = field(default_factory=dict)
    """Named sets of topics: {name: {group: globs}}, {name: {"file": table of topic and group}}, or {name: {"column":
    column of the list of topics}}."""
    intersections: Mapping[str, IntersectionSpec] = field(default_factory=dict)
    """Products of attributes, which measures take as attr='…' like an attribute."""
    policy: PolicySpec = field(default_factory=PolicySpec)
    annotation: AnnotationSpec = field(default_factory=AnnotationSpec)
    """How assessors annotate pages."""
    path: Path | None = field(default=None, compare=False)
    """The task file."""
    runs_table: Path | None = field(default=None, compare=False)
    """The table that `runs` was read from."""

    if TYPE_CHECKING:  # what it takes is wider than what it stores

        def __init__(self, **values: Any) -> None: ...

    def __post_init__(self) -> None:
        checker = Checker()
        if isinstance(self.runs, (str, os.PathLike)):
            object.__setattr__(self, "runs_table", Path(self.runs))
        files = dict.fromkeys(("path", "runs_table"), checker.optional_path)
        checks = {**checker.checks(), "labels": check_labels, **files}
        values = checker.section({name: getattr(self, name) for name in checks}, (), checks)
        values["labels"] |= {measure: label for measure, label in values["measures"] if label}
        values["measures"] = tuple(measure for measure, _ in values["measures"])
        for measure in values["labels"].keys() - values["measures"]:
            expected = f"labels of {names(values['measures'])}"
            raise checker.wrong(("labels", measure), values["labels"][measure], expected)
        checker.check_together(values)
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same, with the same files, however their paths are written."""
        return _comparable(self) == _comparable(other) if isinstance(other, Task) else NotImplemented

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """Read a task file; paths in it are relative to it. Errors have the file and line."""
        return cls(**_read(path))

    def to_toml(self, folder: str | os.PathLike[str] = ".") -> str:
        """The task as the text of a task file in the given folder, to which its paths are made relative.

        Values at their default are left out. `Task.from_file` reads back an equal task.
        """
        return TaskWriter(Path(checked_path(folder))).task(self)

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
            self.topics,
            *self.qrels,
            self.runs_table,
            *(groups.get("file") for groups in self.topic_groups.values()),
            *(spec.memberships for spec in specs),
            *(path for spec in specs for path in target_files(spec.target)),
            *(path for spec in self.intersections.values() for path in target_files(spec.target)),
        ]
        return (*(path for path in named if isinstance(path, Path)), *(Path(row.file) for row in self.runs))


def _comparable(value: Any) -> Any:
    """A task or a value in it, to be compared with ==: its paths are absolute."""
    if isinstance(value, Path):
        return Path(os.path.realpath(value))
    if isinstance(value, RunInfo):
        return replace(value, file=os.path.realpath(value.file))
    if is_dataclass(value):
        return [_comparable(getattr(value, f.name)) for f in fields(value) if f.compare]
    if isinstance(value, Mapping):
        return {key: _comparable(item) for key, item in value.items()}
    return tuple(map(_comparable, value)) if isinstance(value, tuple) else value


def place_in(task: Task, *keys: str) -> Place | None:
    """Where a key is in the file of a task; None for a task made in Python."""
    if task.path is None:
        return None
    try:
        text = task.path.read_text(errors="replace")
    except OSError:  # such as standard input
        text = ""
    return Place(os.fspath(task.path), _Reader(os.fspath(task.path), text).line(*keys))


def run_info(task: Task, path: str | os.PathLike[str]) -> RunInfo | None:
    """The row of the runs table for a run file, found by its path, or else by its file name if only one row has it.

    The file name decides only where the row's own path leads to no file: a run elsewhere cannot take its place.

    >>> task = Task(runs=(RunInfo("lists/bm25.run", "BM25", status="baseline"),))
    >>> run_info(task, "elsewhere/bm25.run").name, run_info(task, "other.run")
    ('BM25', None)
    """
    full = os.path.realpath(path)
    rows = [row for row in task.runs if os.path.realpath(row.file) == full]
    loose = (row for row in task.runs if not Path(row.file).exists() and not member_of(row.file))
    rows = rows or [row for row in loose if Path(row.file).name == file_name(path)]
    return rows[0] if len(rows) == 1 else None


class _Reader(Checker):
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
        return {**super().checks(), "measures": labelled}

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
    reader.check_together(values)
    if "measures" in values:
        values["labels"] = {measure: label for measure, label in values["measures"] if label}
        values["measures"] = tuple(measure for measure, _ in values["measures"])
    if "runs" in values:
        values["runs_table"] = reader.path(content["runs"])
    return {**values, "path": Path(source.name)}


read_task = Task.from_file
"""The same as `Task.from_file`."""

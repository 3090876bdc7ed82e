"""Checks of a task's values, given from Python or in a file."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeGuard

from fairevals.errors import FairevalsError, InputError, Place, UsageError, escape, type_of
from fairevals.io.specs import (
    CANDIDATES,
    CONVENTIONS,
    INTERSECTION_TARGETS,
    LARGEST,
    MISSING,
    ORDERS,
    POLICIES,
    STATUSES,
    TARGET_NAMES,
    AnnotationSpec,
    AttributeSpec,
    IntersectionSpec,
    PolicySpec,
    RunInfo,
    TargetMixture,
    is_mixture,
    is_number,
)
from fairevals.io.streams import Source
from fairevals.io.tables import table

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
    return _check(expected, lambda value: is_number(value, kind) and low <= value <= LARGEST)


def _choice(choices: tuple[str, ...]) -> Check:
    return _check(f"one of {', '.join(choices)}", lambda value: isinstance(value, str) and value in choices)


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
        and all(is_number(item) and abs(item) <= sys.float_info.max for item in value)
    ),
    lambda value: tuple(map(float, value)),
)
check_labels = _check(
    "a label for each measure, such as {'ERR@20': 'ERR'}",
    lambda value: isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()),
    lambda value: {str(measure): label for measure, label in value.items()},
)
_positive = _check(
    f"a number above 0 and at most {LARGEST:g}",
    lambda value: is_number(value) and 0 < value <= LARGEST,
    float,
)


_field_names = _check(
    'a list of different names, such as ["biography URL"]; not topic, doc, entity or annotator',
    lambda value: (
        isinstance(value, (list, tuple))
        and all(isinstance(item, str) and item.strip() == item != "" and item.isprintable() for item in value)
        and len({*value, "topic", "doc", "entity", "annotator"}) == len(value) + 4
    ),
    tuple,
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


def labelled(value: Any) -> list[tuple[str, str]]:
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


class Checker:
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
            if not isinstance(key, str):
                where = ".".join(map(escape, at)) or "Task"
                raise self.error((*at, str(key)), f"the key {escape(repr(key))} of {where}", "a text")
            if key not in checks:
                found = f"the unknown key {escape(key)!r}"
                raise self.error((*at, key), found, f"one of {', '.join(checks)}")
            try:
                values[key] = checks[key](value)
            except FairevalsError:
                raise
            except ValueError as error:
                raise self.wrong((*at, key), value, str(error)) from None
        return values

    def tables(self, parent: Any, key: str, check: Callable[[str, Any], Any]) -> dict[str, Any]:
        """The values of a table whose keys are names; `check` gets a name and its value."""
        names = parent if isinstance(parent, Mapping) else ()
        return self.section(parent, (key,), {name: partial(check, name) for name in names})

    def checks(self) -> dict[str, Check]:
        """The check of each key."""
        return {
            "name": _text,
            "topics": _optional(self.path),
            "qrels": self.paths,
            "runs": self.runs,
            "max_grade": _optional(_positive),
            "order": _choice(ORDERS),
            "cutoff": _optional(_number(1, whole=True)),
            "measures": lambda value: labelled(_named_measures(value)),
            "utility_weight": _number(0),
            "max_documents": _number(1, whole=True),
            "candidates": _choice(CANDIDATES),
            "conventions": _choice(CONVENTIONS),
            "missing": _choice(MISSING),
            "attributes": self.attributes,
            "intersections": self.intersections,
            "topic_groups": self.topic_groups,
            "policy": self.policy,
            "annotation": self.annotation,
        }

    def path(self, value: Any) -> Path:
        if not _is_name(value):
            raise ValueError("the name of a file")
        path = self.folder / value
        plain = Path(os.path.normpath(path))
        # Behind a link to a folder, `..` is not the folder of the link.
        return plain if os.path.realpath(plain) == os.path.realpath(path) else path

    def optional_path(self, value: Any) -> Path | None:
        return None if value is None else self.path(value)

    def paths(self, value: Any) -> tuple[Path, ...]:
        return tuple(map(self.path, value)) if isinstance(value, (list, tuple)) else (self.path(value),)

    def runs(self, value: Any) -> tuple[RunInfo, ...]:
        if isinstance(value, tuple) and all(isinstance(row, RunInfo) for row in value):
            return value
        return read_runs_table(self.path(value))

    def topic_groups(self, given: Any) -> dict[str, Any]:
        def globs(key: str, value: Any) -> Any:
            if key == "column" and isinstance(value, str):
                return value
            if isinstance(value, str) and key != "file" and self.single_globs:
                return (value,)
            return self.path(value) if isinstance(value, (str, os.PathLike)) else _texts(value)

        def groups(name: str, value: Any) -> dict[str, Any]:
            at = ("topic_groups", name)
            if not isinstance(value, Mapping) or not value:
                raise self.wrong(at, value, f'a table, [{".".join(at)}], with globs such as R = ["R*"]')
            checked = self.section(value, at, {key: partial(globs, key) for key in value})
            single = [key for key, item in checked.items() if isinstance(item, (Path, str))]
            if single and (len(checked) > 1 or single[0] not in ("file", "column")):
                expected = 'a list of globs, or only file = "…" or column = "…"'
                raise self.wrong((*at, single[0]), value[single[0]], expected)
            return checked

        return self.tables(given, "topic_groups", groups)

    def target(self, at: tuple[str, ...], known: tuple[str, ...], value: Any) -> Any:
        if isinstance(value, TargetMixture):
            return value
        if isinstance(value, (str, os.PathLike)):
            return value if value in known else self.path(value)
        if is_mixture(value):
            return TargetMixture.of(value, partial(self.target, at, known))
        if not isinstance(value, Mapping):
            return _numbers(value)
        # One share for each group, or one list of shares for each topic.
        by_group = not any(isinstance(share, (list, tuple, Mapping)) for share in value.values())
        check = _number(0) if by_group else _numbers
        return self.section(value, (*at, "target"), dict.fromkeys(value, check))

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
                "target": partial(self.target, at, TARGET_NAMES),
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

    def intersection(self, name: str, given: Any) -> IntersectionSpec:
        at = ("intersections", name)
        if isinstance(given, IntersectionSpec):
            spec = given
        else:
            target = partial(self.target, at, INTERSECTION_TARGETS)
            values = {"of": (), **self.section(given, at, {"of": _texts, "target": target})}
            spec = IntersectionSpec(name, place=self.place_of(at), **values)
        for key, value, expected in spec.problems():
            raise self.wrong((*at, key), value, expected)
        return spec

    def place_of(self, at: tuple[str, ...]) -> Place:
        """Where the attribute is declared."""
        return Place(".".join(("Task", *at)))

    def attributes(self, given: Any) -> dict[str, AttributeSpec]:
        return self.tables(given, "attributes", self.attribute)

    def intersections(self, given: Any) -> dict[str, IntersectionSpec]:
        return self.tables(given, "intersections", self.intersection)

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

    def annotation(self, given: Any) -> AnnotationSpec:
        at = ("annotation",)
        if isinstance(given, AnnotationSpec):
            return given

        def fields(value: Any) -> dict[str, tuple[str, ...]]:
            keys = value if isinstance(value, Mapping) else ()
            return self.section(value, (*at, "fields"), dict.fromkeys(keys, _field_names))

        few = _check(
            "a whole number from 1 to 20", lambda value: is_number(value, Integral) and 1 <= value <= 20
        )
        checks: dict[str, Check] = {"entities": few, "assessors_per_page": few, "fields": fields}
        return AnnotationSpec(**self.section(given, at, checks))

    def check_together(self, values: Mapping[str, Any]) -> None:
        """Raise an error if checked values of a task contradict each other."""
        for topics, added in getattr(values.get("annotation"), "fields", {}).items():
            if both := sorted(set(added) & set(values.get("attributes", ()))):
                raise self.wrong(("annotation", "fields", topics), both, "names that no attribute has")


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

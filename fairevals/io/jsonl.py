"""JSON lines, as TREC's Fair Ranking track publishes topics, judgements and rankings."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fairevals.errors import InputError, Place, escape, type_of
from fairevals.io.lines import encoding_problem
from fairevals.io.streams import BOM, Source
from fairevals.io.tables import check_id, id_text

_HEAD = 1 << 16
_LONGEST = 1 << 26
"""A line may have so many bytes: one has all the relevant documents of a topic."""


def has_key(source: Source, key: str) -> bool:
    """Whether the first line of a file is a JSON object, perhaps a long one, with this key near its start.

    >>> has_key(Source.of(b'{"id": 1, "rel_docs": [7]}'), "rel_docs")
    True
    """
    first = next(source.pieces(_HEAD), b"").removeprefix(BOM).lstrip().partition(b"\n")[0]
    return re.match(rb"\{.*\"%s\"\s*:" % key.encode(), first) is not None


def json_lines(source: Source, expected: str) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The objects of a file, one per line; an `InputError` with the line where there is none."""
    long = source.part(source.start, source.end)
    long.limits = replace(source.limits, line=max(source.limits.line, _LONGEST))
    for number, line in long.lines():
        place = Place(source.name, number)
        if problem := encoding_problem(place, line):
            raise problem.error()
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "nested too deeply, or a number of too many digits")
            raise InputError(place, f"a line that is not JSON ({reason})", expected) from None
        if not isinstance(value, dict):
            raise InputError(place, f"{type_of(value)}", expected)
        yield place, value


def id_of(value: dict[str, Any], key: str, place: Place, expected: str) -> str:
    """The id under a key: a text or a whole number."""
    if key not in value:
        raise InputError(place, f"a line without {key!r}", expected)
    return check_id(id_text(value[key], key, place), key, place)


def list_of(value: dict[str, Any], key: str, place: Place, expected: str) -> list[Any]:
    """The list under a key."""
    if not isinstance(value.get(key), list):
        found = f"{key} = {escape(repr(value[key]))}" if key in value else f"a line without {key!r}"
        raise InputError(place, found, expected)
    items: list[Any] = value[key]
    return items

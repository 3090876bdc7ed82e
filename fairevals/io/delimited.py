"""csv and tsv tables with a header, line by line: slower than pandas, but it knows the line of everything."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from fairevals.errors import InputError, Place, escape
from fairevals.io.streams import Source

_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f]")


def names(groups: Iterable[str], most: int = 12) -> str:
    """A list of names for a message: short, and safe to print."""
    first = list(islice(groups, most + 1))
    return ", ".join(map(escape, first[:most])) + (", …" if len(first) > most else "")


# Memberships -----------------------------------------------------------------


def text_of(line: bytes, place: Place) -> str:
    """A line as text, refused where it is not."""
    if _CONTROL.search(line):
        raise InputError(place, f"a control character in {escape(line)!r}", "text")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise InputError(place, "bytes that are not UTF-8", "UTF-8") from None


def split_line(line: str, delimiter: str | None = None) -> list[str]:
    """The cells of one line of a csv or tsv table, without white space around them."""
    delimiter = delimiter or ("\t" if "\t" in line else ",")
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, strict=True))]


def table(
    source: Source, needed: Sequence[str], known: Sequence[str] | None = None
) -> tuple[int, list[str], Iterator[tuple[int, list[str]]]]:
    """The header of a csv or tsv table and its line, and the rows with theirs, each as long as the header.

    Slower than pandas, but it knows the line of everything. The header must have the `needed` columns once,
    and if `known` is given no others than those.
    """
    lines = _lines(source)
    number, first = next(lines, (0, ""))
    delimiter = "\t" if "\t" in first else ","
    header = _cells(first, delimiter, Place(source.name, number)) if number else []
    for name in needed:
        if name not in header:
            found = f"columns {names(header)}" if header else "no line"
            raise InputError(Place(source.name, number), found, f"a header with {', '.join(needed)}")
    for at, name in enumerate(header):
        if name in header[:at] and (name in needed or known is None or name in known):
            raise InputError(
                Place(source.name, number), f"the column {escape(name)!r} twice", "different names"
            )
        if known is not None and name not in known:
            raise InputError(
                Place(source.name, number),
                f"the unknown column {escape(name)!r}",
                f"one of {', '.join(known)}",
            )

    def rows() -> Iterator[tuple[int, list[str]]]:
        for number, line in lines:
            cells = _cells(line, delimiter, Place(source.name, number))
            if len(cells) != len(header):
                found = f"{len(cells)} columns: {escape(line)!r}"
                raise InputError(Place(source.name, number), found, f"{len(header)} ({names(header)})")
            yield number, cells

    return number, header, rows()


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, as text."""
    return ((n, text_of(line, Place(source.name, n))) for n, line in source.lines() if line.strip())


def _cells(line: str, delimiter: str, place: Place) -> list[str]:
    try:
        return split_line(line, delimiter)
    except csv.Error as error:  # a quote that is not closed on its line, or a cell of more than 128 KiB
        form = "csv" if delimiter == "," else "tsv"
        raise InputError(place, f"a line that is not {form} ({error})") from None

"""Tables with a header: csv and tsv files, read line by line, and checks of tables from pandas."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

from fairevals.errors import InputError, Place, UsageError, escape, names
from fairevals.ids import Ids
from fairevals.io.lines import data_lines, encoding_problem
from fairevals.io.streams import Source

if TYPE_CHECKING:
    import pandas as pd

Value = TypeVar("Value")

MAX_COLUMNS = 1000


def header_of(source: Source) -> list[str]:
    """The cells of the first line of a file, read as that of a csv or tsv table."""
    _, first = next(data_lines(source), (0, b""))
    return [name.strip().strip('" ') for name in re.split("[\t,]", first.decode(errors="replace"))]


def has_header(source: Source, *columns: str) -> bool:
    """Whether the first line of a file, read as that of a csv or tsv table, names these columns."""
    return {*columns} <= {*header_of(source)}


def table(
    source: Source, needed: Sequence[str], known: Sequence[str] | None = None, *, strip: bool = True
) -> tuple[int, list[str], Iterator[tuple[int, list[str]]]]:
    """The line and the names of the header of a csv or tsv table, and its rows with their lines.

    Each row has as many cells as the header, by default without white space around them. The header must have the
    `needed` columns once, and if `known` is given no columns but those. Lines that start with `#` may precede it.
    """
    what = f"a table with columns {', '.join(needed)}"
    lines = text_lines(source, what)
    number, first = next(((n, line) for n, line in lines if not line.startswith("#")), (0, ""))
    place = Place(source.name, number)
    delimiter = "\t" if "\t" in first else ","
    if first.count(delimiter) >= MAX_COLUMNS:
        raise InputError(place, f"more than {MAX_COLUMNS} columns", "a few")

    def cells(number: int, line: str) -> list[str]:
        try:
            if '"' not in line:
                return line.split(delimiter)
            return next(csv.reader([line], delimiter=delimiter, strict=True))
        except csv.Error as error:  # a quote that is not closed on its line, or a cell of more than 128 KiB
            form = "csv" if delimiter == "," else "tsv"
            raise InputError(Place(source.name, number), f"a line that is not {form} ({error})") from None

    header = [name.strip() for name in cells(number, first)] if number else []
    if not set(needed) <= set(header):
        found = f"columns {names(header)}" if header else "no line"
        source.refuse(InputError(place, found, f"a header with {', '.join(needed)}"), what)
    for at, name in enumerate(header):
        if name in header[:at]:
            raise InputError(place, f"the column {escape(name)!r} twice", "different names")
        if known is not None and name not in known:
            raise InputError(place, f"the unknown column {escape(name)!r}", f"one of {', '.join(known)}")

    def rows() -> Iterator[tuple[int, list[str]]]:
        for number, line in lines:
            row = cells(number, line)
            if len(row) != len(header):
                found = f"{len(row)} columns: {escape(line)!r}"
                raise InputError(Place(source.name, number), found, f"{len(header)} ({names(header)})")
            yield number, [cell.strip() for cell in row] if strip else row

    return number, header, rows()


def text_lines(source: Source, expected: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, as text."""
    for number, line in source.lines():
        if problem := encoding_problem(Place(source.name, number), line):
            source.refuse(problem.error(), expected)
        yield number, line.decode()


def read_frame(source: Source, needed: Sequence[str]) -> tuple[pd.DataFrame, list[int]]:
    """A csv or tsv table as a DataFrame of texts, and the line of each row."""
    import pandas as pd

    _, header, rows = table(source, needed, strip=False)
    read = list(rows)
    frame = pd.DataFrame([row for _, row in read], columns=header, dtype=object)
    return frame, [line for line, _ in read]


# Tables from pandas -----------------------------------------------------------------------------------------


def check_columns(frame: pd.DataFrame, name: str, needed: Sequence[str], expected: str) -> None:
    """Raise an `InputError` if a table lacks one of the columns."""
    if not set(needed) <= set(frame.columns):
        found = escape(", ".join(map(str, frame.columns)), 200)
        raise InputError(Place(name), f"columns {found}", expected)


def texts(column: pd.Series) -> list[str]:
    """The values of a column as texts, empty where they are missing."""
    pairs = zip(column.tolist(), column.isna().tolist(), strict=True)
    return ["" if missing else str(value) for value, missing in pairs]


ID_TYPES = "texts or whole numbers"
"""What ids can be made from. Other values have no one text: 0.1, 12.0 and a date are spelt differently elsewhere."""


def id_text(value: Any, what: str, place: Place) -> str:
    """A value as an id: a text, the bytes of one, or a whole number; anything else is an `InputError`.

    >>> id_text("a", "doc", Place("x")), id_text(b"a", "doc", Place("x")), id_text(7, "doc", Place("x"))
    ('a', 'a', '7')
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise InputError(place, f"a {what} that is not UTF-8 ({escape(value)})", "UTF-8") from None
    whole = isinstance(value, Integral) or (isinstance(value, Decimal) and value.as_tuple().exponent == 0)
    if not whole or isinstance(value, bool):
        raise InputError(place, f"a {what} of type {type(value).__name__}: {escape(repr(value))}", ID_TYPES)
    return str(value)


def cell_text(value: Any) -> str:
    """A cell of a DataFrame for a message.

    >>> import numpy as np
    >>> print(cell_text(np.float64("nan")), cell_text("high"))
    nan 'high'
    """
    return escape(repr(value.item() if hasattr(value, "item") else value))


def check_distinct(texts: Sequence[str], what: str) -> None:
    """Raise a `UsageError` if keys of a dict from Python have the same text, as 1 and "1" do."""
    if len(set(texts)) < len(texts):
        twice = next(text for text, count in Counter(texts).items() if count > 1)
        raise UsageError(
            f"{what}: two keys with the text {escape(twice)!r}, such as 1 and '1'; expected one type"
        )


def text_keys(given: Mapping[Any, Value], what: str) -> dict[str, Value]:
    """A dict from Python with its keys as texts, which must be distinct."""
    check_distinct(list(map(str, given)), what)
    return {str(key): value for key, value in given.items()}


def id_texts(column: pd.Series, what: str, name: str, lines: Iterable[int]) -> list[str]:
    """The values of a column as ids, empty where they are missing."""
    rows = zip(column.tolist(), column.isna().tolist(), lines, strict=True)
    return ["" if missing else id_text(value, what, Place(name, int(line))) for value, missing, line in rows]


def identifiers(frame: pd.DataFrame, column: str, name: str, lines: Sequence[int]) -> Ids:
    """A column of names as ids; an `InputError` if one is empty or is not text (see `id_text`)."""
    ids = id_texts(frame[column], column, name, lines)
    for line, text in zip(lines, ids, strict=True):
        check_id(text, column, Place(name, int(line)))
    return Ids.of(ids)


def check_id(text: str, what: str, place: Place) -> str:
    """The same text, or an `InputError` if it is empty or has a character that no id can have."""
    if not text:
        raise InputError(place, f"an empty {what}", f"a {what}")
    # Half of a UTF-16 pair cannot be encoded.
    if "\0" in text or not (text.isascii() or text.encode(errors="replace").decode() == text):
        raise InputError(place, f"a {what} with an invalid character: {escape(ascii(text))}", "text")
    return text

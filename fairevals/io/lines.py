"""Files of white-space separated columns.

A `LineFormat` describes such a file once. The description serves the fast reader (`read`, which parses a whole chunk
with numpy), the careful reader (`examine`, line by line) and the messages of both. The fast reader does not know what
is wrong with a file, only that something is; the careful reader then finds the line.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn

import numpy as np

from fairevals.errors import InputError, Place, escape
from fairevals.ids import Ids, padded_buffer
from fairevals.io.decimals import number_of, parse_decimals
from fairevals.io.streams import CONTROL, Source
from fairevals.typing import Bytes, Floats, Ints

NEWLINE, TAB, RETURN, SPACE, HASH, COLON = 10, 9, 13, 32, ord("#"), ord(":")

# glibc returns freed memory to the system beyond twice the largest block freed so far, and every page has to be fetched
# again. After this block (never touched) it keeps enough for the arrays of one file to serve the next.
np.empty(8 << 20, dtype=np.uint8)


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with a file: where, what kind, what was found and what was expected."""

    place: Place
    kind: str
    found: str
    expected: str = ""
    warning: bool = False

    def error(self) -> InputError:
        """The same as an exception."""
        return InputError(self.place, self.found, self.expected)


def encoding_problem(place: Place, line: bytes) -> Problem | None:
    """What makes a line unfit to be text: bytes that are not UTF-8, or control characters."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        wrong = escape(line[error.start : error.start + 4])
        return Problem(place, "encoding", f"a byte that is not UTF-8 ({wrong})", "UTF-8")
    if CONTROL.search(line):
        return Problem(place, "encoding", f"a control character in {escape(line)!r}", "text")
    return None


@dataclass(frozen=True)
class Column:
    """One column of a format. Its kind is "id" (any text), "number", or "grade" (a number, perhaps after an L)."""

    name: str
    kind: str = "id"
    least: float = -math.inf
    """The smallest number that is accepted."""
    largest: float = math.inf
    """The largest absolute value that is accepted."""
    prefix: bytes = b""
    """What a text must start with."""

    def parse(self, buffer: Bytes, start: Ints, end: Ints) -> Floats | None:
        """The numbers at `buffer[start:end]`, None for texts; a `ValueError` if one is not accepted."""
        if self.kind == "id":
            if self.prefix:
                hashes = np.flatnonzero(buffer == HASH)  # a comment without a space before it
                wrong = np.searchsorted(hashes, start) < np.searchsorted(hashes, end)
                wrong |= end - start <= len(self.prefix)
                if wrong.any() or any(
                    np.any(buffer[start + n] != byte) for n, byte in enumerate(self.prefix)
                ):
                    raise ValueError
            return None
        if self.kind == "grade":
            start = start + np.isin(buffer[start], (ord("L"), ord("l")))
        values, bad = parse_decimals(buffer, start, end)
        if bad.size or (values < self.least).any() or (np.abs(values) > self.largest).any():
            raise ValueError
        return values

    def expected(self, cell: bytes) -> str:
        """What a cell should be; empty if the cell is accepted."""
        if self.kind == "id":
            fits = cell.startswith(self.prefix) and len(cell) > len(self.prefix)
            return "" if fits and not (self.prefix and b"#" in cell) else f"{self.prefix.decode()}ID"
        text = cell[1:] if self.kind == "grade" and cell[:1] in (b"L", b"l") else cell
        value = number_of(text)
        if value >= self.least and abs(value) <= self.largest:
            return ""
        if abs(value) > self.largest:
            return f"a number of at most {self.largest:g}"
        at_least = f"a number of at least {self.least:g}" if self.least > -math.inf else "a finite number"
        return "a number, or L and a number" if self.kind == "grade" else at_least


@dataclass(frozen=True)
class Tokens:
    """Where the cells of some lines are in a buffer: `start` and `end` are (lines, columns)."""

    buffer: Bytes
    start: Ints
    end: Ints
    numbers: tuple[Floats, ...]
    """The values of each column of numbers or grades."""
    line_end: Ints
    """(lines,): where the lines end."""

    def column(self, number: int) -> Ids:
        """One column as ids."""
        return Ids(self.buffer, self.start[:, number], self.end[:, number] - self.start[:, number])

    def __len__(self) -> int:
        return int(self.start.shape[0])


@dataclass(frozen=True)
class LineFormat:
    r"""A file of lines with these columns, separated by spaces and tabs; lines end in \n or \r\n.

    Blank lines and lines that start with `#` are skipped.

    >>> format = LineFormat("a list", (Column("topic"), Column("doc"), Column("score", "number")))
    >>> tokens = next(format.read(Source.of(b"# a comment\n7\td1  0.5\r\n\n7 d2 1\n")))
    >>> tokens.column(1).texts(), tokens.numbers[0].tolist()
    (['d1', 'd2'], [0.5, 1.0])
    """

    what: str
    """What the file is, for messages: "a TREC run"."""
    columns: tuple[Column, ...]
    expected: str = ""
    """How a line should look, for messages. By default made from the columns."""
    skip: int = 0
    """How many lines of the file precede the data."""
    rest: Callable[[bytes], tuple[str, str] | None] | None = None
    """Allows more text after the columns, and says what was found and expected if it is wrong."""

    def __post_init__(self) -> None:
        names = " ".join(column.name for column in self.columns)
        object.__setattr__(self, "expected", self.expected or f"{len(self.columns)} columns ({names})")

    def read(self, source: Source, size: int = 1 << 22) -> Iterator[Tokens]:
        """The lines, `size` bytes of the file at a time; the `InputError` of the first bad line if there is one."""
        skip = self.skip
        for chunk in source.chunks(size):
            if skip:
                *skipped, chunk = chunk.split(b"\n", skip)
                skip -= len(skipped)
            try:
                tokens = self._parse(chunk)
            except ValueError:
                self.raise_problem(source)
            yield tokens

    def _parse(self, chunk: bytes) -> Tokens:
        """The cells of some lines; a `ValueError` if the careful reader must look at them."""
        buffer = padded_buffer(chunk)
        if not chunk.isascii():
            chunk.decode()
        end = np.flatnonzero(buffer[: len(chunk)] <= SPACE)
        kinds = buffer[end]
        rare = kinds[kinds != SPACE]
        if np.any((rare != NEWLINE) & (rare != TAB) & (rare != RETURN)):
            raise ValueError  # a control character
        start = np.empty_like(end)
        start[:1] = 0
        np.add(end[:-1], 1, out=start[1:])
        shape, ends_line = (-1, len(self.columns)), kinds == NEWLINE
        # Most files have one separator between cells, and neither blank lines nor comments: nothing to select.
        is_token = start < end
        single = bool(is_token.all())
        regular = single and end.size % len(self.columns) == 0
        if regular:
            table = ends_line.reshape(shape)
            regular = table[:, -1].all() and not table[:, :-1].any()
        if regular and not np.any(buffer[start.reshape(shape)[:, 0]] == HASH):
            start, end = start.reshape(shape), end.reshape(shape)
            line_end = end[:, -1]
        else:
            line_end = end[ends_line]
            if single:
                tokens_before = np.flatnonzero(ends_line) + 1
            else:
                tokens_before = np.cumsum(is_token)[ends_line]
                start, end = start[is_token], end[is_token]
            counts = np.diff(tokens_before, prepend=0)
            data = np.flatnonzero(counts)
            data = data[buffer[start[(tokens_before - counts)[data]]] != HASH]
            more = counts[data] - len(self.columns)
            if np.any(more < 0) or (self.rest is None and np.any(more > 0)):
                raise ValueError
            cell = (tokens_before - counts)[data, None] + np.arange(len(self.columns))
            start, end, line_end = start[cell], end[cell], line_end[data]
        parsed = [column.parse(buffer, start[:, at], end[:, at]) for at, column in enumerate(self.columns)]
        numbers = [column for column in parsed if column is not None]
        return Tokens(buffer, start, end, tuple(numbers), line_end)

    def examine(self, source: Source) -> Iterator[tuple[int, list[bytes], Problem | None]]:
        """The lines with data one by one: the number of the line, its cells, and what is wrong with it, if anything."""
        for number, line in source.lines(comments=False):
            if number <= self.skip:
                continue
            place = Place(source.name, number)
            problem = encoding_problem(place, line)
            if problem or not line.lstrip(b" \t\r").startswith(b"#"):
                cells, rest = line.split(), b""
                if self.rest is not None and len(cells) > len(self.columns):
                    *cells, rest = line.split(None, len(self.columns))
                yield number, cells, problem or self._problem(place, line, cells, rest)

    def _problem(self, place: Place, line: bytes, cells: list[bytes], rest: bytes) -> Problem | None:
        if len(cells) != len(self.columns):
            return Problem(place, "columns", f"{len(cells)} columns: {escape(line)!r}", self.expected)
        for column, cell in zip(self.columns, cells, strict=True):
            if expected := column.expected(cell):
                return Problem(place, column.name, f"{column.name} {escape(cell)!r}", expected)
        wrong = self.rest(rest) if self.rest is not None else None
        return Problem(place, "rest", *wrong) if wrong else None

    def raise_problem(self, source: Source) -> NoReturn:
        """Raise the error of the first line that cannot be read."""
        problems = (problem for _, _, problem in self.examine(source) if problem)
        unknown = Problem(Place(source.name), "line", "a line that cannot be read", self.expected)
        problem = next(problems, unknown)
        problems.close()  # and with it the file, which the traceback would keep open
        source.refuse(problem.error(), self.what)

    def place_of(self, source: Source, row: int) -> Place:
        """The place of the row-th line with data, counted from 0."""
        numbers = (number for number, _, problem in self.examine(source) if not problem)
        return Place(source.name, next(islice(numbers, row, None), 0))


def data_lines(source: Source) -> Iterator[tuple[int, bytes]]:
    """The lines that are neither blank nor comments with their numbers, for finding out the format."""
    return (
        (number, line)
        for number, line in source.lines(1 << 14, comments=False)
        if not line.lstrip().startswith(b"#")
    )


def joined(parts: Sequence[tuple[Ints, Ids, Floats]]) -> tuple[Ints, Ids, Floats]:
    """Codes, documents and numbers of all parts of a file, each as one array."""
    codes, docs, numbers = (
        zip(*parts, strict=True) if parts else ((np.zeros(0, np.int64),), (), (np.zeros(0),))
    )
    return np.concatenate(codes), Ids.concatenate(docs), np.concatenate(numbers)

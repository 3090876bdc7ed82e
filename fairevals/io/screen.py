"""Tables for a terminal: laid out so that they fit its width, its characters and its colours."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TextIO

from fairevals.io.cells import Cell, Table, ValueCell, cell_texts

_NUMERIC = re.compile(r"[-–+.\d]")
_TEXT = re.compile(r"[^\W\d_]{3}.* \S")
"""Texts that may be wrapped: a word, a space and more; not a number with an interval or letters."""
_MEASURE = re.compile(r"\w+\(\S+,\S+\)")
"""Measures with several parameters, which may be wrapped, too."""
_BREAK = re.compile(r"(?<=[ ,/])(?!\S{1,2}$)|(?=[@(])")
"""Where a head may be cut: after a space (but not before an arrow), a comma or a slash; before @ and a parenthesis."""
_ASCII = str.maketrans("─↑↓→†–−±×…█·", "-^v>+--~x~#.")
"""What stands for each character where the encoding lacks it; one for one, so that columns stay aligned."""
COLUMNS, FEWEST_COLUMNS = 80, 40
TEXT_WIDTH = 14
"""Columns of longer texts are wrapped, if a table is too wide, down to this width."""
HEAD_LINES = 4
"""Heads are folded, if a table is too wide, into at most so many lines."""

BOLD, DIM, GREEN, RESET = "\033[1m", "\033[2m", "\033[32m", "\033[0m"


@dataclass(frozen=True)
class Screen:
    """What a table is laid out for: the width, and whether there are box characters and colours.

    Anything but a terminal has 80 columns, so that files and pipes do not depend on a window.
    """

    columns: int = COLUMNS
    unicode: bool = True
    color: bool = False

    @classmethod
    def of(cls, stream: TextIO) -> Screen:
        """That of a stream. NO_COLOR and TERM=dumb turn colours off, COLUMNS sets the width of a terminal."""
        encoding, terminal = getattr(stream, "encoding", None) or "utf-8", stream.isatty()
        try:
            "─↑†".encode(encoding)
        except (UnicodeError, LookupError):
            unicode = False
        else:
            unicode = True
        columns = shutil.get_terminal_size((COLUMNS, 24)).columns if terminal else COLUMNS
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or os.name == "nt"
        return cls(max(columns, FEWEST_COLUMNS), unicode, terminal and not plain)


SCREEN: ContextVar[Screen] = ContextVar("SCREEN", default=Screen())  # noqa: B039 -- it is frozen
"""What tables are laid out for; the program sets that of its standard output."""


def plain_text(text: str) -> str:
    """A text as the screen can show it."""
    return text if SCREEN.get().unicode else text.translate(_ASCII)


def width(text: str) -> int:
    """The width of a text in a terminal: 2 for wide characters, 0 for combining ones.

    >>> width("東京"), width("e\\u0301")
    (4, 1)
    """
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def fold(head: str, lines: int) -> list[str]:
    """A head cut into at most so many lines, as narrow as possible.

    >>> fold("AWRF(attr='SEX')@20 ↑", 2), fold("common topics", 2)
    (["AWRF(attr='SEX')", '@20 ↑'], ['common', 'topics'])
    """
    widest = max((width(piece.strip()) for piece in _BREAK.split(head)), default=0)
    limits = range(widest, width(head) + 1)
    return next((rows for limit in limits if len(rows := _filled(head, limit)) <= lines), [head])


def _filled(text: str, limit: int) -> list[str]:
    """A text cut into lines of at most so many columns, where a head may be cut."""
    rows = [""]
    for piece in filter(None, _BREAK.split(text)):
        if rows[-1] and width((rows[-1] + piece).rstrip()) > limit:
            rows.append("")
        rows[-1] += piece
    return [row.strip() for row in rows]


@dataclass(frozen=True)
class _Grid:
    """The texts of a table by column: a head, and the cells of rows and footer, each in one or more lines."""

    heads: list[list[str]]
    cells: list[list[list[str]]]
    left: list[bool]
    """Whether a column is aligned to the left."""
    marked: list[set[int]]
    """By column: the rows that are marked."""

    @classmethod
    def of(cls, table: Table, places: int | None, characters: dict[int, int]) -> _Grid:
        def mark(text: str, marked: bool, letters: str, interval: str) -> str:
            full = " ".join(filter(None, (text, interval, letters)))
            return full if text.endswith(" †") else full + (" *" if marked else "  ")

        heads, rows = cell_texts(table, places, mark)
        columns = range(len(heads))
        # Numbers are aligned to the right, including "0.61 ±0.02" and "–"; other columns to the left, and so are
        # numbers before letters, which would be under each other only by chance.
        left = [not all(_NUMERIC.match(row[c]) for row in rows) for c in columns]
        for row in table.rows:
            left = [to_left or isinstance(c, ValueCell) for to_left, c in zip(left, row, strict=True)]
        return cls(
            [[head.translate(characters)] for head in heads],
            [[[row[c].translate(characters)] for row in rows] for c in columns],
            left,
            [{row for row, column in table.marked if column == c} for c in columns],
        )

    @property
    def body_widths(self) -> list[int]:
        return [max((width(line) for cell in column for line in cell), default=0) for column in self.cells]

    @property
    def widths(self) -> list[int]:
        heads = (max(width(line) for line in head) + 2 for head in self.heads)
        return list(map(max, heads, self.body_widths))

    @property
    def total(self) -> int:
        """The width of the widest line: that of the rule, or with a mark behind it."""
        last, left = self.widths[-1], self.left[-1]
        lines = [line for cell in self.cells[-1] for line in cell]
        beyond = any(width(line.rstrip()) == last if left else not line.endswith("  ") for line in lines)
        return _total(self.widths) + 2 * beyond

    def take(self, columns: Sequence[int]) -> _Grid:
        heads, cells = [self.heads[c] for c in columns], [self.cells[c] for c in columns]
        return _Grid(heads, cells, [self.left[c] for c in columns], [self.marked[c] for c in columns])

    def folded(self, lines: int, limit: int) -> _Grid:
        """With heads in several lines, where that saves columns, if it is wider than the limit."""
        folded = replace(self, heads=[fold(head[0], lines) for head in self.heads])
        both = zip(self.heads, folded.heads, self.widths, folded.widths, strict=True)
        return (
            replace(self, heads=[new if n < w else old for old, new, w, n in both])
            if self.total > limit
            else self
        )

    def sectioned(self, body: int) -> tuple[_Grid, list[str]]:
        """Without the first column, and its cells; those of the footer go where the second is empty."""
        (first, second, *_), rest = self.cells, self.take(range(1, len(self.heads)))
        foot = [b if b[0].strip() else a for a, b in zip(first[body:], second[body:], strict=True)]
        cells = [[*second[:body], *foot], *rest.cells[1:]]
        return replace(rest, cells=cells), [cell[0].strip() for cell in first[:body]]

    def wrapped(self, limit: int) -> _Grid:
        """With long texts in several lines, as far as the limit needs it."""
        widths = self.widths
        text = [
            any(_TEXT.search(cell[0]) or _MEASURE.match(cell[0]) for cell in column) for column in self.cells
        ]

        def capped(cap: int) -> list[int]:
            return [min(w, cap) if wraps else w for w, wraps in zip(widths, text, strict=True)]

        limit -= self.total - _total(widths)
        caps = range(max(widths), TEXT_WIDTH - 1, -1)
        cap = next((cap for cap in caps if _total(capped(cap)) <= limit), TEXT_WIDTH)
        cells = [
            [_wrap(cell[0], cap) for cell in column] if wraps and w > cap else column
            for column, wraps, w in zip(self.cells, text, widths, strict=True)
        ]
        return replace(self, cells=cells)

    def lines(self, body: int, sections: Sequence[str], color: bool, rule: str) -> Iterator[str]:
        """The lines of the table; the rows from `body` on are its footer. A section is a line before its first row."""
        bold, dim, green, reset = (BOLD, DIM, GREEN, RESET) if color else ("",) * 4
        widths = self.widths

        def line(texts: Sequence[str], marks: Sequence[bool]) -> str:
            cells = []
            for text, w, to_left, marked in zip(texts, widths, self.left, marks, strict=True):
                padding, shown = " " * (w - width(text)), f"{bold}{green}{text}{reset}" if marked else text
                cells.append(shown + padding if to_left else padding + shown)
            return " ".join(cells).rstrip()

        across = f"{dim}{rule * _total(widths)}{reset}"
        unmarked = [False] * len(widths)
        for at in range(height := max(map(len, self.heads))):
            # The last line of a head stands on the rule; the others above it.
            texts = [head[at - height] + "  " if at - height >= -len(head) else "" for head in self.heads]
            yield f"{bold}{line(texts, unmarked)}{reset}"
        yield across
        for row in range(len(self.cells[0])):
            if row == body:
                yield across
            if row < len(sections) and sections[row]:
                yield f"{bold}{sections[row]}{reset}"
            cells, marks = [column[row] for column in self.cells], [row in marked for marked in self.marked]
            for at in range(max(map(len, cells))):
                yield line(
                    [cell[at] if at < len(cell) else "" for cell in cells], marks if not at else unmarked
                )


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(widths) - 3  # two columns are kept for marks, which the last cells seldom have


def _wrap(text: str, limit: int) -> list[str]:
    if _MEASURE.match(text):
        lines = _filled(text.strip(), limit - 2)
    else:
        lines = textwrap.wrap(text.strip(), limit - 2, break_long_words=False, break_on_hyphens=False)
    return [f"{line}  " for line in lines] or [text]


def transposed(table: Table) -> Table:
    """Rows, and those of the footer, as columns.

    >>> turned = transposed(Table(("run", "P"), (("a", 0.5),), frozenset({(0, 1)}), (("topics", 2),)))
    >>> turned.columns, turned.rows, turned.marked
    (('', 'a', 'topics'), (('P', 0.5, 2),), frozenset({(0, 1)}))
    """
    lines = (*table.rows, *table.footer)
    rows: list[tuple[Cell, ...]] = [
        (name, *(line[c] for line in lines)) for c, name in enumerate(table.columns) if c
    ]
    marked = frozenset((column - 1, row + 1) for row, column in table.marked)
    return Table(("", *(str(line[0]) for line in lines)), tuple(rows), marked)


def text_table(table: Table, places: int | None = None, screen: Screen | None = None) -> str:
    """A table as text that fits the screen.

    If it is too wide, heads are folded in two; rows and columns are exchanged, if the table says that it can be turned;
    texts and names of measures are wrapped; the first of several key columns becomes a line before its rows; heads are
    folded further; and at last it is cut into several tables with the same key columns. Only a key that is too wide by
    itself is too wide.
    """
    screen = SCREEN.get() if screen is None else screen
    characters: dict[int, int] = {} if screen.unicode else _ASCII

    def fits(grid: _Grid) -> bool:
        return grid.total <= screen.columns

    def text(grids: Sequence[_Grid], body: int, sections: Sequence[str] = ()) -> str:
        rule = "─".translate(characters)
        parts = ("\n".join(grid.lines(body, sections, screen.color, rule)) + "\n" for grid in grids)
        return "\n".join(parts)

    grid, rows = _Grid.of(table, places, characters), len(table.rows)
    if fits(grid) or fits(folded := grid.folded(2, screen.columns)):
        return text([grid if fits(grid) else folded], rows)
    if table.turns:
        turned = transposed(table)
        across = _Grid.of(turned, places, characters)
        across = replace(across, left=[True] + [False] * len(across.left[1:]))
        if fits(across):
            return text([across], len(turned.rows))
    keys, sections = list(range(table.keys)), []
    if table.keys > 1 and any(not row[0] for row in table.rows):
        grid, sections, keys = *grid.sectioned(rows), keys[:-1]
    grid = grid.wrapped(screen.columns)
    for lines in range(1, HEAD_LINES + 1):
        if fits(folded := grid.folded(lines, screen.columns)):
            return text([folded], rows, sections)
    return text(list(_cut(grid, keys, screen.columns)), rows, sections)


def _cut(grid: _Grid, keys: Sequence[int], limit: int) -> Iterator[_Grid]:
    """Parts of the columns that fit, each after the keys."""
    part: list[int] = []
    for column in range(len(keys), len(grid.heads)):
        if part and grid.take([*keys, *part, column]).folded(2, limit).total > limit:
            yield grid.take([*keys, *part]).folded(2, limit)
            part = []
        part.append(column)
    yield grid.take([*keys, *part]).folded(2, limit)

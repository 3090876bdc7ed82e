"""Tables: named columns and rows of cells, and the texts of their cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairevals.errors import escape

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ValueCell:
    """A value with what stands beside it in a table for people: letters of significance, and an interval."""

    value: str | float
    letters: str = ""
    interval: str = ""


Cell = str | float | int | ValueCell | None


@dataclass(frozen=True)
class Table:
    """Named columns and rows of cells. NaN and None are undefined: empty in files, `–` in tables for people."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    marked: frozenset[tuple[int, int]] = frozenset()
    """(row, column) of the cells to highlight: the best of a column."""
    footer: tuple[tuple[Cell, ...], ...] = ()
    """Rows below a rule; only in tables for people."""
    keys: int = 1
    """How many columns, from the first, say what a row is about."""
    turns: bool = False
    """Whether rows and columns may be exchanged where that is narrower."""

    def frame(self) -> pd.DataFrame:
        """The columns and the rows as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(list(self.rows), columns=list(self.columns))


def number(value: Cell, places: int | None) -> str:
    """A cell as text, with full precision or the given number of decimals; empty if it is undefined.

    >>> number(0.1 + 0.2, None), number(2 / 3, 4), number(float("nan"), 4), number(3, 4)
    ('0.30000000000000004', '0.6667', '', '3')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return repr(value) if places is None else f"{value:.{places}f}"
    return str(value)


def cell_texts(
    table: Table, places: int | None, mark: Callable[[str, bool, str, str], str]
) -> tuple[list[str], list[list[str]]]:
    """The texts of the heads, and of the rows followed by the footer.

    `mark` gets each text, whether it is to be highlighted, and the letters and the interval beside it.
    """
    places = 4 if places is None else places

    def texts(row: Sequence[Cell], at: int) -> list[str]:
        shown = []
        for column, cell in enumerate(row):
            beside = (cell.letters, cell.interval) if isinstance(cell, ValueCell) else ("", "")
            value = cell.value if isinstance(cell, ValueCell) else cell
            text = escape(value, 80) if isinstance(value, str) else number(value, places) or "–"
            shown.append(mark(text, (at, column) in table.marked, *beside))
        return shown

    rows = [texts(row, at) for at, row in enumerate(table.rows)]
    return [escape(name, 200) for name in table.columns], rows + [texts(row, -1) for row in table.footer]

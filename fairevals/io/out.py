"""Tables out: for a terminal, csv, tsv, json, LaTeX."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from fairevals.errors import escape

_NUMERIC = re.compile(r"[-–+.\d]")

FORMATS = ("table", "csv", "tsv", "json", "latex")

Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """Columns with a name, rows of cells; a NaN or None is undefined and prints as nothing (`–` for people)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    marked: frozenset[tuple[int, int]] = frozenset()
    """(row, column) of the cells to point out: the best of a column."""
    footer: tuple[tuple[Cell, ...], ...] = ()
    """Rows below a line, for people only."""


def number(value: Cell, places: int | None) -> str:
    """A cell as text: full precision, or so many decimals; nothing where it is undefined.

    >>> number(0.1 + 0.2, None), number(2 / 3, 4), number(float("nan"), 4), number(3, 4)
    ('0.30000000000000004', '0.6667', '', '3')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return repr(value) if places is None else f"{value:.{places}f}"
    return str(value)


def render(table: Table, style: str, places: int | None = None) -> str:
    """The table as text that ends in a line end."""
    if style == "json":
        return _json(table, places)
    if style in ("csv", "tsv"):
        out = io.StringIO()
        writer = csv.writer(out, delimiter="," if style == "csv" else "\t", lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows([number(cell, places) for cell in row] for row in table.rows)
        return out.getvalue()
    return _latex(table, places) if style == "latex" else _text(table, places)


def _json(table: Table, places: int | None) -> str:
    def plain(cell: Cell) -> Cell:
        if isinstance(cell, float):
            return None if math.isnan(cell) else cell if places is None else round(cell, places)
        return cell

    rows = [dict(zip(table.columns, map(plain, row), strict=True)) for row in table.rows]
    return json.dumps(rows, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def width(text: str) -> int:
    """How many columns of a terminal a text takes: two for wide characters, none for combining ones.

    >>> width("東京"), width("e\\u0301")
    (4, 1)
    """
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _text(table: Table, places: int | None) -> str:
    places = 4 if places is None else places

    def cells(row: Sequence[Cell], at: int | None) -> list[str]:
        found = [escape(cell, 80) if isinstance(cell, str) else number(cell, places) or "–" for cell in row]
        return [text + (" *" if (at, c) in table.marked else "  ") for c, text in enumerate(found)]

    body = [cells(row, r) for r, row in enumerate(table.rows)]
    foot = [cells(row, None) for row in table.footer]
    head = [escape(name, 200) + "  " for name in table.columns]
    widths = [max(map(width, column)) for column in zip(head, *body, *foot, strict=True)]
    # Numbers to the right, text to the left; "0.61 ±0.02" and "–" are numbers to the eye.
    left = [not all(_NUMERIC.match(row[c]) for row in (*body, *foot)) for c in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = [
            text + " " * (w - width(text)) if to_left else " " * (w - width(text)) + text
            for text, w, to_left in zip(row, widths, left, strict=True)
        ]
        return " ".join(padded).rstrip()

    rule = "─" * (sum(widths) + len(widths) - 3)
    lines = [line(head), rule, *map(line, body)]
    if foot:
        lines += [rule, *map(line, foot)]
    return "\n".join(lines) + "\n"


_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "→": r"$\rightarrow$",
        "–": "--",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
    }
)


def _latex(table: Table, places: int | None) -> str:
    places = 4 if places is None else places

    def cells(row: Sequence[Cell], at: int | None) -> str:
        texts = [escape(c, 80) if isinstance(c, str) else number(c, places) or "–" for c in row]
        texts = [text.translate(_LATEX) for text in texts]
        return (
            " & ".join(rf"\textbf{{{t}}}" if (at, c) in table.marked else t for c, t in enumerate(texts))
            + r" \\"
        )

    texts = [all(isinstance(row[c], str) for row in table.rows) for c in range(len(table.columns))]
    lines = [
        rf"\begin{{tabular}}{{{''.join('l' if text else 'r' for text in texts)}}}",
        r"\toprule",
        cells(table.columns, None),
        r"\midrule",
        *(cells(row, r) for r, row in enumerate(table.rows)),
        *([r"\midrule", *(cells(row, None) for row in table.footer)] if table.footer else []),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"

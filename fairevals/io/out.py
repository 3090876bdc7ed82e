"""Tables for output: for a terminal, as csv, tsv, json and LaTeX."""

import csv
import html
import io
import json
import math
from collections.abc import Sequence
from typing import Any

from fairevals.errors import UsageError, check_known, escape
from fairevals.io.cells import Cell, Table, cell_texts, number
from fairevals.io.screen import plain_text, text_table

_LATEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
    | {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "→": r"$\rightarrow$"}
    | {"<": r"\textless{}", ">": r"\textgreater{}"}
)

PEOPLE = ("table", "latex", "html")
"""The styles of tables for people; the others are for programs."""
STYLES = ("table", "csv", "tsv", "json", "latex", "html")
DECIMALS = 4
"""Decimals of a value for people."""

FORMULA = (*"=+-@＝＋－＠", "\t", "\r", "\n")
"""What a cell starts with that a spreadsheet evaluates, or strips and then evaluates; the wide forms too."""


def format_number(value: float | None, places: int = DECIMALS, sign: str = "-", minus: str = "−") -> str:
    """A number with a typographic minus sign (and a plus sign if `sign` is "+"); a dash where it is undefined.

    A number that is printed as 0 has no sign. `minus` is the minus sign, for output that needs another one.

    >>> format_number(-0.25, 2), format_number(float("nan")), format_number(-0.00001), format_number(0.25, 2, "+")
    ('−0.25', '–', '0.0000', '+0.25')
    >>> format_number(-0.25, 2, "+", minus="-"), format_number(0.0001, 2, "+")
    ('-0.25', '0.00')
    """
    if value is None or math.isnan(value):
        return "–"
    text = f"{value:{sign}.{places}f}"
    return text.replace("-", minus) if float(text) else text.strip("+-")


def format_p(p: float, places: int = 3) -> str:
    """A p-value, never printed as 0.

    >>> format_p(0.00001), format_p(0.0312), format_p(float("nan")), format_p(0.00001, 4)
    ('<0.001', '0.031', '–', '<0.0001')
    """
    least = 10.0**-places
    return f"<{least:.{places}f}" if p < least else format_number(p, places)


def check_places(places: Any) -> None:
    """Raise a `UsageError` unless it is a number of decimals, or None."""
    whole = isinstance(places, int) and not isinstance(places, bool)
    if places is not None and not (whole and 0 <= places <= 1000):
        raise UsageError(f"places is {escape(repr(places))}; expected a whole number of 0 to 1000, or None")


def render_with_notes(
    table: Table,
    style: str,
    places: int | None = None,
    notes: Sequence[str] = (),
    *,
    spreadsheet: bool = False,
) -> str:
    """The table, and below it the notes; only in tables for people: as they are, as comments, or as paragraphs."""
    before, after = {"latex": ("% ", ""), "html": ("<p>", "</p>")}.get(style, ("", ""))
    lines = notes if style in PEOPLE else ()
    if style == "html":
        lines = [html.escape(line) for line in lines]
    elif style == "table":
        lines = [plain_text(line) for line in lines]
    texts = [f"{before}{line}{after}\n" for line in lines]
    return render(table, style, places, spreadsheet=spreadsheet) + "".join(texts)


def render(table: Table, style: str, places: int | None = None, *, spreadsheet: bool = False) -> str:
    """The table as text that ends in a newline; the style is "table", "csv", "tsv", "json", "latex" or "html".

    With `spreadsheet`, texts in csv and tsv that a spreadsheet would take for a formula start with `'`.
    """
    check_known("format", style, STYLES)
    check_places(places)
    if style == "json":
        rows = [dict(zip(table.columns, (_plain(c, places) for c in row), strict=True)) for row in table.rows]
        return json.dumps(rows, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    if style in ("csv", "tsv"):
        out = io.StringIO()
        writer = csv.writer(out, delimiter="," if style == "csv" else "\t", lineterminator="\n")
        guard = _guarded if spreadsheet else (lambda cell: cell)
        for row in (table.columns, *table.rows):
            writer.writerow([number(guard(cell), places) for cell in row])
        return out.getvalue()
    return {"latex": _latex, "html": _html}.get(style, text_table)(table, places)


def _guarded(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def _plain(cell: Cell, places: int | None) -> Cell:
    if not isinstance(cell, float):
        return cell
    return None if math.isnan(cell) else cell if places is None else round(cell, places)


def _latex(table: Table, places: int | None) -> str:
    def mark(text: str, marked: bool, letters: str = "", interval: str = "") -> str:
        text = text.translate(_LATEX)
        text = rf"\textbf{{{text}}}" if marked else text
        return text + (letters and rf"\textsuperscript{{{letters}}}") + (interval and f" {interval}")

    names, lines_of_cells = cell_texts(table, places, mark)
    head = [mark(name, False) for name in names]
    body, foot = lines_of_cells[: len(table.rows)], lines_of_cells[len(table.rows) :]
    texts = [all(isinstance(row[c], str) for row in table.rows) for c in range(len(table.columns))]
    rows = [" & ".join(row) + r" \\" for row in (head, *body, *foot)]
    lines = [
        rf"\begin{{tabular}}{{{''.join('l' if text else 'r' for text in texts)}}}",
        r"\toprule",
        rows[0],
        r"\midrule",
        *rows[1 : len(body) + 1],
        *([r"\midrule", *rows[len(body) + 1 :]] if foot else []),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _html(table: Table, places: int | None) -> str:
    """For notebooks: names to the left, numbers to the right, what is marked in bold; all text is escaped."""

    def mark(text: str, marked: bool, letters: str = "", interval: str = "") -> str:
        text = html.escape(text)
        text = f"<b>{text}</b>" if marked else text
        return text + (letters and f"<sup>{letters}</sup>") + (interval and f" {interval}")

    def line(row: Sequence[str], tag: str = "td") -> str:
        cells = (
            f'<{tag} style="text-align:{"right" if at else "left"}">{text}</{tag}>'
            for at, text in enumerate(row)
        )
        return f"<tr>{''.join(cells)}</tr>"

    names, rows = cell_texts(table, places, mark)
    body, foot = rows[: len(table.rows)], rows[len(table.rows) :]
    head = line([mark(name, False) for name in names], "th")
    lines = ["<table>", f"<thead>{head}</thead>", "<tbody>", *map(line, body), "</tbody>"]
    lines += ["<tfoot>", *map(line, foot), "</tfoot>"] if foot else []
    return "\n".join([*lines, "</table>"]) + "\n"

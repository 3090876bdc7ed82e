"""Comparisons within groups of topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape as escape_html
from typing import TYPE_CHECKING

from fairevals.errors import escape, pluralize
from fairevals.io.out import PEOPLE, Table, render
from fairevals.statistics.compare import Comparisons

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class GroupedComparisons:
    """The same comparisons within each group of topics. p-values are corrected within a group, not over groups."""

    parts: Mapping[str, Comparisons]

    def full(self) -> Table:
        """The full tables of all groups, with the column group."""
        tables = {group: part.full() for group, part in self.parts.items()}
        rows = tuple((*row, group) for group, table in tables.items() for row in table.rows)
        return Table((*next(iter(tables.values())).columns, "group"), rows)

    def frame(self) -> pd.DataFrame:
        """The full table as a DataFrame."""
        return self.full().frame()

    def render(self, style: str = "table", places: int | None = None, *, spreadsheet: bool = False) -> str:
        """As text: the summary of each group below its name, or one table with the column group."""
        if style not in PEOPLE:
            return render(self.full(), style, places, spreadsheet=spreadsheet)
        before, after = {"latex": ("% ", ""), "html": ("<h4>", "</h4>")}.get(style, ("", ""))
        texts = []
        for group, part in self.parts.items():
            title = f"topic group {escape(group)}, {pluralize(len(part.scores.topics), 'topic')}"
            title = escape_html(title) if style == "html" else title
            texts.append(f"{before}{title}{after}\n{part.render(style, places)}")
        return "\n".join(texts)

    def __str__(self) -> str:
        return self.render().rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.render("html")

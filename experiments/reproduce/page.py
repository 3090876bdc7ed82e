"""The page of an experiment: one file that loads nothing, whose template escapes whatever it is given."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.reproduce.parts import AGREES, DISAGREES, Reproduction
from fairevals.errors import escape
from fairevals.io.out import Cell
from fairevals.report.html import content_policy, environment, format_number, own_text
from fairevals.report.style import data_uri

_OWN = """
.verdict { font-weight: 600; white-space: nowrap; }
.yes { color: var(--blue); }
.no { color: var(--rust); }
.claims td { white-space: normal; text-align: left; min-width: 11rem; }
.claims .verdict { min-width: 7rem; }
.claims ul { margin: 0; padding-left: 1.1rem; }
"""


def page(found: Reproduction, versions: Mapping[str, str]) -> bytes:
    """The bytes of index.html; the same experiment gives the same bytes."""
    from markupsafe import Markup

    templates = environment("experiments.reproduce", "fairevals.report")
    templates.filters.update(cell=_cell, tone=_tone)
    style = own_text("style.css") + _OWN
    text = templates.get_template("index.html").render(
        style=Markup(style),  # this package's own; everything else on the page is escaped
        policy=content_policy(style),
        found=found,
        drawings=[(drawing, data_uri(drawing.svg)) for drawing in found.drawings],
        versions=versions,
    )
    return text.encode("utf-8", "backslashreplace")


def _cell(value: Cell) -> str:
    if isinstance(value, float):
        return format_number(value)
    return "–" if value is None else str(escape(str(value), 200))


def _tone(verdict: str) -> str:
    return "yes" if verdict == AGREES else "no" if verdict == DISAGREES else "part"

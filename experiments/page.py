"""The folder of an experiment: a page that loads nothing from elsewhere, csv files, figures and a JSON record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.results import AGREES, DISAGREES, Reproduction
from fairevals.errors import escape
from fairevals.io.folders import PAGE, Marked
from fairevals.io.out import Cell, format_number, render
from fairevals.report.html import content_policy, environment, own_text
from fairevals.report.sources import versions
from fairevals.report.style import data_uri

_OWN = """
.verdict { font-weight: 600; white-space: nowrap; }
.yes { color: var(--blue); }
.no { color: var(--rust); }
.claims td { white-space: normal; text-align: left; min-width: 11rem; }
.claims .verdict { min-width: 7rem; }
.claims ul { margin: 0; padding-left: 1.1rem; }
"""


def make_page(reproduction: Reproduction, known: Mapping[str, str]) -> bytes:
    """The bytes of index.html; the same experiment gives the same bytes."""
    from markupsafe import Markup

    templates = environment("experiments", "fairevals.report")
    templates.filters.update(cell=_cell, tone=_tone)
    style = own_text("style.css") + _OWN
    text = templates.get_template("index.html").render(
        style=Markup(style),  # our own; the template escapes everything else
        policy=content_policy(style),
        reproduction=reproduction,
        drawings=[(drawing, data_uri(drawing.svg)) for drawing in reproduction.drawings],
        versions=known,
    )
    return text.encode("utf-8", "backslashreplace")


def _cell(value: Cell) -> str:
    if isinstance(value, float):
        return format_number(value)
    return "–" if value is None else str(escape(str(value), 200))


def _tone(verdict: str) -> str:
    return "yes" if verdict == AGREES else "no" if verdict == DISAGREES else "part"


REPRODUCTION = Marked("reproduction", "reproduction.json", "fairevals reproduction 1")


def write_reproduction(reproduction: Reproduction, folder: Path, *, force: bool = False) -> list[Path]:
    """Write index.html, the csv files, reproduction.json and figures/; returns the paths, the page first.

    Everything is computed before anything is written, so a failure leaves an earlier reproduction unchanged.
    """
    REPRODUCTION.check(folder, force=force)
    known = versions()
    files = {REPRODUCTION.marker: _record(reproduction, known)}
    files |= {name: render(table, "csv").encode() for name, table in reproduction.numbers.items()}
    for drawing in reproduction.drawings:
        files[f"figures/{drawing.name}.svg"] = drawing.svg
        files[f"figures/{drawing.name}.png"] = drawing.png
    files[PAGE] = make_page(reproduction, known)
    return REPRODUCTION.write(folder, files)


def _record(reproduction: Reproduction, known: dict[str, str]) -> bytes:
    record: dict[str, Any] = {
        "format": REPRODUCTION.format,
        "experiment": reproduction.name,
        "quick": reproduction.quick,
        "versions": known,
        "settings": dict(reproduction.settings),
        "claims": [
            {
                "source": claim.source,
                "claim": claim.text,
                "rule": claim.rule,
                "verdict": claim.verdict,
                "findings": [
                    {"where": f.where, "measured": f.measured, "holds": f.holds} for f in claim.findings
                ],
            }
            for claim in reproduction.claims
        ],
        "numbers": list(reproduction.numbers),
        "figures": [
            f"figures/{drawing.name}.{form}" for drawing in reproduction.drawings for form in ("svg", "png")
        ],
    }
    return (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "backslashreplace")

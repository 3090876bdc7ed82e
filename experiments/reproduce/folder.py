"""The folder of an experiment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.reproduce.parts import Reproduction
from fairevals.io.folders import PAGE, Marked
from fairevals.io.out import render
from fairevals.report.sources import versions

REPRODUCTION = Marked("reproduction", "reproduction.json", "fairevals reproduction 1")
"""The folder of an experiment."""


def write_reproduction(found: Reproduction, folder: Path, *, force: bool = False) -> list[Path]:
    """Write index.html, the csv files, reproduction.json and figures/; the names of the files, the page first.

    Everything is made before anything is written, so that a failure leaves an earlier reproduction as it was.
    """
    from experiments.reproduce.page import page

    REPRODUCTION.check(folder, force=force)
    known = versions()
    files = {REPRODUCTION.marker: _record(found, known)}
    files |= {name: render(table, "csv").encode() for name, table in found.numbers.items()}
    for drawing in found.drawings:
        files[f"figures/{drawing.name}.svg"] = drawing.svg
        files[f"figures/{drawing.name}.png"] = drawing.png
    files[PAGE] = page(found, known)
    return REPRODUCTION.write(folder, files)


def _record(found: Reproduction, known: dict[str, str]) -> bytes:
    record: dict[str, Any] = {
        "format": REPRODUCTION.format,
        "experiment": found.name,
        "quick": found.quick,
        "versions": known,
        "settings": dict(found.settings),
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
            for claim in found.claims
        ],
        "numbers": list(found.numbers),
        "figures": [
            f"figures/{drawing.name}.{form}" for drawing in found.drawings for form in ("svg", "png")
        ],
    }
    return (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "backslashreplace")

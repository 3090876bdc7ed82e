"""The folder of an experiment: never a stranger's, each file whole, the page last."""

from __future__ import annotations

import json
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from fairevals.errors import UsageError, shown
from fairevals.io.out import render
from fairevals.io.streams import written_bytes
from fairevals.reproduce.parts import Reproduction

FORMAT = "fairevals reproduction 1"
MARKER, PAGE = "reproduction.json", "index.html"


def check_folder(folder: Path, *, force: bool = False) -> None:
    """A folder that has something in it, and is not an earlier reproduction, is a `UsageError` unless forced."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{shown(str(folder), 200)} is not a folder")
    if not force and folder.is_dir() and any(folder.iterdir()) and not _is_ours(folder):
        raise UsageError(
            f"{shown(str(folder), 200)} is not empty, and not an earlier reproduction ({MARKER} says so); "
            "choose another folder, or --force to write into it"
        )


def _is_ours(folder: Path) -> bool:
    try:
        found = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    found = {"python": platform.python_version()}
    for name in ("fairevals", "numpy", "scipy", "matplotlib"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found


def write_reproduction(found: Reproduction, folder: Path, *, force: bool = False) -> list[Path]:
    """Write index.html, the csv files, reproduction.json and figures/; the names of the files, the page first.

    Everything is made before anything is written, so that a failure leaves an earlier reproduction as it was.
    """
    from fairevals.reproduce.page import page

    check_folder(folder, force=force)
    known = versions()
    files = {MARKER: _record(found, known)}
    files |= {name: render(table, "csv").encode() for name, table in found.numbers.items()}
    for drawing in found.drawings:
        files[f"figures/{drawing.name}.svg"] = drawing.svg
        files[f"figures/{drawing.name}.png"] = drawing.png
    files[PAGE] = page(found, known)
    for name, data in files.items():
        with written_bytes(folder / name) as file:
            file.write(data)
    return [folder / name for name in sorted(files, key=lambda name: (name != PAGE, name))]


def _record(found: Reproduction, known: dict[str, str]) -> bytes:
    record: dict[str, Any] = {
        "format": FORMAT,
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
    }
    return (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "backslashreplace")

"""The folder of a report: never a stranger's, each file whole, the page last."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from fairevals.errors import UsageError, shown
from fairevals.io.streams import written_bytes

FORMAT = "fairevals report 1"
MARKER = "report.json"
PAGE = "index.html"
_FIGURE = re.compile(r"figures/\w[\w.-]*\.svg")


def check_folder(folder: Path, *, force: bool = False) -> None:
    """A folder that has something in it, and is not an earlier report, is a `UsageError` unless forced."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{shown(str(folder), 200)} is not a folder")
    if not force and folder.is_dir() and any(folder.iterdir()) and not is_report(folder):
        raise UsageError(
            f"{shown(str(folder), 200)} is not empty, and not an earlier report ({MARKER} says so); "
            "choose another folder, or --force to write into it"
        )


def is_report(folder: Path) -> bool:
    """Whether an earlier report is there."""
    return _earlier(folder) is not None


def _earlier(folder: Path) -> Mapping[str, object] | None:
    try:
        found = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and found.get("format") == FORMAT else None


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files, each whole or not at all: the marker first, the page last. Figures of an earlier report go."""
    earlier = _earlier(folder) or {}
    names = sorted(files, key=lambda name: (name == PAGE, name != MARKER, name))
    for name in names:
        with written_bytes(folder / name) as file:
            file.write(files[name])
    figures = earlier.get("figures")
    for name in figures if isinstance(figures, list) else []:
        # The list comes from a file that anyone may have changed: only what this module could have written goes.
        if isinstance(name, str) and _FIGURE.fullmatch(name) and name not in files:
            (folder / name).unlink(missing_ok=True)

"""What was derived, written where the task file expects it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fairevals.derive.pages import Derived
from fairevals.errors import UsageError, escape
from fairevals.io.names import safe_name
from fairevals.io.streams import written

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")


def file_names(derived: Derived) -> dict[str, str]:
    """The name of each attribute's memberships file, and under "" that of the qrels.

    The names are those that the task gives them, without folder and without the ending of a compression, else
    `derived.qrels` and `derived.ATTRIBUTE.gmemb`.
    """
    found = {"": _base(next(iter(derived.task.qrels), None)) or "derived.qrels"}
    for name in derived.memberships:
        found[name] = _base(derived.task.attributes[name].memberships) or f"derived.{safe_name(name)}.gmemb"
    taken: dict[str, str] = {}
    for name, file in found.items():
        other = taken.setdefault(file.casefold(), name)
        if other != name:
            raise UsageError(
                f"{escape(name)} and {escape(other) or 'the qrels'} would both be written to {escape(file)}; "
                "give them different file names in the task"
            )
    return found


def _base(path: Path | None) -> str:
    if path is None or path.name in ("", ".", ".."):
        return ""
    return path.stem if path.suffix.lower() in _COMPRESSED else path.name


def write(derived: Derived, folder: str | os.PathLike[str], *, force: bool = False) -> list[Path]:
    """Write qrels (TREC) and memberships (NTCIR, all digits) into a folder; the files that were written.

    A file that is there already is a `UsageError` and nothing is written, unless with `force`.
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise UsageError(f"{escape(str(target))} is there and not a folder")
    paths = {name: target / file for name, file in file_names(derived).items()}
    there = [path for path in paths.values() if path.exists()]
    if there and not force:
        raise UsageError(
            f"{', '.join(escape(str(path)) for path in there)}: there already; --force overwrites"
        )
    for name, path in paths.items():
        with written(path, overwrite=force) as file:
            file.writelines(_membership_lines(derived, name) if name else _qrels_lines(derived))
    return list(paths.values())


def _qrels_lines(derived: Derived) -> Iterator[str]:
    for topic, doc, grade in zip(derived.topics, derived.docs, derived.grades.tolist(), strict=True):
        yield f"{topic} 0 {doc} {grade}\n"


def _membership_lines(derived: Derived, name: str) -> Iterator[str]:
    memberships = derived.memberships[name]
    for row, weights in zip(memberships.rows.tolist(), memberships.weights.tolist(), strict=True):
        yield f"{derived.topics[row]} {derived.docs[row]} {' '.join(map(repr, weights))}\n"

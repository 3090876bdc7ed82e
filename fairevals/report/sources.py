"""What was scored: the files, with hashes by which anyone can tell that theirs are the same."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairevals.io.streams import reads_once
from fairevals.io.task import Task


@dataclass(frozen=True)
class FileInfo:
    """A file by its name (not its folder, which is nobody's business), size and SHA-256."""

    role: str
    name: str
    size: int | None
    sha256: str | None
    """None for what cannot be read twice, and for what never was a file."""


def describe(role: str, path: Any) -> FileInfo:
    """The file as it lies there, compressed or not."""
    if not isinstance(path, (str, os.PathLike)):
        return FileInfo(role, "(not a file)", None, None)
    if os.fspath(path) == "-" or reads_once(path):
        return FileInfo(role, "(standard input or a pipe)", None, None)
    digest, size = hashlib.sha256(), 0
    with Path(path).open("rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)
            size += len(data)
    return FileInfo(role, Path(path).name, size, digest.hexdigest())


def files_of(
    task: Task, qrels: Any, attributes: Sequence[str], runs: Sequence[Any], trained: Sequence[Path]
) -> tuple[FileInfo, ...]:
    """Every file that the report rests on."""
    return tuple(_files(task, qrels, attributes, runs, trained))


def _files(
    task: Task, qrels: Any, attributes: Sequence[str], runs: Sequence[Any], trained: Sequence[Path]
) -> Iterator[FileInfo]:
    if task.path is not None:
        yield describe("task", task.path)
    for file in qrels if isinstance(qrels, (list, tuple)) else (qrels,):
        yield describe("qrels", file)
    for name in attributes:
        spec = task.attributes.get(name)
        if spec is None:
            continue
        if spec.memberships is not None:
            yield describe(f"memberships of {name}", spec.memberships)
        if isinstance(spec.target, Path):
            yield describe(f"target of {name}", spec.target)
    for run in runs:
        yield describe("run", run)
    for folder in trained:
        yield describe("training summary", folder / "summary.csv")


def versions() -> dict[str, str]:
    """Of this package, and of those that numbers and figures come from."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from fairevals import __version__

    found = {"fairevals": __version__, "Python": platform.python_version()}
    for name in ("numpy", "scipy", "ir-measures", "matplotlib"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found

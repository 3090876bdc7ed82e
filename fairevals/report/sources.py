"""What was scored: files with hashes, so that anyone can check that theirs are the same, and versions."""

import hashlib
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from fairevals import __version__
from fairevals.collection.inputs import Anonymous, Named
from fairevals.errors import escape
from fairevals.io.archives import file_name, member_of, opened_member
from fairevals.io.dataset import is_dataset, open_dataset
from fairevals.io.metadata import read_metadata
from fairevals.io.specs import target_files
from fairevals.io.streams import Source, reads_once
from fairevals.io.task import Task


@dataclass(frozen=True)
class FileInfo:
    """A file by its name (without its folder, which may be private), size and SHA-256."""

    role: str
    name: str
    size: int | None
    sha256: str | None
    """None for a pipe, for data that never was a file, and for an anonymous run. For a folder of parquet files: the
    hash of the lines "hash name" of its files, as `sha256sum` prints them."""


def file_info(role: str, path: Any) -> FileInfo:
    """Size and hash of a file as it is on disk, compressed or not, or of a run that is a folder of parquet files.

    Those of a file in an archive are of the file, not of the archive.
    """
    if isinstance(path, Anonymous):  # a hash would tell which file it is to everyone who has the file
        return FileInfo(role, path.name, None, None)
    path = path.run if isinstance(path, Named) else path
    if not isinstance(path, (str, os.PathLike)):
        return FileInfo(role, "(not a file)", None, None)
    if reads_once(path):
        return FileInfo(role, "(standard input or a pipe)", None, None)
    if member := member_of(path):
        with opened_member(*member) as inner:
            digest = hashlib.file_digest(cast(Any, inner), "sha256").hexdigest()
            return FileInfo(role, file_name(path), inner.tell(), digest)
    place, dataset = Path(path), is_dataset(path)
    parts = [Path(fragment.path) for fragment in open_dataset(path).files] if dataset else [place]
    size, hashes = sum(part.stat().st_size for part in parts), []
    for part in parts:
        with part.open("rb") as file:
            hashes.append(hashlib.file_digest(file, "sha256").hexdigest())
    if not dataset:
        return FileInfo(role, place.name, size, hashes[0])
    names = [part.relative_to(place).as_posix() for part in parts]
    lines = "".join(f"{digest}  {name}\n" for digest, name in zip(hashes, names, strict=True))
    return FileInfo(role, f"{place.resolve().name}/", size, hashlib.sha256(lines.encode()).hexdigest())


def metadata_of(run: Any) -> str:
    """What a run file says about itself (see `io.metadata`), escaped; "" for nothing, and for an anonymous run."""
    path = run.run if isinstance(run, Named) and not isinstance(run, Anonymous) else run
    if not isinstance(path, (str, os.PathLike)) or reads_once(path) or is_dataset(path):
        return ""
    metadata = read_metadata(Source.of(path))
    return "\n".join(escape(line, 500) for line in metadata.text.split("\n")) if metadata else ""


def files_of(
    task: Task, qrels: Any, attributes: Sequence[str], runs: Sequence[Any], trained: Sequence[Path]
) -> tuple[FileInfo, ...]:
    """Every file that the report is made from."""
    files = [file_info("task", task.path)] if task.path is not None else []
    several = qrels if isinstance(qrels, (list, tuple)) else [] if qrels is None else [qrels]
    files += [file_info("qrels", path) for path in several]
    for name in attributes:
        spec = task.attributes.get(name)
        if spec is not None and spec.memberships is not None:
            files.append(file_info(f"memberships of {name}", spec.memberships))
        declared = spec or task.intersections.get(name)
        for path in target_files(declared.target) if declared is not None else ():
            files.append(file_info(f"target of {name}", path))
    files += [file_info("run", run) for run in runs]
    files += [file_info("training summary", folder / "summary.csv") for folder in trained]
    return tuple(files)


def versions() -> dict[str, str]:
    """The versions of this package and of those that numbers and figures come from."""
    own = {"fairevals": __version__, "Python": platform.python_version()}
    return own | {name: version(name) for name in ("numpy", "scipy", "ir-measures", "matplotlib")}

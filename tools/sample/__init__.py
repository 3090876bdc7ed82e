"""The sample task: invented researchers and films, judged, grouped and ranked in six ways."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from tools.sample.files import sample_files
from tools.sample.topics import make_topics

__all__ = ["ARCHIVE", "pack_sample", "write_sample"]

ARCHIVE = Path("fairevals/data/sample.zip")
"""The sample as the package ships it, for `fairevals demo`."""


def write_sample(folder: Path, seed: int = 2026) -> list[Path]:
    """Write the sample task's `runs/` and `qrels/` below a folder; the same seed gives the same bytes.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write_sample(Path(folder))
    ...     (Path(folder) / "qrels" / "topics.tsv").read_text(encoding="ascii").splitlines()[1]
    'R01\\tresearchers\\tpeople who work on fair ranking'
    >>> len(paths)
    15
    """
    paths = []
    for name, text in sample_files(make_topics(seed), seed).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, text)
        paths.append(path)
    return paths


def _write(path: Path, text: str) -> None:
    """Write under a temporary name first, so that nobody reads half a file."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_text(text, encoding="ascii", newline="\n")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def pack_sample(folder: Path) -> bytes:
    """A zip file of all runs and qrels below a folder, the trained runs included; the same files give the same bytes.

    Its entries have a fixed date and are compressed by bzip2, whose output does not depend on its version.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path in sorted([*(folder / "runs").glob("*.run"), *(folder / "qrels").iterdir()]):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), (2026, 1, 1, 0, 0, 0))
            entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_BZIP2, 0o644 << 16, 3
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()

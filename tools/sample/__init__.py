"""The sample task that ships: invented researchers and films, judged, grouped and ranked six ways."""

from __future__ import annotations

from pathlib import Path

from tools.sample.files import sample_files
from tools.sample.topics import make_topics

__all__ = ["write_sample"]


def write_sample(folder: Path, seed: int = 2026) -> list[Path]:
    """Write the sample task's `runs/` and `qrels/` below a folder, the same bytes for the same seed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write_sample(Path(folder))
    ...     (Path(folder) / "qrels" / "topics.tsv").read_text(encoding="ascii").splitlines()[1]
    'R01\\tresearchers\\tpeople who work on fair ranking'
    >>> len(paths)
    14
    """
    paths = []
    for name, text in sample_files(make_topics(seed), seed).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, text)
        paths.append(path)
    return paths


def _write(path: Path, text: str) -> None:
    """Under a temporary name first: nobody ever reads half a file."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.write_text(text, encoding="ascii", newline="\n")
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)

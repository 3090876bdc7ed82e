"""Names for runs on a public page that do not reveal who submitted them, and the key to these names."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairevals.collection.inputs import Anonymous, Named
from fairevals.evaluation.scores import Scores
from fairevals.io.dataset import is_dataset, open_dataset
from fairevals.io.out import Table, render
from fairevals.io.specs import RunInfo
from fairevals.io.streams import Source, reads_once, written
from fairevals.io.task import Task, run_info


def anonymised(runs: Sequence[Any], seed: int) -> list[Anonymous]:
    """The runs as "Run 01", "Run 02" and so on, in that order.

    The order is that of hashes of the seed and the content of the files. So it does not depend on the names and the
    order of the files, and nobody can find it again by the seed alone, which a report shows.
    """
    hidden = sorted(runs, key=lambda run: (_digest(run, seed), _path(run)))
    width = max(2, len(str(len(hidden))))
    return [Anonymous(f"Run {number:0{width}}", run) for number, run in enumerate(hidden, 1)]


def _path(run: Any) -> str:
    """The path of a run, or its name where it has none."""
    source = run.run if isinstance(run, Named) and isinstance(run.run, (str, os.PathLike)) else run
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else str(getattr(run, "name", run))


def _digest(run: Any, seed: int) -> str:
    digest, path = hashlib.sha256(f"{seed}\0".encode()), _path(run)
    if is_dataset(path):
        for fragment in open_dataset(path).files:
            digest.update(Path(fragment.path).read_bytes())
    elif isinstance(run, (str, os.PathLike)) and not reads_once(path):
        for piece in Source.of(path).pieces(1 << 20):
            digest.update(piece)
    else:
        digest.update(path.encode(errors="replace"))
    return digest.hexdigest()


def write_key(path: str | os.PathLike[str], scores: Scores, runs: Sequence[Anonymous], task: Task) -> None:
    """Write which run is which: a table name, run, file, team, status."""
    rows = []
    for name, original, run in zip(scores.runs, scores.originals, runs, strict=True):
        info = run_info(task, _path(run.run)) or RunInfo("")
        rows.append((name, original, _path(run.run), info.team, info.status))
    with written(Path(path)) as file:
        file.write(render(Table(("name", "run", "file", "team", "status"), tuple(rows)), "csv"))

"""Codabench: a competition as one zip file.

The format: https://docs.codabench.org, "Competition bundle structure" and "YAML structure", version 2. All YAML is
written as JSON, which is YAML too.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import fairevals
from fairevals.collection.collection import Collection
from fairevals.collection.submission import check_submission
from fairevals.errors import UsageError, escape
from fairevals.evaluation.scores import Scores
from fairevals.export.names import column_key, safe_file_name, unique
from fairevals.io.archives import file_name, member_of, opened_file
from fairevals.io.streams import reads_once, written_bytes
from fairevals.io.task import Task
from fairevals.measures import Measure
from fairevals.report.naming import measure_labels
from fairevals.report.style import figure_bytes, new_figure

BUNDLE, TASK_FILE = "bundle.zip", "task.toml"
LONGEST = 36
"""The number of characters that the key and the title of a column may have."""
COMMAND = "python3 /app/program/scoring.py /app/input/ /app/output/"
PROGRAM = '''\
"""Score a submission to a task: python3 scoring.py INPUT OUTPUT. The package fairevals lies beside this file."""

import importlib.util
import subprocess
import sys
from pathlib import Path

requirements = Path(__file__).with_name("requirements.txt")
modules = [line.split("==")[0].replace("-", "_") for line in requirements.read_text().split()]
if not all(map(importlib.util.find_spec, modules)):  # an image without the packages that fairevals needs
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "-r", str(requirements)], check=True)
    importlib.invalidate_caches()

from fairevals.export.scoring import score_submission

sys.exit(score_submission(sys.argv[1], sys.argv[2]))
'''


def write_bundle(
    file: Path, task: Task, scores: Scores, runs: Sequence[str | os.PathLike[str]], image: str | None
) -> None:
    """Write the bundle: `competition.yaml`, pages, the task with its files, the scoring program, runs as solutions."""
    image = image or f"python:{sys.version_info.major}.{sys.version_info.minor}"
    title = str(escape(task.name, 200)) or "A task of fair ranking"
    with written_bytes(file) as out, ZipFile(out, "w") as bundle:
        listed = []
        names = unique(map(file_name, runs), safe_file_name)
        for index, (run, name) in enumerate(zip(runs, names, strict=True)):
            path = f"solutions/{index}.zip"
            listed.append({"index": index, "name": name, "path": path, "tasks": [0]})
            _add_zip(bundle, path, {name: run})
        _add(bundle, "competition.yaml", _yaml(_competition(title, scores, image, listed)))
        _add(bundle, "logo.png", _logo(title))
        _add(bundle, "pages/overview.md", _overview(title, task, scores).encode())
        _add(bundle, "pages/terms.md", b"# Terms\n\nWrite here what participants agree to.\n")
        _add_zip(bundle, "reference_data.zip", reference_data(task))
        _add_zip(bundle, "scoring_program.zip", _program())


def _competition(title: str, scores: Scores, image: str, solutions: list[Any]) -> dict[str, Any]:
    return {
        "version": 2,
        "title": title,
        "description": f"Scored by fairevals {fairevals.__version__}",
        "image": "logo.png",
        "terms": "pages/terms.md",
        "docker_image": image,
        "enable_detailed_results": True,
        "pages": [{"title": "Overview", "file": "pages/overview.md"}],
        "tasks": [
            {
                **{"index": 0, "name": title, "description": "One run"},
                **{"reference_data": "reference_data.zip", "scoring_program": "scoring_program.zip"},
            }
        ],
        "solutions": solutions,
        "phases": [
            {
                **{"index": 0, "name": "Evaluation", "description": "Submit a run", "tasks": [0]},
                **{
                    "start": f"{datetime.now(UTC):%Y-%m-%d} 00:00:00",
                    "accepts_only_result_submissions": True,
                },
            }
        ],
        "leaderboards": [
            {
                **{"title": "Results", "key": "main", "submission_rule": "Force_Last"},
                "columns": leaderboard_columns(scores.measures, measure_labels(scores)),
            }
        ],
    }


def leaderboard_columns(measures: Sequence[Measure], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """The columns of the leaderboard: the key in scores.json, and which values come first.

    Where a measure has a target value, the column is the mean distance to it: of values around 0 neither order is best
    first. Codabench refuses a bundle with a longer key or title than `LONGEST`.

    >>> from fairevals.measures import parse_measure
    >>> measures = [parse_measure("nDCG@10"), parse_measure("Skew(attr='SEX')@5")]
    >>> for column in leaderboard_columns(measures, {"nDCG@10": "Gain"}):
    ...     print(column["key"], column["sorting"], column["title"])
    Gain desc Gain
    Skew_attr_SEX_5 asc Skew(attr='SEX')@5, distance to 0
    """
    names = [labels.get(str(measure), str(measure)) for measure in measures]
    keys = unique(names, column_key, longest=LONGEST)
    found = []
    for index, (measure, name, key) in enumerate(zip(measures, names, keys, strict=True)):
        direction = measure.direction
        ending = "" if direction.target is None else f", distance to {direction.target:g}"
        room = LONGEST - len(ending)
        title = (name if len(name) <= room else f"{name[: room - 1]}…") + ending
        sorting = "desc" if direction.word in ("higher", "none") else "asc"
        found.append({"title": title, "key": key, "index": index, "sorting": sorting, "precision": 4})
    return found


def _overview(title: str, task: Task, scores: Scores) -> str:
    listed = ""
    for measure in scores.measures:
        label = f"{html.escape(scores.label(measure))}, " if str(measure) in scores.labels else ""
        listed += f"- {label}`{measure}`: {measure.direction.words}\n"
    topics = f"for each of the {len(scores.topics)} topics"
    if task.policy.kind == "samples":
        lines = f"{topics} several rankings of at most {task.max_documents} documents, one line for each document, "
        lines += "`topic ranking document rank score tag` or `topic ranking document`"
    else:
        lines = f"{topics} at most {task.max_documents} documents, one line for each, "
        lines += "`topic Q0 document rank score tag` or `topic document`"
    return (
        f"# {html.escape(title)}\n\nSubmit a zip file with one run: {lines}. A run with errors is refused, and so is "
        f"one without a document for some topic; the log lists the errors.\n\n"
        f"Scored by fairevals {fairevals.__version__}:\n\n{listed}"
    )


def _logo(title: str) -> bytes:
    with new_figure(3.0, 3.0) as figure:
        figure.text(0.5, 0.5, escape(title, 40), ha="center", va="center", wrap=True)
    return figure_bytes(figure, "png")


def reference_data(task: Task) -> dict[str, bytes | Path]:
    """The task file, and every file that the task names but the runs table, all in one folder."""
    names: dict[Path, str] = {}

    def move(path: Path) -> Path:
        if path not in names:
            (names[path],) = unique([path.name], safe_file_name, [TASK_FILE, *names.values()])
        return Path(names[path])

    moved = relocated(replace(task, runs=(), runs_table=None, path=None), move)
    return {TASK_FILE: moved.to_toml().encode(), **{name: path for path, name in names.items()}}


def relocated(value: Any, move: Callable[[Path], Path]) -> Any:
    """A value of a task with all paths in it moved.

    >>> relocated({"a": (Path("x/y"), "x/y")}, lambda path: Path(path.name))
    {'a': (PosixPath('y'), 'x/y')}
    """
    if isinstance(value, Path):
        return move(value)
    if isinstance(value, Mapping):
        return {key: relocated(item, move) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(relocated(item, move) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: relocated(getattr(value, f.name), move) for f in fields(value)})
    return value


def _program() -> dict[str, bytes | Path]:
    """The scoring program: its description, the script, and this package, so that it scores as it does here."""
    top = Path(fairevals.__file__).parent
    metadata = {"command": COMMAND, "description": f"fairevals {fairevals.__version__}"}
    sources = {
        path.relative_to(top.parent).as_posix(): path
        for path in sorted(top.rglob("*"))
        if path.is_file()
        and "__pycache__" not in path.parts
        and path.suffix in (".py", ".html", ".css", ".js")
    }
    required = "".join(f"{line}\n" for line in requirements())
    texts = {
        "metadata.yaml": _yaml(metadata),
        "scoring.py": PROGRAM.encode(),
        "requirements.txt": required.encode(),
    }
    return {**texts, **sources}


def requirements() -> list[str]:
    """The packages that this one needs, in the versions that are installed here."""
    try:
        needed = [
            re.split(r"[^\w.-]", line)[0] for line in requires("fairevals") or () if "extra" not in line
        ]
        return [f"{name}=={version(name)}" for name in needed]
    except PackageNotFoundError as error:
        raise UsageError(f"the package {error.name} is not installed: install fairevals with pip") from None


def _yaml(content: Any) -> bytes:
    text = json.dumps(content, ensure_ascii=False, indent=1)
    return f"{text}\n".encode(errors="backslashreplace")


Content = bytes | str | os.PathLike[str]
"""The content of a file, or where it is."""


def _add(archive: ZipFile, name: str, content: Content | IO[bytes], *, stored: bool = False) -> None:
    """Add a file; without the time, so that the same content gives the same bytes."""
    entry = ZipInfo(name)
    entry.compress_type = ZIP_STORED if stored else ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    with archive.open(entry, "w", force_zip64=True) as out:
        if isinstance(content, bytes):
            out.write(content)
        elif isinstance(content, (str, os.PathLike)):
            with opened_file(content) as file:
                shutil.copyfileobj(file, out)
        else:
            shutil.copyfileobj(content, out)


def _add_zip(bundle: ZipFile, name: str, files: Mapping[str, Content]) -> None:
    """Add an archive to the bundle, through a file: it may be larger than memory."""
    with TemporaryFile() as inner:
        with ZipFile(inner, "w") as archive:
            for path, content in files.items():
                _add(archive, path, content)
        inner.seek(0)
        _add(bundle, name, inner, stored=True)


def solutions(
    sources: Sequence[Any], collection: Collection
) -> tuple[list[str | os.PathLike[str]], list[str]]:
    """The files of the runs that are valid submissions, and a remark for each run that is not.

    Codabench would refuse such a run as it refuses that of a participant; scoring it is possible nevertheless.
    """
    paths, remarks = [], []
    for source in sources:
        is_path = isinstance(source, (str, os.PathLike)) and not reads_once(source)
        if not is_path or not (Path(source).is_file() or member_of(source)):
            raise UsageError(
                f"cannot put {escape(str(source), 200)} into a bundle; expected the path of a run file"
            )
        problems = (problem for problem in check_submission(source, collection) if not problem.warning)
        if problem := next(problems, None):
            remarks.append(f"not among the solutions, as an invalid submission: {problem.error()}")
        else:
            paths.append(source)
    return paths, remarks

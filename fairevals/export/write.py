"""Writes what a platform needs into a folder, all or nothing."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairevals.collection.collection import Collection
from fairevals.errors import UsageError, escape, unknown
from fairevals.evaluation.plan import Plan
from fairevals.evaluation.scores import Scores
from fairevals.export import PLATFORMS
from fairevals.export.codabench import BUNDLE, solutions, write_bundle
from fairevals.export.participants import participants
from fairevals.export.tira import EVALUATION, prototext
from fairevals.io.folders import check_folder, replacing, write_files
from fairevals.io.task import Task


def export(
    platform: str,
    folder: Path,
    scores: Scores,
    collection: Collection,
    plan: Plan,
    sources: Sequence[Any],
    *,
    qrels: Any = None,
    given: bool = False,
    image: str | None = None,
    force: bool = False,
) -> tuple[list[Path], list[str]]:
    """Write the files for a platform; returns their paths, and remarks.

    "codabench" writes `bundle.zip`: the task with its files, the scoring program, and the runs as solutions. "tira"
    writes `evaluation.prototext`, and "participants" a table and a page for each run. `qrels` and `given` are those of
    `Result`; `image` is the Docker image in which Codabench scores.
    """
    if platform not in PLATFORMS:
        raise unknown("platform", platform, PLATFORMS)
    if image is not None and platform != "codabench":
        raise UsageError(f"an image is for codabench, not for {platform}")
    check_folder(folder, force=force)
    files: Iterable[tuple[str, bytes]] = ()
    remarks: list[str] = []
    if platform == "tira":
        text, remarks = prototext(scores)
        files = [(EVALUATION, text.encode())]
    elif platform == "participants":
        files = participants(scores, collection.task.name or "A task of fair ranking")
        if "official" not in map(scores.status, range(len(scores.runs))):
            remarks = ["no run is official: median, minimum and maximum are undefined"]
    else:
        task = whole_task(collection, plan, qrels, given=given)
        runs, remarks = solutions(sources, collection)
    names = []
    with replacing(folder) as part:
        if platform == "codabench":
            write_bundle(part / BUNDLE, task, scores, runs, image)
            names.append(BUNDLE)
        for name, content in files:
            write_files(part, {name: content})
            names.append(name)
    return [folder / name for name in names], remarks


def whole_task(collection: Collection, plan: Plan, qrels: Any, *, given: bool) -> Task:
    """The task with the qrels, the measures and the policy that were given; all it needs must be files."""
    several = (
        qrels if isinstance(qrels, (list, tuple)) else collection.task.qrels if qrels is None else [qrels]
    )
    for one in several:
        if not isinstance(one, (str, os.PathLike)) or not Path(one).is_file():
            raise UsageError(
                f"cannot put {escape(str(one), 200)} into a bundle; expected the path of a qrels file"
            )
    if collection.groups:
        groups = ", ".join(map(escape, collection.groups))
        raise UsageError(
            f"cannot put groups given from Python into a bundle ({groups}); give a task that names their file"
        )
    changed: dict[str, Any] = {"qrels": tuple(map(Path, several)), "policy": plan.policy}
    if given:
        names = tuple(map(str, plan.measures))
        changed |= {
            "measures": names,
            "labels": {name: plan.labels[name] for name in names if name in plan.labels},
        }
    return replace(collection.task, **changed)

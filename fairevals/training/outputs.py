"""The files of a sweep: a folder for each policy, the judgements of each split, and the summary."""

import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairevals.collection.run import run_lines
from fairevals.errors import InputError, Place
from fairevals.io.folders import check_folder, replacing, write_files
from fairevals.io.out import Cell, Table, render
from fairevals.io.specs import PolicySpec
from fairevals.io.streams import Source, written
from fairevals.io.tables import table
from fairevals.training.data import Dataset
from fairevals.training.policies import Epoch, TrainedPolicy, save_policy
from fairevals.training.scoring import GROUP_COLUMNS, default_measures, group_rows, make_run
from fairevals.training.summary import SUMMARY_COLUMNS, SummaryRow, summarise

UNFINISHED = "unfinished"
"""The folder with the policies of a sweep that is not finished; see `fairevals.training.unfinished`."""
CURVE_COLUMNS = ("epoch", "loss", "valid", "best")


def write_results(
    folder: str | os.PathLike[str],
    policies: Sequence[TrainedPolicy],
    splits: Mapping[str, Dataset],
    *,
    samples: int = 1000,
    force: bool = False,
    baselines: bool = True,
    extra: Callable[[list[SummaryRow]], Mapping[str, bytes]] = lambda rows: {},
    progress: Callable[[int, int], object] | None = None,
) -> list[SummaryRow]:
    """Evaluate the policies on all splits, write everything, and return the rows of `summary.csv`.

    Each policy has a folder with `model.npz`, `config.json`, the learning curve `log.csv`, and its run on every split
    but the training data (on the training data if there is no other). For each such split there is a task file
    `SPLIT.toml` with `SPLIT.qrels` and, where there are groups, `SPLIT.groups.csv`: scoring the runs with it gives the
    values of the summary. `samples` is the number of rankings drawn for values that are not exact, and of those
    written for a mixture of rankings. `baselines` are those of `summarise`. `extra` makes further files of the rows,
    by their names.

    Everything appears together, or nothing does; other files in the folder stay.
    """
    check_folder(folder, force=force)
    with replacing(folder, stale=_unfinished_files) as part:
        _write_policies(part, policies, splits, samples)
        rows = summarise(policies, splits, samples=samples, baselines=baselines, progress=progress)
        lines = ((*row[:2], "" if math.isnan(row.lam) else f"{row.lam:g}", *row[3:]) for row in rows)
        _write_table(part / "summary.csv", SUMMARY_COLUMNS, lines)
        write_files(part, extra(rows))
    shutil.rmtree(Path(folder, UNFINISHED), ignore_errors=True)
    return rows


def _unfinished_files(folder: Path) -> list[str]:
    """The files of an unfinished sweep, which its results replace."""
    files = (folder / UNFINISHED).rglob("*")
    return [path.relative_to(folder).as_posix() for path in files if not path.is_dir()]


def _write_policies(
    path: Path, policies: Sequence[TrainedPolicy], splits: Mapping[str, Dataset], samples: int
) -> None:
    """Write the folder of each policy, and the judgements of the splits for which they have runs."""
    written_splits = {name: data for name, data in splits.items() if name != "train"} or splits
    kind = "samples" if any(policy.is_mixture for policy in policies) else "pl"
    for name, data in written_splits.items():
        _write_split(path, name, data, default_measures(data, policies[0].settings), kind, samples)
    for policy in policies:
        save_policy(policy, path / policy.name)
        write_curve(policy, path / policy.name)
        for split, data in written_splits.items():
            run = make_run(policy, data, samples=samples if policy.is_mixture else None)
            with written(path / policy.name / f"{split}.run") as file:
                file.writelines(run_lines(run))


def write_curve(policy: TrainedPolicy, folder: Path) -> None:
    """Write the learning curve of a policy as `log.csv`."""
    curve = ((*epoch[:3], int(epoch.best)) for epoch in policy.curve)
    _write_table(folder / "log.csv", CURVE_COLUMNS, curve)


def read_curve(folder: Path) -> tuple[Epoch, ...]:
    """The learning curve that `write_curve` wrote."""
    _, _, rows = table(Source.of(folder / "log.csv"), CURVE_COLUMNS, CURVE_COLUMNS)
    curve = []
    for line, (number, loss, valid, best) in rows:
        try:
            value = float(loss) if loss else math.nan
            curve.append(Epoch(int(number), value, float(valid) if valid else None, best == "1"))
        except ValueError:
            raise InputError(Place(str(folder / "log.csv"), line), "no point of a learning curve") from None
    return tuple(curve)


def _write_split(
    folder: Path, name: str, data: Dataset, measures: Sequence[str], kind: str, samples: int
) -> None:
    """Write the judgements, groups and task file of a split."""
    with written(folder / f"{name}.qrels") as file:
        for topic, rows in zip(data.topics, data.slices, strict=True):
            for doc, grade in zip(data.docs[rows], data.grades[rows].tolist(), strict=True):
                file.write(f"{topic} 0 {doc} {int(grade) if grade.is_integer() else repr(grade)}\n")
    if data.task is not None:
        own = Path(os.path.relpath(folder / f"{name}.qrels"))
        changed: Any = {"name": name, "qrels": (own,), "measures": tuple(measures), "labels": {}}
        task = replace(data.task, policy=PolicySpec(kind, samples=samples, seed=0), **changed)
        task.save(folder / f"{name}.toml")
        return
    sections: dict[str, dict[str, object]] = {}
    sections[""] = {"name": name, "qrels": f"{name}.qrels", "measures": measures}
    if data.membership is not None:
        groups = f"{name}.groups.csv"
        _write_table(folder / groups, GROUP_COLUMNS, group_rows(data))
        heading = f"\n[attributes.{data.attribute}]\n"
        sections[heading] = {"groups": data.groups, "memberships": groups, "unmapped": "skip"}
    sections["\n[policy]\n"] = {"kind": kind, "samples": samples, "seed": 0}
    with written(folder / f"{name}.toml") as file:
        for heading, section in sections.items():
            file.write(heading)
            for key, value in section.items():
                # JSON's texts and lists are TOML's, except for the character DEL.
                text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
                file.write(f"{key} = {text}\n")


def _write_table(path: Path, header: tuple[str, ...], rows: Iterable[tuple[Cell, ...]]) -> None:
    """Write a csv table with numbers in full precision; NaN and None are empty."""
    with written(path) as file:
        file.write(render(Table(header, tuple(rows)), "csv"))

"""The results of training: runs of policies, their evaluation, and the folder with all files.

A policy is evaluated like any other run: its run, the split's judgements and groups go through `fairevals.evaluation`.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairevals.collection.collection import Collection
from fairevals.collection.groups import Attribute
from fairevals.collection.qrels import Qrels
from fairevals.collection.run import Run, ranking_order
from fairevals.errors import UsageError
from fairevals.evaluation import Plan, score
from fairevals.evaluation.scores import Scores
from fairevals.ids import Ids
from fairevals.io.folders import check_folder, replacing, write_files
from fairevals.io.out import Cell, Table, render
from fairevals.io.qrels import QrelsColumns
from fairevals.io.specs import PolicySpec
from fairevals.io.streams import written
from fairevals.io.task import Task
from fairevals.training.data import Dataset
from fairevals.training.objectives import DISPARITY, UTILITY
from fairevals.training.policies import TrainedPolicy, save_policy

MEASURES = (UTILITY, f"{UTILITY}@10", "ERR", "D_ind", DISPARITY, "D_cross", "EE_L")
"""The measures of the summary; D_group only where there are groups."""
GREEDY_SUFFIX = ".greedy"
"""Ends the name of a policy's greedy ranking in the summary."""
SUMMARY_COLUMNS = ("policy", "method", "lambda", "seed", "split", "measure", "value", "se", "undefined")
CURVE_COLUMNS = ("epoch", "loss", "valid", "best")
GROUP_COLUMNS = ("topic", "doc", "group", "weight")


def make_run(policy: TrainedPolicy, data: Dataset, tag: str = "", samples: int | None = None) -> Run:
    """The run of a policy: its log-weights as scores, or with `samples` that many rankings of each topic.

    The rankings are drawn with random numbers that depend on the policy's seed and the number of the topic.
    """
    docs, tag = Ids.of(data.docs), tag or policy.name
    if samples is None:
        if policy.is_mixture:
            raise UsageError("lp is a mixture of rankings without scores: give a number of samples")
        scores = policy.predict(data)
        rows = ranking_order(np.repeat(np.arange(len(data)), data.lengths), docs, scores)
        lists = [(topic, "") for topic in data.topics]
        return Run(tag, tag, lists, data.starts, docs.take(rows), scores[rows], rows.size)
    drawn = policy.sample(data, samples, policy.settings.seed)
    rows = np.concatenate([(start + r).ravel() for start, r in zip(data.starts, drawn, strict=False)])
    lengths = np.repeat(data.lengths, samples)
    offsets = np.append(0, np.cumsum(lengths))
    scores = np.repeat(offsets[1:], lengths) - np.arange(rows.size, dtype=np.float64)
    lists = [(topic, str(sample)) for topic in data.topics for sample in range(1, samples + 1)]
    return Run(tag, tag, lists, offsets, docs.take(rows), scores, rows.size)


def run_lines(run: Run) -> Iterator[str]:
    """The lines of a run file in TREC's format; the second column is the sample."""
    rows = zip(run.docs.texts(), run.scores.tolist(), strict=True)
    for (topic, sample), length in zip(run.lists, np.diff(run.offsets).tolist(), strict=True):
        for rank, (doc, value) in enumerate(islice(rows, length), 1):
            yield f"{topic} {sample or 'Q0'} {doc} {rank} {int(value) if sample else value!r} {run.tag}\n"


def make_collection(data: Dataset, measures: Sequence[str] | None = None) -> Collection:
    """The judgements and groups of a dataset, and the measures to compute."""
    import pandas as pd

    topic_of = np.repeat(np.arange(len(data)), data.lengths)
    qrels = Qrels.of(QrelsColumns(data.name, list(data.topics), topic_of, Ids.of(data.docs), data.grades))
    groups = {}
    if data.membership is not None:
        table = pd.DataFrame(_group_rows(data), columns=GROUP_COLUMNS)
        groups[data.attribute] = Attribute.of(data.attribute, table, data.groups, unmapped="skip")
    chosen = measures or [m for m in MEASURES if groups or m != DISPARITY]
    return Collection(Task(name=data.name, measures=tuple(chosen)), qrels, groups)


def evaluate_policy(
    policy: TrainedPolicy,
    data: Dataset,
    measures: Sequence[str] | None = None,
    *,
    greedy: bool = False,
    samples: int = 1000,
) -> Scores:
    """Score a policy on data: the same values as for its run file and the data's qrels and groups.

    Functions of exposure are exact under Plackett-Luce; other measures are means over `samples` rankings, with their
    standard error. With `greedy` the policy is the one ranking by descending score. A mixture of rankings is
    represented by `samples` rankings drawn from it.

    >>> from fairevals.training import Settings, train_policy
    >>> data = Dataset.of([[[0.0], [1.0]]] * 2, [[0, 1]] * 2)
    >>> policy = train_policy(Settings.for_method("ridge"), data)
    >>> evaluate_policy(policy, data, ["nDCG"], greedy=True).mean(0, 0).value
    1.0
    """
    if greedy and policy.is_mixture:
        raise UsageError("lp is a mixture of rankings, so it has no greedy ranking")
    kind = "samples" if policy.is_mixture else "ranking" if greedy else "pl"
    run = make_run(policy, data, samples=samples if policy.is_mixture else None)
    collection = make_collection(data, measures)
    return score([run], collection, Plan.of(collection, policy=PolicySpec(kind, samples=samples)))


class SummaryRow(NamedTuple):
    """A row of summary.csv; `se` is NaN where the value is exact."""

    policy: str
    method: str
    lam: float
    seed: int
    split: str
    measure: str
    value: float
    se: float
    undefined: int
    """The number of topics on which the measure is undefined; they are not in the mean."""


def write_results(
    folder: str | os.PathLike[str],
    policies: Sequence[TrainedPolicy],
    splits: Mapping[str, Dataset],
    *,
    samples: int = 1000,
    force: bool = False,
    extra: Mapping[str, bytes] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> list[SummaryRow]:
    """Evaluate the policies on all splits, write everything, and return the rows of `summary.csv`.

    Each policy has a folder with `model.npz`, `config.json`, the learning curve `log.csv`, and its run on every split
    but the training data (on the training data if there is no other). For each such split there is a task file
    `SPLIT.toml` with `SPLIT.qrels` and, where there are groups, `SPLIT.groups.csv`: scoring the runs with it gives the
    values of the summary. `samples` is the number of rankings drawn for values that are not exact, and of those
    written for a mixture of rankings. `extra` are further files by their names.

    Everything appears together, or nothing does; other files in the folder stay.
    """
    check_folder(folder, force=force)
    with replacing(folder) as part:
        write_files(part, extra or {})
        return _write_results(part, policies, splits, samples, progress)


def _write_results(
    path: Path,
    policies: Sequence[TrainedPolicy],
    splits: Mapping[str, Dataset],
    samples: int,
    progress: Callable[[int, int], object] | None,
) -> list[SummaryRow]:
    written_splits = [name for name in splits if name != "train"] or list(splits)
    collections = {name: make_collection(data) for name, data in splits.items()}
    kind = "samples" if any(policy.is_mixture for policy in policies) else "pl"
    for name in written_splits:
        _write_split(path, name, splits[name], collections[name].task.measures, kind, samples)
    rows: list[SummaryRow] = []
    for number, policy in enumerate(policies, 1):
        settings, is_mixture = policy.settings, policy.is_mixture
        # The suffix of the policy's name in the summary, and how its run is read.
        readings = {"": "samples"} if is_mixture else {"": "pl", GREEDY_SUFFIX: "ranking"}
        save_policy(policy, path / policy.name)
        curve = ((*epoch[:3], int(epoch.best)) for epoch in policy.curve)
        _write_table(path / policy.name / "log.csv", CURVE_COLUMNS, curve)
        for split, data in splits.items():
            run = make_run(policy, data, samples=samples if is_mixture else None)
            if split in written_splits:
                with written(path / policy.name / f"{split}.run") as file:
                    file.writelines(run_lines(run))
            for suffix, kind in readings.items():
                plan = Plan.of(collections[split], policy=PolicySpec(kind, samples=samples))
                scores = score([run], collections[split], plan)
                facts = policy.name + suffix, settings.method, settings.lam, settings.seed, split
                for m, measure in enumerate(scores.measures):
                    mean = scores.mean(0, m)
                    rows.append(SummaryRow(*facts, str(measure), mean.value, mean.se, mean.undefined))
        if progress:
            progress(number, len(policies))
    _write_table(
        path / "summary.csv", SUMMARY_COLUMNS, ((*row[:2], f"{row.lam:g}", *row[3:]) for row in rows)
    )
    return rows


def _write_split(
    folder: Path, name: str, data: Dataset, measures: Sequence[str], kind: str, samples: int
) -> None:
    """Write the judgements, groups and task file of a split."""
    with written(folder / f"{name}.qrels") as file:
        for topic, rows in zip(data.topics, data.slices, strict=True):
            for doc, grade in zip(data.docs[rows], data.grades[rows].tolist(), strict=True):
                file.write(f"{topic} 0 {doc} {int(grade) if grade.is_integer() else repr(grade)}\n")
    sections: dict[str, dict[str, object]] = {}
    sections[""] = {"name": name, "qrels": f"{name}.qrels", "measures": measures}
    if data.membership is not None:
        groups = f"{name}.groups.csv"
        _write_table(folder / groups, GROUP_COLUMNS, _group_rows(data))
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


def _group_rows(data: Dataset) -> Iterator[tuple[str, str, str, float]]:
    """(topic, document, group, weight) for each group of each document."""
    topics, membership = np.repeat(np.arange(len(data)), data.lengths), np.asarray(data.membership)
    for row, group in zip(*np.nonzero(membership), strict=True):
        weight = float(membership[row, group])
        yield data.topics[topics[row]], data.docs[row], data.groups[group], 1 if weight == 1 else weight


def _write_table(path: Path, header: tuple[str, ...], rows: Iterable[tuple[Cell, ...]]) -> None:
    """Write a csv table with numbers in full precision; NaN and None are empty."""
    with written(path) as file:
        file.write(render(Table(header, tuple(rows)), "csv"))

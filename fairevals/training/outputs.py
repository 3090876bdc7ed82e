"""What training leaves behind: a folder a policy, the judgements it was measured on, and `summary.csv`."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from fairevals.errors import UsageError, escape
from fairevals.io.streams import written
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training.data import Dataset
from fairevals.training.evaluation import evaluate_policy, greedy_rankings
from fairevals.training.lp import sample_mixture
from fairevals.training.policies import TrainedPolicy, save_policy
from fairevals.typing import Floats, Ints

SUMMARY = ("policy", "lambda", "seed", "split", "measure", "value", "se", "undefined")
CURVE = ("epoch", "loss", "valid", "best")
GREEDY = ".greedy"
"""Ends the name under which a policy's run, read as one plain ranking a topic, stands in the summary."""


@dataclass(frozen=True)
class SummaryRow:
    """A row of summary.csv."""

    policy: str
    lam: float
    seed: int
    split: str
    measure: str
    value: float
    se: float | None
    undefined: int

    def cells(self) -> tuple[str, ...]:
        """As text, with full precision; nothing for what is undefined or exact."""
        value = "" if np.isnan(self.value) else repr(self.value)
        se = "" if self.se is None else repr(self.se)
        return (
            *(self.policy, f"{self.lam:g}", str(self.seed), self.split, self.measure),
            *(value, se, str(self.undefined)),
        )


def check_folder(folder: str | os.PathLike[str], force: bool = False) -> Path:
    """The folder, if it is empty or not there, or may be written over."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{escape(str(path))} is no folder")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise UsageError(
            f"{escape(str(path))} is not empty; choose another folder, or --force to write into it"
        )
    return path


def write_results(
    folder: str | os.PathLike[str],
    policies: Sequence[TrainedPolicy],
    splits: Mapping[str, Dataset],
    *,
    samples: int = 1000,
    force: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> list[SummaryRow]:
    """Write everything, and return the rows of the summary.

    For each policy a folder with `model.npz`, `config.json`, the learning curve `log.csv`, and the run of every split
    but that of training (of training if there is no other); for each such split `SPLIT.qrels` and, where there
    are groups, `SPLIT.groups.csv`, so that `fairevals score` can read it all; and `summary.csv`. `samples` rankings are
    drawn for what is not exact, and written for a policy that is a mixture of rankings.
    """
    path = check_folder(folder, force)
    shown_splits = {name: data for name, data in splits.items() if name != "train"} or dict(splits)
    for name, data in shown_splits.items():
        with written(path / f"{name}.qrels") as file:
            file.writelines(_qrels(data))
        if data.membership is not None:
            with written(path / f"{name}.groups.csv") as file:
                _write_groups(file, data, data.membership)
    rows: list[SummaryRow] = []
    for number, policy in enumerate(policies):
        home = path / policy.name
        save_policy(policy, home)
        with written(home / "log.csv") as file:
            _write_curve(file, policy)
        for name, data in shown_splits.items():
            with written(home / f"{name}.run") as file:
                file.writelines(run_lines(policy, data, policy.name, samples if policy.is_mixture else None))
        rows += summary_of(policy, splits, samples)
        if progress:
            progress(number + 1, len(policies))
    with written(path / "summary.csv") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(SUMMARY)
        writer.writerows(row.cells() for row in rows)
    return rows


def summary_of(policy: TrainedPolicy, splits: Mapping[str, Dataset], samples: int = 1000) -> list[SummaryRow]:
    """The measures of a policy on every split, and (except for mixtures) those of its greedy ranking."""
    settings = policy.settings
    grade = max(data.max_grade for data in splits.values())
    rows = []
    for split, data in splits.items():
        for greedy in (False,) if policy.is_mixture else (False, True):
            name = policy.name + (GREEDY if greedy else "")
            found = evaluate_policy(policy, data, greedy=greedy, samples=samples, max_grade=grade)
            rows += [
                SummaryRow(name, settings.lam, settings.seed, split, m.measure, m.value, m.se, m.undefined)
                for m in found
            ]
    return rows


def run_lines(policy: TrainedPolicy, data: Dataset, tag: str, samples: int | None = None) -> Iterator[str]:
    """The run of a policy: its log-weights as scores, or `samples` rankings, the sample id in the second column."""
    if samples is None and policy.is_mixture:
        raise UsageError("lp is a mixture of rankings, and has no scores: say how many rankings to draw")
    scores = np.zeros(len(data.docs)) if policy.is_mixture else policy.predict(data)
    if samples is None:
        for t, ranking in enumerate(greedy_rankings(scores, data)):
            start = int(data.starts[t])
            for rank, place in enumerate(ranking.tolist(), 1):
                row = start + place
                yield f"{data.topics[t]} Q0 {data.docs[row]} {rank} {float(scores[row])!r} {tag}\n"
        return
    for t, rankings in enumerate(_sampled(policy, data, samples)):
        start = int(data.starts[t])
        for sample, ranking in enumerate(rankings.tolist(), 1):
            for rank, place in enumerate(ranking, 1):
                score = len(ranking) - rank + 1
                yield f"{data.topics[t]} {sample} {data.docs[start + place]} {rank} {score} {tag}\n"


def _sampled(policy: TrainedPolicy, data: Dataset, samples: int) -> Iterator[Ints]:
    """Rankings (samples, rank) of each topic, keyed by the policy's seed and the topic's number."""
    seed = policy.settings.seed
    if policy.is_mixture:
        for t, (weights, rankings) in enumerate(policy.mixtures(data)):
            yield sample_mixture(weights, rankings, samples, np.random.default_rng([seed, t]))
        return
    scores = policy.predict(data)
    for t in range(len(data)):
        topic = PlackettLuce(scores[data.starts[t] : data.starts[t + 1]])
        yield topic.sample(samples, rng=np.random.default_rng([seed, t]))


def _qrels(data: Dataset) -> Iterator[str]:
    for t, topic in enumerate(data.topics):
        for row in range(int(data.starts[t]), int(data.starts[t + 1])):
            grade = float(data.grades[row])
            yield f"{topic} 0 {data.docs[row]} {int(grade) if grade.is_integer() else repr(grade)}\n"


def _write_groups(file: TextIO, data: Dataset, membership: Floats) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("topic", "doc", "group", "weight"))
    for t, topic in enumerate(data.topics):
        for row in range(int(data.starts[t]), int(data.starts[t + 1])):
            for group in np.flatnonzero(membership[row]).tolist():
                weight = float(membership[row, group])
                writer.writerow(
                    (
                        topic,
                        data.docs[row],
                        data.groups[group],
                        f"{weight:g}" if weight == 1 else repr(weight),
                    )
                )


def _write_curve(file: TextIO, policy: TrainedPolicy) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CURVE)
    for epoch, loss, valid, best in policy.curve:
        cells = ["" if value is None or np.isnan(value) else repr(float(value)) for value in (loss, valid)]
        writer.writerow((epoch, *cells, int(best)))

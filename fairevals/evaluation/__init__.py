"""The evaluator: every command and the Python API get their values from here."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fairevals.collection.collection import Collection, load_collection
from fairevals.collection.inputs import Named, is_frame, list_runs
from fairevals.errors import RemarkWarning, UsageError, escape
from fairevals.evaluation.pieces import SharingExecutor, score, score_piece
from fairevals.evaluation.plan import Plan, load, open_run, with_components
from fairevals.evaluation.scores import Scores
from fairevals.io.task import PolicySpec, Task

if TYPE_CHECKING:
    import pandas as pd


def evaluate(
    runs: Any,
    qrels: Any = None,
    measures: Iterable[Any] | None = None,
    *,
    task: Task | str | os.PathLike[str] | None = None,
    groups: Mapping[str, Any] | None = None,
    policy: str | PolicySpec | None = None,
    samples: int | None = None,
    seed: int | None = None,
    temperature: float | None = None,
    per_topic: bool = False,
    jobs: int = 1,
) -> pd.DataFrame:
    """Score runs and return a table with columns run, topic, measure, value, se.

    `runs` is a path, a DataFrame (topic, doc, score[, sample]), a dict of dicts {topic: {doc: score}}, a `Run`,
    a list of those, or a dict {name: run}. `qrels` is a path, a DataFrame (topic, doc, grade) or a dict of dicts.
    `groups` is {attribute: …}, see `fairevals.Attribute.of`. A `task` gives defaults for all but the runs.

    The rows with topic `all` are means over the topics on which the measure is defined; an undefined value is
    NaN. `se` is the standard error from sampling rankings, NaN where the value is exact. Remarks, such as missing
    topics or an incomplete run, are warnings (`RemarkWarning`).

    >>> run = {"q1": {"a": 2.0, "b": 1.0}}
    >>> evaluate(run, {"q1": {"b": 1}}, ["nDCG@10", "RR"])
       run topic  measure    value  se
    0  run   all  nDCG@10  0.63093 NaN
    1  run   all       RR  0.50000 NaN
    """
    if jobs < 1:
        raise UsageError(f"jobs is {jobs}; expected at least 1")
    collection = load_collection(task, qrels, groups)
    spec = policy if isinstance(policy, PolicySpec) else collection.task.policy.updated(kind=policy)
    spec = spec.updated(samples=samples, seed=seed, temperature=temperature)
    listed = list_runs(runs)
    for run in listed:
        if isinstance(run, Named) and is_frame(run.run) and run.run.empty:
            raise UsageError(f"the run {escape(run.name)!r} has no documents")
    scores = score(listed, collection, Plan.of(collection, measures, spec), jobs=jobs)
    for note in scores.notes:
        warnings.warn(RemarkWarning(note), stacklevel=2)
    return scores.frame(per_topic)

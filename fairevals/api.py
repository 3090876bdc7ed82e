"""The functions that score, compare and explain runs, such as `fairevals.evaluate`; commands call them too."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from fairevals.collection.collection import Collection, load_collection
from fairevals.collection.inputs import list_runs
from fairevals.errors import RemarkWarning, UsageError, check_known
from fairevals.evaluation.anonymous import anonymised, write_key
from fairevals.evaluation.exposures import (
    DocumentRow,
    ExposureQuery,
    GroupRow,
    document_exposures,
    group_exposures,
)
from fairevals.evaluation.plan import Plan, with_components
from fairevals.evaluation.scoring import score
from fairevals.io.specs import PolicySpec, check_whole
from fairevals.io.task import Task
from fairevals.measures import parse_measure
from fairevals.policy.sampling import Seed, whole_seed
from fairevals.result import Result, several

if TYPE_CHECKING:
    import pandas as pd

    from fairevals.attention import AttentionLike
    from fairevals.statistics.by_group import GroupedComparisons
    from fairevals.statistics.compare import Comparisons


def scored(
    runs: Sequence[Any],
    collection: Collection,
    plan: Plan,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
    anonymous: str | os.PathLike[str] | None = None,
) -> Result:
    """Score runs as planned; `anonymous` is the file for the key of anonymous names."""
    if anonymous is not None:
        runs = anonymised(runs, plan.policy.seed)
    scores = score(runs, collection, plan, jobs=jobs, executor=executor, progress=progress)
    if anonymous is not None:
        write_key(anonymous, scores, runs, collection.task)
    return Result(scores, collection, plan, tuple(runs))


def resolve_policy(
    collection: Collection,
    policy: str | PolicySpec | None,
    samples: int | None,
    seed: Seed | Literal["task"],
    temperature: float | None,
) -> PolicySpec:
    """The policy that was given, or the task's, with the settings that were given."""
    spec = policy if isinstance(policy, PolicySpec) else collection.task.policy.updated(kind=policy)
    number = None if isinstance(seed, str) and seed == "task" else whole_seed(seed)
    return spec.updated(samples=samples, seed=number, temperature=temperature)


def evaluate(
    runs: Any,
    qrels: Any = None,
    measures: Any = None,
    *,
    task: Task | str | os.PathLike[str] | None = None,
    groups: Mapping[str, Any] | None = None,
    policy: str | PolicySpec | None = None,
    samples: int | None = None,
    seed: Seed | Literal["task"] = "task",
    temperature: float | None = None,
    components: bool = False,
    anonymous: str | os.PathLike[str] | None = None,
    jobs: int = 1,
) -> Result:
    """Score runs.

    `runs` is a path, a DataFrame (topic, doc, score[, sample]), a dict of dicts {topic: {doc: score}}, a `Run`,
    a list of those, or a dict {name: run}. `qrels` is a path, a DataFrame (topic, doc, grade) or a dict of dicts.
    Both may be objects of ranx or ir_datasets. `measures` is a measure, such as `nDCG@10` or "nDCG@10", a list of
    them, or a dict {label: measure} whose labels are displayed in tables and figures. `groups` is {attribute: …}, see
    `fairevals.Attribute`. A `task` gives defaults for all but the runs. `policy` is "ranking", "pl" (scores divided by
    `temperature` are log-weights of Plackett-Luce; values that are not exact are means over `samples` rankings) or
    "samples". `seed` is a whole number, a numpy Generator, or None for fresh random numbers; by default it is the
    task's, or 0; `result.plan.policy.seed` is the number used. With `components` the parts of composed measures
    (GFR, M1) and the share of attention on unjudged documents are scored, too. With `anonymous` the runs are called
    "Run 01" and so on, in an order that the seed decides, and which is which is written to that file (csv). `jobs` is
    the number of processes.

    Values are means over the topics on which a measure is defined. An undefined value is NaN, and counted. Where
    rankings are sampled (`policy="pl"`), a standard error goes with each value. Remarks, such as missing topics or
    an incomplete run, are warnings (`FairevalsWarning`).

    >>> run = {"q1": {"a": 2.0, "b": 1.0}}
    >>> evaluate(run, {"q1": {"b": 1}}, ["nDCG@10", "RR"]).frame()
       run topic  measure    value  se
    0  run   all  nDCG@10  0.63093 NaN
    1  run   all       RR  0.50000 NaN
    """
    check_whole("jobs", jobs)
    collection = load_collection(task, qrels, groups)
    given = measures is not None
    if isinstance(measures, Mapping):
        labelled = [{"measure": parse_measure(one), "label": label} for label, one in measures.items()]
        given_task: Any = collection.task  # a Task takes more than it stores
        collection = replace(collection, task=replace(given_task, measures=labelled, labels={}))
        measures = None  # they are the task's now
    plan = Plan.of(collection, measures, resolve_policy(collection, policy, samples, seed, temperature))
    if components:
        plan = with_components(plan, collection, unjudged=True)
    result = scored(list_runs(runs), collection, plan, jobs=jobs, anonymous=anonymous)
    result = replace(result, qrels=qrels, given=given)
    for remark in result.remarks:
        warnings.warn(RemarkWarning(remark), stacklevel=2)
    return result


def compare(
    result: Result,
    baseline: Any = 0,
    *,
    all_pairs: bool = False,
    by: Any = None,
    test: str = "ttest",
    correct: str | None = None,
    alpha: float = 0.05,
) -> Comparisons | GroupedComparisons:
    """Compare every run of a result with a baseline (default: the first), on every measure.

    `test` is "ttest" (paired), "wilcoxon", "tukey" (randomised Tukey HSD over all runs) or "bootstrap"; `correct` is
    "holm" (the default), "bh" or "none", over the runs of a measure. With `all_pairs`, every two runs are compared by
    Tukey HSD instead, which gives letters: runs that share one do not differ significantly. With `by`, which are topic
    groups as in `Result.by`, the comparisons are made within each group, and corrected within it. `.frame()` of what is
    returned has differences, intervals, p-values and effect sizes.

    >>> qrels = {f"q{i}": {"a": 1} for i in range(4)}
    >>> good = {f"q{i}": {"a": 2.0, "b": 1.0} for i in range(4)}
    >>> poor = {f"q{i}": {"b": 2.0, "a": 1.0, "c": float(i)} for i in range(4)}
    >>> frame = compare(evaluate({"good": good, "poor": poor}, qrels, ["RR"]), "poor").frame()
    >>> frame[["run", "difference", "p", "verdict"]].round(4)
        run  difference       p verdict
    0  good       0.625  0.0006  better
    """
    options: Any = {"test": test, "correct": correct, "alpha": alpha}
    return _checked(result).compare(baseline, all_pairs=all_pairs, by=by, **options)


def correlate(result: Result) -> pd.DataFrame:
    """Kendall's τ between the rankings of the runs by every two measures, with bootstrap intervals over topics.

    τ is 1 where the two measures agree which run is better. Columns: measure, other, tau, low, high, topics.
    """
    return _checked(result).correlate()


def _checked(result: Any) -> Result:
    if not isinstance(result, Result):
        raise UsageError(
            f"cannot take a {type(result).__name__} as a result; expected what `evaluate` returns"
        )
    return result


def exposure(
    run: Any,
    qrels: Any = None,
    *,
    task: Task | str | os.PathLike[str] | None = None,
    groups: Mapping[str, Any] | None = None,
    by: str = "doc",
    attributes: str | Sequence[str] = (),
    attention: AttentionLike = "log2",
    cutoff: int | None = None,
    merit: str = "identity",
    policy: str | PolicySpec | None = None,
    method: str = "exact",
    samples: int | None = None,
    seed: Seed | Literal["task"] = "task",
    temperature: float | None = None,
) -> pd.DataFrame:
    """The expected exposure of every document or group under a run, beside merit and target.

    `run`, `qrels`, `task`, `groups` and the policy are as in `evaluate`. With `by="doc"` there is one row for each
    document that is retrieved or judged: topic, doc, exposure, se, merit, target. With `by="group"` there is one row
    for each group of the `attributes` (by default all) on each topic, and with topic `all` in the mean over topics:
    topic, attribute, group, exposure, se, share, target, merit. `method="mc"` draws rankings, and gives standard
    errors.

    >>> run, qrels = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 0, "b": 1}}
    >>> exposure(run, qrels, attention="reciprocal", policy="pl").round(4)
      topic doc  exposure  se  merit  target
    0     q   a    0.8655 NaN    0.0     0.5
    1     q   b    0.6345 NaN    1.0     1.0
    """
    import pandas as pd

    check_known("unit of exposure", by, ("doc", "group"))
    listed = list_runs(run)
    if len(listed) != 1:
        raise UsageError(f"there are {len(listed)} runs; expected one")
    collection = load_collection(task, qrels, groups)
    spec = resolve_policy(collection, policy, samples, seed, temperature)
    query = ExposureQuery(spec, attention, cutoff, method, merit)
    names = several("attributes", attributes)
    for name in names:
        check_known("attribute", name, collection.attribute_names)
    rows: Iterator[DocumentRow] | Iterator[GroupRow] = document_exposures(listed[0], collection, query)
    if by == "group":
        rows = group_exposures(listed[0], collection, query, tuple(names))
    kind = DocumentRow if by == "doc" else GroupRow
    return pd.DataFrame(map(asdict, rows), columns=[f.name for f in fields(kind)])

"""Policies as runs, and their scores.

A policy is evaluated like any other run: its run, the split's judgements and groups go through `fairevals.evaluation`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from fairevals.collection.collection import Collection
from fairevals.collection.groups import Attribute
from fairevals.collection.run import Run, ranking_order
from fairevals.errors import UsageError
from fairevals.evaluation import Plan, score
from fairevals.evaluation.scores import Scores
from fairevals.ids import Ids
from fairevals.io.specs import PolicySpec
from fairevals.io.task import Task
from fairevals.measures import Measure
from fairevals.training.data import Dataset
from fairevals.training.objectives import UTILITY
from fairevals.training.policies import TrainedPolicy
from fairevals.training.settings import Settings
from fairevals.training.tasks import qrels_of
from fairevals.typing import Floats

GROUP_COLUMNS = ("topic", "doc", "group", "weight")


def default_measures(data: Dataset, settings: Settings | None = None) -> list[str]:
    """The measures that policies are summarised by: those that they were trained for, and the same for all.

    Equal mean exposure of the groups is fair by D_group, whatever it does to single documents: so D_ind, D_cross and
    EE_L stand beside it. D_group is left out where there are no groups.
    """
    trained_for: list[Measure] = []
    if settings is not None and settings.method in ("pg-rank", "fair-pg-rank"):
        trained_for = [part.measure for part in settings.objective.utility]
        if settings.method == "fair-pg-rank":
            trained_for.append(settings.objective.disparity)
    names = [str(measure) for measure in trained_for if data.groups or not measure.attributes_used()]
    names += [UTILITY, f"{UTILITY}@10", "ERR", "D_ind"]
    names += [f"D_group(attr={data.attribute!r})"] if data.groups else []
    return list(dict.fromkeys([*names, "D_cross", "EE_L"]))


def make_run(policy: TrainedPolicy, data: Dataset, tag: str = "", samples: int | None = None) -> Run:
    """The run of a policy: its log-weights as scores, or with `samples` that many rankings of each topic.

    The rankings are drawn with random numbers that depend on the policy's seed and the number of the topic.
    """
    tag = tag or policy.name
    if samples is None:
        if policy.is_mixture:
            raise UsageError("lp is a mixture of rankings without scores: give a number of samples")
        return run_of_scores(policy.predict(data), data, tag)
    drawn = policy.sample(data, samples, policy.settings.seed)
    rows = np.concatenate([(start + r).ravel() for start, r in zip(data.starts, drawn, strict=False)])
    lengths = np.repeat(data.lengths, samples)
    offsets = np.append(0, np.cumsum(lengths))
    scores = np.repeat(offsets[1:], lengths) - np.arange(rows.size, dtype=np.float64)
    lists = [(topic, str(sample)) for topic in data.topics for sample in range(1, samples + 1)]
    return Run(tag, tag, lists, offsets, Ids.of(data.docs).take(rows), scores, rows.size)


def run_of_scores(scores: Floats, data: Dataset, tag: str) -> Run:
    """The run with these scores of the documents."""
    docs = Ids.of(data.docs)
    rows = ranking_order(np.repeat(np.arange(len(data)), data.lengths), docs, scores)
    lists = [(topic, "") for topic in data.topics]
    return Run(tag, tag, lists, data.starts, docs.take(rows), scores[rows], rows.size)


def make_collection(data: Dataset, measures: Sequence[str] | None = None) -> Collection:
    """The judgements and groups of a dataset, and the measures to compute."""
    import pandas as pd

    chosen, qrels = tuple(measures or default_measures(data)), qrels_of(data)
    if data.task is not None:
        return Collection(replace(data.task, name=data.name, measures=chosen, labels={}), qrels)
    groups = {}
    if data.membership is not None:
        table = pd.DataFrame(group_rows(data), columns=GROUP_COLUMNS)
        groups[data.attribute] = Attribute.of(data.attribute, table, data.groups, unmapped="skip")
    return Collection(Task(name=data.name, measures=chosen), qrels, groups)


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


def group_rows(data: Dataset) -> Iterator[tuple[str, str, str, float]]:
    """(topic, document, group, weight) for each group of each document."""
    topics, membership = np.repeat(np.arange(len(data)), data.lengths), np.asarray(data.membership)
    for row, group in zip(*np.nonzero(membership), strict=True):
        weight = float(membership[row, group])
        yield data.topics[topics[row]], data.docs[row], data.groups[group], 1 if weight == 1 else weight

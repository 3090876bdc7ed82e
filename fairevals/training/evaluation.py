"""What a policy reaches on data: nDCG, ERR, D_ind and D_group, exact where that is possible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairevals.attention import parse_attention
from fairevals.measures.disparity import group_disparity, individual_disparity
from fairevals.measures.err import expected_reciprocal_rank
from fairevals.measures.merit import merit
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training.data import Batch, Dataset
from fairevals.training.policies import TrainedPolicy
from fairevals.typing import Floats, Ints

CUTOFF = 10
NDCG, NDCG_CUT = "nDCG(dcg='exp-log2')", f"nDCG(dcg='exp-log2')@{CUTOFF}"


@dataclass(frozen=True)
class Measured:
    """The mean of a measure over the topics on which it is defined; `se` is None where it is exact."""

    measure: str
    value: float
    se: float | None
    undefined: int
    """Topics that are left out."""


@dataclass(frozen=True)
class _Topics:
    """Some topics: exposure of their documents, whole and cut, and ERR with the error of its sampling."""

    exposure: Floats
    cut: Floats
    err: Floats
    err_se: Floats | None


def evaluate_policy(
    policy: TrainedPolicy,
    data: Dataset,
    *,
    greedy: bool = False,
    samples: int = 1000,
    max_grade: float | None = None,
) -> list[Measured]:
    """nDCG (gain 2^g − 1), the same at 10, ERR, D_ind, and D_group where there are groups.

    Under a Plackett-Luce policy all but ERR are exact; ERR is the mean over `samples` rankings, with its
    standard error. With `greedy` the policy is the one ranking by descending score (ties by document id,
    descending, as everywhere); a mixture of rankings is summed up exactly, and is never greedy.
    """
    grade = max_grade or data.max_grade
    measures = (NDCG, NDCG_CUT, "ERR", "D_ind", *(("D_group",) if data.membership is not None else ()))
    values = {name: np.full(len(data), np.nan) for name in measures}
    variance = np.zeros(len(data))
    for topics, block, seen in _views(policy, data, greedy, samples, grade):
        values[NDCG][topics] = _ndcg(seen.exposure, block.grades, None)
        values[NDCG_CUT][topics] = _ndcg(seen.cut, block.grades, CUTOFF)
        values["ERR"][topics] = seen.err
        merits = merit(block.grades, policy.settings.merit)
        values["D_ind"][topics] = individual_disparity(seen.exposure, merits)
        if block.membership is not None:
            values["D_group"][topics] = group_disparity(seen.exposure, merits, block.membership)
        if seen.err_se is not None:
            variance[topics] = seen.err_se**2
    sampled = not greedy and not policy.is_mixture
    return [
        Measured(
            name,
            _mean(values[name]),
            float(np.sqrt(variance.sum())) / len(data) if sampled and name == "ERR" else None,
            int(np.count_nonzero(np.isnan(values[name]))),
        )
        for name in measures
    ]


def _views(
    policy: TrainedPolicy, data: Dataset, greedy: bool, samples: int, grade: float
) -> Iterator[tuple[Ints, Batch, _Topics]]:
    if policy.is_mixture:
        for t, (weights, rankings) in enumerate(policy.mixtures(data)):
            topic = np.array([t])
            block = data.block(topic, grade)
            yield topic, block, _of_mixture(weights, rankings, block)
        return
    scores = policy.predict(data)
    if greedy:
        for t, ranking in enumerate(greedy_rankings(scores, data)):
            topic = np.array([t])
            block = data.block(topic, grade)
            yield topic, block, _of_mixture(np.ones(1), ranking[None], block)
        return
    for topics, block in data.blocks(grade):
        padded = np.full(block.grades.shape, -np.inf)
        for row, t in enumerate(topics.tolist()):
            padded[row, : data.lengths[t]] = scores[data.starts[t] : data.starts[t + 1]]
        yield topics, block, _of_plackett_luce(padded, block, topics, samples)


def _of_plackett_luce(scores: Floats, block: Batch, topics: Ints, samples: int) -> _Topics:
    policy = PlackettLuce(scores)
    whole = policy.exposure("log2").value
    cut = policy.exposure("log2", CUTOFF).value if scores.shape[1] > CUTOFF else whole
    err, error = np.empty(len(topics)), np.empty(len(topics))
    for row, t in enumerate(topics.tolist()):
        rankings = PlackettLuce(scores[row, block.present[row]]).sample(
            samples, rng=np.random.default_rng([0, t])
        )
        drawn = expected_reciprocal_rank(block.grades[row][rankings], block.max_grade)
        err[row], error[row] = drawn.mean(), drawn.std(ddof=1) / np.sqrt(samples)
    return _Topics(whole, cut, err, error)


def _of_mixture(weights: Floats, rankings: Ints, block: Batch) -> _Topics:
    ranks = rankings.shape[1]
    v = parse_attention("log2").weights(ranks)
    exposure, cut = np.zeros((1, ranks)), np.zeros((1, ranks))
    np.add.at(exposure[0], rankings, weights[:, None] * v)
    np.add.at(cut[0], rankings, weights[:, None] * np.where(np.arange(ranks) < CUTOFF, v, 0.0))
    err = weights @ expected_reciprocal_rank(block.grades[0][rankings], block.max_grade)
    return _Topics(exposure, cut, np.array([err]), None)


def greedy_rankings(scores: Floats, data: Dataset) -> Iterator[Ints]:
    """The documents of each topic by descending score, ties by descending document id."""
    for start, stop in zip(data.starts[:-1].tolist(), data.starts[1:].tolist(), strict=True):
        keys = list(zip(scores[start:stop].tolist(), data.docs[start:stop], range(stop - start), strict=True))
        yield np.array([place for _, _, place in sorted(keys, reverse=True)], dtype=np.int64)


def _ndcg(exposure: Floats, grades: Floats, cutoff: int | None) -> Floats:
    gain = np.exp2(grades) - 1.0
    ideal = -np.sort(-gain, axis=1)[:, :cutoff]
    best = ideal @ parse_attention("log2").weights(ideal.shape[1])
    value: Floats = np.divide(
        (exposure * gain).sum(axis=1), best, out=np.full(len(best), np.nan), where=best > 0
    )
    return value


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")

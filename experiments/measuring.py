"""What policies reach on a dataset, by the package's own measures.

No other module of the experiments computes a measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairevals.attention import parse_attention
from fairevals.collection import Exposed
from fairevals.evaluation import Plan, load_collection, score
from fairevals.measures import parse_measure
from fairevals.measures.base import ExposureMeasure, LinearMeasure
from fairevals.measures.disparity import TIE
from fairevals.measures.group_sums import group_means
from fairevals.policy.offsets import exposure_offsets
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training import Dataset, Settings, Standardiser, TrainedPolicy, make_model
from fairevals.training.data import groups_needed
from fairevals.typing import Floats

NDCG = "nDCG(dcg='exp-log2')"
"""Over the whole list with gain 2^g − 1, as in the papers."""
D_GROUP, D_GROUP_PUBLISHED = "D_group(attr='group')", "D_group(attr='group',ties='first')"


@dataclass(frozen=True)
class Outcome:
    """nDCG on some queries, and D_group counted in two ways.

    `package`: as this package counts it, the mean over the queries on which D_group is defined; where two groups
    have the same merit, a violation of either order counts. `published`: as Fair-PG-Rank's published code counts
    it, the mean over all queries with 0 where D_group is undefined; where merits are the same, only the excess of
    the group named first counts.
    """

    ndcg: float
    package: float
    published: float


def measure_policy(policy: TrainedPolicy, data: Dataset) -> Outcome:
    """What a policy reaches, exactly; all topics must have equally many documents."""
    return measure_exposure(exposures(policy, data), data)


def measure_exposure(exposure: Floats, data: Dataset) -> Outcome:
    """The same from expected exposures (topics, documents)."""
    view = _view(exposure, data)
    ndcg, package, published = (_values(name, view) for name in (NDCG, D_GROUP, D_GROUP_PUBLISHED))
    return Outcome(
        float(np.nanmean(ndcg)), float(np.nanmean(package)), float(np.nan_to_num(published).mean())
    )


def _values(name: str, view: Exposed) -> Floats:
    measure = parse_measure(name)
    assert isinstance(measure, LinearMeasure | ExposureMeasure)
    return measure.of_exposure(view)


def exposures(policy: TrainedPolicy, data: Dataset) -> Floats:
    """Expected exposure (topics, documents) under a policy, exactly; all topics must have equally many documents."""
    shape = len(data), int(data.lengths[0])
    if policy.is_mixture:
        attention = parse_attention("log2").weights(shape[1])
        return np.stack([mixture.exposure(attention) for mixture in policy.mixtures(data)])
    return PlackettLuce(policy.predict(data).reshape(shape)).exposure("log2").value


TEMPERATURE, PARITY = "temperature", "parity"
TEMPERATURES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def alternatives(
    policy: TrainedPolicy, data: Dataset, temperatures: Sequence[float] = TEMPERATURES
) -> Iterator[tuple[str, float, Outcome]]:
    """What a policy of λ = 0 reaches without being trained for fairness: (how, temperature, outcome).

    At higher temperatures its order is more random. With a parity offset, all groups of a topic have the same mean
    exposure; this needs no grades. D_group is then 0 by either way of counting, because it only counts over-exposure of
    the group of higher merit.
    """
    batch = data.batch(range(len(data)))
    if batch.membership is None:
        raise groups_needed("a parity offset")
    scores = policy.predict(data).reshape(batch.grades.shape)
    for temperature in temperatures:
        yield TEMPERATURE, temperature, _measure_scores(scores / temperature, data)
    offsets = exposure_offsets(scores, batch.membership, batch.membership.sum(axis=1)).value
    yield PARITY, 1.0, _measure_scores(scores + np.einsum("tdg,tg->td", batch.membership, offsets), data)


def _measure_scores(scores: Floats, data: Dataset) -> Outcome:
    return measure_exposure(PlackettLuce(scores).exposure("log2").value, data)


def _view(exposure: Floats, data: Dataset) -> Exposed:
    batch = data.batch(range(len(data)))
    if batch.membership is None:
        raise groups_needed("D_group")
    return batch.block.exposed(exposure)


def random_order(data: Dataset) -> TrainedPolicy:
    """The policy under which all orders are equally likely."""
    width = data.features.shape[1]
    model = make_model("linear", width)
    model.parameters["theta"][:] = 0.0
    return TrainedPolicy(Settings.for_method("pg-rank"), model, Standardiser.identity(width))


def tied_queries(data: Dataset) -> tuple[int, int, int]:
    """Queries whose two groups have the same mean merit, queries on which D_group is defined, and all queries."""
    view = _view(np.zeros((len(data), int(data.lengths[0]))), data)
    merit = np.nan_to_num(group_means(view.grades, view.attribute("group").membership))
    defined = (merit > 0).all(axis=1)
    same = np.abs(merit[:, 0] - merit[:, 1]) <= TIE * merit.max(axis=1)
    return int(np.count_nonzero(defined & same)), int(np.count_nonzero(defined)), len(data)


def measure_rankings(scores: Floats, data: Dataset, measures: Iterable[str]) -> Mapping[str, Floats]:
    """The measures of the rankings by descending score, one value per topic in the order of the data."""
    run: dict[str, dict[str, float]] = {}
    qrels: dict[str, dict[str, float]] = {}
    for t, topic in enumerate(data.topics):
        rows = slice(int(data.starts[t]), int(data.starts[t + 1]))
        run[topic] = dict(zip(data.docs[rows], scores[rows].tolist(), strict=True))
        qrels[topic] = dict(zip(data.docs[rows], data.grades[rows].tolist(), strict=True))
    collection = load_collection(None, qrels)
    scored = score([run], collection, Plan.of(collection, list(measures)))
    order = [scored.topics.index(topic) for topic in data.topics]
    return {name: scored.values[0, m, order] for m, name in enumerate(measures)}

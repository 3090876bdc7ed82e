"""How exposure is spread over documents or groups on all topics together: Gini, Coverage, MMF and TREC 2019's L2.

A document is the same in all topics, by its id. Its exposures are summed over topics first, so that a document which
is never shown for one query may make up for it with another.
"""

from dataclasses import dataclass

import numpy as np

from fairevals.collection import ExposedTopics
from fairevals.measures.base import HIGHER, LOWER, AcrossTopicsMeasure, attr_param, param, unit
from fairevals.measures.numeric import divide
from fairevals.measures.shares import shares_of_sum
from fairevals.typing import Floats, Ints


def cumulated(exposure: Floats) -> Floats:
    """0, and the cumulative sums of the exposures in ascending order: (…, 1 + documents).

    >>> cumulated(np.array([3.0, 1.0]))
    array([0., 1., 4.])
    """
    ascending = np.sort(exposure, axis=-1)
    return np.cumsum(np.concatenate([np.zeros((*ascending.shape[:-1], 1)), ascending], axis=-1), axis=-1)


def gini(exposure: Floats, n: Ints) -> Floats:
    """(n+1 − 2·ΣC/C_n)/n over the last axis, C the cumulative sums of the ascending exposures; NaN if they are all 0.

    It is 0 if all are equal, and (n−1)/n if one document has everything. Of the n (…) documents, those without exposure
    may be left out: they add nothing to any sum.

    >>> gini(np.array([[1.0, 1.0, 2.0], [0.0, 0.0, 4.0]]), np.array([3, 3])).round(4)
    array([0.1667, 0.6667])
    """
    sums = cumulated(exposure)
    total = sums[..., -1]
    share = divide(2 * sums.sum(axis=-1), total, total > 0)
    return divide(n + 1 - share, n, n > 0)


def coverage(exposure: Floats, n: Ints) -> Floats:
    """How many of the n documents have an exposure above 0, as a share; NaN without documents.

    >>> coverage(np.array([0.2, 0.0]), np.array(4)).item()
    0.25
    """
    return divide(np.asarray(np.count_nonzero(exposure > 0, axis=-1)), n, n > 0)


def least_exposed_share(exposure: Floats, n: Ints, ratio: float) -> Floats:
    """The share in the exposure of all that the ⌊ratio·n⌋ least exposed of n documents have.

    NaN without exposure, or where that number is 0. Documents without exposure may be left out.

    >>> least_exposed_share(np.array([4.0, 1.0, 2.0, 1.0]), np.array(4), 0.5).item()
    0.25
    """
    sums = cumulated(exposure)
    count = np.floor(ratio * n + 1e-9).astype(np.int64)  # 0.29·100 is 28.999…
    last = np.maximum(exposure.shape[-1] - n + count, 0)
    least = np.take_along_axis(sums, np.expand_dims(last, -1), axis=-1)[..., 0]
    return divide(least, sums[..., -1], (sums[..., -1] > 0) & (count > 0))


def distance_of_shares(exposure: Floats, relevance: Floats) -> Floats:
    """√Σ_g (E_g − R_g)², the distance between the groups' shares of exposure and of relevance; NaN without either.

    >>> round(float(distance_of_shares(np.array([3.0, 1.0]), np.array([1.0, 1.0]))), 4)
    0.3536
    """
    distance: Floats = np.sqrt(((shares_of_sum(exposure) - shares_of_sum(relevance)) ** 2).sum(axis=-1))
    return distance


class DocumentsMeasure(AcrossTopicsMeasure):
    """What Gini, Coverage and MMF share.

    Documents are the candidates of all topics together (see `candidates` in a task).
    """

    def of_topics(self, exposed: ExposedTopics, weights: Floats) -> Floats:
        candidates = np.flatnonzero(exposed.sum_by_document(exposed.candidates))
        present = (weights @ exposed.by_document(exposed.candidates)[:, candidates]) > 0
        shown = np.flatnonzero(exposed.sum_by_document(exposed.exposure)[candidates])
        exposure = weights @ exposed.by_document(exposed.exposure)[:, candidates[shown]]
        return self.of_documents(
            np.where(present[:, shown], exposure, 0.0), np.count_nonzero(present, axis=1)
        )

    def of_documents(self, exposure: Floats, n: Ints) -> Floats:
        """The value (samples,) for n (samples,) candidates, from the exposures (samples, documents) of those shown."""
        raise NotImplementedError


@dataclass(frozen=True)
class Gini(DocumentsMeasure):
    """How unequally exposure, summed over all topics, is spread over the candidates: from 0, all equal, towards 1.

    It does not look at relevance. Undefined where no candidate gets exposure.
    """

    name = "Gini"
    direction = LOWER
    formula = "(n+1 − 2·ΣC/C_n)/n, C_1..C_n cumulative sums of the n candidates' exposures over all topics, ascending"
    source = (
        "Gini: Variabilità e mutabilità. 1912; of recommended items: Fleder, Hosanagar: Blockbuster culture's next "
        "rise or fall. Management Science, 2009"
    )

    def of_documents(self, exposure: Floats, n: Ints) -> Floats:
        return gini(exposure, n)


@dataclass(frozen=True)
class Coverage(DocumentsMeasure):
    """The share of the candidates that get any exposure on any topic.

    Under a Plackett-Luce policy every retrieved document does. Undefined without candidates.
    """

    name = "Coverage"
    direction = HIGHER
    formula = "|candidates with exposure above 0 on some topic| / |candidates of all topics|"
    source = (
        "Ge, Delgado-Battenfeld, Jannach: Beyond accuracy: evaluating recommender systems by coverage and serendipity. "
        "RecSys 2010"
    )

    def of_documents(self, exposure: Floats, n: Ints) -> Floats:
        return coverage(exposure, n)


@dataclass(frozen=True)
class MMF(DocumentsMeasure):
    """Max-min fairness: the share of the exposure of all topics that the least exposed candidates get.

    At best it is their share of the candidates. Undefined where no candidate gets exposure, or where the least exposed
    part has no document.
    """

    name = "MMF"
    direction = HIGHER
    formula = "Σ exposure of the ⌊ratio·n⌋ least exposed of n candidates / Σ exposure of all, over all topics"
    source = (
        "Xu, Chen, Xu, Shen, Chen, Wen: P-MMF: provider max-min fairness re-ranking in recommender system. WWW 2023; "
        "this form: FairDiverse, 2025"
    )

    ratio: float = param(
        0.5,
        "the part of the candidates that is looked at, above 0 and up to 1",
        check=lambda ratio: unit(ratio) and ratio > 0,
    )

    def of_documents(self, exposure: Floats, n: Ints) -> Floats:
        return least_exposed_share(exposure, n, self.ratio)


@dataclass(frozen=True)
class L2(AcrossTopicsMeasure):
    """How far the groups' shares of the exposure of all topics are from their shares of all relevance.

    Exposure is that of all retrieved documents, relevance the sum of the grades of all judged ones, each with its
    memberships. A group without relevance should get no exposure. Several rankings of a query are samples
    (`policy='samples'`): TREC sums over all of them, which is the same if each query occurs equally often. Undefined
    where no document with a membership gets exposure, or none is relevant.
    """

    name = "L2"
    direction = LOWER
    formula = (
        "√Σ_g (E_g − R_g)², E and R the groups' shares of exposure and of relevance, summed over all topics"
    )
    source = "Biega, Diaz, Ekstrand, Kohlmeier: Overview of the TREC 2019 Fair Ranking track"
    attributes = "one"

    attr: str = attr_param()

    def of_topics(self, exposed: ExposedTopics, weights: Floats) -> Floats:
        exposure, relevance = (
            weights @ exposed.group_sums(self.attr, values) for values in (exposed.exposure, exposed.grades)
        )
        return distance_of_shares(exposure, relevance)

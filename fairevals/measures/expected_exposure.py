"""Expected exposure against that of an ideal policy: loss, disparity and relevance."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fairevals.collection import Exposed
from fairevals.measures.base import HIGHER, LOWER, ExposureMeasure, param, rank_sum, stretches
from fairevals.typing import Bools, Floats


def target_exposure(grades: Floats, candidates: Bools, attention_weights: Floats) -> Floats:
    """The exposure ε* of each document when documents of equal grade share equally what their ranks get.

    `grades` and `candidates` are (…, document); `attention_weights` are those of ranks 1, 2, …, 0 beyond their
    end, and may have leading axes too. The ideal order is that of the candidates by grade, so that those of a
    grade occupy a block of ranks, and ε* is the block's mean attention; 0 for all other documents, so that a run
    cannot change the target by what it retrieves. See Diaz et al., CIKM 2020.

    >>> candidates = np.array([True, True, True, True, False])
    >>> target_exposure(np.array([0.0, 2.0, 1.0, 1.0, 0.0]), candidates, np.array([1.0, 0.5, 0.25]))
    array([0.   , 1.   , 0.375, 0.375, 0.   ])
    """
    documents = grades.shape[-1]
    ranks = min(documents, attention_weights.shape[-1])
    weights = np.zeros((*attention_weights.shape[:-1], documents + 1))  # the first 0 is for no ranks
    weights[..., 1 : ranks + 1] = attention_weights[..., :ranks]
    summed = np.broadcast_to(np.cumsum(weights, axis=-1), (*grades.shape[:-1], documents + 1))

    order = np.argsort(np.where(candidates, -grades, np.inf), axis=-1, kind="stable")
    ideal = np.take_along_axis(np.where(candidates, grades, -np.inf), order, axis=-1)
    first, last = stretches(ideal)
    block = np.take_along_axis(summed, last + 1, axis=-1) - np.take_along_axis(summed, first, axis=-1)
    target = np.zeros(grades.shape)
    np.put_along_axis(target, order, block / (last + 1 - first), axis=-1)
    return np.where(candidates, target, 0.0)


def group_sums(values: Floats, membership: Floats) -> Floats:
    """The membership-weighted sums (…, group) of (…, document) values.

    >>> group_sums(np.array([1.0, 0.5]), np.array([[1.0, 0.0], [0.5, 0.5]]))
    array([1.25, 0.25])
    """
    return rank_sum(np.moveaxis(membership, -1, -2) * values[..., None, :])


@dataclass(frozen=True)
class ExpectedExposureMeasure(ExposureMeasure):
    """What EE_L, EE_D and EE_R share: EE_L = EE_D − 2·EE_R + Σε*².

    Exposure is that of all retrieved documents, its target ε* that of the candidates. Undefined on a topic without
    documents; with `attr`, where no document has a membership or the attribute does not apply. Documents of which an
    attribute says nothing are in no group's sum.
    """

    source = (
        "Diaz, Mitra, Ekstrand, Biega, Carterette: Evaluating stochastic rankings with expected exposure. "
        "CIKM 2020"
    )

    attr: str | None = param(
        None,
        "the attribute into whose groups exposure is summed first; None: documents",
        check=lambda attr: attr is None or (isinstance(attr, str) and attr != ""),
    )

    @abstractmethod
    def contributions(self, exposure: Floats, target: Floats) -> tuple[Floats, Floats]:
        """What each document, or group, adds to the value, and the derivative of that by its exposure."""

    def target(self, exposed: Exposed) -> Floats:
        """The target exposure of each document, (topics, documents)."""
        attention = self.attention_model
        if attention.looks_at_grades:
            # Documents of a block are alike in grade, so that their order in it changes no rank's attention.
            ideal = -np.sort(np.where(exposed.candidates, -exposed.grades, np.inf), axis=-1)
            weights = attention.weights_given(ideal)
        else:
            weights = attention.weights(exposed.grades.shape[-1])
        return target_exposure(exposed.grades, exposed.candidates, weights[..., : self.cutoff])

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """The value and ∂value/∂ε of each document, through the sums of its groups where there is an attribute."""
        exposure, target = exposed.exposure, self.target(exposed)
        if self.attr is None:
            value, slope = self.contributions(exposure, target)
            defined: Bools = np.any(exposed.present, axis=-1)
        else:
            attribute = exposed.attribute(self.attr)
            groups = (group_sums(a, attribute.membership) for a in (exposure, target))
            value, by_group = self.contributions(*groups)
            slope = rank_sum(attribute.membership * by_group[..., None, :])
            defined = attribute.applies & attribute.membership.any(axis=(-2, -1))
        return np.where(defined, rank_sum(value), np.nan), np.where(defined[..., None], slope, 0.0)


@dataclass(frozen=True)
class EEL(ExpectedExposureMeasure):
    """Squared distance of expected exposure from that of the ideal policy."""

    name = "EE_L"
    direction = LOWER
    formula = (
        "Σ(ε − ε*)² over documents or groups, ε* the mean attention of the ranks that a grade's candidates "
        "share in the ideal order, 0 for other documents"
    )

    def contributions(self, exposure: Floats, target: Floats) -> tuple[Floats, Floats]:
        return np.square(exposure - target), 2 * (exposure - target)


@dataclass(frozen=True)
class EED(ExpectedExposureMeasure):
    """How unevenly exposure is spread, whatever the grades."""

    name = "EE_D"
    direction = LOWER
    formula = "Σε² over documents or groups"

    def contributions(self, exposure: Floats, target: Floats) -> tuple[Floats, Floats]:
        return np.square(exposure), 2 * exposure


@dataclass(frozen=True)
class EER(ExpectedExposureMeasure):
    """How much of the exposure goes where the ideal policy sends it."""

    name = "EE_R"
    direction = HIGHER
    formula = "Σε·ε* over documents or groups, ε* as in EE_L"

    def contributions(self, exposure: Floats, target: Floats) -> tuple[Floats, Floats]:
        return exposure * target, target

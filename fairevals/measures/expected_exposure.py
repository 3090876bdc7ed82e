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
    weights = np.zeros((*attention_weights.shape[:-1], documents))
    ranks = min(documents, attention_weights.shape[-1])
    weights[..., :ranks] = attention_weights[..., :ranks]
    summed = np.zeros((*weights.shape[:-1], documents + 1))
    np.cumsum(weights, axis=-1, out=summed[..., 1:])
    summed = np.broadcast_to(summed, (*grades.shape[:-1], documents + 1))

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
    def of_pair(self, exposure: Floats, target: Floats) -> Floats:
        """The value from the exposures and target exposures of documents, or groups, on the last axis."""

    @abstractmethod
    def slope_of_pair(self, exposure: Floats, target: Floats) -> Floats:
        """The derivative of `of_pair` by the exposures."""

    def target(self, exposed: Exposed) -> Floats:
        """The target exposure of each document, (topics, documents)."""
        attention = self.attention_model
        ranks = min(self.cutoff or exposed.grades.shape[-1], exposed.grades.shape[-1])
        if attention.looks_at_grades:
            # Documents of a block are alike in grade, so that their order in it changes no rank's attention.
            ideal = -np.sort(np.where(exposed.candidates, -exposed.grades, np.inf), axis=-1)
            weights = attention.weights_given(ideal[..., :ranks])
        else:
            weights = attention.weights(ranks)
        return target_exposure(exposed.grades, exposed.candidates, weights)

    def of_exposure(self, exposed: Exposed) -> Floats:
        exposure, target, defined = self._pair(exposed)
        return np.where(defined, self.of_pair(exposure, target), np.nan)

    def gradient(self, exposed: Exposed) -> Floats:
        """∂value/∂ε of each document; through the sums of its groups where there is an attribute."""
        exposure, target, defined = self._pair(exposed)
        slope = np.where(defined[..., None], self.slope_of_pair(exposure, target), 0.0)
        if self.attr is None:
            return slope
        return rank_sum(exposed.attribute(self.attr).membership * slope[..., None, :])

    def _pair(self, exposed: Exposed) -> tuple[Floats, Floats, Bools]:
        """Exposure and target exposure of documents or groups, and whether they are defined."""
        target = self.target(exposed)
        if self.attr is None:
            documents: Bools = np.any(exposed.present, axis=-1)
            return exposed.exposure, target, documents
        attribute = exposed.attribute(self.attr)
        exposures, targets = (group_sums(a, attribute.membership) for a in (exposed.exposure, target))
        return exposures, targets, attribute.applies & attribute.membership.any(axis=(-2, -1))


@dataclass(frozen=True)
class EEL(ExpectedExposureMeasure):
    """Squared distance of expected exposure from that of the ideal policy."""

    name = "EE_L"
    direction = LOWER
    formula = (
        "Σ(ε − ε*)² over documents or groups, ε* the mean attention of the ranks that a grade's candidates "
        "share in the ideal order, 0 for other documents"
    )

    def of_pair(self, exposure: Floats, target: Floats) -> Floats:
        return rank_sum(np.square(exposure - target))

    def slope_of_pair(self, exposure: Floats, target: Floats) -> Floats:
        return 2 * (exposure - target)


@dataclass(frozen=True)
class EED(ExpectedExposureMeasure):
    """How unevenly exposure is spread, whatever the grades."""

    name = "EE_D"
    direction = LOWER
    formula = "Σε² over documents or groups"

    def of_pair(self, exposure: Floats, target: Floats) -> Floats:
        return rank_sum(np.square(exposure))

    def slope_of_pair(self, exposure: Floats, target: Floats) -> Floats:
        return 2 * exposure


@dataclass(frozen=True)
class EER(ExpectedExposureMeasure):
    """How much of the exposure goes where the ideal policy sends it."""

    name = "EE_R"
    direction = HIGHER
    formula = "Σε·ε* over documents or groups, ε* as in EE_L"

    def of_pair(self, exposure: Floats, target: Floats) -> Floats:
        return rank_sum(exposure * target)

    def slope_of_pair(self, exposure: Floats, target: Floats) -> Floats:
        return target

"""Expected exposure against that of an ideal policy: loss, disparity and relevance (EE), and underexposure (UEXP)."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fairevals.attention import Attention
from fairevals.collection import Exposed
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER, LOWER, ExposureMeasure, attr_param, named, optional, param
from fairevals.measures.group_sums import group_sums, spread
from fairevals.measures.numeric import divide, hinge, rank_sum, stretches
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


def ideal_exposure(exposed: Exposed, attention: Attention, cutoff: int | None) -> Floats:
    """The exposure (topics, documents) of the ideal policy: `target_exposure` of the documents in view."""
    if attention.looks_at_grades:
        # Documents of a block are alike in grade, so that their order in it changes no rank's attention.
        ideal = -np.sort(np.where(exposed.candidates, -exposed.grades, np.inf), axis=-1)
        weights = attention.weights_given(ideal)
    else:
        weights = attention.weights(exposed.grades.shape[-1])
    return target_exposure(exposed.grades, exposed.candidates, weights[..., :cutoff])


@dataclass(frozen=True)
class ExpectedExposureMeasure(ExposureMeasure):
    """What EE_L, EE_D and EE_R share: EE_L = EE_D − 2·EE_R + Σε*².

    Exposure is that of all retrieved documents, its target ε* that of the candidates. Documents of which an attribute
    says nothing are in no group's sum. With target='task', a group's ε* is its share in the attribute's target of all
    attention up to the cutoff, whatever was judged. With relevant_only=True, documents without a positive grade have no
    exposure, so that documents of the right groups gain nothing if they are not relevant. TREC 2022 Fair Ranking has
    both, with attention='trecfair'. Undefined on a topic without documents; with `attr`, where no document has a
    membership or the attribute does not apply; with target='task', without a target.
    """

    source = (
        "Diaz, Mitra, Ekstrand, Biega, Carterette: Evaluating stochastic rankings with expected exposure. "
        "CIKM 2020; target='task': Ekstrand, McDonald, Raj, Johnson: Overview of the TREC 2022 Fair Ranking track"
    )

    attr: str | None = param(
        None,
        "the attribute into whose groups exposure is summed first; None: documents",
        check=optional(named),
    )
    target: str = param(
        "ideal", "ε*: of the ideal policy, or the attribute's target in the task", choices=("ideal", "task")
    )
    relevant_only: bool = param(False, "only relevant documents give exposure", choices=(False, True))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target == "task" and self.attr is None:
            raise UsageError(f"{self.name}: target='task' is that of an attribute; it needs attr='…'")
        if self.target == "task" and self.attention_model.looks_at_grades:
            raise UsageError(f"{self}: target='task' needs an attention that depends on ranks only")

    @property
    def depth(self) -> None:
        """None, as for all measures of exposure; an error now if a cutoff is needed and lacking."""
        if self.target == "task":
            self._attention_up_to_cutoff()

    def _attention_up_to_cutoff(self) -> Floats:
        if self.cutoff is None:
            raise UsageError(
                f"{self} needs a cutoff, such as {self}@20, up to which its target shares attention"
            )
        return rank_sum(self.attention_model.weights(self.cutoff))

    @abstractmethod
    def contributions(self, exposure: Floats, target: Floats) -> tuple[Floats, Floats]:
        """What each document, or group, adds to the value, and the derivative of that by its exposure."""

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """The value and ∂value/∂ε of each document, through the sums of its groups where there is an attribute."""
        counted = exposed.grades > 0 if self.relevant_only else exposed.present
        exposure = np.where(counted, exposed.exposure, 0.0)
        if self.attr is None:
            value, slope = self.contributions(exposure, self._ideal(exposed))
            defined: Bools = np.any(exposed.present, axis=-1)
        else:
            attribute = exposed.attribute(self.attr)
            if self.target == "task":
                target = attribute.target * self._attention_up_to_cutoff()
            else:
                target = group_sums(self._ideal(exposed), *attribute.factors)
            value, by_group = self.contributions(group_sums(exposure, *attribute.factors), target)
            slope = spread(by_group, *attribute.factors)
            defined = attribute.applies & attribute.known.any(axis=-1)
            defined = defined & ~np.isnan(target).any(axis=-1)
        gradient = np.where(defined[..., None] & counted, slope, 0.0)
        return np.where(defined, rank_sum(value), np.nan), gradient

    def _ideal(self, exposed: Exposed) -> Floats:
        return ideal_exposure(exposed, self.attention_model, self.cutoff)


@dataclass(frozen=True)
class EEL(ExpectedExposureMeasure):
    """Squared distance of expected exposure from that of the ideal policy, or from the task's target for groups.

    With target='task' and relevant_only=True only relevant documents count, so that groups cannot be filled up with
    others. That is the measure of TREC 2022 Fair Ranking, with attention='trecfair'.
    """

    name = "EE_L"
    direction = LOWER
    formula = (
        "Σ(ε − ε*)² over documents or groups, ε* the mean attention of the ranks that a grade's candidates "
        "share in the ideal order, 0 for other documents; target='task': ε* = T·Σ_{k≤K} v_k, T the target"
    )

    def contributions(self, exposure: Floats, target: Floats) -> tuple[Floats, Floats]:
        return np.square(exposure - target), 2 * (exposure - target)


@dataclass(frozen=True)
class EED(ExpectedExposureMeasure):
    """How unevenly exposure is spread, whatever the grades.

    It is also low where little exposure is given: by short lists and, with relevant_only=True, by lists of documents
    that are not relevant. Read it beside EE_R.
    """

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


@dataclass(frozen=True)
class UEXP(ExposureMeasure):
    """How much smaller the documents' shares of exposure are than under the ideal policy, summed into groups.

    The sums are squared, so that the value is large where one group bears the underexposure; with total=True they are
    added as they are. ε* is that of EE_L: 0 for documents that are not candidates. They can take exposure from the
    others, so padding with unjudged documents costs, and so does leaving documents out. Documents of which the
    attribute says nothing are in no group's sum. Undefined on a topic without candidates or without exposure, where no
    candidate has a membership, or the attribute does not apply.

    >>> UEXP(attr="SEX", total=True) @ 20
    UEXP(attr='SEX',total=True)@20
    """

    name = "UEXP"
    direction = LOWER
    formula = "Σ_g U_g² (total=True: Σ_g U_g), U_g = Σ_d m(d,g)·max(0, ε*_d/Σε* − ε_d/Σε), ε* as in EE_L"
    source = "Ekstrand, McDonald, Raj, Johnson: Overview of the TREC 2022 Fair Ranking track (code: L2UEXP and TotUEXP)"
    attributes = "one"

    attr: str = attr_param()
    total: bool = param(False, "sum the groups' underexposures, without squares", choices=(False, True))

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """UEXP and ∂UEXP/∂ε; 0 at the kinks, where the shares are equal."""
        return self.smoothed(exposed, 0.0)

    def smoothed(self, exposed: Exposed, smoothing: float) -> tuple[Floats, Floats]:
        attribute = exposed.attribute(self.attr)
        ideal = ideal_exposure(exposed, self.attention_model, self.cutoff)
        given, wanted = rank_sum(exposed.exposure)[..., None], rank_sum(ideal)[..., None]
        share = divide(exposed.exposure, given, given > 0, otherwise=0.0)
        under, below = hinge(divide(ideal, wanted, wanted > 0, otherwise=0.0) - share, smoothing)
        groups = group_sums(under, *attribute.factors)
        value = rank_sum(groups if self.total else np.square(groups))
        by_group = np.ones(groups.shape) if self.total else 2 * groups
        slope = below * spread(by_group, *attribute.factors)
        # ∂share_d/∂ε_j = ([d = j] − share_d)/Σε
        slope = rank_sum(slope * share)[..., None] - slope
        known: Bools = np.any(attribute.known & exposed.candidates, axis=-1)
        defined = ((given > 0) & (wanted > 0))[..., 0] & known & attribute.applies
        gradient = divide(slope, given, defined[..., None] & exposed.present, otherwise=0.0)
        return np.where(defined, value, np.nan), gradient

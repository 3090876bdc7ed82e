"""Log-ratios of the protected group over the rest: exposure (DP), by merit (EUR, RUR)."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fairevals.collection import AttributeView, Exposed
from fairevals.errors import unknown
from fairevals.measures.base import ExposureMeasure, divide, merit, merit_param, named, near, param, rank_sum
from fairevals.measures.disparity import group_means
from fairevals.measures.expected_exposure import group_sums
from fairevals.typing import Floats


def sides(attribute: AttributeView, protected: str) -> Floats:
    """Each document's weight in the protected group and in all other groups together, (…, document, 2).

    Both are 0 for a document without membership.

    >>> membership = np.array([[0.5, 0.2, 0.3], [0.0, 0.0, 0.0]])
    >>> view = AttributeView(("a", "b", "c"), False, membership, np.full(3, 1 / 3), np.array(True))
    >>> sides(view, "b")
    array([[0.2, 0.8],
           [0. , 0. ]])
    """
    if protected not in attribute.groups:
        raise unknown("group", protected, attribute.groups)
    at = attribute.groups.index(protected)
    rest = rank_sum(np.delete(attribute.membership, at, axis=-1))
    return np.stack([attribute.membership[..., at], rest], axis=-1)


def log_ratio(values: Floats, per: Floats | None = None) -> Floats:
    """ln of the first over the second on the last axis, after dividing by `per` if given.

    NaN where any of the numbers is 0 or undefined: the ratio says nothing there.

    >>> log_ratio(np.array([[2.0, 1.0], [2.0, 0.0]])).round(4)
    array([0.6931,    nan])
    """
    quotients = values if per is None else divide(values, per, per > 0)
    above, below = quotients[..., 0], quotients[..., 1]
    return np.log(divide(above, below, (above > 0) & (below > 0)))  # comparisons with NaN are False


@dataclass(frozen=True)
class RatioMeasure(ExposureMeasure):
    """What DP, EUR and RUR share. 0 is fair; above 0 the protected group has more, below 0 less.

    Means are over the candidates. With a weight of 1, 1/M̄ or M_d/M̄ for each document's exposure, all three are ln of
    the ratio of the two sides' weighted mean exposures.
    """

    direction = near(0.0)
    attributes = "one"

    attr: str = param(None, "the attribute's name", check=named)
    protected: str = param(None, "the group that is compared with the rest of the attribute", check=named)

    @abstractmethod
    def weights(self, exposed: Exposed) -> tuple[Floats | float, Floats | None]:
        """What exposures are multiplied by, and the merits by whose mean the mean exposure is divided, if any."""

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """The value, and by ε each document's part in its side's sum: the merits cancel."""
        attribute = exposed.attribute(self.attr)
        membership = sides(attribute, self.protected) * exposed.candidates[..., None]
        factor, merits = self.weights(exposed)
        weighted = exposed.exposure * factor
        per = None if merits is None else group_means(merits, membership)
        value = log_ratio(group_means(weighted, membership), per)
        value = np.where(attribute.applies, value, np.nan)
        sums = group_sums(weighted, membership)
        defined = (sums > 0) & ~np.isnan(value)[..., None]
        share = divide(np.array([1.0, -1.0]), sums, defined, otherwise=0.0)
        return value, rank_sum(membership * share[..., None, :]) * factor


@dataclass(frozen=True)
class DP(RatioMeasure):
    """Demographic parity of exposure, in which merit plays no part.

    Undefined where a side has no documents or no exposure, or the attribute does not apply.
    """

    name = "DP"
    formula = "ln(ε̄_protected / ε̄_rest), ε̄ membership-weighted mean exposures"
    source = (
        "Singh, Joachims: Fairness of exposure in rankings. KDD 2018; "
        "the logarithm: Raj, Ekstrand: Measuring fairness in ranked results. SIGIR 2022"
    )

    def weights(self, exposed: Exposed) -> tuple[Floats | float, Floats | None]:
        return 1.0, None


@dataclass(frozen=True)
class EUR(RatioMeasure):
    """Exposed utility ratio: whether exposure is in proportion to merit (disparate treatment).

    Undefined where a side has no documents, no exposure or no merit, or the attribute does not apply.
    """

    name = "EUR"
    formula = "ln((ε̄/M̄)_protected / (ε̄/M̄)_rest), ε̄ and M̄ membership-weighted means"
    source = DP.source

    merit: str = merit_param()

    def weights(self, exposed: Exposed) -> tuple[Floats | float, Floats | None]:
        return 1.0, merit(exposed.grades, self.merit)


@dataclass(frozen=True)
class RUR(RatioMeasure):
    """Realised utility ratio: whether what exposure brings is in proportion to merit (disparate impact).

    Undefined where a side has no documents, no merit, or no exposure of its documents with merit.
    """

    name = "RUR"
    formula = "ln((mean of ε·M / M̄)_protected / (mean of ε·M / M̄)_rest), membership-weighted means"
    source = DP.source

    merit: str = merit_param()

    def weights(self, exposed: Exposed) -> tuple[Floats | float, Floats | None]:
        """Exposure×merit per mean merit."""
        merits = merit(exposed.grades, self.merit)
        return merits, merits

"""Log-ratios of the protected group over the rest: exposure (DP), by merit (EUR, RUR)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fairevals.collection import AttributeView, Exposed
from fairevals.errors import UsageError, escape
from fairevals.measures.base import ExposureMeasure, named, near, param, rank_sum
from fairevals.measures.disparity import group_means
from fairevals.measures.merit import merit, merit_param
from fairevals.typing import Floats


def sides(attribute: AttributeView, protected: str) -> Floats:
    """Each document's weight in the protected group and in all other groups together, (…, document, 2).

    Both are 0 for a document of which nothing is said.

    >>> membership = np.array([[0.5, 0.2, 0.3], [0.0, 0.0, 0.0]])
    >>> view = AttributeView(("a", "b", "c"), False, membership, np.full(3, 1 / 3), np.array(True))
    >>> sides(view, "b")
    array([[0.2, 0.8],
           [0. , 0. ]])
    """
    if protected not in attribute.groups:
        known = ", ".join(map(escape, attribute.groups))
        raise UsageError(f"the attribute has no group {escape(protected)!r} to protect (it has: {known})")
    at = attribute.groups.index(protected)
    rest = rank_sum(np.delete(attribute.membership, at, axis=-1))
    return np.stack([attribute.membership[..., at], rest], axis=-1)


def log_ratio(values: Floats, per: Floats | None = None) -> Floats:
    """ln of the first over the second on the last axis, after dividing by `per` if given.

    NaN where any of the numbers is 0 or undefined: the ratio says nothing there.

    >>> log_ratio(np.array([[2.0, 1.0], [2.0, 0.0]])).round(4)
    array([0.6931,    nan])
    """
    quotients = values
    if per is not None:
        quotients = np.divide(values, per, out=np.full(values.shape, np.nan), where=per > 0)
    above, below = quotients[..., 0], quotients[..., 1]
    # Comparisons with NaN are False.
    defined = (above > 0) & (below > 0)
    ratio: Floats = np.divide(above, below, out=np.full(above.shape, np.nan), where=defined)
    return np.log(ratio)


def exposure_ratio(exposure: Floats, membership: Floats) -> Floats:
    """DP: ln of the ratio of mean exposures. `exposure` is (…, document), `membership` (…, document, 2).

    >>> two = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> round(float(exposure_ratio(np.array([1.0, 0.6, 0.4]), two)), 4)  # ln(1 / 0.5)
    0.6931
    """
    return log_ratio(group_means(exposure, membership))


def exposed_utility_ratio(exposure: Floats, merits: Floats, membership: Floats) -> Floats:
    """EUR: ln of the ratio of mean exposure per mean merit.

    >>> two = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> round(float(exposed_utility_ratio(np.array([1.0, 0.6, 0.4]), np.array([4.0, 3.0, 1.0]), two)), 4)
    0.0
    """
    return log_ratio(group_means(exposure, membership), group_means(merits, membership))


def realised_utility_ratio(exposure: Floats, merits: Floats, membership: Floats) -> Floats:
    """RUR: ln of the ratio of mean exposure×merit per mean merit.

    >>> two = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> round(float(realised_utility_ratio(np.array([1.0, 0.5]), np.array([4.0, 1.0]), two)), 4)
    0.6931
    """
    return log_ratio(group_means(exposure * merits, membership), group_means(merits, membership))


@dataclass(frozen=True)
class RatioMeasure(ExposureMeasure):
    """What DP, EUR and RUR share. 0 is fair; above 0 the protected group has more, below 0 less."""

    direction = near(0.0)
    attributes = "one"

    attr: str = param(None, "the attribute's name", check=named)
    protected: str = param(None, "the group that stands over the rest of the attribute", check=named)

    @abstractmethod
    def of_sides(self, exposed: Exposed, membership: Floats) -> Floats:
        """The value for each topic, from the documents' weights in the protected group and in the rest."""

    def of_exposure(self, exposed: Exposed) -> Floats:
        """The value for each topic; NaN where a mean is 0 or undefined, or the attribute does not apply."""
        attribute = exposed.attribute(self.attr)
        value = self.of_sides(exposed, sides(attribute, self.protected))
        return np.where(attribute.applies, value, np.nan)


@dataclass(frozen=True)
class DP(RatioMeasure):
    """Demographic parity of exposure, in which merit plays no part.

    Undefined where a side has no documents or no exposure, or the attribute does not apply.

    >>> str(DP(attr="SEX", protected="f"))
    "DP(attr='SEX',protected='f')"
    """

    name = "DP"
    formula = "ln(v̄_protected / v̄_rest), v̄ membership-weighted mean exposures"
    source = (
        "Singh, Joachims: Fairness of exposure in rankings. KDD 2018; "
        "the logarithm: Raj, Ekstrand: Measuring fairness in ranked results. SIGIR 2022"
    )

    def of_sides(self, exposed: Exposed, membership: Floats) -> Floats:
        """ln of the ratio of mean exposures."""
        return exposure_ratio(exposed.exposure, membership)


@dataclass(frozen=True)
class EUR(RatioMeasure):
    """Exposed utility ratio: whether exposure is in proportion to merit (disparate treatment).

    Undefined where a side has no documents, no exposure or no merit, or the attribute does not apply.

    >>> str(EUR(attr="SEX", protected="f", merit="exp"))
    "EUR(attr='SEX',protected='f',merit='exp')"
    """

    name = "EUR"
    formula = "ln((v̄/M̄)_protected / (v̄/M̄)_rest), v̄ and M̄ membership-weighted means"
    source = DP.source

    merit: str = merit_param()

    def of_sides(self, exposed: Exposed, membership: Floats) -> Floats:
        """ln of the ratio of mean exposure per mean merit."""
        return exposed_utility_ratio(exposed.exposure, merit(exposed.grades, self.merit), membership)


@dataclass(frozen=True)
class RUR(RatioMeasure):
    """Realised utility ratio: whether what exposure brings is in proportion to merit (disparate impact).

    Undefined where a side has no documents, no merit, or no exposure of its documents with merit.

    >>> str(RUR(attr="SEX", protected="f"))
    "RUR(attr='SEX',protected='f')"
    """

    name = "RUR"
    formula = "ln((mean of v·M / M̄)_protected / (mean of v·M / M̄)_rest), membership-weighted means"
    source = DP.source

    merit: str = merit_param()

    def of_sides(self, exposed: Exposed, membership: Floats) -> Floats:
        """ln of the ratio of mean exposure×merit per mean merit."""
        return realised_utility_ratio(exposed.exposure, merit(exposed.grades, self.merit), membership)

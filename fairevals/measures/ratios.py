"""Log-ratios between groups, of exposure (DP) and by merit (EUR, RUR): a protected one over the rest, or any two."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fairevals.collection import AttributeView, Exposed
from fairevals.collection.memberships import SparseMembership
from fairevals.errors import unknown
from fairevals.measures.base import LOWER, ExposureMeasure, attr_param, named, near, optional, param
from fairevals.measures.group_sums import group_means, group_sums, spread
from fairevals.measures.merits import merit, merit_param
from fairevals.measures.numeric import divide, rank_sum
from fairevals.typing import Floats


def sides(attribute: AttributeView, protected: str) -> Floats:
    """Each document's weight in the protected group and in all other groups together, (…, document, 2).

    Both are 0 for a document without membership.

    >>> from fairevals.collection import AttributeView
    >>> membership = np.array([[0.5, 0.2, 0.3], [0.0, 0.0, 0.0]])
    >>> view = AttributeView(("a", "b", "c"), False, (membership,), np.full(3, 1 / 3), np.array(True))
    >>> sides(view, "b")
    array([[0.2, 0.8],
           [0. , 0. ]])
    """
    if protected not in attribute.groups:
        raise unknown("group", protected, attribute.groups)
    counts = [factor.shape[-1] for factor in attribute.factors]
    numbers = np.unravel_index(attribute.groups.index(protected), counts)
    inside: Floats | float = 1.0
    rest: Floats | float = 0.0
    # The sum of all other products is formed without a subtraction, which would leave a rounding error for 0.
    for factor, at in zip(attribute.factors, numbers, strict=True):
        if isinstance(factor, SparseMembership):
            mine, others = factor.split(int(at))
        else:
            mine, others = factor[..., at], rank_sum(np.delete(factor, at, axis=-1))
        inside, rest = inside * mine, rest * (mine + others) + inside * others
    return np.stack([inside, rest], axis=-1)


def log_quotients(values: Floats, per: Floats | None = None) -> Floats:
    """ln of each side's value, (…, side), after dividing by `per` if given.

    NaN for a side without documents (its value is NaN) or without merit: there is nothing to compare. −inf for one
    without exposure.

    >>> log_quotients(np.array([2.0, 0.0, np.nan, 1.0]), np.array([1.0, 1.0, np.nan, 0.0])).round(4)
    array([0.6931,   -inf,    nan,    nan])
    """
    quotients = values if per is None else divide(values, per, per > 0)
    return np.log(quotients, out=np.full(quotients.shape, -np.inf), where=quotients != 0)


def log_ratio(logarithms: Floats) -> tuple[Floats, Floats]:
    """The first logarithm less the second on the last axis, and its gradient by both; NaN unless both are finite.

    >>> value, gradient = log_ratio(np.array([0.5, 0.75]))
    >>> float(value), gradient
    (-0.25, array([ 1., -1.]))
    """
    defined = np.isfinite(logarithms).all(axis=-1, keepdims=True)
    first, second = np.moveaxis(np.where(defined, logarithms, np.nan), -1, 0)
    return first - second, np.where(defined, np.array([1.0, -1.0]), 0.0)


def log_range(logarithms: Floats) -> tuple[Floats, Floats]:
    """The largest logarithm less the smallest on the last axis, and its gradient by all.

    NaNs are left out. NaN with fewer than two others, and where one is −inf.

    >>> value, gradient = log_range(np.array([0.5, np.nan, 0.75, 0.25]))
    >>> float(value), gradient
    (0.5, array([ 0.,  0.,  1., -1.]))
    """
    compared = ~np.isnan(logarithms)
    low, high = (np.where(compared, logarithms, otherwise) for otherwise in (np.inf, -np.inf))
    defined = (np.count_nonzero(compared, axis=-1) > 1) & np.isfinite(low.min(axis=-1))
    value = high.max(axis=-1) - np.where(defined, low.min(axis=-1), np.nan)
    group = np.arange(logarithms.shape[-1])
    largest, smallest = (group == at[..., None] for at in (high.argmax(axis=-1), low.argmin(axis=-1)))
    return value, np.where(defined[..., None], largest * 1.0 - smallest, 0.0)


@dataclass(frozen=True)
class RatioMeasure(ExposureMeasure):
    """What DP, EUR and RUR share. 0 is fair; above 0 the protected group has more, below 0 less.

    Means are over the candidates. With a weight of 1, 1/M̄ or M_d/M̄ for each document's exposure, all three are ln of
    the ratio of the two sides' weighted mean exposures. Without `protected`, all groups are compared: the value is the
    largest difference between the logarithms of two groups, and lower is better.
    """

    direction = near(0.0)
    attributes = "one"

    attr: str = attr_param()
    protected: str | None = param(
        None,
        "the group that is compared with the rest of the attribute; None: the two groups that differ most",
        check=optional(named),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.protected is None:
            object.__setattr__(self, "direction", LOWER)

    @abstractmethod
    def weights(self, exposed: Exposed) -> tuple[Floats | float, Floats | None]:
        """What exposures are multiplied by, and the merits by whose mean the mean exposure is divided, if any."""

    def value_and_gradient(self, exposed: Exposed) -> tuple[Floats, Floats]:
        """The value, and by ε each document's part in its side's sum: the merits cancel."""
        attribute = exposed.attribute(self.attr)
        factors = attribute.factors if self.protected is None else (sides(attribute, self.protected),)
        factor, merits = self.weights(exposed)
        weighted, counted = exposed.exposure * factor, exposed.candidates
        per = None if merits is None else group_means(merits, *factors, counted=counted)
        logarithms = log_quotients(group_means(weighted, *factors, counted=counted), per)
        value, slope = (log_range if self.protected is None else log_ratio)(logarithms)
        slope = np.where(attribute.applies[..., None], slope, 0.0)
        share = divide(slope, group_sums(weighted * counted, *factors), slope != 0, otherwise=0.0)
        return np.where(attribute.applies, value, np.nan), spread(share, *factors) * counted * factor


@dataclass(frozen=True)
class DP(RatioMeasure):
    """Demographic parity of exposure, in which merit plays no part.

    Without `protected`, the largest difference between two groups, lower is better; groups without candidates are left
    out. Undefined where a side, or a group that has candidates, has no exposure; where fewer than two have candidates;
    and where the attribute does not apply.
    """

    name = "DP"
    formula = (
        "ln(ε̄_protected / ε̄_rest), ε̄ membership-weighted mean exposures; "
        "without protected: max_g ln ε̄_g − min_g ln ε̄_g"
    )
    source = (
        "Singh, Joachims: Fairness of exposure in rankings. KDD 2018; "
        "the logarithm: Raj, Ekstrand: Measuring fairness in ranked results. SIGIR 2022"
    )

    def weights(self, exposed: Exposed) -> tuple[Floats | float, Floats | None]:
        return 1.0, None


@dataclass(frozen=True)
class EUR(RatioMeasure):
    """Exposed utility ratio: whether exposure is in proportion to merit (disparate treatment).

    Without `protected`, the largest difference between two groups, lower is better; groups without candidates or
    without merit are left out. Undefined where a side, or a group that has merit, has no exposure; where fewer than two
    have merit; and where the attribute does not apply.
    """

    name = "EUR"
    formula = (
        "ln((ε̄/M̄)_protected / (ε̄/M̄)_rest), ε̄ and M̄ membership-weighted means; "
        "without protected: max_g ln(ε̄/M̄)_g − min_g ln(ε̄/M̄)_g"
    )
    source = DP.source

    merit: str = merit_param()

    def weights(self, exposed: Exposed) -> tuple[Floats | float, Floats | None]:
        return 1.0, merit(exposed.grades, self.merit)


@dataclass(frozen=True)
class RUR(RatioMeasure):
    """Realised utility ratio: whether what exposure brings is in proportion to merit (disparate impact).

    Without `protected`, the largest difference between two groups, lower is better; groups without candidates or
    without merit are left out. Undefined where the documents with merit of a side, or of a group that has some, have no
    exposure; where fewer than two have merit; and where the attribute does not apply.
    """

    name = "RUR"
    formula = (
        "ln((mean of ε·M / M̄)_protected / (mean of ε·M / M̄)_rest), membership-weighted means; "
        "without protected: the largest ln less the smallest, over groups"
    )
    source = DP.source

    merit: str = merit_param()

    def weights(self, exposed: Exposed) -> tuple[Floats | float, Floats | None]:
        """Exposure×merit per mean merit."""
        merits = merit(exposed.grades, self.merit)
        return merits, merits

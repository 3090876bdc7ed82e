"""Group fairness along the ranks (GF), and together with relevance in one number (GFR)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairevals.collection import Ranked, View
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER, RankingMeasure, attr_param, param, unit
from fairevals.measures.divergences import DIVERGENCES, Divergence
from fairevals.measures.err import ERR, IRBU, stop_probabilities
from fairevals.measures.numeric import divide, rank_sum
from fairevals.typing import Floats


def mean_membership_along_ranks(membership: Floats) -> Floats:
    """The distribution p̄_k over groups that ranks 1..k achieve: the mean of their memberships.

    `membership` is (…, rank, group), and so is the result. A row of zeros is a document without membership:
    the mean is over the others, NaN as long as there is none.

    >>> mean_membership_along_ranks(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    array([[nan, nan],
           [1. , 0. ],
           [0.5, 0.5],
           [0.5, 0.5]])
    """
    counted = np.cumsum(membership.any(axis=-1), axis=-1)
    total: Floats = np.cumsum(membership, axis=-2)
    return total / np.where(counted > 0, counted, np.nan)[..., None]


def group_fairness(weights: Floats, membership: Floats, target: Floats, divergence: Divergence) -> Floats:
    """GF = Σ_k w_k·(1 − divergence(p̄_k ‖ target)), p̄_k the mean membership of ranks 1..k.

    `weights` (…, rank) are the probabilities w_k to stop at rank k (`err.stop_probabilities`); `membership`
    is (…, rank, group), `target` (…, group). A rank where nobody stops adds nothing. A user who stops before the
    first document with a membership cannot be judged: the sum over the other ranks is divided by the probability
    of all other users (`judged_probability`). NaN where users stop but no document has a membership. See Sakai, Kim,
    Kang, TOIS 2023.

    >>> from fairevals.measures.divergences import normalised_match_distance
    >>> pages = np.array([[2 / 3, 1 / 3, 0, 0], [0.25, 0.25, 0.25, 0.25], [0, 0, 0, 1]])
    >>> weights = np.array([0.75, 0, 0.0625])  # FairWeb-1's worked example
    >>> round(float(group_fairness(weights, pages, np.full(4, 0.25), normalised_match_distance)), 4)
    0.5162
    """
    achieved = mean_membership_along_ranks(membership)
    shape = np.broadcast_shapes(weights.shape, achieved.shape[:-1])
    weights = np.broadcast_to(weights, shape)
    stops = weights != 0
    # Most ranks of most runs are not relevant: the divergence is computed at the others only.
    achieved, wanted = (
        np.broadcast_to(a, (*shape, a.shape[-1]))[stops] for a in (achieved, target[..., None, :])
    )
    terms = np.zeros(shape)
    terms[stops] = weights[stops] * (1 - divergence(achieved, wanted))
    unknown = np.isnan(terms)
    if not unknown.any():
        return rank_sum(terms)
    judged = judged_probability(weights, membership)
    known = np.broadcast_to(membership.any(axis=(-2, -1)), shape[:-1]) & ~np.isnan(target).any(axis=-1)
    value = divide(rank_sum(np.where(unknown, 0.0, terms)), judged, judged > 0)
    return np.where(known | ~unknown.any(axis=-1), value, np.nan)


def judged_probability(weights: Floats, membership: Floats) -> Floats:
    """The probability of users who do not stop before the first document with a membership: 1 − Σ_k w_k before it.

    >>> float(judged_probability(np.array([0.5, 0.25]), np.array([[0.0, 0.0], [1.0, 0.0]])))
    0.5
    """
    unseen = np.cumsum(membership.any(axis=-1), axis=-1) == 0
    return 1 - rank_sum(np.where(unseen, weights, 0.0))


@dataclass(frozen=True)
class GF(RankingMeasure):
    """How near the groups at the top are to the target, for a user who stops where ERR's user stops.

    0 where nothing relevant is ranked, as for ERR. Under `unmapped = "skip"` users who stop before the first document
    with a membership are left out, and the rankings of a policy are weighted by the probability of the other users.
    Undefined where no document with a membership is ever ranked, and on a topic to which the attribute does not apply,
    or without a target.
    """

    name = "GF"
    direction = HIGHER
    formula = "Σ_k w_k·(1 − div(p̄_k ‖ target)), w_k as in ERR, p̄_k the mean membership of ranks 1..k"
    source = (
        "Sakai, Kim, Kang: A versatile framework for evaluating ranked lists in terms of group fairness "
        "and relevance. TOIS 2023"
    )
    attributes = "one"
    missing = 0.0

    attr: str = attr_param()
    div: str | None = param(
        None, "the divergence; None: the attribute's own in the task", choices=(None, *DIVERGENCES)
    )

    def of_ranking(self, ranked: Ranked) -> Floats:
        ranked = ranked.cut(self.cutoff)
        attribute = ranked.attribute(self.attr)
        weights = stop_probabilities(ranked.grades, ranked.max_grade)
        divergence = DIVERGENCES[self.div or attribute.divergence]
        value = group_fairness(weights, attribute.membership, attribute.target, divergence)
        # Without any document there is nothing to see, and nothing unknown either.
        seen = attribute.membership.any(axis=(-2, -1)) | ~ranked.present.any(axis=-1)
        known = attribute.applies & ~np.isnan(attribute.target).any(axis=-1)
        return np.where(known & seen, value, np.nan)

    def weight(self, ranked: Ranked) -> Floats:
        """The probability of users who can be judged, so that a policy's value is theirs over all its rankings."""
        ranked = ranked.cut(self.cutoff)
        weights = stop_probabilities(ranked.grades, ranked.max_grade)
        return judged_probability(weights, ranked.attribute(self.attr).membership)


def weighted_mean(values: Iterable[Floats], weights: Iterable[Floats | float]) -> Floats:
    """Σ_m w_m·value_m/Σ_m w_m over the components m of each ranking.

    A component of weight 0 is left out even where its value is NaN; NaN where all are.

    >>> weighted_mean([np.array([0.5, 0.5]), np.array([0.9, np.nan])], [1.0, np.array([3.0, 0.0])])
    array([0.8, 0.5])
    """
    total: Floats = np.zeros(())
    weight_of_all: Floats = np.zeros(())
    for value, weight in zip(values, weights, strict=True):
        total = total + np.where(np.not_equal(weight, 0), weight * value, 0.0)
        weight_of_all = weight_of_all + weight
    return divide(total, weight_of_all, np.not_equal(weight_of_all, 0))


@dataclass(frozen=True)
class GFR(RankingMeasure):
    """The weighted mean of a utility and of GF for every attribute that applies to the topic.

    The weights are the task's (`utility_weight`, and each attribute's `weight`); with equal ones it is the
    plain mean. `div` replaces the divergence of ordinal attributes; nominal ones keep their own. A topic to which
    no attribute applies has the utility alone. Undefined where GF is undefined for an attribute that applies.
    """

    name = "GFR"
    direction = HIGHER
    formula = "(w_0·util + Σ_A w_A·GF(A)) / (w_0 + Σ_A w_A), A the attributes that apply to the topic"
    source = (
        "Sakai, Kim, Kang: A versatile framework for evaluating ranked lists in terms of group fairness "
        "and relevance. TOIS 2023"
    )
    attributes = "all"
    missing = 0.0

    # None means ERR, so that a printed name always shows the utility.
    util: str | None = param(None, "the utility: 'ERR' (if not given) or 'iRBU'", choices=("ERR", "iRBU"))
    phi: float = param(0.99, "persistence of iRBU, a number in [0, 1]", check=unit)
    div: str | None = param(
        None,
        "the divergence of ordinal attributes; None: each attribute's own in the task",
        choices=(None, *DIVERGENCES),
    )

    def __post_init__(self) -> None:
        if self.util is None:
            object.__setattr__(self, "util", "ERR")
        super().__post_init__()
        if self.util == "ERR" and self.phi != type(self).phi:
            raise UsageError(f"GFR: phi={self.phi!r} is iRBU's; it needs util='iRBU'")

    def components(self, ordinal: Mapping[str, bool]) -> tuple[RankingMeasure, ...]:
        """What it is the mean of: the utility, then GF for each attribute, all at its own cutoff.

        `ordinal` says of each attribute whether it is ordinal; the divergence `div` is used for those only.

        >>> gfr = GFR(util="ERR", div="NMD", cutoff=20)
        >>> [str(c) for c in gfr.components({"HINDEX": True, "GENDER": False})]
        ['ERR@20', "GF(attr='HINDEX',div='NMD')@20", "GF(attr='GENDER')@20"]
        """
        utility: RankingMeasure
        utility = ERR(cutoff=self.cutoff) if self.util == "ERR" else IRBU(phi=self.phi, cutoff=self.cutoff)
        fairness = (
            GF(attr=name, div=self.div if ordered else None, cutoff=self.cutoff)
            for name, ordered in ordinal.items()
        )
        return (utility, *fairness)

    def of_ranking(self, ranked: Ranked) -> Floats:
        return self.combine([term.of_ranking(ranked) for term in self.terms(ranked)], ranked)

    def terms(self, view: View) -> tuple[RankingMeasure, ...]:
        # A sum in another order would differ in the last bit.
        return self.components({name: view.attribute(name).ordinal for name in _single(view)})

    def combine(self, values: Sequence[Floats], view: View) -> Floats:
        attributes = [view.attribute(name) for name in _single(view)]
        weights = [np.where(attribute.applies, attribute.weight, 0.0) for attribute in attributes]
        return weighted_mean(values, [view.utility_weight, *weights])


def _single(view: View) -> list[str]:
    """The attributes in view, without intersections: what these add is in them already."""
    return sorted(name for name, attribute in view.attributes.items() if len(attribute.factors) == 1)

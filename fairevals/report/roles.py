"""What a measure is about: usefulness, fairness, both in one number, or neither (a count)."""

from __future__ import annotations

from collections.abc import Iterable

from fairevals.evaluation import Collection, Plan, with_components
from fairevals.measures import CompositeMeasure, ExposureMeasure, Measure, parse_measure
from fairevals.measures.base import NEUTRAL

UTILITY, FAIRNESS, BOTH, OTHER = "utility", "fairness", "both", "other"
_OWN = {"GFR": BOTH, "EE_R": UTILITY}
"""Measures whose kind does not tell: GFR is made of both, EE_R is the relevance part of expected exposure."""


def role(measure: Measure) -> str:
    """Utility, fairness, both, or "other" for a count without a direction.

    >>> [role(parse_measure(name)) for name in ("nDCG@10", "D_ind", "M1(attr='A')", "GF(attr='A')")]
    ['utility', 'fairness', 'both', 'fairness']
    """
    if measure.direction == NEUTRAL:
        return OTHER
    if measure.name in _OWN:
        return _OWN[measure.name]
    if isinstance(measure, CompositeMeasure):
        return BOTH
    fair = isinstance(measure, ExposureMeasure) or measure.attributes != "none"
    return FAIRNESS if fair else UTILITY


def with_both_sides(plan: Plan, collection: Collection, *, given: bool) -> Plan:
    """The plan, with what a picture of usefulness against fairness still needs.

    Where there is no measure of fairness alone, the parts of composed measures are added; and where the measures
    are the task's own (not `given` by the user), AWRF of every attribute if there is none even then.
    """
    if _has(plan.measures, FAIRNESS) and _has(plan.measures, UTILITY):
        return plan
    plan = with_components_after(plan, collection)
    if _has(plan.measures, FAIRNESS) or given:
        return plan
    shares = [parse_measure(f"AWRF(attr={name!r})") for name in collection.attribute_names]
    return Plan.of(collection, [*plan.measures, *shares], plan.policy)


def with_components_after(plan: Plan, collection: Collection) -> Plan:
    """The measures of the plan, then those that the composed ones are made of."""
    return Plan.of(collection, [*plan.measures, *with_components(plan, collection).measures], plan.policy)


def _has(measures: Iterable[Measure], wanted: str) -> bool:
    return any(role(measure) == wanted for measure in measures)

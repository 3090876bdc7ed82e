"""The list of measures: one line each. Everything that lists, parses or documents measures reads it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairevals.measures.base import Measure

INDEX = {
    "nDCG": "ndcg:NDCG",
    "ERR": "err:ERR",
    "iRBU": "err:IRBU",
    "P": "precision:P",
    "AP": "precision:AP",
    "RR": "precision:RR",
    "RBP": "ndcg:RBP",
    "GF": "gf:GF",
    "GFR": "gf:GFR",
    "D_ind": "disparity:DInd",
    "D_group": "disparity:DGroup",
    "D_cross": "disparity:DCross",
    "EE_L": "expected_exposure:EEL",
    "EE_D": "expected_exposure:EED",
    "EE_R": "expected_exposure:EER",
    "UEXP": "expected_exposure:UEXP",
    "AWRF": "awrf:AWRF",
    "M1": "awrf:M1",
    "DP": "ratios:DP",
    "EUR": "ratios:EUR",
    "RUR": "ratios:RUR",
    "IAA": "shares:IAA",
    "Unjudged": "shares:Unjudged",
    "Gini": "across_topics:Gini",
    "Coverage": "across_topics:Coverage",
    "MMF": "across_topics:MMF",
    "L2": "across_topics:L2",
    "JME": "joint_exposure:JME",
    "rND": "prefix:RND",
    "rKL": "prefix:RKL",
    "rRD": "prefix:RRD",
    "FAIR": "fa_ir:FAIR",
    "NDKL": "representation:NDKL",
    "Skew": "representation:Skew",
    "Infeasible": "representation:Infeasible",
    "ARP": "pairwise:ARP",
}
"""Name of the measure: module below `fairevals.measures`, and class in it."""


@cache
def measure_class(name: str) -> type[Measure]:
    """The class of the native measure of that name; its module is imported only now."""
    module, cls = INDEX[name].split(":")
    definition: type[Measure] = getattr(import_module(f"fairevals.measures.{module}"), cls)
    return definition

"""Measures: one file per family, each measure declared once and listed in `index`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairevals.measures.index import INDEX, measure_class

if TYPE_CHECKING:
    from fairevals.measures.base import (
        HIGHER,
        LOWER,
        AcrossTopicsMeasure,
        CompositeMeasure,
        Direction,
        ExposureMeasure,
        LinearMeasure,
        Measure,
        RankingMeasure,
    )
    from fairevals.measures.parsing import parse_measure, parse_measures, split_name

# Imported when first used, so that ir-measures can be told the names of the measures without loading numpy.
_NAMES = {
    "base": (
        *("HIGHER", "LOWER", "AcrossTopicsMeasure", "CompositeMeasure", "Direction", "ExposureMeasure"),
        *("LinearMeasure", "Measure", "RankingMeasure"),
    ),
    "parsing": ("parse_measure", "parse_measures", "split_name"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fairevals.measures' has no attribute {name!r}")
    return getattr(import_module(f"fairevals.measures.{_HOMES[name]}"), name)

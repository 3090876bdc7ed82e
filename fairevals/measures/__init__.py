"""Measures: one file per family, each measure declared once and listed in `index`."""

from typing import Any

from fairevals.errors import UsageError, escape
from fairevals.measures.base import (
    HIGHER,
    LOWER,
    CompositeMeasure,
    Direction,
    ExposureMeasure,
    LinearMeasure,
    Measure,
    RankingMeasure,
    split_name,
)
from fairevals.measures.index import INDEX, measure_class

ALIASES = {"MAP": "AP", "MRR": "RR", "Precision": "P"}
"""Other names that ir-measures has for measures of this package."""


def parse_measure(text: Any) -> Measure:
    """The measure of that name: one of this package's, or else whatever ir-measures knows.

    >>> print(parse_measure("nDCG(dcg='exp-log2')@10"), parse_measure("iRBU(phi=0.99)"))
    nDCG(dcg='exp-log2')@10 iRBU
    """
    if isinstance(text, Measure):
        return text
    name, params, cutoff = split_name(str(text))
    name = next((known for known in INDEX if known.lower() == name.lower()), ALIASES.get(name, name))
    parameters = {f.name for f in measure_class(name).parameters()} if name in INDEX else set()
    unknown = [key for key in params if key not in parameters]
    if name in INDEX and not unknown:
        return measure_class(name)(**params, cutoff=cutoff)
    from fairevals.measures.delegated import Delegated

    try:  # ir-measures may also know a parameter that the native measure has not, such as nDCG's judged_only
        return Delegated(str(text))
    except UsageError as error:
        if name in INDEX and "unsupported params" in str(error):
            takes = f"it takes {', '.join(sorted(parameters))}" if parameters else "it takes none"
            raise UsageError(f"{name} has no parameter {escape(unknown[0])!r} ({takes})") from None
        if "unknown measure" in str(error):
            raise UsageError(
                f"{error}; known are {', '.join(INDEX)} and the measures of ir-measures"
            ) from None
        raise

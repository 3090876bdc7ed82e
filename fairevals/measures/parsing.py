"""From whatever a user writes for a measure to the measure."""

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

from fairevals.errors import UsageError, escape
from fairevals.measures.base import Measure
from fairevals.measures.index import INDEX, measure_class

ALIASES = {"MAP": "AP", "MRR": "RR", "Precision": "P"}
"""Other names that ir-measures has for measures of this package."""


def parse_measure(given: Any) -> Measure:
    """The measure for its name, for an object such as `fairevals.nDCG @ 10`, or for one of ir-measures.

    A name is one of this package's, or else one that ir-measures knows. A measure of ir-measures is this package's
    where the name and the parameters are; all others have the values that ir-measures gives.

    >>> print(parse_measure("nDCG(dcg='exp-log2')@10"), parse_measure("iRBU(phi=0.99)"))
    nDCG(dcg='exp-log2')@10 iRBU
    >>> import ir_measures
    >>> parse_measure(ir_measures.nDCG @ 10) == parse_measure("nDCG@10")
    True
    """
    if isinstance(given, Measure):
        return given
    if (
        isinstance(given, type)
        and issubclass(given, Measure)
        and isinstance(getattr(given, "name", None), str)
    ):
        return given()
    if _is_theirs(given):
        if hasattr(given, "runtime_impl"):
            hint = "a measure defined by ir_measures.define can be computed by ir-measures only"
            raise UsageError(f"cannot compute {escape(str(given))}: {hint}")
        given = str(given)
    if not isinstance(given, str):
        expected = (
            "expected a name such as 'nDCG@10', a measure such as fairevals.nDCG, or one of ir-measures"
        )
        raise UsageError(f"cannot take {escape(repr(given))} as a measure; {expected}")
    return _named(given)


def parse_measures(given: Any) -> tuple[Measure, ...]:
    """The measures of a list, or the one that is given alone; see `parse_measure`.

    >>> parse_measures("nDCG@10"), parse_measures(["RR", "ERR"])
    ((nDCG@10,), (RR, ERR))
    """
    alone = isinstance(given, str | type | Measure) or _is_theirs(given) or not isinstance(given, Iterable)
    measures = tuple(map(parse_measure, [given] if alone else given))
    if not measures:
        raise UsageError("there is no measure to compute; expected one or more, such as 'nDCG@10'")
    return measures


def _is_theirs(given: Any) -> bool:
    """Whether it is a measure of ir-measures, without importing that."""
    return all(hasattr(given, name) for name in ("NAME", "SUPPORTED_PARAMS", "aggregator"))


def _named(text: str) -> Measure:
    name, params, cutoff = split_name(text)
    name = next((known for known in INDEX if known.lower() == name.lower()), ALIASES.get(name, name))
    parameters = {f.name for f in measure_class(name).parameters()} if name in INDEX else set()
    if name in INDEX and params.keys() <= parameters:
        return measure_class(name)(**params, cutoff=cutoff)
    from fairevals.measures.delegated import Delegated

    try:  # ir-measures may also know a parameter that the native measure has not, such as nDCG's judged_only
        return Delegated(text)
    except UsageError as error:
        unknown = "unknown measure" in str(error)
        if name in INDEX and (unknown or "unsupported params" in str(error)):
            return measure_class(name)(**params)  # the error that names the parameter
        if unknown:
            raise UsageError(
                f"{error}; known are {', '.join(INDEX)} and the measures of ir-measures"
            ) from None
        raise


_GRAMMAR = re.compile(
    r"\s*(?P<name>[A-Za-z_][\w]*)\s*(?:\((?P<params>.*)\))?\s*(?:@\s*(?P<cutoff>[0-9]{1,9}(?:\.[0-9]{1,9})?))?\s*",
    re.S,
)


def split_name(text: str) -> tuple[str, Mapping[str, Any], Any]:
    """Take `NAME(param=value, …)@cutoff` apart.

    >>> split_name("GF(attr='HINDEX', div='RNOD')@20")
    ('GF', {'attr': 'HINDEX', 'div': 'RNOD'}, 20)
    """
    expected = "expected NAME, NAME@cutoff or NAME(param=value,…)@cutoff"
    match = _GRAMMAR.fullmatch(text)
    if not match:
        raise UsageError(f"cannot read the measure {escape(text)!r}; {expected}")
    try:
        call = ast.parse(f"f({match['params'] or ''})", mode="eval").body
        # `f(a)(b)` parses too, as a call of a call: only one pair of brackets is meant.
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        params = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords if word.arg}
        if len(params) < len(call.keywords):  # one given twice, or a **
            raise ValueError
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise UsageError(f"cannot read the parameters of the measure {escape(text)!r}; {expected}") from None
    cutoff: Any = match["cutoff"]  # a decimal is for IPrec of ir-measures; others refuse it by themselves
    return match["name"], params, (float(cutoff) if "." in cutoff else int(cutoff)) if cutoff else None

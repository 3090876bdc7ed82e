"""fairevals scores ranked lists for usefulness, and for fairness to what is ranked.

>>> import fairevals as fe
>>> pl = fe.PlackettLuce([1.0, 0.0])
>>> pl.exposure(attention="reciprocal").value.round(4)
array([0.8655, 0.6345])
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairevals.ecosystem.hook import offer_measures

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from fairevals.collection.groups import Attribute
    from fairevals.collection.qrels import Qrels, read_qrels
    from fairevals.collection.run import Run, read_run
    from fairevals.ecosystem.context import task
    from fairevals.errors import FairevalsError, InputError, UsageError
    from fairevals.io.task import Task, read_task
    from fairevals.measures import parse_measure
    from fairevals.policy.plackett_luce import PlackettLuce
    from fairevals.result import Result, compare, correlate, evaluate

# Names are imported when first used, so that `fairevals --help` need not load numpy.
_NAMES = {
    "collection.groups": ("Attribute",),
    "collection.qrels": ("Qrels", "read_qrels"),
    "collection.run": ("Run", "read_run"),
    "ecosystem.context": ("task",),
    "errors": ("FairevalsError", "InputError", "UsageError"),
    "result": ("Result", "compare", "correlate", "evaluate"),
    "io.task": ("Task", "read_task"),
    "measures": ("parse_measure",),
    "policy.plackett_luce": ("PlackettLuce",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Attribute",
    "FairevalsError",
    "InputError",
    "PlackettLuce",
    "Qrels",
    "Result",
    "Run",
    "Task",
    "UsageError",
    "__version__",
    "compare",
    "correlate",
    "evaluate",
    "parse_measure",
    "read_qrels",
    "read_run",
    "read_task",
    "task",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fairevals' has no attribute {name!r}")
    return getattr(import_module(f"fairevals.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


# So that ir-measures knows this package's measures too, whichever of the two is imported first.
offer_measures()

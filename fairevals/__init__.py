"""fairevals scores ranked lists for usefulness, and for fairness to what is ranked.

>>> import fairevals as fe
>>> pl = fe.PlackettLuce([1.0, 0.0])
>>> pl.exposure(attention="reciprocal").value.round(4)
array([0.8655, 0.6345])

Every measure can be imported by its name, too:

>>> from fairevals import nDCG
>>> nDCG(dcg="exp-log2") @ 10
nDCG(dcg='exp-log2')@10
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

if TYPE_CHECKING:
    from fairevals.api import compare, correlate, evaluate, exposure
    from fairevals.collection.groups import Attribute
    from fairevals.collection.intersections import Intersection
    from fairevals.collection.qrels import Qrels, read_qrels
    from fairevals.collection.run import Run, read_run
    from fairevals.ecosystem.context import task
    from fairevals.errors import FairevalsError, FairevalsWarning, InputError, UsageError
    from fairevals.io.task import Task, read_task
    from fairevals.measures import (
        across_topics,
        awrf,
        disparity,
        err,
        expected_exposure,
        fa_ir,
        gf,
        joint_exposure,
        ndcg,
        pairwise,
        parse_measure,
        precision,
        prefix,
        ratios,
        representation,
        shares,
    )
    from fairevals.policy.plackett_luce import PlackettLuce
    from fairevals.reranking.runs import Reranked, rerank
    from fairevals.result import Result
    from fairevals.training.learners import (
        DELTR,
        BanditRank,
        ExposureLP,
        FairPGRank,
        ListNet,
        PGRank,
        Ridge,
        load_policy,
    )

    # As in `fairevals.measures.index`; type checkers cannot read that.
    nDCG = ndcg.NDCG
    ERR = err.ERR
    iRBU = err.IRBU
    P = precision.P
    AP = precision.AP
    RR = precision.RR
    RBP = ndcg.RBP
    GF = gf.GF
    GFR = gf.GFR
    D_ind = disparity.DInd
    D_group = disparity.DGroup
    D_cross = disparity.DCross
    EE_L = expected_exposure.EEL
    EE_D = expected_exposure.EED
    EE_R = expected_exposure.EER
    UEXP = expected_exposure.UEXP
    AWRF = awrf.AWRF
    M1 = awrf.M1
    DP = ratios.DP
    EUR = ratios.EUR
    RUR = ratios.RUR
    IAA = shares.IAA
    Unjudged = shares.Unjudged
    Gini = across_topics.Gini
    Coverage = across_topics.Coverage
    MMF = across_topics.MMF
    L2 = across_topics.L2
    JME = joint_exposure.JME
    rND = prefix.RND
    rKL = prefix.RKL
    rRD = prefix.RRD
    FAIR = fa_ir.FAIR
    NDKL = representation.NDKL
    Skew = representation.Skew
    Infeasible = representation.Infeasible
    ARP = pairwise.ARP

# Names are imported when first used, so that `fairevals --help` need not load numpy.
_NAMES = {
    "api": ("compare", "correlate", "evaluate", "exposure"),
    "collection.groups": ("Attribute",),
    "collection.intersections": ("Intersection",),
    "collection.qrels": ("Qrels", "read_qrels"),
    "collection.run": ("Run", "read_run"),
    "ecosystem.context": ("task",),
    "errors": ("FairevalsError", "FairevalsWarning", "InputError", "UsageError"),
    "result": ("Result",),
    "io.task": ("Task", "read_task"),
    "measures": ("parse_measure",),
    "policy.plackett_luce": ("PlackettLuce",),
    "reranking.runs": ("Reranked", "rerank"),
    "training.learners": (
        *("PGRank", "FairPGRank", "BanditRank", "ListNet", "DELTR", "Ridge", "ExposureLP"),
        "load_policy",
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "DELTR",
    "Attribute",
    "BanditRank",
    "ExposureLP",
    "FairPGRank",
    "FairevalsError",
    "FairevalsWarning",
    "InputError",
    "Intersection",
    "ListNet",
    "PGRank",
    "PlackettLuce",
    "Qrels",
    "Reranked",
    "Result",
    "Ridge",
    "Run",
    "Task",
    "UsageError",
    "__version__",
    "compare",
    "correlate",
    "evaluate",
    "exposure",
    "load_policy",
    "parse_measure",
    "read_qrels",
    "read_run",
    "read_task",
    "rerank",
    "task",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"fairevals.{_HOMES[name]}"), name)
    index = import_module("fairevals.measures.index")
    if name in index.INDEX:
        return index.measure_class(name)
    raise AttributeError(f"module 'fairevals' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *import_module("fairevals.measures.index").INDEX]


def _add_to_ir_measures() -> None:
    """Make this package's measures known to ir-measures, whichever of the two is imported first."""
    try:
        import_module("fairevals.ecosystem.provider").register()
    except Exception as error:  # a version of ir-measures that works differently must not prevent the import
        if isinstance(error, ModuleNotFoundError) and error.name == "ir_measures":
            return
        import warnings

        from fairevals.errors import FairevalsWarning

        reason = f"{type(error).__name__}: {error}"
        message = f"fairevals could not add its measures to ir-measures ({reason})"
        warnings.warn(FairevalsWarning(message), stacklevel=3)


def _is_program() -> bool:
    """Whether this is the start of the program `fairevals`, or of `python -m fairevals`."""
    name = sys.argv[0] if getattr(sys, "argv", None) else ""
    return name.endswith(("/fairevals", "\\fairevals.exe")) or (name == "-m" and "fairevals" in sys.orig_argv)


if not _is_program():  # the program never needs this, and starts faster without it
    _add_to_ir_measures()

"""Compare with other tools on the same tiny inputs: the facts behind docs/peers.md.

    python docs/check_peers.py            run every installed tool and print its answers
    python docs/check_peers.py --update   put the answers on the page, if all tools are installed

The tools are optional: pip install pytrec_eval-terrier ir-measures ranx pyNTCIREVAL FairRankTune
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

PAGE = Path(__file__).with_name("peers.md")
BLOCK = re.compile(r"^```text\n.*?^```$", re.S | re.M)

Judged: TypeAlias = dict[str, dict[str, Any]]
Asked: TypeAlias = tuple[str, Judged, Judged, str]

# Topics are numbers because gdeval, which ir-measures calls for ERR, reads only those.
CASES: list[Asked] = [
    ("equal scores, the relevant b listed second", {"1": {"b": 1}}, {"1": {"a": 1.0, "b": 1.0}}, "RR"),
    ("equal scores, the relevant b listed first", {"1": {"b": 1}}, {"1": {"b": 1.0, "a": 1.0}}, "RR"),
    ("equal scores, the relevant a listed second", {"1": {"a": 1}}, {"1": {"b": 1.0, "a": 1.0}}, "RR"),
    (
        "scores 1 and 0.99999999, the second relevant",
        {"1": {"b": 1}},
        {"1": {"a": 1.0, "b": 0.99999999}},
        "RR",
    ),
    ("one of two judged topics left out", {"1": {"b": 1}, "2": {"c": 1}}, {"1": {"b": 1.0}}, "nDCG@10"),
    (
        "one of two topics without relevant documents",
        {"1": {"b": 1}, "2": {"c": 0}},
        {"1": {"b": 1.0}, "2": {"c": 1.0}},
        "nDCG@10",
    ),
    ("an unjudged document first", {"1": {"b": 1}}, {"1": {"u": 2.0, "b": 1.0}}, "nDCG@10"),
    ("a grade of -1 first", {"1": {"a": -1, "b": 1}}, {"1": {"a": 2.0, "b": 1.0}}, "nDCG@10"),
    ("a grade of 1.5", {"1": {"a": 1.5, "b": 1}}, {"1": {"a": 1.0, "b": 2.0}}, "nDCG@10"),
    ("grades 1, 3 in this order", {"1": {"a": 3, "b": 1}}, {"1": {"a": 1.0, "b": 2.0}}, "nDCG@10"),
    (
        "grades 2, 0, 1 in this order",
        {"1": {"a": 2, "b": 1, "c": 0}},
        {"1": {"a": 3.0, "c": 2.0, "b": 1.0}},
        "ERR@20",
    ),
]
GROUP_OF = {"adaeze": "women", "bruno": "men", "chen": "women", "dana": "women", "emil": "men"}
GRADES = {"bruno": 2, "emil": 0, "adaeze": 2, "chen": 1, "dana": 1}
"""In the order of the ranking: the example of the first page."""
TARGET = [0.6, 0.4]
"""Of women and men."""


def fairevals(qrels: Judged, run: Judged, measure: str) -> float:
    """The mean that this package prints."""
    import fairevals as fe

    return float(fe.evaluate(run, qrels, [measure]).frame().value[0])


def pytrec_eval(qrels: Judged, run: Judged, measure: str) -> float:
    """The mean that trec_eval computes without its option -c."""
    import pytrec_eval as tool

    name = {"RR": "recip_rank", "nDCG@10": "ndcg_cut_10"}[measure]
    results = tool.RelevanceEvaluator(qrels, {name}).evaluate(run)
    return sum(values[name] for values in results.values()) / len(results)


def ir_measures(qrels: Judged, run: Judged, measure: str) -> float:
    """The aggregate of its default provider."""
    import ir_measures as tool

    parsed = tool.parse_measure(measure)
    return float(tool.calc_aggregate([parsed], qrels, run)[parsed])


def ranx(qrels: Judged, run: Judged, measure: str) -> float:
    """The mean that ranx computes."""
    import ranx as tool

    name = {"RR": "mrr", "nDCG@10": "ndcg@10"}[measure]
    return float(tool.evaluate(tool.Qrels(qrels), tool.Run(run), name))


def ntcireval(qrels: Judged, run: Judged, measure: str, gains: Callable[[int], int] = int) -> float:
    """The mean over topics that pyNTCIREVAL computes; it ranks by the order of lines."""
    from pyNTCIREVAL import Labeler, metrics

    values = []
    for topic, grades in qrels.items():
        labeler = Labeler(grades)
        levels = max(*grades.values(), 1)
        counts = labeler.compute_per_level_doc_num(levels + 1)
        gained = [gains(grade) for grade in range(1, levels + 1)]
        tool = {
            "RR": lambda _: metrics.RR(),
            "nDCG@10": lambda n: metrics.MSnDCG(n, gained, 10),  # noqa: B023 -- called at once
            "ERR@20": lambda n: metrics.ERR(n, gained),  # noqa: B023
        }[measure](counts)
        lines = sorted(run[topic], key=lambda doc: -run[topic][doc])
        values.append(tool.compute(labeler.label(lines)))
    return sum(values) / len(values)


def ntcireval_exponential(qrels: Judged, run: Judged, measure: str) -> float:
    """The same with gains 2^g−1."""
    return ntcireval(qrels, run, measure, lambda grade: 2**grade - 1)


PEERS: dict[str, tuple[str, Callable[..., float]]] = {
    "fairevals": ("fairevals", fairevals),
    "pytrec_eval": ("pytrec_eval-terrier", pytrec_eval),
    "ir_measures": ("ir-measures", ir_measures),
    "ranx": ("ranx", ranx),
    "pyNTCIREVAL": ("pyNTCIREVAL", ntcireval),
    "pyNTCIREVAL, gains 2^g-1": ("pyNTCIREVAL", ntcireval_exponential),
}


def installed(peer: str) -> bool:
    """Whether the tool is installed."""
    return importlib.util.find_spec(peer.split(",")[0]) is not None


def answers(peer: str) -> Iterator[str]:
    """One line per case: the value, "none" if the tool has no such measure, or the error that it raises."""
    _, ask = PEERS[peer]
    for label, qrels, run, measure in CASES:
        if peer.endswith("2^g-1") and not label.startswith("grades"):
            continue  # the gains make no difference there
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                answer = f"{ask(qrels, run, measure):.4f}"
        except KeyError:
            answer = "none"
        except Exception as error:
            answer = type(error).__name__
        yield f"{peer}: {measure}, {label}: {answer}"


def fairranktune() -> Iterator[str]:
    """FairRankTune's measures of the example with five people."""
    import FairRankTune as tool  # noqa: N813
    import pandas as pd

    ranking = pd.DataFrame({0: list(GRADES)})
    half = pd.DataFrame({0: [grade / 2 for grade in GRADES.values()]})
    twice = (
        pd.concat([ranking, ranking[::-1].reset_index(drop=True)], axis=1),
        pd.concat([half, half], axis=1),
    )
    for frame in twice:
        frame.columns = [0, 1]
    ratio = "MinMaxRatio"
    values = {
        "EXP, ratio": tool.EXP(ranking, GROUP_OF, ratio)[0],
        "EXPU, ratio": tool.EXPU(ranking, GROUP_OF, half, ratio)[0],
        "ERBP, ratio": tool.ERBP(ranking, GROUP_OF, 0.8, ratio)[0],
        "AWRF, ratio": tool.AWRF(ranking, GROUP_OF, 0.5, ratio)[0],
        "IAA": tool.IAA(ranking, half),
        "IAA of that ranking and its reverse": tool.IAA(*twice),
        "NDKL": tool.NDKL(ranking, GROUP_OF),
        "ARP, difference": tool.ARP(ranking, GROUP_OF, "MaxMinDiff")[0],
    }
    for name, value in values.items():
        yield f"FairRankTune: {name}: {float(value):.4f}"


def trec_fair() -> Iterator[str]:
    """The formulas of the TREC 2022 track's published code: discount, nDCG of 0/1 grades, AWRF, EE-L, underexposure."""
    import numpy as np
    from scipy.spatial.distance import jensenshannon

    weights = 1 / np.log2(np.maximum(np.arange(1, 6), 2))
    relevant = np.array([grade > 0 for grade in GRADES.values()])
    women = np.array([GROUP_OF[doc] == "women" for doc in GRADES])
    ndcg = weights[relevant].sum() / weights[: relevant.sum()].sum()
    awrf = 1 - jensenshannon([weights[women].sum(), weights[~women].sum()], TARGET) ** 2
    target = np.array(TARGET) * weights.sum()
    exposure = np.array([weights[relevant & women].sum(), weights[relevant & ~women].sum()])
    under = np.maximum(
        relevant / relevant.sum() - weights / weights.sum(), 0
    )  # all relevant pages have one target
    groups = np.array([under[women].sum(), under[~women].sum()])
    values = {"nDCG": ndcg, "AWRF": awrf, "Score": ndcg * awrf, "EE-L": np.square(exposure - target).sum()}
    values |= {"EE-D": np.square(exposure).sum(), "EE-R": exposure @ target}
    values |= {"L2UEXP": np.square(groups).sum(), "TotUEXP": groups.sum()}
    for name, value in values.items():
        yield f"TREC Fair 2022: {name}: {float(value):.4f}"


def ours() -> Iterator[str]:
    """This package's measures that are closest to the two above."""
    import math

    import fairevals as fe

    women = fe.Attribute.of("SEX", GROUP_OF, ["women", "men"], target=TARGET)
    run = {"1": {doc: -float(rank) for rank, doc in enumerate(GRADES)}}
    given: dict[str, Any] = {"groups": {"SEX": women}}
    side = "attr='SEX',protected='women'"
    ratios = [f"DP({side})", f"EUR({side})", f"DP({side},attention='rbp(0.8)')"]
    for name, value in zip(
        ratios, fe.evaluate(run, {"1": GRADES}, ratios, **given).frame().value, strict=True
    ):
        yield f"fairevals: exp(-|{name}|): {math.exp(-abs(value)):.4f}"
    others = ["AWRF(attr='SEX',attention='geometric(0.5)')", "IAA", "NDKL(attr='SEX')", "ARP(attr='SEX')"]
    for name, value in zip(
        others, fe.evaluate(run, {"1": GRADES}, others, **given).frame().value, strict=True
    ):
        yield f"fairevals: {name}: {value:.4f}"
    binary = {
        "1": {doc: 1 for doc, grade in GRADES.items() if grade > 0}
    }  # TREC's qrels list relevant pages only
    trec = [f"{name}(attr='SEX',attention='trecfair',base='e')@5" for name in ("AWRF", "M1")]
    task = "attr='SEX',target='task',relevant_only=True,attention='trecfair'"
    trec += [f"{name}({task})@5" for name in ("EE_L", "EE_D", "EE_R")]
    trec += ["UEXP(attr='SEX',attention='trecfair')@5", "UEXP(attr='SEX',total=True,attention='trecfair')@5"]
    for name, value in zip(trec, fe.evaluate(run, binary, trec, **given).frame().value, strict=True):
        yield f"fairevals, relevant or not: {name}: {value:.4f}"


def everything() -> list[str]:
    """All lines of all installed tools."""
    logging.disable()  # some tools log a lot before they fail
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines = [line for peer in PEERS if installed(peer) for line in answers(peer)]
            lines += [*ours(), *trec_fair()]
            return lines + (list(fairranktune()) if installed("FairRankTune") else [])
    finally:
        logging.disable(logging.NOTSET)


def versions() -> str:
    """The versions of the tools in one line; "?" for a tool that is not installed."""
    names = {name: package for name, (package, _) in PEERS.items() if "," not in name}
    tools = {**names, "FairRankTune": "FairRankTune"}
    return ", ".join(f"{package} {version(package) if installed(n) else '?'}" for n, package in tools.items())


def main(arguments: list[str]) -> int:
    """Print the answers, or put them on the page."""
    text = "".join(f"{line}\n" for line in (versions(), "", *everything()))
    if "--update" not in arguments:
        sys.stdout.write(text)
    elif "?" in versions():
        sys.stderr.write(f"not all are installed: {versions()}\n")
        return 1
    else:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(BLOCK.sub(lambda _: f"```text\n{text}```", page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

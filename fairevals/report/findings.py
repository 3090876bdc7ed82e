"""The first sentences of a report: who is best at what, and whether that is more than chance."""

import math
from dataclasses import dataclass

import numpy as np

from fairevals.evaluation.leaderboard import ranking_of_runs
from fairevals.io.out import DECIMALS
from fairevals.measures import Measure
from fairevals.report.board import BOTH, FAIRNESS, USEFULNESS, Board, role

MAX_FINDINGS = 6


@dataclass(frozen=True)
class Finding:
    """The best run by one measure. Runs and measures are places in the scores."""

    question: str
    measure: int
    run: int
    """The best of the runs that were tested against each other; the best of all if there was no test."""
    tested: int
    """How many runs were tested against each other; 0 without a test."""
    tied: tuple[int, ...]
    """Those of them that do not differ significantly from the best; without a test, those that are equal to it in
    the printed digits or within the sampling error."""
    none_differ: bool
    """Whether no two of them differ significantly."""
    better: tuple[int, ...]
    """Runs outside the test (baselines and references) with a better mean."""


def findings(board: Board) -> list[Finding]:
    """One finding for each question that a measure of the report answers, at most `MAX_FINDINGS`.

    The questions are of utility, of fairness by each attribute, and of both in one; each is answered by the first of
    its measures that has a value for a complete run.
    """
    found: dict[str, Finding] = {}
    for m, measure in enumerate(board.scores.measures):
        question = _question(measure)
        if question and question not in found and (one := _finding(board, question, m)) is not None:
            found[question] = one
    order = sorted(found, key=lambda text: (text == "Best overall", text != "Most useful"))
    return [found[question] for question in order][:MAX_FINDINGS]


def _question(measure: Measure) -> str:
    used = " and ".join(measure.attributes_used())
    fairest = f"Fairest by {used}" if used else "Fairest to each document"
    return {USEFULNESS: "Most useful", FAIRNESS: fairest, BOTH: "Best overall"}.get(role(measure), "")


def _finding(board: Board, question: str, m: int) -> Finding | None:
    entries, group = [row[m] for row in board.entries], board.groups[m]
    order = [
        r
        for r in ranking_of_runs(board.scores, m)
        if not (math.isnan(entries[r].cost) or entries[r].incomplete)
    ]
    if not order:
        return None
    tested = [r for r in order if entries[r].letters]
    if not tested:
        close = tuple(r for r in order[1:] if entries[r].best and entries[order[0]].best)
        return Finding(question, m, order[0], 0, close, none_differ=False, better=())
    best = tested[0]
    tied = [r for r in tested[1:] if set(entries[r].letters) & set(entries[best].letters)]
    none_differ = bool(np.all(group.tukey.p >= board.alpha))
    better = [r for r in order if round(entries[r].cost, DECIMALS) < round(entries[best].cost, DECIMALS)]
    return Finding(question, m, best, len(tested), tuple(tied), none_differ=none_differ, better=tuple(better))

"""The first sentences of a report: who is best at what, and whether that is more than chance."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairevals.evaluation.leaderboard import ranking_of_runs
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
    """Those of them that do not differ significantly from the best; without a test, those that only sampling error
    separates from it."""
    none_differ: bool
    """Whether no two of them differ significantly."""
    better: tuple[int, ...]
    """Runs outside the test (baselines and references) with a better mean."""


def findings(board: Board) -> list[Finding]:
    """One finding for each question that a measure of the report answers, at most `MAX_FINDINGS`."""
    found = (_finding(board, question, m) for question, m in _questions(board))
    return [one for one in found if one is not None][:MAX_FINDINGS]


def _questions(board: Board) -> Iterator[tuple[str, int]]:
    """A question for each kind of measure: utility, fairness by each attribute, both in one; with its first measure."""
    measures = board.scores.measures
    questions: dict[str, int] = {}
    for m, measure in enumerate(measures):
        questions.setdefault(_question(measure), m)
    kinds = sorted(questions, key=lambda text: (text == "Best overall", text != "Most useful"))
    yield from ((text, questions[text]) for text in kinds if text)


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
    better = order[: order.index(best)]
    return Finding(question, m, best, len(tested), tuple(tied), none_differ=none_differ, better=tuple(better))

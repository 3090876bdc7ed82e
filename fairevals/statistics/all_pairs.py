"""All runs against each other by randomised Tukey HSD: letters, and p for every pair."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fairevals.evaluation.leaderboard import head, ranking_of_runs
from fairevals.evaluation.scores import Scores
from fairevals.io.out import Cell, Table, format_p
from fairevals.statistics.compare import (
    COMPARISON_COLUMNS,
    Comparison,
    Comparisons,
    check_alpha,
    comparison,
    full_table,
    remarks,
    within_family,
)
from fairevals.statistics.tukey import RunGroups, significance_groups
from fairevals.typing import Floats

MATRIX_RUNS = 6
"""Tables for people have the matrix of p-values for up to so many runs, which fit into 80 columns."""


@dataclass(frozen=True, repr=False)
class AllPairs(Comparisons):
    """Every pair of runs on every measure. In `rows`, the `baseline` is the run of a pair that is worse by its mean."""

    groups: tuple[RunGroups, ...]
    """The letters and the test of each measure."""

    def full(self) -> Table:
        """One row per measure and pair, the smallest p first, with all digits.

        The columns are those of comparisons with a baseline, which is called `other`, and the letters of both runs.
        """
        table = full_table(self)
        letters = {str(m): g for m, g in zip(self.scores.measures, self.groups, strict=True)}
        place = {run: r for r, run in enumerate(self.scores.runs)}
        rows = [
            (*row, *(letters[one.measure].letters[place[run]] for run in (one.run, one.baseline)))
            for row, one in zip(table.rows, self.rows, strict=True)
        ]
        columns = [name.replace("baseline", "other") for name in COMPARISON_COLUMNS]
        return Table((*columns, "letters", "other_letters"), tuple(rows))

    def summaries(self, style: str, places: int) -> tuple[list[Table], list[str]]:
        """For each measure the runs, best first, with letters and the p-values of their differences to those above."""
        sizes = [len(one.family.places) for one in self.groups]
        notes = [
            "randomised Tukey HSD, p corrected for all pairs of runs of a measure by the test itself; "
            f"runs that share a letter do not differ at α = {self.alpha:g}"
        ]
        if min(sizes) <= MATRIX_RUNS:
            mark = "*" if style == "table" else "bold:"
            notes.append(
                f"columns 1, 2, …: p of the difference to the run with that number; {mark} p < {self.alpha:g}"
            )
        for size, measure in zip(sizes, self.scores.measures, strict=True):
            if size > MATRIX_RUNS:
                rows = self.of(str(measure))
                differ = sum(row.significant for row in rows)
                notes.append(f"{self.scores.label(measure)}: {differ} of {len(rows)} pairs differ")
        notes += dict.fromkeys(one.note for one in self.groups)
        tables = [self._matrix(m, places) for m in range(len(self.groups))]
        return tables, [*notes, *remarks(self)]

    def _matrix(self, m: int, places: int) -> Table:
        scores, group = self.scores, self.groups[m]
        order, p = best_first(scores, m, group)
        outside = [r for r in ranking_of_runs(scores, m) if r not in group.family.places]
        compared = len(order) - 1 if len(order) <= MATRIX_RUNS else 0
        rows: list[tuple[Cell, ...]] = []
        for place, r in enumerate([*order, *outside]):
            above = [format_p(p[place, other]) for other in range(min(place, compared))] if r in order else []
            blanks = [""] * (compared - len(above))
            number = str(place + 1) if r in order else ""
            rows.append((number, scores.runs[r], scores.mean(r, m).value, group.letters[r], *above, *blanks))
        marked = {(i, 4 + j) for i, j in np.argwhere(p < self.alpha).tolist() if j < min(i, compared)}
        columns = ("#", "run", head(scores, m), "letters", *(str(n + 1) for n in range(compared)))
        return Table(columns, tuple(rows), frozenset(marked), keys=2)


def best_first(scores: Scores, m: int, group: RunGroups) -> tuple[list[int], Floats]:
    """The positions of the runs of a family, best first on the common topics, and their p-values in that order."""
    # Differences are of costs: the best run has the smallest sum.
    order = np.argsort(np.nan_to_num(group.tukey.differences).sum(axis=1), kind="stable").tolist()
    return [group.family.places[i] for i in order], group.tukey.p[np.ix_(order, order)]


def all_pairs(
    scores: Scores, *, alpha: float = 0.05, resamples: int | None = None, seed: int = 0
) -> AllPairs:
    """Compare every two runs of each measure's family (see `tukey_family`) by randomised Tukey HSD.

    >>> from fairevals.measures import parse_measure
    >>> values = np.array([[[0.9, 0.8, 0.9, 0.7]], [[0.1, 0.1, 0.2, 0.0]], [[0.2, 0.0, 0.1, 0.1]]])
    >>> scores = Scores(("a", "b", "c"), (parse_measure("nDCG@10"),), tuple("1234"), values, values * np.nan)
    >>> print(str(all_pairs(scores)).partition("randomised")[0])
    #   run   nDCG@10 ↑   letters   1       2
    ─────────────────────────────────────────────
    1   a        0.8250   a
    2   b        0.1000   b         0.034 *
    3   c        0.1000   b         0.034 * 1.000
    <BLANKLINE>
    """
    check_alpha(alpha)
    groups, rows = [], list[Comparison]()
    for m in range(len(scores.measures)):
        group = significance_groups(scores, m, alpha=alpha, resamples=resamples, seed=seed)
        groups.append(group)
        order, _ = best_first(scores, m, group)
        found = []
        for r, b in combinations(order, 2):
            tested = within_family(scores, m, r, b, group)
            found.append(comparison(scores, m, (r, b), tested, tested[1].p, alpha))
        rows += sorted(found, key=lambda row: (math.isnan(row.p), row.p, -abs(row.difference)))
    return AllPairs(scores, "", "tukey", "none", alpha, tuple(rows), (), tuple(groups))

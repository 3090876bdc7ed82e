"""Everything that a report shows, computed once; the page, report.json and the figures are made from it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairevals.collection.blocks import Requirements
from fairevals.errors import escape, pluralize
from fairevals.evaluation import Collection, Plan, load, score
from fairevals.evaluation.scores import Scores
from fairevals.io.streams import reads_once
from fairevals.report.board import Board, board
from fairevals.report.groups import Distribution, distribution
from fairevals.report.merits import Merits, exposure_by_merit
from fairevals.report.roles import BOTH, FAIRNESS, UTILITY, role, with_both_sides
from fairevals.report.sources import FileInfo, files_of, versions
from fairevals.report.style import labels
from fairevals.report.tradeoff import pareto
from fairevals.report.trained import TrainingSummary, read_summaries
from fairevals.statistics import (
    NEGLIGIBLE,
    Comparisons,
    Paired,
    RankCorrelations,
    compare,
    pair,
    rank_correlations,
    remarks,
)
from fairevals.statistics.pairing import run_number

PANELS = 6
"""So many runs have their distributions and exposures drawn."""
MOST_ATTRIBUTES = 12
DEPTH = 20
"""Distributions are drawn along so many ranks, unless the task has a cutoff."""


@dataclass(frozen=True)
class ReportOptions:
    """What a report is to be about, beside the runs."""

    baseline: int | str | None = None
    """A run's place or tag; the first run unless told."""
    references: tuple[int | str, ...] = ()
    """Runs that are reference policies, by place or tag."""
    test: str = "ttest"
    correction: str | None = None
    trained: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Report:
    """What the page shows."""

    collection: Collection
    plan: Plan
    asked: int
    """The first so many measures were asked for; the rest was added to have both sides."""
    scores: Scores
    board: Board
    baseline: int
    baseline_given: bool
    references: frozenset[int]
    comparisons: Comparisons | None
    correlations: RankCorrelations | None
    across: int | None
    """The measure of usefulness that the trade-off is drawn with, if there is one."""
    up: tuple[int, ...]
    """The measures of fairness that it is drawn with."""
    panels: tuple[int, ...]
    """The runs whose distributions and exposures are drawn."""
    distributions: tuple[tuple[Distribution, ...], ...]
    """For each attribute."""
    merits: tuple[Merits, ...]
    trained: TrainingSummary | None
    files: tuple[FileInfo, ...]
    versions: dict[str, str]
    remarks: tuple[str, ...]

    @property
    def title(self) -> str:
        """The task's name."""
        return self.collection.task.name or "fairevals report"

    def asked_scores(self) -> Scores:
        """The scores of the measures that were asked for."""
        scores, n = self.scores, self.asked
        return replace(scores, measures=scores.measures[:n], values=scores.values[:, :n], se=scores.se[:, :n])

    def focus(self) -> Paired | None:
        """The difference that is looked at first: the best other run against the baseline, on the first measure."""
        others = [r for r in self.board.ranked(0) if r != self.baseline]
        return pair(self.scores, 0, others[0], self.baseline) if others else None

    def front(self, across: int, up: int) -> list[int]:
        """The runs on the Pareto front of two measures."""
        costs = np.array([[row[across].cost, row[up].cost] for row in self.board.entries])
        return [int(r) for r in np.flatnonzero(pareto(costs))]


def gather(
    runs: Sequence[Any],
    collection: Collection,
    plan: Plan,
    wish: ReportOptions,
    *,
    given: bool = False,
    qrels: Any = None,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Score the runs and compute all that the report needs.

    `given` says that the measures were asked for by name, so that none is added but the parts of composed ones;
    `qrels` is the file, where it is not the task's.
    """
    trained = read_summaries(wish.trained)  # a wrong file is told before the work
    collection = collection.with_attributes(_available(collection, plan))
    asked = len(plan.measures)
    plan = with_both_sides(plan, collection, given=given)
    whole = replace(plan, requirements=Requirements(None, True, ()))
    files = files_of(
        collection.task,
        qrels if qrels is not None else collection.task.qrels,
        tuple(collection.attributes),
        runs,
        wish.trained,
    )
    # What can be read only once is needed again for the figures.
    runs = [load(run, collection, whole) if isinstance(run, str) and reads_once(run) else run for run in runs]
    scores, said = _scored(runs, collection, plan, jobs, progress)
    place = run_number(scores, 0 if wish.baseline is None else wish.baseline)
    references = frozenset(run_number(scores, run) for run in wish.references)
    seed = plan.policy.seed
    found = board(scores, baseline=None if wish.baseline is None else place, references=references, seed=seed)
    several = len(scores.runs) > 1
    comparisons = (
        compare(
            scores,
            place,
            test=wish.test,
            correction=wish.correction,
            seed=seed,
            resamples=_resamples(wish, found),
        )
        if several
        else None
    )
    roles = [role(measure) for measure in scores.measures]
    across = roles.index(UTILITY) if UTILITY in roles else None
    up = [m for m, kind in enumerate(roles) if kind == FAIRNESS]
    up = up or [m for m, kind in enumerate(roles) if kind == BOTH]
    up = up if across is not None else []
    report = Report(
        collection=collection,
        plan=plan,
        asked=asked,
        scores=scores,
        board=found,
        baseline=place,
        baseline_given=wish.baseline is not None,
        references=references,
        comparisons=comparisons,
        correlations=rank_correlations(scores, seed=seed) if several and len(scores.measures) > 1 else None,
        across=across,
        up=tuple(up),
        panels=(),
        distributions=(),
        merits=(),
        trained=trained,
        files=files,
        versions=versions(),
        remarks=(),
    )
    report = replace(report, panels=_panels(report))
    report = _with_panels(report, runs, whole)
    return replace(report, remarks=tuple(_remarks(report, said)))


def _available(collection: Collection, plan: Plan) -> list[str]:
    """The attributes that can be shown: a task may declare one that has no memberships yet, if no measure needs it."""
    specs = collection.task.attributes
    return [
        name
        for name in collection.attribute_names
        if name in collection.groups
        or name in plan.requirements.attributes
        or specs[name].memberships is not None
    ]


def _resamples(wish: ReportOptions, found: Board) -> int:
    return 10_000 if wish.test == "bootstrap" else found.resamples


def _scored(
    runs: Sequence[Any],
    collection: Collection,
    plan: Plan,
    jobs: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[Scores, list[str]]:
    """The scores, and what was warned of while reading: it is told as always, and stands in the report too."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scores = score(runs, collection, plan, jobs=jobs, progress=progress)
    for warning in caught:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return scores, list(dict.fromkeys(str(warning.message) for warning in caught))


def _panels(report: Report) -> tuple[int, ...]:
    """The runs worth a closer look: the baseline, the best of each kind, the front, references, then the next best."""
    found = report.board
    wanted = [report.baseline, found.order[0]]
    if report.across is not None:
        wanted += [found.ranked(report.across)[0], *(found.ranked(m)[0] for m in report.up)]
        for m in report.up:
            wanted += report.front(report.across, m)
    wanted += [*sorted(report.references), *found.order]
    chosen = list(dict.fromkeys(wanted))[:PANELS]
    return tuple(r for r in found.order if r in chosen)


def _with_panels(report: Report, runs: Sequence[Any], whole: Plan) -> Report:
    names = labels(report.scores.runs, 28)
    task = report.collection.task
    collection = report.collection
    attributes = list(collection.attributes)[:MOST_ATTRIBUTES]
    shares: dict[str, list[Distribution]] = {name: [] for name in attributes}
    merits = []
    for r in report.panels:
        run = load(runs[r], collection, whole)
        policy = report.plan.policy
        for name in attributes:
            one = distribution(run, collection, name, depth=min(task.cutoff or DEPTH, 100), policy=policy)
            shares[name].append(replace(one, run=names[r]))
        merits.append(replace(exposure_by_merit(run, collection, policy, task.cutoff), run=names[r]))
    kept = tuple(tuple(found) for found in shares.values() if any(one.topics for one in found))
    return replace(report, distributions=kept, merits=tuple(merits))


def _remarks(report: Report, said: Sequence[str]) -> list[str]:
    scores = report.scores
    lines = [*scores.notes, *said]
    for m, count in enumerate(scores.undefined().tolist()):
        if count and report.comparisons is None:  # else the comparisons tell it
            lines.append(
                f"{scores.measures[m]} is undefined on up to {count} of {pluralize(len(scores.topics), 'topic')}: "
                "these are not in its mean"
            )
    added = [str(measure) for measure in scores.measures[report.asked :]]
    if added:
        lines.append(f"added, to show usefulness and fairness apart: {', '.join(added)}")
    noisy = [
        f"{scores.measures[m]} of {escape(scores.runs[r])}"
        for r, row in enumerate(report.board.entries)
        for m, entry in enumerate(row)
        if entry.notable
    ]
    if noisy:
        more = f" and {len(noisy) - 5} more" if len(noisy) > 5 else ""
        lines.append(
            f"error from sampling rankings above {100 * NEGLIGIBLE:g} % of the standard error of the mean "
            f"(draw more with --samples): {', '.join(noisy[:5])}{more}"
        )
    if report.comparisons is not None:
        lines += remarks(report.comparisons)
    if len(report.panels) < len(scores.runs):
        lines.append(
            f"distributions and exposure are drawn for {len(report.panels)} of "
            f"{pluralize(len(scores.runs), 'run')}: the "
            "baseline, the best by each measure, the Pareto front, then the next best"
        )
    if not report.baseline_given and len(scores.runs) > 1:
        lines.append(f"the baseline is the first run given, {escape(scores.runs[report.baseline])}")
    return list(dict.fromkeys(lines))

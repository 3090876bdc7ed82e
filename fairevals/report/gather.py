"""Everything that a report shows, computed once; the page, report.json and the figures are made from it."""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fairevals.collection.inputs import Named
from fairevals.collection.topics import topic_groups
from fairevals.errors import UsageError, abridged, escape, pluralize
from fairevals.evaluation import Collection, Plan, load, score
from fairevals.evaluation.scores import Scores
from fairevals.io.streams import reads_once
from fairevals.io.task import Task
from fairevals.report.board import BOTH, FAIRNESS, USEFULNESS, Board, board, role, with_both_sides
from fairevals.report.drilldown import Drilldown, depth_for
from fairevals.report.drilldown import drilldown as first_ranks
from fairevals.report.groups import Distribution, Merits, condensed, run_details, shown_ranks
from fairevals.report.naming import measure_labels
from fairevals.report.sources import FileInfo, files_of, metadata_of, versions
from fairevals.report.style import labels
from fairevals.report.training import TrainingSummary, read_summaries
from fairevals.report.weights import WeightedParts, parts_of_gfr, weighted_parts
from fairevals.statistics.compare import Comparisons, compare_with_baseline, remarks
from fairevals.statistics.correlation import RankCorrelations, correlated, rank_correlations
from fairevals.statistics.pairing import NEGLIGIBLE_SAMPLING, Paired, mean, pair, position
from fairevals.typing import Floats

MAX_TOPIC_GROUPS = 12
"""A page can be restricted to the topics of so many topic groups."""
PANELS = 6
"""Distributions and exposures are drawn for so many runs."""
MAX_ATTRIBUTES = 12


Stages = Callable[[str, int, int], None]
"""Called with the progress: the stage, how much of it is done, and the total."""


@dataclass(frozen=True)
class Report:
    """What the page shows."""

    collection: Collection
    plan: Plan
    asked: int
    """How many measures were asked for; those after them were added to show utility and fairness."""
    scores: Scores
    board: Board
    baseline: int
    references: frozenset[int]
    comparisons: Comparisons | None
    correlations: RankCorrelations | None
    across: int | None
    """The utility measure of the trade-off, if there is one."""
    up: tuple[int, ...]
    """The fairness measures of the trade-off."""
    trained: TrainingSummary | None
    files: tuple[FileInfo, ...]
    metadata: tuple[str, ...]
    """What each run says about itself, "" for nothing."""
    versions: dict[str, str]
    panels: tuple[int, ...]
    """The runs whose distributions and exposures are drawn."""
    distributions: tuple[tuple[Distribution, ...], ...]
    """For each attribute, one per run of `panels`."""
    merits: tuple[Merits, ...]
    ranks: Drilldown
    """The first ranks of runs on every topic."""
    parts: Mapping[str, Scores] = field(default_factory=dict)
    """The scores on the topics of each topic group."""
    weighted: WeightedParts | None = None
    """The parts of the first GFR, if there is one."""
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The task's name."""
        return self.collection.task.name or "fairevals report"

    def asked_scores(self) -> Scores:
        """The scores of the measures that were asked for."""
        return self.scores.only(range(self.asked))

    @property
    def by_topic(self) -> int:
        """The measure whose differences by topic are shown first: the first that has values by topic, if one has."""
        return next((m for m, one in enumerate(self.scores.measures) if not one.across_topics), 0)

    def focus(self) -> Paired | None:
        """The difference shown first: the best other run against the baseline."""
        others = [r for r in self.board.order if r != self.baseline]
        return pair(self.scores, self.by_topic, others[0], self.baseline) if others else None

    def badges(self, run: int) -> list[str]:
        """What is shown beside a run's name: its role in the report, and its status where it is not official."""
        several, status = len(self.scores.runs) > 1, self.scores.status(run)
        shown = {"baseline": several and run == self.baseline, "reference": run in self.references}
        return [name for name, show in (shown | {status: status != "official"}).items() if show]


def drivers(paired: Paired, count: int = 8) -> list[dict[str, Any]]:
    """The topics with the largest gains or losses, with the mean gain over the other topics as "without"."""
    gains, rows = paired.gains, []
    for t in np.argsort(-np.abs(gains), kind="stable")[:count].tolist():
        if gains[t]:
            values = {"value": float(paired.values[t]), "baseline": float(paired.baseline_values[t])}
            without = {"gain": float(gains[t]), "without": mean(np.delete(gains, t))}
            rows.append({"topic": paired.topics[t], **values, **without})
    return rows


def tipping(gains: Floats) -> int | None:
    """The smallest number of topics without which the mean gain would be 0 or change its sign; None where it is 0.

    >>> tipping(np.array([0.5, 0.1, -0.2, -0.1])), tipping(np.array([0.1, 0.1])), tipping(np.zeros(3))
    (1, 2, None)
    """
    total = math.fsum(gains)
    if not gains.size or total == 0:
        return None
    helpful = np.sort(np.abs(gains[np.sign(gains) == np.sign(total)]))[::-1]
    # What is left of the sum of gains before each of these topics is removed.
    left = np.subtract.accumulate([abs(total), *helpful])[:-1]
    return int((left > 1e-12 * abs(total)).sum())


def declared_groups(task: Task, topics: Sequence[str]) -> dict[str, list[int]]:
    """The topics of each topic group of a task; groups of several sets are named with their set.

    A set with a group that has none of the topics is skipped.
    """
    found: dict[str, list[int]] = {}
    for name in task.topic_groups:
        try:
            groups = topic_groups(task, name, topics)
        except UsageError:
            continue
        found |= {
            f"{name} {group}" if len(task.topic_groups) > 1 else group: at for group, at in groups.items()
        }
    return found


def gather(
    runs: Sequence[Any],
    collection: Collection,
    plan: Plan,
    *,
    baseline: int | str | None = None,
    references: Iterable[int | str] = (),
    test: str = "ttest",
    correction: str | None = None,
    by: Any = None,
    trained: Sequence[Path] = (),
    given: bool = False,
    qrels: Any = None,
    drilldown: str | None = None,
    jobs: int = 1,
    progress: Stages | None = None,
) -> Report:
    """Score the runs and compute everything that the report needs.

    `baseline` and `references` are places or tags of runs: by default the first run with the status "baseline" (or
    else the first run), and the runs with the status "reference". `by` are topic groups as in `topic_groups`, by
    default all that the task declares. `trained` are output folders of training. `given` says that the user named the
    measures, so that only the parts of composite ones are added. `qrels` is the file of judgements where it is not the
    task's. `drilldown` says which runs have their first ranks in the page: "all", the baseline, Pareto "front" and
    references only, or "none"; by default all if they fit (see `drilldown.MAX_RANKS`). `progress` is called as each
    stage goes on.
    """
    show: Stages = progress or (lambda *_: None)
    # Before the work: an invalid file or name should fail early.
    top = depth_for(collection.task.cutoff, len(runs), len(collection.qrels.topics), drilldown)
    summary = read_summaries(trained)
    topics = (
        declared_groups(collection.task, collection.qrels.topics)
        if by is None
        else topic_groups(collection.task, by, collection.qrels.topics)
    )
    specs, asked = collection.task.attributes, len(plan.measures)
    # A task may declare an attribute without memberships if no measure needs it.
    needed = (*collection.groups, *plan.requirements.attributes)
    crossed = collection.intersections

    def loadable(name: str) -> bool:
        return name in needed or (name in specs and specs[name].memberships is not None)

    shown = [
        name
        for name in collection.attribute_names
        if name in needed or all(map(loadable, crossed[name].attributes if name in crossed else [name]))
    ]
    show("reading", 1, 2)
    collection = collection.with_attributes(shown)
    show("reading", 2, 2)
    plan = with_both_sides(plan, collection, given=given)
    task, seed = collection.task, plan.policy.seed
    judged = qrels if qrels is not None else task.qrels
    files = files_of(task, judged, tuple(collection.attributes), runs, trained)
    metadata = tuple(metadata_of(run) for run in runs)
    # The figures read every run again: a pipe is kept in memory.
    whole = Plan.reading(plan.policy)

    def kept(run: Any) -> Any:
        if isinstance(run, Named):
            return replace(run, run=kept(run.run))
        return load(run, collection, whole) if isinstance(run, str) and reads_once(run) else run

    runs = [kept(run) for run in runs]
    # The parts of GFR are scored too: a reader of the page may weigh them.
    weighed = parts_of_gfr(plan, collection)
    scored = Plan.of(collection, [*plan.measures, *(weighed[1] if weighed else ())], plan.policy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bar = partial(show, "scoring")
        all_scores = score(runs, collection, scored, jobs=jobs, progress=bar, top=top)
    scores = all_scores.only(range(len(plan.measures)))
    for warning in caught:  # shown as usual, and again among the remarks
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    scores = replace(scores, labels=measure_labels(scores))
    baselines = [r for r in range(len(scores.runs)) if scores.status(r) == "baseline"]
    compared = position(scores, (baselines or [0])[0] if baseline is None else baseline)
    reference_runs = {position(scores, run) for run in references}
    reference_runs |= {r for r in range(len(scores.runs)) if scores.status(r) == "reference"}
    named = None if baseline is None else compared  # the default one is a run like any other
    show("statistics", 0, 4)
    means = board(scores, baseline=named, references=reference_runs, seed=seed)
    comparisons = correlations = None
    if len(scores.runs) > 1:
        options: Any = {"test": test, "correction": correction, "seed": seed}
        show("statistics", 1, 4)
        comparisons = compare_with_baseline(scores, compared, **options)
        show("statistics", 2, 4)
        correlations = rank_correlations(scores, seed=seed) if len(correlated(scores)) > 1 else None
    roles = [role(measure) for measure in scores.measures]
    across, up, wanted = None, [], [compared, means.order[0]]
    if USEFULNESS in roles:
        across = roles.index(USEFULNESS)
        up = [m for m, kind in enumerate(roles) if kind == (FAIRNESS if FAIRNESS in roles else BOTH)]
        wanted += [r for m in (across, *up) if (r := means.winner(m)) is not None]
        wanted += [r for m in up for r in means.front(across, m)]
    wanted += sorted(reference_runs)
    chosen = list(dict.fromkeys([*wanted, *means.order]))[:PANELS]
    panels = tuple(r for r in means.order if r in chosen)
    names = labels(scores.runs, 28)
    limits: Any = {"depth": shown_ranks(task.cutoff), "cutoff": task.cutoff}
    limits["attributes"] = list(collection.attributes)[:MAX_ATTRIBUTES]
    declared = [name for name in limits["attributes"] if name not in crossed]
    important = dict.fromkeys([*wanted, *(r for r in means.order if scores.status(r) == "baseline")])
    kept_for: Any = {"attributes": declared, "important": list(important), "choice": drilldown}
    show("statistics", 3, 4)
    ranks = first_ranks(scores, runs, collection, plan.policy, **kept_for)
    scores = replace(scores, tops=())
    show("statistics", 4, 4)
    details = []
    for done, r in enumerate(panels, 1):
        details.append(run_details(runs[r], collection, plan.policy, name=names[r], **limits))
        show("distributions", done, len(panels))
    by_attribute = zip(*(distributions for distributions, _ in details), strict=True)
    report = Report(
        collection=collection,
        plan=plan,
        asked=asked,
        scores=scores,
        board=means,
        baseline=compared,
        references=frozenset(reference_runs),
        comparisons=comparisons,
        correlations=correlations,
        across=across,
        up=tuple(up),
        trained=summary,
        files=files,
        metadata=metadata,
        versions=versions(),
        panels=panels,
        distributions=tuple(
            tuple(condensed(column)) for column in by_attribute if any(one.topics for one in column)
        ),
        merits=tuple(merits for _, merits in details),
        parts={group: scores.on_topics(at) for group, at in topics.items()},
        weighted=weighted_parts(*weighed, all_scores, collection) if weighed else None,
        ranks=ranks,
    )
    lines = [*scores.notes, *(str(warning.message) for warning in caught), *_remarks(report)]
    if baseline is None and comparisons is not None:
        why = "the first with that status" if baselines else "the first run"
        lines.append(f"the baseline is {escape(scores.runs[compared])}, {why}")
    return replace(report, remarks=tuple(dict.fromkeys(lines)))


def _remarks(report: Report) -> Iterator[str]:
    scores, means = report.scores, report.board
    if report.comparisons is None:  # else the remarks of the comparisons say so
        yield from scores.undefined_remarks()
    added = [scores.label(measure) for measure in scores.measures[report.asked :]]
    if added:
        yield f"added, to show usefulness and fairness apart: {', '.join(added)}"
    noisy = [
        f"{scores.label(scores.measures[m])} of {escape(scores.runs[r])}"
        for r, row in enumerate(means.entries)
        for m, entry in enumerate(row)
        if entry.notable
    ]
    if noisy:
        share = f"{100 * NEGLIGIBLE_SAMPLING:g} % of the standard error of the mean"
        yield f"error from sampling rankings above {share} (draw more samples): {abridged(noisy, 5)}"
    if report.comparisons is not None:
        yield from remarks(report.comparisons)
    for one in (one for column in report.distributions for one in column if not one.topics):
        what = f"shares of the groups of {escape(one.attribute)}"
        yield f"{one.run}: {what} are undefined, because it ranks no document with a known group"
    if len(report.panels) < len(scores.runs):
        yield (
            f"distributions and exposure are drawn for {len(report.panels)} of {pluralize(len(scores.runs), 'run')}: "
            "the baseline, the best by each measure, the Pareto front, then the next best"
        )
    if report.ranks.reason:
        yield report.ranks.reason
    if len(report.parts) > MAX_TOPIC_GROUPS:
        yield f"the page can be restricted to the first {MAX_TOPIC_GROUPS} of {len(report.parts)} topic groups"

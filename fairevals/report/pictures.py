"""The figures of a report as svg files, each with a text for readers who cannot see it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairevals.errors import escape, pluralize
from fairevals.evaluation.leaderboard import head
from fairevals.evaluation.tops import ATTENTION
from fairevals.io.folders import safe_name
from fairevals.report import figures
from fairevals.report.figures import group_labels
from fairevals.report.gather import Report
from fairevals.report.groups import Distribution
from fairevals.report.style import figure_bytes, labels
from fairevals.report.topic_map import MAP_COLUMNS, MAP_ROWS, hardest_first, map_svg
from fairevals.report.training import TrainingSummary, direction_of, lambda_figure, plane_figure
from fairevals.statistics.pairing import costs_of, orientation

MAX_PLANES = 6


@dataclass(frozen=True)
class Picture:
    """A figure: its section on the page, its file, its alternative text and its caption."""

    section: str
    name: str
    """File name below `figures/`, without its suffix."""
    svg: bytes
    alt: str
    caption: str


def pictures(report: Report) -> Iterator[Picture]:
    """All figures, in the order of the page."""
    if report.across is not None and report.up:
        yield _tradeoff(report, report.across, report.up[:MAX_PLANES])
    scores, groups = report.scores, report.board.groups
    tested = [m for m in range(report.asked) if any(groups[m].letters)]
    # Matrices of many runs are large: one is enough to see the pattern.
    tested = tested[: 3 if len(scores.runs) <= figures.MAX_LABELS else 1]
    if tested:
        pairs = all_pairs_text(report, tested)
        yield Picture(
            "pairs",
            "pairs",
            figure_bytes(figures.pairs_figure(scores, groups, tested, report.board.alpha)),
            f"Matrices of the differences between every two runs, with p-values: {pairs}.",
            "Every two runs by randomised Tukey HSD, best first: above the diagonal the gain of the row over the "
            "column, below it p. Pairs that differ significantly are coloured, blue where the row is better.",
        )
    focus = report.focus()
    if focus is not None and focus.topics:
        run, baseline = labels([focus.run, focus.baseline], 40)
        measure = report.scores.label(focus.measure)
        yield Picture(
            "topics",
            "topics",
            figure_bytes(figures.gains_figure(focus, run, baseline, measure)),
            f"Bars of the gain in {measure} of {run} over {baseline}, one bar per topic: better on {focus.wins}, "
            f"the same on {focus.ties}, worse on {focus.losses} of {len(focus.topics)} topics.",
            f"Gain of {run} over {baseline} in {measure}, topic by topic.",
        )
    if not np.isnan(scores.values[:, report.by_topic]).all():
        yield _map(report)
    for number, column in enumerate(report.distributions, 1):
        yield _ranks(number, [one for one in column if one.topics])
    merits = [one for one in report.merits if one.levels.size]
    if merits:
        cutoff = report.collection.task.cutoff
        cut = f", first {cutoff} ranks" if cutoff else ""
        means = [
            f"{one.run}: "
            + ", ".join(f"{y:.3f} at merit {x:g}" for x, y in zip(one.levels, one.mean, strict=True))
            for one in merits
        ]
        yield Picture(
            "exposure",
            "exposure",
            figure_bytes(figures.merits_figure(merits)),
            f"Mean expected exposure of documents by their merit, for {len(merits)} runs: {'; '.join(means)}.",
            f"Expected exposure of documents by their merit ({ATTENTION} attention{cut}, merit is the grade). A "
            "document above the dotted line has more than its share.",
        )
    if report.correlations is not None:
        names = labels([report.scores.label(name) for name in report.correlations.measures], 30)
        tau = report.correlations.tau[np.triu_indices(len(names), 1)]
        known = tau[~np.isnan(tau)]
        between = f"between {known.min():.2f} and {known.max():.2f}" if known.size else "undefined everywhere"
        yield Picture(
            "agreement",
            "agreement",
            figure_bytes(figures.heat_map(report.correlations, names)),
            f"Heat map of Kendall's τ between {min(len(names), figures.MAX_MEASURES)} measures: τ is {between}. "
            "The table below it has the values.",
            "Kendall's τ between the rankings of the runs by every two measures. It is 1 where they agree which runs "
            "are better.",
        )
    if report.trained is not None:
        yield from _trained(report.trained)


def all_pairs_text(report: Report, measures: Sequence[int]) -> str:
    """How many pairs of runs differ, by measure."""
    texts = []
    for m in measures:
        p = report.board.groups[m].tukey.p[np.triu_indices(len(report.board.groups[m].family.places), 1)]
        texts.append(
            f"{head(report.scores, m)} {int((p < report.board.alpha).sum())} of {p.size} pairs differ"
        )
    return "; ".join(texts)


def _map(report: Report) -> Picture:
    scores, m, order = report.scores, report.by_topic, report.board.order
    direction, name = scores.measures[m].direction, scores.label(scores.measures[m])
    costs = costs_of(direction, scores.values[:, m])
    columns = hardest_first(costs)[:MAP_COLUMNS]
    rows = order[:MAP_ROWS]
    # A measure with a target is best there, so its distance is drawn.
    values, label = scores.values[:, m], name
    if direction.target is not None:
        values, label = costs, f"{name}, distance from {direction.target:g}"
    runs, topics = labels([scores.runs[r] for r in rows], 28), labels([scores.topics[t] for t in columns], 12)
    svg = map_svg(values[rows][:, columns], runs, topics, label, lower=orientation(direction) < 0)
    cut = [
        f"{len(some)} of {pluralize(len(every), noun)}"
        for some, every, noun in ((rows, order, "run"), (columns, scores.topics, "topic"))
        if len(some) < len(every)
    ]
    return Picture(
        "map",
        "topic-map",
        svg,
        f"Map of {name} by run, best first, and topic, the hardest first: {', '.join(topics[:5])} and so on. All "
        "values are in scores.csv.",
        f"{label} of every run on every topic: the best run and the hardest topic (by the median) first, darker is "
        f"better, grey is undefined.{' Shown: ' + ' and '.join(cut) + '.' if cut else ''}",
    )


def _tradeoff(report: Report, across: int, up: Sequence[int]) -> Picture:
    scores, board, names = report.scores, report.board, labels(report.scores.runs, 40)
    kinds = dict.fromkeys(report.references, "reference policy") | {report.baseline: "baseline"}
    figure = figures.tradeoff_figure(board, labels(scores.runs, 20), across, up, kinds)
    fronts = "; ".join(
        f"with {scores.label(scores.measures[m])}: {', '.join(names[r] for r in board.front(across, m)) or 'none'}"
        for m in up
    )
    hollow = " Incomplete runs are hollow and never on the front." if board.any("incomplete") else ""
    return Picture(
        "tradeoff",
        "tradeoff",
        figure_bytes(figure),
        f"Scatter of {scores.label(scores.measures[across])} against fairness. On the Pareto front are, {fronts}."
        f"{hollow}",
        f"Usefulness against fairness: means over topics with 95 % intervals.{hollow}",
    )


def _ranks(number: int, distributions: Sequence[Distribution]) -> Picture:
    first = distributions[0]
    attribute, groups = str(escape(first.attribute, 40)), group_labels(first)
    depth = first.achieved.shape[0]

    def shares(values: Iterable[float]) -> str:
        return ", ".join(f"{group} {value:.2f}" for group, value in zip(groups, values, strict=True))

    last = "; ".join(f"{one.run}: {shares(one.achieved[-1])}" for one in distributions)
    counts = [one.topics for one in distributions]
    topics = " to ".join(map(str, sorted({min(counts), max(counts)})))
    summed = ""
    if len(first.groups) < first.total and first.ordinal:
        summed = f" The {first.total:,} groups are drawn as {len(first.groups)} ranges of neighbours."
    elif len(first.groups) < first.total:
        rest = f"{groups[-1]} are the other {first.counts[-1]:,}, summed"
        summed = f" Of {first.total:,} groups the {len(first.groups) - 1} largest are drawn; {rest}."
    return Picture(
        "groups",
        f"ranks-{number}-{safe_name(attribute)}",
        figure_bytes(figures.ranks_figure(distributions)),
        f"Shares of the groups of {attribute} along the first {depth} ranks, against the target "
        f"({shares(first.target)}). At rank {depth}: {last}.",
        f"{attribute}: mean membership of the first k ranks, and the target at the right (mean over the {topics} "
        f"topics to which it applies and where the run ranks a document with a known group).{summed}",
    )


def _trained(summary: TrainingSummary) -> Iterator[Picture]:
    utility, disparity = summary.utility, summary.disparity
    splits = " and ".join(escape(split, 20) for split in summary.shown_splits)
    last = summary.shown_splits[-1]
    if summary.swept and (utility or disparity):
        sweeps = [
            f"{escape(name)}, {measure} from {points[0].mean:.4f} at λ={points[0].lam:g} "
            f"to {points[-1].mean:.4f} at λ={points[-1].lam:g}"
            for name in summary.swept
            for measure in (utility, disparity)
            if (points := summary.of_family(name, last, measure))
        ]
        yield Picture(
            "trained",
            "trained-lambda",
            figure_bytes(lambda_figure(summary)),
            f"{utility} and {disparity} along λ on {splits} data: {'; '.join(sweeps) or 'no values'}.",
            f"The effect of λ: means over seeds, bands are ± one standard deviation over seeds ({splits} data).",
        )
    if utility and disparity:
        yield Picture(
            "trained",
            "trained-plane",
            figure_bytes(plane_figure(summary)),
            f"Trained policies in the plane of {utility} ({direction_of(utility)} is better) and {disparity} "
            f"({direction_of(disparity)} is better), {escape(last, 20)} data; the table below has the values.",
            "Trained policies against baselines: a λ sweep is a line, a method without λ a point; bars are ± one "
            "standard deviation over seeds.",
        )

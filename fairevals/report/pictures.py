"""The figures of a report, each with a text for those who do not see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fairevals.errors import escape
from fairevals.io.names import safe_name
from fairevals.report.agreement import MOST, heat_map
from fairevals.report.gather import Report
from fairevals.report.groups import Distribution, along_ranks
from fairevals.report.merits import ATTENTION, merits_figure
from fairevals.report.style import labels, rendered
from fairevals.report.topics import gains_figure
from fairevals.report.tradeoff import Axis, Points, scatter
from fairevals.report.trained import TrainingSummary, direction_of, lambda_figure, plane_figure

MOST_PLANES = 6


@dataclass(frozen=True)
class Picture:
    """A figure: where it belongs on the page, its file name, and what it says."""

    section: str
    name: str
    """File name below `figures/`, without its ending."""
    svg: bytes
    alt: str
    caption: str


def pictures(report: Report) -> list[Picture]:
    """All figures, in the order of the page."""
    return list(_pictures(report))


def _pictures(report: Report) -> Iterator[Picture]:
    if report.across is not None and report.up:
        yield _tradeoff(report, report.across)
    focus = report.focus()
    if focus is not None and focus.topics:
        run, baseline = labels([focus.run, focus.baseline], 40)
        yield Picture(
            "topics",
            "topics",
            rendered(gains_figure(focus, run, baseline)),
            f"Bars of the gain in {focus.measure} of {run} over {baseline}, a bar a topic: better on {focus.wins}, "
            f"the same on {focus.ties}, worse on {focus.losses} of {len(focus.topics)} topics.",
            f"Gain of {run} over {baseline} in {focus.measure}, topic by topic.",
        )
    for number, found in enumerate(report.distributions, 1):
        yield _ranks(number, [one for one in found if one.topics])
    if report.merits:
        cutoff = report.collection.task.cutoff
        cut = f", first {cutoff} ranks" if cutoff else ""
        yield Picture(
            "exposure",
            "exposure",
            rendered(merits_figure(report.merits)),
            f"Expected exposure of documents by their merit, for {len(report.merits)} runs: "
            + "; ".join(
                f"{one.run}: mean exposure {_listed(one.mean)} at merit {_listed(one.levels, 'g')}"
                for one in report.merits
            )
            + ".",
            f"Expected exposure of documents by their merit ({ATTENTION} attention{cut}, merit is the grade). Above "
            "the dotted line a document has more than its share.",
        )
    if report.correlations is not None:
        names = labels(report.correlations.measures, 30)
        tau = report.correlations.tau[np.triu_indices(len(names), 1)]
        known = tau[~np.isnan(tau)]
        between = f"between {known.min():.2f} and {known.max():.2f}" if known.size else "undefined everywhere"
        yield Picture(
            "agreement",
            "agreement",
            rendered(heat_map(report.correlations, names)),
            f"Heat map of Kendall's τ between {min(len(names), MOST)} measures: τ is {between}. "
            "The values stand in the table below it.",
            "Kendall's τ between the rankings of the runs by every two measures; 1: they agree which runs are better.",
        )
    if report.trained is not None:
        yield from _trained(report.trained)


def _listed(values: np.ndarray, form: str = ".3f") -> str:
    return ", ".join(f"{value:{form}}" for value in values)


def axis(report: Report, measure: int) -> Axis:
    """The runs' means on a measure with their intervals."""
    column = [row[measure] for row in report.board.entries]
    return Axis(
        str(report.scores.measures[measure]),
        report.scores.measures[measure].direction,
        np.array([entry.value for entry in column]),
        np.array([entry.low for entry in column]),
        np.array([entry.high for entry in column]),
    )


def _tradeoff(report: Report, across: int) -> Picture:
    up = report.up[:MOST_PLANES]
    points = Points(labels(report.scores.runs, 20), report.baseline, report.references)
    figure = scatter(points, axis(report, across), [axis(report, m) for m in up])
    names = labels(report.scores.runs, 40)
    fronts = "; ".join(
        f"with {report.scores.measures[m]}: {', '.join(names[r] for r in report.front(across, m)) or 'none'}"
        for m in up
    )
    return Picture(
        "tradeoff",
        "tradeoff",
        rendered(figure),
        f"Scatter of {report.scores.measures[across]} against measures of fairness. On the Pareto front are, {fronts}.",
        "Usefulness against fairness: means over topics with 95 % intervals.",
    )


def _ranks(number: int, found: list[Distribution]) -> Picture:
    attribute = str(escape(found[0].attribute, 40))
    groups = labels(found[0].groups, 24)
    last = "; ".join(
        f"{one.run}: " + ", ".join(f"{g} {v:.2f}" for g, v in zip(groups, one.achieved[-1], strict=True))
        for one in found
    )
    target = ", ".join(f"{g} {v:.2f}" for g, v in zip(groups, found[0].target, strict=True))
    depth = found[0].achieved.shape[0]
    return Picture(
        "groups",
        f"ranks-{number}-{safe_name(attribute)}",
        rendered(along_ranks(found, columns=3)),
        f"Shares of the groups of {attribute} along the first {depth} ranks, against the target ({target}). "
        f"At rank {depth}: {last}.",
        f"{attribute}: mean membership of the first k ranks, and the target at the right "
        f"(mean over the {found[0].topics} topics to which it applies).",
    )


def _trained(summary: TrainingSummary) -> Iterator[Picture]:
    utility, disparity = summary.utility, summary.disparity
    splits = " and ".join(escape(s, 20) for s in summary.shown_splits)
    if summary.swept and (utility or disparity):
        yield Picture(
            "trained",
            "trained-lambda",
            rendered(lambda_figure(summary)),
            f"{utility} and {disparity} along λ on {splits} data: {_sweep(summary)}.",
            f"What λ costs and buys: means over seeds, bands are ± one standard deviation over seeds ({splits} data).",
        )
    if utility and disparity:
        yield Picture(
            "trained",
            "trained-plane",
            rendered(plane_figure(summary)),
            f"Trained policies in the plane of {utility} ({direction_of(utility)} is better) and {disparity} "
            f"({direction_of(disparity)} is better), {escape(summary.shown_splits[-1], 20)} data; "
            "the table below has the values.",
            "Trained policies against baselines: a λ sweep is a line, a method without λ a point; bars are ± one "
            "standard deviation over seeds.",
        )


def _sweep(summary: TrainingSummary) -> str:
    split = summary.shown_splits[-1]
    parts = []
    for name in summary.swept:
        for measure in (summary.utility, summary.disparity):
            found = summary.of(name, split, measure or "")
            if found:
                parts.append(
                    f"{escape(name)}, {measure} from {found[0].mean:.4f} at λ={found[0].lam:g} "
                    f"to {found[-1].mean:.4f} at λ={found[-1].lam:g}"
                )
    return "; ".join(parts) or "no values"

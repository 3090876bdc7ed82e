"""What the page's script draws from: names, means, values by topic, and what is needed for the reader's own weights."""

from typing import Any

import numpy as np

from fairevals.collection.qrels import Qrels
from fairevals.errors import escape
from fairevals.evaluation.leaderboard import best_runs
from fairevals.evaluation.scores import Scores
from fairevals.io.out import DECIMALS
from fairevals.report.board import role
from fairevals.report.gather import MAX_TOPIC_GROUPS, Report
from fairevals.report.style import labels
from fairevals.statistics.inference import mean_intervals
from fairevals.statistics.pairing import orientation
from fairevals.typing import Floats, Ints

MAX_VALUES = 200_000
"""The page holds at most so many values of single topics; all are in scores.csv."""
MAX_GRADES = 12
NAME_LENGTH = 60
"""How many characters of a name are shown; the leaderboard has the whole name as a tooltip."""

BRIEF = 22
"""How many characters of a name are shown in a figure."""


def page_data(report: Report) -> dict[str, Any]:
    """The means of all runs, on all topics and on each topic group, and values by topic of as many runs as fit.

    Runs, topics and measures are places in the lists of the same names.
    """
    scores, board = report.scores, report.board
    fitting = MAX_VALUES // max(1, len(scores.measures) * len(scores.topics))
    others = [r for r in board.order if r != report.baseline]
    kept = {report.baseline, *others[: fitting - 1]} if fitting > 1 else set()
    runs, number = range(len(scores.runs)), {topic: t for t, topic in enumerate(scores.topics)}
    parts = dict(list(report.parts.items())[:MAX_TOPIC_GROUPS])
    return {
        "runs": labels(scores.runs, NAME_LENGTH),
        "brief": labels(scores.runs, BRIEF),
        "teams": labels(scores.teams, NAME_LENGTH) if scores.teams else [""] * len(runs),
        "statuses": [" ".join(report.badges(r)) for r in runs],
        "topics": labels(scores.topics, NAME_LENGTH) if kept else [],
        "titles": _titles(report),
        "applies": {
            name: one.applies.astype(int)
            for name, one in report.collection.attributes.items()
            if kept and not one.applies.all()
        },
        "groups": [
            {
                "name": name,
                "topics": [number[topic] for topic in part.topics],
                **_means(part, mean_intervals(part)),
            }
            for name, part in parts.items()
        ],
        "measures": [
            {
                **{"id": str(m), "name": scores.label(m), "role": role(m)},
                **{"arrow": d.arrow, "sign": orientation(d), "target": d.target},
                "attributes": list(m.attributes_used()),
            }
            for m in scores.measures
            for d in (m.direction,)
        ],
        "asked": report.asked,
        "baseline": report.baseline,
        "references": sorted(report.references),
        "order": board.order,
        **_means(scores, np.array([[(e.low, e.high) for e in row] for row in board.entries])),
        "letters": [[entry.letters for entry in row] for row in board.entries],
        "missing": [[number[topic] for topic in scores.missing_topics.get(run, ())] for run in scores.runs],
        "values": [np.round(scores.values[r], 6) if r in kept else None for r in runs],
        "weights": report.weighted
        and report.weighted.data(
            scores.measures, {name: [number[t] for t in part.topics] for name, part in parts.items()}
        ),
        "attributes": len(report.ranks.data.get("attributes", ())),
        "judged": _grade_counts(report.collection.qrels),
        "across": report.across,
        "up": report.up[0] if report.up else None,
        "focus": others[0] if others else None,
        "byTopic": report.by_topic,
    }


def _titles(report: Report) -> list[str]:
    """The title of each topic, if the list of topics has any."""
    listed = report.collection.listed
    if listed is None or "title" not in listed.columns:
        return []
    titles = dict(zip(listed.ids, listed.columns["title"], strict=True))
    return [str(escape(titles.get(topic, ""), 120)) for topic in report.scores.topics]


def _means(scores: Scores, bounds: Floats) -> dict[str, Any]:
    """(runs, measures): means, costs, intervals, undefined topics, and whether a run is incomplete or the best."""
    runs = range(len(scores.runs))
    best = [best_runs(scores, m, runs, DECIMALS) for m in range(len(scores.measures))]
    cells = [[(r, m) for m in range(len(scores.measures))] for r in range(len(scores.runs))]
    return {
        "means": [[scores.mean(r, m).value for r, m in row] for row in cells],
        "costs": [[scores.cost(r, m) for r, m in row] for row in cells],
        "low": np.round(bounds[..., 0], 6),
        "high": np.round(bounds[..., 1], 6),
        "undefined": [[scores.mean(r, m).undefined for r, m in row] for row in cells],
        "incomplete": scores.incomplete.astype(int),
        "best": np.array(best, dtype=int).T,
    }


def _grade_counts(qrels: Qrels) -> Ints | None:
    """(topics, grades): how many documents have each grade, in the order of the grades; None for many grades."""
    known, grade = np.unique(qrels.grades, return_inverse=True)
    if known.size > MAX_GRADES:
        return None
    counts: Ints = np.zeros((len(qrels.topics), known.size), dtype=np.int64)
    np.add.at(counts, (qrels.topic_of, grade), 1)
    return counts

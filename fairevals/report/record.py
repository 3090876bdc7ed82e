"""report.json: all that the page says, for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from fairevals.io.folders import Marked
from fairevals.report.gather import Report
from fairevals.report.pictures import Picture
from fairevals.report.roles import role
from fairevals.report.topics import drivers, tipping
from fairevals.statistics import pair
from fairevals.statistics.compare import full_table

REPORT = Marked("report", "report.json", "fairevals report 1")
"""The folder of a report."""


def plain(value: Any) -> Any:
    """The value as JSON knows it: arrays as lists, NaN and infinities as null.

    >>> plain({"a": np.array([1.0, np.nan]), "b": (1, "x")})
    {'a': [1.0, None], 'b': [1, 'x']}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, np.generic):
        return plain(value.item())
    return value


def record(report: Report, pictures: Sequence[Picture]) -> bytes:
    """The file's bytes."""
    scores, board = report.scores, report.board
    task, plan = report.collection.task, report.plan
    means = [
        {"run": run, "measure": str(measure), **asdict(board.entries[r][m])}
        for r, run in enumerate(scores.runs)
        for m, measure in enumerate(scores.measures)
    ]
    found = {
        "format": REPORT.format,
        "title": report.title,
        "versions": report.versions,
        "files": [asdict(file) for file in report.files],
        "figures": [f"figures/{picture.name}.svg" for picture in pictures],
        "topics": len(scores.topics),
        "judgements": len(report.collection.qrels),
        "conventions": {
            "order": task.order,
            "cutoff": task.cutoff,
            "max_grade": report.collection.max_grade,
            "utility_weight": task.utility_weight,
        },
        "policy": asdict(plan.policy),
        "baseline": scores.runs[report.baseline],
        "references": [scores.runs[r] for r in sorted(report.references)],
        "measures": [
            {
                "name": str(m),
                "direction": str(m.direction),
                "role": role(m),
                "formula": m.formula,
                "source": m.source,
                "asked": i < report.asked,
            }
            for i, m in enumerate(scores.measures)
        ],
        "significance": {
            "test": "randomised Tukey HSD",
            "permutations": board.resamples,
            "alpha": board.alpha,
            "families": [
                {"measure": str(measure), "runs": groups.family.runs, "outside": dict(groups.family.outside)}
                for measure, groups in zip(scores.measures, board.groups, strict=False)
            ],
        },
        "level": board.level,
        "means": means,
        "leaderboard": [scores.runs[r] for r in board.order],
        "fronts": _fronts(report),
        "comparisons": _comparisons(report),
        "drivers": _drivers(report),
        "correlations": _correlations(report),
        "distributions": [
            {**asdict(one), "run": scores.runs[r]}
            for found in report.distributions
            for r, one in zip(report.panels, found, strict=True)
        ],
        "exposure": [
            {**asdict(one), "run": scores.runs[r]}
            for r, one in zip(report.panels, report.merits, strict=True)
        ],
        "trained": [asdict(point) for point in report.trained.points] if report.trained else [],
        "remarks": list(report.remarks),
    }
    return (json.dumps(plain(found), ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode(
        errors="backslashreplace"
    )


def _fronts(report: Report) -> list[dict[str, Any]]:
    if report.across is None:
        return []
    names, runs = report.scores.measures, report.scores.runs
    return [
        {
            "utility": str(names[report.across]),
            "fairness": str(names[m]),
            "runs": [runs[r] for r in report.front(report.across, m)],
        }
        for m in report.up
    ]


def _comparisons(report: Report) -> list[dict[str, Any]]:
    if report.comparisons is None:
        return []
    table = full_table(report.comparisons)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def _drivers(report: Report) -> list[dict[str, Any]]:
    """For every run and the first measure: the topics that drive its difference to the baseline."""
    found = []
    for r, run in enumerate(report.scores.runs):
        if r == report.baseline:
            continue
        paired = pair(report.scores, 0, r, report.baseline)
        found.append(
            {
                "run": run,
                "measure": paired.measure,
                "tipping": tipping(paired.gains),
                "topics": [asdict(driver) for driver in drivers(paired, 5)],
            }
        )
    return found


def _correlations(report: Report) -> dict[str, Any] | None:
    if report.correlations is None:
        return None
    c = report.correlations
    return {"measures": c.measures, "tau": c.tau, "low": c.low, "high": c.high, "topics": c.topics}

"""The program with which Codabench scores a submission: the bundle has a copy of this package that it runs from."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from fairevals.collection.collection import load_collection
from fairevals.collection.submission import check_submission
from fairevals.errors import FairevalsError, InputError, Place, escape
from fairevals.evaluation.plan import Plan
from fairevals.evaluation.scores import Scores
from fairevals.export.codabench import TASK_FILE, leaderboard_columns
from fairevals.io.archives import files_in
from fairevals.io.folders import PAGE
from fairevals.io.lines import Problem
from fairevals.io.streams import written
from fairevals.report.gather import gather
from fairevals.report.naming import measure_labels
from fairevals.report.write import report_files

MOST = 10
"""How many problems of a kind are shown to the participant."""


def score_submission(given: str | os.PathLike[str], output: str | os.PathLike[str]) -> int:
    """Score the run in `given`/res by the task in `given`/ref, and write scores.json and detailed_results.html.

    Returns the exit code: 1 for an invalid submission, whose problems are printed to standard error.
    """
    reference, submission, folder = Path(given) / "ref", Path(given) / "res", Path(output)
    try:
        collection = load_collection(reference / TASK_FILE)
        plan = Plan.of(collection)
        run = submitted_run(submission)
        problems = list(check_submission(run, collection))
        sys.stderr.writelines(problem_lines(problems))
        if not all(problem.warning for problem in problems):
            return 1
        # Without the first ranks, whose grades would be the judgements of what a participant asks for.
        report = gather([str(run)], collection, plan, given=True, drilldown="none")
    except FairevalsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with written(folder / "scores.json") as file:
        json.dump(submission_scores(report.asked_scores()), file, indent=1, allow_nan=False)
    with written(folder / "detailed_results.html") as file:
        file.write(report_files(report)[PAGE].decode())
    return 0


def submission_scores(scores: Scores) -> dict[str, float]:
    """The values of the one run by the keys of `leaderboard_columns`; what is undefined is left out, and printed."""
    values = {}
    for m, column in enumerate(leaderboard_columns(scores.measures, measure_labels(scores))):
        target = scores.measures[m].direction.target
        value = scores.mean(0, m).value if target is None else scores.cost(0, m)
        if value == value:
            values[column["key"]] = value
        else:
            sys.stderr.write(f"warning: {column['title']} is undefined for this run\n")
    return values


def submitted_run(folder: Path) -> Path:
    """The one file of a submission, or the folder itself if it has parquet files.

    A link out of the folder is refused: it could lead to the judgements. What the platform adds is ignored.
    """
    files = [Path(path) for path in files_in(folder)]
    files = [path for path in files if path.name not in ("metadata", "metadata.yaml")]
    tables = [path for path in files if not path.name.startswith("_")]
    if tables and all(path.name.endswith(".parquet") for path in tables):
        return folder
    if len(files) != 1:
        names = ", ".join(escape(path.name) for path in files[:MOST])
        raise InputError(Place("the submission"), f"{len(files)} files ({names})", "a zip file with one run")
    return files[0]


def problem_lines(problems: Sequence[Problem]) -> Iterator[str]:
    """The problems as text, at most `MOST` of a kind."""
    counts: Counter[str] = Counter()
    for problem in problems:
        counts[problem.kind] += 1
        if counts[problem.kind] <= MOST:
            yield f"{'warning' if problem.warning else 'error'}: {problem.error()}\n"
    for kind, count in counts.items():
        if count > MOST:
            yield f"{kind}: {count - MOST} more\n"

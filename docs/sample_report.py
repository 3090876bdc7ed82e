"""A hook of mkdocs: the report of the sample task is part of the site, at sample-report/index.html."""

from __future__ import annotations

import contextlib
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

TOP = Path(__file__).resolve().parent.parent
FOLDER = "sample-report"


@cache
def report() -> dict[str, bytes]:
    """The files of `fairevals report --task qrels/task.toml runs/*.run --baseline bm25`, by their names."""
    from fairevals.evaluation import Plan, load_collection
    from fairevals.report.gather import gather
    from fairevals.report.write import report_files

    with contextlib.chdir(TOP), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collection = load_collection("qrels/task.toml")
        runs = sorted(path.as_posix() for path in Path("runs").glob("*.run"))
        return report_files(gather(runs, collection, Plan.of(collection), baseline="bm25"))


def on_files(files: Any, config: Any) -> Any:
    """Add the report to the files of the site."""
    for name, content in report().items():
        files.append(File.generated(config, f"{FOLDER}/{name}", content=content))
    return files

"""A report as files."""

from __future__ import annotations

from pathlib import Path

from fairevals.evaluation.leaderboard import long_table
from fairevals.io.folders import PAGE
from fairevals.io.out import render
from fairevals.report.gather import Report
from fairevals.report.page import page
from fairevals.report.pictures import pictures
from fairevals.report.record import REPORT, record


def write_report(report: Report, folder: Path, *, force: bool = False) -> list[Path]:
    """Write index.html, scores.csv, report.json and figures/; the names of the files, the page first.

    Everything is made before anything is written, so that a failure leaves an earlier report as it was.
    """
    REPORT.check(folder, force=force)
    drawn = pictures(report)
    files = {
        REPORT.marker: record(report, drawn),
        "scores.csv": render(long_table(report.scores, per_topic=True), "csv").encode(
            errors="backslashreplace"
        ),
        PAGE: page(report, drawn),
        **{f"figures/{picture.name}.svg": picture.svg for picture in drawn},
    }
    return REPORT.write(folder, files)

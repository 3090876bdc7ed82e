"""`fairevals demo`."""

import argparse
import re
import zipfile
from importlib.resources import files
from pathlib import Path

from fairevals.cli import common

SUMMARY = "Score the sample task (invented researchers and films), write its report, and suggest next steps."
EXAMPLE = "  fairevals demo -o fairevals-demo"

_NAME = re.compile(r"(runs|qrels)/\w[\w.-]*")


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("-o", "--output", default="fairevals-demo", metavar="DIR", help="default: fairevals-demo")
    text = "folder with runs/ and qrels/ (default: extracted into the output folder)"
    add("--data", metavar="DIR", help=text)
    text = "instead, serve the annotation tool on some topics of the sample, with invented pages"
    add("--annotate", action="store_true", help=text)
    add("--port", type=common.whole(0, 65535), default=8765, metavar="N", help="of --annotate (default 8765)")


def extract_sample(folder: Path) -> None:
    """Write the sample task that the package contains to `runs/` and `qrels/` below a folder."""
    from fairevals.io.streams import written_bytes

    with (files("fairevals") / "data" / "sample.zip").open("rb") as file, zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if not _NAME.fullmatch(name):  # nothing outside the two folders, whatever the archive says
                raise ValueError(f"unexpected file in the sample: {name!r}")
            with written_bytes(folder / name) as out:
                out.write(archive.read(name))


def _annotate(args: argparse.Namespace) -> int:
    """Write a small project in `annotate/` below the output folder, unless it is there, and serve it."""
    from fairevals.annotate import serve
    from fairevals.annotate.sample import write_sample_project
    from fairevals.cli.annotate import announce

    folder = Path(args.output) / "annotate"
    if not args.data and not (folder / "qrels").exists():
        extract_sample(folder)
    inputs = write_sample_project(Path(args.data) if args.data else folder, folder)
    common.log(
        "open a link in a browser; stop with Ctrl+C", f"then: fairevals annotate export {folder / 'data'}"
    )
    serve(inputs, folder / "data", port=args.port, announce=announce)
    return 0


def run(args: argparse.Namespace) -> int:
    if args.annotate:
        return _annotate(args)
    from fairevals.errors import UsageError, escape
    from fairevals.evaluation import Plan, leaderboard, load_collection
    from fairevals.io.folders import PAGE, write_files
    from fairevals.io.out import render
    from fairevals.report.gather import gather
    from fairevals.report.write import REPORT, report_files

    out = Path(args.output)
    REPORT.check(out)
    with REPORT.replacing(out) as part:  # the sample and its report appear together, or not at all
        data = Path(args.data) if args.data else part
        if not args.data:
            extract_sample(part)
        runs = sorted((data / "runs").glob("*.run"))
        if not runs:
            raise UsageError(f"there is no run in {escape(str(data / 'runs'), 200)}")
        collection = load_collection(data / "qrels" / "task.toml")
        names = [path.stem for path in runs]
        baseline = names.index("bm25") if "bm25" in names else None
        show, files = common.stages(), [str(path) for path in runs]
        report = gather(files, collection, Plan.of(collection), baseline=baseline, progress=show)
        write_files(part, report_files(report, show))
    common.emit([render(leaderboard.leaderboard(report.asked_scores()), "table")], None)
    common.log(*report.scores.notes)
    rest = ", ".join(str(out / name) for name in ("scores.csv", "report.json", "figures/"))
    data = Path(args.data or out)
    given = f"--task {data / 'qrels' / 'task.toml'} {data / 'runs'}/*.run"
    print(f"\nwritten: {out / PAGE} (open it in a browser), {rest}")
    print(f"next:    fairevals compare {given} --baseline bm25")
    print(f"         fairevals score {given} -m \"AWRF(attr='ORIGIN')\" --policy pl")
    print(f"         fairevals report {given} --policy pl -o my-report")
    return 0

"""`fairevals export`."""

import argparse
from dataclasses import replace

from fairevals.cli import common
from fairevals.errors import escape
from fairevals.export import PLATFORMS

SUMMARY = "Write what platforms and participants need: a Codabench bundle, TIRA's evaluation, a file per run."
EXAMPLE = """  fairevals export participants --task qrels/task.toml runs/*.run -o participants
  fairevals export codabench --task my.toml baseline.run --image me/my-task:1 -o bundle
  fairevals export tira --task $inputDataset/task.toml $inputRun/run.txt -o $outputDir"""


def configure(parser: argparse.ArgumentParser) -> None:
    text = (
        "codabench: bundle.zip with the task, the scoring program, and the runs as solutions; tira: "
        "evaluation.prototext; participants: for each run a table and a page, beside the range of all official runs"
    )
    parser.add_argument("platform", choices=PLATFORMS, help=text)
    common.add_collection(parser)
    common.add_runs(parser)
    common.add_measures(parser)
    text = (
        "codabench: the Docker image to score in (default: Python's own, where packages are installed first)"
    )
    parser.add_argument("--image", metavar="NAME", help=text)
    common.add_policy(parser)
    common.add_jobs(parser)
    common.add_folder(parser.add_argument_group("output"), "the files")


def run(args: argparse.Namespace) -> int:
    from fairevals.api import scored
    from fairevals.io.folders import check_folder

    check_folder(args.output, force=args.force)  # before the work
    collection, plan = common.plan_of(args)
    result = scored(args.runs, collection, plan, jobs=args.jobs, progress=common.progress("scoring"))
    common.log(*result.remarks)
    result = replace(result, qrels=args.qrels, given=args.measures is not None)
    files = result.export(args.platform, args.output, image=args.image, force=args.force)
    others = f" and {len(files) - 1} other files" if len(files) > 1 else ""
    print(f"written: {escape(str(files[0]), 300)}{others}")
    return 0

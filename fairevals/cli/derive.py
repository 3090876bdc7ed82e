"""`fairevals derive`: qrels and memberships from entity annotations."""

from __future__ import annotations

import argparse

SUMMARY = "Make qrels and memberships from entity annotations, and say how far the annotators agree."
EXAMPLE = "  fairevals derive --task fairweb.toml --annotations annotations.tsv --out fairweb"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--task", required=True, metavar="T.toml", help="the task file, for its attributes")
    parser.add_argument(
        "--annotations",
        required=True,
        metavar="A.tsv",
        help="csv or tsv table: topic, doc, entity, annotator, and a column for each attribute; - for stdin",
    )
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="folder for the qrels and memberships files"
    )
    parser.add_argument("--force", action="store_true", help="overwrite files that are there already")


def run(args: argparse.Namespace) -> int:
    """Derive, write, and print the summary and the files."""
    from fairevals.derive import derive, describe_derived, read_annotations, write_derived
    from fairevals.errors import escape
    from fairevals.io.task import read_task

    derived = derive(read_task(args.task), read_annotations(args.annotations))
    files = write_derived(derived, args.out, force=args.force)
    print(describe_derived(derived))
    for file in files:
        print(f"wrote {escape(str(file), 200)}")
    return 0

"""`fairevals derive`."""

import argparse

SUMMARY = "Derive qrels and memberships from entity annotations, and report the annotators' agreement."
EXAMPLE = "  fairevals derive --task fairweb.toml --annotations annotations.tsv --out fairweb"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    table = "csv or tsv table: topic, doc, entity, annotator, one column per attribute; - for standard input"
    add("--task", required=True, metavar="T.toml", help="task file that declares the attributes")
    add("--annotations", required=True, metavar="A.tsv", help=table)
    add("--out", required=True, metavar="DIR", help="folder for the qrels and memberships files")
    add("--force", action="store_true", help="overwrite existing files")


def run(args: argparse.Namespace) -> int:
    from fairevals.derive import derive, describe_derived, read_annotations, write_derived
    from fairevals.errors import escape
    from fairevals.io.task import read_task

    derived = derive(read_task(args.task), read_annotations(args.annotations))
    files = write_derived(derived, args.out, force=args.force)
    print(describe_derived(derived))
    for file in files:
        print(f"wrote {escape(str(file), 200)}")
    return 0

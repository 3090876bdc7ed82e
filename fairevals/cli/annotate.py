"""`fairevals annotate`."""

import argparse

from fairevals.cli import common
from fairevals.errors import UsageError

SUMMARY = "Serve pooled pages to assessors, who name their entities in the browser; export what they saved."
EXAMPLE = """  fairevals annotate --task my.toml --pool pool.txt --pages pages/ --assessors assessors.csv --data work
  fairevals annotate status work
  fairevals annotate export work -o annotations.csv"""


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    text = "without: serve; export: print annotations.csv; status: print progress and agreement"
    add("action", nargs="?", choices=("export", "status"), help=text)
    add("folder", nargs="?", metavar="DATA", help="for export and status: the folder of --data")
    add = parser.add_argument_group("what is annotated").add_argument
    add("--task", metavar="T.toml", help="task file: topics, attributes, [annotation]")
    add("--pool", metavar="POOL", help="output of fairevals pool")
    text = "folder with the pages (DOC.html, .txt or .pdf), or a csv with columns doc and url"
    add("--pages", metavar="DIR", help=text)
    text = "csv with columns assessor and, optionally, topics (globs, separated by spaces)"
    add("--assessors", metavar="A.csv", help=text)
    text = "assessors of each page (default: the task's assessors_per_page, else 2)"
    add("--per-page", type=common.whole(1, 20), metavar="N", help=text)
    text = "minutes without activity after which an unfinished page returns to the queue (default 60)"
    add("--return-after", type=common.positive_number, default=60.0, metavar="MINUTES", help=text)
    add("--seed", type=common.whole(0), default=0, metavar="N", help="seed of the order of pages (default 0)")
    add = parser.add_argument_group("server").add_argument
    add(
        "--data",
        default="annotate-data",
        metavar="DIR",
        help="folder of the database (default: annotate-data)",
    )
    add("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1, this machine only)")
    add("--port", type=common.whole(0, 65535), default=8765, metavar="N", help="default: 8765")
    add(
        "--url",
        metavar="URL",
        help="public address behind a reverse proxy, such as https://annotate.example.org",
    )
    add = parser.add_argument_group("export").add_argument
    common.add_file(add)
    text = "put ' before texts that a spreadsheet would take for formulas, such as =1+1"
    add("--spreadsheet", action="store_true", help=text)


def run(args: argparse.Namespace) -> int:
    from fairevals.annotate import export_annotations, status

    if args.action is None:
        return _serve(args)
    if args.folder is None:
        raise UsageError(f"give the folder of --data: fairevals annotate {args.action} DATA")
    if args.action == "status":
        common.emit([status(args.folder)], args.output)
    else:
        common.emit([export_annotations(args.folder, spreadsheet=args.spreadsheet)], args.output)
    return 0


def _serve(args: argparse.Namespace) -> int:
    from fairevals.annotate import AnnotationInputs, serve

    for name in ("task", "pool", "pages"):
        if getattr(args, name) is None:
            raise UsageError(f"give --{name}; --help shows an example")
    inputs = AnnotationInputs(args.task, args.pool, args.pages, args.assessors, args.per_page, args.seed)
    serve(
        inputs,
        args.data,
        host=args.host,
        port=args.port,
        url=args.url,
        hold=args.return_after * 60,
        announce=announce,
    )
    return 0


def announce(who: str, link: str) -> None:
    """Print a link, which is shown only once."""
    print(f"{who or '(organiser)'}\t{link}", flush=True)

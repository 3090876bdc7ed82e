"""`fairevals pool`."""

import argparse

from fairevals.cli import common

SUMMARY = "List the documents in the first ranks of runs, for judging: topic, document, number of runs."
EXAMPLE = "  fairevals pool runs/*.run --depth 20 -o pool.txt"


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    common.add_runs(parser)
    add("--depth", type=common.whole(1), required=True, metavar="K", help="ranks to take from each run")
    add("--order", choices=("score", "file"), default="score", help="rank by score (default) or by lines")
    add("--policy", choices=("ranking", "samples"), default="ranking", help="samples: pool every sample")
    common.add_file(add)


def run(args: argparse.Namespace) -> int:
    from collections import Counter
    from itertools import pairwise

    from fairevals.collection.qrels import in_order
    from fairevals.collection.run import read_run

    common.check_outputs(args)
    counts: Counter[tuple[str, str]] = Counter()
    show = common.progress("pooling")
    for number, path in enumerate(args.runs, 1):
        ranked = read_run(path, order=args.order, samples=args.policy == "samples", depth=args.depth)
        documents: set[tuple[str, str]] = set()
        for (topic, _), (start, end) in zip(ranked.lists, pairwise(ranked.offsets.tolist()), strict=True):
            first = slice(start, min(start + args.depth, end))
            documents.update((topic, doc) for doc in ranked.docs.take(first).texts())
        counts.update(documents)
        if show:
            show(number, len(args.runs))
    place = {topic: i for i, topic in enumerate(in_order({topic for topic, _ in counts}))}
    lines = sorted(counts.items(), key=lambda item: (place[item[0][0]], item[0][1].encode()))
    common.emit((f"{topic} {doc} {count}\n" for (topic, doc), count in lines), args.output)
    return 0

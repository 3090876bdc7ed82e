"""`fairevals train`: reference policies for a task's own data."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from fairevals.cli.common import add_folder, add_jobs, log, progress, whole

if TYPE_CHECKING:
    from fairevals.training import Dataset
    from fairevals.training.outputs import SummaryRow

SUMMARY = "Train reference policies: for utility, for fairness of exposure, and baselines."
EXAMPLE = (
    "  fairevals train fair-pg-rank --train train.letor.gz --valid valid.letor.gz --test test.letor.gz "
    "--groups groups.csv --lambda 0 --lambda 1 --lambda 10 --seeds 5 -o policies"
)

PLACES = 4


def configure(parser: argparse.ArgumentParser) -> None:
    from fairevals.training.settings import METHODS, Settings

    text = "; ".join(f"{method}: {meaning}" for method, meaning in METHODS.items())
    parser.add_argument("method", metavar="METHOD", choices=METHODS, help=text)
    data = parser.add_argument_group("data (LETOR / SVMlight: grade qid:ID 1:0.5 … # doc)")
    data.add_argument("--train", required=True, metavar="F", help="training data")
    text = "validation data: training stops early and returns the best model"
    data.add_argument("--valid", metavar="F", help=text)
    text = "validate on this share of the training topics"
    data.add_argument("--holdout", type=float, metavar="SHARE", help=text)
    data.add_argument("--test", metavar="F", help="test data")
    add_groups(data)
    out = parser.add_argument_group("output")
    add_folder(out, "the policies, summary.csv and learning.svg", "write into a folder that is not empty")
    text = "rankings drawn for values that are not exact (default 1000)"
    out.add_argument("--eval-samples", type=whole(2), default=1000, metavar="N", help=text)
    sweep = parser.add_argument_group("sweep: one policy per λ and seed")
    text = "weight of the disparity"
    sweep.add_argument("--lambda", dest="lambdas", action="append", type=float, metavar="L", help=text)
    sweep.add_argument("--seeds", type=whole(1), metavar="N", help="seeds 0 to N−1 (default 1)")
    add_jobs(sweep)
    add = parser.add_argument_group("training (defaults are the method's)").add_argument
    kinds: dict[str, Any] = {"float": float, "int": whole(0), "str": str}
    for f in Settings.fields():
        option, text, choices = f"--{f.name.replace('_', '-')}", f.metadata["meaning"], f.metadata["choices"]
        if f.type == "bool":
            add(option, action=argparse.BooleanOptionalAction, default=None, help=text)
        elif choices:
            add(option, choices=choices, help=text)
        elif f.name != "lam":
            add(option, type=kinds[str(f.type)], metavar="X", help=text)


def add_groups(parser: Any) -> None:
    """--groups and --group-feature."""
    add = parser.add_mutually_exclusive_group().add_argument
    add("--groups", metavar="F", help="csv or tsv table with columns [topic,] doc, group [, weight]")
    add("--group-feature", type=whole(1), metavar="N", help="number of the feature that contains the group")


def run(args: argparse.Namespace) -> int:
    from concurrent.futures import ProcessPoolExecutor
    from contextlib import nullcontext

    from fairevals.errors import UsageError, escape, names, pluralize
    from fairevals.io.folders import check_folder
    from fairevals.report.style import figure_bytes
    from fairevals.report.training import learning_figure
    from fairevals.training import sweep, write_results
    from fairevals.training.settings import Settings

    check_folder(args.output, force=args.force)  # before the work
    if args.seed is not None and args.seeds is not None:
        raise UsageError("give --seed or --seeds, not both")
    given = {f.name: getattr(args, f.name, None) for f in Settings.fields() if f.name not in ("lam", "seed")}
    settings = {name: value for name, value in given.items() if value is not None}
    Settings.for_method(args.method, **settings)  # report wrong settings before reading files
    splits = _splits(args)
    with ProcessPoolExecutor(args.jobs) if args.jobs > 1 else nullcontext() as executor:
        policies = sweep(
            args.method,
            splits["train"],
            splits.get("valid"),
            lambdas=args.lambdas or (),
            seeds=range(args.seeds) if args.seeds else (args.seed or 0,),
            executor=executor,
            progress=progress("training"),
            **settings,
        )
    learned = learning_figure(policies)
    rows = write_results(
        args.output,
        policies,
        splits,
        samples=args.eval_samples,
        force=args.force,
        extra={"learning.svg": figure_bytes(learned)} if learned is not None else {},
        progress=progress("evaluating"),
    )
    last = list(splits)[-1]
    print(_table(rows, last), end="")
    for measure, count in {row.measure: row.undefined for row in rows if row.split == last}.items():
        if count:
            many = pluralize(len(splits[last]), "topic")
            log(f"{measure} is undefined on {count} of {many}: not in its mean")
    if splits["train"].groups:
        source = escape(args.groups, 200) if args.groups else f"feature {args.group_feature}"
        log(f"the attribute group is that of {source}: {names(splits['train'].groups)}")
    many = "policy" if len(policies) == 1 else "policies"
    log(f"wrote {len(policies)} {many} and summary.csv to {escape(args.output, 200)}")
    return 0


def _splits(args: argparse.Namespace) -> dict[str, Dataset]:
    """The splits train, valid, test, as far as they are given, with the same features and groups."""
    import numpy as np

    from fairevals.errors import UsageError
    from fairevals.training import load_dataset

    if args.holdout is not None and (args.valid or not 0 < args.holdout < 1):
        raise UsageError("--holdout is a share between 0 and 1, and excludes --valid")
    names = [name for name in ("train", "valid", "test") if getattr(args, name) is not None]
    datasets = [load_dataset(getattr(args, name)) for name in names]
    width = max(data.features.shape[1] for data in datasets)
    datasets = with_groups([data.with_features(width) for data in datasets], args)
    splits = dict(zip(names, datasets, strict=True))
    if args.holdout is not None:
        data = splits["train"]
        held = round(args.holdout * len(data))
        if not 0 < held < len(data):
            raise UsageError(f"--holdout {args.holdout:g} of {len(data)} topics leaves one side empty")
        order = np.random.default_rng(0).permutation(len(data))
        sides = {"train": data.split(np.sort(order[held:])), "valid": data.split(np.sort(order[:held]))}
        splits = sides | {name: split for name, split in splits.items() if name != "train"}
    return splits


def with_groups(data: list[Dataset], args: argparse.Namespace) -> list[Dataset]:
    """The data with the groups of --groups or --group-feature."""
    from fairevals.training import groups_from_feature, groups_from_file

    if args.groups:
        return groups_from_file(data, args.groups)
    return groups_from_feature(data, args.group_feature) if args.group_feature else data


def _table(rows: list[SummaryRow], split: str) -> str:
    """A leaderboard of the policies on one split, in the order of the sweep."""
    from fairevals.evaluation.leaderboard import best_of, with_se
    from fairevals.io.out import Table, render
    from fairevals.measures import parse_measure

    by_cell = {(row.policy, row.measure): row for row in rows if row.split == split}
    policies, measures = (list(dict.fromkeys(names)) for names in zip(*by_cell, strict=True))
    header, columns = [f"policy ({split})"], [policies]
    marked: set[tuple[int, int]] = set()
    for measure in measures:
        direction, cells = parse_measure(measure).direction, [by_cell[policy, measure] for policy in policies]
        best = best_of([float(direction.cost(row.value)) for row in cells], PLACES)
        marked |= {(place, len(columns)) for place, is_best in enumerate(best) if is_best}
        header.append(f"{measure} {direction.arrow}")
        columns.append([with_se(row.value, row.se, PLACES) for row in cells])
    table = Table(tuple(header), tuple(zip(*columns, strict=True)), frozenset(marked))
    return render(table, "table", PLACES)

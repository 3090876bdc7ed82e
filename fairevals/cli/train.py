"""`fairevals train`: reference policies for a task's own data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairevals.cli.common import add_folder, add_jobs, log, progress, whole

if TYPE_CHECKING:
    from fairevals.report.training import TrainingSummary
    from fairevals.training import Dataset, Epoch, Settings, TrainedPolicy
    from fairevals.training.summary import SummaryRow

SUMMARY = "Train reference policies: for utility, for fairness of exposure, and baselines."
EXAMPLE = (
    "  fairevals train fair-pg-rank --train train.letor.gz --valid valid.letor.gz --test test.letor.gz "
    "--groups groups.csv --lambda 0 --lambda 1 --lambda 10 --seeds 5 -o policies"
)

PLACES = 4
_SWEPT = ("lam", "max_disparity")
"""Settings of which several values may be given."""


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
    text = "task file: its attributes and targets, which measures name as attr='…'"
    add_groups(data).add_argument("--task", metavar="T.toml", help=text)
    out = parser.add_argument_group("output")
    add_folder(out, "the policies, summary.csv and learning.svg", "write into a folder that is not empty")
    text = "go on with the training that was interrupted in this folder: same data, same settings"
    out.add_argument("--resume", action="store_true", help=text)
    text = "rankings drawn for values that are not exact (default 1000)"
    out.add_argument("--eval-samples", type=whole(2), default=1000, metavar="N", help=text)
    text = (
        "compare with a random order, and λ=0 at higher temperatures and with a parity offset (default: yes)"
    )
    out.add_argument("--baselines", action=argparse.BooleanOptionalAction, default=True, help=text)
    sweep = parser.add_argument_group("sweep: one policy per λ, or largest disparity, and seed")
    text = "weight of the disparity"
    sweep.add_argument("--lambda", dest="lambdas", action="append", type=float, metavar="L", help=text)
    text = "in place of a weight: the largest mean disparity on the training data"
    bounds: Any = {"dest": "max_disparities", "action": "append", "type": float, "metavar": "E"}
    sweep.add_argument("--max-disparity", help=text, **bounds)
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
        elif f.name not in _SWEPT:
            add(option, type=kinds[str(f.type).removesuffix(" | None")], metavar="X", help=text)


def add_groups(parser: Any) -> Any:
    """--groups and --group-feature, of which one may be given; returns that group of options."""
    either = parser.add_mutually_exclusive_group()
    text = "csv or tsv table with columns [topic,] doc, group [, weight]"
    either.add_argument("--groups", metavar="F", help=text)
    text = "number of the feature that contains the group"
    either.add_argument("--group-feature", type=whole(1), metavar="N", help=text)
    return either


def run(args: argparse.Namespace) -> int:
    from fairevals.errors import UsageError, escape, names, pluralize
    from fairevals.io.folders import check_folder
    from fairevals.io.out import render
    from fairevals.report.style import figure_bytes
    from fairevals.report.training import TrainingSummary, family_of, learning_figure, training_table
    from fairevals.training import sweep_settings, train_all, with_baselines, write_results
    from fairevals.training.settings import Settings
    from fairevals.training.unfinished import UNFINISHED, Unfinished

    folder = Path(args.output)
    is_unfinished = (folder / UNFINISHED).is_dir()
    hint = " but has an unfinished training, which --resume goes on with" if is_unfinished else ""
    check_folder(folder, force=args.force or (args.resume and is_unfinished), hint=hint)  # before the work
    if args.seed is not None and args.seeds is not None:
        raise UsageError("give --seed or --seeds, not both")
    fixed = [f.name for f in Settings.fields() if f.name not in (*_SWEPT, "seed")]
    given = {name: getattr(args, name, None) for name in fixed}
    settings = {name: value for name, value in given.items() if value is not None}
    seeds = range(args.seeds) if args.seeds else (args.seed or 0,)
    swept = {"lambdas": args.lambdas or (), "max_disparities": args.max_disparities or ()}
    runs = sweep_settings(args.method, seeds=seeds, **swept, **settings)  # and wrong settings too
    if args.baselines:
        runs = with_baselines(runs)
    splits = _splits(args, runs[0])
    unfinished = Unfinished(folder, splits, runs)
    known = unfinished.resume() if args.resume else {}
    place = escape(str(unfinished.folder), 200)
    if known:
        log(f"{len(known)} of {_policies(len(runs))} taken from {place}")
    for policy in known.values():
        policy.warn()  # as when it was trained
    shown = _Progress([run for run in runs if run.policy_name not in known], splits["train"])

    def finish(policy: TrainedPolicy) -> None:
        shown.on_policy(policy)
        if policy.curve:  # the others are trained in one step
            unfinished.keep(policy)

    try:
        policies = train_all(
            runs,
            splits["train"],
            splits.get("valid"),
            jobs=args.jobs,
            known=known,
            on_epoch=shown.on_epoch if shown.bar else None,
            on_policy=finish,
        )

        def figures(rows: list[SummaryRow]) -> dict[str, bytes]:
            figure = learning_figure(policies, TrainingSummary.of(rows))
            return {} if figure is None else {"learning.svg": figure_bytes(figure)}

        rows = write_results(
            folder,
            policies,
            splits,
            samples=args.eval_samples,
            force=True,
            baselines=args.baselines,
            extra=figures,
            progress=progress("evaluating"),
        )
    except BaseException:
        if unfinished.count:
            log(f"{unfinished.count} of {_policies(len(runs))} kept in {place}; --resume goes on from there")
        raise
    summary = TrainingSummary.of(rows)
    untrained = {family_of(policy.settings) for policy in policies if not policy.fit.improved}
    print(render(training_table(summary, PLACES, untrained), "table", PLACES), end="")
    if untrained:
        log("† no better than an untrained policy by what it was trained for")
    chosen_on = "valid" if "valid" in splits else "train"
    log(*_legend(summary, len({policy.settings.seed for policy in policies}), chosen_on))
    last = summary.shown_splits[-1]
    for measure, count in {row.measure: row.undefined for row in rows if row.split == last}.items():
        if count:
            many = pluralize(len(splits[last]), "topic")
            log(f"{measure} is undefined on {count} of {many}: not in its mean")
    if splits["train"].groups and args.task is None:
        source = escape(args.groups, 200) if args.groups else f"feature {args.group_feature}"
        log(f"the attribute group is that of {source}: {names(splits['train'].groups)}")
    log(f"wrote {_policies(len(policies))} and summary.csv to {escape(args.output, 200)}")
    return 0


def _policies(count: int) -> str:
    return "1 policy" if count == 1 else f"{count} policies"


class _Progress:
    """The progress of training on a terminal: a bar over all epochs, and the policy whose epoch was the last.

    How many steps L-BFGS takes is not known before: its policies count as one epoch.
    """

    def __init__(self, runs: list[Settings], train: Dataset) -> None:
        from fairevals.training.methods import is_trained_in_batches

        self.bar, self.finished = progress("training"), 0
        self._epochs = dict.fromkeys((run.policy_name for run in runs), 0)
        self._most = dict.fromkeys(self._epochs, 0)
        if self.bar is not None:
            self._most = {
                run.policy_name: run.passes(len(train)) if is_trained_in_batches(run, train) else 0
                for run in runs
            }

    def on_epoch(self, settings: Settings, epoch: Epoch) -> None:
        name = settings.policy_name
        self._epochs[name] = min(epoch.number, self._most[name])
        where = f"epoch {epoch.number} of {self._most[name]}" if self._most[name] else f"step {epoch.number}"
        is_objective = settings.method in ("pg-rank", "fair-pg-rank")  # whose loss is minus the objective
        sign, word = (-1, "objective") if is_objective else (1, "loss")
        value = f", {word} {sign * epoch.loss:.4f}" if epoch.number else ""
        self._show(f", {name}: {where}{value}")

    def on_policy(self, policy: TrainedPolicy) -> None:
        self.finished += 1
        self._epochs[policy.name] = self._most[policy.name] + 1
        self._show()

    def _show(self, note: str = "") -> None:
        if self.bar is not None:
            many = f"{self.finished} of {_policies(len(self._epochs))}"
            self.bar(sum(self._epochs.values()), sum(self._most.values()) + len(self._most), many + note)


def _splits(args: argparse.Namespace, settings: Settings) -> dict[str, Dataset]:
    """The splits train, valid, test, as far as they are given, with the same features and groups."""
    import numpy as np

    from fairevals.errors import UsageError
    from fairevals.training import load_dataset, with_task

    if args.holdout is not None and (args.valid or not 0 < args.holdout < 1):
        raise UsageError("--holdout is a share between 0 and 1, and excludes --valid")
    names = [name for name in ("train", "valid", "test") if getattr(args, name) is not None]
    datasets = [load_dataset(getattr(args, name)) for name in names]
    width = max(data.features.shape[1] for data in datasets)
    datasets = with_groups([data.with_features(width) for data in datasets], args)
    if args.task is not None:
        datasets = with_task(datasets, args.task, settings)
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


def _legend(summary: TrainingSummary, seeds: int, chosen_on: str) -> list[str]:
    """What a reader of the table should know."""
    from fairevals.training.baselines import PARITY, TEMPERATURE

    lines = [f"means over {seeds} seeds; summary.csv has each policy"] if seeds > 1 else []
    if any(name.endswith(PARITY) for name in summary.families):
        same = "the same mean exposure, with the disparity's attention and cutoff"
        lines.append(f"parity: offsets give all groups {same}; D_group with these is 0 whatever the grades")
    if any(name.endswith(TEMPERATURE) for name in summary.families):
        fair = f"λ=0 is as fair on the {chosen_on} data as the policy above it, or as nearly as possible"
        lines.append(f"T: a temperature at which {fair}")
    names = dict.fromkeys(measure for measure, _ in summary.columns if "(" in measure)
    return [*lines, f"measures: {', '.join(names)}"] if names else lines

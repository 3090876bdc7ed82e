"""`fairevals predict`: a trained policy applied to new data."""

import argparse
from pathlib import Path

from fairevals.cli.common import add_file, check_outputs, emit, whole

SUMMARY = "Apply a trained policy to data: a run of log-weights, or sampled rankings."
EXAMPLE = "  fairevals predict policies/fair-pg-rank-lambda1-seed0 --data new.letor.gz -o new.run"


def configure(parser: argparse.ArgumentParser) -> None:
    from fairevals.cli.train import add_groups

    add = parser.add_argument
    add("model", metavar="MODEL", help="the folder of a policy, as `fairevals train` wrote it")
    add("--data", required=True, metavar="F", help="LETOR / SVMlight data (- for standard input)")
    add_file(add)
    text = "write N sampled rankings per topic instead of log-weights (default for lp: 100)"
    add("--samples", type=whole(1), metavar="N", help=text)
    add("--tag", metavar="TAG", help="tag of the run (default: the policy's name)")
    add_groups(parser)


def run(args: argparse.Namespace) -> int:
    import warnings

    from fairevals.cli.train import with_groups
    from fairevals.collection.run import run_lines
    from fairevals.errors import InputWarning, UsageError, escape
    from fairevals.training import load_dataset, make_run, read_policy

    check_outputs(args, [Path(args.model) / name for name in ("config.json", "model.npz", "trees.txt")])
    policy = read_policy(args.model)
    data = load_dataset(args.data)
    if data.features.shape[1] > policy.model.features:
        unknown = f"features beyond {policy.model.features}, the number the model knows, are ignored"
        warnings.warn(InputWarning(f"{data.name}: {unknown}"), stacklevel=2)
    (data,) = with_groups([data], args)
    data = data.with_features(policy.model.features)
    tag = args.tag or policy.name
    if tag.split() != [tag]:
        raise UsageError(f"the tag {escape(tag)!r} contains blanks")
    samples = args.samples or (100 if policy.is_mixture else None)
    emit(run_lines(make_run(policy, data, tag, samples)), args.output)
    return 0

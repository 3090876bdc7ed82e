"""Training for measures with the attributes and targets of a task."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from fairevals.cli.main import main
from fairevals.errors import UsageError
from fairevals.training import Objective, Settings, load_dataset, with_task
from fairevals.training.objectives import WeightedMeasure, parse_measure


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    lines, groups = [], ["doc,group"]
    for topic in range(6):
        for d in range(5):
            doc, x = f"t{topic}d{d}", rng.normal(size=2)
            lines.append(f"{int(np.clip(x[0] + 1.5, 0, 3))} qid:{topic} 1:{x[0]:.3f} 2:{x[1]:.3f} # {doc}")
            groups.append(f"{doc},{'ab'[int(x[1] > 0)]}")
    (tmp_path / "train.letor").write_text("\n".join(lines) + "\n")
    (tmp_path / "groups.csv").write_text("\n".join(groups) + "\n")
    (tmp_path / "task.toml").write_text(
        'qrels = "none.qrels"\ncutoff = 3\n[attributes.SIDE]\ngroups = ["a", "b"]\n'
        'memberships = "groups.csv"\ntarget = {a = 0.8, b = 0.2}\n'
    )
    return tmp_path


def test_a_task_gives_targets_and_the_summary_is_what_score_prints(folder, capsys):
    words = [
        "--train",
        folder / "train.letor",
        "--task",
        folder / "task.toml",
        "--lambda",
        "5",
        "--no-baselines",
    ]
    words += [
        "--disparity",
        "AWRF(attr='SIDE')",
        "--utility",
        "nDCG",
        "--eval-samples",
        "5",
        "-o",
        folder / "out",
    ]
    assert main(["train", "fair-pg-rank", *map(str, words)]) == 0
    run = folder / "out" / "fair-pg-rank-lambda5-seed0" / "train.run"
    capsys.readouterr()
    task = str(folder / "out" / "train.toml")
    assert main(["score", "--task", task, str(run), "--format", "csv", "-m", "AWRF(attr='SIDE')"]) == 0
    printed = capsys.readouterr().out.splitlines()[1].split(",")[-2]
    with (folder / "out" / "summary.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["measure"] == "AWRF(attr='SIDE')"]
    assert {row["value"] for row in rows if row["policy"] == "fair-pg-rank-lambda5-seed0"} == {printed}


def test_training_sees_the_target_of_the_task(folder):
    settings = Settings.for_method("fair-pg-rank", disparity="AWRF(attr='SIDE')")
    (data,) = with_task([load_dataset(folder / "train.letor")], folder / "task.toml", settings)
    assert data.groups == ("a", "b") and data.attribute == "SIDE"
    part = WeightedMeasure(1.0, parse_measure("AWRF(attr='SIDE')"))
    objective = Objective((part,), 0.0, parse_measure("D_ind"), 0.0)
    some = data.split([2, 4]).batch([1])  # topics are selected twice
    share, target = some.membership[..., 0].mean(), np.array([0.8, 0.2])
    shares = np.array([share, 1 - share])
    mean = (shares + target) / 2
    kl = [np.sum(p * np.log2(np.where(p > 0, p / mean, 1))) for p in (shares, target)]
    assert objective.value(np.zeros((1, 5)), some)[0] == pytest.approx(1 - sum(kl) / 2, abs=1e-5)


def test_an_attribute_that_the_task_lacks_is_named(folder):
    with pytest.raises(UsageError, match="group"):
        with_task(
            [load_dataset(folder / "train.letor")], folder / "task.toml", Settings.for_method("fair-pg-rank")
        )

"""`fairevals train` and `fairevals predict` from end to end."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from fairevals.cli import predict, train
from fairevals.cli.main import COMMANDS, make_parser
from fairevals.errors import InputError, InputWarning, UsageError


def call(module, *words):
    name = module.__name__.rsplit(".", 1)[1]
    args = make_parser(name).parse_args([str(word) for word in words])
    return args.run(args)


@pytest.fixture
def files(tmp_path):
    """Two splits and a table of groups; the third feature is the group too."""
    rng = np.random.default_rng(0)
    groups = ["doc,group"]
    for split, topics in (("train", 12), ("test", 5)):
        lines = []
        for t in range(topics):
            for d in range(int(rng.integers(3, 6))):
                x, group = rng.normal(size=2), int(rng.integers(2))
                lines.append(
                    f"{int(x[0] > 0)} qid:{split}{t} 1:{x[0]:.4f} 2:{x[1]:.4f} 3:{group} # {split}{t}d{d}\n"
                )
                groups.append(f"{split}{t}d{d},{'ab'[group]}")
        (tmp_path / f"{split}.letor").write_text("".join(lines))
    (tmp_path / "groups.csv").write_text("\n".join(groups))
    return tmp_path


def summary(folder):
    with (folder / "summary.csv").open() as file:
        return list(csv.DictReader(file))


def test_train_writes_what_it_says_and_predict_repeats_it(files, capsys):
    out = files / "out"
    code = call(
        train, "fair-pg-rank", "--train", files / "train.letor", "--test", files / "test.letor", "--holdout", "0.25",
        "--groups", files / "groups.csv", "--lambda", "0", "--lambda", "2", "--seeds", "2", "--epochs", "3", "-o", out,
        "--eval-samples", "20",
    )  # fmt: skip
    assert code == 0
    printed = capsys.readouterr().out
    assert "fair-pg-rank-lambda2-seed1" in printed and "D_group" in printed
    rows = summary(out)
    assert list(rows[0]) == ["policy", "lambda", "seed", "split", "measure", "value", "se"]
    assert {row["split"] for row in rows} == {"train", "valid", "test"}
    assert {row["lambda"] for row in rows} == {"0", "2"} and {row["seed"] for row in rows} == {"0", "1"}
    assert all(
        (row["se"] != "") == (row["measure"] == "ERR" and ".greedy" not in row["policy"]) for row in rows
    )
    home = out / "fair-pg-rank-lambda2-seed0"
    assert {p.name for p in home.iterdir()} == {
        "model.npz",
        "config.json",
        "log.csv",
        "test.run",
        "valid.run",
    }
    with (home / "log.csv").open() as file:
        curve = list(csv.DictReader(file))
    assert [row["epoch"] for row in curve] == ["0", "1", "2", "3"]
    assert call(predict, home, "--data", files / "test.letor", "-o", files / "again.run") == 0
    assert (files / "again.run").read_text() == (home / "test.run").read_text()
    assert call(predict, home, "--data", files / "test.letor", "--samples", "3", "--tag", "mine") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {line[1] for line in lines} == {"1", "2", "3"} and {line[5] for line in lines} == {"mine"}


def test_the_same_command_twice_gives_the_same_files(files):
    for name in ("one", "two"):
        call(train, "pg-rank", "--train", files / "train.letor", "--estimator", "reinforce", "--epochs", "2",
             "--eval-samples", "10", "-o", files / name)  # fmt: skip
    found = sorted(p.relative_to(files / "one") for p in (files / "one").rglob("*") if p.is_file())
    assert "pg-rank-seed0/train.run" in map(str, found)
    for path in found:
        assert (files / "one" / path).read_bytes() == (files / "two" / path).read_bytes()


def test_lp_writes_sampled_rankings(files, capsys):
    out = files / "lp"
    call(train, "lp", "--train", files / "train.letor", "--test", files / "test.letor", "--group-feature", "3",
         "--lambda", "0.5", "--eval-samples", "30", "-o", out)  # fmt: skip
    lines = [line.split() for line in (out / "lp-lambda0.5-seed0" / "test.run").read_text().splitlines()]
    assert {line[1] for line in lines} == {str(s) for s in range(1, 31)}
    assert all(row["se"] == "" for row in summary(out))
    home = out / "lp-lambda0.5-seed0"
    args = (
        "--data",
        files / "test.letor",
        "--group-feature",
        "3",
        "--samples",
        "30",
        "-o",
        files / "again.run",
    )
    call(predict, home, *args)
    assert (files / "again.run").read_text() == (home / "test.run").read_text()
    with pytest.raises(UsageError, match="needs groups"):
        call(predict, home, "--data", files / "test.letor")


def test_a_folder_that_is_not_empty_is_left_alone(files):
    out = files / "out"
    out.mkdir()
    (out / "precious").write_text("x")
    words = ("ridge", "--train", files / "train.letor", "--eval-samples", "5", "-o", out)
    with pytest.raises(UsageError, match="not empty"):
        call(train, *words)
    assert [p.name for p in out.iterdir()] == ["precious"]
    call(train, *words, "--force")
    assert (out / "precious").read_text() == "x" and (out / "summary.csv").exists()
    with pytest.raises(UsageError, match="no folder"):
        call(train, *words[:-1], out / "precious", "--force")


def test_wrong_input_is_told_with_file_and_line(files):
    (files / "bad.letor").write_text("1 qid:1 1:2\n1 qid:1 1:x\n")
    with pytest.raises(InputError, match=r"bad.letor:2"):
        call(train, "ridge", "--train", files / "bad.letor", "-o", files / "out")
    assert not (files / "out").exists()
    for words in (
        ("--lambda", "1"),
        ("--holdout", "1.5"),
        ("--seed", "1", "--seeds", "2"),
        ("--utility", "nope"),
    ):
        with pytest.raises(UsageError):
            call(train, "pg-rank", "--train", files / "train.letor", "-o", files / "out", *words)
    with pytest.raises(UsageError, match="needs groups"):
        call(train, "deltr", "--train", files / "train.letor", "-o", files / "out")


def test_features_that_the_model_does_not_know(files, capsys):
    call(train, "ridge", "--train", files / "train.letor", "--eval-samples", "5", "-o", files / "out")
    home = files / "out" / "ridge-seed0"
    (files / "new.letor").write_text("0 qid:1 1:1 9:1\n0 qid:1 1:-1\n")
    with pytest.warns(InputWarning, match="beyond 3"):
        call(predict, home, "--data", files / "new.letor")
    (files / "few.letor").write_text("0 qid:1 1:1\n0 qid:1 1:-1\n")
    call(predict, home, "--data", files / "few.letor")


def test_jobs(files):
    call(train, "listnet", "--train", files / "train.letor", "--seeds", "2", "--jobs", "2", "--epochs", "1",
         "--eval-samples", "5", "-o", files / "out")  # fmt: skip
    assert {row["seed"] for row in summary(files / "out")} == {"0", "1"}


@pytest.mark.skipif("train" not in COMMANDS, reason="not among the commands")
def test_help():
    for name in ("train", "predict"):
        assert "example:" in make_parser(name).format_help()

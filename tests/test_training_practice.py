"""Training as a person meets it: progress, an interruption and what comes after it, and data that cannot work."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

from fairevals.cli.main import main
from fairevals.training import methods


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for split, topics in (("train", 8), ("test", 3)):
        lines = []
        for t in range(topics):
            for d in range(4):
                x = rng.normal(size=2)
                lines.append(
                    f"{int(x[0] > 0)} qid:{t} 1:{x[0]:.3f} 2:{x[1]:.3f} 3:{d % 2} # {split}{t}-{d}\n"
                )
        (tmp_path / f"{split}.letor").write_text("".join(lines))
    return tmp_path


def train(*more: str, out: str = "out") -> int:
    words = "train fair-pg-rank --train train.letor --test test.letor --group-feature 3 --lambda 0 --lambda 2 --seeds 2"
    return main([*words.split(), "--epochs", "3", "--eval-samples", "5", "-o", out, *more])


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def interrupt(monkeypatch, at: str, *, trained: list[str]):
    """Interrupt training when it comes to the policy `at`, and note the policies that are trained."""
    real = methods.train_policy

    def train_policy(settings, *args):
        if settings.policy_name == at:
            raise KeyboardInterrupt
        trained.append(settings.policy_name)
        return real(settings, *args)

    monkeypatch.setattr(methods, "train_policy", train_policy)


def test_an_interrupted_sweep_is_resumed_and_ends_as_if_it_had_not_been(folder, monkeypatch, capsys):
    assert train(out="whole") == 0
    table = capsys.readouterr().out
    trained: list[str] = []
    with monkeypatch.context() as patched:
        interrupt(patched, "fair-pg-rank-lambda2-seed0", trained=trained)
        assert train() == 130
    assert trained == ["fair-pg-rank-lambda0-seed0", "fair-pg-rank-lambda0-seed1"]
    err = capsys.readouterr().err
    assert err.endswith(
        "2 of 4 policies kept in out/unfinished; --resume goes on from there\nfairevals: interrupted\n"
    )
    kept = {name for name in contents(folder / "out") if name.endswith("model.npz")}
    assert kept == {f"unfinished/{name}/model.npz" for name in trained}
    assert train() == 2
    assert (
        "out is not empty but has an unfinished training, which --resume goes on with"
        in capsys.readouterr().err
    )
    with monkeypatch.context() as patched:
        interrupt(patched, "", trained=trained)
        assert train("--resume") == 0
    assert trained[2:] == ["fair-pg-rank-lambda2-seed0", "fair-pg-rank-lambda2-seed1"]
    printed = capsys.readouterr()
    assert printed.out == table and "2 of 4 policies taken from out/unfinished" in printed.err
    assert contents(folder / "out") == contents(folder / "whole")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--lr", "0.5"), "lr has changed, from 0.01 to 0.5"),
        (("--train", "test.letor"), "the train data has changed"),
        (("--holdout", "0.25"), "the train data has changed"),
    ],
)
def test_another_setting_is_not_resumed(folder, monkeypatch, capsys, words, message):
    with monkeypatch.context() as patched:
        interrupt(patched, "fair-pg-rank-lambda0-seed1", trained=[])
        assert train() == 130
    before = contents(folder / "out")
    assert train(*words, "--resume") == 2
    assert message in capsys.readouterr().err
    assert contents(folder / "out") == before
    assert train("--lr", "0.5", "--force") == 0
    assert not (folder / "out" / "unfinished").exists()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_progress_shows_epoch_and_objective_of_every_process(folder, monkeypatch, jobs):
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "200")
    assert train("--jobs", jobs) == 0
    lines = re.split(r"\r\x1b\[K", sys.stderr.getvalue())
    epochs = [line for line in lines if "epoch" in line]
    for name in ("lambda0-seed0", "lambda0-seed1", "lambda2-seed0", "lambda2-seed1"):
        mine = [line for line in epochs if name in line]
        assert [re.search(r"epoch (\d) of 3", line)[1] for line in mine] == ["0", "1", "2", "3"]
        assert all(re.search(r"objective 0\.\d{4}$", line) for line in mine[1:])
    counts = [int(re.search(r"\] (\d+)/16", line)[1]) for line in lines if line.startswith("training")]
    assert counts == sorted(counts) and counts[-1] == 16


@pytest.mark.parametrize("split", ["train", "valid"])
def test_data_without_a_relevant_document(folder, capsys, split):
    text = re.sub(r"(?m)^1", "0", (folder / "train.letor").read_text())
    (folder / "zero.letor").write_text(text.replace("0 qid:3", "-1 qid:3"))
    assert train(f"--{split}", "zero.letor") == 1
    expected = "zero.letor: no document has a grade above 0; expected relevant documents to learn from"
    assert expected in capsys.readouterr().err and not (folder / "out").exists()


def test_a_continuous_feature_is_no_group(folder, capsys):
    assert train("--group-feature", "1") == 2
    err = capsys.readouterr().err
    assert (
        "feature 1 has 44 values in 44 documents, so that nearly every document would be its own group" in err
    )
    assert "cut continuous values into groups first" in err
    (folder / "wide.letor").write_text("".join(f"{n % 2} qid:{n % 9} 3:{n % 60}\n" for n in range(900)))
    assert train("--train", "wide.letor") == 2
    assert "feature 3 has 60 values in 912 documents; expected 2 to 50 groups" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("end", "code", "message"),
    [
        ("1 qid:9 1:0.5 2:0.1 3:1 # last", 0, ""),
        ("1 qid:9 1:0.5 2:0.1 3:1", 0, "no document where all others name one; is the file cut short?"),
        (
            "1 qid:9 1:0.5 2:0.1",
            0,
            "2 features where all others have 3 and no document where all others name one",
        ),
        (
            "1 qid:9 1:0.5 2:",
            1,
            "train.letor:33: '' as the value of feature 2 in the last line, which has no line end",
        ),
        (
            "1 q",
            1,
            "train.letor:33: topic 'q' in the last line, which has no line end: is the file cut short?",
        ),
        ("1 qid:9 1:0.5 2:\n", 1, "train.letor:33: '' as the value of feature 2; expected"),
    ],
)
@pytest.mark.filterwarnings("default::fairevals.errors.InputWarning")
def test_a_file_that_is_cut_short(folder, capsys, end, code, message):
    with (folder / "train.letor").open("a") as file:
        file.write(end)
    assert train() == code
    err = capsys.readouterr().err
    assert message in err
    assert ("is the file cut short?" in err) == (bool(message) and not end.endswith("\n"))


def test_a_learning_rate_that_diverges(folder, capsys):
    assert train("--lr", "1e308") == 2
    err = capsys.readouterr().err
    assert "training diverged: a number became infinite; try a smaller learning rate (option --lr)" in err
    assert not (folder / "out").exists()


def test_the_last_epoch_may_be_worse_than_the_start(folder, capsys):
    assert train("--solver", "adam", "--keep", "last", "--lr", "1e5", "--lambda", "20") == 0
    out, err = capsys.readouterr()
    assert "λ=20 †" in out and "λ=0 †" not in out
    assert "† no better than an untrained policy by what it was trained for" in err
    assert train("--lambda", "1e300", out="other") == 2
    assert "lambda=1e+300 is not possible (weight of the disparity)" in capsys.readouterr().err


def test_what_the_data_lacks_is_said_before_anything_is_trained(folder, capsys):
    words = ["train", "fair-pg-rank", "--train", "train.letor", "-o", "out"]
    for swept in (["--lambda", "1"], ["--max-disparity", "0.01"]):
        assert main([*words, *swept]) == 2
        assert "needs groups" in (printed := capsys.readouterr().err) and "kept" not in printed
    assert not (folder / "out").exists()

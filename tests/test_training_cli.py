"""`fairevals train` and `fairevals predict` from end to end."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from fairevals.cli import predict, train
from fairevals.cli.main import COMMANDS, main, make_parser
from fairevals.errors import InputError, InputWarning, UsageError
from fairevals.measures import INDEX, measure_class
from fairevals.report.training import learning_figure
from fairevals.training import (
    Dataset,
    Settings,
    Standardiser,
    TrainedPolicy,
    evaluate_policy,
    groups_from_file,
    load_dataset,
    make_model,
    sweep,
    write_results,
)

pytestmark = pytest.mark.usefixtures("wide_screen")


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
    assert re.search("(?m)^λ=2 ", printed) and "D_group" in printed
    rows = summary(out)
    header = "policy,method,lambda,seed,split,measure,value,se,undefined"
    assert list(rows[0]) == header.split(",")
    assert {row["split"] for row in rows} == {"train", "valid", "test"}
    trained = [row for row in rows if row["method"] == "fair-pg-rank"]
    assert {row["lambda"] for row in trained} == {"0", "2"} and {row["seed"] for row in trained} == {"0", "1"}
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
    assert call(predict, home, "--data", files / "test.letor", "-o", home / "test.run") == 0  # it is not read
    for read in (files / "test.letor", home / "model.npz"):
        with pytest.raises(UsageError, match=f"{read.name} is read by this command"):
            call(predict, home, "--data", files / "test.letor", "-o", read)
    assert call(predict, home, "--data", files / "test.letor", "--samples", "3", "--tag", "mine") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {line[1] for line in lines} == {"1", "2", "3"} and {line[5] for line in lines} == {"mine"}


def test_the_table_is_what_the_summary_says(files, capsys):
    out = files / "out"
    words = [
        "--train",
        files / "train.letor",
        "--test",
        files / "test.letor",
        "--groups",
        files / "groups.csv",
    ]
    words += ["--lambda", "2", "--seeds", "2", "--epochs", "3", "--lr", "0.1", "--eval-samples", "20"]
    call(train, "fair-pg-rank", *words, "-o", out)
    printed = capsys.readouterr()
    head, rule, *lines = printed.out.splitlines()
    assert head.split("  ")[0] == "fair-pg-rank (test data)" and set(rule) == {"─"}
    columns = re.findall(r"((?:train |greedy )?[\w@]+) ([↑↓])", head)
    shown = ["nDCG", "train nDCG", "D_group", "train D_group", "D_ind", "D_cross", "EE_L", "greedy nDCG@10"]
    assert columns == list(zip(shown, "↑↑↓↓↓↓↓↑", strict=True))
    names = [line.split("  ")[0] for line in lines]
    assert names[:4] == ["random", "λ=0", "λ=0, parity", "λ=2"] and names[4].startswith("λ=0, T=")
    full = {"nDCG": "nDCG(dcg='exp-log2')", "D_group": "D_group(attr='group')"}
    full["nDCG@10"] = f"{full['nDCG']}@10"
    methods = {
        "random": ("random", ""),
        names[1]: ("fair-pg-rank", "0"),
        names[3]: ("fair-pg-rank", "2"),
    }
    methods[names[2]] = ("fair-pg-rank+parity", "")
    methods |= dict.fromkeys(names[4:], ("fair-pg-rank+temperature", "2"))
    values = {}
    for name, line in zip(names, lines, strict=True):
        for (column, _), (cell, star) in zip(
            columns, re.findall(r" (\d\.\d{4}|–)( \*)?", line[len(name) :]), strict=True
        ):
            split = "train" if column.startswith("train") else "test"
            greedy, measure = column.startswith("greedy"), column.split()[-1]
            own = [
                float(row["value"])
                for row in summary(out)
                if (row["method"], row["lambda"]) == methods[name]
                and (row["split"], row["measure"]) == (split, full.get(measure, measure))
                and row["policy"].endswith(".greedy") == greedy
            ]
            assert len(own) == (0 if cell == "–" else 1 if name == "random" else 2)
            assert cell == (f"{sum(own) / len(own):.4f}" if own else "–")
            values.setdefault(column, []).append((cell, bool(star)))
    for column, arrow in columns:
        cells = [cell for cell, _ in values[column] if cell != "–"]
        best = (max if arrow == "↑" else min)(cells)
        assert all(star == (cell == best) for cell, star in values[column])
    assert "the attribute group is that of" in printed.err and "groups.csv: a, b\n" in printed.err
    assert "means over 2 seeds" in printed.err


def test_the_table_names_the_feature_of_the_groups_and_marks_no_lone_policy(files, capsys):
    words = ("--train", files / "train.letor", "--eval-samples", "5", "--no-baselines")
    call(train, "lp", *words, "--group-feature", "3", "-o", files / "lp")
    printed = capsys.readouterr()
    assert "the attribute group is that of feature 3: 0, 1\n" in printed.err
    assert "*" not in printed.out and "λ=1" in printed.out
    call(train, "ridge", *words, "-o", files / "ridge")
    printed = capsys.readouterr()
    assert "D_group" not in printed.out + printed.err


def test_what_is_undefined_is_printed_as_such_and_never_the_best(files, capsys):
    (files / "useless.letor").write_text("0 qid:1 1:1 # a\n0 qid:1 1:2 # b\n")
    words = ("--train", files / "train.letor", "--test", files / "useless.letor", "--eval-samples", "5")
    call(train, "ridge", *words, "-o", files / "out")
    head, _, *lines = capsys.readouterr().out.splitlines()
    assert re.findall(r"(?:train )?[\w]+(?= [↑↓])", head)[:4] == [
        "nDCG",
        "train nDCG",
        "D_ind",
        "train D_ind",
    ]
    assert [line.split()[0] for line in lines] == ["random", "ridge"]
    for line in lines:
        undefined, _, also, _ = re.findall(r" (–|\d\.\d{4}(?: \*)?)", line)[:4]
        assert undefined == also == "–"


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
    assert all(row["se"] == "" for row in summary(out) if row["method"] == "lp")
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
    with pytest.raises(UsageError, match="not a folder"):
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


def test_undefined_topics_are_counted(files, capsys):
    """A topic without a relevant document has no nDCG, one with a single group no D_group, and the reader is told."""
    with (files / "test.letor").open("a") as file:
        file.write("0 qid:none 1:1 2:0 3:0 # n1\n0 qid:none 1:0 2:0 3:1 # n2\n")
        file.write("1 qid:single 1:1 2:0 3:0 # s1\n1 qid:single 1:0 2:0 3:0 # s2\n")
    options = ("--train", files / "train.letor", "--group-feature", 3, "-o")
    call(train, "ridge", *options, files / "out", "--test", files / "test.letor")
    undefined = {
        row["measure"]: int(row["undefined"]) for row in summary(files / "out") if row["split"] == "test"
    }
    told = capsys.readouterr().err
    assert undefined["ERR"] == 0 and "ERR is undefined" not in told
    assert undefined["nDCG(dcg='exp-log2')"] >= 1
    d_group = undefined["D_group(attr='group')"]
    assert d_group >= 2 and undefined["D_ind"] >= 1
    assert f"D_group(attr='group') is undefined on {d_group} of 7 topics" in told


def test_learning_curves_are_drawn(files):
    train_options = (
        "--train",
        files / "train.letor",
        "--group-feature",
        3,
        "--holdout",
        "0.25",
        "--eval-samples",
        5,
    )
    call(
        train,
        "fair-pg-rank",
        *train_options,
        "--lambda",
        0,
        "--lambda",
        3,
        "--epochs",
        4,
        "-o",
        files / "out",
    )
    assert ElementTree.parse(files / "out" / "learning.svg").getroot().tag.endswith("svg")
    call(train, "ridge", *train_options, "-o", files / "ridge")
    assert not (files / "ridge" / "learning.svg").exists()  # it is not trained step by step


def test_learning_curves_show_the_best_epoch():
    curve = ((0, float("nan"), 0.2, True), (1, -0.3, 0.6, True), (2, -0.4, 0.5, False))
    policies = [
        TrainedPolicy(chosen, make_model("linear", 1), Standardiser.identity(1), (), curve)
        for lam in (0.0, 2.0)
        for chosen in (Settings.for_method("fair-pg-rank", lam=lam, seed=seed) for seed in (0, 1))
    ]
    loss, quality = learning_figure(policies).axes
    assert [line.get_xdata().tolist() for line in loss.lines] == [[1, 2]] * 4
    assert [line.get_ydata()[line.get_markevery()].tolist() for line in quality.lines] == [[0.6]] * 4
    assert [text.get_text() for text in loss.figure.legends[0].get_texts()] == [
        "fair-pg-rank, λ = 0",
        "fair-pg-rank, λ = 2",
    ]
    unvalidated = [replace(policies[0], curve=tuple((e, v, None, True) for e, v, _, _ in curve))]
    assert len(learning_figure(unvalidated).axes) == 1
    assert learning_figure([replace(policies[0], curve=())]) is None


@pytest.fixture
def graded(tmp_path):
    """Training grades up to 4 and test grades up to 2, with soft groups, and documents of no known group."""
    rng = np.random.default_rng(3)
    groups = ["topic,doc,group,weight"]
    for split, topics, highest in (("train", 10, 4), ("valid", 4, 3), ("test", 6, 2)):
        lines = []
        for t in range(topics):
            for d in range(int(rng.integers(5, 14))):
                x = rng.normal(size=2)
                grade = int(np.clip(np.round(x[0] + highest / 2), 0, highest))
                topic, doc = f"{split}{t}", f"d{d}"
                lines.append(f"{grade} qid:{topic} 1:{x[0]:.4f} 2:{x[1]:.4f} # {doc}\n")
                if rng.random() < 0.9:
                    shares = rng.dirichlet(np.ones(3))
                    groups += [
                        f"{topic},{doc},{g},{w!r}" for g, w in zip("abc", shares.tolist(), strict=True)
                    ]
        (tmp_path / f"{split}.letor").write_text("".join(lines))
    (tmp_path / "groups.csv").write_text("\n".join(groups))
    return tmp_path


def scored(capsys, *words):
    """What `fairevals score` prints for all topics: {measure: (value, se)} as text."""
    assert main(["score", "--format", "csv", *map(str, words)]) == 0
    rows = csv.DictReader(capsys.readouterr().out.splitlines())
    return {row["measure"]: (row["value"], row["se"]) for row in rows if row["topic"] == "all"}


@pytest.mark.filterwarnings("ignore:.*have no group")
@pytest.mark.parametrize("method", ["fair-pg-rank", "bandit-rank", "lp"])
def test_train_and_score_give_the_same_numbers_bit_for_bit(graded, capsys, method):
    out = graded / "out"
    splits = [word for s in ("train", "valid", "test") for word in (f"--{s}", graded / f"{s}.letor")]
    options = ["--groups", graded / "groups.csv", "--epochs", "2", "--eval-samples", "50", "--no-baselines"]
    call(train, method, *splits, *options, "-o", out)
    capsys.readouterr()
    rows = summary(out)
    policies = {row["policy"].removesuffix(".greedy") for row in rows}
    readings = {"": "samples"} if method == "lp" else {"": "pl", ".greedy": "ranking"}
    (policy,) = policies
    assert {row["policy"] for row in rows} == {policy + ending for ending in readings}
    for split in ("valid", "test"):
        for ending, kind in readings.items():
            own = [row for row in rows if (row["policy"], row["split"]) == (policy + ending, split)]
            expected = {row["measure"]: (row["value"], row["se"]) for row in own}
            run, how = out / policy / f"{split}.run", ("--policy", kind, "--samples", "50")
            plain = [m for m in expected if "D_group" not in m]
            asked = [word for measure in plain for word in ("-m", measure)]
            assert scored(capsys, "--qrels", out / f"{split}.qrels", run, *how, *asked) == {
                measure: expected[measure] for measure in plain
            }
            assert {"ERR", "D_ind", "EE_L"} <= set(plain) and len(plain) == len(expected) - 1
            # The task file says all of it: for the policy as it is, nothing has to be added.
            task = ("--task", out / f"{split}.toml", "-q")
            assert scored(capsys, *task, run, *(() if not ending else how[:2])) == expected
            assert (expected["ERR"][1] != "") == (kind == "pl")


@pytest.mark.filterwarnings("ignore:.*have no group")
@pytest.mark.parametrize("method", ["fair-pg-rank", "lp"])
def test_every_measure_has_the_same_value_at_both_doors(graded, capsys, method):
    """Not only those of the summary; on splits whose largest grades differ, under all readings of a policy."""
    given, names = {"attr": "group", "protected": "a", "step": 2}, []
    for measure in map(measure_class, INDEX):
        wanted = {f.name: given[f.name] for f in measure.parameters() if f.name in given}
        names.append(str(measure(**wanted, cutoff=6)))
    splits = ("train", "test")
    loaded = groups_from_file([load_dataset(graded / f"{s}.letor") for s in splits], graded / "groups.csv")
    data = dict(zip(splits, loaded, strict=True))
    (policy,) = sweep(method, data["train"], lambdas=[1.0], epochs=2)
    for split in data:
        write_results(graded / split, [policy], {split: data[split]}, samples=50)
        assert data[split].max_grade == {"train": 4, "test": 2}[split]
        run, task = graded / split / policy.name / f"{split}.run", graded / split / f"{split}.toml"
        for kind in ("samples",) if method == "lp" else ("pl", "ranking"):
            here = evaluate_policy(policy, data[split], names, greedy=kind == "ranking", samples=50)
            means = {str(m): here.mean(0, i) for i, m in enumerate(here.measures)}
            asked = [word for name in names for word in ("-m", name)]
            there = scored(capsys, "--task", task, run, "--policy", kind, *asked)
            assert there == {
                n: ("" if np.isnan(m.value) else repr(m.value), "" if np.isnan(m.se) else repr(m.se))
                for n, m in means.items()
            }
            assert sum(m.topics > 0 for m in means.values()) >= len(INDEX) - 1  # nothing is unjudged


@pytest.mark.filterwarnings("ignore:.*have no group")
def test_each_split_has_its_own_largest_grade(graded):
    """ERR from its formula, with the largest grade of the split's own judgements."""
    out = graded / "out"
    splits = [word for s in ("train", "test") for word in (f"--{s}", graded / f"{s}.letor")]
    call(train, "ridge", *splits, "--eval-samples", "5", "-o", out)
    grades: dict[str, dict[str, int]] = {}
    for line in (out / "test.qrels").read_text().splitlines():
        topic, _, doc, grade = line.split()
        grades.setdefault(topic, {})[doc] = int(grade)
    assert max(max(of.values()) for of in grades.values()) == 2
    values = dict.fromkeys(grades, 0.0)
    going_on = dict.fromkeys(grades, 1.0)
    for line in (out / "ridge-seed0" / "test.run").read_text().splitlines():
        topic, _, doc, rank, *_ = line.split()
        stop = (2 ** grades[topic][doc] - 1) / 4
        values[topic] += going_on[topic] * stop / int(rank)
        going_on[topic] *= 1 - stop
    (row,) = (
        row
        for row in summary(out)
        if (row["policy"], row["split"], row["measure"]) == ("ridge-seed0.greedy", "test", "ERR")
    )
    assert float(row["value"]) == pytest.approx(np.mean(list(values.values())), abs=1e-12)


def test_names_of_groups_that_need_quoting(tmp_path, capsys):
    names = ['say "hi", you', "back\\slash", "\x7fdel"]
    data = replace(
        Dataset.of([[[1.0], [2.0], [3.0]]] * 2, [[0, 1, 2]] * 2, [[0, 1, 2]] * 2, names), name="quoted"
    )
    (policy,) = sweep("pg-rank", data, epochs=1)
    rows = write_results(tmp_path / "out", [policy], {"test": data}, samples=5)
    home = tmp_path / "out"
    printed = scored(capsys, "--task", home / "test.toml", home / policy.name / "test.run")
    name = "D_group(attr='group')"
    (row,) = (row for row in rows if (row.policy, row.measure) == (policy.name, name))
    assert printed[name] == (repr(row.value), "")


def test_the_table_shows_the_disparity_that_was_trained_for(files, capsys):
    data = ["--train", files / "train.letor", "--groups", files / "groups.csv", "-o", files / "out"]
    for disparity, head in (
        ("AWRF(attr='group')", "AWRF ↑"),
        ("D_group(attr='group',merit='sqrt')", "merit="),
    ):
        words = [*data, "--force", "--iterations", 2, "--lambda", 1, "--disparity", disparity]
        assert call(train, "fair-pg-rank", *words) == 0
        printed = capsys.readouterr().out.partition("─")[0]
        assert printed.index("nDCG ↑") < printed.index(head) < printed.rindex("D_group")

"""Estimators in scikit-learn's conventions: the same policies as `fairevals train`, from arrays."""

from __future__ import annotations

import csv
import inspect
import json
import pickle
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from learner_cases import make_data
from scipy import sparse

from fairevals.cli.main import main
from fairevals.errors import InputError, InputWarning, RemarkWarning, UsageError
from fairevals.measures import parse_measure
from fairevals.training import Settings, read_policy
from fairevals.training.learners import (
    DELTR,
    LEARNERS,
    ExposureLP,
    FairPGRank,
    ListNet,
    NotFittedError,
    PGRank,
    Ridge,
    load_policy,
)
from fairevals.training.settings import METHODS

UTILITY = "nDCG(dcg='exp-log2')"
SHORT = {"epochs": 3, "lr": 0.05}
CASES = {
    "pg-rank": SHORT | {"utility": "nDCG@3", "entropy": 0.01},
    "fair-pg-rank": SHORT
    | {"lam": 2.0, "batch": 4, "estimator": "pl-rank", "samples": 5, "center_by_group": True},
    "bandit-rank": {"epochs": 2, "model": "hidden", "seed": 3},
    "listnet": SHORT | {"final_lr": 0.1},
    "deltr": SHORT | {"lam": 5.0, "protected": "a"},
    "ridge": {"alpha": 2.0},
    "lp": {"lam": 3.0, "standardise": False},
}


def learner(method, **more):
    return LEARNERS[method](**{**CASES[method], **more})


def write_letor(path, X, y, qid, **groups):
    lines = []
    for number, (x, grade, topic) in enumerate(zip(X, y, qid, strict=True)):
        cells = " ".join(f"{i}:{value!r}" for i, value in enumerate(x.tolist(), 1))
        lines.append(f"{int(grade)} qid:{topic} {cells} # {path.stem}{number}\n")
    path.write_text("".join(lines))


# The same as the command ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_an_estimator_is_the_command_bit_for_bit(method, tmp_path, capsys):
    X, y, qid, groups = make_data()
    X_test, y_test, qid_test, groups_test = make_data(5, seed=1)
    table = "doc,group\n"
    for split, data in (("train", (X, y, qid, groups)), ("test", (X_test, y_test, qid_test, groups_test))):
        write_letor(tmp_path / f"{split}.letor", *data[:3])
        table += "".join(f"{split}{number},{group}\n" for number, group in enumerate(data[3]))
    (tmp_path / "groups.csv").write_text(table)
    options = []
    for name, value in CASES[method].items():
        option = "--lambda" if name == "lam" else f"--{name.replace('_', '-')}"
        options += [option] if value is True else [f"--no-{name}"] if value is False else [option, str(value)]
    files = [f"--{name}={tmp_path / name}.letor" for name in ("train", "test")]
    out = tmp_path / "out"
    arguments = ["train", method, *files, f"--groups={tmp_path}/groups.csv", "--eval-samples=1000", *options]
    assert main([*arguments, "-o", str(out)]) == 0

    fitted = learner(method).fit(X, y, qid=qid, groups=groups)
    fitted.save(tmp_path / "saved")
    folder = out / fitted.policy_.name
    for file in ("config.json", "model.npz"):
        assert (tmp_path / "saved" / file).read_bytes() == (folder / file).read_bytes()
    scores = fitted.predict(X_test, qid=qid_test, groups=groups_test)
    if method != "lp":
        lines = [line.split() for line in (folder / "test.run").read_text().splitlines()]
        by_document = {words[2]: float(words[4]) for words in lines}
        assert [by_document[f"test{row}"] for row in range(len(X_test))] == scores.tolist()
    if method in ("bandit-rank", "pg-rank"):  # the utility is not in the summary
        return
    with (out / "summary.csv").open() as file:
        wanted = {"policy": fitted.policy_.name, "split": "test", "measure": UTILITY}
        (row,) = (row for row in csv.DictReader(file) if wanted.items() <= row.items())
    assert float(row["value"]) == fitted.score(X_test, y_test, qid=qid_test, groups=groups_test)
    capsys.readouterr()


def test_validation_data_stops_training_as_the_command_does(tmp_path, capsys):
    train, valid = make_data(6), make_data(4, seed=2)
    write_letor(tmp_path / "train.letor", *train[:3])
    write_letor(tmp_path / "valid.letor", *valid[:3])
    files = [f"--{name}={tmp_path / name}.letor" for name in ("train", "valid")]
    options = ["--epochs=40", "--batch=1", "--lr=0.5", "--patience=2"]
    assert main(["train", "pg-rank", *files, *options, "-o", str(tmp_path / "out")]) == 0
    fitted = PGRank(epochs=40, batch=1, lr=0.5, patience=2).fit(*train[:3], valid=valid[:3])
    assert fitted.n_iter_ < 40
    fitted.save(tmp_path / "saved")
    for file in ("config.json", "model.npz"):
        saved = (tmp_path / "saved" / file).read_bytes()
        assert saved == (tmp_path / "out" / "pg-rank-seed0" / file).read_bytes()
    capsys.readouterr()


@pytest.mark.parametrize("method", METHODS)
def test_parameters_and_settings_are_in_step(method):
    cls = LEARNERS[method]
    default = Settings.for_method(method)
    for name, value in cls.parameters().items():
        assert value == getattr(default, name), name
        assert f"        {name}: " in cls.__doc__
        assert not re.search(rf" {name}: .*default: .*\(default (?!'')", cls.__doc__)  # one default, not two
    assert cls()._settings() == default
    # What a method ignores is no parameter of it.
    shared = {"standardise", "center_by_group", "seed"}
    steps = [
        "model",
        "epochs",
        "batch",
        "patience",
        "keep",
        "lr",
        "final_lr",
        "beta1",
        "beta2",
        "weight_decay",
        "temperature",
        "dropout",
        "trees",
        "leaves",
        "shrinkage",
    ]
    full_batch = {*shared, *steps, "solver", "iterations", "folds"}
    pg_rank = full_batch | {"utility", "entropy", "estimator", "samples"}
    expected = {
        "pg-rank": pg_rank,
        "fair-pg-rank": pg_rank | {"lam", "disparity", "max_disparity"},
        "bandit-rank": {*shared, *steps, "samples", "reward", "reward_weight", "epsilon", "max_drawn"},
        "listnet": full_batch,
        "deltr": full_batch | {"lam", "protected"},
        "ridge": shared | {"alpha"},
        "lp": shared | {"alpha", "lam", "disparity"},
    }
    assert set(inspect.signature(cls).parameters) == expected[method]


# Inputs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_a_topic_need_not_be_adjacent(method):
    X, y, qid, groups = make_data()
    sorted_rows = learner(method).fit(X, y, qid=qid, groups=groups)
    expected = sorted_rows.predict(X, qid=qid, groups=groups)
    # All first documents of the topics, all second ones, and so on: topics keep their order, and so do their rows.
    place = np.concatenate(
        [np.arange(n) for n in np.unique(qid, return_counts=True)[1][[0, 1, *range(2, 12)]]]
    )
    place = pd.Series(qid).groupby(qid).cumcount().to_numpy()
    order = np.argsort(place, kind="stable")
    mixed = learner(method).fit(X[order], y[order], qid=qid[order], groups=groups[order])
    assert np.array_equal(mixed.predict(X[order], qid=qid[order], groups=groups[order]), expected[order])
    drawn = mixed.sample(X[order], qid=qid[order], groups=groups[order], n=4)
    for topic, rankings in sorted_rows.sample(X, qid=qid, groups=groups, n=4).items():
        assert np.array_equal(order[drawn[topic]], rankings)


@pytest.mark.parametrize("estimator", [FairPGRank(epochs=40, batch=0, lr=0.2), Ridge()], ids=repr)
def test_the_order_of_topics_and_rows_does_not_matter_if_all_topics_make_one_step(estimator):
    X, y, qid, groups = make_data()
    expected = estimator.fit(X, y, qid=qid, groups=groups).predict(X)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = estimator.fit(X[order], y[order], qid=qid[order], groups=groups[order])
    assert np.allclose(shuffled.predict(X), expected, atol=1e-6)


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        lambda X: X.astype(np.float32),
        lambda X: np.asfortranarray(X),
        lambda X: X.astype(object),
        lambda X: pd.DataFrame(X),
        lambda X: sparse.csr_array(X),
        lambda X: sparse.coo_matrix(X),
    ],
    ids=["list", "float32", "fortran", "object", "frame", "csr", "coo"],
)
def test_all_forms_of_x_give_the_same(convert):
    X, y, qid, _ = make_data()
    expected = PGRank(epochs=2).fit(X, y, qid=qid).predict(X)
    fitted = PGRank(epochs=2).fit(convert(X), y, qid=qid)
    assert np.array_equal(fitted.predict(convert(X)), expected) and expected.dtype == np.float64
    assert fitted.n_features_in_ == 3 and not hasattr(fitted, "feature_names_in_")


def test_labels_and_memberships_are_the_same_groups():
    X, y, qid, groups = make_data()
    expected = FairPGRank(**SHORT).fit(X, y, qid=qid, groups=groups)
    assert expected.policy_.groups == ("a", "b")
    memberships = np.stack([groups == "a", groups == "b"], axis=1)
    forms = {
        "list": groups.tolist(),
        "series": pd.Series(groups, index=range(5, 5 + len(X))),
        "categorical": pd.Categorical(groups, ["a", "b", "unused"]),
        "memberships": memberships,
        "floats": memberships.astype(float),
        "lists": memberships.tolist(),
        "frame": pd.DataFrame(memberships, columns=["a", "b"]),
        "numbers": np.where(groups == "a", 0, 1),
        "bools": groups == "b",
    }
    for name, form in forms.items():
        fitted = FairPGRank(**SHORT).fit(X, y, qid=qid, groups=form)
        assert np.array_equal(fitted.predict(X), expected.predict(X)), name
    assert fitted.policy_.groups == ("False", "True")
    backwards = FairPGRank(**SHORT).fit(X, y, qid=qid, groups=pd.Categorical(groups, ["b", "a"]))
    assert backwards.policy_.groups == ("b", "a")


def test_a_document_without_a_group_takes_no_part_in_disparity():
    X, y, qid, groups = make_data()
    labels = groups.tolist()
    memberships = np.stack([groups == "a", groups == "b"], axis=1).astype(float)
    labels[3], memberships[3] = None, 0
    with pytest.warns(InputWarning, match=f"1 of {len(X)} documents have no group"):
        by_labels = FairPGRank(**SHORT).fit(X, y, qid=qid, groups=labels)
    with pytest.warns(InputWarning, match="have no group"):
        by_memberships = FairPGRank(**SHORT).fit(X, y, qid=qid, groups=memberships)
    assert np.array_equal(by_labels.predict(X), by_memberships.predict(X))


@pytest.mark.parametrize("cls", [FairPGRank, ExposureLP])
@pytest.mark.parametrize("disparity", ["D_group(attr='SEX')", parse_measure("D_group(attr='SEX')")], ids=type)
def test_groups_are_the_attribute_that_the_disparity_names(cls, disparity):
    X, y, qid, groups = make_data()
    expected = cls(lam=2).fit(X, y, qid=qid, groups=groups)
    fitted = cls(disparity=disparity, lam=2).fit(X, y, qid=qid, groups=groups)
    assert np.array_equal(fitted.predict(X), expected.predict(X))
    both = {"X": X, "y": y, "qid": qid, "groups": groups}
    assert fitted.score(**both) == expected.score(**both)
    assert fitted.disparity is disparity and fitted.policy_.settings.disparity == "D_group(attr='SEX')"


def test_a_utility_of_groups():
    X, y, qid, groups = make_data()
    fitted = PGRank(utility="0.5*nDCG + 0.5*AWRF(attr='SEX')@3", estimator="reinforce", **SHORT)
    assert 0 < fitted.fit(X, y, qid=qid, groups=groups).score(X, y, qid=qid, groups=groups) < 1
    with pytest.raises(
        UsageError, match=r"AWRF\(attr='SEX'\)@3 needs groups: give the group of each document"
    ):
        fitted.fit(X, y, qid=qid)
    with pytest.raises(UsageError, match="unknown attribute 'SEX'; expected one of AGE"):
        FairPGRank(disparity="D_group(attr='AGE')", utility="AWRF(attr='SEX')@3").fit(X, y, qid, groups)


def test_numbers_of_numpy_and_whole_numbers_are_parameters():
    X, y, qid, groups = make_data()
    fitted = FairPGRank(lam=np.float32(2), epochs=np.int64(3), seed=np.int64(1), lr=1, standardise=np.True_)
    settings = fitted.fit(X, y, qid=qid, groups=groups).policy_.settings
    assert (settings.lam, settings.epochs, settings.seed, settings.lr) == (2.0, 3, 1, 1.0)
    assert json.dumps(settings.record())
    assert (
        DELTR(protected=1, epochs=0).fit(X, y, qid, np.arange(len(X)) % 2).policy_.settings.protected == "1"
    )


# Randomness -------------------------------------------------------------------------------------------------------


def test_seeds():
    X, y, qid, _ = make_data()
    predict = lambda seed: PGRank(epochs=1, seed=seed).fit(X, y, qid=qid).predict(X)  # noqa: E731
    assert np.array_equal(predict(1), predict(1)) and not np.array_equal(predict(1), predict(2))
    assert not np.array_equal(predict(None), predict(None))
    assert np.array_equal(predict(np.random.default_rng(7)), predict(np.random.default_rng(7)))
    generator = np.random.default_rng(7)
    assert not np.array_equal(predict(generator), predict(generator))
    fresh = PGRank(epochs=1, seed=None).fit(X, y, qid=qid)
    assert fresh.seed is None and np.array_equal(predict(fresh.policy_.settings.seed), fresh.predict(X))


@pytest.mark.parametrize("method", ["fair-pg-rank", "lp"])
def test_samples_are_rows_of_x_by_topic(method):
    X, y, qid, groups = make_data()
    fitted = learner(method).fit(X, y, qid=qid, groups=groups)
    draw = lambda **rest: fitted.sample(X, qid=qid, groups=groups, **rest)  # noqa: E731
    drawn = draw(n=50, rng=3)
    assert list(drawn) == list(dict.fromkeys(qid.tolist()))
    for topic, rankings in drawn.items():
        rows = np.flatnonzero(qid == topic)
        assert rankings.shape == (50, len(rows))
        assert np.array_equal(np.sort(rankings, axis=1), np.tile(rows, (50, 1)))
    same = lambda a, b: all(np.array_equal(a[topic], b[topic]) for topic in a)  # noqa: E731
    assert same(drawn, draw(n=50, rng=3))
    if method != "lp":  # a mixture is sampled so that the counts vary least
        assert not same(drawn, draw(n=50, rng=4)) and not same(draw(n=50, rng=None), draw(n=50, rng=None))
    assert same(draw(n=5, rng=np.random.default_rng(0)), draw(n=5, rng=np.random.default_rng(0)))
    (one,) = fitted.sample(X[:4], groups=groups[:4]).items()
    assert one[0] == 0 and one[1].shape == (1, 4)


def test_samples_follow_the_scores():
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 2]
    fitted = PGRank(epochs=30, lr=0.05).fit(X, y)
    weights = np.exp(fitted.predict(X))
    first = np.bincount(fitted.sample(X, n=20_000)[0][:, 0]) / 20_000
    assert np.allclose(first, weights / weights.sum(), atol=0.02)


# Score ------------------------------------------------------------------------------------------------------------


def test_the_score_is_the_expected_utility():
    X, y, qid = [[0.0], [1.0], [5.0]], [1, 0, 1], ["p", "p", "q"]
    fitted = Ridge(alpha=0.0).fit([[0.0], [1.0]], [0, 1])
    scores = fitted.predict(X)
    first = np.exp(scores[0]) / np.exp(scores[:2]).sum()
    expected = ((first + (1 - first) / np.log2(3)) + 1) / 2
    assert fitted.score(X, y, qid=qid) == pytest.approx(expected, abs=1e-9)


def test_topics_on_which_the_utility_is_undefined_are_not_silent():
    X, y, qid, _ = make_data()
    fitted = Ridge().fit(X, y, qid=qid)
    with pytest.warns(RemarkWarning, match="undefined on 1 of 12 topics: not in its mean"):
        fitted.score(X, np.where(qid == "q3", 0, y), qid=qid)
    with pytest.raises(UsageError, match="undefined on all of 12 topics"):
        fitted.score(X, 0 * y, qid=qid)


def test_score_does_not_take_many_topics_for_one():
    X, y, qid, _ = make_data()
    with pytest.raises(UsageError, match=r"score needs qid.*fit had 12 topics"):
        Ridge().fit(X, y, qid=qid).score(X, y)
    one = Ridge().fit(X, y)
    assert one.score(X, y) == one.score(X, y, qid=np.zeros(len(X)))


# Saving -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_save_and_load(method, tmp_path):
    X, y, qid, groups = make_data()
    frame = pd.DataFrame(X, columns=["price", "age", "none"])
    fitted = learner(method).fit(frame, y, qid=qid, groups=groups)
    fitted.save(tmp_path / "new" / "folder")
    loaded = load_policy(tmp_path / "new" / "folder")
    assert type(loaded) is type(fitted) and loaded.get_params() == fitted.get_params()
    expected = fitted.predict(frame, qid=qid, groups=groups)
    assert np.array_equal(loaded.predict(frame, qid=qid, groups=groups), expected)
    assert loaded.n_features_in_ == 3 and loaded.feature_names_in_.tolist() == list(frame)
    with pytest.raises(
        UsageError, match="X has the columns age, none, price; expected those of fit, price, age"
    ):
        loaded.predict(frame[["age", "none", "price"]], qid=qid, groups=groups)
    for copy in (pickle.loads(pickle.dumps(fitted)), pickle.loads(pickle.dumps(loaded))):
        assert np.array_equal(copy.predict(frame, qid=qid, groups=groups), expected)


@pytest.mark.parametrize("wrong", [["a"], ["a", "b", 3], "abc", None])
def test_wrong_feature_names_in_a_saved_policy(wrong, tmp_path):
    X, y, qid, _ = make_data()
    Ridge().fit(X, y, qid=qid).save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"feature_names": wrong}))
    with pytest.raises(InputError, match=r"config\.json: .*feature_names"):
        read_policy(tmp_path)


def test_fitting_again_forgets_the_first_data():
    X, y, qid, _ = make_data()
    fitted = Ridge().fit(pd.DataFrame(X, columns=list("abc")), y, qid=qid).fit(X[:, :2], y)
    assert fitted.n_features_in_ == 2 and not hasattr(fitted, "feature_names_in_") and fitted.n_topics_ == 1


def test_scikit_learn_is_not_imported():
    use = "from fairevals.training.learners import Ridge; Ridge().fit([[0.0], [1.0]], [0, 1])"
    code = f"{use}; import sys; print('sklearn' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


# Wrong input ------------------------------------------------------------------------------------------------------

X2, Y2 = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], [0, 1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": [1.0, 2.0, 3.0]}, r"X has shape \(3,\); expected two dimensions.*Reshape"),
        ({"X": 5}, "X is 5; expected two dimensions"),
        ({"X": None}, "X is None; expected two dimensions"),
        ({"X": "train.letor"}, "X is 'train.letor'; expected two dimensions"),
        ({"X": [[1.0], [1.0, 2.0], [3.0]]}, "X cannot be made an array; expected rows of equal length"),
        ({"X": np.zeros((3, 2, 1))}, r"X has shape \(3, 2, 1\)"),
        ({"X": np.zeros((0, 2)), "y": []}, r"X has 0 document\(s\)"),
        ({"X": np.zeros((3, 0))}, r"0 feature\(s\)"),
        ({"X": [[0.0, 1.0], [np.nan, 0.0], [2.0, 2.0]]}, r"X\[1, 0\] is NaN; expected finite numbers"),
        ({"X": [[0.0, 1.0], [1.0, 0.0], [2.0, -np.inf]]}, r"X\[2, 1\] is -inf; expected finite"),
        ({"X": [[0.0, 1.0], [1.0, 0.0], [2.0, 1e300]]}, r"X\[2, 1\] is 1e\+300; .* beyond 3.403e\+38"),
        ({"X": sparse.csr_array([[0.0, 1.0], [np.nan, 0.0], [2.0, 2.0]])}, r"X\[1, 0\] is NaN"),
        ({"X": [["a", "b"]] * 3}, r"X\[0, 0\] is .*'a'.*; expected a number"),
        ({"X": np.array([[0.0, 1.0], [{}, 0.0], [2.0, 2.0]], object)}, r"X\[1, 0\] is {}; expected a number"),
        ({"X": [[0, 10**400]] * 3}, r"X\[0, 1\] is 1000.*; expected a number"),
        ({"X": np.full((3, 2), np.datetime64("2020-01-01"))}, r"X\[0, 0\] is .*; expected a number"),
        ({"X": np.zeros((3, 2), complex)}, "Complex data not supported: X is complex128"),
        ({"X": sparse.csr_array((3, 100_001))}, "X has 100,001 features; expected at most 100,000"),
        ({"y": None}, "Ridge requires y to be passed, but the target y is None"),
        ({"y": [0, 1]}, r"y has shape \(2,\); expected \(3,\): the grade of each row of X"),
        ({"y": [[0], [1], [2]]}, r"y has shape \(3, 1\); expected \(3,\)"),
        ({"y": "grades"}, r"y is 'grades'; expected \(3,\)"),
        ({"y": [0, -1, 2]}, r"y\[1\] is -1; expected a grade of at least 0. np.maximum"),
        ({"y": [0, np.nan, 2]}, r"y\[1\] is NaN"),
        ({"y": [0, np.inf, 2]}, r"y\[1\] is inf"),
        ({"y": ["good", "bad", "good"]}, r"y\[0\] is .*'good'.*; expected a number"),
        ({"y": [0, None, 2]}, r"y\[1\] is NaN; expected finite"),
        ({"qid": [1, 2]}, r"qid has shape \(2,\); expected \(3,\): the topic of each row of X"),
        ({"qid": "qid"}, r"qid is 'qid'; expected \(3,\)"),
        ({"qid": ["a", None, "b"]}, r"qid\[1\] is missing"),
        ({"qid": [1.0, 2.0, np.nan]}, r"qid\[2\] is missing"),
        ({"qid": [1, "1", 2]}, "qid has different labels with the same text"),
        ({"qid": [[1], [1, 2], [3]]}, "qid has values such as .1.; expected labels"),
        ({"qid": [[1], [1], [2]]}, r"qid has shape \(3, 1\)"),
        ({"groups": ["a", "b"]}, r"groups has shape \(2,\); expected \(3,\): the group of each row of X"),
        ({"groups": ["a", "a", "a"]}, "groups has one group only, a, in 3 samples; expected at least two groups"),
        ({"groups": [[1], [1], [2]]}, r"groups has shape \(3, 1\); expected \(3,\)"),
        ({"groups": [[1, 0], [0, 1]]}, r"groups has shape \(2, 2\); expected one row for each of the 3 rows"),
        ({"groups": [[1, 0], [0.5, 0.4], [0, 1]]}, r"groups\[1\] is \[0.5, 0.4\]; .* sum is 1"),
        ({"groups": [[1, 0], [2, -1], [0, 1]]}, r"groups\[1\] is \[2.0, -1.0\]; expected numbers of at least 0"),
        ({"groups": [[1, 0], [np.nan, 1], [0, 1]]}, r"groups\[1, 0\] is NaN"),
        ({"groups": [["a", "b"]] * 3}, r"groups\[0, 0\] is 'a'; expected a number"),
        ({"valid": 5}, r"valid is an int; expected a tuple \(X, y\[, qid\[, groups\]\]\)"),
        ({"valid": (X2,)}, "valid is a tuple; expected a tuple"),
        ({"valid": (X2, [0, 1])}, r"valid: y has shape \(2,\)"),
        ({"valid": ([[1.0]], [1])}, "valid: X has 1 features, but Ridge is expecting 2"),
        (
            {"groups": ["a", "b", "a"], "valid": (X2, Y2, None, ["a", "b", "c"])},
            "valid: groups has a, b, c; expected those of the training data, a, b",
        ),
    ],
)  # fmt: skip
def test_wrong_data(arguments, message):
    with pytest.raises(UsageError, match=message) as caught:
        Ridge().fit(**({"X": X2, "y": Y2} | arguments))
    assert isinstance(caught.value, ValueError)


def test_many_labels_are_no_groups():
    with pytest.raises(UsageError, match="groups has 60 different labels; expected 2 to 50"):
        Ridge().fit(np.zeros((60, 1)), np.ones(60), groups=np.arange(60))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            FairPGRank(lam=-1),
            r"lambda=-1.0 is not possible \(weight of the disparity\); .* from 0 to 1,000,000,000$",
        ),
        (FairPGRank(lam="1"), "lambda='1' is not possible"),
        (FairPGRank(lam=np.array([1.0, 2.0])), "lambda=array"),
        (FairPGRank(disparity="D_grup(attr='SEX')"), "unknown measure"),
        (FairPGRank(disparity=None), "cannot take None as a measure; expected a name such as"),
        (FairPGRank(disparity="D_group"), "D_group requires attr="),
        (PGRank(utility="D_ind"), "D_ind cannot be a utility"),
        (PGRank(utility=3), "cannot take 3 as a measure; expected a name such as"),
        (PGRank(model="deep"), r"model='deep' .* expected one of linear, hidden, highway"),
        (PGRank(estimator="sgd"), "expected one of reinforce, pl-rank, exact"),
        (PGRank(epochs=1.5), r"epochs=1.5 .* expected a whole number from 0 to 10,000,000"),
        (PGRank(standardise="yes"), "expected True or False"),
        (PGRank(dropout=2), "from 0 to 0.99"),
        (PGRank(beta1=1.0), "beta1=1.0 is not possible .* from 0 to 0.999999"),
        (PGRank(beta2=1.0), "beta2=1.0 is not possible"),
        (PGRank(iterations=0), "iterations=0 .* from 1 to 1,000,000"),
        (PGRank(seed="0"), "seed='0'; expected a whole number of at least 0, a numpy Generator, or None"),
        (PGRank(seed=-1), "seed=-1; expected"),
        (PGRank(seed=True), "seed=True; expected"),
        (FairPGRank(), r"D_group\(attr='group'\) needs groups: give the group of each document"),
        (DELTR(), "deltr needs groups"),
        (ExposureLP(), "lp needs groups"),
        (ExposureLP(disparity="D_ind"), "lp minimises D_group"),
        (PGRank(center_by_group=True), "centering the features of X by group needs groups"),
    ],
    ids=repr,
)
def test_wrong_parameters_are_refused_by_fit(estimator, message):
    with pytest.raises(UsageError, match=message):
        estimator.fit(X2, Y2)


@pytest.mark.parametrize("settings", [{}, {"epochs": 1}, {"max_disparity": 0.1}])
def test_validation_data_without_groups_is_refused_before_training(settings, monkeypatch):
    X, y, qid, groups = make_data(6)
    monkeypatch.setattr("fairevals.training.methods.make_model", None)  # nothing is trained
    with pytest.raises(UsageError, match=r"D_group.* on the validation data needs groups"):
        FairPGRank(**settings).fit(X, y, qid=qid, groups=groups, valid=(X, y, qid))


def test_a_protected_group_that_does_not_exist():
    with pytest.raises(UsageError, match="unknown group 'x'; expected one of a, b"):
        DELTR(protected="x").fit(X2, Y2, groups=["a", "b", "a"])


def test_wrong_arguments_after_fit():
    fitted = Ridge().fit(X2, Y2)
    for method in (fitted.predict, fitted.sample, lambda X: fitted.score(X, Y2)):
        with pytest.raises(UsageError, match="X has 1 features, but Ridge is expecting 2 features as input"):
            method([[1.0], [2.0], [3.0]])
    for n in (0, -1, 1.5, "3", True):
        with pytest.raises(UsageError, match=r"n=.*; expected a whole number of at least 1"):
            fitted.sample(X2, n=n)
    with pytest.raises(UsageError, match="rng='x'; expected a whole number"):
        fitted.sample(X2, rng="x")
    with pytest.raises(UsageError, match="score requires y"):
        fitted.score(X2, None)
    with pytest.raises(UsageError, match="lp needs groups"):
        ExposureLP().fit(X2, Y2, groups=["a", "b", "a"]).sample(X2)
    with pytest.raises(UsageError, match=r"unknown parameter of Ridge 'lam'; expected one of .*alpha"):
        fitted.set_params(lam=1)
    with pytest.raises(TypeError):
        Ridge(lam=1)


def test_an_unfitted_estimator():
    for use in (
        lambda e: e.predict(X2),
        lambda e: e.sample(X2),
        lambda e: e.score(X2, Y2),
        lambda e: e.save("x"),
    ):
        with pytest.raises(
            NotFittedError, match=r"this ListNet is not fitted yet: call fit\(X, y, qid=…\) first"
        ) as caught:
            use(ListNet())
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, AttributeError)


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(PGRank()) == "PGRank()"
    assert repr(FairPGRank(lam=2.0, model="hidden")) == "FairPGRank(model='hidden', lam=2.0)"


@pytest.mark.parametrize("known", [True, False])
def test_score_of_a_loaded_policy_needs_the_topics_as_the_fitted_one_does(tmp_path, known):
    """All rows were silently taken as one topic; folders of earlier versions do not have the number of topics."""
    X, y, qid = [[0.0], [1.0], [0.5], [2.0]], [0, 1, 0, 1], [1, 1, 2, 2]
    Ridge().fit(X, y, qid=qid).save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["topics"] == 2
    if not known:
        del config["topics"]
        (tmp_path / "config.json").write_text(json.dumps(config))
    loaded = load_policy(tmp_path)
    assert getattr(loaded, "n_topics_", None) == (2 if known else None)
    with pytest.raises(UsageError, match="score needs qid"):
        loaded.score(X, y)
    assert 0 < loaded.score(X, y, qid=qid) <= 1


def test_the_number_of_topics_in_a_folder_is_checked(tmp_path):
    Ridge().fit([[0.0], [1.0]], [0, 1]).save(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"topics": "2"}))
    with pytest.raises(InputError, match="topics '2'; expected a whole number of at least 1"):
        load_policy(tmp_path)


def test_save_replaces_a_policy_but_nothing_else_unless_forced(tmp_path):
    fitted = Ridge().fit([[0.0], [1.0]], [0, 1])
    (tmp_path / "config.json").write_text('{"someone": "else"}')
    with pytest.raises(UsageError, match="is not empty and not an earlier policy"):
        fitted.save(tmp_path)
    assert (tmp_path / "config.json").read_text() == '{"someone": "else"}'
    assert not (tmp_path / "model.npz").exists()
    fitted.save(tmp_path, force=True)
    fitted.save(tmp_path)
    assert load_policy(tmp_path).n_topics_ == 1


def test_a_folder_that_is_no_path():
    with pytest.raises(UsageError, match="the folder of a policy is 4; expected a path"):
        load_policy(4)
    with pytest.raises(UsageError, match="expected a path"):
        Ridge().fit([[0.0], [1.0]], [0, 1]).save(None)


def test_a_disparity_that_is_undefined_on_all_topics_is_not_silently_left_out():
    X, y, qid = [[0.0], [1.0], [0.5], [2.0]], [1, 1, 1, 1], [1, 1, 2, 2]
    with pytest.raises(
        UsageError,
        match=r"undefined on all of 2 training topics.*Are the groups the topics.*set_split_request",
    ):
        FairPGRank(epochs=1).fit(X, y, qid=qid, groups=qid)
    with pytest.raises(InputError, match=r"no document has a grade above 0"):
        FairPGRank(epochs=1).fit(X, [0, 0, 0, 0], qid=qid, groups=["f", "m", "f", "m"])
    FairPGRank(epochs=1, lam=0.0).fit(X, y, qid=qid, groups=qid)  # no disparity is asked for
    FairPGRank(epochs=1).fit(X, y, qid=qid, groups=["f", "m", "f", "f"])  # one topic is enough

"""Boosted trees: gradients, choice by validation, text model, and models from strangers."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import fairevals as fe
from fairevals.cli.main import main
from fairevals.errors import Place
from fairevals.training import Dataset, Settings, read_policy, train_policy
from fairevals.training.boosting import fit_trees
from fairevals.training.losses import ListNetLoss, PolicyGradient
from fairevals.training.objectives import Objective
from fairevals.training.policies import save_policy
from fairevals.training.selection import TEMPERATURES
from fairevals.training.trees import Trees, read_trees

lightgbm = pytest.importorskip("lightgbm")


def simulated(seed, topics=30):
    """Grades that no linear model ranks: high in the middle of the first feature."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (topics, 8, 3)).astype(np.float32)
    grades = np.round(3 * np.exp(-10 * features[..., 0] ** 2))
    groups = (features[..., 1] > 0.3).astype(int)
    return Dataset.of(features, grades, groups)


def settings(method="pg-rank", **given):
    return Settings.for_method(method, model="trees", **{"trees": 40, **given})


def utility(policy, data):
    batch = data.batch(range(len(data)))
    scores = batch.masked(policy.predict(data).reshape(batch.present.shape))
    return float(Objective.of().value(scores, batch).mean())


def test_trees_learn_what_a_linear_model_cannot():
    train, test = simulated(0), simulated(1)
    trees = train_policy(settings(), train)
    linear = train_policy(Settings.for_method("pg-rank", epochs=5), train)
    assert utility(trees, test) > utility(linear, test) + 0.1
    assert trees.fit.chosen_on == "6 training topics held out" and trees.fit.improved
    assert trees.curve[0].number == 0 and trees.curve[-1].loss < trees.curve[1].loss


def test_the_slopes_are_those_of_the_loss():
    """The first leaves by hand: minus the sum of g over the sum of h, with g of finite differences."""
    data = simulated(2, topics=6)
    loss = PolicyGradient(Objective.of())
    one = settings(trees=1, leaves=2, shrinkage=1.0)
    model, _, _ = fit_trees(one, loss, data, valid=data)
    (tree,) = model.trees
    batch = data.batch(range(6))
    slope = np.zeros(48)
    for row in range(48):
        step = np.zeros(48)
        step[row] = 1e-4
        values = [Objective.of().value(s * step.reshape(6, 8), batch).sum() for s in (1, -1)]
        slope[row] = -(values[0] - values[1]) / 2e-4
    slope /= np.sqrt(np.mean(slope**2))
    left = data.features[:, tree.feature[0]] <= tree.threshold[0]
    for side, leaf in ((left, tree.left[0]), (~left, tree.right[0])):
        expected = -slope[side].sum() / (np.abs(slope[side]) + 1e-3).sum()
        assert tree.leaf[-1 - leaf] == pytest.approx(expected, abs=2e-3)


def test_fairness_enters_through_the_gradient():
    """Simulated as in Singh & Joachims 2019: one feature is missing for the minority."""
    rng = np.random.default_rng(0)
    x, minority = rng.uniform(0, 3, (40, 10, 2)), rng.random((40, 10)) < 0.2
    grades = np.clip(x.sum(axis=2), 0, 5)
    x[minority, 1] = 0
    train, disparity = Dataset.of(x, grades, minority.astype(int)), {}
    batch = train.batch(range(40))
    for lam in (0.0, 50.0):
        policy = train_policy(settings("fair-pg-rank", lam=lam, trees=60), train, train)
        scores = policy.predict(train).reshape(40, 10)
        values = [Objective.of(lam=weight).value(scores, batch).mean() for weight in (0.0, 1.0)]
        disparity[lam] = values[0] - values[1]
    assert disparity[50.0] < disparity[0.0] / 3


@pytest.mark.parametrize("noise", [0.0, 3.0, 100.0])
def test_the_best_number_of_trees_and_temperature_on_validation_data(noise):
    train, valid = simulated(0, topics=10), simulated(1, topics=10)
    grades = train.grades + noise * np.random.default_rng(0).random(80)
    train = replace(train, grades=np.clip(np.round(grades), 0, 4))
    loss = PolicyGradient(Objective.of())
    model, curve, record = fit_trees(settings(trees=60), loss, train, valid)
    assert record.chosen_on == "validation data"
    best = max(curve, key=lambda epoch: epoch.valid)
    assert len(model.trees) == best.number and best.best and (noise == 0 or best.number < 60)
    batch, scores = valid.batch(range(10)), model.scores(valid.features.reshape(10, 8, 3))
    values = {t: float(loss.quality(scores / t, batch).mean()) for t in TEMPERATURES}
    assert values[1] == pytest.approx(best.valid, abs=1e-12)
    assert values[record.temperature] == max(values.values())


@pytest.mark.parametrize("method", ["pg-rank", "fair-pg-rank", "listnet", "deltr", "bandit-rank"])
def test_every_method_with_steps(method):
    policy = train_policy(settings(method, trees=5), simulated(0, topics=8))
    assert isinstance(policy.model, Trees) and np.isfinite(policy.predict(simulated(1))).all()


def test_the_same_seed_gives_the_same_trees():
    texts = [train_policy(settings(trees=15, seed=seed), simulated(0)).model.text for seed in (3, 3, 4)]
    assert texts[0] == texts[1] != texts[2]


def test_one_topic_and_nothing_to_split():
    one = Dataset.of([[[0.0], [1.0], [0.0], [1.0]]], [[0, 1, 0, 1]])
    assert np.ptp(train_policy(settings(), one).predict(one)) > 0
    constant = Dataset.of([[[1.0], [1.0]]] * 6, [[0, 1]] * 6)
    policy = train_policy(settings(), constant)
    assert policy.predict(constant).tolist() == [0.0] * 12 and policy.model.trees == ()
    assert not policy.fit.improved


def test_a_given_temperature():
    policy = train_policy(settings(trees=5, temperature=8.0), simulated(0))
    assert policy.fit.temperature == 8.0


@pytest.fixture(scope="module")
def policy():
    return train_policy(settings(trees=12), simulated(0))


class TestFiles:
    def test_saved_and_read_bit_for_bit(self, policy, tmp_path):
        data = simulated(5)
        save_policy(policy, tmp_path / "a")
        save_policy(policy, tmp_path / "b")
        names = ("config.json", "model.npz", "trees.txt")
        assert all((tmp_path / "a" / n).read_bytes() == (tmp_path / "b" / n).read_bytes() for n in names)
        again = read_policy(tmp_path / "a")
        np.testing.assert_array_equal(again.predict(data), policy.predict(data))
        assert fe.load_policy(tmp_path / "a").model == "trees"

    def test_lightgbm_reads_it_and_predicts_the_same(self, policy, tmp_path):
        save_policy(policy, tmp_path / "a")
        booster = lightgbm.Booster(model_file=tmp_path / "a" / "trees.txt")
        data = simulated(5)
        theirs = booster.predict(data.features.astype(np.float32), raw_score=True)
        np.testing.assert_array_equal(theirs / policy.fit.temperature, policy.predict(data))

    def test_reading_and_predicting_need_no_lightgbm(self, policy, tmp_path, monkeypatch):
        save_policy(policy, tmp_path / "a")
        monkeypatch.setitem(sys.modules, "lightgbm", None)
        assert read_policy(tmp_path / "a").predict(simulated(5)).any()
        with pytest.raises(fe.UsageError, match=re.escape("pip install 'fairevals[trees]'")):
            train_policy(settings(), simulated(0))

    CHANGES: ClassVar = {
        "empty": (r"(?s).*", ""),
        "cut after a tree": (r"(?s)Tree=5.*", ""),
        "a huge leaf": (r"leaf_value=\S+", "leaf_value=1e300"),
        "not a model": (r"\Atree", "bush"),
        "no leaves": (r"num_leaves=\d+", "num_leaves=0"),
        "more leaves than values": (r"num_leaves=\d+", "num_leaves=9"),
        "huge": (r"num_leaves=\d+", "num_leaves=99999999999"),
        "a cycle": (r"left_child=\S+", "left_child=0"),
        "a child beyond": (r"right_child=\S+", "right_child=77"),
        "two parents": (r"right_child=\S+", "right_child=-1"),
        "an unknown feature": (r"split_feature=\S+", "split_feature=3"),
        "a negative feature": (r"split_feature=\S+", "split_feature=-1"),
        "nan": (r"threshold=\S+", "threshold=nan"),
        "infinite leaf": (r"leaf_value=\S+", "leaf_value=1e999"),
        "words": (r"leaf_value=\S+", "leaf_value=x"),
        "categories": (r"num_cat=0", "num_cat=1"),
        "a category": (r"decision_type=\d+", "decision_type=1"),
        "zeros missing": (r"decision_type=\d+", "decision_type=4"),
        "no thresholds": (r"threshold=.*\n", ""),
        "linear leaves": (r"is_linear=0", "is_linear=1"),
    }

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_strangers_text_is_refused_with_its_place(self, policy, tmp_path, change):
        pattern, new = self.CHANGES[change]
        save_policy(policy, tmp_path / "a")
        path = tmp_path / "a" / "trees.txt"
        text = path.read_text()
        changed = re.sub(pattern, new, text, count=1)
        assert changed != text
        path.write_text(changed)
        with pytest.raises(fe.InputError, match=re.escape(str(path))):
            read_policy(tmp_path / "a")

    def test_any_line_may_be_lost_or_doubled(self, policy, tmp_path):
        """Whatever a text is, it is read or refused."""
        rng = np.random.default_rng(0)
        lines = policy.model.text.split("\n")
        for _ in range(300):
            some = list(lines)
            at = int(rng.integers(len(some)))
            match rng.integers(3):
                case 0:
                    del some[at]
                case 1:
                    some.insert(at, some[int(rng.integers(len(some)))])
                case _:
                    cut = int(rng.integers(len(some[at]) + 1))
                    some[at] = some[at][:cut] + str(rng.choice(["", "-", "9", " ", "="])) + some[at][cut:]
            try:
                trees = read_trees("\n".join(some), 3, Place("x"))
            except fe.InputError:
                continue
            assert all(np.isfinite(tree.values(np.zeros((2, 3)))).all() for tree in trees)

    def test_a_missing_file_or_one_in_another_encoding(self, policy, tmp_path):
        save_policy(policy, tmp_path / "a")
        (tmp_path / "a" / "trees.txt").unlink()
        with pytest.raises(fe.InputError, match=r"trees\.txt: cannot be read"):
            read_policy(tmp_path / "a")
        (tmp_path / "a" / "trees.txt").write_bytes(b"tree\xff")
        with pytest.raises(fe.InputError, match="not ASCII"):
            read_policy(tmp_path / "a")


def test_the_command_and_the_estimator_agree(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = simulated(0, topics=12)
    lines = [
        f"{int(grade)} qid:{topic} " + " ".join(f"{i}:{x!r}" for i, x in enumerate(row.tolist(), 1))
        for topic, rows in zip(data.topics, data.slices, strict=True)
        for grade, row in zip(data.grades[rows], data.features[rows].astype(np.float32), strict=True)
    ]
    (tmp_path / "d.letor").write_text("\n".join(lines) + "\n")
    words = "train pg-rank --train d.letor --model trees --trees 10 --leaves 4 --eval-samples 5 -o out"
    assert main(words.split()) == 0
    (folder,) = (path for path in (tmp_path / "out").iterdir() if path.is_dir())
    assert json.loads((folder / "config.json").read_text())["settings"]["leaves"] == 4
    assert main(["predict", str(folder), "--data", "d.letor", "-o", "new.run"]) == 0
    X, qid = data.features.astype(np.float32), np.repeat(np.arange(12), 8)
    ours = fe.PGRank(model="trees", trees=10, leaves=4).fit(X, data.grades, qid=qid)
    np.testing.assert_array_equal(ours.predict(X), fe.load_policy(folder).predict(X))
    assert len(fe.read_run("new.run")) == 96


def test_losses_without_temperature():
    """ListNet is no policy whose temperature is chosen."""
    model, curve, _ = fit_trees(settings(trees=20), ListNetLoss(), simulated(0), simulated(1))
    assert max(epoch.valid for epoch in curve) > curve[0].valid and model.trees

"""Methods, early stopping, saved policies."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from experiments.datasets import credit_queries, german_credit, simulated
from fairevals.errors import InputError, UsageError
from fairevals.training import (
    METHODS,
    Dataset,
    Objective,
    PolicyGradient,
    Settings,
    evaluate_policy,
    fit,
    read_policy,
    save_policy,
    sweep,
    train_policy,
)
from fairevals.training.models import Adam
from fairevals.training.policies import TrainedPolicy

NDCG = "nDCG(dcg='exp-log2')"


def value_of(measure, policy, data, greedy=False):
    """The mean of a measure over the topics on which it is defined."""
    return evaluate_policy(policy, data, [measure], greedy=greedy, samples=20).mean(0, 0).value


def learnable(topics=30, seed=0, n=(3, 7)):
    """Topics of differing length whose grades follow the first feature."""
    rng = np.random.default_rng(seed)
    features, grades, groups = [], [], []
    for _ in range(topics):
        size = int(rng.integers(*n))
        x = rng.normal(size=(size, 3))
        features.append(x)
        grades.append(np.digitize(x[:, 0] + 0.3 * rng.normal(size=size), [-0.5, 0.5]))
        groups.append(rng.integers(0, 2, size))
    return Dataset.of(features, grades, groups, ("a", "b"))


QUICK = {"epochs": 3, "batch": 1, "lr": 0.05}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_and_comes_out_the_same_again(method):
    train, test = learnable(), learnable(seed=1)
    options = {} if method in ("ridge", "lp") else QUICK
    if method in ("fair-pg-rank", "deltr", "lp"):
        options = {**options, "lam": 0.01}
    first = train_policy(Settings.for_method(method, seed=4, **options), train, test)
    again = train_policy(Settings.for_method(method, seed=4, **options), train, test)
    np.testing.assert_array_equal(first.predict(test), again.predict(test))
    assert value_of(NDCG, first, test, greedy=not first.is_mixture) > 0.9
    if method not in ("ridge", "lp"):
        other = train_policy(Settings.for_method(method, seed=5, **options), train)
        assert not np.array_equal(other.predict(test), first.predict(test))


@pytest.mark.parametrize("estimator", ["reinforce", "pl-rank", "exact"])
@pytest.mark.parametrize("model", ["linear", "hidden", "highway"])
def test_estimators_and_models_in_all_combinations(estimator, model):
    data = learnable(20)
    policy = train_policy(
        Settings.for_method(
            "fair-pg-rank", estimator=estimator, model=model, lam=0.1, batch=4, epochs=6, lr=0.02
        ),
        data,
    )
    losses = [loss for _, loss, _, _ in policy.curve[1:]]
    assert losses[-1] < losses[0]


def test_own_scorer_of_two_methods():
    class Own:
        def __init__(self):
            self.theta = np.zeros(3)

        def scores(self, X):
            self.X = X
            return X @ self.theta

        def backward(self, grad):
            self.theta = self.theta - 0.5 * np.einsum("tdf,td->f", self.X, grad)

    data = learnable()
    own = Own()
    fitted, curve = fit(own, PolicyGradient(Objective.of()), data, epochs=4)
    assert fitted is own
    assert own.theta[0] > 1 > np.abs(own.theta[1:]).max()
    assert curve[-1][1] < curve[1][1]


class Scripted:
    """A scorer whose parameter counts its steps, and a loss whose quality is given for each count."""

    def __init__(self, qualities):
        self.steps, self.qualities, self.modes = 0, qualities, []

    def train(self, on):
        self.modes.append(on)

    def scores(self, X):
        return np.full(X.shape[:-1], float(self.steps))

    def backward(self, grad):
        self.steps += 1

    def gradient(self, scores, batch, rng):
        return np.zeros(len(scores)), np.zeros_like(scores)

    def quality(self, scores, batch):
        return np.full(len(scores), self.qualities[int(scores.max())])


def test_early_stopping_returns_the_best():
    data = learnable(4)
    qualities = [0.1, 0.3, 0.7, 0.5, 0.6, 0.65, 0.9]
    scripted = Scripted(qualities)
    seen = []
    fitted, curve = fit(
        scripted,
        scripted,
        data,
        data,
        epochs=6,
        batch=0,
        patience=3,
        on_epoch=lambda epoch, _: seen.append(epoch),
    )
    assert fitted.steps == 2
    # Three epochs without gain, then the end.
    assert [valid for _, _, valid, _ in curve] == qualities[:6]
    assert [epoch.number for epoch in seen] == [0, 1, 2, 3, 4, 5]
    assert fitted.modes[-1] is False
    patient = Scripted(qualities)
    assert fit(patient, patient, data, data, epochs=6, batch=0)[0].steps == 6
    # Without validation data, it is the epoch of the best training objective, unless the last one is asked for.
    for keep, steps in (("best", 2), ("last", 3)):
        scripted = Scripted(qualities)
        fitted, curve = fit(scripted, scripted, data, epochs=3, batch=0, keep=keep)
        assert fitted.steps == steps
        assert [valid for _, _, valid, _ in curve] == [None] * 4


def test_early_stopping_of_a_real_model_returns_the_parameters_of_its_best_epoch():
    train, valid = learnable(6), learnable(20, seed=3)
    policy = train_policy(
        Settings.for_method("pg-rank", epochs=25, batch=1, lr=0.5, patience=4, temperature=1.0), train, valid
    )
    quality = [value for _, _, value, _ in policy.curve]
    ndcg = value_of(NDCG, policy, valid)
    # The objective counts 0 on a topic without a relevant document, where the measure is undefined.
    defined = np.mean([valid.grades[a:b].any() for a, b in pairwise(valid.starts)])
    assert ndcg * defined == pytest.approx(max(quality), abs=1e-5)


def test_a_gradient_that_is_not_finite_ends_training():
    class Broken(Scripted):
        def gradient(self, scores, batch, rng):
            return np.zeros(len(scores)), np.full_like(scores, np.nan)

    broken = Broken([0])
    with pytest.raises(UsageError, match="diverged"):
        fit(broken, broken, learnable(3), epochs=1)


def test_adam_follows_its_published_steps():
    parameters = {"x": np.array([1.0, -2.0])}
    adam = Adam(lr=0.1, betas=(0.9, 0.999), weight_decay=0.01)
    mean, square, x = np.zeros(2), np.zeros(2), parameters["x"].copy()
    for step in range(1, 6):
        gradient = 2 * parameters["x"]
        g = 2 * x + 0.01 * x
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
        x = x - 0.1 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        adam.step(parameters, {"x": gradient})
        np.testing.assert_allclose(parameters["x"], x, rtol=1e-12)


def test_sweep_trains_each_lambda_and_seed():
    data = learnable(6)
    policies = sweep("fair-pg-rank", data, lambdas=[0, 2.5], seeds=[0, 1], epochs=1)
    assert [p.name for p in policies] == [
        "fair-pg-rank-lambda0-seed0",
        "fair-pg-rank-lambda0-seed1",
        "fair-pg-rank-lambda2.5-seed0",
        "fair-pg-rank-lambda2.5-seed1",
    ]
    with pytest.raises(UsageError, match="has no λ"):
        sweep("listnet", data, lambdas=[1.0])
    for twice in ([1.0, 1.0], [1.0000001, 1.0000002]):  # policies of one name would replace each other
        with pytest.raises(UsageError, match="deltr-lambda1-seed0 is given twice"):
            sweep("deltr", data, lambdas=twice)
    with pytest.raises(UsageError, match="needs groups"):
        sweep("deltr", Dataset.of([[[1.0]]], [[1]]))


def test_sweep_in_processes_is_the_same():
    from concurrent.futures import ProcessPoolExecutor

    data = learnable(6)
    here = sweep("pg-rank", data, seeds=[0, 1], epochs=2, estimator="reinforce")
    with ProcessPoolExecutor(2) as executor:
        there = sweep("pg-rank", data, seeds=[0, 1], epochs=2, estimator="reinforce", executor=executor)
    for a, b in zip(here, there, strict=True):
        np.testing.assert_array_equal(a.predict(data), b.predict(data))


@pytest.mark.parametrize(
    "other", [{"solver": "adam"}, {"lr": 0.5}, {"estimator": "reinforce"}, {"model": "trees"}]
)
def test_folds_are_not_ignored_without_a_word(other):
    with pytest.raises(UsageError, match="chosen by folds"):
        train_policy(Settings.for_method("pg-rank", folds=3, **other), simulated(queries=6))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"disparity": "AWRF(attr='group')"}, "a higher AWRF.* is better"),
        ({"utility": "ERR"}, "which ERR is not"),
        ({"model": "trees"}, "trees cannot"),
    ],
)
def test_bounds_that_mean_nothing_or_cannot_be_trained_for(wrong, message):
    with pytest.raises(UsageError, match=message):
        Settings.for_method("fair-pg-rank", max_disparity=0.01, **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "forest"},
        {"estimator": "magic"},
        {"lr": -1.0},
        {"lr": float("nan")},
        {"epochs": 1.5},
        {"dropout": 1.0},
        {"utility": "nope"},
        {"utility": "D_ind"},
        {"disparity": "D_group"},
        {"disparity": "nope"},
        {"reward_weight": 1.5},
        {"unknown": 1},
        {"standardise": 1},
        {"epochs": True},
        {"folds": 1},
    ],
)
def test_wrong_settings(wrong):
    with pytest.raises(UsageError):
        Settings.for_method("pg-rank", **wrong)


@pytest.mark.parametrize(
    "disparity", ["D_ind", "D_group(attr='group',pairs='max')", "D_group(attr='group')@3"]
)
def test_lp_minimises_d_group_only(disparity):
    with pytest.raises(UsageError, match="lp minimises D_group"):
        Settings.for_method("lp", disparity=disparity)


def test_measures_that_the_data_cannot_serve():
    data = learnable(3)
    with pytest.raises(UsageError, match="unknown attribute 'SEX'; expected one of group"):
        train_policy(Settings.for_method("fair-pg-rank", disparity="D_group(attr='SEX')"), data)
    without = replace(data, membership=None, groups=())
    for wrong in ({"utility": "AWRF(attr='group')"}, {"disparity": "EE_L(attr='group')"}):
        with pytest.raises(UsageError, match="needs groups"):
            train_policy(Settings.for_method("fair-pg-rank", **wrong), without)
    assert train_policy(Settings.for_method("fair-pg-rank", lam=0.0, epochs=1), without).curve


def test_settings_survive_json():
    given = Settings.for_method("bandit-rank", lam=0.5, seed=7, reward="ERR@10")
    assert Settings.of_record(json.loads(json.dumps(given.record()))) == given


# Fairness: a short version of benchmarks/training.py -------------------------------


def test_fairness_turns_away_from_the_biased_feature():
    data = simulated()
    options = {"batch": 0, "epochs": 60, "lr": 0.1, "standardise": False}
    ratios, disparities = [], []
    for policy in sweep("fair-pg-rank", data, lambdas=[0, 25], **options):
        theta = policy.model.parameters["theta"]
        ratios.append(theta[1] / theta[0])
        disparities.append(value_of("D_group(attr='group')", policy, data))
        if policy.settings.lam == 0:
            assert value_of(NDCG, policy, data) >= 0.95
    assert ratios[0] > 0.6 and ratios[1] < 0.1
    assert disparities[0] > 0.015 and disparities[1] < 0.003


def test_individual_disparity_falls_with_lambda():
    data = learnable(40, n=(5, 6))
    values = []
    for policy in sweep("fair-pg-rank", data, lambdas=[0, 20], disparity="D_ind", batch=0, epochs=40, lr=0.1):
        values.append(value_of("D_ind", policy, data))
    assert values[1] < values[0] / 2


def test_the_learning_rate_falls_to_its_share():
    """With an even gradient every step of Adam is as long as the rate: 1, .75, .5, .25, and .25 from then on."""
    parameters, lengths = {"theta": np.zeros(1)}, []
    optimiser = Adam(lr=1.0, final_lr=0.25, total_steps=4)
    for _ in range(6):
        before = parameters["theta"].copy()
        optimiser.step(parameters, {"theta": np.ones(1)})
        lengths.append(float((before - parameters["theta"])[0]))
    np.testing.assert_allclose(lengths, [1, 0.75, 0.5, 0.25, 0.25, 0.25], rtol=1e-6)


def test_a_falling_rate_comes_to_rest_at_a_kink():
    """Where D_group has a kink a rate that stays the same ends at another place for every seed."""
    data = simulated(queries=20, seed=1)
    options = {
        "lambdas": [25],
        "seeds": [0, 1],
        "batch": 0,
        "epochs": 150,
        "lr": 0.1,
        "standardise": False,
        "keep": "last",
    }
    apart = {}
    for share in (1.0, 0.0):
        first, second = sweep("fair-pg-rank", data, final_lr=share, **options)
        apart[share] = np.abs(first.model.parameters["theta"] - second.model.parameters["theta"]).max()
    assert apart[0.0] < 0.01 < apart[1.0]


def test_german_credit_reader(tmp_path):
    path = tmp_path / "german.data"
    rng = np.random.default_rng(0)
    good = "A11 6 A34 A43 1169 A65 A75 4 {} A101 4 A121 67 A143 A152 2 A173 1 A192 A201 {}"
    lines = [good.format(("A92", "A93")[rng.integers(2)], rng.integers(1, 3)) for _ in range(200)]
    path.write_text("\n".join(lines))
    train, test = german_credit(path, queries=(5, 3))
    assert (len(train), len(test), train.groups) == (5, 3, ("men", "women"))
    assert set(train.grades.tolist()) <= {0.0, 1.0}
    path.write_text("\n".join([*lines, "A11 six"]))
    with pytest.raises(InputError, match=r"german.data:201"):
        german_credit(path)


def test_german_credit_is_standardised_by_the_training_people_alone():
    rng = np.random.default_rng(0)
    people = np.column_stack([rng.normal(50, 9, 100), rng.random(100) < 0.2]).astype(float)
    people[80:, 0] += 1000.0  # those of the test are others altogether
    grades, men = (rng.random(100) < 0.7).astype(float), rng.integers(0, 2, 100)
    train, test = credit_queries(people, grades, men, queries=(400, 50))
    known = (people[:80, 0] - people[:80, 0].mean()) / people[:80, 0].std()
    assert np.abs(train.features[:, :1] - known).min(axis=1).max() < 1e-9  # each is one of theirs
    assert test.features[:, 0].min() > 50
    assert set(np.concatenate([train.features[:, 1], test.features[:, 1]])) == {0.0, 1.0}
    assert train.groups == ("men", "women")


def test_features_centered_by_group_reach_every_step(tmp_path):
    """Group 1's features are shifted by another amount in every topic: only centered ones tell who is relevant."""
    rng = np.random.default_rng(0)
    features, grades, groups = [], [], []
    for shift in rng.normal(0, 30, 60):
        x, group = rng.normal(0, 1, (10, 1)), np.repeat([0, 1], 5)
        grades.append((x[:, 0] > np.where(group, np.median(x[5:]), np.median(x[:5]))).astype(float))
        features.append(x + shift * group[:, None])
        groups.append(group)
    data = Dataset.of(features, grades, groups)
    train, valid = data.split(range(40)), data.split(range(40, 60))
    reached = {}
    for centered in (False, True):
        chosen = Settings.for_method("pg-rank", center_by_group=centered, batch=10, epochs=30, lr=0.1)
        policy = train_policy(chosen, train, valid)
        reached[centered] = value_of(NDCG, policy, valid)
    assert reached[True] > 0.95 > reached[False]
    save_policy(policy, tmp_path / "policy")
    loaded = read_policy(tmp_path / "policy")
    assert loaded.settings.center_by_group
    np.testing.assert_array_equal(loaded.predict(valid), policy.predict(valid))
    with pytest.raises(UsageError, match="needs groups"):
        loaded.predict(replace(valid, membership=None))


# Saved policies ------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pg-rank", "bandit-rank", "ridge", "deltr"])
def test_a_saved_policy_predicts_the_same(tmp_path, method):
    data = learnable(8)
    policy = train_policy(Settings.for_method(method, **({} if method == "ridge" else {"epochs": 2})), data)
    save_policy(policy, tmp_path / "p")
    loaded = read_policy(tmp_path / "p")
    assert loaded.settings == policy.settings
    np.testing.assert_array_equal(loaded.predict(data), policy.predict(data))
    first = (tmp_path / "p" / "model.npz").read_bytes()
    save_policy(policy, tmp_path / "q")
    assert (tmp_path / "q" / "model.npz").read_bytes() == first
    with pytest.raises(UsageError, match="features"):
        loaded.predict(data.with_features(2))


class Evil:
    def __reduce__(self):
        return (pytest.fail, ("a model file was executed",))


def saved(tmp_path) -> tuple[TrainedPolicy, Dataset]:
    data = learnable(4)
    policy = train_policy(Settings.for_method("pg-rank", epochs=1), data)
    save_policy(policy, tmp_path)
    return policy, data


def rewrite(path, name, content):
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    members[name] = content
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data)


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        npy(np.array([Evil(), Evil(), Evil()], dtype=object)),
        npy(np.array(Evil(), dtype=object)),
        pickle.dumps([1]),
        npy(np.zeros(4)),
        npy(np.zeros(3, dtype=np.float32)),
        npy(np.array([1.0, np.nan, 2.0])),
        npy(np.zeros(3))[:-8],
        npy(np.zeros(3)).replace(b"(3,)", b"(9" + b"9" * 15 + b",)")[:200],
        b"",
    ],
)
def test_hostile_arrays_are_refused_and_never_executed(tmp_path, content):
    saved(tmp_path)
    rewrite(tmp_path / "model.npz", "model.theta.npy", content)
    with pytest.raises(InputError, match=r"model.npz"):
        read_policy(tmp_path)


def test_a_damaged_archive_is_refused(tmp_path):
    saved(tmp_path)
    with zipfile.ZipFile(tmp_path / "model.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("model.theta", "model.b", "standardiser.mean", "standardiser.scale"):
            archive.writestr(f"{name}.npy", npy(np.zeros(() if name == "model.b" else 3)))
    assert read_policy(tmp_path).model.features == 3
    content = bytearray((tmp_path / "model.npz").read_bytes())
    start = 30 + len("model.theta.npy")
    content[start : start + 40] = b"\xff" * 40
    (tmp_path / "model.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"model.npz"):
        read_policy(tmp_path)


def test_a_pickle_in_place_of_the_archive_is_refused(tmp_path):
    saved(tmp_path)
    (tmp_path / "model.npz").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InputError, match=r"model.npz"):
        read_policy(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(format="other"),
        lambda c: c.update(features=10**9),
        lambda c: c.update(features="3"),
        lambda c: c.update(groups="ab"),
        lambda c: c["settings"].update(model="os.system"),
        lambda c: c["settings"].update(method="rm"),
        lambda c: c["settings"].update(surprise=1),
        lambda c: c["settings"].update(epochs="5"),
        lambda c: c.update(settings=[]),
    ],
)
def test_hostile_configurations_are_refused(tmp_path, change):
    saved(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    change(config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"config.json"):
        read_policy(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '"x"'])
def test_configurations_that_are_none(tmp_path, text):
    saved(tmp_path)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError, match=r"config.json"):
        read_policy(tmp_path)


def test_nothing_there(tmp_path):
    with pytest.raises(InputError, match=r"config.json"):
        read_policy(tmp_path / "none")


def test_a_policy_of_version_1_is_refused_with_the_reason(tmp_path):
    saved(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["format"] == "fairevals policy 2"
    config["format"] = "fairevals policy 1"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"config.json: a policy of version 0.1.*train it again"):
        read_policy(tmp_path)

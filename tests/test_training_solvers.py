"""L-BFGS on all topics: convergence, bounds of the disparity, and what is chosen on other topics."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import sem

import fairevals as fe
from experiments.datasets import simulated
from experiments.measuring import measure_policy
from fairevals.errors import InputError, RemarkWarning, UsageError
from fairevals.measures import parse_measure
from fairevals.measures.numeric import absolute, hinge
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training import (
    Dataset,
    Objective,
    PolicyGradient,
    Settings,
    make_model,
    read_policy,
    save_policy,
    sweep,
    train_policy,
)
from fairevals.training.scoring import evaluate_policy
from fairevals.training.selection import TEMPERATURES, WEIGHT_DECAY, Chosen, Measured, Training
from fairevals.training.solvers import FullBatch, _Lagrangian, minimise_loss

D_GROUP = "D_group(attr='group')"
BATCHES = {"solver": "adam", "epochs": 2}


@pytest.fixture(scope="module")
def data():
    return simulated(queries=25)


def objective_of(policy, data, lam):
    """The mean of U − λ·D over topics, with 0 where a measure is undefined."""
    batch = data.batch(range(len(data)))
    scores = batch.masked(policy.predict(data).reshape(batch.grades.shape))
    return float(Objective.of(lam=lam).value(scores, batch).mean())


# Smoothing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize(("function", "plain"), [(hinge, lambda x: max(0.0, x)), (absolute, abs)])
def test_smoothed_kinks(function, plain, smoothing):
    x = np.array([-2.0, -0.31, -0.1, 0.05, 0.29, 1.5])
    value, slope = function(x, smoothing)
    up, down = (function(x + step, smoothing)[0] for step in (1e-6, -1e-6))
    np.testing.assert_allclose(slope, (up - down) / 2e-6, atol=1e-6)
    exact = np.array([plain(each) for each in x])
    assert np.all((exact - smoothing / 2 - 1e-12 <= value) & (value <= exact))


@pytest.mark.parametrize(
    "measure",
    [
        "D_ind",
        D_GROUP,
        "D_group(attr='group',pairs='max')",
        "IAA",
        "UEXP(attr='group')",
        "DP(attr='group',protected='G1')",
    ],
)
def test_smoothed_measures_have_the_gradient_of_finite_differences_and_end_in_the_measure(measure, data):
    batch = data.batch(range(6))
    part = Objective.of("nDCG", 1.0, measure).parts[-1]
    # One group gets more than the other, so that some pairs are violated.
    scores = np.random.default_rng(0).normal(size=batch.grades.shape) + 2.0 * batch.membership[..., 0]
    exposure = PlackettLuce(scores).exposure("log2").value

    def value(at, smoothing=0.03):
        return part.of_exposure(batch.block.exposed(at), smoothing)[0]

    gradient = part.of_exposure(batch.block.exposed(exposure), 0.03)[1]
    for document in range(exposure.shape[1]):
        step = np.zeros_like(exposure)
        step[:, document] = 1e-6
        slope = (value(exposure + step) - value(exposure - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, document], slope, atol=2e-6)
    np.testing.assert_allclose(value(exposure, 1e-12), value(exposure, 0.0), atol=1e-11)
    assert np.abs(value(exposure) - value(exposure, 0.0)).max() > 1e-4


# The solver ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["linear", "hidden"])
def test_losses_of_a_full_batch_are_differentiated(model, data):
    loss = PolicyGradient(Objective.of(lam=3.0, entropy=0.1), smoothing=0.02)
    problem = FullBatch(make_model(model, 2, seed=1), data, 0.05)
    lagrangian = _Lagrangian(problem, replace(loss.objective, lam=1.0), 30, 0.02, -0.001, 2.0, 500.0)
    at = problem.vector + np.random.default_rng(0).normal(0, 0.3, problem.vector.size)
    for function in (lambda x: problem.loss_at(x, loss), lagrangian.at):
        gradient = function(at)[1]
        for number in range(0, at.size, 7 if model == "hidden" else 1):
            step = np.zeros(at.size)
            step[number] = 1e-4
            slope = (function(at + step)[0] - function(at - step)[0]) / 2e-4
            assert gradient[number] == pytest.approx(slope, abs=2e-4)


@pytest.mark.parametrize("lam", [0.0, 5.0, 50.0])
def test_the_default_solver_converges(lam, data):
    """To what a direct search over θ from several places finds: another method, and another kind of model of it."""
    settings = Settings.for_method("fair-pg-rank", lam=lam, standardise=False, weight_decay=0.0)
    policy = train_policy(settings, data)
    assert policy.fit.solver == "lbfgs" and policy.fit.improved
    batch = data.batch(range(len(data)))
    objective = Objective.of(lam=lam)

    def cost(theta):
        return -objective.value(batch.features @ theta, batch).mean()

    theta = policy.model.parameters["theta"]
    starts = ([3.0, 3.0], [3.0, 0.3], [0.5, 0.0], theta)
    options = {"maxiter": 40, "xatol": 1e-2, "fatol": 1e-4}
    found = min(minimize(cost, start, method="Nelder-Mead", options=options).fun for start in starts)
    assert cost(theta) <= found + 0.002


def test_a_solver_never_ends_below_its_start(data):
    for settings in (
        Settings.for_method("fair-pg-rank", lam=200.0, lr=5.0, epochs=2),
        Settings.for_method("fair-pg-rank", lam=200.0, iterations=1),
    ):
        start = train_policy(replace(settings, epochs=0), data)
        policy = train_policy(settings, data)
        assert objective_of(policy, data, 200.0) >= objective_of(start, data, 200.0) - 1e-9
        assert policy.fit.improved == (
            objective_of(policy, data, 200.0) > objective_of(start, data, 200.0) + 1e-6
        )


def test_a_policy_that_is_no_better_than_the_untrained_one_is_said_to_be_so(data):
    """With a rate that is far too high nothing is gained, and the untrained policy is what is left."""
    with pytest.warns(
        RemarkWarning, match="fair-pg-rank-lambda500-seed0: no better than the untrained policy"
    ):
        (policy,) = sweep("fair-pg-rank", data, lambdas=[500], lr=50.0, epochs=2)
    assert not policy.fit.improved
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (better,) = sweep("fair-pg-rank", data, lambdas=[1])
    assert better.fit.improved


def test_batches_take_over_where_all_topics_at_once_cannot_be_trained_on(data, monkeypatch):
    monkeypatch.setattr(
        "fairevals.training.settings._LEAST_STEPS", 1
    )  # which solver is taken, not what it reaches
    small = data.split(range(3))
    assert train_policy(Settings.for_method("pg-rank"), small).fit.solver == "lbfgs"
    assert train_policy(Settings.for_method("listnet"), small).fit.solver == "lbfgs"
    for settings in (
        {"estimator": "pl-rank"},
        {"utility": "ERR"},
        {"dropout": 0.1},
        {"lr": 0.02},
        {"solver": "adam"},
    ):
        policy = train_policy(Settings.for_method("pg-rank", **settings), small)
        assert policy.fit.solver == "adam", settings
    monkeypatch.setattr("fairevals.training.methods.FULL_BATCH", 10)
    assert train_policy(Settings.for_method("pg-rank"), small).fit.solver == "adam"
    with pytest.raises(UsageError, match="L-BFGS needs exact gradients"):
        train_policy(Settings.for_method("pg-rank", utility="ERR", solver="lbfgs"), small)
    with pytest.raises(UsageError, match="max_disparity needs the solver lbfgs"):
        Settings.for_method("fair-pg-rank", max_disparity=0.1, estimator="reinforce")
    with pytest.raises(UsageError, match="listnet takes no max_disparity"):
        Settings.for_method("listnet", max_disparity=0.1)


def test_batches_and_all_topics_at_once_have_one_problem(data):
    """In several batches of bounded memory: the same loss and gradient as in one, and the same solution."""
    settings = Settings.for_method("fair-pg-rank", lam=5.0)
    one, several = (FullBatch(make_model("linear", 2), data, 0.1) for _ in range(2))
    several._kept = [data.batch([t]) for t in range(len(data))]
    loss, at = PolicyGradient(settings.objective), np.array([1.0, 0.5, 0.0])
    for a, b in zip(one.loss_at(at, loss), several.loss_at(at, loss), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    values = (
        _Lagrangian(each, settings.objective, 30, 0.01, 0.0, 1.0, 9.0).at(at) for each in (one, several)
    )
    for a, b in zip(*values, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


# Under a bound ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("disparity", [D_GROUP, "D_ind", "D_cross", "EE_L", "AWRF(attr='group')"])
def test_the_bound_is_met_within_two_per_cent_and_used(disparity, data):
    """At half of what the most useful policy has: more utility than the policies of λ with no more disparity."""
    zero = train_policy(Settings.for_method("fair-pg-rank", lam=0.0, weight_decay=1e-4), data)
    measure = parse_measure(disparity)

    def reached(policy):
        batch = data.batch(range(len(data)))
        scores = batch.masked(policy.predict(data).reshape(batch.grades.shape))
        exposed = batch.block.exposed(
            PlackettLuce(scores).exposure(measure.attention_model, measure.cutoff).value
        )
        utility = float(Objective.of().value(scores, batch).mean())
        return utility, float(np.nanmean(measure.direction.cost(measure.of_exposure(exposed))))

    start = make_model("linear", 2)
    uniform = reached(replace(zero, model=start, fit=replace(zero.fit, temperature=1.0)))[1]
    bound = (reached(zero)[1] + uniform) / 2
    if bound < 0:
        pytest.skip("a cost below 0 has no bound")
    settings = Settings.for_method(
        "fair-pg-rank", disparity=disparity, max_disparity=bound, folds=0, weight_decay=1e-4
    )
    policy = train_policy(settings, data)
    utility, cost = reached(policy)
    assert cost <= 1.02 * bound
    assert policy.fit.disparity == pytest.approx(cost, rel=1e-3)
    for lam in (1.0, 3.0, 10.0, 30.0):
        other = train_policy(replace(settings, max_disparity=None, lam=lam), data)
        useful, unfair = reached(other)
        assert utility >= useful - 0.003 or unfair > cost


def test_a_bound_that_costs_nothing_changes_nothing(data):
    free = train_policy(Settings.for_method("fair-pg-rank", lam=0.0, weight_decay=0.01), data)
    bounded = train_policy(
        Settings.for_method("fair-pg-rank", max_disparity=0.9, folds=0, weight_decay=0.01), data
    )
    assert bounded.fit.multiplier == 0
    np.testing.assert_allclose(bounded.predict(data), free.predict(data), atol=0.02)


def test_a_bound_that_cannot_be_met_is_said_to_be_so(data):
    """EE_L of any policy is far above 0."""
    with pytest.warns(RemarkWarning, match="above the largest of 0.001"):
        (policy,) = sweep("fair-pg-rank", data, max_disparities=[0.001], disparity="EE_L", folds=0)
    assert policy.fit.disparity > 0.01


def test_bounds_in_a_sweep_are_trained_by_themselves(data):
    options = {"max_disparities": [0.01, 0.004], "folds": 0}
    small = data.split(range(15))
    both = sweep("fair-pg-rank", small, **options)
    (alone,) = sweep("fair-pg-rank", small, max_disparities=[0.004], folds=0)
    there = sweep("fair-pg-rank", small, **options, jobs=2)
    assert [policy.name for policy in both] == ["fair-pg-rank-max0.01-seed0", "fair-pg-rank-max0.004-seed0"]
    np.testing.assert_array_equal(both[1].predict(small), alone.predict(small))
    for here, other in zip(both, there, strict=True):
        np.testing.assert_array_equal(here.predict(small), other.predict(small))


def test_the_line_of_the_design(data):
    data = data.split(range(10))
    X, y, qid = data.features, data.grades, np.repeat(data.topics, data.lengths)
    groups = np.array(data.groups)[data.membership.argmax(axis=1)]
    policy = fe.FairPGRank(disparity=fe.D_group(attr="SEX"), max_disparity=0.001).fit(
        X, y, qid=qid, groups=groups
    )
    assert measure_policy(policy.policy_, data).package <= 0.00102
    assert policy.policy_.fit.chosen_on == "5 folds"


# What is chosen on other topics -------------------------------------------------------------------------------


def noisy(topics, seed, features=60):
    """Grades follow one of many features."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(topics, 8, features))
    grades = (x[..., 0] + rng.normal(size=(topics, 8)) > 0.5).astype(float)
    return Dataset.of(list(x), list(grades), list(rng.integers(0, 2, (topics, 8))))


@pytest.mark.parametrize("chosen_on", ["validation data", "3 folds", "5 folds"])
def test_weight_decay_and_temperature_are_chosen_on_topics_that_were_not_trained_on(chosen_on):
    train, valid, test = (noisy(n, seed) for n, seed in ((15, 0), (150, 1), (300, 2)))
    options = {"folds": 3} if chosen_on == "3 folds" else {}
    held_out = valid if chosen_on == "validation data" else None
    plain = train_policy(Settings.for_method("pg-rank", folds=0), train)
    chosen = train_policy(Settings.for_method("pg-rank", **options), train, held_out)
    assert plain.fit.weight_decay == WEIGHT_DECAY and plain.fit.temperature == 1 and not plain.fit.chosen_on
    assert chosen.fit.chosen_on == chosen_on
    best = max(chosen.fit.candidates, key=lambda each: each.value)
    assert (best.weight_decay, best.temperature) == (chosen.fit.weight_decay, chosen.fit.temperature)
    if held_out is not None:
        assert objective_of(chosen, test, 0.0) > objective_of(plain, test, 0.0)
        assert best.value == pytest.approx(objective_of(chosen, valid, 0.0), abs=1e-6)
        # Of all temperatures it is the best on the validation data.
        others = [replace(chosen, fit=replace(chosen.fit, temperature=t)) for t in TEMPERATURES]
        assert objective_of(chosen, valid, 0.0) == max(objective_of(other, valid, 0.0) for other in others)


def test_what_is_given_is_not_chosen():
    train, valid = noisy(6, 0), noisy(6, 1)
    given = train_policy(Settings.for_method("pg-rank", weight_decay=0.3, temperature=2.0), train, valid)
    assert (given.fit.weight_decay, given.fit.temperature, given.fit.chosen_on) == (0.3, 2.0, "")
    half = train_policy(Settings.for_method("pg-rank", weight_decay=0.3), train, valid)
    assert half.fit.weight_decay == 0.3 and half.fit.chosen_on == "validation data"
    np.testing.assert_allclose(
        half.predict(valid) * half.fit.temperature, given.predict(valid) * 2.0, rtol=1e-9
    )


def test_under_a_bound_the_simplest_of_those_that_meet_it_elsewhere_and_are_level_with_the_best_is_chosen():
    train, valid = noisy(20, 0), noisy(40, 1)
    bound = 0.05
    policy = train_policy(Settings.for_method("fair-pg-rank", max_disparity=bound), train, valid)
    fit = policy.fit
    assert fit.disparity <= 1.02 * bound
    meeting = [each for each in fit.candidates if each.disparity <= 1.02 * bound]
    best = max(meeting, key=lambda each: each.value)
    (chosen,) = [
        each
        for each in meeting
        if each.weight_decay == fit.weight_decay and each.bounded == (fit.multiplier is not None)
    ]
    assert fit.candidates.index(chosen) < fit.candidates.index(best)  # the rule is not idle here
    assert best.value - 0.02 < chosen.value < best.value
    assert chosen.temperature <= fit.temperature
    assert measure_policy(policy, valid).package <= 1.02 * bound
    assert {each.bounded for each in fit.candidates} == {True, False}


def test_models_are_compared_at_the_bound_not_at_the_temperature_next_to_it():
    """Of two models with one curve of utility and disparity, neither wins by where its temperatures happen to be."""
    temperatures = (1.0, 2.0, 4.0)
    disparity = np.array([0.04, 0.02, 0.01])
    costs = (disparity[:, None], 0.9 * disparity[:, None])
    exact, beside = (Measured(10 * cost, cost, defined=1) for cost in costs)
    for measured in (exact, beside):
        chosen = measured.best(temperatures, 0.02)
        assert chosen.cost == pytest.approx(0.02)
        assert chosen.value == pytest.approx(0.2)
    assert 1.7 < beside.best(temperatures, 0.02).temperature < 2.0
    unbound = beside.best(temperatures, 0.5)
    assert (unbound.temperature, unbound.value, unbound.cost) == pytest.approx((1.0, 0.36, 0.036))
    assert beside.best(temperatures, 0.001).temperature == 4.0  # the nearest of those that miss it


def test_a_model_within_half_a_standard_error_of_the_best_is_level_with_it():
    best = Chosen(1.0, np.array([0.4, 0.2, 0.5, 0.3]), 0.01)
    cases = (
        ([0.1, -0.1, 0.1, -0.06], True),
        ([0.1, -0.1, 0.1, 0.0], False),
        ([0.1, 0.05, 0.1, 0.1], False),
        ([0.05] * 4, False),
    )
    for lost, level in cases:
        assert (np.mean(lost) <= sem(lost) / 2) == level
        assert Chosen(2.0, best.values - lost, 0.01).is_level_with(best, 0.02) == level
    assert not Chosen(2.0, best.values, 0.03).is_level_with(best, 0.02)  # it misses the bound
    assert not Chosen(2.0, best.values, None).is_level_with(
        best, None
    )  # nothing but the best without a bound


def test_the_utility_at_a_bound_is_as_uncertain_as_its_disparity():
    """Models that differ by topic in disparity alone differ in utility at the bound by the slope times that."""
    utility = np.array([[0.8, 0.8, 0.8, 0.8], [0.6, 0.6, 0.6, 0.6]])
    even = Measured(utility, np.array([[0.04, 0.04, 0.0, 0.04], [0.0, 0.0, 0.0, 0.0]]), defined=3)
    uneven = Measured(utility, np.array([[0.12, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]), defined=3)
    for measured in (even, uneven):
        chosen = measured.best((1.0, 2.0), 0.03)
        assert chosen.cost == pytest.approx(0.03)
        assert chosen.value == pytest.approx(0.75)  # a quarter of the way from .8 to .6
    slope = 0.2 / 0.04  # of utility by the mean disparity
    parts = [measured.best((1.0, 2.0), 0.03).values for measured in (even, uneven)]
    disparity = [0.75 * measured.cost[0] * 4 / 3 for measured in (even, uneven)]
    np.testing.assert_allclose(parts[0] - parts[1], slope * (disparity[1] - disparity[0]))


def test_within_a_bound_that_utility_alone_meets_nothing_is_trained_again(data, monkeypatch):
    solved = []
    solve = Training.solve
    monkeypatch.setattr(Training, "solve", lambda self, *rest: solved.append(rest[2]) or solve(self, *rest))
    settings = Settings.for_method("fair-pg-rank", max_disparity=1.0, folds=2)
    policy = train_policy(settings, data)
    assert not any(way.bounded for way in solved)
    tried = [candidate.bounded for candidate in policy.fit.candidates]
    assert tried.count(True) == tried.count(False)
    again = len({way for way in solved if way.weight_decay >= policy.fit.weight_decay})  # on all topics
    assert len(solved) == 2 * tried.count(False) + again


def test_weight_decay_is_the_penalty_of_the_objective(data):
    """At the solution the gradient of the loss is −decay·θ."""
    model = make_model("linear", 2)
    minimise_loss(model, PolicyGradient(Objective.of()), data, weight_decay=0.01, iterations=200)
    problem = FullBatch(model, data, 0.0)
    gradient = problem.loss_at(problem.vector, PolicyGradient(Objective.of()))[1]
    np.testing.assert_allclose(gradient, -0.01 * problem.vector, atol=1e-4)


def test_the_record_of_training_is_saved_and_checked(tmp_path, data):
    settings = Settings.for_method("fair-pg-rank", max_disparity=0.01, folds=2, weight_decay=0.01)
    policy = train_policy(settings, data.split(range(10)))
    save_policy(policy, tmp_path)
    loaded = read_policy(tmp_path)
    assert loaded.fit == policy.fit and loaded.fit.temperature >= 1
    np.testing.assert_array_equal(loaded.predict(data), policy.predict(data))
    config = json.loads((tmp_path / "config.json").read_text())
    for wrong in (
        {"temperature": 0},
        {"temperature": "1"},
        {"candidates": 3},
        {"improved": 1},
        {"surprise": 1},
    ):
        (tmp_path / "config.json").write_text(json.dumps({**config, "fit": {**config["fit"], **wrong}}))
        with pytest.raises(InputError, match="no record of training"):
            read_policy(tmp_path)
    del config["fit"]  # as of folders that were written before there was one
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert read_policy(tmp_path).fit.temperature == 1


def test_training_measures_what_evaluation_does(data):
    policy = train_policy(Settings.for_method("fair-pg-rank", max_disparity=0.01, folds=0), data)
    settings = policy.settings
    measured = Training(settings, PolicyGradient(settings.objective)).measure(
        policy.model, replace(data, standardiser=policy.standardiser), (1.0, 3.0)
    )
    for number, temperature in enumerate((1.0, 3.0)):
        outcome = measure_policy(replace(policy, fit=replace(policy.fit, temperature=temperature)), data)
        utility, disparity = measured.means(0.01)[number]
        assert utility == pytest.approx(outcome.ndcg, abs=1e-5)
        assert disparity == pytest.approx(outcome.package, abs=1e-5)


def test_a_weight_decay_is_chosen_for_hidden_layers_too(data):
    """With the strongest weight decay their parameters come to 0, from where no step would lead away."""
    small, valid = data.split(range(10)), data.split(range(10, 15))
    settings = Settings.for_method("pg-rank", model="hidden", iterations=10)
    policy = train_policy(settings, small, valid)
    given = train_policy(
        replace(settings, weight_decay=policy.fit.weight_decay, temperature=1.0), small, valid
    )
    assert policy.fit.improved
    np.testing.assert_allclose(policy.predict(small) * policy.fit.temperature, given.predict(small))
    assert np.ptp(policy.predict(small)) > 1


def test_a_start_that_is_worse_than_a_random_order_is_no_excuse(data):
    """The random parameters of a hidden layer may be worse than a random order: to beat them is not enough."""
    small = data.split(range(10))
    settings = Settings.for_method("pg-rank", model="hidden", weight_decay=1e3, temperature=1.0)
    assert not train_policy(settings, small).fit.improved


def test_few_topics_have_enough_steps_for_a_utility_that_is_no_function_of_exposure(data):
    """ERR is trained for by Adam; nDCG by L-BFGS, which converges. Both order these documents by the same sum."""

    policies = (train_policy(Settings.for_method("pg-rank", utility=each), data) for each in ("ERR", "nDCG"))
    trained, other = (evaluate_policy(policy, data, ["ERR"]).mean(0, 0).value for policy in policies)
    assert trained >= other - 0.01

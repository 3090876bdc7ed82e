"""Every gradient against enumeration, finite differences, or the exact one."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairevals.errors import UsageError
from fairevals.measures.disparity import group_disparity, individual_disparity
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training import MODELS, Block, Objective, PolicyGradient, make_model, parse_utility
from fairevals.training.bandit_rank import BanditRankLoss, draw, log_probability_with_gradient
from fairevals.training.deltr import DeltrLoss
from fairevals.training.disparities import group_with_gradient, individual_with_gradient
from fairevals.training.estimators import ESTIMATORS, Drawn, exact, pl_rank, reinforce
from fairevals.training.listnet import ListNetLoss
from fairevals.training.objectives import entropy_with_gradient

LINEAR = ["nDCG", "DCG", "nDCG@2", "P@3", "AverageRank", "0.5*nDCG@3+0.25*DCG"]


def block_of(n=5, topics=2, seed=0, groups=2, features=3):
    """Topics of up to n documents; the second is shorter by one."""
    rng = np.random.default_rng(seed)
    present = np.ones((topics, n), dtype=bool)
    present[1:, -1] = False
    return Block(
        rng.normal(size=(topics, n, features)) * present[..., None],
        rng.integers(0, 4, (topics, n)) * present.astype(float),
        present,
        np.eye(groups)[rng.integers(0, groups, (topics, n))] * present[..., None],
        3.0,
    )


def scores_of(block, seed=1):
    return block.masked(np.random.default_rng(seed).normal(size=block.grades.shape))


def finite_differences(function, x, step=1e-4):
    """Of a function that gives a number a topic, by each of the topic's finite x."""
    slope = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        if np.isfinite(x[place]):
            up, down = x.copy(), x.copy()
            up[place] += step
            down[place] -= step
            slope[place] = (function(up) - function(down))[place[0]] / (2 * step)
    return slope


def enumerated(objective, scores, block):
    """The objective by summing over all rankings."""
    values = []
    for t in range(len(scores)):
        there = np.flatnonzero(block.present[t])
        rankings = np.array(list(permutations(there.tolist())))
        p = np.exp(PlackettLuce(scores[t]).log_prob(rankings))
        one = Block(block.features[t : t + 1], block.grades[t : t + 1], block.present[t : t + 1],
                    block.membership[t : t + 1], block.max_grade)  # fmt: skip
        value = p @ objective.utility.of_rankings(rankings[None], one)[0]
        exposure = np.zeros((1, scores.shape[1]))
        np.add.at(exposure[0], rankings, p[:, None] / np.log2(np.arange(2, there.size + 2)))
        if objective.lam:
            value -= objective.lam * objective.disparity_of(exposure, one)[0][0]
        values.append(value)
    return np.array(values)


@pytest.mark.parametrize("utility", LINEAR)
@pytest.mark.parametrize("disparity", ["D_group", "D_ind"])
def test_exact_is_what_enumeration_gives(utility, disparity):
    block = block_of()
    scores = scores_of(block)
    objective = Objective.of(utility, 0.7, disparity=disparity)
    value, gradient = exact(objective, scores, block, tolerance=1e-11)
    np.testing.assert_allclose(value, enumerated(objective, scores, block), atol=1e-10)
    np.testing.assert_allclose(objective.value(scores, block, tolerance=1e-11), value, atol=1e-10)
    slope = finite_differences(lambda s: enumerated(objective, s, block), scores)
    np.testing.assert_allclose(gradient, slope, atol=1e-7)


@pytest.mark.parametrize("estimate", [reinforce, pl_rank])
@pytest.mark.parametrize("utility", LINEAR)
def test_sampled_utility_gradients_average_to_the_exact_one(estimate, utility):
    block = block_of(6)
    scores = scores_of(block)
    objective = Objective.of(utility, entropy=0.2)
    truth = exact(objective, scores, block, tolerance=1e-9)
    rng = np.random.default_rng(5)
    found = [estimate(objective, scores, block, rng, 8) for _ in range(1500)]
    for part in (0, 1):
        drawn = np.stack([each[part] for each in found])
        error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
        assert np.all(np.abs(drawn.mean(axis=0) - truth[part]) <= 4.5 * error + 1e-8)


@pytest.mark.parametrize("estimate", [reinforce, pl_rank])
@pytest.mark.parametrize("disparity", ["D_group", "D_ind"])
def test_sampled_disparity_gradients_come_to_the_exact_one(estimate, disparity):
    # What is sampled is biased only near the kink of max(0, ·): these scores are far from it.
    grades = np.array([[1.0, 2.0, 1.0, 2.0]])
    block = Block(np.zeros((1, 4, 1)), grades, np.ones((1, 4), bool), np.eye(2)[[[0, 1, 0, 1]]], 2.0)
    scores = np.array([[-2.5, 2.5, 0.2, 0.4]])
    objective = Objective.of("nDCG", 2.0, disparity=disparity)
    truth = exact(objective, scores, block, tolerance=1e-9)[1]
    rng = np.random.default_rng(6)
    drawn = np.stack([estimate(objective, scores, block, rng, 400)[1] for _ in range(300)])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - truth) <= 4.5 * error)
    assert np.abs(truth).max() > 20 * error.max()


def test_reinforce_of_a_nonlinear_utility_averages_to_the_true_gradient():
    block = block_of(4)
    scores = scores_of(block)
    objective = Objective.of("0.5*AP+0.25*RR+ERR")
    slope = finite_differences(lambda s: enumerated(objective, s, block), scores)
    rng = np.random.default_rng(7)
    drawn = np.stack([reinforce(objective, scores, block, rng, 16)[1] for _ in range(1500)])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - slope) <= 4.5 * error + 1e-8)


def test_pl_rank_varies_less_than_reinforce():
    block = block_of(6, seed=3)
    scores, objective = scores_of(block), Objective.of("nDCG@3")
    spread = {}
    for estimate in (reinforce, pl_rank):
        rng = np.random.default_rng(0)
        drawn = np.stack([estimate(objective, scores, block, rng, 10)[1] for _ in range(300)])
        spread[estimate] = drawn.std(axis=0).mean()
    assert spread[pl_rank] < spread[reinforce]


@pytest.mark.parametrize("estimator", ["exact", "pl-rank"])
def test_estimators_that_need_a_linear_utility_say_so(estimator):
    with pytest.raises(UsageError, match="not linear in exposure"):
        PolicyGradient(Objective.of("ERR"), estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_padding_changes_nothing(estimator):
    block = block_of(4, topics=1, seed=2)
    scores = scores_of(block)
    wide = Block(
        np.pad(block.features, ((0, 0), (0, 2), (0, 0))),
        np.pad(block.grades, ((0, 0), (0, 2))),
        np.pad(block.present, ((0, 0), (0, 2))),
        np.pad(block.membership, ((0, 0), (0, 2), (0, 0))),
        block.max_grade,
    )
    padded = np.pad(scores, ((0, 0), (0, 2)), constant_values=-np.inf)
    objective = Objective.of("nDCG", 1.0, entropy=0.1)
    value, gradient = ESTIMATORS[estimator](objective, scores, block, np.random.default_rng(0), 20)
    also, padded_gradient = ESTIMATORS[estimator](objective, padded, wide, np.random.default_rng(0), 20)
    np.testing.assert_allclose(also, value, atol=1e-12)
    np.testing.assert_allclose(padded_gradient[:, :4], gradient, atol=1e-12)
    assert not padded_gradient[:, 4:].any()


def test_wide_scores_give_finite_gradients():
    block = block_of(5)
    scores = scores_of(block) * 1e5
    for estimate in ESTIMATORS.values():
        _, gradient = estimate(
            Objective.of("nDCG", 1.0, entropy=0.1), scores, block, np.random.default_rng(0), 10
        )
        assert np.isfinite(gradient).all()


def test_the_score_function_is_the_gradient_of_log_prob():
    scores = np.random.default_rng(0).normal(size=(2, 5))
    for rankings in (PlackettLuce(scores).sample(3, rng=1), PlackettLuce(scores).sample(3, k=2, rng=1)):
        gradient = Drawn.given(scores, rankings).pull_back(np.ones((2, 3)))
        slope = finite_differences(lambda s, r=rankings: PlackettLuce(s).log_prob(r).sum(axis=1), scores)
        np.testing.assert_allclose(gradient, slope, atol=1e-7)


def test_entropy():
    scores = np.array([[0.3, -1.0, 2.0, -np.inf]])
    value, gradient = entropy_with_gradient(scores)
    p = np.exp(scores[0, :3]) / np.exp(scores[0, :3]).sum()
    np.testing.assert_allclose(value, -(p @ np.log(p)))
    np.testing.assert_allclose(
        gradient, finite_differences(lambda s: entropy_with_gradient(s)[0], scores), atol=1e-8
    )


# Disparities -------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(2, 4))
@settings(max_examples=60, deadline=None)
def test_disparities_are_the_measures_and_their_gradients(seed, groups):
    rng = np.random.default_rng(seed)
    exposure = rng.random((3, 6))
    merits = rng.integers(0, 3, (3, 6)).astype(float)
    membership = rng.dirichlet(np.ones(groups), (3, 6))
    value, gradient = group_with_gradient(exposure, merits, membership)
    np.testing.assert_allclose(
        value, np.nan_to_num(group_disparity(exposure, merits, membership)), atol=1e-12
    )
    slope = finite_differences(lambda v: group_with_gradient(v, merits, membership)[0], exposure, 1e-7)
    np.testing.assert_allclose(gradient, slope, atol=1e-5)
    value, gradient = individual_with_gradient(exposure, merits)
    np.testing.assert_allclose(value, np.nan_to_num(individual_disparity(exposure, merits)), atol=1e-12)
    slope = finite_differences(lambda v: individual_with_gradient(v, merits)[0], exposure, 1e-7)
    np.testing.assert_allclose(gradient, slope, atol=1e-5)


def test_ties_between_groups():
    two = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2)
    exposure, merits = np.array([[0.6, 1.0], [1.0, 0.6]]), np.ones((2, 2))
    assert group_with_gradient(exposure, merits, two)[0].round(6).tolist() == [0.4, 0.4]
    assert group_with_gradient(exposure, merits, two, ties="first")[0].round(6).tolist() == [0, 0.4]


def test_disparity_of_groups_needs_groups():
    with pytest.raises(UsageError, match="needs groups"):
        block = Block(np.zeros((1, 2, 1)), np.ones((1, 2)), np.ones((1, 2), bool))
        exact(Objective.of("nDCG", 1.0), np.zeros((1, 2)), block)


# Models ------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_exact_gradient_through_every_model(name, dropout):
    block = block_of(5, features=4)
    model = make_model(name, 4, dropout, seed=3)
    for value in model.parameters.values():
        value *= 5.0  # small weights would make everything look linear
    objective = Objective.of("nDCG", 0.5, entropy=0.1)

    def total():
        model.rng = np.random.default_rng(11)  # so that the same units are dropped
        model.train(True)
        return block.masked(model.scores(block.features))

    _, gradient = exact(objective, total(), block, tolerance=1e-11)
    model.backward(gradient)
    found = {name: value.copy() for name, value in model.gradients.items()}
    assert found.keys() == model.parameters.keys()
    for parameter, values in model.parameters.items():
        for place in list(np.ndindex(values.shape))[:: max(1, values.size // 12)]:
            old, step = values[place], 1e-5
            sums = []
            for sign in (1, -1):
                values[place] = old + sign * step
                sums.append(exact(objective, total(), block, tolerance=1e-11)[0].sum())
            values[place] = old
            slope = (sums[0] - sums[1]) / (2 * step)
            assert found[parameter][place] == pytest.approx(slope, abs=2e-6), (parameter, place)


def test_dropout_only_in_training_and_keeps_the_mean():
    model = make_model("hidden", 3, dropout=0.5)
    x = np.ones((1, 3))
    still = model.scores(x)
    model.train(True)
    drawn = np.array([model.scores(x)[0] for _ in range(4000)])
    assert drawn.std() > 0
    assert abs(drawn.mean() - still[0]) < 5 * drawn.std() / np.sqrt(4000)
    model.train(False)
    assert model.scores(x) == still


# Losses of the other methods -----------------------------------------------------


@pytest.mark.parametrize("loss", [ListNetLoss(), DeltrLoss(3.0, 0), DeltrLoss(50.0, 1)])
def test_listwise_losses_against_finite_differences(loss):
    block = block_of(6, topics=4, seed=8)
    scores = scores_of(block, 9)
    value, gradient = loss.gradient(scores, block, np.random.default_rng(0))
    slope = finite_differences(lambda s: loss.gradient(s, block, np.random.default_rng(0))[0], scores, 1e-6)
    np.testing.assert_allclose(gradient, slope, atol=1e-6)
    np.testing.assert_allclose(loss.quality(scores, block), -value)


def test_deltr_penalises_one_side_only():
    block = Block(np.zeros((1, 2, 1)), np.zeros((1, 2)), np.ones((1, 2), bool), np.eye(2)[[[0, 1]]])
    assert DeltrLoss(1.0, 1).unfairness_with_gradient(np.array([[0.0, 3.0]]), block)[0] == 0
    assert DeltrLoss(1.0, 1).unfairness_with_gradient(np.array([[3.0, 0.0]]), block)[0] > 0.8


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
def test_bandit_rank_probabilities_sum_to_one(count, epsilon):
    affinity = np.array([0.9, 0.05, 0.4, 0.6])
    subsets = np.array(list(permutations(range(4), count)))
    log_p, _ = log_probability_with_gradient(affinity, subsets, epsilon)
    assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-12)


def test_bandit_rank_draws_with_its_probabilities():
    affinity = np.array([0.9, 0.05, 0.4])
    subsets = np.array(list(permutations(range(3), 2)))
    p = np.exp(log_probability_with_gradient(affinity, subsets, 0.1)[0])
    drawn = draw(affinity, 2, 40000, 0.1, np.random.default_rng(3))
    share = np.array([(drawn == subset).all(axis=1).mean() for subset in subsets])
    assert np.all(np.abs(share - p) <= 4.5 * np.sqrt(p * (1 - p) / 40000))


def test_bandit_rank_probability_gradient():
    affinity = np.random.default_rng(0).uniform(0.1, 0.9, 5)
    chosen = draw(affinity, 3, 4, 0.1, np.random.default_rng(1))
    _, gradient = log_probability_with_gradient(affinity, chosen, 0.1)
    for d in range(5):
        up, down = affinity.copy(), affinity.copy()
        up[d], down[d] = up[d] + 1e-6, down[d] - 1e-6
        above, below = (log_probability_with_gradient(a, chosen, 0.1)[0] for a in (up, down))
        np.testing.assert_allclose(gradient[:, d], (above - below) / 2e-6, atol=1e-7)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_bandit_rank_loss_is_differentiated_for_the_draws_made(gamma):
    block = block_of(5, seed=4)
    scores = scores_of(block)
    loss = BanditRankLoss(parse_utility("0.5*AP+0.5*nDCG@10"), gamma, 0.1, most=3, draws=6)

    def value(s):
        # The draws and the baseline must stay what they were: take them at `scores`, the probabilities at `s`.
        total = np.zeros(len(s))
        rng = np.random.default_rng(2)
        for t in range(len(s)):
            at = np.flatnonzero(block.present[t])
            one = Block(
                block.features[t : t + 1, at], block.grades[t : t + 1, at], np.ones((1, at.size), bool)
            )
            a = 1 / (1 + np.exp(-s[t, at]))
            if gamma:
                chosen = draw(1 / (1 + np.exp(-scores[t, at])), 3, 6, 0.1, rng)
                advantage = loss.reward.of_rankings(chosen[None], one)[0] - loss.greedy(scores[t, at], one)
                total[t] -= gamma * (advantage * log_probability_with_gradient(a, chosen, 0.1)[0]).mean()
            y = one.grades[0] > 0
            total[t] += (1 - gamma) * -(np.where(y, np.log(a), np.log(1 - a))).mean()
        return total

    found, gradient = loss.gradient(scores, block, np.random.default_rng(2))
    np.testing.assert_allclose(found, value(scores), atol=1e-12)
    np.testing.assert_allclose(gradient, finite_differences(value, scores), atol=1e-7)


def test_rewards_against_hand_computed_values():
    grades = np.array([[1.0, 0.0, 2.0, 0.0]])
    block = Block(np.zeros((1, 4, 1)), grades, np.ones((1, 4), bool), max_grade=2.0)
    rankings = np.array([[[1, 0, 2, 3], [3, 1, -1, -1]]])
    ideal = 3 + 1 / np.log2(3)
    expected = {
        "AP": [(1 / 2 + 2 / 3) / 2, 0],
        "RR": [1 / 2, 0],
        "P@2": [1 / 2, 0],
        "nDCG": [(1 / np.log2(3) + 3 / 2) / ideal, 0],
        "nDCG@2": [1 / np.log2(3) / ideal, 0],
        "AverageRank": [-2.5, -5],
        "ERR": [0.25 / 2 + 0.75 * 0.75 / 3, 0],
        "0.5*AP + 2*RR": [(1 / 2 + 2 / 3) / 4 + 1, 0],
        "iRBU(phi=0.5)": [0.25 * 0.25 + 0.5625 * 0.125, 0],
    }
    for text, values in expected.items():
        np.testing.assert_allclose(
            parse_utility(text).of_rankings(rankings, block)[0], values, atol=1e-9, err_msg=text
        )


@pytest.mark.parametrize("text", ["", "nope", "AP+", "2*", "nDCG@0", "AverageRank@3", "AP)"])
def test_wrong_utilities(text):
    with pytest.raises(UsageError):
        parse_utility(text)

"""Every gradient against enumeration, finite differences, or the exact one."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy.special import expit, log_expit

from fairevals.attention import parse_attention
from fairevals.errors import UsageError
from fairevals.measures import INDEX, parse_measure
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.training import (
    Dataset,
    Objective,
    PolicyGradient,
    Settings,
    evaluate_policy,
    make_model,
    sweep,
    train_policy,
)
from fairevals.training.data import Batch
from fairevals.training.estimators import ESTIMATORS, Drawn, exact, pl_rank, reinforce
from fairevals.training.losses import (
    BanditRankLoss,
    DeltrLoss,
    ListNetLoss,
    draw,
    log_probability_with_gradient,
)
from fairevals.training.models import MODELS
from fairevals.training.objectives import (
    WeightedMeasure,
    entropy_with_gradient,
    parse_utility,
    total_reward,
)

NDCG = "nDCG(dcg='exp-log2')"
LINEAR = [NDCG, "nDCG", f"{NDCG}@2", "P@3", "RBP(p=0.7)", "0.5*nDCG@3+0.25*RBP"]
D_GROUP = "D_group(attr='group')"
DISPARITIES = [
    D_GROUP,
    "D_group(attr='group',ties='first',merit='square')",
    "D_group(attr='group')@3",
    "D_ind",
    "D_cross",
    "EE_L",
    "EE_R",
    "AWRF(attr='group')",
    "DP(attr='group',protected='0',attention='rbp(0.8)')",
    "IAA",
]


def batch_of(n=5, topics=2, seed=0, groups=2, features=3):
    """Topics of up to n documents; the second is shorter by one."""
    rng = np.random.default_rng(seed)
    present = np.ones((topics, n), dtype=bool)
    present[1:, -1] = False
    return Batch(
        rng.normal(size=(topics, n, features)) * present[..., None],
        rng.integers(0, 4, (topics, n)) * present.astype(float),
        present,
        np.eye(groups)[rng.integers(0, groups, (topics, n))] * present[..., None],
        3.0,
    )


def scores_of(batch, seed=1):
    return batch.masked(np.random.default_rng(seed).normal(size=batch.grades.shape))


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


def cost(measure, value):
    """What a disparity adds to the penalty: written out here, so that the objective is not its own oracle."""
    if np.isnan(value):
        return 0.0
    return {"EE_R": -value, "AWRF": -value, "DP": abs(value)}.get(measure.name, value)


def enumerated(objective, scores, batch):
    """The objective by summing over all rankings."""
    values = []
    for t in range(len(scores)):
        there = np.flatnonzero(batch.present[t])
        rankings = np.array(list(permutations(there.tolist())))
        p = np.exp(PlackettLuce(scores[t]).log_prob(rankings))
        one = Batch(batch.features[t : t + 1], batch.grades[t : t + 1], batch.present[t : t + 1],
                    batch.membership[t : t + 1], batch.max_grade)  # fmt: skip
        value = p @ total_reward(objective.utility, rankings[None], one)[0]
        if objective.lam:
            measure = objective.disparity
            attention = parse_attention(measure.attention).weights(there.size)
            attention[measure.cutoff or there.size :] = 0.0
            exposure = np.zeros((1, scores.shape[1]))
            np.add.at(exposure[0], rankings, p[:, None] * attention)
            value -= objective.lam * cost(measure, measure.of_exposure(one.block.exposed(exposure))[0])
        values.append(value)
    return np.array(values)


@pytest.mark.parametrize("utility", LINEAR)
@pytest.mark.parametrize("disparity", DISPARITIES)
def test_exact_is_what_enumeration_gives(utility, disparity):
    batch = batch_of()
    scores = scores_of(batch)
    objective = Objective.of(utility, 0.7, disparity)
    value, gradient = exact(objective, scores, batch, tolerance=1e-11)
    np.testing.assert_allclose(value, enumerated(objective, scores, batch), atol=1e-10)
    np.testing.assert_allclose(objective.value(scores, batch, tolerance=1e-11), value, atol=1e-10)
    if utility == LINEAR[0] or disparity == D_GROUP:  # the sum of all is slow and tells no more
        slope = finite_differences(lambda s: enumerated(objective, s, batch), scores)
        np.testing.assert_allclose(gradient, slope, atol=1e-7)


def test_an_undefined_measure_counts_as_zero():
    nothing_relevant = Batch(
        np.zeros((1, 3, 1)), np.zeros((1, 3)), np.ones((1, 3), bool), np.eye(2)[[[0, 1, 1]]]
    )
    rng = np.random.default_rng(0)
    for estimate in ESTIMATORS.values():
        value, gradient = estimate(Objective.of(NDCG, 1.0), np.zeros((1, 3)), nothing_relevant, rng, 4)
        assert value == 0 and not gradient.any()


@pytest.mark.parametrize("estimate", [reinforce, pl_rank])
@pytest.mark.parametrize("utility", LINEAR[::2])
def test_sampled_utility_gradients_average_to_the_exact_one(estimate, utility):
    batch = batch_of(6)
    scores = scores_of(batch)
    objective = Objective.of(utility, entropy=0.2)
    truth = exact(objective, scores, batch, tolerance=1e-9)
    rng = np.random.default_rng(5)
    found = [estimate(objective, scores, batch, rng, 8) for _ in range(1500)]
    for part in (0, 1):
        drawn = np.stack([each[part] for each in found])
        error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
        assert np.all(np.abs(drawn.mean(axis=0) - truth[part]) <= 4.5 * error + 1e-8)


@pytest.mark.parametrize("estimate", [reinforce, pl_rank])
@pytest.mark.parametrize("disparity", [D_GROUP, "D_ind"])
def test_sampled_disparity_gradients_come_to_the_exact_one(estimate, disparity):
    # What is sampled is biased only near the kink of max(0, ·): these scores are far from it.
    grades = np.array([[1.0, 2.0, 1.0, 2.0]])
    batch = Batch(np.zeros((1, 4, 1)), grades, np.ones((1, 4), bool), np.eye(2)[[[0, 1, 0, 1]]], 2.0)
    scores = np.array([[-2.5, 2.5, 0.2, 0.4]])
    objective = Objective.of(NDCG, 2.0, disparity=disparity)
    truth = exact(objective, scores, batch, tolerance=1e-9)[1]
    rng = np.random.default_rng(6)
    drawn = np.stack([estimate(objective, scores, batch, rng, 400)[1] for _ in range(300)])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - truth) <= 4.5 * error)
    assert np.abs(truth).max() > 20 * error.max()


def test_reinforce_of_a_nonlinear_utility_averages_to_the_true_gradient():
    batch = batch_of(4)
    scores = scores_of(batch)
    objective = Objective.of("0.5*AP+0.25*RR+ERR")
    slope = finite_differences(lambda s: enumerated(objective, s, batch), scores)
    rng = np.random.default_rng(7)
    drawn = np.stack([reinforce(objective, scores, batch, rng, 16)[1] for _ in range(1500)])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - slope) <= 4.5 * error + 1e-8)


def test_pl_rank_varies_less_than_reinforce():
    batch = batch_of(6, seed=3)
    scores, objective = scores_of(batch), Objective.of(f"{NDCG}@3")
    spread = {}
    for estimate in (reinforce, pl_rank):
        rng = np.random.default_rng(0)
        drawn = np.stack([estimate(objective, scores, batch, rng, 10)[1] for _ in range(300)])
        spread[estimate] = drawn.std(axis=0).mean()
    assert spread[pl_rank] < spread[reinforce]


@pytest.mark.parametrize("estimator", ["exact", "pl-rank"])
def test_a_mixture_of_rewards_and_functions_of_exposure_averages_to_the_true_gradient(estimator):
    batch = batch_of(4)
    scores, objective = scores_of(batch), Objective.of("nDCG+ERR", 0.7, "D_cross")
    slope = finite_differences(lambda s: enumerated(objective, s, batch), scores)
    rng, samples = np.random.default_rng(7), {"exact": 16, "pl-rank": 200}[estimator]
    drawn = np.stack([ESTIMATORS[estimator](objective, scores, batch, rng, samples)[1] for _ in range(600)])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    # pl-rank takes the slope of D_cross at the sampled exposure, which is unbiased for a square only in the limit.
    bias = {"exact": 1e-5, "pl-rank": 2e-2}[estimator]
    assert error.max() > 0  # something is sampled
    assert np.all(np.abs(drawn.mean(axis=0) - slope) <= 4.5 * error + bias)


@pytest.mark.parametrize("disparity", ["D_ind(attention='cascade(0.8,0.5)')", "Gini"])
def test_measures_that_cannot_be_trained_for_are_refused(disparity):
    with pytest.raises(UsageError, match="cannot be trained for"):
        PolicyGradient(Objective.of(NDCG, 1.0, disparity), "reinforce")


def test_reinforce_takes_any_measure_of_rankings_as_disparity():
    batch = batch_of(4)
    scores, objective = scores_of(batch), Objective.of(NDCG, 0.5, "GF(attr='group')")

    def expected(s):
        total = np.zeros(len(s))
        for t in range(len(s)):
            at = np.flatnonzero(batch.present[t])
            rankings = np.array(list(permutations(at.tolist())))
            p = np.exp(PlackettLuce(s[t]).log_prob(rankings))
            rows = (a[t : t + 1, at] for a in (batch.features, batch.grades, batch.present, batch.membership))
            ranked = Batch(*rows, batch.max_grade).block.reordered(rankings[None])
            for weight, text in ((1.0, NDCG), (0.5, "GF(attr='group')")):
                total[t] += weight * np.nan_to_num(p @ parse_measure(text).of_ranking(ranked)[0])
        return total

    rng = np.random.default_rng(1)
    drawn = np.stack([reinforce(objective, scores, batch, rng, 16)[1] for _ in range(800)])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - finite_differences(expected, scores)) <= 4.5 * error + 1e-8)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_padding_changes_nothing(estimator):
    batch = batch_of(4, topics=1, seed=2)
    scores = scores_of(batch)
    wide = Batch(
        np.pad(batch.features, ((0, 0), (0, 2), (0, 0))),
        np.pad(batch.grades, ((0, 0), (0, 2))),
        np.pad(batch.present, ((0, 0), (0, 2))),
        np.pad(batch.membership, ((0, 0), (0, 2), (0, 0))),
        batch.max_grade,
    )
    padded = np.pad(scores, ((0, 0), (0, 2)), constant_values=-np.inf)
    objective = Objective.of(NDCG, 1.0, entropy=0.1)
    value, gradient = ESTIMATORS[estimator](objective, scores, batch, np.random.default_rng(0), 20)
    also, padded_gradient = ESTIMATORS[estimator](objective, padded, wide, np.random.default_rng(0), 20)
    np.testing.assert_allclose(also, value, atol=1e-12)
    np.testing.assert_allclose(padded_gradient[:, :4], gradient, atol=1e-12)
    assert not padded_gradient[:, 4:].any()


@pytest.mark.parametrize("estimator", [reinforce, pl_rank, exact])
def test_gradients_do_not_move_all_scores_together(estimator):
    """It would change no ranking; a quadrature that is not quite even must not be read as a reason to."""
    rng = np.random.default_rng(4)
    scores = rng.normal(0, 3, (5, 24))
    scores[0, 20:] = -np.inf
    grades = np.where(scores > -np.inf, rng.integers(0, 4, (5, 24)), 0.0)
    batch = Batch(np.zeros((5, 24, 1)), grades, scores > -np.inf, max_grade=3.0)
    _, gradient = estimator(Objective.of(NDCG, entropy=0.1), scores, batch, rng, 5)
    assert np.abs(gradient.sum(axis=1)).max() < 1e-13 < np.abs(gradient).max()
    assert not gradient[0, 20:].any()


def test_wide_scores_give_finite_gradients():
    batch = batch_of(5)
    scores = scores_of(batch) * 1e5
    for estimate in ESTIMATORS.values():
        _, gradient = estimate(
            Objective.of(NDCG, 1.0, entropy=0.1), scores, batch, np.random.default_rng(0), 10
        )
        assert np.isfinite(gradient).all()


def test_the_score_function_is_the_gradient_of_log_prob():
    scores = np.random.default_rng(0).normal(size=(2, 5))
    for rankings in (PlackettLuce(scores).sample(3, rng=1), PlackettLuce(scores).sample(3, k=2, rng=1)):
        gradient = Drawn(scores, rankings).pull_back(np.ones((2, 3)))
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


def test_the_loss_of_a_policy_gradient_counts_the_entropy():
    batch = batch_of(4)
    scores = scores_of(batch)
    for estimator in ESTIMATORS:
        plain, smooth = (
            PolicyGradient(Objective.of(NDCG, 1.0, entropy=weight), estimator, 5).gradient(
                scores, batch, np.random.default_rng(0)
            )
            for weight in (0.0, 0.3)
        )

        def entropy(s):
            p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
            return -(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=1)

        np.testing.assert_allclose(plain[0] - smooth[0], 0.3 * entropy(scores))
        np.testing.assert_allclose(plain[1] - smooth[1], 0.3 * finite_differences(entropy, scores), atol=1e-8)


def test_disparity_of_groups_needs_groups():
    batch = Batch(np.zeros((1, 2, 1)), np.ones((1, 2)), np.ones((1, 2), bool))
    with pytest.raises(UsageError, match="unknown attribute 'group'"):
        exact(Objective.of(NDCG, 1.0), np.zeros((1, 2)), batch)


# Models ------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_exact_gradient_through_every_model(name, dropout):
    batch = batch_of(5, features=4)
    model = make_model(name, 4, dropout, seed=3)
    for value in model.parameters.values():
        value *= 5.0  # small weights would make everything look linear
    objective = Objective.of(NDCG, 0.5, entropy=0.1)

    def total():
        model.rng = np.random.default_rng(11)  # so that the same units are dropped
        model.train(True)
        return batch.masked(model.scores(batch.features))

    _, gradient = exact(objective, total(), batch, tolerance=1e-11)
    found = model.differentiate(gradient)
    assert found.keys() == model.parameters.keys()
    for parameter, values in model.parameters.items():
        for place in list(np.ndindex(values.shape))[:: max(1, values.size // 12)]:
            old, step = values[place], 1e-5
            sums = []
            for sign in (1, -1):
                values[place] = old + sign * step
                sums.append(exact(objective, total(), batch, tolerance=1e-11)[0].sum())
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
    batch = batch_of(6, topics=4, seed=8)
    scores = scores_of(batch, 9)
    value, gradient = loss.gradient(scores, batch, np.random.default_rng(0))
    slope = finite_differences(lambda s: loss.gradient(s, batch, np.random.default_rng(0))[0], scores, 1e-6)
    np.testing.assert_allclose(gradient, slope, atol=1e-6)
    np.testing.assert_allclose(loss.quality(scores, batch), -value)


def test_deltr_penalises_one_side_only():
    batch = Batch(np.zeros((1, 2, 1)), np.zeros((1, 2)), np.ones((1, 2), bool), np.eye(2)[[[0, 1]]])
    for scores, penalty in (([[0.0, 3.0]], 0.0), ([[3.0, 0.0]], np.tanh(1.5) ** 2)):
        with_penalty, without = (
            DeltrLoss(lam, 1).gradient(np.array(scores), batch, np.random.default_rng(0))[0]
            for lam in (1.0, 0.0)
        )
        assert with_penalty - without == pytest.approx(penalty, abs=1e-12)


def deltr_by_the_paper(scores, grades, protected, gamma):
    """L + γU of one query, a document at a time, from the formulas of Zehlike & Castillo (v_1 = 1)."""

    def top_one(values):
        return [math.exp(v) / sum(math.exp(other) for other in values) for v in values]

    wanted, found = top_one(grades), top_one(scores)
    value = -sum(w * math.log(p) for w, p in zip(wanted, found, strict=True))
    own = [p for p, is_protected in zip(found, protected, strict=True) if is_protected]
    rest = [p for p, is_protected in zip(found, protected, strict=True) if not is_protected]
    if own and rest:
        value += gamma * max(0.0, sum(rest) / len(rest) - sum(own) / len(own)) ** 2
    return value


@pytest.mark.parametrize("protected", [0, 1, 2])
def test_deltr_is_the_papers(protected):
    # Three groups, so that the rest is two of them; the last topic has one group only, and topics are padded.
    batch = batch_of(6, topics=8, seed=12, groups=3)
    batch.membership[-1] = np.eye(3)[1] * batch.present[-1][:, None]
    scores = scores_of(batch, 13) * 2
    group = batch.membership.argmax(axis=-1)

    def paper(s, gamma=7.0):
        there = [np.flatnonzero(row) for row in batch.present]
        each = ((s[t, at], batch.grades[t, at], group[t, at] == protected) for t, at in enumerate(there))
        return np.array([deltr_by_the_paper(*topic, gamma) for topic in each])

    value, gradient = DeltrLoss(7.0, protected).gradient(scores, batch, np.random.default_rng(0))
    np.testing.assert_allclose(value, paper(scores), rtol=1e-12)
    np.testing.assert_allclose(gradient, finite_differences(paper, scores, 1e-5), atol=1e-8)
    unfair = paper(scores) > paper(scores, 0.0)
    assert unfair.any() and not unfair.all() and not unfair[-1]


# The authors' fairsearchdeltr 1.0.2 (PyPI), its Trainer called at fixed weights. It computes the paper's loss with
# other constants: L over ln N, N being all documents of all queries, and v_1 = 1/ln 2. So its γ is our λ·(ln 2)²/ln N.
# Of its gradients only that of L is right: that of U counts a term once for each document of the group and adds up
# the features, so it fails finite differences of its own loss, except with one feature and one document a group.
DELTR_TABLE = np.array([
    # query, protected, feature, grade
    [1, 0, 0.9, 2.0], [1, 0, 0.4, 1.0], [1, 1, 0.7, 2.0], [1, 0, 0.2, 0.0], [1, 1, 0.1, 1.0],
    [2, 1, 0.3, 0.0], [2, 0, 0.8, 1.5], [2, 0, 0.5, 0.5],
])  # fmt: skip


def deltr_data(table):
    """Protection, and the features between it and the grade, are what the model sees."""
    queries = [table[table[:, 0] == q] for q in np.unique(table[:, 0])]
    return Dataset.of(
        [q[:, 1:-1] for q in queries], [q[:, -1] for q in queries], [q[:, 1].astype(int) for q in queries]
    )


def peer_lambda(gamma, documents):
    return gamma * math.log(documents) / math.log(2) ** 2


def test_deltr_agrees_with_the_authors_program():
    data, weights = deltr_data(DELTR_TABLE), np.array([-1.0, 2.0])
    losses = {0.0: [0.805588093319, 0.452276364749], 3.0: [1.043436775737, 1.351376309107]}
    slopes = {
        0.0: [[-0.149384611791, 0.013853622597], [-0.028799089889, 0.000745111810]],
        # Central differences (1e-6) of the program's loss.
        3.0: [[-0.430301712706, 0.047011625370], [-0.554102348560, 0.207555372334]],
    }
    batch = data.batch([0, 1])
    for gamma, expected in losses.items():
        loss = DeltrLoss(peer_lambda(gamma, 8), 1)
        scores = batch.masked(batch.features @ weights)
        value, gradient = loss.gradient(scores, batch, np.random.default_rng(0))
        np.testing.assert_allclose(value / math.log(8), expected, rtol=1e-11)
        slope = np.einsum("td,tdf->tf", gradient, batch.features) / math.log(8)
        np.testing.assert_allclose(slope, slopes[gamma], atol=1e-9)


@pytest.mark.parametrize(
    ("gamma", "loss", "slope"),
    [(0.0, 0.860984626888, -0.143735191095), (3.0, 1.433152003787, 2.002453922464)],
)
def test_deltr_agrees_with_the_authors_program_where_its_gradient_is_right(gamma, loss, slope):
    features = np.array([[[1.5], [0.25]]])
    batch = Batch(features, np.array([[1.0, 0.0]]), np.ones((1, 2), bool), np.eye(2)[[[0, 1]]])
    value, gradient = DeltrLoss(peer_lambda(gamma, 2), 1).gradient(
        0.5 * features[..., 0], batch, np.random.default_rng(0)
    )
    assert value[0] / math.log(2) == pytest.approx(loss, rel=1e-11)
    assert (gradient @ features[0])[0, 0] / math.log(2) == pytest.approx(slope, rel=1e-10)


@pytest.mark.parametrize(
    ("table", "gamma", "weights"),
    [
        (DELTR_TABLE[:5], 0.0, [0.534197369, 2.107615151]),
        ([[1, 0, 2.0], [1, 1, 0.0]], 0.0, [-2.0]),
        pytest.param([[1, 0, 2.0], [1, 1, 0.0]], 1.0, [-0.409945187], marks=pytest.mark.thorough),
        ([[1, 0, 2.0], [1, 1, 0.0]], 10.0, [-0.051064663]),
    ],
)
def test_deltr_learns_the_weights_of_the_authors_program(table, gamma, weights):
    # Deltr(…, standardize=False).train on the same rows until its weights stand still, one query each.
    table = np.asarray(table)
    lam = peer_lambda(gamma, len(table))
    chosen = Settings.for_method(
        "deltr", lam=lam, protected="1", standardise=False, batch=0, lr=0.02, epochs=2500
    )
    theta = train_policy(chosen, deltr_data(table)).model.parameters["theta"]
    np.testing.assert_allclose(theta, weights, atol=1e-5)


def test_deltr_narrows_the_gap_of_exposure_as_lambda_grows():
    # Good and bad on both sides, but the grades of the protected are one too low: x tells them, and so does the group.
    x = np.tile([0.0, 1.0, 2.0], 2)
    protected = np.repeat([0, 1], 3)
    grades = np.maximum(x + 1 - protected, 0)
    data = Dataset.of([np.c_[x, protected]] * 2, [grades] * 2, [protected] * 2)
    gaps, entropies = [], []
    for lam in (0.0, 1.0, 10.0, 100.0):
        chosen = Settings.for_method("deltr", lam=lam, protected="1", batch=0, lr=0.05, epochs=800)
        scores = train_policy(chosen, data).predict(data)[:6]
        p = np.exp(scores) / np.exp(scores).sum()
        gaps.append(p[:3].mean() - p[3:].mean())
        entropies.append(deltr_by_the_paper(scores, grades, protected == 1, 0.0))
        assert np.all(np.diff(scores.reshape(2, 3)) > 0)  # within a group, merit decides
    assert gaps[0] > 0.1 and np.all(np.diff(gaps) < 0)
    assert 0 <= gaps[-1] < gaps[0] / 10
    assert np.all(np.diff(entropies) > 0)  # fairness is paid for in the fit to the grades


ORDINARY, EXTREME = np.array([2.2, -3.0, -0.4, 0.4]), np.array([-800.0, 40.0, -40.0, 800.0])
UNDERFLOWING = np.array([-2000.0, -1001.0, -1000.0, -999.5])
"""σ of all of them is 0 in floating point, but their ratios are ordinary numbers."""


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("scores", [ORDINARY, EXTREME, UNDERFLOWING])
def test_bandit_rank_probabilities_sum_to_one(count, epsilon, scores):
    subsets = np.array(list(permutations(range(4), count)))
    log_p, _ = log_probability_with_gradient(scores, subsets, epsilon)
    assert np.exp(log_p).sum() == pytest.approx(1.0, abs=1e-12)


def test_bandit_rank_probability_is_the_papers():
    a, epsilon = expit(ORDINARY), 0.1
    found, _ = log_probability_with_gradient(ORDINARY, np.array([[2, 0]]), epsilon)
    first = epsilon / 4 + (1 - epsilon) * a[2] / a.sum()
    second = epsilon / 3 + (1 - epsilon) * a[0] / (a.sum() - a[2])
    assert np.exp(found[0]) == pytest.approx(first * second)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("scores", [ORDINARY, EXTREME, UNDERFLOWING])
def test_bandit_rank_draws_with_its_probabilities(epsilon, scores):
    subsets = np.array(list(permutations(range(4), 3)))
    p = np.exp(log_probability_with_gradient(scores, subsets, epsilon)[0])
    drawn = draw(log_expit(scores), 3, 40000, epsilon, np.random.default_rng(3))
    share = np.array([(drawn == subset).all(axis=1).mean() for subset in subsets])
    assert np.all(np.abs(share - p) <= 4.5 * np.sqrt(p * (1 - p) / 40000) + 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("scores", [ORDINARY, EXTREME, UNDERFLOWING])
def test_bandit_rank_probability_gradient(epsilon, scores):
    chosen = np.array(list(permutations(range(4), 3)))
    _, gradient = log_probability_with_gradient(scores, chosen, epsilon)
    for d in range(4):
        up, down = scores.copy(), scores.copy()
        up[d], down[d] = up[d] + 1e-4, down[d] - 1e-4
        above, below = (log_probability_with_gradient(s, chosen, epsilon)[0] for s in (up, down))
        # A logarithm of 2000 has its last digit at 2e-13, which the step divides by 2e-4.
        np.testing.assert_allclose(gradient[:, d], (above - below) / 2e-4, atol=2e-8)


def test_bandit_rank_still_learns_from_affinities_that_underflow():
    _, gradient = log_probability_with_gradient(UNDERFLOWING, np.array([[1]]), 0.0)
    share = np.exp(UNDERFLOWING[1:] + 1000)
    np.testing.assert_allclose(gradient[0, 1:], np.array([1.0, 0.0, 0.0]) - share / share.sum(), atol=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_bandit_rank_loss_is_differentiated_for_the_draws_made(gamma):
    batch = batch_of(5, seed=4)
    scores = scores_of(batch)
    loss = BanditRankLoss(parse_utility("0.5*AP+0.5*nDCG@10"), gamma, 0.1, max_drawn=3, draws=6)

    def value(s):
        # The draws and the baseline must stay what they were: take them at `scores`, the probabilities at `s`.
        total = np.zeros(len(s))
        rng = np.random.default_rng(2)
        for t in range(len(s)):
            at = np.flatnonzero(batch.present[t])
            one = Batch(
                batch.features[t : t + 1, at], batch.grades[t : t + 1, at], np.ones((1, at.size), bool)
            )
            if gamma:
                chosen = draw(log_expit(scores[t, at]), 3, 6, 0.1, rng)
                advantage = total_reward(loss.reward, chosen[None], one)[0] - loss.quality(
                    scores[[t]][:, at], one
                )
                log_p = log_probability_with_gradient(s[t, at], chosen, 0.1)[0]
                total[t] -= gamma * (advantage * log_p).mean()
            a, y = expit(s[t, at]), one.grades[0] > 0
            total[t] += (1 - gamma) * -(np.where(y, np.log(a), np.log(1 - a))).mean()
        return total

    found, gradient = loss.gradient(scores, batch, np.random.default_rng(2))
    np.testing.assert_allclose(found, value(scores), atol=1e-12)
    np.testing.assert_allclose(gradient, finite_differences(value, scores), atol=1e-7)


@pytest.mark.parametrize("size", [40.0, 800.0, 1e6])
def test_bandit_rank_is_finite_and_silent_at_extreme_scores(size):
    # The tests turn warnings into errors, so that an overflow would not go unseen.
    batch = batch_of(6, topics=3, seed=5)
    for signs in product((-1.0, 1.0), repeat=3):
        scores = batch.masked(size * np.resize(signs, batch.grades.shape))
        loss = BanditRankLoss(parse_utility("0.5*AP+0.5*nDCG@10"), 0.5, 0.1, max_drawn=4, draws=8)
        value, gradient = loss.gradient(scores, batch, np.random.default_rng(0))
        assert np.isfinite(value).all()
        assert np.isfinite(gradient).all()
        side = np.where(batch.grades > 0, 1.0, -1.0)
        wrong = batch.present & (side * scores < 0)
        # The cross entropy pulls what is surely wrong back with all its weight, as it could not if σ were taken first.
        only = BanditRankLoss(loss.reward, 0.0).gradient(scores, batch, np.random.default_rng(0))[1]
        documents = batch.present.sum(axis=1, keepdims=True)
        np.testing.assert_allclose((only * -side * documents)[wrong], 1.0)


def test_bandit_rank_trains_on_where_all_affinities_underflow():
    # Only the affinities' ratios count, so that nothing holds the scores: a high learning rate drives them far down.
    rng = np.random.default_rng(0)
    features = rng.random((12, 8, 3))
    data = Dataset.of(list(features), [(x[:, 0] * 3).astype(int) for x in features])
    settings = Settings.for_method(
        "bandit-rank", lr=0.02, reward_weight=1.0, epochs=10, samples=5, keep="last"
    )
    scores = train_policy(settings, data).predict(data)
    assert np.isfinite(scores).all()
    assert scores.min() < np.log(np.finfo(float).smallest_subnormal)


def test_rewards_against_hand_computed_values():
    grades = np.array([[1.0, 0.0, 2.0, 0.0]])
    batch = Batch(np.zeros((1, 4, 1)), grades, np.ones((1, 4), bool), max_grade=2.0)
    rankings = np.array([[[1, 0, 2, 3], [3, 1, -1, -1]]])
    ideal = 3 + 1 / np.log2(3)
    expected = {
        "AP": [(1 / 2 + 2 / 3) / 2, 0],
        "RR": [1 / 2, 0],
        "P@2": [1 / 2, 0],
        NDCG: [(1 / np.log2(3) + 3 / 2) / ideal, 0],
        f"{NDCG}@2": [1 / np.log2(3) / ideal, 0],
        "nDCG": [(1 / np.log2(3) + 2 / 2) / (2 + 1 / np.log2(3)), 0],
        "ERR": [0.25 / 2 + 0.75 * 0.75 / 3, 0],
        "0.5*AP + 2*RR": [(1 / 2 + 2 / 3) / 4 + 1, 0],
        "iRBU(phi=0.5)": [0.25 * 0.25 + 0.5625 * 0.125, 0],
    }
    for text, values in expected.items():
        np.testing.assert_allclose(
            total_reward(parse_utility(text), rankings, batch)[0], values, atol=1e-9, err_msg=text
        )


@pytest.mark.parametrize(
    "text", ["", "nope", "AP+", "2*", "nDCG@0", "AverageRank", "DCG", "P", "D_ind", "1.2.3*AP", "AP)"]
)
def test_wrong_utilities(text):
    with pytest.raises(UsageError):
        parse_utility(text)


@pytest.mark.parametrize(
    "measure", ["AWRF(attr='group')", "RBP(p=0.7)", "ERR@3", "EE_L(attr='group')", "P@2"]
)
def test_the_objective_of_a_policy_is_its_evaluation(measure):
    """On data whose largest grade is 5, with three groups: training sees the targets and grades that scoring sees."""
    rng = np.random.default_rng(4)
    sizes = [6, 4, 7]
    data = Dataset.of(
        [rng.normal(size=(n, 2)) for n in sizes],
        [rng.integers(0, 6, n) for n in sizes],
        [np.arange(n) % 3 for n in sizes],
    )
    assert data.max_grade == 5
    (policy,) = sweep("pg-rank", data, epochs=1, lr=0.5)
    batch = data.batch(range(len(data)))
    scores = batch.masked(policy.model.scores(policy.standardiser(batch.features)))
    part = WeightedMeasure(1.0, parse_measure(measure))
    objective = Objective((part,), 0.0, parse_measure("D_ind"), 0.0)
    sign = 1.0 if part.measure.direction.word == "higher" else -1.0
    evaluated = evaluate_policy(policy, data, [measure], samples=20_000)
    tolerance = 0.0 if np.isnan(evaluated.se).all() else 4 * float(np.nanmax(evaluated.se))
    values = sign * objective.value(scores, batch, samples=20_000)
    np.testing.assert_allclose(values, evaluated.values[0, 0], atol=1.5 * tolerance + 1e-5)


# Every measure of the index ------------------------------------------------------------------------------------


TRAINABLE = {
    "GF": "GF(attr='group')",
    "GFR": "GFR(util='ERR')",
    "EE_L": "EE_L(attr='group')",
    "UEXP": "UEXP(attr='group')",
    "Skew": "Skew(attr='group')@2",
    "NDKL": "NDKL(attr='group')",
    "Infeasible": "Infeasible(attr='group')@3",
    "ARP": "ARP(attr='group')",
    "P": "P@1",
    **{name: f"{name}(attr='group',protected='0')" for name in ("rND", "rKL", "rRD", "FAIR")},
    **{name: f"{name}(attr='group')" for name in ("D_group", "AWRF", "DP", "EUR", "RUR")},
    "M1": "M1(attr='group')",
}
"""Measures that need parameters, or gain by them."""
NOT_TRAINABLE = {"Unjudged", "Gini", "Coverage", "MMF", "L2", "JME"}
"""Nobody trains for unjudged documents, of which there are none here; the others have one value for all topics."""


@pytest.mark.parametrize("name", sorted(INDEX.keys() - NOT_TRAINABLE))
def test_gradient_of_every_measure_that_can_be_trained_for(name):
    """Against finite differences of the expectation over all rankings.

    Functions of exposure have the gradient of `exact`. The gradient of a reward is what `reinforce` samples: the mean
    of R·∇ log π, taken here over all rankings with their probabilities.
    """
    batch = batch_of(4, topics=6, seed=1)
    scores = (
        scores_of(batch, 2) + 1.5 * batch.membership[..., 0]
    )  # so that group 0 is exposed beyond its merit
    part = WeightedMeasure(1.0, parse_measure(TRAINABLE.get(name, name)))
    objective = Objective((part,), 0.0, parse_measure("D_ind"), 0.0)
    if objective.rewards:

        def expected(s):
            return np.array([p @ values for p, values, _ in all_rankings(part, s, batch)])

        gradient = np.zeros_like(scores)
        for t, (p, values, rankings) in enumerate(all_rankings(part, scores, batch)):
            gradient[t] = Drawn(scores[t : t + 1], rankings[None]).pull_back((p * values)[None])[0]
    else:
        gradient = exact(objective, scores, batch, tolerance=1e-12)[1]

        def expected(s):
            return objective.value(s, batch, tolerance=1e-12)

    slope = finite_differences(expected, scores, 1e-4)
    np.testing.assert_allclose(gradient, slope, atol=1e-6)
    if name not in ("FAIR", "rND", "rKL", "rRD"):  # prefixes of ten: constant in so short a ranking
        assert np.abs(gradient).max() > 1e-4


def all_rankings(part, scores, batch):
    """For each topic: the probabilities of all rankings, their rewards, and the rankings."""
    for t in range(len(scores)):
        there = np.flatnonzero(batch.present[t])
        rankings = np.array(list(permutations(there.tolist())))
        p = np.exp(PlackettLuce(scores[t]).log_prob(rankings))
        one = Batch(*(array[t : t + 1] for array in (batch.features, batch.grades, batch.present, batch.membership)),
                    batch.max_grade)  # fmt: skip
        yield p, total_reward([part], rankings[None], one)[0], rankings

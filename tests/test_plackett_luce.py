"""Plackett-Luce against the enumeration of all rankings, against itself, and against its own promises."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fairevals.attention import parse_attention
from fairevals.errors import UsageError
from fairevals.policy import counts, grid, plackett_luce
from fairevals.policy.plackett_luce import PlackettLuce

RNG = np.random.default_rng(20240501)
SCORES = {
    "mild": RNG.normal(size=7),
    "spread": RNG.uniform(-8, 8, size=7),
    "wide": RNG.uniform(-50, 50, size=7),
    "tied": np.array([1.0, 0.0, 1.0, 1.0, 0.0, -2.0]),
    "all tied": np.zeros(6),
    "tied and wide": np.array([50.0, 50.0, -50.0, 0.0, -50.0, 50.0]),
    "far apart": np.array([1e300, -1e300, 3.0, 2.0, -1e300, 0.0]),
    "two": np.array([0.3, -0.4]),
    "one": np.array([3.0]),
    "some never ranked": np.array([0.5, -np.inf, 0.0, -1.0, -np.inf, 2.0]),
}
ATTENTIONS = ["log2", "trecfair", "reciprocal", "uniform", "rbp(0.9)", [0.0, 3.0, 0.0, 1.0]]


def enumerate_rankings(scores):
    """All rankings of the documents that can be ranked, their probabilities, and d log P / d scores."""
    documents = np.flatnonzero(scores > -np.inf)
    rankings = np.array(list(itertools.permutations(documents)))
    ranked = np.clip(scores, -400, 400)[rankings]  # equivalent, and does not swallow the log 2 of a tie
    left = np.logaddexp.accumulate(ranked[:, ::-1], axis=1)[:, ::-1]
    probability = np.exp(np.sum(ranked - left, axis=1))
    slope = np.zeros((len(rankings), len(scores)))
    slope[:, documents] = 1.0
    for j in range(rankings.shape[1]):
        for later in range(j, rankings.shape[1]):
            slope[np.arange(len(rankings)), rankings[:, later]] -= np.exp(ranked[:, later] - left[:, j])
    return rankings, probability, slope


def enumerated_rank_probabilities(scores, k):
    rankings, probability, _ = enumerate_rankings(scores)
    table = np.zeros((len(scores), max(k, rankings.shape[1])))
    for rank in range(rankings.shape[1]):
        np.add.at(table[:, rank], rankings[:, rank], probability)
    return table[:, :k]


@pytest.mark.parametrize("k", [1, 3, None, 9])
@pytest.mark.parametrize("name", SCORES)
def test_exposure_and_rank_probabilities_match_enumeration(name, k):
    # Catches any error of the recursion, of truncation at k, of narrowed gaps and of sorting back.
    scores = SCORES[name]
    policy, ranks = PlackettLuce(scores), k or len(scores)
    table = enumerated_rank_probabilities(scores, ranks)
    np.testing.assert_allclose(policy.rank_probabilities(k), table, rtol=0, atol=1e-9)
    for attention in ATTENTIONS:
        weights = parse_attention(attention).weights(ranks)
        estimate = policy.exposure(attention, k)
        assert estimate.se is None
        np.testing.assert_allclose(
            estimate.value, table @ weights, rtol=0, atol=1e-9 * max(weights.max(), 1e-300)
        )


@pytest.mark.parametrize("k", [1, 3, None])
@pytest.mark.parametrize("name", SCORES)
def test_gradient_matches_enumeration(name, k):
    # Catches a wrong sign, a missing own-density or others' term, and a mark on the wrong document.
    scores = SCORES[name]
    rankings, probability, slope = enumerate_rankings(scores)
    cotangent = np.random.default_rng(1).normal(size=len(scores))
    for attention in ("log2", "trecfair", [0.0, 3.0, 0.0, 1.0]):
        weights = np.zeros(rankings.shape[1])
        cut = parse_attention(attention).weights(min(k or len(scores), rankings.shape[1]))
        weights[: len(cut)] = cut
        score = cotangent[rankings] @ weights
        expected = np.sum((probability * score)[:, np.newaxis] * slope, axis=0)
        got = PlackettLuce(scores).exposure_with_vjp(attention, k)[1](cotangent)
        np.testing.assert_allclose(got, expected, rtol=0, atol=2e-9 * max(1.0, weights.max()))


@pytest.mark.parametrize("k", [None, 12])
def test_gradient_matches_finite_differences_on_more_documents(k):
    # Enumeration stops at 7 documents; 43 documents cross many segments, and spread 12 several blocks.
    rng = np.random.default_rng(3)
    scores, cotangent, nudge = rng.uniform(-6, 6, 43), rng.normal(size=43), 1e-4
    both = np.concatenate([scores + nudge * np.eye(43), scores - nudge * np.eye(43)]) / 0.7
    values = PlackettLuce(both).exposure("log2", k, tolerance=1e-13).value @ cotangent
    expected = (values[:43] - values[43:]) / (2 * nudge)
    value, vjp = PlackettLuce(scores, temperature=0.7).exposure_with_vjp("log2", k)
    np.testing.assert_allclose(vjp(cotangent), expected, rtol=0, atol=1e-7)
    assert abs(vjp(cotangent).sum()) < 1e-9  # exposure does not change when all scores move together
    np.testing.assert_allclose(value, PlackettLuce(scores / 0.7).exposure("log2", k).value, rtol=0, atol=1e-9)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6, 1e-9, 1e-12])
def test_the_error_stays_below_the_tolerance(tolerance):
    # The promise of the docstring, where it is hardest: ties make the count a sharp function of time, a single
    # heavy rank and a cutoff make the weights rough. Tied documents have exposure mean(v), exactly.
    n = 60
    spike = np.zeros(n)
    spike[20] = 2.0
    for attention in ["log2", "trecfair", "uniform", list(spike), list(spike[::-1]), list(RNG.random(n))]:
        for k in (None, 1, 25):
            weights = parse_attention(attention).weights(n)
            weights[k or n :] = 0
            error = np.abs(
                PlackettLuce(np.zeros(n)).exposure(attention, k, tolerance=tolerance).value - weights.mean()
            )
            assert error.max() <= tolerance * weights.max() + 1e-14
    probabilities = PlackettLuce(np.zeros(n)).rank_probabilities(tolerance=tolerance)
    assert np.abs(probabilities - 1 / n).max() <= tolerance + 1e-14

    for scores in (RNG.normal(size=n), RNG.uniform(-30, 30, size=n), 5.0 * RNG.integers(0, 5, n)):
        policy = PlackettLuce(scores)
        for attention, k in (("log2", None), ("log2", 10), (list(spike), None)):
            reference = policy.exposure(attention, k, tolerance=1e-13).value
            error = np.abs(policy.exposure(attention, k, tolerance=tolerance).value - reference)
            assert error.max() <= tolerance * parse_attention(attention).weights(n).max() + 2e-13


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-8])
def test_the_error_of_the_gradient_stays_below_the_tolerance(tolerance):
    n = 60
    spike = np.eye(n)[20]
    cotangent = np.random.default_rng(6).normal(size=n)
    allowed = tolerance * np.abs(cotangent).sum() + 1e-11
    for scores in (np.zeros(n), RNG.normal(size=n), RNG.uniform(-30, 30, size=n)):
        for attention, k in (("log2", None), ("trecfair", 10), (spike, None)):
            got = PlackettLuce(scores).exposure_with_vjp(attention, k, tolerance)[1](cotangent)
            reference = PlackettLuce(scores).exposure_with_vjp(attention, k, 1e-12)[1](cotangent)
            assert np.abs(got - reference).max() <= allowed


def test_two_documents_have_the_logistic_probability():
    gap = np.linspace(0, 60, 241)
    first = PlackettLuce(np.stack([gap, np.zeros_like(gap)], axis=1)).rank_probabilities(k=1, tolerance=1e-13)
    np.testing.assert_allclose(first[:, 1, 0], 1 / (1 + np.exp(gap)), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "scores", [RNG.normal(size=37), 4 * RNG.normal(size=37), np.repeat([1.0, 0.0], [20, 17])]
)
def test_rank_probabilities_are_doubly_stochastic(scores):
    probabilities = PlackettLuce(scores).rank_probabilities()
    assert probabilities.min() >= 0
    np.testing.assert_allclose(probabilities.sum(axis=0), 1, atol=1e-8)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-8)
    weights = parse_attention("log2").weights(37)
    np.testing.assert_allclose(
        probabilities @ weights, PlackettLuce(scores).exposure("log2").value, atol=1e-8
    )


def test_many_documents_share_out_all_attention():
    # Long lists take the path of several pieces of rows and of segments; Σ_d v(d) = Σ_k v_k whatever the scores.
    scores = np.random.default_rng(5).normal(size=4000)
    value = PlackettLuce(scores).exposure("log2", k=30, tolerance=1e-9).value
    np.testing.assert_allclose(value.sum(), parse_attention("log2").weights(30).sum(), rtol=0, atol=1e-7)
    assert np.all(np.diff(value[np.argsort(scores)]) >= -1e-12)  # more score, more exposure


def test_shift_and_order_of_documents_do_not_matter():
    scores = np.random.default_rng(8).uniform(-20, 20, 50)
    order = np.random.default_rng(9).permutation(50)
    value = PlackettLuce(scores).exposure().value
    np.testing.assert_allclose(
        PlackettLuce(scores[order] + 1000.0).exposure().value, value[order], atol=1e-11
    )


def test_scores_far_apart_cost_no_more_nodes():
    # Without narrowing, a spread of 1e12 would need 1e12 nodes.
    value = PlackettLuce(-1e12 * np.arange(50.0)).exposure("reciprocal").value
    np.testing.assert_allclose(value, 1 / np.arange(1, 51), rtol=0, atol=1e-9)


# Monte-Carlo


def test_standard_errors_are_calibrated():
    # Over 40 seeds × 30 documents, z = (mc − exact) / se must look standard normal: a se off by √samples, by
    # ddof, or of the wrong document, or biased sampling, would show. z of one seed's documents are dependent.
    scores = np.random.default_rng(11).normal(size=30)
    for k in (None, 5):
        truth = PlackettLuce(scores).exposure("log2", k, tolerance=1e-12).value
        z = []
        for seed in range(40):
            estimate = PlackettLuce(scores).exposure("log2", k, method="mc", samples=400, rng=seed)
            z.append((estimate.value - truth) / estimate.se)
        z = np.array(z)
        assert 0.85 < np.mean(z**2) < 1.15
        assert 0.03 < np.mean(np.abs(z) > 1.96) < 0.075
        assert abs(z.mean()) < 0.1


def test_standard_error_is_that_of_the_mean():
    policy = PlackettLuce([0.3, 0.0, -0.5, -np.inf])
    estimate = policy.exposure("reciprocal", k=2, method="mc", samples=50, rng=4)
    rankings = policy.sample(50, k=2, rng=4)
    seen = np.zeros((50, 4))
    np.put_along_axis(seen, rankings, np.array([[1.0, 0.5]]), axis=1)
    np.testing.assert_allclose(estimate.value, seen.mean(axis=0))
    np.testing.assert_allclose(estimate.se, seen.std(axis=0, ddof=1) / np.sqrt(50))
    certain = PlackettLuce([90.0, 0.0, -90.0]).exposure(method="mc", samples=7)
    np.testing.assert_allclose(certain.se, 0, atol=1e-15)
    assert np.isnan(PlackettLuce([1.0, 0.0]).exposure(method="mc", samples=1).se).all()


def test_cascade_exposure_by_sampling():
    scores, grades = SCORES["mild"][:5], np.array([0, 1, 0, 2, 1])
    rankings, probability, _ = enumerate_rankings(scores)
    weights = parse_attention("cascade(0.9,0.5)").weights_given(grades[rankings])
    truth = np.zeros(5)
    np.add.at(truth, rankings, probability[:, np.newaxis] * weights)
    estimate = PlackettLuce(scores).exposure("cascade(0.9,0.5)", method="mc", samples=20000, grades=grades)
    assert np.all(np.abs(estimate.value - truth) < 4 * estimate.se)
    with pytest.raises(ValueError, match="use method='mc'"):
        PlackettLuce(scores).exposure("cascade")
    with pytest.raises(ValueError, match="grades="):
        PlackettLuce(scores).exposure("cascade", method="mc")
    with pytest.raises(ValueError, match="shape"):
        PlackettLuce(scores).exposure("cascade", method="mc", grades=[1, 2])


@pytest.mark.parametrize("scores", [[1.0, 0.0, -0.5, 0.5], [300.0, 300.5, -400.0, -399.0]])
def test_sampled_rankings_have_their_probabilities(scores):
    # Both forms of the keys (times, and their logarithms where scores spread too widely).
    rankings, probability, _ = enumerate_rankings(np.array(scores))
    code = 4 ** np.arange(4)
    counts = np.bincount(PlackettLuce(scores).sample(40000, rng=1) @ code, minlength=256)[rankings @ code]
    likely = probability > 1e-9
    assert counts.sum() == 40000 == counts[likely].sum()
    share = probability[likely] / probability[likely].sum()
    assert stats.chisquare(counts[likely], 40000 * share).pvalue > 1e-3


@pytest.mark.parametrize(("n", "spread"), [(200, 1.0), (200, 2.5), (12, 1.0), (60, 1.0)])
def test_the_top_of_many_documents_is_sampled_right(n, spread):
    # Each way of drawing: with replacement where k is small, unless few documents hold most of the weight
    # (spread 2.5), or k is not so small: by partition (60), by sorting (12).
    scores, k = spread * np.random.default_rng(2).normal(size=n), 9 if n == 60 else 4
    top = PlackettLuce(scores).sample(20000, k=k, rng=3)
    assert np.all(np.diff(np.sort(top, axis=1), axis=1) > 0)
    probabilities = PlackettLuce(scores).rank_probabilities(k)
    for rank in range(k):
        expected = 20000 * probabilities[:, rank]
        often = expected >= 5
        assert expected[~often].sum() < 200  # or the test would see nothing
        counts = np.bincount(top[:, rank], minlength=n)[often]
        assert stats.chisquare(counts, expected[often] * counts.sum() / expected[often].sum()).pvalue > 1e-3


def test_samples_are_rankings():
    policy = PlackettLuce([[0.0, 1.0, 2.0, -np.inf], [0.0, -np.inf, -np.inf, -np.inf], [-np.inf] * 4])
    rankings = policy.sample(50, rng=0)
    assert rankings.shape == (3, 50, 4)
    assert rankings.dtype == np.int64
    assert np.array_equal(np.sort(rankings[0], axis=1), np.tile([-1, 0, 1, 2], (50, 1)))
    assert np.all(rankings[0, :, 3] == -1)
    assert np.all(rankings[1] == [0, -1, -1, -1])
    assert np.all(rankings[2] == -1)
    assert PlackettLuce([0.0, 1.0]).sample(0, k=5).shape == (0, 5)
    longer = PlackettLuce([0.0, 1.0]).sample(3, k=4)
    assert np.all(longer[:, 2:] == -1)


def test_equal_scores_below_a_huge_gap_are_still_random():
    # Keys relative to the highest score would lose their random part here, and never swap the tied two.
    second = PlackettLuce([0.0, -1e18, -1e18]).sample(1000, rng=0)[:, 1]
    assert 400 < np.count_nonzero(second == 1) < 600


def test_generators():
    scores = [[0.0, 0.5, 1.0], [1.0, 0.0, 0.2]]
    policy = PlackettLuce(scores)
    keyed = policy.sample(5, rng=[np.random.default_rng([9, topic]) for topic in (0, 1)])
    assert np.array_equal(keyed, policy.sample(5, rng=9))
    assert np.array_equal(keyed, policy.sample(5, rng=np.int64(9)))
    assert not np.array_equal(keyed, policy.sample(5, rng=10))
    shared = policy.sample(5, rng=np.random.default_rng(1))
    assert np.array_equal(shared[0], PlackettLuce(scores[0]).sample(5, rng=np.random.default_rng(1)))
    for wrong in ([np.random.default_rng(0)], -1, "seed"):
        with pytest.raises(ValueError, match=r"^rng"):
            policy.sample(5, rng=wrong)


# Log-probability


@pytest.mark.parametrize("name", [name for name in SCORES if name != "one"])
def test_log_probabilities_sum_to_one(name):
    scores = SCORES[name]
    documents = np.flatnonzero(scores > -np.inf)
    for k in {1, 2, len(documents)}:
        prefixes = np.array(list(itertools.permutations(documents, k)))
        np.testing.assert_allclose(np.exp(PlackettLuce(scores).log_prob(prefixes)).sum(), 1, rtol=1e-12)


def test_log_prob_is_the_product_of_choices():
    scores = np.array([0.2, -1.0, 0.7, 0.0])
    weights = np.exp(scores / 2)
    expected = np.log(weights[2] / weights.sum()) + np.log(weights[0] / (weights.sum() - weights[2]))
    policy = PlackettLuce(scores, temperature=2.0)
    np.testing.assert_allclose(policy.log_prob([2, 0]), expected, rtol=1e-14)
    np.testing.assert_allclose(policy.log_prob([[2, 0, -1], [2, 0, -1]]), expected, rtol=1e-14)


def test_log_prob_keeps_tiny_and_huge_odds():
    # Differences of log-sum-exps would give 0 for the first: 1 − P is far below the spacing of floats at 1.
    policy = PlackettLuce([50.0, 0.0, -50.0])
    np.testing.assert_allclose(policy.log_prob([0, 1, 2]), -2 * np.exp(-50), rtol=1e-12)
    np.testing.assert_allclose(policy.log_prob([2, 1, 0]), -150, rtol=1e-14)
    np.testing.assert_allclose(PlackettLuce([1e308, -1e308]).log_prob([0, 1]), 0)


def test_log_prob_of_what_cannot_be():
    policy = PlackettLuce([[0.0, 1.0, -np.inf], [-np.inf, -np.inf, 0.0]])
    rankings = [
        [[0, 1, -1], [0, 2, -1], [1, 1, -1], [-1, -1, -1]],
        [[2, -1, -1], [0, -1, -1], [2, 2, -1], [2, 0, -1]],
    ]
    got = policy.log_prob(rankings)
    assert got.shape == (2, 4)
    np.testing.assert_allclose(got[0], [np.log(1 / (1 + np.e)), -np.inf, -np.inf, 0])
    np.testing.assert_array_equal(got[1], [0, -np.inf, -np.inf, -np.inf])
    assert policy.log_prob(np.empty((2, 3, 0), dtype=int)).tolist() == [[0] * 3] * 2
    for wrong, message in (
        ([[-1, 0], [2, -1]], "at the end"),
        ([[3], [0]], "below 3"),
        ([[-2], [0]], "below 3"),
        ([[0], [0], [0]], r"shape \(2, …, k\)"),
        ([[0.5], [0.5]], "indices"),
    ):
        with pytest.raises(ValueError, match=message):
            policy.log_prob(wrong)


# Batches

TOPIC = st.one_of(
    st.lists(st.floats(-60, 60) | st.sampled_from([0.0, 1.0, -np.inf]), min_size=1, max_size=40),
    st.builds(
        lambda n, seed: list(np.random.default_rng(seed).normal(size=n)),
        st.integers(1, 90),
        st.integers(0, 99),
    ),
)


def padded(topics, extra=0):
    width = max(len(topic) for topic in topics) + extra
    return np.array([list(topic) + [-np.inf] * (width - len(topic)) for topic in topics])


def everything(scores, k, generators):
    policy = PlackettLuce(scores)
    rankings = policy.sample(6, k, rng=generators)
    cotangent = np.sin(np.arange(scores.shape[1])) * np.ones_like(scores)
    yield policy.exposure("log2", k, tolerance=1e-6).value
    yield policy.exposure("trecfair", k and 3, tolerance=1e-4).value
    yield policy.exposure_with_vjp("log2", k, tolerance=1e-5)[1](cotangent)
    yield policy.exposure_with_vjp([0.5, 1.0, 0.0, 2.0], k, tolerance=1e-5)[1](cotangent)
    yield policy.rank_probabilities(4, tolerance=1e-5)
    yield policy.log_prob(rankings)
    yield rankings
    yield from vars(policy.exposure("log2", k, "mc", 9, generators)).values()


@pytest.mark.slow
@given(
    st.lists(TOPIC, min_size=1, max_size=6), st.sampled_from([None, 1, 7]), st.integers(0, 3), st.booleans()
)
def test_a_topic_is_computed_alike_in_every_batch(topics, k, extra, small_pieces):
    # Bit for bit: beside other topics, with padding, and cut into whatever chunks.
    def generators(count, first=0):
        return [np.random.default_rng([4, topic]) for topic in range(first, first + count)]

    with pytest.MonkeyPatch.context() as patch:
        if small_pieces:
            patch.setattr(grid, "_CHUNK_CELLS", 500)
            patch.setattr(counts, "_STORE_CELLS", 500)
            patch.setattr(counts, "_SWEEP_CELLS", 1000)
            patch.setattr(grid, "_FEW_CELLS", 0)
            patch.setattr(grid, "_GRID_CELLS", 100)
            patch.setattr(plackett_luce, "_LOG_PROB_CELLS", 100)
        batch = list(everything(padded(topics, extra), k, generators(len(topics))))
    for index, topic in enumerate(topics):
        alone = everything(padded([topic]), k, generators(1, index))
        for together, single in zip(batch, alone, strict=True):
            kept = tuple(slice(size) for size in single[0].shape)
            np.testing.assert_array_equal(together[index][kept], single[0])
            together[index][kept] = 0
            assert set(np.unique(together[index])) <= {0, -1}  # no exposure, no document


def test_shapes_and_empty_topics():
    policy = PlackettLuce([[1.0, 0.0], [-np.inf, -np.inf]])
    for value in (policy.exposure().value, policy.exposure_with_vjp("log2")[1](np.ones((2, 2)))):
        assert value.shape == (2, 2)
        assert np.all(value[1] == 0)
    assert np.all(policy.rank_probabilities()[1] == 0)
    assert np.all(policy.exposure(method="mc").value[1] == 0)
    assert policy.rank_probabilities(5).shape == (2, 2, 5)
    assert PlackettLuce(np.empty(0)).exposure().value.shape == (0,)
    assert PlackettLuce(np.empty(0)).rank_probabilities().shape == (0, 0)
    assert PlackettLuce(np.empty((0, 3))).exposure().value.shape == (0, 3)
    assert PlackettLuce(np.empty((0, 3))).sample(4).shape == (0, 4, 3)
    assert np.all(PlackettLuce([1.0, 2.0]).exposure([0.0]).value == 0)
    tempered, divided = PlackettLuce([1.0, 2.0], temperature=2), PlackettLuce([0.5, 1.0])
    np.testing.assert_array_equal(tempered.exposure().value, divided.exposure().value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PlackettLuce([0.0, np.nan]), "nan at 1"),
        (lambda: PlackettLuce([[0.0], [np.inf]]), "inf at \\(1, 0\\)"),
        (lambda: PlackettLuce([1e308], temperature=1e-5), "over temperature"),
        (lambda: PlackettLuce([-1e308], temperature=1e-5), "over temperature"),
        (lambda: PlackettLuce(1.0), "shape"),
        (lambda: PlackettLuce([1.0], temperature=0), "temperature"),
        (lambda: PlackettLuce([1.0], temperature=np.nan), "temperature"),
        (lambda: PlackettLuce([1.0]).sample(-1), "samples"),
        (lambda: PlackettLuce([1.0]).sample(1, k=0), "k must be"),
        (
            lambda: PlackettLuce([1.0]).exposure(method="guess"),
            "unknown method 'guess'; expected one of exact, mc",
        ),
        (lambda: PlackettLuce([1.0]).exposure(method="mc", samples=0), "at least 1, got 0"),
        (lambda: PlackettLuce(["high"]), r"scores must be an array of numbers, got \['high'\]"),
        (lambda: PlackettLuce([[1.0], [1.0, 2.0]]), "scores must be an array of numbers"),
        (lambda: PlackettLuce([1.0], temperature="hot"), "temperature must be a number above 0, got 'hot'"),
        (
            lambda: PlackettLuce([1.0]).sample("many"),
            "samples must be a whole number of at least 0, got 'many'",
        ),
        (lambda: PlackettLuce([1.0]).sample(1, k=1.5), "k must be a whole number of at least 1, got 1.5"),
        (
            lambda: PlackettLuce([1.0]).sample(1, rng="x"),
            "rng='x'; expected a whole number of at least 0, a numpy Generator",
        ),
        (lambda: PlackettLuce([1.0]).sample(1, rng=-1), "rng=-1; expected a whole number"),
        (lambda: PlackettLuce([1.0]).sample(1, rng=1.5), r"rng=1\.5; expected a whole number"),
        (lambda: PlackettLuce([1.0]).exposure(["x"]), r"unknown attention \['x'\]"),
        (lambda: PlackettLuce([1.0]).exposure(tolerance=0), "tolerance"),
        (lambda: PlackettLuce([1.0]).rank_probabilities(tolerance=1e-20), "tolerance"),
        (lambda: PlackettLuce([1.0]).exposure_with_vjp("log2")[1]([1.0, 2.0]), "cotangent"),
        (lambda: PlackettLuce([1.0]).exposure("dcg"), "unknown attention"),
    ],
)
def test_wrong_use_is_refused_with_a_reason(call, message):
    with pytest.raises(UsageError, match=message):
        call()


def test_no_seed_draws_other_rankings_every_time():
    """None is numpy's own word for it; the default is a seed, so that results can be repeated."""
    pl = PlackettLuce(np.zeros((2, 50)))
    fresh = [pl.sample(3, rng=None) for _ in range(2)]
    assert (fresh[0] != fresh[1]).any()
    np.testing.assert_array_equal(pl.sample(3), pl.sample(3, rng=0))

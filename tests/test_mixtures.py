"""Mixtures of geometric sequences in place of attention weights: what they promise, and that nothing else changes."""

from functools import partial

import numpy as np
import pytest

from fairevals.attention import parse_attention
from fairevals.policy.exact import exact_exposure, exposure_gradient
from fairevals.policy.grid import chunks_of, lay_grid
from fairevals.policy.mixtures import mixture_of
from fairevals.policy.plackett_luce import PlackettLuce

MONOTONE = ["log2", "reciprocal", "uniform", "rbp(0.9)", "rbp(0.01)", "geometric(0.3)"]


@pytest.mark.parametrize("tolerance", [1e-3, 1e-7, 1e-11])
@pytest.mark.parametrize("attention", MONOTONE)
def test_a_mixture_keeps_its_tolerance_with_few_terms(attention, tolerance):
    # The proof of the quadrature's error needs shares that are not negative and ratios of at most 1.
    model = parse_attention(attention)
    for ranks in (2, 4, 32, 256, 4096):
        mixture = mixture_of(model, ranks, tolerance)
        assert mixture is not None
        weights = model.weights(ranks)
        direct = (mixture.share * mixture.ratio ** np.arange(ranks)[:, np.newaxis]).sum(axis=1)
        np.testing.assert_allclose(direct, weights, rtol=0, atol=1.001 * tolerance * weights[0])
        np.testing.assert_allclose(mixture.weights(ranks), direct, rtol=1e-12)
        assert mixture.share.min() >= 0
        assert 0 < mixture.ratio.min() <= mixture.ratio.max() <= 1
        assert len(mixture.ratio) <= min(ranks // 2, 25)
    assert len(mixture_of(parse_attention("rbp(0.9)"), 32, tolerance).ratio) == 1


@pytest.mark.parametrize("attention", ["trecfair", [1.0, 1.0, 0.0, 0.0], [0.0, 1.0], [0.0], [1.0, 0.5, 2.0]])
def test_weights_that_are_no_mixture(attention):
    assert mixture_of(parse_attention(attention), 16, 1e-6) is None


def test_a_tolerance_below_rounding_is_not_promised():
    assert mixture_of(parse_attention("log2"), 4096, 1e-16) is None
    value = PlackettLuce(np.zeros(300)).exposure("log2", tolerance=1e-13).value  # by the count, then
    np.testing.assert_allclose(value, parse_attention("log2").weights(300).mean(), rtol=0, atol=3e-13)


@pytest.mark.parametrize("attention", MONOTONE)
@pytest.mark.parametrize("spread", [0.0, 1.0, 12.0, 60.0])
def test_the_mixture_and_the_count_agree_node_by_node(attention, spread):
    # The same nodes both ways: a difference is one of formulas, such as a document left out twice, a mark on the
    # wrong one, or documents that have certainly arrived (wide spreads) not counted. 30 of 33 documents are ranked.
    model, rng = parse_attention(attention), np.random.default_rng(7)
    scores = np.pad(spread * rng.normal(size=(3, 30)), ((0, 0), (0, 3)), constant_values=-np.inf)
    weights, cotangent = model.weights(33), rng.normal(size=(3, 33))
    grid = lay_grid(scores, weights, 1, 1e-10)
    counted = list(chunks_of(grid))
    mixed = list(chunks_of(grid, partial(mixture_of, model, tolerance=1e-11)))
    assert all(chunk.mixture is None for chunk in counted)
    assert all(chunk.mixture is not None for chunk in mixed)
    by_count, by_mixture = (exact_exposure(grid, chunks, weights) for chunks in (counted, mixed))
    np.testing.assert_allclose(by_mixture, by_count, rtol=0, atol=2e-11)
    by_count, by_mixture = (
        exposure_gradient(grid, chunks, weights, cotangent) for chunks in (counted, mixed)
    )
    np.testing.assert_allclose(by_mixture, by_count, rtol=0, atol=1e-10)
    assert np.abs(by_count).max() > 1e-3 or attention == "uniform" or spread == 60.0


def test_padding_does_not_change_the_order_of_sums():
    # Bit for bit; were documents side by side in memory, numpy would sum them in pairs, however many there are.
    rng = np.random.default_rng(1)
    scores, cotangent = rng.normal(size=(2, 56)), rng.normal(size=(2, 56))
    scores[0, 49:] = -np.inf
    together = PlackettLuce(scores).exposure_with_vjp("log2", tolerance=1e-5)[1](cotangent)
    for topic, n in ((0, 49), (1, 56)):
        _, vjp = PlackettLuce(scores[topic, :n]).exposure_with_vjp("log2", tolerance=1e-5)
        np.testing.assert_array_equal(together[topic, :n], vjp(cotangent[topic, :n]))


def test_a_cutoff_is_counted_and_shorter_topics_beside_it_are_not():
    # A mixture goes on beyond the cutoff: a topic that is cut off must not take it.
    scores = np.array([[0.3, -0.2, 0.1, 0.0], [0.5, 0.0, -np.inf, -np.inf]])
    grid = lay_grid(scores, np.ones(2), 1, 1e-9)
    chunks = list(chunks_of(grid, partial(mixture_of, parse_attention("uniform"), tolerance=1e-9)))
    taken = {int(t): c.mixture is not None for c in chunks for t in grid.topic[c.blocks]}
    assert taken == {0: False, 1: True}
    value = PlackettLuce(scores).exposure("uniform", k=2).value
    np.testing.assert_allclose(value.sum(axis=1), [2, 2], atol=1e-8)


@pytest.mark.parametrize("attention", ["rbp(0)", "rbp(1e-300)", "rbp(1)", "geometric(1)", "reciprocal"])
def test_extreme_ratios_and_scores_stay_finite(attention):
    # With a ratio of 0 a document that has arrived would leave 0/0.
    assert mixture_of(parse_attention(attention), 2, 1e-9).ratio.min() > 0
    weights = parse_attention(attention).weights(3)
    for n in (1, 2, 3):
        scores = np.array([400.0, 0.0, -400.0])[:n]
        value, vjp = PlackettLuce(scores).exposure_with_vjp(attention)
        np.testing.assert_allclose(value, weights[:n], rtol=0, atol=1e-9)
        np.testing.assert_allclose(vjp(np.arange(1.0, n + 1)), 0, atol=1e-8)


def test_long_lists_need_no_more_memory_or_time_than_their_nodes():
    # 20,000 documents and all ranks: the count would need 20,000² numbers a node.
    scores = np.random.default_rng(5).normal(size=20_000)
    value = PlackettLuce(scores).exposure("log2", tolerance=1e-6).value
    total = parse_attention("log2").weights(20_000).sum()
    np.testing.assert_allclose(value.sum(), total, rtol=1e-6)
    assert np.all(np.diff(value[np.argsort(scores)]) >= -1e-12)

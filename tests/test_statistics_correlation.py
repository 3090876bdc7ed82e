"""Rank correlations between measures agree with scipy, and use common topics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats as scipy_stats
from statistics_cases import DOWN, UP, ZERO, make_scores

from fairevals.statistics.correlation import rank_correlations, tau_matrix


def tau_b(a, b) -> float:
    return float(tau_matrix(np.stack([a, b]))[0, 1])


@given(hnp.arrays(float, st.tuples(st.just(2), st.integers(2, 12)), elements=st.integers(0, 4)))
def test_tau_agrees_with_scipy(rows):
    expected = scipy_stats.kendalltau(*rows).statistic
    assert tau_b(*rows) == pytest.approx(expected, nan_ok=True)


def test_tau_ignores_undefined_values():
    a = np.array([1.0, 2.0, np.nan, 4.0, 3.0])
    b = np.array([1.0, 3.0, 2.0, 2.0, np.nan])
    assert tau_b(a, b) == pytest.approx(scipy_stats.kendalltau(a, b, nan_policy="omit").statistic)
    assert math.isnan(tau_b(np.array([1.0, np.nan]), np.array([1.0, 2.0])))


def test_tau_ties_through_rounding():
    assert math.isnan(tau_matrix(np.array([[0.1 + 0.2, 0.3]]))[0, 0])


def test_correlations_respect_directions():
    up = np.array([0.9, 0.5, 0.7, 0.1])
    # The best by UP is the lowest by DOWN and the nearest to 0 by ZERO, if the measures agree.
    values = np.stack([up, -up, np.array([-0.1, 0.5, 0.3, -0.9])], axis=1)[:, :, None].repeat(5, axis=2)
    result = rank_correlations(make_scores(values, (UP, DOWN, ZERO)), resamples=20)
    assert (result.tau == 1).all()
    assert (result.low == 1).all()
    assert (result.high == 1).all()
    assert result.topics == (5, 5, 5)
    other = rank_correlations(make_scores(values, (UP, UP, UP)), resamples=20)
    assert other.tau[0, 1] == -1


def test_correlations_by_a_slow_loop():
    rng = np.random.default_rng(2)
    values = rng.normal(0, 1, (6, 2, 10)) + rng.normal(0, 0.5, (6, 1, 1))
    values[2, 0, 4] = np.nan  # so this topic does not count for the first measure, for any run
    scores = make_scores(values, (UP, DOWN))
    result = rank_correlations(scores, resamples=60, seed=3, level=0.9)
    clean = [[t for t in range(10) if t != 4], list(range(10))]
    means = [values[:, 0][:, clean[0]].mean(axis=1), -values[:, 1].mean(axis=1)]
    assert result.tau[0, 1] == pytest.approx(scipy_stats.kendalltau(*means).statistic)
    assert result.topics == (9, 10)
    weights = np.random.default_rng(3).multinomial(10, np.full(10, 0.1), size=60)
    drawn = []
    for weight in weights:
        first = [np.average(values[r, 0][clean[0]], weights=weight[clean[0]]) for r in range(6)]
        second = [-np.average(values[r, 1], weights=weight) for r in range(6)]
        drawn.append(scipy_stats.kendalltau(first, second).statistic)
    assert [result.low[0, 1], result.high[0, 1]] == pytest.approx(np.quantile(drawn, [0.05, 0.95]))
    assert result.low[1, 0] == result.low[0, 1]


def test_undefined_correlations():
    nothing = np.full((3, 2, 4), 0.5)
    nothing[:, 1] = np.nan
    result = rank_correlations(make_scores(nothing, (UP, DOWN)), resamples=10)
    assert np.isnan(result.tau).all()
    assert np.isnan(result.low).all()
    single = rank_correlations(make_scores([[[0.1, 0.2]]]), resamples=10)
    assert np.isnan(single.tau).all()
    # A run that has no value by one measure has no rank there; the others have.
    values = np.random.default_rng(0).normal(0, 1, (4, 2, 6))
    values[3, 1] = np.nan
    part = rank_correlations(make_scores(values, (UP, UP)), resamples=10)
    expected = scipy_stats.kendalltau(values[:3, 0].mean(axis=1), values[:3, 1].mean(axis=1)).statistic
    assert part.tau[0, 1] == pytest.approx(expected)


def test_leaving_out_a_topic_does_not_change_the_rank_of_a_run():
    # By both measures a is better than b, and b than c, on every topic.
    rng = np.random.default_rng(1)
    values = np.sort(rng.uniform(0, 0.1, (3, 2, 8)), axis=0)
    values[:, :, 7] += 0.8
    complete = rank_correlations(make_scores(values, (DOWN, DOWN)), resamples=50)
    assert complete.tau[0, 1] == 1
    values[2, 0, 7] = np.nan  # the mean of c over its own topics would now be the lowest by the first measure
    assert np.nanmean(values[2, 0]) < values[:2, 0].mean(axis=1).min()
    silent = rank_correlations(make_scores(values, (DOWN, DOWN)), resamples=50)
    assert silent.topics == (7, 8)
    assert silent.tau[0, 1] == 1

"""Intervals agree with scipy and cover; standard errors are split into topics and sampling."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from statistics_cases import DOWN, NONE, UP, make_scores
from statsmodels.stats.weightstats import DescrStatsW

from fairevals.statistics import pairing
from fairevals.statistics.correlation import rank_correlations
from fairevals.statistics.inference import bootstrap_interval, bootstrap_test, mean_interval, t_interval
from fairevals.statistics.pairing import pair, spread_of
from fairevals.statistics.tukey import tukey_hsd


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_t_interval_agrees_with_statsmodels(level):
    x = np.random.default_rng(1).exponential(1, 17)
    expected = DescrStatsW(x).tconfint_mean(1 - level)
    result = t_interval(x, level)
    assert (result.low, result.high) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "x", [np.random.default_rng(1).exponential(1, 20) ** 2, np.array([0.125, 0.25, 0.5, 0.875])]
)
def test_bootstrap_interval_follows_efrons_formulas(x):
    n, resamples = x.size, 2000
    drawn = np.array([x[row] for row in np.random.default_rng(5).integers(0, n, size=(resamples, n))])
    means = np.array([math.fsum(row) / n for row in drawn])  # exactly rounded, so that equal sums are equal
    centre = math.fsum(x) / n
    z0 = ndtri((np.sum(means < centre) + np.sum(means == centre) / 2) / resamples)
    jackknife = np.array([math.fsum(np.delete(x, i)) / (n - 1) for i in range(n)])
    u = jackknife.mean() - jackknife
    acceleration = np.sum(u**3) / (6 * np.sum(u**2) ** 1.5)
    z = z0 + ndtri(np.array([0.025, 0.975]))
    expected = np.quantile(means, ndtr(z0 + z / (1 - acceleration * z)))
    result = bootstrap_interval(x, resamples=resamples, seed=5)
    assert [result.low, result.high] == pytest.approx(expected, rel=1e-11)


def test_bootstrap_interval_covers():
    rng = np.random.default_rng(2)
    trials, covered = 500, 0
    for trial in range(trials):
        result = bootstrap_interval(rng.gamma(2, 0.5, 40), resamples=599, seed=trial)
        covered += result.low <= 1.0 <= result.high
    # BCa is known to cover a little less than its level with few topics.
    assert 0.89 <= covered / trials <= 0.975


def test_intervals_without_spread_are_undefined():
    for nothing in (NONE, np.array([0.3]), np.array([0.3, 0.3]), np.array([np.nan, 0.2])):
        assert np.isnan([t_interval(nothing).low, bootstrap_interval(nothing).high]).all()


def test_a_bootstrap_of_two_topics_stays_between_them():
    result = bootstrap_interval(np.array([0.0, 1.0]), resamples=200)
    assert (result.low, result.high) == (0.0, 1.0)


def test_mean_interval_is_for_the_mean_of_the_leaderboard():
    scores = make_scores([[[0.1, np.nan, 0.5, 0.3]]])
    interval, spread = mean_interval(scores, 0, 0)
    assert interval.low < scores.mean(0, 0).value < interval.high
    assert interval == t_interval(np.array([0.1, 0.5, 0.3]))
    assert spread.total == pytest.approx(0.2 / math.sqrt(3))


def test_resampling_does_not_depend_on_batches(monkeypatch):
    x = np.random.default_rng(0).normal(0.3, 1, (9, 4))
    scores = make_scores(x.T[:, None])

    def everything():
        d = x[:, 0]
        tau = rank_correlations(
            replace(
                scores,
                measures=(UP, DOWN),
                values=np.repeat(scores.values, 2, axis=1),
                se=np.repeat(scores.se, 2, axis=1),
            ),
            resamples=100,
        )
        return (
            bootstrap_test(d, resamples=300).p,
            bootstrap_interval(d, resamples=300),
            tukey_hsd(x, resamples=300).p.tolist(),
            tau.low.tolist(),
        )

    whole = everything()
    monkeypatch.setattr(pairing, "BATCH_CELLS", 100)
    assert everything() == whole


def test_seeds_matter():
    x = np.random.default_rng(0).normal(0.3, 1, (9, 4))
    assert (
        bootstrap_test(x[:, 0], resamples=300, seed=1).p != bootstrap_test(x[:, 0], resamples=300, seed=2).p
    )
    assert (tukey_hsd(x, resamples=300, seed=1).p != tukey_hsd(x, resamples=300, seed=2).p).any()


def test_the_parts_of_the_standard_error():
    # True values vary by 0.3 over topics, sampling adds 0.1 to each: the parts must come out again.
    rng = np.random.default_rng(0)
    n = 4000
    values = rng.normal(0, 0.3, n) + rng.normal(0, 0.1, n)
    result = spread_of(values, np.full(n, 0.1))
    assert result.sampling * math.sqrt(n) == pytest.approx(0.1)
    assert result.topics * math.sqrt(n) == pytest.approx(0.3, rel=0.05)
    assert result.total == pytest.approx(np.std(values, ddof=1) / math.sqrt(n))
    assert result.total**2 == pytest.approx(result.topics**2 + result.sampling**2)


def test_sampling_error_of_a_difference_has_that_of_both_runs():
    values = np.array([[[0.1, 0.5, 0.3, 0.9]], [[0.2, 0.1, 0.4, 0.3]]])
    se = np.array([[[0.03, 0.03, 0.03, 0.03]], [[np.nan, np.nan, 0.04, 0.04]]])
    result = pair(make_scores(values, se=se), 0, 0, 1).spread
    assert result.sampling == pytest.approx(math.sqrt(4 * 0.03**2 + 2 * 0.04**2) / 4)
    assert mean_interval(make_scores(values, se=se), 0, 0)[1].sampling == pytest.approx(
        make_scores(values, se=se).mean(0, 0).se
    )


def test_when_sampling_error_is_notable():
    values = np.array([0.0, 0.2])  # a standard error of 0.1
    assert spread_of(values, np.full(2, 0.0145)).notable
    assert not spread_of(values, np.full(2, 0.0135)).notable
    assert not spread_of(values, np.full(2, np.nan)).notable
    assert not spread_of(values, np.zeros(2)).notable
    assert spread_of(values[:1], np.full(1, 0.01)).notable  # nothing to compare it with
    assert spread_of(np.array([0.2, 0.2]), np.full(2, 0.01)).notable
    assert math.isnan(spread_of(NONE, NONE).sampling)

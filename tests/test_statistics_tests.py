"""Paired tests and corrections agree with scipy and statsmodels, hold their level, and are NaN where undefined."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats as scipy_stats
from statistics_cases import NONE
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import DescrStatsW

from fairevals.errors import UsageError
from fairevals.statistics.inference import bootstrap_test, correct, t_test, wilcoxon_test


def bounds(trials: int, rate: float = 0.05) -> tuple[float, float]:
    """Counts outside of which a test at its level falls about once in 10,000 times."""
    counts = scipy_stats.binom(trials, rate)
    return counts.ppf(0.00005), counts.ppf(0.99995)


@pytest.mark.parametrize("n", [2, 3, 10, 50, 333])
@pytest.mark.parametrize("shift", [0.0, 0.3, 5.0])
def test_t_test_agrees_with_statsmodels(n, shift):
    rng = np.random.default_rng(n)
    a, b = rng.normal(shift, 1, n), rng.normal(0, 1, n)
    t, p, _ = DescrStatsW(a - b).ttest_mean()
    result = t_test(a - b)
    assert result.statistic == pytest.approx(t, rel=1e-10)
    assert result.p == pytest.approx(p, rel=1e-8)


@pytest.mark.parametrize("n", [2, 6, 13, 20, 50])
def test_wilcoxon_without_ties_agrees_with_scipy(n):
    d = np.random.default_rng(n).normal(0.3, 1, n)
    expected = scipy_stats.wilcoxon(d)
    result = wilcoxon_test(d)
    assert result.p == pytest.approx(expected.pvalue, rel=1e-12)
    assert result.statistic == expected.statistic


def tied(n):
    """Differences with ties and zeros; eighths are exact, so that scipy sees the ties too."""
    d = np.round(np.random.default_rng(n).normal(0.3, 1, n) * 4) / 8
    d[:2] = 0.125, 0.0
    return d


def test_wilcoxon_with_ties_is_exact_for_few_topics():
    d = tied(9)
    left = d[d != 0]
    ranks = scipy_stats.rankdata(np.abs(left))
    observed = min(ranks[left > 0].sum(), ranks[left < 0].sum())
    sums = [ranks[np.array(signs)].sum() for signs in product([True, False], repeat=left.size)]
    expected = min(1, 2 * np.mean([total <= observed for total in sums]))
    assert wilcoxon_test(d).p == pytest.approx(expected, rel=1e-12)
    assert wilcoxon_test(d).statistic == observed


@pytest.mark.parametrize("n", [60, 120])
def test_wilcoxon_of_many_topics_is_the_normal_approximation(n):
    for d in (tied(n), np.random.default_rng(n).normal(0.1, 1, n)):
        left = d[d != 0]
        ranks = scipy_stats.rankdata(np.abs(left))
        w = min(ranks[left > 0].sum(), ranks[left < 0].sum())
        # Var W⁺ = Σ rank²/4, which is the usual formula with its correction for ties.
        z = (w - ranks.sum() / 2) / math.sqrt((ranks**2).sum() / 4)
        result = wilcoxon_test(d)
        assert left.size > 50
        assert result.statistic == w
        assert result.p == pytest.approx(math.erfc(abs(z) / math.sqrt(2)), rel=1e-10)


def test_exact_wilcoxon_is_near_the_normal_approximation():
    few = tied(45)
    approximation = scipy_stats.wilcoxon(few, method="asymptotic").pvalue
    assert wilcoxon_test(few).p == pytest.approx(approximation, rel=0.1)


def test_wilcoxon_sees_ties_through_rounding():
    # 0.3 - 0.2 and 0.4 - 0.3 differ in the last bits; as ranks they must tie.
    noisy = np.array([0.3 - 0.2, 0.4 - 0.3, 0.2 - 0.3, 0.5 - 0.2, 0.9 - 0.6])
    exact = np.array([1.0, 1.0, -1.0, 3.0, 3.0])
    assert wilcoxon_test(noisy).p == wilcoxon_test(exact).p
    assert wilcoxon_test(noisy).effect == wilcoxon_test(exact).effect == 11 / 15


def test_wilcoxon_does_not_drop_small_differences():
    assert wilcoxon_test(np.array([1.0, -1e-12, 2.0])).statistic == 1.0


@given(hnp.arrays(float, st.integers(2, 12), elements=st.sampled_from([-0.2, -0.1, 0.0, 0.1, 0.4, np.nan])))
def test_exchanging_the_runs_changes_only_the_sign(d):
    for test in (t_test, wilcoxon_test, lambda x: bootstrap_test(x, resamples=99)):
        one, other = test(d), test(-d)
        assert one.p == pytest.approx(other.p, nan_ok=True)
        assert one.effect == pytest.approx(-other.effect, nan_ok=True)


def test_bootstrap_test_by_a_slow_loop():
    d = np.random.default_rng(3).normal(0.4, 1, 12)
    rng = np.random.default_rng(7)
    t, z = scipy_stats.ttest_1samp(d, 0).statistic, d - d.mean()
    extreme = 0
    for _ in range(500):
        drawn = z[rng.integers(0, 12, size=12)]
        extreme += abs(drawn.mean() / (drawn.std(ddof=1) / math.sqrt(12))) >= abs(t)
    result = bootstrap_test(d, resamples=500, seed=7)
    assert result.p == (1 + extreme) / 501
    assert result.statistic == pytest.approx(t)


def test_bootstrap_is_near_t_on_normal_data():
    d = np.random.default_rng(0).normal(0.25, 1, 60)
    assert bootstrap_test(d).p == pytest.approx(t_test(d).p, abs=0.02)


def test_effect_sizes():
    d = np.array([0.1, 0.3, -0.1, 0.5])
    assert t_test(d).effect == pytest.approx(0.2 / np.std(d, ddof=1))
    assert bootstrap_test(d, resamples=9).effect == t_test(d).effect
    assert wilcoxon_test(np.array([1.0, -2.0, 3.0])).effect == pytest.approx((1 + 3 - 2) / 6)


@pytest.mark.parametrize("test", [t_test, wilcoxon_test, bootstrap_test])
def test_fewer_than_two_topics_give_no_p_value(test):
    for few in (NONE, np.array([np.nan, np.inf]), np.array([0.4]), np.zeros(1), np.array([0.4, np.nan])):
        assert np.isnan([test(few).p, test(few).effect, test(few).statistic]).all()


@pytest.mark.parametrize("test", [t_test, wilcoxon_test, bootstrap_test])
def test_equal_runs_and_constant_differences(test):
    assert (test(np.zeros(5)).p, test(np.zeros(5)).effect) == (1.0, 0.0)
    constant = test(np.array([0.3 - 0.2, 0.4 - 0.3]))
    if test is wilcoxon_test:  # two positive signs of two: 2 / 2²
        assert (constant.p, constant.effect) == (0.5, 1.0)
    else:
        assert np.isnan([constant.p, constant.effect]).all()


@pytest.mark.parametrize("test", [t_test, wilcoxon_test, lambda d: bootstrap_test(d, resamples=399)])
def test_level_is_held(test):
    rng = np.random.default_rng(11)
    trials = 1000
    rejected = sum(test(rng.normal(0, 1, 25)).p <= 0.05 for _ in range(trials))
    least, most = bounds(trials)
    assert least <= rejected <= most


@pytest.mark.parametrize("test", [t_test, wilcoxon_test, lambda d: bootstrap_test(d, resamples=399)])
def test_a_clear_difference_is_found(test):
    rng = np.random.default_rng(12)
    assert all(test(rng.normal(1.5, 1, 25)).p < 0.01 for _ in range(20))


@pytest.mark.parametrize("n", [1, 2, 3, 10, 40])
@pytest.mark.parametrize("scale", [1, 0.05])
@pytest.mark.parametrize("places", [1, 3, 9])  # with ties, without
def test_corrections_agree_with_statsmodels(n, scale, places):
    p = np.round(np.random.default_rng(n).random(n), places) * scale
    assert correct(p, "holm") == pytest.approx(multipletests(p, method="holm")[1], abs=1e-14)
    assert correct(p, "bh") == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-14)
    assert correct(p, "none") == pytest.approx(p)


def test_an_undefined_p_value_is_not_in_the_family():
    p = np.array([0.01, np.nan, 0.04])
    for name in ("holm", "bh"):
        assert correct(p, name)[[0, 2]] == pytest.approx(correct(p[[0, 2]], name))
        assert np.isnan(correct(p, name)[1])
        assert correct(NONE, name).shape == (0,)
        assert np.isnan(correct(np.array([np.nan]), name)).all()


def test_an_unknown_correction():
    with pytest.raises(UsageError, match="holm, bh, none"):
        correct(np.array([0.1]), "bonferroni")

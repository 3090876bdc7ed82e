"""Statistics over topics: they agree with scipy and statsmodels, hold their level, and say no more than they know."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats as scipy_stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.multitest import multipletests

from fairevals.errors import UsageError
from fairevals.evaluation.scores import Scores
from fairevals.measures import Measure, parse_measure
from fairevals.statistics import (
    benjamini_hochberg,
    bootstrap_interval,
    bootstrap_test,
    cohens_dz,
    compact_letters,
    compare,
    correct,
    holm,
    mean_interval,
    pair,
    rank_biserial,
    rank_correlations,
    remarks,
    resampling,
    significance_groups,
    spread_of,
    t_interval,
    t_test,
    tukey_hsd,
    wilcoxon_test,
)
from fairevals.statistics.correlation import tau_b, tau_matrix
from fairevals.statistics.letters import letter, letter_groups
from fairevals.statistics.tukey import largest_ranges

UP = parse_measure("nDCG@10")
DOWN = parse_measure("D_ind@10")
ZERO = parse_measure("DP(attr='A',protected='G')@10")
NONE = np.zeros(0)


def made(values, measures: tuple[Measure, ...] = (UP,), se=None, runs: tuple[str, ...] = ()) -> Scores:
    """Scores from values (runs, measures, topics)."""
    values = np.asarray(values, dtype=float)
    names = runs or tuple("abcdefghijklmnopqrstuvwxyz"[: len(values)])
    topics = tuple(f"t{i}" for i in range(values.shape[2]))
    errors = np.full(values.shape, np.nan) if se is None else np.asarray(se, dtype=float)
    return Scores(names, measures, topics, values, errors)


def bounds(trials: int, rate: float = 0.05) -> tuple[float, float]:
    """Counts that a test at its level leaves about once in 10,000."""
    found = scipy_stats.binom(trials, rate)
    return found.ppf(0.00005), found.ppf(0.99995)


# --- paired tests -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 10, 50, 333])
@pytest.mark.parametrize("shift", [0.0, 0.3, 5.0])
def test_t_is_scipys(n, shift):
    rng = np.random.default_rng(n)
    a, b = rng.normal(shift, 1, n), rng.normal(0, 1, n)
    expected = scipy_stats.ttest_rel(a, b)
    found = t_test(a - b)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-10)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-8)
    assert found.topics == n


@pytest.mark.parametrize("n", [1, 2, 6, 13, 20, 50, 51, 200])
def test_wilcoxon_is_scipys(n):
    d = np.random.default_rng(n).normal(0.3, 1, n)
    expected = scipy_stats.wilcoxon(d)
    found = wilcoxon_test(d)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.statistic == expected.statistic


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


def test_wilcoxon_with_ties_is_scipys_for_many_topics():
    d = tied(120)
    expected = scipy_stats.wilcoxon(d, method="asymptotic")
    found = wilcoxon_test(d)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.statistic == expected.statistic
    few = tied(45)  # exact here, where scipy approximates
    assert wilcoxon_test(few).p == pytest.approx(
        scipy_stats.wilcoxon(few, method="asymptotic").pvalue, rel=0.1
    )


def test_wilcoxon_sees_ties_through_rounding():
    # 0.3 - 0.2 and 0.4 - 0.3 differ in the last bits; as ranks they must tie.
    noisy = np.array([0.3 - 0.2, 0.4 - 0.3, 0.2 - 0.3, 0.5 - 0.2, 0.9 - 0.6])
    exact = np.array([1.0, 1.0, -1.0, 3.0, 3.0])
    assert wilcoxon_test(noisy).p == wilcoxon_test(exact).p
    assert rank_biserial(noisy) == rank_biserial(exact) == 11 / 15


def test_wilcoxon_does_not_drop_small_differences():
    assert wilcoxon_test(np.array([1.0, -1e-12, 2.0])).statistic == 1.0


@given(hnp.arrays(float, st.integers(2, 12), elements=st.sampled_from([-0.2, -0.1, 0.0, 0.1, 0.4, np.nan])))
def test_exchanging_the_runs_only_turns_the_sign(d):
    for test in (t_test, wilcoxon_test, lambda x: bootstrap_test(x, resamples=99)):
        one, other = test(d), test(-d)
        assert one.p == pytest.approx(other.p, nan_ok=True)
        assert one.effect == pytest.approx(-other.effect, nan_ok=True)
        assert one.topics == np.isfinite(d).sum()


def test_bootstrap_test_by_a_slow_loop():
    d = np.random.default_rng(3).normal(0.4, 1, 12)
    rng = np.random.default_rng(7)
    t, z = scipy_stats.ttest_1samp(d, 0).statistic, d - d.mean()
    extreme = 0
    for _ in range(500):
        drawn = z[rng.integers(0, 12, size=12)]
        extreme += abs(drawn.mean() / (drawn.std(ddof=1) / math.sqrt(12))) >= abs(t)
    found = bootstrap_test(d, resamples=500, seed=7)
    assert found.p == (1 + extreme) / 501
    assert found.statistic == pytest.approx(t)


def test_bootstrap_is_near_t_on_normal_data():
    d = np.random.default_rng(0).normal(0.25, 1, 60)
    assert bootstrap_test(d).p == pytest.approx(t_test(d).p, abs=0.02)


def test_effect_sizes():
    d = np.array([0.1, 0.3, -0.1, 0.5])
    assert cohens_dz(d) == pytest.approx(0.2 / np.std(d, ddof=1))
    assert t_test(d).effect == bootstrap_test(d, resamples=9).effect == cohens_dz(d)
    assert rank_biserial(np.array([1.0, -2.0, 3.0])) == pytest.approx((1 + 3 - 2) / 6)
    assert wilcoxon_test(np.array([1.0, -2.0, 3.0])).effect == rank_biserial(np.array([1.0, -2.0, 3.0]))


@pytest.mark.parametrize("test", [t_test, wilcoxon_test, bootstrap_test])
def test_what_nothing_can_be_said_of(test):
    assert math.isnan(test(NONE).p)
    assert math.isnan(test(np.array([np.nan, np.inf])).p)
    for zeros in (np.zeros(1), np.zeros(5)):
        assert (test(zeros).p, test(zeros).effect) == (1.0, 0.0)
    alone, same = test(np.array([0.4])), test(np.array([0.3 - 0.2, 0.4 - 0.3]))
    if test is wilcoxon_test:  # signs alone can be counted, and say little
        assert (alone.p, same.p) == (1.0, 0.5)
    else:
        assert math.isnan(alone.p)
        assert math.isnan(same.p)
        assert math.isnan(same.effect)


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


# --- corrections --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 10, 40])
@pytest.mark.parametrize("scale", [1, 0.05])
@pytest.mark.parametrize("places", [1, 3, 9])  # with ties, without
def test_corrections_are_statsmodels(n, scale, places):
    p = np.round(np.random.default_rng(n).random(n), places) * scale
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-14)
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-14)
    assert correct(p, "none") == pytest.approx(p)


def test_a_test_that_says_nothing_is_not_in_the_family():
    p = np.array([0.01, np.nan, 0.04])
    for one in (holm, benjamini_hochberg):
        assert one(p)[[0, 2]] == pytest.approx(one(p[[0, 2]]))
        assert np.isnan(one(p)[1])
        assert one(NONE).shape == (0,)
        assert np.isnan(one(np.array([np.nan]))).all()


def test_an_unknown_correction():
    with pytest.raises(UsageError, match="holm, bh, none"):
        correct(np.array([0.1]), "bonferroni")


# --- intervals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_t_interval_is_scipys(level):
    x = np.random.default_rng(1).exponential(1, 17)
    expected = scipy_stats.ttest_1samp(x, 0).confidence_interval(level)
    found = t_interval(x, level)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("method", ["percentile", "BCa"])
def test_bootstrap_interval_is_near_scipys(method):
    x = np.random.default_rng(1).exponential(1, 20) ** 2  # so skewed that the two methods differ
    rng = np.random.default_rng(0)
    expected = scipy_stats.bootstrap(
        (x,), np.mean, n_resamples=20_000, method=method, rng=rng
    ).confidence_interval
    found = bootstrap_interval(x, method=method.lower(), resamples=20_000, seed=5)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=0.03)
    other = bootstrap_interval(x, method="bca" if method == "percentile" else "percentile", resamples=20_000)
    assert abs(other.high - found.high) > 0.1


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_bootstrap_interval_covers(method):
    rng = np.random.default_rng(2)
    trials, covered = 500, 0
    for trial in range(trials):
        found = bootstrap_interval(rng.gamma(2, 0.5, 40), method=method, resamples=599, seed=trial)
        covered += found.low <= 1.0 <= found.high
    # Both are known to cover a little less than they say with few topics.
    assert 0.89 <= covered / trials <= 0.975


def test_intervals_of_what_has_no_spread():
    for nothing in (NONE, np.array([0.3]), np.array([0.3, 0.3]), np.array([np.nan, 0.2])):
        assert np.isnan([t_interval(nothing).low, bootstrap_interval(nothing).high]).all()
    with pytest.raises(UsageError, match="percentile"):
        bootstrap_interval(np.array([0.1, 0.2]), method="basic")


def test_a_bootstrap_of_two_topics_stays_between_them():
    found = bootstrap_interval(np.array([0.0, 1.0]), resamples=200)
    assert (found.low, found.high) == (0.0, 1.0)


def test_mean_interval_goes_with_the_leaderboard():
    scores = made([[[0.1, np.nan, 0.5, 0.3]]])
    found = mean_interval(scores, "a", str(UP))
    expected = scores.mean(0, 0)
    assert (found.value, found.topics) == (expected.value, expected.topics)
    assert found.undefined == ("t1",)
    assert found.low < found.value < found.high
    assert found.low == t_interval(np.array([0.1, 0.5, 0.3])).low


def test_resampling_does_not_depend_on_the_pieces(monkeypatch):
    x = np.random.default_rng(0).normal(0.3, 1, (9, 4))
    scores = made(x.T[:, None])

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
    monkeypatch.setattr(resampling, "CELLS", 100)
    assert everything() == whole


def test_seeds_matter():
    x = np.random.default_rng(0).normal(0.3, 1, (9, 4))
    assert (
        bootstrap_test(x[:, 0], resamples=300, seed=1).p != bootstrap_test(x[:, 0], resamples=300, seed=2).p
    )
    assert (largest_ranges(x, 10, 1) != largest_ranges(x, 10, 2)).all()


# --- Tukey --------------------------------------------------------------------------------------------------------


def test_tukey_by_a_slow_loop():
    rng = np.random.default_rng(4)
    x = rng.normal(0, 1, (8, 4)) + rng.normal(0, 1, (8, 1)) + [0, 0.3, 0.6, 1.5]
    permuting = np.random.default_rng(9)
    counts = np.zeros((4, 4))
    for _ in range(400):
        columns = [[] for _ in range(4)]
        for topic in x:
            for run, value in enumerate(permuting.permuted(topic)):
                columns[run].append(value)
        means = [sum(column) / 8 for column in columns]
        for i in range(4):
            for j in range(4):
                counts[i, j] += max(means) - min(means) >= abs(x[:, i].mean() - x[:, j].mean())
    found = tukey_hsd(x, resamples=400, seed=9)
    assert found.p == pytest.approx((1 + counts) / 401)
    assert found.differences[3, 0] == pytest.approx(x[:, 3].mean() - x[:, 0].mean())


def test_tukey_is_near_scipys_where_that_applies():
    # scipy's is for independent samples: so here topics have no effect of their own.
    rng = np.random.default_rng(5)
    x = rng.normal([0, 0.2, 0.4, 0.5], 1, (40, 4))
    expected = scipy_stats.tukey_hsd(*x.T)
    assert tukey_hsd(x).p == pytest.approx(expected.pvalue, abs=0.05)


def test_tukey_of_two_runs_is_the_randomisation_test():
    d = np.array([0.2, 0.3, -0.1, 0.4, 0.25, 0.05, 0.15, -0.05])
    x = np.stack([d, np.zeros(8)], axis=1)
    expected = scipy_stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert tukey_hsd(x, resamples=20_000).p[0, 1] == pytest.approx(expected.pvalue, abs=0.006)


def test_tukeys_effect_has_the_residual_variance_of_the_two_way_anova():
    rng = np.random.default_rng(6)
    n, m = 9, 3
    x = rng.normal(0, 1, (n, m)) + 5 * rng.normal(0, 1, (n, 1))
    topic, run = np.repeat(np.arange(n), m), np.tile(np.arange(m), n)
    design = np.column_stack([np.eye(n)[topic], np.eye(m)[run][:, 1:]])
    residual = OLS(x.ravel(), design).fit().mse_resid
    found = tukey_hsd(x, resamples=9)
    assert found.effects == pytest.approx(found.differences / math.sqrt(residual))


def test_tukey_holds_its_level_over_all_pairs():
    rng = np.random.default_rng(7)
    trials, rejected = 500, 0
    for trial in range(trials):
        x = rng.normal(0, 1, (15, 6)) + 3 * rng.normal(0, 1, (15, 1))
        rejected += bool((tukey_hsd(x, resamples=199, seed=trial).p <= 0.05).any())
    least, most = bounds(trials)
    assert least <= rejected <= most


def test_intervals_and_p_of_tukey_agree():
    rng = np.random.default_rng(8)
    for seed in range(20):
        x = rng.normal(0, 1, (10, 6)) + np.linspace(0, 2, 6)
        for resamples in (999, 1000, 200):
            found = tukey_hsd(x, resamples=resamples, seed=seed)
            assert ((np.abs(found.differences) > found.critical) == (found.p < 0.05)).all()
    assert math.isnan(tukey_hsd(x, resamples=10).critical)


def test_tukey_where_nothing_can_be_said():
    assert np.isnan(tukey_hsd(np.zeros((0, 3))).p).all()
    one = tukey_hsd(np.array([[0.1, 0.9, 0.9]]), resamples=99)
    assert (one.p == 1).all()
    assert np.isnan(one.effects[0, 1])
    assert one.effects[1, 2] == 0
    same = tukey_hsd(np.full((5, 3), 0.7), resamples=99)
    assert (same.p == 1).all()
    assert (same.effects == 0).all()
    alone = tukey_hsd(np.array([[0.1], [0.2]]), resamples=99)
    assert alone.p.tolist() == [[1.0]]


def test_tukey_counts_permutations_that_only_rename_runs():
    # Every permutation of one topic's values leaves the range as it is; in floating point, nearly.
    x = np.array([[0.1, 0.7], [0.1, 0.7], [0.1, 0.7]])
    found = tukey_hsd(x, resamples=4000)
    assert found.p[0, 1] == pytest.approx(2 / 8, abs=0.03)


def test_groups_leave_out_topics_and_runs_without_values():
    values = np.random.default_rng(0).normal(0.5, 0.01, (4, 1, 12))
    values[1] += 0.3
    values[0, 0, 3] = np.nan
    values[1, 0, 5] = np.inf
    values[3] = np.nan
    found = significance_groups(made(values), 0, resamples=500)
    assert found.undefined == ("t3", "t5")
    assert len(found.topics) == 10
    assert found.letters[1] == "a"
    assert found.letters[0] == found.letters[2] == "b"
    assert found.letters[3] == ""
    assert found.order[0] == 1
    assert set(found.order) == {0, 1, 2}
    assert np.isnan(found.p[3]).all()
    used = [t for t in range(12) if t not in (3, 5)]
    assert found.means[:3] == pytest.approx(values[:3, 0][:, used].mean(axis=1))
    inner = tukey_hsd(values[:3, 0][:, used].T, resamples=500)
    assert found.p[:3, :3] == pytest.approx(inner.p)
    assert found.critical == inner.critical


def test_groups_without_a_common_topic():
    found = significance_groups(made([[[0.1, np.nan]], [[np.nan, 0.1]]]), 0)
    assert found.letters == ("", "")
    assert found.topics == ()
    assert np.isnan(found.p).all()


@pytest.mark.parametrize(("measure", "best"), [(UP, 2), (DOWN, 0), (ZERO, 1)])
def test_groups_go_by_direction(measure, best):
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.01, (3, 1, 15)) + np.array([-1, 0.1, 2])[:, None, None]
    found = significance_groups(made(values, (measure,)), 0, resamples=500)
    assert found.order[0] == best
    assert found.letters[best][0] == "a"
    assert not set(found.letters[best]) & set(found.letters[found.order[-1]])


def test_groups_do_not_depend_on_the_order_of_runs():
    values = np.random.default_rng(1).normal(0, 1, (5, 1, 10))
    scores = made(values)
    order = [3, 1, 4, 0, 2]
    turned = made(values[order], runs=tuple(scores.runs[i] for i in order))
    one = significance_groups(scores, 0, resamples=200)
    other = significance_groups(turned, 0, resamples=200)
    assert (one.p[np.ix_(order, order)] == other.p).all()
    assert [one.letters[i] for i in order] == list(other.letters)


# --- letters ------------------------------------------------------------------------------------------------------


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(hnp.arrays(bool, (n, n)), st.permutations(range(n)))))
def test_two_runs_share_a_letter_if_and_only_if_they_do_not_differ(case):
    square, order = case
    different = np.triu(square, 1) | np.triu(square, 1).T
    letters = compact_letters(different, order)
    for i in range(len(different)):
        assert letters[i]
        for j in range(i):
            assert bool(set(letters[i]) & set(letters[j])) == (not different[i, j])
    assert letters[order[0]][0] == "a"


@given(hnp.arrays(float, st.integers(1, 12), elements=st.floats(0, 5)))
def test_runs_on_a_line_get_the_fewest_letters(means):
    different = np.abs(means[:, None] - means[None, :]) > 1
    order = [int(i) for i in np.argsort(-means, kind="stable")]
    groups = letter_groups(different, order)
    # A set of mutually close points of a line that cannot be enlarged is a window; each is needed.
    windows = {
        tuple(j for j in order if means[i] - 1 <= means[j] <= means[i] and not different[i, j]) for i in order
    }
    largest = {w for w in windows if not any(set(w) < set(v) for v in windows)}
    assert {tuple(group) for group in groups} == largest


def test_more_groups_than_letters():
    different = ~np.eye(60, dtype=bool)
    found = compact_letters(different, list(range(60)))
    assert len(set(found)) == 60
    assert found[59] == letter(59) == "[60]"


# --- correlation --------------------------------------------------------------------------------------------------


@given(hnp.arrays(float, st.tuples(st.just(2), st.integers(2, 12)), elements=st.integers(0, 4)))
def test_tau_is_scipys(rows):
    expected = scipy_stats.kendalltau(*rows).statistic
    assert tau_b(*rows) == pytest.approx(expected, nan_ok=True)


def test_tau_leaves_out_what_is_undefined():
    a = np.array([1.0, 2.0, np.nan, 4.0, 3.0])
    b = np.array([1.0, 3.0, 2.0, 2.0, np.nan])
    assert tau_b(a, b) == pytest.approx(scipy_stats.kendalltau(a, b, nan_policy="omit").statistic)
    assert math.isnan(tau_b(np.array([1.0, np.nan]), np.array([1.0, 2.0])))


def test_tau_ties_through_rounding():
    assert math.isnan(tau_matrix(np.array([[0.1 + 0.2, 0.3]]))[0, 0])


def test_correlations_go_by_direction():
    up = np.array([0.9, 0.5, 0.7, 0.1])
    # The best by UP is the lowest by DOWN and the nearest to 0 by ZERO, if the measures agree.
    values = np.stack([up, -up, np.array([-0.1, 0.5, 0.3, -0.9])], axis=1)[:, :, None].repeat(5, axis=2)
    found = rank_correlations(made(values, (UP, DOWN, ZERO)), resamples=20)
    assert (found.tau == 1).all()
    assert (found.low == 1).all()
    assert (found.high == 1).all()
    assert found.topics == (5, 5, 5)
    other = rank_correlations(made(values, (UP, UP, UP)), resamples=20)
    assert other.tau[0, 1] == -1


def test_correlations_by_a_slow_loop():
    rng = np.random.default_rng(2)
    values = rng.normal(0, 1, (6, 2, 10)) + rng.normal(0, 0.5, (6, 1, 1))
    values[2, 0, 4] = np.nan  # so this topic does not count for the first measure, for any run
    scores = made(values, (UP, DOWN))
    found = rank_correlations(scores, resamples=60, seed=3, level=0.9)
    clean = [[t for t in range(10) if t != 4], list(range(10))]
    means = [values[:, 0][:, clean[0]].mean(axis=1), -values[:, 1].mean(axis=1)]
    assert found.tau[0, 1] == pytest.approx(scipy_stats.kendalltau(*means).statistic)
    assert found.topics == (9, 10)
    weights = np.random.default_rng(3).multinomial(10, np.full(10, 0.1), size=60)
    drawn = []
    for weight in weights:
        first = [np.average(values[r, 0][clean[0]], weights=weight[clean[0]]) for r in range(6)]
        second = [-np.average(values[r, 1], weights=weight) for r in range(6)]
        drawn.append(scipy_stats.kendalltau(first, second).statistic)
    assert [found.low[0, 1], found.high[0, 1]] == pytest.approx(np.quantile(drawn, [0.05, 0.95]))
    assert found.low[1, 0] == found.low[0, 1]


def test_correlations_where_there_are_none():
    nothing = np.full((3, 2, 4), 0.5)
    nothing[:, 1] = np.nan
    found = rank_correlations(made(nothing, (UP, DOWN)), resamples=10)
    assert np.isnan(found.tau).all()
    assert np.isnan(found.low).all()
    single = rank_correlations(made([[[0.1, 0.2]]]), resamples=10)
    assert np.isnan(single.tau).all()
    # A run that has no value by one measure has no rank there; the others have.
    values = np.random.default_rng(0).normal(0, 1, (4, 2, 6))
    values[3, 1] = np.nan
    part = rank_correlations(made(values, (UP, UP)), resamples=10)
    expected = scipy_stats.kendalltau(values[:3, 0].mean(axis=1), values[:3, 1].mean(axis=1)).statistic
    assert part.tau[0, 1] == pytest.approx(expected)


# --- pairs, and sampling error ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "differences", "gains"),
    [
        (UP, [0.2, -0.2, 0.0], [0.2, -0.2, 0.0]),
        (DOWN, [0.2, -0.2, 0.0], [-0.2, 0.2, 0.0]),
        (ZERO, [0.2, -0.1, 0.0], [-0.2, 0.1, 0.0]),
    ],
)
def test_pairs_go_by_direction(measure, differences, gains):
    run, base = [0.5, -0.05, 0.1 + 0.2, 1.0, np.nan, np.inf], [0.3, 0.15, 0.3, np.nan, 1.0, 0.0]
    found = pair(made([[run], [base]], (measure,)), 0, "a", "b")
    assert found.differences == pytest.approx(differences)
    assert found.gains == pytest.approx(gains)
    assert (found.wins, found.ties, found.losses) == (1, 1, 1)
    assert found.topics == ("t0", "t1", "t2")
    assert found.undefined == ("t3", "t4", "t5")
    turned = pair(made([[run], [base]], (measure,)), 0, "b", "a")
    assert turned.difference == -found.difference
    driving = found.driving()
    assert [topic for topic, _ in driving] == ["t0", "t1"]
    assert driving[0][1] == pytest.approx(gains[0])


def test_names_that_are_not_there():
    scores = made(np.zeros((2, 1, 3)))
    with pytest.raises(UsageError, match="the runs are a, b"):
        pair(scores, 0, "a", "zzz")
    with pytest.raises(UsageError, match="the measures are nDCG@10"):
        pair(scores, "ERR", "a", "b")


def test_the_parts_of_the_standard_error():
    # True values vary by 0.3 over topics, sampling adds 0.1 to each: the parts must come out again.
    rng = np.random.default_rng(0)
    n = 4000
    values = rng.normal(0, 0.3, n) + rng.normal(0, 0.1, n)
    found = spread_of(values, np.full(n, 0.1))
    assert found.sampling * math.sqrt(n) == pytest.approx(0.1)
    assert found.topics * math.sqrt(n) == pytest.approx(0.3, rel=0.05)
    assert found.total == pytest.approx(np.std(values, ddof=1) / math.sqrt(n))
    assert found.total**2 == pytest.approx(found.topics**2 + found.sampling**2)


def test_sampling_error_of_a_difference_has_that_of_both_runs():
    values = np.array([[[0.1, 0.5, 0.3, 0.9]], [[0.2, 0.1, 0.4, 0.3]]])
    se = np.array([[[0.03, 0.03, 0.03, 0.03]], [[np.nan, np.nan, 0.04, 0.04]]])
    found = pair(made(values, se=se), 0, "a", "b").spread
    assert found.sampling == pytest.approx(math.sqrt(4 * 0.03**2 + 2 * 0.04**2) / 4)
    assert mean_interval(made(values, se=se), 0, 0).spread.sampling == pytest.approx(
        made(values, se=se).mean(0, 0).se
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


# --- compare ------------------------------------------------------------------------------------------------------


def three_runs(measure: Measure = UP) -> Scores:
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.1, (4, 1, 20)) + np.array([0.4, 0.6, 0.4, 0.2])[:, None, None]
    values[2] = values[0] + np.tile([0.04, -0.03], 10)
    return made(values, (measure,))


@pytest.mark.parametrize("test", ["ttest", "wilcoxon", "tukey", "bootstrap"])
@pytest.mark.parametrize(
    ("measure", "verdicts"), [(UP, ["better", "", "worse"]), (DOWN, ["worse", "", "better"])]
)
def test_direction_turns_the_verdict_and_not_the_difference(test, measure, verdicts):
    found = compare(three_runs(measure), "a", test=test, resamples=999)
    assert [row.verdict for row in found.rows] == verdicts
    assert found.rows[0].difference > 0 > found.rows[2].difference
    for row in found.rows:
        assert row.difference == pytest.approx(row.mean - row.baseline_mean)
        assert row.low < row.difference < row.high
        assert row.effect * row.difference > 0
        assert row.gain == (row.difference if measure is UP else -row.difference)
        assert row.wins + row.ties + row.losses == row.topics == 20
    assert (found.rows[0].gain > 0) == (measure is UP)
    assert (found.rows[0].wins > found.rows[0].losses) == (measure is UP)


def test_a_target_is_compared_by_distance():
    values = np.array([[[1.0, -1.0, 1.0, -1.1]], [[0.2, 0.3, 0.2, 0.1]]])
    row = compare(made(values, (ZERO,)), "a").rows[0]
    assert row.difference == pytest.approx(0.2 - 4.1 / 4)
    assert row.mean == pytest.approx(0.2)
    assert (row.verdict, row.wins) == ("better", 4)


def test_the_family_is_the_runs_of_a_measure():
    scores = three_runs()
    two = replace(
        scores,
        measures=(UP, DOWN),
        values=np.concatenate([scores.values, scores.values], axis=1),
        se=np.concatenate([scores.se, scores.se], axis=1),
    )
    for name, method in (("holm", "holm"), ("bh", "fdr_bh")):
        found = compare(two, "a", correction=name)
        for measure in (UP, DOWN):
            rows = found.of(str(measure))
            expected = multipletests([row.p for row in rows], method=method)[1]
            assert [row.corrected for row in rows] == pytest.approx(expected)
    plain = compare(two, "a", correction="none")
    assert all(row.corrected == row.p for row in plain.rows)
    assert compare(two, "a").correction == "holm"


def test_the_rows_are_what_the_parts_say():
    scores = three_runs()
    d = scores.values[1, 0] - scores.values[0, 0]
    row = compare(scores, 0).rows[0]
    assert row.p == pytest.approx(scipy_stats.ttest_rel(scores.values[1, 0], scores.values[0, 0]).pvalue)
    assert (row.low, row.high) == pytest.approx((t_interval(d).low, t_interval(d).high))
    assert row.effect == pytest.approx(cohens_dz(d))
    assert compare(scores, 0, test="wilcoxon").rows[0].p == wilcoxon_test(d).p
    boot = compare(scores, 0, test="bootstrap", seed=3, resamples=200).rows[0]
    assert boot.p == bootstrap_test(d, seed=3, resamples=200).p
    assert boot.low == pytest.approx(bootstrap_interval(d, seed=3, resamples=200).low)
    tukey = tukey_hsd(scores.values[:, 0].T, seed=3, resamples=200)
    found = compare(scores, 0, test="tukey", seed=3, resamples=200).rows
    assert [row.p for row in found] == pytest.approx(tukey.p[1:, 0])
    assert [row.effect for row in found] == pytest.approx(tukey.effects[1:, 0])
    assert found[0].high - found[0].difference == pytest.approx(tukey.critical)


def test_only_topics_that_are_defined_for_both():
    scores = three_runs()
    values = scores.values.copy()
    values[0, 0, 2] = values[1, 0, 7] = values[2, 0, 9] = np.nan
    scores = replace(scores, values=values)
    by_pair = compare(scores, "a").rows
    assert [row.undefined for row in by_pair] == [("t2", "t7"), ("t2", "t9"), ("t2",)]
    assert [row.topics for row in by_pair] == [18, 18, 19]
    by_all = compare(scores, "a", test="tukey", resamples=50).rows
    assert {row.undefined for row in by_all} == {("t2", "t7", "t9")}
    assert by_pair[1].baseline_mean != by_pair[2].baseline_mean
    text = "\n".join(remarks(compare(scores, "a")))
    assert "for every run: 1 topic (t2)" in text
    assert "for b: 1 topic (t7)" in text


@pytest.mark.parametrize("test", ["ttest", "wilcoxon", "tukey", "bootstrap"])
def test_degenerate_comparisons(test):
    nan = np.nan
    values = [
        [[0.5, 0.6, 0.7, nan]],
        [[0.5, 0.6, 0.7, nan]],  # the same as the baseline
        [[nan, nan, nan, nan]],  # nothing
    ]
    same, nothing = compare(made(values), "a", test=test, resamples=99).rows
    assert (same.p, same.corrected, same.effect, same.difference, same.ties) == (1.0, 1.0, 0.0, 0.0, 3)
    assert same.low <= 0 <= same.high
    assert same.verdict == ""
    assert nothing.topics == 0
    assert np.isnan([nothing.p, nothing.corrected, nothing.difference, nothing.low, nothing.effect]).all()
    assert nothing.verdict == ""
    one = compare(made([[[0.5]], [[0.7]]]), "a", test=test, resamples=99).rows[0]
    assert one.verdict == ""
    assert not one.p < 1
    lost = compare(made([[[nan, nan]], [[0.2, 0.4]]]), "a", test=test, resamples=99).rows[0]
    assert math.isnan(lost.p)
    assert lost.topics == 0
    assert compare(made([[[0.1, 0.2]]]), "a", test=test).rows == ()


def test_wilcoxons_verdict_goes_by_ranks():
    # A little better on nearly all topics, very much worse on one: the mean falls, the ranks rise.
    d = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, -5.0])
    row = compare(made([[np.zeros(11)], [d]]), "a", test="wilcoxon", alpha=0.1).rows[0]
    assert row.difference < 0
    assert row.significant
    assert row.verdict == "better"


def test_what_cannot_be_asked():
    scores = three_runs()
    with pytest.raises(UsageError, match="by itself"):
        compare(scores, "a", test="tukey", correction="holm")
    with pytest.raises(UsageError, match="ttest, wilcoxon, tukey, bootstrap"):
        compare(scores, "a", test="anova")
    with pytest.raises(UsageError, match="holm, bh, none"):
        compare(scores, "a", correction="sidak")


def test_remarks_on_sampling_error_and_targets():
    values = np.random.default_rng(0).normal(0, 0.1, (3, 2, 10))
    se = np.full(values.shape, np.nan)
    se[1, 0] = 0.05
    text = "\n".join(remarks(compare(made(values, (UP, ZERO), se=se), "a")))
    assert "10 %" in text
    assert "nDCG@10 of b" in text
    assert "nDCG@10 of c" not in text
    assert "distances" in text


def test_scipy_is_loaded_only_when_it_is_needed():
    code = "import sys, fairevals.statistics; sys.exit(any(name.split('.')[0] == 'scipy' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

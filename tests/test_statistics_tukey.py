"""Randomised Tukey HSD against slow loops and scipy; families of runs; letters."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats as scipy_stats
from statistics_cases import DOWN, UP, ZERO, make_scores
from statsmodels.regression.linear_model import OLS

from fairevals.evaluation.scores import Scores
from fairevals.report.board import letters
from fairevals.statistics.all_pairs import all_pairs
from fairevals.statistics.compare import compare_with_baseline
from fairevals.statistics.tukey import compact_letters, significance_groups, tukey_family, tukey_hsd


def bounds(trials: int, rate: float = 0.05) -> tuple[float, float]:
    """Counts outside of which a test at its level falls about once in 10,000 times."""
    counts = scipy_stats.binom(trials, rate)
    return counts.ppf(0.00005), counts.ppf(0.99995)


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
    result = tukey_hsd(x, resamples=400, seed=9)
    assert result.p == pytest.approx((1 + counts) / 401)
    assert result.differences[3, 0] == pytest.approx(x[:, 3].mean() - x[:, 0].mean())


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
    result = tukey_hsd(x, resamples=9)
    assert result.effects == pytest.approx(result.differences / math.sqrt(residual))


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
            result = tukey_hsd(x, resamples=resamples, seed=seed)
            assert ((np.abs(result.differences) > result.critical) == (result.p < 0.05)).all()
    assert math.isnan(tukey_hsd(x, resamples=10).critical)


def test_tukey_needs_two_topics_and_two_runs():
    for few in (np.zeros((0, 3)), np.array([[0.1, 0.9, 0.9]]), np.array([[0.1], [0.2]])):
        result = tukey_hsd(few, resamples=99)
        assert result.p.shape == (few.shape[1],) * 2
        assert np.isnan([*result.p.ravel(), *result.effects.ravel(), result.critical]).all()
    same = tukey_hsd(np.full((5, 3), 0.7), resamples=99)
    assert (same.p == 1).all()
    assert (same.effects == 0).all()


def test_tukey_counts_permutations_that_only_rename_runs():
    # Every permutation of one topic's values leaves the range as it is; in floating point, nearly.
    x = np.array([[0.1, 0.7], [0.1, 0.7], [0.1, 0.7]])
    result = tukey_hsd(x, resamples=4000)
    assert result.p[0, 1] == pytest.approx(2 / 8, abs=0.03)


def test_groups_leave_out_topics_and_runs_without_values():
    values = np.random.default_rng(0).normal(0.5, 0.01, (4, 1, 12))
    values[1] += 0.3
    values[0, 0, 3] = np.nan
    values[1, 0, 5] = np.inf
    values[3] = np.nan
    scores = replace(make_scores(values), comparable=np.zeros((1, 12), bool))
    result = significance_groups(scores, 0, tukey_family(scores, 0, include=2), resamples=500)
    assert result.topics == tuple(f"t{i}" for i in range(12) if i not in (3, 5))
    assert result.letters[1] == "a"
    assert result.letters[0] == result.letters[2] == "b"
    assert result.letters[3] == ""
    assert result.family.runs == ("a", "b", "c")
    assert result.family.outside == (("d", "no value"),)
    used = [t for t in range(12) if t not in (3, 5)]
    inner = tukey_hsd(values[:3, 0][:, used].T, resamples=500)
    assert result.tukey.p == pytest.approx(inner.p)
    assert result.tukey.critical == inner.critical


def test_groups_without_a_common_topic():
    result = significance_groups(make_scores([[[0.1, np.nan]], [[np.nan, 0.1]]]), 0)
    assert result.letters == ("", "")
    assert result.topics == ()
    assert np.isnan(result.tukey.p).all()


@pytest.mark.parametrize(("measure", "best", "worst"), [(UP, 2, 0), (DOWN, 0, 2), (ZERO, 1, 2)])
def test_groups_go_by_direction(measure, best, worst):
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.01, (3, 1, 15)) + np.array([-1, 0.1, 2])[:, None, None]
    result = significance_groups(make_scores(values, (measure,)), 0, resamples=500)
    assert result.letters[best][0] == "a"
    assert not set(result.letters[best]) & set(result.letters[worst])


def test_groups_do_not_depend_on_the_order_of_runs():
    values = np.random.default_rng(1).normal(0, 1, (5, 1, 10))
    scores = make_scores(values)
    order = [3, 1, 4, 0, 2]
    turned = make_scores(values[order], runs=tuple(scores.runs[i] for i in order))
    one = significance_groups(scores, 0, resamples=200)
    other = significance_groups(turned, 0, resamples=200)
    assert one.family.runs == other.family.runs
    assert (one.tukey.p == other.tukey.p).all()
    assert [one.letters[i] for i in order] == list(other.letters)


def with_reference() -> Scores:
    """Three good runs, of which a is better than b and c, and two that are far below."""
    rng = np.random.default_rng(3)
    offsets = np.array([0.77, 0.7, 0.7, 0.1, 0.0])[:, None, None]
    values = rng.normal(0, 0.05, (5, 1, 20)) + offsets
    return make_scores(values, runs=("a", "b", "c", "bm25", "random"))


def test_baselines_and_references_do_not_change_the_letters_of_others():
    scores = with_reference()
    alone = replace(scores, runs=scores.runs[:3], values=scores.values[:3], se=scores.se[:3])
    expected = tukey_hsd(alone.values[:, 0].T)
    assert (expected.p[0, 1:] < 0.05).all()
    everything = significance_groups(scores, 0)
    assert (
        everything.tukey.p[0, everything.family.runs.index("c")] > 0.05
    )  # the runs far below hide the difference
    marked = replace(scores, statuses=("official", "unofficial", "official", "baseline", "reference"))
    by_status = significance_groups(marked, 0)
    named = tukey_family(scores, 0, baseline=3, references=[4])
    by_name = significance_groups(scores, 0, named)
    for groups in (by_status, by_name):
        assert (groups.tukey.p == expected.p).all()
        assert groups.letters == ("a", "b", "b", "", "")
        assert groups.family.runs == ("a", "b", "c")
        assert groups.family.outside == (("bm25", "baseline"), ("random", "reference"))
        assert groups.note == (
            "letters: Tukey HSD over 3 runs: a, b, c; outside: bm25 (baseline), random (reference)"
        )
    assert tukey_family(marked, 0, include=4).runs == ("a", "b", "c", "random")


def test_topics_are_those_common_to_the_family():
    scores = with_reference()
    scores.values[4, 0, :15] = np.nan
    scores.values[1, 0, 2] = np.nan
    scores = replace(scores, comparable=np.zeros((1, 20), bool))
    family = tukey_family(scores, 0, baseline=3, references=[4], include=0)
    groups = significance_groups(scores, 0, family)
    assert groups.topics == tuple(f"t{i}" for i in range(20) if i != 2)


def test_an_incomplete_run_cannot_take_away_the_letters_of_others():
    scores = with_reference()
    scores.values[1, 0, 2:] = np.nan
    family = tukey_family(scores, 0, baseline=3, references=[4])
    assert family.runs == ("a", "c")
    assert ("b", "incomplete") in family.outside
    assert len(significance_groups(scores, 0, family).topics) == 20


def test_a_family_of_one_run_has_no_letters():
    scores = replace(with_reference(), statuses=("official", *("reference",) * 4))
    groups = significance_groups(scores, 0)
    assert groups.letters == ("",) * 5
    assert groups.note.startswith(
        "no letters: at least two runs and two common topics are needed, not 1 run and 20 common topics"
    )
    assert significance_groups(replace(scores, statuses=("baseline",) * 5), 0).letters == ("",) * 5


def test_one_topic_has_no_letters():
    groups = significance_groups(make_scores([[[0.1]], [[0.9]], [[0.5]]]), 0)
    assert groups.letters == ("", "", "")
    assert np.isnan(groups.tukey.p).all()
    assert "not 3 runs and 1 common topic;" in groups.note


def test_long_families_are_abridged_and_names_are_escaped():
    names = tuple(f"run{i:02}\x1b" for i in range(30))
    text = str(tukey_family(make_scores(np.zeros((30, 1, 2)), runs=names), 0))
    assert text.startswith("Tukey HSD over 30 runs: run00")
    assert text.endswith("and 10 more")
    assert "\x1b" not in text


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
    letters = compact_letters(different, order)
    groups = [[run for run in order if letter in letters[run]] for letter in set("".join(letters))]
    # A set of mutually close points of a line that cannot be enlarged is a window; each is needed.
    windows = {
        tuple(j for j in order if means[i] - 1 <= means[j] <= means[i] and not different[i, j]) for i in order
    }
    largest = {w for w in windows if not any(set(w) < set(v) for v in windows)}
    assert {tuple(group) for group in groups} == largest


def test_more_groups_than_letters():
    different = ~np.eye(60, dtype=bool)
    result = compact_letters(different, list(range(60)))
    assert len(set(result)) == 60
    assert (result[51], result[52], result[59]) == ("Z", "[53]", "[60]")


def test_the_same_p_values_and_letters_at_every_door_and_beside_other_measures():
    """The leaderboard had fewer permutations than `compare`, and fewer still the more measures there were."""
    values = np.random.default_rng(3).normal(np.linspace(0, 1.2, 20)[:, None, None], 1, (20, 2, 60))
    both, one = make_scores(values, (UP, DOWN)), make_scores(values[:, :1])
    board, alone, pairs = letters(both)[0], letters(one)[0], all_pairs(both).groups[0]
    assert board.tukey.resamples == 8_000_000 // (20 * 60)
    assert 1 < len(set(board.letters)) < 20
    assert board.letters == alone.letters == pairs.letters
    np.testing.assert_array_equal(board.tukey.p, alone.tukey.p)
    np.testing.assert_array_equal(board.tukey.p, pairs.tukey.p)
    against = [row.p for row in compare_with_baseline(both, 0, test="tukey").of(str(UP))]
    np.testing.assert_array_equal(against, board.tukey.p[1:, 0])

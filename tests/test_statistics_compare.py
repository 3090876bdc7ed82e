"""Runs against a baseline: pairs of runs, verdicts, degenerate cases and remarks."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statistics_cases import DOWN, UP, ZERO, make_scores
from statsmodels.stats.multitest import multipletests

from fairevals.errors import UsageError
from fairevals.evaluation.scores import Scores
from fairevals.measures import Measure
from fairevals.report.gather import drivers
from fairevals.statistics.compare import compare_with_baseline, full_table, remarks, summary_table
from fairevals.statistics.inference import bootstrap_interval, bootstrap_test, t_interval, wilcoxon_test
from fairevals.statistics.pairing import pair
from fairevals.statistics.tukey import tukey_hsd


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
    result = pair(make_scores([[run], [base]], (measure,)), 0, 0, 1)
    assert result.differences == pytest.approx(differences)
    assert result.gains == pytest.approx(gains)
    assert (result.wins, result.ties, result.losses) == (1, 1, 1)
    assert result.topics == ("t0", "t1", "t2")
    assert result.undefined == ("t3", "t4", "t5")
    turned = pair(make_scores([[run], [base]], (measure,)), 0, 1, 0)
    assert turned.difference == -result.difference
    driving = drivers(result)
    assert [row["topic"] for row in driving] == ["t0", "t1"]
    assert driving[0]["gain"] == pytest.approx(gains[0])


def test_names_that_are_not_there():
    scores = make_scores(np.zeros((2, 1, 3)))
    with pytest.raises(UsageError, match="expected one of a, b"):
        compare_with_baseline(scores, "zzz")


def three_runs(measure: Measure = UP) -> Scores:
    rng = np.random.default_rng(0)
    values = rng.normal(0, 0.1, (4, 1, 20)) + np.array([0.4, 0.6, 0.4, 0.2])[:, None, None]
    values[2] = values[0] + np.tile([0.04, -0.03], 10)
    return make_scores(values, (measure,))


@pytest.mark.parametrize("test", ["ttest", "wilcoxon", "tukey", "bootstrap"])
@pytest.mark.parametrize(
    ("measure", "verdicts"), [(UP, ["better", "", "worse"]), (DOWN, ["worse", "", "better"])]
)
def test_direction_turns_the_verdict_and_not_the_difference(test, measure, verdicts):
    result = compare_with_baseline(three_runs(measure), "a", test=test, resamples=999)
    assert [row.verdict for row in result.rows] == verdicts
    assert result.rows[0].difference > 0 > result.rows[2].difference
    for row in result.rows:
        assert row.difference == pytest.approx(row.mean - row.baseline_mean)
        assert row.low < row.difference < row.high
        assert row.effect * row.difference > 0
        assert row.gains.mean() == pytest.approx(row.difference if measure is UP else -row.difference)
        assert row.wins + row.ties + row.losses == len(row.topics) == 20
    assert (result.rows[0].gains.mean() > 0) == (measure is UP)
    assert (result.rows[0].wins > result.rows[0].losses) == (measure is UP)


def test_a_target_is_compared_by_distance():
    values = np.array([[[1.0, -1.0, 1.0, -1.1]], [[0.2, 0.3, 0.2, 0.1]]])
    row = compare_with_baseline(make_scores(values, (ZERO,)), "a").rows[0]
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
        result = compare_with_baseline(two, "a", correction=name)
        for measure in (UP, DOWN):
            rows = result.of(str(measure))
            expected = multipletests([row.p for row in rows], method=method)[1]
            assert [row.corrected for row in rows] == pytest.approx(expected)
    plain = compare_with_baseline(two, "a", correction="none")
    assert all(row.corrected == row.p for row in plain.rows)
    assert compare_with_baseline(two, "a").correction == "holm"


def test_the_rows_are_what_the_parts_say():
    scores = three_runs()
    d = scores.values[1, 0] - scores.values[0, 0]
    row = compare_with_baseline(scores, 0).rows[0]
    assert row.p == pytest.approx(scipy_stats.ttest_rel(scores.values[1, 0], scores.values[0, 0]).pvalue)
    assert (row.low, row.high) == pytest.approx((t_interval(d).low, t_interval(d).high))
    assert row.effect == pytest.approx(d.mean() / d.std(ddof=1))
    assert compare_with_baseline(scores, 0, test="wilcoxon").rows[0].p == wilcoxon_test(d).p
    boot = compare_with_baseline(scores, 0, test="bootstrap", seed=3, resamples=200).rows[0]
    assert boot.p == bootstrap_test(d, seed=3, resamples=200).p
    assert boot.low == pytest.approx(bootstrap_interval(d, seed=3, resamples=200).low)
    tukey = tukey_hsd(scores.values[:, 0].T, seed=3, resamples=200)
    result = compare_with_baseline(scores, 0, test="tukey", seed=3, resamples=200).rows
    assert [row.p for row in result] == pytest.approx(tukey.p[1:, 0])
    assert [row.effect for row in result] == pytest.approx(tukey.effects[1:, 0])
    assert result[0].high - result[0].difference == pytest.approx(tukey.critical)


def test_only_topics_that_are_defined_for_both():
    scores = three_runs()
    values = scores.values.copy()
    values[0, 0, 2] = values[1, 0, 7] = values[2, 0, 9] = np.nan
    # Undefined values that make no run incomplete: all are in Tukey's family.
    scores = replace(scores, values=values, comparable=np.zeros(values.shape[1:], bool))
    by_pair = compare_with_baseline(scores, "a").rows
    assert [row.undefined for row in by_pair] == [("t2", "t7"), ("t2", "t9"), ("t2",)]
    assert [len(row.topics) for row in by_pair] == [18, 18, 19]
    by_all = compare_with_baseline(scores, "a", test="tukey", resamples=50).rows
    assert {row.undefined for row in by_all} == {("t2", "t7", "t9")}
    assert by_pair[1].baseline_mean != by_pair[2].baseline_mean
    text = "\n".join(remarks(compare_with_baseline(scores, "a")))
    assert "for every run: 1 topic (t2)" in text
    assert "for b (1 topic), c (1 topic)" in text


@pytest.mark.parametrize("test", ["ttest", "wilcoxon", "tukey", "bootstrap"])
def test_degenerate_comparisons(test):
    nan = np.nan
    values = [
        [[0.5, 0.6, 0.7, nan]],
        [[0.5, 0.6, 0.7, nan]],  # the same as the baseline
        [[nan, nan, nan, nan]],  # nothing
    ]
    same, nothing = compare_with_baseline(make_scores(values), "a", test=test, resamples=99).rows
    assert (same.p, same.corrected, same.effect, same.difference, same.ties) == (1.0, 1.0, 0.0, 0.0, 3)
    assert same.low <= 0 <= same.high
    assert same.verdict == ""
    assert nothing.topics == ()
    assert np.isnan([nothing.p, nothing.corrected, nothing.difference, nothing.low, nothing.effect]).all()
    assert nothing.verdict == ""
    one = compare_with_baseline(make_scores([[[0.5]], [[0.7]]]), "a", test=test, resamples=99).rows[0]
    assert one.verdict == ""
    assert np.isnan([one.p, one.corrected, one.low, one.effect]).all()
    assert one.difference == pytest.approx(0.2)
    lost = compare_with_baseline(
        make_scores([[[nan, nan]], [[0.2, 0.4]]]), "a", test=test, resamples=99
    ).rows[0]
    assert math.isnan(lost.p)
    assert lost.topics == ()
    assert compare_with_baseline(make_scores([[[0.1, 0.2]]]), "a", test=test).rows == ()


@pytest.mark.parametrize("test", ["ttest", "wilcoxon", "tukey", "bootstrap"])
@pytest.mark.parametrize("other", [0.7, 0.5])
def test_one_topic_gives_no_p_value_and_says_why(test, other):
    comparisons = compare_with_baseline(make_scores([[[0.5]], [[other]]]), "a", test=test, resamples=99)
    (row,) = comparisons.rows
    assert np.isnan([row.p, row.corrected, row.low, row.high, row.effect]).all()
    assert row.untested == "at least two common topics are needed"
    assert "no p-value, at least two common topics are needed: nDCG@10 of b" in remarks(comparisons)


@pytest.mark.parametrize(
    ("test", "p"), [("ttest", math.nan), ("bootstrap", math.nan), ("wilcoxon", 2 / 2**4), ("tukey", 2 / 2**4)]
)
def test_a_constant_difference_has_a_p_value_only_by_signs(test, p):
    base = np.array([0.1, 0.3, 0.4, 0.6])
    comparisons = compare_with_baseline(make_scores([[base], [base + 0.125]]), "a", test=test, resamples=4000)
    (row,) = comparisons.rows
    assert row.p == pytest.approx(p, abs=0.02, nan_ok=True)
    assert bool(row.untested) == math.isnan(p)
    told = any("the difference is the same on every topic" in line for line in remarks(comparisons))
    assert told == math.isnan(p)


def test_leaving_out_the_worst_topic_does_not_pay():
    # b is worse than a on every topic; without its worst topics its mean over its own topics is the best.
    rng = np.random.default_rng(0)
    a = np.concatenate([rng.uniform(0.02, 0.04, 12), rng.uniform(0.8, 0.9, 6)])
    b = a + rng.uniform(0.01, 0.02, 18)
    b[12:] = np.nan
    c = a + np.tile([0.002, -0.002], 9)
    scores = make_scores([[a], [b], [c]], (DOWN,))
    assert scores.mean(1, 0).value < scores.mean(0, 0).value
    comparisons = compare_with_baseline(scores, "a")
    silent, complete = comparisons.rows
    assert silent.difference == pytest.approx((b - a)[:12].mean())
    assert silent.mean == pytest.approx(b[:12].mean())
    assert silent.baseline_mean == pytest.approx(a[:12].mean())
    assert (silent.verdict, silent.statement) == ("worse", "worse on 12 common topics")
    assert (silent.incomplete, complete.incomplete) == (("b",), ())
    assert f"{DOWN}: incomplete runs, compared on common topics only: b" in remarks(comparisons)
    # An incomplete baseline is named too, and a verdict against it says how many topics it rests on.
    against = compare_with_baseline(scores, "b").rows
    assert [row.incomplete for row in against] == [("b",), ("b",)]
    assert {row.statement for row in against} == {"better on 12 common topics"}
    cells = [row[-1] for row in summary_table(comparisons).rows]
    assert cells == ["baseline", "worse on 12 common topics, incomplete", ""]
    assert summary_table(compare_with_baseline(scores, "b")).rows[0][-1] == "baseline, incomplete"
    table = full_table(comparisons)
    assert [row[table.columns.index("incomplete")] for row in table.rows] == ["b", ""]
    assert [row[table.columns.index("topics")] for row in table.rows] == [12, 18]


def test_references_are_outside_the_family_of_tukey():
    scores = replace(three_runs(), statuses=("official", "official", "baseline", "reference"))
    comparisons = compare_with_baseline(scores, "a", test="tukey", resamples=200)
    b, c, d = comparisons.rows
    assert b.p == tukey_hsd(scores.values[:2, 0].T, resamples=200).p[0, 1]
    assert np.isnan([c.p, c.low, c.high, c.effect, d.p]).all()
    assert c.untested == d.untested == "the run is outside the family"
    assert "Tukey HSD over 2 runs: a, b; outside: c (baseline), d (reference)" in remarks(comparisons)
    # The baseline of the comparison is inside, whatever its status; other tests test every run.
    assert compare_with_baseline(scores, "d", test="tukey", resamples=200).families[0].runs == ("a", "b", "d")
    assert all(row.p < 1 for row in compare_with_baseline(scores, "a").rows)


def test_wilcoxons_verdict_goes_by_ranks():
    # A little better on nearly all topics, very much worse on one: the mean falls, the ranks rise.
    d = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, -5.0])
    row = compare_with_baseline(make_scores([[np.zeros(11)], [d]]), "a", test="wilcoxon", alpha=0.1).rows[0]
    assert row.difference < 0
    assert row.significant
    assert row.verdict == "better"


def test_wrong_arguments():
    scores = three_runs()
    with pytest.raises(UsageError, match="by itself"):
        compare_with_baseline(scores, "a", test="tukey", correction="holm")
    with pytest.raises(UsageError, match="ttest, wilcoxon, tukey, bootstrap"):
        compare_with_baseline(scores, "a", test="anova")
    with pytest.raises(UsageError, match="holm, bh, none"):
        compare_with_baseline(scores, "a", correction="sidak")


def test_remarks_on_sampling_error_and_targets():
    values = np.random.default_rng(0).normal(0, 0.1, (3, 2, 10))
    se = np.full(values.shape, np.nan)
    se[1, 0] = 0.05
    text = "\n".join(remarks(compare_with_baseline(make_scores(values, (UP, ZERO), se=se), "a")))
    assert "10 %" in text
    assert "nDCG@10 of b" in text
    assert "nDCG@10 of c" not in text
    assert "distances" in text


def test_scipy_is_imported_only_when_needed():
    code = (
        "import sys, fairevals.statistics.compare, fairevals.statistics.correlation; "
        "sys.exit(any(name.split('.')[0] == 'scipy' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Topic set size design: against statsmodels, published sizes, enumeration of pairs, and simulation."""

import itertools
import json
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import fairevals as fe
from fairevals.cli.main import main
from fairevals.evaluation.scores import Scores
from fairevals.measures import parse_measure
from fairevals.statistics.power import (
    anova_power,
    half_width,
    smallest,
    topic_set_sizes,
    ttest_power,
    variances,
)


def scores_of(values, measures=("nDCG@10",)):
    """Scores of values (runs, measures, topics)."""
    values = np.asarray(values, dtype=float)
    runs, _, topics = values.shape
    names = tuple(f"r{i}" for i in range(runs)), tuple(map(parse_measure, measures))
    return Scores(*names, tuple(f"q{i}" for i in range(topics)), values, values * np.nan)


def random_scores(runs=4, topics=30, seed=0):
    rng = np.random.default_rng(seed)
    values = 0.4 + 0.15 * rng.standard_normal(topics) + 0.1 * rng.standard_normal((runs, topics))
    return scores_of(values[:, None])


# Powers and sizes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", [0.1, 0.5, 1.3])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
@pytest.mark.parametrize("topics", [2, 5, 40, 300])
def test_powers_are_those_of_statsmodels(effect, alpha, topics):
    power = pytest.importorskip("statsmodels.stats.power")
    wanted = power.TTestPower().power(effect, topics, alpha)
    wanted = 1.0 if math.isnan(wanted) else wanted  # its other tail is NaN where the effect is large
    # The variance of differences is 2σ², so an effect of D/σ_t is one of D with σ² = 1/2.
    assert ttest_power(topics, effect, 0.5, alpha) == pytest.approx(wanted, abs=1e-8)
    for systems in (2, 3, 10):
        # The least variance of m means with range D is that of (−D/2, 0, …, 0, D/2); Cohen's f is its root over σ.
        means = np.zeros(systems)
        means[[0, -1]] = -effect / 2, effect / 2
        wanted = power.FTestAnovaPower().power(means.std(), systems * topics, alpha, k_groups=systems)
        assert anova_power(topics, effect, 1.0, systems, alpha) == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize(
    ("effect", "power", "alpha", "topics"),
    [
        (0.2, 0.8, 0.05, 199),
        (0.5, 0.8, 0.05, 34),
        (0.8, 0.8, 0.05, 15),
        (0.5, 0.9, 0.05, 44),
        (0.5, 0.8, 0.01, 51),
    ],
)
def test_sizes_of_the_paired_t_test_are_those_of_power_tables(effect, power, alpha, topics):
    assert smallest(lambda n: ttest_power(n, effect, 0.5, alpha) >= power) == topics


@pytest.mark.parametrize(("systems", "topics"), [(2, 64), (3, 53), (4, 45), (5, 40)])
def test_sizes_of_anova_are_cohens_for_a_medium_effect(systems, topics):
    """f = 0.25, power 0.8 at .05: Cohen's table has 64, 52, 45 and 39, rounded to nearest; these are rounded up."""
    difference = 0.25 * math.sqrt(2 * systems)  # Σ(μ_i−μ)² = D²/2 = mf²
    assert smallest(lambda n: anova_power(n, difference, 1.0, systems) >= 0.8) == topics


def test_anova_of_two_systems_is_the_t_test_of_two_samples():
    power = pytest.importorskip("statsmodels.stats.power")
    wanted = power.TTestIndPower().power(0.4, 50, 0.05)
    assert anova_power(50, 0.4, 1.0, 2) == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("topics", [2, 3, 10, 64])
def test_half_width_is_the_expected_one(topics):
    # E[s] = σ·√(2/(n−1))·Γ(n/2)/Γ((n−1)/2), as in Sakai's section on intervals.
    expectation = math.sqrt(2 / (topics - 1)) * math.exp(
        math.lgamma(topics / 2) - math.lgamma((topics - 1) / 2)
    )
    wanted = stats.t.ppf(0.975, topics - 1) * math.sqrt(2 * 0.3 / topics) * expectation
    assert half_width(topics, 0.3) == pytest.approx(wanted, rel=1e-10)


def test_smallest_is_the_first_that_is_enough():
    for least in (1, 2, 3, 4, 5, 63, 64, 65, 1000):
        assert smallest(lambda n, least=least: n >= least) == max(2, least)
    assert smallest(lambda _: False) is None


def test_tiny_and_huge_differences_end():
    found = topic_set_sizes(random_scores(), [1e-200, 1e300])
    assert [(row.ttest, row.anova, row.interval) for row in found.rows] == [(None,) * 3, (2, 2, 2)]
    assert found.remarks == ("nDCG@10: a difference of 1e-200 needs more than 1,000,000,000 topics",)


def test_simulated_experiments_reach_the_planned_power():
    """Runs with topic effects: the t-test and the interval, both paired, and ANOVA with topics of its own per run."""
    rng, residual, topic_variance, d, systems, repeats = np.random.default_rng(3), 0.02, 0.03, 0.1, 5, 4000
    within = residual + topic_variance
    n = smallest(lambda n: ttest_power(n, d, residual) >= 0.8)
    effects = rng.normal(0, math.sqrt(topic_variance), (repeats, 1, n))
    pairs = effects + rng.normal(0, math.sqrt(residual), (repeats, 2, n)) + [[0.0], [d]]
    p = stats.ttest_rel(pairs[:, 0], pairs[:, 1], axis=1).pvalue
    assert 0.78 < (p < 0.05).mean() < 0.84
    n = smallest(lambda n: half_width(n, residual) <= d)
    differences = np.diff(rng.normal(0, math.sqrt(residual), (repeats, 2, n)), axis=1)[:, 0]
    widths = stats.t.ppf(0.975, n - 1) * stats.sem(differences, axis=1)
    assert 0.9 * d < widths.mean() < 1.01 * d
    n = smallest(lambda n: anova_power(n, d, within, systems) >= 0.8)
    means = np.array([-d / 2, 0, 0, 0, d / 2])[:, None]
    samples = rng.normal(0, math.sqrt(within), (repeats, systems, n)) + means
    p = stats.f_oneway(*samples.transpose(1, 0, 2), axis=1).pvalue
    assert 0.78 < (p < 0.05).mean() < 0.84


# Variances ---------------------------------------------------------------------------------------------------


def test_twice_the_residual_is_the_mean_variance_of_differences():
    values = random_scores(5, 12).values[:, 0]
    pairs = [np.var(a - b, ddof=1) for a, b in itertools.combinations(values, 2)]
    found = variances(values)
    assert 2 * found.residual == pytest.approx(np.mean(pairs))
    assert found.within == pytest.approx(np.mean([np.var(run, ddof=1) for run in values]))


def test_residual_is_that_of_a_linear_model():
    smf = pytest.importorskip("statsmodels.formula.api")
    frame = random_scores(4, 9).frame(per_topic=True).query("topic != 'all'")
    model = smf.ols("value ~ C(run) + C(topic)", frame).fit()
    values = frame.pivot_table("value", "run", "topic").to_numpy()
    assert variances(values).residual == pytest.approx(model.mse_resid)


def test_runs_a_constant_apart_have_no_residual():
    values = np.array([0.1, 0.7, 0.3]) + np.array([[0.0], [0.1], [0.2]])
    residual, within = variances(values)
    assert residual == 0.0
    found = topic_set_sizes(scores_of(values[:, None]), 0.1)
    anova = smallest(lambda n: anova_power(n, 0.1, within, 3) >= 0.8)  # it does not pair topics
    assert [(row.ttest, row.anova, row.interval) for row in found.rows] == [(None, anova, None)]
    assert "t-test and interval undefined" in found.remarks[0]
    assert found.frame()["ttest"].isna().all()
    assert "–" in found.render()
    found = topic_set_sizes(scores_of(np.full((2, 1, 3), 0.5)), 0.1)
    assert [(row.ttest, row.anova, row.interval) for row in found.rows] == [(None,) * 3]
    assert "all numbers undefined" in found.remarks[0]


def test_common_topics_and_measures_left_out():
    values = np.stack([random_scores(3, 10, seed).values[:, 0] for seed in range(3)], axis=1)
    values[0, 1, :4] = np.nan
    values[:, 2, 1:] = np.nan  # as a measure with one value for each run
    found = topic_set_sizes(scores_of(values, ["nDCG@10", "RR", "AP"]), 0.1)
    assert [(row.measure, row.topics) for row in found.rows] == [("nDCG@10", 10), ("RR", 6)]
    alone = topic_set_sizes(scores_of(values[:, 1:2, 4:]), 0.1)
    assert found.rows[1].ttest == alone.rows[0].ttest
    assert found.remarks == (
        "RR: variances over 6 topics; on 4 others some run has no value",
        "AP: left out; all runs have a value on 1 topic, and at least 2 are needed",
    )
    with pytest.raises(fe.UsageError, match="no measure has a value on two topics"):
        topic_set_sizes(scores_of(values[:, 2:]))


def test_a_target_is_planned_for_by_the_distance_to_it():
    values = [[[1.0, -1.0, 0.5]], [[-1.0, 1.0, 0.5]]]
    found = topic_set_sizes(scores_of(values, ["Skew(attr='SEX')@10"]), 0.1)
    assert found.rows[0].residual_variance == 0
    assert topic_set_sizes(scores_of(values), 0.1).rows[0].residual_variance > 0


# Arguments, table, command -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"difference": 0}, "the difference is 0"),
        ({"difference": []}, "the difference is None"),
        ({"difference": [0.1, math.nan]}, "the difference is nan"),
        ({"difference": "x"}, "the difference is 'x'"),
        ({"difference": 10**400}, "the difference is 1000"),
        ({"power": 1}, "power is 1"),
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"systems": 1}, "systems is 1"),
        ({"systems": 2.5}, "systems is 2.5"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(fe.UsageError, match=message):
        topic_set_sizes(random_scores(), **options)


def test_fractions_are_taken_as_their_floats():
    exact = {"difference": Fraction(1, 4), "power": Fraction(3, 4), "alpha": Fraction(1, 8)}
    floats = {name: float(value) for name, value in exact.items()}
    scores = random_scores()
    assert topic_set_sizes(scores, **exact).rows == topic_set_sizes(scores, **floats).rows


def test_one_run_is_refused():
    with pytest.raises(fe.UsageError, match="there is one run"):
        topic_set_sizes(random_scores(1))


TASK = ("--task", "qrels/task.toml", "runs/bm25.run", "runs/dense.run", "runs/random.run")


def call(capsys, *words):
    code = main(["power", *words])
    return code, *capsys.readouterr()


def test_command_and_python_give_the_same(capsys, tmp_path):
    figure = tmp_path / "power.svg"
    words = (
        "--difference",
        "0.1",
        "--difference",
        "0.3",
        "--systems",
        "7",
        "--power",
        "0.9",
        "--alpha",
        "0.01",
    )
    code, out, _ = call(capsys, *TASK, *words, "--format", "json", "--figure", str(figure))
    assert code == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fe.evaluate(list(TASK[2:]), task="qrels/task.toml")
    frame = result.power([0.1, 0.3], power=0.9, alpha=0.01, systems=7)
    assert json.loads(out) == frame.to_dict("records")
    svg = figure.read_text()
    assert all(text in svg for text in ("t-test, D = 0.1", "ANOVA, D = 0.3", "nDCG@10", "power 0.9"))


def test_tables_fit_a_terminal(capsys):
    code, out, _ = call(capsys, *TASK, "-m", "nDCG@10", "-m", "AWRF(attr='ORIGIN',attention='rbp(0.8)')")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    differences = [line.split()[-4] for line in out.splitlines()[2:6]]
    assert differences == ["0.05", "0.1", "0.15", "0.2"]
    assert "for 3 runs" in out


def test_labels_are_displayed_and_names_stay_in_files(capsys, tmp_path):
    figure = tmp_path / "power.svg"
    _, table, _ = call(capsys, *TASK, "--figure", str(figure))
    assert "GFR-ERR" in table and "GFR-iRBU" in figure.read_text()
    assert "GFR(" not in table + figure.read_text()
    assert "GFR-ERR" not in call(capsys, *TASK, "--format", "csv")[1]


@pytest.mark.parametrize("style", ["csv", "tsv", "latex"])
def test_other_formats(capsys, style):
    code, out, _ = call(capsys, *TASK, "--format", style)
    assert code == 0 and "nDCG@10" in out


def test_undefined_topics_are_remarked(capsys):
    code, _, err = call(capsys, *TASK, "-m", "AWRF(attr='ORIGIN')")
    assert code == 0
    assert "variances over 20 topics; on 20 others some run has no value" in err
    with pytest.warns(UserWarning, match="variances over 20 topics"):
        fe.evaluate(list(TASK[2:]), task="qrels/task.toml", measures=["AWRF(attr='ORIGIN')"]).power()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (TASK[:3], 2, "there is one run"),
        ((*TASK, "--difference", "0"), 2, "the difference is 0.0"),
        ((*TASK, "--power", "2"), 2, "power is 2.0; expected a number between 0 and 1"),
        ((*TASK, "--figure", "out.txt"), 2, "a figure is written as .svg, .png or .pdf"),
        ((*TASK[:3], TASK[2]), 0, "undefined"),
    ],
)
def test_exit_codes(capsys, words, code, message):
    assert (found := call(capsys, *words))[0] == code
    assert message in found[2]


def test_plot_draws_one_measure(capsys):
    pytest.importorskip("matplotlib").use("agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fe.evaluate(list(TASK[2:]), task="qrels/task.toml")
        same = fe.evaluate({"a": TASK[2], "b": TASK[2]}, task="qrels/task.toml")
    axes = result.plot.power("nDCG@10", 0.1)
    assert axes.get_title() == "nDCG@10"
    curve = axes.get_lines()[0]
    row = result.power(0.1).iloc[0]
    reached = curve.get_xdata()[np.asarray(curve.get_ydata()) >= 0.8].min()
    assert row.ttest <= reached <= row.ttest + 3
    with pytest.raises(fe.UsageError, match=r"the power of nDCG@10 is undefined: .*residual variance 0"):
        same.plot.power("nDCG@10")

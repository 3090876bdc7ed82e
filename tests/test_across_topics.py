"""Measures across topics: one value per run, from the exposures of each document on all topics together."""

from __future__ import annotations

import csv
import io
import math
import pickle
from dataclasses import replace

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import fairevals as fe
from fairevals import UsageError
from fairevals.cli.main import main
from fairevals.evaluation import pieces
from fairevals.evaluation.scores import Scores
from fairevals.measures.across_topics import coverage, distance_of_shares, gini, least_exposed_share
from fairevals.statistics import across
from fairevals.statistics.inference import mean_interval, t_interval
from fairevals.training.objectives import WeightedMeasure, parse_utility

pytestmark = pytest.mark.filterwarnings("ignore::fairevals.FairevalsWarning")

DOCS = [f"d{d:02}" for d in range(12)]
SIDES = {doc: ("left" if d % 3 else "right") for d, doc in enumerate(DOCS) if d != 5}
TOPIC_SIDES = {"odd": ["t1", "t3", "t5"], "even": ["t2", "t4", "t6"]}
MEASURES = [
    *("Gini@4", "Coverage@4", "MMF@4", "MMF(ratio=0.25)", "L2(attr='SIDE')@5", "IAA(amortised=True)@4"),
    *("JME@4", "JME(level='AI')@4", "JME(level='GI',by='PARITY')@4", "JME(level='IG',attr='SIDE')@4"),
    *("JME(level='GG',attr='SIDE',by='PARITY')@4", "JME(level='AG',attr='SIDE')"),
]


def example(seed=0, topics=6):
    """A run and qrels whose topics share documents; some documents of the run are judged on other topics only."""
    rng = np.random.default_rng(seed)
    names = [f"t{t}" for t in range(1, topics + 1)]
    qrels = {t: {d: int(rng.integers(3)) for d in rng.permutation(DOCS)[:7]} for t in names}
    for t in names:
        qrels[t][next(iter(qrels[t]))] = 2  # something is relevant
    run = {t: {d: float(rng.normal()) for d in rng.permutation([*DOCS, "never"])[:6]} for t in names}
    return run, qrels


def evaluated(run, qrels, measures=MEASURES, policy="ranking", jobs=1, **task):
    groups = {"SIDE": fe.Attribute.of("SIDE", SIDES, unmapped="skip")}
    known = fe.Task(topic_groups={"PARITY": TOPIC_SIDES}, **task)
    return fe.evaluate(run, qrels, measures, task=known, groups=groups, policy=policy, jobs=jobs)


def values(*args, **options):
    result = evaluated(*args, **options)
    return dict(zip(map(str, result.measures), result.pivot().to_numpy()[0].tolist(), strict=True))


# Slow versions, from tables of exposures {topic: {doc: exposure}}


def exposures(run, cutoff=None):
    table = {}
    for topic, scores in run.items():
        ranking = sorted(scores, key=lambda doc: -scores[doc])[:cutoff]
        table[topic] = {doc: 1 / math.log2(rank + 1) for rank, doc in enumerate(ranking, 1)}
    return table


def candidate_sets(run, qrels, rule):
    return {t: set(qrels[t]) | (set(run[t]) if rule == "retrieved" else set()) for t in run}


def summed(table, documents):
    return [sum(row.get(doc, 0.0) for row in table.values()) for doc in sorted(documents)]


def slow_gini(x):
    """Half the relative mean difference of all pairs."""
    return sum(abs(a - b) for a in x for b in x) / (2 * len(x) * sum(x))


def slow_iaa(table, qrels):
    deserved, got = {}, {}
    for topic, row in table.items():
        grades = {d: max(g, 0) for d, g in qrels[topic].items()}
        for doc in {*row, *grades}:
            got[doc] = got.get(doc, 0) + row.get(doc, 0) / sum(row.values())
            deserved[doc] = deserved.get(doc, 0) + grades.get(doc, 0) / sum(grades.values())
    return sum(abs(got[d] - deserved[d]) for d in got) / len(table)


def slow_l2(table, qrels):
    shown, relevant = {"left": 0.0, "right": 0.0}, {"left": 0.0, "right": 0.0}
    for topic, row in table.items():
        for doc, side in SIDES.items():
            shown[side] += row.get(doc, 0)
            relevant[side] += qrels[topic].get(doc, 0)
    parts = [shown[s] / sum(shown.values()) - relevant[s] / sum(relevant.values()) for s in shown]
    return math.sqrt(sum(part**2 for part in parts))


def slow_ideal(grades, documents, cutoff):
    """Mean attention of the ranks of each grade."""
    order = sorted(documents, key=lambda doc: -grades.get(doc, 0))
    weights = [
        1 / math.log2(k + 1) if cutoff is None or k <= cutoff else 0.0 for k in range(1, len(order) + 1)
    ]
    ideal = {}
    for doc in order:
        ranks = [k for k, other in enumerate(order) if grades.get(other, 0) == grades.get(doc, 0)]
        ideal[doc] = sum(weights[k] for k in ranks) / len(ranks)
    return ideal


def slow_jme(level, run, qrels, rule, cutoff):
    table, sets = exposures(run, cutoff), candidate_sets(run, qrels, rule)
    documents = sorted(set().union(*sets.values()))
    topics = sorted(run)
    D = np.zeros((len(topics), len(documents)))
    for i, t in enumerate(topics):
        ideal = slow_ideal(qrels[t], sets[t], cutoff)
        for j, doc in enumerate(documents):
            D[i, j] = table[t].get(doc, 0) - ideal.get(doc, 0)
    rows = {
        "I": [[i] for i in range(len(topics))],
        "G": [[i for i, t in enumerate(topics) if t in names] for names in TOPIC_SIDES.values()],
        "A": [list(range(len(topics)))],
    }[level[0]]
    columns = {
        "I": [[j] for j in range(len(documents))],
        "G": [[j for j, d in enumerate(documents) if SIDES.get(d) == side] for side in ("left", "right")],
    }[level[1]]
    cells = [np.mean([D[i, j] for i in r for j in c]) ** 2 for r in rows for c in columns]
    return float(np.mean(cells))


def slow_values(run, qrels, rule):
    sets = candidate_sets(run, qrels, rule)
    documents = set().union(*sets.values())
    four, everything = (sorted(summed(exposures(run, cutoff), documents)) for cutoff in (4, None))
    n = len(documents)
    expected = {
        "Gini@4": slow_gini(four),
        "Coverage@4": len({d for row in exposures(run, 4).values() for d in row if d in documents}) / n,
        "MMF@4": sum(four[: n // 2]) / sum(four),
        "MMF(ratio=0.25)": sum(everything[: n // 4]) / sum(everything),
        "L2(attr='SIDE')@5": slow_l2(exposures(run, 5), qrels),
        "IAA(amortised=True)@4": slow_iaa(exposures(run, 4), qrels),
    }
    for text in MEASURES[6:]:
        measure = fe.parse_measure(text)
        expected[text] = slow_jme(measure.level, run, qrels, rule, measure.cutoff)
    return expected


@pytest.mark.parametrize("rule", ["judged", "retrieved"])
@pytest.mark.parametrize("seed", range(6))
def test_values_are_those_of_loops(seed, rule):
    run, qrels = example(seed)
    assert values(run, qrels, candidates=rule) == pytest.approx(slow_values(run, qrels, rule), abs=1e-12)


def test_exposure_under_plackett_luce_is_the_exact_one():
    run, qrels = example(3)
    table: dict = {t: {} for t in run}
    for row in fe.exposure(run, qrels, policy="pl", cutoff=4).itertuples():
        table[row.topic][row.doc] = row.exposure
    judged = set().union(*(qrels[t] for t in run))
    found = values(run, qrels, ["Gini@4", "L2(attr='SIDE')@4", "IAA(amortised=True)@4"], policy="pl")
    assert found["Gini@4"] == pytest.approx(slow_gini(summed(table, judged)), abs=1e-12)
    assert found["L2(attr='SIDE')@4"] == pytest.approx(slow_l2(table, qrels), abs=1e-12)
    assert found["IAA(amortised=True)@4"] == pytest.approx(slow_iaa(table, qrels), abs=1e-12)


def test_a_standard_error_goes_with_exposures_that_are_sampled():
    run, qrels = example(1)
    exact, sampled = "Gini@4", "Gini(attention='cascade(0.9,0.5)')@4"
    frame = evaluated(run, qrels, [exact, sampled], policy="pl").frame().set_index("measure")
    assert math.isnan(frame.se[exact])
    other = fe.evaluate(run, qrels, sampled, policy="pl", seed=5, samples=20_000).frame()
    assert 0 < frame.se[sampled] < 0.05
    assert abs(frame.value[sampled] - other.value[0]) < 5 * frame.se[sampled]


def test_l2_of_several_rankings_of_each_query_is_that_of_their_sum():
    """As TREC 2019 and 2020 sum over all rankings of a sequence, in which each query occurs equally often."""
    rng = np.random.default_rng(0)
    _, qrels = example(0)
    rows, total = [], {}
    for topic in qrels:
        total[topic] = {}
        for sample in range(3):
            for rank, doc in enumerate(rng.permutation(DOCS)[:5]):
                rows.append((topic, doc, -rank, str(sample)))
                total[topic][doc] = total[topic].get(doc, 0) + 1 / math.log2(rank + 2)
    frame = pd.DataFrame(rows, columns=["topic", "doc", "score", "sample"])
    found = values(frame, qrels, ["L2(attr='SIDE')"], policy="samples")
    assert found["L2(attr='SIDE')"] == pytest.approx(slow_l2(total, qrels), abs=1e-12)


# Worked by hand


def test_functions_of_arrays_by_hand():
    four = np.array(4)
    assert gini(np.array([4.0, 1.0, 3.0, 2.0]), four) == pytest.approx(0.25)  # as LensKit's gini
    assert gini(np.array([0.0, 9.0]), four) == pytest.approx(0.75)
    assert gini(np.full(4, 0.7), four) == pytest.approx(0, abs=1e-15)
    assert coverage(np.array([0.0, 1e-30, 3.0, 2.0]), four) == 0.75
    assert least_exposed_share(np.array([4.0, 1.0, 3.0, 2.0]), four, 0.5) == pytest.approx(0.3)
    assert least_exposed_share(np.array([4.0, 1.0, 3.0]), np.array(3), 0.5) == pytest.approx(1 / 8)
    assert (
        least_exposed_share(np.array([4.0]), four, 0.5) == 0.0
    )  # the two least exposed are not shown at all
    assert distance_of_shares(np.array([1.0, 0.0]), np.array([0.0, 2.0])) == pytest.approx(math.sqrt(2))
    assert distance_of_shares(np.array([2.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0])) == 0.0


def test_joint_exposure_of_two_halves():
    """Rows (½, ½, 0, 0) twice and (0, 0, ½, ½) twice against ¼ everywhere."""
    docs = {"1": "ab", "2": "ab", "3": "cd", "4": "cd"}
    run = {t: {d: -float(i) for i, d in enumerate(pair)} for t, pair in docs.items()}
    qrels = {t: dict.fromkeys("abcd", 1) for t in docs}
    task = fe.Task(topic_groups={"HALF": {"first": ["1", "2"], "second": ["3", "4"]}})
    groups = {"SIDE": {"a": "x", "b": "x", "c": "y", "d": "y"}}
    levels = ("II", "IG", "GI", "GG", "AI", "AG")
    measures = [fe.JME(level=lv, attr="SIDE", by="HALF", attention=[0.5, 0.5]) for lv in levels]
    found = fe.evaluate(run, qrels, measures, task=task, groups=groups).frame().value.tolist()
    assert found == [0.0625] * 4 + [0.0] * 2


@pytest.mark.parametrize("name", ["Gini", "MMF", "IAA(amortised=True)", "L2(attr='SIDE')"])
def test_undefined_without_exposure(name):
    result = evaluated(
        {"t1": {"never": 1.0}, "t2": {"never": 2.0}}, {"t1": {"d01": 1}, "t2": {"d01": 1}}, [name]
    )
    if name.startswith("IAA"):  # the document gets attention, and deserves none
        assert result.scores.mean(0, 0).value == 2.0
        return
    mean = result.scores.mean(0, 0)
    assert math.isnan(mean.value)
    assert (mean.topics, mean.undefined) == (0, 2)
    low, high = mean_interval(result.scores, 0, 0)[0]
    assert math.isnan(low) and math.isnan(high)


def test_undefined_cases_of_the_functions():
    nothing = np.zeros((1, 0)), np.array([0])
    assert np.isnan([gini(*nothing), coverage(*nothing), least_exposed_share(*nothing, 0.5)]).all()
    assert np.isnan(gini(np.zeros(3), np.array(3)))
    assert np.isnan(least_exposed_share(np.ones(1), np.array(1), 0.5))  # half a document is none
    assert np.isnan(distance_of_shares(np.ones(2), np.zeros(2)))


def test_a_run_that_leaves_out_topics_is_incomplete():
    run, qrels = example(0)
    short = {t: run[t] for t in list(run)[:4]}
    result = evaluated({"whole": run, "short": short}, qrels, ["Gini@4", "nDCG"])
    assert result.scores.lacking.tolist() == [[0, 0], [2, 0]]
    assert result.scores.mean(1, 0).topics == 4
    part = {t: qrels[t] for t in short}
    assert result.scores.mean(1, 0).value == values(short, part, ["Gini@4"])["Gini@4"]
    assert "†" in str(result)


# Invariance


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_gini_and_mmf_do_not_depend_on_scale_or_order(exposure, factor):
    x = np.array(exposure) + 1e-3
    n = np.array(x.size)
    for of in (gini, lambda e, n: least_exposed_share(e, n, 0.5)):
        np.testing.assert_allclose(of(x * factor, n), of(x[::-1], n), rtol=1e-9, atol=1e-12)
        # Documents without exposure may be left out.
        np.testing.assert_allclose(of(np.append(x, [0.0, 0.0]), n + 2), of(x, n + 2), rtol=1e-9, atol=1e-12)


def test_equal_exposures_have_a_gini_of_0_and_every_candidate_is_covered():
    run = {"t1": {"a": 2.0, "b": 1.0}, "t2": {"b": 2.0, "a": 1.0}}
    qrels = {t: {"a": 1, "b": 0} for t in run}
    found = values(run, qrels, ["Gini", "Coverage", "MMF"])
    assert found == pytest.approx({"Gini": 0.0, "Coverage": 1.0, "MMF": 0.5}, abs=1e-15)


def test_coverage_grows_with_the_cutoff():
    run, qrels = example(2)
    grown = list(values(run, qrels, [f"Coverage@{k}" for k in range(1, 8)]).values())
    assert grown == sorted(grown)
    assert grown[0] < grown[-1]


@pytest.mark.parametrize("seed", range(3))
def test_amortised_inequity_is_never_above_the_mean_over_topics(seed):
    run, qrels = example(seed)
    both = values(run, qrels, ["IAA@4", "IAA(amortised=True)@4"])
    assert both["IAA(amortised=True)@4"] <= both["IAA@4"]


def test_names_and_order_of_topics_do_not_matter():
    run, qrels = example(4)
    first = [text for text in MEASURES if "by=" not in text]
    names = dict(zip(run, ["z", "y", "x", "10", "9", "w"], strict=True))
    renamed = [{names[t]: table[t] for t in reversed(run)} for table in (run, qrels)]
    assert values(*renamed, measures=first) == pytest.approx(values(run, qrels, measures=first), abs=1e-14)


@pytest.mark.parametrize("policy", ["ranking", "pl"])
def test_a_run_in_parts_has_the_same_bits(tmp_path, monkeypatch, policy):
    monkeypatch.setattr(pieces, "LEAST_BYTES", 40)
    run, qrels = example(5)
    path = tmp_path / "a.run"
    lines = [f"{t} Q0 {d} 1 {s!r} a\n" for t in run for d, s in sorted(run[t].items(), key=lambda i: -i[1])]
    path.write_text("".join(lines))
    names = [*MEASURES, "Gini(attention='cascade(0.9,0.5)')"]
    alone = evaluated(path, qrels, names, policy)
    parts = evaluated(path, qrels, names, policy, jobs=2)
    objects = evaluated({"a": run}, qrels, names, policy)
    for other in (parts, objects):
        assert other.frame().drop(columns="run").equals(alone.frame().drop(columns="run"))
    for m in range(len(names)):
        assert repr(mean_interval(alone.scores, 0, m)) == repr(mean_interval(parts.scores, 0, m))


# Intervals and comparisons


@pytest.mark.parametrize("text", MEASURES)
def test_a_resample_has_the_value_of_topics_that_occur_repeatedly(text, monkeypatch):
    monkeypatch.setattr(across, "ACROSS_RESAMPLES", 8)
    run, qrels = example(6)
    scores = evaluated(run, qrels, [text]).scores
    drawn = across.resampled(scores, 0, (0,), scores.defined[0, 0], seed=3)[0]
    rng, checked = np.random.default_rng(3), 0
    for value in drawn.tolist():
        sample = [f"t{t + 1}" for t in rng.integers(0, 6, size=6).tolist()]
        copies = {f"{t}-{i}": t for i, t in enumerate(sample)}
        sides = {"odd": [c for c, t in copies.items() if t in TOPIC_SIDES["odd"]]}
        sides["even"] = [c for c in copies if c not in sides["odd"]]
        groups = {name: members for name, members in sides.items() if members}
        twice = [{c: table[t] for c, t in copies.items()} for table in (run, qrels)]
        lacks = set().union(*qrels.values()) - set().union(*twice[1].values())
        if "JME" in text and lacks:  # its table keeps the candidates of all topics
            continue
        attribute = {"SIDE": fe.Attribute.of("SIDE", SIDES, unmapped="skip")}
        task = fe.Task(topic_groups={"PARITY": groups})
        expected = fe.evaluate(*twice, [text], task=task, groups=attribute).frame().value[0]
        assert value == pytest.approx(expected, abs=1e-12)
        checked += 1
    assert checked > 2


def test_an_interval_surrounds_the_value_and_narrows_with_more_topics():
    widths = []
    for topics in (10, 40):
        scores = evaluated(*example(0, topics), ["Gini@4", "L2(attr='SIDE')@4"]).scores
        for m in range(2):
            (low, high), spread = mean_interval(scores, 0, m)
            assert low < scores.mean(0, m).value < high
            assert high - low == pytest.approx(2 * stats.t.ppf(0.975, topics - 1) * spread.total, rel=0.15)
            assert math.isnan(spread.sampling)
            widths.append(high - low)
    assert widths[2] < widths[0]
    assert widths[3] < widths[1]


@pytest.mark.parametrize("topics", [2, 3, 8])
def test_the_bootstrap_of_a_mean_over_few_topics_is_the_t_test(topics):
    """Of what is a mean over topics, it has the level of the test and the interval of the t distribution."""
    rng, repeats = np.random.default_rng(topics), 400
    weights = rng.multinomial(topics, np.full(topics, 1 / topics), size=1000) / topics
    samples = rng.normal(size=(repeats, topics))
    rejected, ratios = 0, []
    for sample in samples:
        deviations = across.deviations_of(weights @ sample, topics)
        rejected += across.bootstrap_p(sample.mean(), deviations, topics) < 0.05
        low, high, se = across.symmetric_interval(sample.mean(), deviations, topics, 0.95)
        ratios.append((high - low) / np.subtract(*t_interval(sample)[::-1]))
        assert se == pytest.approx(stats.sem(sample), rel=0.15)
    assert rejected / repeats < 0.08
    assert 0.8 < np.mean(ratios) < 1.25


def test_two_topics_show_no_difference_of_gini():
    """All resamples of one topic alone have the same Gini, so that they hardly vary."""
    run, qrels = example(0, 2)
    result = evaluated({"one": run, "two": example(1, 2)[0]}, qrels, ["Gini@4"])
    for row in (*result.compare("one").rows, *result.compare(all_pairs=True).rows):
        assert row.difference and row.p > 0.2 and row.low < 0 < row.high


def test_runs_that_differ_alike_in_every_resample_have_no_letters():
    run, qrels = {"a": 3.0, "b": 2.0, "c": 1.0}, {"a": 1, "b": 0, "c": 2}
    turned = {doc: -score for doc, score in run.items()}
    runs = {name: {f"t{t}": ranked for t in range(4)} for name, ranked in (("one", run), ("two", turned))}
    result = evaluated(runs, {f"t{t}": qrels for t in range(4)}, ["JME"])
    pairs = result.compare(all_pairs=True)
    assert math.isnan(pairs.rows[0].p) and not any(pairs.groups[0].letters)
    assert "no letters: the differences are the same in every resample" in str(pairs)


def test_comparisons_are_paired_and_say_how_they_were_made():
    run, qrels = example(0, 20)
    other, _ = example(1, 20)
    fixed = {t: {d: -float(rank) for rank, d in enumerate(DOCS)} for t in run}
    result = evaluated(
        {"base": run, "same": run, "other": other, "fixed": fixed}, qrels, ["Gini@4", "nDCG@4"]
    )
    for test in ("ttest", "tukey", "wilcoxon", "bootstrap"):
        compared = result.compare("base", test=test)
        same, _, last = compared.of("Gini@4")
        assert (same.difference, same.p) == (0, 1)
        assert (same.low < 0 < same.high) if test == "tukey" else (same.low == same.high == 0)
        assert last.verdict == "worse" and last.low > 0
        assert last.difference == pytest.approx(last.mean - last.baseline_mean)
        frame = compared.frame().set_index("measure")
        across = "tukey" if test == "tukey" else "bootstrap"
        assert set(frame.test["Gini@4"]) == {across} and set(frame.test["nDCG@4"]) == {test}
        assert set(frame.correction) == {"none" if test == "tukey" else "holm"}
        method = "Tukey HSD by" if test == "tukey" else "paired"
        assert f"Gini@4: one value for all topics together: {method} bootstrap over common topics" in str(
            compared
        )
    back = result.compare("fixed").of("Gini@4")[0]
    assert (back.difference, back.p) == (-last.difference, last.p)
    alone = evaluated({"base": run, "fixed": fixed}, qrels, ["Gini@4"]).compare("base").rows[0]
    assert (alone.low, alone.high) == (last.low, last.high)


def test_all_pairs_and_letters_are_by_bootstrap_over_topics():
    """One test for all pairs: with two runs it is the paired bootstrap, with more it is never less careful."""
    run, qrels = example(0, 20)
    fixed = {t: {d: -float(rank) for rank, d in enumerate(DOCS)} for t in run}
    runs = {"base": run, "same": run, "other": example(1, 20)[0], "fixed": fixed}
    result = evaluated(runs, qrels, ["Gini@4", "Coverage@4"])
    pairs = result.compare(all_pairs=True)
    letters = dict(zip(runs, pairs.groups[0].letters, strict=True))
    assert letters["base"] == letters["same"] and not set(letters["base"]) & set(letters["fixed"])
    assert len(pairs.of("Gini@4")) == 6 and {row.topics for row in pairs.rows} == {tuple(run)}
    for row in pairs.of("Gini@4"):
        two = evaluated({name: runs[name] for name in (row.baseline, row.run)}, qrels, ["Gini@4"])
        alone, hsd = two.compare(row.baseline).rows[0], two.compare(all_pairs=True).rows[0]
        assert hsd.p == alone.p <= row.p
        assert (row.difference, row.spread) == (alone.difference, alone.spread)
        assert (row.low > 0 or row.high < 0) == row.significant
    assert "by bootstrap: Gini@4, Coverage@4" in result.render(ci=True)
    assert "] a" in result.render(ci=True)


def test_a_comparison_is_over_common_topics():
    run, qrels = example(0)
    short = {t: run[t] for t in list(run)[1:]}
    row = evaluated({"base": run, "short": short}, qrels, ["Gini@4"]).compare("base").rows[0]
    assert (row.difference, row.p, row.incomplete, row.undefined) == (0.0, 1.0, ("short",), ("t1",))
    one = {"t1": run["t1"]}
    row = evaluated({"base": run, "one": one}, qrels, ["Gini@4"]).compare("base").rows[0]
    assert math.isnan(row.p) and row.untested == "at least two common topics are needed"


@pytest.mark.parametrize("test", ["ttest", "tukey"])
def test_a_measure_without_a_value_on_the_common_topics_is_not_tested(test):
    """Each run has a relevant document on the topic that the other leaves out, and none on the two that they share."""
    qrels = {t: {"d00": int(t in "14"), "d01": 0} for t in "1234"}
    runs = {name: {t: {"d00": 2.0, "d01": 1.0} for t in some} for name, some in (("a", "123"), ("b", "234"))}
    row = evaluated(runs, qrels, ["L2(attr='SIDE')"]).compare("a", test=test).rows[0]
    assert math.isnan(row.p) and len(row.topics) == 2
    assert row.untested == "the measure is undefined on the common topics"


def test_groups_of_topics_have_the_value_of_their_topics_alone():
    run, qrels = example(2)
    table = evaluated(run, qrels, ["Gini@4", "JME@4"]).by("PARITY")
    for group, topics in TOPIC_SIDES.items():
        alone = values({t: run[t] for t in topics}, {t: qrels[t] for t in topics}, ["Gini@4", "JME@4"])
        assert table[group].tolist() == list(alone.values())


# Tables, files, other doors


@pytest.fixture
def files(tmp_path):
    run, qrels = example(0)
    (tmp_path / "q.qrels").write_text("".join(f"{t} 0 {d} {g}\n" for t in qrels for d, g in qrels[t].items()))
    for name, scores in {"one": run, "two": example(1)[0]}.items():
        lines = [f"{t} Q0 {d} 1 {s!r} {name}\n" for t in scores for d, s in scores[t].items()]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    return tmp_path


def test_the_command_line_prints_one_row_for_a_run(files, capsys):
    runs = [str(files / "one.run"), str(files / "two.run")]
    asked = ["--qrels", str(files / "q.qrels"), *runs, "-m", "Gini@4", "-m", "nDCG@4"]
    assert main(["score", *asked, "-q", "--format", "csv", "--jobs", "2"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    gini_rows = [row for row in rows if row["measure"] == "Gini@4"]
    assert [(row["run"], row["topic"], row["se"]) for row in gini_rows] == [
        ("one", "all", ""),
        ("two", "all", ""),
    ]
    result = fe.evaluate(runs, files / "q.qrels", ["Gini@4", "nDCG@4"])
    assert [float(row["value"]) for row in gini_rows] == result.pivot()["Gini@4"].tolist()
    assert sum(row["measure"] == "nDCG@4" for row in rows) == 14
    assert list(result.pivot(per_topic=True).columns) == ["nDCG@4"]
    assert result.render(per_topic=True).count("–") == 12  # the topics' cells of Gini
    assert main(["compare", *asked, "--baseline", "one", "--test", "tukey"]) == 0
    assert "Tukey HSD by bootstrap over common topics" in capsys.readouterr().out


@pytest.mark.parametrize("measures", [["Gini@4", "nDCG@4", "IAA@4"], ["Gini@4", "Coverage@4"]])
def test_the_report_has_them_where_it_can(files, measures):
    result = fe.evaluate([files / "one.run", files / "two.run"], files / "q.qrels", measures)
    page = result.report(files / "report").read_text(encoding="utf-8")
    interval = mean_interval(result.scores, 0, 0)[0]
    assert f"{interval.low:.4f}" in page.replace("−", "-") or f"{interval.low:.3f}" in page
    assert "Gini@4" in page
    drawn = {path.name.split(".")[0] for path in (files / "report" / "figures").iterdir()}
    assert ("topics" in drawn) == ("nDCG@4" in measures)
    if "nDCG@4" in measures:
        assert result.correlate()[["measure", "other"]].to_numpy().tolist() == [["nDCG@4", "IAA@4"]]
        with pytest.raises(UsageError, match="Gini@4 has one value for all topics, and none by topic"):
            result.plot.topics("Gini@4")
    else:
        with pytest.raises(UsageError, match="with values by topic"):
            result.correlate()


def test_a_result_can_be_pickled():
    run, qrels = example(0)
    scores: Scores = pickle.loads(pickle.dumps(evaluated(run, qrels).scores))
    assert scores.mean(0, 0).value == evaluated(run, qrels).scores.mean(0, 0).value
    assert replace(scores, measures=scores.measures[:1]).mean(0, 0).value == scores.mean(0, 0).value


def test_where_there_is_no_place_for_them_it_is_said():
    run, qrels = example(0)
    with pytest.raises(
        UsageError, match=r"Gini is not a measure of single rankings; use fairevals\.evaluate"
    ):
        fe.Gini()([1, 0])
    with pytest.raises(UsageError, match=r"IAA\(amortised=True\) cannot be trained for: it has one value"):
        WeightedMeasure(-1.0, fe.IAA(amortised=True))
    with pytest.raises(UsageError, match="Coverage cannot be trained for"):
        parse_utility("Coverage")
    with pytest.raises(UsageError, match="Gini@3 has one value for all topics together, which ir-measures"):
        ir_measures.calc_aggregate([ir_measures.Gini @ 3], qrels, run)
    for wrong, says in [
        ("JME(level='GI')", r"JME\(level='GI'\) requires by='…'"),
        ("JME(level='AG')", r"JME\(level='AG'\) requires attr='…'"),
        ("JME(level='XX')", "one of 'II', 'IG'"),
        ("MMF(ratio=2)", "ratio=2"),
        ("L2", "attr="),
        ("JME(level='GI',by='TYPE')", "unknown topic groups 'TYPE'"),
        ("JME(level='IG',attr='AGE')", "unknown attribute 'AGE'"),
    ]:
        with pytest.raises(UsageError, match=says):
            evaluated(run, qrels, [wrong])

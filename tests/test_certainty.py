"""What samples and quadrature cannot know: no value beyond its bound, no standard error of 0 without certainty."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairevals import InputError, PlackettLuce
from fairevals.cli.main import main
from fairevals.collection.groups import Attribute
from fairevals.evaluation import Plan, load_collection, score
from fairevals.io.specs import PolicySpec


def evaluated(run, qrels, measures, groups=None, **policy):
    collection = load_collection(None, qrels, groups)
    plan = Plan.of(collection, measures, PolicySpec(kind="pl", **policy))
    return score([{"t": dict(run)}] if not isinstance(run, list) else run, collection, plan)


@given(
    st.lists(st.tuples(st.floats(-300, 300), st.integers(0, 3)), min_size=1, max_size=12),
    st.sampled_from(["", "@1", "@3"]),
)
def test_no_expectation_is_beyond_the_best_ranking(documents, cutoff):
    """The quadrature alone gave an nDCG of 1.0000000000003457."""
    run = {f"d{i}": s for i, (s, _) in enumerate(documents)}
    qrels = {"t": {f"d{i}": g for i, (_, g) in enumerate(documents)} | {"other": 1}}
    measures = [f"nDCG{cutoff}", f"nDCG(attention='trecfair'){cutoff}", f"P{cutoff or '@5'}", "RBP"]
    values = evaluated(run, qrels, measures).values[0, :, 0]
    grades = sorted(qrels["t"].items(), key=lambda item: -item[1])
    best = {doc: -float(rank) for rank, (doc, _) in enumerate(grades) if doc in run}
    collection = load_collection(None, qrels)
    bound = score([{"t": best}], collection, Plan.of(collection, measures)).values[0, :, 0]
    assert np.all(values <= bound), (values - bound).tolist()
    assert np.all((values <= 1) & (values >= 0))


@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=10),
    st.sampled_from(["log2", "reciprocal", "trecfair", "rbp(0.5)", (0.2, 1.0, 0.5)]),
    st.sampled_from([None, 1, 3]),
)
def test_no_exposure_is_beyond_the_weights(scores, attention, k):
    exposure = PlackettLuce([*scores, -np.inf]).exposure(attention, k=k).value
    names = ["log2", "reciprocal", "trecfair", "rbp(0.5)"]
    ranks = np.arange(1, len(scores) + 1)
    weights = {
        "log2": 1 / np.log2(1 + ranks),
        "reciprocal": 1 / ranks,
        "trecfair": 1 / np.log2(np.maximum(ranks, 2)),
        "rbp(0.5)": 0.5 ** (ranks - 1.0),
    }.get(attention if attention in names else "", np.array([0.2, 1.0, 0.5] + [0.0] * 10)[: len(scores)])
    weights = np.where(ranks <= (k or len(scores)), weights, 0.0)
    assert exposure[-1] == 0
    assert np.all(exposure[:-1] <= weights.max())
    assert np.all(exposure[:-1] >= weights.min())


RARE = math.log(1e-5)


def test_samples_that_agree_are_no_certainty():
    """The document of the rare group is first with probability 1e-5: 50 samples never show it."""
    groups = {"A": Attribute.of("A", {"a": "x", "b": "y"}, kind="nominal", target=[0.5, 0.5])}
    run = [{"t": {"a": 0.0, "b": RARE}}]
    scores = evaluated(run, {"t": {"a": 0, "b": 1}}, ["ERR@1", "GF(attr='A')@1"], groups, samples=50)
    collection = load_collection(None, {"t": {"a": 0, "b": 1}}, groups)
    plan = Plan.of(collection, ["ERR@1", "GF(attr='A')@1"])
    b_first = score([{"t": {"a": 0.0, "b": 1.0}}], collection, plan).values[0, :, 0]
    truth = b_first * 1e-5 / (1 + 1e-5)
    values, se = scores.values[0, :, 0], scores.se[0, :, 0]
    assert np.all(values == 0)
    assert np.all(truth > 0)
    assert np.all(np.abs(values - truth) <= 1.96 * se * (1 + 1e-9))
    assert np.all(se <= 1e-5), "no more than all other rankings together"


def test_the_rule_of_three():
    scores = evaluated({"a": 0.0, "b": -4.0}, {"t": {"a": 0, "b": 1}}, ["ERR@1"], samples=3)
    assert scores.values[0, 0, 0] == 0
    assert scores.se[0, 0, 0] == pytest.approx((1 / (1 + math.exp(4))) / 1.96)


def test_a_rare_ranking_beside_common_ones():
    """The samples show two values that are nearly the same; a third, far from them, is too rare to come up."""
    grades = {"a": 10, "b": 0, "x": 1, "y": 0}
    run = {"a": 0.0, "b": -8.1, "x": -60.0, "y": -60.0}
    scores = evaluated(run, {"t": grades}, ["ERR"], samples=1000)
    value, se = scores.values[0, 0, 0], scores.se[0, 0, 0]
    assert abs(value - 0.998878) <= 1.96 * se
    assert se == pytest.approx((1 - 1 / (1 + math.exp(-8.1))) / 1.96, rel=1e-3)


def test_rankings_that_were_all_seen_need_no_bound():
    """Few values come up, but there are no others: the standard deviation of the samples tells the error."""
    run, qrels = {"a": 1.0, "b": 0.0, "c": 0.0}, {"t": {"a": 0, "b": 1, "c": 0}}
    drawn = [evaluated(run, qrels, ["RR"], samples=400, seed=s) for s in range(60)]
    spread = np.std([scores.values[0, 0, 0] for scores in drawn])
    assert drawn[0].se[0, 0, 0] == pytest.approx(spread, rel=0.3)


@pytest.mark.parametrize(
    ("run", "grades"),
    [
        ({"a": 1.0}, {"a": 1}),
        ({"a": 1.0, "b": 1.0, "c": 0.0}, {"x": 1}),
        ({"a": 1.0, "b": 0.5}, {"a": 1, "b": 1}),
    ],
)
def test_a_value_that_every_ranking_has_is_certain(run, grades):
    scores = evaluated(run, {"t": grades}, ["ERR", "RR", "AP"], samples=10)
    assert np.all(scores.se[0, :, 0] == 0)


def test_sets_are_certain():
    """Two documents in any order: measures of the set have one value."""
    measures = ["NumRet", "R@10", "SetP", "Judged@10", "Success@5"]
    scores = evaluated({"a": 1.0, "b": 1.0}, {"t": {"a": 2, "b": 0}}, measures, samples=10)
    assert np.all(scores.se[0, :, 0] == 0)


def test_sampled_exposure_of_documents_never_drawn():
    policy = PlackettLuce([0.0, RARE, -np.inf])
    estimate = policy.exposure("log2", k=1, method="mc", samples=40, rng=0)
    exact = policy.exposure("log2", k=1).value
    assert estimate.value[1] == 0 < exact[1]
    assert np.all(np.abs(estimate.value - exact) <= 1.96 * estimate.se * (1 + 1e-6))
    assert estimate.se[2] == 0
    for attention in ((0.0, 1.0), (0.5, 1000.0)):  # the largest weight is not the first
        estimate = policy.exposure(attention, method="mc", samples=40, rng=0)
        error = np.abs(estimate.value - policy.exposure(attention).value)
        assert np.all(error <= 1.96 * estimate.se * (1 + 1e-6))
    sampled = policy.exposure("cascade", method="mc", samples=5, grades=[1.0, 0.0, 0.0])
    assert np.all(sampled.se[:2] > 0)
    assert PlackettLuce([3.0]).exposure(method="mc", samples=5).se == 0


@given(st.lists(st.floats(-6, 6), min_size=1, max_size=5), st.integers(1, 5))
def test_the_probability_of_other_rankings(scores, k):
    weights = np.exp(scores)
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:k]
    mode = 0.0
    for ranking in itertools.permutations(range(len(scores))):
        if list(ranking[: len(order)]) == order:
            mode += math.prod(weights[i] / weights[list(ranking[at:])].sum() for at, i in enumerate(ranking))
    assert PlackettLuce(scores).other_rankings(k) == pytest.approx(1 - mode, abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "temperature"), [((5.0, 4.0), 1e-320), ((1e308, 1.0), 0.5), ((1e308, -1.7e308), 1.0)]
)
def test_log_weights_that_overflow(tmp_path, monkeypatch, capsys, scores, temperature):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q").write_text("t1 0 a 1\n")
    (tmp_path / "r").write_text(f"t1 Q0 a 1 {scores[0]} g\nt1 Q0 b 2 {scores[1]} g\n")
    for command in ("score", "exposure"):
        words = [command, "--qrels", "q", "r", "--policy", "pl", "--temperature", str(temperature)]
        assert main(words) == 1
        err = capsys.readouterr().err
        assert f"r: score {scores[0]:g} of document 'a' in topic 't1'; expected log-weights" in err
    assert main(["score", "--qrels", "q", "r", "-m", "nDCG"]) == 0
    assert "warning" not in capsys.readouterr().err


def test_large_log_weights_are_a_certain_ranking():
    scores = evaluated({"a": 1e300, "b": -1e300}, {"t": {"a": 2, "b": 1}}, ["nDCG", "ERR"], samples=5)
    assert scores.values[0, 0, 0] == 1.0
    assert scores.se[0, 1, 0] == 0
    with pytest.raises(InputError, match="expected log-weights"):
        evaluated({"a": 1e300, "b": -1e300}, {"t": {"a": 2, "b": 1}}, ["ERR"], samples=5, temperature=1e-10)


def test_sampled_exposure_of_groups(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q").write_text("t1 0 a 2\nt1 0 b 1\n")
    (tmp_path / "r").write_text("t1 Q0 a 1 11 g\nt1 Q0 b 2 0 g\n")
    (tmp_path / "m.csv").write_text("doc,group\na,m\nb,w\n")
    (tmp_path / "t.toml").write_text(
        'qrels = "q"\n[attributes.A]\ngroups = ["m", "w"]\nmemberships = "m.csv"\n'
    )
    words = ["exposure", "--task", "t.toml", "r", "--policy", "pl", "--by", "group", "--format", "json"]
    assert main(words) == 0
    exact = json.loads(capsys.readouterr().out)
    assert main([*words, "--method", "mc"]) == 0
    for row, truth in zip(json.loads(capsys.readouterr().out), exact, strict=True):
        assert abs(row["exposure"] - truth["exposure"]) <= 1.96 * row["se"] * (1 + 1e-6)
        assert row["se"] > 0

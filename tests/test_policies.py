"""The pipeline under policies that are not one ranking, against every ranking enumerated with its probability."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import fairevals as fe
from fairevals.attention import parse_attention

SCORES = {
    "q1": {"a": 1.2, "b": 0.0, "c": -0.7, "d": 0.4},
    "q2": {"a": 0.3, "b": 0.3, "e": 2.0},
    "q3": {"z": 5.0},
}
QRELS = {"q1": {"a": 0, "b": 2, "c": 1, "x": 1}, "q2": {"a": 1, "e": 0}, "q3": {"z": 1}, "gone": {"a": 1}}
GROUPS = {"a": "m", "b": "w", "c": "w", "d": "m", "e": "m", "x": "w", "z": "w"}
LINEAR = ["nDCG@1", "nDCG@2", "nDCG", "P@1", "P@2", "nDCG(dcg='exp-log2')@3"]
SAMPLED = ["ERR", "iRBU(phi=0.8)", "GFR(util='ERR')", "GF(attr='A')@2", "AP", "RR"]


def rankings(topic, temperature=1.0):
    """Every ranking of the topic with its probability under Plackett-Luce."""
    weights = {doc: math.exp(score / temperature) for doc, score in SCORES[topic].items()}
    for order in permutations(weights):
        left, probability = sum(weights.values()), 1.0
        for doc in order:
            probability *= weights[doc] / left
            left -= weights[doc]
        yield order, probability


def of_one_ranking(measures, temperature=1.0):
    """The expectation of measures as computed for one ranking at a time, {(topic, measure): value}."""
    expected: dict[tuple[str, str], float] = {}
    for topic in SCORES:
        listed = list(rankings(topic, temperature))
        runs = {
            f"r{i}": {topic: {doc: -rank for rank, doc in enumerate(order)}}
            for i, (order, _) in enumerate(listed)
        }
        table = fe.evaluate(runs, QRELS, measures, groups={"A": GROUPS}).frame(per_topic=True)
        chance = {f"r{i}": probability for i, (_, probability) in enumerate(listed)}
        for row in table[table.topic == topic].itertuples():
            key = (topic, row.measure)
            expected[key] = expected.get(key, 0.0) + chance[row.run] * row.value
    return expected


def scored(measures, run=SCORES, policy="pl", **options):
    table = fe.evaluate({"mine": run}, QRELS, measures, groups={"A": GROUPS}, policy=policy, **options).frame(
        per_topic=True
    )
    return {(row.topic, row.measure): (row.value, row.se) for row in table.itertuples()}


@pytest.mark.parametrize("temperature", [1.0, 0.3, 4.0])
def test_linear_measures_are_exact(temperature):
    expected = of_one_ranking(LINEAR, temperature)
    scores = scored(LINEAR, temperature=temperature)
    for key, value in expected.items():
        assert scores[key][0] == pytest.approx(value, abs=1e-9)
        assert math.isnan(scores[key][1])
    assert all(math.isnan(scores["all", name][1]) for name in LINEAR)


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_other_measures_are_within_their_errors(temperature):
    expected = of_one_ranking(SAMPLED, temperature)
    scores = scored(SAMPLED, temperature=temperature, samples=3000, seed=1)
    for (topic, name), value in expected.items():
        mean, se = scores[topic, name]
        assert abs(mean - value) <= 4 * se + 1e-12, (topic, name)
        assert 0 <= se < 0.02
        assert (se > 1e-12) == (topic != "q3")  # one document has one ranking
    means = {name: np.mean([scores[topic, name][0] for topic in QRELS]) for name in SAMPLED}
    for name, mean in means.items():
        assert scores["all", name][0] == pytest.approx(mean, abs=1e-12)
        squares = sum(scores[topic, name][1] ** 2 for topic in SCORES)
        assert scores["all", name][1] == pytest.approx(math.sqrt(squares) / 4, rel=1e-9)


CASCADE = "D_ind(attention='cascade(0.9,0.5)')"


def cascade_exposure(topic):
    attention = parse_attention("cascade(0.9,0.5)")
    exposure = dict.fromkeys([*SCORES[topic], *QRELS[topic]], 0.0)
    for order, probability in rankings(topic):
        weights = attention.weights_given([QRELS[topic].get(doc, 0) for doc in order])
        for doc, weight in zip(order, weights.tolist(), strict=True):
            exposure[doc] += probability * weight
    return exposure


def d_ind(exposure, grades):
    """The mean over ordered pairs i≠j with M_i ≥ M_j > 0 of max(0, v_i/M_i − v_j/M_j)."""
    pairs = [(i, j) for i in grades for j in grades if i != j and grades[i] >= grades[j] > 0]
    gaps = [max(0.0, exposure[i] / grades[i] - exposure[j] / grades[j]) for i, j in pairs]
    return sum(gaps) / len(gaps) if gaps else math.nan


def test_exposure_measures_are_of_exact_exposure():
    attention = parse_attention("log2")
    exposure = dict.fromkeys([*SCORES["q1"], "x"], 0.0)
    for order, probability in rankings("q1"):
        for doc, weight in zip(order, attention.weights(4).tolist(), strict=True):
            exposure[doc] += probability * weight
    value, se = scored(["D_ind"])["q1", "D_ind"]
    assert value == pytest.approx(d_ind(exposure, QRELS["q1"]), abs=1e-9)
    assert math.isnan(se)


def test_cascade_attention_is_sampled():
    expected = d_ind(cascade_exposure("q1"), QRELS["q1"])
    value, se = scored([CASCADE], samples=4000)["q1", CASCADE]
    assert 0 < se < 0.02
    assert abs(value - expected) < 4 * se


@pytest.mark.slow
@pytest.mark.parametrize("measure", [*SAMPLED[:5], CASCADE])
def test_standard_errors_are_right(measure):
    """Over many seeds the values spread as much as the reported standard error says."""
    run = {"q1": SCORES["q1"]}
    pairs = [scored([measure], run, samples=200, seed=seed)["q1", measure] for seed in range(120)]
    values, errors = np.array(pairs).T
    assert values.std(ddof=1) == pytest.approx(np.sqrt(np.mean(errors**2)), rel=0.2)


def test_seeds():
    first, again, other = (scored(["ERR", CASCADE], samples=100, seed=seed) for seed in (3, 3, 4))
    assert repr(first) == repr(again)
    for name in ("ERR", CASCADE):
        assert first["q1", name] != other["q1", name]
    run = {"q1": SCORES["q1"], "q2": SCORES["q1"]}
    table = fe.evaluate(
        {"x": run, "y": run}, {"q1": QRELS["q1"], "q2": QRELS["q1"]}, ["ERR"], policy="pl"
    ).frame(per_topic=True)
    assert table[table.topic != "all"].value.nunique() == 4  # each run and topic has rankings of its own


@pytest.fixture
def sampled():
    rng = np.random.default_rng(7)
    rows = []
    for topic, docs in SCORES.items():
        for sample in range({"q1": 5, "q2": 3, "q3": 1}[topic]):
            order = rng.permutation(list(docs))[: rng.integers(1, len(docs) + 1)]
            rows += [(topic, f"s{sample}", str(doc), float(-rank)) for rank, doc in enumerate(order)]
    return pd.DataFrame(rows, columns=["topic", "sample", "doc", "score"])


def test_sampled_rankings_are_their_plain_mean(sampled):
    scores = scored(LINEAR + SAMPLED, sampled, "samples")
    singles: dict[tuple[str, str], list[float]] = {}
    for (topic, _), part in sampled.groupby(["topic", "sample"]):
        for (at, name), (value, _) in scored(
            LINEAR + SAMPLED, part.drop(columns="sample"), "ranking"
        ).items():
            if at == topic:
                singles.setdefault((topic, name), []).append(value)
    assert len(singles["q1", "ERR"]) == 5
    for key, values in singles.items():
        assert scores[key][0] == pytest.approx(np.mean(values), abs=1e-12), key
        assert math.isnan(scores[key][1])


def test_sampled_rankings_share_exposure(sampled):
    """An exposure measure is that of the mean exposure, not the mean of the rankings' own values."""
    measures = ["D_ind", CASCADE, "D_ind@2"]
    scores = scored(measures, sampled, "samples")
    for name, attention, cutoff in [
        ("D_ind", "log2", 9),
        (CASCADE, "cascade(0.9,0.5)", 9),
        ("D_ind@2", "log2", 2),
    ]:
        exposure = dict.fromkeys([*SCORES["q1"], "x"], 0.0)
        for _, part in sampled[sampled.topic == "q1"].groupby("sample"):
            docs = part.sort_values("score", ascending=False).doc
            weights = parse_attention(attention).weights_given([QRELS["q1"].get(doc, 0) for doc in docs])
            for doc, weight in zip(docs[:cutoff], weights[:cutoff].tolist(), strict=True):
                exposure[doc] += weight / 5
        value, se = scores["q1", name]
        assert value == pytest.approx(d_ind(exposure, QRELS["q1"]), abs=1e-12)
        assert math.isnan(se)


@pytest.mark.parametrize("policy", ["ranking", "pl", "samples"])
def test_topics_that_a_run_leaves_out(policy, sampled):
    run = sampled if policy == "samples" else SCORES
    exposed = ["D_ind", "EE_L", "AWRF(attr='A')", CASCADE]
    scores = scored(LINEAR + SAMPLED + exposed, run, policy, samples=50)
    assert all(scores["gone", name][0] == 0 for name in LINEAR + SAMPLED)
    assert all(math.isnan(scores["gone", name][0]) for name in exposed)
    assert all(math.isnan(scores["gone", name][1]) for name in LINEAR + SAMPLED + exposed)


def test_several_rankings_need_the_policy_for_them(tmp_path, sampled):
    """Read as one ranking they would follow each other, and nDCG could pass 1."""
    path = tmp_path / "fair.tsv"
    path.write_text("".join(f"{row.topic}\t{row.sample}\t{row.doc}\n" for row in sampled.itertuples()))
    for policy in ("ranking", "pl"):
        with pytest.raises(
            fe.UsageError, match=r"fair\.tsv has several rankings of a topic; .*policy 'samples'"
        ):
            fe.evaluate(path, QRELS, ["nDCG"], policy=policy).frame()
    by_file = fe.evaluate(path, QRELS, LINEAR + SAMPLED, groups={"A": GROUPS}, policy="samples").frame(
        per_topic=True
    )
    from_table = scored(LINEAR + SAMPLED, sampled, "samples")
    assert {(row.topic, row.measure): row.value for row in by_file.itertuples()} == {
        key: value for key, (value, _) in from_table.items()
    }
    sampled[sampled["sample"] == "s0"].to_csv(
        path, sep="\t", index=False, columns=["topic", "sample", "doc"], header=False
    )
    one = fe.evaluate(path, QRELS, ["nDCG"]).frame(per_topic=True)
    assert one.value.between(0, 1).all()


@pytest.mark.parametrize(
    "option", [{"samples": 0}, {"temperature": 0.0}, {"temperature": math.nan}, {"seed": -1}]
)
def test_policies_that_cannot_be(option):
    """No sample at all once gave a value of 0."""
    with pytest.raises(fe.UsageError, match=next(iter(option))):
        scored(["ERR"], **option)

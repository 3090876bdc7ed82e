"""Nearly uniform Plackett-Luce policies: hand-computed probabilities and temperatures, ties, and the sample."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairevals.policy.diagnosis import PolicyDiagnosis, diagnose_policy
from fairevals.policy.plackett_luce import PlackettLuce

NEVER = -np.inf
RUNS = Path(__file__).parent.parent / "runs"


def test_two_topics_by_hand():
    # Odds of 3 to 1, and 2 to 1 to 1: first documents at 3/4 and 1/2, random orders 1/2 and 1/3.
    diagnosis = diagnose_policy(np.array([[0.0, math.log(3), NEVER, NEVER], [0.0, NEVER, math.log(2), 0.0]]))
    assert diagnosis.first == pytest.approx((3 / 4 + 1 / 2) / 2, rel=1e-14)
    assert diagnosis.uniform == pytest.approx((1 / 2 + 1 / 3) / 2, rel=1e-14)
    assert not diagnosis.nearly_uniform


def test_half_way_temperatures_by_hand():
    # Two documents, gap g: 1/(1 + e^{−g/T}) = 3/4 where T = g/log 3.
    two = diagnose_policy(np.array([[5.0, 5.2]]))
    assert two.half_way_temperature == pytest.approx(0.2 / math.log(3), rel=1e-9)
    # Three at distance g: 1 + x + x² = 3/2 with x = e^{−g/T}, so x = (√3 − 1)/2.
    three = diagnose_policy(np.array([[0.7, 0.9, 0.8]]), temperature=7.0)
    assert three.half_way_temperature == pytest.approx(-0.1 / math.log((math.sqrt(3) - 1) / 2), rel=1e-9)
    # The temperature in use changes the probability, not the temperature that is half-way.
    assert three.first == pytest.approx(1 / (1 + math.exp(-0.1 / 7) + math.exp(-0.2 / 7)), rel=1e-12)


def test_padding_and_topics_of_one_document_do_not_count():
    alone = diagnose_policy(np.array([[0.3, 0.1]]))
    padded = diagnose_policy(
        np.array(
            [[0.3, NEVER, 0.1, NEVER], [NEVER] * 4, [NEVER, 5.0, NEVER, NEVER], [0.1, 0.3, NEVER, NEVER]]
        )
    )
    assert padded.first == pytest.approx(alone.first, rel=1e-14)
    assert padded.uniform == 0.5
    assert padded.half_way_temperature == pytest.approx(alone.half_way_temperature, rel=1e-9)


@pytest.mark.parametrize("scores", [np.empty((0, 3)), np.empty((2, 0)), np.array([[1.0, NEVER]])])
def test_without_a_topic_of_two_documents_nothing_is_known(scores):
    diagnosis = diagnose_policy(scores)
    assert math.isnan(diagnosis.first)
    assert math.isnan(diagnosis.uniform)
    assert diagnosis.half_way_temperature is None
    assert not diagnosis.nearly_uniform


def test_ties_limit_what_a_temperature_can_do():
    # Two tied of three: at most 1/2, below half-way (2/3). Equal to half-way is not reachable either.
    assert diagnose_policy(np.array([[1.0, 1.0, 0.0]])).half_way_temperature is None
    assert diagnose_policy(np.array([[1.0, 1.0]])).half_way_temperature is None
    assert (
        diagnose_policy(np.array([[2.0, 1.0], [1.0, 1.0]])).half_way_temperature is None
    )  # limit 3/4 = half-way
    # One topic of two untied, one of three with two tied: the limit is 3/4, half-way (1 + 5/12)/2.
    scores = np.array([[1.0, 0.0, NEVER], [1.0, 1.0, 0.0]])
    t = diagnose_policy(scores).half_way_temperature
    x = math.exp(-1 / t)
    assert (1 / (1 + x) + 1 / (2 + x)) / 2 == pytest.approx((1 + 5 / 12) / 2, rel=1e-9)


@given(
    st.lists(
        st.lists(st.floats(-1e3, 1e3) | st.sampled_from([0.0, 1.0]), min_size=2, max_size=8),
        min_size=1,
        max_size=4,
    ),
    st.floats(0.01, 100),
)
def test_probabilities_are_those_of_the_policy(topics, temperature):
    width = max(map(len, topics))
    scores = np.array([topic + [NEVER] * (width - len(topic)) for topic in topics])

    def first(t: float) -> float:
        log_probs = PlackettLuce(scores, t).log_prob(scores.argmax(axis=1)[:, None])
        return float(np.exp(log_probs).mean())

    diagnosis = diagnose_policy(scores, temperature)
    assert diagnosis.first == pytest.approx(first(temperature), rel=1e-9)
    assert diagnosis.uniform == pytest.approx(np.mean([1 / len(topic) for topic in topics]))
    half_way = (1 + diagnosis.uniform) / 2
    if diagnosis.half_way_temperature is None:
        assert np.mean([1 / topic.count(max(topic)) for topic in topics]) <= half_way + 1e-12
    else:
        assert first(diagnosis.half_way_temperature) == pytest.approx(half_way, abs=1e-6)


def test_extreme_gaps_stay_finite():
    wide = diagnose_policy(np.array([[1e308, -1e308, NEVER], [0.0, 1e-320, 5e-324]]))
    assert (wide.first, wide.half_way_temperature) == (pytest.approx((1 + 1 / 3) / 2), None)
    assert diagnose_policy(np.array([[1e308, -1e308]])).half_way_temperature > 1e307
    assert diagnose_policy(np.array([[1e-299, 0.0]])).half_way_temperature == pytest.approx(
        1e-299 / math.log(3)
    )


@pytest.mark.parametrize(
    ("first", "uniform", "nearly"),
    [
        (0.0125, 0.01, True),
        (0.05, 0.01, False),
        (0.52, 0.5, True),
        (0.73, 0.5, False),
        (0.24, 0.2, True),
        (0.5, 0.2, False),
        (1.0, 1.0, False),
    ],
)
def test_what_counts_as_nearly_uniform(first, uniform, nearly):
    assert PolicyDiagnosis(first, uniform, None).nearly_uniform is nearly


def sample_scores(name: str) -> np.ndarray:
    by_topic: dict[str, list[float]] = {}
    for line in (RUNS / f"{name}.run").read_text().splitlines():
        topic, _, _, _, score, _ = line.split()
        by_topic.setdefault(topic, []).append(float(score))
    width = max(map(len, by_topic.values()))
    return np.array([scores + [NEVER] * (width - len(scores)) for scores in by_topic.values()])


def test_the_sample_s_cosines_are_flagged_and_its_bm25_scores_are_not():
    dense, bm25 = diagnose_policy(sample_scores("dense")), diagnose_policy(sample_scores("bm25"))
    assert dense.nearly_uniform
    assert dense.first < 0.0125
    assert not bm25.nearly_uniform
    assert bm25.first > 0.5
    # At the temperature of the remark the cosines are no longer a random order.
    assert diagnose_policy(sample_scores("dense"), dense.half_way_temperature).first == pytest.approx(0.505)


def test_the_remark_has_all_three_numbers():
    text = PolicyDiagnosis(0.01245, 0.01, 0.028328).remark()
    assert all(part in text for part in ("0.0124", "0.0100", "temperature of 0.02833"))
    assert "tied" in PolicyDiagnosis(0.01245, 0.01, None).remark()

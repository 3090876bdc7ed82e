from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exposure_cases import check_batching, close, one_topic, topics, value
from hypothesis import given
from hypothesis import strategies as st

from fairevals.measures.base import LOWER
from fairevals.measures.merits import MERITS, merit
from fairevals.measures.shares import IAA, inequity_of_attention


def slow(exposure, merits):
    if sum(exposure) == 0 or sum(merits) == 0:
        return np.nan
    return sum(abs(v / sum(exposure) - m / sum(merits)) for v, m in zip(exposure, merits, strict=True))


@given(topics, st.sampled_from(sorted(MERITS)))
def test_it_is_the_loop_over_documents(topic, name):
    expected = slow(topic.exposure[0].tolist(), merit(topic.grades[0], name).tolist())
    assert close(value(IAA(merit=name), topic), expected)


def test_from_proportional_to_opposite():
    merits = np.array([4.0, 2.0, 2.0, 0.0])
    assert inequity_of_attention(merits / 16, merits) == 0.0
    assert inequity_of_attention(np.array([0.0, 0.0, 0.0, 0.7]), merits) == 2.0


def test_undefined_without_exposure_or_merit():
    topic = one_topic(3, 6)
    assert np.isnan(value(IAA(), replace(topic, exposure=np.zeros((1, 6)))))
    assert np.isnan(value(IAA(), replace(topic, grades=np.zeros((1, 6)))))
    assert np.isnan(inequity_of_attention(np.zeros((2, 0)), np.zeros((2, 0)))).all()


def test_batches_and_padding_change_nothing():
    check_batching(IAA())


@pytest.mark.parametrize("name", MERITS)
def test_merit_is_used(name):
    merits = merit(np.array([3.0, 1.0, 0.0]), name)
    topic = replace(one_topic(3, 3), grades=np.array([[3.0, 1.0, 0.0]]), exposure=merits[None] / 10)
    assert value(IAA(merit=name), topic) == pytest.approx(0, abs=1e-15)


def test_lower_is_better():
    assert IAA.direction == LOWER

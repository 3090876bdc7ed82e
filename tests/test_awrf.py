from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exposure_cases import check_batching, close, one_topic, topics, value, without_attribute
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from fairevals.errors import UsageError
from fairevals.measures.awrf import AWRF, M1, attention_weighted_rank_fairness
from fairevals.measures.base import HIGHER
from fairevals.measures.ndcg import NDCG


@given(topics, st.sampled_from(["2", "e"]))
def test_it_is_one_less_scipys_squared_distance(topic, base):
    attribute = topic.attribute("A")
    groups = [
        sum(v * w for v, w in zip(topic.exposure[0], column, strict=True))
        for column in attribute.membership[0].T
    ]
    expected = np.nan
    if sum(groups) > 0:
        # scipy takes the root of what rounding may leave below 0 for equal distributions.
        with np.errstate(invalid="ignore"):
            distance = jensenshannon(groups, attribute.target[0], base=2 if base == "2" else None)
        expected = 1 - np.nan_to_num(distance) ** 2
    found = value(AWRF(attr="A", base=base), topic)
    assert np.isclose(found, expected, rtol=0, atol=1e-9, equal_nan=True)


def test_trecs_numbers():
    # As TREC 2021's code has it: attention 1/log2(max(k, 2)), squared distance in nats.
    exposure = 1 / np.log2(np.maximum(np.arange(1, 6), 2))
    membership = np.array([[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0], [0, 0, 1], [1, 0, 0]], dtype=float)
    target = np.array([0.2, 0.5, 0.3])
    expected = 1 - jensenshannon(membership.T @ exposure / exposure.sum(), target) ** 2
    found = attention_weighted_rank_fairness(exposure, membership, target, base="e")
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_extremes():
    hard = np.eye(2)
    for base, least in (("2", 0.0), ("e", 1 - np.log(2))):
        worst = attention_weighted_rank_fairness(np.array([1.0, 0.0]), hard, np.array([0.0, 1.0]), base)
        best = attention_weighted_rank_fairness(np.array([0.3, 0.1]), hard, np.array([0.75, 0.25]), base)
        assert float(worst) == pytest.approx(least, abs=1e-15)
        assert float(best) == pytest.approx(1.0, abs=1e-15)


def test_documents_of_which_nothing_is_said_do_not_count():
    membership = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    target = np.array([0.5, 0.5])
    assert attention_weighted_rank_fairness(np.array([0.4, 9.0, 0.4]), membership, target) == 1.0


def test_undefined():
    topic = one_topic(4, 5)
    assert np.isnan(value(AWRF(attr="A"), without_attribute(topic)))
    assert np.isnan(value(AWRF(attr="A"), replace(topic, exposure=np.zeros((1, 5)))))
    unmapped = replace(topic.attribute("A"), factors=(np.zeros((1, 5, 3)),))
    assert np.isnan(value(AWRF(attr="A"), replace(topic, attributes={"A": unmapped})))


@pytest.mark.parametrize("base", ["2", "e"])
def test_batches_and_padding_change_nothing(base):
    check_batching(AWRF(attr="A", base=base))


def test_m1_is_the_product_of_its_parts():
    measure = M1(attr="A", attention="rbp(0.8)", base="e", dcg="exp-log2", cutoff=7)
    ndcg, awrf = measure.parts()
    assert ndcg == NDCG(dcg="exp-log2", attention="rbp(0.8)", cutoff=7)
    assert awrf == AWRF(attr="A", attention="rbp(0.8)", base="e", cutoff=7)
    values = np.array([0.5, np.nan, 0.5]), np.array([0.8, 0.8, np.nan])
    np.testing.assert_array_equal(measure.combine(values), [0.4, np.nan, np.nan])
    assert close(float(measure.combine((np.array([0.0]), np.array([0.7])))[0]), 0.0)


def test_declarations():
    assert AWRF.direction == M1.direction == HIGHER
    assert M1(attr="A").attributes_used() == ("A",)
    assert M1(attr="A").with_cutoff(10).parts()[0].cutoff == 10
    for wrong in ({}, {"attr": "A", "base": "10"}, {"attr": "A", "attention": "dcg"}):
        for measure in (AWRF, M1):
            with pytest.raises(UsageError):
                measure(**wrong)

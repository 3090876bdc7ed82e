"""Every measure that is a function of exposure gives its gradient: all of them against finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exposure_cases import one_topic, stack
from hypothesis import given
from hypothesis import strategies as st

from fairevals.collection import Exposed
from fairevals.errors import UsageError
from fairevals.measures import INDEX, measure_class, parse_measure
from fairevals.measures.base import ExposureMeasure, LinearMeasure

MEASURES = [
    "nDCG",
    "nDCG(dcg='exp-log2')@5",
    "nDCG(attention='rbp(0.9)')",
    "P@5",
    "RBP",
    "RBP(p=0.5,rel=2)",
    "D_ind",
    "D_ind(merit='exp')",
    "D_group(attr='A')",
    "D_group(attr='A',pairs='max')",
    "D_group(attr='A',merit='square',ties='first')",
    "D_cross",
    "D_cross(merit='sqrt')",
    "EE_L",
    "EE_L(attr='A')",
    "EE_D",
    "EE_D(attr='A')@5",
    "EE_R",
    "EE_R(attr='A',attention='rbp(0.8)')",
    "EE_L(attr='A',target='task',relevant_only=True)@20",
    "EE_D(relevant_only=True)",
    "EE_R(attr='A',target='task',attention='trecfair')@20",
    "UEXP(attr='A')",
    "UEXP(attr='A',total=True,attention='trecfair')@5",
    "AWRF(attr='A')",
    "AWRF(attr='A',base='e')",
    "DP(attr='A')",
    "EUR(attr='A',merit='sqrt')",
    "RUR(attr='A')",
    "DP(attr='A',protected='a')",
    "EUR(attr='A',protected='a')",
    "RUR(attr='A',protected='b',merit='exp')",
    "IAA",
    "IAA(merit='binary')",
]
WITHOUT: set[str] = {"Unjudged", "Gini", "Coverage", "MMF", "L2", "JME"}
"""Functions of exposure that nobody trains for, or of the exposures on all topics together."""


def test_no_measure_of_exposure_is_forgotten():
    of_exposure = {n for n in INDEX if issubclass(measure_class(n), (ExposureMeasure, LinearMeasure))}
    assert of_exposure - WITHOUT == {parse_measure(text).name for text in MEASURES}


def distinct(topic: Exposed, seed: int) -> Exposed:
    """Exposures without ties and away from 0: at the kinks of max(0, ·) and |·| there is no derivative."""
    rng = np.random.default_rng(seed)
    shape = topic.exposure.shape
    keep = rng.random(shape) < 0.8
    return replace(
        topic,
        exposure=np.where(topic.present, 0.1 + rng.random(shape), 0.0),
        candidates=topic.present & keep,
        judged=topic.present & keep,
        grades=topic.grades * keep,
    )


def differences(measure: ExposureMeasure, topic: Exposed, step: float = 1e-6) -> np.ndarray:
    """Central differences, one document at a time."""
    slopes = np.zeros(topic.exposure.shape)
    for document in range(topic.exposure.shape[1]):
        moved = np.zeros(topic.exposure.shape)
        moved[:, document] = step
        up, down = (
            measure.of_exposure(replace(topic, exposure=topic.exposure + sign * moved)) for sign in (1, -1)
        )
        slopes[:, document] = (up - down) / (2 * step)
    return slopes


@pytest.mark.parametrize("text", MEASURES)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from(["hard", "soft", "mixed"]))
def test_gradient_is_that_of_finite_differences(text, seed, n, kind):
    measure = parse_measure(text)
    topic = distinct(one_topic(seed, n, 3, kind, real=seed % 2 == 1), seed)
    value, gradient = measure.of_exposure(topic), measure.value_and_gradient(topic)[1]
    assert gradient.shape == topic.exposure.shape
    assert np.isfinite(gradient).all()
    if np.isnan(value).any():
        assert not gradient.any()
    else:
        np.testing.assert_allclose(gradient, differences(measure, topic), rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("text", MEASURES)
def test_gradients_of_a_block_are_those_of_its_topics(text):
    measure = parse_measure(text)
    topics = [distinct(one_topic(seed, n), seed) for seed, n in enumerate([1, 2, 5, 9])]
    together = measure.value_and_gradient(stack(topics, 12))[1]
    for row, topic in zip(together, topics, strict=True):
        alone = measure.value_and_gradient(topic)[1][0]
        np.testing.assert_allclose(row[: topic.exposure.shape[1]], alone, rtol=1e-12)
        assert not row[topic.exposure.shape[1] :].any()


def test_a_measure_that_depends_on_grades_above_has_no_gradient():
    with pytest.raises(UsageError, match="depends on the grades"):
        parse_measure("nDCG(attention='cascade(0.9,0.5)')")

"""Random blocks of topics with exposures, and what every exposure measure must hold on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from fairevals.collection import AttributeView, Exposed
from fairevals.measures.base import ExposureMeasure

GROUPS = ("a", "b", "c")


def rows(rng: np.random.Generator, n: int, groups: int, kind: str) -> np.ndarray:
    """Memberships of n documents: hard, soft, or a mix of both with documents of which nothing is said."""
    hard = np.eye(groups)[rng.integers(groups, size=n)]
    soft = rng.dirichlet(np.ones(groups), size=n)
    pick = {"hard": 0, "soft": 1}.get(kind)
    which = rng.integers(3, size=(n, 1)) if pick is None else np.full((n, 1), pick)
    return np.select([which == 0, which == 1], [hard, soft], 0.0)


def one_topic(seed: int, n: int, groups: int = 3, kind: str = "mixed", real: bool = False) -> Exposed:
    """A topic of n documents with ties in exposure and grade, some not retrieved, some unjudged (grade 0)."""
    rng = np.random.default_rng(seed)
    grades = np.where(rng.random(n) < 0.3, 0, rng.random(n) * 3 if real else rng.integers(1, 4, size=n))
    retrieved = rng.random(n) < 0.8
    exposure = np.where(retrieved, np.where(rng.random(n) < 0.3, 0.5, rng.random(n)), 0.0)
    attribute = AttributeView(
        GROUPS[:groups],
        False,
        (rows(rng, n, groups, kind)[None],),
        rng.dirichlet(np.ones(groups))[None],
        np.ones(1, bool),
    )
    return Exposed(
        grades=grades[None].astype(float),
        present=np.ones((1, n), bool),
        ideal=-np.sort(-grades[None].astype(float)),
        max_grade=3.0,
        attributes={"A": attribute},
        exposure=exposure[None],
        candidates=np.ones((1, n), bool),
        judged=np.ones((1, n), bool),
    )


topics = st.builds(
    one_topic,
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.integers(1, 3),
    st.sampled_from(["hard", "soft", "mixed"]),
    st.booleans(),
)


def stack(blocks: list[Exposed], width: int) -> Exposed:
    """The topics in one block, padded to `width` documents."""

    def padded(a: np.ndarray) -> np.ndarray:
        return np.pad(a, [(0, 0), (0, width - a.shape[1])] + [(0, 0)] * (a.ndim - 2))

    def together(name: str) -> np.ndarray:
        return np.concatenate([padded(getattr(b, name)) for b in blocks])

    views = [b.attribute("A") for b in blocks]
    attribute = replace(
        views[0],
        factors=(np.concatenate([padded(v.membership) for v in views]),),
        target=np.concatenate([v.target for v in views]),
        applies=np.concatenate([v.applies for v in views]),
    )
    return Exposed(
        grades=together("grades"),
        present=together("present"),
        ideal=together("ideal"),
        max_grade=3.0,
        attributes={"A": attribute},
        exposure=together("exposure"),
        candidates=together("candidates"),
        judged=together("judged"),
    )


def value(measure: ExposureMeasure, topic: Exposed) -> float:
    """The measure's value on the only topic."""
    result = measure.of_exposure(topic)
    assert result.shape == (1,)
    return float(result[0])


def close(a: float, b: float) -> bool:
    """Equal but for rounding, or both undefined; an infinity never is."""
    return bool(np.isclose(a, b, rtol=1e-10, atol=1e-12, equal_nan=True)) and not np.isinf(a)


def check_batching(measure: ExposureMeasure, kind: str = "mixed") -> None:
    """A topic's value is the same to the last bit alone, padded, and among others; nothing is infinite."""
    blocks = [
        one_topic(seed, n, 3, kind, real=seed % 2 == 1) for seed, n in enumerate([1, 2, 5, 9, 17, 40, 40, 3])
    ]
    alone = np.concatenate([measure.of_exposure(b) for b in blocks])
    for width in (40, 41, 57, 128):
        np.testing.assert_array_equal(measure.of_exposure(stack(blocks, width)), alone)
    np.testing.assert_array_equal(measure.of_exposure(stack(blocks[::-1], 64)), alone[::-1])
    assert np.isfinite(alone[4:7]).all()
    assert not np.isinf(alone).any()


def without_attribute(topic: Exposed) -> Exposed:
    """The topic, with an attribute that does not apply to it."""
    return replace(topic, attributes={"A": replace(topic.attribute("A"), applies=np.zeros(1, bool))})

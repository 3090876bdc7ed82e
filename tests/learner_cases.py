"""Data for tests of the estimators."""

import numpy as np


def make_data(topics=12, seed=0):
    """Features, grades, topics (in natural order, which is not their order as texts) and groups."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 6, topics)
    X = rng.normal(size=(lengths.sum(), 3)).round(4)
    X[:, 2] = 0
    y = np.clip(np.round(X[:, 0] + 1), 0, 3)
    y[np.cumsum(lengths) - 1] += 1  # no topic without a relevant document
    return (
        X,
        y,
        np.repeat([f"q{t}" for t in range(topics)], lengths),
        np.array(list("ba"))[rng.integers(2, size=len(X))],
    )

"""Ridge regression of grades on features: the plainest pointwise baseline."""

from __future__ import annotations

import numpy as np

from fairevals.training.data import Dataset
from fairevals.training.models import Linear

_ROWS = 1 << 14


def fit_ridge(data: Dataset, alpha: float = 1.0) -> Linear:
    """The linear model that minimises Σ (grade − θ·x − b)² + α‖θ‖² (Hoerl & Kennard 1970).

    >>> model = fit_ridge(Dataset.of([[[0.0], [1.0], [2.0]]], [[1, 3, 5]]), alpha=0.0)
    >>> model.parameters["theta"].round(6), model.parameters["b"].round(6)
    (array([2.]), np.float64(1.0))
    """
    features = data.features.shape[1]
    mean_x = data.features.mean(axis=0, dtype=np.float64)
    mean_y = data.grades.mean()
    square, cross = np.zeros((features, features)), np.zeros(features)
    for start in range(0, len(data.features), _ROWS):
        x = data.features[start : start + _ROWS] - mean_x
        square += x.T @ x
        cross += x.T @ (data.grades[start : start + _ROWS] - mean_y)
    square[np.diag_indices(features)] += alpha
    # Without α, or with features that repeat each other, there are many solutions: take the smallest.
    theta = np.asarray(np.linalg.lstsq(square, cross, rcond=None)[0], dtype=np.float64)
    model = Linear(features)
    model.parameters = {"theta": theta, "b": np.asarray(mean_y - mean_x @ theta)}
    return model

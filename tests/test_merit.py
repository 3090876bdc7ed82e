from __future__ import annotations

import numpy as np
import pytest

from fairevals.errors import UsageError
from fairevals.measures.disparity import DInd
from fairevals.measures.merits import MERITS, merit

WORTH = {
    "identity": [0, 0.5, 1, 3],
    "square": [0, 0.25, 1, 9],
    "sqrt": [0, 0.5**0.5, 1, 3**0.5],
    "exp": [0, 2**0.5 - 1, 1, 7],
    "binary": [0, 1, 1, 1],
}


@pytest.mark.parametrize("name", MERITS)
def test_each_grade_has_its_worth(name):
    np.testing.assert_allclose(merit(np.array([0.0, 0.5, 1.0, 3.0]), name), WORTH[name], rtol=1e-15)


def test_all_are_named_and_tested():
    assert set(MERITS) == set(WORTH) == {"identity", "square", "sqrt", "exp", "binary"}


def test_identity_is_the_default_and_whole_grades_become_floats():
    result = merit(np.array([[2, 0]]))
    assert result.dtype == np.float64
    assert result.tolist() == [[2.0, 0.0]]


def test_unknown_merit_is_refused_with_the_names_known():
    with pytest.raises(UsageError, match="'identity', 'square', 'sqrt', 'exp', 'binary'"):
        DInd(merit="log")

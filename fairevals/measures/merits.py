"""The merit of a document: a function of its grade that exposure should follow."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fairevals.errors import UsageError
from fairevals.measures.base import param
from fairevals.typing import Floats

HIGHEST_EXPONENT = 500
"""The highest grade g whose 2^g−1, summed and multiplied, stays a finite number."""


def exponential(grades: Floats) -> Floats:
    """2^g−1; a `UsageError` where that would be too large for a number."""
    highest = float(np.max(grades, initial=0.0))
    if highest > HIGHEST_EXPONENT:
        expected = f"expected at most {HIGHEST_EXPONENT}, as 2^g grows fast"
        raise UsageError(f"the gain or merit 2^g−1 of a grade of {highest:g}; {expected}")
    value: Floats = np.exp2(grades) - 1
    return value


MERITS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda grades: grades,
    "square": np.square,
    "sqrt": np.sqrt,
    "exp": exponential,
    "binary": lambda grades: (grades > 0).astype(np.float64),
}
"""Name of a merit function: the function. All of them give 0 for grade 0 and grow with the grade."""


def merit(grades: Floats, name: str = "identity") -> Floats:
    """The merit M = f(g) of each grade g ≥ 0: g, g², √g, 2^g−1, or 1 where g > 0.

    Singh and Joachims (Policy Learning for Fairness in Ranking, NeurIPS 2019) name the first three; 2^g−1 is
    the gain of Burges et al. (ICML 2005), and `binary` gives every relevant document the same claim.

    >>> merit(np.array([0.0, 1.0, 3.0]), "exp")
    array([0., 1., 7.])
    """
    return MERITS[name](np.asarray(grades, dtype=np.float64))


def merit_param() -> Any:
    """The declaration of the parameter `merit`, the same in every measure that has it."""
    return param("identity", "merit of a grade", choices=tuple(MERITS))

"""Scores made by hand for the tests of statistics."""

from __future__ import annotations

import numpy as np

from fairevals.evaluation.scores import Scores
from fairevals.measures import Measure, parse_measure

UP = parse_measure("nDCG@10")
DOWN = parse_measure("D_ind@10")
ZERO = parse_measure("DP(attr='A',protected='G')@10")
NONE = np.zeros(0)


def make_scores(
    values,
    measures: tuple[Measure, ...] = (UP,),
    se=None,
    runs: tuple[str, ...] = (),
    statuses: tuple[str, ...] = (),
) -> Scores:
    """Scores from values (runs, measures, topics); runs are a, b, c, … and topics t0, t1, … unless named."""
    values = np.asarray(values, dtype=float)
    names = runs or tuple("abcdefghijklmnopqrstuvwxyz"[: len(values)])
    topics = tuple(f"t{i}" for i in range(values.shape[2]))
    errors = np.full(values.shape, np.nan) if se is None else np.asarray(se, dtype=float)
    return Scores(names, measures, topics, values, errors, statuses=statuses)

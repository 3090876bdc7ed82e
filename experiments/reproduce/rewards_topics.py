"""The topics of BanditRank's experiment: read, split, and what rankings of them are worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.training import Dataset, load_dataset, parse_utility
from fairevals.training.evaluation import greedy_rankings
from fairevals.typing import Floats

MEASURES = {
    "MAP": "AP",
    "MRR": "RR",
    **{f"P@{k}": f"P@{k}" for k in (1, 3, 10)},
    **{f"nDCG@{k}": f"nDCG@{k}" for k in (1, 3, 10)},
}
"""The columns of the paper's table 6, and what is averaged over topics."""


def read(files: Sequence[str]) -> dict[str, Dataset]:
    """train, valid and test of two or three files, topics with a relevant document only."""
    if len(files) not in (2, 3):
        raise UsageError(
            f"bandit-rank-rewards takes two or three files, train [valid] test, and not {len(files)}"
        )
    found = [load_dataset(file) for file in files]
    most = max(data.features.shape[1] for data in found)
    found = [relevant_only(data.with_features(most)) for data in found]
    if len(found) == 3:
        return dict(zip(("train", "valid", "test"), found, strict=True))
    data, test = found
    held = len(data) // 5
    if not held:
        raise UsageError(f"{escape(data.name)} has {len(data)} topics with a relevant document; 5 are needed")
    order = np.random.default_rng(0).permutation(len(data))
    return {
        "train": data.split(np.sort(order[held:])),
        "valid": data.split(np.sort(order[:held])),
        "test": test,
    }


def relevant_only(data: Dataset) -> Dataset:
    """The topics that have a relevant document."""
    relevant = [t for t in range(len(data)) if np.any(data.grades[data.starts[t] : data.starts[t + 1]] > 0)]
    if not relevant:
        raise InputError(Place(data.name), "no topic with a relevant document", "at least one")
    return data.split(relevant)


def by_topic(scores: Floats, data: Dataset, measures: Iterable[str] = MEASURES) -> Mapping[str, Floats]:
    """Measures of the rankings by descending score, a value a topic."""
    parsed = {name: parse_utility(MEASURES[name]) for name in measures}
    values: dict[str, list[float]] = {name: [] for name in parsed}
    for t, ranking in enumerate(greedy_rankings(scores, data)):
        block = data.block([t])
        for name, utility in parsed.items():
            values[name].append(float(utility.of_rankings(ranking[None, None], block)[0, 0]))
    return {name: np.array(found) for name, found in values.items()}

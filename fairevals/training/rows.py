"""Learning data from arrays with one row per document, in any order; everything is checked here."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairevals.errors import InputWarning, UsageError, escape, names
from fairevals.io.letor import MOST_FEATURES
from fairevals.io.specs import LARGEST
from fairevals.training.data import ATTRIBUTE, MAX_FEATURE_GROUPS, Dataset, names_of_labels
from fairevals.typing import Array, Floats, Ints

_TOLERANCE = 1e-6
"""How far the sum of a row's memberships may be from 1."""


@dataclass(frozen=True)
class Rows:
    """A dataset, and where its rows stood in the arrays that it was made from."""

    data: Dataset
    order: Ints
    """Row r of the dataset is row `order[r]` of the arrays."""
    labels: list[Any]
    """The label of each topic in `qid`."""
    feature_names: tuple[str, ...]
    """The names of the columns of X, if all of them are texts; else empty."""

    @classmethod
    def of(
        cls,
        X: Any,
        y: Any = None,
        qid: Any = None,
        groups: Any = None,
        *,
        attribute: str = ATTRIBUTE,
        known_groups: Sequence[str] = (),
    ) -> Rows:
        """Check the arrays and bring the rows of each topic together.

        Topics are in the order of their first rows, and the rows of a topic in the order of X, as if they were read
        from a file. Features become float32, as those of a file do. Without `qid` all rows are one topic; without `y`
        all grades are 0. Given `known_groups`, the groups are those, in their order.

        >>> rows = Rows.of([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"])
        >>> rows.labels, rows.data.features.ravel().tolist(), rows.order.tolist()
        (['b', 'a'], [1.0, 3.0, 2.0], [0, 2, 1])
        """
        features, feature_names = _features(X)
        count = len(features)
        grades = np.zeros(count) if y is None else _grades(y, count)
        codes, labels = np.zeros(count, dtype=np.int64), [0]
        if qid is not None:
            codes, labels = _numbered("qid", qid, count, "the topic")
            if (codes < 0).any():
                raise UsageError(
                    f"qid[{np.argmax(codes < 0)}] is missing; expected the topic of each row of X"
                )
        topics = [str(label) for label in labels]
        if len(set(topics)) < len(topics):
            raise UsageError("qid has different labels with the same text, such as 1 and '1'; use one type")
        order, lengths = np.argsort(codes, kind="stable"), np.bincount(codes)
        places = (
            (topic, n) for topic, length in zip(topics, lengths, strict=True) for n in range(1, length + 1)
        )
        data = Dataset(
            topics=topics,
            docs=[f"{topic}:{n}" for topic, n in places],
            starts=np.append(0, np.cumsum(lengths)),
            features=features[order],
            grades=grades[order],
            name="X",
            attribute=attribute,
        )
        if groups is not None:
            group_names, membership = _memberships(groups, count, known_groups)
            data = replace(data, groups=group_names, membership=membership[order])
        return cls(data, order, labels, feature_names)

    def in_given_order(self, values: Floats) -> Floats:
        """Values of the dataset's rows, in the order of the arrays."""
        given = np.empty_like(values)
        given[self.order] = values
        return given


def _features(X: Any) -> tuple[Array, tuple[str, ...]]:
    """X as float32 (rows, features), and the names of its columns."""
    from scipy.sparse import issparse

    columns = list(getattr(X, "columns", ()))
    sparse: Any = X  # whose stubs know no toarray
    array = _array("X", sparse.toarray() if issparse(X) else X)
    if array.ndim != 2:
        raise UsageError(
            f"X {_shape(array)}; expected two dimensions, one row per document and one column per feature. "
            "Reshape your data: X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one document"
        )
    count, features = array.shape
    if not count or not features:
        what = f"{count} document(s) and {features} feature(s)"
        raise UsageError(f"X has {what} (shape={array.shape}) while a minimum of 1 is required of each")
    if features > MOST_FEATURES:
        raise UsageError(f"X has {features:,} features; expected at most {MOST_FEATURES:,}")
    named = all(isinstance(name, str) for name in columns)
    return _numbers("X", array, np.float32), tuple(columns) if named else ()


def _grades(y: Any, count: int) -> Floats:
    grades = _numbers("y", _column("y", _array("y", y), count, "the grade"), np.float64)
    if grades.max() > LARGEST:
        row = int(np.argmax(grades))
        raise UsageError(f"y[{row}] is {grades[row]:g}; expected a grade of at most {LARGEST:g}")
    if grades.min() < 0:
        row = int(np.argmax(grades < 0))
        advice = "np.maximum(y, 0) makes negative grades 0, if they mean not relevant"
        raise UsageError(f"y[{row}] is {grades[row]:g}; expected a grade of at least 0. {advice}")
    return grades


def _memberships(groups: Any, count: int, known: Sequence[str]) -> tuple[tuple[str, ...], Floats]:
    """The names of the groups, and memberships (rows, groups), from labels or from an array of memberships."""
    array = _array("groups", groups)
    if array.ndim == 2 and array.shape[1] > 1:
        if len(array) != count:
            raise UsageError(f"groups {_shape(array)}; expected one row for each of the {count} rows of X")
        given, membership = _given_memberships(groups, array)
    else:
        given, membership = _of_labels(groups, count)
    missing = np.count_nonzero(membership.sum(axis=1) == 0)
    if missing:
        warnings.warn(InputWarning(f"{missing} of {count} documents have no group"), stacklevel=4)
    if not known:
        return given, membership
    if set(given) - set(known):
        raise UsageError(f"groups has {names(given)}; expected those of the training data, {names(known)}")
    ordered = np.zeros((count, len(known)))
    ordered[:, [known.index(name) for name in given]] = membership
    return tuple(known), ordered


def _given_memberships(groups: Any, array: Array) -> tuple[tuple[str, ...], Floats]:
    membership = _numbers("groups", array, np.float64)
    sums = membership.sum(axis=1)
    wrong = (membership < 0).any(axis=1) | ((np.abs(sums - 1) > _TOLERANCE) & (sums != 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        expected = "numbers of at least 0 whose sum is 1, or all 0 for a document of no known group"
        raise UsageError(f"groups[{row}] is {escape(str(membership[row].tolist()))}; expected {expected}")
    return names_of_labels(list(getattr(groups, "columns", range(array.shape[1])))), membership


def _of_labels(groups: Any, count: int) -> tuple[tuple[str, ...], Floats]:
    codes, labels = _numbered("groups", groups, count, "the group")
    if len(labels) > MAX_FEATURE_GROUPS:
        raise UsageError(f"groups has {len(labels):,} different labels; expected 2 to {MAX_FEATURE_GROUPS}")
    categories = getattr(getattr(groups, "dtype", None), "categories", None)  # of a Categorical, in its order
    try:
        ordered = sorted(labels) if categories is None else [each for each in categories if each in labels]
    except TypeError:  # texts among numbers
        ordered = sorted(labels, key=str)
    column = np.array([ordered.index(label) for label in labels] + [len(ordered)])
    return names_of_labels(ordered), np.eye(len(ordered) + 1)[column[codes], :-1]


def _numbered(name: str, values: Any, count: int, meaning: str) -> tuple[Ints, list[Any]]:
    """The number of each row's label, −1 where it is missing, and the labels in the order of their first rows."""
    import pandas as pd

    # In an array of objects each value keeps its type; numpy would make texts of numbers and NaN in a list of texts.
    dtype = None if hasattr(values, "dtype") else np.object_
    array = _column(name, _array(name, values, dtype), count, meaning)
    try:
        codes, labels = pd.factorize(array)
    except TypeError:  # such as lists, which are not hashable
        found = escape(repr(array[0]))
        raise UsageError(f"{name} has values such as {found}; expected labels, texts or numbers") from None
    return codes.astype(np.int64), labels.tolist()


def _array(name: str, values: Any, dtype: Any = None) -> Array:
    try:
        return np.asarray(values, dtype)
    except ValueError:
        raise UsageError(f"{name} cannot be made an array; expected rows of equal length") from None


def _column(name: str, array: Array, count: int, meaning: str) -> Array:
    """The array, if it has one value for each row of X."""
    if array.shape != (count,):
        raise UsageError(f"{name} {_shape(array)}; expected ({count},): {meaning} of each row of X")
    return array


def _shape(array: Array) -> str:
    return f"has shape {array.shape}" if array.ndim else f"is {escape(repr(array.item()))}"


def _numbers(name: str, array: Array, dtype: type[np.floating]) -> Array:
    """The array as finite numbers of that type."""
    if array.dtype.kind == "c":
        raise UsageError(f"Complex data not supported: {name} is {array.dtype}; expected real numbers")
    try:
        if array.dtype.kind not in "biufO":
            raise TypeError
        with np.errstate(over="ignore"):
            numbers = array.astype(dtype)
    except (OverflowError, TypeError, ValueError):
        place, value = next((at, value) for at, value in np.ndenumerate(array) if not _is_number(value))
        found = escape(repr(value.item() if isinstance(value, np.generic) else value))
        raise UsageError(f"{name}{list(place)} is {found}; expected a number") from None
    if not np.isfinite(numbers).all():
        place = tuple(np.argwhere(~np.isfinite(numbers))[0].tolist())
        value = "NaN" if np.isnan(numbers[place]) else array[place]
        limit = f"neither NaN nor inf nor beyond {np.finfo(dtype).max:.4g}"
        raise UsageError(f"{name}{list(place)} is {value}; expected finite numbers, {limit}")
    return numbers


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (OverflowError, TypeError, ValueError):
        return False
    return not isinstance(value, str | bytes | np.timedelta64)

"""Learning data in memory: topics with documents, features, grades and groups, and padded blocks of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from fairevals.errors import InputError, InputWarning, Place, UsageError, escape
from fairevals.ids import Ids, Index
from fairevals.io.letor import read_letor
from fairevals.io.memberships import group_names, read_memberships
from fairevals.io.task import AttributeSpec
from fairevals.typing import Array, Bools, Floats, Ints

MOST_GROUPS = 50
_CELLS = 1 << 22
"""Numbers in the features of a block that is made only to look at all topics once."""


def no_groups(what: str) -> UsageError:
    """What to say where something cannot be done without groups."""
    return UsageError(f"{what} needs groups: give a table of groups, or a feature that tells them")


@dataclass(frozen=True)
class Batch:
    """Some topics, padded to the longest: what losses and estimators see."""

    features: Array
    """(topics, documents, features); 0 where there is no document."""
    grades: Floats
    """(topics, documents), at least 0; 0 where there is no document."""
    present: Bools
    """(topics, documents)"""
    membership: Floats | None = None
    """(topics, documents, groups), or None where there are no groups."""
    max_grade: float = 1.0

    def masked(self, scores: Floats) -> Floats:
        """Scores with −inf where there is no document."""
        return scores if self.present.all() else np.where(self.present, scores, -np.inf)


@dataclass(frozen=True)
class Dataset:
    """Topics and their documents: a row a document, the rows of topic t at `starts[t]:starts[t + 1]`.

    The features lie in one matrix without padding; blocks of equally long neighbours are views of it, so a
    pass over the topics copies nothing.

    >>> data = Dataset.of([[[1.0], [2.0]], [[3.0]]], [[1, 0], [2]])
    >>> data.block([0, 1]).grades
    array([[1., 0.],
           [2., 0.]])
    """

    topics: Sequence[str]
    docs: Sequence[str]
    starts: Ints
    features: Array
    grades: Floats
    groups: tuple[str, ...] = ()
    membership: Floats | None = None
    """(rows, groups): a row sums to 1, or is 0 for a document of no known group."""
    name: str = field(default="data", compare=False)

    @classmethod
    def of(
        cls,
        features: Sequence[Array | Sequence[Sequence[float]]],
        grades: Sequence[Floats | Sequence[float]],
        groups: Sequence[Ints | Sequence[int]] | None = None,
        names: Sequence[str] | None = None,
    ) -> Dataset:
        """From a matrix, grades and group numbers for each topic; `names` are those of the groups."""
        lengths = [len(topic) for topic in grades]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        membership, found = None, tuple(names or ())
        if groups is not None:
            code = np.concatenate([np.asarray(topic, dtype=np.int64) for topic in groups])
            found = found or tuple(map(str, range(int(code.max(initial=1)) + 1)))
            membership = np.eye(len(found))[code]
        return cls(
            [f"q{t}" for t in range(1, len(lengths) + 1)],
            [f"q{t}:{d}" for t, n in enumerate(lengths, 1) for d in range(1, n + 1)],
            starts,
            np.concatenate([np.asarray(topic, dtype=np.float64) for topic in features]),
            np.concatenate([np.asarray(topic, dtype=np.float64) for topic in grades]),
            found,
            membership,
        )

    def __len__(self) -> int:
        return len(self.topics)

    @property
    def max_grade(self) -> float:
        """The largest grade; 1 where nothing is relevant."""
        return float(self.grades.max(initial=0.0)) or 1.0

    @property
    def lengths(self) -> Ints:
        """Documents of each topic."""
        return np.diff(self.starts)

    def block(self, topics: Sequence[int] | Ints, max_grade: float | None = None) -> Batch:
        """Some of the topics, padded to the longest of them."""
        chosen = np.asarray(topics, dtype=np.int64)
        start, length = self.starts[chosen], self.starts[chosen + 1] - self.starts[chosen]
        longest = int(length.max(initial=0))
        grade = self.max_grade if max_grade is None else max_grade
        if np.all(length == longest) and np.all(np.diff(start) == longest):
            rows, shape = slice(int(start[0]), int(start[0]) + longest * chosen.size), (chosen.size, longest)
            return Batch(
                self.features[rows].reshape(*shape, -1),
                self.grades[rows].reshape(shape),
                np.ones(shape, dtype=bool),
                None if self.membership is None else self.membership[rows].reshape(*shape, -1),
                grade,
            )
        place = np.arange(longest)
        present = place < length[:, None]
        row = np.where(present, start[:, None] + place, 0)
        return Batch(
            np.where(present[..., None], self.features[row], self.features.dtype.type(0)),
            np.where(present, self.grades[row], 0.0),
            present,
            None if self.membership is None else np.where(present[..., None], self.membership[row], 0.0),
            grade,
        )

    def blocks(self, max_grade: float | None = None) -> Iterator[tuple[Ints, Batch]]:
        """All topics in blocks of bounded size, topics of like length together: their numbers, and the block."""
        order = np.argsort(self.lengths, kind="stable")
        width = max(1, self.features.shape[1])
        first = 0
        for last in range(1, len(order) + 1):
            end = last == len(order)
            if end or (last + 1 - first) * int(self.lengths[order[last]]) * width > _CELLS:
                yield order[first:last], self.block(order[first:last], max_grade)
                first = last

    def with_features(self, count: int) -> Dataset:
        """The same with so many features: 0 where there were fewer; what was beyond is left out."""
        have = self.features.shape[1]
        if have == count:
            return self
        features = np.zeros((len(self.features), count), dtype=self.features.dtype)
        features[:, : min(have, count)] = self.features[:, :count]
        return replace(self, features=features)

    def relative_to_groups(self) -> Dataset:
        """The same with every feature less its mean over the document's own group in the topic.

        Scores linear in such features have the same mean in all groups of a topic, whoever is in them: they order
        the documents of a group, and leave to the objective how the groups share the ranks. A document of
        several groups is compared with the mixture of their means; those of no known group are a group together.

        >>> data = Dataset.of([[[1.0], [3.0], [10.0]]], [[0, 1, 1]], [[0, 0, 1]])
        >>> data.relative_to_groups().features.ravel()
        array([-1.,  1.,  0.])
        """
        if self.membership is None:
            raise UsageError(
                f"features relative to groups need groups: {self.name} has none; give a table of groups, or a "
                "feature that tells them"
            )
        unknown = np.clip(1.0 - self.membership.sum(axis=1, keepdims=True), 0.0, 1.0)
        membership = np.concatenate([self.membership, unknown], axis=1).astype(self.features.dtype)
        features = np.empty_like(self.features)
        for start, stop in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            m, x = membership[start:stop], self.features[start:stop]
            weight = m.sum(axis=0)
            share = np.divide(m, weight, out=np.zeros_like(m), where=weight > 0)
            features[start:stop] = x - m @ (share.T @ x)
        return replace(self, features=features)

    def with_groups(self, groups: Sequence[str], membership: Floats) -> Dataset:
        """The same with these groups."""
        return replace(self, groups=tuple(groups), membership=membership)

    def split(self, topics: Sequence[int] | Ints) -> Dataset:
        """Some of the topics, in the order given."""
        chosen = np.asarray(topics, dtype=np.int64)
        rows = np.concatenate([np.arange(self.starts[t], self.starts[t + 1]) for t in chosen.tolist()])
        return replace(
            self,
            topics=[self.topics[t] for t in chosen.tolist()],
            docs=[self.docs[r] for r in rows.tolist()],
            starts=np.concatenate([[0], np.cumsum(self.lengths[chosen])]).astype(np.int64),
            features=self.features[rows],
            grades=self.grades[rows],
            membership=None if self.membership is None else self.membership[rows],
        )


def load_dataset(path: str | os.PathLike[str], dtype: type[np.floating] = np.float32) -> Dataset:
    """Read LETOR / SVMlight data; negative grades count as 0."""
    read = read_letor(path, dtype)
    grades = np.maximum(read.grades, 0.0)
    return Dataset(read.topics, read.docs, read.starts, read.features, grades, name=read.name)


def groups_from_file(data: Sequence[Dataset], path: str | os.PathLike[str]) -> list[Dataset]:
    """The datasets with groups from a long table `[topic,] doc, group [, weight]`.

    Documents that the table does not name belong to no group, and a warning says how many there are.
    """
    names = tuple(group_names(path))
    read = read_memberships(AttributeSpec("group", names, memberships=Path(path)))
    index = Index(read.topic_of, read.docs)
    found = []
    for each in data:
        code = {topic: number for number, topic in enumerate(read.topics or ())}
        known = [0 if read.topics is None else code.get(topic, -1) for topic in each.topics]
        topic_of = np.repeat(np.array(known, dtype=np.int64), each.lengths)
        row = index.find(topic_of, Ids.of(each.docs))
        if np.all(row < 0):
            raise InputError(
                Place(os.fspath(path)), f"no document of {escape(each.name)}", "groups for its documents"
            )
        if np.any(row < 0):
            count = f"{np.count_nonzero(row < 0)} of {row.size}"
            warnings.warn(InputWarning(f"{each.name}: {count} documents have no group"), stacklevel=2)
        found.append(each.with_groups(names, np.where(row[:, None] >= 0, read.weights[row], 0.0)))
    return found


def groups_from_feature(data: Sequence[Dataset], number: int) -> list[Dataset]:
    """The datasets with groups from the values of a feature, counted from 1 as in the file.

    >>> data = Dataset.of([[[0.0], [1.0]]], [[1, 0]])
    >>> groups_from_feature([data], 1)[0].groups
    ('0', '1')
    """
    for each in data:
        if not 1 <= number <= each.features.shape[1]:
            raise UsageError(f"{each.name} has no feature {number}; it has 1 to {each.features.shape[1]}")
    values = np.unique(np.concatenate([each.features[:, number - 1] for each in data]))
    if not 2 <= values.size <= MOST_GROUPS:
        raise UsageError(f"feature {number} has {values.size} values; groups need 2 to {MOST_GROUPS}")
    names = [f"{value:g}" for value in values.tolist()]
    return [
        e.with_groups(names, np.eye(values.size)[np.searchsorted(values, e.features[:, number - 1])])
        for e in data
    ]


@dataclass(frozen=True)
class Standardiser:
    """(x − mean) / deviation for every feature, fitted on training data and kept with the model.

    A feature that never varies in the training data becomes 0 everywhere: nothing can be learned about it.

    >>> fitted = Standardiser.fit(Dataset.of([[[1.0, 5.0], [3.0, 5.0]]], [[1, 0]]))
    >>> fitted(np.array([[3.0, 7.0]]))
    array([[1., 0.]])
    """

    mean: Floats
    scale: Floats

    @classmethod
    def fit(cls, data: Dataset) -> Standardiser:
        """Means and deviations over all documents, in two passes of bounded memory."""
        rows, mean = len(data.features), data.features.mean(axis=0, dtype=np.float64)
        square = np.zeros_like(mean)
        step = max(1, _CELLS // max(1, mean.size))
        for start in range(0, rows, step):
            square += np.square(data.features[start : start + step] - mean).sum(axis=0)
        deviation = np.sqrt(square / rows)
        # What rounding leaves of a constant is no deviation.
        least = 4 * float(np.finfo(data.features.dtype).eps)
        varies = deviation > least * np.maximum(np.abs(mean), 1e-30)
        return cls(mean, np.divide(1.0, deviation, out=np.zeros_like(mean), where=varies))

    @classmethod
    def none(cls, features: int) -> Standardiser:
        """The one that changes nothing."""
        return cls(np.zeros(features), np.ones(features))

    @property
    def changes(self) -> bool:
        """Whether it does anything."""
        return bool(np.any(self.mean != 0) or np.any(self.scale != 1))

    def __call__(self, features: Array) -> Array:
        """The features (…, feature) standardised, in their own type."""
        if not self.changes:
            return features
        mean, scale = self.mean.astype(features.dtype), self.scale.astype(features.dtype)
        standardised: Array = features - mean
        standardised *= scale
        return standardised

    def apply(self, data: Dataset) -> Dataset:
        """The dataset with standardised features."""
        return replace(data, features=self(data.features)) if self.changes else data

    def arrays(self) -> Mapping[str, Array]:
        """What to save."""
        return {"mean": self.mean, "scale": self.scale}

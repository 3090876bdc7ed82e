"""Learning data in memory: topics with documents, features, grades and groups, and padded batches of them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np

from fairevals.collection import AttributeView
from fairevals.collection.blocks import Block
from fairevals.errors import InputError, InputWarning, Place, UsageError, escape, pluralize
from fairevals.ids import Ids, Index
from fairevals.io.letor import read_letor
from fairevals.io.memberships import group_name, group_names, read_memberships
from fairevals.io.specs import AttributeSpec
from fairevals.io.task import Task
from fairevals.typing import Array, Bools, Floats, Ints

ATTRIBUTE = "group"
"""The name of the one attribute of learning data from files, as in D_group(attr='group')."""
MAX_FEATURE_GROUPS = 50
_CELLS = 1 << 22
"""How many feature values a batch holds at most when all topics are visited once."""


def groups_needed(what: str) -> UsageError:
    """The error where something cannot be done without groups."""
    return UsageError(f"{what} needs groups: give the group of each document")


@dataclass(frozen=True)
class Batch:
    """Some topics, padded at the end to the longest. Measures see it as `block`."""

    features: Array
    """(topics, documents, features); 0 for padding."""
    grades: Floats
    """(topics, documents), at least 0; 0 for padding."""
    present: Bools
    """(topics, documents)"""
    membership: Floats | None = None
    """(topics, documents, groups), or None without groups."""
    max_grade: float = 1.0
    groups: tuple[str, ...] = ()
    """Names of the groups; their numbers by default."""
    attribute: str = ATTRIBUTE
    """The name of the attribute that the groups form."""
    attributes: Mapping[str, AttributeView] = field(default_factory=dict)
    """The attributes of a task, with their targets."""
    utility_weight: float = 1.0

    def masked(self, scores: Floats) -> Floats:
        """The scores with −inf for padding."""
        return scores if self.present.all() else np.where(self.present, scores, -np.inf)

    @cached_property
    def block(self) -> Block:
        """The batch as measures see it: every document judged and retrieved; the groups are one attribute.

        Without a task, its target is uniform.
        """
        present, topics, views = self.present, len(self.present), dict(self.attributes)
        if self.membership is not None and self.attribute not in views:
            count = self.membership.shape[2]
            names = self.groups or tuple(map(str, range(count)))
            target, applies = np.full((topics, count), 1.0 / count), np.ones(topics, dtype=bool)
            views[self.attribute] = AttributeView(names, False, (self.membership,), target, applies)
        return Block(
            first=0,
            topics=("",) * topics,
            documents=Ids.of([]),
            row=present - 1,
            raw_grades=self.grades if present.all() else np.where(present, self.grades, np.nan),
            scores=np.zeros((topics, 0)),
            retrieved=present.sum(axis=1),
            ideal=-np.sort(-self.grades, axis=1),
            rankings=None,
            max_grade=self.max_grade,
            utility_weight=self.utility_weight,
            attributes=views,
        )


@dataclass(frozen=True)
class Dataset:
    """Topics and their documents: one row per document, the rows of topic t at `starts[t]:starts[t + 1]`.

    >>> data = Dataset.of([[[1.0], [2.0]], [[3.0]]], [[1, 0], [2]])
    >>> data.batch([0, 1]).grades
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
    attribute: str = ATTRIBUTE
    """The name of the attribute that the groups form."""
    standardiser: Standardiser | None = None
    """Applied to the features wherever a model sees them: a second copy of all of them may not fit into memory."""
    task: Task | None = None
    """The task that gives attributes and targets; see `fairevals.training.tasks`."""
    attributes: Mapping[str, AttributeView] = field(default_factory=dict)
    """Those of the task that are used: memberships (rows, groups), targets (topics, groups)."""

    @classmethod
    def of(
        cls,
        features: Sequence[Array | Sequence[Sequence[float]]],
        grades: Sequence[Floats | Sequence[float]],
        groups: Sequence[Ints | Sequence[int]] | None = None,
        names: Sequence[str] | None = None,
    ) -> Dataset:
        """From the feature matrix, grades and group numbers of each topic; `names` are the groups' names."""
        lengths = [len(topic) for topic in grades]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        membership, group_of = None, tuple(names or ())
        if groups is not None:
            code = np.concatenate([np.asarray(topic, dtype=np.int64) for topic in groups])
            group_of = group_of or tuple(map(str, range(int(code.max(initial=1)) + 1)))
            membership = np.eye(len(group_of))[code]
        return cls(
            [f"q{t}" for t in range(1, len(lengths) + 1)],
            [f"q{t}:{d}" for t, n in enumerate(lengths, 1) for d in range(1, n + 1)],
            starts,
            np.concatenate([np.asarray(topic, dtype=np.float64) for topic in features]),
            np.concatenate([np.asarray(topic, dtype=np.float64) for topic in grades]),
            group_of,
            membership,
        )

    def __len__(self) -> int:
        return len(self.topics)

    @cached_property
    def max_grade(self) -> float:
        """The largest grade, or what the task says; 1 where nothing is relevant."""
        if self.task is not None and self.task.max_grade is not None:
            return float(self.task.max_grade)
        return float(self.grades.max(initial=0.0)) or 1.0

    @cached_property
    def digest(self) -> str:
        """A digest of topics, documents, features, grades and groups: equal data have equal digests."""
        digest = blake2b(digest_size=16)
        for names in (self.topics, self.docs, self.groups, (self.attribute,)):
            digest.update("\n".join([*map(repr, names), ""]).encode())
        targets = [view.target for view in self.attributes.values()]
        memberships = [view.membership for view in self.attributes.values()]
        for array in (self.starts, self.features, self.grades, self.membership, *targets, *memberships):
            if array is not None:
                digest.update(f"{array.shape} {array.dtype}\n".encode())
                digest.update(np.ascontiguousarray(array).ravel().data)
        return digest.hexdigest()

    @property
    def lengths(self) -> Ints:
        """The number of documents of each topic."""
        return np.diff(self.starts)

    @property
    def slices(self) -> Iterator[slice]:
        """The rows of each topic."""
        return (slice(a, b) for a, b in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True))

    def require_relevant(self) -> None:
        """Raise an `InputError` if no document is relevant: then there is nothing to learn, or to choose models by."""
        if not self.grades.any():
            raise InputError(
                Place(self.name), "no document has a grade above 0", "relevant documents to learn from"
            )

    def batch(self, topics: Sequence[int] | Ints) -> Batch:
        """Some of the topics, padded to the longest of them."""
        chosen = np.asarray(topics, dtype=np.int64)
        length = self.lengths[chosen, None]
        rank = np.arange(int(length.max(initial=0)))
        present = rank < length
        row = np.where(present, self.starts[chosen, None] + rank, 0)

        def padded(cells: Array) -> Array:
            cells[~present] = 0
            return cells

        membership = None if self.membership is None else padded(self.membership[row])
        features, grades = padded(self.model_features(row)), padded(self.grades[row])
        views = {
            name: view.with_rows(
                lambda cells: cells[row] * present[..., None],
                target=view.target[chosen],
                applies=view.applies[chosen],
            )
            for name, view in self.attributes.items()
        }
        weight = 1.0 if self.task is None else self.task.utility_weight
        facts = self.max_grade, self.groups, self.attribute, views, weight
        return Batch(features, grades, present, membership, *facts)

    def model_features(self, rows: Array | slice) -> Array:
        """The features of rows as a model sees them: standardised, if the dataset is."""
        features: Array = self.features[rows]
        return features if self.standardiser is None else self.standardiser(features)

    def batches(self) -> Iterator[Batch]:
        """All topics in batches of bounded size, topics of similar length together."""
        order = np.argsort(self.lengths, kind="stable")
        cells = int(self.lengths.max(initial=1)) * max(1, self.features.shape[1])
        size = max(1, _CELLS // cells)
        return (self.batch(order[first : first + size]) for first in range(0, len(order), size))

    def with_features(self, count: int) -> Dataset:
        """The same data with exactly `count` features: zeros are added, or the last ones dropped."""
        missing = max(0, count - self.features.shape[1])
        if count == self.features.shape[1]:
            return self
        return replace(self, features=np.pad(self.features[:, :count], ((0, 0), (0, missing))))

    def centered_by_group(self) -> Dataset:
        """The same data with each feature minus its mean over the document's own group in the topic.

        Scores that are linear in such features have the same mean in all groups of a topic. They order the documents
        within a group, and the objective decides how the groups share the ranks. A document of several groups is
        compared with the mixture of their means; documents of no known group form one more group.

        >>> data = Dataset.of([[[1.0], [3.0], [10.0]]], [[0, 1, 1]], [[0, 0, 1]])
        >>> data.centered_by_group().features.ravel()
        array([-1.,  1.,  0.])
        """
        if self.membership is None:
            raise groups_needed(f"centering the features of {self.name} by group")
        unknown = np.clip(1.0 - self.membership.sum(axis=1, keepdims=True), 0.0, 1.0)
        membership = np.concatenate([self.membership, unknown], axis=1).astype(self.features.dtype)
        features = np.empty_like(self.features)
        for rows in self.slices:
            m, x = membership[rows], self.features[rows]
            weight = m.sum(axis=0)
            share = np.divide(m, weight, out=np.zeros_like(m), where=weight > 0)
            features[rows] = x - m @ (share.T @ x)
        return replace(self, features=features)

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
            attributes={
                name: view.with_rows(
                    lambda cells: cells[rows], target=view.target[chosen], applies=view.applies[chosen]
                )
                for name, view in self.attributes.items()
            },
        )


def load_dataset(path: str | os.PathLike[str], dtype: type[np.floating] = np.float32) -> Dataset:
    """Read LETOR / SVMlight data; negative grades become 0."""
    read = read_letor(path, dtype)
    grades = np.maximum(read.grades, 0.0)
    return Dataset(read.topics, read.docs, read.starts, read.features, grades, name=read.name)


def groups_from_file(data: Sequence[Dataset], path: str | os.PathLike[str]) -> list[Dataset]:
    """The datasets with groups from a long table `[topic,] doc, group [, weight]`.

    Documents that are not in the table belong to no group; a warning gives their number.
    """
    names = tuple(group_names(path))
    read = read_memberships(AttributeSpec(ATTRIBUTE, names, memberships=Path(path)))
    index = Index(read.topic_of, read.docs)
    code = {topic: number for number, topic in enumerate(read.topics or ())}
    grouped = []
    for each in data:
        known = [0 if read.topics is None else code.get(topic, -1) for topic in each.topics]
        topic_of = np.repeat(np.array(known, dtype=np.int64), each.lengths)
        row = index.find(topic_of, Ids.of(each.docs))
        if np.all(row < 0):
            missing = f"no document of {escape(each.name)}"
            raise InputError(Place(os.fspath(path)), missing, "groups for its documents")
        if np.any(row < 0):
            count = f"{np.count_nonzero(row < 0)} of {row.size}"
            warnings.warn(InputWarning(f"{each.name}: {count} documents have no group"), stacklevel=2)
        grouped.append(replace(each, groups=names, membership=read.dense(row)))
    return grouped


def names_of_labels(labels: Sequence[object]) -> tuple[str, ...]:
    """The names of groups that are given as labels: whole numbers without a decimal point.

    >>> names_of_labels([0.0, 1.5]), names_of_labels(["m", "f"])
    (('0', '1.5'), ('m', 'f'))
    """
    names = tuple(map(group_name, labels))
    if len(set(names)) < len(names):
        raise UsageError("groups has different labels with the same text, such as 1 and '1'; use one type")
    return names


def groups_from_feature(data: Sequence[Dataset], number: int) -> list[Dataset]:
    """The datasets with groups from the values of a feature, numbered from 1 as in the file.

    >>> data = Dataset.of([[[0.0], [1.0]]], [[1, 0]])
    >>> groups_from_feature([data], 1)[0].groups
    ('0', '1')
    """
    for each in data:
        if not 1 <= number <= each.features.shape[1]:
            raise UsageError(f"{each.name} has no feature {number}; it has 1 to {each.features.shape[1]}")
    values = np.unique(np.concatenate([each.features[:, number - 1] for each in data]))
    rows = sum(len(each.features) for each in data)
    # A few documents may have few values even of a continuous feature.
    is_continuous = values.size > max(10, rows // 2) and bool(np.any(values != np.round(values)))
    if is_continuous or not 2 <= values.size <= MAX_FEATURE_GROUPS:
        found = f"feature {number} has {pluralize(values.size, 'value')} in {pluralize(rows, 'document')}"
        if 2 * values.size > rows > 2:
            found += ", so that nearly every document would be its own group"
        advice = ""
        if values.size > 2:
            advice = "; cut continuous values into groups first, and give those in a table"
        raise UsageError(f"{found}; expected 2 to {MAX_FEATURE_GROUPS} groups{advice}")
    names = names_of_labels(list(values))
    return [
        replace(each, groups=names, membership=(each.features[:, number - 1, None] == values).astype(float))
        for each in data
    ]


@dataclass(frozen=True)
class Standardiser:
    """(x − mean) / deviation for every feature, fitted on training data and saved with the model.

    A feature that is constant in the training data becomes 0 everywhere: nothing can be learned about it.

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
        # Rounding can leave a constant feature with a tiny deviation.
        least = 4 * float(np.finfo(data.features.dtype).eps)
        varies = deviation > least * np.maximum(np.abs(mean), 1e-30)
        return cls(mean, np.divide(1.0, deviation, out=np.zeros_like(mean), where=varies))

    @classmethod
    def identity(cls, features: int) -> Standardiser:
        """The standardiser that changes nothing."""
        return cls(np.zeros(features), np.ones(features))

    def __call__(self, features: Array) -> Array:
        """The features (…, feature) standardised, in their own dtype."""
        mean, scale = self.mean.astype(features.dtype), self.scale.astype(features.dtype)
        standardised: Array = features - mean
        standardised *= scale
        return standardised

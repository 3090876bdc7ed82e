"""Regression trees as a model: LightGBM's text format, read and evaluated without LightGBM.

LightGBM's own reader is C++ that trusts its input. Here a text is checked line by line, and trees are arrays.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from fairevals.errors import InputError, Place, escape
from fairevals.training.models import Model
from fairevals.typing import Array, Bools, Floats, Ints

MOST_TREES, MOST_LEAVES = 100_000, 1000
LARGEST_LEAF = 1e100
"""So that no sum of leaves overflows."""
MOST_BYTES = 1 << 28
NO_TREES = "tree\n\nend of trees\n"
"""A model without any tree."""


class Tree(NamedTuple):
    """A regression tree: inner nodes 0, 1, … with the root first; a child c < 0 is the leaf −1 − c."""

    feature: Ints
    threshold: Floats
    """A document goes to the left child if its feature is at most this."""
    left: Ints
    right: Ints
    leaf: Floats

    def values(self, X: Array) -> Floats:
        """The values (n,) of the leaves that documents (n, feature) fall into.

        >>> Tree(np.array([1]), np.array([0.5]), np.array([-1]), np.array([-2]), np.array([3.0, 4.0])).values(
        ...     np.array([[9.0, 0.5], [9.0, 0.6]])
        ... )
        array([3., 4.])
        """
        if not self.feature.size:
            return np.full(len(X), self.leaf[0])
        goes_left: Bools = X[:, self.feature] <= self.threshold
        node, row = np.zeros(len(X), dtype=np.int64), np.arange(len(X))
        for _ in range(self.feature.size):
            node[row] = np.where(goes_left[row, node[row]], self.left[node[row]], self.right[node[row]])
            row = row[node[row] >= 0]
            if not row.size:
                break
        return self.leaf[-1 - node]


class Trees(Model):
    """s = the sum of the values of trees; trained by `fairevals.training.boosting`.

    >>> Trees(2).scores(np.zeros((3, 2)))
    array([0., 0., 0.])
    """

    trees: tuple[Tree, ...] = ()
    text: str = ""
    """The trees in LightGBM's text format."""

    def initial(self) -> dict[str, Floats]:
        """None: all that is learned is in the trees."""
        return {}

    def scores(self, X: Array) -> Floats:
        rows = X.reshape(-1, self.features)
        total: Floats = np.zeros(len(rows))
        for tree in self.trees:
            total += tree.values(rows)
        return total.reshape(X.shape[:-1])

    def differentiate(self, grad: Floats) -> dict[str, Floats]:
        raise NotImplementedError("trees have no gradient: see fairevals.training.boosting")

    def load(self, text: str, place: Place) -> None:
        """Take the trees of a text in LightGBM's format; an `InputError` if they are not as it writes them."""
        self.trees, self.text = read_trees(text, self.features, place), text

    def read(self, path: Path) -> None:
        """Take the trees of a file."""
        place = Place(str(path))
        try:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                raise InputError(place, "a larger file", f"at most {MOST_BYTES >> 20} MiB")
            text = data.decode("ascii")
        except OSError as error:
            raise InputError(place, f"cannot be read ({error.strerror})", "the trees of a policy") from None
        except UnicodeDecodeError:
            raise InputError(place, "bytes that are not ASCII", "the trees of a policy") from None
        self.load(text, place)


def read_trees(text: str, features: int, place: Place) -> tuple[Tree, ...]:
    """The trees of a model that LightGBM has written for numbers: without categories and linear leaves."""
    model, end, _ = text.partition("\nend of trees\n")
    head, *sections = model.split("\nTree=")
    if head.split("\n", 1)[0] != "tree" or not end or len(sections) > MOST_TREES:
        expected = f"a text model of LightGBM with at most {MOST_TREES:,} trees"
        raise InputError(place, "another text, or a part of one", expected)
    trees = []
    for number, section in enumerate(sections):
        lines = section.split("\n")
        pairs = dict(line.partition("=")[::2] for line in lines[1:] if "=" in line)
        try:
            trees.append(_tree(pairs, features))
        except (KeyError, ValueError, OverflowError) as error:
            found = f"tree {number} cannot be read ({escape(str(error), 100)})"
            raise InputError(place, found, "trees as LightGBM writes them") from None
    return tuple(trees)


def _tree(pairs: dict[str, str], features: int) -> Tree:
    leaves = int(pairs["num_leaves"])
    if (
        not 1 <= leaves <= MOST_LEAVES
        or pairs.get("num_cat", "0") != "0"
        or pairs.get("is_linear", "0") != "0"
    ):
        raise ValueError("not a tree of numbers")
    nodes = leaves - 1

    def array(key: str, count: int, kind: type[np.generic]) -> Array:
        values = np.array(pairs[key].split() if count else [], dtype=kind)
        if values.shape != (count,) or not np.isfinite(values).all():
            raise ValueError(f"{key} has {values.size} numbers, or one that is not finite")
        if key == "leaf_value" and np.abs(values).max() > LARGEST_LEAF:
            raise ValueError(f"{key} beyond {LARGEST_LEAF:g}")
        return values

    feature, left, right, kind = (
        array(key, nodes, np.int64) for key in ("split_feature", "left_child", "right_child", "decision_type")
    )
    # Missing values do not occur. Bit 0 is a category; bits 2 and 3 are 1 where zeros count as missing.
    if np.any((kind & 1) | ((kind >> 2) & 3 == 1)) or np.any((feature < 0) | (feature >= features)):
        raise ValueError("a split of another kind, or of an unknown feature")
    children = np.concatenate([left, right])
    # Each node but the root, and each leaf, has one parent, before it: so there is no cycle.
    parent = np.tile(np.arange(nodes), 2)
    is_proper = np.array_equal(np.sort(children), np.arange(-leaves, nodes)[np.arange(-leaves, nodes) != 0])
    if nodes and (not is_proper or np.any((children >= 0) & (children <= parent))):
        raise ValueError("the nodes are no tree")
    return Tree(
        feature, array("threshold", nodes, np.float64), left, right, array("leaf_value", leaves, np.float64)
    )

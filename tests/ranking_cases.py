"""Rankings with any number of groups, for the tests of measures of group representation."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from fairevals.collection import AttributeView, Ranked


def ranked(*lists, target, width=0, applies=True):
    """Rankings of documents with these memberships, None for a document without one."""
    groups = len(target)
    width = max(width, *map(len, lists))
    membership, present = np.zeros((len(lists), width, groups)), np.zeros((len(lists), width), bool)
    for row, documents in enumerate(lists):
        present[row, : len(documents)] = True
        for rank, shares in enumerate(documents):
            membership[row, rank] = 0 if shares is None else shares
    names = tuple("abcdef"[:groups])
    targets = np.broadcast_to(np.array(target, float), (len(lists), groups))
    view = AttributeView(names, False, (membership,), targets, np.full(len(lists), applies))
    return Ranked(np.zeros(present.shape), present, np.zeros((len(lists), 0)), 1.0, {"A": view})


def hard(text, groups="xyz"):
    """One document for each letter; a dot is a document without a membership."""
    return [None if letter == "." else [float(letter == group) for group in groups] for letter in text]


def value(measure, documents, target, **more):
    """The measure's value for one ranking."""
    result = measure.of_ranking(ranked(documents, target=target, **more))
    assert result.shape == (1,)
    return float(result[0])


@st.composite
def cases(draw):
    """Documents, a target and a cutoff."""
    groups = draw(st.integers(1, 4))
    share = st.lists(st.integers(0, 4), min_size=groups, max_size=groups).filter(any)
    shares = share.map(lambda row: [n / sum(row) for n in row])
    one = st.integers(0, groups - 1).map(lambda at: [float(g == at) for g in range(groups)])
    documents = draw(st.lists(st.one_of(st.none(), one, shares), min_size=1, max_size=12))
    return documents, draw(shares), draw(st.sampled_from([None, 1, 4, 30]))


def check_batching(measure):
    """A ranking's value is the same to the last bit alone, padded, among others, and as one of several samples."""
    rng = np.random.default_rng(2)
    soft = rng.dirichlet(np.ones(3), size=40).tolist()
    lists = [hard("x"), hard("..yx"), soft[:17], hard("zzyx.") + soft[20:], soft]
    target = [0.5, 0.3, 0.2]
    alone = np.array([value(measure, each, target) for each in lists])
    for width in (40, 41, 64):
        block = ranked(*lists, target=target, width=width)
        np.testing.assert_array_equal(measure.of_ranking(block), alone)
    view = block.attribute("A")
    folded = AttributeView(
        view.groups, False, (view.membership[None],), view.target[None, :1], np.array([[True]])
    )
    samples = Ranked(block.grades[None], block.present[None], np.zeros((1, 1, 0)), 1.0, {"A": folded})
    np.testing.assert_array_equal(measure.of_ranking(samples), alone[None])

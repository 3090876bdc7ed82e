"""ARP against a loop over pairs, FairRankTune, and worked cases."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from ranking_cases import cases, check_batching, hard, value

import fairevals as fe
from fairevals.errors import UsageError
from fairevals.measures.base import LOWER
from fairevals.measures.pairwise import ARP, favoured_shares

ANY = [0.5, 0.3, 0.2]
"""The target plays no role."""


def slow(documents, groups):
    """Over all pairs, upper document first: how much of the pair is mixed, and in whose favour."""
    shares = []
    for g in range(groups):
        won = lost = 0.0
        for upper, lower in combinations([d for d in documents if d is not None], 2):
            won += upper[g] * (1 - lower[g])
            lost += lower[g] * (1 - upper[g])
        if won + lost > 1e-9:
            shares.append(won / (won + lost))
    return max(shares) - min(shares) if len(shares) > 1 else math.nan


@given(cases())
def test_it_is_the_loop(case):
    documents, target, cutoff = case
    result = value(ARP(attr="A", cutoff=cutoff), documents, target)
    assert np.isclose(result, slow(documents[:cutoff], len(target)), rtol=1e-10, atol=1e-12, equal_nan=True)
    assert math.isnan(result) or -1e-12 <= result <= 1 + 1e-12


# FairRankTune 0.0.7: ARP(DataFrame({0: list(order)}), {"a": "x", "b": "y", "c": "x", "d": "z", "e": "y", "f": "x",
# "g": "z", "h": "x"}, "MaxMinDiff") for the orders abcdefgh, hgfedcba, acfhbedg and bdgeacfh: the value, and the share
# of each group.
FAIRRANKTUNE = {
    "xyxzyxzx": (1 / 3, [1 / 2, 2 / 3, 1 / 3]),
    "xzxyzxyx": (1 / 3, [1 / 2, 1 / 3, 2 / 3]),
    "xxxxyyzz": (1.0, [1.0, 1 / 3, 0.0]),
    "yzzyxxxx": (0.8333333333333334, [0.0, 0.8333333333333334, 0.8333333333333334]),
}


@pytest.mark.parametrize("order", FAIRRANKTUNE)
def test_fairranktune(order):
    parity, shares = FAIRRANKTUNE[order]
    np.testing.assert_allclose(favoured_shares(np.array(hard(order))), shares, atol=1e-12)
    assert value(ARP(attr="A"), hard(order), ANY) == pytest.approx(parity, abs=1e-12)


def test_perfect_parity_and_its_opposite():
    assert value(ARP(attr="A"), hard("xyyx", "xy"), [0.5, 0.5]) == 0.0
    assert value(ARP(attr="A"), hard("xxyy", "xy"), [0.5, 0.5]) == 1.0
    assert value(ARP(attr="A"), [[0.25, 0.75]] * 5, [0.5, 0.5]) == 0.0


def test_reversing_the_ranking_and_reordering_the_groups_change_nothing():
    documents = [*hard("xyzzy.xx"), [0.2, 0.3, 0.5]]
    expected = value(ARP(attr="A"), documents, ANY)
    assert value(ARP(attr="A"), documents[::-1], ANY) == pytest.approx(expected, rel=1e-12)
    for order in permutations(range(3)):
        turned = [None if d is None else [d[g] for g in order] for d in documents]
        assert value(ARP(attr="A"), turned, ANY) == pytest.approx(expected, rel=1e-12)


def test_documents_without_a_membership_take_part_in_no_pair():
    assert value(ARP(attr="A"), hard(".x.yy..x.z"), ANY) == value(ARP(attr="A"), hard("xyyxz"), ANY)


def test_undefined():
    for documents in ([], [None, None], hard("xxx"), [None, *hard("x")]):
        assert math.isnan(value(ARP(attr="A"), documents, ANY, width=4))
    assert math.isnan(value(ARP(attr="A"), hard("xy"), ANY, applies=False))
    assert math.isnan(value(ARP(attr="A", cutoff=2), hard("xxy"), ANY))


def test_hiding_the_only_other_group_is_not_parity():
    groups = {"G": fe.Attribute.of("G", {"a": "x", "b": "y", "c": "x"})}
    qrels = {t: {"a": 1, "b": 1, "c": 1} for t in ("t1", "t2")}
    full, hidden = ({t: {d: -float(k) for k, d in enumerate(docs)} for t in qrels} for docs in ("acb", "ac"))
    with pytest.warns(fe.FairevalsWarning, match="hidden: incomplete for ARP"):
        table = fe.evaluate({"full": full, "hidden": hidden}, qrels, ["ARP(attr='G')"], groups=groups).frame()
    assert table.value[0] == 1.0
    assert math.isnan(table.value[1])


@pytest.mark.parametrize("cutoff", [None, 3])
def test_batches_samples_and_padding_change_nothing(cutoff):
    check_batching(ARP(attr="A", cutoff=cutoff))


def test_declaration():
    assert ARP.direction == LOWER
    with pytest.raises(UsageError, match="requires attr"):
        ARP()

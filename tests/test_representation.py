"""NDKL, Skew and Infeasible against loops over prefixes, worked cases, and FairRankTune's NDKL."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from ranking_cases import cases, check_batching, hard, value

import fairevals as fe
from fairevals.errors import UsageError
from fairevals.measures.base import LOWER, near
from fairevals.measures.representation import NDKL, Infeasible, Skew

MEASURES = [
    NDKL(attr="A"),
    NDKL(attr="A", cutoff=3),
    Skew(attr="A"),
    Skew(attr="A", of="max", cutoff=4),
    Infeasible(attr="A"),
    Infeasible(attr="A", cutoff=5),
]


# --- Independent slow versions, from the formulas ---


def mean(documents):
    return [sum(column) / len(documents) for column in zip(*documents, strict=True)]


def slow_ndkl(documents, target):
    known = [d for d in documents if d is not None]
    above = below = 0.0
    for k in range(1, len(known) + 1):
        pairs = zip(mean(known[:k]), target, strict=True)
        kl = sum(p * math.log(p / max(q, 1e-7)) for p, q in pairs if p > 0)
        above, below = above + kl / math.log2(k + 1), below + 1 / math.log2(k + 1)
    return above / below if known else math.nan


def slow_skew(documents, target, of):
    known = [d for d in documents if d is not None]
    if not known:
        return math.nan
    pairs = zip(mean(known), target, strict=True)
    return (min if of == "min" else max)(math.log(max(p, 1e-7) / max(q, 1e-7)) for p, q in pairs)


def slow_infeasible(documents, target, cutoff):
    if all(d is None for d in documents[:cutoff]):
        return math.nan
    violations = 0
    for k in range(1, (cutoff or len(documents)) + 1):
        for g, share in enumerate(target):
            members = sum(d[g] for d in documents[:k] if d is not None)
            violations += math.floor(members + 1e-9) < math.floor(share * k + 1e-9)
    return violations


def same(a, b):
    return bool(np.isclose(a, b, rtol=1e-9, atol=1e-6, equal_nan=True))


@given(cases())
def test_they_are_the_loops(case):
    documents, target, cutoff = case
    assert same(
        value(NDKL(attr="A", cutoff=cutoff), documents, target), slow_ndkl(documents[:cutoff], target)
    )
    for of in ("min", "max"):
        expected = slow_skew(documents[:cutoff], target, of)
        assert same(value(Skew(attr="A", of=of, cutoff=cutoff), documents, target), expected)
    result = value(Infeasible(attr="A", cutoff=cutoff), documents, target)
    assert same(result, slow_infeasible(documents, target, cutoff))


# --- Worked cases, and another program ---

# FairRankTune 0.0.7: NDKL(DataFrame({0: list(order)}), {"a": "x", "b": "y", "c": "x", "d": "z", "e": "y", "f": "x",
# "g": "z", "h": "x"}) for the orders abcdefgh, acfhbedg and bdgeacfh. Its target is the share of each group in the
# list, and it adds 1e-7 to all shares.
FAIRRANKTUNE = {
    "xyxzyxzx": 0.27572812536954755,
    "xxxxyyzz": 0.5103706796489151,
    "yzzyxxxx": 0.656431368917786,
}


@pytest.mark.parametrize("order", FAIRRANKTUNE)
def test_fairranktune(order):
    assert value(NDKL(attr="A"), hard(order), [0.5, 0.25, 0.25]) == pytest.approx(
        FAIRRANKTUNE[order], abs=5e-6
    )


def test_worked_ndkl():
    """The prefixes of "xyy" have x-shares 1, 1/2 and 1/3."""
    weights = [1, 1 / math.log2(3), 0.5]
    kl = [math.log(2), 0, math.log(2 / 3) / 3 + 2 * math.log(4 / 3) / 3]
    expected = sum(w * x for w, x in zip(weights, kl, strict=True)) / sum(weights)
    assert value(NDKL(attr="A"), hard("xyy", "xy"), [0.5, 0.5]) == pytest.approx(expected, rel=1e-12)


def test_worked_skew():
    documents = hard("xxyxyxxxxx", "xy")
    assert value(Skew(attr="A", cutoff=5), documents, [0.2, 0.8]) == pytest.approx(math.log(0.4 / 0.8))
    assert value(Skew(attr="A", of="max", cutoff=5), documents, [0.2, 0.8]) == pytest.approx(math.log(3))


def test_worked_infeasible():
    """With halves, ⌊k/2⌋ of each group are due: y is short at k = 2, 3 and 4, and has enough at 5 and 6."""
    assert value(Infeasible(attr="A"), hard("xxxyyy", "xy"), [0.5, 0.5]) == 3
    assert value(Infeasible(attr="A"), hard("xyxyxy", "xy"), [0.5, 0.5]) == 0


def test_rounding_does_not_decide_what_is_due():
    assert math.floor(0.29 * 100) == 28  # 29 of 100 documents are due
    documents = hard("y" * 72 + "x" * 28, "xy")
    exact = sum(max(0, k - 72) < 29 * k // 100 or min(k, 72) < 71 * k // 100 for k in range(1, 101))
    assert value(Infeasible(attr="A"), documents, [0.29, 0.71]) == exact


def test_a_target_that_every_prefix_meets():
    even = [[0.5, 0.5]] * 7
    for measure in MEASURES:
        assert value(measure, even, [0.5, 0.5]) == pytest.approx(0.0, abs=1e-12)


# --- Properties ---


@given(cases())
def test_bounds(case):
    documents, target, cutoff = case
    if all(d is None for d in documents[:cutoff]):
        return
    assert value(NDKL(attr="A", cutoff=cutoff), documents, target) >= 0
    assert value(Skew(attr="A", cutoff=cutoff), documents, target) <= 1e-12
    assert value(Skew(attr="A", of="max", cutoff=cutoff), documents, target) >= -1e-12
    most = len(target) * (cutoff or len(documents))
    assert 0 <= value(Infeasible(attr="A", cutoff=cutoff), documents, target) <= most


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_the_order_of_the_groups_plays_no_role(measure):
    documents, target = [*hard("xyzzyxx"), [0.2, 0.3, 0.5]], [0.5, 0.3, 0.2]
    expected = value(measure, documents, target)
    for order in permutations(range(3)):
        turned = [[d[g] for g in order] for d in documents]
        assert value(measure, turned, [target[g] for g in order]) == pytest.approx(expected, rel=1e-12)


# --- Silence, padding, and groups that are hidden ---


def test_a_hidden_group_is_charged_not_dropped():
    """A policy that hides y in nine of ten rankings is worse than one that shows little of it in all."""
    shown, hidden = hard("xxxy", "xy"), hard("xxxx", "xy")
    skew, target = Skew(attr="A"), [0.5, 0.5]
    assert value(skew, hidden, target) == pytest.approx(math.log(1e-7 / 0.5))
    assert value(skew, hidden, target) < value(skew, shown, target) < 0
    assert value(NDKL(attr="A"), hidden, target) > value(NDKL(attr="A"), shown, target)


def test_infeasible_is_not_helped_by_a_short_list_or_by_padding():
    whole, target = hard("xxxyyxxx", "xy"), [0.5, 0.5]
    for cutoff in (4, 8, 12):
        measure = Infeasible(attr="A", cutoff=cutoff)
        full = value(measure, whole, target)
        for length in range(1, 8):
            assert value(measure, whole[:length], target) >= full
            assert value(measure, [*whole[:length], *[None] * 20], target) >= full
    assert value(Infeasible(attr="A", cutoff=10**9), hard("x", "xy"), target) == 2 * 10**9 - 3 - 1


def test_documents_without_a_membership_are_skipped():
    for measure in (NDKL(attr="A"), Skew(attr="A"), Skew(attr="A", of="max")):
        bare = value(measure, hard("xyyxz"), [0.5, 0.3, 0.2])
        assert value(measure, hard(".xy..yxz."), [0.5, 0.3, 0.2]) == bare


def test_a_group_with_target_0():
    target = [0.5, 0.5, 0.0]
    assert value(Infeasible(attr="A"), hard("xyxy"), target) == 0
    assert value(Skew(attr="A"), hard("xyxy"), target) == pytest.approx(0.0)
    assert value(Skew(attr="A", of="max"), hard("xyxy"), target) == pytest.approx(0.0)
    assert value(Skew(attr="A", of="max"), hard("xyxz"), target) == pytest.approx(math.log(0.25 / 1e-7))
    assert math.log(0.25 / 1e-7) > value(NDKL(attr="A"), hard("xyxz"), target) > 0.3


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_undefined(measure):
    assert math.isnan(value(measure, [], [0.5, 0.5], width=3))
    assert math.isnan(value(measure, [None, None], [0.5, 0.5]))
    assert math.isnan(value(measure, hard("xy", "xy"), [math.nan, math.nan]))
    assert math.isnan(value(measure, hard("xy", "xy"), [0.5, 0.5], applies=False))


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_batches_samples_and_padding_change_nothing(measure):
    check_batching(measure)


# --- Policies ---


def test_expectations_under_plackett_luce():
    """Enumeration of all rankings against the sampled means."""
    scores, groups, target = {"a": 1.0, "b": 0.0, "c": 0.5}, {"a": "x", "b": "y", "c": "x"}, [0.5, 0.5]
    measures = {"NDKL": slow_ndkl, "Skew": lambda d, t: slow_skew(d, t, "min")}
    measures["Infeasible"] = lambda d, t: slow_infeasible(d, t, 2)
    expected = dict.fromkeys(measures, 0.0)
    for order in permutations(scores):
        weights, p = [math.exp(scores[d]) for d in order], 1.0
        for i, weight in enumerate(weights):
            p *= weight / sum(weights[i:])
        shown = hard([groups[d] for d in order[:2]], "xy")
        for name, slowly in measures.items():
            expected[name] += p * slowly(shown, target)
    table = fe.evaluate(
        {"r": {"t": scores}},
        {"t": {"a": 1}},
        [f"{name}(attr='G')@2" for name in measures],
        groups={"G": fe.Attribute.of("G", groups, target=target)},
        policy="pl",
        samples=4000,
    ).frame()
    for result, se, wanted in zip(table.value, table.se, expected.values(), strict=True):
        assert 0 < se < 0.2
        assert abs(result - wanted) < 4 * se


def test_a_run_that_leaves_topics_out_is_incomplete():
    groups = {"G": fe.Attribute.of("G", {"a": "x", "b": "y"})}
    qrels = {t: {"a": 1, "b": 1} for t in ("t1", "t2")}
    runs = {"full": {t: {"a": 2.0, "b": 1.0} for t in qrels}, "silent": {"t2": {"a": 2.0, "b": 1.0}}}
    names = ["NDKL(attr='G')", "Skew(attr='G')", "Infeasible(attr='G')@2"]
    with pytest.warns(fe.FairevalsWarning, match="silent: incomplete for NDKL"):
        table = fe.evaluate(runs, qrels, names, groups=groups).frame(per_topic=True)
    silent = table[(table.run == "silent") & (table.topic == "t1")]
    assert silent.value.isna().all()


def test_declarations():
    assert (NDKL.direction, Skew.direction, Infeasible.direction) == (LOWER, near(0.0), LOWER)
    assert str(Skew(attr="A", of="max", cutoff=5)) == "Skew(attr='A',of='max')@5"
    for wrong in ({}, {"attr": "A", "of": "median"}):
        with pytest.raises(UsageError):
            Skew(**wrong)

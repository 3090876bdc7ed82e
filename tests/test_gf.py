from __future__ import annotations

from dataclasses import replace
from math import isnan, log2, nan, sqrt

import numpy as np
import pytest

from fairevals.collection import AttributeView, Ranked
from fairevals.errors import UsageError
from fairevals.measures.base import HIGHER
from fairevals.measures.divergences import DIVERGENCES, normalised_match_distance
from fairevals.measures.err import ERR, IRBU, stop_probabilities
from fairevals.measures.gf import GF, GFR, group_fairness, mean_membership_along_ranks, weighted_mean
from fairevals.measures.index import measure_class
from fairevals.measures.parsing import split_name

UNIFORM = np.full(4, 0.25)


def attribute(membership, target=None, applies=True, **more):
    membership = np.asarray(membership, float)
    groups = membership.shape[-1]
    target = np.full(groups, 1 / groups) if target is None else np.asarray(target, float)
    names = tuple(f"g{i}" for i in range(groups))
    return AttributeView(names, more.pop("ordinal", True), (membership,), target, np.asarray(applies), **more)


def view(grades, attributes=None, max_grade=2, utility_weight=1.0):
    grades = np.asarray(grades, float)
    ideal = -np.sort(-grades, axis=-1)
    return Ranked(grades, np.ones(grades.shape, bool), ideal, max_grade, attributes or {}, utility_weight)


def example(**more):
    """FairWeb-1's: page 1 has h-indices 5, 6 and 20, page 2 nobody, page 3 one of 90."""
    pages = [[2 / 3, 1 / 3, 0, 0], [0.25, 0.25, 0.25, 0.25], [0, 0, 0, 1]]
    return view([2, 0, 1], {"HINDEX": attribute(pages, divergence="NMD", **more)})


def random_view(rng, lead=(6,), ranks=12, kind="soft", skipped=0.0):
    """Three attributes of 3, 5 and 1 groups, two of which do not apply to every topic."""
    applies_to = (lead[0],) + (1,) * (len(lead) - 1)
    attributes = {}
    for name, groups, weight, divergence in [
        ("B", 3, 0.5, "JSD"),
        ("A", 5, 2.0, "RNOD"),
        ("C", 1, 1.0, "NMD"),
    ]:
        if kind == "soft":
            membership = rng.dirichlet(np.full(groups, 0.3), (*lead, ranks))
        else:
            membership = np.eye(groups)[rng.integers(groups, size=(*lead, ranks))]
        membership *= (rng.random((*lead, ranks)) >= skipped)[..., None]
        target = rng.dirichlet(np.ones(groups), applies_to)
        target[0] = np.eye(groups)[0]
        applies = np.ones(applies_to, bool) if name == "A" else rng.random(applies_to) < 0.6
        attributes[name] = attribute(
            membership, target, applies, weight=weight, divergence=divergence, ordinal=name != "B"
        )
    # Many a 0, and the first rank among them, so that a rank is undefined without consequence.
    grades = rng.choice([0, 0, 1, 2, 3], (*lead, ranks))
    return view(grades, attributes, 3, 0.7)


# --- The formulas again, one number at a time ---


def slow_divergence(name, p, target):
    groups = range(len(p))
    if len(p) == 1:
        return 0.0
    if name == "JSD":
        mean = [(a + b) / 2 for a, b in zip(p, target, strict=True)]
        return sum(
            x * log2(x / m) / 2 for side in (p, target) for x, m in zip(side, mean, strict=True) if x > 0
        )
    if name == "NMD":
        return sum(abs(sum(p[: i + 1]) - sum(target[: i + 1])) for i in groups) / (len(p) - 1)
    weighted = [sum(abs(i - j) * (p[j] - target[j]) ** 2 for j in groups) for i in groups]
    within = [weighted[i] for i in groups if target[i] > 0]
    return min(1.0, sqrt(sum(within) / len(within) / (len(p) - 1)))


def slow_stops(grades, max_grade, cutoff):
    reached = 1.0
    for grade in grades[:cutoff]:
        satisfied = (2.0**grade - 1) / 2.0**max_grade
        yield reached * satisfied
        reached *= 1 - satisfied


def slow_gf(grades, max_grade, membership, target, name, cutoff):
    total, rows, unknown = 0.0, [], 0.0
    for row, weight in zip(membership, slow_stops(grades, max_grade, cutoff), strict=False):
        if any(row):
            rows.append(row)
        if weight > 0:
            if not rows:
                unknown += weight
                continue
            mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
            total += weight * (1 - slow_divergence(name, mean, target))
    return total / (1 - unknown) if rows else nan


def slow_gfr(ranked, index, util, phi, div, cutoff):
    grades = ranked.grades[index].tolist()
    utility = sum(
        weight * (1 / k if util == "ERR" else phi**k)
        for k, weight in enumerate(slow_stops(grades, ranked.max_grade, cutoff), 1)
    )
    total, weights = ranked.utility_weight * utility, ranked.utility_weight
    for a in ranked.attributes.values():
        topic = (index[0], *(0 for _ in index[1:]))
        if a.applies[topic]:
            membership, target = a.membership[index].tolist(), a.target[topic].tolist()
            name = div if div and a.ordinal else a.divergence
            gf = slow_gf(grades, ranked.max_grade, membership, target, name, cutoff)
            total, weights = total + a.weight * gf, weights + a.weight
    return total / weights


shapes = pytest.mark.parametrize(
    ("lead", "kind", "skipped"),
    [
        ((6,), "hard", 0.0),
        ((6,), "soft", 0.0),
        ((6,), "soft", 0.4),
        ((6, 5), "soft", 0.3),
        ((6, 5), "soft", 0.8),
        ((6, 5), "hard", 0.0),
    ],
)


@shapes
@pytest.mark.parametrize("cutoff", [None, 1, 5, 50])
def test_gf_is_the_slow_loop(lead, kind, skipped, cutoff):
    ranked = random_view(np.random.default_rng(1), lead, kind=kind, skipped=skipped)
    for name, a in ranked.attributes.items():
        for div in (None, "JSD", "NMD", "RNOD"):
            got = GF(attr=name, div=div, cutoff=cutoff).of_ranking(ranked)
            assert got.shape == lead
            for index in np.ndindex(lead):
                topic = (index[0], *(0 for _ in index[1:]))
                expected = nan
                if a.applies[topic]:
                    expected = slow_gf(
                        ranked.grades[index].tolist(),
                        ranked.max_grade,
                        a.membership[index].tolist(),
                        a.target[topic].tolist(),
                        div or a.divergence,
                        cutoff,
                    )
                assert got[index] == pytest.approx(expected, abs=1e-12, nan_ok=True)


@shapes
@pytest.mark.parametrize("cutoff", [None, 1, 5])
@pytest.mark.parametrize("util", ["ERR", "iRBU"])
def test_gfr_is_the_slow_loop(lead, kind, skipped, cutoff, util):
    ranked = random_view(np.random.default_rng(2), lead, kind=kind, skipped=skipped)
    phi = 0.99 if util == "ERR" else 0.8
    for div in (None, "NMD"):
        got = GFR(util=util, phi=phi, div=div, cutoff=cutoff).of_ranking(ranked)
        assert got.shape == lead
        expected = [slow_gfr(ranked, index, util, phi, div, cutoff) for index in np.ndindex(lead)]
        np.testing.assert_allclose(got.ravel(), expected, rtol=0, atol=1e-12)


def test_the_random_views_have_both_defined_and_undefined_topics():
    """Else the two tests above would say less than they seem to."""
    values = GFR().of_ranking(random_view(np.random.default_rng(1), (6, 5), skipped=0.8))
    assert 0 < np.count_nonzero(np.isnan(values)) < values.size


# --- The worked example ---


def test_worked_example_to_its_printed_digits():
    ranked = example()
    achieved = mean_membership_along_ranks(ranked.attributes["HINDEX"].membership)
    np.testing.assert_allclose(achieved[2] * 36, [11, 7, 3, 15])
    assert normalised_match_distance(achieved, UNIFORM)[[0, 2]].round(4).tolist() == [0.3889, 0.0741]

    def printed(measure):
        return round(float(measure.of_ranking(ranked)), 4)

    assert printed(GF(attr="HINDEX", div="NMD")) == printed(GF(attr="HINDEX")) == 0.5162
    assert (printed(ERR()), printed(IRBU())) == (0.7708, 0.8031)
    assert printed(GFR(util="ERR")) == round((0.770833 + 0.516204) / 2, 4)
    assert printed(GFR(util="iRBU")) == round((0.803144 + 0.516204) / 2, 4)


def test_intersectional_gfr_is_the_mean_of_three():
    gender = attribute([[1, 0], [0.5, 0.5], [1, 0]], ordinal=False)
    ranked = example()
    ranked = replace(ranked, attributes={**ranked.attributes, "GENDER": gender})
    # Rank 1: (1, 0) against (1/2, 1/2); rank 3: (5/6, 1/6).
    gf = 0.75 * (1 - slow_divergence("JSD", [1, 0], [0.5, 0.5]))
    gf += 0.0625 * (1 - slow_divergence("JSD", [5 / 6, 1 / 6], [0.5, 0.5]))
    assert float(GF(attr="GENDER").of_ranking(ranked)) == pytest.approx(gf)
    expected = (0.75 + 0.0625 / 3 + 0.5162037037 + gf) / 3
    assert float(GFR(util="ERR").of_ranking(ranked)) == pytest.approx(expected)


# --- Left out, undefined, without relevant documents ---


def test_mean_membership_leaves_out_rows_of_zeros():
    rows = np.array([[0, 0], [1, 0], [0, 0], [0, 1], [0, 1]], float)
    expected = [[nan, nan], [1, 0], [1, 0], [0.5, 0.5], [1 / 3, 2 / 3]]
    np.testing.assert_array_equal(mean_membership_along_ranks(rows), expected)


def test_users_who_stop_before_anything_is_known_are_left_out():
    """w = 1/4 at rank 1, where nothing is known; 3/16 and 27/64 behind it are then 1/4 and 9/16 of the rest."""
    rows = [[0, 0], [1, 0], [0, 1]]
    assert GF(attr="A").of_ranking(view([0, 1, 2], {"A": attribute(rows)})) > 0
    ranked = view([1, 1, 2], {"A": attribute(rows)})
    first = 1 - slow_divergence("JSD", [1, 0], [0.5, 0.5])
    assert float(GF(attr="A").of_ranking(ranked)) == pytest.approx(first / 4 + 9 / 16)


def test_undefined_where_nothing_known_is_ever_seen():
    rows = [[0, 0], [0, 0], [0, 1]]
    assert isnan(GF(attr="A", cutoff=2).of_ranking(view([1, 1, 2], {"A": attribute(rows)})))
    assert isnan(GFR(cutoff=2).of_ranking(view([1, 1, 2], {"A": attribute(rows)})))
    assert isnan(GF(attr="A", cutoff=2).of_ranking(view([0, 0, 2], {"A": attribute(rows)})))
    assert GF(attr="A", cutoff=3).of_ranking(view([0, 0, 0], {"A": attribute(rows)})) == 0
    # Of no weight, or not applying: it does not spoil the mean of the others.
    for without in ({"weight": 0.0}, {"applies": False}):
        ranked = view([1, 1, 2], {"A": attribute(rows, **without)})
        assert GFR(cutoff=2).of_ranking(ranked) == ERR(cutoff=2).of_ranking(ranked)


def test_without_relevant_documents_it_is_zero_not_fair():
    ranked = view(
        [[0, 0], [0, 0]], {"A": attribute([[[1, 0], [0, 1]], [[0, 1], [0, 0]]], [[0.5, 0.5]] * 2, [True] * 2)}
    )
    for measure in (GF(attr="A"), GFR(util="ERR"), GFR(util="iRBU")):
        assert measure.of_ranking(ranked).tolist() == [0, 0]
        assert measure.missing == 0


def test_without_ranks_it_is_zero():
    ranked = view(
        np.zeros((3, 0)), {"A": attribute(np.zeros((3, 0, 2)), [[0.5, 0.5]] * 3, [True, True, False])}
    )
    np.testing.assert_array_equal(GF(attr="A").of_ranking(ranked), [0, 0, nan])
    np.testing.assert_array_equal(GFR().of_ranking(ranked), [0, 0, 0])


def test_attributes_that_do_not_apply_are_left_out_topic_by_topic():
    rows = np.broadcast_to([[1.0, 0.0], [0.0, 1.0]], (4, 2, 2))
    a = attribute(rows, [[0.5, 0.5]] * 4, [True, True, False, False], weight=2.0)
    b = attribute(rows, [[1.0, 0.0]] * 4, [True, False, True, False], weight=3.0)
    ranked = view([[1, 2]] * 4, {"A": a, "B": b}, utility_weight=4.0)
    err, fair_a, fair_b = (m.of_ranking(ranked) for m in (ERR(), GF(attr="A"), GF(attr="B")))
    assert np.isnan(fair_a).tolist() == [False, False, True, True]
    assert np.isnan(fair_b).tolist() == [False, True, False, True]
    expected = [
        (4 * err[0] + 2 * fair_a[0] + 3 * fair_b[0]) / 9,
        (4 * err[1] + 2 * fair_a[1]) / 6,
        (4 * err[2] + 3 * fair_b[2]) / 7,
        err[3],
    ]
    np.testing.assert_allclose(GFR().of_ranking(ranked), expected, rtol=1e-14)


def test_without_any_weight_it_is_undefined():
    ranked = view([1], {"A": attribute([[1, 0]], applies=False)}, utility_weight=0.0)
    assert isnan(GFR().of_ranking(ranked))
    assert isnan(weighted_mean([np.array(0.5)], [0.0]))


def test_only_groups_count_when_utility_has_no_weight():
    ranked = replace(example(), utility_weight=0.0)
    assert GFR().of_ranking(ranked) == GF(attr="HINDEX").of_ranking(ranked)


# --- What must not change a value ---


@pytest.mark.parametrize("div", sorted(DIVERGENCES))
def test_batches_and_padding_change_no_bit(div):
    rng = np.random.default_rng(7)
    ranked = random_view(rng, (6, 5), ranks=23, skipped=0.1)
    measures = [GF(attr="A", div=div), GFR(util="iRBU", div=div), GFR(div=div, cutoff=9)]
    whole = [m.of_ranking(ranked) for m in measures]

    def pad(x, axis):
        width = [(0, 0)] * x.ndim
        width[axis] = (0, 40)
        return np.pad(x, width)

    padded = replace(
        ranked,
        grades=pad(ranked.grades, -1),
        present=pad(ranked.present, -1),
        attributes={n: replace(a, factors=(pad(a.membership, -2),)) for n, a in ranked.attributes.items()},
    )
    for measure, values in zip(measures, whole, strict=True):
        assert np.array_equal(measure.of_ranking(padded), values, equal_nan=True)
        for t, s in np.ndindex(6, 5):
            alone = replace(
                ranked,
                grades=ranked.grades[t, s],
                present=ranked.present[t, s],
                ideal=ranked.ideal[t, s],
                attributes={
                    n: replace(
                        a, factors=(a.membership[t, s],), target=a.target[t, 0], applies=a.applies[t, 0]
                    )
                    for n, a in ranked.attributes.items()
                },
            )
            assert np.array_equal(measure.of_ranking(alone), values[t, s], equal_nan=True)


def test_order_in_which_attributes_are_named_changes_no_bit():
    ranked = random_view(np.random.default_rng(5), (40,))
    turned = replace(ranked, attributes=dict(reversed(ranked.attributes.items())))
    assert np.array_equal(GFR().of_ranking(ranked), GFR().of_ranking(turned))


def test_soft_membership_of_whole_weights_is_hard_membership():
    """Weights of 0 and 1 give, at rank k, exactly the counts of the groups over k."""
    rng = np.random.default_rng(11)
    group = rng.integers(4, size=30)
    counts = np.stack([np.bincount(group[: k + 1], minlength=4) / (k + 1) for k in range(30)])
    assert np.array_equal(mean_membership_along_ranks(np.eye(4)[group]), counts)


def test_what_is_below_the_cutoff_does_not_count():
    ranked = random_view(np.random.default_rng(13))
    other = random_view(np.random.default_rng(14))
    mixed = replace(
        ranked,
        grades=np.concatenate([ranked.grades[:, :4], other.grades[:, 4:]], axis=1),
        attributes={
            n: replace(
                a,
                factors=(
                    np.concatenate([a.membership[:, :4], other.attributes[n].membership[:, 4:]], axis=1),
                ),
            )
            for n, a in ranked.attributes.items()
        },
    )
    assert np.array_equal(GFR(cutoff=4).of_ranking(ranked), GFR(cutoff=4).of_ranking(mixed))
    assert not np.array_equal(GFR(cutoff=5).of_ranking(ranked), GFR(cutoff=5).of_ranking(mixed))


def test_fair_at_every_rank_leaves_the_stop_probabilities():
    """A list that meets the target throughout has GF = Σ w_k, its upper bound."""
    weights = stop_probabilities(np.array([1.0, 0, 2, 1]), 2)
    target = np.array([0.2, 0.8])
    for divergence in DIVERGENCES.values():
        met = group_fairness(weights, np.tile([1 / 2, 1 / 2], (4, 1)), np.array([1 / 2, 1 / 2]), divergence)
        missed = group_fairness(weights, np.tile([1 / 2, 1 / 2], (4, 1)), target, divergence)
        assert met == np.cumsum(weights)[-1] > missed


def test_what_is_given_stays_as_it_was():
    ranked = random_view(np.random.default_rng(17), skipped=0.2)
    before = [ranked.grades.copy(), *(a.membership.copy() for a in ranked.attributes.values())]
    GFR().of_ranking(ranked)
    after = [ranked.grades, *(a.membership for a in ranked.attributes.values())]
    assert all(np.array_equal(x, y) for x, y in zip(before, after, strict=True))


# --- Names and parameters ---


@pytest.mark.parametrize(
    "measure",
    [
        GF(attr="HINDEX"),
        GF(attr='it\'s "A" (1)', div="RSNOD", cutoff=20),
        GFR(),
        GFR(util="ERR", cutoff=5),
        GFR(util="iRBU", phi=0.8, div="NVD", cutoff=20),
    ],
)
def test_name_reads_back(measure):
    name, params, cutoff = split_name(str(measure))
    assert measure_class(name)(**params, cutoff=cutoff) == measure


def test_the_name_says_which_utility():
    assert str(GFR()) == str(GFR(util="ERR")) == "GFR(util='ERR')"
    assert GFR() == GFR(util="ERR")
    assert str(GFR(util="iRBU", cutoff=20)) == "GFR(util='iRBU')@20"


def test_declarations():
    assert (GF.attributes, GFR.attributes) == ("one", "all")
    assert GF.direction is GFR.direction is HIGHER
    assert GF(attr="A").attributes_used() == ("A",)
    assert GFR().attributes_used() == ()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: GF(), r"^GF requires attr='…' \(the attribute's name\)$"),
        (lambda: GF(attr=""), "GF: attr="),
        (lambda: GF(attr=3), "attr=3"),
        (lambda: GF(attr="A", div="KLD"), "'KLD'.*'JSD'"),
        (lambda: GFR(util="nDCG"), "'nDCG'.*'ERR', 'iRBU'"),
        (lambda: GFR(util="iRBU", phi=1.5), "phi=1.5"),
        (lambda: GFR(util="ERR", phi=0.9), "phi=0.9.*needs util='iRBU'"),
        (lambda: GF(attr="B").of_ranking(example()), "unknown attribute 'B'.*HINDEX"),
    ],
)
def test_wrong_parameters_are_named(make, says):
    with pytest.raises(UsageError, match=says):
        make()


def test_components_are_what_the_mean_is_of():
    ranked = random_view(np.random.default_rng(19))
    measure = GFR(util="iRBU", phi=0.9, div="NMD", cutoff=7)
    components = measure.components({name: a.ordinal for name, a in ranked.attributes.items()})
    assert components == (
        IRBU(phi=0.9, cutoff=7),
        GF(attr="B", cutoff=7),  # nominal: keeps its own divergence
        *(GF(attr=name, div="NMD", cutoff=7) for name in ("A", "C")),
    )
    weights = [0.7, *(np.where(a.applies, a.weight, 0.0) for a in ranked.attributes.values())]
    mean = weighted_mean([c.of_ranking(ranked) for c in components], weights)
    np.testing.assert_allclose(measure.of_ranking(ranked), mean, rtol=1e-14)
    assert GFR(cutoff=3).components({}) == (ERR(cutoff=3),)

"""Memberships of few groups per document give the values that an array of documents × groups gives."""

import numpy as np
import pytest

import fairevals as fe
from fairevals.collection import AttributeView, groups
from fairevals.collection.memberships import SparseMembership, dense
from fairevals.collection.products import product_spread, product_sums
from fairevals.measures.group_sums import group_means, group_sums, spread
from fairevals.measures.ratios import sides

GROUPS = [f"g{n}" for n in range(7)]
MEASURES = [
    *(
        f"{name}(attr='A')@5"
        for name in ("AWRF", "D_group", "DP", "EUR", "RUR", "UEXP", "M1", "GF", "NDKL", "Skew")
    ),
    *("EE_L(attr='A')@5", "EE_R(attr='A',target='task')@5", "ARP(attr='A')", "Infeasible(attr='A')@5"),
    *(f"{name}(attr='A',protected='g3')@5" for name in ("DP", "rND", "rKL", "FAIR")),
    *("FAIR(attr='A',protected='g3',null='hypergeometric')@5", "GFR(util='ERR')@5"),
    *(
        "L2(attr='A')@5",
        "JME(level='IG',attr='A')@5",
        "AWRF(attr='X')@5",
        "EE_L(attr='X')@5",
        "GF(attr='X')@5",
    ),
]


def memberships(rng, documents, most=3):
    """Random soft memberships of each document in one to three groups."""
    chosen = [rng.choice(GROUPS, rng.integers(1, most + 1), replace=False) for _ in documents]
    return {
        doc: dict(zip(mine, rng.dirichlet(np.ones(len(mine))), strict=True))
        for doc, mine in zip(documents, chosen, strict=True)
    }


def values(seed, unmapped, target, policy):
    rng = np.random.default_rng(seed)
    documents = [f"d{n}" for n in range(14)]
    qrels = {f"t{t}": {d: int(rng.integers(0, 3)) for d in rng.permutation(documents)[:8]} for t in range(4)}
    run = {t: {d: float(rng.normal()) for d in rng.permutation(documents)[:9]} for t in qrels}
    attribute, other = (
        fe.Attribute.of(name, memberships(rng, documents[:11]), GROUPS, unmapped=unmapped, target=target)
        for name in "AB"
    )
    crossed = {"A": attribute, "B": other, "X": fe.Intersection.of("X", ["A", "B"], "relevant")}
    result = fe.evaluate(run, qrels, MEASURES, groups=crossed, policy=policy, samples=20)
    means = [result.scores.mean(0, m).value for m in range(len(MEASURES))]
    return np.append(result.scores.values.ravel(), means)


@pytest.mark.parametrize("policy", ["ranking", "pl"])
@pytest.mark.parametrize(
    ("unmapped", "target"), [("uniform", "relevant"), ("skip", "uniform"), ("g5", "relevant")]
)
def test_every_measure_has_the_value_of_the_dense_form(monkeypatch, unmapped, target, policy):
    for seed in range(3):
        expected = values(seed, unmapped, target, policy)
        assert not np.isnan(expected).all()
        with monkeypatch.context() as patched:
            patched.setattr(groups, "SPARSE_GROUPS", 1)
            patched.setattr(groups, "SPARSE_RATIO", 0)
            patched.setattr(groups.MembershipColumns, "dense", None)  # it is not called
            np.testing.assert_allclose(values(seed, unmapped, target, policy), expected, rtol=0, atol=1e-12)


def random_membership(rng, shape, width=3):
    group = np.sort(rng.permuted(np.broadcast_to(np.arange(7), (*shape, 7)), axis=-1)[..., :width], axis=-1)
    weight = rng.dirichlet(np.ones(width), shape) * rng.integers(0, 2, (*shape, 1))
    weight[..., -1] *= rng.integers(0, 2, shape)  # padding
    everywhere = np.where(rng.random((*shape, 1)) < 0.3, 1 / 7, 0.0) * ~weight.any(axis=-1, keepdims=True)
    return SparseMembership(group, weight, everywhere, 7)


@pytest.mark.parametrize("shape", [(6,), (2, 6), (2, 3, 6)])
def test_sums_and_their_transpose(shape):
    rng = np.random.default_rng(1)
    for _ in range(20):
        one, other = random_membership(rng, shape), random_membership(rng, shape)
        array, by_group = dense(one), rng.normal(size=(*shape[:-1], 7))
        document_values = rng.normal(size=shape)
        slow = np.zeros((*shape[:-1], 7))
        for at in np.ndindex(*shape):
            slow[at[:-1]] += document_values[at] * array[at]
        np.testing.assert_allclose(group_sums(document_values, one), slow, atol=1e-14)
        np.testing.assert_allclose(
            group_means(document_values, one), group_means(document_values, array), atol=1e-12
        )
        np.testing.assert_allclose(
            spread(by_group, one), np.einsum("...dg,...g", array, by_group), atol=1e-14
        )
        factors = (one, other)
        np.testing.assert_allclose(
            product_sums(document_values, factors), product_sums(document_values, [array, dense(other)])
        )
        by_both = rng.normal(size=(*shape[:-1], 49))
        np.testing.assert_allclose(
            product_spread(by_both, factors), product_spread(by_both, [array, dense(other)])
        )


def test_views_of_both_forms():
    rng = np.random.default_rng(2)
    one = random_membership(rng, (3, 6))
    few, full = (
        AttributeView(tuple(GROUPS), False, (each,), np.full((3, 7), 1 / 7), np.ones(3, bool))
        for each in (one, dense(one))
    )
    order = rng.permuted(np.broadcast_to(np.arange(6), (3, 6)), axis=1)[:, :4]

    def some(membership):
        return membership[np.arange(3)[:, None], order] * (order > 1)[..., None]

    for mine, theirs in ((few, full), (few.with_rows(some), full.with_rows(some))):
        np.testing.assert_array_equal(mine.membership, theirs.membership)
        np.testing.assert_array_equal(mine.known, theirs.known)
        np.testing.assert_array_equal(mine.main_group, theirs.main_group)
        for group in GROUPS:
            np.testing.assert_allclose(sides(mine, group), sides(theirs, group), atol=1e-15)


def test_hard_memberships_sum_to_the_same_bits():
    """Documents are added in order, so that neither padding nor the form changes a bit."""
    rng = np.random.default_rng(3)
    one = random_membership(rng, (4, 50), width=1)
    one = SparseMembership(one.group, one.weight, np.zeros((4, 50, 1)), 7)
    exposure = rng.random((4, 50))
    np.testing.assert_array_equal(group_sums(exposure, one), group_sums(exposure, dense(one)))
    by_group = rng.random((4, 7))
    np.testing.assert_array_equal(spread(by_group, one), spread(by_group, dense(one)))


def many_groups(count, most=1):
    return {f"d{n}": {f"g{(n + i) % count}": 1.0 for i in range(most)} for n in range(count)}


def test_which_attributes_are_sparse():
    """It depends on the memberships alone, never on the run or on how the work is cut."""
    assert fe.Attribute.of("A", many_groups(256)).is_sparse
    assert not fe.Attribute.of("A", many_groups(255)).is_sparse
    with pytest.warns(fe.FairevalsWarning, match="do not sum to 1"):
        assert not fe.Attribute.of("A", many_groups(256, most=33)).is_sparse


def test_documents_times_groups_beyond_the_limit(monkeypatch):
    """Shares of groups are computed all the same; a measure that needs the memberships at each rank is refused."""
    monkeypatch.setenv("FAIREVALS_MAX_CELLS", "2000")
    docs = {f"d{n}": float(-n) for n in range(40)}
    qrels = {"t": dict.fromkeys(docs, 1)}
    shares = ["AWRF(attr='A')", "D_group(attr='A')", "L2(attr='A')", "DP(attr='A',protected='g1')@10"]
    result = fe.evaluate({"t": docs}, qrels, shares, groups={"A": many_groups(300)})
    assert np.isfinite(result.scores.mean(0, 0).value)
    fe.evaluate({"t": docs}, qrels, "GF(attr='A')@6", groups={"A": many_groups(300)})
    for measure in ("GF(attr='A')@7", "JME(level='IG',attr='A')"):
        with pytest.raises(fe.FairevalsError, match="in each of 300 groups; raise FAIREVALS_MAX_CELLS"):
            fe.evaluate({"t": docs}, qrels, measure, groups={"A": many_groups(300)})

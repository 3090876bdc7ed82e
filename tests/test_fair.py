from __future__ import annotations

import math
import subprocess
import sys
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefix_cases import ranked
from scipy.stats import binom, hypergeom

import fairevals as fe
from fairevals.collection import AttributeView, Ranked
from fairevals.errors import UsageError
from fairevals.io.task import Task
from fairevals.measures.base import HIGHER
from fairevals.measures.fa_ir import (
    FAIR,
    Binomial,
    Hypergeometric,
    adjusted_alpha,
    fail_probability,
    minimum_counts,
)

# Published with the authors' code: k, p, alpha, and the table.
UNADJUSTED = [
    (10, 0.2, 0.15, "0 0 0 0 0 0 0 0 1 1"),
    (20, 0.25, 0.1, "0 0 0 0 0 0 0 0 1 1 1 1 1 1 2 2 2 2 2 3"),
    (30, 0.3, 0.05, "0 0 0 0 0 0 0 0 1 1 1 1 1 2 2 2 2 2 3 3 3 3 3 4 4 4 4 5 5 5"),
]
ADJUSTED = [
    (10, 0.2, 0.15, "0 0 0 0 0 0 0 0 1 1"),
    (20, 0.25, 0.1, "0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 2 2 2 2 2"),
    (30, 0.3, 0.05, "0 0 0 0 0 0 0 0 0 0 1 1 1 1 1 1 2 2 2 2 2 3 3 3 3 4 4 4 4 4"),
]


def value(measure, shares, share=0.5):
    return float(measure.of_ranking(ranked(shares, share=share))[0])


@pytest.mark.parametrize(("k", "p", "alpha", "table"), UNADJUSTED)
def test_published_tables(k, p, alpha, table):
    assert minimum_counts(k, Binomial(p), alpha).tolist() == [int(m) for m in table.split()]


@pytest.mark.parametrize(("k", "p", "alpha", "table"), ADJUSTED)
def test_published_adjusted_tables(k, p, alpha, table):
    assert minimum_counts(k, Binomial(p), adjusted_alpha(k, Binomial(p), alpha)).tolist() == [
        int(m) for m in table.split()
    ]


@pytest.mark.parametrize(
    ("k", "p", "alpha", "published"),
    [(10, 0.2, 0.15, 0.15), (20, 0.25, 0.1, 0.07812500000000001), (30, 0.3, 0.15, 0.0796875)],
)
def test_published_adjusted_alphas(k, p, alpha, published):
    assert adjusted_alpha(k, Binomial(p), alpha) == pytest.approx(published, abs=1e-12)


@pytest.mark.parametrize(
    ("k", "p", "alpha", "published"),
    [
        (10, 0.2, 0.15, 0.13421772800000065),
        (20, 0.25, 0.1, 0.10515247355215251),
        (30, 0.3, 0.05, 0.04877730797178359),
    ],
)
def test_published_fail_probabilities(k, p, alpha, published):
    table = minimum_counts(k, Binomial(p), adjusted_alpha(k, Binomial(p), alpha))
    assert fail_probability(table, Binomial(p)) == pytest.approx(published, abs=1e-13)


def test_the_published_unadjusted_fail_probability_excludes_the_last_rank():
    table = minimum_counts(20, Binomial(0.25), 0.1)
    assert fail_probability(table[:-1], Binomial(0.25)) == pytest.approx(0.11517506930977106, abs=1e-13)
    assert fail_probability(table, Binomial(0.25)) == pytest.approx(0.146887188699111, abs=1e-12)


@given(st.integers(1, 11), st.floats(0.02, 0.98), st.floats(0.01, 0.5))
def test_fail_probability_agrees_with_enumeration(k, p, alpha):
    table = minimum_counts(k, Binomial(p), alpha)
    lists = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    chance = np.prod(np.where(lists == 1, p, 1 - p), axis=1)
    fails = (np.cumsum(lists, axis=1) < table).any(axis=1)
    assert fail_probability(table, Binomial(p)) == pytest.approx(chance[fails].sum(), abs=1e-12)


@given(st.integers(1, 40), st.floats(0.01, 0.99), st.floats(0.01, 0.3))
def test_adjusted_alpha_is_at_most_alpha(k, p, alpha):
    level = adjusted_alpha(k, Binomial(p), alpha)
    assert 0 <= level <= alpha
    table, unadjusted = minimum_counts(k, Binomial(p), level), minimum_counts(k, Binomial(p), alpha)
    assert (table <= unadjusted).all()
    # The tables at both ends of the search are at most as close to alpha.
    distance = abs(fail_probability(table[:-1], Binomial(p)) - alpha)
    for other in (0.0, alpha):
        assert (
            distance
            <= abs(fail_probability(minimum_counts(k, Binomial(p), other)[:-1], Binomial(p)) - alpha) + 1e-12
        )


lists = st.lists(st.one_of(st.none(), st.sampled_from([0.0, 1.0]), st.floats(0, 1)), min_size=1, max_size=15)


@given(lists, st.floats(0, 1), st.sampled_from([None, 1, 5]), st.sampled_from([None, 0.1]))
def test_values_agree_with_a_loop_over_prefixes(shares, share, cutoff, alpha):
    kept = [s for s in shares[:cutoff] if s is not None]
    expected = math.nan
    if kept:
        scores = [binom.cdf(math.floor(sum(kept[:k]) + 1e-9), k, share) for k in range(1, len(kept) + 1)]
        if alpha is not None:
            level = adjusted_alpha(len(kept), Binomial(share), alpha)
            # If a score equals the level except for rounding, either result is right.
            if any(abs(score - level) < 1e-12 for score in scores):
                return
            scores = [float(score >= level) for score in scores]
        expected = sum(scores) / len(scores)
    result = value(FAIR(attr="A", protected="p", alpha=alpha, cutoff=cutoff), shares, share)
    assert np.isclose(result, expected, rtol=1e-9, atol=1e-12, equal_nan=True)


@pytest.mark.parametrize(("k", "p", "alpha", "table"), ADJUSTED)
def test_a_ranking_with_the_minimum_counts_passes(k, p, alpha, table):
    needed = np.diff([0, *map(int, table.split())]).astype(float).tolist()
    measure = FAIR(attr="A", protected="p", alpha=alpha)
    assert value(measure, needed, p) == 1.0
    late = needed.index(1.0)
    needed[late], needed[late + 1] = 0.0, 1.0
    assert value(measure, needed, p) == pytest.approx((k - 1) / k)


def test_extreme_targets():
    measure = FAIR(attr="A", protected="p")
    assert value(measure, [0.0, 0.0, 0.0], share=0.0) == 1.0
    assert value(measure, [1.0, 1.0, 0.0], share=1.0) == pytest.approx(2 / 3)
    tested = FAIR(attr="A", protected="p", alpha=0.1)
    assert value(tested, [0.0, 0.0, 0.0], share=0.0) == 1.0
    assert value(tested, [1.0, 1.0, 0.0], share=1.0) == pytest.approx(2 / 3)


def test_soft_counts_are_rounded_before_they_are_compared():
    # 0.1 ten times is 0.9999999999999999.
    assert value(FAIR(attr="A", protected="p"), [0.1] * 10, 0.5) == pytest.approx(
        (sum(0.5**k for k in range(1, 10)) + 11 * 0.5**10) / 10
    )


def test_more_protected_is_never_worse():
    measure = FAIR(attr="A", protected="p")
    few, more = [0.0, 1.0, 0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]
    assert value(measure, few, 0.4) < value(measure, more, 0.4)
    assert FAIR.direction == HIGHER


def test_undefined():
    measure = FAIR(attr="A", protected="p")
    assert math.isnan(value(measure, [None, None]))
    assert math.isnan(value(FAIR(attr="A", protected="p", cutoff=1), [None, 1.0]))
    assert np.isnan(measure.of_ranking(ranked([1.0, 0.0], applies=False))).all()
    assert math.isnan(value(measure, [1.0, 0.0], share=math.nan))


@pytest.mark.parametrize("alpha", [None, 0.1])
def test_batches_samples_and_padding_change_nothing(alpha):
    rng = np.random.default_rng(1)
    lists = [rng.choice([0.0, 1.0, 0.25, None], size=n).tolist() for n in (1, 11, 25, 40, 13, 40)]
    shares = rng.random(6)
    measure = FAIR(attr="A", protected="p", alpha=alpha)
    alone = np.array([value(measure, each, share) for each, share in zip(lists, shares, strict=True)])
    for width in (40, 47, 100):
        np.testing.assert_array_equal(measure.of_ranking(ranked(*lists, share=shares, width=width)), alone)
    # Topics × samples, the attribute's target and `applies` with one sample only.
    both = [value(measure, each, 0.3) for each in lists[1:3]]
    block = ranked(*lists[1:3], width=40)
    view = block.attribute("A")
    folded = AttributeView(
        view.groups, False, (view.membership[None],), np.array([[[0.3, 0.7]]]), np.array([[True]])
    )
    samples = Ranked(np.zeros((1, 2, 40)), block.present[None], np.zeros((1, 1, 0)), 1.0, {"A": folded})
    np.testing.assert_array_equal(measure.of_ranking(samples), [both])


# --- Draws from a pool, without replacement ---


def orders_of(pool, protected):
    """All orders of a pool, as (orders, documents) of 0 and 1, and the probability of each at random."""
    orders = sorted(set(permutations([1] * protected + [0] * (pool - protected))))
    return np.array(orders), 1 / len(orders)


@given(st.integers(2, 8), st.integers(1, 7), st.floats(0.01, 0.5))
def test_the_null_of_a_pool_is_that_of_all_its_orders(pool, protected, alpha):
    protected = min(protected, pool - 1)
    orders, chance = orders_of(pool, protected)
    counts = np.cumsum(orders, axis=1)
    null = Hypergeometric(pool, protected)
    for size in range(1, pool + 1):
        for count in range(size + 1):
            expected = np.count_nonzero(counts[:, size - 1] <= count) * chance
            assert null.cdf(np.array(count), np.array(size)) == pytest.approx(expected, abs=1e-12)
    table = minimum_counts(pool, null, alpha)
    fails = np.count_nonzero((counts < table).any(axis=1)) * chance
    assert fail_probability(table, null) == pytest.approx(fails, abs=1e-12)
    assert 0 <= adjusted_alpha(pool, null, alpha) <= alpha


def from_pool(run, judged, groups, cutoff=None, alpha=None, policy="ranking", **task):
    """FAIR of a run {doc: score} for the protected group p, and its standard error."""
    measure = FAIR(attr="G", protected="p", null="hypergeometric", cutoff=cutoff, alpha=alpha)
    attribute = fe.Attribute.of("G", groups, ["p", "q"], unmapped="skip")
    options = {"groups": {"G": attribute}, "policy": policy, "task": Task(**task)}
    table = fe.evaluate({"r": {"t": run}}, {"t": dict.fromkeys(judged, 1)}, [measure], **options).frame()
    return float(table.value[0]), float(table.se[0])


def in_order(docs):
    return {doc: -float(rank) for rank, doc in enumerate(docs)}


GROUP_OF = dict.fromkeys("abc", "p") | dict.fromkeys("vwxyz", "q")


def test_a_worked_pool():
    """Three of eight are protected. "vab": none in 1, one in 2, two in 3."""
    expected = 5 / 8 + (1 - 3 / 8 * 2 / 7) + (1 - 3 / 8 * 2 / 7 * 1 / 6)
    assert from_pool(in_order("vab"), "abcvwxyz", GROUP_OF)[0] == pytest.approx(expected / 3, rel=1e-12)
    assert from_pool(in_order("vabwxyzc"), "abcvwxyz", GROUP_OF, cutoff=3)[0] == pytest.approx(
        expected / 3, rel=1e-12
    )


@given(
    st.permutations("abcvwxyzu1"),
    st.integers(1, 10),
    st.sampled_from([None, 3]),
    st.sampled_from([None, 0.1]),
)
def test_a_pool_agrees_with_a_loop(docs, length, cutoff, alpha):
    """`u` is judged but of no known group, `1` is not judged but protected."""
    kept = [GROUP_OF[d] for d in docs[:length][:cutoff] if d in GROUP_OF]
    expected = math.nan
    if kept:
        scores = [hypergeom.cdf(kept[:k].count("p"), 8, 3, k) for k in range(1, len(kept) + 1)]
        if alpha is not None:
            level = adjusted_alpha(len(kept), Hypergeometric(8, 3), alpha)
            scores = [float(score >= level) for score in scores]
        expected = sum(scores) / len(scores)
    result, _ = from_pool(in_order(docs[:length]), "abcvwxyzu", GROUP_OF | {"1": "p"}, cutoff, alpha)
    assert np.isclose(result, expected, rtol=1e-9, equal_nan=True)


def test_a_run_cannot_choose_its_pool():
    """Neither hiding protected documents nor adding unjudged ones of the other group makes a ranking pass."""
    honest, _ = from_pool(in_order("vwaxbyzc"), "abcvwxyz", GROUP_OF, cutoff=4)
    hidden, _ = from_pool(in_order("vwxyz"), "abcvwxyz", GROUP_OF, cutoff=4)
    assert hidden < honest
    padding = [f"junk{n}" for n in range(30)]
    padded, _ = from_pool(
        in_order([*"vwaxbyzc", *padding]), "abcvwxyz", GROUP_OF | dict.fromkeys(padding, "q"), cutoff=4
    )
    assert padded == honest
    between, _ = from_pool(
        in_order(["junk0", "v", "junk1", "w"]), "abcvwxyz", GROUP_OF | {"junk0": "p", "junk1": "p"}
    )
    assert between == from_pool(in_order("vw"), "abcvwxyz", GROUP_OF)[0]


def test_candidates_retrieved_makes_all_of_the_list_the_pool():
    groups = GROUP_OF | {"junk": "p"}
    result, _ = from_pool(in_order(["v", "junk", "a"]), "abcvwxyz", groups, cutoff=1, candidates="retrieved")
    assert result == pytest.approx(5 / 9)  # four of nine are protected


def test_a_pool_of_one_kind_says_nothing():
    assert math.isnan(from_pool(in_order("vw"), "vwxyz", GROUP_OF)[0])
    assert math.isnan(from_pool(in_order("ab"), "abc", GROUP_OF)[0])
    assert math.isnan(from_pool(in_order("uu"), "abcvu", GROUP_OF)[0])


def test_soft_members_of_a_pool_are_summed_and_rounded_down():
    groups = {"a": {"p": 0.5, "q": 0.5}, "b": {"p": 0.5, "q": 0.5}, "c": {"p": 0.25, "q": 0.75}, "v": "q"}
    assert from_pool(in_order("ab"), "abcv", groups)[0] == pytest.approx((3 / 4 + 1) / 2)  # one of four


def test_a_uniform_policy_has_the_mean_over_all_orders_of_the_pool():
    orders, chance = orders_of(8, 3)
    counts = np.cumsum(orders, axis=1)
    cdf = Hypergeometric(8, 3).cdf(counts, np.arange(1, 9))
    result, se = from_pool(dict.fromkeys("abcvwxyz", 0.0), "abcvwxyz", GROUP_OF, policy="pl")
    assert 0 < se < 0.05
    assert abs(result - float(cdf.mean(axis=1).sum() * chance)) < 4 * se


def test_importing_does_not_load_scipy():
    code = "import sys, fairevals.measures.prefix; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_declarations():
    for wrong in ({}, {"attr": "A"}, {"attr": "A", "protected": "p", "alpha": 1.0}):
        with pytest.raises(UsageError):
            FAIR(**wrong)
    with pytest.raises(UsageError, match="unknown group 'z'"):
        FAIR(attr="A", protected="z").of_ranking(ranked([1.0]))

"""Attention models: worked values, parsing and printing, and errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairevals.attention import Attention, parse_attention

SHARES = st.floats(0, 1)
MODELS = st.one_of(
    st.sampled_from(["log2", "trecfair", "reciprocal", "uniform"]).map(Attention),
    SHARES.map(lambda p: Attention("rbp", (p,))),
    st.floats(0.001, 1).map(lambda p: Attention("geometric", (p,))),
    st.tuples(SHARES, SHARES).map(lambda both: Attention("cascade", both)),
    st.lists(st.floats(0, 1e6), min_size=1, max_size=5).map(parse_attention),
)


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("log2", [1, 1 / np.log2(3), 1 / 2, 1 / np.log2(5)]),
        ("trecfair", [1, 1, 1 / np.log2(3), 1 / 2]),
        ("rbp", [1, 0.8, 0.64, 0.512]),
        ("rbp(0.5)", [1, 0.5, 0.25, 0.125]),
        ("rbp(p=0)", [1, 0, 0, 0]),
        ("reciprocal", [1, 1 / 2, 1 / 3, 1 / 4]),
        ("uniform", [1, 1, 1, 1]),
        ("geometric", [0.5, 0.25, 0.125, 0.0625]),
        (" geometric( p = 0.1 ) ", [0.1, 0.09, 0.081, 0.0729]),
        ("geometric(1)", [1, 0, 0, 0]),
        ("[3, 0, 2]", [3, 0, 2, 0]),
        ([1, 0.5], [1, 0.5, 0, 0]),
        (np.array([5, 4, 3, 2, 1]), [5, 4, 3, 2]),
    ],
)
def test_weights_of_the_first_ranks(text, weights):
    got = parse_attention(text).weights(4)
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, weights, rtol=1e-14)


@given(MODELS)
def test_text_parses_back(model):
    assert parse_attention(str(model)) == model
    assert parse_attention(model) is model
    assert len({model, parse_attention(str(model))}) == 1  # equal models have equal hashes


def test_every_form_gives_the_same_model():
    for forms in (
        ["[1, 0.5]", [1, 0.5], (1.0, 0.5), np.array([1, 0.5]), (np.float64(1), 0.5)],
        ["rbp(0.9)", "rbp(p=0.9)", Attention("rbp", (0.9,))],
        ["log2", " log2 ", "log2()", Attention("log2")],
    ):
        assert len({parse_attention(form) for form in forms}) == 1
        assert len({str(parse_attention(form)) for form in forms}) == 1
        assert {parse_attention(str(parse_attention(form))) for form in forms} == {parse_attention(forms[0])}


@given(MODELS, st.integers(0, 12), st.integers(0, 12))
def test_weights_of_fewer_ranks_are_a_prefix(model, k, fewer):
    if not model.looks_at_grades:
        full = model.weights(max(k, fewer))
        assert full.shape == (max(k, fewer),)
        np.testing.assert_array_equal(model.weights(min(k, fewer)), full[: min(k, fewer)])
        np.testing.assert_array_equal(model.weights_given(np.ones((2, len(full)))), [full, full])


def test_cascade_stops_after_relevant_documents():
    grades = np.array([[0, 2, 0, 1, 0], [-1, 0, 0, 0, 0]])
    got = parse_attention("cascade(0.9,0.25)").weights_given(grades)
    above = np.array([[0, 0, 1, 1, 2], [0, 0, 0, 0, 0]])
    np.testing.assert_allclose(got, 0.9 ** np.arange(5) * 0.75**above)
    never_satisfied = parse_attention("cascade(0.7,0)").weights_given(grades)
    np.testing.assert_allclose(never_satisfied, np.tile(0.7 ** np.arange(5), (2, 1)))
    assert parse_attention("cascade(0.5,1)").weights_given([1.0]).tolist() == [1.0]
    with pytest.raises(ValueError, match="grades"):
        parse_attention("cascade").weights(3)


@settings(max_examples=20)
@given(st.integers(1, 30))
def test_monotone_from_is_true_of_the_weights(count):
    # Complete monotonicity: all differences of order r have the sign (−1)^r. The step of the exact quadrature
    # relies on it. Differences of low order are enough to catch a wrong claim, and stay clear of rounding.
    for text in ("log2", "trecfair", "rbp(0.9)", "reciprocal", "uniform", "geometric(0.3)"):
        model = parse_attention(text)
        assert model.monotone_from is not None
        weights = model.weights(count + 8)[model.monotone_from - 1 :]
        for order in range(6):
            assert np.all((-1) ** order * np.diff(weights, order) >= -1e-13)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("dcg", "unknown attention 'dcg'.*log2.*cascade"),
        ("", "unknown attention"),
        ("rbp(0.5", "unknown attention"),
        ("rbp(x)", "'x' where a number"),
        ("rbp(q=0.5)", "wrong parameter 'q=0.5': expected rbp\\(p\\)"),
        ("rbp(0.5,0.6)", "wrong parameter '0.6'"),
        ("rbp(0.5,p=0.6)", "wrong parameter"),
        ("log2(3)", "wrong parameter '3': expected log2"),
        ("rbp(1.5)", "between 0 and 1, got 1.5"),
        ("rbp(nan)", "between 0 and 1"),
        ("cascade(0.5,-1)", "cascade: u must"),
        ("geometric(0)", "above 0"),
        ([], "at least one"),
        ("[]", "at least one"),
        ([1, -1], "not negative"),
        ([1, np.inf], "finite"),
        (3, "unknown attention 3"),
        (None, "unknown attention None"),
    ],
)
def test_wrong_models_are_errors_with_a_reason(wrong, message):
    with pytest.raises(ValueError, match=message):
        parse_attention(wrong)


def test_the_number_of_ranks_is_checked():
    with pytest.raises(ValueError, match="negative"):
        Attention("log2").weights(-1)
    assert [name for name in ("log2", "rbp", "cascade") if parse_attention(name).looks_at_grades] == [
        "cascade"
    ]

"""Numbers read a column at a time are those that Python's float gives, to the last bit."""

from __future__ import annotations

import math
import struct
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairevals.ids import Ids
from fairevals.io import decimals
from fairevals.io.decimals import parse_decimals, whole_numbers

digits = st.text("0123456789", min_size=0, max_size=25)
signs = st.sampled_from(["", "", "+", "-"])


def parse(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers, read alike at the beginning of a buffer, one digit at a time, and behind it, in words of eight."""
    column, behind = Ids.of(texts), Ids.of([" " * 24, *texts])
    start = behind.start[1:]
    values, bad = parse_decimals(column.buffer, column.start, column.start + column.length)
    others, others_bad = parse_decimals(behind.buffer, start, start + behind.length[1:])
    assert values.tobytes() == others.tobytes()
    assert bad.tolist() == others_bad.tolist()
    return values, bad


def bits(number: float) -> bytes:
    return struct.pack("<d", number)


def assert_same(texts: list[str]) -> None:
    values, bad = parse(texts)
    for text, value in zip(texts, values.tolist(), strict=True):
        assert bits(value) == bits(float(text)), text
    assert bad.size == 0


@st.composite
def decimal_texts(draw: st.DrawFn) -> str:
    whole, fraction = draw(digits), draw(digits)
    if not whole and not fraction:
        whole = "0"
    point = "." if fraction else draw(st.sampled_from(["", "."]))
    exponent = draw(st.sampled_from(["", "", "", "e5", "E-7", "e+12", "e-320", "e0"]))
    return draw(signs) + whole + point + fraction + exponent


@st.composite
def halfway(draw: st.DrawFn) -> str:
    """The exact middle between two neighbouring floats, or one digit beside it."""
    number = draw(st.floats(1e-6, 1e18, allow_subnormal=False))
    with localcontext() as context:
        context.prec = 800
        middle = (Decimal(number) + Decimal(math.nextafter(number, math.inf))) / 2
        text = f"{middle:f}"
        places = draw(st.integers(0, 20))
        # Cut to about as many digits as the fast way takes, which lands beside the middle on either side.
        return text if draw(st.booleans()) else f"{round(middle, places):f}"


@settings(max_examples=300)
@given(st.lists(decimal_texts(), min_size=1, max_size=40))
def test_decimals_of_every_shape(texts):
    assert_same([text for text in texts if math.isfinite(float(text))] or ["1"])


@settings(max_examples=300)
@given(st.lists(halfway(), min_size=1, max_size=40))
def test_halfway_between_two_floats(texts):
    assert_same(texts)


@settings(max_examples=200)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_repr_of_any_float(numbers):
    assert_same([repr(number) for number in numbers])
    assert_same([f"{number:.25g}" for number in numbers])


@settings(max_examples=200)
@given(st.lists(st.integers(10**14, 10**19 - 1), min_size=1, max_size=40), st.integers(0, 19))
def test_fifteen_to_nineteen_digits(wholes, places):
    """Where a whole number no longer fits a float and the rest of the division decides."""
    texts = [str(whole).zfill(places + 1) for whole in wholes]
    assert_same([text[: len(text) - places] + "." + text[len(text) - places :] for text in texts])


@settings(max_examples=200)
@given(st.integers(49, 63), st.lists(st.integers(0, 2**52 - 1), min_size=1, max_size=20), st.integers(-1, 1))
def test_halfway_within_nineteen_digits(power, steps, beside):
    """Middles that are short enough for the fast way, which must see that it cannot decide them."""
    texts = []
    for step in [0, 2**52 - 1, *steps]:
        spacing = Decimal(2) ** (power - 52)
        with localcontext() as context:
            context.prec = 60
            middle = (2**52 + step) * spacing + spacing / 2
            digit = Decimal(10) ** (len(str(int(middle))) - 19)  # the last of nineteen digits
            texts.append(f"{middle + beside * min(digit, Decimal(1)):f}")
    assert_same(texts)


def test_powers_of_two_and_their_neighbours():
    """Where the distance between floats changes, half of it does too."""
    numbers = [2.0**n for n in range(-30, 62)]
    beside = [math.nextafter(n, side) for n in numbers for side in (0.0, math.inf)]
    assert_same([f"{n:.{places}f}" for n in numbers + beside for places in range(0, 15)])


def test_zeros_keep_their_sign():
    assert_same(["0", "-0", "-0.0", "+0.000", "-.0", "0e5", "-0.0000000000000000000000000"])


@pytest.mark.parametrize(
    "text",
    [
        *("", "+", "-", ".", "-.", "--1", "+-1", "1-", "1,5", "1 2", "1.5.2", "1:5", "/", ":"),
        *("1_0", "0x1p3", "0x10", "1d5", "1f", "true", "None", "½", "١٢", "１２", "٣.٥"),
        *("nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e400", "-1e400", "1" + "0" * 400),
        *("1e", "e5", "1e+", "1e5.0", "12345678x", "x12345678", "1234567890123456789x"),
    ],
)
def test_what_is_not_a_finite_decimal(text):
    alone, beside = parse([text]), parse(["0.5", text, "7", "1e3"])
    assert alone[1].tolist() == [0]
    assert beside[1].tolist() == [1]
    assert math.isnan(alone[0][0])
    assert beside[0][[0, 2, 3]].tolist() == [0.5, 7, 1000]


@settings(max_examples=300)
@given(st.lists(st.text("0123456789.eE+-_xn ", max_size=22), min_size=1, max_size=30))
def test_rejects_exactly_what_is_not_a_decimal(texts):
    """Against float(), without the forms that it takes beyond decimals."""
    values, bad = parse(texts)
    for row, text in enumerate(texts):
        try:
            expected = math.nan if set(text) & set("_ xn") else float(text)
        except ValueError:
            expected = math.nan
        good = math.isfinite(expected)
        assert (row not in bad) == good, text
        assert not good or bits(values[row]) == bits(expected), text


def test_many_layouts_take_no_more_passes_than_one(monkeypatch):
    """Scores such as 1e-05 have no point: each was once a pass over all rows."""
    passes = []

    def counting(buffer, end, length):
        passes.append(end.size)
        return whole_numbers(buffer, end, length)

    monkeypatch.setattr(decimals, "whole_numbers", counting)
    texts = [f"{i % 9 + 1}e-{i % 80 + 10}" for i in range(2_000)]
    texts += [f"{'7' * (i % 9 + 1)}.{'3' * (i % 10)}" for i in range(2_000)]
    assert_same(texts)
    # One for the digits on either side of the point.
    assert len(passes) <= 12
    assert sum(passes) <= 12 * len(texts)

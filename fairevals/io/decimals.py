"""Columns of numbers from text, rounded exactly as Python's `float` does.

A decimal of up to 15 digits is a whole number below 2^53 divided by a power of ten below 10^23. Both are exact in
float64, so one division rounds correctly (Clinger, PLDI 1990). With 16 to 19 digits the remainder of that division is
computed too (Dekker's exact product) and added. If the result is too close to the middle between two floats, and for
exponents and everything unusual, Python's own `float` decides.
"""

import re

import numpy as np

from fairevals.ids import words_at
from fairevals.typing import Bools, Bytes, Floats, Ints, Words

NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")

_ZEROS = np.uint64(0x3030303030303030)
_HIGH = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIX = np.uint64(0x0606060606060606)
_THREES = np.uint64(0x3333333333333333)
_POWERS = 10.0 ** np.arange(23)
_WHOLE_POWERS = np.array([10**n for n in range(20)], dtype=np.uint64)
# Masks for the last n bytes of a word, in the order of the file.
_KEEP = np.array([((1 << (8 * n)) - 1) << (8 * (8 - n)) for n in range(9)], dtype=np.uint64)


def _eight_digits(words: Words) -> tuple[Words, Bools]:
    """The value of each word as eight decimal digits, and whether it consists of digits."""
    digits = ((words & _HIGH) | (((words + _SIX) & _HIGH) >> np.uint64(4))) == _THREES
    value = words - _ZEROS
    value = value * np.uint64(10) + (value >> np.uint64(8))
    low, high = np.uint64(0x000000FF000000FF), np.uint64(16)
    first = (value & low) * np.uint64(0x000F424000000064)
    second = ((value >> high) & low) * np.uint64(0x0000271000000001)
    return (first + second) >> np.uint64(32), digits


def whole_numbers(buffer: Bytes, end: Ints, length: Ints) -> tuple[Words, Bools]:
    """The whole number of `length` ≤ 19 digits before each `end` (0 if empty), and whether it has only digits."""
    total = np.zeros(end.size, dtype=np.uint64)
    fine = np.ones(end.size, dtype=bool)
    for number in range((int(length.max(initial=0)) + 7) // 8):
        here = np.clip(length - 8 * number, 0, 8)
        keep = _KEEP[here]
        # The padding at the front of the buffer is two words; a third is only loaded inside longer numbers.
        at = np.maximum(end - 8 * (number + 1), 0)
        value, digits = _eight_digits((words_at(buffer, at) & keep) | (_ZEROS & ~keep))
        total += value * _WHOLE_POWERS[8 * number]
        fine &= digits | (here == 0)
    return total, fine


def _divide(whole: Words, places: Ints) -> tuple[Floats, Bools]:
    """whole / 10^places for whole < 10^19, and whether it is known to be correctly rounded."""
    power = _POWERS[places]
    high = whole.astype(np.float64)
    # float64 cannot hold the whole number; the rounding error is small and exact.
    low = (whole - high.astype(np.uint64)).astype(np.int64).astype(np.float64)
    quotient = high / power
    # quotient × power without error, as product + error (Veltkamp's split, Dekker's product).
    product = quotient * power
    split = 134217729.0
    a = quotient * split
    a_high = a - (a - quotient)
    b = power * split
    b_high = b - (b - power)
    a_low, b_low = quotient - a_high, power - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    rest = ((high - product) + (low - error)) / power
    value = quotient + rest
    dropped = np.abs(rest - (value - quotient))
    half = np.spacing(value) / 2
    known = (np.abs(dropped - half) > half * 1e-6) & (np.frexp(value)[0] != 0.5)
    return value, known | (whole == 0)


def parse_decimals(buffer: Bytes, start: Ints, end: Ints) -> tuple[Floats, Ints]:
    """The numbers at `buffer[start:end]`, and the rows that are not finite numbers (their value is NaN).

    >>> from fairevals.ids import Ids
    >>> column = Ids.of(["29.90", "-1e-3", "nan", "0.1000000000000000055"])
    >>> parse_decimals(column.buffer, column.start, column.start + column.length)
    (array([ 2.99e+01, -1.00e-03,       nan,  1.00e-01]), array([2]))
    """
    first = buffer[start]
    negative = first == ord("-")
    begin = start + (negative | (first == ord("+")))
    points = np.append(np.flatnonzero(buffer == ord(".")), buffer.size)
    point = np.minimum(points[np.searchsorted(points, begin)], end)  # the end, if there is none
    left, right = point - begin, np.maximum(end - point - 1, 0)
    short = (left >= 0) & (left + right > 0) & (left + right <= 19)
    left, right = np.where(short, left, 0), np.where(short, right, 0)
    whole, fine = whole_numbers(buffer, point, left)
    if right.any():
        fraction, also_fine = whole_numbers(buffer, end, right)
        whole = whole * _WHOLE_POWERS[right] + fraction
        fine &= also_fine
    values = whole.astype(np.float64) / _POWERS[right]
    long = np.flatnonzero(whole >= np.uint64(1 << 53))
    if long.size:
        values[long], known = _divide(whole[long], right[long])
        fine[long] &= known
    np.negative(values, out=values, where=negative)
    slow = ~(fine & short)
    for row in np.flatnonzero(slow).tolist():
        text = buffer[start[row] : end[row]].tobytes()
        values[row] = float(text) if NUMBER.fullmatch(text) else np.nan
    bad = np.flatnonzero(~np.isfinite(values))
    values[bad] = np.nan
    return values, bad

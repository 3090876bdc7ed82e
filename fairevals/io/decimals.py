"""Columns of numbers from text, rounded exactly as Python's `float` does.

A decimal of up to 15 digits is a whole number below 2^53 divided by a power of ten below 10^23. Both are exact in
float64, so one division rounds correctly (Clinger, PLDI 1990). With 16 to 19 digits both are exact in the extended
precision of most processors; its quotient is rounded to float64, unless it is in the middle between two floats. In that
case, and for exponents and everything unusual, Python's own `float` decides.
"""

import math
import re

import numpy as np

from fairevals.ids import words_at
from fairevals.typing import Bools, Bytes, Floats, Ints, Words

_NUMBER = re.compile(rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_IS_EXTENDED = np.finfo(np.longdouble).nmant in (63, 112)  # elsewhere it is float64, or not rounded correctly
_POWERS = np.array([10**n for n in range(20)], dtype=np.uint64)
_EXACT_POWERS = _POWERS.astype(np.float64)
_FEW_DIGITS = 2
"""Up to so many, one digit at a time is faster than eight."""
_8, _16, _32 = np.uint64(8), np.uint64(16), np.uint64(32)
_ZEROS, _TO_HIGH_BIT, _HIGH_BITS = (np.uint64(byte * 0x0101010101010101) for byte in (0x30, 0x80 - 10, 0x80))
_TENS, _HUNDREDS, _MYRIADS = (
    np.uint64((10 << 8) + 1),
    np.uint64((100 << 16) + 1),
    np.uint64((10_000 << 32) + 1),
)
_EVERY_OTHER_BYTE, _EVERY_OTHER_PAIR = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)


def number_of(text: str | bytes) -> float:
    """The number that a text spells; NaN if it is not a finite decimal number."""
    raw = text.encode() if isinstance(text, str) else text
    value = float(raw) if _NUMBER.fullmatch(raw) else math.nan
    return value if math.isfinite(value) else math.nan


def whole_numbers(buffer: Bytes, end: Ints, length: Ints) -> tuple[Words, Bools]:
    """The whole number of `length` ≤ 19 digits before each `end` (0 if empty), and whether it has only digits."""
    total = np.zeros(end.size, dtype=np.uint64)
    fine = np.ones(end.size, dtype=bool)
    longest = int(length.max(initial=0))
    # Words must not begin before the buffer does.
    if longest <= _FEW_DIGITS or int(end.min()) < -(-longest // 8) * 8:
        for place in range(longest):
            inside = place < length
            # Before the start of the buffer the index wraps around; it is not inside then.
            digit = buffer[end - 1 - place] - np.uint8(ord("0"))
            fine &= (digit < 10) | ~inside
            total += digit * inside * _POWERS[place]
        return total, fine
    for done in range(0, longest, 8):
        number, all_digits = _eight_digits(words_at(buffer, end - done - 8), length - done)
        total += number * _POWERS[done]
        fine &= all_digits
    return total, fine


def _eight_digits(words: Words, length: Ints) -> tuple[Words, Bools]:
    """The number that the last `length` bytes of each word spell, at most 8, and whether all of them are digits.

    Neighbours are added in pairs: digits to numbers below 100, these to numbers below 10^4, and these to the result.
    """
    unused = np.clip(8 - length, 0, 8).astype(np.uint64) * _8
    words = words ^ _ZEROS
    # By 64 bits numpy shifts everything out.
    words >>= unused
    words <<= unused
    fine = ((words + _TO_HIGH_BIT) | words) & _HIGH_BITS == 0
    words *= _TENS
    words >>= _8
    words &= _EVERY_OTHER_BYTE
    words *= _HUNDREDS
    words >>= _16
    words &= _EVERY_OTHER_PAIR
    words *= _MYRIADS
    words >>= _32
    return words, fine


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
    # Most files print every score with as many decimals as the first.
    decimals = buffer[start[0] : end[0]].tobytes()[::-1].find(b".") if start.size else -1
    point = end - 1 - decimals
    if decimals < 0 or np.any(point < begin) or np.any(buffer[point] != ord(".")):
        points = np.append(np.flatnonzero(buffer == ord(".")), buffer.size)
        point = np.minimum(points[np.searchsorted(points, begin)], end)  # the end, if there is none
    left, right = point - begin, np.maximum(end - point - 1, 0)
    short = (left >= 0) & (left + right > 0) & (left + right <= 19)
    left, right = np.where(short, left, 0), np.where(short, right, 0)
    whole, fine = whole_numbers(buffer, point, left)
    fraction, also_fine = whole_numbers(buffer, end, right)
    whole = whole * _POWERS[right] + fraction
    fine &= also_fine
    values = whole.astype(np.float64) / _EXACT_POWERS[right]
    long = np.flatnonzero(whole >= np.uint64(1 << 53))
    if long.size:
        quotient = whole[long].astype(np.longdouble) / _POWERS[right[long]]
        value = values[long] = quotient.astype(np.float64)
        in_the_middle = np.abs(quotient - value) * 2 == np.spacing(value)
        # Below a power of two, floats are closer together than above it.
        fine[long] &= _IS_EXTENDED & ~in_the_middle & (np.frexp(value)[0] != 0.5)
    np.negative(values, out=values, where=negative)
    for row in np.flatnonzero(~(fine & short)).tolist():
        values[row] = number_of(buffer[start[row] : end[row]].tobytes())
    return values, np.flatnonzero(np.isnan(values))

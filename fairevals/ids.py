"""Columns of identifiers (topics, documents) as bytes in one buffer, hashed and compared without Python strings.

A run of millions of lines has millions of document ids. As Python strings they would take most of the time and
memory of scoring, but only a few are needed as text: tied, judged and printed ones. So the bytes stay in the
buffer of the file until then.

Hashes only select candidates; equality is always decided by the bytes, so collisions cannot change a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from fairevals.typing import Array, Bools, Bytes, Ints, Words

_PADDING = bytes(8)
"""Spare bytes at the end of every buffer, so that words can be loaded without checking the border."""

_LONG = 512
"""Longer ids (in bytes) are rare and are handled one by one, so that they do not slow down all others."""

_MASKS = np.array([(1 << (8 * n)) - 1 for n in range(9)], dtype=np.uint64)
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_HALF = np.uint64(32)


def padded_buffer(data: bytes) -> Bytes:
    """The bytes as an array with the spare bytes that `Ids` and number parsing need."""
    return np.frombuffer(data + _PADDING, dtype=np.uint8)


def words_at(buffer: Bytes, position: Ints) -> Words:
    """The eight bytes from each position as a little-endian word."""
    every = np.ndarray((buffer.size - 7,), dtype="<u8", buffer=buffer.data, strides=(1,))
    return every[position]


def mix(words: Words) -> Words:
    """Spread every bit of a word over all of it (one round of multiply and xor-shift)."""
    words = words * _MIX
    words ^= words >> _HALF
    words *= _MIX
    words ^= words >> _HALF
    return words


@dataclass(frozen=True)
class Ids:
    """A column of byte strings, each `buffer[start : start + length]` and without NUL bytes.

    >>> ids = Ids.of(["m-okafor", "j-lindqvist"])
    >>> ids.texts(), len(ids)
    (['m-okafor', 'j-lindqvist'], 2)
    """

    buffer: Bytes
    start: Ints
    length: Ints

    @classmethod
    def of(cls, texts: Iterable[str]) -> Ids:
        """A column from Python strings."""
        parts = [text.encode() for text in texts]
        return cls._in_a_row(b"".join(parts), np.array([len(part) for part in parts], dtype=np.int64))

    @classmethod
    def _in_a_row(cls, data: bytes, length: Ints) -> Ids:
        return cls(padded_buffer(data), np.cumsum(length) - length, length)

    @classmethod
    def concatenate(cls, columns: Sequence[Ids]) -> Ids:
        """The columns one after the other."""
        if len(columns) == 1:
            return columns[0]
        lengths = [np.zeros(0, dtype=np.int64), *(column.length for column in columns)]
        return cls._in_a_row(b"".join(column._joined() for column in columns), np.concatenate(lengths))

    def __len__(self) -> int:
        return self.start.size

    def take(self, rows: Array | slice) -> Ids:
        """Some of the rows, sharing the buffer."""
        return Ids(self.buffer, self.start[rows], self.length[rows])

    def compact(self) -> Ids:
        """The same column in its own buffer, which contains nothing else."""
        return Ids._in_a_row(self._joined(), self.length)

    def _joined(self) -> bytes:
        shift = self.start - (np.cumsum(self.length) - self.length)
        source = np.repeat(shift, self.length) + np.arange(self.length.sum())
        return bytes(self.buffer[source])

    def text(self, row: int) -> str:
        """One id as a string."""
        return self._bytes(row).decode()

    def _bytes(self, row: int) -> bytes:
        start = int(self.start[row])
        return self.buffer[start : start + int(self.length[row])].tobytes()

    def texts(self) -> list[str]:
        """All ids as strings."""
        data = self.buffer.tobytes()
        ends = (self.start + self.length).tolist()
        return [data[start:end].decode() for start, end in zip(self.start.tolist(), ends, strict=True)]

    def _word(self, number: int, rows: Array | slice) -> Words:
        """The number-th eight bytes of ids that are long enough to have one of them, 0 beyond the end of an id."""
        left = np.minimum(self.length[rows] - 8 * number, 8)
        return words_at(self.buffer, self.start[rows] + 8 * number) & _MASKS[left]

    def hashes(self) -> Words:
        """A 64-bit hash of each id."""
        value = self.length.astype(np.uint64) * _ODD
        longest = int(self.length.max(initial=0))
        rows: Array | slice = slice(None)
        for number in range((min(longest, _LONG) + 7) // 8):
            if number:
                rows = np.flatnonzero(self.length > 8 * number)
            value[rows] = mix(value[rows] ^ self._word(number, rows))
        for row in np.flatnonzero(self.length > _LONG).tolist():
            digest = blake2b(self._bytes(row), digest_size=8).digest()
            value[row] ^= np.uint64(int.from_bytes(digest, "little"))
        return value

    def equals(self, rows: Array | slice, other: Ids, other_rows: Array | slice) -> Bools:
        """Whether each id of `rows` has the same bytes as the one of `other` at `other_rows`."""
        mine, theirs = self.take(rows), other.take(other_rows)
        same: Bools = mine.length == theirs.length
        longest = int(mine.length[same].max(initial=0))
        for number in range((min(longest, _LONG) + 7) // 8):
            left = np.flatnonzero(same & (mine.length > 8 * number))
            same[left] = mine._word(number, left) == theirs._word(number, left)
        for row in np.flatnonzero(same & (mine.length > _LONG)).tolist():
            same[row] = mine._bytes(row) == theirs._bytes(row)
        return same

    def repeats(self) -> Bools:
        """Whether each id equals the one before it (the first does not)."""
        same = np.zeros(len(self), dtype=bool)
        same[1:] = self.equals(slice(1, None), self, slice(None, -1))
        return same

    def ranks(self) -> Ints:
        """The position of each id in ascending byte order; equal ids have equal ranks."""
        longest = int(self.length.max(initial=0))
        columns = max(1, (longest + 7) // 8)
        if columns * len(self) > 1 << 24:  # one very long id must not make a huge matrix
            keys: Array = np.array([text.encode() for text in self.texts()], dtype=object)
        else:
            words = np.zeros((len(self), columns), dtype="<u8")
            for number in range(columns):
                rows = np.flatnonzero(self.length > 8 * number)
                words[rows, number] = self._word(number, rows)
            keys = words.view(f"S{8 * columns}").ravel()
        return np.unique(keys, return_inverse=True)[1]


def numbered(column: Ids, known: dict[Any, int], second: Ids | None = None) -> Ints:
    """The number of each id in `known`; new ids are added to it with the next numbers.

    With a `second` column, pairs of ids are numbered. Equal ids are mostly neighbours, so only the first of each
    stretch becomes a string.

    >>> known = {"R1": 0}
    >>> numbered(Ids.of(["R2", "R2", "R1"]), known), known
    (array([1, 1, 0]), {'R1': 0, 'R2': 1})
    """
    same = column.repeats() if second is None else column.repeats() & second.repeats()
    starts = np.flatnonzero(~same)
    names: Iterable[Any] = column.take(starts).texts()
    if second is not None:
        names = zip(names, second.take(starts).texts(), strict=True)
    numbers = [known.setdefault(name, len(known)) for name in names]
    return np.repeat(np.array(numbers, dtype=np.int64), np.diff(starts, append=len(column)))


def keys(docs: Ids, topic: Ints) -> Words:
    """A 64-bit hash of each (topic number, document)."""
    return mix(docs.hashes() ^ mix((topic.astype(np.uint64) + np.uint64(1)) * _ODD))


class Index:
    """Finds rows by (topic number, document).

    >>> index = Index(np.array([0, 0, 1]), Ids.of(["a", "b", "a"]))
    >>> index.find(np.array([1, 1, 0]), Ids.of(["a", "b", "b"]))
    array([ 2, -1,  1])
    """

    def __init__(self, topic: Ints, docs: Ids) -> None:
        self.topic, self.docs = topic, docs
        hashes = keys(docs, topic)
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]

    def find(self, topic: Ints, docs: Ids) -> Ints:
        """The first row with each (topic, document), −1 where there is none."""
        wanted = keys(docs, topic)
        place = np.searchsorted(self._sorted, wanted)
        rows = np.full(len(docs), -1, dtype=np.int64)
        pending = np.arange(len(docs))
        while pending.size:  # more than once only where hashes collide
            pending = pending[place[pending] < self._sorted.size]
            pending = pending[self._sorted[place[pending]] == wanted[pending]]
            candidates = self._order[place[pending]]
            equal = (self.topic[candidates] == topic[pending]) & self.docs.equals(candidates, docs, pending)
            rows[pending[equal]] = candidates[equal]
            pending = pending[~equal]
            place[pending] += 1
        return rows

    def duplicates(self) -> Ints:
        """Rows, ascending, with the same (topic, document) as an earlier row."""
        return np.flatnonzero(self.find(self.topic, self.docs) != np.arange(len(self.docs)))

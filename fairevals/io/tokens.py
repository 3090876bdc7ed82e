"""Lines of white-space separated columns, a chunk of a file at a time, as positions in its bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairevals.ids import PAD_BACK, PAD_FRONT, Ids, padded_buffer
from fairevals.typing import Bytes, Ints

NEWLINE, TAB, RETURN, SPACE = 10, 9, 13, 32


class Irregular(Exception):  # noqa: N818 -- not an error yet: the careful reader decides
    """The chunk has something that the fast way does not read; the careful way says what and where."""


@dataclass(frozen=True)
class Tokens:
    """Where each column of each line stands: `start` and `end` are (lines, columns)."""

    buffer: Bytes
    start: Ints
    end: Ints

    def column(self, number: int) -> Ids:
        """One column as ids."""
        return Ids(self.buffer, self.start[:, number], self.end[:, number] - self.start[:, number])

    def __len__(self) -> int:
        return int(self.start.shape[0])


def tokenise(chunk: bytes, columns: int) -> Tokens:
    r"""Take a chunk of whole lines apart; blank lines are passed over.

    Columns are separated by any number of spaces and tabs, lines end in \n or \r\n.

    >>> tokens = tokenise(b"7 Q0\td1 \r\n\n7 Q0 d2\n", 3)
    >>> tokens.column(2).texts()
    ['d1', 'd2']
    """
    buffer = padded_buffer(chunk)
    body = buffer[PAD_FRONT : buffer.size - PAD_BACK]
    separators = np.flatnonzero(body <= SPACE)
    kinds = body[separators]
    if np.any((kinds != SPACE) & (kinds != NEWLINE) & (kinds != TAB) & (kinds != RETURN)):
        raise Irregular  # a control character
    if body.size and int(body.max()) >= 0x7F:
        try:
            chunk.decode()
        except UnicodeDecodeError:
            raise Irregular from None
    separators += PAD_FRONT
    gaps = np.diff(separators, prepend=PAD_FRONT - 1)
    ends_line = kinds == NEWLINE
    if separators.size % columns == 0 and int(gaps.min(initial=2)) > 1:
        table = ends_line.reshape(-1, columns)
        if table[:, -1].all() and not table[:, :-1].any():
            end = separators.reshape(-1, columns)
            return Tokens(buffer, end - gaps.reshape(-1, columns) + 1, end)
    line = np.cumsum(ends_line)
    line -= ends_line
    is_token = gaps > 1
    counts = np.bincount(line[is_token], minlength=int(line[-1]) + 1 if line.size else 0)
    if np.any((counts != columns) & (counts != 0)):
        raise Irregular
    end = separators[is_token]
    return Tokens(buffer, (end - gaps[is_token] + 1).reshape(-1, columns), end.reshape(-1, columns))

"""Compact letters: runs that share a letter are not significantly different."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from fairevals.typing import Bools


def letter_groups(different: Bools, order: Sequence[int]) -> list[list[int]]:
    """Sets of runs, none of which differ, such that any two that do not differ are together in one.

    `different` is symmetric; `order` has the runs concerned, best first, and the groups come in that order. They are
    cliques of the graph of pairs that do not differ, grown from each pair that is not in one yet by what fits, best
    first. Where the runs lie on a line and differ from a certain distance on, as with Tukey's test, this is the fewest
    groups. (Piepho's insert-and-absorb, JCGS 13, 2004, gives all maximal cliques, of which there may be very many.)

    >>> import numpy as np
    >>> letter_groups(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool), [0, 1, 2])
    [[0, 1], [1, 2]]
    """
    groups: list[list[int]] = []
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            if different[i, j] or any(i in group and j in group for group in groups):
                continue
            group = {i, j}
            for k in order:
                if k not in group and not any(different[k, other] for other in group):
                    group.add(k)
            groups.append([k for k in order if k in group])
        if not any(i in group for group in groups):
            groups.append([i])
    needed = [group for n, group in enumerate(groups) if not _covered(group, groups[:n] + groups[n + 1 :])]
    return sorted(needed, key=lambda group: [order.index(k) for k in group])


def _covered(group: list[int], others: list[list[int]]) -> bool:
    """Whether a group is part of another."""
    return any(set(group) <= set(other) for other in others)


def letter(number: int) -> str:
    """The letter of a group: a … z, A … Z, then numbers in brackets.

    >>> letter(0), letter(51), letter(52)
    ('a', 'Z', '[53]')
    """
    return ascii_letters[number] if number < len(ascii_letters) else f"[{number + 1}]"


def compact_letters(different: Bools, order: Sequence[int]) -> tuple[str, ...]:
    """The letters of every run, `a` with the best; no letter for a run that is not in `order`.

    Two runs share a letter if and only if they do not differ.

    >>> import numpy as np
    >>> compact_letters(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool), [0, 1, 2])
    ('a', 'ab', 'b')
    """
    groups = letter_groups(different, order)
    return tuple(
        "".join(letter(n) for n, group in enumerate(groups) if run in group) for run in range(len(different))
    )

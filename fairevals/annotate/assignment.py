"""Which page an assessor gets next. Pure functions: they read the places that are taken and change nothing."""

from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import blake2b
from itertools import groupby

Holders = frozenset[str]
"""The assessors who hold a place on a page: they are working on it, or have saved it."""

Groups = Mapping[Holders, Collection[int]]
"""The pages of a topic that have a free place, by who holds the others."""


def random_order(seed: int, who: str) -> Callable[[int], bytes]:
    """A sort key that puts pages into a random order, another one for each assessor; the same at every start.

    >>> first, second = ([*sorted(range(9), key=random_order(0, who))] for who in ("ann", "bob"))
    >>> first != second, first == sorted(range(9), key=random_order(0, "ann"))
    (True, True)
    """
    start = blake2b(f"{seed} {who}".encode("utf-8", "surrogatepass"), digest_size=8)

    def key(page: int) -> bytes:
        digest = start.copy()
        digest.update(b"%d" % page)
        return digest.digest()

    return key


def choose(
    groups: Groups,
    who: str,
    shared: Callable[[str], int],
    partners: Iterable[str],
    order: Callable[[int], bytes],
    avoid: Collection[int] = (),
) -> int | None:
    """The page of a topic that an assessor gets next, or None.

    `shared` is the number of pages that the assessor has in common with another one, `partners` are the others who
    work on the topic, and `order` is the random order of the assessor's pages. Pages to `avoid` are not considered.

    A page is even if nobody who holds a place on it has more pages in common with the assessor than the partner with
    fewest. Even pages come first, and of these the ones nearest to completion, so that agreement can be measured early.
    A page that nobody holds is always even. If no page is even, those come first that are least uneven.

    >>> groups = {frozenset(): {1}, frozenset({"ann"}): {2}, frozenset({"bob"}): {3}}
    >>> shared = {"ann": 4, "bob": 3}
    >>> choose(groups, "eve", shared.__getitem__, shared, random_order(0, "eve"))
    3
    >>> del groups[frozenset({"bob"})]
    >>> choose(groups, "eve", shared.__getitem__, shared, random_order(0, "eve"))
    1
    """
    fewest = min(map(shared, partners), default=0)

    def rank(holders: Holders) -> tuple[int, int]:
        return max((shared(other) - fewest for other in holders), default=0), -len(holders)

    for _, equal in groupby(sorted((h for h in groups if who not in h), key=rank), rank):
        pages = [page for holders in equal for page in groups[holders] if page not in avoid]
        if pages:
            return min(pages, key=order)
    return None

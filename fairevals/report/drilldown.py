"""What a reader sees who opens a topic: the first ranks of every run, with grades and groups, encoded compactly.

Each topic has one table of the documents that any run ranks there, and every run refers to it by small numbers. Numbers
are packed as bytes in base64, and ids as the part that differs from the id before.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairevals.collection.blocks import CELLS
from fairevals.collection.collection import Collection
from fairevals.collection.memberships import Membership
from fairevals.errors import check_known, escape, pluralize
from fairevals.evaluation.scores import Scores
from fairevals.evaluation.tops import TopRanks, read_top_ranks
from fairevals.ids import Ids, Index
from fairevals.io.specs import PolicySpec
from fairevals.measures.group_sums import group_sums, spread
from fairevals.report.groups import MAX_DRAWN_GROUPS, condense, shown_ranks
from fairevals.typing import Array, Floats, Ints

CHOICES = ("all", "front", "none")
MAX_RANKS = 160_000
"""The first ranks of all runs are in the page if there are at most so many: 40 runs × 200 topics × 20 ranks."""
MAX_CHARACTERS = 2_800_000
"""The first ranks may take at most so many characters of the page."""
MAX_ID = 100
"""How many characters of a document's id are shown."""
SHARE = 10_000
"""Memberships, targets and exposures have four decimals."""
COARSE_SHARE, MAX_SOFT = 200, 5_000
"""Memberships are rounded to a half per cent if there would be more different rows of them than this."""
DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
"""How many characters an id shares with the one before it, as one character."""


@dataclass(frozen=True)
class Drilldown:
    """The first ranks of some runs, as the page holds them."""

    runs: tuple[int, ...]
    """The places of the runs that have them."""
    depth: int
    reason: str
    """Why other runs have none; "" if all have them."""
    data: dict[str, Any]
    """Plain values only: texts, whole numbers, and lists and dicts of them. See `encode`."""


def depth_for(cutoff: int | None, runs: int, topics: int, choice: str | None) -> int:
    """How many ranks to keep of every run while they are scored; 0 where that would be too many, or none are wanted.

    >>> depth_for(None, 40, 200, None), depth_for(10, 40, 200, None), depth_for(100, 40, 200, None)
    (20, 10, 20)
    >>> depth_for(None, 41, 200, None), depth_for(None, 41, 200, "all"), depth_for(10, 2, 2, "none")
    (0, 20, 0)
    """
    if choice is not None:
        check_known("drilldown", choice, CHOICES)
    wanted = shown_ranks(cutoff)
    for depth in (wanted, min(wanted, shown_ranks(None))):
        if choice != "none" and (choice == "all" or runs * topics * depth <= MAX_RANKS):
            return depth
    return 0


def drilldown(
    scores: Scores,
    sources: Sequence[Any],
    collection: Collection,
    policy: PolicySpec,
    *,
    attributes: Sequence[str] = (),
    important: Sequence[int] = (),
    choice: str | None = None,
) -> Drilldown:
    """The first ranks of all runs if the scores have them and they fit into the page, else of the important ones.

    With the choice "all" they need not fit. Important runs that were not kept while scoring are read again.
    """
    total, topics, cutoff = len(scores.runs), len(scores.topics), collection.task.cutoff
    depth = depth_for(cutoff, total, topics, choice) or depth_for(cutoff, 1, topics, choice)
    if not depth:
        return Drilldown((), 0, reason(0, total, choice), {})
    tops = dict(enumerate(scores.tops))
    runs = list(important)
    if tops and choice != "front":
        runs = list(tops)
    elif not tops:
        runs = runs[: MAX_RANKS // max(1, topics * depth)]
        tops = {r: read_top_ranks(sources[r], collection, policy, depth) for r in runs}
    while runs:
        data = encode({r: tops[r] for r in sorted(runs)}, collection, depth, attributes, policy.kind)
        if choice == "all" or len(json.dumps(data)) <= MAX_CHARACTERS:
            return Drilldown(tuple(sorted(runs)), depth, reason(len(runs), total, choice), data)
        # All, the important ones, and then ever fewer of them.
        runs = list(important) if len(runs) > len(important) else runs[: len(runs) // 2]
    return Drilldown((), 0, reason(0, total, choice), {})


def encode(
    tops: Mapping[int, TopRanks], collection: Collection, depth: int, attributes: Sequence[str], policy: str
) -> dict[str, Any]:
    """The first ranks of runs, by the places of the runs.

    `runs` are those places; `grades` all different grades. `attributes` have name, groups, `soft`, the different
    `rows` of memberships that are not all in one group, in units of 1/`share`, and `targets`, the different targets.
    `topics` are in the order of the qrels; each has

    - `docs`: ids in the order of their bytes, each as the number of characters that it shares with the one before (a
      place in `DIGITS`) and the rest, separated by line ends;
    - `grades`: for each document 0 if it is unjudged, or else 1 + the place of its grade;
    - `groups`: for each attribute that applies, for each document 0 without membership, 1 + g if it is all in group g,
      or else 1 + the number of groups + the place of its row in `soft`; null for one that does not apply;
    - `targets`: for each attribute the place of its target, or null;
    - `ranks`: for each run and rank, 1 + the place of its document; 0 where the ranking has ended;
    - `exposure`: for each run and rank, in units of 1/`share`; only if the policy is not one ranking.
    """
    topics = len(collection.qrels.topics)
    runs = np.repeat(np.arange(len(tops)), [top.rank.size for top in tops.values()])
    joined = TopRanks.joined(list(tops.values()))
    first, document = np.unique(
        Index(joined.topic, joined.docs).find(joined.topic, joined.docs), return_inverse=True
    )
    order = np.lexsort((joined.docs.take(first).ranks(), joined.topic[first]))
    topic, docs = joined.topic[first][order], joined.docs.take(first[order])
    starts = np.searchsorted(topic, np.arange(topics + 1))
    place = np.argsort(order)[document] - starts[joined.topic]  # in the table of the topic
    ranks, exposure = np.zeros((2, topics, len(tops), depth), dtype=np.int64)
    at = (joined.topic, runs, joined.rank)
    ranks[at] = place + 1
    exposed = not np.isnan(joined.exposure).all()
    if exposed:
        exposure[at] = np.rint(joined.exposure * SHARE)
    known, grade = _grades(collection, topic, docs)
    shown = [_Memberships.of(name, collection, topic, docs) for name in attributes]
    names = docs.texts()
    tables = []
    for t, (start, stop) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        here = slice(start, stop)
        one = {
            "docs": front_coded(names[here]),
            "grades": packed(grade[here]),
            "groups": [packed(m.code[here]) if m.applies[t] else None for m in shown],
            "targets": [m.target[t] for m in shown],
            "ranks": packed(ranks[t]),
        }
        tables.append({**one, "exposure": packed(exposure[t])} if exposed else one)
    return {
        "runs": list(tops),
        "depth": depth,
        "policy": policy,
        "share": SHARE,
        "grades": [f"{grade:g}" for grade in known.tolist()],
        "attributes": [m.described for m in shown],
        "topics": tables,
    }


def packed(numbers: Array) -> str:
    """Non-negative whole numbers as bytes, least significant first, in base64; as many bytes for each as needed.

    >>> packed(np.array([1, 2])), packed(np.array([1, 256]))
    ('AQI=', 'AQAAAQ==')
    """
    width = max(1, (int(numbers.max(initial=0)).bit_length() + 7) // 8)
    every = numbers.astype("<u4").reshape(-1, 1).view(np.uint8)
    return base64.b64encode(every[:, :width].tobytes()).decode("ascii")


def front_coded(names: Sequence[str]) -> str:
    r"""Ids, each as what it shares with the one before and the rest.

    >>> front_coded(["clueweb-01", "clueweb-07", "x\n"])
    '0clueweb-01\n97\n0x\\n'
    """
    parts, last = [], ""
    for name in names:
        if len(name) > MAX_ID or not name.isprintable():
            name = str(escape(name, MAX_ID))
        shared = min(len(last), len(name), len(DIGITS) - 1)
        while last[:shared] != name[:shared]:
            shared -= 1
        parts.append(DIGITS[shared] + name[shared:])
        last = name
    return "\n".join(parts)


def _grades(collection: Collection, topic: Ints, docs: Ids) -> tuple[Floats, Ints]:
    """All different grades of the documents, and for each document 1 + its place there, 0 if it is unjudged."""
    qrels = collection.qrels
    at = qrels.index.find(topic, docs)
    judged = at >= 0
    code = np.zeros(topic.size, dtype=np.int64)
    known, code[judged] = np.unique(qrels.grades[at[judged]], return_inverse=True)
    code[judged] += 1
    return known, code


@dataclass(frozen=True)
class _Memberships:
    """The memberships of the documents in an attribute, of which at most `MAX_DRAWN_GROUPS` groups are shown."""

    code: Ints
    applies: list[bool]
    """For each topic."""
    target: list[int | None]
    """For each topic, the place of its target."""
    described: dict[str, Any]

    @classmethod
    def of(cls, name: str, collection: Collection, topic: Ints, docs: Ids) -> "_Memberships":
        attribute = collection.attributes[name]
        spec = attribute.spec
        step = max(1, CELLS // collection.width(name, by_rank=False))
        parts = [slice(start, start + step) for start in range(0, topic.size, step)]

        def memberships(part: slice) -> Membership:
            return collection.memberships(name, topic[part], docs.take(part))[0]

        sizes = np.zeros(len(spec.groups))
        for part in parts if len(spec.groups) > MAX_DRAWN_GROUPS else ():
            sizes += group_sums(np.ones(topic[part].size), memberships(part))
        ordinal = spec.kind == "ordinal"
        groups, _, owner = condense(spec.groups, sizes, ordinal=ordinal)
        summed = np.eye(len(groups))[owner]  # which groups are shown as one
        shares = np.zeros((topic.size, len(groups)))
        for part in parts:
            rows = memberships(part)
            shares[part] = np.stack([spread(group, rows) for group in summed.T], axis=1)
        share, (code, soft) = SHARE, _codes(np.rint(shares * SHARE))
        if len(soft) > MAX_SOFT:
            share, (code, soft) = COARSE_SHARE, _codes(np.rint(shares * COARSE_SHARE))
        # A topic to which the attribute does not apply, or that has no target, shows none.
        wanted = attribute.applies & ~np.isnan(attribute.target).any(axis=1)
        units = np.rint(attribute.target[wanted] @ summed * SHARE).astype(np.int64)
        different, number = np.unique(units, axis=0, return_inverse=True)
        target = np.full(wanted.size, -1)
        target[wanted] = number.ravel()
        described = {
            "name": str(escape(name)),
            "groups": [str(escape(group)) for group in groups],
            "total": len(spec.groups),
            "ordinal": ordinal,
            "share": share,
            "soft": packed(soft),
            "rows": len(soft),
            "targets": different.tolist(),
        }
        places = [number if number >= 0 else None for number in target.tolist()]
        return cls(code, attribute.applies.tolist(), places, described)


def _codes(shares: Floats) -> tuple[Ints, Floats]:
    """For each document its code (see `encode`), and the different rows of those that are in several groups."""
    groups = shares.shape[1]
    code = np.where(shares.any(axis=1), 1 + shares.argmax(axis=1), 0)
    mixed = np.flatnonzero(np.count_nonzero(shares, axis=1) > 1)
    rows, number = np.unique(shares[mixed], axis=0, return_inverse=True)
    code[mixed] = 1 + groups + number.ravel()
    return code, rows


def reason(kept: int, total: int, choice: str | None) -> str:
    """Why only some runs have their first ranks in the page; "" if all have.

    >>> reason(3, 120, None)
    'first ranks are shown of 3 of 120 runs (baselines, best, Pareto fronts, references), to keep the page small'
    """
    if kept == total:
        return ""
    which = " (baselines, best, Pareto fronts, references)" if kept else ""
    small = "" if choice in ("front", "none") else ", to keep the page small"
    return f"first ranks are shown of {kept} of {pluralize(total, 'run')}{which}{small}"

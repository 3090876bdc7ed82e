"""The careful reader of run files: slower than `runs`, but it knows every line and finds everything that is wrong.

`validate` prints what it finds; the fast reader turns to it when something smells, for a message with file and line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from fairevals.errors import InputError, Place, escape
from fairevals.io.decimals import NUMBER
from fairevals.io.streams import BOM, Source

TREC_COLUMNS = "6 columns (topic Q0 doc rank score tag)"
FAIR_COLUMNS = "3 columns (topic, sample, doc), separated by tabs"
_CONTROLS = bytes(c for c in range(32) if c not in (9, 10, 13))


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: where, what kind, what was found and what was expected."""

    place: Place
    kind: str
    found: str
    expected: str = ""
    warning: bool = False

    def error(self) -> InputError:
        """The same as an exception."""
        return InputError(self.place, self.found, self.expected)


@dataclass(frozen=True)
class Rules:
    """What a run must keep to, beyond being readable. The default asks for nothing more."""

    topics: Collection[str] | None = None
    max_documents: int | None = None
    samples: bool = False
    order: str = "score"
    style: bool = False
    """Whether to look at ranks and tags as well."""


@dataclass
class _List:
    """What is known so far of one topic (or one sample of it)."""

    first_line: int
    docs: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    """The line of each document, and its second column."""
    ranking: list[tuple[float, bytes, float, int]] = field(default_factory=list)


def is_sysdesc(line: bytes) -> bool:
    """Whether a line is NTCIR's description of the system, which may stand first."""
    return line.removeprefix(BOM).lstrip().startswith(b"<SYSDESC>")


def is_header(columns: list[bytes]) -> bool:
    """Whether three columns are the names of TREC Fair's (id, seq_no or rep_number, doc or page_id)."""
    return len(columns) == 3 and columns[0].lower() in (b"id", b"topic") and not columns[1].isdigit()


def check_run(source: Source, rules: Rules | None = None) -> Iterator[Problem]:
    """Everything that is wrong with a TREC run (or a TREC Fair table of three columns), in the order of lines."""
    rules = rules or Rules()
    lists: dict[tuple[str, str], _List] = {}
    unknown: dict[str, int] = {}
    first_sample: dict[str, str] = {}
    sampled: set[str] = set()
    tag: bytes | None = None
    wanted = None
    for number, line in source.lines():
        place = Place(source.name, number)
        columns = line.split()
        if not columns or (number == 1 and is_sysdesc(line)):
            continue
        if wanted is None:
            wanted = 3 if len(columns) == 3 else 6
            if is_header(columns):
                continue
        try:
            line.decode()
        except UnicodeDecodeError as error:
            yield Problem(
                place,
                "encoding",
                f"a byte that is not UTF-8 ({escape(line[error.start : error.start + 4])})",
                "UTF-8",
            )
            continue
        if line.translate(None, _CONTROLS) != line:
            yield Problem(place, "encoding", f"a control character in {escape(line)!r}", "text")
            continue
        if len(columns) != wanted:
            yield Problem(
                place,
                "columns",
                f"{len(columns)} columns: {escape(line)!r}",
                TREC_COLUMNS if wanted == 6 else FAIR_COLUMNS,
            )
            continue
        doc = columns[2]
        topic = columns[0].decode()
        sample = columns[1].decode() if rules.samples or wanted == 3 else ""
        score, rank = 0.0, 0.0
        if wanted == 6:
            _, _, _, rank_text, score_text, found_tag = columns
            score = float(score_text) if NUMBER.fullmatch(score_text) else float("nan")
            if not abs(score) < float("inf"):
                yield Problem(place, "score", f"score {escape(score_text)!r}", "a finite number")
                continue
            tag = found_tag if tag is None else tag
            if rules.style:
                if found_tag != tag:
                    yield Problem(
                        place, "tag", f"tag {escape(found_tag)!r}", f"{escape(tag)!r} as in the first line"
                    )
                if NUMBER.fullmatch(rank_text):
                    rank = float(rank_text)
                else:
                    yield Problem(place, "rank", f"rank {escape(rank_text)!r}", "a number", warning=True)
        if rules.topics is not None and topic not in rules.topics:
            if topic not in unknown:
                yield Problem(place, "unknown topic", f"topic {escape(topic)!r}", "a topic of the task")
            unknown[topic] = unknown.get(topic, 0) + 1
            continue
        if (
            wanted == 3
            and not rules.samples
            and rules.style
            and sample != first_sample.setdefault(topic, sample)
        ):
            if topic not in sampled:
                found = f"several rankings of topic {escape(topic)!r}"
                yield Problem(place, "samples", found, "one (or --policy samples)")
            sampled.add(topic)
        known = lists.setdefault((topic, sample), _List(number))
        if doc in known.docs:
            line_before, second = known.docs[doc]
            hint = "" if second == columns[1] else "; the second column differs: are these --policy samples?"
            yield Problem(
                place,
                "duplicate",
                f"document {escape(doc)!r} a second time in topic {escape(topic)!r}",
                f"it once (first in line {line_before}{hint})",
            )
            continue
        known.docs[doc] = (number, columns[1])
        if rules.max_documents is not None and len(known.docs) == rules.max_documents + 1:
            yield Problem(
                place,
                "too many",
                f"more than {rules.max_documents} documents in topic {escape(topic)!r}",
                f"at most {rules.max_documents}",
            )
        if rules.style and wanted == 6:
            known.ranking.append((score, doc, rank, number))
    if not lists and not unknown:
        yield Problem(Place(source.name), "empty", "no readable line", TREC_COLUMNS)
    if rules.style and rules.order == "score":
        yield from _contradictions(source.name, lists)
    yield from _missing(source.name, {topic for topic, _ in lists}, rules)


def _missing(name: str, present: Collection[str], rules: Rules) -> Iterator[Problem]:
    for topic in rules.topics or ():
        if topic not in present:
            yield Problem(
                Place(name),
                "missing topic",
                f"nothing for topic {escape(topic)!r}",
                "every topic of the task",
            )


def check_lists(name: str, topics: Sequence[str], counts: Sequence[int], rules: Rules) -> Iterator[Problem]:
    """What is wrong with a run that was read from a table: its topics, and how many documents each list has."""
    for topic, count in zip(topics, counts, strict=True):
        if rules.topics is not None and topic not in rules.topics:
            yield Problem(Place(name), "unknown topic", f"topic {escape(topic)!r}", "a topic of the task")
        elif rules.max_documents is not None and count > rules.max_documents:
            found = f"{count} documents in topic {escape(topic)!r}"
            yield Problem(Place(name), "too many", found, f"at most {rules.max_documents}")
    yield from _missing(name, set(topics), rules)


def _contradictions(name: str, lists: dict[tuple[str, str], _List]) -> Iterator[Problem]:
    """Where the rank column says another order than score and document id, which are what counts."""
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for (topic, _), known in lists.items():
        ranking = sorted(known.ranking, key=lambda row: (row[0], row[1]), reverse=True)
        for before, after in pairwise(ranking):
            if before[2] > after[2]:
                tied = before[0] == after[0]
                found["tied" if tied else "other"].append((topic, after[3]))
                break
    if first := found["other"]:
        topic, line = first[0]
        yield Problem(
            Place(name, line),
            "rank order",
            f"ranks of {len(first)} topics (such as {escape(topic)!r}) contradict the scores",
            "the highest score first; the scores count",
            warning=True,
        )
    if first := found["tied"]:
        topic, line = first[0]
        yield Problem(
            Place(name, line),
            "tied scores",
            f"ranks of {len(first)} topics (such as {escape(topic)!r}) order equal scores another way",
            "among equal scores the document id descending; it counts",
            warning=True,
        )


def raise_first(source: Source, rules: Rules | None = None) -> None:
    """Raise the first error in the file, if there is one."""
    for problem in check_run(source, rules):
        if not problem.warning:
            raise problem.error()

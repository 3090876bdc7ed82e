"""The careful reader of run files. It reads line by line and finds everything that is wrong.

`validate` prints its findings. The fast reader in `runs` uses it to report a bad file with the line.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from fairevals.errors import Place, escape, pluralize
from fairevals.io.decimals import number_of
from fairevals.io.lines import Column, LineFormat, Problem, data_lines
from fairevals.io.streams import Source, is_json

_SCORE = (Column("rank"), Column("score", "number"), Column("tag"))
TREC_RUN = LineFormat("a TREC run", (Column("topic"), Column("Q0"), Column("doc"), *_SCORE))
FAIR_RUNS = {
    2: LineFormat("a TREC run", (Column("topic"), Column("doc"))),
    3: LineFormat("a TREC run", (Column("topic"), Column("sample"), Column("doc"))),
}
"""TREC Fair's, by the number of columns: with one ranking of a topic, and with several."""


def run_format(source: Source, *, trailing: bool = False) -> LineFormat:
    """The format of a run: TREC Fair's if the first line has two or three columns, else TREC's with six.

    With `trailing`, text after the sixth column is ignored, as trec_eval does. Two lines may precede the data: NTCIR's
    `<SYSDESC>…`, and the names of TREC Fair's columns (id or topic, [seq_no or rep_number,] doc or page_id).
    """
    skip = 0
    for number, line in data_lines(source):
        if not skip and line.lstrip().startswith(b"<SYSDESC>"):
            skip = number
            continue
        cells = line.split()
        if len(cells) not in FAIR_RUNS or is_json(line):
            break
        # Any text may start with two words, and so does a line that was cut off.
        if len(cells) == 2 and (cells[1] == b"Q0" or source.other_format()):
            break
        is_header = cells[0].lower() in (b"id", b"topic") and not cells[1].isdigit()
        return replace(FAIR_RUNS[len(cells)], skip=number if is_header else skip)
    return replace(TREC_RUN, skip=skip, rest=(lambda rest: None) if trailing else None)


@dataclass(frozen=True)
class Rules:
    """What a run must fulfil beyond being readable. By default nothing."""

    topics: Collection[str] | None = None
    max_documents: int | None = None
    samples: bool = False
    order: str = "score"
    trailing: bool = False
    """Whether text after the last column is ignored."""
    style: bool = False
    """Whether to check ranks and tags as well."""


READABLE = Rules()
RankedRows = dict[bytes, tuple[float, bytes, float, int, bytes]]
"""Score, document, rank, line and second column of each document of a ranking."""


def check_run(source: Source, rules: Rules = READABLE) -> Iterator[Problem]:
    """Everything that is wrong with a TREC run (or TREC Fair's two or three columns), in the order of lines."""
    line_format = run_format(source, trailing=rules.trailing)
    fair, single = len(line_format.columns) in FAIR_RUNS, len(line_format.columns) == 2
    lists: dict[tuple[str, str], RankedRows] = {}
    first_sample: dict[str, str] = {}
    reported: set[tuple[str, str]] = set()
    """Kind and topic of problems that are reported once per topic."""
    tag, bad_lines = b"", 0
    for number, cells, problem in line_format.examine(source):
        place = Place(source.name, number)
        if problem:
            other = "" if bad_lines else source.other_format()
            if other:
                yield Problem(Place(source.name), "format", f"this is {other}", line_format.what)
                return
            bad_lines += 1
            yield problem
            continue
        topic, second, doc = cells[0].decode(), b"" if single else cells[1], cells[1 if single else 2]
        sample = second.decode() if rules.samples or fair else ""
        score = rank = 0.0
        if rules.style and not fair:
            tag = tag or cells[5]
            if cells[5] != tag:
                expected = f"{escape(tag)!r} as in the first line"
                yield Problem(place, "tag", f"tag {escape(cells[5])!r}", expected)
            score, rank = float(cells[4]), number_of(cells[3])
            if rank != rank:
                yield Problem(place, "rank", f"rank {escape(cells[3])!r}", "a number", warning=True)
                rank = 0.0
        kind = ""
        if rules.topics is not None and topic not in rules.topics:
            kind, found, expected = "unknown topic", f"topic {escape(topic)!r}", "a topic of the task"
        elif fair and rules.style and not rules.samples and sample != first_sample.setdefault(topic, sample):
            kind, (found, expected) = "samples", _several_rankings(topic)
        if kind and (kind, topic) not in reported:
            yield Problem(place, kind, found, expected)
            reported.add((kind, topic))
        if kind == "unknown topic":
            continue
        rows = lists.setdefault((topic, sample), {})
        if doc in rows:
            *_, line, earlier = rows[doc]
            hint = "" if earlier == second else "; the second column differs: are these sampled rankings?"
            found = f"document {escape(doc)!r} a second time in topic {escape(topic)!r}"
            yield Problem(place, "duplicate", found, f"it once (first in line {line}{hint})")
            continue
        rows[doc] = (score, doc, rank, number, second)
        if rules.max_documents is not None and len(rows) == rules.max_documents + 1:
            found = f"more than {rules.max_documents} documents in topic {escape(topic)!r}"
            yield Problem(place, "too many", found, f"at most {rules.max_documents}")
    if not lists and not reported:
        yield Problem(Place(source.name), "empty", "no readable line", line_format.expected)
    if rules.style and rules.order == "score":
        yield from _contradictions(source.name, lists)
    yield from _missing(source.name, {topic for topic, _ in lists}, rules)


def raise_first(source: Source, rules: Rules = READABLE) -> None:
    """Raise the first error in the file, if there is one."""
    for problem in check_run(source, rules):
        if not problem.warning:
            raise problem.error()


def check_lists(name: str, topics: Sequence[str], counts: Sequence[int], rules: Rules) -> Iterator[Problem]:
    """What is wrong with the topics of a run read from a table, and with the number of documents in each list."""
    place, lists, seen = Place(name), Counter(topics), set[str]()
    for topic, count in zip(topics, counts, strict=True):
        first = topic not in seen
        seen.add(topic)
        if rules.topics is not None and topic not in rules.topics:
            if first:
                yield Problem(place, "unknown topic", f"topic {escape(topic)!r}", "a topic of the task")
            continue
        if first and lists[topic] > 1 and not rules.samples:
            yield Problem(place, "samples", *_several_rankings(topic))
        if rules.max_documents is not None and count > rules.max_documents:
            found = f"{count} documents in topic {escape(topic)!r}"
            yield Problem(place, "too many", found, f"at most {rules.max_documents}")
    yield from _missing(name, set(topics), rules)


def _several_rankings(topic: str) -> tuple[str, str]:
    return f"several rankings of topic {escape(topic)!r}", "one, or the policy 'samples'"


def _missing(name: str, present: Collection[str], rules: Rules) -> Iterator[Problem]:
    for topic in rules.topics or ():
        if topic not in present:
            found = f"nothing for topic {escape(topic)!r}"
            yield Problem(Place(name), "missing topic", found, "every topic of the task")


def _contradictions(name: str, lists: Mapping[tuple[str, str], RankedRows]) -> Iterator[Problem]:
    """Topics whose rank column has another order than score and document id, which decide."""
    first: dict[bool, list[tuple[str, int]]] = {False: [], True: []}
    """Topic and line of the first contradiction in each list, by whether the scores tie."""
    for (topic, _), rows in lists.items():
        for before, after in pairwise(sorted(rows.values(), reverse=True)):
            if before[2] > after[2]:
                first[before[0] == after[0]].append((topic, after[3]))
                break
    for tied, kind, found, expected in (
        (False, "rank order", "contradict the scores", "the highest score first"),
        (True, "tied scores", "order equal scores differently", "equal scores by document id, descending"),
    ):
        for topic, line in first[tied][:1]:
            ranks = f"ranks of {pluralize(len(first[tied]), 'topic')} (such as {escape(topic)!r}) {found}"
            yield Problem(Place(name, line), kind, ranks, f"{expected}; the ranks are ignored", warning=True)

"""What a reader of the scores should know: one line for each kind of irregularity, however many runs have it."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from fairevals.collection.groups import Attribute
from fairevals.collection.intersections import Intersection
from fairevals.errors import abridged, escape, pluralize
from fairevals.evaluation.scores import Scores
from fairevals.measures import Measure

UNJUDGED_REMARK = 0.05
"""The share of attention to unjudged documents from which a remark is made."""
UNMAPPED_REMARK = 0.5
"""The share of judged documents without membership above which a remark is made."""
LISTED = 3
"""So many runs or measures are named in a remark."""


def several_runs(runs: Sequence[str]) -> str:
    """How many runs, and the names of the first.

    >>> several_runs(["a", "b", "c", "d"])
    '4 runs (a, b, c and 1 more)'
    """
    return f"{len(runs)} runs ({abridged([escape(run) for run in runs], LISTED)})"


def of_runs(remarks: Sequence[tuple[str, str]]) -> Iterator[str]:
    """One line for remarks (run, text) of one kind: that of the first run, and the names of the others.

    >>> list(of_runs([("a", "has 2 oddities"), ("b", "has 1 oddity")]))
    ['a: has 2 oddities; similarly b']
    """
    if remarks:
        (run, text), *others = remarks
        more = abridged([escape(other) for other, _ in others], LISTED)
        yield f"{escape(run)}: {text}" + (f"; similarly {more}" if others else "")


def skipped_topics(topics: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Topics without judgements that runs have; `topics` by run."""
    if topics:
        runs, most = list(topics), max(topics.values(), key=len)
        who = escape(runs[0]) if len(runs) == 1 else several_runs(runs)
        many = "up to " * (len(runs) > 1) + pluralize(len(most), "topic")
        yield f"{who}: skipped {many} without judgements, such as {escape(min(most))}"


def missing_topics(topics: Mapping[str, Sequence[str]], *, skips: bool) -> Iterator[str]:
    """Judged topics that runs leave out, by run; with `skips`, utility is undefined there too."""
    if topics:
        runs, most = list(topics), max(topics.values(), key=len)
        value = "undefined there" if skips else "utility 0, exposure undefined"
        many = f"{pluralize(len(most), 'judged topic')}, such as {escape(most[0])}: {value}"
        if len(runs) == 1:
            yield f"{escape(runs[0])}: has nothing for {many}"
        else:
            yield f"{several_runs(runs)}: have nothing for up to {many}"


def unmapped_documents(attributes: Mapping[str, Attribute | Intersection]) -> Iterator[str]:
    """A remark for each attribute that most judged documents lack."""
    for name, attribute in attributes.items():
        if isinstance(attribute, Intersection):
            continue
        lacking, judged = attribute.judged_unmapped, attribute.judged
        if lacking > UNMAPPED_REMARK * judged:
            share = f"{lacking} of {pluralize(judged, 'judged document')} ({lacking / judged:.0%})"
            unmapped = f'unmapped = "{escape(attribute.spec.unmapped)}"'
            yield f"{escape(name)}: {share} have no membership and count as {unmapped} says"


def incomplete_runs(scores: Scores) -> Iterator[str]:
    """One remark about the runs that lack values which other runs have."""
    runs = np.flatnonzero(scores.incomplete.any(axis=1)).tolist()
    if runs:
        who = escape(scores.runs[runs[0]]) if len(runs) == 1 else several_runs([scores.runs[r] for r in runs])
        lacking = np.flatnonzero(scores.incomplete.any(axis=0)).tolist()
        some = abridged([str(scores.measures[m]) for m in lacking], LISTED)
        yield (
            f"{who}: incomplete for {some}: undefined on topics where other runs have a value; "
            "listed after the complete runs and never marked as the best"
        )


def unjudged_attention(scores: Scores, hidden: Sequence[Measure], candidates: str) -> Iterator[str]:
    """One remark about the runs that give more than a twentieth of the attention to unjudged documents."""
    column = {measure: m for m, measure in enumerate(scores.measures)}
    columns = [column[measure] for measure in hidden]
    # Not NaN, without exposure.
    shares = [
        np.fmax.reduce([0.0, *(scores.mean(r, m).value for m in columns)]) for r in range(len(scores.runs))
    ]
    large = [r for r in np.argsort(shares, kind="stable")[::-1].tolist() if shares[r] > UNJUDGED_REMARK]
    if large:
        runs = [scores.runs[r] for r in large]
        who = escape(runs[0]) if len(large) == 1 else several_runs(runs)
        most = f"{'up to ' if len(large) > 1 else ''}{max(shares):.0%} of the attention goes"
        means = (
            ", and are left out of means over a group's judged documents" if candidates == "judged" else ""
        )
        yield f"{who}: {most} to unjudged documents, which count as not relevant{means}"

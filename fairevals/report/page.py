"""The page: one file that loads nothing, made by templates that escape everything they print."""

import inspect
import math
import re
import unicodedata
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from markupsafe import Markup

from fairevals.errors import pluralize
from fairevals.evaluation.leaderboard import group_table, ranking_of_runs
from fairevals.io.out import format_number, format_p
from fairevals.measures import Measure
from fairevals.report import html
from fairevals.report.board import role
from fairevals.report.data import NAME_LENGTH, page_data
from fairevals.report.findings import findings
from fairevals.report.gather import Report, drivers, tipping
from fairevals.report.pictures import Picture
from fairevals.report.style import data_uri, labels, middle_cut
from fairevals.report.takeaway import copied_tables
from fairevals.statistics.compare import Comparison, description

ENDING = 10
"""So many characters at the end of a name are always visible."""


def plain(value: Any) -> Any:
    """The value as JSON can hold it: arrays as lists, NaN and infinities as null.

    >>> plain({"a": np.array([1.0, np.nan]), "b": (1, "x")})
    {'a': [1.0, None], 'b': [1, 'x']}
    """
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        known = value.astype(object)
        known[~np.isfinite(value)] = None
        return known.tolist()
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def page(report: Report, pictures: Sequence[Picture]) -> bytes:
    """The bytes of index.html; the same report gives the same bytes."""
    style, script = html.own_text("style.css") + html.own_text("topics.css"), html.script()
    sections = {key: list(group) for key, group in groupby(pictures, lambda picture: picture.section)}
    runs = report.scores.runs
    templates = html.environment("fairevals.report")
    templates.filters.update(
        number=format_number,
        p=format_p,
        breakable=html.breakable,
        short=lambda text: middle_cut(str(text), NAME_LENGTH),
        uri=data_uri,
        repr=repr,
        label=report.scores.label,
    )
    text = templates.get_template("index.html").render(
        **{"pluralize": pluralize, "role": role, "drivers": drivers, "tipping": tipping},
        **{"describe": description, "isnan": math.isnan, "halves": halves, "ranges": letter_ranges},
        shade=shade,
        style=Markup(style),  # noqa: S704  # style and script are the package's own; all else is escaped
        script=Markup(script),  # noqa: S704
        policy=html.content_policy(style, script),
        report=report,
        board=report.board,
        scores=report.scores,
        task=report.collection.task,
        spec=report.plan.policy,
        pictures=sections,
        names=labels(runs, NAME_LENGTH),
        findings=findings(report.board),
        entry_of=_entries(report.scores.measures),
        tiers={letter: tier for tier, letter in enumerate("abc", 1)},
        letter_widths=[_letter_width(groups.letters) for groups in report.board.groups],
        tests=_best_first(report),
        by_group=group_table(report.scores, report.parts) if report.parts else None,
        glossary=_glossary(report.scores.measures),
        data=plain(page_data(report)),
        tables=copied_tables(report),
        ranks=report.ranks.data,
    )
    return text.encode(errors="backslashreplace")  # the name of a file need not be valid text


def shade(share: float) -> str:
    """The class of a cell with a number from −1 to 1.

    >>> shade(1.0), shade(0.3), shade(-0.6), shade(float("nan"))
    ('up3', 'up1', 'down2', 'none')
    """
    if math.isnan(share):
        return "none"
    return f"{'down' if share < 0 else 'up'}{min(3, int(4 * abs(share)))}"


def letter_ranges(letters: str) -> str:
    """Letters of significance with three or more neighbours joined to a range, since there may be many.

    >>> letter_ranges("abcdf"), letter_ranges("ab"), letter_ranges("")
    ('a–df', 'ab', '')
    """
    found = re.findall(r"\[\d+\]|.", letters)
    stretches = groupby(enumerate(found), lambda one: ord(one[1]) - one[0] if len(one[1]) == 1 else one[1])
    texts = ([letter for _, letter in stretch] for _, stretch in stretches)
    return "".join(f"{some[0]}–{some[-1]}" if len(some) > 2 else "".join(some) for some in texts)


def _letter_width(letters: Sequence[str]) -> int:
    """How wide the letters of a measure are at most, in characters up to 8."""
    return min(8, max(len(letter_ranges(text)) for text in letters))


def halves(name: str) -> tuple[str, str]:
    """A name in two parts, the first of which the page shortens where there is no room; it is "" for a short name.

    >>> halves("bm25"), halves("THUIR-QD-RG-1-baseline")
    (('', 'bm25'), ('THUIR-QD-RG-', '1-baseline'))
    """
    at = len(name) - ENDING
    if at <= ENDING:
        return "", name
    while at > 0 and (unicodedata.combining(name[at]) or "\u200d" in name[at - 1 : at + 1]):
        at -= 1
    return name[:at], name[at:]


def _best_first(report: Report) -> list[Comparison]:
    """The tests against the baseline in the order of the measures, and of the runs by each measure."""
    scores, comparisons = report.scores, report.comparisons
    names = list(map(str, scores.measures))
    orders = [[scores.runs[r] for r in ranking_of_runs(scores, m)] for m in range(len(names))]
    place = {(name, run): (m, at) for m, name in enumerate(names) for at, run in enumerate(orders[m])}
    return sorted(comparisons.rows, key=lambda row: place[row.measure, row.run]) if comparisons else []


def _entries(measures: Sequence[Measure]) -> list[int]:
    """For each measure the number of its entry in the glossary, from 1: one for each kind of measure."""
    kinds = list(dict.fromkeys(measure.name for measure in measures))
    return [1 + kinds.index(measure.name) for measure in measures]


def _glossary(measures: Sequence[Measure]) -> list[tuple[list[Measure], str]]:
    """For each kind of measure its variants in the report, and its docstring without the examples."""
    variants: dict[str, list[Measure]] = {}
    for measure in measures:
        variants.setdefault(measure.name, []).append(measure)
    glossary = []
    for kind in variants.values():
        prose = inspect.cleandoc(type(kind[0]).__doc__ or "").partition(">>>")[0]
        glossary.append((kind, " ".join(prose.replace("`", "").split())))
    return glossary

"""The pool and the list of assessors, from files."""

import os
from collections.abc import Iterator

from fairevals.annotate.project import check_name
from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.io.lines import Column, LineFormat
from fairevals.io.streams import Source
from fairevals.io.tables import has_header, table


def read_pool(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Topics and documents, as `fairevals pool` writes them: lines of topic and document, whatever follows.

    The table that `fairevals pool --pages` writes, with a header, is read too. An empty pool is an error, and so is a
    document that a topic has twice.
    """
    source = Source.of(path)
    header = 1 if has_header(source, "topic", "doc") else 0
    form = LineFormat("a pool", (Column("topic"), Column("doc")), skip=header, rest=lambda rest: None)
    pool = dict(_numbered(form, source))
    if not pool:
        raise InputError(
            Place(source.name), "no page", "lines of topic and document, as fairevals pool writes them"
        )
    return list(pool)


def _numbered(form: LineFormat, source: Source) -> Iterator[tuple[tuple[str, str], int]]:
    seen: dict[tuple[str, str], int] = {}
    for number, cells, problem in form.examine(source):
        if problem:
            source.refuse(problem.error(), form.what)
        page = (cells[0].decode(), cells[1].decode())
        if page in seen:
            found = f"document {escape(page[1])!r} a second time in topic {escape(page[0])!r}"
            raise InputError(Place(source.name, number), found, f"it once (first in line {seen[page]})")
        seen[page] = number
        yield page, number


def read_assessors(path: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """Names of assessors and globs of their topics: a csv or tsv table with columns `assessor` and `topics`.

    Globs are separated by spaces; an empty cell or no such column means all topics.
    """
    source = Source.of(path)
    _, header, rows = table(source, ("assessor",), known=("assessor", "topics"))
    assessors: dict[str, tuple[str, ...]] = {}
    for line, row in rows:
        cells = dict(zip(header, row, strict=True))
        name = cells["assessor"]
        try:
            check_name(name)
        except UsageError as error:
            raise InputError(Place(source.name, line), str(error)) from None
        if name in assessors:
            raise InputError(
                Place(source.name, line), f"the assessor {escape(name)!r} a second time", "each once"
            )
        assessors[name] = tuple(cells.get("topics", "").split()) or ("*",)
    if not assessors:
        raise InputError(Place(source.name), "no assessor", "one name per line below the header")
    return assessors

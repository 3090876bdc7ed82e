"""Starts the annotation tool: brings task, pool, pages and assessors together, and serves them."""

import gc
import os
import re
import secrets
import socket
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairevals.annotate.form import columns, form_fields
from fairevals.annotate.pages import MISSING_PAGE, PageFiles
from fairevals.annotate.project import HOLD, Project, check_name
from fairevals.annotate.state import State
from fairevals.annotate.store import Store, only_server
from fairevals.derive.pages import entity_key
from fairevals.errors import InputError, InputWarning, Place, UsageError, escape, names, pluralize
from fairevals.io.lines import Column, LineFormat
from fairevals.io.streams import Source
from fairevals.io.tables import has_header, table
from fairevals.io.task import Task, read_task
from fairevals.io.topics import Topics, read_topics

if TYPE_CHECKING:
    from fairevals.annotate.site import Site

DATA = "annotate-data"
HOST, PORT = "127.0.0.1", 8765
STOP = 12
"""Seconds that requests may still take when the server is stopped; more than a form may take to arrive."""


@dataclass(frozen=True)
class AnnotationInputs:
    """What the tool shows, to whom: a task, a pool, its pages, and the assessors."""

    task: Task | str | os.PathLike[str]
    pool: str | os.PathLike[str]
    """What `fairevals pool` wrote."""
    pages: str | os.PathLike[str]
    """A folder with `<doc>.html`, `.txt` or `.pdf`, or a csv with columns doc and url."""
    assessors: str | os.PathLike[str] | Mapping[str, Iterable[str]] | None = None
    """A table, or names with globs of topics. Others can be added in the organiser's view."""
    per_page: int | None = None
    """How many assessors judge each page; by default the task's `assessors_per_page`."""
    seed: int = 0
    """Of the order of pages."""


def read_pool(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Topics and documents, as `fairevals pool` writes them: lines of topic and document, whatever follows.

    The table that `fairevals pool --pages` writes, with a header, is read too. An empty pool is an error, and so is a
    document that a topic has twice.
    """
    source = Source.of(path)
    header = 1 if has_header(source, "topic", "doc") else 0
    form = LineFormat("a pool", (Column("topic"), Column("doc")), skip=header, rest=lambda rest: None)
    pool: dict[tuple[str, str], int] = {}
    for number, cells, problem in form.examine(source):
        if problem:
            source.refuse(problem.error(), form.what)
        page = (cells[0].decode(), cells[1].decode())
        for column, name in zip(("topic", "doc"), page, strict=True):
            if name.split() != [name]:  # such as a no-break space, with which nobody can read the annotations
                found = f"{column} {escape(name)!r}"
                raise InputError(Place(source.name, number), found, "a name without white space")
        if page in pool:
            found = f"document {escape(page[1])!r} a second time in topic {escape(page[0])!r}"
            raise InputError(Place(source.name, number), found, f"it once (first in line {pool[page]})")
        pool[page] = number
    if not pool:
        expected = "lines of topic and document, as fairevals pool writes them"
        raise InputError(Place(source.name), "no page", expected)
    return list(pool)


def read_assessors(path: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """Names of assessors and globs of their topics: a csv or tsv table with columns `assessor` and `topics`.

    Globs are separated by spaces; an empty cell or no such column means all topics.
    """
    source = Source.of(path)
    _, header, rows = table(source, ("assessor",), known=("assessor", "topics"))
    assessors: dict[str, tuple[str, ...]] = {}
    seen: set[str] = set()
    for line, row in rows:
        cells = dict(zip(header, row, strict=True))
        name = cells["assessor"]
        try:
            check_name(name)
        except UsageError as error:
            raise InputError(Place(source.name, line), str(error)) from None
        if entity_key(name) in seen:
            raise InputError(
                Place(source.name, line), f"the assessor {escape(name)!r} a second time", "each once"
            )
        seen.add(entity_key(name))
        assessors[name] = tuple(cells.get("topics", "").split()) or ("*",)
    if not assessors:
        raise InputError(Place(source.name), "no assessor", "one name per line below the header")
    return assessors


def open_site(
    inputs: AnnotationInputs, store: Store, url: str, *, hold: float = HOLD
) -> tuple["Site", dict[str, str]]:
    """Bring a store up to date with the inputs; returns the site and the tokens of new assessors, known only now.

    Pages and assessors that are new are added. None is ever removed: links are revoked in the organiser's view.
    """
    from fairevals.annotate.site import Site

    task = inputs.task if isinstance(inputs.task, Task) else read_task(inputs.task)
    listed = read_topics(task.topics) if task.topics is not None else Topics("", ())
    about = {
        topic: {name: column[at] for name, column in listed.columns.items()}
        for at, topic in enumerate(listed.ids)
    }
    pool, files, given = read_pool(inputs.pool), PageFiles(Path(inputs.pages)), inputs.assessors
    number = {topic: at for at, topic in enumerate(listed.ids)}
    pool.sort(key=lambda page: number.get(page[0], len(number)))  # topics in the order of their list
    if isinstance(given, (str, os.PathLike)):
        given = read_assessors(given)
    assessors = {
        name: tuple(globs.split() if isinstance(globs, str) else globs)
        for name, globs in (given or {}).items()
    }
    topics = dict.fromkeys([*listed.ids, *(topic for topic, _ in pool), *store.state.topics])
    fields = form_fields(task, list(topics))
    settings: dict[str, Any] = {
        "per_page": inputs.per_page or task.annotation.assessors_per_page,
        "seed": inputs.seed,
        "columns": columns(task),
    }
    project = Project(store, hold=hold)
    with store.writing() as state:
        store.add_pages(pool)
        settings["secret"] = state.settings.get("secret") or secrets.token_hex(16)
        if any(state.settings.get(key) != value for key, value in settings.items()):
            store.append("configure", **settings)
        for name, globs in assessors.items():
            if name not in state.assessors or state.assessors[name].topics != globs:
                project.add_assessor(name, globs)
    _warn(store.state, about, files)
    tokens = {name: project.new_link(name) for name in assessors if not store.state.assessors[name].invited}
    return Site(project, task, fields, about, files, url), tokens


def _warn(state: State, listed: Collection[str], files: PageFiles) -> None:
    """Warn of pages that nobody can judge."""
    without = [page for page in state.pages.values() if files.find(page.doc) == MISSING_PAGE]
    remarks = []
    if without:
        some = pluralize(len(without), "page")
        remarks.append(
            f"there is no file for {some} of {len(state.pages):,}, such as {escape(without[0].doc)!r}"
        )
    unlisted = [topic for topic in state.topics if listed and topic not in listed]
    if unlisted:
        remarks.append(
            f"the list of topics lacks {pluralize(len(unlisted), 'topic')}, such as {escape(unlisted[0])!r}"
        )
    for topic in state.topics:
        able = sum(one.may_see(topic) for one in state.assessors.values())
        if state.assessors and able < state.per_page:
            need = f"expected at least {state.per_page}, the number that each page needs"
            remarks.append(f"topic {escape(topic)!r} has {pluralize(able, 'assessor')}; {need}")
            break
    idle = [name for name, one in state.assessors.items() if not any(map(one.may_see, state.topics))]
    if idle:
        remarks.append(f"no topic of the pool is assigned to {names(idle)}")
    for remark in remarks:
        warnings.warn(InputWarning(remark), stacklevel=3)


def serve(
    inputs: AnnotationInputs,
    data: str | os.PathLike[str] = DATA,
    *,
    host: str = HOST,
    port: int = PORT,
    url: str | None = None,
    hold: float = HOLD,
    announce: Callable[[str, str], object] = lambda who, link: print(f"{who}\t{link}", flush=True),  # noqa: T201
) -> None:
    """Serve the annotation tool until it is interrupted.

    `data` is the folder with the database; a second server on it is refused. `url` is the public address behind a
    reverse proxy. `announce` is called with each new link: those of new assessors, and one of the organiser's view
    (with an empty name), which ends the one before.
    """
    try:
        import uvicorn

        from fairevals.annotate.app import make_app
        from fairevals.annotate.site import host_of
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("fairevals"):
            raise
        raise UsageError(f"annotating needs {error.name}: pip install 'fairevals[annotate]'") from None
    if url is None and _is_any_address(host):
        raise UsageError(
            f"host={escape(host)} listens on all addresses; expected url as well, the address that links begin with"
        )
    if url is not None and not (
        re.match("https?://", url) and host_of(url.partition("//")[2].removesuffix("/"))
    ):
        raise UsageError(f"url={escape(url)}; expected http:// or https:// and a host, without a path")
    folder = Path(data)
    with only_server(folder), Store(folder, create=True) as store, _listening(host, port) as opened:
        shown = f"[{host}]" if ":" in host else host
        address = (url or f"http://{shown}:{opened.getsockname()[1]}").rstrip("/")
        site, tokens = open_site(inputs, store, address, hold=hold)
        for who, token in {"": site.project.new_link(""), **tokens}.items():
            announce(who, f"{address}/sign-in/{token}")
        config = uvicorn.Config(
            make_app(site),
            access_log=False,  # links are in addresses
            log_level="warning",
            lifespan="off",
            ws="none",
            server_header=False,
            timeout_graceful_shutdown=STOP,
        )
        # Nobody should wait long: neither while the overview of a large project is computed, nor because Python looks
        # through all of the project for objects that are not needed any more.
        sys.setswitchinterval(0.0005)
        gc.collect()
        gc.freeze()
        with suppress(KeyboardInterrupt):  # the usual way to stop it
            uvicorn.Server(config).run(sockets=[opened])


def _is_any_address(host: str) -> bool:
    """Whether a host means all addresses of this machine, however it is spelt."""
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)} if host else {"0.0.0.0"}  # noqa: S104
    except (OSError, UnicodeError):  # reported when it is opened
        return False
    return any(ip_address(address).is_unspecified for address in addresses)


def _listening(host: str, port: int) -> socket.socket:
    try:
        socket.getaddrinfo(host or None, port)  # create_server raises a TypeError for some wrong hosts
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        opened = socket.create_server((host, port), family=family)
        # asyncio does so only where it has opened the socket itself. Otherwise each answer may wait for 40 ms.
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened
    except (OSError, OverflowError, UnicodeError) as error:
        reason = escape(str(getattr(error, "strerror", None) or error), 100)
        raise UsageError(
            f"cannot listen on {escape(host)}:{port} ({reason}); choose another address"
        ) from None

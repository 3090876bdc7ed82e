"""The web site: which hosts are answered, headers, limits, sessions, tokens against forged forms, templates."""

import asyncio
import hashlib
import hmac
import ipaddress
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairevals.annotate.form import FormField
from fairevals.annotate.pages import PageFiles
from fairevals.annotate.project import Project
from fairevals.annotate.state import State
from fairevals.io.task import Task
from fairevals.report.html import environment

MAX_BODY = 1 << 16
MAX_ADDRESS = 2000
MAX_FIELDS = 500
BODY_SECONDS = 10.0
"""How long a form may take to arrive."""
FAILURES, WINDOW = 10, 60.0
"""After so many wrong links in so many seconds an address is told to wait."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without a referrer, browsers do not tell the origin of a form either
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-DNS-Prefetch-Control": "off",
    "Cache-Control": "no-store",
}


def host_of(address: str) -> str:
    """The host of a Host header, without the port; empty if it is anything else.

    >>> host_of("LocalHost:8765"), host_of("[::1]:80"), host_of("localhost/x")
    ('localhost', '::1', '')
    """
    match = re.fullmatch(r"(?:\[([\da-f:.]+)\]|([\w.-]+))(?::\d+)?", address.lower())
    return match[1] or match[2] if match else ""


class Guard:
    """Answers only requests to known hosts, and puts the security headers on every answer.

    A page elsewhere can make its own name point to this machine and then read what the server answers to that name.
    Addresses in numbers are safe, because nobody can make them point elsewhere.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self.app, self.hosts = app, {"localhost", *hosts}

    def knows(self, host: str) -> bool:
        """Whether requests to the host are answered."""
        try:
            return host in self.hosts or bool(ipaddress.ip_address(host))
        except ValueError:
            return False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if not headers.get("content-type", "").startswith("application/pdf"):
                    headers.setdefault("Content-Security-Policy", POLICY)
                    headers.setdefault("X-Frame-Options", "DENY")
                message["headers"] = headers.raw
            await send(message)

        if not self.knows(host_of(Headers(scope=scope).get("host", ""))):
            text = "The server does not answer to this name; its organiser can allow it with --url.\n"
            await PlainTextResponse(text, 400)(scope, receive, with_headers)
        elif len(scope["path"]) > MAX_ADDRESS:
            await PlainTextResponse("The address is too long.\n", 414)(scope, receive, with_headers)
        else:
            await self.app(scope, receive, with_headers)


class SignInLimit:
    """Counts wrong links by address.

    A right link always works: nobody can guess one, and otherwise anyone could keep out all who share an address,
    such as that of a proxy.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.lock = clock, threading.Lock()
        self.failures: dict[str, deque[float]] = {}

    def failed(self, address: str) -> None:
        """Count a wrong link; 429 if the address has given too many."""
        now = self.clock()
        with self.lock:
            self.failures = {key: times for key, times in self.failures.items() if now - times[-1] < WINDOW}
            times = self.failures.setdefault(address, deque(maxlen=FAILURES))
            if len(times) == FAILURES and now - times[0] < WINDOW:
                raise HTTPException(429, "Too many links that do not exist. Try again in a minute.")
            times.append(now)


def keyed(secret: str, *parts: str) -> str:
    """A text that only this server can compute from the parts: for form tokens and addresses of pages."""
    return hmac.new(secret.encode(), "\0".join(parts).encode(), hashlib.sha256).hexdigest()[:32]


async def read_form_body(request: Request) -> dict[str, list[str]]:
    """The fields of an urlencoded body of bounded size that arrives in time."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise HTTPException(415, "Expected an urlencoded form.")
    body = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_BODY:
                    raise HTTPException(413, "The form is too large.")
        return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except TimeoutError:
        raise HTTPException(408, "The form did not arrive in time. Try again.") from None
    except (ValueError, ClientDisconnect):
        raise HTTPException(400, "The form cannot be read.") from None


COOKIES = {"/a": "fairevals-assessor", "/o": "fairevals-organiser"}
"""The paths that cookies are sent to, and how their names begin. Pages of strangers are under neither path."""

Body = Mapping[str, list[str]]


@dataclass(frozen=True)
class Site:
    """An annotation project as a web site."""

    project: Project
    task: Task
    fields: Mapping[str, tuple[FormField, ...]]
    """The fields of an entity, by topic."""
    about: Mapping[str, Mapping[str, str]]
    """What the list of topics says about each topic."""
    files: PageFiles
    url: str
    """The address of the site, for links."""

    @cached_property
    def templates(self) -> Environment:
        """The templates of this package."""
        templates = environment("fairevals.annotate")
        templates.auto_reload = False
        return templates

    @property
    def state(self) -> State:
        """What the events so far add up to; read it while holding the lock of the store."""
        return self.project.store.state

    @property
    def secret(self) -> str:
        """What form tokens and addresses of pages are made with."""
        return str(self.state.settings["secret"])

    def title_of(self, topic: str) -> str:
        """The title of a topic, or else the topic itself."""
        return self.about.get(topic, {}).get("title") or topic

    def cookie(self, path: str) -> str:
        """The name of a path's cookie. Browsers send it to all ports of a host, so each project has its own."""
        return f"{COOKIES[path]}-{keyed(self.secret, 'cookie')[:8]}"

    def session(self, request: Request, path: str) -> str:
        """The session's cookie in a request, empty if there is none."""
        return request.cookies.get(self.cookie(path), "")

    def page_address(self, number: int) -> str:
        """The address of a pooled page, which nobody can guess."""
        return f"/page/{number}-{keyed(self.secret, 'page', str(number))}"

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page of this site."""
        task = self.task.name or "Annotation"
        return HTMLResponse(self.templates.get_template(template).render(task=task, **values), status)

    def who(self, request: Request, path: str) -> str:
        """Whose session a request belongs to, empty for the organiser; 401 if there is none for the path."""
        who = self.project.session(self.session(request, path))
        if who is None or (who == "") != (path == "/o"):
            raise HTTPException(
                401, "Please open your personal link again, or ask the organiser for a new one."
            )
        return who

    def form_token(self, request: Request, path: str) -> str:
        """The token that forms of a session carry."""
        return keyed(self.secret, "form", self.session(request, path))

    async def read_form(self, request: Request, path: str) -> Body:
        """The fields of a form that was sent by a page of this site in a valid session."""
        self.who(request, path)
        body = await read_form_body(request)
        host = request.headers.get("host", "")
        own = {
            f"http://{host}",
            f"https://{host}",
            self.url,
        }  # a proxy may hide the name that the browser knows
        foreign = request.headers.get("origin", self.url) not in own
        given, expected = first(body, "token"), self.form_token(request, path)
        if foreign or not hmac.compare_digest(given.encode(), expected.encode()):
            raise HTTPException(
                403, "This form is not valid any more. Go back, reload the page and try again."
            )
        return body


def first(body: Body, name: str) -> str:
    """The value of a field, empty if there is none."""
    return body.get(name, [""])[0]


def whole(body: Body, name: str) -> int:
    """The whole number in a field, 0 if there is none."""
    text = first(body, name)
    return int(text) if text.isdecimal() and len(text) < 16 else 0

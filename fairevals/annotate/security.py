"""Doors: which hosts are answered, cookies, tokens against forged forms, limits, and headers."""

import hashlib
import hmac
import ipaddress
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse

MAX_BODY = 1 << 16
MAX_FIELDS = 500
FAILURES, WINDOW = 10, 60.0
"""So many wrong links from one address are answered in so many seconds."""

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

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def host_of(address: str) -> str:
    """The host of a Host header, without the port.

    >>> host_of("localhost:8765"), host_of("[::1]:80")
    ('localhost', '::1')
    """
    try:
        return urlsplit(f"//{address}").hostname or ""
    except ValueError:
        return ""


class Guard:
    """Answers only requests to known hosts, and puts the security headers on every answer.

    A page elsewhere can make its own name point to this machine and then read what the server answers to that name.
    Addresses in numbers are safe, because nobody can make them point elsewhere.
    """

    def __init__(self, app: Any, hosts: Collection[str]) -> None:
        self.app, self.hosts = app, {"localhost", *hosts}

    def knows(self, host: str) -> bool:
        """Whether requests to the host are answered."""
        try:
            return host in self.hosts or bool(ipaddress.ip_address(host))
        except ValueError:
            return False

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
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
        else:
            await self.app(scope, receive, with_headers)


class SignInLimit:
    """Counts wrong links by address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.failures: dict[str, deque[float]] = {}

    def check(self, address: str) -> None:
        """Raise 429 if the address has given too many wrong links."""
        now = self.clock()
        self.failures = {key: times for key, times in self.failures.items() if now - times[-1] < WINDOW}
        times = self.failures.get(address, ())
        if sum(now - when < WINDOW for when in times) >= FAILURES:
            raise HTTPException(429, "Too many links that do not exist. Try again in a minute.")

    def failed(self, address: str) -> None:
        """Count a wrong link."""
        self.failures.setdefault(address, deque(maxlen=FAILURES)).append(self.clock())


def keyed(secret: str, *parts: str) -> str:
    """A text that only this server can compute from the parts: for form tokens and addresses of pages."""
    return hmac.new(secret.encode(), "\0".join(parts).encode(), hashlib.sha256).hexdigest()[:32]


async def read_form_body(request: Request) -> dict[str, list[str]]:
    """The fields of an urlencoded body of bounded size."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise HTTPException(415, "Expected an urlencoded form.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise HTTPException(413, "The form is too large.")
    try:
        return parse_qs(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise HTTPException(400, "The form cannot be read.") from None


def check_form_token(request: Request, given: str, expected: str) -> None:
    """Raise 403 unless a form was sent by a page of this server, in this session."""
    origin = request.headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if foreign or not hmac.compare_digest(given.encode(), expected.encode()):
        raise HTTPException(403, "This form is not valid any more. Go back, reload the page and try again.")

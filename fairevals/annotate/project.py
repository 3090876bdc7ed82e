"""What assessors and the organiser can do. Every act is one transaction."""

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence

from fairevals.annotate.state import Entity
from fairevals.annotate.store import Store
from fairevals.derive.pages import entity_key
from fairevals.errors import UsageError, escape

HOLD = 3600.0
"""Seconds without activity after which an unfinished page returns to the queue."""
TOKEN_BYTES = 16


def token_hash(token: str) -> str:
    """What is stored of a token. Tokens are random, so a fast hash is enough."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


class Project:
    """The acts of assessors and of the organiser on a store."""

    def __init__(self, store: Store, *, hold: float = HOLD, clock: Callable[[], float] = time.time) -> None:
        self.store, self.hold, self.clock = store, hold, clock

    # Assessors -------------------------------------------------------------------------------------------------

    def take_next(self, who: str) -> int | None:
        """The page that the assessor works on, or a new one on which it takes a place; None if nothing is left.

        Unfinished pages of others that were left alone for too long return to the queue first.
        """
        now = self.clock()
        with self.store.writing() as state:
            for other, page in list(state.expired(now, self.hold)):
                if other != who:
                    self.store.append("release", other, page, now, reason="expired")
            number = state.next_page(who)
            if number is not None and who not in state.places.get(number, ()):
                self.store.append("take", who, number, now)
            elif number is not None:
                self.touch(who, number)
            return number

    def touch(self, who: str, page: int) -> None:
        """Note that the assessor has just looked at the page. Never waits."""
        place = self.store.state.places.get(page, {}).get(who)
        if place is not None:
            place.since = self.clock()

    def save(self, who: str, page: int, entities: Sequence[Entity], version: int) -> str:
        """Save the entities that the assessor found on a page; none at all is a valid judgement.

        `version` is the event of the last save that the assessor has seen, 0 if none. Returns "saved"; "changed" if
        another tab has saved something else since; or "late" if the page was given to someone else, in which case the
        entities stay in the history and do not count.
        """
        entities = [dict(entity) for entity in entities]
        now = self.clock()
        with self.store.writing() as state:
            place = state.places.get(page, {}).get(who)
            if place is None and not state.has_room(page, who):
                self.store.append("late", who, page, now, entities=entities)
                return "late"
            if place is None:
                self.store.append("take", who, page, now)
            elif place.saved != version:
                return "saved" if place.saved and list(place.entities) == entities else "changed"
            self.store.append("save", who, page, now, entities=entities)
            return "saved"

    def skip(self, who: str, page: int) -> None:
        """Put an unfinished page at the end of the assessor's queue; others may take the place."""
        with self.store.writing() as state:
            if page in state.assessors[who].open:
                self.store.append("skip", who, page, self.clock())

    def ask(self, who: str, page: int, text: str) -> bool:
        """Send a question about a page to the organiser. An unfinished page waits for the answer.

        Returns False, and nothing is sent, if the assessor no longer has the page.
        """
        with self.store.writing() as state:
            has_page = who in state.places.get(page, {})
            if has_page:
                self.store.append("ask", who, page, self.clock(), text=text)
            return has_page

    # The organiser ---------------------------------------------------------------------------------------------

    def answer(self, question: int, text: str) -> None:
        """Answer a question; the page comes back to the assessor, with the answer."""
        with self.store.writing() as state:
            one = state.questions.get(question)
            if one is None:
                raise UsageError(f"there is no question {question}")
            self.store.append("answer", one.assessor, one.page, self.clock(), question=question, text=text)

    def add_assessor(self, name: str, topics: Sequence[str] = ("*",)) -> None:
        """Add an assessor, or change the topics of one."""
        check_name(name)
        with self.store.writing() as state:
            for other in state.assessors:
                if other != name and entity_key(other) == entity_key(name):
                    raise UsageError(f"there is an assessor {escape(other)!r} already; expected another name")
            self.store.add_assessor(name, topics)

    def new_link(self, who: str) -> str:
        """A new token for an assessor (empty: the organiser); the one before and its sessions end."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        with self.store.writing() as state:
            if who:
                if who not in state.assessors:
                    raise UsageError(f"there is no assessor {escape(who)!r}")
                self.store.append("revoke", who)
            self.store.append("link", who, hash=token_hash(token))
        return token

    def revoke(self, who: str) -> None:
        """End the link and the sessions of an assessor, and return the unfinished pages to the queue."""
        with self.store.writing() as state:
            if who in state.assessors:
                self._release(who, "revoked")
                self.store.append("revoke", who)

    def unassign(self, who: str, *, saved: bool = False) -> int:
        """Return the unfinished pages of an assessor to the queue, and with `saved` the finished ones as well.

        Returns how many pages. What was saved stays in the history.
        """
        with self.store.writing() as state:
            return self._release(who, "unassigned", saved=saved) if who in state.assessors else 0

    def _release(self, who: str, reason: str, *, saved: bool = False) -> int:
        one = self.store.state.assessors[who]
        pages = sorted({*one.open, *one.saved} if saved else one.open)
        for page in pages:
            self.store.append("release", who, page, reason=reason)
        return len(pages)

    # Signing in ------------------------------------------------------------------------------------------------

    def sign_in(self, token: str) -> tuple[str, str] | None:
        """Exchange a link's token for whose it is (empty: the organiser) and a new session; None if it is wrong."""
        digest = token_hash(token)
        with self.store.lock:
            state = self.store.state
            whose = {one.link: name for name, one in state.assessors.items() if one.link}
            if state.organiser_link:
                whose[state.organiser_link] = ""
            if digest not in whose:
                return None
            who, session = whose[digest], secrets.token_urlsafe(TOKEN_BYTES)
            with self.store.writing():
                self.store.append("sign-in", who, hash=token_hash(session))
            return who, session

    def sign_out(self, cookie: str) -> None:
        """End a session."""
        with self.store.writing() as state:
            who = state.sessions.get(token_hash(cookie))
            if who is not None:
                self.store.append("sign-out", who, hash=token_hash(cookie))

    def session(self, cookie: str) -> str | None:
        """Whose session a cookie is; None if it is nobody's. Never waits, so it may be asked in the event loop."""
        return self.store.state.sessions.get(token_hash(cookie))


def check_name(name: str) -> None:
    """A `UsageError` if an assessor's name cannot stand in a table."""
    if not name or name != name.strip() or not name.isprintable() or len(name) > 100:
        expected = "1 to 100 printable characters without spaces around them"
        raise UsageError(f"an assessor cannot be called {escape(name)!r}; expected {expected}")

"""The database of an annotation project: one SQLite file with an append-only table of events."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from fairevals.annotate.state import Event, State
from fairevals.errors import InputError, Place, UsageError, escape
from fairevals.io.parts import locked

DATABASE = "annotate.sqlite"
LOCK = "annotate.lock"
DATABASE_FORMAT = 0x46414931
"""Marks the file as ours, in its header: "FAI1"."""

TABLES = """
CREATE TABLE pages (id INTEGER PRIMARY KEY, topic TEXT NOT NULL, doc TEXT NOT NULL, UNIQUE (topic, doc));
CREATE TABLE assessors (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  time REAL NOT NULL,
  kind TEXT NOT NULL,
  assessor TEXT REFERENCES assessors (name),
  page INTEGER REFERENCES pages (id),
  data TEXT NOT NULL
);
"""
NO_CHANGE = """
CREATE TRIGGER {0}_{1} BEFORE {1} ON {0} BEGIN SELECT RAISE(ABORT, '{0} is append-only'); END;
"""
SCHEMA = "".join(
    [
        *(TABLES, f"PRAGMA application_id = {DATABASE_FORMAT};"),
        *(
            NO_CHANGE.format(name, act)
            for name in ("pages", "assessors", "events")
            for act in ("UPDATE", "DELETE")
        ),
    ]
)


@contextmanager
def only_server(folder: Path) -> Iterator[None]:
    """Hold the lock of a project's folder; a `UsageError` if another server has it."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # it says who judged what
    (folder / LOCK).touch(0o600)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(folder / LOCK, wait=False))
        except OSError as error:
            problem = (
                f"{escape(str(folder), 200)} is in use by another server ({escape(str(error.strerror))})"
            )
            raise UsageError(f"{problem}; stop it, or choose another folder") from None
        yield


class StorageError(InputError):
    """The database cannot be written, such as on a full disk."""


class Store:
    """The events on the disk, and the state that they add up to in memory.

    A change is made inside `writing`, which holds the write lock of the database from before the state is read until
    the events are on the disk. So whatever is decided from the state holds when it is written, in this process and
    beside any other. Threads share one connection and take turns.
    """

    def __init__(self, folder: str | Path, *, create: bool = False) -> None:
        self.folder = Path(folder)
        self.path = self.folder / DATABASE
        self.lock = threading.RLock()
        self.state = State()
        if not create and not self.path.is_file():
            expected = "a folder that fairevals annotate has written"
            raise InputError(Place(str(self.folder)), f"there is no {DATABASE}", expected)
        if create:
            self.path.touch(0o600)  # for nobody else, in whatever folder; SQLite's other files follow
        try:
            # Autocommit: transactions begin and end where `writing` says so.
            self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
            try:
                self._prepare(create)
                self._reload()
            except BaseException:
                self._db.close()
                raise
        except (sqlite3.Error, ValueError, KeyError, TypeError) as error:  # no database, or a damaged event
            problem = f"cannot be used ({escape(str(error), 200)})"
            raise InputError(Place(str(self.path)), problem, "a database of fairevals annotate") from None

    def _prepare(self, create: bool) -> None:
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (mark,) = self._db.execute("PRAGMA application_id").fetchone()
        if mark != DATABASE_FORMAT and (tables or not create):
            raise sqlite3.DatabaseError("a database of another program or version")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")  # a commit returns when the disk has it
        self._db.execute("PRAGMA foreign_keys = ON")
        if not tables:
            self._db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database; everything is on the disk already."""
        with self.lock:
            self._db.close()

    def _reload(self) -> None:
        """Build the state again. Nobody could work while the server was down, so all open pages count from now."""
        state = State()
        self._catch_up(state)
        for who, one in state.assessors.items():
            for page in one.open:
                state.places[page][who].since = time.time()
        self.state = state  # at once, for those who read it without the lock
        self._is_stale = False

    def _catch_up(self, state: State) -> None:
        """Apply what other connections have written."""
        state.add_pages(
            self._db.execute("SELECT id, topic, doc FROM pages WHERE id > ? ORDER BY id", (state.last_page,))
        )
        for row in self._db.execute("SELECT * FROM events WHERE id > ? ORDER BY id", (state.last,)):
            state.apply(_event(row))

    @contextmanager
    def writing(self) -> Iterator[State]:
        """A transaction on the state as it is now. When it ends, what was appended is on the disk, or not at all.

        Inside another one it is part of it.
        """
        with self.lock:
            inside = self._db.in_transaction
            if inside:
                yield self.state
                return
            before = self._db.total_changes
            try:
                if self._is_stale:
                    self._reload()
                self._db.execute("BEGIN IMMEDIATE")
                self._catch_up(self.state)
                yield self.state
                self._db.execute("COMMIT")
            except BaseException as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if self._db.total_changes != before:
                    self._is_stale = True  # until it could be read again
                    self._reload()
                if isinstance(error, sqlite3.Error):  # such as a full disk
                    problem = f"cannot be written ({escape(str(error))})"
                    raise StorageError(Place(str(self.path)), problem) from None
                raise

    def append(self, kind: str, who: str = "", page: int = 0, when: float | None = None, **data: Any) -> int:
        """Append an event inside `writing`, and return its number."""
        when = time.time() if when is None else when
        row = (when, kind, who or None, page or None, json.dumps(data, ensure_ascii=False))
        sql = "INSERT INTO events (time, kind, assessor, page, data) VALUES (?, ?, ?, ?, ?)"
        number = self._db.execute(sql, row).lastrowid
        assert number is not None  # noqa: S101 (the insert has succeeded)
        self.state.apply(Event(number, when, kind, who, page, data))
        return number

    def add_pages(self, pool: Iterable[tuple[str, str]]) -> int:
        """Add those topics and documents of a pool that are new, inside `writing`, and return how many."""
        before = len(self.state.pages)
        self._db.executemany("INSERT OR IGNORE INTO pages (topic, doc) VALUES (?, ?)", pool)
        self._catch_up(self.state)
        return len(self.state.pages) - before

    def add_assessor(self, name: str, topics: Iterable[str]) -> None:
        """Add an assessor, or change the topics of one, inside `writing`."""
        self._db.execute("INSERT OR IGNORE INTO assessors (name) VALUES (?)", (name,))
        self.append("assessor", name, topics=list(topics))

    def history(self, who: str, page: int) -> list[Event]:
        """All events of an assessor about a page, the oldest first."""
        with self.lock:
            rows = self._db.execute(
                "SELECT * FROM events WHERE assessor = ? AND page = ? ORDER BY id", (who, page)
            )
            return [_event(row) for row in rows]


def _event(row: Any) -> Event:
    number, when, kind, who, page, data = row
    return Event(number, when, kind, who or "", page or 0, json.loads(data))

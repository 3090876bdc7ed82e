"""The state that the events of an annotation project add up to: places on pages, entries, questions, links."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from fairevals.annotate.assignment import Holders, choose, random_order
from fairevals.derive.pages import entity_key

Entity = Mapping[str, str]
"""An entity that an assessor named: `entity` is its name, the other keys are attributes and further fields."""


@dataclass(frozen=True)
class Event:
    """One row of the table of events. Nothing else is ever written, and no row is changed or deleted."""

    id: int
    time: float
    kind: str
    assessor: str
    """Whom it concerns; empty for the organiser."""
    page: int
    """0 where it concerns no page."""
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Page:
    """A pooled document of a topic."""

    topic: str
    doc: str


@dataclass
class Assignment:
    """One of the places on a page, held by an assessor."""

    since: float
    """When the assessor last did anything with the page, for returning it to the queue."""
    saved: int = 0
    """The event of the last save; 0 if nothing was saved."""
    entities: tuple[Entity, ...] = ()
    waiting: bool = False
    """Whether a question has no answer yet."""


@dataclass
class Question:
    """A question of an assessor about a page, or the report that the page cannot be shown."""

    id: int
    assessor: str
    page: int
    text: str
    answer: str = ""


@dataclass
class Assessor:
    """A person who judges pages."""

    topics: tuple[str, ...] = ("*",)
    """Globs of the topics."""
    link: str = ""
    """The hash of the token in the personal link; empty if there is none or it was revoked."""
    invited: bool = False
    """Whether there ever was a link."""
    skipped: set[int] = field(default_factory=set)
    open: set[int] = field(default_factory=set)
    """Pages with a place that is not saved."""
    saved: dict[int, str] = field(default_factory=dict)
    """Saved pages with their topics, in the order in which they were last saved."""
    held: set[int] = field(default_factory=set)
    """Pages on which there ever was a place."""
    late: int = 0
    """Saves that came after the page had been given to someone else."""

    @property
    def works(self) -> bool:
        """Whether others may expect to share pages with the assessor."""
        return bool(self.open or (self.saved and (self.link or not self.invited)))

    def may_see(self, topic: str) -> bool:
        """Whether a topic is assigned to the assessor."""
        return any(fnmatchcase(topic, pattern) for pattern in self.topics)


class State:
    """What all events so far add up to. `apply` is the only way to change it."""

    def __init__(self) -> None:
        self.last = self.last_page = 0
        self.settings: dict[str, Any] = {"per_page": 2, "seed": 0, "columns": []}
        self.pages: dict[int, Page] = {}
        self.numbers: dict[str, list[int]] = {}
        """The pages of each topic, in the order of the pool."""
        self.changed: Counter[str] = Counter()
        """The event that last changed what counts in a topic."""
        self.topics: dict[str, dict[Holders, set[int]]] = {}
        """By topic, the pages that have a free place, by who holds the others."""
        self.places: dict[int, dict[str, Assignment]] = {}
        self.shared: Counter[frozenset[str]] = Counter()
        """On how many pages both of two assessors hold a place."""
        self.assessors: dict[str, Assessor] = {}
        self.sessions: dict[str, str] = {}
        """Hashes of cookies, and whose they are."""
        self.organiser_link = ""
        self.questions: dict[int, Question] = {}

    # Reading ---------------------------------------------------------------------------------------------------

    @property
    def per_page(self) -> int:
        """How many assessors judge each page."""
        return int(self.settings["per_page"])

    def next_page(self, who: str) -> int | None:
        """The page that the assessor works on, or else the one to be taken next; None if nothing is left.

        Topics come in one order for all, so that all assessors are in the same topic at about the same time and
        share pages with each other. Skipped pages come last.
        """
        me = self.assessors[who]
        current = [page for page in me.open if not self.places[page][who].waiting]
        if current:
            return min(current, key=lambda page: self.places[page][who].since)
        order = random_order(self.settings["seed"], who)
        working = [name for name, one in self.assessors.items() if name != who and one.works]
        topics = [topic for topic in self.topics if self.topics[topic] and me.may_see(topic)]
        for skipped in (False, True):
            for topic in topics:
                avoid = () if skipped else me.skipped
                partners = [name for name in working if self.assessors[name].may_see(topic)]
                page = choose(
                    self.topics[topic], who, lambda other: self.in_common(who, other), partners, order, avoid
                )
                if page is not None:
                    return page
        return None

    def in_common(self, one: str, other: str) -> int:
        """On how many pages both assessors hold a place."""
        return self.shared[frozenset((one, other))]

    def has_room(self, page: int, who: str) -> bool:
        """Whether the assessor may take a place on the page."""
        places, one = self.places.get(page, {}), self.assessors[who]
        return who not in places and len(places) < self.per_page and one.may_see(self.pages[page].topic)

    def expired(self, now: float, hold: float) -> Iterator[tuple[str, int]]:
        """Assessors and their unfinished pages with which nothing was done for `hold` seconds; not those that wait."""
        for who, one in self.assessors.items():
            for page in one.open:
                place = self.places[page][who]
                if not place.waiting and now - place.since > hold:
                    yield who, page

    def names_used(self, who: str, topic: str) -> list[Entity]:
        """The assessor's own entities in a topic, each name once with its latest values, sorted."""
        mine = [page for page, of in self.assessors[who].saved.items() if of == topic]
        latest = {entity_key(one["entity"]): one for page in mine for one in self.places[page][who].entities}
        return [latest[key] for key in sorted(latest)]

    def questions_of(self, who: str, page: int) -> list[Question]:
        """The assessor's questions about a page, the oldest first."""
        return [one for one in self.questions.values() if one.assessor == who and one.page == page]

    # Writing ---------------------------------------------------------------------------------------------------

    def add_pages(self, rows: Iterable[tuple[int, str, str]]) -> None:
        """Pages of the pool: number, topic, document."""
        for number, topic, doc in rows:
            self.pages[number] = Page(topic, doc)
            self.last_page = number
            self.numbers.setdefault(topic, []).append(number)
            self.topics.setdefault(topic, {}).setdefault(frozenset(), set()).add(number)

    def apply(self, event: Event) -> None:
        """Change the state as the event says."""
        who, page, data = event.assessor, event.page, event.data
        match event.kind:
            case "configure":
                self.settings = {**self.settings, **data}
                self._group_again()
            case "assessor":
                self.assessors.setdefault(who, Assessor()).topics = tuple(data["topics"])
            case "link" if who:
                self.assessors[who].link, self.assessors[who].invited = data["hash"], True
            case "link":
                self.organiser_link = data["hash"]
                self._end_sessions(who)
            case "revoke":
                self.assessors[who].link = ""
                self._end_sessions(who)
            case "sign-in":
                self.sessions[data["hash"]] = who
            case "sign-out":
                self.sessions.pop(data["hash"], None)
            case "take":
                self._move(page, who, Assignment(event.time))
            case "skip":
                self._move(page, who, None)
                self.assessors[who].skipped.add(page)
            case "release":
                self._move(page, who, None)
            case "save":
                place = self.places[page][who]
                place.saved, place.entities, place.waiting = event.id, tuple(data["entities"]), False
                one = self.assessors[who]
                one.open.discard(page)
                one.skipped.discard(page)
                one.saved.pop(page, None)
                one.saved[page] = self.pages[page].topic
            case "late":
                self.assessors[who].late += 1
            case "ask":
                self.questions[event.id] = Question(event.id, who, page, data["text"])
                self._set_waiting(page, who, event.time)
            case "answer":
                self.questions[data["question"]].answer = data["text"]
                self._set_waiting(page, who, event.time)
        if event.kind in ("save", "release"):
            self.changed[self.pages[page].topic] = event.id
        self.last = event.id

    def _end_sessions(self, who: str) -> None:
        self.sessions = {key: name for key, name in self.sessions.items() if name != who}

    def _set_waiting(self, page: int, who: str, now: float) -> None:
        place = self.places.get(page, {}).get(who)
        if place is not None and not place.saved:
            place.waiting = any(not one.answer for one in self.questions_of(who, page))
            place.since = now

    def _move(self, page: int, who: str, place: Assignment | None) -> None:
        """Give the assessor a place on a page, or take it away."""
        places = self.places.setdefault(page, {})
        groups, before = self.topics[self.pages[page].topic], frozenset(places)
        one, step = self.assessors[who], 1 if place is not None else -1
        if place is not None:
            places[who] = place
            one.open.add(page)
            one.held.add(page)
        else:
            del places[who]
            one.open.discard(page)
            one.saved.pop(page, None)
        for other in places:
            if other != who:
                self.shared[frozenset((who, other))] += step
        if before in groups:
            groups[before].discard(page)
            if not groups[before]:
                del groups[before]
        if len(places) < self.per_page:
            groups.setdefault(frozenset(places), set()).add(page)

    def _group_again(self) -> None:
        """Find the pages with a free place again, after the number of places has changed."""
        self.topics = {topic: {} for topic in self.topics}
        for number, page in self.pages.items():
            holders = frozenset(self.places.get(number, ()))
            if len(holders) < self.per_page:
                self.topics[page.topic].setdefault(holders, set()).add(number)

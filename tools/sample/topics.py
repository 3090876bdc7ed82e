"""The topics of the sample task, with the grades of their judged pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.sample.draws import Draws
from tools.sample.pages import Page, film, researcher_page
from tools.sample.words import FIELDS, THEMES

PAGES = 320  # of each kind
UNJUDGED = 60  # unjudged pages of a topic that runs may retrieve
FEW_RELEVANT = {"R07": 1, "R13": 4, "R19": 6, "M05": 3, "M11": 5}


@dataclass(frozen=True)
class Topic:
    """A topic with the grades of its judged pages and all pages that a run may retrieve for it."""

    topic: str
    kind: str
    title: str
    grades: dict[str, int]
    pages: tuple[Page, ...]

    def attributes(self) -> tuple[str, ...]:
        """The attributes that apply to the topic."""
        return ("HINDEX", "REGION") if self.kind == "researchers" else ("ORIGIN",)

    def grade(self, page: Page) -> int:
        """The page's grade, 0 if it is unjudged."""
        return self.grades.get(page.doc, 0)


def make_topics(seed: int) -> list[Topic]:
    """Twenty topics on researchers, R01 … R20, and twenty on films, M01 … M20.

    >>> topics = make_topics(2026)
    >>> len(topics), topics[0].topic, topics[0].title
    (40, 'R01', 'people who work on fair ranking')
    """
    researchers = {f"R{i:02}": f"people who work on {field}" for i, field in enumerate(FIELDS, 1)}
    films = {f"M{i:02}": f"films about {theme}" for i, theme in enumerate(THEMES, 1)}
    return [
        *_topics_of("researchers", researchers, researcher_page, seed),
        *_topics_of("films", films, film, seed),
    ]


def _topics_of(
    kind: str, titles: dict[str, str], make_page: Callable[[int, int, Draws], Page], seed: int
) -> list[Topic]:
    draws = Draws(seed, "pool", kind)
    relevant = [FEW_RELEVANT.get(topic, draws.between(12, 26)) for topic in titles]
    pages: dict[str, Page] = {}
    while len(pages) < PAGES:
        main = draws.weighted(relevant)
        side = (main + draws.pick((-2, -1, 1, 2))) % len(relevant)
        page = make_page(main, side, draws)
        pages.setdefault(page.doc, page)

    topics = []
    for position, (topic, title) in enumerate(titles.items()):
        grades, known = _judge(
            position, relevant[position], list(pages.values()), Draws(seed, "judge", topic)
        )
        topics.append(Topic(topic, kind, title, grades, known))
    return topics


def _judge(
    position: int, relevant: int, pages: list[Page], draws: Draws
) -> tuple[dict[str, int], tuple[Page, ...]]:
    """Judge pages by how much they are about the topic: relevant first, then not relevant, then unjudged."""
    about = {page.doc: _aboutness(page, position) + 0.9 * draws.uniform() for page in pages}
    nearest = sorted(pages, key=lambda page: (-about[page.doc], page.doc))
    judged = draws.between(55, 65)
    highly_relevant = max(1, round(0.4 * relevant))
    grades = {
        page.doc: 2 if rank < highly_relevant else 1 if rank < relevant else 0
        for rank, page in enumerate(nearest[:judged])
    }
    return grades, tuple(nearest[: judged + UNJUDGED])


def _aboutness(page: Page, position: int) -> float:
    """How much a page is about a topic; fame adds a little, so ranking by fame is not useless."""
    if page.main == position:
        return 3.0 + 0.25 * page.fame
    if page.side == position:
        return 2.0 + 0.25 * page.fame
    return 1.0 if abs(page.main - position) <= 2 else 0.0

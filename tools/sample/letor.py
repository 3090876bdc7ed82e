"""The sample's pages as learning data: features of each page, and groups."""

from __future__ import annotations

from tools.sample.draws import Draws
from tools.sample.pages import GROUPS, Page
from tools.sample.topics import Topic

FEATURES = ("match of the text", "match of the title", "fame", "length of the name")
"""The meaning of features 1 to 4. Fame is somewhat useful, and favours some groups."""
LEARNED = {"researchers": "HINDEX", "films": "ORIGIN"}
"""The attribute whose groups a trained policy should be fair to, by kind of topic."""


def features(page: Page, topic: Topic, draws: Draws) -> tuple[float, ...]:
    """A page's features for a topic, in the order of `FEATURES`."""
    grade = topic.grade(page)
    text, title = grade + 0.9 * draws.noise(), min(grade, 1) + 1.2 * draws.noise()
    return text, title, page.fame, len(page.doc) / 10.0


def letor_lines(topics: list[Topic], seed: int) -> list[str]:
    """Every page that a run may retrieve, in LETOR's format; unjudged pages have grade 0."""
    lines = []
    for topic in topics:
        draws = Draws(seed, "letor", topic.topic)
        for page in sorted(topic.pages, key=lambda page: page.doc):
            values = " ".join(f"{n}:{value:.3f}" for n, value in enumerate(features(page, topic, draws), 1))
            lines.append(f"{topic.grade(page)} qid:{topic.topic} {values} # {page.doc}")
    return lines


def group_rows(topics: list[Topic]) -> list[str]:
    """The groups for training as doc,group,weight; an unmapped page has the same share in all groups."""
    rows = []
    pages = {page.doc: (page, LEARNED[topic.kind]) for topic in topics for page in topic.pages}
    for doc, (page, attribute) in sorted(pages.items()):
        for group, weight in zip(GROUPS[attribute], page.share(attribute), strict=True):
            if weight > 0:
                rows.append(f"{doc},{group},{round(weight, 4):g}")
    return rows

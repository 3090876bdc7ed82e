"""The annotations as the table that `derive` reads, and how far the work is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairevals.annotate.store import Store
from fairevals.derive.agreement import AnnotationSummary, AnnotationTally
from fairevals.derive.pages import (
    ANNOTATION_COLUMNS,
    AnnotatedPage,
    annotated_pages,
    groups_of_value,
    read_annotations,
)
from fairevals.errors import InputError, Place, escape, pluralize
from fairevals.io.out import Table, format_number, render
from fairevals.io.specs import AttributeSpec
from fairevals.io.streams import Source

EXPORT_NAME = "annotations.csv"
AGREEMENT_COLUMNS = ("shared pages", "positive agreement", "alpha, entity on page", "alpha, any entity")


def annotations_table(store: Store, topics: Iterable[str] | None = None) -> Table:
    """What assessors have saved: one row per entity, and one without entity where an assessor found none.

    Rows are in the order of topics and pages of the pool, then of assessors. Corrected entries count as corrected.
    Others can work between two topics.
    """
    state = store.state
    added = list(state.settings["columns"])
    rows: list[tuple[str, ...]] = []
    for topic in list(state.numbers) if topics is None else topics:
        with store.lock:
            rows += (
                (
                    topic,
                    state.pages[number].doc,
                    entity["entity"],
                    who,
                    *(entity.get(name, "") for name in added),
                )
                for number in state.numbers[topic]
                for who, place in sorted(state.places.get(number, {}).items())
                if place.saved
                for entity in place.entities or ({"entity": ""},)
            )
    return Table((*ANNOTATION_COLUMNS, *added), tuple(rows))


def export_annotations(folder: str | Path, *, spreadsheet: bool = False) -> str:
    """The annotations of a project as csv, exactly what `derive` reads; at any time, also while the server runs.

    With `spreadsheet`, texts that a spreadsheet would take for a formula start with `'`.
    """
    with Store(folder) as store:
        return render(annotations_table(store), "csv", spreadsheet=spreadsheet)


@dataclass(frozen=True)
class TopicOverview:
    """How far a topic is, and how far its assessors agree."""

    topic: str
    pages: int
    complete: int
    """Pages that as many assessors as they should have saved."""
    saved: int
    """Judgements: saved pages, counted for each assessor."""
    tally: AnnotationTally
    differing: tuple[AnnotatedPage, ...] = ()
    """Pages on which assessors disagree."""

    @property
    def agreement(self) -> AnnotationSummary | None:
        """How far assessors agree so far; None if nothing was saved."""
        return self.tally.summary() if self.tally.relevance else None


class Overview:
    """How far a project is. What has not changed since the last time is not computed again."""

    def __init__(self, store: Store, attributes: Mapping[str, Sequence[AttributeSpec]]) -> None:
        """`attributes` are those of each topic, whose values are compared."""
        self.store, self.attributes = store, attributes
        self._known: dict[str, tuple[tuple[int, ...], TopicOverview]] = {}

    def topics(self) -> Iterator[TopicOverview]:
        """The topics in the order of the pool. Others can work in between."""
        for topic in list(self.store.state.numbers):
            yield self._topic(topic)

    def _topic(self, topic: str) -> TopicOverview:
        with self.store.lock:
            state = self.store.state
            numbers = state.numbers[topic]
            version = (state.changed[topic], len(numbers), state.per_page)
            if self._known.get(topic, ((), None))[0] == version:
                return self._known[topic][1]
            saved = [sum(bool(p.saved) for p in state.places.get(n, {}).values()) for n in numbers]
            complete = sum(count >= state.per_page for count in saved)
            table = annotations_table(self.store, [topic])
        pages: tuple[AnnotatedPage, ...] = ()
        if table.rows:  # through the same reader as `derive`
            pages = annotated_pages(read_annotations(Source.of(render(table, "csv").encode(), EXPORT_NAME)))
        differing = tuple(page for page in pages if disagrees(page, self.attributes.get(topic, ())))
        tally = AnnotationTally.of(pages)
        overview = TopicOverview(topic, len(saved), complete, sum(saved), tally, differing)
        self._known[topic] = version, overview
        return overview


def total(topics: Sequence[TopicOverview]) -> TopicOverview:
    """All topics as one."""
    tally = AnnotationTally()
    for one in topics:
        tally.add(one.tally)
    pages, complete, saved = (
        sum(of) for of in zip(*((t.pages, t.complete, t.saved) for t in topics), strict=True)
    )
    return TopicOverview("all", pages, complete, saved, tally)


def agreement_cells(of: AnnotationSummary | None) -> tuple[str, ...]:
    """The cells below `AGREEMENT_COLUMNS`."""
    if of is None:
        return ("0", "–", "–", "–")
    values = (of.positive, of.entities.alpha, of.relevance.alpha)
    return (str(of.relevance.units), *(format_number(value, 3) for value in values))


def disagrees(page: AnnotatedPage, specs: Sequence[AttributeSpec]) -> bool:
    """Whether assessors named different entities on a page, or put one into different groups."""

    def group(text: str, spec: AttributeSpec) -> object:
        try:
            return groups_of_value(text, spec, Place(EXPORT_NAME))
        except InputError:  # the task has changed since
            return text

    return any(
        len(lines) < len(page.annotators)
        or any(len({group(one.values[spec.name], spec) for one in lines}) > 1 for spec in specs)
        for lines in page.entities.values()
    )


def status(folder: str | Path) -> str:
    """How far a project is, as text: topics with agreement, assessors, and questions without an answer."""
    with Store(folder) as store:
        topics, state = list(Overview(store, {}).topics()), store.state
        rows: list[tuple[str | int, ...]] = [
            (one.topic, one.pages, one.complete, one.saved, *agreement_cells(one.agreement))
            for one in [*topics, total(topics)]
        ]
        waiting = [
            (one.assessor, page.topic, page.doc, escape(one.text, 200))
            for one in state.questions.values()
            if not one.answer
            for page in [state.pages[one.page]]
        ]
        people = [
            (name, len(one.saved), len(one.open), "yes" if one.link else "no")
            for name, one in state.assessors.items()
        ]
    header = ("topic", "pages", "complete", "judgements", *AGREEMENT_COLUMNS)
    texts = [
        f"{pluralize(state.per_page, 'assessor')} per page\n",
        render(Table(header, tuple(rows[:-1]), footer=(rows[-1],)), "table"),
        render(Table(("assessor", "saved", "open", "link"), tuple(people)), "table"),
    ]
    if waiting:
        texts.append(render(Table(("open question of", "topic", "doc", "text"), tuple(waiting)), "table"))
    return "\n".join(texts)

"""The annotations as the table that `derive` reads, and how far the work is."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from fairevals.annotate.state import State
from fairevals.annotate.store import Store
from fairevals.derive.agreement import AnnotationSummary, summarise
from fairevals.derive.pages import ANNOTATION_COLUMNS, AnnotatedPage, annotated_pages, read_annotations
from fairevals.io.out import Table, render
from fairevals.io.streams import Source


def annotations_table(state: State) -> Table:
    """What assessors have saved: one row per entity, and one without entity where an assessor found none.

    Rows are in the order of topics and pages of the pool, then of assessors. Corrected entries count as corrected.
    """
    added = list(state.settings["columns"])
    rows: list[tuple[str, ...]] = []
    topics = {topic: at for at, topic in enumerate(state.topics)}
    saved = ((number, page) for number, page in state.pages.items() if number in state.places)
    for number, page in sorted(saved, key=lambda item: (topics[item[1].topic], item[0])):
        for who, place in sorted(state.places[number].items()):
            for entity in (place.entities or ({"entity": ""},)) if place.saved else ():
                values = (entity.get(column, "") for column in added)
                rows.append((page.topic, page.doc, entity["entity"], who, *values))
    return Table((*ANNOTATION_COLUMNS, *added), tuple(rows))


def export_annotations(folder: str | Path, *, spreadsheet: bool = False) -> str:
    """The annotations of a project as csv, exactly what `derive` reads; at any time, also while the server runs.

    With `spreadsheet`, texts that a spreadsheet would take for a formula start with `'`.
    """
    with Store(folder) as store:
        return render(annotations_table(store.state), "csv", spreadsheet=spreadsheet)


def pages_so_far(table: Table) -> tuple[AnnotatedPage, ...]:
    """The annotated pages, through the same reader as `derive`."""
    if not table.rows:
        return ()
    return annotated_pages(read_annotations(Source.of(render(table, "csv").encode(), "annotations.csv")))


@dataclass(frozen=True)
class TopicProgress:
    """How far a topic is."""

    topic: str
    pages: int
    complete: int
    """Pages that as many assessors as they should have saved."""
    saved: int
    """Judgements: saved pages, counted for each assessor."""


def progress(state: State) -> list[TopicProgress]:
    """How far each topic is, in the order of the pool."""
    pages = Counter(page.topic for page in state.pages.values())
    saved: Counter[str] = Counter()
    complete: Counter[str] = Counter()
    for number, places in state.places.items():
        topic = state.pages[number].topic
        count = sum(bool(place.saved) for place in places.values())
        saved[topic] += count
        complete[topic] += count >= state.per_page
    return [TopicProgress(topic, pages[topic], complete[topic], saved[topic]) for topic in state.topics]


def agreement(pages: tuple[AnnotatedPage, ...]) -> AnnotationSummary | None:
    """How far assessors agree on these pages so far; None if there are none."""
    return summarise(pages) if any(page.annotators for page in pages) else None


def status(folder: str | Path) -> str:
    """How far a project is, as text: topics, assessors, open questions, agreement."""
    with Store(folder) as store:
        return describe(store.state)


def describe(state: State) -> str:
    """See `status`."""
    topics = progress(state)
    total = ("all", *(sum(getattr(row, key) for row in topics) for key in ("pages", "complete", "saved")))
    rows = tuple((row.topic, row.pages, row.complete, row.saved) for row in topics)
    texts = [render(Table(("topic", "pages", "complete", "judgements"), rows, footer=(total,)), "table")]
    people = tuple(
        (name, len(one.saved), len(one.open), "yes" if one.link else "no")
        for name, one in state.assessors.items()
    )
    texts.append(render(Table(("assessor", "saved", "open", "link"), people), "table"))
    waiting = sum(not one.answer for one in state.questions.values())
    lines = [f"assessors per page  {state.per_page}", f"open questions      {waiting}"]
    summary = agreement(pages_so_far(annotations_table(state)))
    if summary is not None and summary.relevance.units:
        for name, value in (
            ("positive agreement on entities", summary.positive),
            ("Krippendorff's alpha, entity on page", summary.entities.alpha),
            ("Krippendorff's alpha, page with any entity", summary.relevance.alpha),
        ):
            lines.append(f"{name}  {'undefined' if value != value else f'{value:.3f}'}")
    texts.append("\n".join(lines) + "\n")
    return "\n".join(texts)

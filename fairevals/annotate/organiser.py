"""What the organiser sees: progress, agreement, disagreements, questions, links and the export."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fairevals.annotate.export import agreement, annotations_table, pages_so_far, progress
from fairevals.annotate.site import Body, Site, first
from fairevals.derive.pages import AnnotatedPage, groups_of_value
from fairevals.errors import FairevalsError, Place
from fairevals.io.out import format_number, render

SHOWN = 50
"""Disagreements on one screen."""


def routes(site: Site) -> list[Route]:
    """The routes below /o."""

    def overview(request: Request, **more: Any) -> Response:
        site.who(request, "/o")
        topic = request.query_params.get("topic", "")
        values = {**_values(site, topic), **more}
        return site.show("organiser.html", token=site.form_token(request, "/o"), **values)

    def annotations(request: Request) -> Response:
        site.who(request, "/o")
        with site.project.store.lock:
            table = annotations_table(site.state)
        headers = {"Content-Disposition": 'attachment; filename="annotations.csv"'}
        return Response(render(table, "csv"), media_type="text/csv; charset=utf-8", headers=headers)

    async def act(request: Request) -> Response:
        body = await site.read_form(request, "/o")
        try:
            link = await run_in_threadpool(_act, site, body)
        except FairevalsError as error:
            raise HTTPException(400, str(error)) from None
        if link:  # in this answer only: what is stored is a hash
            return await run_in_threadpool(overview, request, link=link, link_of=first(body, "assessor"))
        return RedirectResponse("/o", 303)

    return [
        Route("/o", overview),
        Route("/o", act, methods=["POST"]),
        Route("/o/annotations.csv", annotations),
    ]


def _act(site: Site, body: Body) -> str:
    """Do what a form asks for; returns a new link if one was made."""
    project, who = site.project, first(body, "assessor")
    match first(body, "do"):
        case "add":
            project.add_assessor(who.strip(), first(body, "topics").split() or ["*"])
            return f"{site.url}/sign-in/{project.new_link(who.strip())}"
        case "link":
            return f"{site.url}/sign-in/{project.new_link(who)}"
        case "revoke":
            project.revoke(who)
        case "unassign":
            project.unassign(who, saved=first(body, "saved") == "yes")
        case "answer":
            text, question = first(body, "text").strip(), first(body, "question")
            if text and question.isdecimal():
                project.answer(int(question), text)
        case _:
            raise HTTPException(400, "Unknown action.")
    return ""


def _values(site: Site, topic: str) -> dict[str, Any]:
    """What the template of the overview needs. Agreement is computed outside the lock, so that nobody has to wait."""
    with site.project.store.lock:
        state, table, rows = site.state, annotations_table(site.state), progress(site.state)
        assessors = [(name, one, len(one.open), len(one.saved)) for name, one in state.assessors.items()]
        questions = sorted(state.questions.values(), key=lambda one: (bool(one.answer), -one.id))
        pages = {one.page: state.pages[one.page] for one in questions}
    by_topic: dict[str, list[AnnotatedPage]] = {}
    for page in pages_so_far(table):
        by_topic.setdefault(page.topic, []).append(page)
    chosen = by_topic.get(topic, []) if topic else [page for some in by_topic.values() for page in some]
    differing = [page for page in chosen if disagrees(site, page)]
    return {
        "progress": rows,
        "per_page": state.per_page,
        "agreement": {name: agreement(tuple(some)) for name, some in by_topic.items()},
        "overall": agreement(tuple(page for some in by_topic.values() for page in some)),
        "titles": {row.topic: site.title_of(row.topic) for row in rows},
        "assessors": assessors,
        "questions": questions,
        "pages": pages,
        "addresses": {number: site.page_address(number) for number in pages},
        "topic": topic,
        "disagreements": differing[:SHOWN],
        "disagreeing": len(differing),
        "fields": site.fields,
        "link": "",
        "link_of": "",
        "number": lambda value: format_number(value, 3),
    }


def disagrees(site: Site, page: AnnotatedPage) -> bool:
    """Whether assessors named different entities on a page, or put one into different groups."""
    specs = [field.attribute for field in site.fields.get(page.topic, ()) if field.attribute is not None]
    for lines in page.entities.values():
        if len(lines) < len(page.annotators):
            return True
        for spec in specs:
            values = {
                groups_of_value(one.values[spec.name], spec, Place("annotations.csv", one.line))
                for one in lines
            }
            if len(values) > 1:
                return True
    return False

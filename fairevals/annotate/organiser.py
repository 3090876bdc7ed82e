"""What the organiser sees: progress, agreement, disagreements, questions, links and the export."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from fairevals.annotate.export import (
    AGREEMENT_COLUMNS,
    EXPORT_NAME,
    Overview,
    agreement_cells,
    annotations_table,
    total,
)
from fairevals.annotate.pages import MISSING_PAGE
from fairevals.annotate.site import Body, Site, first, whole
from fairevals.io.out import render

LISTED_ROWS = 50
"""Disagreements on one screen."""


def routes(site: Site) -> list[Route]:
    """The routes below /o."""
    attributes = {
        topic: [of.attribute for of in fields if of.attribute] for topic, fields in site.fields.items()
    }
    so_far = Overview(site.project.store, attributes)
    for _ in so_far.topics():  # now, when nobody has to wait for it
        pass

    def overview(request: Request, **more: Any) -> Response:
        site.who(request, "/o")
        topic = request.query_params.get("topic", "")
        values = {**_values(site, so_far, topic), **more}
        return site.show("organiser.html", token=site.form_token(request, "/o"), **values)

    def annotations(request: Request) -> Response:
        site.who(request, "/o")
        headers = {"Content-Disposition": f'attachment; filename="{EXPORT_NAME}"'}
        table = annotations_table(site.project.store)
        return Response(render(table, "csv"), media_type="text/csv; charset=utf-8", headers=headers)

    async def act(request: Request) -> Response:
        body = await site.read_form(request, "/o")
        link = await run_in_threadpool(_act, site, body)
        if link:  # in this answer only: what is stored is a hash
            return await run_in_threadpool(overview, request, link=link, link_of=first(body, "assessor"))
        return RedirectResponse("/o#questions" if first(body, "do") == "answer" else "/o#assessors", 303)

    return [
        Route("/o", overview),
        Route("/o", act, methods=["POST"]),
        Route(f"/o/{EXPORT_NAME}", annotations),
    ]


def _act(site: Site, body: Body) -> str:
    """Do what a form asks for; returns a new link if one was made."""
    project, who = site.project, first(body, "assessor")
    match first(body, "do"):
        case "add":
            project.add_assessor(who.strip(), first(body, "topics").split() or ["*"])
            return f"{site.url}/sign-in/{project.new_link(who.strip())}"
        case "link" if who:  # without a name it would be the organiser's own, whose session ends
            return f"{site.url}/sign-in/{project.new_link(who)}"
        case "revoke":
            project.revoke(who)
        case "unassign":
            project.unassign(who, saved=first(body, "saved") == "yes")
        case "answer":
            if text := first(body, "text").strip():
                project.answer(whole(body, "question"), text)
        case _:
            raise HTTPException(400, "Unknown action.")
    return ""


def _address(site: Site, number: int, doc: str) -> str:
    """Where the organiser can see a page; empty if there is none."""
    file = site.files.find(doc)
    return file.url or ("" if file == MISSING_PAGE else site.page_address(number))


def _values(site: Site, so_far: Overview, topic: str) -> dict[str, Any]:
    """What the template of the overview needs."""
    topics = list(so_far.topics())
    with site.project.store.lock:
        state = site.state
        assessors = [(name, one, len(one.open), len(one.saved)) for name, one in state.assessors.items()]
        questions = sorted(state.questions.values(), key=lambda one: (bool(one.answer), -one.id))
        pages = {one.page: state.pages[one.page] for one in questions}
    differing = [page for one in topics if topic in ("", one.topic) for page in one.differing]
    shown = {(page.topic, page.doc) for page in differing[:LISTED_ROWS]}
    shown |= {(page.topic, page.doc) for page in pages.values()}
    numbers = [number for name in {topic for topic, _ in shown} for number in state.numbers[name]]
    of = {(state.pages[number].topic, state.pages[number].doc): number for number in numbers}
    return {
        "progress": [*topics, total(topics)],
        "per_page": state.per_page,
        "agreement": AGREEMENT_COLUMNS,
        "cells": agreement_cells,
        "title_of": site.title_of,
        "assessors": assessors,
        "questions": questions,
        "pages": pages,
        "addresses": {page: _address(site, of[page], page[1]) for page in shown},
        "topic": topic,
        "disagreements": differing[:LISTED_ROWS],
        "disagreeing": len(differing),
        "fields": site.fields,
        "link": "",
        "link_of": "",
    }

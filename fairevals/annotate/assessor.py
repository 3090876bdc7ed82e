"""What an assessor sees: one page after the other with its form, and the own entries."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from fairevals.annotate.form import PROBLEMS, UNKNOWN, read_form
from fairevals.annotate.site import Body, Site, first, whole
from fairevals.annotate.state import Assignment

CANNOT_BE_SHOWN = "The page cannot be shown."
LISTED_PAGES = 100
"""Saved pages in the list of an assessor's own pages, unless all are asked for."""
NOT_YOURS = "This page is not yours. It may have returned to the queue."
MAX_QUESTION = 2000
MAX_TOUCH = 300.0
"""Seconds after which the browser says again that the assessor is at work; fewer where pages return sooner."""
MESSAGES = {
    "changed": "Another tab has saved something else for this page. Your entries are still here and not saved: "
    "save again to replace what the other tab saved, or discard them to see it.",
    "late": "This page was given to someone else, because nothing happened here for a long time. Your entries are kept "
    "for the organiser but do not count.",
    "unasked": "Not sent: this page was given to someone else. Copy your question if you need it, and go on to "
    "the next page.",
    "empty": "Name an entity, or press 0 if there is none.",
    "question": f"Write a question of at most {MAX_QUESTION} characters.",
    "errors": "Not saved: please correct what is marked.",
}


def routes(site: Site) -> list[Route]:
    """The routes below /a."""
    project = site.project

    def next_page(request: Request) -> Response:
        return RedirectResponse(_next(site, site.who(request, "/a")), 303)

    def page(request: Request) -> Response:
        who, number = site.who(request, "/a"), int(request.path_params["number"])
        project.touch(who, number)
        with project.store.lock:
            values = _page_values(site, who, number)
        values |= {"file": site.files.find(values["page"].doc), "token": site.form_token(request, "/a")}
        values["touch"] = int(1000 * min(MAX_TOUCH, project.hold / 4))
        return site.show("page.html", who=who, number=number, unknown=UNKNOWN, **values)

    def mine(request: Request) -> Response:
        who = site.who(request, "/a")
        with project.store.lock:
            values = _own_pages(site, who, None if "all" in request.query_params else LISTED_PAGES)
        return site.show("mine.html", who=who, token=site.form_token(request, "/a"), **values)

    async def act(request: Request) -> Response:
        body = await site.read_form(request, "/a")
        who, number = site.who(request, "/a"), int(request.path_params["number"])
        if number not in site.state.assessors[who].held:
            raise HTTPException(404, NOT_YOURS)

        def act_and_store() -> Response:
            with project.store.writing():  # what is asked for and the next page
                return _act(site, who, number, body)

        return await run_in_threadpool(act_and_store)

    async def sign_out(request: Request) -> Response:
        await site.read_form(request, "/a")
        await run_in_threadpool(project.sign_out, site.session(request, "/a"))
        response = RedirectResponse("/", 303)
        response.delete_cookie(site.cookie("/a"), path="/a")
        return response

    return [
        Route("/a", next_page),
        Route("/a/mine", mine),
        Route("/a/sign-out", sign_out, methods=["POST"]),
        Route("/a/page/{number:int}", page),
        Route("/a/page/{number:int}", act, methods=["POST"]),
    ]


def _next(site: Site, who: str) -> str:
    number = site.project.take_next(who)
    return "/a/mine" if number is None else f"/a/page/{number}"


def _most(site: Site, place: Assignment | None) -> int:
    """How many entities the form of a page has; no fewer than are saved, if the task allowed more before."""
    return max(site.task.annotation.entities, len(place.entities) if place else 0)


def _page_values(site: Site, who: str, number: int) -> dict[str, Any]:
    """What the template of a page needs."""
    state = site.state
    place = state.places.get(number, {}).get(who)
    if place is None:
        raise HTTPException(404, NOT_YOURS)
    page = state.pages[number]
    fields, done = site.fields[page.topic], state.assessors[who].saved
    return {
        "page": page,
        "title": site.title_of(page.topic),
        "about": {k: v for k, v in site.about.get(page.topic, {}).items() if v and k != "title"},
        "address": site.page_address(number),
        "fields": fields,
        "place": place,
        "rows": [*place.entities, *([{}] * (_most(site, place) - len(place.entities)))],
        "used": [
            [entity["entity"], *(entity.get(field.name, "") for field in fields)]
            for entity in state.names_used(who, page.topic)
        ],
        "questions": state.questions_of(who, number),
        "done": len(done),
        "back": next((other for other in reversed(done) if other != number), 0),
        "messages": {**PROBLEMS, "errors": MESSAGES["errors"]},
    }


def _own_pages(site: Site, who: str, most: int | None) -> dict[str, Any]:
    """What the template of an assessor's own pages needs: open, waiting and saved pages, the latest first."""
    state, one = site.state, site.state.assessors[who]
    saved = list(reversed(one.saved))
    answered = {q.page for q in state.questions.values() if q.assessor == who and q.answer}

    def row(number: int) -> dict[str, Any]:
        page, place = state.pages[number], state.places[number][who]
        names = [entity["entity"] for entity in place.entities]
        return {
            "number": number,
            "page": page,
            "title": site.title_of(page.topic),
            "names": names,
            "place": place,
            "answered": number in answered,
        }

    topics = [topic for topic in state.topics if one.may_see(topic)]
    return {
        "open": [row(number) for number in sorted(one.open)],
        "done": len(saved),
        "saved": [row(number) for number in saved[:most]],
        "topics": [(topic, site.title_of(topic)) for topic in topics],
    }


def _act(site: Site, who: str, number: int, body: Body) -> Response:
    """Do what the form asks for, and name the next page."""
    project = site.project
    match first(body, "do"):
        case "save" | "none" as kind:
            return _save(site, who, number, body, none=kind == "none")
        case "skip":
            project.skip(who, number)
        case "ask" | "missing" as kind:
            text = CANNOT_BE_SHOWN if kind == "missing" else first(body, "question").strip()
            if not text or len(text) > MAX_QUESTION:
                return _refused(422, "question")
            if not project.ask(who, number, text):
                return _refused(409, "unasked")
        case "touch":
            project.touch(who, number)
            return JSONResponse({})
        case _:
            raise HTTPException(400, "Unknown action.")
    return JSONResponse({"next": _next(site, who)})


def _save(site: Site, who: str, number: int, body: Body, *, none: bool) -> Response:
    fields, place = site.fields[site.state.pages[number].topic], site.state.places.get(number, {}).get(who)
    entities, errors = ([], {}) if none else read_form(body, fields, _most(site, place))
    if errors:
        return _refused(422, "errors", errors=errors)
    if not entities and not none:
        return _refused(422, "empty")
    outcome = site.project.save(who, number, entities, whole(body, "version"))
    if outcome == "saved":
        return JSONResponse({"next": _next(site, who)})
    place = site.state.places.get(number, {}).get(who)
    return _refused(409, outcome, version=place.saved if place else 0)


def _refused(code: int, why: str, **more: Any) -> Response:
    return JSONResponse({"message": MESSAGES[why], **more}, code)

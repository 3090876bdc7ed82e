"""The web application: signing in, pages of strangers, files of our own, and the routes of both sides."""

import hmac
import logging
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from fairevals.annotate import assessor, organiser
from fairevals.annotate.pages import MISSING_PAGE, is_pdf, page_text
from fairevals.annotate.site import COOKIES, Guard, SignInLimit, Site, host_of
from fairevals.annotate.store import StorageError
from fairevals.errors import UsageError

STATIC = {"annotate.js": "text/javascript", "annotate.css": "text/css"}
MAX_AGE = 60 * 86400
"""Seconds that a browser stays signed in."""


def make_app(site: Site) -> Guard:
    """The application of a site."""
    limit = SignInLimit()

    def home(request: Request) -> Response:
        return site.show(
            "message.html", title="Annotation", text="Open your personal link to sign in.", back=""
        )

    def sign_in(request: Request) -> Response:
        session = site.project.sign_in(request.path_params["token"])
        if session is None:
            limit.failed(request.client.host if request.client else "")
            raise HTTPException(
                404, "This link is not valid, or not any more. Ask the organiser for a new one."
            )
        who, cookie = session
        path = "/a" if who else "/o"
        response = RedirectResponse(path, 303)
        secure = site.url.startswith("https://")
        response.set_cookie(
            site.cookie(path), cookie, MAX_AGE, path=path, httponly=True, samesite="lax", secure=secure
        )
        return response

    def page(request: Request) -> Response:
        number = int(request.path_params["number"])
        address = site.page_address(number).encode()
        known = hmac.compare_digest(f"/page/{number}-{request.path_params['key']}".encode(), address)
        pooled = site.state.pages.get(number) if known else None
        file = site.files.find(pooled.doc) if pooled else MISSING_PAGE
        if file.kind not in ("html", "text", "pdf"):
            raise HTTPException(404, "There is no such page.")
        framed = {"X-Frame-Options": "SAMEORIGIN"}
        if is_pdf(file):  # a browser's own viewer does not work in a sandbox
            return FileResponse(file.path, headers=framed, media_type="application/pdf")
        content, headers = page_text(file, request.query_params.get("find", ""))
        return Response(content, headers=headers | framed)

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            raise HTTPException(404)
        content = (files("fairevals.annotate") / "static" / name).read_bytes()
        return Response(content, media_type=STATIC[name], headers={"Cache-Control": "no-cache"})

    def error(request: Request, problem: Exception) -> Response:
        code, text = 500, "The server made a mistake. Nothing was saved."
        if isinstance(problem, HTTPException):
            code, text = problem.status_code, problem.detail
        elif isinstance(problem, UsageError):
            code, text = 400, str(problem)
        elif isinstance(problem, StorageError):
            logging.getLogger(__name__).error("%s", problem)
            code, text = (
                503,
                "Nothing was saved: the server cannot write to its disk. Please tell the organiser.",
            )
        path = request.scope["path"]
        if request.method == "POST" and path.startswith("/a/page/"):
            return JSONResponse({"message": text}, code)
        back = path[:2] if path[:2] in COOKIES and code != 401 else ""
        return site.show("message.html", code, title=f"{code}", text=text, back=back)

    app = Starlette(
        routes=[
            Route("/", home),
            Route("/sign-in/{token}", sign_in, methods=["GET"]),
            Route("/page/{number:int}-{key}", page),
            Route("/static/{name}", static),
            *assessor.routes(site),
            *organiser.routes(site),
        ],
        exception_handlers=dict.fromkeys((HTTPException, UsageError, StorageError, 500), error),
    )
    return Guard(app, {host_of(site.url.partition("//")[2])})

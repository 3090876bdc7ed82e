"""The web application: signing in, pages of strangers, files of our own, and the routes of both sides."""

from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from fairevals.annotate import assessor, organiser
from fairevals.annotate.pages import MISSING_PAGE, is_pdf, page_text
from fairevals.annotate.site import COOKIES, Guard, SignInLimit, Site, host_of

STATIC = {"annotate.js": "text/javascript", "annotate.css": "text/css"}
MAX_AGE = 60 * 86400
"""Seconds that a browser stays signed in."""
MAX_FIND = 200


def make_app(site: Site) -> Guard:
    """The application of a site."""
    limit = SignInLimit()

    def home(request: Request) -> Response:
        return site.show("message.html", title="Annotation", text="Open your personal link to sign in.")

    def sign_in(request: Request) -> Response:
        address = request.client.host if request.client else ""
        limit.check(address)
        session = site.project.sign_in(request.path_params["token"])
        if session is None:
            limit.failed(address)
            raise HTTPException(
                404, "This link is not valid, or not any more. Ask the organiser for a new one."
            )
        who, cookie = session
        path = "/a" if who else "/o"
        response = RedirectResponse(path, 303)
        secure = site.url.startswith("https://")
        response.set_cookie(
            COOKIES[path], cookie, MAX_AGE, path=path, httponly=True, samesite="lax", secure=secure
        )
        return response

    def page(request: Request) -> Response:
        number = int(request.path_params["number"])
        given = f"/page/{number}-{request.path_params['key']}"
        pooled = site.state.pages.get(number) if given == site.page_address(number) else None
        file = site.files.find(pooled.doc) if pooled else MISSING_PAGE
        if file.kind not in ("html", "text", "pdf"):
            raise HTTPException(404, "There is no such page.")
        framed = {"X-Frame-Options": "SAMEORIGIN"}
        if is_pdf(file):  # a browser's own viewer does not work in a sandbox
            return FileResponse(file.path, headers=framed, media_type="application/pdf")
        content, headers = page_text(file, request.query_params.get("find", "")[:MAX_FIND])
        return Response(content, headers=headers | framed)

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            raise HTTPException(404)
        content = (files("fairevals.annotate") / "static" / name).read_bytes()
        return Response(content, media_type=STATIC[name], headers={"Cache-Control": "no-cache"})

    def error(request: Request, problem: Exception) -> Response:
        code = problem.status_code if isinstance(problem, HTTPException) else 500
        text = (
            problem.detail
            if isinstance(problem, HTTPException)
            else "The server made a mistake. Nothing was saved."
        )
        if request.method == "POST" and request.url.path.startswith("/a/page/"):
            return JSONResponse({"message": text}, code)
        return site.show("message.html", code, title=f"{code}", text=text)

    app = Starlette(
        routes=[
            Route("/", home),
            Route("/sign-in/{token}", sign_in, methods=["GET"]),
            Route("/page/{number:int}-{key}", page),
            Route("/static/{name}", static),
            *assessor.routes(site),
            *organiser.routes(site),
        ],
        exception_handlers={HTTPException: error, 500: error},
    )
    return Guard(app, {host_of(site.url.partition("//")[2])})

"""What all routes share: the project with its task and pages, templates, sessions and form tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jinja2 import Environment
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from fairevals.annotate.form import FormField
from fairevals.annotate.pages import PageFiles
from fairevals.annotate.project import Project
from fairevals.annotate.security import check_form_token, keyed, read_form_body
from fairevals.annotate.state import State
from fairevals.io.task import Task
from fairevals.report.html import environment

COOKIES = {"/a": "fairevals-assessor", "/o": "fairevals-organiser"}
"""The paths that cookies are sent to, and their names. Pages of strangers are under neither path."""

Body = Mapping[str, list[str]]


@dataclass(frozen=True)
class Site:
    """An annotation project as a web site."""

    project: Project
    task: Task
    fields: Mapping[str, tuple[FormField, ...]]
    """The fields of an entity, by topic."""
    about: Mapping[str, Mapping[str, str]]
    """What the list of topics says about each topic."""
    files: PageFiles
    url: str
    """The address of the site, for links."""

    @cached_property
    def templates(self) -> Environment:
        """The templates of this package."""
        return environment("fairevals.annotate")

    @property
    def state(self) -> State:
        """What the events so far add up to; read it while holding the lock of the store."""
        return self.project.store.state

    @property
    def secret(self) -> str:
        """What form tokens and addresses of pages are made with."""
        return str(self.state.settings["secret"])

    def title_of(self, topic: str) -> str:
        """The title of a topic, or else the topic itself."""
        return self.about.get(topic, {}).get("title") or topic

    def page_address(self, number: int) -> str:
        """The address of a pooled page, which nobody can guess."""
        return f"/page/{number}-{keyed(self.secret, 'page', str(number))}"

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page of this site."""
        task = self.task.name or "Annotation"
        return HTMLResponse(self.templates.get_template(template).render(task=task, **values), status)

    def who(self, request: Request, path: str) -> str:
        """Whose session a request belongs to, empty for the organiser; 401 if there is none for the path."""
        who = self.project.session(request.cookies.get(COOKIES[path], ""))
        if who is None or (who == "") != (path == "/o"):
            raise HTTPException(
                401, "Please open your personal link again, or ask the organiser for a new one."
            )
        return who

    def form_token(self, request: Request, path: str) -> str:
        """The token that forms of a session carry."""
        return keyed(self.secret, "form", request.cookies.get(COOKIES[path], ""))

    async def read_form(self, request: Request, path: str) -> Body:
        """The fields of a form that was sent by a page of this site in a valid session."""
        self.who(request, path)
        body = await read_form_body(request)
        check_form_token(request, first(body, "token"), self.form_token(request, path))
        return body


def first(body: Body, name: str) -> str:
    """The value of a field, empty if there is none."""
    return body.get(name, [""])[0]

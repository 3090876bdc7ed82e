"""What all pages share: escaping templates, a content policy that loads nothing, and numbers as text."""

import base64
import hashlib
import re
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def environment(*packages: str) -> Environment:
    """Templates of the packages; where two have one of the same name, the first package wins.

    Everything that a template prints is escaped, and a missing variable is an error.
    """
    templates = Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return templates


SCRIPTS = (
    *("state", "draw", "ranks", "selection", "weights", "board", "plane", "differences", "groups"),
    *("topics", "tworuns", "onetopic", "myrun", "takeaway", "print"),
)
"""The modules of the report's script, in the order in which they run; the top of state.js says what each may use."""


def own_text(name: str) -> str:
    """The text of one of this package's templates: the style, or a module of the script."""
    return (files("fairevals.report") / "templates" / name).read_text(encoding="utf-8")


def script() -> str:
    """The modules as one script with a scope of its own: nothing is built, and nothing else is loaded."""
    modules = "\n".join(own_text(f"js/{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{modules}}})();\n'


def content_policy(style: str, script: str | None = None) -> str:
    """A Content-Security-Policy that allows only this style, this script and images inside the page."""
    scripts = f"script-src {_hash(script)}; " if script is not None else ""
    return f"default-src 'none'; style-src {_hash(style)}; {scripts}img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii") + "'"


def breakable(name: str) -> Markup:
    """A measure's name that a browser may break before its parameters and its cutoff.

    >>> breakable("GF(attr='<b>')@20")
    Markup('GF<wbr>(attr=&#39;&lt;b&gt;&#39;)<wbr>@20')
    """
    return Markup("<wbr>").join(part for part in re.split(r"(?=[(@])|(?<=,)", name) if part)

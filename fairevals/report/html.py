"""What the pages have in common: templates that escape whatever they are given, and a policy that loads nothing."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def environment(*packages: str) -> Environment:
    """Templates of packages, the first that has one of a name; what they are not given is an error."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def own_text(name: str) -> str:
    """The text of this package's style or script."""
    return (files("fairevals.report") / "templates" / name).read_text(encoding="utf-8")


def content_policy(style: str, script: str | None = None) -> str:
    """A Content-Security-Policy: nothing but this style and this script, and pictures that are in the page."""
    scripts = f"script-src {_hash(script)}; " if script is not None else ""
    return f"default-src 'none'; style-src {_hash(style)}; {scripts}img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii") + "'"

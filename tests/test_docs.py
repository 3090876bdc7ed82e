"""What the README and the docs print is what the commands print."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
PAGES = ["README.md", *sorted(str(path.relative_to(TOP)) for path in (TOP / "docs").glob("*.md"))]
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
# Another processor may round an exponential or a logarithm differently in the last place; training goes on from there.
TOLERANCE = {"docs/training.md": 2e-3}


def _console():
    spec = importlib.util.spec_from_file_location("console", TOP / "docs" / "console.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES)
def test_every_command_prints_what_the_page_shows(page):
    old = (TOP / page).read_text(encoding="utf-8")
    new = _console().rerun(old)
    assert NUMBER.sub("#", new) == NUMBER.sub("#", old)
    for now, then in zip(NUMBER.findall(new), NUMBER.findall(old), strict=True):
        assert math.isclose(float(now), float(then), rel_tol=1e-6, abs_tol=TOLERANCE.get(page, 1e-9)), (
            now,
            then,
        )


def test_links_inside_the_repository_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", (TOP / page).read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert ((TOP / page).parent / target).exists(), (page, target)


def test_the_pages_run_commands_at_all():
    # A change of the fence's name would make the test above pass without running anything.
    commands = _console().commands
    found = [
        c for page in PAGES for b in _console().BLOCK.findall((TOP / page).read_text()) for c in commands(b)
    ]
    assert sum(c.startswith("fairevals ") for c in found) >= 10

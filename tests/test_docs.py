"""The outputs in the README and the docs are what the commands print, and what they refer to exists."""

from __future__ import annotations

import importlib.util
import math
import re
from pathlib import Path

import pytest

import fairevals

TOP = Path(__file__).resolve().parent.parent
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(str(path.relative_to(TOP)) for path in (TOP / "docs").glob("*.md")),
]
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
# Another processor may round an exponential or a logarithm differently in the last place; training goes on from there.
TOLERANCE = {"docs/training.md": 1e-2}


def _console():
    spec = importlib.util.spec_from_file_location("console", TOP / "docs" / "console.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    # Training for a minute shows little that the tests of training do not.
    [pytest.param(page, marks=[pytest.mark.thorough] if page in TOLERANCE else []) for page in PAGES],
)
def test_every_command_prints_what_the_page_shows(page):
    old = (TOP / page).read_text(encoding="utf-8")
    new = _console().rerun(old, Path(page).stem)
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


def test_paths_that_the_documents_for_developers_name_exist():
    for page in ("CONTRIBUTING.md", "docs/architecture.md"):
        text = (TOP / page).read_text(encoding="utf-8")
        paths = re.findall(r"`((?:fairevals|tests|fuzz|docs|experiments|tools|benchmarks)/[\w./]*)`", text)
        assert len(paths) > 5
        missing = {path for path in paths if not (TOP / path).exists() and "mine" not in path}
        assert not missing, (page, missing)


def test_classes_that_the_architecture_names_exist():
    text = (TOP / "docs" / "architecture.md").read_text(encoding="utf-8")
    source = "".join(path.read_text(encoding="utf-8") for path in (TOP / "fairevals").rglob("*.py"))
    names = set(re.findall(r"`([A-Z][a-z]+[A-Za-z]*)`", text)) - {"Figure"}
    assert len(names) > 15
    assert {name for name in names if not re.search(rf"^class {name}\b", source, re.M)} == set()


def test_the_readme_is_short():
    assert len((TOP / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


def test_the_citation_names_the_version():
    citation = (TOP / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", citation, re.M)[1] == fairevals.__version__


def test_the_pages_run_commands_at_all():
    # A change of the fence's name would make the test above pass without running anything.
    commands = _console().commands
    found = [
        c for page in PAGES for b in _console().BLOCK.findall((TOP / page).read_text()) for c in commands(b)
    ]
    assert sum(c.startswith("fairevals ") for c in found) >= 10

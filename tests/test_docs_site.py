"""The documentation builds without a warning, its Python examples run, and what is generated is up to date."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import json
import math
import re
import shutil
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fairevals.measures import INDEX, measure_class

TOP = Path(__file__).resolve().parent.parent
DOCS = TOP / "docs"
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
PYCON = re.compile(r"^```pycon\n(.*?)^```$", re.S | re.M)
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
WITH_PYCON = [name for name in PAGES if PYCON.search((DOCS / name).read_text(encoding="utf-8"))]


def module(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


class Loaded(HTMLParser):
    """What a page loads from elsewhere when it is opened."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        source = given.get("src") or (given.get("href") if tag == "link" else None)
        if source and re.match(r"(https?:)?//", source) and given.get("rel") != "canonical":
            self.found.append((tag, source))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_builds_without_warnings(site):
    built = {path.stem for path in site.glob("*.html")}
    assert built >= {Path(page).stem for page in PAGES}
    assert not list(site.glob("*.py"))


def test_the_reference_has_everything_public(site):
    """Each name with its docstring, those of estimators as completed at import, and doctests as code."""
    import fairevals as fe

    page = (site / "reference.html").read_text(encoding="utf-8")
    names = set(fe.__all__) - {"__version__"}
    given = re.findall(r"^::: fairevals\.(\w+)$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.M)
    assert sorted(given) == sorted(names)
    text = unescape(re.sub(r"<[^>]+>", "", page))
    for name in names:
        first = inspect.getdoc(getattr(fe, name)).splitlines()[0].replace("`", "")
        first = {"read_run": "The same as Run.from_file.", "read_qrels": "The same as Qrels.from_file."}.get(
            name, first
        )
        assert first in text, name
    assert "weight of the disparity (default 1.0)" in text
    assert "<blockquote" not in page


def test_no_page_loads_anything_from_elsewhere(site):
    for path in site.glob("*.html"):
        parser = Loaded()
        parser.feed(path.read_text(encoding="utf-8"))
        assert not parser.found, (path.name, parser.found)


def test_the_report_of_the_sample_is_part_of_the_site(site):
    folder = site / "sample-report"
    record = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert {run.stem for run in (TOP / "runs").glob("*.run")} == set(record["leaderboard"])
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "fair-rerank" in page
    assert str(TOP) not in page
    assert 'href="sample-report/index.html"' in (site / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser():
    browsers = pytest.importorskip("test_report_browser", reason="there is no browser")
    with browsers.playwright.sync_playwright() as p:
        running = p.chromium.launch(executable_path=browsers.CHROMIUM, args=browsers.FLAGS)
        yield running
        running.close()


@pytest.mark.parametrize(
    ("name", "scheme"), [("tour", "light"), ("conventions", "dark"), ("python", "light"), ("python", "dark")]
)
def test_axe_finds_nothing(site, browser, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = browser.new_page(color_scheme=scheme)
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_selector("nav.md-code__nav")
    found = axe.run(page).response["violations"]
    page.close()
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []


@pytest.mark.parametrize("width", [1280, 400])
def test_code_blocks_are_not_cut(site, browser, width):
    page = browser.new_page(viewport={"width": width, "height": 800})
    for name in ("tour", "policies"):
        page.goto((site / f"{name}.html").as_uri())
        cut = "blocks => blocks.filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
        assert page.eval_on_selector_all(".md-content pre > code", cut) == []
    page.close()


@pytest.mark.parametrize("page", WITH_PYCON)
def test_python_examples_run(page, tmp_path, monkeypatch):
    """All ```pycon blocks of a page are one session, beside copies of runs/ and qrels/."""
    for part in ("runs", "qrels"):
        shutil.copytree(TOP / part, tmp_path / part)
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    examples = "\n".join(PYCON.findall(text))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, page, page, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, verbose=False)
    said = []
    runner.run(parsed, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
    assert parsed.examples


def test_there_are_python_examples():
    assert {"policies.md", "python.md", "training.md"} <= set(WITH_PYCON)


def test_other_python_code_at_least_compiles():
    for page in PAGES:
        for block in re.findall(
            r"^```python\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), re.S | re.M
        ):
            compile(block, page, "exec")


def test_the_page_of_measures_is_what_the_declarations_say():
    page, now = (DOCS / "measures.md").read_text(encoding="utf-8"), module("make_measures").made()
    hint = "run: python docs/make_measures.py --update"
    assert NUMBER.sub("#", page) == NUMBER.sub("#", now), hint
    for a, b in zip(NUMBER.findall(page), NUMBER.findall(now), strict=True):
        assert math.isclose(float(a), float(b), rel_tol=1e-6, abs_tol=1.01e-4), (a, b, hint)


def test_the_page_of_measures_has_a_number_for_each():
    values = module("make_measures").worked(INDEX)
    assert list(values) == list(INDEX)
    assert all("undefined" not in both for pair in values.values() for both in pair)


@pytest.mark.parametrize("name", INDEX)
def test_what_the_page_calls_never_undefined_never_is(name):
    """Where nothing is relevant, a run leaves a topic out, or ranks nothing that is judged."""
    make = module("make_measures")
    if not make.undefined(measure_class(name)).startswith("Never"):
        return
    import fairevals as fe

    run, qrels = {"a": {"d": 1.0}, "b": {"u": 1.0}}, {"a": {"d": 0}, "b": {"d": 1}, "c": {"d": 1}}
    table = fe.evaluate(run, qrels, [make.example(name)]).frame(per_topic=True)
    assert not table.value.isna().any()


def test_what_is_said_of_other_tools_is_what_they_answer():
    """Those that are installed are asked again; the rest of the page is what they said when it was written."""
    peers = module("check_peers")
    page = set((DOCS / "peers.md").read_text(encoding="utf-8").splitlines())
    lines = peers.everything()
    assert len(lines) >= 20
    assert [line for line in lines if line not in page] == []


def test_the_navigation_names_every_page():
    nav = re.findall(r": ([\w-]+\.md)$", (TOP / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    assert sorted(nav) == PAGES

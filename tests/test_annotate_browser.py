"""The annotation tool in Chromium: two assessors and the organiser, by keyboard; hostile pages achieve nothing.

Needs Playwright's Python package and a Chromium (Debian's `chromium`); skipped where one is missing.
"""

from __future__ import annotations

import re
import shutil
import socket
import threading
from itertools import combinations

import pytest
from annotate_cases import EXAMPLE, GOLD, PAGES, opened

import fairevals
from fairevals.annotate import export_annotations
from fairevals.cli.main import main

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright's Python package is not installed")
uvicorn = pytest.importorskip("uvicorn")
if CHROMIUM is None:
    pytest.skip("no Chromium is installed (Debian: apt-get install chromium)", allow_module_level=True)

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        running = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


class Server:
    """A site that is served by a thread."""

    def __init__(self, folder, **given):
        from fairevals.annotate.app import make_app

        self.socket = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.site, tokens = opened(folder, url, **given)
        self.links = {who: f"{url}/sign-in/{token}" for who, token in tokens.items()}
        config = uvicorn.Config(make_app(self.site), log_level="warning", lifespan="off", ws="none")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self.thread.start()

    def stop(self):
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()
        self.site.project.store.close()


@pytest.fixture
def server(tmp_path):
    running = Server(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def visit(browser):
    """Opens a link in a browser of its own, which must meet no error."""
    contexts, errors = [], []

    def opened_page(link, *, strict=True, **given):
        context = browser.new_context(viewport={"width": 1000, "height": 760}, **given)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        if strict:
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.on(
                "console",
                lambda m: errors.append(m.text) if m.type == "error" and "422" not in m.text else None,
            )
        page.goto(link)
        return page

    yield opened_page
    for context in contexts:
        context.close()
    assert errors == []


def doc_of(page):
    return page.locator(".doc").inner_text()


def moved_on(page, press):
    """Do something that saves and leads to another page."""
    before = page.url
    press()
    page.wait_for_url(lambda url: url != before)


def type_entity(page, number, name, hindex, region="3"):
    """Enter an entity by keyboard alone, from wherever the focus is."""
    page.keyboard.press("Escape")
    page.keyboard.press(str(number))
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    page.keyboard.type(hindex)
    page.keyboard.press("Enter")
    for key in region:
        page.keyboard.press(key)
    page.keyboard.press("Enter")


def test_two_assessors_by_keyboard_then_export_derive_and_score(server, visit, tmp_path):
    ann = visit(server.links["ann"])
    assert ann.title().endswith("Ants & <others>")
    assert "people who <i>study</i> ants" in ann.locator("h1").inner_text()
    asked = False
    for _ in range(len(PAGES) + 1):
        if ann.url.endswith("/mine"):
            break
        doc, found = doc_of(ann), EXAMPLE["ann"][doc_of(ann)]
        if doc == "p3" and not asked:  # ask first
            asked = True
            ann.keyboard.press("q")
            ann.keyboard.type("Is Wanda one person?")
            moved_on(ann, lambda: ann.keyboard.press("Enter"))
            question = next(iter(server.site.state.questions.values()))
            organiser = visit(server.links[""])
            organiser.fill("textarea[name=text]", "Yes.")
            organiser.get_by_role("button", name="Answer", exact=True).click()
            organiser.locator(".answer").wait_for()
            assert question.answer == "Yes."
            continue
        if doc == "p3":
            assert "Yes." in ann.locator(".answer").inner_text()
        if not found:
            moved_on(ann, lambda: ann.keyboard.press("0"))
            continue
        for number, (name, hindex) in enumerate(found.items(), 1):
            type_entity(ann, number, name, hindex)
        if doc == "p1":
            assert ann.locator("output.bin").all_inner_texts() == ["<10", "10-29", ""]
        ann.keyboard.press("Escape")
        moved_on(ann, lambda: ann.keyboard.press("Enter"))
    assert "3 pages saved" in ann.locator("main").inner_text()

    bob = visit(server.links["bob"])
    while not bob.url.endswith("/mine"):
        found = EXAMPLE["bob"][doc_of(bob)] or {}
        if doc_of(bob) == "p3":  # a mistake, to be corrected
            found = {"Wanda Ant": "90"}
        for number, (name, hindex) in enumerate(found.items(), 1):
            type_entity(bob, number, name, hindex)
        moved_on(bob, lambda f=found: bob.keyboard.press("Control+Enter" if f else "0"))
    assert not re.search(r"\bann\b", bob.content())
    moved_on(bob, lambda: bob.get_by_role("link", name="R01 · p3").click())
    assert bob.input_value("#e0") == "Wanda Ant" and "Saved" in bob.locator("#form").inner_text()
    bob.keyboard.press("0")
    assert "Press 0 again" in bob.locator("#message").inner_text()
    moved_on(bob, lambda: bob.keyboard.press("0"))

    organiser.goto(server.links[""])
    row = organiser.locator("#all").inner_text().split()
    assert row[:5] == ["all", "3", "3", "6", "3"]
    assert organiser.locator(".differ caption").all_inner_texts() == ["R01 · p1", "R01 · p3"]
    with organiser.expect_download() as download:
        organiser.click("#export")
    table = tmp_path / "annotations.csv"
    download.value.save_as(table)
    assert table.read_text(encoding="utf-8") == export_annotations(tmp_path / "data")
    task = str(tmp_path / "task.toml")
    assert main(["derive", "--task", task, "--annotations", str(table), "--out", str(tmp_path)]) == 0
    scores = fairevals.evaluate([tmp_path / "mine.run"], task=task).frame()
    values = dict(zip(scores["measure"], scores["value"], strict=True))
    assert values == {name: pytest.approx(value, abs=5e-5) for name, value in GOLD.items()}
    kinds = [event.kind for event in server.site.project.store.history("bob", 3)]
    assert kinds.count("save") == 2  # the history has the mistake


def test_nothing_typed_is_lost(server, visit):
    page = visit(server.links["ann"], strict=False)
    address = page.url
    type_entity(page, 1, "Xenia Ant", "5", "31")
    page.reload()
    assert page.input_value("#e0") == "Xenia Ant" and page.input_value("#e0f0") == "5"
    assert page.locator(".entity").first.locator(":checked").evaluate_all(
        "all => all.map((e) => e.value)"
    ) == [
        *("Africa", "Asia"),
    ]
    assert "were not saved yet" in page.locator("#message").inner_text()
    second = page.context.new_page()
    second.goto(address)
    assert second.input_value("#e0") == "Xenia Ant"
    second.close()
    page.context.set_offline(True)
    page.keyboard.press("Control+Enter")
    page.get_by_text("Not saved: the server does not answer").wait_for()
    assert not server.site.state.assessors["ann"].saved
    page.context.set_offline(False)
    moved_on(page, lambda: page.keyboard.press("Control+Enter"))
    page.goto(address)
    assert page.locator("#message").is_hidden() and page.input_value("#e0") == "Xenia Ant"
    other = page.context.new_page()
    other.goto(address)
    page.fill("#e0", "Somebody else")
    moved_on(page, lambda: page.keyboard.press("Control+Enter"))
    other.keyboard.press("Control+Enter")  # the tab still shows what was saved before
    other.get_by_text("Another tab has saved something else").wait_for()
    place = server.site.state.places[int(address.rsplit("/", 1)[1])]["ann"]
    assert place.entities[0]["entity"] == "Somebody else"
    moved_on(other, lambda: other.keyboard.press("Control+Enter"))  # now on purpose
    assert place.entities[0]["entity"] == "Xenia Ant"


def test_entries_can_be_discarded_to_see_what_another_tab_has_saved(server, visit):
    page = visit(server.links["ann"], strict=False)
    address = page.url
    type_entity(page, 1, "Mine", "5")
    other = page.context.new_page()
    other.goto(address)
    other.fill("#e0", "Other")
    moved_on(other, lambda: other.keyboard.press("Control+Enter"))
    assert page.locator("#discard").is_hidden()
    page.fill("#e0", "Mine again")  # typed after the other tab has saved, then loaded again
    page.reload()
    assert page.input_value("#e0") == "Mine again" and page.locator("#discard").is_visible()
    page.keyboard.press("Control+Enter")
    page.get_by_text("or discard them to see it").wait_for()
    page.reload()
    assert page.input_value("#e0") == "Mine again"  # still here
    page.get_by_role("button", name="Discard these entries").click()
    playwright.expect(page.locator("#e0")).to_have_value("Other")
    assert page.locator("#discard").is_hidden() and page.locator("#message").is_hidden()
    place = server.site.state.places[int(address.rsplit("/", 1)[1])]["ann"]
    assert place.entities[0]["entity"] == "Other"


def test_unknown_numbers_are_typed_and_taken_back(server, visit):
    page = visit(server.links["ann"])
    page.keyboard.press("1")
    page.keyboard.press("Tab")
    for keys, value in (
        ("NA", "NA"),
        ("na", "NA"),
        ("n/a", "NA"),
        ("N", "NA"),
        ("1e999", "1e999"),
        ("1e3", "1e3"),
    ):
        page.fill("#e0f0", "")  # which has the focus
        page.keyboard.type(keys)
        assert page.input_value("#e0f0") == value
        shown = {"NA": "not known", "1e999": "not a number", "1e3": ">=50"}[value]
        assert page.locator(".bin").first.inner_text() == shown
    page.fill("#e0f0", "")
    for key in ("n", "Backspace", "7"):
        page.keyboard.press(key)
    assert page.input_value("#e0f0") == "7"
    page.keyboard.press("Escape")
    page.keyboard.press("0")  # not even a number without a name is given up at once
    page.get_by_text("Press 0 again").wait_for()
    assert page.get_by_role("textbox", name="HINDEX", exact=True).first.get_attribute("id") == "e0f0"
    page.keyboard.press("Control+Enter")
    described = page.locator("#e0").get_attribute("aria-describedby")
    assert page.locator(f"#{described}").inner_text() == "the name of the entity is missing"


def test_keys_work_in_other_layouts(server, visit):
    page = visit(server.links["ann"])

    def press(key, code, shift=False):
        event = f"{{key: '{key}', code: '{code}', shiftKey: {str(shift).lower()}, bubbles: true, cancelable: true}}"
        page.evaluate(f"document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {event}))")
        return page.evaluate("document.activeElement.id")

    assert press("é", "Digit2") == "e1"  # French
    page.keyboard.press("Escape")
    assert press("!", "Digit1", shift=True) == ""  # as 1 would be with Shift on an English keyboard
    assert press("/", "Digit7", shift=True) == "find"  # German
    page.keyboard.press("Escape")
    assert press("й", "KeyQ") == "question"  # Russian
    page.keyboard.press("Escape")
    assert press("ي", "KeyS", shift=True) == press("ç", "KeyB") == ""
    assert press("-", "KeyQ") == ""  # Dvorak has other signs in places of letters
    number = page.url
    press(",", "KeyM")  # French: the page is not reported as missing
    page.wait_for_timeout(100)
    assert page.url == number and not server.site.state.assessors["ann"].saved
    assert press("ö", "Semicolon") == press("ArrowDown", "ArrowDown") == press("o", "KeyS") == ""  # Dvorak
    moved_on(page, lambda: press("à", "Digit0"))
    assert len(server.site.state.assessors["ann"].saved) == 1


def test_a_question_is_sent_by_control_and_enter_too(server, visit):
    page = visit(server.links["ann"])
    page.keyboard.press("q")
    page.keyboard.type("Is it?")
    moved_on(page, lambda: page.keyboard.press("Control+Enter"))
    assert [one.text for one in server.site.state.questions.values()] == ["Is it?"]
    assert not server.site.state.assessors["ann"].saved


def test_whoever_types_keeps_a_page_however_soon_pages_return(server, visit):
    server.site.project.hold = 2.0
    page = visit(server.links["ann"])
    number = int(page.url.rsplit("/", 1)[1])
    since = server.site.state.places[number]["ann"].since
    page.wait_for_timeout(600)
    with page.expect_request(lambda request: "do=touch" in (request.post_data or "")):
        page.keyboard.press("1")
    page.wait_for_timeout(200)
    assert server.site.state.places[number]["ann"].since > since + 0.5


def test_a_broken_pdf_does_not_keep_the_keys(tmp_path, visit):
    server = Server(tmp_path, pages={"p1.pdf": "%PDF-1.4 broken", "p2.pdf": "%PDF-1.4 broken"})
    try:
        page = visit(server.links["ann"], strict=False)
        page.add_init_script(
            "given = new Promise((yes, no) => { addEventListener('focus', () => yes(1)); setTimeout(no, 10000); })"
        )
        page.reload()
        assert page.evaluate("given") == 1  # the viewer had taken the focus
        moved_on(page, lambda: page.keyboard.press("m"))
    finally:
        server.stop()


def test_entries_outlive_a_question_and_a_skip_and_held_keys_judge_nothing(server, visit):
    page = visit(server.links["ann"])
    state, number = server.site.state, int(page.url.rsplit("/", 1)[1])
    type_entity(page, 1, "Xenia Ant", "5")
    page.keyboard.press("Escape")
    page.keyboard.press("q")
    page.keyboard.type("Who is she?")
    moved_on(page, lambda: page.keyboard.press("Enter"))
    second = page.url
    type_entity(page, 1, "Zoe Ant", "n")
    page.keyboard.press("Escape")
    moved_on(page, lambda: page.keyboard.press("s"))
    page.goto(f"{server.site.url}/a/page/{number}")
    assert page.input_value("#e0") == "Xenia Ant" and page.input_value("#question") == ""
    assert "Who is she?" in page.locator(".question").inner_text()
    for key in "0s":
        held = f"new KeyboardEvent('keydown', {{key: '{key}', repeat: true, bubbles: true}})"
        page.evaluate(f"document.body.dispatchEvent({held})")
    moved_on(page, lambda: page.keyboard.press("Control+Enter"))
    assert state.places[number]["ann"].entities[0]["entity"] == "Xenia Ant"
    assert [len(one.saved) for one in state.assessors.values()] == [1, 0]
    moved_on(page, lambda: page.keyboard.press("b"))  # back to what was saved last
    assert page.url.endswith(f"/{number}") and page.locator("#message").is_hidden()
    page.goto(f"{server.site.url}/a")
    moved_on(page, lambda: page.keyboard.press("0"))
    assert page.url == second and page.input_value("#e0f0") == "NA"  # what was skipped comes last


def test_axe_finds_nothing(server, visit):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(server.links["ann"], color_scheme="dark")
    page.keyboard.press("q")
    page.keyboard.type("why?")
    moved_on(page, lambda: page.keyboard.press("Enter"))
    page.keyboard.press("1")
    page.keyboard.type("x")
    page.keyboard.press("Control+Enter")
    for address in ("", f"{server.site.url}/a/mine", server.links[""]):
        if address:
            page.goto(address)
        for width in (1000, 400):
            page.set_viewport_size({"width": width, "height": 760})
            found = axe.run(page).response["violations"]
            assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []


def test_mistakes_are_shown_where_they_are_and_earlier_names_are_offered(server, visit):
    page = visit(server.links["ann"])
    page.keyboard.press("Enter")
    page.get_by_text("Name an entity, or press 0").wait_for()
    page.keyboard.press("1")
    page.keyboard.type("Xenia Ant")
    page.keyboard.press("Enter")
    page.keyboard.type("many")
    assert page.locator(".bin").first.inner_text() == "not a number"
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.keyboard.press("Control+Enter")
    page.get_by_text("a number, or NA if").wait_for()
    assert page.locator(".error:not(:empty)").count() == 2 and not requests  # the browser knows by itself
    assert page.evaluate("document.activeElement.id") == "e0f0"
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.locator("[data-na=e0f0]").click()
    page.keyboard.press("Enter")
    chosen = "Array.from(document.querySelectorAll('[name=e0f1]:checked')).map((e) => e.value)"
    groups = []
    for kind, keys in (("several", "130012"), ("one", "1330")):
        page.evaluate(f"document.querySelector('[data-name=e0f1]').dataset.kind = '{kind}'")
        for key in keys:
            page.keyboard.press(key)
            groups.append("|".join(page.evaluate(chosen)))
    assert groups == [
        *("Africa", "Africa|Asia", "NA", "", "Africa", "Africa|Americas"),
        *("Americas", "Asia", "", "NA"),  # a choice can be taken back
    ]
    page.keyboard.press("Enter")
    page.keyboard.type("https://example.org/x")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "e1"
    moved_on(page, lambda: page.keyboard.press("Enter"))  # an empty name: save
    assert page.locator("#names option").get_attribute("value") == "Xenia Ant"
    page.keyboard.press("2")
    page.keyboard.type("xenia  ANT")  # the same name
    page.keyboard.press("Enter")
    assert page.input_value("#e1f0") == "NA" and page.input_value("#e1f2") == "https://example.org/x"
    assert page.locator("[name=e1f1]:checked").get_attribute("value") == "NA"
    page.keyboard.press("Escape")
    before = doc_of(page)
    moved_on(page, lambda: page.keyboard.press("s"))
    assert doc_of(page) != before


def test_search_in_the_page_and_a_missing_file(server, visit):
    server.site.files.find("p1").path.unlink()
    page = visit(server.links["ann"], strict=False)
    seen = set()
    for _ in PAGES:
        doc = doc_of(page)
        seen.add(doc)
        if doc == "p1":
            assert "no file for this page" in page.locator(".missing").inner_text()
            moved_on(page, lambda: page.keyboard.press("m"))
            continue
        page.keyboard.press("/")
        page.keyboard.type("ant")
        page.context.set_offline(True)
        page.keyboard.press("Enter")
        page.get_by_text("no connection").wait_for()
        page.context.set_offline(False)
        page.keyboard.press("Enter")
        expected = "1 of 1"
        page.locator("#matches", has_text=re.compile(r" of |not found")).wait_for()
        assert page.locator("#matches").inner_text() == expected
        marks = page.frame_locator("#frame").locator("mark")
        marks.first.wait_for()  # the frame loads the page again, with the words marked
        assert marks.count() == 1
        page.keyboard.press("Escape")
        moved_on(page, lambda: page.keyboard.press("0"))
    assert seen == {"p1", "p2", "p3"}
    (question,) = server.site.state.questions.values()
    assert question.text == "The page cannot be shown."


IS_IN_SIGHT = """(() => {
  const at = document.activeElement, box = at.getBoundingClientRect();
  return !at.closest("#form") || at.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
})()"""
"""Whether nothing covers what has the focus in the form."""


@pytest.mark.parametrize("width", [1000, 768, 400])
def test_all_of_the_form_can_be_reached_at_small_widths_and_by_tab_alone(server, visit, width):
    page = visit(server.links["ann"])
    page.set_viewport_size({"width": width, "height": 760})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = [button.bounding_box() for button in page.locator("[data-do]:visible").all()]
    assert len(boxes) == 5 and all(box["y"] + box["height"] <= 760 for box in boxes)
    for one, other in combinations(boxes, 2):  # none covers another
        assert one["x"] + one["width"] <= other["x"] or one["y"] + one["height"] <= other["y"]
    reached = set()
    page.locator("#e0").focus()
    for _ in range(60):
        reached.add(page.evaluate("document.activeElement.name || document.activeElement.dataset.do"))
        assert page.evaluate(IS_IN_SIGHT)
        page.keyboard.press("Tab")
    assert {"e0", "e0f0", "e0f1", "e0f2", "e2", "save", "none", "skip", "question", "missing"} <= reached
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    page.keyboard.type("Xenia Ant")
    page.keyboard.press("Control+Enter")
    box = page.locator("#message").bounding_box()
    assert (
        page.evaluate(IS_IN_SIGHT) and 0 < box["y"] < 760 - box["height"]
    )  # the mistake, and that there is one
    unnamed = page.evaluate(
        "Array.from(document.querySelectorAll('#form input:not([type=hidden]), #form textarea, #find'))"
        ".filter((e) => !e.labels.length).length"
    )
    assert unnamed == 0


class Listener:
    """Counts whatever connects to a port."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.seen = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.seen.append("connected")  # even if nothing is sent
            connection.close()


def hostile_page(port):
    away = f"http://127.0.0.1:{port}"
    return f"""<html><head>
<base href="{away}/" target="_top"><meta http-equiv="x-dns-prefetch-control" content="on">
<meta http-equiv="refresh" content="0; url={away}/refresh">
<link rel="stylesheet" href="{away}/style"><link rel="preconnect" href="{away}"><link rel="dns-prefetch" href="{away}">
<link rel="prefetch" href="{away}/prefetch"><link rel="preload" as="image" href="{away}/preload">
<link rel="icon" href="{away}/icon"><link rel="manifest" href="{away}/manifest"><link rel="prerender" href="{away}/pre">
<style>@import url({away}/import); body {{ background: url({away}/background) }}
@font-face {{ font-family: x; src: url({away}/font) }} h1 {{ font-family: x; cursor: url({away}/cursor), auto }}
li {{ list-style-image: url({away}/list) }} p {{ background: image-set("{away}/set" 1x) }}
p::before {{ content: url({away}/p) }}
</style><script src="{away}/src"></script><script type="module">import "{away}/module"</script>
<script type="speculationrules">{{"prefetch": [{{"source": "list", "urls": ["{away}/rules"]}}]}}</script>
<script>top.document.title = "taken"; fetch("{away}/script"); localStorage.x = 1; top.location = "{away}/top";
window.open("{away}/open"); navigator.sendBeacon("{away}/beacon"); new WebSocket("ws://127.0.0.1:{port}/")</script>
</head><body onload="fetch('{away}/onload')"><h1>Hostile</h1>
<img src="{away}/img" onerror="fetch('{away}/onerror')"><img src="x" srcset="{away}/srcset 1x">
<svg onload="fetch('{away}/svg')"><image href="{away}/image"/><script href="{away}/svg-script">
fetch("{away}/s")</script>
<use href="{away}/use#x"/><filter id="z"><feImage href="{away}/filter"/></filter>
<rect filter="url(#z)" width="9" height="9"/>
<rect fill="url({away}/fill#x)" width="9" height="9"/></svg><p style="background: url({away}/inline)">p</p><li>l
<input type="image" src="{away}/input"><table background="{away}/table"><tr><td>t</table>
<img attributionsrc="{away}/attribution">
<noscript><link rel="stylesheet" href="{away}/noscript"><img src="{away}/noimg"></noscript>
<div><template shadowrootmode="open"><link rel="stylesheet" href="{away}/shadow"><img src="{away}/shadow"></template>
</div>
<iframe srcdoc="<script>parent.x = 1</script><img src='{away}/srcdoc'>"></iframe><frame src="{away}/f">
<portal src="{away}/portal">
<video><source src="{away}/source"><track src="{away}/track" default></video><picture><source srcset="{away}/pic">
<img></picture>
<details open ontoggle="fetch('{away}/toggle')"><summary>d</summary></details>
<button form="f" formaction="{away}/formaction" id="d">z</button><svg><a id="v" href="{away}/svg-link">
<text y="20">svg</text></a></svg>
<svg><a id="w" href="{away}/set"><set attributeName="target" to="_self"/><text y="20">set</text></a></svg>
<svg><a id="x" href="#"><animate attributeName="target" values="_self;_self" dur="9s"/>
<animate attributeName="href" values="{away}/animate;{away}/animate" dur="9s"/><text y="20">animate</text></a></svg>
<a/id="y" target="_self" href="{away}/slash">slash</a>
<video src="{away}/video" poster="{away}/poster"></video>
<audio src="{away}/audio" autoplay></audio><iframe src="{away}/frame"></iframe><iframe src="/o"></iframe>
<object data="{away}/object"></object><embed src="{away}/embed">
<form id="f" action="/a/page/1" method="post"><input name="do" value="none"><button id="b">x</button></form>
<form action="{away}/form" method="post"><button id="c" autofocus>y</button></form>
<a id="t" href="{away}/link" target="_top">top</a> <a id="n" href="{away}/link" target="_blank">new</a>
<a id="s" href="{away}/link" ping="{away}/ping">self</a> <a id="j" href="javascript:top.location='{away}/js'">js</a>
</body></html>"""


def hostile_pdf(port):
    """A document that wants to leave as soon as it is opened, in three ways."""
    away = f"http://127.0.0.1:{port}"
    script = f"app.launchURL('{away}/js', false); this.submitForm('{away}/js-form');"
    return f"""%PDF-1.7
1 0 obj << /Type /Catalog /Pages 2 0 R /OpenAction << /S /URI /URI ({away}/uri) /Next << /S /SubmitForm
/F << /FS /URL /F ({away}/form) >> /Next << /S /JavaScript /JS ({script}) >> >> >> >> endobj
2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj
3 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 300 300] >> endobj
trailer << /Size 4 /Root 1 0 R >>
%%EOF
"""


def test_hostile_pages_achieve_nothing(tmp_path, visit):
    listener = Listener()
    hostile = hostile_page(listener.port)
    server = Server(
        tmp_path, pages={"h.html": hostile, "h2.txt": hostile, "h3.pdf": hostile_pdf(listener.port)}
    )
    try:
        page = visit(server.links["ann"], strict=False)
        while doc_of(page) != "h":
            moved_on(page, lambda: page.keyboard.press("0"))
        address, last = page.url, server.site.state.last
        frame = page.frame_locator("#frame")
        frame.locator("h1").wait_for()
        for name in "bcdtnjvswxy":
            frame.locator(f"#{name}").click(no_wait_after=True)
        page.wait_for_timeout(300)
        assert page.url == address and page.title() != "taken" and len(page.context.pages) == 1
        page.fill("#find", "hostile")
        page.press("#find", "Enter")
        frame.locator("mark").wait_for()
        page.wait_for_timeout(200)
        assert page.url == address and server.site.state.last == last
        assert page.evaluate("localStorage.x") is None
        direct = page.context.new_page()  # the page by itself, outside the frame
        direct.goto(f"{server.site.url}{server.site.page_address(1)}")
        direct.locator("h1").wait_for()
        for name in "bdtvwxy":
            direct.locator(f"#{name}").click(no_wait_after=True)
        assert direct.evaluate("self.origin") == "null"
        assert server.site.state.last == last
        assert listener.seen == []
        page.goto(address)
        assert page.locator(".doc").inner_text() == "h"  # and the tool still works
        moved_on(page, lambda: page.keyboard.press("0"))
        page = visit(server.links["bob"], strict=False)
        while doc_of(page) != "h3":
            moved_on(page, lambda: page.keyboard.press("0"))
        address = page.url
        page.wait_for_timeout(700)
        assert page.url == address and len(page.context.pages) == 1 and listener.seen == []
    finally:
        server.stop()
        listener.socket.close()


def test_a_page_elsewhere_can_neither_frame_nor_post_to_the_tool(server, visit):
    page = visit(server.links["ann"], strict=False)
    address, last = page.url, server.site.state.last
    other = page.context.new_page()
    other.set_content(
        f'<iframe src="{address}"></iframe><form action="{address}" method="post" target="_self">'
        '<input name="do" value="none"><input name="version" value="0"><button>x</button></form>'
    )
    other.locator("button").click()
    other.wait_for_load_state()
    assert "personal link" in other.content() or "not valid any more" in other.content()
    assert server.site.state.last == last
    assert re.search(r"/a/page/\d+$", address)

"""The report in a browser: no error, no request, sorting, filtering, keyboard, hostile names.

Needs Playwright's Python package and a Chromium (Debian's `chromium`); skipped where one is missing.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
from pathlib import Path

import pytest
from report_cases import HOSTILE, MEASURES, make, write_task

from fairevals.errors import escape
from fairevals.io.out import format_number
from fairevals.measures import parse_measure

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright's Python package is not installed")
if CHROMIUM is None:
    pytest.skip("no Chromium is installed (Debian: apt-get install chromium)", allow_module_level=True)

FLAGS = [
    "--no-sandbox",  # as root, in a container
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TAGS = ["weak", "middle", *HOSTILE, "best"]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A report whose runs and topics have hostile names, and one run has one of the judged topics."""
    place = tmp_path_factory.mktemp("browser")
    topics = ["plain", "q10", *(f"{name[:3000]}-{i}" for i, name in enumerate(HOSTILE))]
    task, files = write_task(place / "task", TAGS, topics)
    few = place / "task" / "few.run"
    few.write_text("q10 Q0 d01 1 1 few\nq10 Q0 d02 2 0 few\n", encoding="utf-8")
    make(task, [*files, str(few)], place / "out", "--baseline", "middle", "--reference", "weak")
    return place / "out"


@pytest.fixture(scope="module")
def record(report):
    return json.loads((report / "report.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        running = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


class Seen:
    """What a page did that it should not."""

    def __init__(self, page) -> None:
        self.bad: list[str] = []
        page.on("console", lambda message: self.bad.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.bad.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (self.bad.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self._request(request.url))
        page.on("popup", lambda _: self.bad.append("popup"))

    def _request(self, url: str) -> None:
        if not url.startswith("data:") and not (
            url.startswith("file:") and url.partition("#")[0].endswith("/index.html")
        ):
            self.bad.append(f"request: {url[:200]}")


def opened(browser, report: Path, fragment: str = "", **options):
    context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
    context.set_default_timeout(5000)
    page = context.new_page()
    seen = Seen(page)
    page.goto((report / "index.html").as_uri() + fragment)
    return page, seen


@pytest.fixture
def page(browser, report):
    opened_page, seen = opened(browser, report)
    yield opened_page
    opened_page.wait_for_timeout(50)
    assert seen.bad == []
    opened_page.context.close()


@pytest.mark.slow
def test_it_loads_without_errors_in_every_size_and_scheme(browser, report):
    for width in (1400, 400):
        for scheme in ("light", "dark"):
            page, seen = opened(
                browser, report, viewport={"width": width, "height": 900}, color_scheme=scheme
            )
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (width, scheme)
            page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            broken = page.evaluate(
                "Array.from(document.images).filter((i) => !(i.complete && i.naturalWidth)).length"
            )
            assert broken == 0
            cut = page.evaluate(  # the end of a name, which tells it from others, is never hidden
                """Array.from(document.querySelectorAll(".halves .end")).filter((end) => end.getClientRects().length
                && end.getBoundingClientRect().right
                > end.closest("th, td, caption, dd").getBoundingClientRect().right + 1)
                .map((end) => end.closest(".halves").textContent)"""
            )
            assert cut == [], (width, scheme)
            assert seen.bad == []
            page.context.close()


def test_colours_follow_the_scheme(browser, report):
    colours = []
    for scheme in ("light", "dark"):
        page, _ = opened(browser, report, color_scheme=scheme)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.context.close()
    assert colours == ["rgb(255, 255, 255)", "rgb(27, 30, 36)"]


def column(page, number: int) -> list[tuple[str, str]]:
    """The runs that are shown, in the order of the page, with what stands in the column of a measure."""
    return page.evaluate(
        """(n) => Array.from(document.querySelectorAll("#board tbody tr")).filter((r) => !r.hidden)
        .map((r) => [r.cells[0].title, r.querySelector(`td[data-measure="${n}"] .v`).textContent])""",
        number,
    )


def names_shown(page) -> list[str]:
    return [name for name, _ in column(page, 0)]


def head_of(page, number: int):
    return page.locator(f'#board thead th[data-measure="{number}"]')


def address(page) -> str:
    """The address after the delay with which it follows the state."""
    page.wait_for_timeout(150)
    return page.evaluate("location.hash")


def test_sorting_orders_by_value_and_direction(page, report, record):
    with (report / "scores.csv").open(encoding="utf-8", newline="") as file:
        values = [row for row in csv.DictReader(file) if row["topic"] != "all" and row["value"]]

    def cost(run, name):  # for a target: the mean of the distances, not the distance of the mean
        mine = [float(row["value"]) for row in values if (row["run"], row["measure"]) == (run, name)]
        return math.fsum(map(parse_measure(name).direction.cost, mine)) / len(mine)

    means = {(m["run"], m["measure"]): m["value"] for m in record["means"]}
    incomplete = {(m["run"], m["measure"]) for m in record["means"] if m["incomplete"]}
    names = [m["name"] for m in record["measures"]]
    for number, name in enumerate(names):
        direction = parse_measure(name).direction
        head = head_of(page, number)
        if number == 0:  # the page comes sorted by the first
            assert head.get_attribute("aria-sort") == "descending"
            head_of(page, 1).locator("button").click()
        for turn in (1, -1):
            head.locator("button").click()
            shown = column(page, number)
            assert dict(shown) == {run: format_number(means[run, name]) for run, _ in shown}
            lacks = [(run, name) in incomplete for run, _ in shown]
            assert lacks == sorted(lacks)  # incomplete runs are last in either order
            complete = [run for (run, _), lack in zip(shown, lacks, strict=True) if not lack]
            costs = [turn * round(cost(run, name), 12) for run in complete]
            assert costs == sorted(costs), (name, turn)
            words = {"higher": ("descending", "ascending"), "lower": ("ascending", "descending")}
            expected = words.get(direction.word, ("other", "other"))[0 if turn == 1 else 1]
            assert head.get_attribute("aria-sort") == expected
        assert page.locator("#board thead th[aria-sort]").count() == 1
    assert {run for run, _ in incomplete} == {"few"} and len(incomplete) == 3


def test_sorting_by_name(page):
    button = page.locator("#board thead th").first.locator("button")
    button.click()
    names = names_shown(page)
    assert names.index("best") < names.index("few") < names.index("middle") < names.index("weak")
    button.click()
    assert names_shown(page) == names[::-1]


def test_filtering_and_choosing_columns(page):
    page.fill("#filter", "  MID")
    assert names_shown(page) == ["middle"]
    assert page.locator("#count").inner_text() == f"1 of {len(TAGS) + 1} runs"
    page.fill("#filter", "<script>")
    assert set(names_shown(page)) == {name for name in TAGS if "<script>" in name}
    page.fill("#filter", "nobody has this name")
    assert names_shown(page) == []
    page.fill("#filter", "baseline | best |")  # by status, and by name
    assert set(names_shown(page)) == {"middle", "best"}
    page.fill("#filter", "dle mid")  # all words, in any order
    assert names_shown(page) == ["middle"]
    page.fill("#filter", "")
    assert len(names_shown(page)) == len(TAGS) + 1
    page.locator(".chooser summary").click()
    page.locator(".chooser input").nth(1).uncheck()
    assert head_of(page, 1).is_hidden()
    assert page.locator('#board tbody td[data-measure="1"]').first.is_hidden()
    page.locator(".chooser input").nth(1).check()
    assert head_of(page, 1).is_visible()


def chosen(page) -> dict[str, list[str]]:
    """Where runs are marked as chosen, by section: their names in the order of choice."""
    return page.evaluate(
        """() => {
          const names = JSON.parse(document.getElementById("data").textContent).runs;
          const marked = (root) => ["first", "second"].flatMap((name) => {
            const item = root.querySelector(`[data-run].${name}`);
            return item ? [names[item.dataset.run]] : [];
          });
          const sections = ["leaderboard", "tradeoff", "differences"];
          return Object.fromEntries(sections.map((id) => [id, marked(document.getElementById(id))]));
        }"""
    )


def test_a_chosen_run_is_marked_everywhere(page):
    page.locator("#board tbody tr", has_text="best").locator("td").first.click()  # anywhere in the row
    assert list(chosen(page).values()) == [["best"]] * 3
    assert page.locator("#bars-caption").inner_text().startswith("Gain of best over middle in nDCG@10 on")
    weak = TAGS.index("weak")
    page.locator(f'#plane [data-run="{weak}"]').press("Enter")  # by keyboard, in the plane
    assert chosen(page)["leaderboard"] == chosen(page)["tradeoff"] == ["best", "weak"]
    assert page.evaluate("document.activeElement.dataset.run") == str(weak)  # the plane was drawn again
    assert page.locator("#bars-caption").inner_text().startswith("Gain of best over weak in nDCG@10 on")
    assert page.locator("#chosen .chip bdi").all_inner_texts() == ["best", "weak"]
    page.locator("#bars-other").select_option(value=str(TAGS.index("../../x")))
    assert chosen(page)["leaderboard"] == ["best", "../../x"]
    page.locator("#chosen .chip").first.click()
    assert chosen(page)["leaderboard"] == ["../../x"]
    page.locator(".answers .choose").first.click()
    assert len(chosen(page)["tradeoff"]) == 2


def test_a_link_opens_the_same_view(browser, page, report):
    page.locator("#board tbody tr", has_text="best").locator("td").first.click()
    hostile = page.locator("#board tbody tr", has_text="<script>alert").first
    hostile.locator("td").first.click()
    page.fill("#filter", "best|script")
    head_of(page, 3).locator("button").click()
    page.locator("#plane-y").select_option(value="3")
    page.locator("#bars-measure").select_option(value="1")
    link = address(page)
    other, seen = opened(browser, report, fragment=link)
    assert other.locator("#filter").input_value() == "best|script"
    assert names_shown(other) == names_shown(page)
    assert head_of(other, 3).get_attribute("aria-sort") == "ascending"
    assert chosen(other) == chosen(page) and len(chosen(other)["leaderboard"]) == 2
    assert other.locator("#bars-caption").inner_text() == page.locator("#bars-caption").inner_text()
    assert other.locator("#plane-y").input_value() == "3"
    other.locator("nav a[href='#glossary']").click()  # a link to a section keeps the choices
    assert address(other) == "#glossary&" + link.removeprefix("#")
    assert len(chosen(other)["leaderboard"]) == 2
    assert seen.bad == []
    other.context.close()
    broken, seen = opened(browser, report, fragment="#runs=nobody&topic=&x=Made_up&runs=best&sort=-&hide=")
    assert chosen(broken)["leaderboard"] == ["best"] and seen.bad == []
    broken.context.close()


def test_everything_works_by_keyboard(page, report):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("#filter").focus()
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('#board thead th[data-measure] + th button')"):
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.keyboard.press("Enter")
    assert head_of(page, 1).get_attribute("aria-sort") == "descending"
    page.locator("#board tbody .choose").first.focus()
    page.keyboard.press("Space")
    assert page.locator("#board tbody .choose").first.get_attribute("aria-pressed") == "true"
    page.locator("#bars [tabindex='0']").focus()
    texts = []
    for key in (None, "ArrowRight", "End"):
        if key:
            page.keyboard.press(key)
        texts.append(page.locator("#bars-readout").inner_text())
    gains = [float(text.rpartition("gain ")[2].split()[0].replace("−", "-")) for text in texts]
    assert gains == sorted(gains, reverse=True)
    page.keyboard.press("Home")
    assert page.locator("#bars-readout").inner_text() == texts[0]


def test_bars_show_the_differences_of_the_scores(page, report, record):
    with (report / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = {(r["run"], r["measure"], r["topic"]): r["value"] for r in csv.DictReader(file)}
    names = [m["name"] for m in record["measures"]]
    page.locator("#bars-run").select_option(label="best")
    for measure in (MEASURES[0], MEASURES[3], MEASURES[4]):  # higher, lower, nearer to a value
        name = str(parse_measure(measure).with_cutoff(10))
        page.locator("#bars-measure").select_option(value=str(names.index(name)))
        text = page.locator("#bars .bar[aria-label^='q10:']").get_attribute("aria-label")
        mine, base = (float(rows[run, name, "q10"]) for run in ("best", "middle"))
        direction = parse_measure(measure).direction
        gain = float(direction.cost(base) - direction.cost(mine))
        assert float(text.split("gain ")[1].split()[0].replace("−", "-")) == pytest.approx(gain, abs=1e-4)
        shown = page.evaluate(
            "Array.from(document.querySelectorAll('#tests tbody tr:not([hidden])'), (row) => row.dataset.measure)"
        )
        assert set(shown) == {name}
    bar = page.locator("#bars .bar").first
    bar.hover(force=True)
    assert page.locator("#bars-readout").inner_text() == bar.get_attribute("aria-label")
    assert bar.locator("title").text_content() == bar.get_attribute("aria-label")


def test_the_script_shows_the_same_texts_as_the_page_without_it(browser, report, page):
    plain, _ = opened(browser, report, java_script_enabled=False)
    for selector in ("#drivers tbody", "#drivers-text"):
        assert plain.locator(selector).inner_text() == page.locator(selector).inner_text()
    assert plain.locator("#tradeoff img").is_visible()  # without a script there is the picture
    assert plain.locator("#plane").is_hidden()
    assert page.locator("#plane").is_visible()
    plain.context.close()


def test_the_front_is_that_of_the_record(page, record):
    names = [m["name"] for m in record["measures"]]
    labels = page.evaluate("JSON.parse(document.getElementById('data').textContent).runs")
    runs = [*TAGS, "few"]
    for front in record["fronts"]:
        page.locator("#plane-x").select_option(value=str(names.index(front["utility"])))
        page.locator("#plane-y").select_option(value=str(names.index(front["fairness"])))
        front_runs = page.evaluate(
            "Array.from(document.querySelectorAll('#plane [data-front=true]')).map((g) => Number(g.dataset.run))"
        )
        assert {runs[r] for r in front_runs} == set(front["runs"])
        hollow = page.evaluate(
            "Array.from(document.querySelectorAll('#plane .hollow'), (g) => Number(g.dataset.run))"
        )
        assert [runs[r] for r in hollow] == ["few"]
        assert len(labels) == len(runs)


def test_hostile_names_are_text(page):
    for name in HOSTILE:
        row = page.evaluate(
            """(name) => Array.from(document.querySelectorAll("#board tbody th"))
            .filter((th) => th.title === name).map((th) => [th.textContent, th.children.length, th.scrollWidth])""",
            name,
        )
        assert len(row) == 1
        text, children, width = row[0]
        assert children == 1 and width < 400
        assert text.startswith(str(escape(name, 30)).removesuffix("…"))
    assert page.locator("script").count() == 4
    page.locator("#bars-run").select_option(label="<script>alert(1)</script>")
    assert (
        page.locator("#drivers-text")
        .inner_text()
        .startswith("<script>alert(1)</script> against middle, nDCG@10")
    )
    assert (
        page.evaluate("document.querySelectorAll('#drivers img, #drivers script, #bars script').length") == 0
    )


def test_it_prints(page, tmp_path):
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden() and page.locator("#filter").is_hidden()
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")

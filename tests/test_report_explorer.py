"""The report as an explorer in a browser: own weights, topic groups, groups of any run, take away, paper and phone."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from report_cases import make
from test_report_browser import CHROMIUM, FLAGS, address, head_of, names_shown, opened, playwright

import fairevals as fe
from fairevals.evaluation import load_collection
from fairevals.io.specs import PolicySpec
from fairevals.report.groups import run_details

TOP = Path(__file__).resolve().parent.parent
NAMES = ["bm25", "dense", "fair-rerank", "popularity", "round-robin", "pg-rank", "random", "fair-pg-rank"]
RUNS = [str(TOP / "runs" / f"{name}.run") for name in NAMES]


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """The sample task with weights of its own, and topic groups."""
    text = (TOP / "qrels" / "task.toml").read_text(encoding="utf-8")
    text = re.sub(r'"([\w./-]+\.(?:tsv|csv|qrels|gmemb))"', lambda m: f'"{TOP / "qrels" / m[1]}"', text)
    text = text.replace("[attributes.HINDEX]\n", "[attributes.HINDEX]\nweight = 2\n")
    place = tmp_path_factory.mktemp("task") / "task.toml"
    place.write_text(text, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def report(task, tmp_path_factory):
    out = tmp_path_factory.mktemp("explorer") / "out"
    assert make(task, RUNS, out) == 0
    return out


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        running = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def page(browser, report):
    opened_page, seen = opened(browser, report)
    yield opened_page
    assert seen.bad == []
    opened_page.context.close()


def move(page, weights: list[float]) -> None:
    """Set the sliders, as dragging them does."""
    for place, weight in enumerate(weights):
        page.locator(f"#weight-{place}").evaluate(
            "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", weight
        )


def with_weights(task: Path, place: Path, weights: dict[str, float]) -> Path:
    """The task with other weights."""
    text = re.sub(r"weight = \d+\n", "", task.read_text(encoding="utf-8"))
    text = f"utility_weight = {weights.pop('ERR')}\n" + text
    for name, weight in weights.items():
        text = text.replace(f"[attributes.{name}]\n", f"[attributes.{name}]\nweight = {weight}\n")
    place.write_text(text, encoding="utf-8")
    return place


@pytest.mark.parametrize("weights", [[0.5, 3, 0, 1], [0, 0, 2.5, 0.1], [1, 1, 1, 1]])
def test_own_weights_rank_as_score_with_them_in_the_task(page, task, tmp_path, weights):
    assert page.locator("#weights label").all_inner_texts() == ["ERR", "HINDEX", "ORIGIN", "REGION"]
    move(page, weights)
    parts = dict(zip(["ERR", "HINDEX", "ORIGIN", "REGION"], weights, strict=True))
    other = with_weights(task, tmp_path / "task.toml", parts)
    result = fe.evaluate(RUNS, task=other, measures="GFR(util='ERR')")
    means = result.pivot().iloc[:, 0]
    shown = page.evaluate(
        """Array.from(document.querySelectorAll("#board tbody tr"),
        (row) => [row.cells[0].title, row.querySelector(".own").textContent])"""
    )
    # A run that lacks a topic is complete for GFR, which is 0 there.
    assert [name for name, _ in shown] == list(means.sort_values(ascending=False).index)
    assert dict(shown) == {name: f"{value:.4f}" for name, value in means.items()}
    assert page.locator("#board th.own").get_attribute("aria-sort") == "descending"
    assert f"With your weights {shown[0][0]} is first" in page.locator("#weights-text").inner_text()
    assert "sorted by your GFR" in page.locator("#weights-text").inner_text()
    hash_now = address(page)
    assert f"weights={'%2C'.join(f'{w:g}' for w in weights)}" in hash_now and "sort=own" in hash_now
    head_of(page, 1).locator("button").click()
    assert "sorted" not in page.locator("#weights-text").inner_text()
    page.locator("#weights-reset").click()
    head_of(page, 0).locator("button").click()
    assert page.locator("#board .own").count() == 0
    assert names_shown(page)[0] == "dense"


def test_the_strip_shows_the_share_of_weights_for_which_a_run_wins(page, task):
    page.locator("#strip").scroll_into_view_if_needed()
    page.wait_for_selector("#strip .win")
    text = page.locator("#strip-text").inner_text()
    shown = {name: int(share) / 100 for name, share in re.findall(r"([\w-]+) for (\d+) %", text)}
    collection = load_collection(task)
    result = fe.evaluate(
        RUNS, task=task, measures=["ERR", *(f"GF(attr='{a}')" for a in ("HINDEX", "ORIGIN", "REGION"))]
    )
    frame = result.frame(per_topic=True)
    frame = frame[frame.topic != "all"]
    values = np.stack(
        [
            frame[frame.measure == str(m)].pivot(index="run", columns="topic", values="value").to_numpy()
            for m in result.measures
        ]
    )
    names = sorted(set(frame.run))
    assert len(collection.qrels.topics) == values.shape[2]
    drawn = np.random.default_rng(0).dirichlet(np.ones(4), size=3000)
    known = ~np.isnan(values)
    top = np.einsum("wm,mrt->wrt", drawn, np.nan_to_num(values)) / np.einsum(
        "wm,mrt->wrt", drawn, known.astype(float)
    )
    wins = np.bincount(top.mean(axis=2).argmax(axis=1), minlength=len(names)) / 3000
    for name, share in zip(names, wins, strict=True):
        assert shown.get(name, 0) == pytest.approx(share, abs=0.04), name


def test_a_topic_group_filters_tables_and_figures(page, task, report):
    result = fe.evaluate(RUNS, task=task)
    means, table = result.by("TYPE"), result.table(by="TYPE")
    page.locator("#group").select_option(label="films (20)")
    measure, films, marked = -1, table.columns.index("films"), set()
    for place, row in enumerate(table.rows):
        measure += bool(row[0])
        marked |= {(row[1], measure)} if (place, films) in table.marked else set()
    best = page.evaluate(
        """Array.from(document.querySelectorAll("#board tbody .v.best"), (v) =>
        [v.closest("tr").cells[0].title, Number(v.closest("td").dataset.measure)])"""
    )
    assert {(run, m) for run, m in best if m < len(result.measures)} == marked
    cells = page.evaluate(
        """Array.from(document.querySelectorAll("#board tbody tr"), (row) => [row.cells[0].title,
        Array.from(row.querySelectorAll("td[data-measure] .v"), (v) => v.textContent)])"""
    )
    for run, values in cells:
        expected = [means.loc[(run, m), "films"] for m in means.loc[run].index]
        assert values[: len(expected)] == [f"{value:.4f}" for value in expected]
    assert page.locator("#count").inner_text() == "8 runs on 20 topics of films"
    assert [run for run, _ in cells] == list(
        means["films"].xs("nDCG@10", level="measure").sort_values(ascending=False).index
    )
    assert page.locator("#bars .bar").count() == 20
    for section in ("summary", "agreement", "differences"):  # what is over all topics says so
        assert page.locator(f"#{section} :is(p, p *).part-note").is_visible()
    tests = page.locator("#tests tbody tr:not([hidden]) th").all_inner_texts()
    assert tests[0] == "dense" and tests[-1] == "random"  # best first, over all topics
    assert (
        "No run has a value on both measures" in page.locator("#plane").text_content()
    )  # films have no h-index
    page.locator("#plane-y").select_option(label="GFR-ERR ↑")
    text = page.locator('#plane [data-run="0"]').get_attribute("aria-label")
    assert f"nDCG@10 {means.loc[('bm25', 'nDCG@10'), 'films']:.4f}" in text
    assert "group=films" in address(page)
    whole = page.locator("#board tbody tr td.part").count()
    page.locator("#group").select_option(value="")
    assert whole and page.locator("#board tbody tr td.part").count() == 0


def test_groups_of_any_run_are_those_of_python(page, task):
    collection = load_collection(task).with_attributes(["HINDEX", "REGION"])
    options = {"attributes": ["REGION"], "depth": 20, "cutoff": 20}
    page.locator("#groups .one-run").select_option(label="random")
    page.locator("#groups .other-run").select_option(label="pg-rank")
    page.locator("#attribute").select_option(label="REGION")
    page.locator("#shares").scroll_into_view_if_needed()
    page.wait_for_selector("#shares polygon")
    text = page.locator("#shares-text").inner_text()
    for name in ("random", "pg-rank"):
        (one,), _ = run_details(str(TOP / "runs" / f"{name}.run"), collection, PolicySpec(), **options)
        shares = zip(one.groups, one.achieved[-1], one.target, strict=True)
        expected = ", ".join(f"{group} {share:.2f} (target {target:.2f})" for group, share, target in shares)
        assert f"{name}, first 20 ranks, mean over {one.topics} topics: {expected}" in text
    assert page.locator("#chosen .chip bdi").all_inner_texts() == ["random", "pg-rank"]  # everywhere


def copied(page, name: str) -> str:
    """What a button puts on the clipboard."""
    page.evaluate(
        "document.execCommand = () => { window.taken = document.activeElement.value; return true; }"
    )
    page.get_by_role("button", name=name).click()
    return page.evaluate("window.taken")


def test_the_board_is_copied_as_it_is_shown(page, report):
    for button, file in (("Copy csv", "leaderboard.csv"), ("Copy LaTeX", "leaderboard.tex")):
        assert copied(page, button) == (report / file).read_text(encoding="utf-8")
    page.fill("#filter", "dense|random")
    page.locator(".chooser summary").click()
    page.locator(".chooser input").nth(1).uncheck()
    page.locator(".chooser summary").click()
    head_of(page, 0).locator("button").click()  # the worst first
    rows = list(csv.reader(copied(page, "Copy csv").splitlines()))
    assert [row[1] for row in rows] == ["run", "random", "dense"]
    with (report / "leaderboard.csv").open(encoding="utf-8", newline="") as file:
        whole = {row[1]: row for row in csv.reader(file)}
    assert all(row == whole[row[1]][:8] + whole[row[1]][12:] for row in rows)
    lines = copied(page, "Copy LaTeX").splitlines()
    files = (report / "leaderboard.tex").read_text(encoding="utf-8").splitlines()
    assert lines[0] == files[0].replace("llrrrrr", "llrrrr")
    assert [line.split(" & ")[0] for line in lines[4:6]] == ["random", "dense"]
    cells = next(line for line in files if line.startswith("dense")).split(" & ")
    assert lines[5] == " & ".join(cells[:3] + cells[4:])
    page.locator("#group").select_option(label="films (20)")
    (dense,) = [line for line in copied(page, "Copy LaTeX").splitlines() if line.startswith("dense")]
    shown = page.locator("#board tbody tr:has-text('dense') td[data-measure='0'] .v").inner_text()
    assert dense.split(" & ")[2].startswith((shown, f"\\textbf{{{shown}}}"))


def test_a_figure_is_downloaded_as_svg(page, tmp_path):
    with page.expect_download() as waiting:
        page.locator("#tradeoff .take button").click()
    waiting.value.save_as(tmp_path / "x.svg")
    assert waiting.value.suggested_filename == "tradeoff.svg"
    root = ElementTree.parse(tmp_path / "x.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    assert "round-robin" in [text.text for text in root.iter(f"{space}text")]
    assert all(point.get("fill", "").startswith("rgb") for point in root.iter(f"{space}circle"))


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (400, "light")])
def test_axe_finds_no_violation(browser, report, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    view = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    link = "#runs=dense&runs=random&weights=1,2,1,1&topic=R01"
    page, _ = opened(browser, report, link, bypass_csp=True, **view)  # axe is a script too
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.wait_for_timeout(200)
    found = axe.run(page).response["violations"]
    assert [(one["id"], [node["html"][:200] for node in one["nodes"]]) for one in found] == []
    page.context.close()


def test_a_phone_shows_everything_large_enough(browser, report):
    phone = {"viewport": {"width": 400, "height": 800}, "has_touch": True, "is_mobile": True}
    page, seen = opened(browser, report, "#runs=dense&runs=random&topic=R01", **phone)
    for place in ("#shares", "#merits", "#strip"):
        page.locator(place).scroll_into_view_if_needed()
    page.wait_for_selector("#merits .grade")
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    small = page.evaluate(
        """Array.from(document.querySelectorAll("main *, header *")).filter((e) => e.getClientRects().length
        && Array.from(e.childNodes).some((n) => n.nodeType === 3 && n.textContent.trim()))
        .filter((e) => {
          const svg = e.closest("svg");
          const width = svg && svg.viewBox.baseVal.width;
          const scale = width ? svg.getBoundingClientRect().width / width : 1;
          return parseFloat(getComputedStyle(e).fontSize) * scale < 10.99;
        }).map((e) => e.outerHTML.slice(0, 120))"""
    )
    assert small == []
    page.evaluate("document.querySelectorAll('details.static').forEach((one) => { one.open = true; })")
    shrunk = page.evaluate(  # pictures have text of 10 pt
        """Array.from(document.images, (e) => [e.alt.slice(0, 40), e.getBoundingClientRect().width / e.naturalWidth])
        .filter(([, by]) => by && by < 0.8)"""
    )
    assert shrunk == []
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    charts = page.evaluate(
        "Array.from(document.querySelectorAll('.chart'), (e) => e.getBoundingClientRect().width)"
    )
    assert max(charts) <= 400
    flat = page.evaluate(
        """Array.from(document.querySelectorAll(
          ":is(main, #toolbar) :is(button, select, summary, input:not([type=checkbox]))"))
        .filter((e) => e.getClientRects().length && e.getBoundingClientRect().height < 39.9)
        .map((e) => e.outerHTML.slice(0, 120))"""
    )
    assert flat == []
    assert seen.bad == []
    page.context.close()


def test_heads_are_repeated_on_every_printed_page(browser, report, tmp_path):
    pypdf = pytest.importorskip("pypdf")
    page, _ = opened(browser, report)
    # Eight runs would fit on one page: take every row several times.
    page.evaluate(
        """() => { const body = document.querySelector("#board tbody"); const rows = Array.from(body.rows);
        for (let i = 0; i < 12; i += 1) body.append(...rows.map((row) => row.cloneNode(true))); }"""
    )
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    page.context.close()
    texts = [one.extract_text() for one in pypdf.PdfReader(tmp_path / "report.pdf").pages]
    pages = [text for text in texts if re.search(r"^round-robin .*0\.4330 0\.4982", text, re.M)]
    assert len(pages) >= 3
    for text in pages:
        assert re.search(r"^run\s.*nDCG@10 ↑\s+ERR@20 ↑", text, re.M), text[:300]
    # A caption is on the page of its figure, and so is a heading.
    (differences,) = [
        text for text in texts if "Gain of dense over bm25 in nDCG@10" in text.replace("\n", " ")
    ]
    assert "erences by topic" in differences  # with a ligature before
    (topics,) = [text for text in texts if "the hardest topic (by the median)" in text.replace("\n", " ")]
    assert "Topics" in topics.split("\n")
    assert "Usefulness against fairness" in texts[0]


def test_without_a_script_tables_and_pictures_stay(browser, report):
    page, seen = opened(browser, report, java_script_enabled=False)
    for place in (
        "#board",
        "#tradeoff img",
        "#differences img",
        "#groups img",
        "#exposure img",
        "#agreement .cells",
        "#tests",
    ):
        assert page.locator(place).first.is_visible(), place
    for place in ("#toolbar", "#weights", "#plane", "#bars", "#shares", ".take"):
        assert page.locator(place).first.is_hidden(), place
    page.locator("#show-intervals").check()  # works without one
    assert page.locator("#board .ci").first.is_visible()
    page.locator("#show-letters").check()
    assert page.locator("#board .let").first.is_visible()
    assert seen.bad == []
    page.context.close()


def test_the_missing_topics_are_in_one_table(page, report):
    record = json.loads((report / "report.json").read_text(encoding="utf-8"))
    rows = page.locator("#missing tbody tr").all_inner_texts()
    assert len(rows) == len(record["missing_topics"]) == 1
    assert rows[0].split() == ["round-robin", "1", "M14"]

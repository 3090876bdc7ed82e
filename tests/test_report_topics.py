"""The topics of a report in a browser: map, two runs, one topic, and "my run", against the values of other commands."""

from __future__ import annotations

import csv
import json
import math
import statistics

import numpy as np
import pytest
from report_cases import HOSTILE, make
from test_report_browser import CHROMIUM, FLAGS, opened, playwright

from fairevals.errors import escape
from fairevals.evaluation import Plan, load_collection, open_run
from fairevals.evaluation.exposures import ExposureQuery, document_exposures, group_exposures
from fairevals.io.specs import PolicySpec
from fairevals.measures import parse_measure

RUNS = ["one", "two", "three", "<b>four</b>"]
TOPICS = ["q1", "q2", "q3", "q4", "</script><script>alert(1)</script>", "q6"]
DOCS = [f"doc-{i:02}" for i in range(24)] + [name[:150] for name in HOSTILE]
MEASURES = ["nDCG@10", "GF(attr='S')@10", "AWRF(attr='S')", "D_group(attr='H')", "DP(attr='H',protected='b')"]


def write(place, policy="ranking"):
    """A task with a soft and a hard attribute, of which one does not apply everywhere; and a run that lacks a topic."""
    rng = np.random.default_rng(3)
    place.mkdir()
    lines, soft = [], ["doc\tx\ty\tz"]
    grades = {(t, d): int(rng.choice([0, 0, 1, 2])) for t in TOPICS for d in DOCS if rng.random() < 0.7}
    lines = [f"{t} 0 {d} {g}" for (t, d), g in grades.items()]
    (place / "t.qrels").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for i, d in enumerate(DOCS):
        row = [1.0, 0.0, 0.0] if i % 3 == 0 else rng.dirichlet([1.0, 1.0, 1.0]).tolist()
        soft.append("\t".join([d.replace('"', '""') if '"' in d else d, *map(str, row)]))
    quoted = [
        f'"{line.split(chr(9))[0]}"' + line[line.index("\t") :] if '"' in line else line for line in soft
    ]
    (place / "s.tsv").write_text("\n".join(quoted) + "\n", encoding="utf-8")
    with (place / "h.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("doc", "group"), *((d, "ab"[i % 2]) for i, d in enumerate(DOCS))])
    (place / "topics.tsv").write_text(
        "topic\ttitle\n" + "".join(f"{t}\ttitle of <i>{i}</i>\n" for i, t in enumerate(TOPICS)),
        encoding="utf-8",
    )
    (place / "task.toml").write_text(
        f'name = "soft"\nqrels = "t.qrels"\ntopics = "topics.tsv"\ncutoff = 10\nmeasures = {json.dumps(MEASURES)}\n'
        f'[policy]\nkind = "{policy}"\n'
        '[attributes.S]\ngroups = ["x", "y", "z"]\nmemberships = "s.tsv"\ntarget = [0.5, 0.3, 0.2]\n'
        '[attributes.H]\ngroups = ["a", "b"]\nmemberships = "h.csv"\ntopics = ["q*"]\n',
        encoding="utf-8",
    )
    files = []
    for number, tag in enumerate(RUNS):
        rows = []
        for t in TOPICS[: 5 if tag == "two" else 6]:
            scores = rng.normal(size=len(DOCS)) + 0.3 * number * np.array(
                [grades.get((t, d), 0) for d in DOCS]
            )
            rows += [f"{t} Q0 {d} 0 {s:.6f} {tag}\n" for d, s in zip(DOCS, scores, strict=True)]
        path = place / f"{number}.run"
        path.write_text("".join(rows), encoding="utf-8")
        files.append(str(path))
    return place / "task.toml", files


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("topics")
    task, files = write(place / "task")
    make(task, files, place / "out", "--baseline", "one")
    return task, files, place / "out"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as p:
        running = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def values(made):
    """{(run, topic, measure): value} as `score -q` prints them; None where undefined."""
    with (made[2] / "scores.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["run"], row["topic"], row["measure"]): float(row["value"]) if row["value"] else None
            for row in csv.DictReader(file)
        }


@pytest.fixture(scope="module")
def topics(made):
    return load_collection(made[0]).qrels.topics


def measure_names(values):
    return list(dict.fromkeys(name for _, _, name in values))


@pytest.fixture
def page(browser, made):
    opened_page, seen = opened(browser, made[2])
    yield opened_page
    opened_page.wait_for_timeout(50)
    assert seen.bad == []
    opened_page.context.close()


def go(page, hash_):
    page.evaluate("(hash) => { location.hash = hash; }", hash_)


def number(text):
    return None if text in ("–", "undefined") else float(text.replace("−", "-").replace("+", ""))


def texts(page, selector):
    return page.locator(selector).all_inner_texts()


def rankings(page):
    """For each table of ranks: its run, and (rank, grade, document, {attribute: label}) of each row."""
    return page.evaluate(
        """() => Array.from(document.querySelectorAll(".ranks")).map((table) => [
          table.caption.textContent,
          Array.from(table.tBodies[0].rows).map((row) => [
            Number(row.cells[0].textContent), row.cells[1].textContent, row.cells[2].textContent,
            Array.from(row.querySelectorAll(".stripes")).map((one) => one.getAttribute("aria-label")),
            Array.from(row.querySelectorAll(".stripes rect")).map((one) => Number(one.getAttribute("width")) / 40),
          ]),
        ])"""
    )


def cell(value):
    """Two digits after the point, as the map shows them."""
    if value is None:
        return ""
    short = f"{value:.2f}".replace("0.", ".").replace("-", "−")
    return (
        {".00": "0", "−.00": "0"}.get(short, short)
        if abs(value) < 0.995
        else f"{value:.1f}".replace("-", "−")
    )


def columns(page):
    return page.evaluate(
        "Array.from(document.querySelectorAll('#map thead button')).map((b) => Number(b.dataset.topic))"
    )


def test_the_map_has_every_value_and_three_orders(page, values, topics):
    for m, measure in enumerate(measure_names(values)):
        page.select_option("#map-measure", str(m))
        table = page.evaluate(
            """() => Object.fromEntries(Array.from(document.querySelectorAll("#map tbody tr[data-run]")).map(
              (row) => [row.dataset.run, Array.from(row.cells).slice(1).map((cell) => cell.textContent)]))"""
        )
        shown = [topics[t] for t in columns(page)]
        assert table == {
            str(r): [cell(values[run, t, measure]) for t in shown] for r, run in enumerate(RUNS)
        }, measure
        cost = parse_measure(measure).direction.cost
        known = [[cost(v) for run in RUNS if (v := values[run, t, measure]) is not None] for t in shown]
        medians = [statistics.median(costs) for costs in known if costs]
        assert medians == sorted(medians, reverse=True)
        assert known == sorted(known, key=lambda costs: not costs)  # topics without a value are last
    page.select_option("#map-measure", "0")
    page.select_option("#map-order", "given")
    assert columns(page) == list(range(6))
    page.fill("#filter", "four|two")
    playwright.expect(page.locator("#map tbody tr[data-run]")).to_have_count(2)
    page.fill("#filter", "")
    playwright.expect(page.locator("#map tbody tr[data-run]")).to_have_count(4)
    page.select_option("#map-order", "difference")
    a, b = "<b>four</b>", "one"
    gains = [values[a, topics[t], "nDCG@10"] - values[b, topics[t], "nDCG@10"] for t in columns(page)]
    assert gains == sorted(gains, reverse=True)
    assert texts(page, "#map .gains td") == [cell(gain) for gain in gains]


def test_digits_are_readable_on_every_colour(browser, made):
    for scheme in ("light", "dark"):
        page, _ = opened(browser, made[2], color_scheme=scheme)
        colours = page.evaluate(
            """() => [..."012345678"].map((k) => `h${k}`).concat([..."0123"].flatMap((k) => [`up${k}`, `down${k}`]))
              .map((name) => {
                const cell = document.querySelector("#map tbody td");
                cell.className = name;
                const style = getComputedStyle(cell);
                return [name, style.backgroundColor, style.color];
              })"""
        )
        for name, background, ink in colours:
            light, dark = sorted((luminance(background), luminance(ink)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (scheme, name)
        cell = page.locator("#map tbody td").first
        colour = "(cell) => getComputedStyle(cell).backgroundColor"
        before = cell.evaluate(colour)
        cell.hover()
        assert cell.evaluate(colour) == before  # a row that is pointed at keeps its shades
        page.context.close()


def luminance(colour):
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_one_topic_has_the_ranks_grades_and_groups_of_the_run(page, made, topics):
    task, files, _ = made
    collection = load_collection(task).with_attributes(["S", "H"])
    plan = Plan.reading(PolicySpec(), ["S", "H"])
    page.locator("#two-run").select_option("2")
    page.locator("#two-other").select_option("1")
    for t, topic in enumerate(topics):
        page.locator(f"#map thead button[data-topic='{t}']").click()
        assert topic[:20] in page.locator("#topic-title").inner_text()
        shown = rankings(page)
        assert [run for run, _ in shown] == ["three", "two"]
        for (_, rows), file in zip(shown, (files[2], files[1]), strict=True):
            opened_run = open_run(file, collection, plan)
            (block,) = opened_run.blocks()
            names = block.documents.texts()
            count = min(10, int(block.retrieved[t]))
            assert [rank for rank, *_ in rows] == list(range(1, count + 1))
            for c, (_, grade, doc, labels, widths) in enumerate(rows):
                full = names[block.row[t, c]]
                assert doc == escape(full, 100)
                judged = block.raw_grades[t, c]
                assert grade == ("–" if math.isnan(judged) else f"{judged:g}")
                memberships = [block.attributes[name].membership[t, c] for name in ("S", "H")]
                expected = [w for row in memberships for w in row if w >= 0.00005]
                assert widths == pytest.approx(expected, abs=1e-4)
                assert len(labels) == (2 if topic.startswith("q") else 1)
                largest = "xyz"[int(memberships[0].argmax())]
                assert labels[0].startswith(f"S: {largest}")


def test_lines_join_the_same_documents(page, topics):
    page.locator("#two-run").select_option("3")
    page.locator("#two-other").select_option("2")
    go(page, f"#topics&topic={topics[1]}")
    playwright.expect(page.locator("#topic-title")).to_contain_text(topics[1])
    (_, left), (_, right) = rankings(page)
    places = [{doc: rank for rank, _, doc, *_ in rows} for rows in (left, right)]
    links = page.evaluate(
        """Array.from(document.querySelectorAll(".link")).map(
          (one) => one.getAttribute("d").match(/[0-9]+/g).map(Number))"""
    )
    joined = {((y1 + 5) // 10, (y2 + 5) // 10) for _, y1, _, _, _, _, _, y2 in links}
    assert joined == {(places[0][doc], places[1][doc]) for doc in places[0] if doc in places[1]} != set()
    note = page.locator("#topic-note").inner_text()
    assert f"{len(joined)} document" in note and "in common" in note
    # The ends of a line are in the middle of its rows.
    middles = page.evaluate(
        """() => {
          const box = document.querySelector(".lines").getBoundingClientRect();
          const rows = Array.from(document.querySelectorAll(".ranks")).map((t) => Array.from(t.tBodies[0].rows));
          return rows.map((some) => some.map((row, k) => {
            const at = row.getBoundingClientRect();
            return Math.abs((at.top + at.bottom) / 2 - (box.top + box.height * (k + 0.5) / 10));
          }));
        }"""
    )
    assert max(max(some) for some in middles) < 3


def test_values_and_shares_are_those_of_the_commands(page, made, values, topics):
    task, files, _ = made
    collection = load_collection(task)
    page.locator("#two-run").select_option("3")
    page.locator("#two-other").select_option("1")
    query = ExposureQuery(PolicySpec(), cutoff=10)
    shares = {
        (run, row.topic, row.attribute, row.group): (row.share, row.target)
        for run, file in ((RUNS[3], files[3]), (RUNS[1], files[1]))
        for row in group_exposures(file, collection, query)
    }
    for t, topic in enumerate(topics):
        page.locator(f"#map thead button[data-topic='{t}']").click()
        rows = page.evaluate(
            """() => Object.fromEntries(Array.from(document.querySelectorAll("#topic-values tbody tr")).map(
              (row) => [row.dataset.measure, Array.from(row.cells).slice(1).map((cell) => cell.textContent)]))"""
        )
        for name in measure_names(values):
            own = [values[run, topic, name] for run in (RUNS[3], RUNS[1])]
            everybody = [v for run in RUNS if (v := values[run, topic, name]) is not None]
            if not everybody:
                assert name not in rows
                continue
            assert [number(x) for x in rows[name][:2]] == [None if v is None else approx(v) for v in own]
            assert number(rows[name][3]) == approx(statistics.median(everybody))
            cost = parse_measure(name).direction.cost
            assert number(rows[name][2]) == (None if None in own else approx(cost(own[1]) - cost(own[0])))
        bars = page.evaluate(
            """() => Array.from(document.querySelectorAll("table.shares")).map((table) => [table.dataset.attribute,
              Array.from(table.tBodies[0].rows).map((row) => [row.cells[0].textContent,
                row.querySelector("svg") ? row.querySelector("svg").getAttribute("aria-label") : null])])"""
        )
        assert [name for name, _ in bars] == (["S", "H"] if topic.startswith("q") else ["S"])
        for name, lines in bars:
            for run, text in lines:
                for part in text.split(", ") if text else []:
                    group, share = part.split()
                    at = (RUNS[3], topic, name, group) if run == "target" else (run, topic, name, group)
                    assert float(share) == pytest.approx(shares[at][run == "target"], abs=6e-4)
                if text is None:  # the run has no documents here
                    assert (run, topic, name, "x") not in shares


def approx(value):
    return pytest.approx(value, abs=6e-5)


def test_a_point_opens_its_topic(page, values, topics):
    page.locator("#two-run").select_option("3")
    page.locator("#two-other").select_option("2")
    points = page.locator("#two [data-topic]")
    assert points.count() == 6
    for i in range(6):
        t = int(points.nth(i).get_attribute("data-topic"))
        own, other = (values[RUNS[r], topics[t], "nDCG@10"] for r in (3, 2))
        label = points.nth(i).get_attribute("aria-label")
        assert f"{RUNS[3]} {own:.4f}, {RUNS[2]} {other:.4f}" in label
        better = own - other
        kind = "even" if abs(better) < 1e-6 else "won" if better > 0 else "lost"
        assert kind in points.nth(i).get_attribute("class").split()
    chosen = points.nth(4)
    chosen.focus()
    page.keyboard.press("Enter")
    assert topics[int(chosen.get_attribute("data-topic"))][:9] in page.locator("#topic-title").inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.dataset.topic") == points.nth(3).get_attribute("data-topic")
    page.locator("#two-other").select_option("median")
    label = points.first.get_attribute("aria-label")
    t = int(points.first.get_attribute("data-topic"))
    middle = statistics.median(values[run, topics[t], "nDCG@10"] for run in RUNS)
    assert f"median {middle:.4f}" in label
    assert len(rankings(page)) == 1


def test_the_address_keeps_topic_and_runs(browser, made, topics):
    page, seen = opened(browser, made[2])
    page.locator("#two-run").select_option("3")
    page.locator("#two-other").select_option("2")
    page.select_option("#map-order", "difference")
    page.locator("#map thead button[data-topic='4']").click()
    page.wait_for_timeout(200)
    url, text = page.url, page.locator("#topic").inner_text()
    page.goto("about:blank")
    page.goto(url)
    assert page.locator("#topic").inner_text() == text
    assert [run for run, _ in rankings(page)] == [RUNS[3], RUNS[2]]
    assert page.locator("#map-order").input_value() == "difference"
    assert page.locator("#map thead button[aria-pressed=true]").get_attribute("data-topic") == "4"
    go(page, "#topics&topic=nowhere&runs=nobody")  # what does not exist is the default
    page.wait_for_timeout(50)
    assert seen.bad == []
    page.context.close()


def test_steps_and_keyboard(page):
    first = columns(page)
    page.locator("#map thead button").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.locator("#map thead button[aria-pressed=true]").get_attribute("data-topic") == str(first[1])
    page.locator("#topic-after").click()
    assert page.locator("#map thead button[aria-pressed=true]").get_attribute("data-topic") == str(first[2])
    page.locator("#topic-before").click()
    page.locator("#topic-before").click()
    page.locator("#topic-before").click()
    assert page.locator("#map thead button[aria-pressed=true]").get_attribute("data-topic") == str(first[0])
    row = page.locator(".ranks").first.locator("tbody tr").first
    row.focus()
    assert (
        "grade" in page.locator("#topic-readout").inner_text()
        or "unjudged" in page.locator("#topic-readout").inner_text()
    )
    assert row.get_attribute("class").split().count("lit") == 1
    run = page.locator("#map tbody button").first
    run.focus()
    page.keyboard.press("Enter")
    assert page.locator("#map tbody button[aria-pressed=true]").count() == 1
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"  # the focus stays
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#map tbody button[aria-pressed=true]").count() == 2


def test_my_run(page, values, topics):
    page.locator("#mine").select_option("1")
    rows = page.evaluate(
        """() => Object.fromEntries(Array.from(document.querySelectorAll("#mine-values tbody tr")).map(
          (row) => [row.dataset.measure, Array.from(row.cells).slice(1).map((cell) => cell.textContent)]))"""
    )
    for name in measure_names(values):
        means = [values[run, "all", name] for run in RUNS]
        assert number(rows[name][0]) == approx(values["two", "all", name])
        assert number(rows[name][1]) == approx(statistics.median(means))
        cost, won = parse_measure(name).direction.cost, [0, 0, 0]
        for topic in topics:
            known = [v for run in RUNS if (v := values[run, topic, name]) is not None]
            if values["two", topic, name] is not None:
                gain = round(float(cost(statistics.median(known)) - cost(values["two", topic, name])), 6)
                won[0 if gain > 0 else 2 if gain < 0 else 1] += 1
        assert [int(x) for x in rows[name][5:8]] == won, name
    reasons = dict(
        page.evaluate(
            """() => Array.from(document.querySelectorAll("#mine-undefined tbody tr")).map(
              (row) => [`${row.dataset.measure} ${row.cells[2].textContent}`, row.cells[3].textContent])"""
        )
    )
    missing = topics[-1]
    assert reasons[f"AWRF(attr='S')@10 {missing}"] == "this run has no documents for the topic"
    (other,) = [topic for topic in topics if not topic.startswith("q")]
    applies = [text for key, text in reasons.items() if key.startswith("D_group") and other[:6] in key]
    assert applies == ["H does not apply to the topic"]
    assert "No documents for 1 topic" in page.locator("#mine-undefined p").inner_text()
    page.locator("#mine-topics button").first.click()
    assert page.evaluate("document.activeElement.id") == "topic-title"


def test_exposure_of_policies(browser, tmp_path):
    task, files = write(tmp_path / "task", "pl")
    make(task, files, tmp_path / "out")
    page, seen = opened(browser, tmp_path / "out")
    collection = load_collection(task)
    query = ExposureQuery(PolicySpec(kind="pl"), cutoff=10)
    expected = {
        (row.topic, escape(row.doc, 100)): row.exposure
        for row in document_exposures(files[3], collection, query)
    }
    topic = collection.qrels.topics[2]
    page.locator("#two-run").select_option("3")
    page.locator("#map thead button[data-topic='2']").click()
    rows = page.evaluate(
        """() => Array.from(document.querySelector(".ranks").tBodies[0].rows).map(
          (row) => [row.cells[2].textContent, row.cells[3].textContent])"""
    )
    assert len(rows) == 10
    assert all(float(exposure) == approx(expected[topic, doc]) for doc, exposure in rows)
    assert "most likely ranking" in page.locator("#topic-note").inner_text()
    assert seen.bad == []
    page.context.close()


def test_runs_without_ranks_are_named(browser, made, tmp_path):
    task, files, _ = made
    make(task, files, tmp_path / "out", "--baseline", "one", "--drilldown", "none")
    page, seen = opened(browser, tmp_path / "out")
    assert "--drilldown all" in page.locator("#left-out").inner_text()
    assert "are not in this page" in page.locator("#topic-note").inner_text()
    assert page.locator("#topic-values tbody tr").count() == 3
    assert page.locator(".ranks").count() == 0
    assert seen.bad == []
    page.context.close()


def test_narrow_dark_and_paper(browser, made):
    for options in ({"viewport": {"width": 400, "height": 800}}, {"color_scheme": "dark"}):
        page, seen = opened(browser, made[2], **options)
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1]
        small = page.evaluate(
            """() => Array.from(document.querySelectorAll("#topics *, #my-run *")).filter((one) =>
              one.checkVisibility() && Array.from(one.childNodes).some((n) => n.nodeType === 3 && n.textContent.trim())
              && parseFloat(getComputedStyle(one).fontSize) < 11).map((one) => one.outerHTML.slice(0, 80))"""
        )
        assert small == []
        assert seen.bad == []
        page.context.close()
    page, _ = opened(browser, made[2], viewport={"width": 400, "height": 800})
    page.locator("#map thead button").first.click()
    page.locator(".ranks caption").first.evaluate("one => { one.textContent = 'x'.repeat(90); }")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400  # a long name of a run
    page.context.close()
    page, _ = opened(browser, made[2])
    page.emulate_media(media="print")
    assert page.locator("#topics figure img").is_visible()
    assert (
        not page.locator("#map").is_visible() and not page.locator("#topic").is_visible()
    )  # no topic is chosen
    page.emulate_media(media="screen")
    page.locator("#map thead button").first.click()
    page.emulate_media(media="print")
    assert page.locator("#topic").is_visible() and page.locator(".lines").is_visible()
    page.context.close()


def test_without_a_script_there_is_a_picture(browser, made):
    page, seen = opened(browser, made[2], java_script_enabled=False)
    assert page.locator("#topics figure img").is_visible()
    assert not page.locator("#map").is_visible() and not page.locator("#my-run").is_visible()
    assert seen.bad == []
    page.context.close()


def test_axe_finds_nothing(browser, made):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, _ = opened(browser, made[2], color_scheme="dark")
    page.locator("#map thead button").first.click()
    found = axe.run(page, context={"include": [["#topics"], ["#my-run"]]}).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in found] == []
    page.context.close()


def test_one_run(browser, made, tmp_path):
    task, files, _ = made
    make(task, files[:1], tmp_path / "out")
    page, seen = opened(browser, tmp_path / "out")
    assert [run for run, _ in rankings(page)] == ["one"]
    assert page.locator("#map tbody tr").count() == 1
    for place in ("#two", "#filter"):  # nothing to compare or to choose from
        assert page.locator(place).is_hidden(), place
    assert page.locator("#weights").count() == 0
    assert "Tested" not in page.locator("#summary").inner_text()
    assert seen.bad == []
    page.context.close()

"""The report: structure, self-containedness, escaping, and the folder it is written into."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from report_cases import HOSTILE, MEASURES, Page, make, write_task

from fairevals.cli.report import configure
from fairevals.cli.report import run as run_report
from fairevals.collection.groups import Attribute
from fairevals.errors import FairevalsError, InputError, UsageError
from fairevals.evaluation import Plan, load_collection
from fairevals.evaluation.leaderboard import ranking_of_runs
from fairevals.evaluation.scores import Scores
from fairevals.io.folders import safe_name
from fairevals.io.specs import PolicySpec
from fairevals.io.task import Task
from fairevals.measures import parse_measure
from fairevals.report.board import board, pareto, role
from fairevals.report.data import _means, page_data
from fairevals.report.gather import PANELS, drivers, gather, tipping
from fairevals.report.groups import run_details
from fairevals.report.style import data_uri, filling, labels, new_figure
from fairevals.report.training import TrainingSummary, draw_plane, read_summaries
from fairevals.report.write import REPORT, write_report
from fairevals.statistics.pairing import pair
from fairevals.training.summary import SummaryRow

TOP = Path(__file__).resolve().parent.parent
FILES = ("leaderboard.csv", "leaderboard.tex", "scores.csv", "report.json")


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A report on four runs, with the page parsed."""
    place = tmp_path_factory.mktemp("sample")
    topics = [f"q{i}" for i in range(12)]
    task, files = write_task(place / "task", ["weak", "middle", "strong", "best"], topics)
    assert make(task, files, place / "out", "--baseline", "middle", "--reference", "weak") == 0
    return place / "out"


@pytest.fixture(scope="module")
def page(sample):
    return Page((sample / "index.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def record(sample):
    return json.loads((sample / "report.json").read_text(encoding="utf-8"))


def test_all_files_are_written(sample, record):
    names = {str(path.relative_to(sample)) for path in sample.rglob("*") if path.is_file()}
    tables = {"scores.csv", "leaderboard.csv", "leaderboard.tex"}
    assert names == {"index.html", "report.json", *tables, *record["figures"]}
    assert {"figures/tradeoff.svg", "figures/topics.svg", "figures/agreement.svg"} <= names
    for name in record["figures"]:
        assert ElementTree.parse(sample / name).getroot().tag.endswith("svg")


def test_the_page_loads_nothing(page):
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            if name in ("src", "srcset", "data", "poster", "action", "background", "href", "xlink:href"):
                linked = value in FILES and tag == "a"
                assert linked or value.startswith(("data:image/svg+xml;base64,", "#")), (
                    tag,
                    name,
                    value[:80],
                )
            assert not name.startswith("on"), (tag, name)
            assert name != "style", tag  # the policy forbids it
    assert not [
        tag for tag, _ in page.elements if tag in ("link", "iframe", "object", "embed", "base", "form")
    ]


def test_the_content_policy_allows_only_what_the_page_has(sample, page):
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    text = (sample / "index.html").read_text(encoding="utf-8")
    import base64
    import hashlib

    def digest(part):
        return "'sha256-" + base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() + "'"

    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    script = re.search(r"<script>(.*?)</script>", text, re.S)[1]
    assert digest(style) in policy and digest(script) in policy


def test_every_figure_has_an_alternative_text(page, record):
    images = page.all("img")
    assert len(images) == len(record["figures"]) - 1  # rank correlations are a table in the page
    for image in images:
        assert len(image["alt"]) > 40
    for svg in page.all("svg"):
        assert svg.get("aria-label") or svg.get("aria-labelledby") or svg.get("aria-hidden") == "true"


def test_headings_are_buttons_and_say_how_they_sort(page):
    heads = [h for h in page.all("th") if "data-best" in h]
    assert [h["data-best"] for h in heads] == [
        *("ascending", "descending", "descending", "descending", "ascending", "other")
    ]
    assert [h.get("aria-sort") for h in heads].count("descending") == 1
    places = [at for at, element in enumerate(page.elements) if "data-best" in element[1]]
    assert all("button" in (page.elements[at + 1][0], page.elements[at + 2][0]) for at in places)


def test_ids_are_unique_and_links_lead_somewhere(page):
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for link in page.all("a"):
        assert link["href"].removeprefix("#") in [*ids, *FILES]


def test_the_page_says_what_was_scored_and_how(page, record):
    assert "A <b>bold</b> task" in page.text
    for file in record["files"]:
        assert file["name"] in page.text and file["sha256"] in page.text
    assert [f["role"] for f in record["files"]][:3] == ["task", "qrels", "memberships of G"]
    for word in ("randomised Tukey HSD", "95 %", "Seed", "numpy", "baseline", "reference", "trec_eval"):
        assert word in page.text
    for name in MEASURES:
        assert parse_measure(name).formula in page.text
        assert parse_measure(name).source in page.text


def test_hashes_are_those_of_the_files(sample, record):
    import hashlib

    task = sample.parent / "task"
    for file in record["files"]:
        assert file["sha256"] == hashlib.sha256((task / file["name"]).read_bytes()).hexdigest()
        assert "/" not in file["name"]


def test_scores_have_one_row_per_topic_and_the_means(sample, record):
    with (sample / "scores.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["run", "topic", "measure", "value", "se"]
    assert len(rows) == 4 * 5 * 13
    means = {(r["run"], r["measure"]): float(r["value"]) for r in rows if r["topic"] == "all"}
    for mean in record["means"]:
        assert means[mean["run"], mean["measure"]] == pytest.approx(mean["value"], abs=1e-12)


def test_record_has_all_parts(record):
    assert record["format"] == REPORT.format
    assert record["baseline"] == "middle" and record["references"] == ["weak"]
    assert record["leaderboard"][0] == "best"
    assert {row["run"] for row in record["comparisons"]} == {"weak", "strong", "best"}
    assert {m["name"] for m in record["measures"]} == set(record["correlations"]["measures"])
    # Letters are for the family without the named baseline and reference.
    assert all(bool(mean["letters"]) == (mean["run"] in ("strong", "best")) for mean in record["means"])
    for family in record["significance"]["families"]:
        assert family["runs"] == ["best", "strong"]
        assert family["outside"] == {"middle": "baseline", "weak": "reference"}
    assert "NaN" not in json.dumps(record)
    for front in record["fronts"]:
        assert front["runs"]


def test_the_same_input_gives_the_same_bytes(sample, tmp_path):
    task, files = sample.parent / "task" / "task.toml", sorted((sample.parent / "task").glob("*.run"))
    make(task, [str(f) for f in files], tmp_path, "--baseline", "middle", "--reference", "weak")
    for path in sample.rglob("*"):
        if path.is_file():
            assert (tmp_path / path.relative_to(sample)).read_bytes() == path.read_bytes(), path


def test_hostile_names_are_text_everywhere(tmp_path):
    topics = [f"{name}{i}" for i, name in enumerate(HOSTILE)]
    task, files = write_task(tmp_path / "task", HOSTILE, topics)
    assert make(task, files, tmp_path / "out") == 0
    text = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    parsed = Page(text)
    assert len(parsed.all("script")) == 4  # ours, and three of data
    assert not [image for image in parsed.all("img") if not image["src"].startswith("data:")]
    assert not [a for _, a in parsed.elements if any(name.startswith("on") for name in a)]
    assert text.count("</script") == 4
    for name in HOSTILE:  # the tooltip of the leaderboard has all of it
        assert name in [th.get("title") for th in parsed.all("th")], name[:30]
    assert "<script>alert(1)</script>" in parsed.text and "{{7*7}}" in parsed.text
    assert "\u202e" not in parsed.text and "\\u202e" in parsed.text
    data = json.loads(parsed.scripts[0])
    assert len(data["runs"]) == len(HOSTILE) and len(set(data["runs"])) == len(HOSTILE)
    assert max(map(len, data["runs"] + data["topics"])) <= 90
    record = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert set(record["leaderboard"]) == set(HOSTILE)
    for name in record["figures"]:
        assert re.fullmatch(r"figures/[A-Za-z0-9_-]+\.svg", name)
        assert ElementTree.parse(tmp_path / "out" / name).getroot().find(".//script") is None
    assert {p.name for p in tmp_path.iterdir()} == {"task", "out"}
    assert len(text) < 2_000_000


def test_a_folder_of_other_files_is_not_touched(sample, tmp_path):
    task, files = sample.parent / "task" / "task.toml", [str(sample.parent / "task" / "00.run")]
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        make(task, files, tmp_path)
    (tmp_path / "report.json").write_text('{"format": "something else"}')
    with pytest.raises(UsageError, match="not empty"):
        make(task, files, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.json", "thesis.tex"}
    assert make(task, files, tmp_path, "--force") == 0
    assert (tmp_path / "thesis.tex").read_text() == "mine"
    with pytest.raises(UsageError, match="not a folder"):
        REPORT.check(tmp_path / "thesis.tex")


def test_an_earlier_report_and_its_figures_are_replaced(sample, tmp_path):
    place = sample.parent / "task"
    files = [str(path) for path in sorted(place.glob("*.run"))]
    out = tmp_path / "out"
    make(place / "task.toml", files, out)
    assert (out / "figures" / "tradeoff.svg").exists()
    (tmp_path / "precious.svg").write_text("keep")
    record = json.loads((out / "report.json").read_text())
    record["figures"] += ["../precious.svg", "figures/../../precious.svg", 7]
    (out / "report.json").write_text(json.dumps(record))
    (out / "notes.txt").write_text("keep")
    make(place / "task.toml", files[:1], out, "-m", "nDCG@10")
    assert not (out / "figures" / "tradeoff.svg").exists()
    assert (tmp_path / "precious.svg").exists() and (out / "notes.txt").exists()


def test_an_unusable_folder_is_reported_before_the_work(tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        make(tmp_path / "no-such-task.toml", ["no-such.run"], tmp_path)


def test_one_run_and_one_measure_still_give_a_page(sample, tmp_path):
    place = sample.parent / "task"
    assert make(place / "task.toml", [str(place / "00.run")], tmp_path, "-m", "nDCG@10") == 0
    parsed = Page((tmp_path / "index.html").read_text(encoding="utf-8"))
    sections = [s["id"] for s in parsed.all("section")]
    expected = "summary leaderboard topics groups exposure remarks sources glossary"
    assert sections == expected.split()
    assert json.loads((tmp_path / "report.json").read_text())["comparisons"] == []


def test_qrels_alone_are_enough(sample, tmp_path):
    import argparse

    place = sample.parent / "task"
    parser = argparse.ArgumentParser()
    configure(parser)
    args = [
        "--qrels",
        str(place / "t.qrels"),
        str(place / "00.run"),
        str(place / "01.run"),
        "-o",
        str(tmp_path),
    ]
    assert run_report(parser.parse_args(args)) == 0
    parsed = Page((tmp_path / "index.html").read_text(encoding="utf-8"))
    assert "groups" not in [s["id"] for s in parsed.all("section")]


def test_missing_topics_and_undefined_values_are_among_the_remarks(tmp_path):
    task, files = write_task(tmp_path / "task", ["whole", "part"], ["q1", "q2", "q3"])
    lines = Path(files[1]).read_text().splitlines(keepends=True)
    Path(files[1]).write_text("".join(line for line in lines if not line.startswith("q3")))
    make(task, files, tmp_path / "out")
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert any("part: has nothing for 1 judged topic, such as q3" in line for line in record["remarks"])
    assert any("undefined" in line and "q3" in line for line in record["remarks"])
    parsed = Page((tmp_path / "out" / "index.html").read_text(encoding="utf-8"))
    for line in record["remarks"]:
        assert line in parsed.text
    assert [cell.get("title") for cell in parsed.all("td") if cell.get("class") == "undefined"][:2] == [
        None,
        "AWRF G@10: 1 D_group G@10: 1 DP G g1@10: 1 ",
    ]


def test_sampling_error_is_shown_separately_with_a_warning(sample, tmp_path):
    place = sample.parent / "task"
    files = [str(path) for path in sorted(place.glob("*.run"))]
    make(place / "task.toml", files, tmp_path / "few", "--policy", "pl", "--samples", "5")
    record = json.loads((tmp_path / "few" / "report.json").read_text())
    noisy = [m for m in record["means"] if m["notable"]]
    assert noisy and all(m["measure"] == "ERR@10" for m in noisy)  # the others are exact
    assert all(m["sampling_se"] is None for m in record["means"] if m["measure"] == "nDCG@10")
    text = Page((tmp_path / "few" / "index.html").read_text(encoding="utf-8")).text
    assert "Sampling error is not negligible" in text and "MC ±" in text
    text = Page((sample / "index.html").read_text(encoding="utf-8")).text
    assert "Sampling error" not in text and "MC ±" not in text


SUMMARY_HEAD = "policy,method,lambda,seed,split,measure,value,se\n"


def write_summary(folder: Path) -> None:
    folder.mkdir()
    lines = []
    ndcg, d_group = "nDCG(dcg='exp-log2')", "D_group(attr='group')"

    def row(policy, method, lam, seed, split, measure, value, se=""):
        lines.append(f"{policy},{method},{lam},{seed},{split},{measure},{value},{se}\n")

    for split in ("train", "valid", "test"):
        for seed in (0, 1, 2):
            for lam in (0, 1, 10):
                at = f"fair-pg-rank-lambda{lam}-seed{seed}", "fair-pg-rank", lam, seed, split
                row(*at, ndcg, 0.9 - 0.01 * lam + 0.001 * seed)
                row(*at, "ERR", 0.5 - 0.01 * lam, 0.001)
                row(*at, d_group, 0.02 / (1 + lam))
        row("ridge-seed0", "ridge", 0, 0, split, ndcg, 0.85)
        row("ridge-seed0", "ridge", 0, 0, split, d_group, "")
        row("mine-seed0", "<img/src=x>", 0, 0, split, ndcg, 0.8)
        row("mine-seed0", "<img/src=x>", 0, 0, split, d_group, 0.01)
    (folder / "summary.csv").write_text(SUMMARY_HEAD + "".join(lines))


def test_trained_policies_have_their_section(sample, tmp_path):
    write_summary(tmp_path / "trained")
    place = sample.parent / "task"
    files = [str(path) for path in sorted(place.glob("*.run"))]
    make(place / "task.toml", files, tmp_path / "out", "--trained", str(tmp_path / "trained"))
    parsed = Page((tmp_path / "out" / "index.html").read_text(encoding="utf-8"))
    assert "trained" in [s["id"] for s in parsed.all("section")]
    assert "<img/src=x>" in parsed.text
    alt = " ".join(image["alt"] for image in parsed.all("img"))
    assert "from 0.9010 at λ=0 to 0.8010 at λ=10" in alt
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert {"figures/trained-lambda.svg", "figures/trained-plane.svg"} <= set(record["figures"])
    assert "training summary" in [file["role"] for file in record["files"]]


def test_a_summary_is_averaged_over_seeds(tmp_path):
    write_summary(tmp_path / "trained")
    summary = read_summaries([tmp_path / "trained"])
    assert summary.utility == "nDCG(dcg='exp-log2')" and summary.disparity == "D_group(attr='group')"
    assert summary.shown_splits == ["train", "test"]
    assert summary.swept == ("fair-pg-rank",)
    first = summary.of_family("fair-pg-rank", "test", summary.utility)[0]
    assert (first.lam, first.seeds) == (0, 3)
    assert first.mean == pytest.approx(0.901) and first.deviation == pytest.approx(0.001)
    assert math.isnan(summary.of_family("ridge", "test", "D_group(attr='group')")[0].mean)


def test_a_policy_under_a_bound_is_a_point_with_its_bound_and_without_its_greedy_reading():
    name = "fair-pg-rank-max0.01-seed0"
    rows = [
        SummaryRow(policy, "fair-pg-rank", math.nan, 0, "test", measure, value, math.nan, 0)
        for policy, both in ((name, (0.8, 0.009)), (f"{name}.greedy", (0.9, 0.03)))
        for measure, value in zip(("nDCG(dcg='exp-log2')", "D_group(attr='group')"), both, strict=True)
    ]
    with new_figure(5, 4) as figure:
        axes = figure.add_subplot()
        draw_plane(axes, TrainingSummary.of(rows))
    assert axes.get_legend_handles_labels()[1] == ["fair-pg-rank, D ≤ ε"]
    assert [text.get_text() for text in axes.texts] == ["ε=0.01"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "summary.csv:1: columns a, b; expected a header with policy, method, lambda"),
        (SUMMARY_HEAD + "p,m,0,0,test,ERR,much,\n", "summary.csv:2: 'much'; expected a finite number"),
        (SUMMARY_HEAD + "p,m,0,0,test,ERR,inf,\n", "summary.csv:2"),
        (SUMMARY_HEAD + "p,m,0,0\n", "summary.csv:2: 4 columns: 'p,m,0,0'; expected 8 (policy, method"),
        (None, "cannot be read"),
    ],
)
def test_an_invalid_summary_is_reported_with_file_and_line(tmp_path, text, message):
    if text is not None:
        (tmp_path / "summary.csv").write_text(text)
    with pytest.raises(InputError, match=re.escape(message)):
        read_summaries([tmp_path])


def test_an_unknown_baseline_or_reference_is_an_error(sample, tmp_path):
    place = sample.parent / "task"
    for option in ("--baseline", "--reference"):
        with pytest.raises(FairevalsError, match="nobody"):
            make(place / "task.toml", [str(place / "00.run")], tmp_path / "out", option, "nobody")
    assert not (tmp_path / "out").exists()


def test_pareto_front_by_hand():
    costs = np.array([[1, 3], [2, 2], [3, 1], [2, 2], [3, 3], [1, np.nan]], dtype=float)
    assert pareto(costs).tolist() == [True, True, True, True, False, False]


def test_the_front_respects_directions():
    values = np.array([[[0.9], [0.5], [0.4]], [[0.8], [0.1], [-0.1]], [[0.7], [0.2], [0.0]]])
    measures = tuple(map(parse_measure, ("nDCG@10", "D_ind", "DP(attr='G',protected='g')")))
    means = board(Scores(("a", "b", "c"), measures, ("t",), values, np.full(values.shape, np.nan)))
    assert [ranking_of_runs(means.scores, m) for m in range(3)] == [[0, 1, 2], [1, 2, 0], [2, 1, 0]]
    assert [means.winner(m) for m in range(3)] == [0, 1, 2] and means.order == [0, 1, 2]
    best = [[entry.best for entry in row] for row in means.entries]
    assert best == [[True, False, False], [False, True, False], [False, False, True]]


def test_an_incomplete_run_never_wins():
    """By hand: c leaves out its worst topic and would be best on both measures."""
    nan = np.nan
    values = np.array(
        [
            [[0.9, 0.9], [0.5, 0.5]],
            [[0.8, 0.8], [0.2, 0.2]],
            [[1.0, nan], [0.1, nan]],
            [[nan, nan], [nan, nan]],
        ]
    )
    measures = tuple(map(parse_measure, ("nDCG@10", "D_ind")))
    means = board(Scores(tuple("abcd"), measures, ("1", "2"), values, np.full(values.shape, nan)))
    assert [[entry.incomplete for entry in row] for row in means.entries] == [[False] * 2] * 2 + [
        [True] * 2
    ] * 2
    assert means.order == [0, 1, 2, 3] and ranking_of_runs(means.scores, 1) == [1, 0, 2, 3]
    assert [[entry.best for entry in row] for row in means.entries] == [
        *([True, False], [False, True], [False, False], [False, False])
    ]
    assert [means.winner(m) for m in (0, 1)] == [0, 1]
    assert means.front(0, 1) == [0, 1]


def test_no_run_wins_where_all_are_incomplete():
    values = np.array([[[0.9, np.nan]], [[np.nan, 0.8]]])
    means = board(
        Scores(("a", "b"), (parse_measure("D_ind"),), ("1", "2"), values, np.full(values.shape, np.nan))
    )
    assert means.winner(0) is None and not means.any("best")


def test_silence_does_not_win_on_the_page(tmp_path):
    """A run that leaves out all but the topic with its smallest D_group would have the smallest mean."""
    topics = [f"q{i}" for i in range(5)]
    task, files = write_task(tmp_path / "task", ["whole", "silent"], topics)
    make(task, files, tmp_path / "all")
    with (tmp_path / "all" / "scores.csv").open() as file:
        values = {
            (row["run"], row["topic"]): float(row["value"])
            for row in csv.DictReader(file)
            if row["measure"].startswith("D_group")
        }
    kept = min(topics, key=lambda topic: values["silent", topic])
    assert values["silent", kept] < values["whole", "all"]
    lines = Path(files[1]).read_text().splitlines(keepends=True)
    Path(files[1]).write_text("".join(line for line in lines if line.split()[0] == kept))
    make(task, files, tmp_path / "out")
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    silent = {m["measure"]: m for m in record["means"] if m["run"] == "silent"}
    measure = next(name for name in silent if name.startswith("D_group"))
    assert silent[measure]["value"] == pytest.approx(values["silent", kept])
    assert silent[measure]["incomplete"] and not silent[measure]["best"]
    assert not silent["nDCG@10"]["incomplete"]  # a missing topic is 0 for utility
    assert [front["runs"] for front in record["fronts"]] == [["whole"]] * 3
    assert any("silent: incomplete for AWRF(attr='G')@10" in line for line in record["remarks"])
    page = Page((tmp_path / "out" / "index.html").read_text(encoding="utf-8"))
    assert page.text.count("listed after the complete runs and never marked best") == 1
    assert sum("data-incomplete" in cell for cell in page.all("td")) == 3
    assert "run, incomplete" in (tmp_path / "out" / "figures" / "tradeoff.svg").read_text()
    answers = page.text[page.text.index("Most useful") : page.text.index("Tested:")]
    assert answers.count("whole") == 2 and "silent" not in answers


def test_a_count_has_no_best_run_and_answers_no_question(sample, tmp_path):
    place = sample.parent / "task"
    files = [str(path) for path in sorted(place.glob("*.run"))]
    make(place / "task.toml", files, tmp_path, "-m", "NumRet", "-m", "nDCG@10", "-m", "AWRF(attr='G')")
    record = json.loads((tmp_path / "report.json").read_text())
    counts = [mean for mean in record["means"] if mean["measure"] == "NumRet"]
    assert [mean["value"] for mean in counts] == [12 * 30] * 4  # 30 documents on each of 12 topics
    assert not any(mean["best"] for mean in counts)
    assert record["measures"][0]["role"] == "other"
    text = Page((tmp_path / "index.html").read_text(encoding="utf-8")).text
    answers = text[text.index("In short", text.index("Glossary")) : text.index("Tested:")]
    assert "nDCG@10" in answers and "NumRet" not in answers


def test_the_status_of_a_run_is_shown_and_decides_the_family(tmp_path):
    task, files = write_task(tmp_path, list("abcde"), ["q1", "q2", "q3"])
    collection = load_collection(task)
    report = gather(files, collection, Plan.of(collection), baseline="b")
    statuses = ("official", "baseline", "reference", "unofficial", "baseline")
    scores = replace(report.scores, statuses=statuses)
    report = replace(report, scores=scores, board=board(scores, baseline=1))
    assert [report.badges(r) for r in range(5)] == [
        [],
        ["baseline"],
        ["reference"],
        ["unofficial"],
        ["baseline"],
    ]
    write_report(report, tmp_path / "out")
    text = " ".join(Page((tmp_path / "out" / "index.html").read_text(encoding="utf-8")).text.split())
    assert "Letters: Tukey HSD over 2 runs: a, d; outside: b (baseline), c (reference), e (baseline)." in text


def test_roles():
    names = (
        "nDCG@5",
        "AP",
        "ERR",
        "EE_R",
        "EE_L",
        "IAA",
        "GFR",
        "M1(attr='G')",
        "rND(attr='G',protected='g')",
    )
    assert [role(parse_measure(name)) for name in names] == [
        *("utility", "utility", "utility", "utility", "fairness", "fairness", "both", "both", "fairness")
    ]


def test_fairness_is_added_where_the_task_has_none(tmp_path):
    task, files = write_task(tmp_path, ["a", "b"], ["q1", "q2"])
    collection = load_collection(task)
    for asked, given, added in (
        (["nDCG@5"], False, ["AWRF(attr='G')@10"]),
        (["nDCG@5"], True, []),
        (["GFR(util='ERR')@5"], True, ["ERR@5", "GF(attr='G')@5"]),
    ):
        plan = Plan.of(collection, asked)
        report = gather(files, collection, plan, given=given)
        assert [str(m) for m in report.scores.measures[report.asked :]] == added
        assert [str(m) for m in report.asked_scores().measures] == asked


def test_drivers_and_tipping():
    values = np.array([[[0.2, 0.4, 0.6]], [[0.1, 0.9, 0.6]]])
    scores = Scores(
        ("a", "b"), (parse_measure("nDCG@10"),), ("1", "2", "3"), values, np.full(values.shape, np.nan)
    )
    paired = pair(scores, 0, 1, 0)
    first, second = drivers(paired)
    assert (first["topic"], second["topic"]) == ("2", "1")
    assert first["gain"] == pytest.approx(0.5) and first["without"] == pytest.approx(-0.05)
    assert tipping(paired.gains) == 1


def test_exposure_by_merit_by_hand():
    collection = load_collection(Task(), {"q": {"a": 2, "b": 1, "c": 0}})
    _, merits = run_details({"q": {"a": 1.0, "c": 2.0}}, collection, PolicySpec())
    assert merits.levels.tolist() == [0, 1, 2] and merits.documents == (1, 1, 1)
    assert merits.mean == pytest.approx([1, 0, 1 / np.log2(3)])
    assert merits.slope == pytest.approx((1 + 1 / np.log2(3)) / 3)


def test_a_report_of_many_runs_stays_small(tmp_path):
    topics = [f"q{i}" for i in range(20)]
    task, files = write_task(tmp_path / "task", [f"system-{i:02}" for i in range(30)], topics)
    make(task, files, tmp_path / "out")
    assert (tmp_path / "out" / "index.html").stat().st_size < 3_000_000
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert len({one["run"] for one in record["distributions"]}) == PANELS
    assert any("drawn for 6 of 30 runs" in line for line in record["remarks"])


def many_groups(place: Path, kind: str, names: list[str]) -> tuple[Path, list[str]]:
    """The task with one group for each of the documents, of which the first 12 have most of the grades."""
    task, files = write_task(place, ["a", "b"], ["q1", "q2"])
    (place / "g.csv").write_text("doc,group\n" + "".join(f"d{i:02},{names[i]}\n" for i in range(30)))
    text = task.read_text().replace('kind = "nominal"', f'kind = "{kind}"').replace("'g1'", f"'{names[1]}'")
    task.write_text(re.sub(r"groups = .*", f"groups = {json.dumps(names)}", text))
    return task, files


def test_of_many_nominal_groups_the_largest_are_shown(tmp_path):
    names = [f"n{i}" for i in range(28)] + ["others", "(others)"] + [f"n{i}" for i in range(30, 3000)]
    task, files = many_groups(tmp_path / "task", "nominal", names)
    task.write_text(task.read_text() + 'target = "relevant"\n')
    make(task, files, tmp_path / "out")
    assert sum(path.stat().st_size for path in (tmp_path / "out").rglob("*")) < 2_000_000
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    first, second = record["distributions"]
    assert first["groups"] == second["groups"] and len(first["groups"]) == 12
    assert first["groups"][-1] == "((others))" and first["counts"] == [1] * 11 + [2989]
    assert [sum(row) for one in (first, second) for row in one["achieved"]] == pytest.approx([1] * 20)
    # The shares by hand: documents are groups, so a group has 1/k of the first k ranks where it has a document there.
    collection = load_collection(task)
    whole = {
        run: run_details(file, collection, PolicySpec(), attributes=["G"], depth=10, cutoff=10)[0][0]
        for run, file in zip("ab", files, strict=True)
    }
    size = sum(one.target + one.achieved[-1] for one in whole.values())
    largest = sorted(sorted(range(3000), key=lambda g: -size[g])[:11])
    assert first["groups"][:-1] == [names[g] for g in largest]
    for one in (first, second):
        assert one["achieved"][-1][:-1] == whole[one["run"]].achieved[-1][largest].tolist()
    page = Page((tmp_path / "out" / "index.html").read_text(encoding="utf-8"))
    assert "Of 3,000 groups the 11 largest are drawn; ((others)) are the other 2,989, summed." in page.text
    assert "n11, … (3,000 groups)" in page.text


@pytest.mark.parametrize("target", ["uniform", "relevant"])
def test_many_ordinal_groups_are_joined_to_ranges(tmp_path, target):
    """With the target of the relevant documents, the last 270 groups have no share at all."""
    names = [f"n{i}" for i in range(300)]
    task, files = many_groups(tmp_path / "task", "ordinal", names)
    task.write_text(task.read_text() + f'target = "{target}"\n')
    make(task, files, tmp_path / "out")
    one = json.loads((tmp_path / "out" / "report.json").read_text())["distributions"][0]
    assert len(one["groups"]) == len(one["counts"]) <= 12 and sum(one["counts"]) == 300
    ends = np.cumsum(one["counts"]) - 1
    assert one["groups"] == [
        f"n{end}" if count == 1 else f"n{end - count + 1} – n{end}"
        for end, count in zip(ends.tolist(), one["counts"], strict=True)
    ]
    assert sum(one["target"]) == pytest.approx(1) and sum(one["achieved"][-1]) == pytest.approx(1)
    if target == "uniform":
        assert one["target"] == pytest.approx([count / 300 for count in one["counts"]])
    text = Page((tmp_path / "out" / "index.html").read_text(encoding="utf-8")).text
    assert f"The 300 groups are drawn as {len(one['groups'])} ranges of neighbours." in text


def test_areas_of_more_than_eight_groups_differ():
    assert len({filling(series) for series in range(64)}) == 64


def test_the_best_on_a_topic_group_are_those_of_the_leaderboard():
    """Also those that only sampling error keeps apart, and a run that is the only complete one."""
    values = np.array([[[0.50, 0.50]], [[0.51, 0.51]], [[0.9, np.nan]]])
    scores = Scores(
        ("a", "b", "c"), (parse_measure("AWRF(attr='S')"),), ("1", "2"), values, values * 0 + 0.02
    )
    assert _means(scores, np.zeros((3, 1, 2)))["best"].tolist() == [[1], [1], [0]]
    scores = replace(scores, values=values[[0, 2, 2]], runs=("a", "c", "d"))
    assert _means(scores, np.zeros((3, 1, 2)))["best"].tolist() == [[1], [0], [0]]


def test_values_by_topic_are_limited(tmp_path, monkeypatch):
    task, files = write_task(tmp_path, ["a", "b", "c"], ["q1", "q2"])
    collection = load_collection(task)
    report = gather(files, collection, Plan.of(collection), baseline="a")
    monkeypatch.setattr("fairevals.report.data.MAX_VALUES", 20)
    assert [value is not None for value in page_data(report)["values"]].count(True) == 2
    monkeypatch.setattr("fairevals.report.data.MAX_VALUES", 5)
    assert page_data(report)["values"] == [None] * 3 and page_data(report)["topics"] == []
    write_report(report, tmp_path / "out")


def test_groups_from_python_and_attribute_names_make_safe_files(tmp_path):
    name = "../../<b>x"
    attribute = Attribute.of(name, {"a": "one", "b": "two"})
    collection = load_collection(Task(), {"q": {"a": 1, "b": 1}}, {name: attribute})
    runs = [{"q": {"a": 2.0, "b": 1.0}}]
    report = gather(runs, collection, Plan.of(collection, [f"AWRF(attr={name!r})", "nDCG@5"]))
    files = write_report(report, tmp_path / "out")
    assert tmp_path / "out" / "figures" / f"ranks-1-{safe_name(name)}.svg" in files
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_labels_tell_names_apart():
    names = ["x" * 50, "x" * 60, "a\u202eb", "ok"]
    assert labels(names, 10) == ["…xx", "…xxxxxxxx…", "a\\u202eb", "ok"]


def test_embedded_figures_follow_the_scheme():
    import base64

    uri = data_uri(
        b'<?xml version="1.0"?><svg xmlns="x"><path style="fill: #222222; stroke: #D55E00"/></svg>'
    )
    text = base64.b64decode(uri.partition(",")[2]).decode()
    assert text.startswith("<svg") and "fill: var(--ink); stroke: #D55E00" in text
    assert "prefers-color-scheme:dark" in text


@pytest.mark.thorough
def test_the_demo_writes_a_report(tmp_path):
    command = [sys.executable, "-m", "fairevals", "demo", "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "fair-rerank" in done.stdout and "out/index.html" in done.stdout and "next:" in done.stdout
    record = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert record["format"] == REPORT.format
    assert all("/" not in file["name"] for file in record["files"])
    assert (tmp_path / "out" / "index.html").stat().st_size < 1_500_000
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("")
    done = subprocess.run([*command[:-1], "mine"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and [path.name for path in (tmp_path / "mine").iterdir()] == ["x"]


def test_an_attribute_without_memberships_is_skipped(tmp_path):
    task, files = write_task(tmp_path / "task", ["a", "b"], ["q1", "q2"])
    task.write_text(task.read_text() + '[attributes.LATER]\ngroups = ["x", "y"]\n')
    assert make(task, files, tmp_path / "out", "-m", "nDCG@5") == 0
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert {one["attribute"] for one in record["distributions"]} == {"G"}


def test_a_folder_of_parquet_files_is_a_run_as_in_score(tmp_path):
    pytest.importorskip("pyarrow", reason="reading parquet needs pyarrow")
    import hashlib

    import pandas as pd

    task, files = write_task(tmp_path / "task", ["a", "b"], ["q1", "q2", "q3"])
    columns = ["topic", "Q0", "doc", "rank", "score", "tag"]
    frame = pd.read_csv(files[1], sep=" ", names=columns)[["topic", "doc", "score"]]
    folder = tmp_path / "b"
    folder.mkdir()
    for name, rows in (("1.parquet", frame[frame.topic != "q3"]), ("2.parquet", frame[frame.topic == "q3"])):
        rows.to_parquet(folder / name)
    make(task, files, tmp_path / "files")
    make(task, [files[0], str(folder)], tmp_path / "folders")
    first, second = (json.loads((tmp_path / out / "report.json").read_text()) for out in ("files", "folders"))
    for part in ("means", "distributions", "exposure", "comparisons"):
        assert first[part] == second[part]
    lines = [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in ("1.parquet", "2.parquet")
    ]
    info = second["files"][-1]
    assert info["name"] == "b/" and info["sha256"] == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_undefined_shares_are_reported_as_undefined(tmp_path):
    task, files = write_task(tmp_path / "task", ["known", "unknown"], ["q1", "q2"])
    task.write_text(task.read_text() + 'unmapped = "skip"\n')
    Path(files[1]).write_text("q1 Q0 new 1 1 unknown\nq2 Q0 new 1 1 unknown\n")
    make(task, files, tmp_path / "out")
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    shares = {one["run"]: one for one in record["distributions"]}
    assert [sum(row) for row in shares["known"]["achieved"]] == pytest.approx([1] * 10)
    assert shares["unknown"]["topics"] == 0 and shares["unknown"]["achieved"][0] == [None] * 3
    assert any("unknown: shares of the groups of G are undefined" in line for line in record["remarks"])


def test_a_run_from_a_pipe_is_read_once(tmp_path):
    task, files = write_task(tmp_path / "task", ["a", "b"], ["q1", "q2"])
    program = (
        "import sys; from pathlib import Path; from report_cases import make; "
        "make(sys.argv[1], sys.argv[2:4], Path(sys.argv[4]))"
    )
    with Path(files[0]).open("rb") as pipe:
        done = subprocess.run(
            [sys.executable, "-c", program, str(task), "-", files[1], str(tmp_path / "out")],
            stdin=pipe,
            cwd=TOP / "tests",
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert sorted(record["leaderboard"]) == ["a", "b"]
    assert None in [file["sha256"] for file in record["files"]]


THIN_TASK = """
cutoff = 5
measures = ["nDCG@5", "AWRF(attr='G')", "D_group(attr='G')", "D_ind", "AWRF(attr='H')"]
[attributes.G]
groups = ["x", "y"]
memberships = "g.csv"
target = "relevant"
unmapped = "skip"
[attributes.H]
groups = ["x", "y"]
memberships = "g.csv"
topics = ["nosuch*"]
"""
THIN_QRELS = {
    "two topics": "q1 0 a 1\nq1 0 b 0\nq1 0 c 2\nq2 0 a 1\nq2 0 b 1\n",
    "one topic": "q1 0 a 1\nq1 0 b 0\n",
    "nothing relevant": "q1 0 a 0\nq1 0 b 0\nq2 0 a 0\n",
}
THIN_RUNS = {
    "good": "q1 Q0 a 1 3 good\nq1 Q0 b 2 2 good\nq2 Q0 b 1 1 good\n",
    "other": "q1 Q0 b 1 3 other\nq1 Q0 a 2 2 other\nz Q0 a 1 1 other\n",
    "unjudged": "q1 Q0 u 1 3 unjudged\nq1 Q0 v 2 2 unjudged\nq2 Q0 w 1 1 unjudged\n",
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("policy", ["ranking", pytest.param("pl", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("runs", [["good"], ["unjudged"], ["good", "other"], ["good", "unjudged"]])
@pytest.mark.parametrize("qrels", THIN_QRELS)
def test_a_report_on_next_to_nothing(tmp_path, qrels, runs, policy):
    """Unjudged documents only, one topic, one run, nothing relevant, an attribute that applies nowhere."""
    (tmp_path / "t.toml").write_text(f'qrels = "q"\n{THIN_TASK}')
    (tmp_path / "q").write_text(THIN_QRELS[qrels])
    (tmp_path / "g.csv").write_text("doc,group\na,x\nb,y\nc,x\n")
    for run in runs:
        (tmp_path / run).write_text(THIN_RUNS[run])
    files = [str(tmp_path / run) for run in runs]
    assert make(tmp_path / "t.toml", files, tmp_path / "out", "--policy", policy, "--samples", "4") == 0
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    values = {(mean["run"], mean["measure"]): mean["value"] for mean in record["means"]}
    for run in runs:
        assert values[run, "AWRF(attr='H')@5"] is None  # and not 0, which would be perfect
        if run == "unjudged" or qrels == "nothing relevant":
            assert values[run, "AWRF(attr='G')@5"] is None
            assert values[run, "nDCG@5"] in ([None, 0] if qrels == "nothing relevant" else [0])
    assert "<table" in (tmp_path / "out" / "index.html").read_text()


def test_a_run_without_a_judged_topic_among_others_is_an_error_and_writes_nothing(tmp_path):
    task, files = write_task(tmp_path / "task", ["a", "b"], ["q1", "q2"])
    Path(files[1]).write_text("z1 Q0 d01 1 1 b\n")
    with pytest.raises(InputError, match="no topic that is judged"):
        make(task, files, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["task"]


@pytest.mark.parametrize(
    "backend",
    ["nonsense", *(pytest.param(text, marks=pytest.mark.thorough) for text in ("module://nothing", ""))],
)
def test_figures_need_no_backend(tmp_path, backend):
    """The environment may name a backend that matplotlib does not know and refuses to be imported with."""
    root = Path(__file__).parents[1]
    words = ["--qrels", str(root / "qrels" / "sample.qrels"), str(root / "runs" / "bm25.run")]
    for command in (["exposure", "--figure", "x.svg"], ["report", "-m", "P@1", "-o", "out"]):
        done = subprocess.run(
            [sys.executable, "-m", "fairevals", *command, *words],
            cwd=tmp_path,
            env=os.environ | {"MPLBACKEND": backend, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert (tmp_path / "x.svg").exists()
    assert (tmp_path / "out" / "index.html").exists()

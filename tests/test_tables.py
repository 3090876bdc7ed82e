"""What tables show beyond values: labels of measures, topic groups, intervals, teams and statuses, matrices."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

import fairevals as fe
from fairevals.cli.main import main

TOP = Path(__file__).resolve().parents[1]
SAMPLE = TOP / "qrels" / "task.toml"
RUNS = [str(TOP / "runs" / f"{name}.run") for name in ("bm25", "dense", "fair-rerank", "random")]
GFR = "GFR(util='ERR')@20"


def printed(capsys, *words: str) -> str:
    assert main(list(words)) == 0
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """The sample task with labels, topic groups and teams."""
    folder = tmp_path_factory.mktemp("task")
    rows = [f"{RUNS[0]},=1+1,baseline", f"{RUNS[1]},B & Co,official", f"{RUNS[3]},,reference"]
    (folder / "runs.csv").write_text("\n".join(["file,team,status", *rows, ""]), encoding="utf-8")
    text = SAMPLE.read_text(encoding="utf-8")
    text = re.sub(r'"(sample\.|topics\.)', rf'"{SAMPLE.parent.as_posix()}/\1', text)
    label = """{ measure = "GFR(util='ERR')", label = "GFR_ERR" }"""
    start, end = text.index("measures ="), text.index("[attributes.HINDEX]")
    groups = '[topic_groups.TYPE]\nR = ["R*"]\nM = ["M*"]\n'
    file = folder / "task.toml"
    file.write_text(f'{text[:start]}measures = ["nDCG@10", {label}]\n{groups}{text[end:]}', encoding="utf-8")
    return str(file)


@pytest.fixture(scope="module")
def report(task, tmp_path_factory):
    folder = tmp_path_factory.mktemp("out") / "report"
    assert main(["report", "--task", task, *RUNS, "--by", "TYPE", "-o", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def record(report):
    return json.loads((report / "report.json").read_text(encoding="utf-8"))


def test_labels_are_displayed_and_names_stay_in_files(task, capsys):
    score = ["score", "--task", task, *RUNS]
    for style, label in (("table", "GFR_ERR ↑"), ("latex", r"GFR\_ERR $\uparrow$")):
        out = printed(capsys, *score, "--format", style)
        assert label in out
        assert "GFR(" not in out
        out = printed(capsys, "compare", "--task", task, *RUNS, "--baseline", "bm25", "--format", style)
        assert label in out
        assert "GFR(" not in out
    # By the full name, which is that of the task at its cutoff, as much as by the task's own.
    assert "GFR_ERR" in printed(capsys, *score, "-m", GFR)
    assert f'"{GFR}"' in printed(capsys, *score, "--format", "json")
    assert "GFR_ERR" not in printed(capsys, *score, "--format", "csv")


def test_a_dict_of_measures_is_a_task_with_labels(task, capsys):
    labelled = fe.evaluate(RUNS, task=task, measures={"nDCG@10": fe.nDCG @ 10, "GFR_ERR": "GFR(util='ERR')"})
    assert labelled.render() == printed(capsys, "score", "--task", task, *RUNS)
    assert list(labelled.pivot().columns) == ["nDCG@10", GFR]
    assert "mine ↑" in str(fe.evaluate(RUNS, task=task, measures={"mine": GFR}))


def test_labels_in_the_report(report, record):
    measures = [(one["name"], one["label"]) for one in record["measures"][:2]]
    assert measures == [("nDCG@10", "nDCG@10"), (GFR, "GFR_ERR")]
    page = (report / "index.html").read_text(encoding="utf-8")
    assert '">GFR_ERR</a>' in page
    assert f'">{GFR}</a>' not in page
    assert "GFR_ERR" in (report / "figures" / "agreement.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("label", ["same", "RR@20"])
def test_labels_that_collide(label):
    measures = [{"measure": "ERR", "label": label}, {"measure": "RR", "label": "same"}]
    measures = measures if label == "same" else [measures[0], "RR"]
    task = fe.Task(qrels=TOP / "qrels" / "sample.qrels", cutoff=20, measures=measures)
    with pytest.raises(fe.UsageError, match=f"ERR@20 and RR@20 are both displayed as '{label}'"):
        fe.evaluate(RUNS[0], task=task)


def by_topic(frame):
    """The rows of topics, with the first letter of the topic as its group."""
    frame = frame[frame.topic != "all"].dropna(subset=["value"])
    return frame.assign(group=frame.topic.str[0])


@pytest.mark.parametrize("style", ["table", "csv", "json", "latex"])
@pytest.mark.parametrize("options", [{"by": "TYPE"}, {"ci": True}, {"by": "TYPE", "ci": True}])
def test_the_command_prints_what_python_does(task, capsys, style, options):
    words = {"by": ["--by", "TYPE"], "ci": ["--ci"]}
    given = [word for name in options for word in words[name]]
    out = printed(capsys, "score", "--task", task, *RUNS, "--format", style, *given)
    assert out == fe.evaluate(RUNS, task=task).render(style, **options)


def test_values_by_topic_group(task, capsys):
    measures = ["-m", "nDCG@10", "-m", "D_ind@20", "-m", "DP(attr='ORIGIN',protected='Africa')"]
    out = printed(capsys, "score", "--task", task, *RUNS, *measures, "--by", "TYPE", "--format", "csv")
    rows = pd.read_csv(io.StringIO(out), keep_default_na=False, dtype=str)
    assert list(rows.columns) == ["run", "topic", "measure", "value", "se", "group", "gap", "worst"]
    assert set(rows.topic) == {"all"}
    result = fe.evaluate(RUNS, task=task, measures=measures[1::2])
    expected = by_topic(result.frame(per_topic=True)).groupby(["run", "measure", "group"])["value"].mean()
    means = rows[rows.group != ""].set_index(["run", "measure", "group"])["value"]
    for at, value in means.items():
        assert (float(value) if value else None) == (pytest.approx(expected[at]) if at in expected else None)
    overall = rows[rows.group == ""].set_index(["run", "measure"])
    for (run, measure), row in overall.iterrows():
        values = expected[run, measure]
        if "DP" in measure:  # undefined for one group
            assert row.gap == row.worst == ""
            continue
        assert float(row.gap) == pytest.approx(values.max() - values.min())
        assert row.worst == (values.idxmin() if measure == "nDCG@10" else values.idxmax())
        assert float(row.value) == result[run][measure]


def test_the_table_by_topic_group(task, capsys):
    out = printed(capsys, "score", "--task", task, *RUNS, "-m", "nDCG@10", "-m", "ERR", "--by", "TYPE")
    lines = out.splitlines()
    assert lines[0].split() == ["measure", "run", "R", "M", "gap", "worst"]
    assert lines[-1].split()[:3] == ["topics", "20", "20"]
    assert max(map(len, lines)) <= 80
    best = fe.evaluate(RUNS, task=task).by("TYPE").xs("nDCG@10", level="measure")
    first = next(line for line in lines if line.startswith("nDCG@10"))
    assert best.R.idxmax() == first.split()[2]
    assert first.count("*") == 2  # the best run of both groups


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--by", "NONE"], "unknown topic groups 'NONE'"),
        (["--by", "TYPE", "-q"], "by topic or by topic group"),
        (["--by", "TYPE", "--format", "tsm"], "omit --by and --ci"),
        (["--format", "tsm"], "one measure"),
    ],
)
def test_wrong_options_of_score(task, capsys, words, message):
    assert main(["score", "--task", task, *RUNS, *words]) == 2
    assert message in capsys.readouterr().err


def test_a_group_without_topics_is_an_error_before_the_work(task, tmp_path, capsys):
    groups = tmp_path / "groups.csv"
    groups.write_text("topic,group\nR01,R\nM01,M\n", encoding="utf-8")
    assert "R" in printed(capsys, "score", "--task", task, *RUNS, "--by", str(groups))
    text = Path(task).read_text(encoding="utf-8").replace('M = ["M*"]', 'Y = ["Y*"]')
    other = Path(task).with_name("other.toml")
    other.write_text(text, encoding="utf-8")
    for command in (["score"], ["compare", "--all-pairs"], ["report", "-o", str(tmp_path / "r")]):
        assert main([*command, "--task", str(other), *RUNS, "missing.run", "--by", "TYPE"]) == 1
        line = text[: text.index("[topic_groups.TYPE]")].count("\n") + 1
        assert (
            f"other.toml:{line}: topic groups TYPE: no judged topic is in the group 'Y'"
            in capsys.readouterr().err
        )


def test_comparisons_within_a_group_are_those_of_its_topics(task, tmp_path, capsys):
    lines = (SAMPLE.parent / "sample.qrels").read_text(encoding="utf-8").splitlines(keepends=True)
    for choice in ({"baseline": "bm25"}, {"all_pairs": True}):
        words = ["--baseline", "bm25"] if "baseline" in choice else ["--all-pairs"]
        words = ["compare", "--task", task, *RUNS, *words, "--by", "TYPE", "-m", "nDCG@10"]
        grouped = fe.evaluate(RUNS, task=task, measures="nDCG@10").compare(**choice, by="TYPE")
        for style in ("table", "csv", "json", "latex"):
            assert printed(capsys, *words, "--format", style) == grouped.render(style)
        frame = grouped.frame()
        for group in "RM":
            qrels = tmp_path / f"{group}.qrels"
            qrels.write_text("".join(line for line in lines if line.startswith(group)), encoding="utf-8")
            alone = fe.evaluate(RUNS, qrels, "nDCG@10", task=task).compare(**choice).frame()
            mine = frame[frame.group == group].drop(columns="group").reset_index(drop=True)
            assert mine[["run", "p", "difference", "topics"]].equals(
                alone[["run", "p", "difference", "topics"]]
            )


def test_intervals_are_those_of_the_t_distribution(task, capsys):
    out = printed(capsys, "score", "--task", task, *RUNS, "--ci", "-q", "--format", "csv")
    rows = pd.read_csv(io.StringIO(out))
    values = rows[rows.topic != "all"].groupby(["run", "measure"])["value"]
    assert rows[rows.topic != "all"][["low", "high"]].isna().all(axis=None)
    for row in rows[rows.topic == "all"].itertuples():
        mine = values.get_group((row.run, row.measure))
        expected = scipy_stats.t.interval(0.95, len(mine) - 1, mine.mean(), scipy_stats.sem(mine))
        assert (row.low, row.high) == pytest.approx(expected)


def test_latex_has_letters_and_intervals_as_the_report(task, report, record, capsys):
    text = printed(capsys, "score", "--task", task, *RUNS, "--ci", "--format", "latex")
    assert text == fe.evaluate(RUNS, task=task).to_latex(ci=True)
    assert r"\textbf{0.8158}\textsuperscript{a} [0.786, 0.846]" in text
    assert (report / "leaderboard.tex").read_text(encoding="utf-8") == text
    rows = pd.read_csv(report / "leaderboard.csv", keep_default_na=False)
    assert list(rows.run) == record["leaderboard"]
    assert list(rows.columns[:5]) == ["rank", "run", "team", "status", "nDCG@10"]
    for one in record["means"]:
        row = rows[rows.run == one["run"]].iloc[0]
        assert row[one["measure"]] == one["value"]
        assert [row[f"{one['measure']} {name}"] for name in ("low", "high", "letters")] == [
            *(one["low"], one["high"], one["letters"])
        ]


def test_all_pairs(capsys):
    runs = [str(path) for path in sorted((TOP / "runs").glob("*.run"))]
    measures = ["nDCG@10", "D_ind@20"]
    task = fe.Task(
        qrels=TOP / "qrels" / "sample.qrels", cutoff=20
    )  # without statuses: all eight are compared
    result = fe.evaluate(runs, task=task, measures=measures)
    pairs = result.compare(all_pairs=True)
    words = ["compare", "--qrels", str(TOP / "qrels" / "sample.qrels"), *runs, "--all-pairs"]
    words += [word for measure in measures for word in ("-m", measure)]
    for style in ("table", "csv", "json", "latex"):
        assert printed(capsys, *words, "--format", style) == pairs.render(style)
    frame = pairs.frame()
    assert len(frame[frame.measure == "nDCG@10"]) == 8 * 7 / 2
    for row in frame.itertuples():
        # The better run by the measure's direction comes first, and letters say what p does.
        assert row.difference >= 0 if row.measure == "nDCG@10" else row.difference <= 0
        assert (row.p < 0.05) == (not set(row.letters) & set(row.other_letters)) == (row.verdict == "better")
    assert all(part.p.is_monotonic_increasing for _, part in frame.groupby("measure"))
    # Against one baseline by Tukey's test over the same runs the same p-values are found.
    for one in result.compare("bm25", test="tukey").rows:
        if one.untested:  # a run without a value on some topic, which is outside
            continue
        mine = frame[frame.measure == one.measure]
        both = mine[[{a, b} == {one.run, "bm25"} for a, b in zip(mine.run, mine.other, strict=True)]]
        assert both.p.item() == one.p
        assert abs(both.difference.item()) == pytest.approx(abs(one.difference))
    assert "of 28 pairs differ" in str(pairs)


def test_the_matrix_of_all_pairs_fits_a_terminal(task, capsys, tmp_path):
    figure = tmp_path / "pairs.svg"
    words = ["--task", task, *RUNS, *[str(TOP / "runs" / "popularity.run")], "--all-pairs"]
    out = printed(capsys, "compare", *words, "-m", "nDCG@10", "--figure", str(figure))
    lines = out.splitlines()
    assert max(map(len, lines[:7])) <= 80
    assert lines[0].split() == ["#", "run", "nDCG@10", "↑", "letters", "1", "2"]
    assert lines[4].split() == ["3", "popularity", "0.5680", "b", "<0.001", "*", "<0.001", "*"]
    assert [line.split()[0] for line in lines[5:7]] == ["bm25", "random"]  # outside the family
    assert "fair-rerank a" in figure.read_text(encoding="utf-8")
    assert main(["compare", "--task", task, *RUNS, "--all-pairs", "--test", "wilcoxon"]) == 2
    assert main(["compare", "--task", task, *RUNS, "--baseline", "bm25", "--figure", str(figure)]) == 2


def test_matrices_are_read_back(task, tmp_path, capsys):
    folder = tmp_path / "tsm"
    words = ["-m", "GFR(util='ERR')", "-m", "AWRF(attr='ORIGIN')", "--format", "tsm"]
    assert main(["score", "--task", task, *RUNS, "-m", "Gini", *words, "-o", str(folder)]) == 0
    err = capsys.readouterr().err
    assert "left out of the matrix: 20 topics" in err and "Gini@20: no matrix: it has one value" in err
    result = fe.evaluate(RUNS, task=task, measures=words[1:4:2])
    files = sorted(path.name for path in folder.iterdir())
    assert [name for name in files if name.endswith("m")] == ["AWRF_attr_ORIGIN_20.tsm", "GFR_ERR.tsm"]
    assert (folder / "runs.txt").read_text().split() == list(result.runs)
    for path in folder.glob("*.tsm"):
        matrix = result.matrix("GFR_ERR" if path.stem == "GFR_ERR" else "AWRF(attr='ORIGIN')").dropna()
        assert (np.loadtxt(path) == matrix.to_numpy()).all()
        assert (folder / f"{path.stem}.topics.txt").read_text().split() == list(matrix.index)
    assert list(matrix.columns) == list(result.runs)
    assert printed(capsys, "score", "--task", task, *RUNS, *words[2:], "-p", "3") == result.tsm(
        "AWRF(attr='ORIGIN')", places=3
    )
    assert main(["score", "--task", task, *RUNS, *words, "-o", str(folder)]) == 2  # it is not empty


def test_teams_and_statuses(task, report):
    result = fe.evaluate(RUNS, task=task)
    lines = str(result).splitlines()
    assert lines[0].split()[:3] == ["run", "team", "status"]
    assert lines[2].split()[:5] == ["dense", "B", "&", "Co", "official"]
    assert r"dense & B \& Co & official" in result.to_latex()
    assert "B &amp; Co" in (report / "index.html").read_text(encoding="utf-8")
    rows = pd.read_csv(report / "leaderboard.csv", keep_default_na=False)
    assert rows.set_index("run").team["bm25"] == "'=1+1"  # not a formula for a spreadsheet
    # Without teams and with official runs only there are no such columns.
    assert str(fe.evaluate(RUNS[1], task=SAMPLE)).splitlines()[0].split()[1] == "nDCG@10"


def test_the_report_by_topic_group(task, report, record):
    page = (report / "index.html").read_text(encoding="utf-8")
    groups = fe.evaluate(RUNS, task=task).by("TYPE")
    means = {(row["run"], row["measure"], row["group"]): row["value"] for row in record["by_group"]}
    assert all(means[*at, "R"] == row.R for at, row in groups.iterrows())
    section = page[page.index('id="topic-groups"') : page.index('id="differences"')]
    assert f"{groups.loc[('bm25', 'nDCG@10'), 'M']:.4f}" in section
    assert section.count('<th scope="row">') == len(RUNS) * len(record["measures"])


def test_a_measure_without_any_value(task, capsys):
    qrels = {"R1": {"a": 0}, "M1": {"a": 0}}
    run = {"R1": {"a": 1.0}, "M1": {"a": 1.0}}
    with pytest.warns(fe.FairevalsWarning):
        result = fe.evaluate({"x": run, "y": run}, qrels, ["nDCG@10", "RR"])
    assert result.matrix("nDCG@10").isna().all(axis=None)
    groups = {"R": ["R*"], "M": ["M*"]}
    assert result.by(groups).loc[("x", "nDCG@10"), "gap"] != 0  # undefined, and not "no gap"
    for style in ("table", "csv", "json", "latex", "html"):
        assert result.render(style, by=groups, ci=True)
        assert result.render(style, ci=True)
        assert result.compare(all_pairs=True).render(style)
        assert result.compare(all_pairs=True, by=groups).render(style)
    with pytest.raises(fe.UsageError, match="no topic on which every run has a value"):
        result.tsm("nDCG@10")

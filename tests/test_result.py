"""A notebook shows what a terminal does: `evaluate` and the commands go through one `Result`."""

from __future__ import annotations

import csv
import json
import pickle
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

import fairevals as fe
from fairevals.cli.main import main
from fairevals.evaluation.leaderboard import gap_and_worst
from fairevals.evaluation.scores import Scores
from fairevals.measures import parse_measure

ROOT = Path(__file__).parents[1]
TASK = ROOT / "qrels" / "task.toml"
RUNS = [str(ROOT / "runs" / f"{name}.run") for name in ("bm25", "dense", "random")]
MEASURES = ["nDCG@10", "GFR(util='ERR')@20", "AWRF(attr='ORIGIN')@20", "D_ind"]
OPTIONS = [word for measure in MEASURES for word in ("-m", measure)]


@pytest.fixture(scope="module")
def result():
    return fe.evaluate(RUNS, task=TASK, measures=MEASURES, policy="pl", samples=20, seed=3)


POLICY = ["--policy", "pl", "--samples", "20", "--seed", "3"]


def printed(capsys, *words):
    assert main([words[0], "--task", str(TASK), *RUNS, *words[1:], *OPTIONS, *POLICY]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("style", ["table", "csv", "tsv", "json", "latex"])
@pytest.mark.parametrize("per_topic", [False, True])
def test_score_prints_the_result(result, capsys, style, per_topic):
    words = ["-q"] if per_topic else []
    assert printed(capsys, "score", "--format", style, *words) == result.render(style, per_topic=per_topic)


def test_score_with_components_prints_the_result(capsys):
    options = {"task": TASK, "measures": MEASURES, "policy": "pl", "samples": 20, "seed": 3}
    parts = fe.evaluate(RUNS, **options, components=True)
    names = list(map(str, parts.measures))
    assert names[:3] == ["nDCG@10", "GFR(util='ERR')@20", "ERR@20"] and names[-1].startswith("Unjudged")
    assert printed(capsys, "score", "--components", "--format", "csv", "-q") == parts.render(
        "csv", per_topic=True
    )


def test_the_frame_is_the_csv(result, capsys):
    rows = list(csv.reader(printed(capsys, "score", "--format", "csv", "-q").splitlines()))
    frame = result.frame(per_topic=True)
    assert rows[0] == list(frame.columns)
    texts = [["" if cell != cell else str(cell) for cell in row] for row in frame.itertuples(index=False)]
    assert rows[1:] == texts


@pytest.mark.parametrize("style", ["table", "csv", "latex"])
def test_compare_prints_the_comparisons(result, capsys, style):
    words = ("--baseline", "bm25", "--test", "wilcoxon", "--correct", "bh", "--format", style)
    compared = result.compare("bm25", test="wilcoxon", correct="bh")
    assert printed(capsys, "compare", *words) == compared.render(style)
    assert fe.compare(result, RUNS[0], test="wilcoxon", correct="bh").render(style) == compared.render(style)


def test_the_frame_of_comparisons(result):
    frame = fe.compare(result, "bm25").frame()
    assert list(frame.run.unique()) == ["dense", "random"]
    wide = result.pivot(per_topic=True)["nDCG@10"].unstack("run")
    expected = (wide["dense"] - wide["bm25"]).mean()
    row = frame[(frame.measure == "nDCG@10") & (frame.run == "dense")].iloc[0]
    assert row.difference == pytest.approx(expected)


def test_the_report_is_that_of_the_command(result, capsys, tmp_path):
    groups = tmp_path / "groups.csv"
    groups.write_text("topic,group\nR01,long\nR02,short\nM01,short\n", encoding="utf-8")
    by = {"R01": "long", "R02": "short", "M01": "short"}
    page = result.report(tmp_path / "python", baseline="bm25", by=by)
    assert page == tmp_path / "python" / "index.html"
    words = ("--baseline", "bm25", "--by", str(groups), "-o", str(tmp_path / "command"))
    printed(capsys, "report", *words)
    ours, theirs = (tmp_path / name for name in ("python", "command"))
    assert sorted(p.relative_to(ours) for p in ours.rglob("*")) == sorted(
        p.relative_to(theirs) for p in theirs.rglob("*")
    )
    for name in ("index.html", "scores.csv", "leaderboard.csv", "leaderboard.tex", "report.json"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    with pytest.raises(fe.UsageError, match="is not empty"):
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "mine.txt").write_text("mine")
        result.report(tmp_path / "other")


@pytest.mark.thorough
def test_the_report_with_the_measures_of_the_task(capsys, tmp_path, monkeypatch):
    """Measures that the report adds, and a file of qrels that is not the task's."""
    monkeypatch.chdir(tmp_path)
    qrels = ROOT / "qrels" / "sample.qrels"
    fe.evaluate(RUNS, qrels, task=TASK).report("python")
    assert main(["report", "--task", str(TASK), "--qrels", str(qrels), *RUNS, "-o", "command"]) == 0
    for name in ("index.html", "report.json"):
        assert Path("python", name).read_bytes() == Path("command", name).read_bytes(), name


def test_pivot_has_the_means(result):
    wide = result.pivot()
    assert list(wide.columns) == [str(measure) for measure in result.measures]
    assert list(wide.index) == list(result) == list(result.runs)
    for row in result.frame().itertuples():
        assert wide.loc[row.run, row.measure] == row.value
    topics = result.pivot(per_topic=True)
    assert len(topics) == 3 * len(result.topics)
    long = result.frame(per_topic=True).set_index(["run", "topic", "measure"]).value
    assert topics.loc[("dense", result.topics[4]), "nDCG@10"] == long["dense", result.topics[4], "nDCG@10"]


def test_one_run(result):
    assert len(result) == 3
    pd.testing.assert_series_equal(result["dense"], result.pivot().loc["dense"])
    pd.testing.assert_series_equal(result[RUNS[1]], result["dense"])
    with pytest.raises(
        fe.UsageError, match=r"unknown run or file 'nobody'; expected one of bm25, dense, random"
    ):
        result["nobody"]


def test_it_can_be_pickled(result):
    again = pickle.loads(pickle.dumps(result))
    assert str(again) == str(result)
    pd.testing.assert_frame_equal(again.compare("bm25").frame(), result.compare("bm25").frame())


def test_the_table_of_a_notebook(result):
    html = result._repr_html_()
    assert html.count("<tr>") == 1 + 3 + 2
    assert "<b>" in html
    assert "nDCG@10 ↑" in html
    assert "undefined" in html


def test_the_table_of_a_notebook_is_escaped():
    run = {"q1": {"a": 1.0}}
    names = {"<script>alert(1)</script>": run, "b & c": run}
    result = fe.evaluate(names, {"q1": {"a": 1}}, ["nDCG"])
    html = result._repr_html_() + result.compare(0)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "b &amp; c" in html


def test_incomplete_runs_are_marked_in_a_notebook():
    runs = {"all": {"q1": {"a": 1.0}, "q2": {"a": 1.0}}, "some": {"q1": {"a": 1.0}}}
    with pytest.warns(fe.FairevalsWarning, match="has nothing for 1 judged topic"):
        result = fe.evaluate(runs, {"q1": {"a": 1}, "q2": {"a": 1}}, ["D_cross", "IAA"])
    assert "†" in result._repr_html_()


def test_correlate(result):
    frame = fe.correlate(result)
    assert list(frame.columns) == ["measure", "other", "tau", "low", "high", "topics"]
    assert len(frame) == 6
    order = {m: np.argsort(-result.pivot()[m].to_numpy()).tolist() for m in ("nDCG@10", "GFR(util='ERR')@20")}
    row = frame[(frame.measure == "nDCG@10") & (frame.other == "GFR(util='ERR')@20")].iloc[0]
    assert (row.tau == 1.0) == (order["nDCG@10"] == order["GFR(util='ERR')@20"])


class TestPlots:
    @pytest.fixture(autouse=True)
    def no_window(self):
        from matplotlib import pyplot

        before = mpl.get_backend()
        pyplot.switch_backend("agg")
        yield
        pyplot.close("all")
        pyplot.switch_backend(before)

    def test_tradeoff(self, result):
        axes = result.plot.tradeoff("nDCG@10", "AWRF(attr='ORIGIN')@20", baseline="bm25")
        assert isinstance(axes, Axes)
        assert axes.get_xlabel() == "nDCG@10 ↑"
        assert axes.get_ylabel() == "AWRF(attr='ORIGIN')@20 ↑"
        drawn = {tuple(point) for line in axes.lines for point in line.get_xydata().tolist()}
        wide = result.pivot()
        for run in result:
            assert (wide.loc[run, "nDCG@10"], wide.loc[run, "AWRF(attr='ORIGIN')@20"]) in drawn

    def test_topics(self, result):
        axes = result.plot.topics("nDCG@10", run="dense", baseline="bm25")
        wide = result.pivot(per_topic=True)["nDCG@10"].unstack("run")
        gains = sorted((wide["dense"] - wide["bm25"]).dropna(), reverse=True)
        heights = [bar.get_height() for bar in axes.patches]
        assert heights == pytest.approx([gain for gain in gains if gain])

    def test_groups(self, result):
        axes = result.plot.groups("ORIGIN", run="bm25")
        assert axes.get_title() == "bm25"
        assert {text.get_text() for text in axes.get_legend().get_texts()} == {
            *result.collection.task.attributes["ORIGIN"].groups
        }

    def test_exposure(self, result):
        axes = result.plot.exposure("dense")
        assert axes.get_ylabel() == "expected exposure"
        assert axes.get_xlabel()

    def test_on_the_callers_axes(self, result):
        from matplotlib import pyplot

        _, (left, right) = pyplot.subplots(1, 2)
        assert result.plot.tradeoff(ax=left) is left
        assert result.plot.exposure(ax=right) is right

    def test_what_cannot_be_drawn(self, result):
        with pytest.raises(fe.UsageError, match="unknown measure 'RR@20'; expected one of nDCG@10"):
            result.plot.tradeoff("RR@20", "D_ind")
        with pytest.raises(fe.UsageError, match="unknown attribute 'ZZ'"):
            result.plot.groups("ZZ")
        alone = fe.evaluate({"q": {"a": 1.0}}, {"q": {"a": 1}}, ["nDCG"])
        for draw, message in (
            (alone.plot.topics, "there is one run"),
            (alone.plot.tradeoff, "no measure of fairness among nDCG"),
            (alone.plot.groups, "there are no attributes"),
            (alone.compare, "nothing to compare"),
        ):
            with pytest.raises(fe.UsageError, match=message):
                draw()


@pytest.mark.parametrize("jobs", [0, -1, "2", 1.5])
def test_jobs_that_are_none(jobs):
    with pytest.raises(fe.UsageError, match=r"jobs is .*; expected a whole number of at least 1"):
        fe.evaluate({"q": {"a": 1.0}}, {"q": {"a": 1}}, ["nDCG"], jobs=jobs)


def test_json_has_the_counts(result):
    rows = json.loads(result.render("json"))
    assert {row["topics"] + row["undefined"] for row in rows} == {len(result.topics)}


class TestTopicGroups:
    TASK_TEXT = """qrels = "q"
[topic_groups.TYPE]
R = ["R*"]
M = ["M*", "N1"]
[topic_groups.USER]
file = "users.csv"
"""

    @pytest.fixture
    def grouped(self, tmp_path):
        (tmp_path / "t.toml").write_text(self.TASK_TEXT)
        (tmp_path / "q").write_text("R1 0 a 1\nR2 0 a 1\nM1 0 a 1\nN1 0 a 2\n")
        (tmp_path / "users.csv").write_text("topic,group\nR1,long\nR2,short\nM1,long\nN1,short\n")
        run = {"R1": {"a": 2.0, "b": 1.0}, "R2": {"b": 1.0, "a": 0.5}, "M1": {"b": 1.0}, "N1": {"a": 1.0}}
        return fe.evaluate({"mine": run}, task=tmp_path / "t.toml", measures=["RR", "D_cross"])

    def test_of_the_task(self, grouped):
        values = grouped.pivot(per_topic=True).loc["mine"]["RR"]
        by_type, by_user = grouped.by("TYPE"), grouped.by("USER")
        assert by_type.loc[("mine", "RR"), "R"] == values[["R1", "R2"]].mean()
        assert by_type.loc[("mine", "RR"), "M"] == values[["M1", "N1"]].mean()
        assert by_user.loc[("mine", "RR"), "long"] == values[["R1", "M1"]].mean()
        row = by_type.loc[("mine", "RR")]
        assert row.gap == pytest.approx(row.R - row.M)
        assert row.worst == "M"

    @pytest.mark.parametrize(
        ("measure", "values", "gap", "worst"),
        [
            ("DP(attr='S',protected='f')", [1.0, -1.0, 0.0, 0.0], 0.0, "A"),  # A is never at 0
            ("DP(attr='S',protected='f')", [1.0, 1.0, -1.0, -1.0], 2.0, None),  # equally far
            ("DP(attr='S',protected='f')", [0.5, 0.5, -1.0, -1.0], 1.5, "B"),
            ("RR", [0.1 + 0.2, np.nan, 0.3, 0.3], 0.0, None),
            ("RR", [0.5, 0.5, np.nan, np.nan], np.nan, None),
        ],
    )
    def test_the_worst_group_is_the_farthest_from_the_best_value(self, measure, values, gap, worst):
        array = np.array([[values]])
        scores = Scores(("run",), (parse_measure(measure),), tuple("1234"), array, array * np.nan)
        parts = {"A": scores.on_topics([0, 1]), "B": scores.on_topics([2, 3])}
        assert gap_and_worst(parts, 0, 0) == pytest.approx((gap, worst), nan_ok=True)

    def test_undefined_is_undefined(self, grouped):
        row = grouped.by("TYPE").loc[("mine", "D_cross")]
        assert np.isnan(row.gap)
        assert pd.isna(row.worst)

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            ("ZZ", "unknown topic groups 'ZZ'; expected one of TYPE, USER"),
            (
                {"X": ["X*"]},
                "no judged topic is in the group 'X'; expected some of the topics, which are such as 'M1'",
            ),
            (3, "cannot take 3; expected a name, a dict"),
            ({}, "cannot take {}; expected a name, a dict"),
            ({"A": 5}, "cannot take 5; expected globs such as"),
            ({"gap": ["R*"]}, "a group that is called 'gap'; expected another name"),
        ],
    )
    def test_groups_that_are_none(self, grouped, groups, message):
        with pytest.raises(fe.UsageError, match=message):
            grouped.by(groups)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("[topic_groups.T]\nR = 3\n", r"t.toml:2: topic_groups.T.R = 3; expected a list of texts"),
            (
                '[topic_groups.T]\nR = "x.csv"\n',
                "t.toml:2: topic_groups.T.R = 'x.csv'; expected a list of globs",
            ),
            ('[topic_groups.T]\nfile = "x.csv"\nR = ["R*"]\n', "t.toml:2: topic_groups.T.file = 'x.csv'"),
            ("topic_groups = 3\n", "t.toml:1: topic_groups = 3; expected a table"),
            ("[topic_groups.T]\n", "t.toml:1: topic_groups.T = {}; expected a table"),
        ],
    )
    def test_wrong_tasks(self, tmp_path, monkeypatch, text, message):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "t.toml").write_text(text)
        with pytest.raises(fe.InputError, match=message):
            fe.read_task("t.toml")

    def test_a_topic_twice_in_a_table(self, grouped, tmp_path):
        (tmp_path / "users.csv").write_text("topic,group\nR1,long\nR1,short\n")
        with pytest.raises(
            fe.InputError, match=r"users.csv:3: topic 'R1' in group 'short'; expected every topic once"
        ):
            grouped.by("USER")

    def test_a_task_with_groups_is_written_and_read(self, tmp_path):
        (tmp_path / "t.toml").write_text(self.TASK_TEXT)
        task = fe.read_task(tmp_path / "t.toml")
        task.save(tmp_path / "again.toml")
        assert fe.read_task(tmp_path / "again.toml") == task
        assert tmp_path / "users.csv" in task.files


class TestGroupsOfTopicsByName:
    @pytest.fixture
    def odd(self):
        topics = {"q?": 1.0, "q1": 2.0, "q2": 3.0}
        run = {t: {"x": 9.0, "y": 8.0, "a": 10.0 - n * n} for t, n in topics.items()}
        return fe.evaluate({"r": run}, {t: {"a": 1} for t in topics}, ["RR"])

    def test_topics_are_no_globs(self, odd):
        values = odd.pivot(per_topic=True).loc["r"]["RR"]
        row = odd.by({"q?": "x", "q1": "y", "q2": None}).loc[("r", "RR")]
        assert (row.x, row.y) == (values["q?"], values["q1"])
        assert set(row.index) == {"x", "y", "gap", "worst"}

    @pytest.mark.parametrize("form", ["dict", "series", "frame"])
    def test_forms(self, odd, form):
        groups = {"q?": "x", "q1": "y", "q2": "y"}
        given = {
            "dict": groups,
            "series": pd.Series(groups),
            "frame": pd.DataFrame({"topic": list(groups), "group": list(groups.values())}),
        }[form]
        pd.testing.assert_frame_equal(odd.by(given), odd.by({"x": ["q[?]"], "y": ["q1", "q2"]}))

    def test_groups_named_as_topics_and_numbers(self):
        result = fe.evaluate({"r": {1: {"a": 1.0}, 2: {"a": 1.0}}}, {1: {"a": 1}, 2: {"a": 1}}, ["RR"])
        assert list(result.by({"1": ["1"], "2": ["2"]}).columns[:2]) == ["1", "2"]
        assert list(result.by({1: "x", 2: "y"}).columns[:2]) == ["x", "y"]
        assert list(result.by({"x": [1], "y": [2]}).columns[:2]) == ["x", "y"]
        assert pd.isna(result.by({1: "x", 2: "y"}).loc[("r", "RR"), "worst"])  # they are equal


def test_a_topic_called_all():
    qrels = {"all": {"a": 1}, "b": {"a": 1}}
    result = fe.evaluate({"r": {"all": {"x": 2.0, "a": 1.0}, "b": {"a": 1.0}}}, qrels, ["RR"])
    assert result.pivot(per_topic=True)["RR"].to_dict() == {("r", "all"): 0.5, ("r", "b"): 1.0}
    assert result["r"]["RR"] == 0.75


def test_names_given_to_files_and_runs(tmp_path):
    (tmp_path / "a.run").write_text("q Q0 a 1 2 tag\nq Q0 b 2 1 tag\n")
    path, run = str(tmp_path / "a.run"), fe.read_run(tmp_path / "a.run")
    qrels = {"q": {"a": 2, "b": 1}, "r": {"a": 1}}
    result = fe.evaluate({"BM25": path, "Dense": run, "again": path}, qrels, "ERR", policy="pl", samples=50)
    assert list(result) == ["BM25", "Dense", "again"]
    assert all("BM25: has nothing for 1 judged topic" in r for r in result.remarks if "BM25: has" in r)
    # A name is only shown: the numbers are those of the file, as on the command line.
    plain = fe.evaluate(path, qrels, "ERR", policy="pl", samples=50)
    assert result["BM25"]["ERR"] == plain["tag"]["ERR"] == result["Dense"]["ERR"]
    page = result.report(tmp_path / "out")
    record = json.loads((page.parent / "report.json").read_text())
    assert [file["name"] for file in record["files"] if file["role"] == "run"] == [
        "a.run",
        "(not a file)",
        "a.run",
    ]


def test_a_result_does_not_follow_the_callers_table(tmp_path):
    frame = pd.DataFrame({"topic": ["q", "q"], "doc": ["a", "b"], "score": [2.0, 1.0]})
    other = {"q": {"b": 2.0, "a": 1.0}}
    result = fe.evaluate({"a": frame, "b": other}, {"q": {"a": 1}}, ["RR"])
    frame["score"] *= -1
    result.report(tmp_path / "out")
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    means = {mean["run"]: mean["value"] for mean in record["means"] if mean["measure"] == "RR"}
    assert means == {"a": 1.0, "b": 0.5} == result.pivot()["RR"].to_dict()


def test_undefined_means_are_remarked():
    with pytest.warns(fe.FairevalsWarning, match="nDCG is undefined on up to 1 of 1 topic: not in its mean"):
        fe.evaluate({"q": {"a": 1.0}}, {"q": {"a": 0}}, "nDCG")


RUN, QRELS = {"q": {"a": 1.0}}, {"q": {"a": 1}}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: fe.evaluate(None, QRELS, "nDCG"), "cannot take None as runs; expected a path"),
        (lambda r: fe.evaluate(5, QRELS, "nDCG"), "cannot take 5 as runs"),
        (
            lambda r: fe.evaluate(RUN, QRELS, "nDCG", groups="SEX"),
            "cannot take 'SEX' as groups; expected a dict",
        ),
        (lambda r: fe.evaluate(RUN, QRELS, "nDCG", groups=[1]), r"cannot take \[1\] as groups"),
        (lambda r: fe.evaluate(RUN, QRELS, "nDCG", task=3), "cannot take 3 as a task; expected a Task"),
        (lambda r: r[99], "unknown run or file '99'; expected one of bm25"),
        (lambda r: r[["bm25"]], "unknown run or file"),
        (lambda r: r[True], "unknown run or file 'True'"),
        (lambda r: r.compare(None), "unknown run or file 'None'"),
        (lambda r: r.compare(0, alpha=2), "alpha is 2; expected a number between 0 and 1"),
        (lambda r: r.compare(0, alpha="x"), "alpha is 'x'; expected"),
        (lambda r: r.plot.exposure(run=99), "unknown run or file '99'"),
        (lambda r: r.plot.topics(run=0, baseline=0), "the run and the baseline are both 'bm25'"),
        (lambda r: r.plot.tradeoff(ax="x"), "ax is 'x'; expected matplotlib Axes"),
        (lambda r: r.render("xml"), "unknown format 'xml'; expected one of table, csv"),
        (lambda r: r.render("csv", places=-1), "places is -1; expected a whole number"),
        (lambda r: r.render("table", places=1.5), r"places is 1\.5; expected a whole number"),
        (lambda r: r.render(["table"]), r"unknown format \['table'\]"),
        (lambda r: r.report(5), "5 is not a path"),
        (lambda r: r.report("a\0"), r"'a\\x00' is not a path"),
        (lambda r: r.report("x", references=1.5), r"references=1\.5; expected a name or a list of names"),
        (lambda r: r.report("x", trained=[None]), "None is not a path"),
        (lambda r: r.compare(test=["ttest"]), r"unknown test \['ttest'\]; expected one of ttest"),
        (lambda r: r.compare(correct={}), "unknown correction {}; expected one of holm"),
        (
            lambda r: r.by(pd.DataFrame({"topic": ["q"]})),
            "topic groups: columns topic; expected columns topic and",
        ),
        (lambda r: r.plot.groups(np.zeros(2)), "unknown attribute array"),
        (
            lambda r: fe.exposure(RUN, QRELS, attributes=1.5),
            r"attributes=1\.5; expected a name or a list of names",
        ),
        (lambda r: fe.exposure(RUN, QRELS, merit=[]), r"unknown merit \[\]; expected one of"),
        (lambda r: fe.exposure(RUN, QRELS, by=np.zeros(2)), "unknown unit of exposure array"),
        (lambda r: fe.evaluate(np.array(3), QRELS, "nDCG"), r"cannot take array\(3\) as runs"),
        (lambda r: fe.evaluate(RUN, QRELS, "nDCG", policy=np.zeros(2)), "unknown policy array"),
        (
            lambda r: fe.evaluate(pd.DataFrame([["q"] * 2], columns=["qid", "qid"]), QRELS),
            "column 'qid' twice",
        ),
        (
            lambda r: fe.Attribute.of("A", {"a": "x"}, kind=["nominal"]),
            r"kind=\['nominal'\]; expected a text",
        ),
        (lambda r: fe.Task(runs_table=3), "runs_table = 3; expected the name of a file"),
        (lambda r: fe.task(groups="x").__enter__(), "cannot take 'x' as groups; expected a dict"),
        (lambda r: fe.PlackettLuce([1.0, 2.0]).exposure(tolerance="x"), "tolerance must lie between"),
        (lambda r: fe.PlackettLuce([1.0, 2.0]).log_prob([[1], [1, 0]]), "rankings of different lengths"),
        (lambda r: fe.Ridge(alpha=10**400).fit([[1.0]], [1]), "alpha=1000.* is not possible"),
        (lambda r: r.report("x", references="nobody"), "unknown run or file 'nobody'"),
        (
            lambda r: fe.compare(r.frame()),
            "cannot take a DataFrame as a result; expected what `evaluate` returns",
        ),
        (lambda r: fe.correlate("x"), "cannot take a str as a result"),
        (lambda r: fe.evaluate(RUN, QRELS, "nDCG").correlate(), "nothing to correlate"),
    ],
)
def test_wrong_arguments(result, call, message):
    with pytest.raises(fe.FairevalsError, match=message):
        call(result)


def test_attributes_without_a_dict():
    sex = fe.Attribute.of("SEX", {"a": "f", "b": "m"})
    by_name = fe.evaluate(RUN, QRELS, "AWRF(attr='SEX')", groups={"SEX": sex}).frame()
    for groups in (sex, [sex]):
        pd.testing.assert_frame_equal(
            fe.evaluate(RUN, QRELS, "AWRF(attr='SEX')", groups=groups).frame(), by_name
        )

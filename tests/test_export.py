"""Exports: a Codabench bundle that scores as `evaluate` does, TIRA's prototext, and the participants' files."""

import csv
import json
import os
import re
import statistics
import subprocess
import sys
import tomllib
import warnings
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import fairevals as fe
from fairevals.cli.main import main
from fairevals.errors import Place
from fairevals.evaluation.scores import Scores
from fairevals.export.codabench import leaderboard_columns
from fairevals.export.participants import official_ranges, participants
from fairevals.export.scoring import problem_lines, score_submission, submitted_run
from fairevals.export.tira import prototext
from fairevals.io.lines import Problem
from fairevals.measures import parse_measure
from fairevals.report.naming import measure_labels

TASK = ("--task", "qrels/task.toml")
RUNS = ("runs/bm25.run", "runs/dense.run", "runs/random.run")
pytestmark = pytest.mark.filterwarnings("ignore::fairevals.FairevalsWarning")


def call(capsys, *words):
    return main(["export", *map(str, words)]), *capsys.readouterr()


def scores_of(values, runs, measures=("nDCG@10",), statuses=()):
    values = np.asarray(values, dtype=float)
    topics = tuple(f"q{i}" for i in range(values.shape[2]))
    measures = tuple(map(parse_measure, measures))
    return Scores(tuple(runs), measures, topics, values, values * np.nan, statuses=statuses)


# Codabench ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """The bundle of the sample task, unpacked as the platform does."""
    folder = tmp_path_factory.mktemp("codabench")
    assert main(["export", "codabench", *TASK, *RUNS[:2], "-o", str(folder / "out")]) == 0
    assert [path.name for path in (folder / "out").iterdir()] == ["bundle.zip"]
    with zipfile.ZipFile(folder / "out" / "bundle.zip") as archive:
        archive.extractall(folder / "bundle")
    return folder / "bundle"


def competition(folder):
    return json.loads((folder / "competition.yaml").read_text())


def laid_out(bundle, folder, files):
    """The folder `input` of the platform, with a submission."""
    with zipfile.ZipFile(bundle / competition(bundle)["tasks"][0]["reference_data"]) as content:
        content.extractall(folder / "input/ref")
    for name, content in files.items():
        path = folder / "input/res" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / "input", folder / "output"


@pytest.fixture(scope="module")
def program(bundle):
    """The folder of the scoring program."""
    with zipfile.ZipFile(bundle / competition(bundle)["tasks"][0]["scoring_program"]) as content:
        content.extractall(bundle.parent / "program")
    return bundle.parent / "program"


def run_program(program, given, output):
    """Run the scoring program as the platform does: by its command, in an empty folder, without this package."""
    command = json.loads((program / "metadata.yaml").read_text())["command"]
    assert command == "python3 /app/program/scoring.py /app/input/ /app/output/"
    places = {"/app/program": program, "/app/input": given, "/app/output": output}
    words = [re.sub(r"/app/\w+", lambda found: str(places[found[0]]), word) for word in command.split()[1:]]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    empty = given.parent / "empty"
    empty.mkdir()
    return subprocess.run(
        [sys.executable, *words], cwd=empty, env=env, capture_output=True, text=True, check=False
    )


def test_scoring_program_gives_the_values_of_evaluate(bundle, program, tmp_path):
    run = Path(RUNS[1]).read_bytes()
    files = {"my/dense.run": run, "__MACOSX/._dense.run": b"x", ".DS_Store": b"x", "metadata": b"x"}
    given, output = laid_out(bundle, tmp_path, files)
    done = run_program(program, given, output)
    assert done.returncode == 0, done.stderr
    found = json.loads((output / "scores.json").read_text())
    result = fe.evaluate(RUNS[1], task="qrels/task.toml")
    leaderboard = competition(bundle)["leaderboards"][0]["columns"]
    assert found == {
        column["key"]: value for column, value in zip(leaderboard, result.pivot().iloc[0], strict=True)
    }
    assert [column["title"] for column in leaderboard] == list(measure_labels(result.scores).values())
    assert "GFR-ERR" in [column["title"] for column in leaderboard]
    page = (output / "detailed_results.html").read_text()
    assert "Researchers and films" in page and "http-equiv" in page
    assert not any(line.split()[2].decode() in page for line in run.splitlines()[:20])  # nor its judgement


def test_scoring_program_uses_the_package_beside_it(program):
    code = f"import sys; sys.path.insert(0, {str(program)!r}); import fairevals; print(fairevals.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=program
    )
    assert Path(done.stdout.strip()).is_relative_to(program)
    lines = (program / "requirements.txt").read_text().splitlines()
    assert f"numpy=={np.__version__}" in lines and len(lines) == 6


def test_scoring_program_installs_what_an_image_lacks(program, tmp_path):
    (tmp_path / "pip").mkdir()  # found first, since `-m` looks into the current folder
    (tmp_path / "pip/__init__.py").write_text("")
    (tmp_path / "pip/__main__.py").write_text("import sys; print(*sys.argv[1:]); sys.exit(3)")
    words = [sys.executable, "-S", str(program / "scoring.py"), "in", "out"]  # without the installed packages
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.split() == ["install", "--quiet", "-r", str(program / "requirements.txt")]


def test_an_invalid_submission_fails_with_the_messages_of_validate(bundle, program, tmp_path, capsys):
    lines = Path(RUNS[0]).read_bytes().splitlines(keepends=True)
    lines[2] = b"R01 Q0 x 3 nan bm25\n"
    lines += [b"X99 Q0 x 1 nan bm25\n"] * 12
    given, output = laid_out(bundle, tmp_path, {"bad.run": b"".join(lines)})
    done = run_program(program, given, output)
    assert done.returncode == 1
    assert not (output / "scores.json").exists()
    main(["validate", *TASK, str(tmp_path / "input/res/bad.run"), "--format", "json"])
    problems = json.loads(capsys.readouterr().out)
    assert sum(problem["level"] == "error" for problem in problems) >= 10
    for problem in problems:
        if problem["level"] == "error":
            place = f"{tmp_path / 'input/res/bad.run'}:{problem['line']}"
            assert f"error: {place}: {problem['found']}; expected {problem['expected']}" in done.stderr
    assert "score: 3 more" in done.stderr


@pytest.mark.parametrize(
    ("files", "message"),
    [({}, "no file"), ({"a.run": b"", "b.run": b""}, "expected a zip file with one run")],
)
def test_a_submission_is_one_file(tmp_path, files, message):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(fe.InputError, match=message):
        submitted_run(tmp_path)


def test_links_out_of_a_submission_are_not_followed(tmp_path):
    (tmp_path / "ref").mkdir()
    (tmp_path / "ref/secret.qrels").write_text("q 0 a 1\n")
    res = tmp_path / "res"
    res.mkdir()
    for name, target in (
        ("my.run", "ref/secret.qrels"),
        ("folder", "ref"),
        ("my.parquet", "ref/secret.qrels"),
    ):
        (res / name).symlink_to(tmp_path / target)
        with pytest.raises(fe.InputError, match="a link that leads out of the folder"):
            submitted_run(res)
        (res / name).unlink()


def test_a_submission_of_parquet_files_is_the_folder(tmp_path):
    for name in ("a.parquet", "b.parquet", "_SUCCESS", "metadata"):
        (tmp_path / name).write_bytes(b"")
    assert submitted_run(tmp_path) == tmp_path


def test_problem_lines_count_what_they_do_not_show():
    problems = [Problem(Place("a", n + 1), "score", "x", "y") for n in range(13)]
    lines = list(problem_lines(problems))
    assert lines[0] == "error: a:1: x; expected y\n" and lines[-1] == "score: 3 more\n" and len(lines) == 11


def test_competition_is_yaml_of_version_2(bundle):
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load((bundle / "competition.yaml").read_text())
    assert content == competition(bundle)
    assert content["version"] == 2 and content["docker_image"].startswith("python:3.")
    paths = [content["image"], content["terms"], *(page["file"] for page in content["pages"])]
    paths += [content["tasks"][0]["reference_data"], content["tasks"][0]["scoring_program"]]
    paths += [solution["path"] for solution in content["solutions"]]
    assert all((bundle / path).stat().st_size for path in paths)
    assert [task["index"] for task in content["tasks"]] == content["phases"][0]["tasks"] == [0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d 00:00:00", content["phases"][0]["start"])
    with zipfile.ZipFile(bundle / content["solutions"][1]["path"]) as archive:
        assert archive.read("dense.run") == Path(RUNS[1]).read_bytes()
    assert (bundle / "logo.png").read_bytes().startswith(b"\x89PNG")


def test_columns_sort_by_the_direction_of_the_measure():
    measures = ["nDCG@10", "EE_D@10", "Skew(attr='SEX')@5", "NumRet", "nDCG(dcg='exp-log2')@10"]
    found = leaderboard_columns([parse_measure(name) for name in measures], {"nDCG@10": "Gain"})
    assert [column["sorting"] for column in found] == ["desc", "asc", "asc", "desc", "desc"]
    assert [column["index"] for column in found] == list(range(5))
    assert len({column["key"] for column in found}) == 5
    assert all(re.fullmatch(r"\w+", column["key"]) for column in found)
    assert [column["title"] for column in found[:2]] == ["Gain", "EE_D@10"]


def test_keys_and_titles_are_as_short_as_codabench_wants_them():
    """Its leaderboard has 36 characters for each; a bundle with a longer one is refused when it is uploaded."""
    options = "attr='BOTH',target='task',relevant_only=True,attention='trecfair'"
    names = [f"EE_{which}({options})@{cutoff}" for which in "LDR" for cutoff in (10, 20)]
    names += ["Skew(attr='A_LONG_NAME_OF_AN_ATTRIBUTE',of='max')@20"]
    found = leaderboard_columns(
        measures := [parse_measure(name) for name in names], {str(measures[0]): "é" * 50}
    )
    assert max(len(column[text]) for column in found for text in ("key", "title")) == 36
    assert len({column["key"] for column in found}) == len(names)
    assert found[-1]["title"].endswith("…, distance to 0")


@pytest.fixture
def hostile(tmp_path):
    """A task whose files lie in other folders under one name, and one that is no safe name."""
    for folder in ("a", "b", "c d"):
        (tmp_path / folder).mkdir()
    (tmp_path / "a/data.csv").write_text("q1 0 d1 1\nq1 0 d2 0\n")
    (tmp_path / "b/DATA.csv").write_text("doc,group\nd1,f\nd2,m\n")
    (tmp_path / "c d/task.toml").write_text("doc,group\nd1,x\nd2,y\n")
    (tmp_path / "my.toml").write_text(
        'name = "<b>\\u001bTask 🎈\\""\nqrels = "a/data.csv"\nmeasures = ["AWRF(attr=\'S\')@2", "AWRF(attr=\'T\')@2"]\n'
        '[attributes.S]\ngroups = ["f", "m"]\nmemberships = "b/DATA.csv"\n'
        '[attributes.T]\ngroups = ["x", "y"]\nmemberships = "c d/task.toml"\n'
    )
    (tmp_path / "x y.run").write_text("q1 Q0 d1 1 2.0 t\nq1 Q0 d2 2 1.0 t\n")
    return tmp_path


def test_files_of_one_name_and_unsafe_names_are_told_apart(hostile, capsys, tmp_path):
    words = ("codabench", "--task", hostile / "my.toml", hostile / "x y.run", "-o", tmp_path / "out")
    code, _, err = call(capsys, *words, "--image", "me/img:1", "-m", "nDCG@2", "-m", "AWRF(attr='T')@2")
    assert code == 0, err
    with zipfile.ZipFile(tmp_path / "out/bundle.zip") as archive:
        archive.extractall(tmp_path / "b2")
    content = competition(tmp_path / "b2")
    assert content["docker_image"] == "me/img:1"
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load((tmp_path / "b2/competition.yaml").read_text())["title"] == '<b>\\x1bTask 🎈"'
    assert "&lt;b&gt;" in (tmp_path / "b2/pages/overview.md").read_text()
    given, output = laid_out(tmp_path / "b2", tmp_path / "app", {"s.run": (hostile / "x y.run").read_bytes()})
    assert score_submission(given, output) == 0
    task = tomllib.loads((tmp_path / "app/input/ref/task.toml").read_text())
    assert task["measures"] == ["nDCG@2", "AWRF(attr='T')@2"]
    names = sorted(path.name for path in (tmp_path / "app/input/ref").iterdir())
    assert len({name.casefold() for name in names}) == 4
    wanted = fe.evaluate(hostile / "x y.run", task=hostile / "my.toml", measures=task["measures"]).pivot()
    assert list(json.loads((output / "scores.json").read_text()).values()) == wanted.iloc[0].tolist()


def test_what_is_undefined_is_left_out_of_the_scores(tmp_path, capsys):
    (tmp_path / "q").write_text("q1 0 d1 1\n")
    (tmp_path / "s.csv").write_text("doc,group\nd1,f\nd2,m\n")
    (tmp_path / "t.toml").write_text(
        'qrels = "q"\nmeasures = ["nDCG@2", "AWRF(attr=\'S\')@2"]\n'
        '[attributes.S]\ngroups = ["f", "m"]\nmemberships = "s.csv"\ntopics = ["R*"]\n'
    )
    (tmp_path / "a.run").write_text("q1 Q0 d1 1 2.0 t\n")
    assert (
        call(capsys, "codabench", "--task", tmp_path / "t.toml", tmp_path / "a.run", "-o", tmp_path / "o")[0]
        == 0
    )
    with zipfile.ZipFile(tmp_path / "o/bundle.zip") as archive:
        archive.extractall(tmp_path / "b")
    given, output = laid_out(tmp_path / "b", tmp_path / "app", {"a.run": (tmp_path / "a.run").read_bytes()})
    assert score_submission(given, output) == 0
    assert json.loads((output / "scores.json").read_text()) == {"nDCG_2": 1.0}
    assert "AWRF S@2 is undefined for this run" in capsys.readouterr().err
    with pytest.warns(UserWarning, match="is undefined: not in evaluation.prototext"):
        fe.evaluate(tmp_path / "a.run", task=tmp_path / "t.toml").export("tira", tmp_path / "p")


def test_only_files_go_into_a_bundle(tmp_path):
    qrels = {"q1": {"a": 1}}
    result = fe.evaluate({"mine": {"q1": {"a": 1.0}}}, qrels, ["nDCG@2"])
    with pytest.raises(fe.UsageError, match="expected the path of a qrels file"):
        result.export("codabench", tmp_path / "out")
    path = tmp_path / "q.qrels"
    path.write_text("q1 0 a 1\n")
    with pytest.raises(fe.UsageError, match="expected the path of a run file"):
        fe.evaluate({"mine": {"q1": {"a": 1.0}}}, path, ["nDCG@2"]).export("codabench", tmp_path / "out")
    groups = {"S": {"a": "f"}}
    with pytest.raises(fe.UsageError, match="groups given from Python"):
        fe.evaluate(RUNS[0], "qrels/sample.qrels", ["nDCG@2"], groups=groups).export(
            "codabench", tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()


def test_solutions_are_the_valid_runs_and_may_lie_in_an_archive(tmp_path):
    """A run that lacks a topic can be scored, but the platform would refuse it as a submission."""
    with zipfile.ZipFile(tmp_path / "sub.zip", "w") as archive:
        archive.write("runs/round-robin.run", "team/rr.run")
        archive.write("runs/bm25.run", "team/bm25.run")
    result = fe.evaluate(tmp_path / "sub.zip", task="qrels/task.toml", measures=["nDCG@10"])
    expected = (
        "not among the solutions, as an invalid submission: .*:team/rr.run: nothing for topic 'M14'; expected"
    )
    with pytest.warns(fe.FairevalsWarning, match=expected):
        result.export("codabench", tmp_path / "out")
    with zipfile.ZipFile(tmp_path / "out/bundle.zip") as archive:
        (solution,) = json.loads(archive.read("competition.yaml"))["solutions"]
        assert solution["name"] == "bm25.run"
        archive.extract(solution["path"], tmp_path)
    with zipfile.ZipFile(tmp_path / solution["path"]) as archive:
        assert archive.read("bm25.run") == Path("runs/bm25.run").read_bytes()


# TIRA --------------------------------------------------------------------------------------------------------

MEASURE = re.compile(r'measure \{\n  key: "([^"\\: \n]+)"\n  value: "([^"\n]+)"\n\}\n')


def parse_prototext(text):
    """The pairs of a prototext; nothing else may be in it."""
    assert MEASURE.sub("", text) == ""
    return MEASURE.findall(text)


def test_tira_has_every_mean_of_a_run(capsys, tmp_path):
    code, out, _ = call(capsys, "tira", *TASK, RUNS[0], "-o", tmp_path)
    assert code == 0 and "evaluation.prototext" in out
    found = {
        key: float(value) for key, value in parse_prototext((tmp_path / "evaluation.prototext").read_text())
    }
    assert found == fe.evaluate(RUNS[0], task="qrels/task.toml").pivot().iloc[0].to_dict()


def test_tira_keys_of_several_runs_are_unique_and_plain():
    names = ['a: b"c\\', "a_b_c", "A b c\n", "†"]
    text, remarks = prototext(scores_of([[[0.5]], [[1.0]], [[0.25]], [[np.nan]]], names))
    pairs = parse_prototext(text)
    assert [value for _, value in pairs] == ["0.5", "1.0", "0.25"]
    assert len({key.casefold() for key, _ in pairs}) == 3
    assert len(remarks) == 1


# Participants ------------------------------------------------------------------------------------------------


class Checker(HTMLParser):
    """Collects the tags of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]


def test_ranges_are_over_the_official_runs_with_a_value():
    rng = np.random.default_rng(0)
    values = rng.random((5, 2, 6))
    values[1, 0, 2] = values[:, 1, 4] = np.nan
    statuses = ("official", "official", "baseline", "official", "unofficial")
    scores = scores_of(values, "abcde", ("nDCG@10", "RR"), statuses)
    files = dict(participants(scores, "T"))
    for r, run in enumerate("abcde"):
        rows = list(csv.DictReader(files[f"{run}.csv"].decode().splitlines()))
        assert [(row["measure"], row["topic"]) for row in rows] == [
            *(("nDCG@10", t) for t in ("q0", "q1", "q2", "q3", "q4", "q5", "all")),
            *(("RR", t) for t in ("q0", "q1", "q2", "q3", "q5", "all")),
        ]
        for row in rows:
            m = ("nDCG@10", "RR").index(row["measure"])
            of = [list(v[m][~np.isnan(v[m])]) for v in values]
            if row["topic"] == "all":
                mine, others = statistics.fmean(of[r]), [statistics.fmean(of[i]) for i in (0, 1, 3)]
            else:
                t = int(row["topic"][1:])
                mine, others = values[r, m, t], [v for i in (0, 1, 3) if (v := values[i, m, t]) == v]
            assert row["value"] == "" if mine != mine else float(row["value"]) == pytest.approx(mine)
            wanted = (statistics.median(others), min(others), max(others))
            assert tuple(float(row[c]) for c in ("median", "min", "max")) == pytest.approx(wanted)


def test_without_official_runs_the_ranges_are_undefined(tmp_path):
    scores = scores_of([[[0.5, 1.0]]], "a", statuses=("baseline",))
    assert np.isnan(official_ranges(scores, scores.values)).all()
    assert b"q0,0.5,,,\n" in dict(participants(scores, "T"))["a.csv"]


def test_names_of_runs_are_safe_and_different():
    names = ["../../x", "../../x", "CON", "a", "A", "runs", "<script>alert(1)</script>", ".hidden", ""]
    files = dict(participants(scores_of(np.full((9, 1, 1), 0.5), names), "<i>T"))
    assert len({name.casefold() for name in files}) == 2 * len(names) + 1
    assert all(re.fullmatch(r"\w[\w.-]*\.(csv|html)", name) for name in files)
    assert not {"CON.csv", "con.html"} & set(files)
    index = list(csv.DictReader(files["runs.csv"].decode().splitlines()))
    assert [row["run"] for row in index] == names
    assert {row["table"] for row in index} | {row["page"] for row in index} | {"runs.csv"} == set(files)


def test_pages_escape_and_load_nothing():
    scores = scores_of([[[0.5]], [[0.7]]], ["<script>alert(1)</script>", "b"])
    files = participants(scores, "<img src=x>")
    text = next(content for name, content in files if name.endswith("html")).decode()
    found = Checker(text)
    assert "script" not in found.tags and "img" not in found.tags and not found.links
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert "&lt;script&gt;alert(1)" in text


def test_page_marks_what_is_better_than_the_median():
    values = [[[0.1, 0.5, 0.9]], [[0.5, 0.5, 0.5]], [[0.9, 0.5, 0.1]]]
    scores = replace(scores_of(values, "abc", ["EE_D@10"]), labels={"EE_D@10": "Spread"})
    page = dict(participants(scores, "T"))["a.html"].decode()
    assert "Spread" in page and "EE_D@10" not in page
    cells = re.findall(r'<td( class="\w+")?>(0\.\d+)</td>', page.split('<section id="means">')[1])
    marked = [(cell.split('"')[1], value) for cell, value in cells if cell]
    assert marked == [("better", "0.1000"), ("worse", "0.9000")]  # lower is better
    assert "<td>1 / 1</td>" in page


def test_command_and_python_write_the_same(capsys, tmp_path):
    code, out, _ = call(capsys, "participants", *TASK, *RUNS, "-o", tmp_path / "a")
    assert code == 0 and out == f"written: {tmp_path / 'a' / 'runs.csv'} and 6 other files\n"
    result = fe.evaluate(list(RUNS), task="qrels/task.toml")
    paths = result.export("participants", tmp_path / "b")
    assert {path.name: path.read_bytes() for path in paths} == {
        path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()
    }
    for platform_name in ("tira", "codabench"):
        assert call(capsys, platform_name, *TASK, *RUNS, "-o", tmp_path / f"{platform_name}1")[0] == 0
        (path,) = result.export(platform_name, tmp_path / f"{platform_name}2")
        assert path.is_file()
        one, two = (
            {path.name: path.read_bytes() for path in (tmp_path / f"{platform_name}{n}").iterdir()}
            for n in "12"
        )
        assert one == two


# The folder --------------------------------------------------------------------------------------------------


def test_nothing_is_overwritten_unasked(capsys, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = call(capsys, "tira", *TASK, RUNS[0], "-o", tmp_path)
    assert code == 2 and "is not empty" in err and "--force" in err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert call(capsys, "tira", *TASK, RUNS[0], "-o", tmp_path, "--force")[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evaluation.prototext", "mine.txt"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("kaggle", *TASK, RUNS[0], "-o", "x"), 2, "invalid choice"),
        (("tira", *TASK, RUNS[0]), 2, "required"),
        (("tira", *TASK, RUNS[0], "--image", "i", "-o", "x"), 2, "an image is for codabench"),
        (("tira", *TASK, "missing.run", "-o", "x"), 1, "missing.run: cannot be read"),
        (("tira", RUNS[0], "-o", "x"), 2, "give --task"),
    ],
)
def test_exit_codes(capsys, words, code, message, tmp_path):
    words = [str(tmp_path / "x") if word == "x" else word for word in words]
    try:
        found = main(["export", *words])
    except SystemExit as error:
        found = error.code
    assert found == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_wrong_platform_in_python(tmp_path):
    result = fe.evaluate({"a": {"q": {"d": 1.0}}}, {"q": {"d": 1}}, ["RR"])
    with pytest.raises(fe.UsageError, match="unknown platform 'kaggle'"):
        result.export("kaggle", tmp_path / "x")
    with pytest.raises(fe.UsageError, match="expected its path"):
        result.export("tira", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [path.name for path in result.export("tira", tmp_path / "x")] == ["evaluation.prototext"]

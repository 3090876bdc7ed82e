"""The commands as a person or a script meets them: output, exit codes, and what they must never do."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import threading

import pytest

from fairevals.cli.main import COMMANDS, main, make_parser, with_options

QRELS = "q1 0 a 1\nq1 0 b 0\nq1 0 c 2\nq2 0 a 1\nq3 0 a 0\n"
GOOD = "q1 Q0 c 1 3.0 good\nq1 Q0 a 2 2.0 good\nq1 Q0 b 3 1.0 good\nq2 Q0 a 1 1.0 good\nq3 Q0 b 1 1.0 good\n"
POOR = "q1 Q0 b 1 3 poor_1%\nq1 Q0 a 2 2 poor_1%\nq1 Q0 c 3 1 poor_1%\nq2 Q0 b 1 1 poor_1%\nq3 Q0 b 1 1 poor_1%\n"
HEADER = "run,topic,measure,value,se"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.qrels").write_text(QRELS)
    (tmp_path / "good.run").write_text(GOOD)
    (tmp_path / "poor.run").write_text(POOR)
    return tmp_path


@pytest.fixture
def fairevals(capsys):
    def call(*words):
        code = main([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def program(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "fairevals", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


SCORE = ("score", "--qrels", "my.qrels", "good.run", "poor.run")


@pytest.mark.usefixtures("folder")
class TestScore:
    def test_csv(self, fairevals):
        code, out, err = fairevals(*SCORE, "-m", "P@1", "-m", "nDCG@10", "--format", "csv")
        assert code == 0
        assert out.splitlines()[0] == HEADER
        assert out.splitlines()[1:3] == [f"good,all,P@1,{2 / 3!r},", "good,all,nDCG@10,1.0,"]
        assert [(row["run"], row["measure"]) for row in rows(out)[2:]] == [
            ("poor_1%", "P@1"),
            ("poor_1%", "nDCG@10"),
        ]
        assert "nDCG@10 is undefined on up to 1 of 3 topics" in err

    def test_topics_and_undefined(self, fairevals):
        _, out, _ = fairevals(*SCORE, "-m", "nDCG@2", "-q", "--format", "csv")
        assert [row["topic"] for row in rows(out)] == ["q1", "q2", "q3", "all"] * 2
        assert rows(out)[2] == {"run": "good", "topic": "q3", "measure": "nDCG@2", "value": "", "se": ""}
        assert out.splitlines()[3] == "good,q3,nDCG@2,,"
        assert rows(out)[3]["value"] == "1.0"

    def test_standard_errors(self, fairevals):
        _, out, _ = fairevals(
            *SCORE, "-m", "ERR", "-m", "P@1", "--policy", "pl", "--samples", "50", "--format", "csv"
        )
        assert [row["se"] != "" for row in rows(out)] == [True, False, True, False]

    def test_tsv(self, fairevals):
        _, out, _ = fairevals(*SCORE, "-m", "P@1", "--format", "tsv")
        assert out.splitlines()[0] == HEADER.replace(",", "\t")

    def test_json(self, fairevals):
        _, out, _ = fairevals(*SCORE, "-m", "nDCG@2", "-q", "--format", "json")
        found = json.loads(out)
        empty = dict.fromkeys(["value", "se", "topics", "undefined", "incomplete"])
        assert found[2] == {"run": "good", "topic": "q3", "measure": "nDCG@2"} | empty
        assert found[3]["value"] == 1.0
        assert (found[3]["topics"], found[3]["undefined"]) == (2, 1)
        assert found[3]["incomplete"] is False

    def test_latex(self, fairevals, folder):
        (folder / "odd.run").write_text(POOR.replace("poor_1%", r"a&b_{\x}$#^~"))
        code, out, _ = fairevals(*SCORE, "odd.run", "-m", "P@1", "--format", "latex")
        assert code == 0
        assert r"\begin{tabular}{lr}" in out
        assert r"poor\_1\% & " in out
        assert r"a\&b\_\{\textbackslash{}x\}\$\#\textasciicircum{}\textasciitilde{} & " in out
        assert r"good & \textbf{0.6667} \\" in out

    @pytest.mark.parametrize(("places", "text"), [("0", "1"), ("2", "0.67"), ("6", "0.666667")])
    def test_places(self, fairevals, places, text):
        for style in ("csv", "table"):
            _, out, _ = fairevals(*SCORE, "-m", "P@1", "-p", places, "--format", style)
            assert text in out.replace(",", " ").split()

    def test_best_is_marked_by_direction(self, fairevals):
        _, out, _ = fairevals(*SCORE, "-m", "P@1", "-m", "EE_L", "-m", "ERR")
        head, _, first, second, _, topics, undefined = out.splitlines()
        assert [word for word in head.split() if word in "↑↓"] == ["↑", "↓", "↑"]
        assert [first.split()[0], second.split()[0]] == ["good", "poor_1%"]
        numbers = [float(row["value"]) for row in rows(fairevals(*SCORE, "-m", "EE_L", "--format", "csv")[1])]
        assert numbers[0] != numbers[1]
        lowest, other = (first, second) if numbers[0] < numbers[1] else (second, first)
        assert f"{min(numbers):.4f} *" in lowest
        assert f"{max(numbers):.4f} *" not in other
        assert first.count("*") + second.count("*") == 3
        assert topics.split() == ["topics", "3", "3", "3"]
        assert undefined.split() == ["undefined", "0", "0", "0"]

    def test_lower_is_better_marks_the_lowest(self, fairevals, folder):
        """Exposure of one relevant document beside another of the same grade: the even run is the fair one."""
        (folder / "two.qrels").write_text("q 0 a 1\nq 0 b 1\n")
        (folder / "even.run").write_text("q 0 a 1 2 even\nq 0 b 2 1 even\nq 1 b 1 2 even\nq 1 a 2 1 even\n")
        (folder / "one.run").write_text("q 0 a 1 2 one\nq 0 b 2 1 one\n")
        words = ("score", "--qrels", "two.qrels", "--policy", "samples", "-m", "D_ind")
        _, out, _ = fairevals(*words, "one.run", "even.run")
        marked = [line.split()[0] for line in out.splitlines() if "*" in line]
        assert marked == ["even"]
        assert out.splitlines()[2].split()[0] == "even"  # and the best comes first

    def test_equal_tags_are_told_apart(self, fairevals, folder):
        (folder / "copy.run").write_text(GOOD)
        (folder / "sub").mkdir()
        (folder / "sub" / "copy.run").write_text(GOOD)
        _, out, _ = fairevals(*SCORE, "copy.run", "sub/copy.run", "-m", "P@1", "--format", "csv")
        names = [row["run"] for row in rows(out)]
        assert names == ["good (good.run)", "poor_1%", "good (copy.run)", "good (sub/copy.run)"]

    def test_tags_that_mean_harm(self, fairevals, folder):
        tags = ["../../x", "<script>alert(1)</script>", "=cmd|'/c'!A1", "a\u202eb", 'a,b"c']
        for number, tag in enumerate(tags):
            (folder / f"{number}.run").write_text(f"q1 Q0 a 1 1 {tag}\n")
        runs = [f"{number}.run" for number in range(len(tags))]
        before = sorted(folder.rglob("*"))
        code, out, _ = fairevals("score", "--qrels", "my.qrels", *runs, "-m", "P@1", "--format", "csv")
        assert code == 0
        assert [row["run"] for row in rows(out)] == tags
        code, out, _ = fairevals("score", "--qrels", "my.qrels", *runs, "-m", "P@1")
        assert code == 0
        assert "\u202e" not in out
        assert "../../x" in out
        assert sorted(folder.rglob("*")) == before

    def test_formulas_for_spreadsheets(self, fairevals, folder):
        """Names that would be formulas are marked if asked for; numbers never are."""
        formulas = ["=cmd|calc", "+1", "-x", "@a", "＝1", "＋1", "－1", "＠a"]
        tags = [*formulas, "a=b", "'q"]
        for number, tag in enumerate(tags):
            (folder / f"{number}.run").write_text(f"-1 Q0 a 1 1 {tag}\n")
        (folder / "minus.qrels").write_text("-1 0 a 1\n")
        runs = [f"{number}.run" for number in range(len(tags))]
        words = ("score", "--qrels", "minus.qrels", *runs, "-m", "EE_L", "-q")
        for style, mark in (("csv", ","), ("tsv", "\t")):
            verbatim = fairevals(*words, "--format", style)[1]
            marked = fairevals(*words, "--format", style, "--spreadsheet")[1]
            assert [line.split(mark)[0] for line in verbatim.splitlines()[1::2]] == tags
            names = [line.split(mark)[:2] for line in marked.splitlines()[1::2]]
            assert names == [[name, "'-1"] for name in (*(f"'{tag}" for tag in formulas), "a=b", "'q")]
            numbers = [[line.split(mark)[2:] for line in text.splitlines()] for text in (verbatim, marked)]
            assert numbers[0] == numbers[1]
        assert fairevals(*words, "--spreadsheet") == fairevals(*words)

    def test_two_processes(self, fairevals):
        words = (
            *SCORE,
            "-m",
            "ERR",
            "-m",
            "nDCG",
            "-q",
            "--policy",
            "pl",
            "--samples",
            "40",
            "--format",
            "csv",
        )
        assert fairevals(*words, "--jobs", "2") == fairevals(*words)

    def test_standard_input_and_two_processes(self):
        words = ("score", "--qrels", "my.qrels", "-m", "nDCG", "--format", "csv")
        by_file = program(*words, "good.run").stdout
        assert by_file.count("\n") == 2
        for jobs in ("1", "2"):
            for policy in ("ranking", "pl"):
                found = program(*words, "-", "--jobs", jobs, "--policy", policy, input=GOOD)
                assert (found.returncode, found.stdout.count("\n")) == (0, 2), found.stderr
                if policy == "ranking":
                    assert found.stdout == by_file

    def test_notes_go_to_standard_error(self, fairevals, folder):
        (folder / "part.run").write_text("q1 Q0 a 1 1 part\nq9 Q0 a 1 1 part\n")
        _, out, err = fairevals("score", "--qrels", "my.qrels", "part.run", "-m", "P@1", "--format", "csv")
        assert out.count("\n") == 2
        assert "skipped 1 topic without judgements, such as q9" in err
        assert "has nothing for 2 judged topics, such as q2" in err


@pytest.mark.usefixtures("folder")
class TestOutputFile:
    def test_written_whole(self, fairevals, folder):
        code, out, _ = fairevals(*SCORE, "-m", "P@1", "--format", "csv", "-o", "deep/out.csv")
        assert (code, out) == (0, "")
        assert (folder / "deep" / "out.csv").read_text().startswith(HEADER + "\n")
        assert [path.name for path in (folder / "deep").iterdir()] == ["out.csv"]

    def test_an_old_file_stays_when_scoring_fails(self, fairevals, folder, monkeypatch):
        (folder / "out.csv").write_text("old")
        (folder / "bad.run").write_text("q1 Q0 d1 1\n")
        code, _, _ = fairevals(*SCORE, "bad.run", "-m", "P@1", "-o", "out.csv")
        assert (code, (folder / "out.csv").read_text()) == (1, "old")

        def full(_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        code, _, err = fairevals(*SCORE, "-m", "P@1", "-o", "out.csv")
        assert (code, (folder / "out.csv").read_text()) == (1, "old")
        assert "No space left" in err
        assert not list(folder.glob(".*"))

    def test_a_folder_is_no_file(self, fairevals, folder):
        (folder / "out").mkdir()
        code, _, err = fairevals(*SCORE, "-m", "P@1", "-o", "out")
        assert code == 1
        assert "out" in err
        assert not list((folder / "out").iterdir())

    def test_a_pipe_stays_a_pipe(self, fairevals, folder):
        """`-o /dev/null` must not replace the device."""
        path = folder / "pipe"
        os.mkfifo(path)
        got = []
        reader = threading.Thread(target=lambda: got.append(path.read_text()))
        reader.start()
        code, _, _ = fairevals(*SCORE, "-m", "P@1", "--format", "csv", "-o", "pipe")
        reader.join(10)
        assert code == 0
        assert got[0].startswith(HEADER)
        assert path.is_fifo()


TASK = """
qrels = "my.qrels"
runs = "runs.csv"
measures = ["AWRF(attr='A')@3"]
[attributes.A]
groups = ["x", "y"]
memberships = "a.csv"
target = "a.target"
"""
TASK_SCORE = ("score", "--task", "task.toml", "good.run")
EXPOSURE = ("exposure", "--qrels", "my.qrels", "good.run")
COMPARE = ("compare", "--qrels", "my.qrels", "poor.run", "--baseline", "good.run", "-m", "P@1")
VALIDATE = ("validate", "--qrels", "my.qrels", "good.run")
POOL = ("pool", "good.run", "poor.run", "--depth", "2")


class TestInputsAreNotReplaced:
    """An output is compared with all inputs as a file, not by its spelling."""

    @pytest.fixture(autouse=True)
    def _task(self, folder):
        (folder / "task.toml").write_text(TASK)
        (folder / "runs.csv").write_text("file\ngood.run\nunused.run\n")
        (folder / "unused.run").write_text(GOOD)
        (folder / "a.csv").write_text("doc,group\na,x\nb,y\nc,y\n")
        (folder / "a.target").write_text("0.5\n0.5\n")
        (folder / "hard").hardlink_to(folder / "good.run")
        (folder / "soft").symlink_to(folder / "good.run")
        (folder / "sub").mkdir()

    @pytest.mark.parametrize(
        "words",
        [
            *((*SCORE, "-o", name) for name in ("my.qrels", "good.run", "hard", "soft", "sub/../good.run")),
            *((*TASK_SCORE, "-o", name) for name in ("task.toml", "my.qrels", "runs.csv", "unused.run")),
            *((*TASK_SCORE, "-m", "P@1", "-o", name) for name in ("a.csv", "a.target")),
            (*EXPOSURE, "-o", "good.run"),
            (*EXPOSURE, "--figure", "my.qrels"),
            (*COMPARE, "-o", "good.run"),
            (*VALIDATE, "-o", "my.qrels"),
            (*POOL, "-o", "poor.run"),
        ],
        ids=lambda words: f"{words[0]} {words[-1]}",
    )
    def test_refused_before_any_work(self, fairevals, folder, words, monkeypatch):
        before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        with monkeypatch.context() as patched:
            patched.setattr("fairevals.io.runs.RunBuilder", None)  # whoever reads a run fails
            code, out, err = fairevals(*words)
        assert (code, out) == (2, "")
        assert f"{words[-1]} is read by this command; choose another file" in err
        assert "(option --force)" in err
        assert {path: path.read_bytes() for path in before} == before

    @pytest.mark.parametrize("words", [SCORE, EXPOSURE, COMPARE, VALIDATE, POOL], ids=lambda words: words[0])
    def test_with_force(self, fairevals, folder, words):
        expected = fairevals(*words)[1]
        assert expected or words[0] == "validate"
        assert fairevals(*words, "-o", "good.run", "--force")[0] == 0
        assert (folder / "good.run").read_text().startswith(expected)

    @pytest.mark.parametrize("words", [SCORE, EXPOSURE, COMPARE, VALIDATE, POOL], ids=lambda words: words[0])
    def test_other_files_are_replaced(self, fairevals, folder, words):
        (folder / "old").write_text("old")
        assert fairevals(*words, "-o", "old")[0] == 0
        assert fairevals(*words, "-o", "/dev/null")[0] == 0
        assert fairevals(*words, "-o", "-")[0] == 0
        assert (folder / "old").read_text() != "old" or words[0] == "validate"

    def test_the_file_behind_standard_input(self, folder):
        with (folder / "good.run").open() as file:
            found = program("pool", "-", "--depth", "1", "-o", "good.run", stdin=file)
        assert found.returncode == 2
        assert (folder / "good.run").read_text() == GOOD

    def test_a_report(self, fairevals, folder):
        """An earlier report is replaced, but not a file in it that is read this time."""
        words = ("report", "--qrels", "my.qrels", "good.run", "-m", "P@1", "-o", "out")
        assert fairevals(*words)[0] == 0
        for name in ("scores.csv", "figures/mine.csv"):
            (folder / "out" / "figures").mkdir(exist_ok=True)
            (folder / "out" / name).write_text("topic,doc,score\nq1,a,1\n")
            code, _, err = fairevals(*words, "--baseline", f"out/{name}")
            assert code == 2
            assert f"out/{name} is read by this command" in err
            assert (folder / "out" / name).read_text() == "topic,doc,score\nq1,a,1\n"
        assert fairevals(*words, "--force")[0] == 0


@pytest.mark.usefixtures("folder")
class TestErrors:
    @pytest.mark.parametrize(
        ("words", "code", "message"),
        [
            ((), 2, "usage: fairevals"),
            (("scor",), 2, "unknown command 'scor'; expected one of score"),
            (("score", "good.run"), 2, "give --task T.toml or --qrels Q"),
            ((*SCORE, "-m", "nDGC"), 2, "unknown measure 'nDGC'"),
            ((*SCORE, "-m", "nDCG(x=1)"), 2, "nDCG has no parameter 'x' (it takes attention, dcg)"),
            ((*SCORE, "-m", "P"), 2, "P needs a cutoff, such as P@10"),
            ((*SCORE, "-m", "iRBU(phi=2)"), 2, "phi=2 is not a possible value"),
            ((*SCORE, "-m", "GF(attr='X')"), 2, "unknown attribute 'X'; there are none"),
            ((*SCORE, "-m", "ERR@0"), 2, "cutoff is 0"),
            ((*SCORE, "missing.run"), 1, "missing.run: cannot be read (No such file"),
            (("score", "--qrels", "none", "good.run"), 1, "none: cannot be read"),
            (("score", "--task", "none.toml", "good.run"), 1, "none.toml: cannot be read"),
            (("score", "--qrels", "good.run", "good.run"), 1, "good.run:1: 6 columns"),
            (("pool", "missing.run", "--depth", "3"), 1, "missing.run: cannot be read"),
            (("validate", "good.run"), 2, "give --task T.toml or --qrels Q"),
            (
                ("exposure", *SCORE[1:4], "--by", "group", "--attr", "ZZ"),
                2,
                "unknown attribute 'ZZ'; there are none",
            ),
        ],
    )
    def test_messages_and_codes(self, fairevals, words, code, message):
        found, out, err = fairevals(*words)
        assert (found, out) == (code, "")
        assert message in err
        assert "Traceback" not in err

    @pytest.mark.parametrize(
        "words",
        [
            ("score",),
            (*SCORE, "--jobs", "0"),
            (*SCORE, "--format", "xml"),
            (*SCORE, "-p", "-1"),
            (*SCORE, "--temperature", "0"),
            ("pool", "good.run"),
        ],
    )
    def test_wrong_options(self, words, capsys):
        with pytest.raises(SystemExit) as caught:
            main(list(words))
        assert caught.value.code == 2
        assert "usage: fairevals" in capsys.readouterr().err

    def test_an_error_in_another_process(self, fairevals, folder):
        (folder / "bad.run").write_text(GOOD + "q1 Q0 d 1 x good\n")
        code, out, err = fairevals(*SCORE, "bad.run", "-m", "P@1", "--jobs", "2")
        assert (code, out) == (1, "")
        assert "bad.run:6: score 'x'; expected a finite number" in err

    def test_the_program_itself(self):
        found = program(*SCORE, "-m", "P@1", "--format", "csv")
        assert (found.returncode, found.stdout.count("\n")) == (0, 3)
        assert program("score", "--qrels", "my.qrels", "none.run").returncode == 1
        assert program("nothing").returncode == 2
        assert program("--version").stdout.startswith("fairevals ")

    def test_a_reader_that_has_seen_enough(self, folder):
        (folder / "long.qrels").write_text("".join(f"q{i} 0 a 1\n" for i in range(5000)))
        command = (
            f"'{sys.executable}' -m fairevals score --qrels long.qrels good.run -m P@1 -m P@2 -q --format csv"
        )
        found = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command} | head -1"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert found.stdout.strip() == HEADER
        assert "Traceback" not in found.stderr
        assert "BrokenPipe" not in found.stderr
        assert found.returncode == 0

    def test_a_library_message_gets_the_option(self, fairevals, folder):
        (folder / "full").mkdir()
        (folder / "full" / "x").touch()
        code, _, err = fairevals("report", "--qrels", "my.qrels", "good.run", "-o", "full")
        assert code == 2
        assert "--force" in err
        assert with_options("draw more samples") == "draw more samples (option --samples)"
        assert with_options("reinforce the order") == "reinforce the order"


class TestHelp:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_shows_an_example(self, command, capsys):
        with pytest.raises(SystemExit) as caught:
            main([command, "--help"])
        out = capsys.readouterr().out
        assert caught.value.code == 0
        assert f"usage: fairevals {command}" in out
        example = out.partition("example:\n")[2]
        assert f"fairevals {command}" in example

    def test_qrels_can_be_repeated(self):
        parse = make_parser("score").parse_args
        assert parse(["--qrels", "a", "x.run"]).qrels == ["a"]
        assert parse(["--qrels", "a", "--qrels", "b", "--qrels", "c", "x.run"]).qrels == ["a", "b", "c"]

    def test_the_program(self, fairevals):
        code, out, _ = fairevals("--help")
        assert code == 0
        assert all(f"\n  {command}" in out for command in COMMANDS)

    @pytest.mark.parametrize(
        "words", [["--help"], ["score", "--help"], ["validate", "--help"], ["--version"]]
    )
    def test_loads_nothing_heavy(self, words):
        heavy = ["numpy", "pandas", "scipy", "matplotlib", "pyarrow"]
        code = (
            "import sys, contextlib; from fairevals.cli.main import main\n"
            f"with contextlib.suppress(SystemExit): main({words!r})\n"
            f"print([name for name in {heavy!r} if name in sys.modules])"
        )
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        assert found.stdout.splitlines()[-1] == "[]", found.stderr


# One line for each kind of problem; the numbers are those of the lines.
NINE = [
    b"q1 Q0 a 1 9.0 mine",  # 1
    b"q1 Q0 b 2",  # 2 columns
    b"q1 Q0 c 3 high mine",  # 3 score
    b"q1 Q0 d 4 inf mine",  # 4 score
    b"q1 Q0 a 5 8.0 mine",  # 5 duplicate
    b"q9 Q0 a 1 1.0 mine",  # 6 unknown topic
    b"q1 Q0 e 1 10.0 mine",  # 7 rank order: a higher score than line 1, but not a higher rank
    b"q1 Q0 f 7 2.0 yours",  # 8 tag; and one document too many
    b"q1 Q0 g\xff 8 1.0 mine",  # 9 encoding
    b"q2 Q0 a 1 1.0 mine",  # 10; nothing for q3
]


@pytest.mark.usefixtures("folder")
class TestValidate:
    def test_all_nine_kinds_at_once(self, fairevals, folder):
        (folder / "bad.run").write_bytes(b"\n".join(NINE).replace(b"e 1 10.0", b"e 6 10.0"))
        words = ("validate", "--qrels", "my.qrels", "bad.run", "--max-docs", "2", "--format", "csv")
        code, out, err = fairevals(*words)
        assert code == 1
        found = {(row["kind"], row["line"], row["level"]) for row in rows(out)}
        assert found == {
            ("columns", "2", "error"),
            ("score", "3", "error"),
            ("score", "4", "error"),
            ("duplicate", "5", "error"),
            ("unknown topic", "6", "error"),
            ("rank order", "1", "warning"),
            ("tag", "8", "error"),
            ("too many", "8", "error"),
            ("encoding", "9", "error"),
            ("missing topic", "", "error"),
        }
        assert "1 file: 0 fine, 1 with errors; 9 errors, 1 warning" in err
        by_kind = {row["kind"]: row for row in rows(out)}
        assert by_kind["columns"]["found"].startswith("4 columns")
        assert by_kind["duplicate"]["expected"] == "it once (first in line 1)"
        assert "'q3'" in by_kind["missing topic"]["found"]
        assert by_kind["tag"]["expected"] == "'mine' as in the first line"
        assert {row["file"] for row in rows(out)} == {"bad.run"}
        code, out, _ = fairevals(*words[:-2])
        assert code == 1
        assert all(kind in out for kind, _, _ in found)

    def test_warnings_alone_are_no_failure(self, fairevals, folder):
        (folder / "odd.run").write_text(GOOD.replace("c 1 3.0", "c 2 3.0").replace("a 2 2.0", "a 1 2.0"))
        code, out, err = fairevals("validate", "--qrels", "my.qrels", "odd.run", "--format", "csv")
        assert code == 0
        assert [(row["level"], row["kind"], row["line"]) for row in rows(out)] == [
            ("warning", "rank order", "2")
        ]
        assert "1 fine, 0 with errors; 0 errors, 1 warning" in err

    def test_ranks_that_order_ties_another_way(self, fairevals, folder):
        (folder / "ties.run").write_text(GOOD.replace("3.0", "2.0").replace("1.0 good\nq2", "2.0 good\nq2"))
        _, out, _ = fairevals("validate", "--qrels", "my.qrels", "ties.run", "--format", "csv")
        assert [(row["level"], row["kind"]) for row in rows(out)] == [("warning", "tied scores")]

    def test_a_valid_file(self, fairevals):
        code, out, err = fairevals("validate", "--qrels", "my.qrels", "good.run", "poor.run")
        assert (code, out) == (0, "")
        assert "2 files: 2 fine, 0 with errors; 0 errors, 0 warnings" in err

    def test_one_bad_file_does_not_hide_the_others(self, fairevals, folder):
        (folder / "cut.run.gz").write_bytes(b"\x1f\x8b\x08\x00\x00")
        (folder / "bad.run").write_text(GOOD + "q1 Q0\n")
        runs = ["missing.run", "cut.run.gz", "bad.run", "good.run"]
        code, out, err = fairevals("validate", "--qrels", "my.qrels", *runs, "--format", "csv")
        assert code == 1
        assert [(row["file"], row["kind"]) for row in rows(out)] == [
            ("missing.run", "unreadable"),
            ("cut.run.gz", "unreadable"),
            ("bad.run", "columns"),
        ]
        assert "4 files: 1 fine, 3 with errors" in err

    def test_no_more_than_most(self, fairevals, folder):
        (folder / "bad.run").write_text(GOOD + "q1 Q0\n" * 25)
        words = ("validate", "--qrels", "my.qrels", "bad.run", "--most", "3", "--format", "csv")
        _, out, err = fairevals(*words)
        assert [row["line"] for row in rows(out)] == ["6", "7", "8", ""]
        assert rows(out)[3]["found"].startswith("22 more")
        assert "25 errors" in err

    def test_samples(self, fairevals, folder):
        (folder / "s.run").write_text(
            "".join(f"{t} {s} a 1 1 x\n" for t in ("q1", "q2", "q3") for s in (1, 2))
        )
        words = ("validate", "--qrels", "my.qrels", "s.run")
        assert fairevals(*words)[0] == 1
        assert fairevals(*words, "--policy", "samples")[0] == 0

    def test_tables(self, fairevals, folder):
        (folder / "x.csv").write_text("topic,doc,score\nq1,a,1\nq1,b,2\nq9,a,1\nq2,a,1\n")
        words = ("validate", "--qrels", "my.qrels", "x.csv", "--max-docs", "1", "--format", "csv")
        code, out, _ = fairevals(*words)
        assert code == 1
        assert [row["kind"] for row in rows(out)] == ["too many", "unknown topic", "missing topic"]


@pytest.mark.usefixtures("folder")
class TestPool:
    def test_pool(self, fairevals):
        code, out, _ = fairevals("pool", "good.run", "poor.run", "--depth", "1")
        assert code == 0
        assert out == "q1 b 1\nq1 c 1\nq2 a 1\nq2 b 1\nq3 b 2\n"

    def test_ties_at_the_depth_and_order_of_topics(self, fairevals, folder):
        (folder / "ties.run").write_text("q10 Q0 a 1 1 t\nq10 Q0 c 2 1 t\nq10 Q0 b 3 1 t\nq9 Q0 z 1 1 t\n")
        assert fairevals("pool", "ties.run", "--depth", "2")[1] == "q9 z 1\nq10 b 1\nq10 c 1\n"
        assert (
            fairevals("pool", "ties.run", "--depth", "2", "--rank-by", "file")[1]
            == "q9 z 1\nq10 a 1\nq10 c 1\n"
        )

    def test_samples_and_output(self, fairevals, folder):
        (folder / "s.run").write_text("q 1 a 1 2 t\nq 1 b 2 1 t\nq 2 b 1 2 t\nq 2 a 2 1 t\n")
        code, out, _ = fairevals("pool", "s.run", "--depth", "1", "--policy", "samples", "-o", "pool.txt")
        assert (code, out) == (0, "")
        assert (folder / "pool.txt").read_text() == "q a 1\nq b 1\n"


class TestDemo:
    @pytest.mark.thorough
    def test_demo(self, fairevals, tmp_path):
        code, out, _ = fairevals("demo", "-o", tmp_path / "demo")
        assert code == 0
        scores = rows((tmp_path / "demo" / "scores.csv").read_text())
        means = {
            row["run"]: float(row["value"])
            for row in scores
            if (row["topic"], row["measure"]) == ("all", "nDCG@10")
        }
        assert len(means) == 8
        assert min(means, key=means.get) == "random"
        assert all(name in out for name in means)
        assert "<table" in (tmp_path / "demo" / "index.html").read_text()
        written = {path: path.read_bytes() for path in (tmp_path / "demo").rglob("*") if path.is_file()}
        assert fairevals("demo", "-o", tmp_path / "demo")[0] == 0
        assert {path: path.read_bytes() for path in written} == written

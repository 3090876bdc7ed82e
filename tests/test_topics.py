"""The list of topics: what a task can do with it before anything is judged, and groups of topics from its columns."""

from __future__ import annotations

import pytest

import fairevals as fe
from fairevals.cli.main import main
from fairevals.collection.collection import load_collection
from fairevals.collection.topics import topic_groups
from fairevals.errors import InputError, UsageError
from fairevals.io.task import Task, read_task
from fairevals.io.topics import read_topics

TABLE = "topic\ttitle\ttype\nR1\tAda, Countess\tR\nR2\tGrace\tR\nM1\tMetropolis\tM\n"
RUN = "R1 Q0 a 1 2 t\nR2 Q0 b 1 2 t\nM1 Q0 c 1 2 t\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics.tsv").write_text(TABLE)
    (tmp_path / "task.toml").write_text(
        'topics = "topics.tsv"\nqrels = "notyet.qrels"\n[topic_groups.TYPE]\ncolumn = "type"\n'
    )
    (tmp_path / "fine.run").write_text(RUN)
    (tmp_path / "bad.run").write_text("R1 Q0 a 1 2 t\nX9 Q0 a 1 2 t\nM1 Q0 c 1 2 t\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("R1\nR2\n\n# a comment\nM1\n", {}),
        ("topic\nR1\nR2\nM1\n", {}),
        (TABLE, {"title": ("Ada, Countess", "Grace", "Metropolis"), "type": ("R", "R", "M")}),
        ('type,id\nR,"R1"\nR,R2\nM,M1\n', {"type": ("R", "R", "M")}),
        (
            '{"id": "R1", "title": "x", "rel_docs": [1]}\n{"title": "y", "id": "R2"}\n{"id": "M1"}\n',
            {"title": ("x", "y", "")},
        ),
        ("\ufeffR1\r\nR2\r\nM1", {}),
    ],
)
def test_forms(tmp_path, text, columns):
    (tmp_path / "topics").write_text(text)
    topics = read_topics(tmp_path / "topics")
    assert topics.ids == ("R1", "R2", "M1")
    assert topics.columns == columns


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("R1\nR2\nR1\n", "topics:3: the topic 'R1' a second time; expected it once (first in line 1)"),
        ("R1 Ada\n", "topics:1: a topic with spaces: 'R1 Ada'; expected one id per line"),
        ("", "topics: no topic; expected one topic id per line"),
        ("number,title\n1,x\n", "topics:1: columns number, title; expected a header with topic"),
        ("topic,title\n,x\n", "topics:2: an empty topic"),
        ("topic,title\nR1\n", "topics:2: 1 columns: 'R1'; expected 2"),
        ('{"id": 1}\n{"id": 2', "topics:2: a line that is not JSON"),
        ('{"id": 1}\n{"title": 2}', "topics:2: a line without 'id'"),
        ('{"id": 1}\n[2]', "topics:2: a list; expected an object"),
        ('{"id": 1.5}', "topics:1: a id of type float"),
        ("%PDF-1.4\n%\xe2\xe3\n", "a PDF document"),
    ],
)
def test_bad_lists(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "topics").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as error:
        read_topics("topics")
    assert message in str(error.value)


def test_validate_without_qrels(folder, capsys):
    assert main(["validate", "--task", "task.toml", "fine.run"]) == 0
    assert main(["validate", "--task", "task.toml", "bad.run", "--format", "csv"]) == 1
    out = capsys.readouterr().out
    assert "bad.run,2,error,unknown topic,topic 'X9'" in out
    assert "bad.run,,error,missing topic,nothing for topic 'R2'" in out
    assert main(["validate", "--topics", "topics.tsv", "bad.run", "--format", "csv"]) == 1
    assert capsys.readouterr().out == out
    assert main(["validate", "bad.run"]) == 2
    assert "--topics FILE" in capsys.readouterr().err


@pytest.mark.filterwarnings("always")
def test_the_list_decides_where_qrels_exist(folder, capsys):
    """A listed topic may be without judgements; a judged topic that is not listed is unknown, and said once."""
    (folder / "notyet.qrels").write_text("R1 0 a 1\nX9 0 a 1\n")
    assert main(["validate", "--task", "task.toml", "fine.run"]) == 0
    assert "topics.tsv does not list 1 judged topic, such as 'X9'" in capsys.readouterr().err
    assert main(["validate", "--task", "task.toml", "bad.run", "--format", "csv"]) == 1
    assert "unknown topic,topic 'X9'" in capsys.readouterr().out


def test_scores_need_qrels(folder, capsys):
    assert main(["score", "--task", "task.toml", "fine.run"]) == 1
    assert "notyet.qrels: cannot be read" in capsys.readouterr().err
    assert load_collection("task.toml", judged=False).topics == ("R1", "R2", "M1")


def test_groups_from_a_column(folder):
    task = read_task("task.toml")
    assert topic_groups(task, "TYPE", ["M1", "R2", "R1"]) == {"R": [1, 2], "M": [0]}
    assert Task.from_file("task.toml") == task
    task.save("copy.toml")
    assert read_task("copy.toml") == task
    result = fe.evaluate("fine.run", {"R1": {"a": 1}, "R2": {"x": 1}, "M1": {"c": 1}}, ["P@1"], task=task)
    assert result.by("TYPE").loc["t"].iloc[0].to_dict() == {"R": 0.5, "M": 1.0, "gap": 0.5, "worst": "R"}


def test_wrong_columns(folder):
    groups = {"TYPE": {"column": "kind"}}
    with pytest.raises(InputError, match=r"topics.tsv: no column 'kind' .*; expected one of title, type"):
        topic_groups(Task(topics="topics.tsv", topic_groups=groups), "TYPE", ["R1"])
    with pytest.raises(UsageError, match="needs a list of topics"):
        topic_groups(Task(topic_groups=groups), "TYPE", ["R1"])
    with pytest.raises(
        InputError, match=r"task.toml:\d+: topic groups TYPE: no judged topic is in the group 'M'"
    ):
        topic_groups(read_task("task.toml"), "TYPE", ["R1", "R2"])
    (folder / "wrong.toml").write_text('[topic_groups.TYPE]\ncolumn = "type"\nR = ["R*"]\n')
    with pytest.raises(InputError, match=r'wrong.toml:2: .*only file = "…" or column = "…"'):
        read_task("wrong.toml")

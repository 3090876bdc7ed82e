"""Parquet: which columns can be ids, runs without rows, and folders as runs in every command."""

from __future__ import annotations

import datetime
import decimal

import pandas as pd
import pytest

from fairevals import InputError, evaluate, read_run
from fairevals.cli.main import main
from fairevals.collection.inputs import load_run
from fairevals.evaluation import Plan, load_collection, score
from fairevals.io.memberships import rows_of

pa = pytest.importorskip("pyarrow", reason="reading parquet needs pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

QRELS = "t1 0 a 2\nt1 0 b 1\nt2 0 x 1\nt3 0 y 0\n"
RUN = "t1 Q0 a 1 5 g\nt1 Q0 b 2 4 g\nt2 Q0 x 1 3 g\n"
ROWS = {"topic": ["t1", "t1", "t2"], "doc": ["a", "b", "x"], "score": [5.0, 4.0, 3.0]}
TEXTS = [
    *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.binary(2)),
    *(pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.binary())),
    *(getattr(pa, name)() for name in ("string_view", "binary_view") if hasattr(pa, name)),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.qrels").write_text(QRELS)
    (tmp_path / "g.run").write_text(RUN)
    (tmp_path / "f").mkdir()
    frame = pd.DataFrame(ROWS)
    frame[:1].to_parquet(tmp_path / "f" / "a.parquet")
    frame[:0].to_parquet(tmp_path / "f" / "b.parquet")
    frame[1:].to_parquet(tmp_path / "f" / "c.parquet")
    return tmp_path


def column(values, kind):
    """An array of a type; pyarrow makes no dictionaries of given values itself."""
    if pa.types.is_dictionary(kind):
        return column(values, kind.value_type).dictionary_encode().cast(kind)
    text = str(kind).startswith(("string", "large_string"))
    return pa.array([v if text else v.encode() for v in values], kind)


def saved(folder, name="x.parquet", **columns):
    pq.write_table(pa.table({**ROWS, **columns}), folder / name)
    return folder / name


# Ids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_texts_however_they_are_stored(folder, kind):
    """Many programs write texts as bytes, without saying that they are texts."""
    topic, doc = column(["t1", "t1", "t2"], kind), column(["d1", "d2", "d3"], kind)
    path = saved(folder, topic=topic, doc=doc, sample=doc)
    one = read_run(path)
    assert one.lists == [("t1", ""), ("t2", "")]
    assert one.docs.texts() == ["d1", "d2", "d3"]
    assert read_run(path, samples=True).lists == [("t1", "d1"), ("t1", "d2"), ("t2", "d3")]
    given = load_run(pq.read_table(path).to_pandas())
    assert (given.lists, given.docs.texts()) == (one.lists, one.docs.texts())
    (folder / "f" / "a.parquet").unlink()
    (folder / "f" / "c.parquet").unlink()
    path.rename(folder / "f" / "x.parquet")
    scores = score([folder / "f"], load_collection(None, folder / "q.qrels"), plan(folder))
    assert "skipped" not in " ".join(scores.notes)


def plan(folder):
    return Plan.of(load_collection(None, folder / "q.qrels"), ["P@1"])


@pytest.mark.parametrize(
    "values",
    [
        pa.array([7, 2**63, 3], pa.uint64()),
        pa.array([7, 8, 3], pa.int8()),
        pa.array([decimal.Decimal(n) for n in (7, 8, 10**30)], pa.decimal128(38, 0)),
    ],
    ids=lambda values: str(values.type),
)
def test_whole_numbers(folder, values):
    expected = [str(value) for value in values.to_pylist()]
    path = saved(folder, doc=values)
    assert read_run(path).docs.texts() == expected
    assert load_run(pq.read_table(path).to_pandas()).docs.texts() == expected


NO_IDS = [
    pa.array([1.0, 2.0, 3.0]),
    pa.array([1.0, 2.0, 3.0], pa.float32()),
    pa.array([True, False, True]),
    pa.array([decimal.Decimal("1.50")] * 3),
    pa.array([datetime.datetime(2026, 1, 2)] * 3),
    pa.array([datetime.date(2026, 1, 2)] * 3),
    pa.array([datetime.time(1)] * 3),
    pa.array([datetime.timedelta(1)] * 3),
]


@pytest.mark.parametrize("values", NO_IDS, ids=lambda values: str(values.type))
@pytest.mark.parametrize("name", ["topic", "doc"])
def test_what_has_no_one_text_is_refused_at_every_door(folder, values, name):
    path = saved(folder, **{name: values})
    with pytest.raises(InputError) as caught:
        read_run(path)
    assert f"x.parquet: the column '{name}' of type {values.type}; expected texts or" in str(caught.value)
    path.rename(folder / "f" / "x.parquet")
    with pytest.raises(InputError, match=f"the column '{name}' of type"):
        score([folder / "f"], load_collection(None, folder / "q.qrels"), plan(folder))
    with pytest.raises(InputError, match=rf"run:1: a {name} of type \w+: .*; expected texts or whole"):
        load_run(pq.read_table(folder / "f" / "x.parquet").to_pandas())


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.dictionary(pa.int32(), pa.binary())], ids=str)
@pytest.mark.parametrize("name", ["topic", "doc"])
def test_bytes_that_are_not_utf8_have_file_and_row(folder, kind, name):
    values = pa.array([b"ok", "é".encode(), b"t\xff"], pa.binary())
    values = values.view(kind) if kind == pa.string() else values.cast(kind)
    columns = {"topic": ["t1", "t1", "t2"], "doc": ["a", "b", "c"], name: values}
    path = folder / "f" / "x.parquet"
    pq.write_table(pa.table({**columns, "score": [3.0, 2.0, 1.0]}), path, row_group_size=1)
    message = rf"x\.parquet:4: a {name} that is not UTF-8 \(t.xff\); expected UTF-8"
    with pytest.raises(InputError, match=message):
        read_run(path)
    with pytest.raises(InputError, match=message):
        score([folder / "f"], load_collection(None, folder / "q.qrels"), plan(folder))


def test_bytes_from_python():
    table = pd.DataFrame({"topic": [b"q", "q"], "doc": ["é".encode(), b"b"], "score": [2, 1]})
    grades = pd.DataFrame({"topic": [b"q"], "doc": [b"b"], "grade": [1]})
    assert evaluate(table, grades, ["RR"]).frame().value.tolist() == [0.5]
    assert load_run({b"q": {b"b": 1.0}}).lists == [("q", "")]
    with pytest.raises(InputError, match=r"run:2: a doc that is not UTF-8 \(.xff\)"):
        load_run(table.assign(doc=[b"a", b"\xff"]))
    assert rows_of({b"a": "she"}, "SEX")[1] == [(1, ("a", "she", 1.0))]
    groups = pd.DataFrame({"doc": [b"a"], "group": ["she"]})
    assert rows_of(groups, "SEX")[1] == [(1, ("a", "she"))]


def test_padded_bytes_are_refused_with_their_row(folder):
    path = saved(folder, doc=pa.array([b"abc", b"d\0\0", b"def"], pa.binary(3)))
    with pytest.raises(InputError, match=r"x\.parquet:3: a doc with an invalid character: 'd\\x00\\x00'"):
        read_run(path)


# Folders ------------------------------------------------------------------------------------------------------


def call(capsys, *words):
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out.replace(" g ", " f "), err


@pytest.mark.usefixtures("wide_screen")
@pytest.mark.parametrize(
    "words",
    [
        ("score", "--qrels", "q.qrels", "e"),
        ("score", "--qrels", "q.qrels", "e", "--jobs", "2"),
        ("exposure", "--qrels", "q.qrels", "e"),
        ("compare", "--qrels", "q.qrels", "g.run", "--baseline", "e"),
        ("report", "--qrels", "q.qrels", "e", "-o", "out"),
        ("validate", "--qrels", "q.qrels", "e"),
        ("pool", "e", "--depth", "3"),
    ],
    ids=lambda words: words[0],
)
def test_a_folder_without_rows_is_refused(folder, capsys, words):
    (folder / "e").mkdir()
    for name in ("a.parquet", "b.parquet"):
        pd.DataFrame(ROWS)[:0].to_parquet(folder / "e" / name)
    code, out, err = call(capsys, *words)
    assert code == 1
    assert "no row" in out + err and "rows of topic, doc, score" in out + err


@pytest.mark.parametrize(
    "words",
    [
        ("score", "--qrels", "q.qrels", "RUN", "--format", "csv", "-q"),
        ("exposure", "--qrels", "q.qrels", "RUN"),
        ("compare", "--qrels", "q.qrels", "g.run", "--baseline", "RUN", "-m", "P@1", "--format", "csv"),
        ("compare", "--qrels", "q.qrels", "RUN", "--baseline", "g.run", "-m", "P@1", "--format", "csv"),
        ("pool", "RUN", "--depth", "1"),
    ],
    ids=lambda words: words[0],
)
def test_every_command_takes_a_folder_as_it_takes_the_file(folder, capsys, words):
    frame = pd.DataFrame(ROWS)
    frame.to_parquet(folder / "f.parquet")
    assert read_run(folder / "f").lists == read_run(folder / "f.parquet").lists
    expected = call(capsys, *(word.replace("RUN", "f.parquet") for word in words))
    assert expected[0] == 0
    assert call(capsys, *(word.replace("RUN", "f") for word in words)) == expected


def test_a_folder_is_validated_as_a_table(folder, capsys):
    code, out, _ = call(capsys, "validate", "--qrels", "q.qrels", "f", "--max-docs", "1", "--format", "csv")
    assert code == 1
    assert out.splitlines()[1:] == [
        "f,,error,too many,2 documents in topic 't1',at most 1",
        "f,,error,missing topic,nothing for topic 't3',every topic of the task",
    ]
    pd.DataFrame({**ROWS, "topic": "t3", "doc": ["a", "b", ""]}).to_parquet(folder / "f" / "d.parquet")
    code, out, _ = call(capsys, "validate", "--qrels", "q.qrels", "f", "--format", "csv")
    assert code == 1
    assert out.splitlines()[1:] == ["f/d.parquet,4,error,unreadable,an empty doc,a doc"]


def test_a_folder_that_only_has_the_name_of_a_tag_is_no_baseline(folder, capsys):
    (folder / "g").mkdir()
    code, _, err = call(capsys, "compare", "--qrels", "q.qrels", "g.run", "f", "--baseline", "g", "-m", "P@1")
    assert code == 0, err


def test_a_file_of_the_folder_is_not_replaced(folder, capsys):
    code, _, err = call(capsys, "pool", "f", "--depth", "1", "-o", "f/c.parquet")
    assert code == 2
    assert "f/c.parquet is read by this command" in err
    assert read_run(folder / "f").topics == ["t1", "t2"]

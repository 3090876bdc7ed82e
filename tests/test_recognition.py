"""Files are recognised by their content: comments, compressed files, and files of another kind."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairevals import InputError, read_qrels, read_run, read_task
from fairevals.cli.main import main
from fairevals.io.check import Rules, check_run
from fairevals.io.letor import read_letor
from fairevals.io.memberships import read_memberships
from fairevals.io.runs import read_run_columns
from fairevals.io.specs import AttributeSpec
from fairevals.io.streams import Source
from fairevals.io.targets import read_target_file

RUN = b"q1 Q0 a 1 2.5 mine\nq1 Q0 b 2 1.5 mine\nq2 Q0 a 1 1 mine\n"
QRELS = b"q1 0 a 1\nq1 0 b 0\nq2 0 a 2\n"
GRADES = {("q1", "a"): 1, ("q1", "b"): 0, ("q2", "a"): 2}


def rows_of(run):
    return list(zip(run.to_frame().topic, run.to_frame().doc, run.to_frame().score, strict=True))


ROWS = [("q1", "a", 2.5), ("q1", "b", 1.5), ("q2", "a", 1.0)]


def put(folder, data, name="x"):
    (folder / name).write_bytes(data)
    return folder / name


# Comments


@pytest.mark.parametrize(
    "comment", [b"# made by x\n", b"#\n", b"  # a b c d e\n", b"# 1 2 3 4 5\r\n", b"#q1 Q0 a 1 2 t\n"]
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \t\n"])
def test_comments_in_runs_and_qrels(tmp_path, comment, end):
    """At the start, between lines with one separator (the fastest path) and with several, and at the end."""
    for data in (RUN, RUN.replace(b"\n", end), b"<SYSDESC>x</SYSDESC>\n" + RUN):
        lines = data.splitlines(keepends=True)
        commented = comment + comment.join(lines) + comment.rstrip()
        run = read_run(put(tmp_path, commented))
        assert rows_of(run) == ROWS
        assert (run.tag, run.lines) == ("mine", 3)
        assert not list(check_run(Source.of(commented, "x"), Rules(style=True)))
    for data in (QRELS, QRELS.replace(b" 0 ", b"\t0  "), b"q1 a L1\nq1 b L0\nq2 a L2\n"):
        frame = read_qrels(put(tmp_path, comment + comment.join(data.splitlines(keepends=True)))).to_frame()
        assert {(row.topic, row.doc): row.grade for row in frame.itertuples()} == GRADES


def test_a_comment_does_not_shift_line_numbers(tmp_path):
    with pytest.raises(InputError, match=r"x:4: score 'high'"):
        read_run(put(tmp_path, b"# one\n# two\nq1 Q0 a 1 1 t\nq1 Q0 b 1 high t\n"))
    with pytest.raises(InputError, match=r"x:5: document 'a' .*1 in .*x:2 and 0 here"):
        read_qrels(put(tmp_path, b"# one\nq1 0 a 1\n# two\n\nq1 0 a 0\n"))
    with pytest.raises(InputError, match=r"x:2: a byte that is not UTF-8"):
        read_run(put(tmp_path, b"q1 Q0 a 1 1 t\n# caf\xe9\n"))


def test_a_hash_inside_an_id_is_no_comment(tmp_path):
    """As in the ids of MS MARCO's segments."""
    run = read_run(put(tmp_path, b"q#1 Q0 doc_00#0_1 1 2 #tag\n"))
    assert (run.topics, run.docs.texts(), run.tag) == (["q#1"], ["doc_00#0_1"], "#tag")


def test_comments_before_a_trec_fair_header_and_a_table(tmp_path):
    assert read_run(put(tmp_path, b"# fair\nid\tseq_no\tdoc\nq1\t1\ta\n")).lists == [("q1", "1")]
    assert read_run(put(tmp_path, b"# a table\ntopic,doc,score\nq1,a,2\n")).topics == ["q1"]
    assert read_run(put(tmp_path, b"<SYSDESC>x\nid\tseq_no\tdoc\nq1\t1\ta\n")).lists == [("q1", "1")]


@given(
    st.lists(st.sampled_from([b"#", b"# x", b"", b" ", b"\t# 1 2 3 4 5"]), min_size=4, max_size=4),
    st.integers(2, 40),
)
def test_comments_across_pieces_of_any_size(between, size):
    lines = RUN.splitlines()
    parts = [piece for pair in zip(between, [*lines, b""], strict=True) for piece in pair]
    with pytest.MonkeyPatch.context() as patch:
        chunks = Source.chunks
        patch.setattr(Source, "chunks", lambda self, _=0: chunks(self, size))
        columns = read_run_columns(Source.of(b"\n".join(parts), "x"))
    assert columns.lists == [("q1", ""), ("q2", "")]
    assert (columns.docs.texts(), columns.scores.tolist()) == (["a", "b", "a"], [2.5, 1.5, 1.0])


# Compression


def zst(data):
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zst}


@pytest.mark.parametrize("kind", PACK)
@pytest.mark.parametrize("name", ["my.run", "my", "my.run.gz", "my.xz"])
def test_compression_is_recognised_by_the_first_bytes(tmp_path, kind, name):
    assert rows_of(read_run(put(tmp_path, PACK[kind](RUN), name))) == ROWS
    assert len(read_qrels(put(tmp_path, PACK[kind](QRELS), name))) == 3
    assert read_task(put(tmp_path, PACK[kind](b"cutoff = 7"), name)).cutoff == 7
    letor = PACK[kind](b"1 qid:1 1:2\n")
    assert read_letor(letor).features.tolist() == [[2]]


@pytest.mark.parametrize("kind", PACK)
def test_compressed_standard_input(monkeypatch, kind):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(PACK[kind](RUN))))
    assert rows_of(read_run("-")) == ROWS


@pytest.mark.parametrize("kind", PACK)
def test_an_empty_compressed_file(tmp_path, kind):
    with pytest.raises(InputError, match="no readable line"):
        read_run(put(tmp_path, PACK[kind](b"")))


def test_large_compressed_files_in_several_streams(tmp_path):
    lines = [b"q1 Q0 d%d 1 %d t\n" % (i, i) for i in range(100_000)]
    half = b"".join(lines[:50_000]), b"".join(lines[50_000:])
    for pack in PACK.values():
        run = read_run(put(tmp_path, pack(half[0]) + pack(half[1])))
        assert run.lines == 100_000
        assert run.docs.text(0) == "d99999"


# Something else


def zipped():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("my.run", RUN)
    return out.getvalue()


OTHERS = {
    "zip": (zipped(), "a zip archive"),
    "pdf": (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "a PDF document"),
    "html": (b"\n<!DOCTYPE html>\n<html><body>not found</body></html>\n", "an HTML page"),
    "html of three columns": (b'<html lang="en" class="x">\n<body>\n', "an HTML page"),
    "json": (json.dumps({"q1": {"a": 1.5}}).encode(), "JSON"),
    "json of three columns": (b'{"q1": {"d1": 0.5}}\n', "JSON"),
    "pretty json": (json.dumps([{"q": 1, "docs": [{"a": 2}]}], indent=2).encode(), "JSON"),
    "long json": (json.dumps({f"q{n}": {"doc": n} for n in range(9999)}).encode(), "JSON"),
    "json lines": (b'{"id": 1, "docs": ["a", "b"]}\n{"id": 2, "docs": ["c"]}\n', "JSON"),
    "utf-16": (RUN.decode().encode("utf-16"), "UTF-16 text"),
    "utf-16 without mark": (RUN.decode().encode("utf-16-le"), "UTF-16 text"),
    "utf-16, the other way": (RUN.decode().encode("utf-16-be"), "UTF-16 text"),
    "packed zip": (gzip.compress(zipped()), "a zip archive"),
}


@pytest.mark.parametrize(("data", "kind"), OTHERS.values(), ids=OTHERS)
def test_what_a_file_is_instead(tmp_path, data, kind):
    path = put(tmp_path, data)
    with pytest.raises(InputError, match=rf"x: this is {kind}.*; expected a TREC run"):
        read_run_columns(Source.of(path))  # `read_run` would open the archive
    with pytest.raises(InputError, match=rf"x: this is {kind}.*; expected qrels"):
        read_qrels(path)
    with pytest.raises(InputError, match=rf"x: this is {kind}.*; expected memberships"):
        read_memberships(AttributeSpec("A", ("g", "h"), memberships=path))
    with pytest.raises(InputError, match=rf"x: this is {kind}.*; expected a target"):
        read_target_file(path, ("g", "h"))
    with pytest.raises(InputError, match=rf"x: this is {kind}.*; expected LETOR"):
        read_letor(path)
    (problem,) = check_run(Source.of(path), Rules(style=True))
    assert (problem.kind, problem.found.startswith(f"this is {kind}")) == ("format", True)


def test_parquet_without_its_suffix(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame({"topic": ["q"], "doc": ["a"], "score": [1.0]}).to_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.parquet").rename(tmp_path / "x.run")
    with pytest.raises(InputError, match=r"this is a parquet table \(its name must end in \.parquet\)"):
        read_run(tmp_path / "x.run")


@pytest.mark.parametrize(
    "topic", [b"[1]", b"{a}", b"[", b"%PDF-1", b"<html", b"PK\x03x".replace(b"\x03", b"3"), b"BZh9"]
)
def test_a_valid_file_is_never_taken_for_something_else(tmp_path, topic):
    run = read_run(put(tmp_path, topic + b" Q0 a 1 2 t\n" + topic + b" Q0 b 1 1 t\n"))
    assert (run.topics, len(run)) == ([topic.decode()], 2)
    assert read_run(put(tmp_path, topic + b"\t1\ta\n")).lists == [(topic.decode(), "1")]
    assert read_qrels(put(tmp_path, topic + b" 0 a 1\n")).topics == (topic.decode(),)


def test_an_error_far_down_in_a_run_with_brackets_names_the_line(tmp_path):
    lines = b"".join(b"[%d] Q0 a 1 2 t\n" % n for n in range(2000))
    with pytest.raises(InputError, match=r"x:2001: score 'x'"):
        read_run(put(tmp_path, lines + b"[1] Q0 b 1 x t\n"))


def test_validate_reports_one_error_for_a_zip(tmp_path, capsys):
    run, qrels = put(tmp_path, gzip.compress(zipped()), "r.zip.gz"), put(tmp_path, QRELS, "q.qrels")
    assert main(["validate", "--qrels", str(qrels), str(run), "--format", "csv"]) == 1
    out = capsys.readouterr()
    assert out.out.count("\n") == 2
    assert "this is a zip archive,a TREC run" in out.out
    assert "1 error, 0 warnings" in out.err


def test_repeated_qrels_options_are_joined(tmp_path, capsys):
    run = put(tmp_path, RUN, "r.run")
    first, second = (put(tmp_path, data, name) for data, name in ((QRELS[:18], "a"), (QRELS[18:], "b")))
    whole = put(tmp_path, QRELS, "q")
    words = ["-m", "nDCG@10", "--format", "csv"]
    assert main(["score", "--qrels", str(whole), str(run), *words]) == 0
    expected = capsys.readouterr().out
    assert main(["score", "--qrels", str(first), "--qrels", str(second), str(run), *words]) == 0
    assert capsys.readouterr().out == expected

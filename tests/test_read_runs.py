"""Run files of every form read alike, whatever their spelling; what cannot be read is named by file and line."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairevals import InputError, UsageError, read_run
from fairevals.collection.inputs import load_qrels, load_run
from fairevals.io.runs import RunOptions, read_run_columns
from fairevals.io.streams import Source

ROWS = [
    ("R1", "dona-ruiz", 2.5),
    ("R1", "ada-lund", 3.25),
    ("R2", "zoë", -1e-3),
    ("R1", "cy", 2.5),
    ("R2", "ada-lund", 0.0),
]
TREC = "".join(f"{topic} Q0 {doc} 1 {score!r} mine\n" for topic, doc, score in ROWS).encode()
RANKED = {"R1": ["ada-lund", "dona-ruiz", "cy"], "R2": ["ada-lund", "zoë"]}


def rankings(run):
    frame = run.to_frame()
    by = ["topic", "sample"] if "sample" in frame else "topic"
    return {key: list(group.doc) for key, group in frame.groupby(by, sort=False)}


def written(folder, data, name="x.run"):
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def columns(data, name="x.run", **options):
    source = Source.of(data if isinstance(data, bytes) else data.encode(), name)
    return read_run_columns(source, RunOptions(**options))


SPELLINGS = {
    "plain": TREC,
    "tabs": TREC.replace(b" ", b"\t"),
    "mixed": TREC.replace(b" ", b"\t", 1).replace(b"Q0 ", b"Q0  \t "),
    "spaces at both ends": b"".join(b"  " + line + b" \t\n" for line in TREC.splitlines()),
    "Windows": TREC.replace(b"\n", b"\r\n"),
    "byte-order mark": b"\xef\xbb\xbf" + TREC,
    "no last newline": TREC.rstrip(b"\n"),
    "blank lines": b"\n \n" + TREC.replace(b"\n", b"\n\n\r\n") + b"\t\n",
    "everything": b"\xef\xbb\xbf\r\n" + TREC.replace(b" ", b" \t").replace(b"\n", b"\r\n\r\n").rstrip(),
}


@pytest.mark.parametrize("data", SPELLINGS.values(), ids=SPELLINGS)
def test_spellings_of_trec(tmp_path, data):
    run = read_run(written(tmp_path, data))
    assert rankings(run) == RANKED
    assert run.tag == "mine"
    assert run.to_frame().score.tolist() == [3.25, 2.5, 2.5, 0.0, -1e-3]
    assert run.lines == 5


def _zst(data):
    return pytest.importorskip("zstandard").ZstdCompressor().compress(data)


COMPRESSIONS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": _zst}


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_compression(tmp_path, suffix):
    compress = COMPRESSIONS[suffix]
    assert rankings(read_run(written(tmp_path, compress(TREC), f"x.run{suffix}"))) == RANKED
    # Two streams one after the other, as `cat a.gz b.gz` makes them.
    half = TREC.index(b"\n") + 1
    both = compress(TREC[:half]) + compress(TREC[half:])
    assert rankings(read_run(written(tmp_path, both, f"y.run{suffix.upper()}"))) == RANKED


@pytest.mark.parametrize("suffix", COMPRESSIONS)
def test_compressed_file_cut_short(tmp_path, suffix):
    noise = "".join(f"R1 Q0 d{i * 7919 % 10007} 1 {i} t\n" for i in range(3000)).encode()
    path = written(tmp_path, COMPRESSIONS[suffix](noise)[:-40], f"x.run{suffix}")
    with pytest.raises(InputError, match=rf"x\.run\{suffix}: cannot be read"):
        read_run(path)
    path = written(tmp_path, TREC, f"y.run{suffix}")
    with pytest.raises(InputError, match=rf"y\.run\{suffix}: cannot be read"):
        read_run(path)


def test_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TREC)))
    assert rankings(read_run("-")) == RANKED
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TREC + b"R1 Q0\n")))
    with pytest.raises(InputError, match="<stdin>:6: 2 columns"):
        read_run("-")


def test_a_pipe_is_read_only_once(tmp_path):
    """As `<(zcat run.gz)` makes one: finding out the format must not eat the first lines."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = TREC + b"".join(b"R3 Q0 d%07d 1 1 mine\n" % i for i in range(100_000))
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    run = read_run(path)
    writer.join(10)
    assert run.lines == 100_005
    assert {key: docs for key, docs in rankings(run).items() if key != "R3"} == RANKED


def test_ntcir_order_of_lines(tmp_path):
    """Scores that contradict the order of lines are not looked at."""
    data = b"<SYSDESC>BM25 with a b c d e</SYSDESC>\n" + TREC
    run = read_run(written(tmp_path, data), order="file")
    assert rankings(run) == {"R1": ["dona-ruiz", "ada-lund", "cy"], "R2": ["zoë", "ada-lund"]}
    assert run.tag == "mine"
    assert rankings(read_run(written(tmp_path, b"\xef\xbb\xbf" + data))) == RANKED
    with pytest.raises(InputError, match=r"x\.run:2: 7 columns"):
        read_run(written(tmp_path, b"".join(data.splitlines(keepends=True)[i] for i in (1, 0, 2))))


def test_samples_by_the_second_column(tmp_path):
    data = "q 2 a 1 1.0 t\nq 1 a 1 9.0 t\nq 2 b 2 2.0 t\nq 1 b 2 1.0 t\n"
    run = read_run(written(tmp_path, data), samples=True)
    assert rankings(run) == {("q", "2"): ["b", "a"], ("q", "1"): ["a", "b"]}
    run = read_run(written(tmp_path, data), samples=True, order="file")
    assert rankings(run)["q", "2"] == ["a", "b"]
    with pytest.raises(
        InputError, match=r"x\.run:2: document 'a' a second time in topic 'q'.*first in line 1"
    ):
        read_run(written(tmp_path, data))
    with pytest.raises(InputError, match=r"x\.run:5: document 'b' a second time.*first in line 4"):
        read_run(written(tmp_path, data + "q 1 b 1 1 t\n"), samples=True)


@pytest.mark.parametrize(
    "header", ["", "id\tseq_no\tdoc\n", "id\trep_number\tpage_id\r\n", "\ntopic\tsample\tdoc\n"]
)
def test_trec_fair(tmp_path, header):
    run = read_run(written(tmp_path, header + "7\t1\tb\n7\t1\ta\n7\t2\ta\n8\t1\tb\n", "fair.tsv"))
    assert rankings(run) == {("7", "1"): ["b", "a"], ("7", "2"): ["a"], ("8", "1"): ["b"]}
    with pytest.raises(InputError, match=r"fair\.tsv:3: document 'b' a second time in topic '7'"):
        read_run(written(tmp_path, "7\t1\tb\n7\t2\tb\n7\t1\tb\n", "fair.tsv"))
    with pytest.raises(InputError, match=r"fair\.tsv:2: 2 columns.*expected 3 columns"):
        read_run(written(tmp_path, "7\t1\tb\n7\t2\n", "fair.tsv"))


@pytest.mark.parametrize("sep", [",", "\t"])
@pytest.mark.parametrize("spelling", ["plain", "Windows", "byte-order mark", "quoted"])
def test_text_tables(tmp_path, sep, spelling):
    text = "rank,topic,doc,score\n" + "".join(f"1,{t},{d},{s!r}\n" for t, d, s in ROWS)
    data = text.replace(",", sep).encode()
    data = {
        "Windows": data.replace(b"\n", b"\r\n"),
        "byte-order mark": b"\xef\xbb\xbf" + data,
        "quoted": data.replace(b"topic", b'"topic"').replace(b"ada-lund", b'"ada-lund"'),
    }.get(spelling, data)
    for name in ("mine.csv", "mine.csv.gz", "mine"):
        path = written(tmp_path, gzip.compress(data) if name.endswith("gz") else data, name)
        run = read_run(path)
        assert rankings(run) == RANKED
        assert run.tag == "mine"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_with_samples(tmp_path, kind):
    frame = pd.DataFrame(
        {"topic": ["q", "q", "q"], "sample": [1, 2, 2], "doc": ["a", "b", "a"], "score": [1.0, 3.0, 2.0]}
    )
    path = tmp_path / f"x.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    assert rankings(read_run(path, samples=True)) == {("q", "1"): ["a"], ("q", "2"): ["b", "a"]}
    with pytest.raises(InputError, match="'a' a second time in topic 'q'"):
        read_run(path)
    frame.drop(columns="sample").iloc[:2].to_parquet(tmp_path / "y.parquet")
    assert rankings(read_run(tmp_path / "y.parquet")) == {"q": ["b", "a"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topic,doc,score\nq,a,1\nq,b,high\n", r":3: score 'high'; expected a finite number"),
        ("topic,doc,score\nq,a,1\nq,b,inf\n", r":3: score 'inf'; expected a finite number"),
        ("topic,doc,score\nq,a,1\nq,b,\n", r":3: score ''; expected a finite number"),
        ("topic,doc,score\nq,a,1\nq,,2\n", r":3: an empty doc; expected a doc"),
        ("topic,doc,score\nq,a,1\n,b,2\n", r":3: an empty topic; expected a topic"),
        ("topic,doc,score\nq,a,1\nq,b,2\nq,a,3\n", r":4: document 'a' a second time .* \(first in line 2\)"),
        ("topic,doc,score\nq,a,1\nq,b,2,3,4\n", r":3: 5 columns: .*; expected 3 \(topic, doc, score\)"),
        (
            "topic,doc,score\nq,a,1,0.5\nq,b,2,0.4\n",
            r":2: 4 columns: 'q,a,1,0.5'; expected 3 \(topic, doc, score\)",
        ),
        ("topic,doc,score\n", r": no .*expected"),
    ],
)
def test_what_is_wrong_with_a_table(tmp_path, text, message):
    with pytest.raises(InputError, match=r"x\.csv" + message):
        read_run(written(tmp_path, text, "x.csv"))


def test_a_parquet_file_that_is_none(tmp_path):
    with pytest.raises(InputError, match=r"x\.parquet: not a readable table"):
        read_run(written(tmp_path, TREC, "x.parquet"))
    pd.DataFrame({"topic": ["q"], "doc": ["a"]}).to_parquet(tmp_path / "y.parquet")
    with pytest.raises(InputError, match=r"y\.parquet: columns topic, doc; expected topic, doc, score"):
        read_run(tmp_path / "y.parquet")


lines = st.lists(
    st.tuples(
        st.sampled_from(["R1", "R2", "M10"]),
        st.text("abé", min_size=1, max_size=3),
        st.sampled_from(["1", "2.50", "-0.5", "1e2"]),
        st.sampled_from([" ", "\t", "  "]),
        st.sampled_from(["\n", "\r\n", "\n\n"]),
    ),
    min_size=1,
    max_size=30,
    unique_by=lambda row: row[:2],
)


@given(lines, st.integers(3, 40), st.sampled_from([None, 1, 2, 3]), st.sampled_from(["score", "file"]))
def test_pieces_of_any_size_read_alike(rows, size, depth, order):
    """A line, a character or a topic cut in two between pieces must not show."""
    text = "".join(f"{t}{by}Q0{by}{d}{by}1{by}{s}{by}tag{end}" for t, d, s, by, end in rows)
    data = "﻿".encode() + text.encode()
    whole = columns(data, depth=depth, order=order)
    with pytest.MonkeyPatch.context() as patch:
        chunks = Source.chunks
        patch.setattr(Source, "chunks", lambda self, _=0: chunks(self, size))
        pieces = columns(data, depth=depth, order=order)
    assert pieces.lists == whole.lists
    assert pieces.tag == whole.tag
    assert pieces.lines == whole.lines == len(rows)
    # How many of the lines are held may differ below `depth`, what ranks there may not.
    assert _best(pieces, depth) == _best(whole, depth)


def _best(found, depth):
    rows = zip(found.list_of.tolist(), found.docs.texts(), found.scores.tolist(), strict=True)
    by_list: dict[int, list[tuple[float, bytes]]] = {}
    for code, doc, score in rows:
        by_list.setdefault(code, []).append((score, doc.encode()))
    if found.order == "score":
        by_list = {code: sorted(docs, reverse=True) for code, docs in by_list.items()}
    return {code: docs[:depth] for code, docs in by_list.items()}


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 3)),
        max_size=40,
        unique_by=lambda r: r[:2],
    ),
    st.integers(1, 5),
    st.sampled_from(["score", "file"]),
)
def test_depth_keeps_what_ranking_needs(rows, depth, order):
    data = "".join(f"t{t} Q0 d{d} 1 {s} x\n" for t, d, s in rows) or "t Q0 d 1 1 x\n"
    whole, cut = columns(data, order=order), columns(data, order=order, depth=depth)
    assert _best(cut, depth) == _best(whole, depth)
    if order == "file":
        assert len(cut.docs) == sum(min(depth, n) for n in np.bincount(whole.list_of))
    else:  # nothing is kept but the first `depth` and what ties with the last of them
        for code in range(len(whole.lists)):
            scores = sorted(whole.scores[whole.list_of == code], reverse=True)
            expected = sum(score >= scores[: depth + 0][-1] for score in scores)
            assert int(np.sum(cut.list_of == code)) == expected


def test_depth_over_many_pieces(monkeypatch):
    """The best of a topic may stand in its last piece, after earlier ones were thinned out."""
    monkeypatch.setattr("fairevals.io.runs.RunBuilder.reduced", 8)
    chunks = Source.chunks
    monkeypatch.setattr(Source, "chunks", lambda self, _=0: chunks(self, 64))
    data = "".join(f"t{i % 3} Q0 d{i:03} 1 {i * 37 % 101} x\n" for i in range(300))
    found = columns(data, depth=4)
    monkeypatch.undo()
    assert _best(found, 4) == _best(columns(data), 4)
    assert len(found.docs) < 40


GOOD = "R1 Q0 a 1 2.0 t\n\nR1 Q0 b 2 1.0 t\r\n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"R1 Q0 c 3 t", r"5 columns: 'R1 Q0 c 3 t'; expected 6 columns \(topic Q0 doc rank score tag\)"),
        (b"R1 Q0 c 3 1 my tag", r"7 columns: 'R1 Q0 c 3 1 my tag'; expected 6"),
        (b"R1 Q0 c 3 high t", r"score 'high'; expected a finite number"),
        (b"R1 Q0 c 3 nan t", r"score 'nan'; expected a finite number"),
        (b"R1 Q0 c 3 -inf t", r"score '-inf'; expected a finite number"),
        (b"R1 Q0 c 3 1e999 t", r"score '1e999'; expected a finite number"),
        (b"R1 Q0 c 3 1_0 t", r"score '1_0'; expected a finite number"),
        (b"R1 Q0 c 3 0x1 t", r"score '0x1'; expected a finite number"),
        ("R1 Q0 c 3 ٣ t".encode(), r"score '٣'; expected a finite number"),
        (
            b"R1 Q0 b 3 0.5 t",
            r"document 'b' a second time in topic 'R1'; expected it once \(first in line 3\)",
        ),
        (b"R1 Q0 c\xff\xfe 3 1 t", r"a byte that is not UTF-8 \(\\xff\\xfe.*\); expected UTF-8"),
        (b"R1\xc3 Q0 c 3 1 t", r"a byte that is not UTF-8"),
        (b"R1 Q0 c\x00d 3 1 t", r"a control character in 'R1 Q0 c\\{1,2}x00d 3 1 t'; expected text"),
        (b"R1 Q0 c\x1b[31m 3 1 t", r"a control character in 'R1 Q0 c\\{1,2}x1b\[31m 3 1 t'"),
        (b"R1 Q0 c\x0cd 3 1 t", r"a control character"),
    ],
)
@pytest.mark.parametrize("depth", [None, 1])
def test_what_is_wrong_with_a_line(tmp_path, line, message, depth):
    path = written(tmp_path, GOOD.encode() + line + b"\n" + b"R2 Q0 a 1 1 t\n")
    with pytest.raises(InputError, match=rf"x\.run:4: {message}") as caught:
        read_run(path, depth=depth)
    assert caught.value.place.line == 4
    assert "\x1b" not in str(caught.value)


def test_a_line_far_down_is_counted_right(tmp_path):
    many = "".join(f"R1 Q0 d{i} 1 {i} t\n" for i in range(200_000))
    with pytest.raises(InputError, match=r"x\.run:200001: score 'x'"):
        read_run(written(tmp_path, many + "R1 Q0 a 1 x t\n"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r": no readable line; expected 6 columns"),
        (b"\n \r\n", r": no readable line"),
        (b"\xef\xbb\xbf", r": no readable line"),
        (b"<SYSDESC>only this</SYSDESC>\n", r": no readable line"),
        (b"\0" * 5000, r":1: a control character"),
        ("R1 Q0 a 1 1 t\n".encode("utf-16"), r": this is UTF-16 text; save it as UTF-8; expected a TREC run"),
    ],
)
def test_files_without_a_run(tmp_path, data, message):
    with pytest.raises(InputError, match=r"x\.run" + message):
        read_run(written(tmp_path, data))


def test_paths_that_are_no_file(tmp_path):
    with pytest.raises(InputError, match=r"none\.run: cannot be read \(No such file"):
        read_run(tmp_path / "none.run")
    with pytest.raises(InputError, match="no file; expected a folder or a zip archive"):
        read_run(tmp_path)
    with pytest.raises(UsageError, match="is not a path; expected the path of a file"):
        read_run("a\0b.run")


def test_the_end_of_a_long_path_is_not_cut_off(tmp_path):
    folder = tmp_path / ("long-name-of-a-team" * 4)
    folder.mkdir()
    with pytest.raises(InputError, match=r"/the-run\.run:1: 1 columns"):
        read_run(written(folder, "x\n", "the-run.run"))


@pytest.mark.parametrize("suffix", ["", *COMPRESSIONS])
def test_a_file_beyond_the_limit(tmp_path, monkeypatch, suffix):
    """A few kilobytes that grow without end are not read to their end."""
    data = TREC + b"\n" * 30_000_000
    path = written(tmp_path, COMPRESSIONS.get(suffix, bytes)(data), f"x.run{suffix}")
    monkeypatch.setenv("FAIREVALS_MAX_BYTES", "100000")
    read = []
    chunks = Source.chunks
    monkeypatch.setattr(Source, "chunks", lambda self, size=0: _spy(chunks(self, 65536), read))
    with pytest.raises(InputError, match=r"more than 100000 bytes; raise FAIREVALS_MAX_BYTES to allow it"):
        read_run(path)
    assert sum(read) < 1_000_000


def _spy(pieces, read):
    for piece in pieces:
        read.append(len(piece))
        yield piece


def test_standard_input_beyond_the_limit(monkeypatch):
    monkeypatch.setenv("FAIREVALS_MAX_BYTES", "100")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TREC * 10)))
    with pytest.raises(InputError, match=r"<stdin>: more than 100 bytes"):
        read_run("-")


@pytest.mark.parametrize("size", [16, 1 << 22])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_beyond_the_limit(tmp_path, monkeypatch, size, end):
    monkeypatch.setenv("FAIREVALS_MAX_LINE", "30")
    chunks = Source.chunks
    monkeypatch.setattr(Source, "chunks", lambda self, _=0: chunks(self, size))
    short = b"R1 Q0 a 1 1 t\n"
    exact = b"R1 Q0 " + b"b" * 18 + b" 1 1 t"
    assert len(exact) == 30
    assert read_run(written(tmp_path, short + exact + end)).lines == 2
    with pytest.raises(
        InputError, match=r"x\.run:2: a line of more than 30 bytes; raise FAIREVALS_MAX_LINE to allow"
    ):
        read_run(written(tmp_path, short + exact.replace(b"b", b"bb", 1) + end + (short * 3 if end else b"")))


def test_limits_that_are_no_number(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIREVALS_MAX_LINE", "1 MB")
    with pytest.raises(UsageError, match=r"FAIREVALS_MAX_LINE is '1 MB'; expected a whole number above 0"):
        read_run(written(tmp_path, TREC))


def test_blank_lines_of_a_table_count(tmp_path):
    text = "topic,doc,score\n\nq,a,1\n\nq,b,2\n"
    assert rankings(read_run(written(tmp_path, text, "x.csv"))) == {"q": ["b", "a"]}
    with pytest.raises(InputError, match=r"x\.csv:5: score 'x'"):
        read_run(written(tmp_path, text.replace("2", "x"), "x.csv"))
    with pytest.raises(InputError, match=r"x\.csv:5: document 'a' a second time .*first in line 3"):
        read_run(written(tmp_path, text.replace("b", "a"), "x.csv"))


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=20))
def test_scores_of_tables_are_those_of_trec_runs(numbers):
    """One bit of difference would tear a tie apart."""
    trec = "".join(f"q Q0 d{i} 1 {number!r} t\n" for i, number in enumerate(numbers))
    table = "topic,doc,score\n" + "".join(f"q,d{i},{number!r}\n" for i, number in enumerate(numbers))
    assert columns(trec).scores.tolist() == columns(table, "x.csv").scores.tolist() == numbers


@pytest.mark.parametrize("score", ["0x10", "1_0", " 1", "true", "nan"])
def test_scores_of_tables_are_decimals(tmp_path, score):
    with pytest.raises(InputError, match=r"x\.csv:2: score"):
        read_run(written(tmp_path, f"topic,doc,score\nq,a,{score}\n", "x.csv"))


@pytest.mark.parametrize(
    ("doc", "message"), [("a\0", "no"), ("\ud800", "no"), (None, "empty"), ("", "empty")]
)
def test_names_from_python_that_no_file_could_have(doc, message):
    frame = pd.DataFrame(
        {"topic": ["q", "q"], "doc": pd.Series(["a", doc], dtype=object), "score": [1.0, 1.0]}
    )
    expected = r"an empty doc" if message == "empty" else r"a doc with an invalid character"
    with pytest.raises(InputError, match=rf"run:2: {expected}"):
        load_run(frame)
    with pytest.raises(InputError, match=rf"qrels:2: {expected}"):
        load_qrels(frame.rename(columns={"score": "grade"}))


@pytest.mark.parametrize("topic", "abcd")
@pytest.mark.parametrize("which", [1, 50, -1])
def test_a_repeated_document_is_found_wherever_its_list_continues(topic, which):
    """Lists long enough to be sorted one by one; that of `b` stands in two places of the file."""
    topics = [
        *"a" * 200,
        *"b" * 100,
        *"c" * 150,
        *"b" * 100,
        *"d" * 2000,
        *(f"e{n // 200}" for n in range(4000)),
    ]
    rows = [[name, "Q0", f"d{n}", "1", str(-n), "tag"] for n, name in enumerate(topics)]
    assert len(columns("".join(" ".join(row) + "\n" for row in rows)).docs) == len(rows)
    mine = [n for n, name in enumerate(topics) if name == topic]
    rows[mine[which]][2] = rows[mine[0]][2]
    with pytest.raises(InputError, match=f"document 'd{mine[0]}' a second time"):
        columns("".join(" ".join(row) + "\n" for row in rows))

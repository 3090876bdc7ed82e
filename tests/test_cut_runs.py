"""A large file is read in parts: the same values, remarks and errors as from the whole, wherever it is cut."""

from __future__ import annotations

import gzip
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairevals import FairevalsError
from fairevals.cli.main import main
from fairevals.evaluation import Plan, load_collection, pieces, score, scoring
from fairevals.io.runs import cut_run
from fairevals.io.specs import PolicySpec
from fairevals.io.streams import Source
from fairevals.io.task import Task

TOPICS, DOCS = 9, 12
QRELS = {f"t{t}": {f"d{d}": (d * t) % 3 for d in range(DOCS)} for t in range(1, TOPICS + 1)}


def line(topic, doc, score, tag="tag", second="Q0"):
    return f"{topic} {second} d{doc} 1 {score} {tag}\n"


SORTED = [line(f"t{t}", d, (d * 7 + t) % 11 / 4) for t in range(1, TOPICS + 1) for d in range(DOCS)]
BY_SAMPLE = [
    line(f"t{t}", d, (d * s + t) % 5, second=str(s))
    for s in (1, 2, 3)
    for t in range(1, 10)
    for d in range(6)
]

# What is scored as a whole by one process, and in parts by two.
FILES = {
    "sorted": "".join(SORTED),
    "no line end": "".join(SORTED).rstrip(),
    "windows": "".join(SORTED).replace("\n", "\r\n"),
    "byte-order mark": "\ufeff" + "".join(SORTED),
    "comments": "# first\n" + "\n# t3\n".join(SORTED) + "\n\n# last",
    "long comments": ("# " + "x" * 300 + "\n").join(SORTED),
    "ntcir": "<SYSDESC>a system</SYSDESC>\n" + "".join(SORTED),
    "ntcir without a topic": "<SYSDESC>a system</SYSDESC>\n" + "".join(SORTED[DOCS:]),
    "interleaved": "".join(SORTED[::2] + SORTED[1::2]),
    "one line torn off": "".join([*SORTED[1:], SORTED[0]]),
    "one topic": "".join(SORTED[:DOCS]),
    "one long topic": "".join(line("t1", d, 1 / (d + 1)) for d in range(400)) + "".join(SORTED[DOCS:]),
    "topics without judgements": "".join(SORTED).replace("t3 ", "x3 ").replace("t9 ", "x9 "),
    "other tags": "".join(SORTED[:50]) + "".join(SORTED[50:]).replace(" tag", " other"),
    "samples": "".join(sorted(BY_SAMPLE)),
    "samples one after the other": "".join(BY_SAMPLE),
    "TREC Fair": "id\tseq_no\tdoc\n"
    + "".join(f"t{t}\t{t}.1\td{d}\n" for t in range(1, 10) for d in range(8)),
}
BROKEN = {
    "a bad line": "".join([*SORTED[:90], "t8 Q0 d1 1 high tag\n", *SORTED[90:]]),
    "a bad last line": "".join(SORTED) + "t9 Q0 x 1",
    "a document twice": "".join([*SORTED[:100], SORTED[99], *SORTED[100:]]),
    "a document twice, far away": "".join([*SORTED, SORTED[0]]),
    "no judged topic": "".join(SORTED).replace("t", "x"),
    "not UTF-8": "".join(SORTED).replace("d3 1 0.5 ", "d\udcff 1 0.5 "),
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(pieces, "LEAST_BYTES", 1)


def scored(path, kind, executor=None, **task):
    collection = load_collection(Task(**task), QRELS)
    plan = Plan.of(collection, ["nDCG@5", "AP", "D_ind"], PolicySpec(kind=kind, samples=8))
    return score([str(path)], collection, plan, jobs=3 if executor else 1, executor=executor)


@pytest.mark.parametrize("kind", ["ranking", "pl"])
@pytest.mark.parametrize("name", FILES)
def test_parts_give_what_the_whole_gives(tmp_path, name, kind):
    kind = "samples" if name.startswith(("samples", "TREC")) else kind
    task = {"order": "file"} if name.startswith("ntcir") else {}
    (tmp_path / "my.run").write_text(FILES[name], newline="")
    with ThreadPoolExecutor(3) as executor:
        parts = scored(tmp_path / "my.run", kind, executor, **task)
    whole = scored(tmp_path / "my.run", kind, **task)
    assert (parts.runs, parts.notes) == (whole.runs, whole.notes)
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_array_equal(parts.se, whole.se)
    assert np.isfinite(whole.values).any()


@pytest.mark.parametrize("name", BROKEN)
def test_errors_name_the_line_of_the_file(tmp_path, name):
    (tmp_path / "my.run").write_bytes(BROKEN[name].encode(errors="surrogateescape"))
    with pytest.raises(FairevalsError) as whole:
        scored(tmp_path / "my.run", "ranking")
    with ThreadPoolExecutor(3) as executor, pytest.raises(FairevalsError) as parts:
        scored(tmp_path / "my.run", "ranking", executor)
    assert str(parts.value) == str(whole.value)


def test_scores_as_float32(tmp_path):
    """Scores tie only after rounding, which must not come after the cut."""
    text = "".join(line(f"t{t}", d, f"1.00000000{d:02d}") for t in range(1, 10) for d in range(DOCS))
    (tmp_path / "my.run").write_text(text)
    with ThreadPoolExecutor(3) as executor:
        parts = scored(tmp_path / "my.run", "ranking", executor, conventions="trec_eval")
    whole = scored(tmp_path / "my.run", "ranking", conventions="trec_eval")
    np.testing.assert_array_equal(parts.values, whole.values)


@pytest.mark.parametrize("kind", ["pl", "samples"])
def test_a_run_that_cannot_be_read_in_parts_is_cut_after_reading(tmp_path, kind, monkeypatch):
    (tmp_path / "my.run.gz").write_bytes(
        gzip.compress("".join(BY_SAMPLE if kind == "samples" else SORTED).encode())
    )
    whole = scored(tmp_path / "my.run.gz", kind)
    calls = []
    monkeypatch.setattr(scoring, "score_piece", lambda *call: calls.append(call) or SCORE_PIECE(*call))
    with ThreadPoolExecutor(3) as executor:
        parts = scored(tmp_path / "my.run.gz", kind, executor)
    assert len(calls) > 3
    assert parts.notes == whole.notes
    np.testing.assert_array_equal(parts.values, whole.values)
    np.testing.assert_array_equal(parts.se, whole.se)


SCORE_PIECE = pieces.score_piece


def test_each_process_reads_its_part(tmp_path, monkeypatch):
    (tmp_path / "my.run").write_text("".join(SORTED))
    read = []
    monkeypatch.setattr(scoring, "score_piece", lambda *call: read.append(call[1]) or SCORE_PIECE(*call))
    with ThreadPoolExecutor(3) as executor:
        scored(tmp_path / "my.run", "ranking", executor)
    ranges = sorted((part.start, part.end) for part in read)
    assert len(ranges) > 3
    assert [start for start, _ in ranges[1:]] == [end for _, end in ranges[:-1]]


def test_on_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.run").write_text("".join(SORTED))
    (tmp_path / "my.qrels").write_text(
        "".join(f"{t} 0 {d} {g}\n" for t, row in QRELS.items() for d, g in row.items())
    )
    words = ["score", "--qrels", "my.qrels", "my.run", "-m", "nDCG", "-q", "--format", "csv"]
    assert main(words) == 0
    one = capsys.readouterr()
    assert main([*words, "--jobs", "2"]) == 0
    assert capsys.readouterr() == one


@given(
    st.lists(st.tuples(st.sampled_from("abc#\n"), st.integers(0, 40)), max_size=40),
    st.integers(1, 9),
    st.booleans(),
)
def test_parts_are_lines_one_after_the_other(tmp_path_factory, lines, count, ends):
    path = tmp_path_factory.mktemp("cut") / "my.run"
    text = "\n".join(f"{topic} {'x' * width}" for topic, width in lines).encode() + b"\n" * ends
    path.write_bytes(text)
    parts = cut_run(Source.of(path), count)
    assert len(parts) <= max(count, 1)
    if len(parts) > 1:
        assert b"".join(text[part.start : part.end] for part in parts) == text
        assert all(text[part.start - 1 : part.start] in (b"", b"\n") for part in parts)
        assert [b"".join(part.pieces(7)) for part in parts] == [text[part.start : part.end] for part in parts]


def test_files_that_are_not_lines_of_text_are_not_cut(tmp_path):
    (tmp_path / "my.run.gz").write_bytes(gzip.compress("".join(SORTED).encode()))
    (tmp_path / "my.csv").write_text("topic,doc,score\n" + "t1,d1,1\n" * 9)
    for name in ("my.run.gz", "my.csv"):
        assert len(cut_run(Source.of(tmp_path / name), 4)) == 1
    assert len(cut_run(Source.of("".join(SORTED).encode(), "bytes"), 4)) == 1

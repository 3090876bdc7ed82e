"""Files that mean harm: whatever they hold, reading ends soon, in a result or in a message with file and line."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import os
import random
import re
import resource
import subprocess
import sys
import warnings
import zlib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fairevals as fe
from fairevals.cli.main import main
from fairevals.collection.groups import load_attribute
from fairevals.collection.qrels import read_qrels
from fairevals.collection.run import read_run
from fairevals.derive import derive, read_annotations
from fairevals.errors import FairevalsError, InputError, InputWarning, UsageError
from fairevals.io.check import Rules, check_run
from fairevals.io.folders import safe_name
from fairevals.io.letor import read_letor
from fairevals.io.streams import Source, written
from fairevals.io.targets import read_target_file
from fairevals.io.task import Task, read_task
from fairevals.io.topics import read_topics

QRELS = b"q1 0 a 2\nq1 0 b 0\nq1 0 c 1\nq2 0 a 1\nq2 0 d 0\n"
RUN = b"q1 Q0 a 1 3.5 mine\nq1 Q0 c 2 2.25 mine\nq1 Q0 x 3 1e-3 mine\nq2 Q0 d 1 2 mine\nq2 Q0 a 2 1.0 mine\n"
TASK = b"""name = "small"
qrels = "my.qrels"
max_grade = 2
measures = ["nDCG@10", "ERR@20", "GF(attr='SEX')@20", "M1(attr='SEX')@10"]
cutoff = 10
[attributes.SEX]
groups = ["she", "he"]
memberships = "my.csv"
target = "my.target"
[attributes.HINDEX]
kind = "ordinal"
groups = ["low", "mid", "high"]
bins = [10, 30.5]
memberships = "my.gmemb"
target = {"*" = [0.25, 0.25, 0.5], q1 = [0, 0, 1]}
unmapped = "skip"
[policy]
kind = "ranking"
samples = 20
"""
FILES = {
    "my.qrels": QRELS,
    "ntcir.qrels": b"q1 a L2\nq1 b L0\nq2 a L1\n",
    "my.run": RUN,
    "ntcir.run": b"<SYSDESC>x</SYSDESC>\n" + RUN,
    "samples.run": b"q1 1 a 1 2 s\nq1 1 b 2 1 s\nq1 2 b 1 2 s\nq1 2 a 2 1 s\nq2 1 a 1 1 s\n",
    "fair.run": b"id\tseq_no\tdoc\nq1\t1\ta\nq1\t1\tb\nq1\t2\tb\nq2\t1\ta\n",
    "pairs.run": b"id\tpage_id\nq1\ta\nq1\tb\nq2\ta\n",
    "lines.jsonl": b'{"q_num": "1.1", "qid": "q1", "ranking": ["a", "b"]}\n'
    b'{"q_num": "1.2", "qid": "q2", "ranking": [7]}\n',
    "fair.qrels": b'{"id": 1, "title": "x", "rel_docs": ["a", 7]}\n{"id": "q2", "rel_docs": ["d"]}\n',
    "topics.tsv": b"topic\ttitle\ttype\nq1\tone\tR\nq2\ttwo\tM\n",
    "table.csv": b"topic,doc,score\nq1,a,2\nq1,b,1.5\nq2,a,-1\n",
    "table.tsv": b'topic\tsample\tdoc\tscore\nq1\t1\t"a"\t2\nq1\t2\tb\t1.5\n',
    "my.csv": b"topic,doc,group,weight\nq1,a,she,1\nq1,b,he,0.5\nq1,b,she,0.5\nq2,a,he,1\n",
    "my.gmemb": b"q1 a 1 0 0\nq1 b 0.5 0.25 0.25\nq2 a 0 0 1\n",
    "my.target": b"0.5\n0.5\n",
    "task.toml": TASK,
    "annotations.tsv": b"topic\tdoc\tentity\tannotator\tSEX\tHINDEX\nq1\ta\tann\tx\tshe\t12\n"
    b"q1\ta\tann\ty\tshe|he\tNA\n"
    b"q1\tb\t\tx\t\t\nq2\ta\tbob\ty\the\t99\n",
    "my.letor": b"2 qid:q1 1:0.5 3:1e-2 # docid = a inc = 1\n0 qid:q1 2:0.25\n1 qid:q2 1:1 2:1 # d\n",
}
RUNS = (
    *("my.run", "ntcir.run", "samples.run", "fair.run", "pairs.run", "lines.jsonl"),
    *("table.csv", "table.tsv"),
)
SCORE = ("-m", "nDCG@10", "-m", "ERR", "-m", "iRBU", "-m", "EE_L", "-m", "P@5")


def readers(name: str) -> list[Callable[[Path], object]]:
    """What reads such a file through the public functions; each takes the folder."""
    task = Task(attributes={})
    found: dict[str, list[Callable[[Path], object]]] = {
        "my.qrels": [lambda folder: read_qrels(folder / name).ideal(0, 1)],
        "ntcir.qrels": [lambda folder: read_qrels(folder / name)],
        "fair.qrels": [lambda folder: read_qrels(folder / name)],
        "topics.tsv": [lambda folder: read_topics(folder / name)],
        "my.csv": [lambda folder: attribute(folder, "SEX")],
        "my.gmemb": [lambda folder: attribute(folder, "HINDEX")],
        "my.target": [lambda folder: read_target_file(folder / name, ("she", "he"))],
        "task.toml": [lambda folder: read_task(folder / name)],
        "annotations.tsv": [
            lambda folder: derive(task, read_annotations(folder / name)),
            lambda folder: derive(read_task(folder / "task.toml"), read_annotations(folder / name)),
        ],
        "my.letor": [lambda folder: read_letor(folder / name)],
    }
    return found.get(
        name,
        [
            lambda folder: read_run(folder / name),
            lambda folder: read_run(folder / name, samples=True, order="file", depth=2),
            lambda folder: list(check_run(Source.of(folder / name), Rules(topics=("q1",), style=True))),
        ],
    )


def attribute(folder: Path, name: str) -> object:
    qrels = read_qrels(folder / "my.qrels")
    return load_attribute(read_task(folder / "task.toml").attributes[name], qrels)


def commands(name: str) -> list[tuple[str, ...]]:
    """The commands that such a file is given to, in its folder."""
    scored = ("score", "--task", "task.toml", "my.run", "--format", "csv")
    if name in RUNS:
        policy = "samples" if name in ("samples.run", "fair.run", "lines.jsonl", "table.tsv") else "pl"
        given = ("--qrels", "my.qrels", name)
        return [
            ("score", *given, *SCORE, "--policy", policy, "--samples", "5"),
            ("score", "--task", "task.toml", name, "-q", "--policy", policy, "--samples", "5"),
            ("score", *given, "-m", "AP", "-m", "RR", "--policy", "ranking" if policy == "pl" else policy),
            ("validate", "--task", "task.toml", name),
            ("exposure", *given, "--policy", policy),
            ("pool", name, "--depth", "2", "--policy", "ranking" if policy == "pl" else policy),
        ]
    found = {
        "my.qrels": [
            scored,
            ("validate", "--qrels", name, "my.run"),
            ("exposure", "--qrels", name, "my.run"),
        ],
        "ntcir.qrels": [("score", "--qrels", name, "my.run", *SCORE)],
        "fair.qrels": [("score", "--qrels", name, "my.run", *SCORE)],
        "topics.tsv": [
            ("validate", "--topics", name, "my.run"),
            ("pool", "--topics", name, "my.run", "--depth", "1"),
        ],
        "annotations.tsv": [
            ("derive", "--task", "task.toml", "--annotations", name, "--out", "out", "--force")
        ],
        "my.letor": [],
    }
    by_group = ("exposure", "--task", "task.toml", "my.run", "--by", "group")
    return found.get(name, [scored, by_group])


def call(*words: str) -> tuple[int, str, str]:
    """Run a command here; anything but an exit code is a failure, and so is any warning but those about input."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with warnings.catch_warnings(), redirect_stdout(out), redirect_stderr(err):
        warnings.simplefilter("error")
        warnings.simplefilter("default", InputWarning)
        try:
            code = main(list(words))
        except SystemExit as end:  # of argparse
            code = int(str(end.code))
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    assert code in (0, 1, 2)
    assert "Traceback" not in texts[1]
    assert code == 0 or texts[1]
    return code, *texts


def read(name: str, folder: Path) -> None:
    """Read a file by every function that is for it."""
    for reader in readers(name):
        with warnings.catch_warnings(), suppress(FairevalsError):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", InputWarning)
            reader(folder)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, data in FILES.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A folder for tests that change one file and put it back."""
    path = tmp_path_factory.mktemp("hostile")
    for name, data in FILES.items():
        (path / name).write_bytes(data)
    before = Path.cwd()
    os.chdir(path)
    yield path
    os.chdir(before)


# Valid files, mutated ------------------------------------------------------------------------------------------

PIECES = (
    *(
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n",
        b"\n\n",
        b"\t",
        b" ",
        b'"',
        b"'",
        b",",
        b"=",
        b"[",
        b"{",
        b"#",
    ),
    *(
        b"nan",
        b"-inf",
        b"1e999",
        b"-1",
        b"9" * 400,
        b"0." + b"1" * 400,
        b"1e-400",
        b"1e308",
        b"0x10",
        b"1_0",
        b"--1",
    ),
    *(
        "\u2028\u0085\u202e\u200b😀".encode(),
        b"\x1b[31m",
        b"\xed\xa0\x80",
        b"a" * 10_000,
        b"[" * 2000,
        b"a." * 2000,
    ),
    *(
        b"topic,doc,score\n",
        b"<SYSDESC>",
        b"q1 Q0 a 1 1 t\n",
        b"qid:",
        b"99999999999:1",
        b"\x0b",
        b"\x0c",
        b"\x1c",
    ),
)


@st.composite
def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes flipped, deleted, inserted, repeated, cut off, or replaced by a part of another file."""
    for _ in range(draw(st.integers(1, 4))):
        at, stop = sorted(draw(st.tuples(st.integers(0, len(data)), st.integers(0, len(data)))))
        kind = draw(st.sampled_from(("flip", "delete", "insert", "repeat", "cut", "splice", "swap")))
        if kind == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
        elif kind == "delete":
            data = data[:at] + data[min(stop, at + 9) :]
        elif kind == "insert":
            data = data[:at] + draw(st.sampled_from(PIECES) | st.binary(max_size=4)) + data[at:]
        elif kind == "repeat":
            data = data[:stop] + data[at:stop] * draw(st.integers(1, 3)) + data[stop:]
        elif kind == "cut":
            data = data[:at]
        elif kind == "splice":
            data = data[:at] + draw(st.sampled_from(sorted(FILES.values())))[:stop] + data[stop:]
        else:
            words = re.split(rb"([\s,=:]+)", data)
            i, j = (draw(st.integers(0, len(words) - 1)) for _ in range(2))
            words[i], words[j] = draw(st.sampled_from(PIECES)), words[i]
            data = b"".join(words)
    return data


@pytest.mark.parametrize("name", FILES)
def test_mutated_files_are_read_or_refused(name, shared):
    @given(mutated(FILES[name]))
    @example(b"")
    @example(b"\n")
    @example(b"\0")
    @example(b"\xef\xbb\xbf")
    def check(data):
        (shared / name).write_bytes(data)
        read(name, shared)

    try:
        check()
    finally:
        (shared / name).write_bytes(FILES[name])


@pytest.mark.parametrize("name", [name for name in FILES if commands(name)])
def test_commands_on_mutated_files(name, shared):
    @settings(max_examples=12)
    @given(mutated(FILES[name]))
    def check(data):
        (shared / name).write_bytes(data)
        for words in commands(name):
            call(*words)

    try:
        for words in commands(name):  # as they are, they are fine
            code, _, err = call(*words)
            assert code == 0 or words[0] == "validate", err
        check()
    finally:
        (shared / name).write_bytes(FILES[name])


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst", ".parquet"])
def test_mutated_compressed_files(suffix, tmp_path):
    packed = pack(suffix, RUN)
    path = tmp_path / f"my.run{suffix}"
    turn = random.Random(7)
    for _ in range(60):
        data = bytearray(packed)
        for _ in range(turn.randint(1, 3)):
            at = turn.randrange(len(data))
            data[at : at + turn.randint(0, 3)] = turn.randbytes(turn.randint(0, 3))
            data = data or bytearray(b"x")
        path.write_bytes(data)
        with suppress(FairevalsError):
            read_run(path)


def pack(suffix: str, data: bytes) -> bytes:
    if suffix == ".parquet":
        pd = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        rows = [line.split() for line in data.decode().splitlines()]
        frame = pd.DataFrame([(r[0], r[2], float(r[4])) for r in rows], columns=["topic", "doc", "score"])
        out = io.BytesIO()
        frame.to_parquet(out)
        return out.getvalue()
    if suffix == ".zst":
        return pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    return {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}[suffix](data)


# The corpus ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 5000, "nested too deeply"),
        ("a = " + "{a = " * 5000, "nested too deeply"),
        ("name." + "a." * 50_000 + "b = 1", "a key of more than 100 parts"),
        ("[attributes." + '"a" . ' * 50_000 + "b]", "a key of more than 100 parts"),
        ("\n".join(["name" + ".a" * 90 + ".b = 1"]), "name = {'a': {'a'"),
        ("cutoff = " + "9" * 5000, "not TOML"),
        ("cutoff = " + "9" * 400, "cutoff = 9999"),
        ("max_documents = 9223372036854775808", "at most 1e+15"),
        ("max_grade = 1" + "0" * 400, "at most 1e+15"),
        ("max_grade = nan", "max_grade = nan"),
        ("utility_weight = inf", "utility_weight = inf"),
        ("[policy]\ntemperature = 1" + "0" * 400, "at most 1e+15"),
        ("[attributes.A]\ngroups = ['a', 'b']\nbins = [1" + "0" * 400 + "]", "finite numbers"),
        ("[attributes.A]\ngroups = ['a', 'b']\ntarget = [nan, 1]", "finite numbers"),
        ("qrels = 'a\\u0000b'\n[attributes]\nx = 1979-05-27", "qrels"),
        ('qrels = "a\\u0000b"', "the name of a file"),
        ("name = 1979-13-41", "not TOML"),
    ],
)
def test_tasks_that_mean_harm(tmp_path, text, message):
    (tmp_path / "task.toml").write_text(text)
    if message == "qrels":
        message = "attributes.x = datetime.date"
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        read_task(tmp_path / "task.toml")
    assert len(str(caught.value)) < 500 + len(str(tmp_path))


@pytest.mark.parametrize(
    "number", ["1e308", "-1e308", "1e-320", "9" * 300, "1" + "0" * 18, "5e-324", "0." + "0" * 400 + "1"]
)
def test_numbers_at_the_edge_end_in_values_or_messages(folder, number):
    (folder / "my.qrels").write_text(f"q1 0 a {number}\nq1 0 b 1\nq2 0 a 1\n")
    (folder / "my.run").write_text(
        f"q1 Q0 a 1 {number} t\nq1 Q0 b 2 1 t\nq2 Q0 a 1 -{number.lstrip('-')} t\n"
    )
    (folder / "my.gmemb").write_text(f"q1 a {number} 0 1\nq1 b 1 {number} {number}\n")
    for words in [*commands("my.run"), *commands("my.qrels"), *commands("my.gmemb")]:
        code, out, _ = call(*words)
        assert "inf" not in re.sub(r"[a-z_]*info", "", out) or code


MERIT_MEASURES = [
    *("nDCG", "RBP", "IAA", "IAA(merit='square')", "D_ind", "D_cross(merit='square')", "EE_L"),
    *("D_group(attr='G',merit='square')", "RUR(attr='G',merit='square')", "EUR(attr='G')"),
]


def test_the_largest_grades_give_the_values_of_small_ones(tmp_path):
    """Sums, squares and their products stay numbers; a larger grade is refused with its line, from Python too."""
    grades = {"a": 3.0, "b": 2.0, "c": 1.0, "d": 0.0}
    run, groups = (
        {"t": {"d": 4.0, "a": 3.0, "c": 2.0, "b": 1.0}},
        {"G": dict(zip("abcd", "xyxy", strict=True))},
    )

    def values(scale: float) -> Any:
        qrels = {"t": {doc: grade * scale for doc, grade in grades.items()}}
        return fe.evaluate({"r": run}, qrels, MERIT_MEASURES, groups=groups).frame().value.to_numpy()

    small, large = values(1.0), values(1e15 / 3)
    assert np.isfinite(large).all()
    same = [0, 1, 2, 3, 6, 8, 9]  # all but differences of exposure per merit, and D_cross, a square of merits
    np.testing.assert_allclose(large[same], small[same])
    with pytest.raises(InputError, match=r"qrels:1: grade .*; expected a number of at most 1e\+15"):
        values(1e15)
    (tmp_path / "q.qrels").write_text("t 0 a 1\nt 0 b 1e308\n")
    with pytest.raises(InputError, match=r"q.qrels:2: .*1e308.*; expected a number of at most 1e\+15"):
        read_qrels(tmp_path / "q.qrels")
    (tmp_path / "x.letor").write_text("1 qid:1 1:1\n2e15 qid:1 1:1\n")
    with pytest.raises(InputError, match=r"x.letor:2: .*2e15.*; expected a number of at most 1e\+15"):
        read_letor(tmp_path / "x.letor")
    with pytest.raises(UsageError, match=r"y\[1\] is 2e\+15; expected a grade of at most 1e\+15"):
        fe.FairPGRank().fit([[1.0], [2.0]], [1, 2e15], qid=[1, 1])


@pytest.mark.parametrize(
    "words",
    [
        ("score", "--qrels", "my.qrels", "my.run", "-m", "nDCG@" + "9" * 30),
        ("score", "--qrels", "my.qrels", "my.run", "-m", "nDCG@" + "9" * 15),
        ("score", "--qrels", "my.qrels", "my.run", "-m", "ERR", "-p", "9999999999"),
        ("score", "--qrels", "my.qrels", "my.run", "-m", "P@1", "-p", "9" * 5000),
        ("score", "--qrels", "my.qrels", "my.run", "-m", "GF(attr='" + "x" * 5000 + "')"),
        ("score", "--qrels", "my.qrels", "my.run", "-m", "nDCG(" * 500),
        ("score", "--qrels", "my.qrels", "my.run", "-m", "__import__('os')@1"),
        ("score", "--qrels", "my.qrels", "a\x1b[31m.run", "--b\u202ead"),
        ("exposure", "--qrels", "my.qrels", "my.run", "-k", "9" * 15),
        ("exposure", "--qrels", "my.qrels", "my.run", "--attention", "rbp(" + "9" * 400 + ")"),
        ("exposure", "--qrels", "my.qrels", "my.run", "--figure", "a\x1b[31m/x.gif"),
        ("\x1b[31m",),
    ],
)
@pytest.mark.usefixtures("folder")
def test_options_that_mean_harm(words):
    _, out, err = call(*words)
    assert not controls(out + err)


def test_a_table_of_very_many_columns(folder):
    (folder / "wide.csv").write_text("topic,doc,score" + ",x" * 400_000 + "\nq1,a,1\n")
    with pytest.raises(InputError, match="more than 1000 columns"):
        read_run(folder / "wide.csv")


def test_samples_of_very_different_length(folder):
    """A file of a megabyte, whose rankings as one rectangle would take gigabytes."""
    lines = [f"q1 {n} a 1 1 t" for n in range(20_000)] + [f"q1 x d{n} 1 1 t" for n in range(20_000)]
    (folder / "ragged.run").write_text("\n".join(lines) + "\n")
    code, _, err = call("score", "--qrels", "my.qrels", "ragged.run", "-m", "AP", "--policy", "samples")
    assert code == 1
    assert "20001 samples of topic 'q1', one with 20000 documents; expected samples of similar length" in err
    assert call("score", "--qrels", "my.qrels", "ragged.run", "-m", "P@5", "--policy", "samples")[0] == 0


def test_one_topic_with_very_many_judgements(folder):
    """The ideal rankings of 30,000 topics, padded to the longest, would take gigabytes."""
    lines = [f"t{n} 0 a 1" for n in range(30_000)] + [f"q1 0 d{n} 1" for n in range(30_000)]
    (folder / "ragged.qrels").write_text("\n".join(lines) + "\n")
    found = bounded("score", "--qrels", "ragged.qrels", "my.run", "-m", "nDCG", "--format", "csv", cwd=folder)
    assert found.returncode == 0, found.stderr


# Names ---------------------------------------------------------------------------------------------------------

NAMES = (
    *(
        "../../x",
        "<script>alert(1)</script>",
        "-rf",
        "CON",
        "a/b",
        "a\\b",
        "a\u2028b",
        "a\u0085b",
        "a\u202eb",
        "😀",
    ),
    *(
        "x" * 10_000,
        "\u200b",
        "\u00ad",
        "~",
        "$(id)",
        ".hidden",
        "nul.txt",
        "%00",
        "..",
        "a\u0301",
        "\u009b31m",
    ),
)


def controls(text: str) -> list[str]:
    return [c for c in text if not c.isprintable() and c != "\n"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_mean_harm(folder, name):
    """Nothing is written but what was asked for, and terminals get no control character."""
    (folder / "my.qrels").write_text(f"{name} 0 {name} 1\n{name} 0 b 0\n", encoding="utf-8")
    (folder / "bad.run").write_text(f"{name} Q0 {name} 1 1 {name}\nother Q0 a 1 1 {name}\n", encoding="utf-8")
    before = sorted(folder.rglob("*"))
    for words in [
        ("score", "--qrels", "my.qrels", "bad.run", "-m", "P@1", "-q"),
        ("score", "--qrels", "my.qrels", "bad.run", "-m", "P@1", "--format", "latex"),
        ("validate", "--qrels", "my.qrels", "bad.run", "my.run"),
        ("exposure", "--qrels", "my.qrels", "bad.run", "--format", "table"),
        ("exposure", "--qrels", "my.qrels", "bad.run", "--format", "table", "--topic", "a\x1bb"),
    ]:
        code, out, err = call(*words)
        assert code == (1 if words[0] == "validate" else 2 if "--topic" in words else 0), err
        assert not controls(out + err)
        assert max(map(len, (out + err).splitlines())) < 1000
    assert sorted(folder.rglob("*")) == before
    assert call("score", "--qrels", "my.qrels", "bad.run", "-m", "P@1", "-o", "out/x.csv")[0] == 0
    assert sorted(folder.rglob("*")) == sorted([*before, folder / "out", folder / "out" / "x.csv"])


@pytest.mark.parametrize("name", NAMES)
def test_attributes_that_mean_harm(folder, name):
    inside = folder / "deep" / "out"
    quoted = "".join(f"\\U{ord(c):08X}" for c in name)
    (folder / "bad.toml").write_text(f'[attributes."{quoted}"]\ngroups = ["g"]\n')
    (folder / "bad.tsv").write_text(
        f"topic\tdoc\tentity\tannotator\t{name}\n../q\ta/b\te\tx\tg\n", encoding="utf-8"
    )
    before = sorted(folder.rglob("*"))
    code, out, err = call("derive", "--task", "bad.toml", "--annotations", "bad.tsv", "--out", "deep/out")
    assert not controls(out + err)
    assert code == 0, err
    written_files = [path for path in folder.rglob("*") if path not in before]
    assert all(path in (inside.parent, inside) or path.parent == inside for path in written_files)
    assert not any(path.name.startswith(".") for path in written_files)


def test_safe_names():
    texts = [
        *NAMES,
        "",
        "com1",
        "LPT9.x",
        "a_b",
        "a b",
        "a_b-c14cddc0",
        "東京",
        "-",
        "con",
        "Con.txt",
        "\udcff",
        "_x",
    ]
    found = [safe_name(text) for text in texts]
    assert len({name.casefold() for name in found}) == len(texts)
    for name in found:
        assert re.fullmatch(r"[^\W_][\w.-]*", name)
        assert name[-1] not in "._-"
        assert len(name.encode()) <= 210
        assert name.split(".")[0].lower() not in ("con", "nul", "com1", "lpt9")
    assert [safe_name(text) for text in ("HINDEX", "bm25-v1.2_x", "東京")] == [
        "HINDEX",
        "bm25-v1.2_x",
        "東京",
    ]


@given(st.text() | st.text("ab./_-", max_size=6), st.text() | st.text("ab./_-", max_size=6))
def test_safe_names_are_unique(one, other):
    if one != other:
        assert safe_name(one) != safe_name(other)
    assert "/" not in safe_name(one)


def test_files_whose_names_are_no_text(folder):
    """Bytes that are not UTF-8 come as halves of UTF-16 pairs, which nothing can print."""
    name = b"bad\xff\x1b.csv"
    (folder / os.fsdecode(name)).write_bytes(FILES["table.csv"])
    given = ("score", "--qrels", "my.qrels", os.fsdecode(name), os.fsdecode(b"./" + name), "-m", "P@1")
    for style in ("table", "csv", "json", "latex"):
        assert call(*given, "--format", style)[0] == 0
        assert call(*given, "--format", style, "-o", "out")[0] == 0
    assert call("validate", "--qrels", "my.qrels", os.fsdecode(name))[0] in (0, 1)
    assert "\x1b" not in call(*given)[1]
    code, _, err = call("score", "--qrels", "my.qrels", os.fsdecode(b"none\xff\x1b"), "-m", "P@1")
    assert code == 1
    assert "none\\udcff\\x1b: cannot be read" in err


def test_a_terminal_that_knows_only_ascii(folder):
    (folder / "my.run").write_text("q1 Q0 a 1 1 東京\n", encoding="utf-8")
    found = bounded(
        *("score", "--qrels", "my.qrels", "my.run", "-m", "P@1"), cwd=folder, PYTHONIOENCODING="ascii"
    )
    assert found.returncode == 0, found.stderr
    assert "\\u6771" in found.stdout


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "file")
    with written(tmp_path / "link") as file:
        file.write("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_text() == "new"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "link", "real"]


# Memory --------------------------------------------------------------------------------------------------------


def bounded(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program with little memory: what Python, numpy and pandas take, and half a gigabyte more."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (3 << 29, 3 << 29))

    return subprocess.run(
        [sys.executable, "-m", "fairevals", *words],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **environment},
        preexec_fn=limit,
    )


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst", ".parquet"])
def test_a_file_that_grows_without_end(folder, suffix):
    """Gigabytes from kilobytes: refused at the limit, within the memory that there is."""
    path = folder / f"bomb{suffix}"
    if suffix == ".parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        many = pa.DictionaryArray.from_arrays(np.zeros(200_000, np.int32), pa.array(["x" * 100_000]))
        score = pa.array(np.zeros(200_000))
        pq.write_table(pa.table({"topic": many, "doc": many, "score": score}), path)
    else:
        path.write_bytes(pack(suffix, b"q1 Q0 a 1 1 t\n" * (1 << 18)) * 600)
    assert path.stat().st_size < 1 << 23
    words = ("score", "--qrels", "my.qrels", path.name, "-m", "P@1")
    found = bounded(*words, cwd=folder, FAIREVALS_MAX_BYTES=str(20 << 20))
    assert found.returncode == 1
    message = f"{path.name}: more than {20 << 20} bytes; raise FAIREVALS_MAX_BYTES to allow it"
    assert found.stderr == f"fairevals: error: {message}\n"


def test_a_header_that_asks_for_gigabytes(folder):
    data = bytearray(lzma.compress(RUN))
    data[16] = 39  # the size of the dictionary: 3 GiB; its block's header has a sum of its own
    data[20:24] = zlib.crc32(data[12:20]).to_bytes(4, "little")
    (folder / "big.xz").write_bytes(data)
    with pytest.raises(InputError, match=r"cannot be read \(Memory usage limit"):
        read_run(folder / "big.xz")


def test_rows_of_very_many_features(monkeypatch):
    monkeypatch.setenv("FAIREVALS_MAX_BYTES", str(1 << 24))
    data = b"".join(b"1 qid:1 1:1 # d%d\n" % n for n in range(1000))
    assert read_letor(data).features.shape == (1000, 1)
    with pytest.raises(
        InputError, match=r"1001 rows of 90000 features, 360360000 bytes; raise FAIREVALS_MAX_BYTES"
    ):
        read_letor(data + b"1 qid:1 90000:1\n")


def test_not_enough_memory_is_said(folder, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("fairevals.cli.common.collection_of", full)
    code, _, err = call("score", "--qrels", "my.qrels", "my.run")
    assert (code, err) == (1, "fairevals: error: there is not enough memory\n")


@given(st.lists(st.sampled_from([b"\n", b"\n\n\n", b" ", b"\t", b"\r\n", b"a", b"#b", b"\x0b"]), max_size=40))
def test_lines_are_numbered_across_blank_ones(parts):
    text = b"".join(parts)
    wanted = [
        (number, line.removesuffix(b"\r"))
        for number, line in enumerate(text.split(b"\n"), 1)
        if line.strip(b" \t\r")
    ]
    assert list(Source.of(text, "text").lines(3)) == wanted

    def is_data(item):
        return not item[1].lstrip(b" \t\r").startswith(b"#")

    found = Source.of(text, "text").lines(3, comments=False)
    assert list(filter(is_data, found)) == list(filter(is_data, wanted))


@pytest.mark.parametrize("line", [b"\n", b"#\n"])
def test_megabytes_of_blank_lines(folder, line):
    """51 kB of gzip took 101 s, a call for each line; the line of what follows is still known."""
    lines = 1 << 20
    (folder / "blank.run.gz").write_bytes(gzip.compress(line * lines))
    (folder / "bad.run.gz").write_bytes(gzip.compress(line * lines + b"q1 Q0 a 1\n"))
    for file, message in ("blank", "no readable line"), ("bad", f"bad.run.gz:{lines + 1}: 4 columns"):
        calls = itertools.count()
        sys.setprofile(lambda *_, calls=calls: next(calls))
        try:
            code, _, err = call("score", "--qrels", "my.qrels", f"{file}.run.gz")
        finally:
            sys.setprofile(None)
        assert (code, message in err) == (1, True)
        assert next(calls) < lines / 2


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_device_without_end(folder):
    code, _, err = call("score", "--qrels", "my.qrels", "/dev/zero")
    assert (code, "/dev/zero:1: a line of more than 1048576 bytes" in err) == (1, True)

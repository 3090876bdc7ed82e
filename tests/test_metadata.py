"""ir-metadata in runs: comments that are read past, checked, and shown."""

from __future__ import annotations

import gzip
import sys

import pytest

import fairevals as fe
from fairevals.cli.main import main
from fairevals.io.metadata import check_metadata, read_metadata
from fairevals.io.streams import Source

HEAD = b"""# ir_metadata.start
# platform:
#   hardware:
#     cpu: {model: 'M<1>'}
# actor: {team: Fair & Square}
# ir_metadata.end
"""
RUN = b"q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.qrels").write_text("q1 0 a 1\nq1 0 b 0\n")
    (tmp_path / "my.run").write_bytes(HEAD + RUN)
    (tmp_path / "plain.run").write_bytes(RUN)
    return tmp_path


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_read_and_ignored(folder, pack):
    (folder / "x.run").write_bytes(pack(HEAD + RUN))
    assert read_metadata(Source.of("x.run")).text.split("\n")[:2] == ["platform:", "  hardware:"]
    assert read_metadata(Source.of("plain.run")) is None
    assert fe.read_run("x.run").to_frame().equals(fe.read_run("plain.run").to_frame())


def test_shown_and_escaped(folder):
    assert main(["report", "--qrels", "my.qrels", "my.run", "-o", "out"]) == 0
    page = (folder / "out" / "index.html").read_text()
    assert "model: &#39;M&lt;1&gt;&#39;" in page
    assert "Fair &amp; Square" in page
    assert "What the runs say about themselves" in page
    assert main(["report", "--qrels", "my.qrels", "plain.run", "-o", "out"]) == 0
    assert "What the runs say about themselves" not in (folder / "out" / "index.html").read_text()


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        (HEAD, 0, ""),
        (b"# a comment\n" + HEAD, 0, ""),
        (HEAD.replace(b"# ir_metadata.end\n", b""), 1, "metadata of more than 64 KiB, or without an end"),
        (b"# ir_metadata.start\n#" + b"x" * 70_000 + b"\n# ir_metadata.end\n", 1, "more than 64 KiB"),
        (HEAD.replace(b"{model: 'M<1>'}", b"{model: 'M<1>'"), 5, "metadata that is not YAML"),
        (b"# ir_metadata.start\n# just words\n# ir_metadata.end\n", 1, "metadata without keys"),
        (b"# ir_metadata.start\n# date: 2022-13-45\n# ir_metadata.end\n", 1, "metadata that is not YAML"),
        (
            b"# ir_metadata.start\n# a: " + b"[" * 5000 + b"\n# ir_metadata.end\n",
            1,
            "metadata that is not YAML",
        ),
        (b"# ir_metadata.start\n# !!python/object/apply:os.abort []\n# ir_metadata.end\n", 2, "not YAML"),
    ],
)
def test_checked(folder, capsys, text, line, found):
    pytest.importorskip("yaml")
    (folder / "x.run").write_bytes(text + RUN)
    problems = list(check_metadata(Source.of("x.run")))
    assert [problem.place.line for problem in problems] == ([line] if line else [])
    assert all(found in problem.found for problem in problems)
    assert main(["validate", "--qrels", "my.qrels", "x.run"]) == 0  # a warning at most
    assert ("1 warning" in capsys.readouterr().err) == bool(line)


def test_without_pyyaml(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    (folder / "x.run").write_bytes(b"# ir_metadata.start\n# {\n# ir_metadata.end\n" + RUN)
    assert list(check_metadata(Source.of("x.run"))) == []

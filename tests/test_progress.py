"""Long work shows its progress on a terminal, stage by stage, and nowhere else."""

import io
import sys

import pytest

from fairevals.cli import common
from fairevals.cli.main import main

QRELS = "t1 0 a 2\nt1 0 b 1\nt2 0 a 1\nt2 0 b 0\nt3 0 b 1\nt3 0 a 0\n"


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q").write_text(QRELS)
    for number, name in enumerate("abc"):
        lines = [f"t{t} Q0 {d} 1 {(t + number) % (2 + (d == 'a'))} {name}\n" for t in (1, 2, 3) for d in "ab"]
        (tmp_path / name).write_text("".join(lines))


@pytest.mark.usefixtures("files")
def test_a_report_has_a_bar_for_every_stage(monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["report", "--qrels", "q", "a", "b", "c", "-m", "nDCG", "-o", "out"]) == 0
    shown = [line.removeprefix("\033[K") for line in terminal.getvalue().split("\r")]
    bars = [line for line in shown if "[" in line and "fairevals:" not in line]
    stages = list(dict.fromkeys(line.split(" [")[0] for line in bars))
    assert stages == ["reading", "scoring", "statistics", "distributions", "figures", "page"]
    for stage in stages:  # each ends complete, and is then removed
        done, total = (
            [line for line in bars if line.startswith(stage)][-1].split("] ")[1].split(",")[0].split("/")
        )
        assert done == total
    assert terminal.getvalue().count("\r\033[K") >= 2 * len(stages)
    assert "written: " in capsys.readouterr().out


@pytest.mark.usefixtures("files")
def test_no_bar_without_a_terminal(capsys):
    assert main(["report", "--qrels", "q", "a", "b", "-m", "nDCG", "-o", "out"]) == 0
    captured = capsys.readouterr()
    assert "[" not in captured.err.replace("[0", "")
    assert "\r" not in captured.err


def test_a_terminal_without_box_characters(monkeypatch):
    terminal = Terminal()
    terminal.encoding = "ascii"
    monkeypatch.setattr(sys, "stderr", terminal)
    common.stages()("reading", 1, 2)
    assert terminal.getvalue() == f"\r\033[Kreading [{'#' * 12}{'.' * 12}] 1/2"

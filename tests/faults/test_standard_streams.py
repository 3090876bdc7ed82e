"""Standard streams that are closed or full: a message where one can be read, and 0 only if all was delivered."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCORE = ("score", "--qrels", "my.qrels", "my.run", "-m", "P@1")
NO_ROOM = "fairevals: error: standard output: cannot be written (No space left on device)\n"
CLOSED = "fairevals: error: standard output: cannot be written (Bad file descriptor)\n"
FULL = Path("/dev/full")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my.qrels").write_text("q1 0 a 1\n")
    (tmp_path / "my.run").write_text("q1 Q0 a 1 1 mine\n")
    return tmp_path


@pytest.fixture(params=["buffered", "unbuffered"])
def program(request, folder, monkeypatch):
    """Calls the program; in `closed` are the descriptors to close, other streams may be given."""
    monkeypatch.setenv("PYTHONUNBUFFERED", "1" if request.param == "unbuffered" else "")

    def call(*words, closed=(), **streams):
        return subprocess.run(
            [sys.executable, "-m", "fairevals", *words],
            **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams),
            cwd=folder,
            text=True,
            timeout=60,
            check=False,
            preexec_fn=lambda: [os.close(descriptor) for descriptor in closed],
        )

    return call


@pytest.mark.skipif(not FULL.exists(), reason="needs the device")
@pytest.mark.parametrize("words", [SCORE, ("--help",), ("--version",), ("score", "--help"), ("doctor",)])
def test_a_full_standard_output(program, words):
    with FULL.open("w") as full:
        done = program(*words, stdout=full)
    assert (done.returncode, done.stderr) == (1, NO_ROOM)


@pytest.mark.skipif(not FULL.exists(), reason="needs the device")
@pytest.mark.parametrize(("words", "code"), [((), 1), (("nothing",), 2), (("score", "--nothing"), 2)])
def test_a_full_standard_error(program, words, code):
    with FULL.open("w") as full:
        assert program(*words, stderr=full).returncode == code  # and not Python's own 120


@pytest.mark.parametrize("words", [SCORE, ("--help",), ("--version",), ("score", "--help")])
def test_a_closed_standard_output(program, words):
    done = program(*words, closed=(1,))
    assert (done.returncode, done.stderr) == (1, CLOSED)


def test_a_closed_standard_error(program):
    done = program(*SCORE, closed=(2,))
    assert (done.returncode, done.stdout.splitlines()[2].split()) == (0, ["mine", "1.0000"])
    done = program("score", "--nothing", closed=(2,))
    assert (done.returncode, done.stdout) == (
        2,
        "",
    )  # argparse would print there if there were no standard error


def test_a_closed_standard_input(program):
    assert program(*SCORE, closed=(0,)).returncode == 0
    done = program("score", "--qrels", "my.qrels", "-", closed=(0,))
    assert (done.returncode, done.stderr) == (
        1,
        "fairevals: error: <stdin>: cannot be read (Bad file descriptor)\n",
    )


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_no_file_is_opened_in_place_of_a_closed_stream(program, folder, closed):
    """What is printed or warned about must not end up in the output file."""
    (folder / "my.run").write_text("q1 Q0 a 1 1 mine\nq2 Q0 b 1 1 mine\n")
    expected = program(*SCORE).stdout
    assert program(*SCORE, "-o", "out.txt", closed=closed).returncode == 0
    assert (folder / "out.txt").read_text() == expected


def test_standard_input_is_missing_in_a_library(monkeypatch):
    from fairevals.errors import InputError
    from fairevals.io.streams import Source

    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="<stdin>: cannot be read"):
        Source.of("-")


def test_a_module_that_cannot_be_loaded(monkeypatch, folder, capsys):
    from fairevals.cli.main import main

    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "fairevals.evaluation", None)  # as if there were no memory to map it
    assert main(list(SCORE)) == 1
    assert "fairevals: error: a module cannot be loaded (" in capsys.readouterr().err


def test_remarks_follow_the_result_where_both_go_to_one_file(program, folder):
    (folder / "topics.txt").write_text("q1\nq2\n")
    done = program("validate", "--topics", "topics.txt", "my.run", stderr=subprocess.STDOUT)
    lines = done.stdout.splitlines()
    assert lines[0].split()[:2] == ["file", "line"] and "1 error" in lines[-1]

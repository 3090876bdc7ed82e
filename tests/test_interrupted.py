"""Interrupted, or with no room left: the old file or the new one, whole, nothing half-written, and a plain message."""

from __future__ import annotations

import errno
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairevals.cli.main import main
from fairevals.io.streams import written, written_bytes

QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 a 1\n"
RUN = "q1 Q0 a 1 2.0 mine\nq1 Q0 b 2 1.0 mine\nq2 Q0 a 1 1.0 mine\n"
ANNOTATIONS = "topic\tdoc\tentity\tannotator\tSEX\nq1\ta\te\tx\tshe\n"
OLD = "what was there before\n"

# Each reads from the pipe `slow` and writes the file that stands first.
COMMANDS = {
    "score": (
        "out.csv",
        ("score", "--qrels", "my.qrels", "slow", "-m", "P@1", "--format", "csv", "-o", "out.csv"),
    ),
    "pool": ("out.txt", ("pool", "slow", "--depth", "2", "-o", "out.txt")),
    "exposure": ("out.svg", ("exposure", "--qrels", "my.qrels", "slow", "--figure", "out.svg")),
    "derive": (
        "out/derived.qrels",
        ("derive", "--task", "task.toml", "--annotations", "slow", "--out", "out", "--force"),
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.qrels").write_text(QRELS)
    (tmp_path / "my.run").write_text(RUN)
    (tmp_path / "task.toml").write_text('[attributes.SEX]\ngroups = ["she", "he"]\n')
    (tmp_path / "annotations.tsv").write_text(ANNOTATIONS)
    return tmp_path


def hear_interrupts() -> None:
    """In the child: tests that run in the background inherit that SIGINT is to be ignored, and so would it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(words, **options) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fairevals", *words],
        preexec_fn=options.pop("preexec_fn", hear_interrupts),
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def ended(running: subprocess.Popen[str], again: int = 0) -> tuple[int, str, str]:
    """Wait, but not for ever; with `again`, send that signal until it is heard.

    One that arrives just before a system call that waits is seen only when the call returns: a person would press
    Ctrl-C once more, too.
    """
    try:
        for _ in range(12):
            try:
                out, err = running.communicate(timeout=5)
                break
            except subprocess.TimeoutExpired:
                if again:
                    running.send_signal(again)
        else:
            raise AssertionError("it did not end within a minute")
    finally:
        running.kill()
        running.wait()
    return running.returncode, out, err


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def open_when_read(path: Path, running: subprocess.Popen[str]) -> int:
    """The pipe's end for writing, as soon as the program reads from it."""
    for _ in range(600):
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            assert error.errno == errno.ENXIO  # nobody reads yet
            assert running.poll() is None, running.communicate()
            time.sleep(0.1)
    raise AssertionError("the program never read")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", COMMANDS)
def test_interrupted_while_it_reads(folder, command, number):
    name, words = COMMANDS[command]
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(OLD)
    os.mkfifo(folder / "slow")
    before = files(folder)
    running = start(words)
    pipe = -1
    try:
        pipe = open_when_read(folder / "slow", running)
        os.write(pipe, RUN.encode())
        running.send_signal(number)
        code, out, err = ended(running, again=number)
    finally:
        running.kill()
        running.wait()
        if pipe >= 0:
            os.close(pipe)
    assert (code, out, err) == (130, "", "fairevals: interrupted\n")
    assert files(folder) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_it_writes(tmp_path, number):
    """The signal comes between any two writes, and right after the file was made."""
    program = f"""
import os, signal, sys
from pathlib import Path
from fairevals.cli.main import main

opened = Path.open
def opening(self, *args, **kwargs):
    file = opened(self, *args, **kwargs)
    if sys.argv[1] == "open" and self.name.endswith(".part"):
        os.kill(os.getpid(), {int(number)})
    return file
Path.open = opening
if sys.argv[1] == "sync":
    os.fsync = lambda _: os.kill(os.getpid(), {int(number)})
sys.exit(main(["score", "--qrels", "my.qrels", "my.run", "-m", "P@1", "-o", "out.csv"]))
"""
    (tmp_path / "my.qrels").write_text(QRELS)
    (tmp_path / "my.run").write_text(RUN)
    (tmp_path / "out.csv").write_text(OLD)
    before = files(tmp_path)
    for moment in ("open", "sync"):
        found = subprocess.run(
            [sys.executable, "-c", program, moment],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=hear_interrupts,
        )
        assert (found.returncode, found.stderr) == (130, "fairevals: interrupted\n")
        assert files(tmp_path) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_interrupted(tmp_path, number):
    """Wherever it is by then, there is all of it or nothing; called again it does its work."""
    running = start(("demo", "-o", "out"), cwd=tmp_path)
    for _ in range(600):
        if list(tmp_path.glob(".out.*.part/runs")) or running.poll() is not None:
            break
        time.sleep(0.1)
    running.send_signal(number)
    code, _, err = ended(running, again=number)
    assert "Traceback" not in err
    # Python ends itself by SIGINT where the interruption passed an `exec`; a shell says 130 either way.
    assert code in (0, 130, -signal.SIGINT)
    assert code == 0 or err == "fairevals: interrupted\n"
    assert [path.name for path in tmp_path.iterdir()] == (["out"] if code == 0 else [])


LOST = """
import signal, sys, time
import fairevals.cli.score as score
from fairevals.cli.main import main

class Deleted:
    def __del__(self):
        signal.raise_signal(getattr(signal, sys.argv[-1]))

def run(args):
    Deleted()
    time.sleep(20)
    return 0

score.run = run
sys.exit(main())
"""


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_an_interruption_while_an_object_is_deleted_is_not_lost(number):
    words = [sys.executable, "-c", LOST, "score", "--qrels", "q", number]
    done = subprocess.run(words, capture_output=True, text=True, timeout=15, preexec_fn=hear_interrupts)
    assert (done.returncode, done.stderr) == (130, "fairevals: interrupted\n")


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


FOLDERS = {
    "demo": ("demo", "-o", "out"),
    "report": ("report", "--qrels", "my.qrels", "slow", "-m", "P@1", "-o", "out", "--force"),
}


@pytest.mark.parametrize("command", [*COMMANDS, *FOLDERS])
def test_no_room_for_the_file(folder, command):
    """No file may be larger than 1000 bytes: writing fails in the middle, as on a full disk."""
    many = range(300)
    (folder / "my.qrels").write_text("".join(f"q{n} 0 a 1\n" for n in many))
    (folder / "slow").write_text("".join(f"q{n} Q0 a 1 1 mine\n" for n in many))
    if command == "derive":
        (folder / "slow").write_text(ANNOTATIONS + "".join(f"q{n}\tb\te\tx\tshe\n" for n in many))
    name, words = COMMANDS.get(command) or ("out/index.html", FOLDERS[command])
    if command != "demo":
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(OLD)
    before = files(folder)
    extra = ("-q",) if command == "score" else ()
    code, _, err = ended(start((*words, *extra), preexec_fn=small_files))
    assert code == 1, err
    last = err.splitlines()[-1]
    assert re.fullmatch(r"fairevals: error: out[\w./-]+: cannot be written \(File too large\)", last), err
    assert ".part" not in last
    assert files(folder) == before
    assert list(folder.rglob(".*")) == []


def test_no_room_on_the_disk(folder, monkeypatch, capsys):
    """As the system says it (ENOSPC), whichever step fails."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (folder / "out.csv").write_text(OLD)
    before = files(folder)
    for owner, step in ((os, "fsync"), (Path, "replace")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, step, full)
            code = main(["score", "--qrels", "my.qrels", "my.run", "-m", "P@1", "-o", "out.csv"])
        assert (code, capsys.readouterr().err) == (
            1,
            "fairevals: error: out.csv: cannot be written (No space left on device)\n",
        )
        assert files(folder) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device")
@pytest.mark.parametrize("command", ["score", "pool", "exposure", "derive"])
def test_standard_output_is_full(folder, command):
    words = {
        "score": ("score", "--qrels", "my.qrels", "my.run", "-m", "P@1"),
        "pool": ("pool", "my.run", "--depth", "2"),
        "exposure": ("exposure", "--qrels", "my.qrels", "my.run"),
        "derive": ("derive", "--task", "task.toml", "--annotations", "annotations.tsv", "--out", "out"),
    }[command]
    with Path("/dev/full").open("w") as full:
        code, _, err = ended(start(words, stdout=full))
    full_output = "fairevals: error: standard output: cannot be written (No space left on device)"
    assert (code, err.splitlines()[-1]) == (1, full_output)
    assert "Exception ignored" not in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device")
@pytest.mark.usefixtures("folder")
def test_a_full_device_as_the_output_file(capsys):
    code = main(["score", "--qrels", "my.qrels", "my.run", "-m", "P@1", "-o", "/dev/full"])
    assert code == 1
    assert "No space left on device" in capsys.readouterr().err
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError, ValueError, GeneratorExit])
def test_whatever_happens_inside(tmp_path, failure):
    path = tmp_path / "deep" / ("long" * 40 + ".csv")
    for opening in (written, written_bytes):
        with pytest.raises(failure), opening(path) as file:
            file.write("half" if opening is written else b"half")
            raise failure
        assert files(tmp_path) == {}


END = """
import atexit, os, signal, sys
import fairevals.cli.main
from fairevals.__main__ import main
{}
sys.exit(main())
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_while_python_ends(name):
    """Everything is done: the exit code stays."""
    script = END.format(f"atexit.register(os.kill, os.getpid(), signal.{name}); sys.argv[1:] = ['--version']")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, preexec_fn=hear_interrupts
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("fairevals ")


def test_interrupted_while_text_is_executed():
    """As in `dataclass`, while modules are loaded: Python remembers it, and would end by SIGINT."""
    script = END.format("fairevals.cli.main.main = lambda: exec('raise KeyboardInterrupt')")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "fairevals: interrupted\n")

"""Worker processes that are killed, and processes that must end with the one that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairevals import FairevalsError
from fairevals.cli.main import main
from fairevals.evaluation import pieces
from fairevals.evaluation.workers import Workers
from fairevals.training import methods

ROOT = Path(__file__).parents[1]
QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 a 1\n"
BOUND = 30
"""Seconds after which something that ought to end at once counts as hanging."""

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks up processes in /proc"),
    pytest.mark.filterwarnings(
        "ignore:.*multi-threaded, use of fork:DeprecationWarning"
    ),  # by the tests' own threads
]


@pytest.fixture(params=["fork", "spawn"])
def start_method(request) -> Iterator[str]:
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method(request.param, force=True)
    yield request.param
    multiprocessing.set_start_method(before, force=True)


@pytest.fixture
def forked() -> Iterator[None]:
    """Workers see what a test has patched only if they are copies of its process."""
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method("fork", force=True)
    yield
    multiprocessing.set_start_method(before, force=True)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.qrels").write_text(QRELS)
    for n in range(9):
        (tmp_path / f"r{n}.run").write_text(
            f"q1 Q0 a 1 {n}.5 run{n}\nq1 Q0 b 2 1.0 run{n}\nq2 Q0 a 1 1 run{n}\n"
        )
    (tmp_path / "train.letor").write_text(
        "".join(f"{d} qid:{q} 1:0.{d + q}\n" for q in range(4) for d in (0, 1))
    )
    return tmp_path


def gone(pid: int) -> bool:
    """Whether a process has ended; one that only waits to be collected by its parent has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return True


def wait_until(condition) -> None:
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


# The calls of a worker ----------------------------------------------------------------------------------------


def double(number: int) -> int:
    return 2 * number


def kill_worker(number: int, marks: str = "", deadly: int = 3) -> int:
    """The deadly one kills its worker; with a folder for marks only at the first attempt."""
    if number == deadly and not (marks and (Path(marks) / "mark").exists()):
        if marks:
            (Path(marks) / "mark").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def calls_of(*rest: object, count: int = 30) -> Iterator[tuple[str, tuple[object, ...]]]:
    return ((f"call {n}", (n, *rest)) for n in range(count))


@pytest.mark.usefixtures("start_method")
def test_results_in_order():
    with Workers(2) as workers:
        assert list(workers.results(double, calls_of())) == [2 * n for n in range(30)]
        assert list(workers.results(double, calls_of(count=1))) == [0]
        assert list(workers.results(double, [])) == []
        children = multiprocessing.active_children()
    assert len(children) == 2
    assert not any(child.is_alive() for child in children)


@pytest.mark.usefixtures("start_method")
def test_a_call_is_repeated_whose_worker_was_killed(tmp_path):
    with Workers(2) as workers:
        assert list(workers.results(kill_worker, calls_of(str(tmp_path)))) == [2 * n for n in range(30)]
        assert list(workers.results(double, calls_of())) == [2 * n for n in range(30)]
    assert (tmp_path / "mark").exists()


@pytest.mark.usefixtures("start_method")
def test_a_call_that_always_kills_its_worker():
    found = []
    with (
        pytest.raises(FairevalsError, match=r"call 3: a worker process was killed.*\(signal 9\).*fewer jobs"),
        Workers(2) as workers,
    ):
        for result in workers.results(kill_worker, calls_of()):
            found.append(result)
    assert found == [0, 2, 4]
    assert multiprocessing.active_children() == []


def large(number: int, marks: str) -> bytes:
    """More bytes than the system takes before somebody reads them."""
    (Path(marks) / f"call{number}-{os.getpid()}").touch()
    return bytes([number]) * (1 << 24)


def sleeps(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@pytest.mark.usefixtures("forked")
def test_killed_in_the_middle_of_a_reply(tmp_path):
    """Nobody reads the second reply before the third is asked for, so that the worker waits in the middle of it."""
    with Workers(2) as workers:
        results = workers.results(large, calls_of(str(tmp_path), count=3))
        assert next(results) == bytes(1 << 24)
        wait_until(lambda: list(tmp_path.glob("call1-*")))
        (victim,) = (int(path.name.partition("-")[2]) for path in tmp_path.glob("call1-*"))
        wait_until(lambda: sleeps(victim))
        os.kill(victim, signal.SIGKILL)
        wait_until(lambda: gone(victim))
        assert [reply[0] for reply in results] == [1, 2]


def start_fails() -> None:
    os._exit(5)


@pytest.mark.usefixtures("forked")
def test_a_worker_that_cannot_start():
    with (
        pytest.raises(FairevalsError, match=r"call 0: .*\(exit code 5\)"),
        Workers(2, start_fails) as workers,
    ):
        list(workers.results(double, calls_of()))


class TwoArgumentsError(Exception):
    """Pickled, but not read again."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


def fail(kind: str) -> object:
    if kind == "two":
        raise TwoArgumentsError("one", "two")
    if kind == "lambda":
        return lambda: None
    raise ValueError(kind)


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("plain", ValueError, "plain"),
        ("two", (RuntimeError, TwoArgumentsError), "onetwo"),  # other libraries teach pickle to read it
        ("lambda", Exception, "pickle"),
    ],
)
@pytest.mark.usefixtures("forked")
def test_an_error_in_a_worker_is_raised_here(kind, error, message):
    with Workers(2) as workers:
        with pytest.raises(error, match=message) as raised:
            list(workers.results(fail, [("x", (kind,))]))
        assert "in _reply" in str(raised.value) + "".join(getattr(raised.value, "__notes__", ()))
        assert list(workers.results(double, calls_of())) == [2 * n for n in range(30)]


@pytest.mark.usefixtures("forked")
def test_only_a_few_calls_are_taken_ahead():
    taken = []

    def calls():
        for n in range(1000):
            taken.append(n)
            yield f"call {n}", (n,)

    with Workers(2) as workers:
        results = workers.results(double, calls())
        assert [next(results) for _ in range(5)] == [0, 2, 4, 6, 8]
        assert len(taken) < 20


# On the command line ------------------------------------------------------------------------------------------


COMMANDS = {
    "score": (
        "score",
        "--qrels",
        "my.qrels",
        "-m",
        "P@1",
        "-m",
        "nDCG@5",
        "--format",
        "csv",
        "-q",
        "-o",
        "out",
    ),
    "compare": (
        "compare",
        "--qrels",
        "my.qrels",
        "-m",
        "nDCG@5",
        "--baseline",
        "run0",
        "--format",
        "csv",
        "-o",
        "out",
    ),
}


def deadly_reads(monkeypatch, marks: Path | None) -> None:
    """Reading r3.run in another process kills that; with a folder for marks only at the first attempt."""
    opened, here = pieces.open_run, os.getpid()

    def open_run(source, *args, **kwargs):
        if os.getpid() != here:
            kill_worker(int(str(source) == "r3.run"), str(marks or ""), deadly=1)
        return opened(source, *args, **kwargs)

    monkeypatch.setattr(pieces, "open_run", open_run)


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_same_bytes_though_a_worker_was_killed(folder, command, monkeypatch, capsys):
    runs = [f"r{n}.run" for n in range(9)]
    assert main([*COMMANDS[command], *runs]) == 0
    expected, said = (folder / "out").read_bytes(), capsys.readouterr()
    deadly_reads(monkeypatch, folder)
    assert main([*COMMANDS[command], *runs, "--jobs", "2"]) == 0
    assert (folder / "mark").exists()
    assert ((folder / "out").read_bytes(), capsys.readouterr()) == (expected, said)


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_run_that_kills_every_worker_is_named(folder, command, monkeypatch, capsys):
    (folder / "out").write_text("what was there before\n")
    deadly_reads(monkeypatch, None)
    assert main([*COMMANDS[command], *(f"r{n}.run" for n in range(9)), "--jobs", "2"]) == 1
    reason = "a worker process was killed, and so was the next one (signal 9), perhaps for lack of memory"
    expected = f"fairevals: error: r3.run: {reason}; try fewer jobs (option --jobs)\n"
    assert capsys.readouterr() == ("", expected)
    assert (folder / "out").read_text() == "what was there before\n"
    assert multiprocessing.active_children() == []


TRAIN = (
    "train",
    "pg-rank",
    "--train",
    "train.letor",
    "--seeds",
    "4",
    "--epochs",
    "2",
    "-o",
    "policies",
    "--force",
)


@pytest.mark.usefixtures("forked")
def test_a_policy_that_kills_its_worker(folder, monkeypatch, capsys):
    assert main([*TRAIN, "--jobs", "1"]) == 0
    said, table = capsys.readouterr(), (folder / "policies" / "summary.csv").read_bytes()
    train = methods.train_policy
    marks = [str(folder)]

    def train_policy(settings, *args, **kwargs):
        kill_worker(settings.seed, *marks, deadly=2)
        return train(settings, *args, **kwargs)

    monkeypatch.setattr(train_policy, "__module__", methods.__name__)
    monkeypatch.setattr(train_policy, "__qualname__", "train_policy")
    monkeypatch.setattr(methods, "train_policy", train_policy)
    assert main([*TRAIN, "--jobs", "2"]) == 0
    assert capsys.readouterr() == said
    assert (folder / "policies" / "summary.csv").read_bytes() == table
    marks.clear()
    assert main([*TRAIN, "--jobs", "2"]) == 1
    assert "error: pg-rank-seed2: a worker process was killed" in capsys.readouterr().err


# The process that started them --------------------------------------------------------------------------------


PROGRAM = """
import multiprocessing, os, signal, sys, time
from pathlib import Path
from fairevals.cli.main import main
from fairevals.evaluation import pieces

def open_run(source, *_, **__):
    Path(f"started{os.getpid()}").touch()
    time.sleep(600)

pieces.open_run = open_run
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv.pop())
    sys.exit(main())
"""


@pytest.fixture(params=["fork", "spawn", "forkserver"])
def working(request, folder) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A command and its two workers, all of which are at work."""
    (folder / "program.py").write_text(PROGRAM)
    words = ["score", "--qrels", "my.qrels", "r0.run", "r1.run", "r2.run", "--jobs", "2", request.param]
    running = subprocess.Popen(
        [sys.executable, "program.py", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        wait_until(lambda: len(list(folder.glob("started*"))) == 2 or running.poll() is not None)
        yield running, [int(path.name.removeprefix("started")) for path in folder.glob("started*")]
    finally:
        running.kill()
        running.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_with_workers(working, number):
    """The signal reaches all processes of the group, as Ctrl-C in a terminal does."""
    running, workers = working
    assert len(workers) == 2
    os.killpg(running.pid, number)
    _, err = running.communicate(timeout=BOUND)
    assert (running.returncode, err) == (130, "fairevals: interrupted\n")
    wait_until(lambda: all(map(gone, workers)))


def test_workers_end_with_the_process_that_was_killed(working):
    running, workers = working
    assert len(workers) == 2
    running.kill()
    wait_until(lambda: all(map(gone, workers)))
    assert running.communicate(timeout=BOUND)[1] == ""


def test_workers_end_by_sigterm(working):
    """One that is told to end does so, and counts as killed: the other goes on, and a new one takes its place."""
    running, workers = working
    os.kill(workers[0], signal.SIGTERM)
    wait_until(lambda: gone(workers[0]))
    wait_until(lambda: len(list(Path().glob("started*"))) == 3)
    assert not gone(workers[1])
    assert running.poll() is None

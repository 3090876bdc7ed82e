"""Commands, faults, and the one invariant: the tables that `test_faults.py` multiplies.

A command is how to call it and what it writes. A fault is how to bring it about. Whatever the two are, the program must
end in time, with a known exit code and no traceback, and leave each output as it was or as it should be, whole, and
nothing else.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from select import select

import pytest

from fairevals.annotate.store import Store
from fairevals.io.parts import is_part

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
BOUND = 60
"""Seconds after which a command counts as hanging; each takes one or two."""

INPUTS = {
    "my.qrels": "q1 0 a 1\nq1 0 b 0\nq2 0 a 1\nq2 0 b 2\n",
    "my.run": "q1 Q0 a 1 2 mine\nq1 Q0 b 2 1 mine\nq2 Q0 a 1 1 mine\n",
    "other.run": "q1 Q0 b 1 2 other\nq1 Q0 a 2 1 other\nq2 Q0 b 1 1 other\n",
    "sex.csv": "doc,group\na,she\nb,he\n",
    "task.toml": 'qrels = "my.qrels"\nmeasures = ["nDCG@2", "AWRF(attr=\'SEX\')"]\n'
    '[attributes.SEX]\ngroups = ["she", "he"]\nmemberships = "sex.csv"\n',
    "annotations.tsv": "topic\tdoc\tentity\tannotator\tSEX\nq1\ta\te\tx\tshe\nq1\tb\tf\tx\the\n",
    "data.letor": "1 qid:q1 1:0.5 2:1 # a\n0 qid:q1 1:0.1 # b\n1 qid:q2 1:0.7 2:1 # a\n0 qid:q2 1:0.2 # b\n",
}
INPUTS |= {f"data/qrels/{name}": INPUTS[name] for name in ("my.qrels", "sex.csv", "task.toml")}
INPUTS |= {"data/runs/shown.run": INPUTS["my.run"]}
MODEL = "policies/ridge-seed0"


@dataclass(frozen=True)
class Command:
    """How to call a command, what it writes, and when it is where."""

    words: str
    outputs: tuple[str, ...]
    """Files and folders; each must be old or new as a whole."""
    reads: str
    """The input whose opening is the middle of the work."""
    writing: str
    """The moment while it writes: a file is half done, and of several files some are already there."""
    jobs: str = ""
    """The moment in the work of another process, where the command has --jobs."""


FILE, FOLDER = "sync:1", "write:3"
COMMANDS = {
    "score": Command(
        "score --task task.toml my.run other.run -o out.csv",
        ("out.csv",),
        "other.run",
        FILE,
        "read:other.run",
    ),
    "compare": Command(
        "compare --task task.toml my.run --baseline other.run -o out.txt",
        *(("out.txt",), "other.run", FILE, "read:other.run"),
    ),
    "report": Command(
        "report --task task.toml my.run other.run -m nDCG@2 -o out",
        *(("out",), "other.run", FOLDER, "read:other.run"),
    ),
    "power": Command(
        "power --task task.toml my.run other.run -o out.txt --figure out.svg",
        *(("out.txt", "out.svg"), "other.run", "sync:2", "read:other.run"),
    ),
    "export": Command(
        "export participants --task task.toml my.run other.run -o out --force",
        *(("out",), "other.run", FOLDER, "read:other.run"),
    ),
    "exposure": Command(
        "exposure --qrels my.qrels my.run -o out.csv --figure out.svg",
        *(("out.csv", "out.svg"), "my.run", "sync:2"),
    ),
    "validate": Command(
        "validate --task task.toml my.run other.run --format csv -o out.csv", ("out.csv",), "other.run", FILE
    ),
    "pool": Command("pool my.run other.run --depth 2 -o out.txt", ("out.txt",), "other.run", FILE),
    "annotate": Command("annotate export work -o out.csv", ("out.csv",), "annotate.sqlite", FILE),
    "derive": Command(
        "derive --task task.toml --annotations annotations.tsv --out out --force",
        *(("out",), "annotations.tsv", "write:2"),
    ),
    "train": Command(
        "train ridge --train data.letor --seeds 2 --eval-samples 2 -o out --force",
        *(("out",), "data.letor", FOLDER, "fork:1"),
    ),
    "predict": Command(f"predict {MODEL} --data data.letor -o out.run", ("out.run",), "data.letor", FILE),
    "rerank": Command(
        "rerank parity my.run other.run --task task.toml --attr SEX --strength 0.5 --strength 1 -o out --force",
        *(("out",), "other.run", FOLDER),
    ),
    "demo": Command("demo --data data -o out", ("out",), "shown.run", FOLDER),
}
SLOWEST = ("compare", "report", "train", "demo")
"""They take more than a second, and meet only faults where the others cannot stand for them."""


@dataclass(frozen=True)
class Fault:
    """How to bring a fault about, and what may come of it."""

    what: str = ""
    """What the file in `inject/` does, without the moment."""
    when: Callable[[Command], str] = lambda command: command.writing
    closed: tuple[int, ...] = ()
    """The standard descriptors that are closed."""
    setting: Callable[[Path, Command], object] = lambda folder, command: _as_it_is()
    """A context manager that changes the folder."""
    worker: bool = False
    codes: frozenset[int] = frozenset({0, 1})
    messages: tuple[str, ...] = ("fairevals: error: ",)
    """How the last line on standard error may start."""
    skip: tuple[str, ...] = ()
    """The commands on which it is not tried."""


@contextmanager
def _as_it_is() -> Iterator[None]:
    yield


@contextmanager
def unreadable(folder: Path, command: Command) -> Iterator[None]:
    """An input that opens and then fails to be read, as from a broken disk: Linux gives EIO for address 0."""
    memory = Path("/proc/self/mem")
    if not memory.exists():
        pytest.skip("needs /proc/self/mem")
    (path,) = folder.rglob(command.reads)
    content = path.read_bytes()
    path.unlink()
    path.symlink_to(memory)
    yield
    path.unlink()
    path.write_bytes(content)


def _mount(*words: str) -> None:
    if subprocess.run(["mount", *words], capture_output=True, check=False).returncode:
        pytest.skip("the tests may not mount a file system here")


@contextmanager
def read_only(folder: Path, command: Command) -> Iterator[None]:
    """A folder in which nothing can be written. Permissions do not bind root, a mount does."""
    if os.geteuid():
        folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
        for path in folders:
            path.chmod(0o555)
        yield
        for path in folders:
            path.chmod(0o755)
        return
    _mount("--bind", str(folder), str(folder))
    try:
        _mount("-o", "remount,bind,ro", str(folder))
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


FILLER = "filler"


@contextmanager
def full_disk(folder: Path, command: Command) -> Iterator[None]:
    """A small file system that has no room left."""
    _mount("-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder))
    try:
        prepare(folder, command)
        with (folder / FILLER).open("wb", buffering=0) as file:
            for size in (1 << 16, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    pass
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


STOPPED = frozenset({130})
KILLED = frozenset({-signal.SIGKILL})
FAILED = frozenset({1})
MOMENTS: dict[str, Callable[[Command], str]] = {
    "at the start": lambda command: "import:fairevals.cli.main",
    "in the middle": lambda command: f"read:{command.reads}",
    "while writing": lambda command: command.writing,
}
LIKE_OTHERS = {(name, when) for name in ("SIGTERM", "SIGKILL") for when in ("in the middle", "while writing")}
LIKE_OTHERS -= {("SIGKILL", "while writing")}
FAULTS = {
    f"{name} {when}": Fault(
        name,
        moment,
        codes=KILLED if name == "SIGKILL" else STOPPED,
        # From the moment at which the program has handlers, it takes SIGTERM for SIGINT; and SIGKILL before it writes
        # leaves nothing to remove.
        skip=SLOWEST if (name, when) in LIKE_OTHERS else (),
    )
    for name in ("SIGINT", "SIGTERM", "SIGKILL")
    for when, moment in MOMENTS.items()
} | {
    "no room for a file": Fault("ENOSPC", codes=FAILED),
    # SQLite leaves two empty files of its own beside a database that it could not read.
    "no room on the disk": Fault(setting=full_disk, codes=FAILED, skip=("annotate",)),
    "an error of the disk while writing": Fault("EIO", codes=FAILED, skip=SLOWEST),
    "an error of the disk while reading": Fault(setting=unreadable, codes=FAILED, skip=("validate",)),
    "a read-only folder": Fault(setting=read_only, codes=FAILED),
    # OpenBLAS, which numpy and scipy load, ends the process itself if it gets no memory.
    "no memory": Fault(
        "MEMORY", MOMENTS["in the middle"], messages=("fairevals: error: ", "OpenBLAS error: ")
    ),
    "standard input closed": Fault(closed=(0,), codes=frozenset({0}), skip=SLOWEST),
    "standard output closed": Fault(closed=(1,), skip=SLOWEST),
    "standard error closed": Fault(closed=(2,), codes=frozenset({0}), skip=SLOWEST),
    "all standard streams closed": Fault(closed=(0, 1, 2)),
    "a worker killed": Fault(
        "SIGKILL",
        lambda command: command.jobs,
        worker=True,
        codes=FAILED,
        skip=tuple(name for name, command in COMMANDS.items() if not command.jobs),
    ),
}


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    err: str
    seen: bool = True
    """Whether the fault was injected."""


@cache
def _scratch() -> Path:
    """A folder for this process."""
    keep = tempfile.TemporaryDirectory(prefix="fairevals-faults-")
    _kept.append(keep)
    return Path(keep.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def call(
    words: str, folder: Path, fault: str = "", *, worker: bool = False, closed: tuple[int, ...] = ()
) -> Ended:
    """Run the program in a folder, for at most a minute; nothing that it started may be left.

    It starts as a fork of a process that has loaded its modules, unless the fault concerns the start: of Python with
    closed streams, of the program, or of libraries that find no memory.
    """
    scratch = _scratch()
    seen = scratch / "seen"
    seen.unlink(missing_ok=True)
    env = _environment() | {"FAULT_SEEN": str(seen), "FAULT_IN": "worker" if worker else ""}
    if fault:
        env["FAULT"] = fault
    if closed or "@import:" in fault or fault.startswith("MEMORY"):
        code, err = _started(words, folder, env, closed)
    else:
        code, err = _forked(words, folder, env)
    if code is None:
        pytest.fail(f"fairevals {words} or a process that it started did not end within {BOUND} s")
    return Ended(code, err, seen.exists())


def _environment() -> dict[str, str]:
    # The program is started many times: let it keep its compiled modules.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return env | {"PYTHONPATH": f"{HERE / 'inject'}{os.pathsep}{TOP}", "OPENBLAS_NUM_THREADS": "1"}


def _started(
    words: str, folder: Path, env: dict[str, str], closed: tuple[int, ...]
) -> tuple[int | None, str]:
    """The exit code and standard error of a new process; the code is None if it does not end."""

    def settle() -> None:
        # Tests that run in the background inherit that SIGINT is to be ignored, and so would the program.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for descriptor in closed:
            os.close(descriptor)

    running = subprocess.Popen(
        [sys.executable, "-m", "fairevals", *words.split()],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=settle,
        start_new_session=True,
    )
    try:
        _, err = running.communicate(timeout=BOUND)  # until nobody holds the streams, workers neither
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
        return None, ""
    return running.returncode, err


@cache
def _warm() -> subprocess.Popen[bytes]:
    """The process that forks; it ends when its standard input does."""
    warm = subprocess.Popen(
        [sys.executable, HERE / "warm.py"],
        env=_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    atexit.register(warm.communicate)
    return warm


def _forked(words: str, folder: Path, env: dict[str, str]) -> tuple[int | None, str]:
    """As `_started`, without loading modules."""
    pipe = _scratch() / "err"
    if not pipe.exists():
        os.mkfifo(pipe)
    reading, warm, err = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), _warm(), b""
    request = {"words": words.split(), "folder": str(folder), "env": env, "err": str(pipe)}
    warm.stdin.write(json.dumps(request).encode() + b"\n")
    pid = int(warm.stdout.readline())
    try:
        if select([warm.stdout], [], [], BOUND)[0]:
            code = int(warm.stdout.readline())
            while select([reading], [], [], BOUND)[0]:  # until nobody holds it, workers neither
                some = os.read(reading, 1 << 16)
                if not some:
                    return code, err.decode()
                err += some
        os.killpg(pid, signal.SIGKILL)
        _warm.cache_clear()
        return None, ""
    finally:
        os.close(reading)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.name != FILLER}


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@cache
def inputs() -> dict[str, bytes]:
    """What stands in the folder before any command: the inputs, a trained policy, and an annotation project."""
    folder = Path(tempfile.mkdtemp(dir=_scratch()))
    write(folder, {name: text.encode() for name, text in INPUTS.items()})
    ended = call("train ridge --train data.letor --eval-samples 2 -o policies", folder)
    assert ended.code == 0, ended.err
    write_annotations(folder / "work")
    return contents(folder)


def write_annotations(folder: Path) -> None:
    """The database of an annotation project in which somebody has judged a page."""
    folder.mkdir()
    with Store(folder, create=True) as store, store.writing():
        store.add_pages([("q1", "a")])
        store.append("configure", columns=["SEX"])
        store.add_assessor("ann", ["*"])
        store.append("take", "ann", 1)
        store.append("save", "ann", 1, entities=[{"entity": "e", "SEX": "she"}])


@cache
def written(command: Command) -> dict[str, bytes]:
    """What a command writes if nothing goes wrong."""
    folder = Path(tempfile.mkdtemp(dir=_scratch()))
    write(folder, inputs())
    ended = call(command.words, folder)
    assert ended.code == 0, ended.err
    files = {name: content for name, content in contents(folder).items() if name not in inputs()}
    shutil.rmtree(folder)
    return files


def older(command: Command) -> dict[str, bytes]:
    """An earlier output: of the same kind, but with other bytes."""
    return {name: content + b"\n" for name, content in written(command).items()}


def prepare(folder: Path, command: Command) -> None:
    """Write the inputs and an earlier output."""
    write(folder, inputs() | older(command))


def _parts(files: dict[str, bytes], output: str) -> dict[str, bytes]:
    return {
        name: content for name, content in files.items() if name == output or name.startswith(f"{output}/")
    }


def check_outputs(
    folder: Path, command: Command, before: dict[str, bytes], *, new: bool, killed: bool = False
) -> None:
    """Each output is old or new as a whole (or `new`), and the inputs are untouched.

    A process that was `killed` may leave a hidden part, also inside the folder where it writes.
    """
    found, fresh, old = contents(folder), written(command), older(command)
    if killed:
        found = {name: found[name] for name in found if not any(map(is_part, Path(name).parts))}
    for output in command.outputs:
        states = {"new": _parts(fresh, output)} | ({} if new else {"old": _parts(old, output)})
        state = _parts(found, output)
        mixed = {name: "old" if old.get(name) == content else "new" for name, content in state.items()}
        assert state in states.values(), f"{output} is neither {' nor '.join(states)} as a whole: {mixed}"
    assert before.items() - old.items() <= found.items()


def check_no_leftover(folder: Path, before: dict[str, bytes]) -> None:
    """There are only the files that were there before: an older output has the same names."""
    assert sorted(contents(folder)) == sorted(before)


def check(command: Command, fault: Fault, folder: Path) -> None:
    """Call the command under the fault, and check the invariant."""
    prepare(folder, command)
    words = command.words + (" --jobs 2" if fault.worker else "")
    what = f"{fault.what}@{fault.when(command)}" if fault.what else ""
    with fault.setting(folder, command):  # type: ignore[attr-defined]
        before = contents(folder)
        ended = call(words, folder, what, worker=fault.worker, closed=fault.closed)
        assert ended.code in fault.codes, ended.err
        assert ended.seen or not fault.what, "the moment never came"
        assert "Traceback" not in ended.err
        assert "Exception ignored" not in ended.err
        last = (ended.err.splitlines() or [""])[-1]
        if ended.code == 130:
            assert last == "fairevals: interrupted"
        elif ended.code > 0 and 2 not in fault.closed:
            assert last.startswith(fault.messages), ended.err
        check_outputs(folder, command, before, new=ended.code == 0, killed=fault.codes == KILLED)
        if fault.codes == KILLED:  # the next run removes what this one could not
            ended = call(command.words, folder)
            assert ended.code == 0, ended.err
            check_outputs(folder, command, before, new=True)
        check_no_leftover(folder, before)

"""Fuzz the readers: for any bytes they must return or raise a `FairevalsError` within a few seconds.

    python fuzz/readers.py -max_total_time=60

With atheris installed (`pip install 'fairevals[fuzz]'`) coverage guides the bytes, and all options of libFuzzer work.
Without it, valid files are mutated at random, reproducibly for the same `-seed=N`. A failing input is written to
`crash-…` in the working folder; give that file as an argument to run it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import random
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

try:
    import atheris
except ImportError:
    atheris = None
if "-atheris=0" in sys.argv:
    atheris = None

with atheris.instrument_imports(include=["fairevals", "tomllib"]) if atheris else contextlib.nullcontext():
    from fairevals.collection.groups import load_attribute
    from fairevals.collection.qrels import Qrels
    from fairevals.collection.run import Run
    from fairevals.derive import derive, read_annotations
    from fairevals.errors import FairevalsError, InputWarning
    from fairevals.io.archives import each_run
    from fairevals.io.check import Rules, check_run
    from fairevals.io.letor import read_letor
    from fairevals.io.qrels import read_qrels_columns
    from fairevals.io.runs import RunOptions, read_run_columns
    from fairevals.io.specs import AttributeSpec
    from fairevals.io.streams import Source
    from fairevals.io.targets import read_target_file
    from fairevals.io.task import Task, read_task
    from fairevals.io.topics import read_topics
    from fairevals.training.trees import Trees

SLOW = 10.0
"""An input that takes longer, in seconds, counts as a hang."""

FOLDER = tempfile.TemporaryDirectory(prefix="fairevals-fuzz-")
FILE = Path(FOLDER.name) / "file"
QRELS = Qrels.of(read_qrels_columns(Source.of(b"q1 0 a 2\nq1 0 b 0\nq2 0 a 1\n", "qrels")))
GROUPS = ("she", "he")


def _run(data: bytes) -> None:
    for name in ("x.run", "x.csv"):
        for samples in (False, True):
            with contextlib.suppress(FairevalsError):
                Run.of(read_run_columns(Source.of(data, name), RunOptions(samples=samples, depth=2)))


def _check(data: bytes) -> None:
    for _ in check_run(Source.of(data, "x.run"), Rules(topics=("q1",), max_documents=2, style=True)):
        pass


def _qrels(data: bytes) -> None:
    Qrels.of(read_qrels_columns(Source.of(data, "x.qrels")))


def _memberships(data: bytes) -> None:
    FILE.write_bytes(data)
    load_attribute(AttributeSpec("SEX", GROUPS, memberships=FILE, target="relevant"), QRELS)


def _task(data: bytes) -> None:
    FILE.write_bytes(data)
    read_task(FILE)


def _target(data: bytes) -> None:
    FILE.write_bytes(data)
    read_target_file(FILE, GROUPS)


def _annotations(data: bytes) -> None:
    task = Task(attributes={"SEX": AttributeSpec("SEX", GROUPS)})
    derive(task, read_annotations(Source.of(data, "x.tsv")))


def _letor(data: bytes) -> None:
    read_letor(data)


def _trees(data: bytes) -> None:
    FILE.write_bytes(data)
    model = Trees(2)
    model.read(FILE)
    model.scores(np.zeros((3, 2)))


def _topics(data: bytes) -> None:
    FILE.write_bytes(data)
    read_topics(FILE)


def _zip(data: bytes) -> None:
    FILE.write_bytes(data)
    for run in each_run([FILE]):
        with contextlib.suppress(FairevalsError):
            Run.open(run)


def _zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return packed.getvalue()


TARGETS: tuple[tuple[Callable[[bytes], None], bytes], ...] = (
    (_run, b"q1 Q0 a 1 3.5 t\nq1 Q0 b 2 2e-1 t\nq2 Q0 a 1 1 t\n"),
    (_run, b"<SYSDESC>x</SYSDESC>\nq1 1 a 1 3 t\nq1 2 a 1 3 t\n"),
    (_run, b"id\tseq\tdoc\nq1\t1\ta\nq1\t2\ta\n"),
    (_run, b'topic,doc,score\nq1,a,2\nq1,"b",1.5\n'),
    (_run, b"id\tpage_id\nq1\ta\nq1\tb\nq2\ta\n"),
    (_run, b'{"q_num": "1.1", "qid": "q1", "ranking": ["a", "b"]}\n{"qid": 2, "ranking": [7]}\n'),
    (_zip, _zipped({"team/x.run": b"q1 Q0 a 1 3.5 t\n", "y.run": b"q1 Q0 a 1 3.5 t\n"})),
    (_topics, b"topic\ttitle\nq1\tone\nq2\ttwo\n"),
    (_topics, b'{"id": 1, "title": "x"}\n'),
    (_check, b"q1 Q0 a 1 3.5 t\nq1 Q0 b 2 2e-1 t\nq2 Q0 a 1 1 t\n"),
    (_qrels, b"q1 0 a 2\nq1 0 b 0\nq2 0 a -1\n"),
    (_qrels, b"q1 a L2\nq2 b L0\n"),
    (_qrels, b'{"id": 1, "title": "x", "rel_docs": ["a", 7]}\n{"id": "q2", "rel_docs": []}\n'),
    (_memberships, b"q1 a 0.5 0.5\nq1 b 1 0\n"),
    (_memberships, b"topic,doc,group,weight\nq1,a,she,1\nq1,b,he,0.5\nq1,b,she,0.5\n"),
    (
        _task,
        b'name = "x"\nmax_grade = 2\n[attributes.SEX]\ngroups = ["she", "he"]\ntarget = {"*" = [0.5, 0.5]}\n',
    ),
    (_task, b'[policy]\nkind = "pl"\ntemperature = 0.5\n[attributes]\nA.groups = ["a", "b"]\nA.bins = [1]\n'),
    (_target, b"0.25\n0.75\n"),
    (_annotations, b"topic\tdoc\tentity\tannotator\tSEX\nq1\ta\te\tx\tshe\nq1\tb\t\tx\t\n"),
    (_letor, b"2 qid:q1 1:0.5 3:1e-2 # docid = a\n0 qid:q1 2:1\n"),
    (
        _task,
        b'[intersections.X]\nof = ["A", "B"]\ntarget = {mix = ["relevant", "backgrounds"], unknown = "u"}\n',
    ),
    (_target, b"topic,she,he\nq1,0.25,0.75\n*,1,0\n"),
    (_target, b"group,share\nshe,0.25\nhe,0.75\n"),
    (_memberships, b"doc,she,he\na,0.5,0.5\nb,1,0\n"),
    (
        _trees,
        b"tree\nTree=0\nnum_leaves=3\nnum_cat=0\nsplit_feature=1 0\nthreshold=0.5 -1\ndecision_type=2 2\n"
        b"left_child=-1 -2\nright_child=1 -3\nleaf_value=0.1 -0.2 0.3\nis_linear=0\n\n"
        b"Tree=1\nnum_leaves=1\nnum_cat=0\nleaf_value=0.5\n\nend of trees\n",
    ),
)
"""A reader and a file that it accepts; the first byte of an input selects the reader."""

PIECES = (
    *(
        b"\0",
        b"\xff",
        b"\n",
        b"\r",
        b"\t",
        b" ",
        b'"',
        b"'",
        b",",
        b"=",
        b"[",
        b"]",
        b"{",
        b".",
        b"#",
        b":",
        b"-",
        b"e",
    ),
    *(
        b"nan",
        b"inf",
        b"1e999",
        b"9" * 30,
        b"9" * 5000,
        b"1e-400",
        b"\xe2\x80\xa8",
        b"\xc2\x85",
        b"\xef\xbb\xbf",
    ),
    *(b"[" * 1500, b"a." * 1500, b"x" * 70_000, b"topic,doc,score\n", b"qid:", b"<SYSDESC>"),
)


def one_input(data: bytes) -> None:
    """Read one input; raises if a reader fails in a way that it must not."""
    if not data:
        return
    began = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InputWarning)
        with contextlib.suppress(FairevalsError):
            TARGETS[data[0] % len(TARGETS)][0](data[1:])
    if time.monotonic() - began > SLOW:
        raise TimeoutError(f"more than {SLOW:g} seconds")


def seeds() -> list[bytes]:
    """An input for every target."""
    return [bytes([number]) + data for number, (_, data) in enumerate(TARGETS)]


def mutated(data: bytes, turn: random.Random, known: Sequence[bytes], first: int = 0) -> bytes:
    """The bytes with a few random changes, some of them from `known` data, and none before `first`."""
    changed = bytearray(data)
    for _ in range(turn.randint(1, 5)):
        at, size = turn.randint(first, len(changed)), turn.randint(0, 8)
        match turn.randrange(6):
            case 0 if at < len(changed):
                changed[at] ^= 1 << turn.randrange(8)
            case 1:
                del changed[at : at + size]
            case 2:
                changed[at:at] = turn.choice(PIECES)
            case 3:
                changed[at:at] = changed[max(first, at - 8 * size) : at] * turn.randint(1, 3)
            case 4:
                changed[at:] = turn.choice(known)[turn.randint(0, 20) :]
            case _:
                changed[at : at + size] = turn.randbytes(size)
    return bytes(changed)


def at_random(seconds: float, seed: int) -> int:
    """Mutate and read until the time is over; returns 1 if an input failed."""
    turn, known, files = random.Random(seed), seeds(), [data for _, data in TARGETS]
    executions, stop = 0, time.monotonic() + seconds
    while time.monotonic() < stop:
        data = mutated(turn.choice(known), turn, files, first=1)
        try:
            one_input(data)
        except Exception:
            traceback.print_exc()
            path = Path(f"crash-{hashlib.sha256(data).hexdigest()[:16]}")
            path.write_bytes(data)
            print(f"{executions} executions; failed: {path}")
            return 1
        executions += 1
    print(f"{executions} executions in {seconds:g} s, none failed (random mutations, without atheris)")
    return 0


def given_options() -> dict[str, str]:
    """The options, written as libFuzzer's: -name=value."""
    return dict(word[1:].split("=", 1) for word in sys.argv[1:] if word.startswith("-") and "=" in word)


def main() -> int:
    """Fuzz, or run the given files."""
    options = given_options()
    files = [Path(word) for word in sys.argv[1:] if Path(word).is_file()]
    for number, data in enumerate(seeds()):  # the seeds must be valid
        TARGETS[number][0](data[1:])
    if files:
        for path in files:
            one_input(path.read_bytes())
        print(f"{len(files)} executions, none failed")
        return 0
    if atheris is None:
        return at_random(float(options.get("max_total_time", 60)), int(options.get("seed", 0)))
    corpus = Path(FOLDER.name) / "corpus"
    corpus.mkdir()
    for number, data in enumerate(
        [*seeds(), *(seeds()[n % len(TARGETS)][:1] + p for n, p in enumerate(PIECES))]
    ):
        (corpus / str(number)).write_bytes(data)
    words = [
        sys.argv[0],
        "-print_final_stats=1",
        "-timeout=20",
        "-rss_limit_mb=3000",
        "-max_len=4096",
        *sys.argv[1:],
    ]
    atheris.Setup([*words, str(corpus)], one_input)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())

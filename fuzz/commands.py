"""Fuzz whole commands: whatever the files and options are, they end with 0, 1 or 2 and a message, within seconds.

    python fuzz/commands.py -max_total_time=240 [-seed=N]
    python fuzz/commands.py fuzz/corpus/*.json          runs these cases again

A case is a call and its files. Valid cases are changed by tokens (numbers to extremes, ids, separators, lines, columns,
values of a task, options) and by bytes. A case that fails is made smaller and kept in `fuzz/corpus/`; the tests run all
of them. It fails if anything but `SystemExit` is raised, the exit code is another, there is an error without a message,
a file outside its folder is written, or a file that was read is changed. A warning of numpy counts as an exception.
"""

# ruff: noqa: SIM905 (lists of many short words)
from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import matplotlib.font_manager  # noqa: F401 (writes a cache where it is imported first)
from readers import given_options, mutated

from fairevals.annotate.store import Store
from fairevals.cli.main import COMMANDS, main, make_parser
from fairevals.errors import FairevalsWarning

CORPUS = Path(__file__).resolve().parent / "corpus"
SLOW = 20
"""A case that takes longer, in seconds, counts as a hang."""
MEMORY = 4 << 30
"""Bytes that fuzzing may allocate; a case that asks for more must say that there is not enough memory."""


@dataclass(frozen=True)
class Case:
    """A call of the program and the files in its folder. `codes` are the exit codes that are allowed."""

    argv: tuple[str, ...]
    files: dict[str, bytes]
    codes: tuple[int, ...] = (0, 1, 2)

    def to_json(self) -> str:
        """The case as text; files that are not UTF-8 text are in base64."""

        def content(data: bytes) -> object:
            try:
                return data.decode()
            except UnicodeDecodeError:
                return {"base64": base64.b64encode(data).decode()}

        files = {name: content(data) for name, data in self.files.items()}
        fields = {"argv": self.argv, "codes": self.codes, "files": files}
        return json.dumps(fields, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Case:
        """The inverse of `to_json`."""
        fields = json.loads(text)
        files = {
            name: base64.b64decode(content["base64"]) if isinstance(content, dict) else content.encode()
            for name, content in fields["files"].items()
        }
        return cls(tuple(fields["argv"]), files, tuple(fields["codes"]))


class BrokenPromiseError(AssertionError):
    """The program did what it must not do; `kind` is the same for failures of one cause."""

    def __init__(self, kind: str, details: str = "") -> None:
        super().__init__(f"{kind}\n{details}")
        self.kind = kind


_folder: list[Path] = []
"""The folder of the case that runs, else nothing."""
_read: set[Path] = set()
"""The files that the case has opened for reading."""


def _watch(event: str, args: tuple[object, ...]) -> None:
    if not _folder or event not in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink"):
        return
    path = args[1] if event == "os.rename" else args[0]
    if not isinstance(path, (str, bytes)):  # a descriptor
        return
    path = Path(os.fsdecode(path)).resolve()
    if event == "open" and not int(str(args[2])) & (os.O_WRONLY | os.O_RDWR):
        _read.add(path)
    elif not (path.is_relative_to(_folder[0]) or path == Path(os.devnull) or "__pycache__" in path.parts):
        _folder.clear()
        raise BrokenPromiseError(f"{event} outside of the folder", str(path))


@cache
def _watching() -> None:
    sys.addaudithook(_watch)


@contextlib.contextmanager
def _placed(case: Case) -> Iterator[Path]:
    """The working folder, with the files of the case."""
    _watching()
    before = Path.cwd()
    folder = Path(tempfile.mkdtemp(prefix="fairevals-fuzz-")).resolve()
    try:
        for name, content in case.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        os.chdir(folder)
        _read.clear()
        _folder[:] = [folder]
        yield folder
    finally:
        _folder.clear()
        os.chdir(before)
        shutil.rmtree(folder, ignore_errors=True)


def _call(argv: tuple[str, ...]) -> tuple[int, str]:
    """The exit code and standard error of a call in this process."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace") for _ in range(3)]
    old = sys.stdin, sys.stdout, sys.stderr, signal.getsignal(signal.SIGTERM)
    sys.stdin, sys.stdout, sys.stderr = streams
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("default", FairevalsWarning)
            warnings.filterwarnings("ignore", category=DeprecationWarning, module="ir_measures")
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            signal.setitimer(signal.ITIMER_REAL, SLOW)
            try:
                code = main(list(argv))
            except SystemExit as end:  # of argparse
                code = end.code if isinstance(end.code, int) else 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdin, sys.stdout, sys.stderr, handler = old
        signal.signal(signal.SIGTERM, handler)
    streams[2].flush()
    return code, streams[2].buffer.getvalue().decode()


def run_case(case: Case) -> int:
    """Run a case; returns the exit code, and raises a `BrokenPromiseError` if the program broke a promise."""
    with _placed(case) as folder:
        try:
            code, err = _call(case.argv)
        except KeyboardInterrupt:
            raise BrokenPromiseError("a hang") from None
        except BrokenPromiseError:
            raise
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)
            ours = [f for f in place if "fairevals" in Path(f.filename).parts][-1:] or place[-1:]
            kind = f"{type(error).__name__} in {Path(ours[0].filename).name}:{ours[0].name}"
            raise BrokenPromiseError(kind, traceback.format_exc()) from None
        _folder.clear()
        if code == 130:
            raise BrokenPromiseError("a hang", err)
        if code not in case.codes:
            raise BrokenPromiseError(f"exit code {code}", err)
        if code and not err:
            raise BrokenPromiseError(f"exit code {code} without a message")
        if "Traceback" in err:
            raise BrokenPromiseError("a traceback", err)
        for name, content in case.files.items():
            path = folder / name
            if path in _read and not (path.is_file() and path.read_bytes() == content):
                raise BrokenPromiseError("an input was changed", name)
        hidden = [path.name for path in folder.rglob(".*") if str(path.relative_to(folder)) not in case.files]
        if hidden:
            raise BrokenPromiseError("a leftover", ", ".join(hidden))
    return code


# ── Valid cases ──────────────────────────────────────────────────────────────────────────────────────────────────────

QRELS = b"q1 0 a 2\nq1 0 b 0\nq1 0 c 1\nq2 0 a 1\nq2 0 c 2\n"
RUN = b"q1 Q0 a 1 3.5 mine\nq1 Q0 b 2 2e-1 mine\nq1 Q0 d 3 -1 mine\nq2 Q0 a 1 1 mine\n"
OTHER = b"q1 Q0 b 1 3 other\nq1 Q0 c 2 2 other\nq2 Q0 c 1 1 other\nq2 Q0 a 2 0 other\n"
SAMPLES = b"q1 1 a 1 3 many\nq1 1 b 2 2 many\nq1 2 b 1 3 many\nq1 2 a 2 2 many\nq2 1 a 1 1 many\n"
TABLE = b"topic,doc,score\nq1,a,2\nq1,b,1.5\nq2,c,1\n"
WIDE = b"q1 a 0.5 0.5\nq1 b 1 0\nq1 c 0 1\nq2 a 0 1\nq2 c 0.25 0.75\n"
LONG = b"topic,doc,group,weight\nq1,a,low,1\nq1,b,mid,1\nq1,c,high,0.5\nq1,c,mid,0.5\nq2,a,high,1\n"
RUNS = b"file,name,team,status\nmy.run,mine,us,official\nother.run,theirs,them,baseline\n"
ANNOTATIONS = (
    b"topic\tdoc\tentity\tannotator\tSEX\tAGE\nq1\ta\te\tx\tshe\t12\nq1\tb\t\tx\t\t\nq1\ta\te\ty\the\t70\n"
)
LETOR = b"2 qid:q1 1:0.5 3:1e-2 # a\n0 qid:q1 2:1 # b\n1 qid:q2 1:1 # a\n1 qid:q2 1:0.1 3:1 # c\n0 qid:q2 2:0.5 # d\n"
GROUPS = b"doc,group\na,x\nb,y\nc,y\nd,x\n"
TASK = b"""name = "fuzz"
qrels = "my.qrels"
max_grade = 2
order = "score"
cutoff = 10
candidates = "judged"
missing = "zero"
measures = ["nDCG@2", "ERR", "GFR(util='ERR')", "AWRF(attr='SEX')", "D_group(attr='AGE')@3"]
runs = "runs.csv"

[attributes.SEX]
kind = "nominal"
groups = ["she", "he"]
memberships = "sex.gmemb"
target = [0.5, 0.5]
unmapped = "uniform"

[attributes.AGE]
kind = "ordinal"
groups = ["low", "mid", "high"]
bins = [18, 65]
memberships = "age.csv"
target = "relevant"
divergence = "RNOD"
unmapped = "skip"
weight = 1.0

[policy]
kind = "ranking"
samples = 20
seed = 0
temperature = 1.0
"""


def _annotated() -> bytes:
    """The database of an annotation project with two entries and a question."""
    with tempfile.TemporaryDirectory() as folder:
        with Store(folder, create=True) as store, store.writing():
            store.add_pages([("q1", "a"), ("q1", "b")])
            store.append("configure", when=0.0, columns=["SEX"], per_page=2, seed=0, secret="s")
            for who in ("ann", "bob"):
                store.add_assessor(who, ["*"])
                store.append("take", who, 1, 0.0)
                store.append("save", who, 1, 0.0, entities=[{"entity": "e", "SEX": "she"}])
            store.append("take", "ann", 2, 0.0)
            store.append("ask", "ann", 2, 0.0, text="which?")
        return store.path.read_bytes()


FILES = {"my.qrels": QRELS, "my.run": RUN, "other.run": OTHER, "task.toml": TASK, "sex.gmemb": WIDE}
FILES |= {"age.csv": LONG, "runs.csv": RUNS}
SEEDS = [
    Case(tuple(words.split()), files)
    for words, files in (
        ("score --task task.toml my.run other.run", FILES),
        ("score --task task.toml my.run -q --components --format json", FILES),
        (
            "score --qrels my.qrels my.run table.csv -m nDCG@2 -m AP --policy pl --samples 20",
            FILES | {"table.csv": TABLE},
        ),
        (
            "score --qrels my.qrels many.run -m ERR -m EE_L --policy samples -o out.csv",
            FILES | {"many.run": SAMPLES},
        ),
        ("compare --task task.toml my.run other.run --baseline mine --test wilcoxon", FILES),
        ("compare --task task.toml my.run other.run --baseline other.run --test tukey -o out.txt", FILES),
        ("power --task task.toml my.run other.run --difference 0.1 --systems 3", FILES),
        ("export participants --task task.toml my.run other.run -o out", FILES),
        ("export tira --task task.toml my.run other.run -o out", FILES),
        ("exposure --task task.toml my.run --by group --policy pl", FILES),
        ("exposure --qrels my.qrels my.run --merit exp -k 2 --method mc --policy pl --samples 20", FILES),
        ("rerank target my.run --task task.toml --attr AGE --strength 0.5 --strength 1 -k 2 -o out", FILES),
        ("rerank fa-ir my.run --task task.toml --attr SEX --protected she -q -o out", FILES),
        ("rerank lp my.run --task task.toml --attr SEX --samples 3 --strength 1 -o out", FILES),
        ("validate --task task.toml my.run other.run --format csv", FILES),
        ("pool my.run other.run --depth 2 -o out.txt", FILES),
        ("annotate export work -o out.csv", {"work/annotate.sqlite": _annotated()}),
        ("annotate status work", {"work/annotate.sqlite": _annotated()}),
        (
            "derive --task task.toml --annotations annotations.tsv --out out",
            {"task.toml": TASK, "runs.csv": RUNS, "annotations.tsv": ANNOTATIONS},
        ),
        (
            "train fair-pg-rank --train data.letor --groups groups.csv --lambda 1 --epochs 2 --eval-samples 5 -o out",
            {"data.letor": LETOR, "groups.csv": GROUPS},
        ),
        ("train ridge --train data.letor --eval-samples 5 -o out", {"data.letor": LETOR}),
        (
            "train pg-rank --train data.letor --model trees --trees 6 --eval-samples 5 -o out",
            {"data.letor": LETOR},
        ),
        ("report --task task.toml my.run other.run --baseline mine -o out", FILES),
    )
]
"""A report takes as long as a hundred other calls: it comes last, and is chosen seldom."""

# ── Changes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

NUMBERS = """0 -0 1 -1 2 0.5 1e-320 5e-324 1e-17 1e16 1e308 -1e308 1e309 9007199254740993 9223372036854775808
nan inf -inf 1_0 0x10 1e 007""".split()
IDS = """=cmd|calc é e\u0301 .. ../x / - Q0 q1 a ' " \\ # <b> {{1}} $x^{$ % NA 東京""".split()
IDS += ["", "\u200b", "\x1b[31m", "\u202e", "x" * 300]
VALUES = """true {} [] [1e308,1e308] "uniform" "relevant" "product" "samples" "pl" [0,0] -1 1e309 nan [0.5] {"*"=[1,0]}
["q*"] 1979-05-27 "missing.csv" "my.qrels" "skip" "error" "file" "retrieved" "trec_eval" "a\u0000" ["",""]""".split()
MEASURES = """nDCG AP ERR iRBU P@1 P@0 RBP(p=0.999999999) Accuracy Compat Judged@2 NumRel nDCG@99999999999 Unjudged
D_ind D_cross EE_L EE_D EE_R IAA DP(attr='SEX',protected='she') EUR(attr='AGE') rKL(attr='SEX',protected='he')
nDCG(dcg='x') FAIR(attr='SEX',protected='she') FAIR(attr='SEX',protected='she',alpha=0.1) GF(attr='AGE',div='JSD')@1
M1(attr='SEX') GF(attr='ZZ') AWRF() D_group(attr='AGE',pairs='max') RR(rel=3) alpha_nDCG@3 ERR_IA infAP BPM SetP
SetF(beta=0) nERR8@2""".split()
WORDS = {
    "-m": MEASURES,
    "--measure": MEASURES,
    "--attr": ["SEX", "AGE", "ZZ", ""],
    "--attention": [
        "log2",
        "trecfair",
        "rbp(0.8)",
        "rbp(1)",
        "rbp(0)",
        "geometric(1e-320)",
        "cascade(0.5,1)",
        "[1,2]",
        "x(",
    ],
    "--strength": ["0", "0.5", "1", "2", "1e308", "-1", "nan"],
    "--protected": ["she", "zz", ""],
    "--lambda": ["0", "1e308", "-1", "nan"],
    "--topic": ["q1", "zz", ""],
    "--baseline": ["mine", "other.run", "zz", "-"],
    "--reference": ["mine", "zz"],
    "--trained": [".", "out", "zz"],
    "--groups": ["groups.csv", "age.csv", "data.letor", "zz"],
    "--tag": ["x", "", "a b", "=cmd|calc"],
    "--qrels": ["my.qrels", "other.run", "-", "."],
    "--task": ["task.toml", "my.qrels", "-"],
    "--utility": ["nDCG", "AP", "ERR", "DCG", "x"],
    "--disparity": ["D_group(attr='group')", "D_ind", "D_cross", "nDCG", "EE_L", "x"],
}
"""What an option may be given; others take one of their choices, or a number."""
OUTPUTS = {"-o", "--output", "--out", "--figure"}
OUTPUT_NAMES = [
    "out",
    "out.csv",
    "out/deep/er.svg",
    "my.run",
    "my.qrels",
    "task.toml",
    "-",
    "out.pdf",
]
LEFT_OUT = {"--jobs", "--dask", "--pool", "-h", "--help"}
SMALL = ["0", "1", "2", "3", "7", "-1", "007", "1e1", "x", "", "0.5", "1e-320", "1e308"]


@cache
def _options(command: str) -> list[tuple[str, list[str]]]:
    """The options of a command, each with possible values; none if it takes no value."""
    options = []
    for action in make_parser(command)._actions:
        for name in set(action.option_strings) - LEFT_OUT:
            values = OUTPUT_NAMES if name in OUTPUTS else list(action.choices or WORDS.get(name, SMALL))
            options.append((name, [] if action.nargs == 0 else values))
    return sorted(options)


def changed_argv(argv: tuple[str, ...], turn: random.Random) -> tuple[str, ...]:
    """The call with an option more, a word less, or another value."""
    words = list(argv)
    match turn.randrange(5):
        case 0 if len(words) > 2:
            del words[turn.randrange(1, len(words))]
        case 1:
            words.append(turn.choice(["my.run", "other.run", "-", "zz", ".", "task.toml", "out", "my.run"]))
        case _:
            name, values = turn.choice(_options(words[0]))
            words += [name, turn.choice(values)] if values else [name]
    return tuple(words)


def changed_tokens(data: bytes, turn: random.Random) -> bytes:
    """The file with another number, id, separator, or with lines or columns repeated, dropped or exchanged."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    at = turn.randrange(len(lines))
    other = turn.randrange(len(lines))
    tokens = re.split(r"([\s,=:\[\]\"]+)", lines[at])
    token = 2 * turn.randrange((len(tokens) + 1) // 2)
    match turn.randrange(10):
        case 0:
            lines[at:at] = [lines[at]] * turn.choice([1, 1, 2, 50])
        case 1:
            del lines[at]
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            new = turn.choice([" ", "\t", ",", "  ", "", ";", "\u00a0", "\r"])
            lines[at] = re.sub(r"[ \t,]", lambda _: new, lines[at])
        case 4:  # a column less
            lines = [re.sub(r"(\S+)([\t ,])", "", line, count=1) for line in lines]
        case 5:
            swap = 2 * turn.randrange((len(tokens) + 1) // 2)
            tokens[token], tokens[swap] = tokens[swap], tokens[token]
            lines[at] = "".join(tokens)
        case 6 if " = " in lines[at]:
            lines[at] = f"{lines[at].split(' = ')[0]} = {turn.choice(VALUES)}"
        case 7:
            old = tokens[token]
            if old:
                new = turn.choice(IDS)
                lines = [line.replace(old, new) for line in lines]
        case _:
            numbers = [i for i in range(0, len(tokens), 2) if re.fullmatch(r"-?[\d.]+(e-?\d+)?", tokens[i])]
            tokens[turn.choice(numbers or [token])] = turn.choice([*NUMBERS, *(() if numbers else IDS)])
            lines[at] = "".join(tokens)
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def changed(case: Case, turn: random.Random) -> Case:
    """The case with one to three changes."""
    for _ in range(turn.choice([1, 1, 2, 3])):
        name = turn.choice(list(case.files))
        match turn.randrange(6):
            case 0 | 1:
                case = replace(case, argv=changed_argv(case.argv, turn))
            case 2:
                data = mutated(case.files[name], turn, list(case.files.values()))
                case = replace(case, files=case.files | {name: data})
            case _:
                case = replace(case, files=case.files | {name: changed_tokens(case.files[name], turn)})
    return case


# ── Failures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def failure(case: Case) -> BrokenPromiseError | None:
    """How a case fails; None if it does not."""
    try:
        run_case(case)
    except BrokenPromiseError as failed:
        return failed
    return None


def smaller(case: Case, kind: str, seconds: float = 20) -> Case:
    """A case that fails in the same way with fewer words, files, lines and characters."""
    stop = time.monotonic() + seconds

    def variants() -> Iterator[Case]:
        for name, data in case.files.items():
            yield replace(case, files={key: value for key, value in case.files.items() if key != name})
            lines = data.splitlines(keepends=True)
            for i in range(len(lines)):
                yield replace(case, files=case.files | {name: b"".join(lines[:i] + lines[i + 1 :])})
            if len(data) > 1000:
                for half in (data[: len(data) // 2], data[len(data) // 2 :]):
                    yield replace(case, files=case.files | {name: half})
        for i in range(1, len(case.argv)):
            for size in (2, 1):
                yield replace(case, argv=case.argv[:i] + case.argv[i + size :])

    while time.monotonic() < stop:
        for variant in variants():
            failed = failure(variant) if time.monotonic() < stop else None
            if failed and failed.kind == kind:
                case = variant
                break
        else:
            break
    return case


def fuzz(seconds: float, seed: int) -> int:
    """Change and run cases until the time is over; returns 1 if any failed."""
    turn, stop = random.Random(seed), time.monotonic() + seconds
    executions, codes, kinds = 0, [0, 0, 0], set()
    while time.monotonic() < stop:
        case = changed(SEEDS[-1] if turn.random() < 0.003 else turn.choice(SEEDS[:-1]), turn)
        try:
            codes[run_case(case)] += 1
        except BrokenPromiseError as failed:
            if failed.kind not in kinds:
                kinds.add(failed.kind)
                small = smaller(case, failed.kind).to_json()
                path = CORPUS / f"found-{hashlib.sha256(small.encode()).hexdigest()[:12]}.json"
                path.write_text(small, encoding="utf-8")
                print(f"{failed}\n{path}\n", flush=True)
        executions += 1
    ends = ", ".join(f"{count} with {code}" for code, count in enumerate(codes))
    print(f"{executions} executions in {seconds:g} s: {ends}, {len(kinds)} kinds of failures")
    return 1 if kinds else 0


def start() -> int:
    """Fuzz, or run the given cases."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for command in COMMANDS:
        make_parser(command)
    paths = [Path(word) for word in sys.argv[1:] if Path(word).is_file()]
    for path in paths:
        print(f"exit code {run_case(Case.from_json(path.read_text(encoding='utf-8')))}: {path}")
    if paths:
        return 0
    for case in SEEDS:  # the seeds must be valid
        code = run_case(case)
        assert code == 0, f"a seed is not valid: {case.argv}"
    options = given_options()
    return fuzz(float(options.get("max_total_time", 240)), int(options.get("seed", 0)))


if __name__ == "__main__":
    sys.exit(start())

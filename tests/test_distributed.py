"""Past one machine: a folder of parquet files, a process pool and a Dask cluster give the same values, bit for bit."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairevals import InputError, UsageError, read_run
from fairevals.cli.main import main
from fairevals.collection.inputs import load_run
from fairevals.evaluation import Plan, load_collection, score
from fairevals.io import dataset
from fairevals.io.dataset import Fragment, Part, open_dataset, parts, with_topics
from fairevals.io.specs import PolicySpec

pytest.importorskip("pyarrow", reason="reading parquet needs pyarrow")

ROOT = Path(__file__).parents[1]
TASK = ROOT / "qrels" / "task.toml"
MEASURES = ["nDCG@10", "AP", "GFR(util='iRBU')@20", "D_ind", "AWRF(attr='ORIGIN')@20"]
COLLECTION = load_collection(TASK)
FRAME = read_run(ROOT / "runs" / "bm25.run").to_frame()[["topic", "doc", "score"]]


def plan_of(kind="ranking", samples=20, measures=MEASURES):
    return Plan.of(COLLECTION, measures, PolicySpec(kind=kind, samples=samples))


def assert_same(found, expected):
    """Down to the last bit, and to what is said of them."""
    assert found.runs == expected.runs
    assert found.notes == expected.notes
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.se, expected.se)


# Folders of parquet files -----------------------------------------------------------------------------------


def cut_by(frame, key, folder):
    """A file for each value of the key."""
    folder.mkdir(parents=True)
    for value, rows in frame.groupby(key):
        rows.to_parquet(folder / f"part-{value}.parquet", row_group_size=50)


def cut_by_row(frame, folder):
    cut_by(frame, np.arange(len(frame)) % 7, folder)


def cut_by_topic(frame, folder):
    cut_by(frame, frame.topic.to_numpy(), folder)


def cut_across_topics(frame, folder):
    """Some topics span two files, most do not."""
    cut_by(frame.sort_values("topic", kind="stable"), np.arange(len(frame)) * 9 // len(frame), folder)


def cut_as_hive_by_topic(frame, folder):
    frame.to_parquet(folder, partition_cols=["topic"])


def cut_as_hive_by_something(frame, folder):
    half = frame.doc.str.len() % 2
    frame.assign(half=half, part=frame.topic.str.len()).to_parquet(folder, partition_cols=["half", "part"])


WAYS = [cut_by_row, cut_by_topic, cut_across_topics, cut_as_hive_by_topic, cut_as_hive_by_something]


@pytest.mark.parametrize("cut", WAYS)
@pytest.mark.parametrize("kind", ["ranking", "pl"])
def test_a_folder_equals_the_one_file(tmp_path, cut, kind, monkeypatch):
    """However it is cut, with the rows in any order; a part may be of all the files, or of one topic."""
    (tmp_path / "one").mkdir()
    FRAME.to_parquet(tmp_path / "one" / "bm25.parquet")
    cut(FRAME.sample(frac=1, random_state=3), tmp_path / "bm25")
    plan = plan_of(kind)
    expected = score([tmp_path / "one" / "bm25.parquet"], COLLECTION, plan)
    assert_same(score([tmp_path / "bm25"], COLLECTION, plan), expected)
    monkeypatch.setattr(dataset, "PART_ROWS", 900)
    assert_same(score([str(tmp_path / "bm25") + "/"], COLLECTION, plan), expected)
    assert_same(load_and_score(tmp_path / "bm25", plan), expected)


def load_and_score(folder, plan):
    """By way of one `Run` of everything, as the commands that look at a single run do."""
    return score([load_run(folder)], COLLECTION, plan)


def test_a_folder_with_samples(tmp_path):
    frames = [FRAME.assign(sample=s, score=FRAME.score * (-1) ** s) for s in range(3)]
    frame = pd.concat(frames).sample(frac=1, random_state=1)
    (tmp_path / "one").mkdir()
    frame.to_parquet(tmp_path / "one" / "x.parquet")
    frame.to_parquet(tmp_path / "x", partition_cols=["sample"])
    plan = plan_of("samples")
    assert_same(
        score([tmp_path / "x"], COLLECTION, plan), score([tmp_path / "one" / "x.parquet"], COLLECTION, plan)
    )


def test_topics_that_lack_or_are_not_judged(tmp_path):
    """What is said of them, and the values, are those of the one file."""
    odd = FRAME[FRAME.topic != FRAME.topic.iloc[0]]
    odd = pd.concat([odd, odd.tail(9).assign(topic="other"), odd.tail(9).assign(topic="none")])
    (tmp_path / "one").mkdir()
    odd.to_parquet(tmp_path / "one" / "x.parquet")
    cut_by_topic(odd, tmp_path / "x")
    expected = score([tmp_path / "one" / "x.parquet"], COLLECTION, plan_of())
    topics = [note for note in expected.notes if "topic" in note]
    assert "skipped 2 topics without judgements" in topics[0]
    assert "nothing for 1 judged topic" in topics[1]
    assert_same(score([tmp_path / "x"], COLLECTION, plan_of()), expected)


def test_several_runs_of_both_kinds(tmp_path):
    cut_by_row(FRAME, tmp_path / "bm25")
    runs = [ROOT / "runs" / "dense.run", tmp_path / "bm25", ROOT / "runs" / "bm25.run"]
    expected = score([runs[0], runs[2], runs[2]], COLLECTION, plan_of())
    for jobs in (1, 2):
        found = score(runs, COLLECTION, plan_of(), jobs=jobs)
        assert found.runs == ("dense", "bm25 (bm25)", "bm25 (bm25.run)")
        np.testing.assert_array_equal(found.values, expected.values)


def test_on_the_command_line(tmp_path, capsys):
    cut_across_topics(FRAME, tmp_path / "bm25")
    options = ["score", "--task", str(TASK), "--format", "csv", "-q", "-m", "nDCG@10", "-m", "GFR@20"]
    assert main([*options, str(ROOT / "runs" / "bm25.run")]) == 0
    expected = capsys.readouterr()
    assert main([*options, str(tmp_path / "bm25")]) == 0
    assert capsys.readouterr() == expected
    (tmp_path / "nothing").mkdir()
    assert main([*options, str(tmp_path / "nothing")]) == 1
    assert "nothing: no file; expected a folder or a zip archive of run files" in capsys.readouterr().err


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("kind", ["ranking", "pl"])
def test_a_process_pool(tmp_path, jobs, kind):
    cut_across_topics(FRAME, tmp_path / "parts")
    runs = [ROOT / "runs" / "dense.run", tmp_path / "parts"]
    assert_same(score(runs, COLLECTION, plan_of(kind), jobs=jobs), score(runs, COLLECTION, plan_of(kind)))


def test_any_executor(tmp_path):
    cut_across_topics(FRAME, tmp_path / "parts")
    runs = [ROOT / "runs" / "dense.run", tmp_path / "parts"]
    with ThreadPoolExecutor(2) as executor:
        assert_same(score(runs, COLLECTION, plan_of(), executor=executor), score(runs, COLLECTION, plan_of()))


names = st.sets(st.sampled_from("abcdefgh"), min_size=0, max_size=3)


@settings(max_examples=200)
@given(st.lists(st.tuples(names, st.integers(1, 30)), max_size=8), st.integers(1, 40))
def test_no_topic_is_in_two_parts(files, rows):
    fragments = [
        Fragment(str(i), topics=tuple(sorted(topics)), rows=count) for i, (topics, count) in enumerate(files)
    ]
    found = parts(Part("x", tuple(fragments)), fragments, rows)
    topics = [topic for part in found for topic in part.topics or ()]
    assert sorted(topics) == sorted({topic for f in fragments for topic in f.topics})
    assert {f.path for part in found for f in part.files} == {f.path for f in fragments}
    for part in found:
        holders = {f.path for f in fragments if not set(f.topics).isdisjoint(part.topics or ())}
        assert holders <= {f.path for f in part.files}
        if part.whole:
            here = {f.path for f in part.files}
            assert {t for f in fragments if f.path in here for t in f.topics} == set(part.topics or ())


def test_only_the_topic_column_is_read_to_find_them(tmp_path):
    cut_as_hive_by_topic(FRAME, tmp_path / "hive")
    found = [with_topics(fragment) for fragment in open_dataset(tmp_path / "hive").files]
    assert sorted(f.topics[0] for f in found) == sorted(set(FRAME.topic))
    assert sum(f.rows for f in found) == len(FRAME)
    assert all(f.constants == (("topic", f.topics[0]),) for f in found)


def test_names_in_paths_are_unquoted_and_hidden_files_left_out(tmp_path):
    folder = tmp_path / "x" / "topic=R1%2Fa b"
    folder.mkdir(parents=True)
    frame = pd.DataFrame({"doc": ["a"], "score": [1.0]})
    frame.to_parquet(folder / "0.parquet")
    (tmp_path / "x" / "_temporary").mkdir()
    frame.to_parquet(tmp_path / "x" / "_temporary" / "0.parquet")
    frame.to_parquet(folder / ".1.parquet")
    (folder / "_SUCCESS").touch()
    assert load_run(tmp_path / "x").lists == [("R1/a b", "")]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([7, 12], dtype="int64"),
        pd.Series(["7", "12"], dtype="category"),
        pd.Series(["zoë", "12"]),
    ],
    ids=["whole", "category", "text"],
)
def test_topics_are_spelt_as_in_one_file(tmp_path, column):
    frame = pd.DataFrame({"topic": column, "doc": column, "score": [1, 2]})
    (tmp_path / "x").mkdir()
    frame.to_parquet(tmp_path / "x" / "y.parquet")
    one, folder = read_run(tmp_path / "x" / "y.parquet"), load_run(tmp_path / "x")
    assert folder.lists == one.lists
    assert folder.docs.texts() == one.docs.texts()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": [1.0, float("nan")]}, r"b\.parquet:3: score .*nan.*; expected a finite number"),
        ({"score": [1.0, float("inf")]}, r"b\.parquet:3: score .*inf.*; expected a finite number"),
        ({"score": ["1", "high"]}, r"b\.parquet:3: score 'high'; expected a finite number"),
        ({"doc": ["x", ""]}, r"b\.parquet:3: an empty doc"),
        ({"topic": [None, "R01"]}, r"b\.parquet:2: an empty topic"),
        (
            {"doc": ["x", "a"]},
            r"b\.parquet:3: document 'a' a second time in topic 'R01'; .*\(first in .*a\.parquet:2\)",
        ),
        ({"doc": ["x", "a\0b"]}, r"b\.parquet:3: a doc with an invalid character: 'a.x00b'"),
    ],
)
def test_what_is_wrong_with_a_file_of_a_folder(tmp_path, change, message):
    good = {"topic": ["R01", "R01"], "doc": ["a", "b"], "score": [2.0, 1.0]}
    pd.DataFrame(good).to_parquet(tmp_path / "a.parquet")
    rows = {"topic": ["R01", "R01"], "doc": ["c", "d"], "score": [2.0, 1.0]} | change
    pd.DataFrame(rows).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=message):
        score([tmp_path], COLLECTION, plan_of())


def test_files_that_are_none(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(InputError, match=r"a\.parquet: not a readable table"):
        score([tmp_path], COLLECTION, plan_of())
    pd.DataFrame({"topic": ["q"], "doc": ["a"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: columns topic, doc; expected topic, doc, score"):
        score([tmp_path], COLLECTION, plan_of())
    FRAME.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setenv("FAIREVALS_MAX_BYTES", "1000")
    with pytest.raises(InputError, match=r"a\.parquet: more than 1000 bytes"):
        load_run(tmp_path)


# A cluster --------------------------------------------------------------------------------------------------


class Processes:
    """A scheduler and two workers, each a process of its own on this machine."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.started, self.options = folder, [], options
        self.address = ""

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        log = (self.folder / f"log{len(self.started)}").open("wb")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": path, "DASK_DISTRIBUTED__WORKER__DAEMON": "False"},
            )
        self.started.append(process)
        return process

    def __enter__(self) -> Processes:
        file = self.folder / "scheduler.json"
        self._start(
            "distributed.cli.dask_scheduler",
            *("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter"),
            *("--scheduler-file", str(file)),
        )
        self.address = json.loads(self._wait(file))["address"]
        self.workers = [
            self._start(
                "distributed.cli.dask_worker",
                self.address,
                *("--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard"),
                *("--memory-limit", "0", "--name", str(name), *self.options),
            )
            for name in range(2)
        ]
        return self

    def _wait(self, file: Path) -> str:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if file.exists() and file.read_text().strip().endswith("}"):
                return file.read_text()
            assert self.started[0].poll() is None, self.log()
            time.sleep(0.05)
        raise AssertionError(self.log())

    def log(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("log*")))

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.started):
            process.kill()
        for process in self.started:
            process.wait(10)


@contextmanager
def running_cluster(folder: Path, *options: str) -> Iterator[Processes]:
    pytest.importorskip(
        "distributed", reason="Dask's distributed is not installed: pip install 'fairevals[dask]'"
    )
    from distributed import Client

    with Processes(folder, *options) as processes:
        with Client(processes.address, timeout="20s", set_as_default=False) as client:
            client.wait_for_workers(2, timeout=30)
        yield processes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with running_cluster(tmp_path_factory.mktemp("cluster")) as processes:
        yield processes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "bm25"
    cut_across_topics(FRAME, path)
    return path


def test_a_cluster_computes_the_same_table(cluster, folder, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)  # where the workers are not
    options = ["score", "--task", str(TASK), "--format", "csv", "-q", "--policy", "pl", "--samples", "20"]
    for measure in MEASURES:
        options += ["-m", measure]
    runs = ["runs/dense.run", "runs/bm25.run", str(folder)]
    assert main([*options, *runs]) == 0
    expected = capsys.readouterr()
    assert main([*options, *runs, "--dask", cluster.address]) == 0
    assert capsys.readouterr() == expected


def test_an_error_on_a_worker_is_the_same_error(cluster, tmp_path, capsys):
    (tmp_path / "x.run").write_text("R1 Q0 a 1 high t\n")
    options = ["score", "--task", str(TASK), str(tmp_path / "x.run"), "-m", "nDCG@10"]
    assert main(options) == 1
    expected = capsys.readouterr()
    assert main([*options, "--dask", cluster.address]) == 1
    assert capsys.readouterr() == expected


def test_what_is_needed_for_all_pieces_is_sent_once(cluster, folder, monkeypatch):
    from fairevals.ecosystem.cluster import Cluster, connected

    monkeypatch.setattr(dataset, "PART_ROWS", 300)
    shared, sent = [], []
    share, submit = Cluster.share, Cluster.submit
    monkeypatch.setattr(Cluster, "share", lambda self, value: shared.append(value) or share(self, value))
    monkeypatch.setattr(Cluster, "submit", lambda self, *call: sent.append(call) or submit(self, *call))
    with connected(cluster.address) as executor:
        assert_same(
            score([folder], COLLECTION, plan_of(), executor=executor), score([folder], COLLECTION, plan_of())
        )
    assert len(shared) == 1
    assert len(shared[0][0].qrels.topics) == 0  # judgements go with the pieces that need them
    judged = [len(call[4][0]) for call in sent if len(call) == 5]
    assert len(judged) > 5
    assert sum(judged) == len(COLLECTION.qrels)


def test_a_worker_is_killed_while_it_works(cluster, folder, monkeypatch):
    """Last, since it takes a worker away."""
    from fairevals.ecosystem.cluster import connected

    monkeypatch.setattr(dataset, "PART_ROWS", 200)
    plan = plan_of("pl", samples=400, measures=["AP@20", "GFR(util='iRBU')@20", "D_ind@20"])
    expected = score([folder], COLLECTION, plan)
    victim = cluster.workers[0]

    with connected(cluster.address) as executor:
        client = executor._client
        pid = {address: client.run(os.getpid, workers=[address])[address] for address in client.nthreads()}
        address = next(a for a, number in pid.items() if number == victim.pid)

        def kill_at_work(done, of):
            assert of > 5
            # Between two pieces it may have nothing to do; half-way through it is killed all the same.
            if victim.poll() is None and (client.processing(workers=[address])[address] or 2 * done > of):
                victim.send_signal(signal.SIGKILL)
                victim.wait(10)

        found = score([folder], COLLECTION, plan, executor=executor, progress=kill_at_work)
        assert victim.returncode == -signal.SIGKILL
        assert len(client.nthreads()) == 1
    assert_same(found, expected)


PRELOAD = """
import os, signal, time
from pathlib import Path
from fairevals.evaluation import pieces

opened = pieces.open_run

def open_run(*args, **kwargs):
    Path("reached").touch()
    if Path("deadly").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    while not Path("go").exists():
        time.sleep(0.05)
    return opened(*args, **kwargs)

pieces.open_run = open_run
"""


@pytest.fixture
def waiting(tmp_path):
    """A cluster whose workers wait, or kill themselves, before they score a piece."""
    (tmp_path / "preload.py").write_text(PRELOAD)
    with running_cluster(tmp_path, "--preload", "preload.py") as processes:
        yield processes


def scored_on(
    cluster: Processes, interrupt: Callable[[subprocess.Popen[str]], object], *options: str
) -> tuple[int, str, str]:
    """A command that is interrupted as soon as a worker has a piece: code, output and errors, but not for ever."""
    words = ["score", "--task", str(TASK), str(ROOT / "runs" / "bm25.run"), "-m", "P@1", *options]
    running = subprocess.Popen(
        [sys.executable, "-m", "fairevals", *words, "--dask", cluster.address],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        end = time.monotonic() + 120
        while not (cluster.folder / "reached").exists():
            assert time.monotonic() < end
            assert running.poll() is None, running.communicate()
            time.sleep(0.05)
        interrupt(running)
        out, err = running.communicate(timeout=120)
        return running.returncode, out, err
    finally:
        running.kill()
        running.wait()


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_the_scheduler_vanishes_while_it_works(waiting, number):
    code, out, err = scored_on(waiting, lambda _: waiting.started[0].send_signal(number))
    lost = f"the connection to the Dask cluster at {waiting.address!r} was lost"
    assert (code, out, err) == (1, "", f"fairevals: error: {lost}\n")


@pytest.mark.thorough
def test_the_scheduler_stops_answering(waiting):
    stop = waiting.started[0].send_signal
    code, out, err = scored_on(waiting, lambda _: stop(signal.SIGSTOP), "--timeout", "1")
    assert (code, out) == (1, "")
    assert err == "fairevals: error: the Dask scheduler has not answered for 1 s\n"


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "seconds"), [(signal.SIGKILL, 1), (signal.SIGSTOP, 3)])
def test_no_worker_answers(waiting, number, seconds):
    """Neither killed nor frozen ones do."""

    def stop(_: object) -> None:
        for worker in waiting.workers:
            worker.send_signal(number)

    code, out, err = scored_on(waiting, stop, "--timeout", "1")
    assert (code, out) == (1, "")
    assert err == f"fairevals: error: no worker of the Dask cluster has answered for {seconds} s\n"


@pytest.mark.thorough
def test_a_run_that_kills_worker_after_worker(tmp_path):
    """Each is replaced, as in a cluster that looks after itself."""
    (tmp_path / "preload.py").write_text(PRELOAD)
    (tmp_path / "deadly").touch()
    with running_cluster(tmp_path, "--preload", "preload.py", "--nanny") as processes:
        code, out, err = scored_on(processes, lambda _: None)
        for worker in processes.workers:
            worker.terminate()  # and with it the processes that it looks after
        for worker in processes.workers:
            worker.wait(30)
    died = "4 workers of the Dask cluster died while computing it, perhaps for lack of memory"
    assert (code, out, err) == (1, "", f"fairevals: error: {ROOT / 'runs' / 'bm25.run'}: {died}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_interrupted_while_the_cluster_works(waiting, number):
    found = scored_on(waiting, lambda running: running.send_signal(number))
    assert found == (130, "", "fairevals: interrupted\n")


DASK = [
    "-m",
    "fairevals",
    "score",
    "--task",
    str(TASK),
    str(ROOT / "runs" / "bm25.run"),
    "-m",
    "P@1",
    "--dask",
]


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("nonsense", "missing port number"),
        ("nonsense://x", "unknown address scheme 'nonsense'"),
        ("tcp://127.0.0.1:99999", "expected a port from 1 to 65535"),
        ("tcp://[::1:2", "ipv6 needs brackets"),
        ("tls://127.0.0.1:8786", "TLS expects"),
        ("inproc://x", "not enough values"),
    ],
)
def test_what_is_not_an_address(address, reason):
    """The whole program ends at once: a client that failed would keep it waiting at its end."""
    pytest.importorskip(
        "distributed", reason="Dask's distributed is not installed: pip install 'fairevals[dask]'"
    )
    done = subprocess.run([sys.executable, *DASK, address], capture_output=True, text=True, timeout=25)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"fairevals: error: there is no Dask scheduler at {address!r} (")
    assert reason in done.stderr
    assert done.stderr.endswith("; expected an address such as tcp://host:8786\n")


@pytest.mark.parametrize("says", [b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"\x10" + bytes(100), bytes(100)])
def test_another_service_at_the_address(says, capsys):
    """One that waits for us to speak, and some that say what no scheduler says."""
    pytest.importorskip(
        "distributed", reason="Dask's distributed is not installed: pip install 'fairevals[dask]'"
    )
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as thread:
        server.settimeout(20)
        accepted = thread.submit(server.accept)
        accepted.add_done_callback(lambda future: future.result()[0].sendall(says))
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        assert main([*DASK[2:], address, "--timeout", "1"]) == 2
        accepted.result()[0].close()
    assert f"there is no Dask scheduler at {address!r} (" in capsys.readouterr().err


def test_the_address_of_a_worker(cluster, capsys):
    from distributed import Client

    with Client(cluster.address, set_as_default=False) as client:
        worker = next(iter(client.nthreads()))
    assert main([*DASK[2:], worker]) == 2
    assert "a Worker answers" in capsys.readouterr().err


def test_nobody_listens(capsys):
    pytest.importorskip(
        "distributed", reason="Dask's distributed is not installed: pip install 'fairevals[dask]'"
    )
    assert main([*DASK[2:], "tcp://127.0.0.1:9", "--timeout", "1"]) == 2
    assert "at 'tcp://127.0.0.1:9' (no answer within 1 s)" in capsys.readouterr().err


def test_options_that_exclude_each_other(capsys):
    assert main([*DASK[2:], "tcp://127.0.0.1:9", "--jobs", "2"]) == 2
    assert "--jobs or --dask, not both" in capsys.readouterr().err
    assert main([*DASK[2:-1], "--timeout", "2"]) == 2
    assert "--timeout is for --dask" in capsys.readouterr().err


def test_without_dask(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["score", "--task", str(TASK), str(ROOT / "runs" / "bm25.run"), "--dask", "tcp://x:1"]) == 2
    assert "pip install 'fairevals[dask]'" in capsys.readouterr().err


def test_the_same_maximum_grade_in_every_piece(tmp_path, monkeypatch):
    """Few topics have the largest grade; all are measured against it."""
    cut_by_topic(FRAME, tmp_path / "x")
    monkeypatch.setattr(dataset, "PART_ROWS", 1)
    collection = replace(COLLECTION, task=replace(COLLECTION.task, max_grade=None))
    plan = Plan.of(collection, ["ERR@20", "iRBU@20"])
    whole = score([load_run(tmp_path / "x")], collection, plan)
    np.testing.assert_array_equal(score([tmp_path / "x"], collection, plan).values, whole.values)
    with pytest.raises(UsageError, match="there is no run"):
        score([], collection, plan)

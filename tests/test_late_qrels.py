"""Qrels that are read while workers read the runs."""

import multiprocessing
import os
import pickle
import signal

import numpy as np
import pytest

from fairevals.cli.main import main
from fairevals.collection import collection
from fairevals.collection.late import LateQrels, can_wait
from fairevals.collection.qrels import Qrels

pytestmark = pytest.mark.skipif(not can_wait(), reason="processes are not forked here")
GRADES = {"q2": {"a": 2, "b": 0}, "q10": {"b": 1}}


def test_they_are_read_once_and_when_they_are_asked_for():
    calls = []
    late = LateQrels(lambda: calls.append(1) or Qrels.from_dict(GRADES))
    assert not calls
    assert late.topics == ("q2", "q10")
    assert late.max_grade == 2
    assert late.number == {"q2": 0, "q10": 1}
    assert calls == [1]
    with pytest.raises(AttributeError):
        late.nothing  # noqa: B018


def test_a_process_that_was_forked_before_gets_them_from_this_one():
    late = LateQrels(lambda: Qrels.from_dict(GRADES))
    reads, writes = os.pipe()
    children = []
    for _ in range(3):
        if not (child := os.fork()):
            try:  # it waits here until the other has read them
                os.write(writes, f"{late.docs.texts()} {late.grades.tolist()}\n".encode())
            finally:
                os._exit(0)
        children.append(child)
    assert late.topics == ("q2", "q10")
    for child in children:
        os.waitpid(child, 0)
    os.close(writes)
    with os.fdopen(reads) as file:
        assert file.read().splitlines() == [f"{late.docs.texts()} {late.grades.tolist()}"] * 3


def test_pickled_they_are_qrels_like_others():
    copy = pickle.loads(pickle.dumps(LateQrels(lambda: Qrels.from_dict(GRADES))))
    assert type(copy) is Qrels
    np.testing.assert_array_equal(copy.grades, Qrels.from_dict(GRADES).grades)


@pytest.mark.parametrize(
    ("judgements", "task", "message"),
    [
        ("t1 0 a x\n", "", "q.qrels:1: grade 'x'"),
        ("t1 0 a 3\n", "max_grade = 2\n", "max_grade is 2, but q.qrels has a grade 3"),
        ("t9 0 a 1\n", "", "no topic that is judged"),
        (None, "", "q.qrels"),
    ],
)
def test_what_is_wrong_with_them_is_told_as_by_one_job(
    tmp_path, monkeypatch, capsys, judgements, task, message
):
    monkeypatch.chdir(tmp_path)
    if judgements is not None:
        (tmp_path / "q.qrels").write_text(judgements)
    (tmp_path / "t.toml").write_text('qrels = "q.qrels"\n' + task)
    for name in "ab":
        (tmp_path / name).write_text(f"t1 Q0 a 1 2 {name}\nt1 Q0 b 2 1 {name}\n")
    told = []
    for jobs in "12":
        code = main(["score", "--task", "t.toml", "a", "b", "-m", "nDCG@10", "--jobs", jobs])
        told.append((code, capsys.readouterr().err))
    assert told[0] == told[1]
    assert told[1][0] in (1, 2)
    assert message in told[1][1]


def test_a_worker_that_is_killed_while_it_waits_is_replaced(tmp_path, monkeypatch, capsys):
    """And the result is that of one job: the next worker has the qrels from the start."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.qrels").write_text("t1 0 a 2\nt1 0 b 1\n")
    for name in "ab":
        (tmp_path / name).write_text(f"t1 Q0 b 1 2 {name}\nt1 Q0 a 2 1 {name}\n")
    killed, read = [], collection.load_qrels

    def kill_then_read(paths):
        if workers := multiprocessing.active_children():
            killed.append(workers[0].pid)
            os.kill(workers[0].pid, signal.SIGKILL)
        return read(paths)

    monkeypatch.setattr(collection, "load_qrels", kill_then_read)
    outputs = []
    for jobs in "12":
        assert main(["score", "--qrels", "q.qrels", "a", "b", "-m", "nDCG@10", "--jobs", jobs]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert len(killed) == 1

"""Calls that once failed, kept by the fuzzer of whole commands: they end with a plain message, and harm no file."""

from __future__ import annotations

import random
from pathlib import Path

import commands
import pytest
from commands import CORPUS, SEEDS, Case, changed, run_case

CASES = sorted(CORPUS.glob("*.json"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_past_failure(path):
    run_case(Case.from_json(path.read_text(encoding="utf-8")))


def test_the_corpus_is_found():
    assert len(CASES) > 10


def test_a_case_survives_being_written():
    case = Case(("score", "é"), {"text": "é\n".encode(), "bytes": b"\xff\0"}, (1,))
    assert Case.from_json(case.to_json()) == case


@pytest.mark.parametrize(
    ("argv", "files"),
    [
        (("pool", "my.run", "--depth", "1", "-o", "my.run"), {"my.run": b"q1 Q0 a 1 1 mine\n"}),
        (("pool", "my.run", "--depth", "1", "-o", "../out.txt"), {"my.run": b"q1 Q0 a 1 1 mine\n"}),
    ],
)
def test_harm_is_noticed(argv, files, monkeypatch):
    """The checks themselves: a program that overwrites its input, or writes outside of the folder, must not pass."""

    def harm(words: list[str]) -> int:
        Path(words[1]).read_text()
        Path(words[-1]).write_text("changed")
        return 0

    monkeypatch.setattr(commands, "main", harm)
    with pytest.raises(commands.BrokenPromiseError):
        run_case(Case(argv, files))


def test_changes_are_reproducible():
    first, again = ([changed(SEEDS[0], random.Random(n)) for n in range(50)] for _ in range(2))
    assert first == again
    assert len({case.to_json() for case in first}) > 40

"""The first sentences of a report: who is best, by which measure, and who is not significantly different."""

from __future__ import annotations

import numpy as np
import pytest

from fairevals.evaluation.scores import Scores
from fairevals.measures import parse_measure
from fairevals.report.board import board
from fairevals.report.findings import findings
from fairevals.report.naming import measure_labels
from fairevals.report.page import halves, letter_ranges
from fairevals.report.style import labels, middle_cut

MEASURES = (
    "GFR(util='ERR')@10",
    "AWRF(attr='SEX')@10",
    "nDCG@10",
    "D_ind@10",
    "ERR@10",
    "AWRF(attr='AGE')@10",
)


def scores_of(means, spread=0.01, topics=40, measures=("nDCG@10",), **others) -> Scores:
    """Scores of runs whose values are around the given means, the same topics being hard for all."""
    rng = np.random.default_rng(1)
    hard = rng.normal(0, 0.1, topics)
    values = np.array([[m + hard + rng.normal(0, spread, topics)] * len(measures) for m in means])
    runs = tuple("abcdefgh"[: len(means)])
    return Scores(
        runs, tuple(map(parse_measure, measures)), tuple(f"q{t}" for t in range(topics)), values,
        np.full(values.shape, np.nan), **others,
    )  # fmt: skip


def test_one_question_for_each_kind_of_measure():
    found = findings(board(scores_of([0.5, 0.6], measures=MEASURES)))
    assert [(one.question, MEASURES[one.measure]) for one in found] == [
        ("Most useful", "nDCG@10"),
        ("Fairest by SEX", "AWRF(attr='SEX')@10"),
        ("Fairest to each document", "D_ind@10"),
        ("Fairest by AGE", "AWRF(attr='AGE')@10"),
        ("Best overall", "GFR(util='ERR')@10"),
    ]
    assert [one.run for one in found] == [1, 1, 0, 1, 1]  # less is better for D_ind
    scores = scores_of([0.5, 0.6], measures=("nDCG@10", "ERR@10"))
    scores.values[:, 0] = np.nan  # another measure of the kind answers
    (one,) = findings(board(scores))
    assert (one.question, one.measure, one.run) == ("Most useful", 1, 1)


@pytest.mark.parametrize(
    ("means", "spread", "run", "tied", "none_differ"),
    [
        ([0.5, 0.7, 0.6], 0.01, 1, (), False),
        ([0.5, 0.7, 0.7001], 0.02, 1, (2,), False),
        ([0.5, 0.5, 0.5], 0.3, None, None, True),
    ],
)
def test_ties_are_those_of_the_test(means, spread, run, tied, none_differ):
    scores = scores_of(means, spread)
    (one,) = findings(board(scores))
    assert one.none_differ == none_differ and one.tested == 3
    if not none_differ:
        best = int(np.argmax([scores.mean(r, 0).value for r in range(3)]))
        assert one.run == best and {one.run, *one.tied} == {run, *tied}
    else:
        assert len(one.tied) == 2


def test_runs_outside_the_test_are_named_apart():
    scores = scores_of([0.5, 0.7, 0.9], statuses=("official", "official", "reference"))
    (one,) = findings(board(scores, references={2}))
    assert (one.run, one.tested, one.tied, one.better) == (1, 2, (), (2,))
    level = scores_of([0.5, 0.7, 0.7], spread=0.0, statuses=("official", "official", "reference"))
    (same,) = findings(board(level, references={2}))
    assert (same.run, same.better) == (1, ())  # not better than what it is equal to
    (alone,) = findings(board(scores, baseline=0, references={2}))  # one run is left, and no test
    assert (alone.run, alone.tested, alone.better) == (2, 0, ())


def test_an_incomplete_run_is_no_finding():
    scores = scores_of([0.5, 0.7])
    values = scores.values.copy()
    values[1, 0, 0] = np.nan
    (one,) = findings(board(Scores(scores.runs, scores.measures, scores.topics, values, scores.se)))
    assert one.run == 0


def test_only_sampling_error_does_not_make_a_best_run():
    scores = scores_of([0.5, 0.505, 0.7], topics=4)
    noisy = Scores(scores.runs, scores.measures, scores.topics, scores.values, np.full(scores.se.shape, 0.05))
    assert [row[0].best for row in board(scores).entries] == [False, False, True]
    assert [row[0].best for row in board(noisy).entries] == [False, False, True]
    close = Scores(scores.runs[:2], scores.measures, scores.topics, scores.values[:2], noisy.se[:2])
    assert [row[0].best for row in board(close).entries] == [True, True]
    (one,) = findings(board(close, baseline=0))  # no test
    assert (one.run, one.tested, one.tied) == (1, 0, (0,))
    (one,) = findings(board(scores_of([0.5, 0.5], spread=0, topics=1)))
    assert (one.tested, one.tied) == (0, (1,))


def test_measures_have_short_labels_unless_two_would_be_alike():
    names = [
        "nDCG@10",
        "GF(attr='A',div='NMD')@20",
        "GF(attr='A')@20",
        "DP(attr='A',protected='g')@5",
        "ERR@20",
    ]
    scores = scores_of([0.5, 0.6], measures=names, labels={"ERR@20": "mine"})
    assert list(measure_labels(scores).values()) == ["nDCG@10", "GF A NMD@20", "GF A@20", "DP A g@5", "mine"]
    taken = scores_of([0.5, 0.6], measures=names[2:], labels={"ERR@20": "GF A@20"})
    assert measure_labels(taken)["GF(attr='A')@20"] == "GF(attr='A')@20"


def test_long_names_keep_the_end_that_tells_them_apart():
    names = [f"THUIR-QD-R-{kind}-a-long-name-of-a-run-{i}" for kind in ("BM25", "dense") for i in range(9)]
    for length in (12, 16, 24, 60):
        short = labels(names, length)
        assert len({*short}) == len(names)
        assert max(map(len, short)) <= length + 4 and not any("(" in one for one in short if length > 20)
    assert middle_cut("x" * 10_000_000 + "end", 9) == "xxxx…xend"
    head, tail = halves("a" * 30 + "👩\u200d🔬" + "b" * 9)
    assert head + tail == "a" * 30 + "👩\u200d🔬" + "b" * 9 and tail.startswith("👩")


def test_many_letters_are_ranges():
    assert letter_ranges("abcdefg") == "a–g"
    assert letter_ranges("abdefxy") == "abd–fxy"
    assert letter_ranges("YZ[53][54]") == "YZ[53][54]"

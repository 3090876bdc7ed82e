"""Achieved against target distributions along the ranks."""

from __future__ import annotations

import numpy as np
import pytest

from fairevals.collection.groups import Attribute
from fairevals.errors import UsageError
from fairevals.evaluation import load_collection
from fairevals.io.task import PolicySpec, Task
from fairevals.report.groups import along_ranks, distribution, membership_table
from fairevals.report.style import save

QRELS = {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}, "q3": {"c": 1}}
RUN = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"b": 1.0}}


def collection(**options):
    attribute = Attribute.of("G", {"a": "x", "b": "y", "c": {"x": 1, "y": 1}}, target=[0.25, 0.75], **options)
    return load_collection(Task(), QRELS, {"G": attribute})


def test_mean_over_topics_by_hand():
    found = distribution(RUN, collection(), "G", depth=3)
    # q1: x, then x y, then x y (x+y)/2; q2 ends after y, which then stands; q3 has no ranking.
    assert found.topics == 2
    assert found.achieved[:, 0] == pytest.approx([(1 + 0) / 2, (1 / 2 + 0) / 2, (1.5 / 3 + 0) / 2])
    assert found.target == pytest.approx([0.25, 0.75])
    assert found.achieved.sum(axis=1) == pytest.approx([1, 1, 1])


def test_one_topic_and_unknown_topic():
    found = distribution(RUN, collection(), "G", depth=2, topic="q2")
    assert found.achieved.tolist() == [[0, 1], [0, 1]]
    with pytest.raises(UsageError, match="no topic 'nope'"):
        distribution(RUN, collection(), "G", topic="nope")


def test_policy_gives_the_mean_over_its_rankings():
    found = distribution(RUN, collection(), "G", depth=1, topic="q1", policy=PolicySpec("pl", samples=4000))
    weights = np.exp([3.0, 2.0, 1.0])
    share = weights / weights.sum()
    assert found.achieved[0, 0] == pytest.approx(share[0] + share[2] / 2, abs=0.03)


def test_skipped_documents_leave_the_mean_alone():
    skipping = Attribute.of("G", {"b": "y"}, groups=["x", "y"], unmapped="skip")
    found = distribution(RUN, load_collection(Task(), QRELS, {"G": skipping}), "G", depth=3, topic="q1")
    assert found.achieved.tolist() == [[0, 1]] * 3


def test_table_has_the_cutoffs_and_the_target():
    table = membership_table([distribution(RUN, collection(), "G", depth=10)])
    assert [row[2] for row in table.rows] == [5, 10, None]
    assert table.rows[-1] == ("target", "G", None, 0.25, 0.75)


def test_figure_is_the_same_file_each_time(tmp_path):
    for name in ("a.svg", "b.svg"):
        save(along_ranks([distribution(RUN, collection(), "G", depth=5)], "cost: $5 & <b>"), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "&lt;b&gt;" in (tmp_path / "a.svg").read_text()

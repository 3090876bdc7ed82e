"""Details of one run in a report: shares of the groups along the ranks, and exposure by merit."""

from __future__ import annotations

import numpy as np
import pytest

from fairevals.collection.groups import Attribute
from fairevals.evaluation import load_collection
from fairevals.io.specs import PolicySpec
from fairevals.io.task import Task
from fairevals.report.figures import merits_figure, ranks_figure
from fairevals.report.groups import run_details
from fairevals.report.style import save

QRELS = {"q1": {"a": 1, "b": 1}, "q2": {"a": 1}, "q3": {"c": 1}}
RUN = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"b": 1.0}}
MEMBERSHIPS = {"a": "x", "b": "y", "c": {"x": 0.5, "y": 0.5}}
RANKING = PolicySpec()


def collection(*topics, memberships=MEMBERSHIPS, **options):
    attribute = Attribute.of("G", memberships, groups=["x", "y"], target=[0.25, 0.75], **options)
    qrels = {topic: QRELS[topic] for topic in topics or QRELS}
    return load_collection(Task(), qrels, {"G": attribute})


def distribution(run, collected, depth, policy=RANKING):
    (only,), _ = run_details(run, collected, policy, attributes=["G"], depth=depth)
    return only


def test_mean_over_topics_by_hand():
    shares = distribution(RUN, collection(), 3)
    # q1: x, then x y, then x y (x+y)/2; q2 ends after y, which then stays; q3 has no ranking.
    assert shares.topics == 2
    assert shares.achieved[:, 0] == pytest.approx([(1 + 0) / 2, (1 / 2 + 0) / 2, (1.5 / 3 + 0) / 2])
    assert shares.target == pytest.approx([0.25, 0.75])
    assert shares.achieved.sum(axis=1) == pytest.approx([1, 1, 1])


def test_one_topic():
    assert distribution(RUN, collection("q2"), 2).achieved.tolist() == [[0, 1], [0, 1]]


def test_policy_gives_the_mean_over_its_rankings():
    shares = distribution(RUN, collection("q1"), 1, PolicySpec("pl", samples=4000))
    weights = np.exp([3.0, 2.0, 1.0])
    expected = weights / weights.sum()
    assert shares.achieved[0, 0] == pytest.approx(expected[0] + expected[2] / 2, abs=0.03)


def test_documents_without_a_known_group_are_not_counted():
    shares = distribution(RUN, collection("q1", memberships={"b": "y"}, unmapped="skip"), 3)
    assert shares.achieved.tolist() == [[0, 1]] * 3


def test_a_topic_without_a_known_group_is_not_counted_as_zero():
    """q1 ranks a known document and q2 does not: the mean is over q1 alone, and sums to 1 (0.5 in version 0.1)."""
    shares = distribution(RUN, collection(memberships={"a": "x"}, unmapped="skip"), 2)
    assert shares.topics == 1
    assert shares.achieved.tolist() == [[1, 0], [1, 0]]


def test_shares_are_undefined_where_no_document_has_a_known_group():
    shares = distribution(RUN, collection(memberships={"c": "x"}, unmapped="skip"), 2)
    assert shares.topics == 0
    assert np.isnan(shares.achieved).all() and np.isnan(shares.target).all()


@pytest.mark.parametrize("policy", [PolicySpec(), PolicySpec("pl", samples=7)], ids=["ranking", "pl"])
def test_shares_of_every_run_and_attribute_sum_to_1(policy):
    rng = np.random.default_rng(5)
    docs, topics = [f"d{i}" for i in range(8)], [f"q{i}" for i in range(6)]
    qrels = {topic: {doc: int(rng.integers(3)) for doc in docs} for topic in topics}
    attributes = {
        name: Attribute.of(
            name, {doc: str(rng.choice(["x", "y", "z"])) for doc in docs[::step]}, unmapped="skip"
        )
        for name, step in (("A", 1), ("B", 3), ("C", 7))
    }
    collected = load_collection(Task(), qrels, attributes)
    for _ in range(5):
        run = {
            topic: {doc: float(rng.random()) for doc in rng.choice(docs, rng.integers(1, 4), replace=False)}
            for topic in rng.choice(topics, 5, replace=False)
        }
        distributions, _ = run_details(run, collected, policy, attributes=list(attributes), depth=6)
        known = [
            sum(any(doc in docs[::step] for doc in ranked) for ranked in run.values()) for step in (1, 3, 7)
        ]
        for shares, count in zip(distributions, known, strict=True):
            assert shares.topics == count
            assert shares.achieved.sum(axis=1) == pytest.approx([1 if count else np.nan] * 6, nan_ok=True)


def test_a_run_without_judged_documents_has_no_levels_of_merit(tmp_path):
    (shares,), merits = run_details({}, collection(), RANKING, attributes=["G"])
    assert merits.levels.size == 0 and merits.quantiles.shape == (0, 4) and np.isnan(merits.slope)
    assert shares.topics == 0
    save(merits_figure([merits]), tmp_path / "empty.svg")


def test_the_figure_is_the_same_file_each_time(tmp_path):
    attribute = Attribute.of("cost: $5 & <b>", MEMBERSHIPS)
    collected = load_collection(Task(), QRELS, {attribute.spec.name: attribute})
    for name in ("a.svg", "b.svg"):
        distributions, _ = run_details(RUN, collected, RANKING, attributes=[attribute.spec.name], depth=5)
        save(ranks_figure(distributions), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert "$5 &amp; &lt;b&gt;" in (tmp_path / "a.svg").read_text()

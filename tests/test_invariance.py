"""Scores do not depend on how work was cut or in which order lines stand: not by one bit."""

from __future__ import annotations

import bz2
import gzip
import random
from pathlib import Path

import numpy as np
import pytest

import fairevals as fe
from fairevals.evaluation import expectation, pieces
from fairevals.evaluation import plan as prepare
from fairevals.io.task import Task
from tools.sample import write_sample

UTILITY = ["nDCG@10", "ERR", "iRBU", "P@5", "AP", "RR@10"]
FAIRNESS = [
    "GFR",
    "GF(attr='A')",
    "D_ind",
    "D_group(attr='A')",
    "AWRF(attr='A')",
    "EE_L",
    "M1(attr='A')@10",
    "IAA",
    "UEXP(attr='A')",
    "EE_L(attr='A',target='task',relevant_only=True)@20",
    "DP(attr='A')",
    "NDKL(attr='A')@10",
    "Skew(attr='A')@5",
    "Infeasible(attr='A')@10",
    "ARP(attr='A')",
    "FAIR(attr='A',protected='x',null='hypergeometric')@10",
]
MEASURES = [*UTILITY, *FAIRNESS, "D_ind(attention='cascade(0.9,0.5)')", "EE_D@5"]
POLICIES = ["ranking", "pl", "samples"]


def lines_of(rng, topics, samples):
    """A run with ties, with documents of no judgement, and topics of very different length."""
    found = []
    for topic in topics:
        for sample in range(samples if rng.random() < 0.8 else 1):
            docs = rng.sample(range(40), rng.choice([1, 3, 20, 33]))
            found += [
                f"{topic} {sample} doc{d} 1 {rng.choice([0.25, 0.5, 1, 1.5, rng.gauss(0, 1)])} tag"
                for d in docs
            ]
    return found


@pytest.fixture(scope="module")
def data():
    rng = random.Random(11)
    topics = [f"t{number}" for number in range(14)]
    qrels = [
        f"{topic} 0 doc{d} {rng.choice([-1, 0, 0, 1, 2, 3])}"
        for topic in topics
        for d in rng.sample(range(40), rng.choice([2, 9, 25]))
    ]
    run_topics = [*topics[2:], "not-judged"]
    runs = {"samples": lines_of(rng, run_topics, 5)}
    runs["ranking"] = runs["pl"] = lines_of(rng, run_topics, 1)
    shares = [0.25, 0.5, 1.0]
    groups = {f"doc{d}": {"x": (x := rng.choice(shares)), "y": 1 - x} for d in range(40) if d % 7}
    return runs, qrels, fe.Attribute.of("A", groups, target="relevant")


def written(path, lines, compress=None):
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(compress(text) if compress else text)
    return path


class Scored:
    """Values and standard errors by topic and measure, to the bit."""

    def __init__(
        self, folder, run, qrels, attribute, policy, *, jobs=1, compress=("", None), measures=MEASURES
    ):
        suffix, pack = compress
        run_path = written(folder / f"a.run{suffix}", run, pack)
        qrels_path = written(folder / f"a.qrels{suffix}", qrels, pack)
        found = fe.evaluate(
            [run_path],
            qrels_path,
            measures,
            groups={"A": attribute},
            policy=policy,
            samples=60,
            jobs=jobs,
        ).frame(per_topic=True)
        self.values = {
            (r.topic, r.measure): (float(r.value).hex(), float(r.se).hex()) for r in found.itertuples()
        }

    def __eq__(self, other):
        return self.values == other.values


@pytest.fixture(scope="module", params=POLICIES)
def case(request, data, tmp_path_factory):
    runs, qrels, attribute = data
    folder = tmp_path_factory.mktemp(request.param)
    base = Scored(folder, runs[request.param], qrels, attribute, request.param)
    # The comparison below would hold for nothing too: there must be numbers, and errors where they are sampled.
    numbers = [float.fromhex(value) for value, _ in base.values.values()]
    assert np.isfinite(numbers).mean() > 0.7
    assert len(set(numbers)) > 100
    assert any(np.isfinite(float.fromhex(se)) for _, se in base.values.values()) == (request.param == "pl")
    return request.param, runs[request.param], qrels, attribute, folder, base


@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_lines(case, seed):
    policy, run, qrels, attribute, folder, base = case
    shuffle = random.Random(seed)
    run, qrels = shuffle.sample(run, len(run)), shuffle.sample(qrels, len(qrels))
    assert Scored(folder, run, qrels, attribute, policy) == base


def test_order_of_topics(case):
    policy, run, qrels, attribute, folder, base = case
    run = sorted(run, key=lambda line: line.split()[0], reverse=True)
    assert Scored(folder, run, sorted(qrels, reverse=True), attribute, policy) == base


@pytest.mark.parametrize("together", [True, False])
def test_two_processes(case, together, monkeypatch):
    """The file is cut where its topics stand together; where they do not, that is found out."""
    policy, run, qrels, attribute, folder, base = case
    monkeypatch.setattr(pieces, "LEAST_BYTES", 1)
    if together:
        run = sorted(run, key=lambda line: line.split()[0])
    assert Scored(folder, run, qrels, attribute, policy, jobs=2) == base


@pytest.mark.parametrize("compress", [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_compression(case, compress):
    policy, run, qrels, attribute, folder, base = case
    assert Scored(folder, run, qrels, attribute, policy, compress=compress) == base


@pytest.mark.parametrize("cells", [1, 70, 300])
def test_cut_of_blocks(case, cells, monkeypatch):
    policy, run, qrels, attribute, folder, base = case
    blocks, seen = prepare.blocks, []

    def tiny(*args, **options):
        for block in blocks(*args, **{**options, "cells": cells}):
            seen.append(len(block.topics))
            yield block

    monkeypatch.setattr(prepare, "blocks", tiny)
    assert Scored(folder, run, qrels, attribute, policy) == base
    assert sum(seen) == 14
    assert len(seen) > 1


def test_cut_of_blocks_by_groups(case, monkeypatch):
    """With many groups a block has fewer topics, so that documents × groups stay few; no value changes."""
    policy, run, qrels, attribute, folder, base = case
    real, seen = prepare.blocks, []

    def watched(*args, **options):
        for block in real(*args, **options):
            seen.append(max((view.membership.size for view in block.attributes.values()), default=0))
            yield block

    monkeypatch.setattr(prepare, "blocks", watched)
    Scored(folder, run, qrels, attribute, policy)
    whole = max(seen)
    seen.clear()
    monkeypatch.setattr("fairevals.collection.blocks.GROUP_CELLS", whole // 4)
    monkeypatch.setattr("fairevals.collection.targets.MEAN_CELLS", 5)
    assert Scored(folder, run, qrels, attribute, policy) == base
    assert max(seen) <= whole // 4 and len(seen) >= 4


def test_cut_of_samples(case, monkeypatch):
    policy, run, qrels, attribute, folder, base = case
    monkeypatch.setattr(expectation, "CELLS_OF_SAMPLES", 500)
    assert Scored(folder, run, qrels, attribute, policy) == base


def test_other_topics_beside(case):
    """A topic's value is the same whether or not others, longer ones, share its block."""
    policy, run, qrels, attribute, folder, base = case
    for topic in ("t1", "t5", "t9"):
        there = any(line.split()[0] == topic for line in run)
        kept = {topic} if there else {topic, "t5"}  # a run needs one judged topic
        mine, judged = ([line for line in lines if line.split()[0] in kept] for lines in (run, qrels))
        task = max(float(line.split()[3]) for line in qrels)
        run_path, qrels_path = written(folder / "one.run", mine), written(folder / "one.qrels", judged)
        found = fe.evaluate(
            [run_path],
            qrels_path,
            MEASURES,
            task=Task(max_grade=task),
            groups={"A": attribute},
            policy=policy,
            samples=60,
        ).frame(per_topic=True)
        for row in found[found.topic == topic].itertuples():
            assert (float(row.value).hex(), float(row.se).hex()) == base.values[topic, row.measure]


def test_other_measures_beside(case):
    """Computing a measure alone reads less of the run (only its first ranks), and gives the same."""
    policy, run, qrels, attribute, folder, base = case
    for measure in ["nDCG@10", "P@5", "RR@10", "D_ind", "GF(attr='A')"]:
        alone = Scored(folder, run, qrels, attribute, policy, measures=[measure])
        assert all(base.values[key] == value for key, value in alone.values.items())


def test_the_sample_task(tmp_path):
    """The task that ships, shuffled, in two processes: the same table."""
    write_sample(tmp_path)
    task, runs = tmp_path / "qrels" / "task.toml", sorted((tmp_path / "runs").glob("*.run"))
    measures = [
        *UTILITY,
        "GFR(util='iRBU')",
        "D_ind",
        "D_group(attr='REGION')",
        "AWRF(attr='ORIGIN')@20",
        "EE_L@20",
    ]
    base = fe.evaluate([str(path) for path in runs], task=task, measures=measures).frame(per_topic=True)
    rng = random.Random(3)
    for path in [*runs, tmp_path / "qrels" / "sample.qrels"]:
        lines = path.read_text().splitlines(keepends=True)
        rng.shuffle(lines)
        Path(path).write_text("".join(lines))
    again = fe.evaluate([str(path) for path in runs], task=task, measures=measures, jobs=2).frame(
        per_topic=True
    )
    assert base.equals(again)
    assert base.value.notna().mean() > 0.7

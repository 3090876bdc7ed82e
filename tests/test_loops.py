"""Measures of groups on random tasks against loops, where everything meets that makes them undefined or different.

Soft and missing memberships, attributes of some topics only, intersections, targets of all kinds, topics without
relevant documents, missing topics, ties, unjudged documents, both rules for candidates, and every policy.
"""

from __future__ import annotations

import itertools
import math
import random
import warnings

import pandas as pd
import pytest
from loop_cases import (
    ATTENTION,
    LoopAttribute,
    LoopTopic,
    arp,
    awrf,
    d_cross,
    d_group,
    ee_l,
    gini,
    jme,
    l2,
    ndkl,
    rur,
    uexp,
)

import fairevals as fe

BY_TOPIC = {
    **{"AWRF": awrf, "EE_L": ee_l, "UEXP": uexp, "D_group": d_group, "RUR": rur},
    **{"NDKL": ndkl, "ARP": arp},
}
"""Those of groups by name. The last two have no attention, and are sampled under Plackett-Luce."""


def plackett_luce(scores):
    """Every ranking with its probability."""
    for ranking in itertools.permutations(sorted(scores)):
        weights = [math.exp(scores[doc]) for doc in ranking]
        yield math.prod(w / sum(weights[k:]) for k, w in enumerate(weights)), ranking


def random_attribute(rng: random.Random, name: str, docs: list[str]) -> LoopAttribute:
    groups = tuple(f"{name}{number}" for number in range(rng.randint(1 + (name == "A"), 3)))
    memberships = {}
    for doc in docs:
        weights = [rng.choice([0, 0, 1, 2]) for _ in groups]
        if sum(weights) and rng.random() < 0.8:
            memberships[doc] = [weight / sum(weights) for weight in weights]
    memberships = memberships or {docs[0]: [1.0] + [0.0] * (len(groups) - 1)}
    shares = [rng.choice([0, 1, 2]) for _ in groups[1:]] + [1]
    given = [share / sum(shares) for share in shares]
    target = rng.choice(["uniform", "relevant", given])
    return LoopAttribute(
        groups, memberships, rng.choice(["uniform", "skip", groups[0]]), target, rng.choice(["", "", "R"])
    )


def same(found: float, expected: float, tolerance: float) -> bool:
    if math.isnan(found) or math.isnan(expected):
        return math.isnan(found) and math.isnan(expected)
    return abs(found - expected) <= tolerance * max(1.0, abs(expected))


@pytest.mark.parametrize("policy", ["ranking", "pl", "samples"])
@pytest.mark.parametrize("seed", range(8))
def test_values_are_those_of_loops(seed, policy):
    rng = random.Random(f"{seed} {policy}")
    names = ["R0", *(rng.choice("RM") + str(number) for number in range(1, rng.randint(2, 6)))]
    docs = [f"d{number}" for number in range(rng.randint(3, 10))]
    grades = [[-1, 0, 1, 1, 2, 3], [0]]
    qrels = {
        t: {d: rng.choice(grades[rng.random() < 0.2]) for d in rng.sample(docs, rng.randint(1, len(docs)))}
        for t in names
    }
    qrels["R0"] = {doc: rng.randint(0, 2) for doc in docs}  # every document is judged somewhere
    rule, attention, cutoff = (
        rng.choice(["judged", "retrieved"]),
        rng.choice([*ATTENTION]),
        rng.choice([None, 1, 3, 20]),
    )
    attributes = {name: random_attribute(rng, name, docs) for name in "AB"}
    topics, rows = [], []
    for name in names[: max(1, len(names) - rng.randint(0, 1))]:  # the last may be missing
        retrieved = rng.sample(docs, rng.randint(1, min(5, len(docs))))
        lists = [{doc: rng.choice([0.0, 0.5, rng.uniform(-2, 2)]) for doc in retrieved}]
        if policy == "samples":
            lists = [{doc: rng.random() for doc in retrieved} for _ in range(rng.randint(1, 3))]
        rankings = [(1 / len(lists), sorted(one, key=lambda d: (one[d], d), reverse=True)) for one in lists]
        if policy == "pl":
            rankings = list(plackett_luce(lists[0]))
        topics.append(LoopTopic(name, rankings, qrels[name], attributes, rule, attention, cutoff))
        rows += [
            (name, doc, score, str(sample)) for sample, one in enumerate(lists) for doc, score in one.items()
        ]

    at, more = "" if cutoff is None else f"@{cutoff}", f"attention='{attention}'"
    expected = {f"D_cross({more}){at}": {topic.name: d_cross(topic) for topic in topics}}
    expected[f"Gini({more}){at}"] = {"all": gini(topics)}
    for attr in ("A", "B", "X"):
        for name, value in BY_TOPIC.items():
            parameters = f"attr='{attr}'" + ("" if name in ("NDKL", "ARP") else f",{more}")
            expected[f"{name}({parameters}){at}"] = {topic.name: value(topic, attr) for topic in topics}
        expected[f"L2(attr='{attr}',{more}){at}"] = {"all": l2(topics, attr)}
        expected[f"JME(level='AG',attr='{attr}',{more}){at}"] = {"all": jme(topics, attr)}

    groups = {
        name: fe.Attribute.of(
            name,
            {doc: dict(zip(one.groups, shares, strict=True)) for doc, shares in one.memberships.items()},
            groups=one.groups,
            target=one.target,
            unmapped=one.unmapped,
            topics=[f"{one.letter}*"],
        )
        for name, one in attributes.items()
    }
    groups["X"] = fe.Intersection.of("X", ["A", "B"])
    frame = pd.DataFrame(rows, columns=["topic", "doc", "score", "sample"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fe.evaluate(
            {"run": frame if policy == "samples" else frame.drop(columns="sample")},
            qrels,
            list(expected),
            task=fe.Task(candidates=rule),
            groups=groups,
            policy=policy,
            samples=2000,
        )
    found = result.frame(per_topic=True).set_index(["measure", "topic"])
    for measure, (name, values) in zip(result.measures, expected.items(), strict=True):
        for topic in [] if "all" in values else names:
            row = found.loc[(str(measure), topic)]
            tolerance = 1e-9 if math.isnan(row.se) else 1e-9 + 6 * row.se
            assert same(row.value, values.get(topic, math.nan), tolerance), (name, topic)
        if "all" in values:
            assert same(found.loc[(str(measure), "all")].value, values["all"], 1e-9), name

"""One meaning of `seed` and `rng` at every door: a whole number, a numpy Generator, or None for fresh numbers."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import fairevals as fe

RUN = {f"q{topic}": {f"d{doc}": (doc * topic) % 7 / 3 for doc in range(12)} for topic in range(1, 5)}
QRELS = {topic: {doc: number % 3 for number, doc in enumerate(docs)} for topic, docs in RUN.items()}
X = np.random.default_rng(3).uniform(0, 3, (24, 2))
Y, QID = X.sum(axis=1).round(), np.repeat([1, 2], 12)
PL, FITTED = fe.PlackettLuce(X.T), fe.Ridge().fit(X, Y, qid=QID)

DOORS = {
    "evaluate": lambda seed: (
        fe.evaluate(RUN, QRELS, "ERR@3", policy="pl", samples=50, seed=seed).frame().value
    ),
    "exposure": lambda seed: fe.exposure(
        RUN, QRELS, policy="pl", method="mc", samples=50, seed=seed
    ).exposure.sort_values(),
    "PlackettLuce.sample": lambda rng: PL.sample(20, rng=rng),
    "PlackettLuce.exposure": lambda rng: PL.exposure(method="mc", samples=20, rng=rng).value,
    "fit": lambda seed: fe.PGRank(epochs=2, batch=1, seed=seed).fit(X, Y, qid=QID).predict(X),
    "sample": lambda rng: FITTED.sample(X, qid=QID, n=20, rng=rng)[2],
}


def differ(one, other):
    return not np.array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_one_meaning_at_every_door(door):
    assert not differ(door(7), door(7)) and not differ(door(7), door(np.int64(7)))
    assert differ(door(7), door(8))
    assert differ(door(None), door(None))
    generator, again = np.random.default_rng(5), np.random.default_rng(5)
    first, second = door(generator), door(generator)
    assert differ(first, second)  # it goes on from call to call
    assert not differ(first, door(again)) and not differ(second, door(again))
    for wrong in ("x", -1, 1.5, True, [1, 2], np.random):
        with pytest.raises(
            fe.UsageError, match=r"=.*; expected a whole number of at least 0, a numpy Generator, or"
        ):
            door(wrong)


def test_without_a_seed_it_is_the_tasks_or_0():
    task = fe.Task(policy={"kind": "pl", "samples": 50, "seed": 3})
    asked = fe.evaluate(RUN, QRELS, "ERR@3", task=task)
    assert asked.plan.policy.seed == 3
    assert not differ(asked.frame().value, DOORS["evaluate"](3))
    assert fe.evaluate(RUN, QRELS, "ERR@3", task=task, seed=0).plan.policy.seed == 0
    plain = fe.evaluate(RUN, QRELS, "ERR@3", policy="pl", samples=50)
    assert plain.plan.policy.seed == 0
    fresh = fe.evaluate(RUN, QRELS, "ERR@3", policy="pl", samples=50, seed=None)
    same = DOORS["evaluate"](fresh.plan.policy.seed)  # what was drawn is known, and can be given again
    assert not differ(fresh.frame().value, same)
    for function, name in (
        (PL.sample, "rng"),
        (PL.exposure, "rng"),
        (FITTED.sample, "rng"),
        (fe.PGRank, "seed"),
    ):
        assert inspect.signature(function).parameters[name].default == 0

"""Fair-PG-Rank's figure 3: German Credit as rankings, with three methods, several λ and several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.datasets import People, credit_queries, find_german, read_people
from experiments.german_claims import claims
from experiments.german_figures import drawings, numbers, table
from experiments.german_points import TIES, SeriesPolicy, summarise
from experiments.measuring import (
    PARITY,
    TEMPERATURE,
    alternatives,
    measure_policy,
    random_order,
    tied_queries,
)
from experiments.results import Budget, Reproduction
from fairevals.errors import UsageError, escape
from fairevals.training import sweep


@dataclass(frozen=True)
class Series:
    """A method with its settings, trained for every λ."""

    name: str
    label: str
    method: str
    lambdas: tuple[float, ...]
    training: dict[str, Any]
    ties: tuple[str, ...] = ("both",)
    """The ways of counting ties that it is trained with; one for methods to which they make no difference."""

    def runs(self) -> list[tuple[str, float]]:
        """Ties and λ of every policy; with λ = 0 ties make no difference, so one policy is enough."""
        return [(ties, lam) for ties in self.ties for lam in self.lambdas if lam or ties == self.ties[0]]


PAPERS_RECIPE = {"solver": "adam", "lr": 0.001, "batch": 1, "keep": "last", "standardise": False}
"""Appendix B.5: Adam, no regularisation, one query per step; the data are standardised already."""


def series(quick: bool) -> tuple[Series, ...]:
    """The series to train."""
    ends = (0.0, 25.0)
    whole = ends if quick else (0.0, 5.0, 25.0, 50.0, 75.0, 100.0)
    recipe: dict[str, Any] = {**PAPERS_RECIPE, "epochs": 1 if quick else 10}
    return (
        Series("exact", "Fair-PG-Rank, exact", "fair-pg-rank", whole, recipe, TIES),
        Series(
            "exact, relative",
            "Fair-PG-Rank, exact, relative features",
            "fair-pg-rank",
            whole,
            {**recipe, "center_by_group": True},
        ),
        Series(
            "reinforce",
            "Fair-PG-Rank, reinforce",
            "fair-pg-rank",
            ends if quick else (0.0, 10.0, 25.0),
            {**recipe, "estimator": "reinforce", "samples": 25},
            TIES,
        ),
        Series(
            "lp",
            "linear programme",
            "lp",
            (0.0, 0.2) if quick else (0.0, 0.05, 0.1, 0.2, 1.0, 10.0, 100.0),
            {},
        ),
        Series(
            "deltr",
            "DELTR",
            "deltr",
            (0.0, 1e6) if quick else (0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6),
            {**PAPERS_RECIPE, "batch": 10, "epochs": 2 if quick else 12, "lr": 0.003},
        ),
    )


ALTERNATIVES = {"exact": (TEMPERATURE, PARITY), "exact, relative": (TEMPERATURE,)}
"""What is done to the policy of λ = 0 of a series."""


def labels(every: Sequence[Series]) -> dict[str, str]:
    """The label of each series, and of what is done to the policies of λ = 0."""
    words = {TEMPERATURE: "at temperatures", PARITY: "with a parity offset"}
    more = {
        f"{one.name}, {how}": f"{one.label}, λ = 0 {words[how]}"
        for one in every
        for how in ALTERNATIVES.get(one.name, ())
    }
    return {one.name: one.label for one in every} | more


@dataclass(frozen=True)
class GermanJob:
    """One policy to train: everything that another process needs."""

    people: People
    queries: tuple[int, int]
    seed: int
    series: int
    """The index of its series."""
    ties: str
    lam: float
    chance: float
    """nDCG of a random order on the test queries."""
    quick: bool


def run(files: Sequence[str], budget: Budget) -> Reproduction:
    """Run the experiment."""
    if len(files) > 1:
        raise UsageError("fair-pg-rank-german takes one file: UCI's german.data")
    path = files[0] if files else str(find_german())
    people, form = read_people(path)
    seeds = range(budget.choose(5, 2))
    queries = (40, 20) if budget.quick else (500, 100)
    every = series(budget.quick)
    share, chances = np.zeros(3, dtype=np.int64), {}
    for seed in seeds:
        train, test = credit_queries(*people, seed, queries)
        share += np.array(tied_queries(train)) + np.array(tied_queries(test))
        chance = measure_policy(random_order(test), test)
        chances[seed] = SeriesPolicy("random", "both", 0.0, seed, chance, chance.ndcg)
    jobs = [
        GermanJob(people, queries, seed, number, ties, lam, chances[seed].chance, budget.quick)
        for seed in seeds
        for number, one in enumerate(every)
        for ties, lam in one.runs()
    ]
    trained = [policy for several in budget.run(train_series, jobs) for policy in several]
    policies = _with_no_penalty_twice(trained, every)
    means = [*summarise(list(chances.values())), *summarise(policies)]
    return Reproduction(
        name="fair-pg-rank-german",
        title="German Credit as rankings",
        paper="Singh & Joachims: Policy Learning for Fairness in Ranking. NeurIPS 2019, section 4.3, appendix B and "
        "figure 3.",
        about=(
            f"{queries[0]} training and {queries[1]} test queries of ten people each, drawn from the first 80 % "
            "of the people and from the rest; people who are not a good risk are drawn with four times the "
            "weight. The group is the sex. All values are for the test queries: exact expectations over "
            f"rankings, as means over {len(seeds)} seeds (of the queries and of the models) with "
            f"standard deviations.",
            f"D_group is defined on {share[1]} of all {share[2]} queries (those where both groups have a good "
            f"risk). In {share[0]} of these the two groups have exactly the same merit, so the definition applies "
            "in either order. This package takes the mean over the queries where it is defined and counts a "
            "violation in either order (training: ties = both). The published code takes the mean over all "
            "queries, 0 where it is undefined, and counts only the excess of men, the group named first "
            "(training: ties = first). Policies are trained in both ways and measured in both ways.",
        ),
        claims=claims(means),
        drawings=drawings(means, labels(every)),
        tables=(("Means over seeds on the test queries", table(means)),),
        numbers={"numbers.csv": numbers([*chances.values(), *policies]), "means.csv": table(means)},
        settings=(
            ("data", f"{escape(path, 200)}, {form}; {len(people[1])} people"),
            ("queries", f"{queries[0]} for training, {queries[1]} for the test, ten people each"),
            ("seeds", ", ".join(map(str, seeds))),
            *(
                (one.label, "; ".join([f"λ {', '.join(f'{lam:g}' for lam in one.lambdas)}", _training(one)]))
                for one in every
            ),
        ),
        notes=(
            "The recipe is the paper's (appendix B.5): Adam with learning rate .001, no regularisation, one query "
            "per step, S = 25; ten epochs, as in the published notebook. λ = 50, 75 and 100 lie beyond the "
            "paper's range. Nothing was chosen on the test queries, but whether some λ reaches a "
            "goal is looked up over all λ.",
            "Relative features are not in the paper: from every feature, its mean over the person's own group in the "
            "query is subtracted. Scores that are linear in them have the same mean in both groups of every "
            "query, so λ need not flatten the whole ranking to treat the groups alike in unseen queries.",
            "Two alternatives to training for fairness are not in the paper either: the policy of λ = 0 at higher "
            "temperatures, and with an offset of each group that gives both the same mean exposure (parity). With "
            "parity D_group is 0 whatever the grades, since it counts over-exposure of the group of higher merit only.",
            "The published code trains with a different disparity from the one it measures: the exposure of good "
            "risks only. This and its sampling may be why it collapses to a random order. Here training and "
            "measurement use the same.",
            "DELTR's scores are read as log-weights, as those of all policies. With grades 0 and 1 it learns a "
            "nearly uniform distribution, so its policy stays near a random order at every λ.",
        ),
        quick=budget.quick,
    )


def train_series(job: GermanJob) -> list[SeriesPolicy]:
    """Train one policy and measure it; with λ = 0 and exact gradients, also what may be done to it instead."""
    one = series(job.quick)[job.series]
    train, test = credit_queries(*job.people, job.seed, job.queries)
    disparity = f"D_group(attr='group',ties={job.ties!r})"
    options = {"lambdas": [job.lam], "seeds": [job.seed], "disparity": disparity, **one.training}
    (policy,) = sweep(one.method, train, **options)
    own = SeriesPolicy(one.name, job.ties, job.lam, job.seed, measure_policy(policy, test), job.chance)
    if job.lam or one.name not in ALTERNATIVES:
        return [own]
    return [
        own,
        *(
            replace(own, name=f"{one.name}, {how}", lam=temperature, outcome=outcome)
            for how, temperature, outcome in alternatives(policy, test)
            if how in ALTERNATIVES[one.name]
        ),
    ]


def _with_no_penalty_twice(trained: Sequence[SeriesPolicy], every: Sequence[Series]) -> list[SeriesPolicy]:
    """At λ = 0 nothing depends on the ties, so such a policy is used for every way of counting."""
    ways = {one.name: one.ties for one in every}
    again = [
        replace(t, ties=ties) for t in trained if not t.lam and t.name in ways for ties in ways[t.name][1:]
    ]
    return [*trained, *again]


def _training(one: Series) -> str:
    return ", ".join(f"{name} {value}" for name, value in one.training.items()) or "on ridge's predictions"

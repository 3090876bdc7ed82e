"""BanditRank's rewards compared along epochs, and BanditRank beside its baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.reproduce.parts import Budget, Reproduction
from experiments.reproduce.rewards_claims import claims
from experiments.reproduce.rewards_figures import (
    differences_table,
    drawings,
    epochs_table,
    methods_table,
    topics_table,
)
from experiments.reproduce.rewards_points import (
    ALONG,
    BASELINES,
    LEVEL,
    OURS,
    REWARDS,
    Along,
    Scored,
    chosen,
    compare,
)
from experiments.reproduce.rewards_topics import MEASURES, by_topic, read
from fairevals.errors import escape
from fairevals.training import Dataset, Epoch, Settings, Standardiser, train_policy

GAMMAS = (0.25, 0.5, 0.75, 1.0)
"""The paper's choices of γ, the weight of the reward beside the cross entropy."""
SHOWN = ("epochs", "lr", "samples", "most", "epsilon", "dropout", "weight_decay", "beta1", "patience")
"""Settings that the page names."""


@dataclass(frozen=True)
class Job:
    """One policy to train: everything that another process has to know."""

    splits: Mapping[str, Dataset]
    settings: Settings
    reward: str = ""
    """The name of the reward, if the policy is to be measured along epochs."""


def run(files: Sequence[str], effort: Budget) -> Reproduction:
    """The whole experiment."""
    splits = read(files)
    seeds = range(effort.choose(3, 2))
    training: dict[str, Any] = {"epochs": 3, "samples": 5, "lr": 0.0005} if effort.quick else {"epochs": 30}
    along, table = works(splits, seeds, training, effort.quick)
    found = list(effort.work(trained, [*along, *table]))
    curves = [point for one in found if isinstance(one, list) for point in one]
    every = [one for one in found if isinstance(one, Scored)]
    scored = chosen(every)
    compared = [compare(scored, baseline, name) for baseline in BASELINES for name in MEASURES]
    gammas = ", ".join(f"{one.hybrid:g} (seed {one.seed})" for one in scored if one.method == OURS)
    shared = Settings.for_method(OURS, **training).record()
    return Reproduction(
        name="bandit-rank-rewards",
        title="Rewards for a ranking bandit",
        paper="Gampa & Fujita: BanditRank: Learning to Rank Using Contextual Bandits. PAKDD 2021, section 5.",
        about=(
            "The paper's experiment is on MQ2007; this one is on the data that were given, so that numbers are not "
            "comparable with the paper's, and only what is said of the order of rewards and methods can agree or not.",
            "Topics without a relevant document are left out, as in the paper. The rewards are compared with γ = 1 (no "
            "cross entropy) on the test topics after every epoch; for the tables γ is chosen, and training stopped, by "
            "the reward on the validation topics. Rankings are by descending score.",
            f"Everything that is drawn – first weights, order of the topics, dropout, rankings – is drawn {len(seeds)} "
            "times: means are over seeds, and a standard deviation (sd) is over seeds. Ridge regression draws nothing. "
            "Tests and intervals are paired over the test topics, on each topic's mean over seeds: they say what other "
            "topics might change, and the deviations what other seeds might.",
        ),
        claims=claims(curves, every, compared),
        drawings=drawings(curves, compared),
        tables=(
            ("Means over test topics and seeds ± standard deviation over seeds", methods_table(scored)),
            *(
                (
                    f"BanditRank less {baseline}, paired over test topics",
                    differences_table([c for c in compared if c.baseline == baseline]),
                )
                for baseline in BASELINES
            ),
        ),
        numbers={
            "numbers.csv": differences_table(compared),
            "epochs.csv": epochs_table(curves),
            "topics.csv": topics_table(scored, splits["test"]),
        },
        settings=(
            ("data", ", ".join(str(escape(file, 200)) for file in files)),
            ("topics", ", ".join(f"{len(data)} {name}" for name, data in splits.items())),
            (
                "validation",
                "a file of its own" if len(files) == 3 else "a fifth of the training topics, drawn",
            ),
            ("seeds", ", ".join(map(str, seeds))),
            ("γ of the tables", f"chosen on the validation topics: {gammas}"),
            *((f"reward {work.reward}", work.settings.reward) for work in along[: len(along) // len(seeds)]),
            *((name, str(shared[name])) for name in SHOWN),
            (
                "tests",
                f"paired t-test and Wilcoxon's signed-rank test over topics, level {LEVEL}, not corrected",
            ),
        ),
        notes=(
            "The formulas of the rewards – equations 10 and 11, and R1 to R6 – are missing from the copy of the paper "
            "that this was made from. Its words say that they are made of AP, RR and nDCG@10, that 11 has nDCG@10 in "
            "the place of RR, that R1 to R3 are single measures and R4 to R6 several together. The rest is our "
            "reading: equation 10 is (AP + RR)/2 and 11 is (AP + nDCG@10)/2; R1, R2, R3 are AP, RR, nDCG@10; R4 is 11, "
            "R5 is 10, and R6 the mean of all three.",
            "Section 3.4 has the loss L_rl + γ·L_sl, but the experiments take γ = 1 for the reward alone. Here it is "
            "γ·L_rl + (1 − γ)·L_sl, L_sl the binary cross entropy, with which the experiments agree.",
            "The paper's own baselines are RankLib's AdaRank, ListNet, Coordinate Ascent and LambdaMART; of these "
            "ListNet is here, beside ridge regression.",
        ),
        quick=effort.quick,
    )


def works(
    splits: Mapping[str, Dataset], seeds: Sequence[int], training: Mapping[str, Any], quick: bool
) -> tuple[list[Job], list[Job]]:
    """The policies of the figure, all rewards of a seed after another, and those of the tables."""
    rewards = ("R1", "R4") if quick else tuple(REWARDS)
    gammas = GAMMAS[1::2] if quick else GAMMAS
    along, table = [], [Job(splits, Settings.for_method("ridge"))]
    for seed in seeds:
        common = {**training, "seed": seed}
        for name in rewards:
            settings = Settings.for_method(OURS, reward=REWARDS[name], hybrid=1.0, **common)
            along.append(Job(splits, settings, name))
        table += [Job(splits, Settings.for_method(OURS, hybrid=gamma, **common)) for gamma in gammas]
        table.append(Job(splits, Settings.for_method("listnet", seed=seed)))
    return along, table


def trained(work: Job) -> list[Along] | Scored:
    """Train one policy: measured along epochs if it is for the figure, else at its best by the validation topics."""
    return along_epochs(work) if work.reward else scored_at_best(work)


def scored_at_best(work: Job) -> Scored:
    """Train on a reward or a baseline's loss, and measure the policy that the validation topics like best."""
    policy = train_policy(work.settings, work.splits["train"], work.splits["valid"])
    values = by_topic(policy.predict(work.splits["test"]), work.splits["test"])
    valid = max((valid or 0.0 for _, _, valid, _ in policy.curve), default=0.0)
    return Scored(work.settings.method, work.settings.seed, work.settings.hybrid, valid, values)


def along_epochs(work: Job) -> list[Along]:
    """Train on a reward, and measure the test topics before training and after every epoch."""
    test = Standardiser.fit(work.splits["train"]).apply(work.splits["test"])
    found: list[Along] = []

    def look(epoch: Epoch) -> None:
        switch = getattr(epoch.scorer, "train", None)
        if callable(switch):
            switch(False)  # no dropout; the next epoch turns it on again
        values = by_topic(epoch.scorer.scores(test.features), test, ALONG)
        found.extend(
            Along(work.reward, work.settings.seed, epoch.number, measure, float(each.mean()))
            for measure, each in values.items()
        )

    train_policy(work.settings, work.splits["train"], on_epoch=look)
    return found

"""BanditRank's rewards compared over epochs, and BanditRank beside its baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.results import Budget, Reproduction
from experiments.rewards_claims import claims
from experiments.rewards_figures import (
    differences_table,
    drawings,
    epochs_table,
    methods_table,
    topics_table,
)
from experiments.rewards_points import (
    ALONG,
    BASELINES,
    LEVEL,
    MEASURES,
    OURS,
    REWARDS,
    EpochValue,
    ScoredPolicy,
    chosen,
    compare,
    measure_by_topic,
    read_splits,
)
from fairevals.errors import escape
from fairevals.training import Dataset, Epoch, Settings, Standardiser, train_policy
from fairevals.training.models import Model

GAMMAS = (0.25, 0.5, 0.75, 1.0)
"""The paper's choices of γ, the weight of the reward beside the cross entropy."""
LISTNET = {"solver": "adam", "epochs": 20, "batch": 1, "lr": 0.001}
"""How ListNet is trained: in the same way as the bandit."""
SHOWN = ("epochs", "lr", "samples", "max_drawn", "epsilon", "dropout", "weight_decay", "beta1", "patience")
"""Settings that the page names."""


@dataclass(frozen=True)
class RewardsJob:
    """One policy to train: everything that another process needs."""

    splits: Mapping[str, Dataset]
    settings: Settings
    reward: str = ""
    """The name of the reward, if the policy is to be measured after every epoch."""


def run(files: Sequence[str], budget: Budget) -> Reproduction:
    """Run the experiment."""
    splits = read_splits(files)
    seeds = range(budget.choose(3, 2))
    training: dict[str, Any] = {"epochs": 3, "samples": 5, "lr": 0.0005} if budget.quick else {"epochs": 30}
    along, table = make_jobs(splits, seeds, training, budget.quick)
    results = list(budget.run(train_job, [*along, *table]))
    curves = [point for result in results if isinstance(result, list) for point in result]
    every = [result for result in results if isinstance(result, ScoredPolicy)]
    scored = chosen(every)
    compared = [compare(scored, baseline, name) for baseline in BASELINES for name in MEASURES]
    gammas = ", ".join(f"{one.reward_weight:g} (seed {one.seed})" for one in scored if one.method == OURS)
    shared = Settings.for_method(OURS, **training).record()
    return Reproduction(
        name="bandit-rank-rewards",
        title="Rewards for a ranking bandit",
        paper="Gampa & Fujita: BanditRank: Learning to Rank Using Contextual Bandits. PAKDD 2021, section 5.",
        about=(
            "The paper's experiment uses MQ2007; this one uses the data that were given. The numbers are "
            "therefore not comparable with the paper's; only claims about the order of rewards and "
            "methods can agree or disagree.",
            "Topics without a relevant document are skipped, as in the paper. The rewards are compared with γ = "
            "1 (no cross entropy) on the test topics after every epoch; for the tables, γ and the stopping epoch "
            "are chosen by the reward on the validation topics. Rankings are by descending score.",
            f"Everything random – initial weights, order of the topics, dropout, rankings – is repeated with "
            f"{len(seeds)} seeds. Means and standard deviations (sd) are over seeds. Ridge regression is not "
            "random. Tests and intervals are paired over the test topics, on each topic's mean over seeds: they "
            "describe the uncertainty from topics, and the deviations that from seeds.",
        ),
        claims=claims(curves, every, compared),
        drawings=drawings(curves, compared),
        tables=(
            ("Means over test topics and seeds ± standard deviation over seeds", methods_table(scored)),
            *(
                (
                    f"BanditRank minus {baseline}, paired over test topics",
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
            *((f"reward {job.reward}", job.settings.reward) for job in along[: len(along) // len(seeds)]),
            *((name, str(shared[name])) for name in SHOWN),
            (
                "tests",
                f"paired t-test and Wilcoxon's signed-rank test over topics, level {LEVEL}, not corrected",
            ),
        ),
        notes=(
            "The formulas of the rewards – equations 10 and 11, and R1 to R6 – are missing from the copy of the "
            "paper that was used. Its text says that they consist of AP, RR and nDCG@10, that 11 has nDCG@10 "
            "instead of RR, that R1 to R3 are single measures and R4 to R6 combinations. The rest is our "
            "interpretation: equation 10 is (AP + RR)/2 and 11 is (AP + nDCG@10)/2; R1, R2, R3 are AP, RR, nDCG@10; "
            "R4 is 11, R5 is 10, and R6 the mean of all three.",
            "Section 3.4 has the loss L_rl + γ·L_sl, but the experiments use γ = 1 for the reward alone. Here the "
            "loss is γ·L_rl + (1 − γ)·L_sl, L_sl the binary cross entropy, which is consistent with the experiments.",
            "The paper's own baselines are RankLib's AdaRank, ListNet, Coordinate Ascent and LambdaMART; of these, "
            "ListNet is included, beside ridge regression.",
        ),
        quick=budget.quick,
    )


def make_jobs(
    splits: Mapping[str, Dataset], seeds: Sequence[int], training: Mapping[str, Any], quick: bool
) -> tuple[list[RewardsJob], list[RewardsJob]]:
    """The policies of the figure, seed by seed, and those of the tables."""
    rewards = ("R1", "R4") if quick else tuple(REWARDS)
    gammas = GAMMAS[1::2] if quick else GAMMAS
    along, table = [], [RewardsJob(splits, Settings.for_method("ridge"))]
    for seed in seeds:
        common = {**training, "keep": "last", "seed": seed}  # the last epoch, or the best on validation data
        for name in rewards:
            settings = Settings.for_method(OURS, reward=REWARDS[name], reward_weight=1.0, **common)
            along.append(RewardsJob(splits, settings, name))
        table += [
            RewardsJob(splits, Settings.for_method(OURS, reward_weight=gamma, **common)) for gamma in gammas
        ]
        table.append(RewardsJob(splits, Settings.for_method("listnet", seed=seed, **LISTNET)))
    return along, table


def train_job(job: RewardsJob) -> list[EpochValue] | ScoredPolicy:
    """Train one policy, measured after every epoch if it is for the figure, else at its best validation epoch."""
    return along_epochs(job) if job.reward else scored_at_best(job)


def scored_at_best(job: RewardsJob) -> ScoredPolicy:
    """Train on a reward or a baseline's loss, and measure the policy that is best on the validation topics."""
    policy = train_policy(job.settings, job.splits["train"], job.splits["valid"])
    values = measure_by_topic(policy.predict(job.splits["test"]), job.splits["test"])
    valid = max((valid or 0.0 for _, _, valid, _ in policy.curve), default=0.0)
    return ScoredPolicy(job.settings.method, job.settings.seed, job.settings.reward_weight, valid, values)


def along_epochs(job: RewardsJob) -> list[EpochValue]:
    """Train on a reward, and measure the test topics before training and after every epoch."""
    test = job.splits["test"]
    features = Standardiser.fit(job.splits["train"])(test.features)
    values_seen: list[EpochValue] = []

    def look(epoch: Epoch, model: Model) -> None:
        model.train(False)  # no dropout; the next epoch turns it on again
        values = measure_by_topic(model.scores(features), test, ALONG)
        values_seen.extend(
            EpochValue(job.reward, job.settings.seed, epoch.number, measure, float(each.mean()))
            for measure, each in values.items()
        )

    train_policy(job.settings, job.splits["train"], on_epoch=look)
    return values_seen

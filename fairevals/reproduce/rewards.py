"""BanditRank's rewards compared along epochs, and BanditRank beside its baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairevals.errors import InputError, Place, UsageError, shown
from fairevals.io.out import Table
from fairevals.report.style import COLOURS, MARKERS, styled
from fairevals.reproduce.parts import Claim, Drawing, Effort, Finding, Reproduction, Steps
from fairevals.stats import t_test, wilcoxon_test
from fairevals.training import (
    Dataset,
    Epoch,
    Settings,
    Standardiser,
    TrainedPolicy,
    load_dataset,
    parse_utility,
    train_policy,
)
from fairevals.training.evaluation import greedy_rankings
from fairevals.typing import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REWARDS = {
    "R1": "AP",
    "R2": "RR",
    "R3": "nDCG@10",
    "R4": "0.5*AP+0.5*nDCG@10",
    "R5": "0.5*AP+0.5*RR",
    "R6": "0.3333*AP+0.3333*RR+0.3333*nDCG@10",
}
"""Three measures alone, three together; R4 is the paper's equation 11, R5 its equation 10."""
MEASURES = {
    "MAP": "AP",
    "MRR": "RR",
    **{f"P@{k}": f"P@{k}" for k in (1, 3, 10)},
    **{f"nDCG@{k}": f"nDCG@{k}" for k in (1, 3, 10)},
}
"""The columns of the paper's table 6, and what is averaged over topics."""
ALONG = ("MAP", "nDCG@10")
"""What the figure shows along epochs."""
BASELINES = ("ridge", "listnet")
LEVEL = 0.05
GAMMAS = (0.25, 0.5, 0.75, 1.0)
"""The paper's choices of γ, the weight of the reward beside the cross entropy."""


@dataclass(frozen=True)
class Along:
    """A measure on the test topics after an epoch, trained on a reward."""

    reward: str
    seed: int
    epoch: int
    measure: str
    value: float


@dataclass(frozen=True)
class Compared:
    """BanditRank and a baseline on a measure: means over topics, and the p-values of both tests."""

    baseline: str
    measure: str
    ours: float
    theirs: float
    p_t: float
    p_wilcoxon: float

    @property
    def significant(self) -> bool:
        """Whether both tests find a difference."""
        return self.p_t < LEVEL and self.p_wilcoxon < LEVEL


def run(files: Sequence[str], effort: Effort) -> Reproduction:
    """The whole experiment."""
    splits = read(files)
    seeds = range(effort.choose(1, 1))
    rewards = {name: REWARDS[name] for name in (("R1", "R4") if effort.quick else REWARDS)}
    training = {"epochs": 3, "samples": 5, "lr": 0.0005} if effort.quick else {"epochs": 30}
    steps = Steps(effort, len(seeds) * (len(rewards) + 1) + len(BASELINES))
    curves: list[Along] = []
    for seed in seeds:
        for name, reward in rewards.items():
            settings = Settings.for_method("bandit-rank", seed=seed, reward=reward, hybrid=1.0, **training)
            curves += along(name, settings, splits)
            steps.step()
    values: dict[str, list[Mapping[str, Floats]]] = {}
    chosen = []
    for method in ("bandit-rank", *BASELINES):
        for seed in seeds if method != "ridge" else (0,):
            if method == "bandit-rank":
                policy = best_hybrid(
                    [
                        Settings.for_method(method, seed=seed, hybrid=gamma, **training)
                        for gamma in (GAMMAS[1::2] if effort.quick else GAMMAS)
                    ],
                    splits,
                )
                chosen.append(f"{policy.settings.hybrid:g} (seed {seed})")
            else:
                settings = Settings.for_method(method, seed=seed)
                policy = train_policy(settings, splits["train"], splits["valid"])
            values.setdefault(method, []).append(
                by_topic(policy.predict(splits["test"]), splits["test"], MEASURES)
            )
            steps.step()
    means = {
        method: {name: np.mean([one[name] for one in found], axis=0) for name in MEASURES}
        for method, found in values.items()
    }
    compared = [compare(baseline, name, means) for baseline in BASELINES for name in MEASURES]
    sizes = ", ".join(f"{len(data)} {name}" for name, data in splits.items())
    return Reproduction(
        name="bandit-rank-rewards",
        title="Rewards for a ranking bandit",
        paper="Gampa & Fujita: BanditRank: Learning to Rank Using Contextual Bandits. PAKDD 2021, section 5.",
        about=(
            "The paper's experiment is on MQ2007; this one is on the data that were given, so that numbers are not "
            "comparable with the paper's, and only what is said of the order of rewards and methods can agree or not.",
            "Topics without a relevant document are left out, as in the paper. The rewards are compared with γ = 1 (no "
            "cross entropy) on the test topics after every epoch; for the table γ is chosen, and training stopped, "
            "by the reward on the validation topics. Rankings are by descending score.",
        ),
        claims=claims(curves, compared),
        drawings=(drawing(curves),),
        tables=(("Test topics, and p-values against BanditRank", table(compared)),),
        numbers={
            "numbers.csv": table(compared),
            "epochs.csv": epochs(curves),
            "topics.csv": topics(means, splits["test"]),
        },
        settings=(
            ("data", ", ".join(str(shown(file, 200)) for file in files)),
            ("topics", sizes),
            (
                "validation",
                "a file of its own" if len(files) == 3 else "a fifth of the training topics, drawn",
            ),
            ("seeds", ", ".join(map(str, seeds))),
            ("γ of the table", "chosen on the validation topics: " + ", ".join(chosen)),
            *((f"reward {name}", text) for name, text in rewards.items()),
            *(
                (name, str(value))
                for name, value in Settings.for_method("bandit-rank", **training).record().items()
                if name
                in (
                    "epochs",
                    "lr",
                    "samples",
                    "most",
                    "epsilon",
                    "dropout",
                    "weight_decay",
                    "beta1",
                    "patience",
                )
            ),
            (
                "tests",
                f"paired t-test and Wilcoxon's signed-rank test over topics, level {LEVEL}, not corrected",
            ),
        ),
        notes=(
            "Which measures R1 to R3 are, and what is in R6, is a reading: AP, RR, nDCG@10, and the mean of all three.",
            "The paper's own baselines are RankLib's AdaRank, ListNet, Coordinate Ascent and LambdaMART; of these "
            "ListNet is here, beside ridge regression.",
        ),
        quick=effort.quick,
    )


def read(files: Sequence[str]) -> dict[str, Dataset]:
    """train, valid and test of two or three files, topics with a relevant document only."""
    if len(files) not in (2, 3):
        raise UsageError(
            f"bandit-rank-rewards takes two or three files, train [valid] test, and not {len(files)}"
        )
    found = [load_dataset(file) for file in files]
    most = max(data.features.shape[1] for data in found)
    found = [relevant_only(data.with_features(most)) for data in found]
    if len(found) == 3:
        return dict(zip(("train", "valid", "test"), found, strict=True))
    data, test = found
    held = len(data) // 5
    if not held:
        raise UsageError(f"{shown(data.name)} has {len(data)} topics with a relevant document; 5 are needed")
    order = np.random.default_rng(0).permutation(len(data))
    return {
        "train": data.split(np.sort(order[held:])),
        "valid": data.split(np.sort(order[:held])),
        "test": test,
    }


def relevant_only(data: Dataset) -> Dataset:
    """The topics that have a relevant document."""
    relevant = [t for t in range(len(data)) if np.any(data.grades[data.starts[t] : data.starts[t + 1]] > 0)]
    if not relevant:
        raise InputError(Place(data.name), "no topic with a relevant document", "at least one")
    return data.split(relevant)


def by_topic(scores: Floats, data: Dataset, measures: Mapping[str, str]) -> dict[str, Floats]:
    """The measures of the rankings by descending score, a value a topic."""
    parsed = {name: parse_utility(text) for name, text in measures.items()}
    values: dict[str, list[float]] = {name: [] for name in measures}
    for t, ranking in enumerate(greedy_rankings(scores, data)):
        block = data.block([t])
        for name, utility in parsed.items():
            values[name].append(float(utility.of_rankings(ranking[None, None], block)[0, 0]))
    return {name: np.array(found) for name, found in values.items()}


def along(name: str, settings: Settings, splits: Mapping[str, Dataset]) -> list[Along]:
    """Train on a reward, and measure the test topics before training and after every epoch."""
    test = Standardiser.fit(splits["train"]).apply(splits["test"])
    measures = {measure: MEASURES[measure] for measure in ALONG}
    found: list[Along] = []

    def look(epoch: Epoch) -> None:
        switch = getattr(epoch.scorer, "train", None)
        if callable(switch):
            switch(False)  # no dropout; the next epoch turns it on again
        values = by_topic(epoch.scorer.scores(test.features), test, measures)
        found.extend(
            Along(name, settings.seed, epoch.number, measure, float(each.mean()))
            for measure, each in values.items()
        )

    train_policy(settings, splits["train"], on_epoch=look)
    return found


def compare(baseline: str, measure: str, means: Mapping[str, Mapping[str, Floats]]) -> Compared:
    """BanditRank against a baseline on a measure, topic by topic."""
    ours, theirs = means["bandit-rank"][measure], means[baseline][measure]
    difference = ours - theirs
    return Compared(
        baseline,
        measure,
        float(ours.mean()),
        float(theirs.mean()),
        t_test(difference).p,
        wilcoxon_test(difference).p,
    )


def best_hybrid(candidates: Sequence[Settings], splits: Mapping[str, Dataset]) -> TrainedPolicy:
    """The policy of these settings that has the most reward on the validation topics; the first of equals."""
    policies = [train_policy(settings, splits["train"], splits["valid"]) for settings in candidates]
    return max(policies, key=lambda policy: max(valid or 0.0 for _, _, valid, _ in policy.curve))


def part_mean(curves: Sequence[Along], reward: str, measure: str, seed: int, part: str) -> float:
    """The mean of a measure over the first or the last third of the epochs, without the one before training."""
    last = max((a.epoch for a in curves), default=0)
    third = max(1, last // 3)
    chosen = range(1, third + 1) if part == "first" else range(last - third + 1, last + 1)
    values = [
        a.value
        for a in curves
        if (a.reward, a.measure, a.seed) == (reward, measure, seed) and a.epoch in chosen
    ]
    return float(np.mean(values)) if values else float("nan")


def claims(curves: Sequence[Along], compared: Sequence[Compared]) -> tuple[Claim, ...]:
    """The paper's claims on rewards and baselines, and this package's aim."""
    return (*_of_rewards(curves), *_of_methods(compared))


def _better(curves: Sequence[Along], mine: str, others: Sequence[str], part: str) -> tuple[Finding, ...]:
    found = []
    for seed in dict.fromkeys(a.seed for a in curves):
        for measure in ALONG:
            values = {name: part_mean(curves, name, measure, seed, part) for name in (mine, *others)}
            values = {name: value for name, value in values.items() if not np.isnan(value)}
            if mine in values and len(values) == len(others) + 1:
                text = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
                holds = all(values[mine] > values[name] for name in others)
                found.append(Finding(f"{measure}, seed {seed}", text, holds))
    return tuple(found)


def _of_rewards(curves: Sequence[Along]) -> list[Claim]:
    source = "paper, section 5.4"
    many = [Finding(f.where, f.measured, not f.holds) for f in _better(curves, "R6", ("R4", "R5"), "last")]
    return [
        Claim(
            source,
            "R1 (AP) has good measures right from the start, compared with R2 and R3.",
            "in the first third of the epochs its mean is above theirs",
            _better(curves, "R1", ("R2", "R3"), "first"),
        ),
        Claim(
            source,
            "In the initial epochs R4 is clearly better than R5 and R6.",
            "in the first third of the epochs its mean is above theirs",
            _better(curves, "R4", ("R5", "R6"), "first"),
        ),
        Claim(
            source,
            "In the final stages R4 is better than R5 and R6.",
            "in the last third of the epochs its mean is above theirs",
            _better(curves, "R4", ("R5", "R6"), "last"),
        ),
        Claim(
            source,
            "A reward of many measures (R6) does not necessarily improve MAP and nDCG@10.",
            "in the last third of the epochs its mean is not above both R4 and R5",
            tuple(many),
        ),
    ]


def _of_methods(compared: Sequence[Compared]) -> list[Claim]:
    listnet = [c for c in compared if c.baseline == "listnet"]
    at_ten = [c for c in compared if c.measure == "nDCG@10"]
    found = [
        Claim(
            "paper, section 5.3",
            "BanditRank clearly outperforms ListNet.",
            "its mean over the test topics is higher",
            tuple(Finding(c.measure, f"{c.ours:.4f} and {c.theirs:.4f}", c.ours > c.theirs) for c in listnet),
        ),
        Claim(
            "paper, section 5.3",
            "The improvement is statistically significant by both tests.",
            f"it is higher, and both p-values are below {LEVEL}",
            tuple(
                Finding(
                    c.measure,
                    f"difference {c.ours - c.theirs:+.4f}, p = {c.p_t:.3f} (t), {c.p_wilcoxon:.3f} (Wilcoxon)",
                    c.ours > c.theirs and c.significant,
                )
                for c in listnet
            ),
        ),
    ]
    if at_ten:
        best = max(at_ten, key=lambda c: c.theirs)
        text = f"{best.ours:.4f}, {best.baseline} {best.theirs:.4f}"
        found.append(
            Claim(
                "aim of this package",
                "BanditRank is not far below the best baseline.",
                "its nDCG@10 is at most .02 below the better of ridge and ListNet",
                (Finding("nDCG@10", text, best.ours >= best.theirs - 0.02),),
            )
        )
    return found


def table(compared: Sequence[Compared]) -> Table:
    """Means and p-values."""
    return Table(
        ("measure", "baseline", "bandit-rank", "of the baseline", "difference", "p (t-test)", "p (Wilcoxon)"),
        tuple(
            (c.measure, c.baseline, c.ours, c.theirs, c.ours - c.theirs, c.p_t, c.p_wilcoxon)
            for c in compared
        ),
    )


def epochs(curves: Sequence[Along]) -> Table:
    """What the figure shows."""
    return Table(
        ("reward", "formula", "seed", "epoch", "measure", "value"),
        tuple((a.reward, REWARDS[a.reward], a.seed, a.epoch, a.measure, a.value) for a in curves),
    )


def topics(means: Mapping[str, Mapping[str, Floats]], data: Dataset) -> Table:
    """What the tests are of: values by topic, means over seeds."""
    return Table(
        ("method", "topic", *MEASURES),
        tuple(
            (method, topic, *(float(values[name][t]) for name in MEASURES))
            for method, values in means.items()
            for t, topic in enumerate(data.topics)
        ),
    )


def drawing(curves: Sequence[Along]) -> Drawing:
    """The paper's figure 1: measures along epochs, a line a reward."""
    last = max(a.epoch for a in curves)
    names = dict.fromkeys(a.reward for a in curves)
    ends = "; ".join(
        f"{name} ends at "
        + ", ".join(f"{measure} {_mean(curves, name, measure, last):.3f}" for measure in ALONG)
        for name in names
    )
    return Drawing.of(
        "rewards",
        rewards_figure(curves),
        f"MAP and nDCG@10 of the test topics along {last} epochs, a line a reward: {ends}.",
        "MAP and nDCG@10 on the test topics along epochs of training with each reward (γ = 1), means over seeds.",
    )


def _mean(curves: Sequence[Along], reward: str, measure: str, epoch: int) -> float:
    values = [a.value for a in curves if (a.reward, a.measure, a.epoch) == (reward, measure, epoch)]
    return float(np.mean(values))


def rewards_figure(curves: Sequence[Along]) -> Figure:
    """Lines of the rewards along epochs, an axes a measure."""
    from matplotlib.figure import Figure

    last = max(a.epoch for a in curves)
    names = list(dict.fromkeys(a.reward for a in curves))
    with styled():
        figure = Figure(figsize=(10.4, 4.3))
        for place, measure in enumerate(ALONG, 1):
            axes = figure.add_subplot(1, len(ALONG), place)
            for number, name in enumerate(names):
                axes.plot(
                    range(last + 1),
                    [_mean(curves, name, measure, epoch) for epoch in range(last + 1)],
                    "-",
                    marker=MARKERS[number],
                    markevery=max(1, last // 8),
                    color=COLOURS[number],
                    label=f"{name}: {REWARDS[name].replace('0.3333', '⅓').replace('0.5', '½').replace('*', '·')}",
                )
            axes.set(xlabel="epoch", ylabel=f"{measure} ↑")
        handles, texts = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=3, frameon=False)
    return figure

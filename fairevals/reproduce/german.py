"""Fair-PG-Rank's figure 3: German Credit made into rankings, a sweep of λ over seeds, and three methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.errors import UsageError, shown
from fairevals.io.out import Table
from fairevals.measures.disparity import TIE, group_disparity
from fairevals.report.style import COLOURS, INK, MARKERS, styled
from fairevals.reproduce.curves import exposures, mean_ndcg, not_below, random_order
from fairevals.reproduce.german_tables import find_german, read_people
from fairevals.reproduce.parts import Claim, Drawing, Effort, Finding, Reproduction, Steps
from fairevals.training import Dataset, TrainedPolicy, sweep
from fairevals.training.disparities import group_with_gradient
from fairevals.training.examples import credit_queries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TIES = ("both", "first")
RANDOM_NDCG = 0.6975
"""A random order's nDCG in the published code's data."""


@dataclass(frozen=True)
class Series:
    """A method with its settings, trained for every λ."""

    name: str
    label: str
    method: str
    lambdas: tuple[float, ...]
    training: dict[str, Any]
    ties: tuple[str, ...] = TIES
    """Ways of counting that it is trained with; one for methods that do not know the difference."""


def series(quick: bool) -> tuple[Series, ...]:
    """What is trained."""
    ends = (0.0, 25.0)
    return (
        Series(
            "exact",
            "Fair-PG-Rank, exact",
            "fair-pg-rank",
            ends if quick else (0.0, 1.0, 5.0, 10.0, 25.0, 100.0),
            {"estimator": "exact", "batch": 10, "epochs": 2 if quick else 12, "lr": 0.003},
        ),
        Series(
            "exact, γ=.3",
            "Fair-PG-Rank, exact, γ = .3",
            "fair-pg-rank",
            ends if quick else (0.0, 10.0, 25.0),
            {"estimator": "exact", "batch": 100, "epochs": 2 if quick else 30, "lr": 0.01, "entropy": 0.3},
        ),
        Series(
            "reinforce",
            "Fair-PG-Rank, reinforce",
            "fair-pg-rank",
            ends if quick else (0.0, 10.0, 25.0),
            {"estimator": "reinforce", "samples": 25, "epochs": 1 if quick else 10, "lr": 0.001},
        ),
        Series(
            "lp",
            "linear programme",
            "lp",
            (0.0, 0.2) if quick else (0.0, 0.05, 0.1, 0.2, 1.0, 10.0, 100.0),
            {},
            ("both",),
        ),
        Series(
            "deltr",
            "DELTR",
            "deltr",
            (0.0, 1e6) if quick else (0.0, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6),
            {"batch": 10, "epochs": 2 if quick else 12, "lr": 0.003},
            ("both",),
        ),
    )


@dataclass(frozen=True)
class Trained:
    """A policy on the test queries: nDCG, how much it is above a random order, and D_group counted both ways."""

    name: str
    ties: str
    lam: float
    seed: int
    ndcg: float
    above: float
    both: float
    first: float

    def counted(self, ties: str) -> float:
        """D_group, ties counted so."""
        return self.both if ties == "both" else self.first


@dataclass(frozen=True)
class Mean:
    """Means and standard deviations over seeds of the policies of a series at a λ."""

    name: str
    ties: str
    lam: float
    ndcg: float
    ndcg_sd: float
    above: float
    both: float
    both_sd: float
    first: float
    first_sd: float

    def counted(self, ties: str) -> tuple[float, float]:
        """D_group, ties counted so, and its standard deviation."""
        return (self.both, self.both_sd) if ties == "both" else (self.first, self.first_sd)


def run(files: Sequence[str], effort: Effort) -> Reproduction:
    """The whole experiment."""
    if len(files) > 1:
        raise UsageError("fair-pg-rank-german takes one file: UCI's german.data")
    path = files[0] if files else str(find_german())
    people, form = read_people(path)
    seeds = range(effort.choose(5, 2))
    queries = (40, 20) if effort.quick else (500, 100)
    every = series(effort.quick)
    steps = Steps(effort, len(seeds) * sum(len(s.lambdas) * len(s.ties) for s in every))
    found: list[Trained] = []
    chances = []
    share = np.zeros(3, dtype=np.int64)
    for seed in seeds:
        train, test = credit_queries(*people, seed, queries)
        share += np.array(tied(train)) + np.array(tied(test))
        chance = reached(random_order(test), test)
        chances.append(Trained("random", "both", 0.0, seed, chance[0], 0.0, chance[1], chance[2]))
        for one in every:
            for ties in one.ties:
                for lam in one.lambdas:
                    policy = sweep(one.method, train, lambdas=[lam], seeds=[seed], ties=ties, **one.training)[
                        0
                    ]
                    ndcg, both, first = reached(policy, test)
                    found.append(Trained(one.name, ties, lam, seed, ndcg, ndcg - chance[0], both, first))
                    steps.step()
    means = [*summarise(chances), *summarise(found)]
    return Reproduction(
        name="fair-pg-rank-german",
        title="German Credit as rankings",
        paper="Singh & Joachims: Policy Learning for Fairness in Ranking. NeurIPS 2019, section 4.3, appendix B and "
        "figure 3.",
        about=(
            f"{queries[0]} training and {queries[1]} test queries of ten people each, drawn from the first 80 % of the "
            "people and from the rest, those who are no good risk four times as readily; the group is the sex. All "
            "values are of the test queries, exact expectations over rankings, means over "
            f"{len(seeds)} seeds (of the queries and of the models) with standard deviations.",
            f"D_group is defined on {share[1]} of all {share[2]} queries (where both groups have a good risk), and in "
            f"{share[0]} of these the two groups have exactly the same merit. The definition then holds for either "
            "order: this package counts the violation in both (ties = both); the published code only that of the "
            "group named first (ties = first). Policies are trained either way, and D_group is given either way.",
        ),
        claims=claims(means),
        drawings=drawings(means, every),
        tables=(("Means over seeds on the test queries", table(means)),),
        numbers={"numbers.csv": numbers([*chances, *found]), "means.csv": table(means)},
        settings=(
            ("data", f"{shown(path, 200)}, {form}; {len(people[1])} people"),
            ("queries", f"{queries[0]} for training, {queries[1]} for the test, ten people each"),
            ("seeds", ", ".join(map(str, seeds))),
            *(
                (one.label, "; ".join([f"λ {', '.join(f'{lam:g}' for lam in one.lambdas)}", _training(one)]))
                for one in every
            ),
        ),
        notes=(
            "The recipe of reinforce is the paper's (appendix B.5): Adam with learning rate .001, S = 25, a query a "
            "step; the number of epochs is not given there.",
            "DELTR's scores are read as log-weights, as those of all policies. With grades 0 and 1 the distribution "
            "that it learns is nearly even, so that its policy stays near a random order at every λ.",
            "γ weighs the entropy of the scores; it keeps the policy stochastic enough to be fair to people it has "
            "not seen.",
        ),
        quick=effort.quick,
    )


def _training(one: Series) -> str:
    return ", ".join(f"{name} {value}" for name, value in one.training.items()) or "on ridge's predictions"


def reached(policy: TrainedPolicy, data: Dataset) -> tuple[float, float, float]:
    """nDCG, D_group with ties counted in both orders, and in one."""
    block = data.block(range(len(data)))
    if block.membership is None:
        raise UsageError("D_group needs groups")
    exposure = exposures(policy, data)
    both = group_disparity(exposure, block.grades, block.membership)
    first = group_with_gradient(exposure, block.grades, block.membership, "first")[0]
    defined = ~np.isnan(both)
    return mean_ndcg(exposure, block), float(both[defined].mean()), float(first[defined].mean())


def tied(data: Dataset) -> tuple[int, int, int]:
    """Queries whose two groups have the same mean merit, queries on which D_group is defined, and all."""
    block = data.block(range(len(data)))
    if block.membership is None:
        raise UsageError("D_group needs groups")
    total = np.einsum("td,tdg->tg", block.grades, block.membership)
    mean = total / np.maximum(block.membership.sum(axis=1), 1.0)
    defined = (total > 0).all(axis=1)
    same = np.abs(mean[:, 0] - mean[:, 1]) <= TIE * mean.max(axis=1)
    return int(np.count_nonzero(defined & same)), int(np.count_nonzero(defined)), len(data)


def summarise(found: Sequence[Trained]) -> list[Mean]:
    """Means and standard deviations over seeds, in the order of the policies."""
    grouped: dict[tuple[str, str, float], list[Trained]] = {}
    for one in found:
        grouped.setdefault((one.name, one.ties, one.lam), []).append(one)
    means = []
    for (name, ties, lam), ones in grouped.items():
        values = np.array([(one.ndcg, one.both, one.first, one.above) for one in ones])
        mean = values.mean(axis=0)
        sd = values.std(axis=0, ddof=1) if len(ones) > 1 else np.full(4, np.nan)
        n, b, f, a = (float(value) for value in mean)
        means.append(
            Mean(name, ties, lam, n, float(sd[0]), a, b, float(sd[1]), f, float(sd[2])),
        )
    return means


def near(published: float, mean: float, deviation: float, least: float) -> bool:
    """Whether a published number is within two standard deviations of a mean, or within `least` of it.

    >>> near(0.816, 0.82, 0.001, 0.01), near(0.816, 0.84, 0.001, 0.01), near(0.816, 0.84, 0.02, 0.01)
    (True, False, True)
    """
    return abs(published - mean) <= max(least, 2 * float(np.nan_to_num(deviation)))


def useful_and_fair(means: Sequence[Mean], ties: str, disparity: float = 0.001, above: float = 0.03) -> bool:
    """Whether some policy has so little D_group and is so much above a random order."""
    return any(m.counted(ties)[0] <= disparity and m.above >= above for m in means)


def trades_off(means: Sequence[Mean], ties: str, above: float = 0.03) -> bool:
    """Whether some λ has at most half the D_group of λ = 0 and is still so much above a random order."""
    start = min(means, key=lambda m: m.lam)
    return any(m.counted(ties)[0] <= start.counted(ties)[0] / 2 and m.above >= above for m in means)


def of(means: Sequence[Mean], name: str, ties: str) -> list[Mean]:
    """The means of a series, by λ; a series that does not know of ties is there for both."""
    mine = [m for m in means if m.name == name]
    ways = {m.ties for m in mine}
    return sorted((m for m in mine if m.ties == ties or len(ways) == 1), key=lambda m: m.lam)


PUBLISHED = (
    ("the published code, run again", "reinforce", 0.0, 0.816, 0.0098),
    ("the published code, run again", "reinforce", 10.0, 0.707, 0.0),
    ("the published code, run again", "reinforce", 25.0, 0.696, 0.0),
    ("exact gradients on the published data", "exact", 0.0, 0.817, 0.012),
    ("exact gradients on the published data", "exact", 25.0, 0.747, 0.0),
)
"""Source, series, λ, nDCG and D_group on the test queries."""


def claims(means: Sequence[Mean]) -> tuple[Claim, ...]:
    """Published numbers and the paper's claims, judged by the means."""
    return (*_published(means), *_of_paper(means))


def _published(means: Sequence[Mean]) -> list[Claim]:
    rule = "the number is within two standard deviations over seeds of the mean, or within .01 (nDCG), .001 (D_group)"
    chance = next(m for m in means if m.name == "random")
    found = [
        Claim(
            PUBLISHED[0][0],
            f"A random order has nDCG {RANDOM_NDCG}.",
            rule,
            (
                Finding(
                    "random order",
                    f"nDCG {chance.ndcg:.4f} ({chance.ndcg_sd:.4f})",
                    near(RANDOM_NDCG, chance.ndcg, chance.ndcg_sd, 0.01),
                ),
            ),
        )
    ]
    for source, name, lam, ndcg, disparity in PUBLISHED:
        findings = []
        for m in of(means, name, "first"):
            if m.lam == lam:
                findings = [
                    Finding("nDCG", f"{m.ndcg:.4f} ({m.ndcg_sd:.4f})", near(ndcg, m.ndcg, m.ndcg_sd, 0.01)),
                    Finding(
                        "D_group, ties first",
                        f"{m.first:.5f} ({m.first_sd:.5f})",
                        near(disparity, m.first, m.first_sd, 0.001),
                    ),
                ]
        text = f"{name.capitalize()}, λ = {lam:g}: nDCG {ndcg:.3f} and D_group {disparity:.4f}."
        found.append(Claim(source, text, rule, tuple(findings)))
    return found


def _of_paper(means: Sequence[Mean]) -> list[Claim]:
    trade, fair, reliable, baselines, above = ([] for _ in range(5))
    for ties in TIES:
        way = f"ties {ties}"
        for name in ("exact", "exact, γ=.3", "reinforce"):
            curve = of(means, name, ties)
            ends = curve[0], curve[-1]
            change = " to ".join(f"nDCG {m.ndcg:.3f}, D_group {m.counted(ties)[0]:.5f}" for m in ends)
            trade.append(Finding(f"{name}, {way}", change, trades_off(curve, ties)))
            widest = max(float(np.nan_to_num(m.ndcg_sd)) for m in curve)
            reliable.append(Finding(f"{name}, {way}", f"at most {widest:.4f}", widest <= 0.02))
        mine = [*of(means, "exact", ties), *of(means, "exact, γ=.3", ties)]
        fairest = max((m for m in mine if m.counted(ties)[0] <= 0.001), key=lambda m: m.above, default=None)
        fair.append(
            Finding(
                way,
                "no λ has so little D_group"
                if fairest is None
                else f"{fairest.name}, λ = {fairest.lam:g}: D_group {fairest.counted(ties)[0]:.5f}, nDCG "
                f"{fairest.above:.4f} above random",
                useful_and_fair(mine, ties),
            )
        )
        for name, label in (("lp", "linear programme"), ("deltr", "DELTR")):
            curve = of(means, name, ties)
            least = min(curve, key=lambda m: m.counted(ties)[0])
            baselines.append(
                Finding(
                    f"{label}, {way}",
                    f"D_group {curve[0].counted(ties)[0]:.5f} at λ = 0; least {least.counted(ties)[0]:.5f} at "
                    f"λ = {least.lam:g}, nDCG {least.above:.4f} above random",
                    not trades_off(curve, ties),
                )
            )
        other = of(means, "reinforce", ties)
        better = not_below(
            [(m.counted(ties)[0], m.ndcg) for m in mine],
            [(m.counted(ties)[0], m.ndcg) for m in other],
            [float(np.nan_to_num(m.ndcg_sd)) for m in other],
        )
        above.append(
            Finding(
                way,
                f"{sum(better)} of the {len(better)} policies whose D_group it reaches, of {len(other)}",
                bool(better) and all(better),
            )
        )
    paper = "paper, section 4.3"
    return [
        Claim(
            paper,
            "Fair-PG-Rank effectively trades off nDCG and D_group.",
            "some λ has at most half the D_group of λ = 0 with nDCG at least .03 above a random order",
            tuple(trade),
        ),
        Claim(
            "aim of this package",
            "With exact gradients a policy is fair and still useful.",
            "some λ has D_group at most .001 with nDCG at least .03 above a random order",
            tuple(fair),
        ),
        Claim(
            paper,
            "It reliably converges to solutions of similar performance over several runs.",
            "the standard deviation of nDCG over seeds is at most .02 at every λ",
            tuple(reliable),
        ),
        Claim(
            paper,
            "The baselines fail to trade off nDCG for D_group.",
            "no λ of theirs has at most half the D_group of λ = 0 with nDCG at least .03 above a random order",
            tuple(baselines),
        ),
        Claim(
            "aim of this package",
            "Exact gradients are not below reinforce.",
            "at every D_group of reinforce that exact reaches, nDCG is not lower by more than a standard deviation",
            tuple(above),
        ),
    ]


def numbers(found: Sequence[Trained]) -> Table:
    """Every policy on every seed."""
    return Table(
        (
            "method",
            "trained with ties",
            "lambda",
            "seed",
            "nDCG",
            "above random",
            "D_group both",
            "D_group first",
        ),
        tuple((t.name, t.ties, t.lam, t.seed, t.ndcg, t.above, t.both, t.first) for t in found),
    )


def table(means: Sequence[Mean]) -> Table:
    """The means."""
    return Table(
        (
            "method",
            "trained with ties",
            "λ",
            "nDCG",
            "nDCG sd",
            "above random",
            "D_group both",
            "D_group both sd",
            "D_group first",
            "D_group first sd",
        ),
        tuple(
            (
                m.name,
                m.ties,
                f"{m.lam:g}",
                m.ndcg,
                m.ndcg_sd,
                m.above,
                m.both,
                m.both_sd,
                m.first,
                m.first_sd,
            )
            for m in means
        ),
    )


def drawings(means: Sequence[Mean], every: Sequence[Series]) -> tuple[Drawing, ...]:
    """Figure 3, left and right."""
    exact = of(means, "exact", "both")
    return (
        Drawing.of(
            "lambda",
            lambda_figure(means),
            "nDCG and D_group along λ for Fair-PG-Rank. Exact gradients, ties both: "
            + "; ".join(f"λ = {m.lam:g}: nDCG {m.ndcg:.3f}, D_group {m.both:.5f}" for m in exact)
            + ".",
            "Fair-PG-Rank on the test queries along λ, means over seeds with bands of one standard deviation; D_group "
            "is counted as in training. The dotted line is a random order.",
        ),
        Drawing.of(
            "tradeoff",
            tradeoff_figure(means, every),
            "D_group against nDCG for Fair-PG-Rank, the linear programme and DELTR, ties counted in both orders on the "
            "left and in one on the right; the numbers are in the table.",
            "What λ costs and buys on the test queries, a point a λ; below and to the right is better. Left: ties "
            "counted in both orders, right: in one, as in the published code. The dotted line is a random order.",
        ),
    )


def lambda_figure(means: Sequence[Mean]) -> Figure:
    """nDCG and D_group along λ, with bands of a standard deviation."""
    from matplotlib.figure import Figure

    lines = [(name, ties) for name in ("exact", "reinforce") for ties in TIES]
    place = {lam: x for x, lam in enumerate(sorted({m.lam for n, t in lines for m in of(means, n, t)}))}
    with styled():
        figure = Figure(figsize=(10.4, 4.2))
        left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
        for number, (name, ties) in enumerate(lines):
            curve = of(means, name, ties)
            x = np.array([place[m.lam] for m in curve])
            ndcg = np.array([(m.ndcg, m.ndcg_sd) for m in curve])
            disparity = np.array([m.counted(ties) for m in curve])
            for axes, (value, sd) in ((left, ndcg.T), (right, disparity.T)):
                _band(axes, x, value, np.nan_to_num(sd), number, f"{name}, ties {ties}")
        _random(left, means, across=True)
        left.set_ylabel("nDCG ↑")
        right.set_ylabel("D_group ↓")
        for axes in (left, right):
            axes.set_xticks(range(len(place)), [f"{lam:g}" for lam in place])
            axes.set_xlabel("λ")
        handles, texts = left.get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _band(axes: Axes, x: Any, value: Any, sd: Any, number: int, label: str) -> None:
    axes.plot(x, value, "-", marker=MARKERS[number], color=COLOURS[number], label=label)
    axes.fill_between(x, value - sd, value + sd, color=COLOURS[number], alpha=0.18, linewidth=0)


def _random(axes: Axes, means: Sequence[Mean], across: bool) -> None:
    for m in means:
        if m.name == "random":
            line = axes.axhline if across else axes.axvline
            line(m.ndcg, color=INK, linestyle=":", linewidth=1)


def tradeoff_figure(means: Sequence[Mean], every: Sequence[Series]) -> Figure:
    """D_group against nDCG, counted both ways."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(10.4, 4.4))
        for place, ties in enumerate(TIES, 1):
            axes = figure.add_subplot(1, 2, place)
            for number, one in enumerate(every):
                curve = of(means, one.name, ties)
                axes.plot(
                    [m.ndcg for m in curve],
                    [m.counted(ties)[0] for m in curve],
                    "-",
                    marker=MARKERS[number],
                    color=COLOURS[number],
                    label=one.label,
                )
            _random(axes, means, across=False)
            axes.set(xlabel="nDCG ↑", ylabel="D_group ↓", title=f"ties counted: {ties}")
            axes.set_ylim(bottom=0)
        handles, texts = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=3, frameon=False)
    return figure

"""How the groups of an attribute share the ranks: achieved against target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairevals.collection.blocks import Requirements
from fairevals.errors import UsageError, escape
from fairevals.evaluation import Collection, Plan, open_run
from fairevals.io.out import Cell, Table
from fairevals.io.task import PolicySpec
from fairevals.measures.gf import mean_membership_along_ranks
from fairevals.report.style import COLOURS, HATCHES, styled
from fairevals.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Distribution:
    """The groups' shares along the ranks, for one run and attribute, of one topic or in the mean over topics."""

    run: str
    attribute: str
    groups: tuple[str, ...]
    achieved: Floats
    """(ranks, groups): mean membership of ranks 1..k; a topic's last value stands where its ranking has ended."""
    target: Floats
    """(groups,)."""
    topics: int
    """How many topics the mean is over."""


def distribution(
    source: Any,
    collection: Collection,
    attribute: str,
    *,
    depth: int = 20,
    topic: str | None = None,
    policy: PolicySpec | None = None,
) -> Distribution:
    """How a run's rankings share the first `depth` ranks among the groups.

    Under a policy with several rankings the mean over them counts too. Topics without a retrieved document, or to
    which the attribute does not apply, or without a target, are left out.
    """
    loaded = collection.with_attributes([attribute])
    plan = Plan(
        (),
        policy or collection.task.policy,
        collection.task.order,
        _wanted(policy, collection, depth, attribute),
    )
    if topic is not None and topic not in collection.qrels.number:
        raise UsageError(f"there is no topic {escape(topic)!r} in the qrels")
    opened = open_run(source, loaded, plan)
    run, drawn = opened.run, opened.policy
    total, count = np.zeros((depth, len(loaded.attributes[attribute].spec.groups))), 0
    aim = np.zeros(total.shape[1])
    for block in opened.blocks():
        view = block.attributes[attribute]
        ranked = block.reordered(drawn.rankings(block, depth)).attributes[attribute].membership
        shares = mean_membership_along_ranks(ranked)
        for t in np.flatnonzero(view.applies & (block.retrieved > 0) & ~np.isnan(view.target).any(axis=1)):
            if topic in (None, block.topics[t]):
                total += _held(_mean_over_samples(shares[t]), depth)
                aim += view.target[t]
                count += 1
    groups = loaded.attributes[attribute].spec.groups
    mean = total / count if count else np.full(total.shape, np.nan)
    return Distribution(
        run.tag, attribute, groups, mean, aim / count if count else np.full(aim.shape, np.nan), count
    )


def _wanted(policy: PolicySpec | None, collection: Collection, depth: int, attribute: str) -> Requirements:
    kind = (policy or collection.task.policy).kind
    return Requirements(None if kind == "pl" else depth, False, (attribute,))


def _mean_over_samples(shares: Floats) -> Floats:
    """(samples, ranks, groups) → (ranks, groups), over the samples that say something at a rank."""
    known = ~np.isnan(shares)
    count = known.sum(axis=0)
    total = np.where(known, shares, 0.0).sum(axis=0)
    mean: Floats = np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)
    return mean


def _held(shares: Floats, depth: int) -> Floats:
    """Shares along `depth` ranks: the last known value is held where there are fewer."""
    held = np.full((depth, shares.shape[1]), np.nan)
    held[: shares.shape[0]] = shares[:depth]
    for k in range(1, depth):
        if np.isnan(held[k]).any():
            held[k] = held[k - 1]
    known = np.flatnonzero(~np.isnan(held).any(axis=1))
    if known.size:
        held[: known[0]] = held[known[0]]
    filled: Floats = np.nan_to_num(held)
    return filled


def membership_table(distributions: Sequence[Distribution], at: Sequence[int] = (5, 10, 20)) -> Table:
    """A row a run, attribute and cutoff: the mean membership of the first k ranks in each group, the target last."""
    groups = list(dict.fromkeys(group for found in distributions for group in found.groups))
    rows: list[tuple[Cell, ...]] = []

    def row(run: str, attribute: str, k: Cell, found: Distribution, shares: Floats) -> tuple[Cell, ...]:
        by_group = dict(zip(found.groups, shares.tolist(), strict=True))
        return (run, attribute, k, *(by_group.get(group) for group in groups))

    for attribute in dict.fromkeys(found.attribute for found in distributions):
        mine = [found for found in distributions if found.attribute == attribute]
        for found in mine:
            rows += [
                row(found.run, attribute, k, found, found.achieved[k - 1])
                for k in at
                if k <= found.achieved.shape[0]
            ]
        rows.append(row("target", attribute, None, mine[0], mine[0].target))
    return Table(("run", "attribute", "ranks", *groups), tuple(rows))


def along_ranks(distributions: Sequence[Distribution], title: str = "", columns: int = 4) -> Figure:
    """Stacked shares of the groups along the ranks, an axes a run, and the target as a bar at the right."""
    from matplotlib.figure import Figure

    columns = min(columns, len(distributions))
    rows = -(-len(distributions) // columns)
    with styled():
        figure = Figure(figsize=(1.6 + 2.6 * columns, 0.6 + 2.9 * rows))
        all_axes = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
        for number, axes in enumerate(all_axes):
            if number >= len(distributions):
                axes.set_axis_off()
                continue
            _stacked(axes, distributions[number])
            if number % columns == 0:
                axes.set_ylabel(f"mean membership ({escape(distributions[0].attribute, 24)})")
            if number + columns >= len(distributions):
                axes.set_xlabel("first k ranks")
        handles, names = all_axes[0].get_legend_handles_labels()
        figure.legend(handles[::-1], names[::-1], loc="outside right center", frameon=False)
        if title:
            figure.suptitle(title)
    return figure


def _stacked(axes: Axes, found: Distribution) -> None:
    ranks = np.arange(1, found.achieved.shape[0] + 1)
    below, aim = np.zeros(ranks.size), 0.0
    width = 0.1 * ranks.size
    place = ranks[-1] + 2 * width
    for g, group in enumerate(found.groups):
        look: Any = {
            "facecolor": COLOURS[g % len(COLOURS)],
            "alpha": 0.75,
            "hatch": HATCHES[g % len(HATCHES)],
            "edgecolor": "white",
            "linewidth": 0.3,
        }
        upper = below + found.achieved[:, g]
        axes.fill_between(ranks, below, upper, label=str(escape(group, 24)), **look)
        axes.bar(place, found.target[g], width, aim, **look)
        below, aim = upper, aim + float(found.target[g])
    ticks = [1, *[k for k in (5, 10, 20, 50, 100) if 1 < k <= ranks[-1]]]
    axes.set_xticks([*ticks, place], [*map(str, ticks), "target"])
    axes.set(ylim=(0, 1), xlim=(1, ranks[-1] + 3 * width))
    axes.set_title(str(escape(found.run, 28)), fontsize=10)
    axes.grid(visible=False)

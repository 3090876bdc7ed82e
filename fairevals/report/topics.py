"""Differences to the baseline topic by topic, and the topics that drive them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairevals.report.style import COLOURS, HATCHES, styled
from fairevals.statistics import Paired
from fairevals.typing import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Driver:
    """A topic on which a run and the baseline differ much."""

    topic: str
    value: float
    baseline: float
    gain: float
    """Above 0 the run is better, whatever the direction."""
    without: float
    """The mean gain over the other topics; NaN where there are none."""


def drivers(paired: Paired, most: int = 8) -> tuple[Driver, ...]:
    """The topics with the largest differences, and what the mean gain would be without each."""
    gains = paired.gains
    place = {topic: t for t, topic in enumerate(paired.topics)}
    found = []
    for topic, gain in paired.driving(most):
        t = place[topic]
        rest = np.delete(gains, t)
        found.append(
            Driver(
                topic,
                float(paired.values[t]),
                float(paired.baseline_values[t]),
                gain,
                math.fsum(rest) / rest.size if rest.size else math.nan,
            )
        )
    return tuple(found)


def tipping(gains: Floats) -> int | None:
    """How few topics, left out, would turn the sign of the mean gain (or make it 0); None where it is 0 already.

    >>> tipping(np.array([0.5, 0.1, -0.2, -0.1])), tipping(np.array([0.1, 0.1])), tipping(np.zeros(3))
    (1, 2, None)
    """
    total = math.fsum(gains)
    if not gains.size or total == 0:
        return None
    pulling = sorted((float(gain) for gain in gains * math.copysign(1.0, total)), reverse=True)
    rest, count = abs(total), 0
    for gain in pulling:
        if rest <= 1e-12 * abs(total) or gain <= 0:
            break
        rest, count = rest - gain, count + 1
    return count


def gains_figure(paired: Paired, label: str, baseline: str) -> Figure:
    """A bar a topic, the largest gain first; bars that go up are topics on which the run is better."""
    from matplotlib.figure import Figure

    order = np.argsort(-paired.gains, kind="stable")
    gains = paired.gains[order]
    with styled():
        figure = Figure(figsize=(9.0, 3.2))
        axes = figure.add_subplot()
        place = np.arange(gains.size)
        for better, colour, hatch, name in (
            (True, COLOURS[0], HATCHES[0], "better"),
            (False, COLOURS[1], HATCHES[1], "worse"),
        ):
            mine = gains > 0 if better else gains < 0
            axes.bar(
                place[mine],
                gains[mine],
                0.8,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0.3,
                label=name,
            )
        axes.axhline(0, color="#000000", linewidth=0.8)
        if gains.size:
            axes.axhline(float(gains.mean()), color="#000000", linestyle=":", linewidth=1.2, label="mean")
        axes.set_xticks([])
        axes.set(
            xlabel=f"topics, the largest gain first ({gains.size})",
            ylabel=f"gain in {paired.measure}",
            title=f"{label} against {baseline}",
        )
        axes.grid(axis="x", visible=False)
        axes.legend(frameon=False)
    return figure

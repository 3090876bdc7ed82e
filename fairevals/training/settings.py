"""Settings of a training run: one flat record, the same words in Python, on the command line and in saved policies."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairevals.errors import UsageError, escape
from fairevals.measures.merit import MERITS
from fairevals.training.data import Dataset
from fairevals.training.disparities import DISPARITIES, TIES
from fairevals.training.estimators import ESTIMATORS
from fairevals.training.models import MODELS
from fairevals.training.utilities import parse_utility


def _setting(
    default: Any, meaning: str, least: float = -math.inf, most: float = math.inf, of: Any = ()
) -> Any:
    return field(
        default=default, metadata={"meaning": meaning, "least": least, "most": most, "of": tuple(of)}
    )


@dataclass(frozen=True)
class Settings:
    """Everything that decides what is learned from given data. Unused by methods that have no use for it.

    >>> Settings.for_method("bandit-rank", seed=3).model
    'highway'
    """

    method: str
    lam: float = _setting(0.0, "weight of the disparity", 0)
    seed: int = _setting(0, "seed of everything drawn", 0)
    model: str = _setting("linear", "scoring model", of=MODELS)
    estimator: str = _setting("exact", "gradient estimator", of=ESTIMATORS)
    utility: str = _setting("nDCG", "utility to maximise, such as nDCG, ERR@10 or 0.5*AP+0.5*RR")
    disparity: str = _setting("D_group", "disparity to minimise", of=DISPARITIES)
    merit: str = _setting("identity", "merit of a grade", of=MERITS)
    ties: str = _setting("both", "which violations of D_group count between groups of equal merit", of=TIES)
    entropy: float = _setting(0.0, "weight γ of the entropy of softmax(scores)", 0)
    samples: int = _setting(10, "rankings drawn a topic and step", 1, 10**6)
    epochs: int = _setting(20, "passes over the training data", 0, 10**7)
    batch: int = _setting(1, "topics a step; 0: all", 0)
    patience: int = _setting(5, "epochs without gain on validation data before training ends; 0: never", 0)
    lr: float = _setting(0.001, "learning rate of Adam", 0)
    final_lr: float = _setting(1.0, "share of the learning rate that is left at the last step", 0, 1)
    beta1: float = _setting(0.9, "Adam's decay of the mean of gradients", 0, 1)
    beta2: float = _setting(0.999, "Adam's decay of the mean of their squares", 0, 1)
    weight_decay: float = _setting(0.0, "L2 penalty", 0)
    dropout: float = _setting(0.0, "share of units dropped in training", 0, 0.99)
    standardise: bool = _setting(True, "standardise features as in the training data")
    relative: bool = _setting(False, "first take features less their mean over the own group in the topic")
    reward: str = _setting("0.5*AP+0.5*nDCG@10", "BanditRank's reward")
    hybrid: float = _setting(0.5, "BanditRank's γ: weight of the reward beside the cross entropy", 0, 1)
    epsilon: float = _setting(0.1, "BanditRank's ε: share of draws that are uniform", 0, 1)
    most: int = _setting(40, "BanditRank's M′: documents drawn at most", 1)
    alpha: float = _setting(1.0, "ridge penalty", 0)
    protected: str = _setting("", "DELTR's protected group; default: the one with the fewest documents")

    def __post_init__(self) -> None:
        if self.method not in DEFAULTS:
            raise UsageError(f"unknown method {escape(self.method)!r}; known are {', '.join(DEFAULTS)}")
        for f in self.fields():
            value, rules = getattr(self, f.name), f.metadata
            kind = {"float": (int, float), "int": int, "str": str, "bool": bool}[str(f.type)]
            right = isinstance(value, kind) and (isinstance(value, bool) == (f.type == "bool"))  # type: ignore[arg-type]
            if right and f.type in ("float", "int"):
                right = math.isfinite(value) and rules["least"] <= value <= rules["most"]
            if not right or (rules["of"] and value not in rules["of"]):
                wanted = f" (one of {', '.join(rules['of'])})" if rules["of"] else f" ({rules['meaning']})"
                name = "lambda" if f.name == "lam" else f.name
                raise UsageError(f"{self.method}: {name}={escape(repr(value))} is not possible{wanted}")
        parse_utility(self.utility)
        parse_utility(self.reward)

    @classmethod
    def fields(cls) -> list[dataclasses.Field[Any]]:
        """All settings but the method, with their meanings."""
        return [f for f in dataclasses.fields(cls) if f.name != "method"]

    @classmethod
    def for_method(cls, method: str, **given: Any) -> Settings:
        """The method's own defaults, and over them what is given."""
        known = {f.name for f in cls.fields()}
        for name in given:
            if name not in known:
                raise UsageError(f"unknown setting {escape(name)!r}; known are {', '.join(sorted(known))}")
        return cls(method, **{**DEFAULTS.get(method, {}), **given})

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Settings:
        """From what `record` gave."""
        named = {("lam" if key == "lambda" else key): value for key, value in record.items()}
        return cls.for_method(str(named.pop("method", "")), **named)

    def record(self) -> dict[str, Any]:
        """As a plain dict, for JSON; λ goes by its own name."""
        return {("lambda" if key == "lam" else key): value for key, value in dataclasses.asdict(self).items()}

    def prepared(self, data: Dataset) -> Dataset:
        """The data as the model is to see them, but for the standardisation."""
        return data.relative_to_groups() if self.relative else data

    def with_(self, **changes: Any) -> Settings:
        """The same with some changes."""
        return replace(self, **changes)


BANDIT = {
    "model": "highway",
    "beta1": 0.0,
    "weight_decay": 1e-6,
    "dropout": 0.4,
    "lr": 7e-5,
    "samples": 30,
    "epochs": 30,
}
"""As in the paper's experiment on MQ2007."""

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "pg-rank": {},
    "fair-pg-rank": {"lam": 1.0},
    "bandit-rank": BANDIT,
    "ridge": {},
    "listnet": {},
    "lp": {"lam": 1.0},
    "deltr": {"lam": 1.0},
}
"""The methods, and where their defaults differ from those of `Settings`."""

FAIR = ("fair-pg-rank", "lp", "deltr")
"""Methods that have a λ."""

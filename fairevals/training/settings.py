"""Settings of training: one flat record, with the same names in Python, on the command line and in saved policies."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fairevals.errors import UsageError, escape, unknown
from fairevals.measures import parse_measure
from fairevals.measures.disparity import DGroup
from fairevals.training.data import Dataset
from fairevals.training.estimators import ESTIMATORS
from fairevals.training.models import MODEL_NAMES, TREES
from fairevals.training.objectives import DISPARITY, UTILITY, Objective, parse_utility

METHODS: Mapping[str, str] = {
    "pg-rank": "policy gradient for utility (Singh & Joachims 2019)",
    "fair-pg-rank": "policy gradient for utility minus λ times disparity of exposure (Singh & Joachims 2019)",
    "bandit-rank": "contextual bandit with a reward, combined with cross entropy (BanditRank)",
    "ridge": "ridge regression of the grades",
    "listnet": "cross entropy of top-one probabilities (Cao et al. 2007)",
    "lp": "linear programme of fair exposure on ridge's predictions (Singh & Joachims 2018)",
    "deltr": "ListNet with a penalty on disparate top-one exposure (Zehlike & Castillo 2020)",
}

WITH_LAMBDA = ("fair-pg-rank", "lp", "deltr")
"""Methods that have a λ."""

WITH_BOUND = ("fair-pg-rank",)
"""Methods that can maximise utility under a largest disparity."""

ADAM = ("epochs", "batch", "lr", "final_lr", "beta1", "beta2", "dropout", "keep")
"""Settings of Adam alone: one that is not the default of `Settings` chooses Adam."""

_EPOCHS, _LEAST_STEPS = 40, 2000
"""Of Adam by default: passes over the training data, and the steps that are taken on few topics too."""

_SLOWEST = 0.999999
"""Decay of Adam's means: at 1 they would never leave 0."""

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    **{method: {"lam": 1.0} for method in WITH_LAMBDA},
    "bandit-rank": {
        "model": "highway",
        "beta1": 0.0,
        "weight_decay": 1e-6,
        "dropout": 0.4,
        "lr": 7e-5,
        "samples": 30,
        "epochs": 30,
        "batch": 1,
    },
}
"""Where a method's defaults differ from those of `Settings`; BanditRank's are from the paper's run on MQ2007."""


def _setting(
    default: Any, meaning: str, low: float = -math.inf, high: float = math.inf, choices: Any = ()
) -> Any:
    metadata = {"meaning": meaning, "low": low, "high": high, "choices": tuple(choices)}
    return field(default=default, metadata=metadata)


def _expected(f: dataclasses.Field[Any]) -> str:
    """What values a setting may have."""
    low, high, choices = (f.metadata[key] for key in ("low", "high", "choices"))
    if choices:
        return f"one of {', '.join(choices)}"
    kinds = {"float": "a number", "int": "a whole number", "str": "a text", "bool": "True or False"}
    kind = kinds[str(f.type).removesuffix(" | None")]
    if math.isfinite(high):
        return f"{kind} from {low:,.10g} to {high:,.10g}"
    return f"{kind} of at least {low:,.10g}" if math.isfinite(low) else kind


@dataclass(frozen=True)
class Settings:
    """Everything besides the data that decides what is learned. A method ignores settings it has no use for.

    >>> Settings.for_method("bandit-rank", seed=3).model
    'highway'
    """

    method: str
    lam: float = _setting(0.0, "weight of the disparity", 0, 1e9)
    max_disparity: float | None = _setting(
        None, "in place of a weight: the largest mean disparity on the training data", 0
    )
    seed: int = _setting(0, "seed of all random numbers", 0)
    model: str = _setting("linear", "scoring model; trees: boosted by LightGBM", choices=MODEL_NAMES)
    estimator: str = _setting("exact", "gradient estimator", choices=ESTIMATORS)
    utility: str = _setting(UTILITY, "utility to maximise: a measure, or a sum such as 0.5*AP+0.5*RR")
    disparity: str = _setting(DISPARITY, "measure whose cost is minimised; the attribute is named group")
    entropy: float = _setting(0.0, "weight γ of the entropy of softmax(scores)", 0)
    samples: int = _setting(10, "rankings drawn per topic and step", 1, 10**6)
    solver: str = _setting(
        "auto",
        "lbfgs: all topics at once, for exact gradients; adam: batches of topics; auto: lbfgs, unless rankings are "
        "drawn, the data is large, or a setting of Adam is not its default",
        choices=("auto", "lbfgs", "adam"),
    )
    iterations: int = _setting(200, "most steps of L-BFGS in each stage of smoothing", 1, 10**6)
    epochs: int | None = _setting(
        None,
        "Adam's passes over the training data; default: 40, or more where these are fewer than 2000 steps",
        0,
        10**7,
    )
    batch: int = _setting(32, "Adam's topics per step; 0: all, so that an epoch is one step", 0)
    patience: int = _setting(
        5, "Adam's epochs without gain on validation data before training ends; 0: never", 0
    )
    keep: str = _setting(
        "best",
        "which of Adam's epochs is kept: the best, or the last unless there is validation data",
        choices=("best", "last"),
    )
    lr: float = _setting(0.01, "learning rate of Adam", 0)
    final_lr: float = _setting(1.0, "learning rate of the last step, as a share of the first", 0, 1)
    beta1: float = _setting(0.9, "Adam's decay of the mean of gradients", 0, _SLOWEST)
    beta2: float = _setting(0.999, "Adam's decay of the mean of squared gradients", 0, _SLOWEST)
    weight_decay: float | None = _setting(
        None, "L2 penalty; default: chosen on validation data or by folds, else 1e-6 (0 for Adam)", 0
    )
    temperature: float | None = _setting(
        None, "what scores are divided by; default: chosen on validation data or by folds, else 1", 1e-9, 1e9
    )
    folds: int | None = _setting(
        None,
        "folds over topics by which both are chosen without validation data; 0: none; default: 5 under a largest "
        "disparity or with more features than topics, else 0",
        0,
    )
    dropout: float = _setting(0.0, "share of units dropped in training", 0, 0.99)
    standardise: bool = _setting(True, "standardise the features, by the training data")
    center_by_group: bool = _setting(
        False, "first subtract from each feature its mean over the document's group in the topic"
    )
    trees: int = _setting(200, "trees: their largest number", 0, 10**5)
    leaves: int = _setting(7, "trees: leaves of each", 2, 1000)
    shrinkage: float = _setting(0.1, "trees: learning rate", 0, 10)
    reward: str = _setting("0.5*AP+0.5*nDCG(dcg='exp-log2')@10", "BanditRank's reward")
    reward_weight: float = _setting(0.5, "BanditRank's γ: weight of the reward against cross entropy", 0, 1)
    epsilon: float = _setting(0.1, "BanditRank's ε: share of uniform draws", 0, 1)
    max_drawn: int = _setting(40, "BanditRank's M′: the largest number of documents drawn", 1)
    alpha: float = _setting(1.0, "ridge penalty", 0)
    protected: str = _setting("", "DELTR's protected group; default: the one with the fewest documents")

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise unknown("method", self.method, METHODS)
        for f in self.fields():
            value, rules, of_type = getattr(self, f.name), f.metadata, str(f.type).removesuffix(" | None")
            if value is None and of_type != str(f.type):
                continue
            kind = {"float": (int, float), "int": int, "str": str, "bool": bool}[of_type]
            valid = isinstance(value, kind) and (isinstance(value, bool) == (of_type == "bool"))  # type: ignore[arg-type]
            if valid and of_type in ("float", "int"):
                valid = abs(value) <= sys.float_info.max and rules["low"] <= value <= rules["high"]
            if not valid or (rules["choices"] and value not in rules["choices"]):
                name = "lambda" if f.name == "lam" else f.name
                wrong = f"{self.method}: {name}={escape(repr(value))} is not possible"
                raise UsageError(f"{wrong} ({rules['meaning']}); expected {_expected(f)}")
        if self.max_disparity is not None:
            if self.method not in WITH_BOUND:
                raise UsageError(f"{self.method} takes no max_disparity; {', '.join(WITH_BOUND)} does")
            if self.solver == "adam" or self.estimator != "exact" or self.dropout:
                raise UsageError("max_disparity needs the solver lbfgs, exact gradients and no dropout")
        if self.folds == 1:
            raise UsageError("folds=1 leaves no topic to train on; expected 0 for none, or at least 2")
        parse_utility(self.reward)
        objective = self.objective  # raises if a measure cannot be trained for
        if self.max_disparity is not None:
            if self.model == TREES:
                raise UsageError(
                    "trees cannot be trained under a largest disparity; give weights of it instead"
                )
            if objective.disparity.direction.word == "higher":
                raise UsageError(
                    f"max_disparity is the largest value of a measure that is best at 0, but a higher "
                    f"{objective.disparity} is better; give a weight λ instead"
                )
            if objective.rewards:
                measure = objective.rewards[0].measure
                raise UsageError(
                    f"max_disparity needs functions of exposure, which {measure} is not; give a weight λ instead"
                )
        if self.method == "lp":
            self.group_disparity  # noqa: B018

    @classmethod
    def fields(cls) -> list[dataclasses.Field[Any]]:
        """All settings but the method, with their meanings."""
        return [f for f in dataclasses.fields(cls) if f.name != "method"]

    @classmethod
    def for_method(cls, method: str, **given: Any) -> Settings:
        """The method's defaults, overridden by the given settings."""
        known = {f.name for f in cls.fields()}
        for name in given.keys() - known:
            raise unknown("setting", name, sorted(known))
        return cls(method, **{**DEFAULTS.get(method, {}), **given})

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Settings:
        """From the result of `record`."""
        named = {("lam" if key == "lambda" else key): value for key, value in record.items()}
        return cls.for_method(str(named.pop("method", "")), **named)

    def record(self) -> dict[str, Any]:
        """As a plain dict, for JSON; λ is named `lambda`."""
        return {("lambda" if key == "lam" else key): value for key, value in dataclasses.asdict(self).items()}

    @property
    def policy_name(self) -> str:
        """The name of the policy that is trained with them; see `TrainedPolicy.name`."""
        lam = f"-lambda{self.lam:g}" if self.method in WITH_LAMBDA else ""
        if self.max_disparity is not None:
            lam = f"-max{self.max_disparity:g}"
        return f"{self.method}{lam}-seed{self.seed}"

    def passes(self, topics: int) -> int:
        """The largest number of passes over so many training topics: epochs, or trees.

        Few topics make few steps in an epoch, and Adam moves a parameter by at most the learning rate in each.

        >>> settings = Settings.for_method("pg-rank")
        >>> settings.passes(100), settings.passes(20_000)
        (500, 40)
        """
        if self.model == TREES:
            return self.trees
        steps = math.ceil(topics / (self.batch or topics or 1)) or 1
        return max(_EPOCHS, math.ceil(_LEAST_STEPS / steps)) if self.epochs is None else self.epochs

    @property
    def objective(self) -> Objective:
        """The objective of PG-Rank and Fair-PG-Rank."""
        lam = self.lam if self.method != "pg-rank" else 0.0
        if self.max_disparity is not None:
            lam = 1.0  # so that the disparity is part of it
        return Objective.of(self.utility, lam, self.disparity, self.entropy)

    @property
    def group_disparity(self) -> DGroup:
        """The disparity of `lp`: D_group as the linear programme defines it, with any merit."""
        disparity = parse_measure(self.disparity)
        if isinstance(disparity, DGroup) and disparity == DGroup(attr=disparity.attr, merit=disparity.merit):
            return disparity
        raise UsageError(f"lp minimises {DISPARITY} with any merit, not {disparity}")

    def prepared(self, data: Dataset) -> Dataset:
        """The data as the model sees them before standardisation."""
        return data.centered_by_group() if self.center_by_group else data

"""The methods of training as estimators in scikit-learn's conventions, for arrays and data frames.

Each is `fairevals train` with the same settings: the same features, grades, topics and groups give the same policy,
bit for bit. scikit-learn itself is not needed, but its `clone`, `Pipeline` and `GridSearchCV` work with them.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from fairevals.errors import RemarkWarning, UsageError, escape, names, pluralize, type_of, unknown
from fairevals.measures import Measure, parse_measure
from fairevals.policy.sampling import Seed, checked_seed, whole_seed
from fairevals.training.data import ATTRIBUTE, names_of_labels
from fairevals.training.methods import train_policy
from fairevals.training.objectives import parse_utility
from fairevals.training.policies import TrainedPolicy, read_policy, save_policy
from fairevals.training.rows import Rows
from fairevals.training.scoring import evaluate_policy
from fairevals.training.settings import DEFAULTS, Settings
from fairevals.typing import Floats, Ints

_MEASURES = ("utility", "disparity", "reward")
"""The settings that name measures, or weighted sums of them."""
_BANDIT = DEFAULTS["bandit-rank"]
_LAM: float = DEFAULTS["fair-pg-rank"]["lam"]


class NotFittedError(UsageError, AttributeError):
    """An estimator was used before `fit`; a ValueError and an AttributeError, as scikit-learn's error is.

    Where scikit-learn is loaded, what is raised is its `NotFittedError` too.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _not_fitted, self.args  # the class that is raised has no name by which it could be unpickled


def _not_fitted(message: str) -> NotFittedError:
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    if theirs is None:
        return NotFittedError(message)
    both: type[NotFittedError] = type("NotFittedError", (NotFittedError, theirs), {"__module__": __name__})
    return both(message)


@dataclass(kw_only=True, eq=False, repr=False)
class Learner:
    """What all estimators share. Parameters are stored as given, and checked by `fit`.

    In all methods, X (rows, features) is an array, a data frame or a scipy sparse matrix, with one row for each
    document of each topic; its values are taken as float32. `qid` is the topic of each row, in any order; without it
    all rows are one topic. `groups` is the group of each row, or an array or data frame of memberships (rows, groups).
    """

    method: ClassVar[str]
    """The method of `fairevals train`."""

    standardise: bool = Settings.standardise
    center_by_group: bool = Settings.center_by_group
    seed: Seed = Settings.seed

    def fit(self, X: Any, y: Any, qid: Any = None, groups: Any = None, valid: Any = None) -> Self:
        """Train the policy.

        Args:
            X: features (rows, features).
            y: the grade of each row, at least 0.
            qid: the topic of each row.
            groups: the group of each row, or memberships (rows, groups).
            valid: validation data (X, y[, qid[, groups]]): the model of the best epoch is kept, and training ends after
                `patience` epochs without gain. `Ridge` and `ExposureLP` have no epochs and ignore it.
        """
        if y is None:
            raise UsageError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        settings = self._settings()
        attribute = self._attribute(settings)
        rows = Rows.of(X, y, qid, groups, attribute=attribute)
        if len(rows.data.groups) == 1:
            found = f"one group only, {names(rows.data.groups)}, in {pluralize(len(rows.order), 'sample')}"
            raise UsageError(f"groups has {found}; expected at least two groups")
        held_out = None
        if valid is not None:
            if not isinstance(valid, tuple | list) or not 2 <= len(valid) <= 4:
                raise UsageError(f"valid is {type_of(valid)}; expected a tuple (X, y[, qid[, groups]])")
            try:
                others = Rows.of(*valid, attribute=attribute, known_groups=rows.data.groups)
                self._check_features(others, rows.data.features.shape[1], rows.feature_names)
                held_out = others.data
            except UsageError as error:
                raise UsageError(f"valid: {error}") from None
        policy = train_policy(settings, rows.data, held_out)
        policy.warn()
        self._keep(replace(policy, feature_names=rows.feature_names))
        return self

    def predict(self, X: Any, qid: Any = None, groups: Any = None) -> Floats:
        """The score of each row: its log-weight, or for `ExposureLP` its predicted grade.

        Topics and groups change it only with `center_by_group`.
        """
        policy, rows = self._rows(X, None, qid, groups)
        return rows.in_given_order(policy.predict(rows.data))

    def sample(
        self,
        X: Any,
        qid: Any = None,
        groups: Any = None,
        n: int = 1,
        rng: Seed = 0,
    ) -> dict[Any, Ints]:
        """Draw n rankings of each topic: {topic: (n, documents)}, the rows of X from the first rank to the last.

        The topics are the values of `qid` in the order of their first rows; without `qid` the only one is 0. `rng` is a
        seed, from which the topic number t draws with `default_rng([seed, t])`; a Generator; or None for other rankings
        every time. `ExposureLP` needs groups.
        """
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise UsageError(f"n={escape(repr(n))}; expected a whole number of at least 1")
        policy, rows = self._rows(X, None, qid, groups)
        drawn = policy.sample(rows.data, int(n), checked_seed(rng))
        of_topics = zip(rows.labels, rows.data.starts.tolist(), drawn, strict=False)
        return {label: rows.order[start + rankings] for label, start, rankings in of_topics}

    def score(self, X: Any, y: Any, qid: Any = None, groups: Any = None) -> float:
        """The expected utility of the policy: the mean over the topics on which it is defined. Higher is better.

        The utility is what the policy is trained for (`utility`, for `BanditRank` its `reward`), without disparity, and
        nDCG with gain 2^g − 1 for methods that have none. Functions of exposure are exact; other measures are the means
        over 1000 rankings drawn with a fixed seed. `fairevals score` gives the same number.
        """
        if y is None:
            raise UsageError("score requires y to be passed, but the target y is None")
        policy, rows = self._rows(X, y, qid, groups)
        if qid is None and policy.topics != 1:
            had = "may have had several" if policy.topics is None else f"had {policy.topics}"
            raise UsageError(
                f"score needs qid, the topic of each row, because fit {had} topics. In GridSearchCV and "
                "Pipeline, enable scikit-learn's metadata routing. Give np.zeros(len(X)) if all rows are one topic"
            )
        settings, many = policy.settings, pluralize(len(rows.data), "topic")
        parts = parse_utility(settings.reward if self.method == "bandit-rank" else settings.utility)
        scores = evaluate_policy(policy, rows.data, [str(part.measure) for part in parts])
        means = [scores.mean(0, m) for m in range(len(parts))]
        for part, mean in zip(parts, means, strict=True):
            if math.isnan(mean.value):
                raise UsageError(f"{part.measure} is undefined on all of {many}: is any document relevant?")
            if mean.undefined:
                text = f"{part.measure} is undefined on {mean.undefined} of {many}: not in its mean"
                warnings.warn(RemarkWarning(text), stacklevel=2)
        return math.fsum(part.weight * mean.value for part, mean in zip(parts, means, strict=True))

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the policy into a folder, as arrays and JSON; `load_policy` and `fairevals predict` read it.

        An earlier policy there is replaced; a folder with anything else is refused, unless `force` is given.
        """
        save_policy(self._fitted(), folder, force=force)

    @classmethod
    def parameters(cls) -> dict[str, Any]:
        """The parameters of the constructor, and their defaults."""
        return {name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; `deep` is for scikit-learn, and changes nothing."""
        return {name: getattr(self, name) for name in self.parameters()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and return the estimator."""
        for name in params.keys() - self.parameters().keys():
            raise unknown(f"parameter of {type(self).__name__}", name, self.parameters())
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        given = ((name, getattr(self, name), default) for name, default in self.parameters().items())
        # Compared as texts, because arrays and other wrong values need not compare with ==.
        changed = [f"{name}={value!r}" for name, value, default in given if repr(value) != repr(default)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "policy_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags  # only scikit-learn itself calls this

        target = TargetTags(required=True, positive_only=True)
        return Tags(estimator_type="ranker", target_tags=target, input_tags=InputTags(sparse=True))

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's meta-estimators pass on if its metadata routing is enabled: qid and groups, if given."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        for method in ("fit", "predict", "score"):
            for name in ("qid", "groups"):
                getattr(request, method).add_request(param=name, alias=True)
        request.score.add_request(param="sample_weight", alias=None)  # Pipeline always passes one on, or None
        return request

    def _settings(self) -> Settings:
        """The parameters as settings of the method."""
        given: dict[str, Any] = {}
        types = {f.name: f.type for f in Settings.fields()}
        for name, value in self.get_params().items():
            value = value.item() if isinstance(value, np.generic) else value
            if name in _MEASURES and not isinstance(value, str):
                value = str(parse_measure(value))
            elif name == "protected" and isinstance(value, int | float):
                (value,) = names_of_labels([value])  # as the labels in groups are named
            elif types[name].startswith("float") and type(value) is int and abs(value) <= sys.float_info.max:
                value = float(value)
            given[name] = value
        given["seed"] = whole_seed(self.seed)
        return Settings.for_method(self.method, **given)

    def _attribute(self, settings: Settings) -> str:
        """The name of the attribute that `groups` gives: the one that the measures name."""
        measures: list[Measure] = (
            [parse_measure(settings.disparity)] if "disparity" in self.parameters() else []
        )
        for name in ("utility", "reward"):
            if name in self.parameters():
                measures += [part.measure for part in parse_utility(getattr(settings, name))]
        return next((name for measure in measures for name in measure.attributes_used()), ATTRIBUTE)

    def _keep(self, policy: TrainedPolicy) -> None:
        """Set the fitted attributes, and remove those of an earlier fit."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.policy_, self.n_features_in_ = policy, policy.model.features
        if policy.topics is not None:
            self.n_topics_ = policy.topics
        if policy.feature_names:
            self.feature_names_in_ = np.array(policy.feature_names, dtype=object)
        if policy.curve:
            self.n_iter_ = policy.curve[-1].number

    def _fitted(self) -> TrainedPolicy:
        if not hasattr(self, "policy_"):
            raise _not_fitted(f"this {type(self).__name__} is not fitted yet: call fit(X, y, qid=…) first")
        return self.policy_

    def _rows(self, X: Any, y: Any, qid: Any, groups: Any) -> tuple[TrainedPolicy, Rows]:
        """The policy, and new data for it."""
        policy = self._fitted()
        rows = Rows.of(X, y, qid, groups, attribute=self._attribute(policy.settings))
        self._check_features(rows, policy.model.features, policy.feature_names)
        return policy, rows

    def _check_features(self, rows: Rows, count: int, expected: tuple[str, ...]) -> None:
        found = rows.feature_names
        if expected and found and found != expected:
            advice = "X[estimator.feature_names_in_] selects them"
            raise UsageError(
                f"X has the columns {names(found)}; expected those of fit, {names(expected)}, in this order: {advice}"
            )
        width = rows.data.features.shape[1]
        if width != count:
            raise UsageError(
                f"X has {width} features, but {type(self).__name__} is expecting {count} features as input, as in fit"
            )


@dataclass(kw_only=True, eq=False, repr=False)
class GradientLearner(Learner):
    """An estimator that is trained step by step, with Adam."""

    model: str = Settings.model
    epochs: int | None = Settings.epochs
    batch: int = Settings.batch
    patience: int = Settings.patience
    keep: str = Settings.keep
    lr: float = Settings.lr
    final_lr: float = Settings.final_lr
    beta1: float = Settings.beta1
    beta2: float = Settings.beta2
    weight_decay: float | None = Settings.weight_decay
    temperature: float | None = Settings.temperature
    dropout: float = Settings.dropout
    trees: int = Settings.trees
    leaves: int = Settings.leaves
    shrinkage: float = Settings.shrinkage


@dataclass(kw_only=True, eq=False, repr=False)
class FullBatchLearner(GradientLearner):
    """An estimator that L-BFGS can train, on all topics at once."""

    solver: str = Settings.solver
    iterations: int = Settings.iterations
    folds: int | None = Settings.folds


@dataclass(kw_only=True, eq=False, repr=False)
class PGRank(FullBatchLearner):
    """PG-Rank: the Plackett-Luce policy with the highest expected utility, by policy gradient.

    Singh & Joachims: Policy learning for fairness in ranking. NeurIPS 2019.

    >>> X, y, qid = [[0.0], [1.0], [0.5], [2.0]], [0, 1, 0, 1], [1, 1, 2, 2]
    >>> pg_rank = PGRank(epochs=200, lr=0.1).fit(X, y, qid=qid)
    >>> round(pg_rank.score(X, y, qid=qid), 2)
    1.0
    >>> {topic: rankings.tolist() for topic, rankings in pg_rank.sample(X, qid=qid, n=2).items()}
    {1: [[1, 0], [1, 0]], 2: [[3, 2], [3, 2]]}
    """

    method: ClassVar[str] = "pg-rank"

    utility: str | Measure = Settings.utility
    entropy: float = Settings.entropy
    estimator: str = Settings.estimator
    samples: int = Settings.samples


@dataclass(kw_only=True, eq=False, repr=False)
class FairPGRank(PGRank):
    """Fair-PG-Rank: the Plackett-Luce policy that maximises utility minus λ times disparity, by policy gradient.

    Singh & Joachims: Policy learning for fairness in ranking. NeurIPS 2019. The attribute that the disparity names is
    the one that `groups` gives; `D_ind` needs no groups.

    >>> from fairevals.measures.disparity import DGroup
    >>> X, y, qid, sex = [[0.0], [1.0], [0.5], [2.0]], [4, 5, 4, 5], [1, 1, 2, 2], ["f", "m", "f", "m"]
    >>> fair = FairPGRank(disparity=DGroup(attr="SEX"), lam=100.0, epochs=200, lr=0.1)
    >>> scores = fair.fit(X, y, qid=qid, groups=sex).predict(X)
    >>> bool(np.exp(scores[1]) / np.exp(scores[:2]).sum() < 0.8)  # row 1 merits more exposure than row 0, but not all
    True
    """

    method: ClassVar[str] = "fair-pg-rank"

    disparity: str | Measure = Settings.disparity
    lam: float = _LAM
    max_disparity: float | None = Settings.max_disparity


@dataclass(kw_only=True, eq=False, repr=False)
class BanditRank(GradientLearner):
    """BanditRank: a contextual bandit that combines a reward with cross entropy.

    Gampa & Fujita: BanditRank. PAKDD 2021. The log-weights are the logarithms of the affinities.

    >>> X, y = [[0.0], [1.0], [2.0]], [0, 0, 1]
    >>> bandit = BanditRank(model="linear", epochs=100, lr=0.1).fit(X, y)
    >>> int(bandit.predict(X).argmax())
    2
    """

    method: ClassVar[str] = "bandit-rank"

    model: str = _BANDIT["model"]
    epochs: int | None = _BANDIT["epochs"]
    batch: int = _BANDIT["batch"]
    lr: float = _BANDIT["lr"]
    beta1: float = _BANDIT["beta1"]
    weight_decay: float | None = _BANDIT["weight_decay"]
    dropout: float = _BANDIT["dropout"]
    samples: int = _BANDIT["samples"]
    reward: str | Measure = Settings.reward
    reward_weight: float = Settings.reward_weight
    epsilon: float = Settings.epsilon
    max_drawn: int = Settings.max_drawn


@dataclass(kw_only=True, eq=False, repr=False)
class ListNet(FullBatchLearner):
    """ListNet: cross entropy of top-one probabilities.

    Cao et al.: Learning to rank: from pairwise approach to listwise approach. ICML 2007.

    >>> ListNet(epochs=2).fit([[0.0], [1.0]], [0, 1]).n_iter_
    2
    """

    method: ClassVar[str] = "listnet"


@dataclass(kw_only=True, eq=False, repr=False)
class DELTR(FullBatchLearner):
    """DELTR: ListNet with a penalty on disparate top-one exposure. `fit` needs groups.

    Zehlike & Castillo: Reducing disparate exposure in ranking: a learning to rank approach. WWW 2020.

    >>> DELTR(protected="f").fit([[0.0], [1.0]], [1, 2], groups=["f", "m"]).policy_.groups
    ('f', 'm')
    """

    method: ClassVar[str] = "deltr"

    lam: float = _LAM
    protected: str | float = Settings.protected


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(Learner):
    """Ridge regression of the grades (Hoerl & Kennard 1970). The predicted grades serve as log-weights.

    >>> Ridge(alpha=0.0).fit([[0.0], [1.0], [2.0]], [1, 3, 5]).predict([[3.0]]).round(4)
    array([7.])
    """

    method: ClassVar[str] = "ridge"

    alpha: float = Settings.alpha


@dataclass(kw_only=True, eq=False, repr=False)
class ExposureLP(Ridge):
    """The linear programme of fair exposure on ridge's predictions: a mixture of rankings, no Plackett-Luce policy.

    Singh & Joachims: Fairness of exposure in rankings. KDD 2018. `fit`, `sample` and `score` need groups. `disparity`
    is D_group with any merit; the attribute that it names is the one that `groups` gives.

    >>> X, y, groups = [[0.0], [1.0]], [1.0, 1.1], ["f", "m"]
    >>> programme = ExposureLP(lam=9.0, alpha=0.0).fit(X, y, groups=groups)
    >>> programme.sample(X, groups=groups, n=100)[0][:, 0].mean()  # how often row 1 is first
    np.float64(0.6)
    """

    method: ClassVar[str] = "lp"

    disparity: str | Measure = Settings.disparity
    lam: float = _LAM


LEARNERS = {cls.method: cls for cls in (PGRank, FairPGRank, BanditRank, ListNet, DELTR, Ridge, ExposureLP)}
"""The estimator of each method of `fairevals train`."""


def _document(cls: type[Learner]) -> None:
    """Append the meanings of the parameters, which `Settings` has, and the fitted attributes to a docstring."""
    meanings = {f.name: f.metadata["meaning"] for f in Settings.fields()}
    # What None means is the default of most methods only, and the default of this one follows.
    meanings |= {
        f.name: meanings[f.name].replace("; default: ", "; None: ")
        for f in Settings.fields()
        if f.default is None
    }
    meanings["seed"] += "; a whole number, a numpy Generator, or None for fresh ones at every `fit`"
    lines = [
        f"        {name}: {meanings[name]} (default {value!r})." for name, value in cls.parameters().items()
    ]
    attributes = {
        "policy_": "the policy, a `fairevals.training.TrainedPolicy`.",
        "n_features_in_": "the number of features.",
        "feature_names_in_": "their names, if X was a data frame whose columns have names.",
        "n_topics_": "the number of topics; a policy that an earlier version saved has none.",
        "n_iter_": "the number of epochs.",
    }
    if not issubclass(cls, GradientLearner):
        del attributes["n_iter_"]
    listed = [f"        {name}: {meaning}" for name, meaning in attributes.items()]
    parts = [(cls.__doc__ or "").rstrip(), "", "    Args:", *lines, "", "    Attributes:", *listed, "    "]
    cls.__doc__ = "\n".join(parts)


for _cls in LEARNERS.values():
    _document(_cls)


def load_policy(folder: str | os.PathLike[str]) -> Learner:
    """Read a policy that `save` or `fairevals train` wrote, as a fitted estimator of its method.

    Nothing in the files is executed.
    """
    policy = read_policy(folder)
    cls = LEARNERS[policy.settings.method]
    learner = cls(**{name: getattr(policy.settings, name) for name in cls.parameters()})
    learner._keep(policy)
    return learner

"""Trained policies: model, standardisation and settings; saved as arrays and JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_expit

from fairevals.errors import FairevalsError, InputError, Place, RemarkWarning, UsageError, escape
from fairevals.io.folders import Marked
from fairevals.io.letor import MOST_FEATURES
from fairevals.io.streams import written, written_bytes
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.policy.sampling import Randomness, topic_generators
from fairevals.reranking.lp import RankingMixture, fair_mixture
from fairevals.training.data import Dataset, Standardiser, groups_needed
from fairevals.training.models import ROWS, Model, make_model
from fairevals.training.settings import Settings
from fairevals.training.trees import Trees
from fairevals.typing import Floats, Ints

POLICY_FORMAT = "fairevals policy 2"
SLACK = 0.02
"""A disparity may be above its bound by this share of it."""
LEAST_BOUND = 1e-5
"""A smaller bound has the slack of this one."""


def is_within(disparity: float, bound: float) -> bool:
    """Whether a disparity is within a bound, up to the slack.

    >>> is_within(0.0101, 0.01), is_within(0.0103, 0.01)
    (True, False)
    """
    return disparity <= bound + SLACK * max(bound, LEAST_BOUND)


class Epoch(NamedTuple):
    """A point of the learning curve: the state after an epoch, or before training (epoch 0)."""

    number: int
    loss: float
    """The mean over topics, each before the step taken for it; NaN before the first epoch."""
    valid: float | None
    """The mean quality on the validation data."""
    best: bool
    """Whether no earlier epoch was as good; always true without validation data."""


@dataclass(frozen=True)
class Candidate:
    """A weight decay and its best temperature, and what they reach on data that was not trained on.

    Under a bound of the disparity `value` is the utility, else the objective; `disparity` is given under a bound only.
    """

    weight_decay: float
    bounded: bool
    """Whether it was trained within the bound, or for utility alone."""
    temperature: float
    value: float
    disparity: float | None = None


@dataclass(frozen=True)
class FitRecord:
    """How a policy was trained: what was chosen, by what, and whether it is better than the untrained policy."""

    solver: str = ""
    """lbfgs or adam; empty for methods that need neither."""
    improved: bool = True
    """Whether it is better than the untrained policy on the data that decide: validation data, else training data."""
    weight_decay: float = 0.0
    temperature: float = 1.0
    """What the scores of the model are divided by."""
    chosen_on: str = ""
    """What weight decay and temperature were chosen on, such as "5 folds"; empty if nothing was chosen."""
    candidates: tuple[Candidate, ...] = ()
    """What was chosen from."""
    multiplier: float | None = None
    """Under a bound of the disparity: the λ at which this would be the solution too."""
    disparity: float | None = None
    """Under a bound: the mean disparity on the training data, at the temperature."""

    def record(self) -> dict[str, Any]:
        """As a plain dict, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def of_record(cls, record: object) -> FitRecord:
        """From the result of `record`; a `UsageError` if it is none."""
        try:
            assert isinstance(record, dict)  # noqa: S101 -- an AssertionError is reported below
            candidates = tuple(Candidate(**each) for each in record["candidates"])
            read = cls(**{**record, "candidates": candidates})
            numbers = [read.weight_decay, read.temperature]
            optional = [read.multiplier, read.disparity]
            for each in candidates:
                numbers += [each.weight_decay, each.temperature, each.value]
                optional.append(each.disparity)
            numbers += [number for number in optional if number is not None]
            fits = all(isinstance(number, int | float) and math.isfinite(number) for number in numbers)
            fits = fits and isinstance(read.improved, bool) and read.temperature > 0
            if not fits or not all(isinstance(text, str) for text in (read.solver, read.chosen_on)):
                raise ValueError
        except (AssertionError, KeyError, TypeError, ValueError):
            raise UsageError(f"fit {escape(repr(record), 200)} is no record of training") from None
        return read


@dataclass(frozen=True)
class TrainedPolicy:
    """The result of training: scores of documents, which are the log-weights of a Plackett-Luce policy.

    For `lp` the scores are predicted grades, and the policy is a mixture of rankings, given by `mixtures`.
    """

    settings: Settings
    model: Model
    standardiser: Standardiser
    groups: tuple[str, ...] = ()
    curve: tuple[Epoch, ...] = ()
    feature_names: tuple[str, ...] = ()
    """The names of the features, where the training data had any."""
    topics: int | None = None
    """The number of training topics; None for a policy from a folder that does not say it."""
    fit: FitRecord = FitRecord()

    @property
    def name(self) -> str:
        """Method, λ where the method has one, and seed: unique in a sweep, and valid as a file name."""
        return self.settings.policy_name

    def warn(self) -> None:
        """Give a `RemarkWarning` if it is no better than the untrained policy, or misses its bound of the disparity."""
        bound, reached = self.settings.max_disparity, self.fit.disparity
        if bound is not None and reached is not None and not is_within(reached, bound):
            text = f"the disparity on the training data is {reached:.4g}, above the largest of {bound:g}"
            warnings.warn(RemarkWarning(f"{self.name}: {text}"), stacklevel=3)
        if not self.fit.improved:
            text = "no better than the untrained policy by what it was trained for"
            advice = "another λ, model or learning rate may help"
            warnings.warn(RemarkWarning(f"{self.name}: {text}; {advice}"), stacklevel=3)

    @property
    def is_mixture(self) -> bool:
        """Whether it is a mixture of rankings rather than a Plackett-Luce policy."""
        return self.settings.method == "lp"

    def predict(self, data: Dataset) -> Floats:
        """The score of each document: its log-weight, or for `lp` its predicted grade."""
        if data.features.shape[1] != self.model.features:
            raise UsageError(
                f"{data.name} has {data.features.shape[1]} features and the model {self.model.features}; "
                "use Dataset.with_features"
            )
        features = self.settings.prepared(data).features
        parts = (features[row : row + ROWS] for row in range(0, len(features), ROWS))
        self.model.train(False)
        scores = np.concatenate([self.model.scores(self.standardiser(part)) for part in parts])
        self.model.forget()
        if self.settings.method == "bandit-rank":
            scores = log_expit(scores)
        return scores if self.fit.temperature == 1.0 else scores / self.fit.temperature

    def mixtures(self, data: Dataset) -> Iterator[RankingMixture]:
        """For `lp`: the mixture of rankings of each topic."""
        if data.membership is None:
            raise groups_needed("lp")
        grades, merits = self.predict(data), self.settings.group_disparity.merit
        for rows in data.slices:
            yield fair_mixture(grades[rows], data.membership[rows], self.settings.lam, merits)

    def sample(self, data: Dataset, samples: int, rng: Randomness = 0) -> list[Ints]:
        """Rankings (samples, rank) of each topic; documents are numbered within their topic, from 0.

        From a seed, topic t draws with `default_rng([seed, t])`.
        """
        rngs = topic_generators(rng, len(data))
        if self.is_mixture:
            mixtures = zip(self.mixtures(data), rngs, strict=True)
            return [mixture.sample(samples, rng) for mixture, rng in mixtures]
        topics = zip(np.split(self.predict(data), data.starts[1:-1]), rngs, strict=True)
        return [PlackettLuce(scores).sample(samples, rng=rng) for scores, rng in topics]


def save_policy(policy: TrainedPolicy, folder: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write `model.npz` and `config.json` into a folder, each completely or not at all.

    Trees are written as `trees.txt`, a text model of LightGBM. A folder with other content than an earlier policy is
    refused, unless `force` is given.
    """
    Marked("policy", "config.json", POLICY_FORMAT).check(_path(folder), force=force)
    arrays = {f"model.{name}": value for name, value in policy.model.parameters.items()}
    arrays |= {f"standardiser.{name}": getattr(policy.standardiser, name) for name in ("mean", "scale")}
    # Not np.savez, which writes the time: the same policy gives the same bytes.
    with written_bytes(Path(folder, "model.npz")) as file, zipfile.ZipFile(file, "w") as archive:
        for name, value in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.lib.format.write_array(member, np.asarray(value, dtype=np.float64), allow_pickle=False)
    if isinstance(policy.model, Trees):
        with written(Path(folder, "trees.txt")) as text:
            text.write(policy.model.text)
    settings = {"settings": policy.settings.record()}
    names = {"feature_names": policy.feature_names} if policy.feature_names else {}
    config = {
        "format": POLICY_FORMAT,
        "features": policy.model.features,
        **names,
        **({} if policy.topics is None else {"topics": policy.topics}),
        "groups": policy.groups,
        **settings,
        "fit": policy.fit.record(),
    }
    with written(Path(folder, "config.json")) as text:
        text.write(json.dumps(config, indent=2, ensure_ascii=False) + "\n")


def read_policy(folder: str | os.PathLike[str]) -> TrainedPolicy:
    """Read a policy that `save_policy` wrote.

    Nothing in the files is executed: the configuration is JSON whose entries are checked one by one, and only the
    arrays that the model needs are read, if they are float64 and have the right shapes. Trees are read by
    `fairevals.training.trees`, not by LightGBM.
    """
    path = _path(folder)
    settings, features, groups, names, topics, fit = _read_config(path / "config.json")
    model = make_model(settings.model, features, settings.dropout)
    shapes = {f"model.{name}": value.shape for name, value in model.parameters.items()}
    shapes |= {f"standardiser.{name}": (features,) for name in ("mean", "scale")}
    arrays = _read_arrays(path / "model.npz", shapes)
    model.parameters = {name: arrays[f"model.{name}"] for name in model.parameters}
    if isinstance(model, Trees):
        model.read(path / "trees.txt")
    standardiser = Standardiser(arrays["standardiser.mean"], arrays["standardiser.scale"])
    return TrainedPolicy(settings, model, standardiser, groups, (), names, topics, fit)


def _path(folder: object) -> Path:
    if not isinstance(folder, (str, os.PathLike)):
        raise UsageError(f"the folder of a policy is {escape(repr(folder))}; expected a path")
    return Path(folder)


def _read_config(
    path: Path,
) -> tuple[Settings, int, tuple[str, ...], tuple[str, ...], int | None, FitRecord]:
    """Settings, number of features, names of groups and of features, number of training topics, record of training."""
    place = Place(str(path))
    try:
        with path.open("rb") as file:
            config = json.loads(file.read(1 << 20))
    except (OSError, ValueError, RecursionError) as error:
        reason = f"cannot be read ({error.strerror})" if isinstance(error, OSError) else "not JSON"
        raise InputError(place, reason, "the configuration of a trained policy") from None
    version = config.get("format") if isinstance(config, dict) else None
    if version == "fairevals policy 1":
        raise InputError(place, "a policy of version 0.1, whose settings differ", "train it again")
    if version != POLICY_FORMAT:
        raise InputError(place, "no configuration of a trained policy", f'"format": "{POLICY_FORMAT}"')
    features, groups, settings = (config.get(key) for key in ("features", "groups", "settings"))
    if type(features) is not int or not 0 <= features <= MOST_FEATURES:
        raise InputError(place, f"features {escape(repr(features))}", f"0 to {MOST_FEATURES}")
    topics = config.get("topics")  # folders that were written before it was kept have none
    if topics is not None and (type(topics) is not int or topics < 1):
        raise InputError(place, f"topics {escape(repr(topics))}", "a whole number of at least 1")
    names = config.get("feature_names", [])
    for key, value in (("groups", groups), ("feature_names", names)):
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise InputError(place, f"{key} {escape(repr(value))}", "a list of names")
    if names and len(names) != features:
        raise InputError(place, f"{len(names)} feature_names", f"{features}, one for each feature")
    if not isinstance(settings, dict):
        raise InputError(place, "no settings", "an object")
    try:
        fit = FitRecord.of_record(config["fit"]) if "fit" in config else FitRecord()
        return Settings.of_record(settings), features, tuple(groups), tuple(names), topics, fit
    except FairevalsError as error:
        raise InputError(place, str(error)) from None


def _read_arrays(path: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, Floats]:
    """The arrays of these names and shapes, read without numpy's loader, which supports pickles."""
    place, arrays = Place(str(path)), {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name, shape in shapes.items():
                with archive.open(f"{name}.npy") as member:
                    if np.lib.format.read_magic(member) != (1, 0):
                        raise ValueError("an unknown version of the npy format")
                    found, fortran, dtype = np.lib.format.read_array_header_1_0(member)
                    if found != shape or fortran or dtype != np.dtype("<f8"):
                        what = f"{escape(str(dtype))} of shape {escape(str(found))}"
                        raise InputError(place, f"array {name} is {what}", f"float64 of shape {shape}")
                    count = int(np.prod(shape, dtype=np.int64))
                    values = np.frombuffer(member.read(8 * count), dtype="<f8")
                    if values.size != count or not np.isfinite(values).all():
                        raise InputError(place, f"array {name} is truncated or not finite", "finite numbers")
                    arrays[name] = values.reshape(shape).copy()
    except InputError:
        raise
    except (KeyError, OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        reason = f"no readable arrays ({escape(str(error), 200)})"
        raise InputError(place, reason, "the arrays of the model in config.json") from None
    return arrays

"""Trained policies: model, standardisation and settings; saved as arrays and JSON."""

import json
import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit

from fairevals.errors import FairevalsError, InputError, Place, UsageError, escape
from fairevals.io.folders import Marked
from fairevals.io.letor import MOST_FEATURES
from fairevals.io.streams import written, written_bytes
from fairevals.policy.plackett_luce import PlackettLuce
from fairevals.policy.sampling import Randomness, topic_generators
from fairevals.reranking.lp import Mixture, fair_mixture
from fairevals.training.data import Dataset, Standardiser, groups_needed
from fairevals.training.models import ROWS, Model, make_model
from fairevals.training.settings import Settings
from fairevals.typing import Floats, Ints

FORMAT = "fairevals policy 2"


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

    @property
    def name(self) -> str:
        """Method, λ where the method has one, and seed: unique in a sweep, and valid as a file name."""
        return self.settings.policy_name

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
        return log_expit(scores) if self.settings.method == "bandit-rank" else scores

    def mixtures(self, data: Dataset) -> Iterator[Mixture]:
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

    A folder with other content than an earlier policy is refused, unless `force` is given.
    """
    Marked("policy", "config.json", FORMAT).check(_path(folder), force=force)
    arrays = {f"model.{name}": value for name, value in policy.model.parameters.items()}
    arrays |= {f"standardiser.{name}": getattr(policy.standardiser, name) for name in ("mean", "scale")}
    # Not np.savez, which writes the time: the same policy gives the same bytes.
    with written_bytes(Path(folder, "model.npz")) as file, zipfile.ZipFile(file, "w") as archive:
        for name, value in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w") as member:
                np.lib.format.write_array(member, np.asarray(value, dtype=np.float64), allow_pickle=False)
    settings = {"settings": policy.settings.record()}
    names = {"feature_names": policy.feature_names} if policy.feature_names else {}
    config = {
        "format": FORMAT,
        "features": policy.model.features,
        **names,
        **({} if policy.topics is None else {"topics": policy.topics}),
        "groups": policy.groups,
        **settings,
    }
    with written(Path(folder, "config.json")) as text:
        text.write(json.dumps(config, indent=2, ensure_ascii=False) + "\n")


def read_policy(folder: str | os.PathLike[str]) -> TrainedPolicy:
    """Read a policy that `save_policy` wrote.

    Nothing in the files is executed: the configuration is JSON whose entries are checked one by one, and only the
    arrays that the model needs are read, if they are float64 and have the right shapes.
    """
    path = _path(folder)
    settings, features, groups, names, topics = _read_config(path / "config.json")
    model = make_model(settings.model, features, settings.dropout)
    shapes = {f"model.{name}": value.shape for name, value in model.parameters.items()}
    shapes |= {f"standardiser.{name}": (features,) for name in ("mean", "scale")}
    arrays = _read_arrays(path / "model.npz", shapes)
    model.parameters = {name: arrays[f"model.{name}"] for name in model.parameters}
    standardiser = Standardiser(arrays["standardiser.mean"], arrays["standardiser.scale"])
    return TrainedPolicy(settings, model, standardiser, groups, feature_names=names, topics=topics)


def _path(folder: object) -> Path:
    if not isinstance(folder, (str, os.PathLike)):
        raise UsageError(f"the folder of a policy is {escape(repr(folder))}; expected a path")
    return Path(folder)


def _read_config(path: Path) -> tuple[Settings, int, tuple[str, ...], tuple[str, ...], int | None]:
    """Settings, number of features, names of groups and of features, number of training topics."""
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
    if version != FORMAT:
        raise InputError(place, "no configuration of a trained policy", f'"format": "{FORMAT}"')
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
        return Settings.of_record(settings), features, tuple(groups), tuple(names), topics
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

"""Boosting: trees that follow the gradient of any loss of this package, by LightGBM.

Each tree is fitted to g = ∂loss/∂score of all training documents, with h = |g| + 0.001 in the place of the second
derivative, both scaled so that the mean square of g is 1. A leaf then moves the scores of its documents by at most the
learning rate, and by that where all of them should move in the same direction. A tree sees a random part of the
documents and of the features, which makes the sum of trees vary less (Friedman: Stochastic gradient boosting. 2002).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairevals.errors import Place, UsageError, pluralize
from fairevals.training.data import Batch, Dataset
from fairevals.training.losses import PolicyGradient
from fairevals.training.policies import Epoch, FitRecord
from fairevals.training.selection import TEMPERATURES
from fairevals.training.settings import Settings
from fairevals.training.trees import NO_TREES, Trees
from fairevals.typing import Floats, Ints

if TYPE_CHECKING:
    from fairevals.training.methods import Loss

HELD_OUT = 5
"""Without validation data, one of so many training topics is held out."""
CHECKED = 5
"""After so many trees, validation data is looked at."""
PATIENT_TREES = 50
"""After so many trees without gain on validation data, boosting ends."""
_HESSIAN = 1e-3
_LEAF_SIZE = 20
_DOCUMENTS, _FEATURES = 0.7, 0.3
"""The shares of documents and features that a tree sees."""
_LEAST_DOCUMENTS, _LEAST_FEATURES = 200, 10
"""It sees all documents if there are fewer, and at least so many features."""


def fit_trees(
    settings: Settings,
    loss: Loss,
    train: Dataset,
    valid: Dataset | None = None,
    on_epoch: Callable[[Epoch, Any], object] | None = None,
) -> tuple[Trees, tuple[Epoch, ...], FitRecord]:
    """Boost trees for the loss: as many as are best on `valid`, at the temperature that is best for them there.

    Without validation data, some training topics with relevant documents are held out for this choice, and then as many
    trees are boosted on all topics. A single such topic decides itself. The learning curve is that of the choice. A
    temperature is chosen for policies of Plackett-Luce, unless it is given.
    """
    part, held_out = train, 0
    relevant = np.flatnonzero([train.grades[rows].any() for rows in train.slices])
    if valid is None and relevant.size > 1:
        held_out = max(1, relevant.size // HELD_OUT)
        held = np.random.default_rng([settings.seed, 3]).permutation(relevant)[:held_out]
        valid, part = train.split(np.sort(held)), train.split(np.setdiff1d(np.arange(len(train)), held))
    boosted = _Boosting(settings, loss, part, train if valid is None else valid)
    curve, count, record = boosted.run(on_epoch)
    if valid is None:
        record = replace(record, chosen_on="training data")
    elif held_out:
        record = replace(record, chosen_on=f"{pluralize(held_out, 'training topic')} held out")
        boosted = _Boosting(settings, loss, train)
        for _ in range(count):
            boosted.add_tree()
    model = Trees(train.features.shape[1])
    model.load(boosted.text(count), Place("LightGBM's model"))
    return model, curve, record


class _Padded(NamedTuple):
    """Some topics as a batch without features, and the rows of its documents."""

    batch: Batch
    rows: Ints

    def scores(self, scores: Floats) -> Floats:
        padded = np.full(self.batch.present.shape, -np.inf)
        padded[self.batch.present] = scores[self.rows]
        return padded


def _padded(data: Dataset) -> Iterator[_Padded]:
    """All topics, those of similar length together; losses look at no features."""
    order, size = np.argsort(data.lengths, kind="stable"), 256
    bare = replace(data, features=data.features[:, :0], standardiser=None)
    for first in range(0, len(order), size):
        topics = order[first : first + size].tolist()
        rows = np.concatenate([np.arange(data.starts[t], data.starts[t + 1]) for t in topics])
        yield _Padded(bare.batch(topics), rows)


class _Boosting:
    """Trees boosted on a dataset, and their scores on another."""

    def __init__(self, settings: Settings, loss: Loss, data: Dataset, valid: Dataset | None = None) -> None:
        try:
            import lightgbm
        except ImportError:
            raise UsageError("trees need LightGBM: pip install 'fairevals[trees]'") from None
        if not len(data):
            raise UsageError("there is no topic to train on")
        self.loss, self.rng = loss, np.random.default_rng([settings.seed, 2])
        self.settings, self.parts, self.topics = settings, list(_padded(data)), len(data)
        self.valid_parts = list(_padded(valid)) if valid is not None else []
        self.valid_topics = len(valid) if valid is not None else 0
        self.mean_loss = math.nan
        parameters = {
            "objective": "none",
            "learning_rate": settings.shrinkage,
            "num_leaves": settings.leaves,
            # A leaf of a small data set may be small, too.
            "min_data_in_leaf": min(_LEAF_SIZE, max(1, len(data.grades) // 50)),
            "min_sum_hessian_in_leaf": 0.0,
            "feature_pre_filter": False,
            "bagging_fraction": _DOCUMENTS if len(data.grades) >= _LEAST_DOCUMENTS else 1.0,
            "bagging_freq": 1,
            "feature_fraction": min(1.0, max(_FEATURES, _LEAST_FEATURES / max(1, data.features.shape[1]))),
            "seed": settings.seed % 2**31,
            # The same seed gives the same trees, however many processors there are.
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
        }
        self.can_split = bool(np.any(data.features != data.features[0]))  # else LightGBM raises an error
        known = lightgbm.Dataset(data.features, params=parameters)
        self.booster = lightgbm.Booster(parameters, known)
        if valid is not None:
            held = lightgbm.Dataset(valid.features, reference=known, params=parameters)
            self.booster.add_valid(held, "valid")

    def run(
        self, on_epoch: Callable[[Epoch, Any], object] | None
    ) -> tuple[tuple[Epoch, ...], int, FitRecord]:
        """Add trees until the quality on the validation data no longer rises; the learning curve, and the best."""
        scores = np.zeros(sum(part.rows.size for part in self.valid_parts))
        curve: list[Epoch] = []
        highest, best, best_scores = -math.inf, 0, scores
        for count in range(self.settings.trees + 1):
            if count and (not self.add_tree() or count - best > PATIENT_TREES):
                break
            if count % CHECKED and count < self.settings.trees:
                continue
            scores = self._valid_scores() if count else scores
            quality = self._quality(scores, 1.0)
            curve.append(Epoch(count, self.mean_loss, quality, quality > highest))
            if quality > highest:
                highest, best, best_scores = quality, count, scores
            if on_epoch is not None:
                on_epoch(curve[-1], self)
        temperature = self.settings.temperature or 1.0
        if best and self.settings.temperature is None and isinstance(self.loss, PolicyGradient):
            temperature = max(TEMPERATURES, key=lambda t: self._quality(best_scores, t))
        record = FitRecord("lightgbm", best > 0, temperature=temperature, chosen_on="validation data")
        return tuple(curve), best, record

    def _quality(self, scores: Floats, temperature: float) -> float:
        """The mean quality of scores of the validation data."""
        parts = ((part.scores(scores / temperature), part.batch) for part in self.valid_parts)
        return math.fsum(float(self.loss.quality(*part).sum()) for part in parts) / self.valid_topics

    def _valid_scores(self) -> Floats:
        """The scores of the validation data so far."""
        kept: list[Floats] = []

        def keep(scores: Floats, _: Any) -> tuple[str, float, bool]:
            kept.append(scores)
            return "kept", 0.0, True

        self.booster.eval_valid(keep)
        return kept[0].copy()

    def add_tree(self) -> bool:
        """Fit one more tree; False if no split is possible."""
        return self.can_split and not self.booster.update(fobj=self._slopes)

    def _slopes(self, scores: Floats, _: Any) -> tuple[Floats, Floats]:
        """g and h of all documents."""
        slope, total = np.zeros_like(scores), 0.0
        for part in self.parts:
            values, gradient = self.loss.gradient(part.scores(scores), part.batch, self.rng)
            slope[part.rows] = gradient[part.batch.present]
            total += float(values.sum())
        self.mean_loss = total / self.topics
        size = math.sqrt(float(np.mean(slope**2)))
        if not math.isfinite(size):
            raise UsageError("training diverged: a number became infinite; try a smaller shrinkage")
        slope = slope / (size or 1.0)
        return slope, np.abs(slope) + _HESSIAN

    def text(self, trees: int) -> str:
        """The first trees in LightGBM's text format."""
        return self.booster.model_to_string(num_iteration=trees) if trees else NO_TREES

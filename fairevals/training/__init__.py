"""Reference policies: learning data in, trained ranking policies out.

The gradient is computed with respect to the *scores* of a topic, so estimators, objectives and models vary
independently, and a scorer from any library plugs in (`fairevals.training.models`).

>>> from fairevals.training import Dataset, sweep, evaluate_policy
>>> data = Dataset.of([[[0.0], [1.0], [2.0]]] * 3, [[0, 1, 2]] * 3, [[0, 1, 0]] * 3)
>>> fair, = sweep("fair-pg-rank", data, lambdas=[0.5], epochs=5, lr=0.1)
>>> [m.measure for m in evaluate_policy(fair, data, samples=10)]
["nDCG(dcg='exp-log2')", "nDCG(dcg='exp-log2')@10", 'ERR', 'D_ind', 'D_group']
"""

from __future__ import annotations

from fairevals.training.data import (
    Batch,
    Dataset,
    Standardiser,
    groups_from_feature,
    groups_from_file,
    load_dataset,
)
from fairevals.training.evaluation import Measured, evaluate_policy
from fairevals.training.fit import Epoch, Fitted, Loss, fit
from fairevals.training.methods import METHODS, make_loss, sweep, train_policy
from fairevals.training.models import MODELS, Model, Scorer, make_model
from fairevals.training.objectives import Objective
from fairevals.training.optimise import Adam, Learner
from fairevals.training.outputs import SummaryRow, run_lines, summary_of, write_results
from fairevals.training.pg_rank import PolicyGradient
from fairevals.training.policies import TrainedPolicy, load_policy, save_policy
from fairevals.training.settings import Settings
from fairevals.training.utilities import parse_utility

__all__ = [
    "METHODS",
    "MODELS",
    "Adam",
    "Batch",
    "Dataset",
    "Epoch",
    "Fitted",
    "Learner",
    "Loss",
    "Measured",
    "Model",
    "Objective",
    "PolicyGradient",
    "Scorer",
    "Settings",
    "Standardiser",
    "SummaryRow",
    "TrainedPolicy",
    "evaluate_policy",
    "fit",
    "groups_from_feature",
    "groups_from_file",
    "load_dataset",
    "load_policy",
    "make_loss",
    "make_model",
    "parse_utility",
    "run_lines",
    "save_policy",
    "summary_of",
    "sweep",
    "train_policy",
    "write_results",
]

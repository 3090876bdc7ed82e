"""Reference policies: learning data in, trained ranking policies out.

The gradient is computed with respect to the *scores* of a topic, so estimators, objectives and models vary
independently, and a scorer from any library can be used (`fairevals.training.models`). Objectives are made of the
package's measures, and policies are evaluated like any other run.

>>> from fairevals.training import Dataset, sweep, evaluate_policy
>>> data = Dataset.of([[[0.0], [1.0], [2.0]]] * 3, [[0, 1, 2]] * 3, [[0, 1, 0]] * 3)
>>> fair, = sweep("fair-pg-rank", data, lambdas=[0.5], epochs=5, lr=0.1)
>>> [str(measure) for measure in evaluate_policy(fair, data, samples=10).measures][3:]
['D_ind', "D_group(attr='group')", 'D_cross', 'EE_L']
"""

from fairevals.training.data import Dataset, Standardiser, groups_from_feature, groups_from_file, load_dataset
from fairevals.training.losses import PolicyGradient
from fairevals.training.methods import fit, train_policy
from fairevals.training.models import make_model
from fairevals.training.objectives import Objective
from fairevals.training.outputs import write_results
from fairevals.training.policies import Epoch, TrainedPolicy, read_policy, save_policy
from fairevals.training.scoring import evaluate_policy, make_run
from fairevals.training.settings import METHODS, Settings
from fairevals.training.summary import summarise
from fairevals.training.sweeps import sweep, sweep_settings, train_all, with_baselines
from fairevals.training.tasks import with_task

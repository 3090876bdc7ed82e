"""The evaluator: every command and the Python API get their values from here."""

from fairevals.collection.collection import Collection, load_collection
from fairevals.evaluation.pieces import SharingExecutor, score_piece
from fairevals.evaluation.plan import Plan, load, open_run, with_components
from fairevals.evaluation.scores import Scores
from fairevals.evaluation.scoring import score

"""A run directory, and what the commands do with it: fit, train, tune, calibrate, predict, evaluate, report,
export.

Each of these does what the command of its name does, and returns what that command prints as JSON.
"""

from shortlist.runs.calibrate import calibrate
from shortlist.runs.config import RunConfig, load_config, parse_config
from shortlist.runs.evaluate import evaluate
from shortlist.runs.export import export
from shortlist.runs.fit import fit
from shortlist.runs.predict import predict
from shortlist.runs.predictor import Predictor
from shortlist.runs.prepare import Prepared, prepare, try_out
from shortlist.runs.ray_engine import Ray
from shortlist.runs.report import report
from shortlist.runs.run import Run, load_run
from shortlist.runs.train import train, train_prepared
from shortlist.runs.tune import tune

__all__ = [
    "Predictor",
    "Prepared",
    "Ray",
    "Run",
    "RunConfig",
    "calibrate",
    "evaluate",
    "export",
    "fit",
    "load_config",
    "load_run",
    "parse_config",
    "predict",
    "prepare",
    "report",
    "train",
    "train_prepared",
    "try_out",
    "tune",
]

"""Shortlist: PyTorch classifiers that answer with the right set of labels.

Everything below is loaded on first use (PEP 562), so that ``import shortlist`` costs nothing.

>>> import torch, shortlist as sl
>>> sl.functional.smooth_topk_loss(torch.zeros(2, 10), torch.tensor([3, 7]), k=5)
tensor(1.3133)
"""

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

# name -> where it lives; "" marks a submodule of this package
_PUBLIC = {
    "LabelSets": "labels",
    "MissingFileError": "errors",
    "MissingPackageError": "errors",
    "Predictor": "runs",
    "SetClassifier": "estimators",
    "ShortlistError": "errors",
    "ShortlistWarning": "errors",
    "calibrate": "runs.any_model",
    "data": "",
    "estimators": "",
    "functional": "",
    "imcl": "",
    "kernels": "",
    "labels": "",
    "load_run": "runs",
    "loops": "",
    "metrics": "",
    "models": "",
    "nn": "",
    "objectives": "",
    "reports": "",
    "runs": "",
    "scenes": "",
    "sets": "",
    "training": "",
}

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'shortlist' has no attribute {name!r}; it has {', '.join(sorted(_PUBLIC))}")
    home = _PUBLIC[name]
    value = getattr(import_module(f"shortlist.{home}"), name) if home else import_module(f"shortlist.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

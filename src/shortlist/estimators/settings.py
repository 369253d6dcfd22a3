"""What a SetClassifier is told, checked before anything takes time."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING

from shortlist.errors import ShortlistError
from shortlist.sets.scaling import check_scaling

if TYPE_CHECKING:
    from shortlist.estimators.set_classifier import SetClassifier


def check_settings(model: SetClassifier) -> None:
    """Those that can be judged without the data."""
    for name in ("objective", "rule"):
        value, options = getattr(model, name), getattr(model, f"{name}_options")
        if not isinstance(value, str) or "=" in value:
            raise ShortlistError(f"{name} must be a name, with its options in {name}_options, got {value!r}")
        if not isinstance(options, dict | None):
            raise ShortlistError(f"{name}_options must be a dict, or None, got {options!r}")
    hidden, share, decay, k = model.hidden, model.calibration, model.weight_decay, model.k
    if model.preprocess not in ("auto", None):
        raise ShortlistError(f'preprocess must be "auto" or None, got {model.preprocess!r}')
    whole = isinstance(hidden, tuple | list) and all(isinstance(size, Integral) for size in hidden)
    if not whole and hidden != "auto":
        raise ShortlistError(
            f'hidden must hold the sizes of the hidden layers, such as (256,), or be "auto", got {hidden!r}'
        )
    if not (isinstance(model.dropout, Real) and 0 <= model.dropout < 1):
        raise ShortlistError(f"dropout must be a share of at least 0 and below 1, got {model.dropout!r}")
    if share != "auto" and not (isinstance(share, Real) and 0 <= share < 1):
        raise ShortlistError(f'calibration must be a share of at least 0 and below 1, or "auto", got {share!r}')
    if model.solver not in ("auto", "lbfgs", "adamw"):
        raise ShortlistError(f'solver must be "auto", "lbfgs" or "adamw", got {model.solver!r}')
    if decay != "auto" and not (isinstance(decay, Real) and 0 <= decay < math.inf):
        raise ShortlistError(f'weight_decay must be a number of at least 0, or "auto", got {decay!r}')
    if k is not None and not (isinstance(k, Real) and k > 0):
        raise ShortlistError(f"k must be a number above 0, or None, got {k!r}")
    if model.scaling is not None:
        check_scaling(model.scaling)

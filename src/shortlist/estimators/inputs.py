"""The forms in which rows come as ``X`` -> prepared features."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, validate_data
from torch import Tensor

from shortlist.data.frame_columns import frame_of, numbers_in, warn_of_order
from shortlist.data.preprocessing import Preprocessor
from shortlist.errors import ShortlistError, ShortlistWarning
from shortlist.labels.label_set_inputs import check_stored
from shortlist.optional import require

if TYPE_CHECKING:
    from shortlist.estimators.set_classifier import SetClassifier

_ROWS = 20  # with fewer, whole numbers differ by chance


def features_of(
    model: SetClassifier, X: Any, reset: bool, weights: Tensor | None = None, more_to_come: bool = False
) -> Any:
    """Prepared features as a float32 tensor that shares memory with ``X`` where it can, or a CSR matrix. With ``reset``
    the classifier learns how columns are prepared; those that are all the same are kept if there is ``more_to_come``.
    """
    check_stored(X, "X")
    if isinstance(X, dict) and not hasattr(X, "tocsr"):  # some of scipy's matrices are dicts
        rows = "a list of dicts, one for each row ([X], where it is a row)"
        raise ShortlistError(f"X is a {type(X).__name__}: give {rows}, or a frame, pandas.DataFrame(X)")
    if hasattr(X, "to_frame") and not hasattr(X, "columns"):
        rows = "X.to_frame() where it is a column, frame.iloc[[0]] where it is a row"
        raise ShortlistError(f"X is a {type(X).__name__}: give a frame, {rows}")
    if isinstance(X, Tensor) and X.layout == torch.strided:
        X = (X.float() if X.dtype == torch.bfloat16 else X).detach().cpu().numpy()
    if model.preprocess == "auto" if reset else hasattr(model, "preprocessor_"):
        X = _prepared(model, X, reset, weights, more_to_come)
    else:
        X = validate_data(model, X, accept_sparse="csr", dtype=np.float32, reset=reset)
        model.__dict__.pop("preprocessor_", None)  # of a fit before this one
    return X if hasattr(X, "tocsr") else torch.from_numpy(np.require(X, requirements=["C", "W"]))


def _prepared(model: SetClassifier, X: Any, reset: bool, weights: Tensor | None, more_to_come: bool) -> Any:
    frame = frame_of(X)
    if frame is None and type(X) is np.ndarray and X.dtype == object and X.ndim == 2:
        frame = objects_as_frame(X, None if reset or model.preprocessor_.kind != "frame" else model)
    X = X if frame is None else frame
    if frame is not None and (reset or model.preprocessor_.kind == "frame"):
        if reset:
            validate_data(model, X, reset=True, skip_check_array=True)
            warn_of_ids(X)
        check_array(X.isna().to_numpy(), dtype=None)  # some rows and columns; dates and numbers make no array
    elif reset or not _is_valid_array(model, X):
        types = [np.float64, np.float32]
        finite = True if hasattr(X, "tocsr") else "allow-nan"
        X = validate_data(model, X, accept_sparse="csr", dtype=types, reset=reset, ensure_all_finite=finite)
    if reset:
        counts = None if weights is None else weights.numpy()
        model.preprocessor_ = Preprocessor.fit(X, weights=counts, keep_constant=more_to_come)
    return model.preprocessor_.transform(X)


def _is_valid_array(model: SetClassifier, X: Any) -> bool:
    """Whether ``validate_data`` would find nothing to say or to do: on one row it takes longer than the model."""
    if type(X) is not np.ndarray or X.dtype.char not in "fd" or X.ndim != 2 or hasattr(model, "feature_names_in_"):
        return False
    return len(X) > 0 and X.shape[1] == model.n_features_in_ and not np.isinf(X).any()


def check_rows(X: Any, y: Any) -> None:
    """An error where ``X`` is texts alone, and a warning where rows of ``X`` and ``y`` are in different orders."""
    if (getattr(X, "ndim", 0) == 1 or isinstance(X, list | tuple)) and isinstance(next(iter(X), None), str):
        raise ShortlistError("X holds texts alone: give a frame with a column of them, pandas.DataFrame({'text': X})")
    warn_of_order(X, y, "y", stacklevel=5)


def objects_as_frame(X: NDArray[Any], fitted: Any = None) -> Any:
    """A matrix of objects, some of them texts, with the columns of the frame that an estimator was ``fitted`` on; an
    error where it was fitted on none. None where all are numbers."""
    try:
        X.astype(np.float64)
    except ValueError as error:
        if fitted is None:
            said = "X is an array that holds texts: give a frame, pandas.DataFrame(X)"
            raise ShortlistError(f"{said} ({error})") from None
        validate_data(fitted, X, reset=False, skip_check_array=True)  # as many columns; without names, which is told
        return require("pandas").DataFrame(X, columns=fitted.feature_names_in_).infer_objects()
    except TypeError:  # neither: scikit-learn says so
        return None
    return None


def warn_of_ids(frame: Any) -> None:
    """Of columns that number the rows, or some of those that there were before a split."""
    rows = len(frame)
    numbers = numbers_in(frame) if rows >= _ROWS else {}
    whole = [(name, numbers[name]) for name in frame if name in numbers and numbers[name].dtype.kind in "iu"]
    found = [name for name, cells in whole if rows > np.ptp(cells) / 2 and len(np.unique(cells)) == rows]
    if found:
        said = f"a feature numbers the rows: {', '.join(map(repr, found))}: if it is an id, leave it out"
        warnings.warn(f"{said}, X.drop(columns={found!r})", ShortlistWarning, stacklevel=5)

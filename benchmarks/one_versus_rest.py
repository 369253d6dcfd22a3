"""``SetClassifier()`` beside LibMultiLabel's one-versus-rest linear models, by precision at 1, on bibtex.

    python -m benchmarks.one_versus_rest

needs the shared data folder and the package libmultilabel, which Shortlist does not install: its linear part wants
liblinear-multicore beside it, and no torch of its own (``pip install --no-deps libmultilabel liblinear-multicore``).
Without it, scikit-learn's LinearSVC trains what LibMultiLabel asks of liblinear: an L2-regularised squared hinge (dual)
for every label. Both are tried on the features as they are and on tf-idf, LibMultiLabel's own preprocessing; seconds
are those of one processor.
"""

import argparse
import importlib
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.defaults import load
from shortlist.estimators import SetClassifier

Scores = NDArray[Any]
Train = Callable[[Any, Any, Any], Scores]  # features and labels to train on, new features -> their scores


def libmultilabel(options: str) -> Train | None:
    """One-versus-rest as LibMultiLabel trains it with these options of liblinear; None where it is not installed."""
    # its trees of labels, which are not used here, would want one more package
    sys.modules.setdefault("sparsekmeans", types.SimpleNamespace(LloydKmeans=None, ElkanKmeans=None))  # type: ignore[arg-type]
    try:
        linear = importlib.import_module("libmultilabel.linear")
    except ImportError:
        return None

    def train(features: Any, labels: Any, new: Any) -> Scores:
        model = linear.train_1vsrest(labels, csr_matrix(features, dtype=np.float64), False, options, verbose=False)
        return np.asarray(linear.predict_values(model, csr_matrix(new, dtype=np.float64)))

    return train


def same_formula(features: Any, labels: Any, new: Any) -> Scores:
    return np.asarray(OneVsRestClassifier(LinearSVC(fit_intercept=False)).fit(features, labels).decision_function(new))


def ours(features: Any, labels: Any, new: Any) -> Scores:
    return np.asarray(SetClassifier(random_state=0).fit(features, labels).decision_function(new))


def models() -> Iterator[tuple[str, Train, bool]]:
    """Name, how it is trained, and whether it is also tried on tf-idf."""
    yield "SetClassifier()", ours, False
    for options in ("-s 1", "-s 1 -B 1", "-s 0 -B 1"):
        peer = libmultilabel(options)
        if peer is not None:
            yield f"LibMultiLabel, {options}", peer, True
    if libmultilabel("") is None:
        yield "LinearSVC, LibMultiLabel's formula", same_formula, True


def main() -> None:
    argparse.ArgumentParser(prog="python -m benchmarks.one_versus_rest", description=__doc__).parse_args()
    torch.set_num_threads(1)
    features, labels, new, truth = load("bibtex")
    target, tf_idf = csr_matrix(labels), TfidfTransformer().fit(features)
    print("| model | features | P@1, % | seconds |\n|---|---|---:|---:|", flush=True)
    for name, train, with_tf_idf in models():
        for words in ("as they are", "tf-idf")[: 1 + with_tf_idf]:
            x, x_new = (tf_idf.transform(one) if words == "tf-idf" else one for one in (features, new))
            started = time.process_time()
            with threadpool_limits(1):
                scores = train(x, target, x_new)
            seconds = time.process_time() - started
            right = 100 * truth[np.arange(len(truth)), scores.argmax(1)].mean()
            print(f"| {name} | {words} | {right:.1f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()

"""A run on texts beside one-versus-rest logistic regression on the same vectors: mAP and macro-F1, in percent.

    shortlist train examples/goemotions-tf-idf.yaml --out runs/emotions
    python -m benchmarks.texts runs/emotions [MORE RUNS] [--dev] [--alone]

The run has several labels per text, and calibration rows of its own. On these, each label of each model gets the
threshold of its best F1, and scikit-learn's regression its C of 0.1, 0.3, 1, 3 and 10, by mAP; ``--dev`` shows these
choices and leaves the test rows alone. Otherwise the figures are of the test rows. ``--alone``: only the runs. Seconds
are those of one processor.
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score, precision_recall_curve
from sklearn.multiclass import OneVsRestClassifier

from shortlist.runs import Run

GRID = (0.1, 0.3, 1, 3, 10)
Numbers = NDArray[Any]


def mean_average_precision(truth: Numbers, scores: Numbers) -> float:
    occurs = np.flatnonzero(truth.any(0))
    return 100 * float(np.mean([average_precision_score(truth[:, label], scores[:, label]) for label in occurs]))


def thresholds(truth: Numbers, scores: Numbers) -> Numbers:
    """Of each label, the score from which on F1 is best."""
    found = []
    for label in range(truth.shape[1]):
        precision, recall, values = precision_recall_curve(truth[:, label], scores[:, label])
        f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-12)
        found.append(values[f1[:-1].argmax()])
    return np.array(found)


def judged(held: tuple[Numbers, Numbers], test: tuple[Numbers, Numbers]) -> str:
    """mAP and macro-F1 of the test rows, each given as truth and scores, with thresholds of the held-out rows."""
    truth, scores = test
    macro = 100 * f1_score(truth, scores >= thresholds(*held), average="macro", zero_division=0)
    return f"{mean_average_precision(truth, scores):.2f} | {macro:.2f}"


def compare(path: str, dev: bool, grid: Sequence[float] = GRID) -> None:
    run = Run(path)
    parts = run.parts()
    truth = {part: np.asarray(data.target) for part, data in parts.items()}
    held = truth["calibration"], run.scores(parts["calibration"]).numpy()
    if dev:
        print(f"| {path} | {mean_average_precision(*held):.2f} |", flush=True)
    else:
        print(f"| {path} | {judged(held, (truth['test'], run.scores(parts['test']).numpy()))} |", flush=True)
    fitted = []
    for strength in grid:
        started = time.process_time()
        vectors = _vectors(parts["train"])
        solver = "liblinear" if issparse(vectors) else "lbfgs"  # the quicker one of each
        model = OneVsRestClassifier(LogisticRegression(C=strength, solver=solver, max_iter=300))
        model.fit(vectors, truth["train"])
        seconds = time.process_time() - started
        scores = model.decision_function(_vectors(parts["calibration"]))
        value = mean_average_precision(truth["calibration"], scores)
        fitted.append((value, strength, seconds, model, scores))
        if dev:
            print(f"| one-versus-rest, C = {strength:g}, {seconds:.0f} s | {value:.2f} |", flush=True)
    if fitted and not dev:
        _, strength, seconds, model, scores = max(fitted, key=lambda one: one[0])
        test = truth["test"], model.decision_function(_vectors(parts["test"]))
        print(f"| one-versus-rest, C = {strength:g} | {judged((truth['calibration'], scores), test)} |")


def _vectors(data: Any) -> Any:
    return data.inputs if issparse(data.inputs) else np.asarray(data.inputs)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.texts", description="Runs on texts beside one-versus-rest.")
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--dev", action="store_true", help="mAP of the calibration rows alone")
    parser.add_argument("--alone", action="store_true", help="without one-versus-rest")
    options = parser.parse_args(arguments)
    for path in options.runs:
        compare(path, options.dev, () if options.alone else GRID)


if __name__ == "__main__":
    main()

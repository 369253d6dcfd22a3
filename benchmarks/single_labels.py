"""``SetClassifier()`` on dense data with one class per row, beside its linear model and scikit-learn's classifiers.

python -m benchmarks.single_labels [--sets digits,moons] [--seeds 5]

Data and splits are those of `defaults.py`; of its grid searches the multinomial ones. The support vector machine (RBF,
after a StandardScaler), the forest and the boosted trees are scikit-learn's with their defaults, for information: they
search no settings. A cell is P@1 in percent, its spread over seeds, and the log loss; an SVC has no probabilities. The
last column is the time of ``SetClassifier()``, and of its linear model, beside that of the quicker grid search.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.defaults import Data, is_drawn_anew, load, part_of, peer, resplit
from shortlist.estimators import SetClassifier

SETS = (
    "digits", "iris", "wine", "breast-cancer", "moons", "rings", "clusters", "noisy", "wide", "imbalanced", "plain",
    "heavy-tails", "slips", "correlated", "integers", "unit-rows", "tiny", "micro-array", "needles", "separable",
    "rare-classes", "many-classes", "one-hot", "cifar100",
)  # fmt: skip
MODELS: dict[str, Callable[[int], Any]] = {
    "SetClassifier()": lambda seed: SetClassifier(random_state=seed),
    "hidden=()": lambda seed: SetClassifier(hidden=(), random_state=seed),
    "4 C by 3 folds": lambda _: peer(False, sparse=False, multinomial=True),
    "4 C by 3 folds, scaled": lambda _: peer(True, sparse=False, multinomial=True),
    "SVC": lambda _: make_pipeline(StandardScaler(), SVC()),
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
    "boosted trees": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}
_OURS, _LINEAR, *_GRID = [*MODELS][:4]
HEAD = [
    "| data (similarities kept) | SetClassifier() | hidden=() | 4 C by 3 folds | SVC | forest | boosting | time |",
    "|---|---:|---:|---:|---:|---:|---:|---:|",
]


def measured(model: Any, data: Data) -> tuple[float, float, float, bool]:
    """P@1 in percent, log loss, seconds of one core, and whether it compares with training rows."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data[0], data[1])
        seconds = time.process_time() - started
        right = 100 * float(np.mean(model.predict(data[2]) == data[3]))
        has_chances = hasattr(model, "predict_proba")
        lost = log_loss(data[3], model.predict_proba(data[2]), labels=model.classes_) if has_chances else np.nan
    return right, float(lost), seconds, getattr(model, "hidden_", ()) != ()


def compare(name: str, seeds: int) -> str:
    whole, draw = load(name), resplit if is_drawn_anew(name) else part_of
    slow = name == "cifar100"  # trees and SVC of a hundred classes take minutes
    models = {key: make for key, make in MODELS.items() if not slow or key in (_OURS, _LINEAR, *_GRID)}
    found = {key: np.empty((seeds, 4)) for key in models}
    for seed in range(seeds):
        data = draw(whole, seed, 5000)
        for key, make in models.items():
            found[key][seed] = measured(make(seed), data)
    best = max(_GRID, key=lambda key: found[key][:, 0].mean())
    cells = []
    for key in (_OURS, _LINEAR, best, *[*MODELS][4:]):
        if key not in found:
            cells.append("")
            continue
        right, lost = found[key][:, 0], found[key][:, 1].mean()
        cells.append(f"{right.mean():.1f} ± {right.std():.1f}" + ("" if np.isnan(lost) else f", {lost:.3f}"))
    grid = min(found[key][:, 2].mean() for key in _GRID)
    times = [f"{found[key][:, 2].mean() / grid:.2f}" for key in (_OURS, _LINEAR)]
    kept = int(found[_OURS][:, 3].sum())
    return f"| {name} ({kept} of {seeds}) | {' | '.join(cells)} | {times[0]} ({times[1]}) |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.single_labels", description="SetClassifier() where rows have a class.")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print(*HEAD, sep="\n", flush=True)
    with threadpool_limits(1):
        for name in options.sets.split(","):
            print(compare(name, options.seeds), flush=True)


if __name__ == "__main__":
    main()

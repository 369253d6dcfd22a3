"""``SetClassifier()`` as it is against one-versus-rest logistic regression with a grid search, on real data.

python -m benchmarks.defaults [--sets emotions,scene] [--seeds 5] [--resplit] [--markdown FILE] [--peers FILE]

The peer is OneVsRestClassifier(LogisticRegression) with C of 0.01, 0.1, 1 and 10 by 3-fold cross-validation on the
training rows, on the columns as they are, and, beside it, in a Pipeline after a StandardScaler (without centring for
sparse features). The third peer is stronger than what anyone can write, the best of these, and of single labels also of
multinomial regression, metric by metric by its mean on the test rows. Seconds are those of one processor core, so that
other programs on the machine change little; of the peer's times the shorter one counts.

Each seed trains on a random nine tenths of the training rows, at most 5,000 of them (``--rows``), and is judged on the
test rows; with ``--resplit`` each seed draws as many test rows anew from all rows, and trains on the others. Made-up
sets (``--sets stress``: those of ``stress_sets.py``; ``drawn-0``, ``drawn-1``, ...: ``drawn_sets.py``) have 2,000 test
rows, however few there are to learn from, which each seed draws anew; scikit-learn's own sets are cut in halves. All
others are read from the shared data folder. A difference stands with the standard error of its mean over seeds.
"""

import argparse
import gzip
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, vstack
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.drawn_sets import drawn
from benchmarks.stress_sets import STRESS
from shortlist.estimators import SetClassifier

SHARED = Path(os.environ.get("SHORTLIST_SHARED", Path(__file__).parents[2] / "shared")) / "data"
GRID = [0.01, 0.1, 1, 10]
MULAN_DENSE, MULAN_SPARSE = ("emotions", "scene", "yeast", "birds"), ("enron", "bibtex", "corel5k")
SETS = (*MULAN_DENSE, *MULAN_SPARSE, "voc2012", "goemotions", "cifar100")
OWN: dict[str, Callable[[], tuple[Any, Any]]] = {  # of scikit-learn
    "digits": partial(datasets.load_digits, return_X_y=True),
    "wine": partial(datasets.load_wine, return_X_y=True),
    "breast-cancer": partial(datasets.load_breast_cancer, return_X_y=True),
    "iris": partial(datasets.load_iris, return_X_y=True),
}
_several = partial(datasets.make_multilabel_classification, random_state=1)
_classes = partial(datasets.make_classification, random_state=5)
MADE: dict[str, partial[tuple[Any, Any]]] = {
    "labels-5": partial(_several, n_samples=600, n_features=20, n_classes=5, n_labels=2),
    "labels-20": partial(_several, n_samples=1000, n_features=100, n_classes=20, n_labels=4, random_state=2),
    "labels-rare": partial(_several, n_samples=400, n_features=50, n_classes=10, n_labels=1, random_state=3),
    "noisy": partial(_classes, n_samples=600, n_informative=8, n_classes=4, flip_y=0.1),
    "wide": partial(_classes, n_samples=300, n_features=200, n_informative=15, n_classes=3, random_state=6),
    "imbalanced": partial(_classes, n_samples=800, n_features=15, n_informative=6, weights=[0.93], random_state=7),
    "moons": partial(datasets.make_moons, n_samples=600, noise=0.2, random_state=8),
    "rings": partial(datasets.make_gaussian_quantiles, n_samples=800, n_features=5, n_classes=3, random_state=9),
    "clusters": partial(_classes, n_samples=8000, n_features=40, n_informative=15, n_classes=8, random_state=10),
}
MADE |= STRESS
TEST_ROWS = 2000  # of made-up sets
METRICS = ("mAP", "P@1", "micro-F1")
Data = tuple[Any, Any, Any, Any]  # training features and labels, test features and labels


def load(name: str) -> Data:
    if is_drawn_anew(name):
        features, labels, count = _made(name)
        rows = np.random.default_rng(0).permutation(len(labels))
        parts = rows[:count], rows[count:]
        found = [(features[part].astype(np.float32), labels[part].astype(np.int64)) for part in parts]
        return *found[0], *found[1]
    if name in MULAN_DENSE + MULAN_SPARSE:
        return _mulan(name)
    return {"voc2012": _voc2012, "goemotions": _goemotions, "cifar100": _cifar100}[name]()


def is_drawn_anew(name: str) -> bool:
    """Whether nobody published test rows, so that each seed may draw its own."""
    return name in OWN or name in MADE or name.startswith("drawn-")


def _made(name: str) -> tuple[Any, Any, int]:
    """Features, labels, and how many rows to learn from: half of what a set is said to have."""
    if name.startswith("drawn-"):
        return drawn(int(name.removeprefix("drawn-")), TEST_ROWS)
    if name in OWN:
        features, labels = OWN[name]()
        return features, labels, len(labels) // 2
    key = "rows" if name in STRESS else "n_samples"
    count = MADE[name].keywords[key] // 2
    return *MADE[name](**{key: count + TEST_ROWS}), count


def _mulan(name: str) -> Data:
    def part(file: Any, key: str) -> csr_matrix:
        matrix = tuple(file[f"{key}_{what}"] for what in ("data", "indices", "indptr"))
        return csr_matrix(matrix, file[f"{key}_shape"])

    with np.load(SHARED / "mulan_multilabel" / f"{name}.npz") as file:
        features = [part(file, key).astype(np.float32) for key in ("X_train", "X_test")]
        labels = [part(file, key).toarray().astype(np.int64) for key in ("Y_train", "Y_test")]
    if name in MULAN_DENSE:
        features = [one.toarray() for one in features]
    return features[0], labels[0], features[1], labels[1]


def _voc2012() -> Data:
    folder = SHARED / "voc2012_multilabel"
    features = [np.load(folder / f"{part}_feats_fp16_512.npy").astype(np.float32) for part in ("train", "val")]
    with np.load(folder / "labels.npz") as file:
        labels = [file[f"{part}_labels"].astype(np.int64) for part in ("train", "val")]
    return features[0], labels[0], features[1], labels[1]


def _goemotions() -> Data:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = {}, {}
    for part in ("train", "test"):
        with gzip.open(SHARED / "goemotions" / f"{part}.tsv.gz", "rt", encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        texts[part] = [row[0] for row in rows]
        labels[part] = np.zeros((len(rows), 28), dtype=np.int64)
        for number, row in enumerate(rows):
            labels[part][number, [int(label) for label in row[1].split(",")]] = 1
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2).fit(texts["train"])
    train, test = (vectorizer.transform(texts[part]).astype(np.float32) for part in ("train", "test"))
    return train, labels["train"], test, labels["test"]


def _cifar100() -> Data:
    """Single labels, 256 features of a pretrained network."""
    train, test = (
        np.load(SHARED / "cifar100_features" / f"{part}_feats_fp16_256.npy").astype(np.float32)
        for part in ("train", "test")
    )
    with np.load(SHARED / "cifar100" / "labels.npz") as file:
        return train, file["train_fine"].astype(np.int64), test, file["test_fine"].astype(np.int64)


def peer(scaled: bool, sparse: bool, multinomial: bool = False) -> Any:
    regression = LogisticRegression(max_iter=1000)
    model = regression if multinomial else OneVsRestClassifier(regression)
    key = "C" if multinomial else "estimator__C"
    if scaled:
        model = make_pipeline(StandardScaler(with_mean=not sparse), model)
        key = f"{model.steps[-1][0]}__{key}"
    return GridSearchCV(model, {key: GRID}, cv=3)


def judged(model: Any, features: Any, target: Any) -> dict[str, float]:
    """The metrics in percent, of scores (of single labels, probabilities) and of ``predict``."""
    single = target.ndim == 1
    scores = np.asarray((model.predict_proba if single else model.decision_function)(features))
    truth = (target[:, None] == model.classes_).astype(np.int64) if single else target
    occurs = truth.any(0)
    by_label = [average_precision_score(truth[:, label], scores[:, label]) for label in np.flatnonzero(occurs)]
    values = (
        np.mean(by_label),
        truth[np.arange(len(truth)), scores.argmax(1)].mean(),
        f1_score(target, model.predict(features), average="micro", zero_division=0),
    )
    return dict(zip(METRICS, (100 * float(value) for value in values), strict=True))


def timed(model: Any, data: Data) -> dict[str, float]:
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # labels that never occur in a fold
        model.fit(data[0], data[1])
        seconds = time.process_time() - started
        return {**judged(model, data[2], data[3]), "seconds": seconds}


def resplit(data: Data, seed: int, most: int) -> Data:
    stack = vstack if hasattr(data[0], "tocsr") else np.concatenate
    features, labels = stack([data[0], data[2]]), np.concatenate([data[1], data[3]])
    features = features.tocsr() if hasattr(features, "tocsr") else features
    rows = np.random.default_rng(100 + seed).permutation(len(labels))
    train, test = rows[: min(len(data[1]), most)], rows[len(data[1]) :]
    return features[train], labels[train], features[test], labels[test]


def part_of(data: Data, seed: int, most: int) -> Data:
    size = min(round(0.9 * len(data[1])), most)
    rows = np.sort(np.random.default_rng(seed).permutation(len(data[1]))[:size])
    return data[0][rows], data[1][rows], data[2], data[3]


def compare(name: str, seeds: int, most: int, known: dict[str, Any], anew: bool = False) -> list[str]:
    """One line per metric: ours with its spread over seeds, and how far it is above each peer. Figures of peers that
    are ``known`` are taken from there, others added. ``anew``: each seed has test rows of its own."""
    whole = load(name)
    sparse, anew = hasattr(whole[0], "tocsr"), anew or is_drawn_anew(name)
    peers = {"plain": peer(False, sparse), "scaled": peer(True, sparse)}
    if whole[1].ndim == 1:
        peers |= {"multinomial": peer(False, sparse, True), "scaled multinomial": peer(True, sparse, True)}
    ours: list[dict[str, float]] = []
    theirs: dict[str, list[dict[str, float]]] = {kind: [] for kind in peers}
    for seed in range(seeds):
        data = (resplit if anew else part_of)(whole, seed, most)
        ours.append(timed(SetClassifier(random_state=seed), data))
        for kind, model in peers.items():
            key = f"{name}, {most} rows, {'split' if anew else 'seed'} {seed}, {kind}"
            if key not in known:
                known[key] = timed(model, data)
            theirs[kind].append(known[key])
    lines = []
    for metric in METRICS:
        mine = np.array([one[metric] for one in ours])
        sides = {kind: np.array([one[metric] for one in side]) for kind, side in theirs.items()}
        sides["best"] = max(sides.values(), key=np.mean)
        cells = [_difference(mine - sides[kind]) for kind in ("plain", "scaled", "best")]
        lines.append(f"| {name} ({seeds}) | {metric} | {mine.mean():.2f} ± {mine.std():.2f} | {' | '.join(cells)} |")
    seconds = {kind: np.mean([one["seconds"] for one in side]) for kind, side in theirs.items()}
    mean = np.mean([one["seconds"] for one in ours])
    times = [f"{mean / one:.2f} x" for one in (seconds["plain"], seconds["scaled"], min(seconds.values()))]
    lines.append(f"| {name} ({seeds}) | seconds | {mean:.2f} | {' | '.join(times)} |")
    return lines


def _difference(each: Any) -> str:
    error = np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
    return f"{each.mean():+.2f} ± {error:.2f}"


HEAD = [
    "| data (seeds) | | SetClassifier() | to one-versus-rest, 4 C by 3 folds | to the same, scaled | to the best |",
    "|---|---|---:|---:|---:|---:|",
]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.defaults", description="SetClassifier() against a grid search.")
    parser.add_argument("--sets", default=",".join(SETS), help=f"some of {', '.join([*SETS, *OWN, *MADE])}")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=5000, help="at most so many training rows")
    parser.add_argument("--resplit", action="store_true", help="each seed draws the test rows anew from all rows")
    parser.add_argument("--markdown", type=Path, help="append the table's lines to this file")
    parser.add_argument("--peers", type=Path, help="the peer's figures in this JSON file are used, and new ones kept")
    options = parser.parse_args(arguments)
    known = json.loads(options.peers.read_text()) if options.peers and options.peers.exists() else {}
    print(*HEAD, sep="\n", flush=True)
    torch.set_num_threads(1)
    for name in options.sets.replace("stress", ",".join(STRESS)).split(","):
        with threadpool_limits(1):
            lines = compare(name, options.seeds, options.rows, known, options.resplit)
        print(*lines, sep="\n", flush=True)
        if options.peers:
            options.peers.write_text(json.dumps(known, indent=1))
        if options.markdown:
            with options.markdown.open("a", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

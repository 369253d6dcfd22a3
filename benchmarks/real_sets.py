"""``SetClassifier()`` against one-versus-rest logistic regression with a grid search, on the CSV files of a directory.

python -m benchmarks.real_sets DIRECTORY [--half develop] [--sets iris,zoo] [--seeds 5] [--kept FILE] [--chance]

``benchmarks/collect_sets.py`` says what is in such a file, and makes many of them from packages. The peers are those of
``benchmarks.defaults``: C of 0.01, 0.1, 1 and 10 by 3-fold cross-validation, on columns as they are and after a
StandardScaler. Each seed cuts the rows in halves, and trains on at most 5,000. Where all columns are numbers, both
sides have the same array. Of other tables SetClassifier has the frame itself, and the peers one-hot categories, and
medians where something is missing, made once. Texts are tf-idf for both. A difference stands with the standard error of
its mean over seeds. By its name a set belongs to one of two halves: changes are looked for on ``develop``, and
``judge`` is looked at once, afterwards. With ``--chance`` it is the peer on columns as they are that is measured in
place of SetClassifier, with its folds drawn at random: how often a model is below itself.
"""

import argparse
import json
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from benchmarks.defaults import METRICS, Data, peer, timed
from shortlist.estimators import SetClassifier

HALVES = ("develop", "judge")
BAR = -0.5
Figures = dict[str, dict[str, float]]  # of a set, a seed and a side


def half_of(name: str) -> str:
    """
    >>> half_of("zoo")
    'develop'
    """
    return HALVES[zlib.crc32(f"0 {name}".encode()) % 2]


def read(path: Path) -> tuple[pd.DataFrame, Any]:
    """Columns, and labels: numbers of classes, or a matrix of 1 and 0."""
    table = pd.read_csv(path, keep_default_na=False, na_values="", low_memory=False)
    names = [name for name in table.columns if name.startswith("label")]
    labels = table[names].to_numpy()
    labels = np.unique(labels[:, 0].astype(str), return_inverse=True)[1] if len(names) == 1 else labels.astype(np.int64)
    return table.drop(columns=names), labels


def cut(columns: pd.DataFrame, labels: Any, seed: int, most: int) -> tuple[Data, Data, float]:
    """What SetClassifier gets and what the peers get, rows to learn from and the others, and the seconds in which
    columns were made for the peers alone."""
    rows = np.random.default_rng(100 + seed).permutation(len(labels))
    train, test = rows[: len(rows) // 2][:most], rows[len(rows) // 2 :]
    parts, targets = [columns.iloc[train], columns.iloc[test]], (labels[train], labels[test])
    if list(columns.columns) == ["text"]:
        encoder = TfidfVectorizer(sublinear_tf=True, min_df=2).fit(parts[0]["text"])
        encoded = [encoder.transform(part["text"]).astype(np.float32) for part in parts]
    else:
        started = time.process_time()
        numbers = make_column_selector(dtype_include="number")(columns)
        encoder = make_column_transformer(
            (SimpleImputer(strategy="median", keep_empty_features=True), numbers),
            (OneHotEncoder(handle_unknown="ignore"), [name for name in columns.columns if name not in numbers]),
            sparse_threshold=0,
        ).fit(parts[0])
        encoded = [encoder.transform(part).astype(np.float32) for part in parts]
        seconds = time.process_time() - started
        if len(numbers) < columns.shape[1] or columns.isna().any(axis=None):
            ours = parts[0], targets[0], parts[1], targets[1]
            return ours, (encoded[0], targets[0], encoded[1], targets[1]), seconds
    both = encoded[0], targets[0], encoded[1], targets[1]
    return both, both, 0.0


def peer_again(sparse: bool, single: bool, seed: int) -> Any:
    """The peer on columns as they are, whose folds are drawn at random."""
    found = peer(False, sparse)
    folds = StratifiedKFold if single else KFold
    return found.set_params(cv=folds(3, shuffle=True, random_state=seed))


def measure(path: Path, seeds: int, most: int, kept: Figures, judged: str) -> dict[str, Any]:
    """The differences to both peers, one number for each seed, and how many times as long it took. What is ``judged``
    is "ours", or the peer "again"."""
    columns, labels = read(path)
    sides: dict[str, list[dict[str, float]]] = {judged: [], "plain": [], "scaled": []}
    for seed in range(seeds):
        data: tuple[Data, Data, float] | None = None
        for side, found in sides.items():
            key = f"{path.stem}, seed {seed}, {side}"
            if key not in kept:
                data = data or cut(columns, labels, seed, most)
                sparse = hasattr(data[1][0], "tocsr")
                if side == "again":
                    model = peer_again(sparse, labels.ndim == 1, seed)
                else:
                    model = SetClassifier(random_state=seed) if side == "ours" else peer(side == "scaled", sparse)
                kept[key] = timed(model, data[0] if side == "ours" else data[1])
                kept[key]["seconds"] += 0.0 if side == "ours" else data[2]
            found.append(kept[key])
    shape = f"{min(most, len(labels) // 2)} x {columns.shape[1]}, {_kind(labels)}"
    values = {(side, metric): np.array([one[metric] for one in sides[side]])
              for side in sides for metric in (*METRICS, "seconds")}  # fmt: skip
    return {
        "name": path.stem,
        "shape": shape,
        **{side: {metric: values[judged, metric] - values[side, metric] for metric in METRICS}
           for side in ("plain", "scaled")},
        "time": [values[judged, "seconds"].mean() / values[side, "seconds"].mean() for side in ("plain", "scaled")],
    }  # fmt: skip


def _kind(labels: Any) -> str:
    return f"{labels.max() + 1} classes" if labels.ndim == 1 else f"{labels.shape[1]} labels"


def error_of(each: Any) -> float:
    return float(np.std(each, ddof=1) / np.sqrt(len(each))) if len(each) > 1 else float("nan")


def line(found: dict[str, Any]) -> str:
    cells = [
        ", ".join(f"{found[side][metric].mean():+.2f} ± {error_of(found[side][metric]):.2f}" for metric in METRICS)
        for side in ("plain", "scaled")
    ]
    times = " and ".join(f"{one:.2f}" for one in found["time"])
    return f"| {found['name']} ({found['shape']}) | {' | '.join(cells)} | {times} |"


def summary(all_found: list[dict[str, Any]]) -> list[str]:
    """How many are below the bar, and by more than twice the error."""
    lines = []
    for side in ("plain", "scaled"):
        means = {metric: np.array([one[side][metric].mean() for one in all_found]) for metric in METRICS}
        low = [one["name"] for one in all_found if any(one[side][metric].mean() < BAR for metric in METRICS)]
        sure = [
            one["name"] for one in all_found
            if any(one[side][metric].mean() + 2 * error_of(one[side][metric]) < BAR for metric in METRICS)
        ]  # fmt: skip
        each = ", ".join(f"{metric} {v.mean():+.2f} (at or above 0: {(v >= 0).sum()})" for metric, v in means.items())
        slow = max(one["time"][side == "scaled"] for one in all_found)
        lines.append(
            f"{side}: {len(all_found)} sets, mean {each}; below {BAR} in some metric: {len(low)} ({', '.join(low)}), "
            f"by more than two errors: {len(sure)} ({', '.join(sure)}); longest time {slow:.2f} x"
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.real_sets", description="SetClassifier() against a grid search.")
    parser.add_argument("directory", type=Path, help="of CSV files, see benchmarks/collect_sets.py")
    parser.add_argument("--half", choices=HALVES, help="only the sets of this half")
    parser.add_argument("--sets", help="only these, separated by commas")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=5000, help="at most so many training rows")
    parser.add_argument("--kept", type=Path, help="figures in this JSON file are used, and new ones kept")
    parser.add_argument("--chance", action="store_true", help="the peer with other folds in place of SetClassifier")
    options = parser.parse_args(arguments)
    kept = json.loads(options.kept.read_text()) if options.kept and options.kept.exists() else {}
    paths = sorted(options.directory.glob("*.csv"), key=lambda path: path.stat().st_size)
    if options.half:
        paths = [path for path in paths if half_of(path.stem) == options.half]
    if options.sets:
        paths = [path for path in paths if path.stem in options.sets.split(",")]
    print("| data (rows x columns to learn from) | mAP, P@1, micro-F1 to one-versus-rest | to it, scaled | time |")
    print("|---|---:|---:|---:|", flush=True)
    torch.set_num_threads(1)
    found = []
    for path in paths:
        with threadpool_limits(1):
            found.append(measure(path, options.seeds, options.rows, kept, "again" if options.chance else "ours"))
        print(line(found[-1]), flush=True)
        if options.kept:
            options.kept.write_text(json.dumps(kept))
    print("", *summary(found), sep="\n")


if __name__ == "__main__":
    main()

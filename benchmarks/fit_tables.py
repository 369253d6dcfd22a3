"""``shortlist fit`` on tables with several labels beside ``SetClassifier()`` and the grid search of `defaults.py`.

python -m benchmarks.fit_tables [--sets emotions,scene] [--seeds 3]

Each seed writes a random nine tenths of the training rows as a CSV file, and the test rows as another, and calls
``shortlist fit train.csv data.test=test.csv``, once as it is and once with ``backbone=identity``, the linear model that
it always was before there were similarities. It holds out rows to calibrate on, so that it learns from fewer than the
others do. Its micro-F1 is that of its first rule's sets, as many labels on average as training rows have. The seconds,
of one processor core, are those of the whole command but for starting Python: reading, training, calibrating, judging
and the report.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.defaults import METRICS, MULAN_DENSE, Data, load, part_of, peer, timed
from shortlist import runs
from shortlist.estimators import SetClassifier

SIDES = ("fit", "fit, linear", "SetClassifier()", "one-versus-rest, 4 C by 3 folds")


class Fit:
    """``shortlist fit`` with the methods of a classifier; the files are written beforehand, so that this takes no
    time."""

    def __init__(self, folder: Path, data: Data, overrides: Sequence[str]) -> None:
        self.labels = [f"label {label}" for label in range(data[1].shape[1])]
        for name, features, target in (("train", *data[:2]), ("test", *data[2:])):
            columns = pd.DataFrame(target, columns=self.labels)
            pd.concat([_frame(features), columns], axis=1).to_csv(folder / f"{name}.csv", index=False)
        self.folder, self.overrides = folder, [*overrides, f"data.test={folder / 'test.csv'}"]

    def fit(self, _features: Any, _target: Any) -> None:
        runs.fit(self.folder / "train.csv", self.folder / "run", labels=self.labels, overrides=self.overrides)
        self.run = runs.Run(self.folder / "run")

    def decision_function(self, features: Any) -> NDArray[Any]:
        return self.run.predictor().scores(_frame(features)).numpy()

    def predict(self, features: Any) -> NDArray[Any]:
        return self.run.predictor().predict_sets(_frame(features)).to_dense().astype(np.int64)


def _frame(features: Any) -> pd.DataFrame:
    return pd.DataFrame(features, columns=[f"x{column}" for column in range(features.shape[1])])


def compare(name: str, seeds: int) -> list[str]:
    found: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    kept = 0
    for seed in range(seeds):
        data = part_of(load(name), seed, 5000)
        for side, given in ((SIDES[0], []), (SIDES[1], ["backbone=identity"])):
            with tempfile.TemporaryDirectory() as folder:
                model = Fit(Path(folder), data, [f"seed={seed}", *given])
                found[side].append(timed(model, data))
                kept += model.run.config.backbone.name == "similarities"
        found[SIDES[2]].append(timed(SetClassifier(random_state=seed), data))
        peers = [timed(peer(scaled, sparse=False), data) for scaled in (False, True)]
        found[SIDES[3]].append({key: (min if key == "seconds" else max)(p[key] for p in peers) for key in peers[0]})
    lines = []
    for metric in (*METRICS, "seconds"):
        digits = 1 if metric == "seconds" else 2
        means = [f"{np.mean([one[metric] for one in found[side]]):.{digits}f}" for side in SIDES]
        lines.append(f"| {name} ({kept} of {seeds}) | {metric} | {' | '.join(means)} |")
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("benchmarks.fit_tables", description="shortlist fit against a grid search.")
    parser.add_argument("--sets", default=",".join(MULAN_DENSE), help=f"some of {', '.join(MULAN_DENSE)}, voc2012")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print(f"| data (similarities kept) | | {' | '.join(SIDES)} |\n|---|---|---:|---:|---:|---:|", flush=True)
    for name in options.sets.split(","):
        with threadpool_limits(1):
            print(*compare(name, options.seeds), sep="\n", flush=True)


if __name__ == "__main__":
    main()

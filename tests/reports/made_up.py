"""Small made-up reports: three kinds of examples (1, 2 and 4 right labels), two models, three seeds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.labels import LabelSets
from shortlist.reports import ReportData, RunResult
from shortlist.sets import AverageK, Conformal, TopK

LABELS = 12
ROWS = 240
NASTY = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "\"quoted\" & 'single'",
    "ナマケモノ 🦥 é",
)
NAMES = (*NASTY, "$x_1$", "back\\slash $", *(f"label {i}" for i in range(LABELS - 6)))


def scores_and_truth(seed: int, rows: int = ROWS) -> tuple[NDArray[np.float32], NDArray[np.int64], LabelSets]:
    """Right labels have high scores, with noise; the recorded label is one of the right ones. Only the noise differs
    between seeds."""
    random = np.random.default_rng(rows)
    sizes = np.resize([1, 2, 4], rows)
    lists = [random.choice(LABELS, size, replace=False) for size in sizes]
    target = np.array([random.choice(labels) for labels in lists])
    truth = LabelSets.from_lists(lists, num_labels=LABELS)
    noise = np.random.default_rng([rows, seed]).normal(size=(rows, LABELS))
    return (noise + 3.0 * truth.to_dense()).astype(np.float32), target, truth


def made_up_run(name: str = "cross-entropy", seed: int = 0, noise: float = 0.0, **changes: Any) -> RunResult:
    scores, target, _ = scores_and_truth(seed)
    calibration, calibration_target, _ = scores_and_truth(seed, 160)
    scores = scores + np.random.default_rng(99 + seed).normal(size=scores.shape).astype(np.float32) * noise
    fields: dict[str, Any] = {
        "scores": scores,
        "target": target,
        "rules": {
            "TopK": TopK(2),
            "AverageK": AverageK(2).fit(calibration),
            "Conformal": Conformal(0.1).fit(calibration, calibration_target),
        },
        "history": [{"epoch": e, "loss": 2.0 / e, "note": "text", "lr": 0.1, "seconds": 1.0} for e in (1, 2, 3)],
        "config": {"objective": {"name": name}, "epochs": 3, "seed": seed, "lr": 0.1 + noise, "who": NASTY[0]},
        "commands": [f"shortlist train run.yaml seed={seed} # {NASTY[1]}"],
        "train_counts": np.array([5, 10, 15, 40, 60, 80, 90, 200, 300, 400, 500, 600]),
        "seconds": 1.5,
        "seed": seed,
        "calibration": calibration,
    }
    return RunResult(name, name, **{**fields, **changes})


def made_up_report(**changes: Any) -> ReportData:
    runs = [made_up_run("cross-entropy", seed) for seed in range(3)] + [made_up_run(f"noisy {NASTY[0]}", noise=2.0)]
    fields: dict[str, Any] = {
        "runs": runs,
        "vocabulary": NAMES,
        "groups": np.arange(LABELS) // 4,
        "group_names": ["<b>first</b>", "second", "third"],
        "truth": scores_and_truth(0)[2],
        "images": lambda row: np.full((8, 16, 3), row % 256, dtype=np.uint8),
        "ids": [f"<i>{row}</i>.png" for row in range(ROWS)],
        "about": {"Data": "made up <u>here</u>"},
    }
    return ReportData(f"A report {NASTY[1]}", **{**fields, **changes})

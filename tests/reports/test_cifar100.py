"""A report on real logits: ten thousand CIFAR-100 test images under a linear head."""

import os
from pathlib import Path

import numpy as np
import pytest

from shortlist.reports import from_scores
from shortlist.reports.numbers import Examples, average_k_curve, top_k_curve

SHARED = Path(os.environ.get("SHORTLIST_SHARED", Path(__file__).parents[3] / "shared")) / "data"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the shared data folder ({SHARED})")


def test_the_slider_shows_the_published_errors_of_the_logits() -> None:
    scores = np.load(SHARED / "cifar100_features" / "test_logits_linear_fp16.npy")
    labels = np.load(SHARED / "cifar100" / "labels.npz")
    data = from_scores(scores, labels["test_fine"].astype(np.int64), labels["fine_names"].tolist(), k=2)
    run, examples = data.runs[0], Examples(data)
    errors = [
        [round(100 * (1 - found["accuracy"]), 1) for found in curve(run, [2, 5], examples)]
        for curve in (average_k_curve, top_k_curve)
    ]
    assert errors == [[16.1, 5.9], [19.9, 9.0]]

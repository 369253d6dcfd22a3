"""Real logits: ten thousand CIFAR-100 test images under a linear head."""

import os
from pathlib import Path

import numpy as np
import pytest

from shortlist.sets import AverageK, Conformal, TopK

SHARED = Path(os.environ.get("SHORTLIST_SHARED", Path(__file__).parents[3] / "shared")) / "data"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the shared data folder ({SHARED})")


@pytest.fixture(scope="module")
def cifar():
    scores = np.load(SHARED / "cifar100_features" / "test_logits_linear_fp16.npy", mmap_mode="r")
    labels = np.load(SHARED / "cifar100" / "labels.npz")
    return scores, labels["test_fine"].astype(np.int64)


def error(sets, target):
    return 100 * (1 - sets.contains(target).mean())


def test_average_5_beats_top_5_after_softmax_and_loses_on_raw_logits(cifar):
    scores, target = cifar
    assert error(TopK(5).predict(scores), target) == pytest.approx(9.0, abs=0.05)
    softmax, raw = AverageK(5).fit(scores), AverageK(5, link="none").fit(scores)
    for rule in (softmax, raw):
        assert rule.predict(scores).sizes.sum() == 50_000
    assert error(softmax.predict(scores), target) == pytest.approx(5.9, abs=0.05)
    assert error(raw.predict(scores), target) == pytest.approx(10.6, abs=0.05)


def test_average_5_calibrated_on_one_half_holds_on_the_other(cifar):
    scores, target = cifar
    sets = AverageK(5).fit(scores[:5000]).predict(scores[5000:])
    assert sets.sizes.mean() == pytest.approx(5, abs=0.2)
    assert error(sets, target[5000:]) < error(TopK(5).predict(scores[5000:]), target[5000:]) - 2.5


def test_accuracy_rises_with_k_to_1_at_all_labels(cifar):
    scores, target = cifar
    for rules in ([TopK(k) for k in (1, 2, 5, 20, 100)], [AverageK(k) for k in (0.5, 1, 2.5, 20, 100)]):
        errors = [error(rule.fit(scores[:2000]).predict(scores[:2000]), target[:2000]) for rule in rules]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] == 0


@pytest.mark.parametrize("options", [{}, {"score": "aps"}, {"score": "raps"}, {"score": "aps", "seed": 0}], ids=str)
def test_conformal_sets_cover_the_other_half(cifar, options):
    scores, target = cifar
    sets = Conformal(0.1, **options).fit(scores[:5000], target[:5000]).predict(scores[5000:])
    # two binomial errors, of the calibration and of the test half: 4 standard deviations
    assert error(sets, target[5000:]) == pytest.approx(10, abs=400 * np.sqrt(2 * 0.09 / 5000))

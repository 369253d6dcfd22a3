"""SetClassifier where labels are unknown, or none is known to be absent."""

from typing import Any

import numpy as np
import pytest

from shortlist.estimators import SetClassifier
from tests.estimators.made import MX, MY, classifier


def test_unknown_labels_do_not_train() -> None:
    """Rows of unknown labels change nothing but the number of steps: with one batch, not even that."""
    y = MY.copy()
    y[::3] = -1
    one_batch = {"batch_size": 1000, "rule": "threshold", "weight_decay": 0.0, "preprocess": None}
    with_unknown = classifier("binary", **one_batch).fit(MX, y)
    without = classifier("binary", **one_batch).fit(MX[y[:, 0] != -1], y[y[:, 0] != -1])
    np.testing.assert_allclose(with_unknown.decision_function(MX), without.decision_function(MX), rtol=1e-3, atol=1e-4)


def test_where_no_label_is_known_to_be_absent_that_is_said_and_unknown_ones_are_taken_as_absent() -> None:
    positives = np.where(MY == 1, 1, -1)
    with pytest.warns(UserWarning, match="no label is known to be absent"):
        model = SetClassifier(k=None, random_state=0).fit(MX, positives)
    known = SetClassifier(k=None, random_state=0).fit(MX[MY.any(1)], MY[MY.any(1)])
    assert model.objective_ == "binary"
    assert model.score(MX, MY) == pytest.approx(known.score(MX, MY), abs=0.02)
    single = np.full_like(MY, -1)
    single[np.arange(len(MY)), MY.argmax(1)] = 1
    with pytest.warns(UserWarning, match="'assume-negative'"):
        assert SetClassifier(k=2).fit(MX, single).objective_ == "assume-negative"


def mentioned(share_absent: float) -> np.ndarray:
    """Half of the present labels, and so many of the absent ones; nothing is known of the others."""
    random = np.random.default_rng(1)
    kept = random.random(MY.shape) < np.where(MY == 1, 0.5, share_absent)
    return np.where(kept, MY, -1)


def test_a_few_labels_that_are_known_to_be_absent_do_not_make_the_model_take_all_others_to_be_present() -> None:
    target = mentioned(0.02)
    assert (target == 0).any()
    with pytest.warns(UserWarning, match=r"few labels are known to be absent \(\d+ entries"):
        model = SetClassifier(random_state=0).fit(MX, target)
    assert model.predict_sets(MX).sizes.mean() < 0.5 * MY.shape[1]
    assert model.score(MX, MY) > SetClassifier("binary", random_state=0).fit(MX, target).score(MX, MY) + 0.05


def test_where_absent_labels_are_recorded_as_present_ones_are_unknown_ones_are_left_out(recwarn: Any) -> None:
    target = mentioned(0.5)
    assert SetClassifier(random_state=0).fit(MX, target)._unknown_is_absent is False
    assert not [one for one in recwarn if "absent" in str(one.message)]


@pytest.mark.parametrize("objective", ["binary", "partial-selective"])
def test_predict_does_not_give_every_label_where_only_present_ones_are_known(objective: str) -> None:
    positives = np.where(MY == 1, 1, -1)
    model = SetClassifier(objective, solver="adamw", epochs=5, lr=0.01, weight_decay=1.0, random_state=0)
    assert model.fit(MX, positives).predict(MX).mean() < 0.9

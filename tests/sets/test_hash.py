"""The hash that breaks ties: fixed, uniform, and blind to everything but the row's numbers and the label."""

import numpy as np

from shortlist.sets._hash import label_hashes, row_hashes


def test_hashes_are_the_same_on_every_machine_and_in_every_version():
    row = row_hashes(np.array([[0.5, -1.25, 3.0]], np.float32))
    assert [f"{h:016x}" for h in row] == ["0c76a9279c81c44a"]
    assert [f"{h:016x}" for h in label_hashes(row, np.arange(2))] == ["ea7ea62108294c8d", "1a2edde12b25eae3"]


def test_type_byte_order_and_the_sign_of_zero_do_not_matter():
    scores = np.array([[0.5, 0.0, 3.0], [1.0, 2.0, -0.0]], np.float16)
    expected = row_hashes(scores)
    for same in (scores.astype(np.float32), scores.astype(np.float64), scores.astype(">f4"), scores + 0):
        assert (row_hashes(same) == expected).all()
    assert (row_hashes(scores[1:]) == expected[1:]).all()


def test_one_changed_score_or_swapped_labels_change_the_hash():
    scores = np.random.default_rng(0).integers(0, 2, size=(1, 64)).astype(np.float32)
    changed = scores + np.eye(64, dtype=np.float32)
    rows = np.concatenate([scores, scores[:, ::-1], np.roll(scores, 1), changed])
    assert len(np.unique(row_hashes(rows))) == len(rows)


def test_hashes_of_rows_and_labels_are_uniform():
    rows = row_hashes(np.arange(2000, dtype=np.float32)[:, None] * np.ones(3, np.float32))
    share = label_hashes(rows[:, None], np.arange(20)).astype(np.float64) / 2.0**64
    counts = np.histogram(share, bins=50, range=(0, 1))[0]
    assert ((counts - 800) ** 2 / 800).sum() < 100  # chi-square with 49 degrees of freedom: 1 in 40,000
    assert abs(np.corrcoef(share[:, 0], share[:, 1])[0, 1]) < 0.1

"""The short ways of scores that need no ranking: to the last bit what their definition over all labels gives."""

import math

import numpy as np
import pytest

from shortlist.sets.scores import make_score


def rows(kind, seed):
    """Probabilities with ties, tiny ones among them, as a model may give them; row 3 has a sure label."""
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 5, (40, 6)) * 10.0 ** rng.integers(-20, 1, (40, 6))
    p[3] = np.eye(6)[2]
    return p.astype(kind)


def margin_of(p, y):
    return max(float(p[other]) for other in range(len(p)) if other != y) - float(p[y])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["lac", "margin"])
def test_scores_of_one_label_and_sets_below_a_limit_are_those_of_all_labels(name, kind):
    score = make_score(name)
    for seed in range(20):
        p = rows(kind, seed)
        every = score.of_labels(p)
        if name == "margin":
            assert every.tolist() == [[margin_of(row, y) for y in range(6)] for row in p]
        some, label = np.array([3, 3, 0, 17]), np.array([2, 0, 5, 1])
        assert score.of_one(p, some, label).tolist() == every[some, label].tolist()
        exact = every.reshape(-1)[seed::29]
        for limit in (*exact, *np.nextafter(exact, -9), *np.nextafter(exact, 9), -math.inf, math.inf, 0.0, -0.3):
            assert np.array_equal(score.below(p, np.full((1, 1), limit)), every <= limit)
        for shape in ((40, 1), (1, 6), (40, 6)):
            limits = np.random.default_rng(seed).choice(exact, shape)
            assert np.array_equal(score.below(p, limits), every <= limits)


@pytest.mark.parametrize("name", ["lac", "margin"])
def test_a_model_of_one_label_has_scores_too(name):
    score, p = make_score(name), np.array([[0.25], [1.0]], np.float32)
    assert score.of_labels(p).tolist() == [[-0.25], [-1.0]]
    assert score.of_one(p, np.array([1]), np.array([0])).tolist() == [-1.0]
    assert score.below(p, np.full((1, 1), -0.5)).tolist() == [[False], [True]]

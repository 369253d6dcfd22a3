"""Conformal sets on votes: what they promise, and that one vote per row is the usual conformal set."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from shortlist.labels import from_pair_answers, from_votes
from shortlist.metrics.functional import vote_coverage
from shortlist.sets import Conformal, SetRule

SHARED = Path(os.environ.get("SHORTLIST_SHARED", Path(__file__).parents[3] / "shared")) / "data"
SCORES = ["lac", "aps", "raps", "saps", "top-k", "margin"]


def made_up(rng: np.random.Generator, rows: int, labels: int = 6, votes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Scores that know something of the shares by which people answer, and a few answers of each row."""
    truth = rng.normal(size=(rows, labels)) * 2
    chance = np.exp(truth) / np.exp(truth).sum(-1, keepdims=True)
    counts = np.stack([rng.multinomial(rng.integers(1, votes + 1), p) for p in chance])
    return (truth + rng.normal(size=truth.shape)).astype(np.float32), counts


@pytest.mark.parametrize("score", ["lac", "aps", "raps"])
def test_a_label_drawn_from_the_votes_is_covered_as_promised(score: str) -> None:
    """Over 200 calibrations: the mean share of covered votes is the chance that a drawn vote is in the set."""
    rng, alpha, found = np.random.default_rng(7), 0.2, []
    for _ in range(200):
        scores, votes = made_up(rng, 70)
        rule = Conformal(alpha, score, labels="votes").fit(scores[:40], votes[:40])  # type: ignore[arg-type]
        found.append(float(vote_coverage(rule.predict(scores[40:]), votes[40:])))
    mean, error = np.mean(found), np.std(found) / 200**0.5
    assert mean > 1 - alpha - 3 * error
    assert mean < 1 - alpha + 0.06  # and hardly more than promised


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.3])
def test_one_vote_per_row_is_a_label(score: str, alpha: float) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(59, 5)).astype(np.float32)
    target = rng.integers(0, 5, 59)
    single = Conformal(alpha, score).fit(scores, target)  # type: ignore[arg-type]
    votes = Conformal(alpha, score, labels="votes").fit(scores, np.eye(5)[target] * 4)  # type: ignore[arg-type]
    assert votes.limits == single.limits
    assert votes.predict(scores) == single.predict(scores)


def test_batches_merged_rules_and_json_know_the_same() -> None:
    scores, votes = made_up(np.random.default_rng(1), 50)
    whole = Conformal(0.1, labels="votes").fit(scores, votes)
    parts = Conformal(0.1, labels="votes").partial_fit(scores[:20], from_votes(votes[:20]))
    parts = parts.merge(Conformal(0.1, labels="votes").partial_fit(torch.tensor(scores[20:]), torch.tensor(votes[20:])))
    again = SetRule.from_json(whole.to_json())
    assert whole.rows == parts.rows == again.rows == 50
    np.testing.assert_allclose(parts.limits, whole.limits)
    assert again.predict(scores) == whole.predict(scores)
    assert "drawn from the votes" in again.promise


def test_rows_without_votes_are_left_out() -> None:
    scores, votes = made_up(np.random.default_rng(2), 30)
    more = np.concatenate([from_votes(votes), np.full((1, 6), -1.0), np.zeros((1, 6))])
    rule = Conformal(0.2, labels="votes").fit(np.concatenate([scores, scores[:2] + 50]), more)
    assert rule.rows == 30
    assert rule.limits == Conformal(0.2, labels="votes").fit(scores, votes).limits


def test_what_is_no_vote_is_refused_with_its_row() -> None:
    scores = np.zeros((3, 2), np.float32)
    with pytest.raises(ValueError, match=r"target row 1, label 0 is -2"):
        Conformal(0.5, labels="votes").fit(scores, np.array([[1, 0], [-2, 1], [1, 1]]))
    with pytest.raises(ValueError, match="takes votes"):
        Conformal(0.5, labels="votes").fit(scores, np.array([0, 1, 1]))
    with pytest.raises(ValueError, match="per_class, clusters, by_group and weighted do not apply"):
        Conformal(0.5, labels="votes", per_class=True)
    with pytest.raises(ValueError, match="p-values"):
        Conformal(0.5, labels="votes").fit(scores, np.ones((3, 2))).p_values(scores)


def test_few_rows_hold_every_label_and_say_so() -> None:
    scores, votes = made_up(np.random.default_rng(3), 8)
    with pytest.warns(UserWarning, match="needs at least 9 calibration rows"):
        rule = Conformal(0.1, labels="votes").fit(scores, votes)
    assert set(rule.predict(scores).sizes) == {6}


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"needs the shared data folder ({SHARED})")
def test_the_votes_on_cifar100_are_covered() -> None:
    """Five people were asked about each of 2,235 test images: the given label, a guessed one, neither or both."""
    asked = np.load(SHARED / "cifar100" / "cifar100_test_mturk_votes.npz")
    logits = np.load(SHARED / "cifar100_features" / "test_logits_linear_fp16.npy")[asked["index"]].astype(np.float32)
    votes = from_pair_answers(asked["votes_given_guessed_neither_both"], asked["given"], asked["guessed"], 100)
    assert votes.sum() > 8000
    half = np.random.default_rng(0).permutation(len(votes))
    fit, test = half[:1100], half[1100:]
    rule = Conformal(0.1, labels="votes").fit(logits[fit], votes[fit])
    assert rule.rows == (votes[fit].sum(1) > 0).sum()  # where everybody said "neither" there is no vote
    assert vote_coverage(rule.predict(logits[test]), votes[test]) == pytest.approx(0.9, abs=0.03)

"""Recall of scene graphs against a slow reference written from the definition."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from shortlist.metrics import SceneRecallAtK
from shortlist.metrics import functional as M


def slow_recall(scores, relations, offsets, k, constrained):
    """Every triple of an image in a list, sorted; the share of the set of recorded triples among the first k."""
    by_image, by_predicate = [], {}
    for first, last in pairwise(offsets):
        recorded = {(pair, predicate) for pair, predicate in relations if first <= pair < last}
        triples = []
        for pair in range(first, last):
            row = [(-score, pair, predicate) for predicate, score in enumerate(scores[pair])]
            triples += [min(row)] if constrained else row
        answer = {(pair, predicate) for _, pair, predicate in sorted(triples)[:k]}
        if recorded:
            by_image.append(len(answer & recorded) / len(recorded))
        for predicate in {predicate for _, predicate in recorded}:
            own = {triple for triple in recorded if triple[1] == predicate}
            by_predicate.setdefault(predicate, []).append(len(answer & own) / len(own))
    return np.mean(by_image), np.mean([np.mean(shares) for shares in by_predicate.values()])


def random_graphs(seed, images=6, predicates=5, levels=None):
    """Scores with many ties where ``levels`` is small, pairs with several predicates, triples recorded twice."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, 6, images)
    offsets = np.concatenate([[0], np.cumsum(counts * (counts - 1))])
    pairs = int(offsets[-1])
    scores = random.normal(size=(pairs, predicates)).astype(np.float32)
    if levels is not None:
        scores = np.floor(random.random((pairs, predicates)) * levels).astype(np.float32)
    number = random.integers(1, 2 * pairs) if pairs else 0
    relations = np.stack([random.integers(0, max(pairs, 1), number), random.integers(0, predicates, number)], 1)
    relations = np.concatenate([relations, relations[: number // 3]])
    return scores, relations, offsets


@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("levels", [None, 1, 3])
@pytest.mark.parametrize("k", [1, 3, 20, 1000])
def test_recall_is_what_the_definition_says(constrained, levels, k):
    for seed in range(20):
        scores, relations, offsets = random_graphs(seed, levels=levels)
        if not len(relations):
            continue
        expected = slow_recall(scores.tolist(), relations.tolist(), offsets.tolist(), k, constrained)
        options = {"offsets": offsets, "constrained": constrained}
        assert float(M.scene_recall_at_k(scores, relations, k, **options)) == pytest.approx(expected[0], abs=1e-6)
        assert float(M.scene_mean_recall_at_k(scores, relations, k, **options)) == pytest.approx(expected[1], abs=1e-6)


@pytest.mark.parametrize("constrained", [True, False])
def test_batches_of_images_give_the_recall_of_all_of_them(constrained):
    metric = SceneRecallAtK(3, constrained)
    scores, relations, offsets = random_graphs(1, images=12)
    for image in range(12):
        first, last = offsets[image], offsets[image + 1]
        own = relations[(relations[:, 0] >= first) & (relations[:, 0] < last)] - [[first, 0]]
        if last > first:
            metric.update(scores[first:last], own)
    options = {"offsets": offsets, "constrained": constrained}
    assert metric.compute() == pytest.approx(float(M.scene_recall_at_k(scores, relations, 3, **options)))
    assert metric.mean_recall() == pytest.approx(float(M.scene_mean_recall_at_k(scores, relations, 3, **options)))


def test_images_of_equal_and_of_different_sizes_far_apart_are_kept_apart():
    sizes = [6, 2, 6, 12, 2, 6]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    random = np.random.default_rng(0)
    scores = random.normal(size=(sum(sizes), 4))
    relations = np.stack([np.arange(sum(sizes)), random.integers(0, 4, sum(sizes))], 1)
    expected = slow_recall(scores.tolist(), relations.tolist(), offsets.tolist(), 5, False)[0]
    found = M.scene_recall_at_k(scores, relations, 5, offsets=offsets, constrained=False)
    assert float(found) == pytest.approx(expected)


def test_an_image_with_no_more_candidates_than_k_finds_everything_even_at_minus_infinity():
    scores = torch.full((2, 3), float("-inf"))
    assert M.scene_recall_at_k(scores, torch.tensor([[0, 1], [1, 2]]), 6, constrained=False) == 1


def test_images_without_relations_are_left_out():
    scores, offsets = torch.randn(4, 3), torch.tensor([0, 2, 4])
    relation = torch.tensor([[0, int(scores[0].argmax())]])
    assert M.scene_recall_at_k(scores, relation, 2, offsets=offsets) == 1


def test_without_any_relation_there_is_no_recall():
    assert M.scene_recall_at_k(torch.zeros(2, 3), torch.zeros(0, 2, dtype=torch.int64), 1).isnan()


def test_adding_a_constant_to_an_images_scores_changes_nothing():
    scores, relations, offsets = random_graphs(5)
    shifted = scores + np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))[:, None].astype(np.float32)
    for constrained in (True, False):
        options = {"offsets": offsets, "constrained": constrained}
        assert M.scene_recall_at_k(scores, relations, 4, **options) == M.scene_recall_at_k(
            shifted, relations, 4, **options
        )


@pytest.mark.parametrize(
    ("scores", "relations", "offsets", "message"),
    [
        (torch.zeros(2, 3), torch.tensor([[2, 0]]), None, r"relations\[0\] is \[2, 0\], outside scores"),
        (torch.zeros(2, 3), torch.tensor([[0, -1]]), None, r"relations\[0\] is \[0, -1\]"),
        (torch.zeros(2, 3), torch.zeros(2, 3), None, r"whole numbers of shape \(M, 2\)"),
        (torch.zeros(2, 3), torch.tensor([[0, 0]]), torch.tensor([0, 1]), "offsets must rise from 0 to the 2 rows"),
        (torch.full((2, 3), float("nan")), torch.tensor([[0, 0]]), None, "NaN"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_where(scores, relations, offsets, message):
    with pytest.raises(ValueError, match=message):
        M.scene_recall_at_k(scores, relations, 1, offsets=offsets)


def test_k_is_a_whole_number():
    with pytest.raises(ValueError, match="whole number of at least 1"):
        SceneRecallAtK(0)

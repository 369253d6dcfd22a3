"""Recall of graphs against slow evaluators, ours and the public ones' rules, for all three tasks."""

import pickle

import numpy as np
import pytest
import torch

from shortlist.metrics import SceneRecallAtK
from shortlist.scenes.graph_recall import SceneGraphRecall
from shortlist.scenes.matching import RecordedGraph, ScoredGraph, best_triples, matches
from shortlist.scenes.recorded import recorded_images, seen_triples
from tests.scenes.made import made_scenes

CLASSES, PREDICATES = 3, 4


def overlap(a, b, more):
    wide = min(a[2], b[2]) - max(a[0], b[0]) + more
    high = min(a[3], b[3]) - max(a[1], b[1]) + more
    if wide <= 0 or high <= 0:
        return 0.0
    areas = [(c[2] - c[0] + more) * (c[3] - c[1] + more) for c in (a, b)]
    return wide * high / (sum(areas) - wide * high)


def slow(cases, k, constrained, public, seen=None):
    """R@k, mR@k and zero-shot R@k by lists, one triple at a time."""
    by_image, by_predicate, by_unseen = [], {}, []
    for answer, truth in cases:
        recorded = truth.relations.tolist()
        if not public:
            recorded = [list(row) for row in {tuple(row) for row in recorded} if row[0] != row[1]]
        if not recorded:
            continue
        certainty = [1.0] * len(answer.boxes) if answer.certainty is None else answer.certainty.tolist()
        triples = []
        for place, ((s, o), row) in enumerate(zip(answer.pairs.tolist(), answer.scores.tolist(), strict=True)):
            scored = [(-np.exp(value) * certainty[s] * certainty[o], place, p, s, o) for p, value in enumerate(row)]
            triples += [min(scored)] if constrained else scored
        mine, theirs = answer.classes.tolist(), truth.classes.tolist()
        hits = []
        for s, o, p in recorded:
            hit = False
            for _, _, predicate, subject, thing in sorted(triples)[:k]:
                hit |= (mine[subject], predicate, mine[thing]) == (theirs[s], p, theirs[o]) and all(
                    overlap(answer.boxes[a].tolist(), truth.boxes[b].tolist(), int(public)) >= 0.5
                    for a, b in ((subject, s), (thing, o))
                )
            hits.append(hit)
        by_image.append(np.mean(hits))
        for predicate in {p for *_, p in recorded}:
            own = [hit for hit, (*_, p) in zip(hits, recorded, strict=True) if p == predicate]
            by_predicate.setdefault(predicate, []).append(np.mean(own))
        kinds = [(theirs[s], p, theirs[o]) for s, o, p in recorded]
        unseen = [hit for hit, kind in zip(hits, kinds, strict=True) if seen is not None and kind not in seen]
        if unseen:
            by_unseen.append(np.mean(unseen))
    mean = sum(map(np.mean, by_predicate.values())) / (PREDICATES if public else len(by_predicate))
    return np.mean(by_image), mean, np.mean(by_unseen) if by_unseen else None


def random_cases(task, images=12, seed=0):
    """Boxes that lie upon each other, relations recorded twice and of objects with themselves, images without any."""
    random = np.random.default_rng(seed)
    cases = []
    for _ in range(images):
        count = random.integers(2, 6)
        corner = random.integers(0, 12, (count, 2))
        boxes = torch.from_numpy(np.concatenate([corner, corner + random.integers(4, 14, (count, 2))], 1)).float()
        classes = torch.from_numpy(random.integers(0, CLASSES, count))
        number = random.integers(0, 9)
        ends = random.integers(0, count, (number, 2))
        relations = np.concatenate([ends, random.integers(0, PREDICATES - 1, (number, 1))], 1)  # the last never occurs
        relations = torch.from_numpy(np.concatenate([relations, relations[: number // 2]]))
        own_boxes, own_classes, certainty = boxes, classes, None
        if task != "predcls":
            wrong = torch.from_numpy(random.random(count) < 0.3)
            own_classes = torch.where(wrong, (classes + 1) % CLASSES, classes)
            certainty = torch.from_numpy(random.uniform(0.2, 1, count))
        if task == "sgdet":
            twice = torch.from_numpy(random.integers(0, count, 2))  # some objects are detected more than once
            own_boxes = torch.cat([boxes, boxes[twice]])
            own_boxes = own_boxes + torch.from_numpy(random.integers(-2, 3, own_boxes.shape)).float() / 2
            own_classes = torch.cat([own_classes, classes[twice]])
            certainty = torch.cat([certainty, certainty[twice] / 2])
        detected = len(own_boxes)
        pairs = torch.tensor([[s, o] for s in range(detected) for o in range(detected) if s != o])
        scores = torch.from_numpy(np.log(random.dirichlet(np.ones(PREDICATES + 1), len(pairs))[:, :-1]))
        answer = ScoredGraph(own_boxes, own_classes, pairs, scores, certainty)
        cases.append((answer, RecordedGraph(boxes, classes, relations)))
    return cases


TASKS = ("predcls", "sgcls", "sgdet")


def measured(cases, **options):
    metric = SceneGraphRecall([3, 8], **options)
    for answer, truth in cases:
        metric.update(answer, truth)
    return metric


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("counting", ["once", "public"])
def test_recalls_are_what_the_slow_evaluators_find(task, constrained, counting):
    for seed in range(3):
        cases = random_cases(task, seed=seed)
        seen = torch.tensor([[a, p, b] for a in range(CLASSES) for p in range(2) for b in range(CLASSES) if a != b])
        found = measured(cases, constrained=constrained, counting=counting, seen=seen).compute()
        for k in (3, 8):
            expected = slow(cases, k, constrained, counting == "public", {tuple(row) for row in seen.tolist()})
            for name, value in zip(("recall", "mean-recall", "zero-shot-recall"), expected, strict=True):
                assert float(found[f"{name}@{k}"]) == pytest.approx(value, abs=1e-6)


# The same 200 made-up images under both ways of counting, in percent: R@3, R@8, mR@3, mR@8
KEPT = {
    ("predcls", True, "once"): [12.77, 20.11, 11.49, 18.13],
    ("predcls", True, "public"): [9.8, 15.23, 6.4, 10.17],
    ("predcls", False, "once"): [16.16, 41.12, 14.86, 38.65],
    ("predcls", False, "public"): [11.93, 27.86, 7.86, 19.47],
    ("sgcls", True, "once"): [4.05, 7.42, 4.34, 7.77],
    ("sgcls", True, "public"): [2.16, 4.37, 2.15, 4.09],
    ("sgcls", False, "once"): [5.49, 14.67, 5.33, 12.82],
    ("sgcls", False, "public"): [2.77, 7.77, 2.43, 6.22],
    ("sgdet", True, "once"): [6.13, 12.52, 5.9, 12.17],
    ("sgdet", True, "public"): [6.3, 12.67, 4.59, 9.6],
    ("sgdet", False, "once"): [6.13, 13.43, 5.9, 13.18],
    ("sgdet", False, "public"): [6.18, 13.23, 4.49, 10.05],
}


@pytest.mark.parametrize(("task", "constrained", "counting"), list(KEPT))
def test_what_both_ways_of_counting_say_of_the_same_images(task, constrained, counting):
    found = measured(random_cases(task, images=200, seed=9), constrained=constrained, counting=counting).compute()
    assert [round(100 * float(value), 2) for value in found.values()] == KEPT[task, constrained, counting]


def test_where_objects_lie_apart_and_relations_are_recorded_once_all_ways_of_counting_agree():
    data = made_scenes((4, 3, 5), relations=1, seed=2)
    scenes, answers = data.inputs, data.answers
    scenes.boxes[:] = torch.arange(12)[:, None] * 50 + torch.tensor([0.0, 0, 20, 20])
    torch.manual_seed(0)
    scores = torch.randn(int(answers.offsets[-1]), 3)
    by_pair = SceneRecallAtK(4)
    by_pair.update(scores, answers.entries, offsets=answers.offsets)
    metrics = [SceneGraphRecall([4], counting=counting) for counting in ("once", "public")]
    truths = list(recorded_images(scenes))
    for image, truth in enumerate(truths):
        count = len(truth.boxes)
        pairs = torch.tensor([[s, o] for s in range(count) for o in range(count) if s != o])
        own = scores[answers.offsets[image] : answers.offsets[image + 1]]
        once = RecordedGraph(truth.boxes, truth.classes, truth.relations.unique(dim=0))
        for metric in metrics:
            metric.update(ScoredGraph(truth.boxes, truth.classes, pairs, own), once)
    for metric in metrics:
        torch.testing.assert_close(metric.compute()["recall@4"], by_pair.compute())
    torch.testing.assert_close(metrics[0].compute()["mean-recall@4"], by_pair.mean_recall())


def test_an_image_without_pairs_finds_nothing_and_one_without_relations_is_left_out():
    boxes = torch.tensor([[0.0, 0, 9, 9], [20, 0, 29, 9]])
    truth = RecordedGraph(boxes, torch.tensor([0, 1]), torch.tensor([[0, 1, 2]]))
    nothing = ScoredGraph(boxes[:1], torch.tensor([0]), torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, 3))
    for constrained in (True, False):
        metric = SceneGraphRecall([5], constrained=constrained)
        metric.update(nothing, RecordedGraph(boxes, truth.classes, truth.relations[:0]))
        assert torch.isnan(metric.compute()["recall@5"])
        metric.update(nothing, truth)
        assert float(metric.compute()["recall@5"]) == 0


def test_a_triple_finds_a_relation_only_if_both_boxes_overlap_by_half():
    boxes = torch.tensor([[0.0, 0, 10, 10], [100, 0, 110, 10]])
    truth = RecordedGraph(boxes, torch.tensor([0, 1]), torch.tensor([[0, 1, 0]]))
    for height, hit in ((5.0, True), (4.9, False)):
        seen = boxes.clone()
        seen[1, 3] = height
        answer = ScoredGraph(seen, truth.classes, torch.tensor([[0, 1]]), torch.zeros(1, 1))
        assert bool(matches(answer, best_triples(answer, 1), truth)) is hit


def test_states_are_kept_added_and_reset():
    cases = random_cases("sgdet", images=10)
    seen = seen_triples(made_scenes().inputs)
    whole, parts = measured(cases, seen=seen), [measured(half, seen=seen) for half in (cases[:4], cases[4:])]
    copy = pickle.loads(pickle.dumps(parts[0]))
    for name in copy._defaults:
        setattr(copy, name, getattr(copy, name) + getattr(parts[1], name))
    for name, value in whole.compute().items():
        torch.testing.assert_close(copy.compute()[name], value)
    whole.reset()
    assert int(whole.images) == 0
    assert not whole.predicate_total.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ks": [0]}, "k must be"),
        ({"counting": "twice"}, "counting is 'once' or 'public', got 'twice'"),
        ({"overlap": 0.0}, "overlap is a share above 0"),
        ({"seen": torch.zeros(3)}, r"seen must have the shape \(triples, 3\)"),
    ],
)
def test_options_out_of_range_are_errors(options, message):
    with pytest.raises(ValueError, match=message):
        SceneGraphRecall(**options)

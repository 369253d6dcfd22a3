"""Losses of whole images: a ragged batch gives what each image gives alone, and what the definitions say."""

import pytest
import torch

from shortlist.functional import lml_loss, truncated_entropy_loss
from shortlist.objectives import build
from shortlist.scenes import RelationScorer, draw_predicates, lml_losses, softmax_losses, truncated_entropy_losses
from tests.scenes.made import made_scenes

OBJECTIVES = [("scene-softmax", {}), ("scene-lml", {"k": 3}), ("scene-lml", {"k": 500}),
              ("scene-lml", {"k": 0.3}), ("scene-truncated-entropy", {"k": 4}),
              ("scene-truncated-entropy", {"k": 0.3})]  # fmt: skip
every = pytest.mark.parametrize(("name", "options"), OBJECTIVES)


def model(data, name, options, dtype=torch.float64):
    torch.manual_seed(0)
    scorer = RelationScorer(data.inputs.shape, embedding=4, context=3, hidden=6, dropout=0.0)
    scorer.start_from(data.inputs)
    objective = build(name, options, in_features=6, num_labels=data.num_labels)
    torch.nn.init.normal_(objective.head.weight)
    return scorer.to(dtype), objective.to(dtype)


def as_double(batch):
    return type(batch)(**{**batch.__dict__, "boxes": batch.boxes.double()})


@every
def test_a_ragged_batch_gives_image_by_image_the_loss_and_gradient_of_each_alone(name, options, monkeypatch):
    # which of several predicates is drawn must not depend on the batch here: always the first
    monkeypatch.setattr(torch, "rand", lambda *size, **options: torch.linspace(0, 0.9, *size, dtype=torch.float64))
    data = made_scenes()
    scorer, objective = model(data, name, options)
    weights = [*scorer.parameters(), *objective.parameters()]
    batch, entries = data.batch(torch.arange(len(data)))
    together, counted = objective.image_losses(scorer(as_double(batch)), entries)
    for image in range(len(data)):
        one, own = data.batch(torch.tensor([image]))
        alone, counts = objective.image_losses(scorer(as_double(one)), own)
        torch.testing.assert_close(together[image], alone[0])
        assert counted[image] == counts[0]
        if alone.requires_grad and alone.grad_fn is not None:
            ours = torch.autograd.grad(together[image], weights, retain_graph=True, allow_unused=True)
            theirs = torch.autograd.grad(alone[0], weights, allow_unused=True)
            for mine, other in zip(ours, theirs, strict=True):
                mine = torch.zeros(()) if mine is None else mine
                torch.testing.assert_close(mine, torch.zeros_like(mine) if other is None else other)


@every
def test_the_loss_of_a_batch_is_the_mean_over_images_with_relations(name, options):
    data = made_scenes()
    scorer, objective = model(data, name, options)
    batch, entries = data.batch(torch.arange(len(data)))
    torch.manual_seed(3)
    losses, counted = objective.image_losses(scorer(as_double(batch)), entries)
    torch.manual_seed(3)
    assert counted.tolist() == [True, True, False, False, True, True]
    torch.testing.assert_close(objective.loss(scorer(as_double(batch)), entries), losses[counted].mean())


@every
def test_images_without_objects_give_no_loss_and_no_scores(name, options):
    data = made_scenes((0, 1, 0))
    scorer, objective = model(data, name, options)
    batch, entries = data.batch(torch.arange(3))
    features = scorer(as_double(batch))
    assert objective(features).shape == (0, 3)
    loss = objective.loss(features, entries)
    loss.backward()
    assert loss.item() == 0


BY_IMAGE = [(lml_losses, lml_loss), (truncated_entropy_losses, truncated_entropy_loss)]


@pytest.mark.parametrize(("losses", "loss"), BY_IMAGE)
def test_an_image_is_one_row_of_all_its_candidates(losses, loss):
    torch.manual_seed(0)
    scores, counts = torch.randn(20, 4, dtype=torch.float64), [6, 2, 12]
    target = (torch.rand(20, 4) < 0.3).int()
    found = losses(scores, target.nonzero(), counts, 5)
    rows = zip(found, scores.split(counts), target.split(counts), strict=True)
    for own, part, marks in rows:
        torch.testing.assert_close(own, loss(part.reshape(1, -1), marks.reshape(1, -1), 5))


def test_an_image_with_no_more_candidates_than_k_has_no_lml_loss():
    assert lml_losses(torch.randn(2, 3), torch.tensor([[0, 0]]), [2], k=6).tolist() == [0.0]


def test_softmax_adds_up_the_pairs_of_an_image():
    torch.manual_seed(0)
    scores, chosen = torch.randn(5, 4), torch.tensor([0, 3, 1, 3, 2])
    each = -scores.log_softmax(1)[torch.arange(5), chosen]
    expected = torch.stack([each[:2].sum(), torch.tensor(0.0), each[2:].sum()])
    torch.testing.assert_close(softmax_losses(scores, chosen, [2, 0, 3]), expected)


def test_of_several_predicates_each_is_drawn_equally_often():
    torch.manual_seed(0)
    entries = torch.tensor([[0, 2], [2, 0], [2, 1], [2, 4]])
    drawn = torch.stack([draw_predicates(entries, 4, predicates=5) for _ in range(3000)])
    assert drawn[:, 0].unique().tolist() == [2]
    assert drawn[:, [1, 3]].unique().tolist() == [5]
    counts = torch.bincount(drawn[:, 2], minlength=6)
    assert counts[[2, 3, 5]].sum() == 0
    assert (counts[[0, 1, 4]] - 1000).abs().max() < 120


def test_a_share_of_the_pairs_is_another_k_for_every_image():
    scores = torch.randn(2 + 6 + 12, 5)
    entries = torch.tensor([[1, 0], [4, 3], [12, 2]])
    together = lml_losses(scores, entries, (2, 6, 12), 0.25)
    for loss, rows, own, k in zip(
        together, scores.split([2, 6, 12]), ([1, 0], [2, 3], [4, 2]), (1, 2, 3), strict=True
    ):
        assert loss == lml_losses(rows, torch.tensor([own]), (len(rows),), k)

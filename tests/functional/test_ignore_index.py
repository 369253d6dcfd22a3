"""An unknown row may be written -100, as PyTorch and Hugging Face do: it is the same as -1."""

import numpy as np
import pytest
import torch

import shortlist.nn
from shortlist.labels import from_indices
from shortlist.memories import ROLELoss
from shortlist.metrics.functional import top_k_accuracy
from shortlist.objectives import OBJECTIVES
from shortlist.objectives.loss_functions import cross_entropy_loss
from shortlist.sets import Conformal
from tests.functional.harness import CASES, random_scores, value_and_gradient

BY_INDEX = [name for name, case in CASES.items() if "index" in case.targets]
MINUS_1 = torch.tensor([2, -1, 0, 5, -1])
MINUS_100 = torch.tensor([2, -100, 0, 5, -1])


@pytest.mark.parametrize("name", BY_INDEX)
def test_minus_100_is_an_unknown_row(name: str, path: str) -> None:
    scores = random_scores(5, 6)
    scores[1] = float("nan")  # nobody looks at it
    options = [{}, {"sample_weight": torch.rand(5)}, {"weight": torch.rand(6)}, {"mask": torch.arange(6) != 4}]
    for given in options:
        found = value_and_gradient(CASES[name].call, scores, MINUS_100, **given)
        wanted = value_and_gradient(CASES[name].call, scores, MINUS_1, **given)
        for one, other in zip(found, wanted, strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("name", BY_INDEX)
def test_minus_100_is_unknown_where_values_cannot_be_seen(name: str) -> None:
    call, scores = CASES[name].call, random_scores(5, 6)
    wanted = call(scores, MINUS_1)
    torch.testing.assert_close(torch.func.vmap(call, randomness="different")(scores[None], MINUS_100[None])[0], wanted)
    torch.testing.assert_close(torch.compile(call, backend="eager")(scores, MINUS_100), wanted)


@pytest.mark.parametrize("value", [-2, -99, -101])
@pytest.mark.parametrize("name", BY_INDEX)
def test_other_negative_numbers_are_refused(name: str, value: int, path: str) -> None:
    target = MINUS_100.clone()
    target[3] = value
    with pytest.raises(ValueError, match=rf"target\[3\] is {value}: allowed are 0\.\.5, or -1 \(or -100\)"):
        CASES[name].call(random_scores(5, 6), target)


def test_modules_objectives_and_memories_take_it() -> None:
    scores, features = random_scores(5, 6), random_scores(5, 4)
    assert shortlist.nn.SmoothTopKLoss(k=2)(scores, MINUS_100) == shortlist.nn.SmoothTopKLoss(k=2)(scores, MINUS_1)
    for name in ("cross-entropy", "smooth-topk", "average-k"):
        objective = OBJECTIVES[name](4, 6, OBJECTIVES[name].Config(**({} if name == "cross-entropy" else {"k": 2})))
        assert objective.loss(features, MINUS_100) == objective.loss(features, MINUS_1)
    assert cross_entropy_loss(scores, MINUS_100) == torch.nn.functional.cross_entropy(scores, MINUS_1, ignore_index=-1)
    losses = [ROLELoss(5, 6, k=2)(scores, target, torch.arange(5)) for target in (MINUS_100, MINUS_1)]
    assert losses[0] == losses[1]


def test_metrics_rules_and_converters_take_it() -> None:
    scores = random_scores(40, 6)
    target = torch.arange(40) % 6
    unknown = torch.where(torch.arange(40) % 4 == 0, -1, target)
    hundred = torch.where(unknown == -1, -100, unknown)
    assert top_k_accuracy(scores, hundred, 2) == top_k_accuracy(scores, unknown, 2)
    assert Conformal(0.2).fit(scores, hundred).limits == Conformal(0.2).fit(scores, unknown).limits
    assert torch.equal(from_indices(hundred, 6), from_indices(unknown, 6))
    assert np.array_equal(from_indices(hundred.numpy(), 6), from_indices(unknown.numpy(), 6))

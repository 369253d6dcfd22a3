"""Bad input raises a ValueError that says what was given and what is allowed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import shortlist.functional as F
from tests.functional.harness import LOSSES, MATRIX_LOSSES

pytestmark = pytest.mark.usefixtures("path")
SCORES, TARGET, MATRIX = torch.zeros(3, 5), torch.tensor([0, 4, -1]), torch.zeros(3, 5, dtype=torch.long)
LAYERS = {"lml": F.lml, "log_subset_sum": F.log_subset_sum, "subset_marginals": F.subset_marginals}
PUBLIC_LOSSES = {
    "lml_loss": F.lml_loss,
    "smooth_topk_loss": F.smooth_topk_loss,
    "topk_hinge_loss": F.topk_hinge_loss,
    "truncated_entropy_loss": F.truncated_entropy_loss,
    "noised_topk_loss": F.noised_topk_loss,
}
every_loss = pytest.mark.parametrize("loss", PUBLIC_LOSSES.values(), ids=PUBLIC_LOSSES)
every_layer = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
matrix_losses = pytest.mark.parametrize("name", MATRIX_LOSSES)


def refusal(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the tests look at the message
        function(*args, **options)
    return str(error.value)


def assert_says(message: str, *parts: object) -> None:
    for part in parts:
        assert str(part) in message, f"{part!r} is not in: {message}"


@every_loss
@pytest.mark.parametrize("k", [0, -1])
def test_k_below_1_for_a_loss(loss: Callable[..., Any], k: int) -> None:
    assert_says(refusal(loss, SCORES, TARGET, k), "k", "1", k)


@every_layer
@pytest.mark.parametrize("k", [0, -1])
def test_k_below_1_for_a_layer(layer: Callable[..., Any], k: int) -> None:
    assert_says(refusal(layer, SCORES, k), "k", "1", k)


@every_loss
@pytest.mark.parametrize("k", [2.0, "2", None, True])
def test_k_that_is_not_a_whole_number_for_a_loss(loss: Callable[..., Any], k: Any) -> None:
    assert_says(refusal(loss, SCORES, TARGET, k), "k", "whole number", repr(k))


@every_layer
@pytest.mark.parametrize("k", [2.0, "2", None, True])
def test_k_that_is_not_a_whole_number_for_a_layer(layer: Callable[..., Any], k: Any) -> None:
    assert_says(refusal(layer, SCORES, k), "k", "whole number", repr(k))


@every_loss
@pytest.mark.parametrize("k", [2**63, 2**70, 10**5000], ids=["2**63", "2**70", "10**5000"])
def test_k_beyond_64_bits_for_a_loss(loss: Callable[..., Any], k: int) -> None:
    assert_says(refusal(loss, SCORES, TARGET, k), "k", "whole number", "64 bits")


@every_layer
@pytest.mark.parametrize("k", [2**63, 2**70, 10**5000], ids=["2**63", "2**70", "10**5000"])
def test_k_beyond_64_bits_for_a_layer(layer: Callable[..., Any], k: int) -> None:
    assert_says(refusal(layer, SCORES, k), "k", "whole number", "64 bits")


@every_loss
def test_k_may_be_a_numpy_integer(loss: Callable[..., Any]) -> None:
    assert loss(SCORES, TARGET, np.int16(2)).isfinite()


@pytest.mark.parametrize("k", [5, 6, 10**12, 2**62, 2**63 - 1])
def test_k_of_all_labels_or_more_where_it_is_allowed(k: int) -> None:
    scores = torch.randn(3, 5, requires_grad=True)
    for loss in (F.truncated_entropy_loss, F.lml_loss):
        value = loss(scores, TARGET, k)
        assert value == 0
        assert not torch.autograd.grad(value, scores)[0].any()
    assert bool((F.lml(scores, k) == 1).all())
    assert bool((F.lml(scores, torch.full((3,), k)) == 1).all())


@pytest.mark.parametrize("name", ["smooth_topk_loss", "topk_hinge_loss", "noised_topk_loss"])
@pytest.mark.parametrize("k", [5, 50])
def test_k_that_leaves_no_wrong_answer(name: str, k: int) -> None:
    assert_says(refusal(PUBLIC_LOSSES[name], SCORES, TARGET, k), "k", "between 1 and 4", k)


@pytest.mark.parametrize("name", ["log_subset_sum", "subset_marginals"])
def test_k_above_the_number_of_labels_has_no_subset(name: str) -> None:
    assert_says(refusal(LAYERS[name], SCORES, 6), "k", "between 1 and 5", 6)


def test_k_above_the_number_of_labels_for_crops() -> None:
    assert_says(refusal(F.multi_crop_probabilities, torch.zeros(2, 3, 5), 6), "k", "between 1 and 5", 6)


def test_crops_without_a_crop_dimension() -> None:
    assert_says(refusal(F.multi_crop_probabilities, torch.zeros(5), 2), "crop", "(5,)")


@pytest.mark.parametrize("value", [0, -3])
def test_k_per_row_below_1(value: int) -> None:
    assert_says(refusal(F.lml, SCORES, torch.tensor([1, value, 2])), "k", "1", value)


def test_k_per_row_of_the_wrong_shape() -> None:
    assert_says(refusal(F.lml, SCORES, torch.tensor([1, 2])), "k", "(2,)", "(3,)")


def test_k_per_row_of_the_wrong_type() -> None:
    assert_says(refusal(F.lml, SCORES, torch.tensor([1.0, 2.0, 1.0])), "k", "float32")


@every_loss
@pytest.mark.parametrize("value", [5, 17, -2])
def test_a_target_out_of_range_names_its_place(loss: Callable[..., Any], value: int) -> None:
    for reduction in ("mean", "none"):
        message = refusal(loss, SCORES, torch.tensor([0, value, 1]), 2, reduction=reduction)
        assert_says(message, "target[1]", value, "0..4", "-1")


@every_loss
def test_a_target_out_of_range_in_a_nested_batch(loss: Callable[..., Any]) -> None:
    target = torch.zeros(2, 3, dtype=torch.long)
    target[1, 2] = 9
    assert_says(refusal(loss, torch.zeros(2, 3, 5), target, 2), "target[1, 2]", 9, "0..4")


@every_loss
def test_a_target_out_of_range_with_gradients(loss: Callable[..., Any]) -> None:
    scores = SCORES.clone().requires_grad_()
    assert_says(refusal(loss, scores, torch.tensor([0, 1, 5]), 2), "target[2]", 5, "0..4")


@every_loss
@pytest.mark.parametrize("shape", [(2,), (3, 1), (5,), (3, 4)])
def test_a_target_of_the_wrong_shape(loss: Callable[..., Any], shape: tuple[int, ...]) -> None:
    message = refusal(loss, SCORES, torch.zeros(shape, dtype=torch.long), 2)
    assert_says(message, "target", shape, (3, 5), (3,))


@every_loss
def test_a_target_of_floats_is_not_class_indices(loss: Callable[..., Any]) -> None:
    assert_says(refusal(loss, SCORES, torch.zeros(3), 2), "target", "float32", "integer")


@every_loss
def test_a_target_that_is_no_tensor(loss: Callable[..., Any]) -> None:
    assert_says(refusal(loss, SCORES, [0, 1, 2], 2), "target", "Tensor", "list")


@pytest.mark.parametrize("name", sorted(set(PUBLIC_LOSSES) - set(MATRIX_LOSSES)))
def test_a_label_matrix_where_only_indices_are_taken(name: str) -> None:
    assert_says(refusal(PUBLIC_LOSSES[name], SCORES, MATRIX, 2), "target", (3, 5), (3,))


@matrix_losses
@pytest.mark.parametrize("bad", [2, -2, 0.5, float("nan")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_a_label_matrix_with_another_value_names_its_place(name: str, bad: float, dtype: torch.dtype) -> None:
    if dtype == torch.int64 and bad != int(bad if bad == bad else 0):
        pytest.skip("not an integer")
    target = MATRIX.to(dtype)
    target[1, 3] = bad
    for reduction in ("mean", "none"):
        assert_says(refusal(PUBLIC_LOSSES[name], SCORES, target, 2, reduction=reduction), "target[1, 3]", bad, "-1")


@every_loss
def test_integer_scores_for_a_loss(loss: Callable[..., Any]) -> None:
    assert_says(refusal(loss, SCORES.long(), TARGET, 2), "scores", "floating point", "int64")


@every_layer
def test_scores_that_are_no_logits_for_a_layer(layer: Callable[..., Any]) -> None:
    assert_says(refusal(layer, SCORES.long(), 2), "scores", "floating point", "int64")
    assert_says(refusal(layer, torch.tensor(1.0), 2), "scores", "dimension")
    assert_says(refusal(layer, [1.0, 2.0], 2), "scores", "Tensor", "list")


@every_loss
def test_an_unknown_reduction(loss: Callable[..., Any]) -> None:
    assert_says(refusal(loss, SCORES, TARGET, 2, reduction="average"), "'average'", "'mean'", "'sum'", "'none'")


@every_loss
def test_a_mask_that_is_not_bool_or_does_not_fit_a_loss(loss: Callable[..., Any]) -> None:
    assert_says(refusal(loss, SCORES, TARGET, 2, mask=torch.ones(3, 5)), "mask", "bool", "float32")
    message = refusal(loss, SCORES, TARGET, 2, mask=torch.ones(3, 4, dtype=torch.bool))
    assert_says(message, "mask", (3, 4), (3, 5))


@every_layer
def test_a_mask_that_is_not_bool_or_does_not_fit_a_layer(layer: Callable[..., Any]) -> None:
    assert_says(refusal(layer, SCORES, 2, mask=torch.ones(3, 5)), "mask", "bool", "float32")
    assert_says(refusal(layer, SCORES, 2, mask=torch.ones(2, 5, dtype=torch.bool)), "mask", (2, 5), (3, 5))


@every_loss
def test_weights_that_do_not_fit(loss: Callable[..., Any]) -> None:
    assert_says(refusal(loss, SCORES, TARGET, 2, weight=torch.ones(3)), "weight", (3,), (5,))
    assert_says(refusal(loss, SCORES, TARGET, 2, sample_weight=torch.ones(5)), "sample_weight", (5,), (3,))
    negative = torch.tensor([1.0, -2.0, 1.0])
    assert_says(refusal(loss, SCORES, TARGET, 2, sample_weight=negative), "sample_weight[1]", -2.0)


@pytest.mark.parametrize("tau", [0.0, -1.0, float("nan"), float("inf")])
def test_tau_that_is_not_positive(tau: float) -> None:
    assert_says(refusal(F.smooth_topk_loss, SCORES, TARGET, 2, tau=tau), "tau", "positive", tau)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_a_temperature_that_is_not_positive(temperature: float) -> None:
    assert_says(refusal(F.lml, SCORES, 2, temperature=temperature), "temperature", "positive", temperature)
    message = refusal(F.lml_loss, SCORES, TARGET, 2, temperature=temperature)
    assert_says(message, "temperature", "positive", temperature)


def test_a_dimension_that_is_not_there() -> None:
    with pytest.raises((ValueError, IndexError), match="2"):
        F.lml(SCORES, 2, dim=2)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("epsilon", -1.0),
        ("epsilon", float("nan")),
        ("n_samples", -1),
        ("n_samples", 2.5),
        ("max_margin", 0.0),
        ("scale", -1.0),
    ],
)
def test_noise_options_out_of_range(option: str, value: float) -> None:
    counts = torch.ones(5)
    options = {option: value, **({"class_counts": counts} if option in ("max_margin", "scale") else {})}
    assert_says(refusal(F.noised_topk_loss, SCORES, TARGET, 2, **options), option, value)


@pytest.mark.parametrize("counts", [torch.ones(4), torch.tensor([1, 2, 0, 4, 5]), torch.tensor([1.0, 2, -3, 4, 5])])
def test_class_counts_that_do_not_fit(counts: torch.Tensor) -> None:
    message = refusal(F.noised_topk_loss, SCORES, TARGET, 2, class_counts=counts)
    assert_says(message, "class_counts", (4,) if len(counts) == 4 else f"[2] is {counts[2].item()}")


def test_the_table_of_losses_is_the_public_one() -> None:
    assert set(PUBLIC_LOSSES) == set(LOSSES)

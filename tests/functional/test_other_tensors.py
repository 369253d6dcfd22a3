"""Tensors that no kernel may be handed: on another device, sparse, or of a type that is not served."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import shortlist.functional as F
from shortlist.errors import ShortlistError

pytestmark = pytest.mark.usefixtures("path")
SCORES, INDEX, MATRIX = torch.zeros(3, 5), torch.tensor([0, 4, 1]), torch.eye(5)[:3].long()
MASK, WEIGHT = torch.ones(3, 5, dtype=torch.bool), torch.ones(5)
ROWS = {"mask": MASK, "sample_weight": torch.ones(3)}

# every function with every tensor that it takes: function, tensors by name, numbers by name
CALLS: dict[str, tuple[Callable[..., Tensor], dict[str, Tensor], dict[str, Any]]] = {
    **{
        name: (getattr(F, name), {"target": INDEX, "weight": WEIGHT, **ROWS}, {"k": 2})
        for name in ("smooth_topk_loss", "topk_hinge_loss", "truncated_entropy_loss", "expected_positive_loss")
    },
    **{
        name: (getattr(F, name), {"target": MATRIX, **ROWS}, {})
        for name in (
            "asymmetric_loss",
            "lsep_loss",
            "multilabel_softmax_loss",
            "partial_binary_loss",
            "rml_loss",
            "two_way_loss",
            "warp_loss",
        )
    },
    "binary_loss": (F.binary_loss, {"target": MATRIX, "pos_weight": WEIGHT, **ROWS}, {}),
    "partial_selective_loss": (F.partial_selective_loss, {"target": MATRIX, "prior": WEIGHT, **ROWS}, {}),
    "assume_negative_loss": (F.assume_negative_loss, {"target": INDEX, "weight": WEIGHT, **ROWS}, {}),
    "average_k_loss": (
        F.average_k_loss,
        {"proposal_scores": SCORES, "target": INDEX, "weight": WEIGHT, **ROWS},
        {"k": 2},
    ),
    "noised_topk_loss": (
        F.noised_topk_loss,
        {"target": INDEX, "class_counts": WEIGHT, "weight": WEIGHT, **ROWS},
        {"k": 2},
    ),
    "lml_loss": (F.lml_loss, {"target": INDEX, "k": torch.tensor([1, 2, 3]), "weight": WEIGHT, **ROWS}, {}),
    "lml": (F.lml, {"k": torch.tensor([1, 2, 3]), "mask": MASK}, {}),
    "log_subset_sum": (F.log_subset_sum, {"mask": MASK}, {"k": 2}),
    "subset_marginals": (F.subset_marginals, {"mask": MASK}, {"k": 2}),
    "multi_crop_probabilities": (F.multi_crop_probabilities, {}, {"k": 2}),
}
TENSORS = [(name, argument) for name, (_, tensors, _) in CALLS.items() for argument in tensors]
every_function = pytest.mark.parametrize("name", CALLS)


def test_every_function_is_here() -> None:
    assert set(CALLS) == set(F.__all__) - {"linear_loss"}  # which has checks of its own


@pytest.mark.parametrize(("name", "argument"), TENSORS)
def test_a_tensor_on_another_device_is_refused_by_name(name: str, argument: str) -> None:
    function, tensors, numbers = CALLS[name]
    elsewhere = {**tensors, argument: tensors[argument].to("meta")}
    with pytest.raises(ShortlistError, match=f"{argument} is on device meta, the scores are on cpu"):
        function(SCORES, **elsewhere, **numbers)


@every_function
def test_scores_on_another_device_are_refused(name: str) -> None:
    function, tensors, numbers = CALLS[name]
    if tensors:
        with pytest.raises(ShortlistError, match="is on device cpu, the scores are on meta"):
            function(SCORES.to("meta"), **tensors, **numbers)


@every_function
def test_all_tensors_on_one_device_without_values_have_the_shape_of_the_result(name: str) -> None:
    function, tensors, numbers = CALLS[name]
    result = function(SCORES.to("meta"), **{key: t.to("meta") for key, t in tensors.items()}, **numbers)
    assert result.device.type == "meta"
    assert result.shape == function(SCORES, **tensors, **numbers).shape


@every_function
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.complex64, torch.int64])
def test_scores_of_a_type_that_is_not_served_are_refused(name: str, dtype: torch.dtype) -> None:
    function, tensors, numbers = CALLS[name]
    with pytest.raises(ShortlistError, match=f"scores must be floating point .*got dtype {dtype}"):
        function(SCORES.to(dtype), **tensors, **numbers)


@every_function
def test_sparse_scores_are_refused(name: str) -> None:
    function, tensors, numbers = CALLS[name]
    with pytest.raises(ShortlistError, match="scores must be a dense tensor, got layout"):
        function(SCORES.to_sparse(), **tensors, **numbers)


NESTED = torch.nested.as_nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.jagged)


@every_function
def test_nested_scores_are_refused(name: str) -> None:
    function, tensors, numbers = CALLS[name]
    with pytest.raises(ShortlistError, match="scores must be a dense tensor, got a nested one"):
        function(NESTED, **tensors, **numbers)


@pytest.mark.parametrize(("name", "argument"), TENSORS)
@pytest.mark.parametrize("other", ["sparse", "nested", "complex", "float8", "object"])
def test_other_tensors_of_another_kind_are_refused_by_name(name: str, argument: str, other: str) -> None:
    function, tensors, numbers = CALLS[name]
    made: dict[str, Callable[[Tensor], Any]] = {
        "sparse": Tensor.to_sparse,
        "nested": lambda _: NESTED,
        "complex": lambda tensor: tensor.to(torch.complex64),
        "float8": lambda tensor: tensor.to(torch.float8_e4m3fn),
        "object": lambda _: object(),
    }
    with pytest.raises(ShortlistError, match=f"{argument} must "):
        function(SCORES, **{**tensors, argument: made[other](tensors[argument])}, **numbers)


@pytest.mark.parametrize("target", [MATRIX.to_sparse(), MATRIX.to(torch.float8_e4m3fn), MATRIX.to(torch.complex64)])
def test_label_matrices_that_are_sparse_or_of_another_type_are_refused(target: Tensor) -> None:
    for name in ("binary_loss", "two_way_loss", "rml_loss"):
        with pytest.raises(ShortlistError, match="target must be a"):
            getattr(F, name)(SCORES, target)


@pytest.mark.parametrize("weight", [float("inf"), float("nan"), -1.0, 1e16])
def test_weights_that_are_not_from_0_to_1e15_are_refused(weight: float) -> None:
    sample_weight = torch.tensor([1.0, weight, 1.0])
    for name in ("binary_loss", "rml_loss", "assume_negative_loss"):
        target = CALLS[name][1]["target"]
        with pytest.raises(ShortlistError, match=r"sample_weight\[1\] is .*: weights are numbers from 0 to 1e15"):
            getattr(F, name)(SCORES, target, sample_weight=sample_weight)


@pytest.mark.parametrize("name", ["binary_loss", "rml_loss", "assume_negative_loss"])
def test_a_weight_below_the_smallest_normal_number_is_0(name: str) -> None:
    scores = SCORES.clone().requires_grad_()
    loss = getattr(F, name)(scores, CALLS[name][1]["target"], sample_weight=torch.full((3,), 1e-40))
    loss.backward()
    assert float(loss.detach()) == 0
    assert not scores.grad.any()


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("two_way_loss", "margin"),
        ("two_way_loss", "positive_temperature"),
        ("two_way_loss", "negative_temperature"),
        ("rml_loss", "ramp"),
        ("rml_loss", "label_weight"),
        ("asymmetric_loss", "gamma_neg"),
        ("asymmetric_loss", "clip"),
        ("partial_selective_loss", "prior_threshold"),
        ("partial_binary_loss", "boost"),
        ("expected_positive_loss", "beta"),
        ("expected_positive_loss", "k"),
        ("average_k_loss", "alpha"),
        ("average_k_loss", "k"),
        ("assume_negative_loss", "label_smoothing"),
        ("smooth_topk_loss", "tau"),
        ("smooth_topk_loss", "alpha"),
        ("topk_hinge_loss", "alpha"),
        ("lml_loss", "temperature"),
    ],
)
@pytest.mark.parametrize("value", [float("nan"), "2", 1e300, float("inf"), True, 10**400, torch.ones(3)], ids=type)
def test_options_that_are_no_ordinary_number_are_refused(name: str, option: str, value: Any) -> None:
    function, tensors, numbers = CALLS[name]
    with pytest.raises(ShortlistError, match=f"{option} must be"):
        function(SCORES, **tensors, **{**numbers, option: value})


@pytest.mark.parametrize("option", ["positive_temperature", "negative_temperature"])
def test_a_temperature_whose_inverse_overflows_is_refused(option: str) -> None:
    with pytest.raises(ShortlistError, match=f"{option} must be a positive finite number .*1e-310"):
        F.two_way_loss(SCORES, MATRIX, **{option: 1e-310})

"""The benchmark for GPUs, without one: what it measures can be called, and is all that has a kernel."""

import torch

from benchmarks import gpu

KERNELS = {
    "smooth_topk_loss", "topk_hinge_loss", "truncated_entropy_loss", "lml_loss", "lml", "log_subset_sum",
    "subset_marginals", "binary_loss", "partial_binary_loss", "asymmetric_loss", "partial_selective_loss",
    "two_way_loss", "lsep_loss", "multilabel_softmax_loss", "assume_negative_loss", "expected_positive_loss",
    "average_k_loss",
}  # fmt: skip


def test_every_loss_with_a_kernel_is_measured() -> None:
    losses = gpu.losses(3, 4, 20, "cpu")
    assert {name.split(",")[0] for name in losses} >= KERNELS
    for name, loss in losses.items():
        scores = torch.randn(4, 20, requires_grad=True)
        loss(scores).backward()
        assert scores.grad is not None, name
        assert scores.grad.isfinite().all(), name

"""Kernels for GPUs, written in Triton; ``shortlist.kernels.dispatch`` imports them when a tensor asks for one."""

from shortlist.kernels.triton import (
    asymmetric,
    average_k,
    entries,
    expected_positive,
    finish,
    lml,
    pairs,
    subset_slopes,
    subsets,
    topk,
    truncated_entropy,
    two_way,
)
from shortlist.kernels.triton.launch import Offer

FAMILIES = (
    asymmetric,
    average_k,
    entries,
    expected_positive,
    finish,
    lml,
    pairs,
    subset_slopes,
    subsets,
    topk,
    truncated_entropy,
    two_way,
)
OFFERS: dict[str, Offer] = {name: offer for family in FAMILIES for name, offer in family.OFFERS.items()}

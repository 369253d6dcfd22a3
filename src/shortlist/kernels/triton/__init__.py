"""Kernels for GPUs, written in Triton; ``shortlist.kernels.dispatch`` imports them when a tensor asks for one."""

from shortlist.kernels.triton import (
    asymmetric,
    average_k,
    entries,
    expected_positive,
    finish,
    pairs,
    topk,
    two_way,
)
from shortlist.kernels.triton.launch import Offer

_FAMILIES = (asymmetric, average_k, entries, expected_positive, finish, pairs, topk, two_way)
OFFERS: dict[str, Offer] = {name: offer for family in _FAMILIES for name, offer in family.OFFERS.items()}

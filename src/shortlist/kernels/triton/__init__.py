"""Kernels for GPUs, written in Triton; ``shortlist.kernels.dispatch`` imports them when a tensor asks for one."""

from shortlist.kernels.triton import finish, topk
from shortlist.kernels.triton.launch import Offer

OFFERS: dict[str, Offer] = {name: offer for family in (finish, topk) for name, offer in family.OFFERS.items()}

"""Prediction from several crops of each image."""

from dataclasses import replace

import torch
from torch import Tensor

from shortlist.data import Dataset
from shortlist.data.images import ZOOM
from shortlist.errors import ShortlistError
from shortlist.functional import multi_crop_probabilities


def larger(dataset: Dataset) -> Dataset:
    """The images with something around what one crop shows: files decoded 8/7 as large. Pixels stay as they are."""
    if dataset.kind != "images":
        raise ShortlistError(f"crops are of images, the data has {dataset.kind}: set crops=1")
    if dataset.inputs.in_memory:
        return dataset
    return replace(dataset, inputs=dataset.inputs.resized(round(max(dataset.inputs.size) * ZOOM)))


def crops_of(images: Tensor, size: tuple[int, ...], count: int) -> Tensor:
    """The four corners and the middle of each image, and for ten crops their mirror images: (B, crops, C, H, W). Images
    that are not larger than the crops are padded by an eighth with zeros, the mean colour.

    >>> crops_of(torch.ones(2, 3, 9, 9), (8, 8), 10).shape, crops_of(torch.ones(2, 3, 8, 8), (8, 8), 5).shape
    (torch.Size([2, 10, 3, 8, 8]), torch.Size([2, 5, 3, 8, 8]))
    """
    height, width = size
    if images.shape[2:] == size:
        sides, ends = max(1, width // 8), max(1, height // 8)
        images = torch.nn.functional.pad(images, (sides, sides, ends, ends))
    down, across = images.shape[2] - height, images.shape[3] - width
    places = ((0, 0), (0, across), (down, 0), (down, across), (down // 2, across // 2))
    found = [images[:, :, top : top + height, left : left + width] for top, left in places]
    if count == 10:
        found += [crop.flip(3) for crop in found]
    return torch.stack(found, dim=1)


def combined(crop_scores: Tensor, link: str, k: int) -> Tensor:
    """One row of scores from those of several crops, (B, crops, L) to (B, L), for the same link.

    Softmax: the logarithm of the chance to be among the k, averaged over the crops (`multi_crop_probabilities`), so
    that softmax of it is that chance divided by k. Sigmoid: the logit of the mean probability. None: the mean.

    >>> crops = torch.tensor([[[2.0, 0.0, 1.0], [0.0, 3.0, 1.0]]])
    >>> torch.allclose(combined(crops, "softmax", 1).softmax(-1), crops.softmax(-1).mean(1))
    True
    """
    if link == "softmax":
        chances = multi_crop_probabilities(crop_scores.double(), k) / k
        return chances.clamp(min=torch.finfo(torch.float32).tiny).log().float()
    if link == "sigmoid":
        log = torch.nn.functional.logsigmoid  # the means of p and of 1 - p, by their logarithms: neither is lost
        return log(crop_scores).logsumexp(1) - log(-crop_scores).logsumexp(1)
    return crop_scores.mean(1)

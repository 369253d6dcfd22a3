"""The embedded data set: two-digit numbers whose handwriting can be read in more than one way."""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from shortlist.checks import check_choice, whole
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.seeded import random_for
from shortlist.errors import ShortlistError
from shortlist.labels.label_set_inputs import as_offsets
from shortlist.labels.label_sets import LabelSets
from shortlist.optional import require

Part = Literal["train", "val", "test"]
# which drawings of each digit a part may use: no drawing is in two parts
_PARTS: dict[Part, tuple[float, float]] = {"train": (0.0, 0.6), "val": (0.6, 0.8), "test": (0.8, 1.0)}


def ambiguous_numbers(
    size: int = 5000,
    *,
    part: Part = "train",
    shares: tuple[float, float, float] = (0.5, 0.25, 0.25),
    form: Literal["features", "images"] = "features",
    labels: Literal["one", "all"] = "one",
    seed: int = 0,
) -> Dataset:
    """Numbers 00-99 made of scikit-learn's handwritten digits, some of them ambiguous. Needs no download.

    Two digits stand side by side. In part of the images one or both of them are the average of two different digits,
    so that 2 or 4 readings are equally right. The recorded label is one of the readings, each as likely as the others;
    all of them are kept in ``truth``. The tens digit is the label's coarse group.

    Args:
        size: how many images.
        part: "train", "val" and "test" use different drawings: none is in two parts.
        shares: the shares of images with 1, 2 and 4 readings. They are met exactly up to rounding. With the default
            an image has two readings on average, so that two labels on average, but not two labels always, are enough.
        form: "features" (128 numbers from 0 to 1) or "images" (8 x 16 pixels, one channel).
        labels: "one" reading is recorded, or "all" of them, in a label matrix.
        seed: the same seed gives the same images.

    >>> data = ambiguous_numbers(1000)
    >>> data
    Dataset('ambiguous-numbers': 1000 examples, 128 features, one of 100 labels each)
    >>> np.bincount(data.truth.sizes).tolist()
    [0, 500, 250, 0, 250]
    """
    counts = _counts(size, shares)
    check_choice(part, "part", _PARTS)
    check_choice(form, "form", ("features", "images"))
    check_choice(labels, "labels", ("one", "all"))
    drawings = _drawings(part)
    random = random_for(f"ambiguous-numbers {part}", seed)

    readings = random.permutation(np.repeat([1, 2, 4], counts))
    blended = np.repeat(readings[:, None] == 4, 2, axis=1)  # (N, 2): is the tens digit a blend, is the units digit
    two = np.flatnonzero(readings == 2)
    blended[two, random.integers(0, 2, len(two))] = True

    digits = random.integers(0, 10, (size, 2))
    others = (digits + random.integers(1, 10, (size, 2))) % 10  # never the digit itself
    first, second = _draw(drawings, digits, random), _draw(drawings, others, random)
    # drawings have 17 grey levels, 0..16; the average of two of them is exact in steps of 1/2
    images = np.where(blended[:, :, None, None], (first + second) / 2, first)  # (N, 2, 8, 8)
    images = images.transpose(0, 2, 1, 3).reshape(size, 8, 16)

    pictures = Images(np.round(images * (255 / 16)).astype(np.uint8)[..., None], mean=(0.3,), std=(0.35,))
    features = torch.from_numpy((images.reshape(size, 128) / 16).astype(np.float32))
    vocabulary = tuple(f"{number:02}" for number in range(100))
    truth = _all_readings(digits, others, blended, vocabulary)
    recorded = 10 * digits[:, 0] + digits[:, 1] if labels == "one" else truth.to_dense().astype(np.int8)
    return Dataset(
        pictures if form == "images" else features,
        torch.from_numpy(recorded),
        vocabulary,
        groups=torch.arange(100) // 10,
        group_names=tuple(f"{ten}_" for ten in range(10)),
        truth=truth,
        name="ambiguous-numbers",
        pictures=pictures,
    )


def _counts(size: int, shares: tuple[float, float, float]) -> list[int]:
    size = whole(size, "size", 1)
    if len(shares) != 3 or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
        raise ShortlistError(f"shares must be three numbers of 0 or more that sum to 1, got {shares}")
    ends = np.round(np.cumsum([0.0, *shares]) * size).astype(int)
    return [int(count) for count in np.diff(ends)]


def _drawings(part: Part) -> list[NDArray[np.float64]]:
    """The drawings of each digit that this part may use, (n, 8, 8) each."""
    digits = require("sklearn.datasets").load_digits()
    begin, end = _PARTS[part]
    of_digit = [digits.images[digits.target == digit] for digit in range(10)]
    return [found[round(begin * len(found)) : round(end * len(found))] for found in of_digit]


def _draw(drawings: list[NDArray[np.float64]], digits: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    """For each digit one of its drawings, all equally likely."""
    sizes = np.array([len(found) for found in drawings])
    starts = np.cumsum(sizes) - sizes
    chosen = starts[digits] + np.floor(random.random(digits.shape) * sizes[digits]).astype(int)
    return np.concatenate(drawings)[chosen]


def _all_readings(
    digits: NDArray[Any], others: NDArray[Any], blended: NDArray[np.bool_], vocabulary: tuple[str, ...]
) -> LabelSets:
    """Every combination of the possible tens and units."""
    options = np.stack([digits, others], axis=-1)  # (N, 2, 2)
    numbers = 10 * options[:, 0, :, None] + options[:, 1, None, :]  # (N, tens option, units option)
    one = np.ones(len(digits), dtype=bool)
    tens = np.stack([one, blended[:, 0]], axis=-1)
    units = np.stack([one, blended[:, 1]], axis=-1)
    possible = (tens[:, :, None] & units[:, None, :]).reshape(-1, 4)
    numbers = np.sort(np.where(possible, numbers.reshape(-1, 4), 100), axis=1)  # what is not possible goes last
    return LabelSets(as_offsets(possible.sum(1)), numbers[numbers < 100], 100, vocabulary)

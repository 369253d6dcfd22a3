"""CUB-200-2011: birds with 312 attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch

from shortlist.checks import check_choice
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.text_lines import numbered_names, text_lines
from shortlist.errors import ShortlistError
from shortlist.files import PathLike


def read_cub(
    path: PathLike,
    *,
    part: Literal["train", "test", "all"] = "train",
    certainty: int = 2,
    not_visible: Literal["unknown", "absent"] = "unknown",
    size: int = 224,
    crop: bool = False,
) -> Dataset:
    """The attributes of the birds in CUB-200-2011, as it is distributed.

    ``images.txt``, ``train_test_split.txt``, ``attributes/image_attribute_labels.txt`` and ``attributes.txt`` (in the
    folder, in ``attributes`` or beside the folder). An attribute's coarse group is what it is about, such as
    ``has_bill_shape``. The species is each image's side label.

    Args:
        path: the folder ``CUB_200_2011``.
        part: "train" or "test", as the authors split it, or "all".
        certainty: labels given with less are unknown: 1 keeps all, 2 leaves out what was not visible, 3 also what was
            guessed, 4 all but what was definite.
        not_visible: with a certainty of 2 and more, what was not visible is "unknown", or "absent".
        size, crop: how images are resized, as for ``read_image_folder``.

    Example:
        ```yaml
        data:
          train: {reader: cub, path: CUB_200_2011, certainty: 2}
          test: {reader: cub, path: CUB_200_2011, part: test}
        backbone: efficientnet-lite0
        objective: two-way
        ```
    """
    check_choice(part, "part", ("train", "test", "all"))
    if certainty not in (1, 2, 3, 4):
        raise ShortlistError(f"certainty must be 1 (not visible), 2 (guessing), 3 (probably) or 4, got {certainty!r}")
    check_choice(not_visible, "not_visible", ("unknown", "absent"))
    findings, root = Findings(), Path(path)
    images = numbered_names(root / "images.txt", findings)
    training = numbered_names(root / "train_test_split.txt", findings)
    places = [root / "attributes.txt", root / "attributes" / "attributes.txt", root.parent / "attributes.txt"]
    named = next((place for place in places if place.is_file()), places[0])
    attributes = numbered_names(named, findings)
    for file, found in ((root / "images.txt", images), (root / "train_test_split.txt", training), (named, attributes)):
        if not found and not findings.problems:
            findings.add(file, "there is nothing in it")
            findings.stop_if_any()
    for identity, (line, name) in images.items():
        findings.image(root / "images" / name, root / "images.txt", line, "line")
        if training and training.get(identity, (0, ""))[1] not in ("0", "1"):
            findings.add(root / "train_test_split.txt", f"image {identity} must be 1 (train) or 0 (test)")
    wanted = {"train": ("1",), "test": ("0",), "all": ("0", "1")}[part]
    kept = [identity for identity in images if identity in training and training[identity][1] in wanted]
    labels = root / "attributes" / "image_attribute_labels.txt"
    target = _attribute_labels(labels, kept, set(images), list(attributes), certainty, not_visible, findings)
    findings.stop_if_any()

    names = [name for _, name in attributes.values()]
    about = [name.partition("::")[0] for name in names]
    kinds = list(dict.fromkeys(about))
    return Dataset(
        Images.from_files((root / "images" / images[identity][1] for identity in kept), size, crop),
        target,
        tuple(names),
        groups=torch.tensor([kinds.index(kind) for kind in about]),
        group_names=tuple(kinds),
        ids=tuple(images[identity][1] for identity in kept),
        side=_species([images[identity][1] for identity in kept]),
        name=f"cub-{part}",
    )


_CERTAINTIES = (1, 2, 3, 4)  # not visible, guessing, probably, definitely


def _species(names: list[str]) -> torch.Tensor:
    """The species of each image: the number that its folder's name begins with, ``001.Black_footed_Albatross``."""
    numbers = [name.partition(".")[0] for name in names]
    return torch.tensor([int(number) - 1 if number.isdecimal() else -1 for number in numbers], dtype=torch.int64)


def _attribute_labels(
    path: Path,
    kept: list[int],
    images: set[int],
    attributes: list[int],
    certainty: int,
    not_visible: str,
    findings: Findings,
) -> torch.Tensor:
    """The label matrix from lines ``image attribute present certainty time``; what has no line is unknown."""
    row = {identity: number for number, identity in enumerate(kept)}
    column = {identity: number for number, identity in enumerate(attributes)}
    matrix = [bytearray(b"\xff" * len(attributes)) for _ in kept]  # 255 is -1 in int8
    done = [bytearray(len(attributes)) for _ in kept]
    for line, text in text_lines(path, findings):
        try:  # some official lines have more fields than the five promised
            image, attribute, present, sure = map(int, (fields := text.split())[:4])
            sure = sure if len(fields) < 6 or sure in _CERTAINTIES else int(fields[4])
        except ValueError:
            findings.add(path, f"a line must begin with four whole numbers, got {text!r}", line, "line")
            continue
        if image not in images or attribute not in column or present not in (0, 1):
            message = f"the image, the attribute or the label is outside what there is: {text!r}"
            findings.add(path, message, line, "line")
        elif len(fields) < 6 and not 0 <= sure <= 4:
            findings.add(path, f"the certainty must be from 1 to 4, or 0 where there is none, got {sure}", line, "line")
        elif image in row:
            place, label = row[image], column[attribute]
            if done[place][label]:
                findings.add(path, f"attribute {attribute} of image {image} is a duplicate", line, "line")
            done[place][label] = 1
            sure = sure if sure in _CERTAINTIES else 2  # without one, as good as guessed
            if sure >= certainty:
                matrix[place][label] = present
            elif sure == 1 and not_visible == "absent":
                matrix[place][label] = 0
    if not kept or not attributes:
        return torch.empty((len(kept), len(attributes)), dtype=torch.int8)
    return torch.frombuffer(bytearray(b"".join(matrix)), dtype=torch.int8).reshape(len(kept), len(attributes)).clone()

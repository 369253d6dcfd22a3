"""Pl@ntNet-300K (Garcin et al. 2021)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Literal

import torch

from shortlist.checks import check_choice
from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.image_folder import images_under, label_folders
from shortlist.data.readers.json_files import read_json
from shortlist.files import PathLike

_NAMES = "plantnet300K_species_id_2_name.json"
_PARTS = ("train", "val", "test")


def read_plantnet(
    path: PathLike,
    *,
    part: Literal["train", "val", "test"] = "train",
    size: int = 224,
    crop: bool = True,
) -> Dataset:
    """Pl@ntNet-300K as it is distributed: ``images/{train,val,test}/SPECIES_ID/*.jpg`` and the JSON file of names.

    The labels are the species with a folder in any part, in the order of their ids as text; the coarse group of a
    species is its genus.

    Args:
        path: the folder with ``images`` in it.
        part: "train", "val" or "test".
        size, crop: how images are resized, as for ``read_image_folder``.

    Example:
        ```yaml
        data:
          train: {reader: plantnet, path: plantnet_300K}
          validation: {reader: plantnet, path: plantnet_300K, part: val}
          test: {reader: plantnet, path: plantnet_300K, part: test}
        backbone: {name: resnet18, weights: resnet18.pth}
        objective: {name: smooth-topk, k: 5}
        ```
    """
    check_choice(part, "part", _PARTS)
    findings = Findings()
    root = Path(path)
    findings.folder(root / "images" / part)
    names = _species_names(root / _NAMES, findings)
    folders = {name: label_folders(root / "images" / name, findings) for name in _PARTS}
    species = sorted(set().union(*folders.values()))
    for identity in species:
        if identity not in names:
            findings.add(root / _NAMES, f"there is no name for the species {identity}, which has a folder of images")
    images, labels = [], []
    for label, identity in enumerate(species):
        found = images_under(folders[part][identity]) if identity in folders[part] else []
        for image in found:
            findings.image(image, image, None)
        images += found
        labels += [label] * len(found)
    findings.stop_if_any()

    genera = sorted({names[identity].split()[0] for identity in species})
    number = {genus: group for group, genus in enumerate(genera)}
    species_of_name = Counter(names[identity] for identity in species)
    return Dataset(
        Images.from_files(images, size, crop),
        torch.tensor(labels, dtype=torch.int64),
        # two ids of one species stay two labels, told apart by their ids
        tuple(names[i] if species_of_name[names[i]] == 1 else f"{names[i]} ({i})" for i in species),
        groups=torch.tensor([number[names[i].split()[0]] for i in species]),
        group_names=tuple(genera),
        ids=tuple(image.relative_to(root / "images").as_posix() for image in images),
        name=f"plantnet-{part}",
    )


def _species_names(path: Path, findings: Findings) -> dict[str, str]:
    found: dict[str, Any] = read_json(path, dict, findings)
    if not all(isinstance(name, str) and name.split() for name in found.values()):
        findings.add(path, "must be a JSON object from species ids to names")
        return {}
    return found

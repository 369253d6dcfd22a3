"""COCO: the objects in each image."""

from __future__ import annotations

import mmap
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from shortlist.data.dataset import Dataset
from shortlist.data.images import Images
from shortlist.data.readers.findings import Findings
from shortlist.data.readers.json_files import read_json
from shortlist.files import PathLike


def read_coco(
    path: PathLike,
    *,
    images: PathLike,
    size: int = 224,
    crop: bool = False,
) -> Dataset:
    """The categories of the objects in each image, from an instances JSON file (``instances_train2014.json``, ...).

    A category is present if the image has an object of it, crowds included, and absent otherwise. Labels come in the
    order of the category ids; their coarse groups are the supercategories.

    Args:
        path: the JSON file.
        images: the folder with the images, such as ``train2014``.
        size, crop: how images are resized, as for ``read_image_folder``.

    Example:
        ```yaml
        data:
          train: {reader: coco, path: annotations/instances_train2014.json, images: train2014}
          test: {reader: coco, path: annotations/instances_val2014.json, images: val2014}
        backbone: {name: resnet50, weights: resnet50.pth}
        objective: two-way
        ```
    """
    findings = Findings()
    content = coco_content(Path(path), ("images", "annotations", "categories"), findings)
    categories = by_id(path, content["categories"], "categories", "name", findings)
    listed = by_id(path, content["images"], "images", "file_name", findings)
    folder = Path(images)
    for place, image in listed.values():
        findings.image(folder / image["file_name"], path, place)
    label = {identity: number for number, identity in enumerate(sorted(categories))}
    row = {identity: number for number, identity in enumerate(listed)}
    target = torch.zeros((len(row), len(label)), dtype=torch.int8)
    present: list[tuple[int, int]] = []
    for place, found in enumerate(content["annotations"]):
        image_id, category_id = (found.get(key) if isinstance(found, dict) else None for key in _OBJECT)
        if image_id not in row:
            findings.add(path, f"annotations[{place}] is of an image that is not listed, {image_id!r}", place)
        if category_id not in label:
            message = f"annotations[{place}] is of the category {category_id!r}, which is outside the vocabulary"
            findings.add(path, message, place)
        if image_id in row and category_id in label:
            present.append((row[image_id], label[category_id]))
    findings.stop_if_any()
    if present:
        rows, labels = torch.tensor(present).T
        target[rows, labels] = 1
    named = [categories[identity][1] for identity in label]
    supercategories = [str(category.get("supercategory", "")) for category in named]
    group_names = sorted(set(supercategories))
    return Dataset(
        Images.from_files((folder / image["file_name"] for _, image in listed.values()), size, crop),
        target,
        tuple(category["name"] for category in named),
        groups=torch.tensor([group_names.index(group) for group in supercategories]),
        group_names=tuple(group_names),
        ids=tuple(image["file_name"] for _, image in listed.values()),
        name=Path(path).stem,
    )


_OBJECT = ("image_id", "category_id")
_KEYS = b'"images"', b'"file_name"', b'"annotations"', b'"category_id"', b'"categories"'


def is_coco(path: Path) -> bool:
    """Whether a file is one JSON object that has the names that COCO gives to objects in images."""
    if path.suffix.lower() != ".json" or not path.stat().st_size:
        return False
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        is_object = bytes(content[:100]).removeprefix(BOM_UTF8).lstrip().startswith(b"{")
        return is_object and all(content.find(key) >= 0 for key in _KEYS)


def coco_content(path: Path, lists: Sequence[str], findings: Findings) -> dict[str, list[Any]]:
    """The lists of one of COCO's JSON files."""
    content = read_json(path, dict, findings)
    findings.stop_if_any()
    for key in lists:
        if not isinstance(content.get(key), list):
            findings.add(path, f"must be a JSON object with a list of {key!r}")
    findings.stop_if_any()
    return content


def by_id(
    path: PathLike, items: list[Any], what: str, key: str, findings: Findings
) -> dict[int, tuple[int, dict[str, Any]]]:
    """Items by their id, with their place in the list."""
    found: dict[int, tuple[int, dict[str, Any]]] = {}
    for place, item in enumerate(items):
        where = f"{what}[{place}]"
        if not isinstance(item, dict) or not isinstance(item.get("id"), int):
            findings.add(path, f"{where} has no whole number 'id'", place)
        elif not isinstance(item.get(key), str):
            findings.add(path, f"{where} has no text {key!r}", place)
        elif item["id"] in found:
            first = f"{what}[{found[item['id']][0]}]"
            findings.add(path, f"{where} has the id {item['id']}, a duplicate of {first}", place)
        else:
            found[item["id"]] = place, item
    return found
